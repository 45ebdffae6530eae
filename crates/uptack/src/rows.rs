//! Reads rows of outputs, one row per owner, from bytes as they arrive.
//!
//! A crowd's rows are a few different texts repeated many times. So the reader only counts equal lines, and parses
//! each different one once, at the end: a large file costs little more than finding its line ends.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::channel::{MOST_ANSWERS, MOST_CELLS, Output, answer_name};
use crate::error::{Error, Result};
use crate::output::shortened;
use crate::tally::Tally;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// `1,3,2`, with or without the header `A,B,C`.
    Csv,
    /// `{"A":"1","B":"3","C":"2"}`, one object per line.
    NdJson,
}

/// Counts rows into a tally, in constant memory.
///
/// ```
/// use uptack::RowReader;
/// let mut rows = RowReader::new(None);
/// rows.feed(b"A,B\r\n1,2\r\n1,1\r\n1,")?;
/// rows.feed(b"2\r\n")?;
/// let tally = rows.finish()?;
/// assert_eq!(tally.owners(), 3);
/// assert_eq!(tally.count(1, "2".parse()?), 2);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Debug)]
pub struct RowReader {
    format: Option<RowFormat>,
    /// The beginning of a line whose end has not come yet.
    pending: Vec<u8>,
    line: u64,
    header: Option<Vec<u8>>,
    counts: LineCounts,
}

/// Longer than any row of 26 answers, in bytes.
const LONGEST_LINE: usize = 4096;
/// Blanks, quotes and `bottom` allow several texts of one row, but not this many.
const MOST_DIFFERENT_LINES: usize = 16 * MOST_CELLS;

impl RowReader {
    /// A reader of rows in `format`; without one, a first line that starts with `{` makes it NDJSON.
    pub fn new(format: Option<RowFormat>) -> Self {
        Self { format, pending: Vec::new(), line: 0, header: None, counts: LineCounts::default() }
    }

    /// Takes the next bytes, which may end anywhere.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<()> {
        let bytes = if self.pending.is_empty() { bytes } else { self.end_pending(bytes)? };
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            self.take(&bytes[start..end])?;
            start = end + 1;
        }
        self.check_length(bytes.len() - start)?;
        self.pending.extend_from_slice(&bytes[start..]);
        Ok(())
    }

    /// Continues the line that was begun, and returns the bytes after its end.
    fn end_pending<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8]> {
        let end = memchr::memchr(b'\n', bytes);
        self.pending.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        self.check_length(self.pending.len())?;
        let Some(end) = end else { return Ok(&[]) };
        let line = std::mem::take(&mut self.pending);
        self.take(&line)?;
        Ok(&bytes[end + 1..])
    }

    /// The tally of all rows.
    pub fn finish(mut self) -> Result<Tally> {
        if !self.pending.is_empty() {
            let line = std::mem::take(&mut self.pending);
            self.take(&line)?;
        }
        let format = self.format.unwrap_or(RowFormat::Csv);
        let columns = self.header.map_or(0, |header| fields(&header).count());
        let mut lines = self.counts.into_lines();
        if lines.is_empty() {
            return Err(Error::input("there are no rows").with_hint("an empty input is not a crowd of 0 owners"));
        }
        // An error names the first line at fault.
        lines.sort_unstable_by_key(|seen| seen.first);
        Tally::new(count_lines(&lines, format, columns)?)
    }

    #[inline]
    fn take(&mut self, line: &[u8]) -> Result<()> {
        self.line += 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.line == 1 && !self.first(line)? {
            return Ok(());
        }
        if line.is_empty() {
            return self.blank();
        }
        self.counts.add(line, self.line)
    }

    /// Decides the format and reads the header; false if the line is done with, and not to be counted as a row.
    fn first(&mut self, line: &[u8]) -> Result<bool> {
        let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let looks_like = if text.trim_ascii_start().starts_with(b"{") { RowFormat::NdJson } else { RowFormat::Csv };
        let format = *self.format.get_or_insert(looks_like);
        if format == RowFormat::Csv && is_header(text) {
            self.header = Some(text.to_vec());
            return Ok(false);
        }
        if text.len() < line.len() && !text.is_empty() {
            self.counts.add(text, self.line)?;
            return Ok(false);
        }
        Ok(true)
    }

    fn blank(&self) -> Result<()> {
        Err(Error::input(format!("line {}: an empty row", self.line)).with_hint("remove the empty line"))
    }

    fn check_length(&self, bytes: usize) -> Result<()> {
        check_length(bytes, self.line + 1)
    }
}

