//! Which worlds the claims of a card compare.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The neighbouring relation of a card's claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Neighbouring {
    /// One owner's truth is substituted, and the number of owners is public.
    Substitution,
    /// Words that this version does not know: such a card can be read, but none of its claims holds.
    Unknown(String),
}

const SUBSTITUTION: &str = "one owner's truth is substituted, the number of owners is public";

impl From<String> for Neighbouring {
    fn from(text: String) -> Self {
        if text == SUBSTITUTION { Self::Substitution } else { Self::Unknown(text) }
    }
}

impl From<Neighbouring> for String {
    fn from(relation: Neighbouring) -> Self {
        relation.to_string()
    }
}

impl fmt::Display for Neighbouring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Substitution => SUBSTITUTION,
            Self::Unknown(text) => text,
        })
    }
}
