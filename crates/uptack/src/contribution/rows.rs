//! Rows of options, one row per owner: written after sampling, and counted.
//!
//! The first line says which options there are, so that rows of different questions are never added up.

use std::collections::HashMap;

use serde_json::Value;

use super::{Contributions, OptionNames};
use crate::csv;
use crate::error::{Error, Result};
use crate::output::shortened;
use crate::rows::RowFormat;

/// Which options there are, and how many of them one row can name.
///
/// ```
/// use uptack::contribution::{Contributions, OptionNames, RowHeader};
/// let asked: Contributions = "choice(k=3,r=0.01)".parse()?;
/// let header = RowHeader::new(&asked, OptionNames::new(["car", "bus", "bike"])?)?;
/// assert_eq!(header.line(), "choice of car;bus;bike");
/// assert_eq!(RowHeader::parse("choice of car;bus;bike").unwrap()?, header);
/// assert_eq!((header.row(&[1]), header.row(&[])), ("bus".to_owned(), "⊥".to_owned()));
/// assert!(RowHeader::parse("A,B").is_none());
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowHeader {
    form: RowForm,
    names: OptionNames,
}

/// How many options one row names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowForm {
    /// One, or none at all if the owner was silent.
    Choice,
    /// At most this many.
    UpTo(u32),
}

/// A row that names no option.
const NO_OPTION: &str = "⊥";
/// A truth that is no option.
const NONE: &str = "none";
/// Between two options of a row.
const SEPARATOR: char = ';';
const CHOICE_OF: &str = "choice of ";
const UP_TO: &str = "up to ";
const OF: &str = " of ";

impl RowHeader {
    /// The header of a mechanism's rows. Refuses another number of names than it has options, and names that rows cannot hold.
    pub fn new(contributions: &Contributions, names: OptionNames) -> Result<Self> {
        let (has, wants) = (names.len(), contributions.options());
        if has != wants {
            return Err(Error::parameter(format!("{has} options are named, and {contributions} has {wants}")));
        }
        let form = if contributions.is_choice() { RowForm::Choice } else { RowForm::UpTo(contributions.most()) };
        Self { form, names }.checked()
    }

    /// One of these options per row.
    pub fn choice_of(names: OptionNames) -> Result<Self> {
        Self { form: RowForm::Choice, names }.checked()
    }

    /// Any number of these options per row.
    pub fn any_of(names: OptionNames) -> Result<Self> {
        let most = u32::try_from(names.len()).unwrap_or(u32::MAX);
        Self { form: RowForm::UpTo(most), names }.checked()
    }

    fn checked(self) -> Result<Self> {
        self.check_numbers()?;
        // Where an owner may have no option, `none` says so.
        let is_none = |name: &str| name == NONE && self.form != RowForm::Choice;
        let cannot_be_written =
            |name: &&String| name.contains([SEPARATOR, '\n', '\r']) || *name == NO_OPTION || is_none(name);
        match self.names.names().iter().find(cannot_be_written) {
            None => Ok(self),
            Some(name) => Err(Error::parameter(format!("rows cannot hold an option called `{}`", shortened(name)))
                .with_hint(
                    "leave out semicolons, line ends, ⊥ and, for contributions, `none`: they have a meaning in rows",
                )),
        }
    }

    /// A choice is among two options at least, and nobody contributes to more counts than there are.
    fn check_numbers(&self) -> Result<()> {
        let options = self.names.len();
        match self.form {
            RowForm::Choice if options < 2 => {
                Err(Error::parameter("one option is not a choice").with_hint("a choice has at least 2 options"))
            }
            RowForm::UpTo(most) if most < 1 || most as usize > options => {
                Err(Error::parameter(format!("an owner cannot have up to {most} of {options} options")))
            }
            _ => Ok(()),
        }
    }

    /// Reads the first line of a file; none if it is no such header.
    pub fn parse(line: &str) -> Option<Result<Self>> {
        let text = csv::text(line.trim());
        if let Some(options) = text.strip_prefix(CHOICE_OF) {
            return Some(options_of(options).and_then(Self::choice_of));
        }
        let (most, options) = text.strip_prefix(UP_TO)?.split_once(OF)?;
        let form = RowForm::UpTo(most.parse().ok()?);
        Some(options_of(options).and_then(|names| Self { form, names }.checked()))
    }

