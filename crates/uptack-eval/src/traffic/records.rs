//! The lines of a text file and their fields, with errors that say which one is wrong.

use std::fmt;
use std::io::BufRead;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The most bytes of a line, many times more than any of these files has.
const LONGEST: usize = 1 << 16;

/// The lines of a file without their ends, counted from 1.
pub(super) struct NumberedLines<'a> {
    source: Box<dyn BufRead + 'a>,
    bytes: Vec<u8>,
    pub(super) number: u64,
}

impl<'a> NumberedLines<'a> {
    pub(super) fn new(source: Box<dyn BufRead + 'a>) -> Self {
        Self { source, bytes: Vec::new(), number: 0 }
    }

    /// The next line that is not empty.
    pub(super) fn next(&mut self) -> Result<Option<&str>> {
        while self.read()? {
            if !self.bytes.is_empty() {
                return self.text().map(Some);
            }
        }
        Ok(None)
    }

    /// The line that was read, in the first line without a byte order mark.
    fn text(&self) -> Result<&str> {
        let text = str::from_utf8(&self.bytes).map_err(|_| Error::line(self.number, "not UTF-8 text"))?;
        Ok(if self.number == 1 { text.trim_start_matches('\u{feff}') } else { text })
    }

    /// Reads one line without its end; returns false if there are no more.
    fn read(&mut self) -> Result<bool> {
        self.bytes.clear();
        self.number += 1;
        let mut limited = std::io::Read::take(&mut self.source, LONGEST as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.bytes).map_err(|error| Error::line(self.number, error))?;
        if read > LONGEST {
            return Err(Error::line(self.number, format!("longer than {LONGEST} bytes")));
        }
        while matches!(self.bytes.last(), Some(b'\n' | b'\r')) {
            self.bytes.pop();
        }
        Ok(read > 0)
    }
}

/// One line as its fields, which are counted from 0 here and from 1 in errors.
pub(super) struct LineFields<T> {
    line: u64,
    fields: Vec<T>,
}

impl<T: AsRef<str>> LineFields<T> {
    pub(super) fn new(line: u64, fields: Vec<T>) -> Self {
        Self { line, fields }
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field without the spaces around it; empty if the line has none there.
    pub(super) fn text(&self, field: usize) -> &str {
        self.fields.get(field).map_or("", |text| text.as_ref().trim())
    }

    /// An error about a field.
    pub(super) fn error(&self, field: usize, message: impl fmt::Display) -> Error {
        Error::field(self.line, field + 1, message)
    }

    pub(super) fn check_length(&self, expected: usize) -> Result<()> {
        match self.len() {
            length if length == expected => Ok(()),
            1 => Err(Error::line(self.line, format!("1 field, but expected {expected}"))),
            length => Err(Error::line(self.line, format!("{length} fields, but expected {expected}"))),
        }
    }

    /// A field that must not be empty; `what` says what it holds.
    pub(super) fn required(&self, field: usize, what: &str) -> Result<&str> {
        match self.text(field) {
            "" => Err(self.error(field, format!("empty, but expected {what}"))),
            text => Ok(text),
        }
    }

    pub(super) fn number<N: FromStr>(&self, field: usize, what: &str) -> Result<N> {
        let text = self.required(field, what)?;
        text.parse().map_err(|_| self.error(field, format!("`{}` is not {what}", excerpt(text))))
    }

    /// A number, or none if the field is empty.
    pub(super) fn optional<N: FromStr>(&self, field: usize, what: &str) -> Result<Option<N>> {
        if self.text(field).is_empty() { Ok(None) } else { self.number(field, what).map(Some) }
    }

    /// A percentage, or none if the field is empty.
    pub(super) fn percentage(&self, field: usize) -> Result<Option<f64>> {
        let value: Option<f64> = self.optional(field, "a percentage")?;
        match value {
            Some(value) if !(0.0..=100.0).contains(&value) => {
                Err(self.error(field, format!("{value} is not between 0 and 100 per cent")))
            }
            value => Ok(value),
        }
    }
}

/// As much of a field as an error shows.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}
