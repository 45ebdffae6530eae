//! What commands read: small files, data from a file or from standard input, mechanisms and query cards.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use uptack::algebra::Program;
use uptack::card::Card;
use uptack::contribution::{AnyMechanism, Contributions};
use uptack::{Channel, Mechanism};
use uptack_document::any_mechanism_from_json;

use crate::failure::{Failure, IoResultExt, Result, ResultExt};

/// No card, tally or mechanism is as large as this.
const LARGEST_FILE: u64 = 16 << 20;

/// A file, or standard input.
#[derive(Clone, Copy)]
pub(crate) enum InputSource<'a> {
    File(&'a Path),
    Standard,
}

impl<'a> InputSource<'a> {
    /// The file of this name; standard input if there is no name, or if it is `-`.
    pub(crate) fn new(path: Option<&'a Path>) -> Self {
        match path {
            Some(path) if path != Path::new("-") => Self::File(path),
            _ => Self::Standard,
        }
    }

    /// Reads everything, as text; refuses input that is too large to be read whole.
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

    /// Why the source cannot be read.
    pub(crate) fn unreadable(self, error: &io::Error) -> Failure {
        match self {
            Self::File(path) => Failure::reading(path, error),
            Self::Standard => Failure::reading_input(error),
        }
    }
}

impl fmt::Display for InputSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Standard => f.write_str("standard input"),
        }
    }
}

/// Reads a file that should be small.
pub(crate) fn read_small_file(path: &Path) -> Result<String> {
    InputSource::File(path).read_small()
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

/// A mechanism with its channel.
pub(crate) struct LoadedMechanism {
    pub(crate) mechanism: Mechanism,
    pub(crate) channel: Channel,
    /// The card that it came from.
    pub(crate) card: Option<Card>,
}

impl LoadedMechanism {
    pub(crate) fn new(mechanism: Mechanism) -> Self {
        let channel = mechanism.channel();
        Self { mechanism, channel, card: None }
    }
}

/// A mechanism of contributions.
pub(crate) struct LoadedContributions {
    asked: Contributions,
    /// The card that it came from.
    pub(crate) card: Option<Card>,
}

impl std::ops::Deref for LoadedContributions {
    type Target = Contributions;

    fn deref(&self) -> &Contributions {
        &self.asked
    }
}

/// What a MECHANISM argument names.
pub(crate) enum Loaded {
    YesNo(Box<LoadedMechanism>),
    Contributions(Box<LoadedContributions>),
}

impl Loaded {
    fn from_card(card: Card) -> Result<Self> {
        let channel = card.checked_channel()?;
        Ok(match card.mechanism.clone() {
            AnyMechanism::YesNo(mechanism) => {
                LoadedMechanism { mechanism: *mechanism, channel, card: Some(card) }.into()
            }
            AnyMechanism::Contributions(asked) => {
                Self::Contributions(Box::new(LoadedContributions { asked: *asked, card: Some(card) }))
            }
        })
    }
}

impl From<LoadedMechanism> for Loaded {
    fn from(mechanism: LoadedMechanism) -> Self {
        Self::YesNo(Box::new(mechanism))
    }
}

impl From<AnyMechanism> for Loaded {
    fn from(mechanism: AnyMechanism) -> Self {
        match mechanism {
            AnyMechanism::YesNo(mechanism) => LoadedMechanism::new(*mechanism).into(),
            AnyMechanism::Contributions(asked) => {
                Self::Contributions(Box::new(LoadedContributions { asked: *asked, card: None }))
            }
        }
    }
}

/// Reads a MECHANISM argument where only a yes/no question makes sense.
pub(crate) fn read_mechanism(argument: &str) -> Result<LoadedMechanism> {
    match read_any_mechanism(argument)? {
        Loaded::YesNo(mechanism) => Ok(*mechanism),
        Loaded::Contributions(contributions) => {
            Err(Failure::request(format!("{} is not a mechanism of a yes/no question", **contributions))
                .with_hint("channel, privacy, plan, privatize, tally, estimate, simulate and audit take it"))
        }
    }
}

/// Reads a MECHANISM argument: a text, or a file that holds one, as JSON, as privacy algebra or as a query card.
pub(crate) fn read_any_mechanism(argument: &str) -> Result<Loaded> {
    let path = Path::new(argument);
    if argument.contains('(') || !path.exists() {
        return argument
            .parse()
            .map(|mechanism: AnyMechanism| mechanism.into())
            .map_err(|error| unreadable(argument, error));
    }
    if has_extension(path, "alg") {
        return Ok(LoadedMechanism::new(read_algebra(path)?.mechanism().clone()).into());
    }
    read_document(path)
}

/// Compiles a file of privacy algebra; an error names the file, the line and the term.
pub(crate) fn read_algebra(path: &Path) -> Result<Program> {
    let text = read_small_file(path)?;
    Program::parse(&text).at(path.display())
}

/// Reads a query card, or the JSON of a channel.
fn read_document(path: &Path) -> Result<Loaded> {
    let text = read_small_file(path)?;
    if is_toml(path) || text.contains("\"minimum_batch\"") {
        return Loaded::from_card(parse_card(path, &text)?).at(path.display());
    }
    any_mechanism_from_json(&text).map(Loaded::from).at(path.display())
}

fn unreadable(argument: &str, error: uptack::Error) -> Failure {
    if argument.contains('(') {
        return error.into();
    }
    Failure::request(format!("`{argument}` is neither a mechanism nor a file"))
        .with_hint("a mechanism is written name(key=value, …), as in normal-form(f=0.5,r=8.2e-5)")
}

/// Reads a card from text; the file's name decides on its format, and is named in errors.
pub(crate) fn parse_card(path: &Path, text: &str) -> Result<Card> {
    if is_toml(path) {
        let card = toml::from_str(text).map_err(|error| Failure::request(format!("not a query card: {error}")));
        return card.at(path.display());
    }
    Card::from_json(text).at(path.display())
}

pub(crate) fn is_toml(path: &Path) -> bool {
    has_extension(path, "toml")
}
