//! Truths from a file or from standard input: one per line, or in a column of CSV.

use std::fs::File;
use std::io::{self, IsTerminal, Read, StdinLock};
use std::path::Path;

use memchr::memchr_iter;
use uptack::{Truth, Truths};
use uptack_owner::attributes::suspected_separator;

use crate::arguments::separator_advice;
use crate::failure::{Failure, Result};
use crate::input::{InputSource, open};
use crate::progress::{Watched, say};

/// Owners whose truths are handed on at a time.
const BATCH: usize = 1 << 14;
/// Bytes that are read at a time.
const CHUNK: usize = 1 << 16;
/// No line that is a truth is longer, blanks included.
const LONGEST_LINE: usize = 64;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

const HINT: &str = "write yes, no, 1, 0, true or false, one per line; --column reads a column of CSV";

/// Where values come from, one per owner.
#[derive(Clone, Copy)]
pub(crate) struct ValueReader<'a> {
    pub(crate) input: InputSource<'a>,
    /// The column of a CSV file with a header; without it, there is one value per line.
    pub(crate) column: Option<&'a str>,
    /// The sign between the fields of the CSV file; by default a comma.
    pub(crate) separator: Option<char>,
}

/// Receives each value, with its line.
type TakeValue<'t> = &'t mut dyn FnMut(u64, &[u8]) -> Result<()>;

impl<'a> ValueReader<'a> {
    /// Hands on the values one by one. A line of more than `longest` bytes is refused with this hint.
    pub(crate) fn read(self, source: &mut dyn Read, (longest, hint): (usize, &str), take: TakeValue<'_>) -> Result<()> {
        match self.column {
            Some(name) => self.read_column(source, name, take),
            None => self.read_lines(source, (longest, hint), take),
        }
    }

    fn read_lines(self, source: &mut dyn Read, (longest, hint): (usize, &str), take: TakeValue<'_>) -> Result<()> {
        let mut lines = LineReader { take, number: 0 };
        let mut buffer = vec![0; CHUNK];
        let mut pending = 0;
        loop {
            let read = self.input.read_some(source, &mut buffer[pending..])?;
            let end = pending + read;
            if read == 0 {
                return if pending > 0 { lines.line(&buffer[..pending]) } else { Ok(()) };
            }
            let start = lines.complete(&buffer[..end])?;
            if end - start > longest {
                return Err(self.fault(lines.number + 1, "too long for a truth").with_hint(hint));
            }
            buffer.copy_within(start..end, 0);
            pending = end - start;
        }
    }

    fn read_column(self, source: &mut dyn Read, name: &'a str, take: TakeValue<'_>) -> Result<()> {
        let mut take = |line: u64, value: &[u8]| take(line, value).map_err(ColumnError::Failure);
        let mut column = CsvColumn::new(name, self.separator);
        let mut buffer = vec![0; CHUNK];
        loop {
            match self.input.read_some(source, &mut buffer)? {
                0 => return column.finish(&mut take).map_err(|failed| self.failed(failed)),
                read => column.feed(&buffer[..read], &mut take).map_err(|failed| self.failed(failed))?,
            }
        }
    }

    fn failed(self, failed: ColumnError) -> Failure {
        match failed {
            ColumnError::CsvFault(CsvFault { line, what, suspected: None }) => self.fault(line, &what),
            ColumnError::CsvFault(CsvFault { line, what, suspected: Some(sign) }) => {
                self.fault(line, &what).with_hint(separator_advice(sign))
            }
            ColumnError::Failure(failure) => failure,
        }
    }

    /// The line at fault is named and not shown: it is somebody's truth.
    pub(crate) fn fault(self, line: u64, what: &str) -> Failure {
        Failure::request(format!("line {line}: {what}")).at(self.input)
    }

    /// There is nobody in the input.
    pub(crate) fn no_truths(self) -> Failure {
        self.fault(if self.column.is_some() { 2 } else { 1 }, "there are no truths")
    }
}

/// Where truths come from, and how they are written.
#[derive(Clone, Copy)]
pub(crate) struct TruthReader<'a> {
    pub(crate) values: ValueReader<'a>,
    /// The value that is a yes; without it, truths are words such as yes and no.
    pub(crate) yes: Option<&'a str>,
}

