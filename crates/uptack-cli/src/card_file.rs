//! Query cards as files: TOML or JSON, by the extension.

use std::path::Path;

use uptack::card::Card;

use crate::failure::{Failure, Result, ResultExt};
use crate::input::has_extension;
use crate::output::{check_writable, write_whole};

/// Reads a card from text; the file's name decides on its format, and is named in errors.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Card> {
    if is_toml(path) {
        let card = toml::from_str(text).map_err(|error| Failure::request(format!("not a query card: {error}")));
        return card.at(path.display());
    }
    Card::from_json(text).at(path.display())
}

/// Checks, before any work is done, that a card can be written at this path.
pub(crate) fn check_place(path: &Path) -> Result<()> {
    if !is_toml(path) && !has_extension(path, "json") {
        return Err(Failure::request(format!("{}: a card is written as .toml or .json", path.display()))
            .with_hint("name the file so that it ends in one of them"));
    }
    check_writable(path)
}

/// Writes a card whole or not at all.
pub(crate) fn write(path: &Path, card: &Card) -> Result<()> {
    let text = if is_toml(path) {
        toml::to_string(card).map_err(|error| Failure::request(error.to_string())).at(path.display())?
    } else {
        format!("{}\n", card.canonical())
    };
    write_whole(path, text.as_bytes())
}

pub(crate) fn is_toml(path: &Path) -> bool {
    has_extension(path, "toml")
}
