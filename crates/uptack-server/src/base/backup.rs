//! Consistent copies of the state of a running server.
//!
//! A plain copy of an SQLite file that is being written is damaged or out of date: part of the state is in the log next
//! to it. Here SQLite itself makes the copy, in one read transaction, while the server goes on.

use rusqlite::{Connection, OpenFlags};
use std::{
    fs::File,
    io::ErrorKind,
    path::{Path, PathBuf},
};
use uptack_dap::private;

use crate::error::{Error, Result};

/// Makes a folder with copies, whole or not at all: `write` fills a folder next to it, which is then renamed.
pub(crate) fn make_folder(out: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if out.exists() {
        return Err(Error::input(format!("{} already exists; a backup overwrites nothing", out.display())));
    }
    let partial = partial_folder(out);
    if partial.exists() {
        return Err(Error::input(format!("{} was left by a backup that did not finish: remove it", partial.display())));
    }
    private::create_folder(&partial)?;
    let written = write(&partial).and_then(|()| finish_folder(&partial, out));
    if written.is_err() {
        // Nothing half written is left; if this fails as well, the next attempt says so.
        let _ = std::fs::remove_dir_all(&partial);
    }
    written
}

fn partial_folder(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    out.with_file_name(name)
}

fn finish_folder(partial: &Path, out: &Path) -> Result<()> {
    sync(partial)?;
    std::fs::rename(partial, out).map_err(|error| Error::file(out, error))
}

/// Copies an SQLite file as it is at one moment.
pub(crate) fn copy_database(from: &Path, to: &Path) -> Result<()> {
    // Created first, with access for nobody else.
    drop(private::create_file(to)?);
    let connection = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(|error| Error::named_file(from, error))?;
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    let target = to.to_str().ok_or_else(|| Error::input(format!("{} is not UTF-8", to.display())))?;
    connection.execute("VACUUM INTO ?1", [target])?;
    check(to)?;
    sync(to)
}

/// Copies a file that is written as a whole, if it is there.
pub(crate) fn copy_file(from: &Path, to: &Path) -> Result<()> {
    match std::fs::read_to_string(from) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::file(from, error)),
        Ok(text) => Ok(private::write_secret(to, &text)?),
    }
}

/// Copies the files of a folder, if it is there. Folders in it are left out.
pub(crate) fn copy_files(from: &Path, to: &Path) -> Result<()> {
    let in_folder = |error| Error::file(from, error);
    let entries = match std::fs::read_dir(from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(in_folder)?,
    };
    private::create_folder(to)?;
    for entry in entries {
        let path = entry.map_err(in_folder)?.path();
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            copy_file(&path, &to.join(name))?;
        }
    }
    sync(to)
}

/// Finds out now whether the backup can be read, and not when it is needed.
fn check(path: &Path) -> Result<()> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(Error::environment(format!("{}: the copy is damaged: {verdict}", path.display())))
}

fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(|error| Error::file(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_being_written_is_copied_as_of_one_moment() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        let writer = Connection::open(&from).unwrap();
        writer.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
        writer.execute_batch("CREATE TABLE pairs(left INTEGER, right INTEGER)").unwrap();
        for number in 0..1000 {
            writer.execute("INSERT INTO pairs VALUES (?1, ?1)", [number]).unwrap();
        }
        // The copy holds changes that are only in the log, but none that are not committed.
        writer.execute_batch("BEGIN; UPDATE pairs SET left = -1;").unwrap();
        copy_database(&from, &to).unwrap();
        writer.execute_batch("COMMIT").unwrap();
        let copy = Connection::open(&to).unwrap();
        let count = |condition: &str| -> i64 {
            copy.query_row(&format!("SELECT count(*) FROM pairs WHERE {condition}"), [], |row| row.get(0)).unwrap()
        };
        assert_eq!((count("left = right"), count("left <> right")), (1000, 0));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(copy_database(&directory.path().join("nothing"), &directory.path().join("other")).is_err());
    }

    #[test]
    fn a_backup_is_whole_or_not_there_and_writes_over_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("copy");
        let failed = make_folder(&out, |folder| {
            std::fs::write(folder.join("half"), "").unwrap();
            Err(Error::environment("the disk is full"))
        });
        assert!(failed.is_err() && !out.exists());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        make_folder(&out, |folder| copy_file(&folder.join("absent"), &folder.join("file"))).unwrap();
        let again = make_folder(&out, |_| Ok(())).unwrap_err();
        assert!(again.is_input(), "{again}");
    }
}