/// Receives the truths of some owners.
type TakeTruths<'t> = &'t mut dyn FnMut(&Truths) -> Result<()>;

impl TruthReader<'_> {
    /// Hands on the truths in batches; the last one may be small, and there is at least one owner.
    pub(crate) fn read(self, source: &mut dyn Read, take: TakeTruths<'_>) -> Result<()> {
        let mut batch = PendingTruths { reader: self, truths: Truths::new(), owners: 0, take };
        self.values.read(source, (LONGEST_LINE, HINT), &mut |line, value| batch.add(line, value))?;
        batch.finish()
    }

    fn parse(self, value: &[u8]) -> Option<Truth> {
        match self.yes {
            Some(yes) => Some(if value == yes.trim().as_bytes() { Truth::Yes } else { Truth::No }),
            None => parse_word(value),
        }
    }

    fn not_a_truth(self, line: u64, is_empty: bool) -> Failure {
        let fault = |what: &str| self.values.fault(line, what);
        match self.values.column {
            Some(name) => fault(&format!("the value of `{name}` is neither yes nor no"))
                .with_hint("say which value means yes, as in --yes A1"),
            None => fault(if is_empty { "an empty line" } else { "not a truth" }).with_hint(HINT),
        }
    }
}

/// A file whose reading is shown, unless rows are written to the terminal.
pub(crate) fn watched_file(path: &Path) -> Result<Watched<File>> {
    Ok(Watched::file(open(path)?).unless(io::stdout().is_terminal()))
}

/// Standard input; whoever sits at a terminal is told what to type.
pub(crate) fn truths_from_input() -> StdinLock<'static> {
    if io::stdin().is_terminal() {
        say("reading truths from the terminal, one per line; end with Ctrl-D\n");
    }
    io::stdin().lock()
}

/// Numbers the lines and hands them on.
struct LineReader<'t> {
    take: TakeValue<'t>,
    /// How many lines there have been.
    number: u64,
}

impl LineReader<'_> {
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
enum ColumnError {
    CsvFault(CsvFault),
    Failure(Failure),
}

impl From<CsvFault> for ColumnError {
    fn from(fault: CsvFault) -> Self {
        Self::CsvFault(fault)
    }
}

/// Truths that have not been handed on yet.
struct PendingTruths<'a, 't> {
    reader: TruthReader<'a>,
    truths: Truths,
    owners: u64,
    take: TakeTruths<'t>,
}

impl PendingTruths<'_, '_> {
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
            return Err(self.reader.values.no_truths().with_hint(HINT));
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

/// Reads the values of one column from CSV with a header. It understands quoted fields with commas, line ends and doubled
/// quotes, line ends of either kind, and a byte order mark.
pub(crate) struct CsvColumn<'a> {
    name: &'a str,
    /// The sign between fields, if it was said.
    separator: Option<char>,
    /// Where the column is, once the header has been read.
    place: Option<ColumnPlace>,
    state: FieldState,
    /// The fields of the header.
    header: Vec<Vec<u8>>,
    /// The value of the column in the current record.
    value: Vec<u8>,
    /// How many fields of the current record are complete.
    fields: usize,
    line: u64,
    /// The line on which the current record begins.
    record_line: u64,
    is_begun: bool,
}

/// The index of a column, and how many columns there are.
#[derive(Clone, Copy)]
struct ColumnPlace {
    index: usize,
    columns: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldState {
    /// Nothing but blanks of the field has been seen.
    Before,
    Plain,
    Quoted,
    /// A quotation mark inside a quoted field: its end, or the first of two.
    Mark,
    /// After a quoted field.
    After,
}

/// A fault of a CSV file, and its line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CsvFault {
    pub(crate) line: u64,
    pub(crate) what: String,
    /// The sign that seems to separate the fields.
    pub(crate) suspected: Option<char>,
}

/// Receives the line and the value of each record.
type TakeRecord<'t, E> = &'t mut dyn FnMut(u64, &[u8]) -> Result<(), E>;

