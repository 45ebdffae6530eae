//! Options from the command line, and the options of owners: one line per owner, or a column of CSV.

use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use uptack::contribution::{Bins, Contributions, MOST_COUNTS, OptionNames};

use crate::arguments::{count, number};
use crate::failure::{Failure, Result, ResultExt};
use crate::input::read_small_file;
use crate::truths::ValueReader;

/// `--options`: names, a file with one name per line, or how many there are.
#[derive(Clone, Debug)]
pub(crate) struct OptionsArgument(String);

impl FromStr for OptionsArgument {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl OptionsArgument {
    pub(crate) fn names(&self) -> Result<OptionNames> {
        let path = Path::new(&self.0);
        if path.is_file() {
            return OptionNames::new(read_small_file(path)?.lines()).at(path.display());
        }
        match count(&self.0) {
            Ok(options) => numbered(options).at("--options"),
            Err(_) => OptionNames::new(self.0.split(',')).at("--options"),
        }
    }
}

fn numbered(options: u64) -> Result<OptionNames> {
    match u32::try_from(options) {
        Ok(options) if (1..=MOST_COUNTS).contains(&options) => Ok(OptionNames::numbered(options as usize)),
        _ => Err(Failure::request(format!("{options} is not a number of options from 1 to {MOST_COUNTS}"))),
    }
}

/// The numbers of a list such as `0,20,40`.
pub(crate) fn numbers(text: &str, option: &str) -> Result<Vec<f64>> {
    let read = |text: &str| number(text.trim()).map_err(|message| Failure::request(message).at(option));
    text.split(',').map(read).collect()
}

/// `--bins`: the rising edges of ranges, which are the options of a mechanism.
pub(crate) fn bins(text: &str, asked: &Contributions) -> Result<Bins> {
    let edges = numbers(text, "--bins").or_hint("edges are rising numbers, as in 0,20,40")?;
    let bins = Bins::new(edges).at("--bins")?;
    let (edges, has, wants) = (bins.edges().len(), bins.options(), asked.options());
    if has == wants {
        return Ok(bins);
    }
    Err(Failure::request(format!("--bins: {edges} edges make {has} options, but {asked} has {wants}")).with_hint(
        "there are two more options than edges: under the first one, from the last one on, and no value are options, too",
    ))
}

/// Refuses another number of names than a mechanism has options.
pub(crate) fn check_names(names: &OptionNames, asked: &Contributions) -> Result<()> {
    let (has, wants) = (names.len(), asked.options());
    if has == wants {
        return Ok(());
    }
    Err(Failure::request(format!("--options: {has} options, but {asked} has {wants}"))
        .with_hint("name every option of the mechanism, or change the mechanism"))
}

/// Words for no value, besides an empty line.
const NO_VALUE: [&str; 3] = ["none", "na", "nan"];
/// No list of options of one owner is longer.
const LONGEST_LINE: usize = 4096;

/// How owners' options are written.
pub(crate) enum OptionTexts {
    /// By their names or numbers.
    Names(OptionNames),
    /// As a number that falls into a range.
    Bins(Bins),
}

impl OptionTexts {
    /// The names of the options.
    pub(crate) fn names(&self) -> OptionNames {
        match self {
            Self::Names(names) => names.clone(),
            Self::Bins(bins) => bins.names(),
        }
    }
}

/// Where owners' options come from.
pub(crate) struct ChoiceReader<'a> {
    pub(crate) values: ValueReader<'a>,
    pub(crate) texts: OptionTexts,
    /// Whether every owner has exactly one option.
    pub(crate) is_choice: bool,
    /// How many options an owner has at most.
    pub(crate) most: usize,
}

/// Receives the options of one owner.
type TakeOptions<'t> = &'t mut dyn FnMut(&[usize]) -> Result<()>;

impl<'a> ChoiceReader<'a> {
    pub(crate) fn new(values: ValueReader<'a>, texts: OptionTexts, contributions: &Contributions) -> Self {
        Self { values, texts, is_choice: contributions.is_choice(), most: contributions.most() as usize }
    }

    /// Hands on the options of each owner, of whom there is at least one.
    pub(crate) fn read(&self, source: &mut dyn Read, take: TakeOptions<'_>) -> Result<()> {
        let mut owners: u64 = 0;
        self.values.read(source, (LONGEST_LINE, self.usage()), &mut |line, value| {
            owners += 1;
            take(&self.options(line, value)?)
        })?;
        if owners == 0 { Err(self.values.no_truths().with_hint(self.usage())) } else { Ok(()) }
    }

