//! Truths from a file or from standard input: one per line, or in a column of CSV.

use std::io::Read;

use memchr::memchr_iter;
use uptack::{Truth, Truths};

use crate::csv_column::{CsvColumn, Fault};
use crate::failure::{Failure, Result};
use crate::input::Input;

/// Owners whose truths are handed on at a time.
const BATCH: usize = 1 << 14;
/// Bytes that are read at a time.
const CHUNK: usize = 1 << 16;
/// No line that is a truth is longer, blanks included.
const LONGEST_LINE: usize = 64;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

const HINT: &str = "write yes, no, 1, 0, true or false, one per line; --column reads a column of CSV";

/// Where truths come from, and how they are written.
#[derive(Clone, Copy)]
pub(crate) struct TruthReader<'a> {
    pub(crate) input: Input<'a>,
    /// The column of a CSV file with a header; without it, there is one truth per line.
    pub(crate) column: Option<&'a str>,
    /// The value that is a yes; without it, truths are words such as yes and no.
    pub(crate) yes: Option<&'a str>,
}

/// Receives the truths of some owners.
type TakeTruths<'t> = &'t mut dyn FnMut(&Truths) -> Result<()>;

/// Receives each value, with its line.
type TakeValue<'t> = &'t mut dyn FnMut(u64, &[u8]) -> Result<()>;

impl<'a> TruthReader<'a> {
    /// Hands on the truths in batches; the last one may be small, and there is at least one owner.
    pub(crate) fn read(self, source: &mut dyn Read, take: TakeTruths<'_>) -> Result<()> {
        let mut batch = Batch { reader: self, truths: Truths::new(), owners: 0, take };
        let mut add = |line: u64, value: &[u8]| batch.add(line, value);
        match self.column {
            None => self.read_lines(source, &mut add)?,
            Some(name) => self.read_column(source, name, &mut add)?,
        }
        batch.finish()
    }

    fn read_lines(self, source: &mut dyn Read, take: TakeValue<'_>) -> Result<()> {
        let mut lines = Lines { take, number: 0 };
        let mut buffer = vec![0; CHUNK];
        let mut pending = 0;
        loop {
            let read = self.input.read_some(source, &mut buffer[pending..])?;
            let end = pending + read;
            if read == 0 {
                return if pending > 0 { lines.line(&buffer[..pending]) } else { Ok(()) };
            }
            let start = lines.complete(&buffer[..end])?;
            if end - start > LONGEST_LINE {
                return Err(self.fault(lines.number + 1, "too long for a truth").with_hint(HINT));
            }
            buffer.copy_within(start..end, 0);
            pending = end - start;
        }
    }

    fn read_column(self, source: &mut dyn Read, name: &'a str, take: TakeValue<'_>) -> Result<()> {
        let mut take = |line: u64, value: &[u8]| take(line, value).map_err(Stopped::Failure);
        let mut column = CsvColumn::new(name);
        let mut buffer = vec![0; CHUNK];
        loop {
            match self.input.read_some(source, &mut buffer)? {
                0 => return column.finish(&mut take).map_err(|stopped| self.stopped(stopped)),
                read => column.feed(&buffer[..read], &mut take).map_err(|stopped| self.stopped(stopped))?,
            }
        }
    }

    fn stopped(self, stopped: Stopped) -> Failure {
        match stopped {
            Stopped::Fault(fault) => self.fault(fault.line, &fault.what),
            Stopped::Failure(failure) => failure,
        }
    }

    fn parse(self, value: &[u8]) -> Option<Truth> {
        match self.yes {
            Some(yes) => Some(if value == yes.trim().as_bytes() { Truth::Yes } else { Truth::No }),
            None => parse_word(value),
        }
    }

    /// The line at fault is named and not shown: it is somebody's truth.
    fn fault(self, line: u64, what: &str) -> Failure {
        Failure::request(format!("line {line}: {what}")).at(self.input)
    }

    fn not_a_truth(self, line: u64, is_empty: bool) -> Failure {
        match self.column {
            Some(name) => self
                .fault(line, &format!("the value of `{name}` is neither yes nor no"))
                .with_hint("say which value is a yes, as in --yes A1"),
            None => self.fault(line, if is_empty { "an empty line" } else { "not a truth" }).with_hint(HINT),
        }
    }
}

/// Numbers the lines and hands them on.
struct Lines<'t> {
    take: TakeValue<'t>,
    /// How many lines there have been.
    number: u64,
}

impl Lines<'_> {
    /// Hands on all lines that end in these bytes; returns where the next one begins.
    fn complete(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut start = 0;
        for newline in memchr_iter(b'\n', bytes) {
            self.line(&bytes[start..newline])?;
            start = newline + 1;
        }
        Ok(start)
    }

    fn line(&mut self, text: &[u8]) -> Result<()> {
        self.number += 1;
        let text = if self.number == 1 { text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text) } else { text };
        (self.take)(self.number, text.trim_ascii())
    }
}

/// Why a column is not read to its end; a fault of the file keeps its line until the file is named.
enum Stopped {
    Fault(Fault),
    Failure(Failure),
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Truths that have not been handed on yet.
struct Batch<'a, 't> {
    reader: TruthReader<'a>,
    truths: Truths,
    owners: u64,
    take: TakeTruths<'t>,
}

impl Batch<'_, '_> {
    fn add(&mut self, line: u64, value: &[u8]) -> Result<()> {
        let Some(truth) = self.reader.parse(value) else {
            return Err(self.reader.not_a_truth(line, value.is_empty()));
        };
        self.owners += 1;
        self.truths.push(truth);
        if self.truths.len() == BATCH { self.hand_on() } else { Ok(()) }
    }

    fn hand_on(&mut self) -> Result<()> {
        (self.take)(&self.truths)?;
        self.truths.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        if self.owners == 0 {
            let line = if self.reader.column.is_some() { 2 } else { 1 };
            return Err(self.reader.fault(line, "there are no truths").with_hint(HINT));
        }
        if self.truths.is_empty() { Ok(()) } else { self.hand_on() }
    }
}

fn parse_word(text: &[u8]) -> Option<Truth> {
    let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
    if is("yes") || is("1") || is("true") {
        Some(Truth::Yes)
    } else if is("no") || is("0") || is("false") {
        Some(Truth::No)
    } else {
        None
    }
}