    /// The first line of a file of CSV.
    pub fn line(&self) -> String {
        let options = if self.is_numbered() { self.names.len().to_string() } else { self.names.names().join(";") };
        field(&match self.form {
            RowForm::Choice => format!("{CHOICE_OF}{options}"),
            RowForm::UpTo(most) => format!("{UP_TO}{most}{OF}{options}"),
        })
    }

    fn is_numbered(&self) -> bool {
        self.names.names().iter().enumerate().all(|(index, name)| *name == (index + 1).to_string())
    }

    /// The names of the options.
    pub fn names(&self) -> &OptionNames {
        &self.names
    }

    /// The names, unless the options are only numbered.
    pub fn given_names(&self) -> Option<&[String]> {
        (!self.is_numbered()).then(|| self.names.names())
    }

    /// How many counts are published with noise: of two options, only the first is counted.
    pub fn noisy_counts(&self) -> usize {
        match self.form {
            RowForm::Choice if self.names.len() == 2 => 1,
            _ => self.names.len(),
        }
    }

    /// One row of CSV: the options of one owner, each of which appears once.
    pub fn row(&self, options: &[usize]) -> String {
        field(&self.named(options))
    }

    /// One row of NDJSON.
    pub fn json_row(&self, options: &[usize]) -> String {
        match self.form {
            RowForm::Choice => format!("{{\"choice\":{}}}", Value::from(self.named(options))),
            RowForm::UpTo(_) => {
                let names: Vec<&str> = options.iter().map(|&option| self.names.name(option)).collect();
                format!("{{\"contributions\":{}}}", Value::from(names))
            }
        }
    }

    fn named(&self, options: &[usize]) -> String {
        match options {
            [] => NO_OPTION.to_owned(),
            [option] => self.names.name(*option).to_owned(),
            options => options.iter().map(|&option| self.names.name(option)).collect::<Vec<_>>().join(";"),
        }
    }

    /// The options that a row names.
    fn read(&self, text: &str) -> Result<Vec<usize>> {
        if matches!(text, NO_OPTION | "bottom") {
            return Ok(Vec::new());
        }
        self.indices(text.split(SEPARATOR))
    }

    fn indices<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<Vec<usize>> {
        let mut options = Vec::new();
        for name in names {
            let option = self.names.index(name)?;
            if options.contains(&option) {
                return Err(Error::syntax(format!("`{}` appears twice", shortened(name)))
                    .with_hint("an owner adds at most once to each count"));
            }
            options.push(option);
        }
        let most = match self.form {
            RowForm::Choice => 1,
            RowForm::UpTo(most) => most,
        };
        if options.len() > most as usize {
            return Err(Error::syntax(format!("{} options in one row, which has at most {most}", options.len())));
        }
        Ok(options)
    }

    fn read_json(&self, text: &str) -> Result<Vec<usize>> {
        let not_a_row = || Error::syntax("not a row, such as {\"choice\":\"1\"} or {\"contributions\":[\"1\"]}");
        let row: Value = serde_json::from_str(text).map_err(|_| not_a_row())?;
        match json_field(&row).ok_or_else(not_a_row)? {
            Value::String(text) => self.read(text),
            Value::Null => Ok(Vec::new()),
            Value::Number(number) => self.read(&number.to_string()),
            Value::Array(names) => {
                let texts: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
                self.indices(texts.ok_or_else(not_a_row)?.into_iter())
            }
            _ => Err(not_a_row()),
        }
    }
}

/// Whether a first line is a row of options in NDJSON, and if so, whether each row has one of them.
pub fn json_row_is_choice(line: &str) -> Option<bool> {
    let row: Value = serde_json::from_str(line).ok()?;
    json_field(&row)?;
    Some(row.get("choice").is_some())
}

fn json_field(row: &Value) -> Option<&Value> {
    row.get("choice").or_else(|| row.get("contributions"))
}

/// The options of a header: their names, or how many there are.
fn options_of(text: &str) -> Result<OptionNames> {
    match text.parse::<u32>() {
        Ok(options) if options <= super::MOST_COUNTS => Ok(OptionNames::numbered(options as usize)),
        Ok(options) => Err(Error::syntax(format!("{options} options are more than {}", super::MOST_COUNTS))),
        Err(_) => OptionNames::new(text.split(SEPARATOR)),
    }
}