    fn usage(&self) -> &'static str {
        match (&self.texts, self.is_choice) {
            (OptionTexts::Bins(_), _) => "write one number per line, or none for no value",
            (OptionTexts::Names(_), true) => "write one option per line, by its name or its number from 1",
            (OptionTexts::Names(_), false) => "write an owner's options on one line, separated by `;`, or none",
        }
    }

    fn options(&self, line: u64, value: &[u8]) -> Result<Vec<usize>> {
        let Ok(text) = std::str::from_utf8(value) else { return Err(self.values.fault(line, "not UTF-8 text")) };
        match &self.texts {
            OptionTexts::Bins(bins) => self.bin(bins, line, text).map(|bin| vec![bin]),
            OptionTexts::Names(names) => self.named(names, line, text),
        }
    }

    fn bin(&self, bins: &Bins, line: u64, text: &str) -> Result<usize> {
        if text.is_empty() || NO_VALUE.iter().any(|word| text.eq_ignore_ascii_case(word)) {
            return Ok(bins.no_value());
        }
        match number(text) {
            Ok(value) => Ok(bins.index(Some(value))),
            Err(_) => Err(self.at_column(line, 1, "not a number").with_hint(self.usage())),
        }
    }

    fn named(&self, names: &OptionNames, line: u64, text: &str) -> Result<Vec<usize>> {
        if text.is_empty() {
            return Err(self.at_column(line, 1, "an empty line").with_hint(self.usage()));
        }
        if !self.is_choice && text.eq_ignore_ascii_case("none") && names.index(text).is_err() {
            return Ok(Vec::new());
        }
        let mut options = Vec::new();
        let mut column = 1;
        for part in text.split(';') {
            let option = self.index(names, line, column, part)?;
            if options.contains(&option) {
                return Err(self.at_column(line, column, "an option appears twice").with_hint(self.usage()));
            }
            options.push(option);
            column += part.chars().count() + 1;
        }
        if options.len() > self.most {
            let (found, most) = (options.len(), self.most);
            let what = format!("{found} options, but an owner has at most {most}");
            return Err(self.at_column(line, 1, &what).with_hint(self.usage()));
        }
        Ok(options)
    }

    /// The option that a part of a line names. The text itself is not repeated, the nearest option is.
    fn index(&self, names: &OptionNames, line: u64, column: usize, text: &str) -> Result<usize> {
        names.index(text).map_err(|error| {
            let fault = self.at_column(line, column, "not an option");
            fault.with_hint(error.hint().unwrap_or(self.usage()))
        })
    }

    fn at_column(&self, line: u64, column: usize, what: &str) -> Failure {
        match self.values.column {
            Some(name) => self.values.fault(line, &format!("`{name}`: {what}")),
            None => Failure::request(format!("line {line}, column {column}: {what}")).at(self.values.input),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::InputSource;

    fn read(mechanism: &str, texts: OptionTexts, text: &str) -> Result<Vec<Vec<usize>>> {
        let values = ValueReader { input: InputSource::Standard, column: None, separator: None };
        let reader = ChoiceReader::new(values, texts, &mechanism.parse().unwrap());
        let mut found = Vec::new();
        reader.read(&mut text.as_bytes(), &mut |options| {
            found.push(options.to_vec());
            Ok(())
        })?;
        Ok(found)
    }

    fn names(names: &str) -> OptionTexts {
        OptionTexts::Names(OptionsArgument(names.to_owned()).names().unwrap())
    }

    #[test]
    fn options_are_names_numbers_or_several_of_them() {
        let choice = "choice(k=3,r=0.1)";
        assert_eq!(read(choice, names("car,bus,none"), "bus\n1\r\n none \n").unwrap(), [[1], [0], [2]]);
        assert_eq!(read(choice, names("3"), "3\n1").unwrap(), [[2], [0]]);
        let several = "contributions(counts=3,most=2,r=0.1)";
        assert_eq!(read(several, names("a,b,c"), "a;c\nnone\nb\n").unwrap(), [vec![0, 2], vec![], vec![1]]);
        let bins = || OptionTexts::Bins(bins("0,20,40", &"choice(k=5,r=0.1)".parse().unwrap()).unwrap());
        assert_eq!(read("choice(k=5,r=0.1)", bins(), "-1\n20\n\nNA\n1e3\n").unwrap(), [[0], [2], [4], [4], [3]]);
    }

    #[test]
    fn bad_truths_say_where_and_nothing_of_the_truth() {
        let several = "contributions(counts=3,most=2,r=0.1)";
        for (mechanism, text, message) in [
            ("choice(k=3,r=0.1)", "car\nsecret\n", "line 2, column 1: not an option"),
            ("choice(k=3,r=0.1)", "car\n\nbus\n", "line 2, column 1: an empty line"),
            ("choice(k=3,r=0.1)", "car;bus\n", "line 1, column 1: 2 options, but an owner has at most 1"),
            ("choice(k=3,r=0.1)", "none\n", "line 1, column 1: not an option"),
            (several, "car;secret\n", "line 1, column 5: not an option"),
            (several, "car;bus;bike\n", "line 1, column 1: 3 options, but an owner has at most 2"),
            (several, "bus;bus\n", "line 1, column 5: an option appears twice"),
            (several, "", "line 1: there are no truths"),
        ] {
            let failure = read(mechanism, names("car,bus,bike"), text).unwrap_err();
            let said = format!("{failure:?}");
            assert!(said.contains(message) && !said.contains("secret"), "{text}: {said}");
        }
        let failure = read("choice(k=3,r=0.1)", names("car,bus,bike"), "bos\n").unwrap_err();
        assert!(format!("{failure:?}").contains("did you mean `bus`?"));
        let bins = OptionTexts::Bins(bins("0,20,40", &"choice(k=5,r=0.1)".parse().unwrap()).unwrap());
        let failure = read("choice(k=5,r=0.1)", bins, "1\nfast\n").unwrap_err();
        assert!(format!("{failure:?}").contains("line 2, column 1: not a number"));
    }
}