/// No value that is compared with another is as long as this.
const LONGEST_VALUE: usize = 4096;
const MARK: &[u8] = b"\xef\xbb\xbf";

impl<'a> CsvColumn<'a> {
    pub(crate) fn new(name: &'a str, separator: Option<char>) -> Self {
        Self {
            name,
            separator,
            place: None,
            state: FieldState::Before,
            header: vec![Vec::new()],
            value: Vec::new(),
            fields: 0,
            line: 1,
            record_line: 1,
            is_begun: false,
        }
    }

    /// Takes the next bytes; `take` receives the line and the value of each record that ends in them.
    pub(crate) fn feed<E: From<CsvFault>>(&mut self, bytes: &[u8], take: TakeRecord<'_, E>) -> Result<(), E> {
        for &byte in bytes {
            self.byte(byte, take)?;
        }
        Ok(())
    }

    /// Ends the file; its last record may lack a line end.
    pub(crate) fn finish<E: From<CsvFault>>(mut self, take: TakeRecord<'_, E>) -> Result<(), E> {
        if self.state == FieldState::Quoted {
            return Err(self.fault("a quotation mark is not closed").into());
        }
        if self.is_begun {
            self.end_record(take)?;
        }
        if self.place.is_none() {
            return Err(self.fault("there is no header").into());
        }
        Ok(())
    }

    fn byte<E: From<CsvFault>>(&mut self, byte: u8, take: TakeRecord<'_, E>) -> Result<(), E> {
        match (self.state, byte) {
            (FieldState::Quoted, _) => self.quoted_byte(byte)?,
            (FieldState::Mark, b'"') => {
                self.push(byte)?;
                self.state = FieldState::Quoted;
            }
            (_, byte) if char::from(byte) == self.separator.unwrap_or(',') => self.end_field(),
            (_, b'\n') => self.end_record(take)?,
            (FieldState::Before | FieldState::Plain, _) => self.plain_byte(byte)?,
            (FieldState::Mark | FieldState::After, b' ' | b'\t' | b'\r') => self.state = FieldState::After,
            (FieldState::Mark | FieldState::After, _) => {
                return Err(self.fault("text after a closing quotation mark").into());
            }
        }
        if byte == b'\n' {
            self.end_line();
        }
        Ok(())
    }

    fn quoted_byte(&mut self, byte: u8) -> Result<(), CsvFault> {
        if byte == b'"' {
            self.state = FieldState::Mark;
            return Ok(());
        }
        self.push(byte)
    }

    fn plain_byte(&mut self, byte: u8) -> Result<(), CsvFault> {
        match (self.state, byte) {
            (FieldState::Before, b'"') => {
                self.is_begun = true;
                self.state = FieldState::Quoted;
                Ok(())
            }
            (FieldState::Before, b' ' | b'\t' | b'\r') => Ok(()),
            _ => {
                self.state = FieldState::Plain;
                self.push(byte)
            }
        }
    }

    fn end_line(&mut self) {
        self.line += 1;
        if self.state != FieldState::Quoted {
            self.record_line = self.line;
        }
    }

    fn push(&mut self, byte: u8) -> Result<(), CsvFault> {
        self.is_begun = true;
        let Some(field) = self.kept_field() else { return Ok(()) };
        field.push(byte);
        if field.len() > LONGEST_VALUE {
            return Err(self.fault(&format!("a field of more than {LONGEST_VALUE} bytes")));
        }
        Ok(())
    }

    /// The current field, if it is part of the header or of the column.
    fn kept_field(&mut self) -> Option<&mut Vec<u8>> {
        match self.place {
            None => self.header.last_mut(),
            Some(place) => (place.index == self.fields).then_some(&mut self.value),
        }
    }

    fn end_field(&mut self) {
        self.is_begun = true;
        self.fields += 1;
        self.state = FieldState::Before;
        if self.place.is_none() {
            self.header.push(Vec::new());
        }
    }

    fn end_record<E: From<CsvFault>>(&mut self, take: TakeRecord<'_, E>) -> Result<(), E> {
        match self.place {
            None => self.place = Some(self.find()?),
            Some(place) => {
                self.check_record(place)?;
                take(self.record_line, self.value.trim_ascii())?;
            }
        }
        self.value.clear();
        (self.fields, self.state, self.is_begun) = (0, FieldState::Before, false);
        Ok(())
    }