/// A field of CSV. A semicolon alone needs no quotation marks where fields are separated by commas.
fn field(text: &str) -> String {
    let plain = text.replace(SEPARATOR, " ");
    if csv::field(&plain) == plain { text.to_owned() } else { csv::field(text) }
}

/// Rows of options, counted.
#[derive(Clone, Debug)]
pub struct OptionRows {
    header: RowHeader,
    owners: u64,
    counts: Vec<u64>,
}

impl OptionRows {
    /// How many rows there are.
    pub fn owners(&self) -> u64 {
        self.owners
    }

    /// How many rows name each option.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The options.
    pub fn header(&self) -> &RowHeader {
        &self.header
    }

    /// Adds the rows of another file, which must have the same options.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if let Some(difference) = self.header.difference(&other.header) {
            return Err(Error::counts(difference).with_hint("only rows of the same question can be added up"));
        }
        self.owners = self.owners.saturating_add(other.owners);
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count = count.saturating_add(*more));
        Ok(())
    }
}

impl RowHeader {
    /// In what another file's header differs from this one's.
    fn difference(&self, other: &Self) -> Option<String> {
        let (ours, theirs) = (self.names.names(), other.names.names());
        if ours.len() != theirs.len() {
            return Some(format!("{} options, but the first file has {}", theirs.len(), ours.len()));
        }
        if let Some(index) = (0..ours.len()).find(|&index| ours[index] != theirs[index]) {
            let [first, second] = [&ours[index], &theirs[index]].map(|name| shortened(name));
            return Some(format!("option {} is `{second}`, but `{first}` in the first file", index + 1));
        }
        (self.form != other.form)
            .then(|| format!("rows of `{}`, but the first file has `{}`", other.line(), self.line()))
    }
}

/// Counts rows line by line. Equal lines are parsed once.
#[derive(Debug)]
pub struct OptionRowReader {
    rows: OptionRows,
    format: RowFormat,
    line: u64,
    /// How often a line was seen, and where first.
    lines: HashMap<Vec<u8>, (u64, u64)>,
}

/// Different lines that are kept before they are parsed.
const MOST_LINES: usize = 1 << 16;

impl OptionRowReader {
    /// A reader of rows with these options; `line` lines, such as the header, came before.
    pub fn new(header: RowHeader, format: RowFormat, line: u64) -> Self {
        let counts = vec![0; header.names().len()];
        Self { rows: OptionRows { header, owners: 0, counts }, format, line, lines: HashMap::new() }
    }

    /// Takes the next line, with or without its end.
    pub fn line(&mut self, line: &[u8]) -> Result<()> {
        self.line += 1;
        let (number, line) = (self.line, line.trim_ascii());
        match self.lines.get_mut(line) {
            Some((seen, _)) => *seen += 1,
            None => {
                self.lines.insert(line.to_owned(), (1, number));
            }
        }
        if self.lines.len() > MOST_LINES { self.count() } else { Ok(()) }
    }

    /// The counts of all rows, of which there must be at least one.
    pub fn finish(mut self) -> Result<OptionRows> {
        self.count()?;
        if self.rows.owners == 0 {
            return Err(Error::counts("there are no rows"));
        }
        Ok(self.rows)
    }

    /// Parses and counts the lines seen so far; of several faults, the first one is reported.
    fn count(&mut self) -> Result<()> {
        let mut fault: Option<(u64, Error)> = None;
        for (line, (seen, number)) in self.lines.drain() {
            match parsed(&self.rows.header, self.format, &line) {
                Ok(options) => {
                    self.rows.owners += seen;
                    options.into_iter().for_each(|option| self.rows.counts[option] += seen);
                }
                Err(error) if fault.as_ref().is_none_or(|(first, _)| number < *first) => fault = Some((number, error)),
                Err(_) => {}
            }
        }
        fault.map_or(Ok(()), |(number, error)| Err(error.at(format!("line {number}"))))
    }
}

