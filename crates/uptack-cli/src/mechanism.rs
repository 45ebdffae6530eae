//! The MECHANISM argument: a text, or a file that holds one, as JSON or as privacy algebra.

use std::path::Path;

use uptack::algebra::Program;
use uptack::card::Card;
use uptack::{Channel, Mechanism};
use uptack_document::mechanism_from_json;

use crate::card_file;
use crate::failure::Failure;
use crate::output::read_small_file;

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

    fn from_card(card: Card) -> Result<Self, Failure> {
        let channel = card.checked_channel()?;
        Ok(Self { mechanism: card.mechanism.clone(), channel, card: Some(card) })
    }
}

/// Reads the argument.
pub(crate) fn read(argument: &str) -> Result<Named, Failure> {
    let path = Path::new(argument);
    if argument.contains('(') || !path.exists() {
        return Ok(Named::new(argument.parse::<Mechanism>().map_err(|error| neither(argument, error))?));
    }
    if is_algebra(path) {
        return Ok(Named::new(read_algebra(path)?.mechanism().clone()));
    }
    let text = read_small_file(path)?;
    let named = if card_file::is_toml(path) || text.contains("\"minimum_batch\"") {
        Named::from_card(card_file::parse(path, &text)?)
    } else {
        mechanism_from_json(&text).map(Named::new).map_err(Failure::from)
    };
    named.map_err(|failure| failure.at(path.display()))
}

/// Whether a file is named as privacy algebra.
pub(crate) fn is_algebra(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("alg"))
}

/// Compiles a file of privacy algebra; an error names the file, the line and the term.
pub(crate) fn read_algebra(path: &Path) -> Result<Program, Failure> {
    let text = read_small_file(path)?;
    Program::parse(&text).map_err(|error| Failure::from(error).at(path.display()))
}

fn neither(argument: &str, error: uptack::Error) -> Failure {
    if argument.contains('(') {
        return error.into();
    }
    Failure::request(format!("`{argument}` is neither a mechanism nor a file"))
        .with_hint("a mechanism is written name(key=value, …), as in normal-form(f=0.5,r=8.2e-5)")
}