    fn check_record(&self, place: ColumnPlace) -> Result<(), CsvFault> {
        let (found, expected) = (self.fields + 1, place.columns);
        if !self.is_begun {
            return Err(self.fault("an empty line"));
        }
        if found != expected {
            return Err(self.fault(&format!("{found} fields, but the header has {expected}")));
        }
        Ok(())
    }

    /// Looks for the column in the header.
    fn find(&self) -> Result<ColumnPlace, CsvFault> {
        let names = self.header_names();
        let mut places = (0..names.len()).filter(|&index| names[index] == self.name);
        match (places.next(), places.next()) {
            (Some(index), None) => Ok(ColumnPlace { index, columns: names.len() }),
            (Some(_), Some(_)) => Err(self.fault(&format!("two columns are called `{}`", self.name))),
            _ => Err(CsvFault {
                suspected: suspected_separator(&names.join(",")).filter(|_| self.separator.is_none()),
                ..self.fault(&format!("no column is called `{}`; the columns are {}", self.name, names.join(", ")))
            }),
        }
    }

    fn header_names(&self) -> Vec<String> {
        let mut names: Vec<&[u8]> = self.header.iter().map(Vec::as_slice).collect();
        names[0] = names[0].strip_prefix(MARK).unwrap_or(names[0]);
        names.into_iter().map(|name| String::from_utf8_lossy(name).trim().trim_matches('"').to_owned()).collect()
    }

    fn fault(&self, what: &str) -> CsvFault {
        CsvFault { line: self.record_line, what: what.to_owned(), suspected: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, column: &str, chunk: usize) -> Result<Vec<(u64, String)>, CsvFault> {
        let mut found = Vec::new();
        let mut take = |line: u64, value: &[u8]| {
            found.push((line, String::from_utf8_lossy(value).into_owned()));
            Ok::<(), CsvFault>(())
        };
        let mut reader = CsvColumn::new(column, None);
        text.as_bytes().chunks(chunk).try_for_each(|bytes| reader.feed(bytes, &mut take))?;
        reader.finish(&mut take)?;
        Ok(found)
    }

    #[test]
    fn a_column_is_found_by_its_name_however_the_file_is_written() {
        let text = "\u{feff}name,road,note\r\n\"Ada, \"\"L.\"\"\",A1,\"two\nlines\"\r\nBob , A2 ,\r\nCy,\"A1\" ,x";
        for chunk in [1, 2, 7, 1000] {
            let roads = values(text, "road", chunk).unwrap();
            assert_eq!(roads, [(2, "A1".to_owned()), (4, "A2".to_owned()), (5, "A1".to_owned())]);
            let names = values(text, "name", chunk).unwrap();
            assert_eq!(names[0].1, "Ada, \"L.\"");
        }
        assert_eq!(values("\u{feff}\"a\"\nyes\n", "a", 1).unwrap(), [(2, "yes".to_owned())]);
        assert_eq!(values("a,b\n,\n", "b", 1).unwrap(), [(2, String::new())]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_without_a_value() {
        for (text, line, words) in [
            ("", 1, "there is no header"),
            ("a,b\n1,2\nsecret\n", 3, "1 fields, but the header has 2"),
            ("a,b\n\"x\ny\",1\n\nz,2\n", 4, "an empty line"),
            ("a,b\n\"secret", 2, "not closed"),
            ("a,b\n\"secret\"x,1\n", 2, "after a closing quotation mark"),
            ("c,d\n", 1, "no column is called `a`; the columns are c, d"),
            ("a,a\n", 1, "two columns"),
        ] {
            let fault = values(text, "a", 3).unwrap_err();
            assert!(fault.line == line && fault.what.contains(words), "{text:?}: {fault:?}");
            assert!(!fault.what.contains("secret"));
        }
        assert_eq!(values("name;a\nx;yes\n", "a", 3).unwrap_err().suspected, Some(';'));
        assert!(values(&format!("a\n{}\n", "x".repeat(5000)), "a", 512).unwrap_err().what.contains("4096"));
    }
}
