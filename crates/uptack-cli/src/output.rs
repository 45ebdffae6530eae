//! Text for people, JSON for programs, and small files.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;

pub(crate) use uptack::display::{claim as readable_up, grouped, nearest as readable};

pub(crate) use crate::table::Table;

use crate::failure::Failure;
use crate::layout;

/// No card, tally or mechanism is as large as this.
const LARGEST_FILE: u64 = 16 << 20;

/// Writes text for people to stdout, its lines broken where the terminal is narrower.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_exact(&layout::fitted(text, layout::width()))
}

/// Writes text to stdout as it is, for other programs.
pub(crate) fn print_exact(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| Failure::writing("stdout", &error))
}

/// Writes one JSON document to stdout.
pub(crate) fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(document).map_err(|error| Failure::writing("stdout", &io::Error::other(error)))?;
    print_exact(&format!("{text}\n"))
}

/// Reads a file that is small or not what it should be.
pub(crate) fn read_small_file(path: &Path) -> Result<String, Failure> {
    let file = File::open(path).map_err(|error| Failure::reading(path, &error))?;
    read_small(file, &path.display().to_string(), |error| Failure::reading(path, error))
}

/// Reads standard input likewise.
pub(crate) fn read_small_input() -> Result<String, Failure> {
    read_small(io::stdin().lock(), "standard input", Failure::reading_input)
}

fn read_small(source: impl Read, place: &str, fail: impl Fn(&io::Error) -> Failure) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    source.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(|error| fail(&error))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(Failure::request(format!("{place}: larger than {} MiB", LARGEST_FILE >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::request(format!("{place}: not UTF-8 text")))?;
    Ok(without_mark(text))
}

/// Text without the byte order mark that some editors begin it with.
pub(crate) fn without_mark(text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// Finds out before any work is done whether a file can be written where it is wanted.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    let refuse = |words: &str| Failure::request(format!("{}: {words}", path.display()));
    if path.is_dir() {
        return Err(refuse("it is a folder, not a file"));
    }
    // Written beside its place and thrown away, as the file itself will be written and renamed.
    match tempfile::NamedTempFile::new_in(folder_of(path)) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(refuse("the folder for it does not exist")),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(refuse("what should be its folder is a file"))
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(refuse("you may not write in its folder")),
        Err(error) => Err(Failure::writing(path.display(), &error)),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file whole or not at all: beside its place, then renamed.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let fail = |error: io::Error| Failure::writing(path.display(), &error);
    let mut file = tempfile::NamedTempFile::new_in(folder_of(path)).map_err(fail)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
    // A temporary file is for its owner only; what we write here is for everybody.
    let readable = fs::metadata(path).map(|data| data.permissions()).ok();
    file.persist(path).map_err(|error| fail(error.error))?;
    match readable {
        Some(permissions) => fs::set_permissions(path, permissions).map_err(fail),
        None => make_public(path).map_err(fail),
    }
}

#[cfg(unix)]
fn make_public(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_public(_: &Path) -> io::Result<()> {
    Ok(())
}