fn check_length(bytes: usize, line: u64) -> Result<()> {
    if bytes <= LONGEST_LINE {
        return Ok(());
    }
    Err(Error::input(format!("line {line}: longer than {LONGEST_LINE} bytes"))
        .with_hint("this does not look like rows of outputs"))
}

/// The counts of each answer's outputs. The first row says how many answers there are, unless a header of `columns` did.
fn count_lines(lines: &[Seen], format: RowFormat, columns: usize) -> Result<Vec<BTreeMap<Output, u64>>> {
    let mut answers = vec![BTreeMap::new(); columns];
    for seen in lines {
        let place = |error: Error| error.at(format!("line {}", seen.first));
        let outputs = parse(format, &seen.text).map_err(place)?;
        if answers.is_empty() {
            answers.resize(outputs.len(), BTreeMap::new());
        }
        count_row(&mut answers, outputs, seen.count).map_err(place)?;
    }
    Ok(answers)
}

/// Counts a row of one output per answer this many times.
fn count_row(answers: &mut [BTreeMap<Output, u64>], outputs: Vec<Output>, times: u64) -> Result<()> {
    let (has, wants) = (outputs.len(), answers.len());
    if has != wants {
        return Err(Error::input(format!("{has} outputs where the first row has {wants}"))
            .with_hint("every row has one output for each answer"));
    }
    for (counts, output) in answers.iter_mut().zip(outputs) {
        *counts.entry(output).or_insert(0) += times;
    }
    Ok(())
}

/// Whether a line is `A`, `A,B`, `A,B,C`, …
fn is_header(line: &[u8]) -> bool {
    let mut names = fields(line).enumerate();
    names.all(|(answer, name)| answer < MOST_ANSWERS && name == [answer_name(answer) as u8])
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b',').map(|field| {
        let field = field.trim_ascii();
        field.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(field)
    })
}

fn parse(format: RowFormat, line: &[u8]) -> Result<Vec<Output>> {
    let text = str::from_utf8(line).map_err(|_| Error::input("the row is not UTF-8"))?;
    match format {
        RowFormat::Csv => parse_csv(text),
        RowFormat::NdJson => parse_json(text),
    }
}

fn parse_csv(text: &str) -> Result<Vec<Output>> {
    let field = |(answer, field): (usize, &[u8])| {
        let field = str::from_utf8(field).unwrap_or_default();
        output(answer, field)
    };
    fields(text.as_bytes()).enumerate().map(field).collect()
}

fn parse_json(text: &str) -> Result<Vec<Output>> {
    let row: HashMap<String, Value> =
        serde_json::from_str(text).map_err(|_| malformed(format!("`{}` is not a JSON object", shortened(text))))?;
    if row.is_empty() || row.len() > MOST_ANSWERS {
        return Err(malformed(format!("a row of {} answers", row.len())));
    }
    (0..row.len()).map(|answer| json_output(&row, answer)).collect()
}

fn json_output(row: &HashMap<String, Value>, answer: usize) -> Result<Output> {
    let name = answer_name(answer).to_string();
    match row.get(&name) {
        Some(Value::String(text)) => output(answer, text),
        Some(Value::Number(number)) => output(answer, &number.to_string()),
        Some(_) => Err(malformed(format!("answer {name} is not an output"))),
        None => Err(malformed(format!("answer {name} is missing"))),
    }
}

