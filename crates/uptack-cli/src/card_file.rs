//! Query cards as files: TOML or JSON, by their ending.

use std::path::Path;

use uptack::card::Card;

use crate::failure::Failure;
use crate::output::{check_writable, write_whole};

/// Reads a card from text; `path` tells its form and is named in errors.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Card, Failure> {
    let place = |failure: Failure| failure.at(path.display());
    if is_toml(path) {
        return toml::from_str(text).map_err(|error| place(Failure::request(format!("not a query card: {error}"))));
    }
    Card::from_json(text).map_err(|error| place(error.into()))
}

/// Finds out before any work is done whether a card can be written there.
pub(crate) fn check_place(path: &Path) -> Result<(), Failure> {
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    if !is_toml(path) && !is_json {
        return Err(Failure::request(format!("{}: a card is written as .toml or .json", path.display()))
            .with_hint("name the file so that it ends in one of them"));
    }
    check_writable(path)
}

/// Writes a card whole or not at all.
pub(crate) fn write(path: &Path, card: &Card) -> Result<(), Failure> {
    let text = match is_toml(path) {
        true => toml::to_string(card).map_err(|error| Failure::request(format!("{}: {error}", path.display())))?,
        false => format!("{}\n", card.canonical()),
    };
    write_whole(path, text.as_bytes())
}

pub(crate) fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"))
}
