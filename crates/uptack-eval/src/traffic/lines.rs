//! The lines of a file, with their numbers.

use std::io::BufRead;

use crate::error::{Error, Result};

/// The most bytes of a line, many times more than any of these files has.
const LONGEST: usize = 1 << 16;

/// The lines of a file without their ends, counted from 1.
pub(super) struct Lines<'a> {
    source: Box<dyn BufRead + 'a>,
    bytes: Vec<u8>,
    pub(super) number: u64,
}

impl<'a> Lines<'a> {
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
