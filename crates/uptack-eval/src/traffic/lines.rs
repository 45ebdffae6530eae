//! Lines and fields, with their numbers.

use std::io::BufRead;

use crate::error::Error;

/// No line of these files is nearly as long.
const LONGEST: usize = 1 << 16;

/// The lines of a file, without their ends, counted from 1.
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
    pub(super) fn next(&mut self) -> Result<Option<&str>, Error> {
        loop {
            if !self.read()? {
                return Ok(None);
            }
            if !self.bytes.is_empty() {
                break;
            }
        }
        let number = self.number;
        let text = std::str::from_utf8(&self.bytes).map_err(|_| Error::line(number, "not UTF-8 text"))?;
        Ok(Some(if number == 1 { text.trim_start_matches('\u{feff}') } else { text }))
    }

    /// Reads one line without its end; false where there are no more.
    fn read(&mut self) -> Result<bool, Error> {
        self.bytes.clear();
        self.number += 1;
        let number = self.number;
        let mut limited = std::io::Read::take(&mut self.source, LONGEST as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.bytes).map_err(|error| Error::line(number, error))?;
        if read > LONGEST {
            return Err(Error::line(number, format!("longer than {LONGEST} bytes")));
        }
        while self.bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            self.bytes.pop();
        }
        Ok(read > 0)
    }
}

/// A number of a field, or what is wrong with it.
pub(super) fn number<T: std::str::FromStr>(line: u64, field: usize, text: &str, what: &str) -> Result<T, Error> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Error::field(line, field, format!("empty where {what} belongs")));
    }
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(40).collect();
        Error::field(line, field, format!("`{shown}` is not {what}"))
    })
}

/// The same where an empty field means that there is none.
pub(super) fn optional<T: std::str::FromStr>(
    line: u64,
    field: usize,
    text: &str,
    what: &str,
) -> Result<Option<T>, Error> {
    if text.trim().is_empty() { Ok(None) } else { number(line, field, text, what).map(Some) }
}
