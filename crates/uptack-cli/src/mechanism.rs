//! The MECHANISM argument: a text, or a file that holds one, as JSON or as privacy algebra.

use std::path::Path;

use uptack::algebra::Program;
use uptack::card::Card;
use uptack::{Channel, Mechanism};
use uptack_document::mechanism_from_json;

use crate::card_file;
use crate::failure::{Failure, Result, ResultExt};
use crate::input::{has_extension, read_small_file};

/// A mechanism with its channel.
pub(crate) struct Named {
    pub(crate) mechanism: Mechanism,
    pub(crate) channel: Channel,
    /// The card that it came from.
    pub(crate) card: Option<Card>,
}

impl Named {
    fn new(mechanism: Mechanism) -> Self {
        let channel = mechanism.channel();
        Self { mechanism, channel, card: None }
    }

    fn from_card(card: Card) -> Result<Self> {
        let channel = card.checked_channel()?;
        Ok(Self { mechanism: card.mechanism.clone(), channel, card: Some(card) })
    }
}

/// Reads the argument.
pub(crate) fn read(argument: &str) -> Result<Named> {
    let path = Path::new(argument);
    if argument.contains('(') || !path.exists() {
        return argument.parse().map(Named::new).map_err(|error| unreadable(argument, error));
    }
    if has_extension(path, "alg") {
        return Ok(Named::new(read_algebra(path)?.mechanism().clone()));
    }
    read_document(path)
}

/// Compiles a file of privacy algebra; an error names the file, the line and the term.
pub(crate) fn read_algebra(path: &Path) -> Result<Program> {
    let text = read_small_file(path)?;
    Program::parse(&text).at(path.display())
}

/// Reads a query card, or the JSON of a channel.
fn read_document(path: &Path) -> Result<Named> {
    let text = read_small_file(path)?;
    if card_file::is_toml(path) || text.contains("\"minimum_batch\"") {
        return Named::from_card(card_file::parse(path, &text)?).at(path.display());
    }
    mechanism_from_json(&text).map(Named::new).at(path.display())
}

fn unreadable(argument: &str, error: uptack::Error) -> Failure {
    if argument.contains('(') {
        return error.into();
    }
    Failure::request(format!("`{argument}` is neither a mechanism nor a file"))
        .with_hint("a mechanism is written name(key=value, …), as in normal-form(f=0.5,r=8.2e-5)")
}