fn malformed(what: String) -> Error {
    Error::input(what).with_hint(r#"a row is an object such as {"A":"1","B":"2"}"#)
}

fn output(answer: usize, text: &str) -> Result<Output> {
    let place = |error: Error| Error::input(error.to_string()).with_hint(error.hint().unwrap_or_default().to_owned());
    text.parse().map_err(|error: Error| place(error).at(format!("answer {}", answer_name(answer))))
}

/// How often each different line occurred, and where it occurred first.
#[derive(Debug, Default)]
struct LineCounts {
    short: Vec<(u128, Seen)>,
    long: HashMap<Vec<u8>, Seen>,
    /// Where in `short` the last line of each hash is.
    slots: Slots,
}

#[derive(Clone, Debug)]
struct Seen {
    text: Vec<u8>,
    count: u64,
    first: u64,
}

impl Seen {
    /// A line that occurs for the first time.
    fn new(line: &[u8], number: u64) -> Self {
        Self { text: line.to_vec(), count: 1, first: number }
    }
}

/// A small direct-mapped table of indices into the short lines.
#[derive(Debug)]
struct Slots([u16; Self::COUNT]);

impl Slots {
    const COUNT: usize = 256;
    const EMPTY: u16 = u16::MAX;

    #[inline]
    fn of(key: u128) -> usize {
        let folded = (key as u64) ^ ((key >> 64) as u64);
        (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self([Self::EMPTY; Self::COUNT])
    }
}

impl LineCounts {
    #[inline]
    fn add(&mut self, line: &[u8], number: u64) -> Result<()> {
        let Some(key) = short_key(line) else { return self.add_long(line, number) };
        let slot = Slots::of(key);
        if let Some((known, seen)) = self.short.get_mut(usize::from(self.slots.0[slot]))
            && *known == key
        {
            seen.count += 1;
            return Ok(());
        }
        self.add_new_short(key, slot, line, number)
    }

    #[cold]
    fn add_new_short(&mut self, key: u128, slot: usize, line: &[u8], number: u64) -> Result<()> {
        let known = self.short.iter().position(|(known, _)| *known == key);
        match known {
            Some(index) => self.short[index].1.count += 1,
            None => {
                self.check_room(number)?;
                self.short.push((key, Seen::new(line, number)));
            }
        }
        let index = known.unwrap_or(self.short.len() - 1);
        self.slots.0[slot] = u16::try_from(index).unwrap_or(Slots::EMPTY);
        Ok(())
    }

    fn add_long(&mut self, line: &[u8], number: u64) -> Result<()> {
        if let Some(seen) = self.long.get_mut(line) {
            seen.count += 1;
            return Ok(());
        }
        check_length(line.len(), number)?;
        self.check_room(number)?;
        self.long.insert(line.to_vec(), Seen::new(line, number));
        Ok(())
    }

    fn check_room(&self, number: u64) -> Result<()> {
        if self.short.len() + self.long.len() < MOST_DIFFERENT_LINES {
            return Ok(());
        }
        Err(Error::input(format!("line {number}: more than {MOST_DIFFERENT_LINES} different rows"))
            .with_hint("rows of outputs are few different ones repeated; is this another kind of file?"))
    }

    fn into_lines(self) -> Vec<Seen> {
        self.short.into_iter().map(|(_, seen)| seen).chain(self.long.into_values()).collect()
    }
}

/// A line of at most 15 bytes as a number, its length in the top byte.
#[inline]
fn short_key(line: &[u8]) -> Option<u128> {
    if line.len() > 15 {
        return None;
    }
    let mut bytes = [0; 16];
    bytes[..line.len()].copy_from_slice(line);
    bytes[15] = line.len() as u8;
    Some(u128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tally_of(text: &[u8]) -> Result<Tally> {
        let mut rows = RowReader::new(None);
        rows.feed(text)?;
        rows.finish()
    }

    fn counts_of(text: &str) -> Vec<Vec<(String, u64)>> {
        let tally = tally_of(text.as_bytes()).unwrap();
        tally.answers().iter().map(|counts| counts.iter().map(|(o, &c)| (o.to_string(), c)).collect()).collect()
    }

    #[test]
    fn the_same_rows_in_every_dress() {
        let plain = counts_of("1,3\n2,2\n1,3\n");
        for text in [
            "A,B\n1,3\n2,2\n1,3",
            "A,B\r\n1,3\r\n2,2\r\n1,3\r\n",
            "\u{feff}A,B\n1,3\n2,2\n1,3\n",
            "\u{feff}1,3\n2,2\n1,3\n",
            "\"A\",\"B\"\n\"1\",\"3\"\n 2 , 2\n1,3\n",
            "{\"A\":\"1\",\"B\":\"3\"}\n{\"B\":\"2\",\"A\":\"2\"}\n{\"A\":1,\"B\":3}\n",
        ] {
            assert_eq!(counts_of(text), plain, "{text:?}");
        }
        assert_eq!(counts_of("⊥\nbottom\n0\n"), [vec![("0".into(), 1), ("⊥".into(), 2)]]);
    }

    #[test]
    fn the_line_at_fault_is_named() {
        for (text, part) in [
            ("", "there are no rows"),
            ("A,B\n", "there are no rows"),
            ("1\n0\n\n1\n", "line 3: an empty row"),
            ("1,2\n1\n", "line 2: 1 outputs where the first row has 2"),
            ("A,B\n1,2,3\n", "line 2: 3 outputs where the first row has 2"),
            ("1\n0\nyes\n", "line 3: answer A: `yes` is not an output"),
            ("1,2\n1,\n", "line 2: answer B: `` is not an output"),
            ("{\"A\":\"1\"}\n{\"B\":\"1\"}\n", "line 2: answer A is missing"),
            ("{\"A\":\"1\"}\n{\"A\":[]}\n", "line 2: answer A is not an output"),
            ("{\"A\":\"1\"}\n1\n", "line 2: `1` is not a JSON object"),
            ("1\nA\n", "line 2: answer A: `A` is not an output"),
        ] {
            let error = tally_of(text.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(part), "{text:?}: {error}");
        }
        assert!(tally_of(b"1\n\xff\n").unwrap_err().to_string().contains("line 2: the row is not UTF-8"));
    }

    #[test]
    fn memory_stays_constant_whatever_comes() {
        let many: String = (0..100_000).map(|n| format!("{n}\n")).collect();
        assert!(tally_of(many.as_bytes()).unwrap_err().to_string().contains("different rows"));
        let mut rows = RowReader::new(None);
        let error = (0..100).find_map(|_| rows.feed(&[b'1'; 1000]).err()).unwrap();
        assert!(error.to_string().contains("line 1: longer than 4096 bytes"));
        let mut long_line = vec![b' '; 5000];
        long_line.push(b'\n');
        assert!(tally_of(&long_line).is_err());
    }

    #[test]
    fn more_different_rows_than_slots_are_counted_right() {
        // Blanks make different texts of the same row, so that slots collide.
        let line = |n: usize| format!("{}1{}\n", " ".repeat(n % 14), " ".repeat(n / 14 % 40));
        let text: String = (0..5600).map(line).collect();
        assert_eq!(tally_of(text.as_bytes()).unwrap().owners(), 5600);
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(rows in prop::collection::vec("[123],[123]\r?\n", 1..60), cut in 1usize..20) {
            let text: String = rows.concat();
            let mut reader = RowReader::new(Some(RowFormat::Csv));
            for piece in text.as_bytes().chunks(cut) {
                reader.feed(piece).unwrap();
            }
            prop_assert_eq!(reader.finish().unwrap(), tally_of(text.as_bytes()).unwrap());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = tally_of(&bytes);
        }
    }
}
