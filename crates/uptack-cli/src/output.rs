//! Tables for people, JSON for programs, and small files.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;

pub(crate) use uptack::display::{claim as readable_up, grouped, nearest as readable};

use crate::failure::Failure;

/// No card, tally or mechanism is as large as this.
const LARGEST_FILE: u64 = 16 << 20;

/// Writes bytes to stdout and flushes them.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| Failure::writing("stdout", &error))
}

/// Writes one JSON document to stdout.
pub(crate) fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(document).map_err(|error| Failure::writing("stdout", &io::Error::other(error)))?;
    print(&format!("{text}\n"))
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
    String::from_utf8(bytes).map_err(|_| Failure::request(format!("{place}: not UTF-8 text")))
}

/// Writes a file whole or not at all: beside its place, then renamed.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let fail = |error: io::Error| Failure::writing(path.display(), &error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
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

/// Rows of cells in aligned columns; the first column to the left, numbers to the right.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let padded = row.iter().enumerate().map(|(column, cell)| match column {
                0 => format!("{cell:<width$}", width = widths[0]),
                _ => format!("{cell:>width$}", width = widths[column]),
            });
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        self.rows.iter().map(line).collect()
    }
}
