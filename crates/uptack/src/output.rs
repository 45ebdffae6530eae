//! What one answer says.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What one answer says: `1`, `0`, `⊥`, or for mechanisms of several answers `1`, `2`, `3` for ⊥1, ⊥2, ⊥3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Output(char);

impl Output {
    /// "Yes".
    pub const ONE: Self = Self('1');
    /// "No".
    pub const ZERO: Self = Self('0');
    /// Not participating.
    pub const BOTTOM: Self = Self('⊥');

    /// The output written `symbol`: a digit or `⊥`.
    pub fn new(symbol: char) -> Result<Self> {
        if symbol.is_ascii_digit() || symbol == '⊥' {
            return Ok(Self(symbol));
        }
        Err(Error::syntax(format!("`{}` is not an output", symbol.escape_debug()))
            .with_hint("an output is a digit or ⊥, which may be written `bottom`"))
    }

    /// Its symbol.
    pub fn symbol(self) -> char {
        self.0
    }
}

impl std::str::FromStr for Output {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut symbols = text.chars();
        match (symbols.next(), symbols.next()) {
            (Some(symbol), None) => Self::new(symbol),
            _ if text == "bottom" => Ok(Self::BOTTOM),
            _ => Err(Error::syntax(format!("`{}` is not an output", shortened(text)))
                .with_hint("an output is a digit or ⊥, which may be written `bottom`")),
        }
    }
}

/// The start of a text that may be long or unprintable, for an error message.
pub(crate) fn shortened(text: &str) -> String {
    let start: String = text.chars().take(24).collect();
    let more = if text.chars().nth(24).is_some() { "…" } else { "" };
    format!("{}{more}", start.escape_debug())
}

impl TryFrom<String> for Output {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Output> for String {
    fn from(output: Output) -> Self {
        output.0.to_string()
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.encode_utf8(&mut [0; 4]))
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
