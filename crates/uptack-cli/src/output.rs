//! Text for people, JSON for programs, and files that are written whole.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use tempfile::NamedTempFile;

pub(crate) use uptack::display::{claim as readable_up, grouped, nearest as readable};

pub(crate) use crate::table::Table;

use crate::failure::{Failure, IoResultExt, Result};
use crate::layout;

/// Writes a result to stdout: one JSON document for programs, or text for people.
pub(crate) fn print_result(json: bool, document: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
    if json { print_json(document) } else { print(&text()) }
}

/// Writes text for people to stdout, its lines broken where the terminal is narrower.
pub(crate) fn print(text: &str) -> Result<()> {
    print_exact(&layout::fitted_to_terminal(text))
}

/// Writes text to stdout as it is, for other programs.
pub(crate) fn print_exact(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.while_writing("stdout")
}

/// Writes one JSON document to stdout.
pub(crate) fn print_json(document: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(document).map_err(io::Error::other).while_writing("stdout")?;
    print_exact(&format!("{text}\n"))
}

/// Checks, before any work is done, that a file can be written at this path.
pub(crate) fn check_writable(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Failure::request("it is a folder, not a file").at(path.display()));
    }
    // Created in the same folder and deleted, as the file itself will be created there and renamed.
    match NamedTempFile::new_in(folder_of(path)) {
        Ok(_) => Ok(()),
        Err(error) => Err(unwritable(path, &error)),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = match error.kind() {
        io::ErrorKind::NotFound => "the folder for it does not exist",
        io::ErrorKind::NotADirectory => "what should be its folder is a file",
        io::ErrorKind::PermissionDenied => "you may not write in its folder",
        _ => return Failure::writing(path.display(), error),
    };
    Failure::request(message).at(path.display())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file whole or not at all: to a temporary file in the same folder, which is then renamed.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, bytes).while_writing(path.display())
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(folder_of(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    let permissions = fs::metadata(path).map(|replaced| replaced.permissions());
    file.persist(path)?;
    // A temporary file is for its owner only; what we write here is for everybody.
    match permissions {
        Ok(permissions) => fs::set_permissions(path, permissions),
        Err(_) => make_public(path),
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