fn parsed(header: &RowHeader, format: RowFormat, line: &[u8]) -> Result<Vec<usize>> {
    let text = std::str::from_utf8(line).map_err(|_| Error::syntax("not UTF-8 text"))?;
    match format {
        _ if text.is_empty() => Err(Error::syntax("an empty row")),
        RowFormat::Csv => header.read(&csv::text(text)),
        RowFormat::NdJson => header.read_json(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(mechanism: &str, names: &[&str]) -> Result<RowHeader> {
        RowHeader::new(&mechanism.parse().unwrap(), OptionNames::new(names.iter().copied())?)
    }

    fn read(text: &str) -> Result<OptionRows> {
        let (first, rows) = text.split_once('\n').unwrap();
        let mut reader = OptionRowReader::new(RowHeader::parse(first).unwrap()?, RowFormat::Csv, 1);
        rows.lines().try_for_each(|line| reader.line(line.as_bytes()))?;
        reader.finish()
    }

    #[test]
    fn rows_read_back_whatever_options_are_called() {
        let names = ["car, red", "=1+1", "a \"b\"", "2", " plain "];
        for mechanism in ["choice(k=5,r=0.1)", "contributions(counts=5,most=3,r=0.1)"] {
            let header = header(mechanism, &names).unwrap();
            assert_eq!(RowHeader::parse(&header.line()).unwrap().unwrap(), header);
            let several: &[usize] = if mechanism.starts_with("choice") { &[3] } else { &[4, 0, 1] };
            for options in [&[0][..], &[1], &[2], &[3], &[4], &[], several] {
                for format in [RowFormat::Csv, RowFormat::NdJson] {
                    let row = if format == RowFormat::Csv { header.row(options) } else { header.json_row(options) };
                    assert_eq!(parsed(&header, format, row.as_bytes()).unwrap(), options, "{row}");
                }
            }
        }
        let numbered = RowHeader::choice_of(OptionNames::numbered(12)).unwrap();
        assert_eq!((numbered.line(), numbered.given_names()), ("choice of 12".to_owned(), None));
        assert_eq!(RowHeader::parse("up to 3 of 12").unwrap().unwrap().line(), "up to 3 of 12");
    }

    #[test]
    fn rows_are_counted_by_option() {
        let rows = read("choice of car;bus\ncar\nbus\n⊥\r\n\"car\"\n1\n").unwrap();
        assert_eq!((rows.owners(), rows.counts()), (5, &[3, 1][..]));
        let mut several = read("up to 2 of car;bus;bike\ncar;bike\nbike\n").unwrap();
        assert_eq!(several.counts(), [1, 0, 2]);
        several.merge(&several.clone()).unwrap();
        assert_eq!((several.owners(), several.counts()), (4, &[2, 0, 4][..]));
    }

    #[test]
    fn bad_rows_say_where_and_what() {
        for (text, message) in [
            ("choice of car;bus\ncar\nbas\nnus\n", "line 3: `bas` is not an option"),
            ("choice of car;bus\ncar;bus\n", "line 2: 2 options in one row, which has at most 1"),
            ("up to 3 of 4\n1\n1;2;1\n", "line 3: `1` appears twice"),
            ("up to 3 of 4\n1\n\n2\n", "line 3: an empty row"),
            ("choice of 4\n5\n", "line 2: `5` is not an option"),
            ("choice of a;a\na\n", "options 1 and 2 are both called `a`"),
            ("choice of 4\n", "there are no rows"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), message);
        }
        assert!(
            header("choice(k=2,r=0.1)", &["a;b", "c"]).is_err() && header("choice(k=2,r=0.1)", &["⊥", "c"]).is_err()
        );
        assert!(header("choice(k=3,r=0.1)", &["a", "b"]).is_err());
    }

    #[test]
    fn rows_of_other_options_are_not_added() {
        for (other, message) in [
            ("choice of 3\n1\n", "3 options, but the first file has 2"),
            ("choice of car;train\ncar\n", "option 2 is `train`, but `bus` in the first file"),
            ("up to 1 of car;bus\ncar\n", "rows of `up to 1 of car;bus`, but the first file has `choice of car;bus`"),
        ] {
            let mut first = read("choice of car;bus\ncar\n").unwrap();
            assert_eq!(first.merge(&read(other).unwrap()).unwrap_err().to_string(), message);
        }
    }
}
