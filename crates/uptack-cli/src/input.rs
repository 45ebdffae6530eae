//! What commands read: small files, and data from a file or from standard input.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::failure::{Failure, IoResultExt, Result};

/// No card, tally or mechanism is as large as this.
const LARGEST_FILE: u64 = 16 << 20;

/// A file, or standard input.
#[derive(Clone, Copy)]
pub(crate) enum Input<'a> {
    File(&'a Path),
    Standard,
}

impl<'a> Input<'a> {
    /// The file of this name; standard input if there is no name, or if it is `-`.
    pub(crate) fn new(path: Option<&'a Path>) -> Self {
        match path {
            Some(path) if path != Path::new("-") => Self::File(path),
            _ => Self::Standard,
        }
    }

    /// Reads everything, as text; refuses what is too large for anything that a command reads whole.
    pub(crate) fn read_small(self) -> Result<String> {
        match self {
            Self::File(path) => self.read_small_from(open(path)?),
            Self::Standard => self.read_small_from(io::stdin().lock()),
        }
    }

    /// Reads the next bytes from an opened source, as many as there are; none at the end.
    pub(crate) fn read_some(self, source: &mut dyn Read, buffer: &mut [u8]) -> Result<usize> {
        loop {
            match source.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(|error| self.unreadable(&error)),
            }
        }
    }

    fn read_small_from(self, source: impl Read) -> Result<String> {
        let mut bytes = Vec::new();
        source.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(|error| self.unreadable(&error))?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(Failure::request(format!("larger than {} MiB", LARGEST_FILE >> 20)).at(self));
        }
        let text = String::from_utf8(bytes).map_err(|_| Failure::request("not UTF-8 text").at(self));
        text.map(without_mark)
    }

    fn unreadable(self, error: &io::Error) -> Failure {
        match self {
            Self::File(path) => Failure::reading(path, error),
            Self::Standard => Failure::reading_input(error),
        }
    }
}

impl fmt::Display for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Standard => f.write_str("standard input"),
        }
    }
}

/// Reads a file that is small if it is what it should be.
pub(crate) fn read_small_file(path: &Path) -> Result<String> {
    Input::File(path).read_small()
}

/// Reads a file of any size, as text.
pub(crate) fn read_file(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).while_reading(path)
}

pub(crate) fn open(path: &Path) -> Result<File> {
    File::open(path).while_reading(path)
}

/// Removes the byte order mark that some editors put at the start of a text.
pub(crate) fn without_mark(text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(unmarked) => unmarked.to_owned(),
        None => text,
    }
}

/// Whether a file's name ends in this extension, in upper or lower case.
pub(crate) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}
