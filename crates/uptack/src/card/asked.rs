//! What a card asks beyond one question once: ballots and series; and whom it trusts.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Many questions on one card, all answered in one report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardBallot {
    /// How many of the questions an owner answers with yes at most; the rest of its yes are kept back.
    pub most_yes: String,
    /// The questions, in the order of the report.
    pub queries: Vec<BallotQuery>,
}

/// One question of a ballot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BallotQuery {
    /// What the estimate is called.
    pub name: String,
    /// The predicate that an owner evaluates on its own attributes.
    pub predicate: String,
}

/// The same card again and again, priced as a whole.
///
/// The cards of one series differ in `number`, `opens` and `closes`, and in nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardSeries {
    /// How many cards the series has.
    pub times: String,
    /// Which one this is, from 1.
    pub number: String,
    /// When the first of them opens.
    pub starts: String,
}

/// In whose hands the two aggregators are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operators {
    /// One operator runs both, and can see every answer.
    One,
    /// Two operators, who must not pool what they have.
    Two,
}

/// Who may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enrolment {
    /// Anybody: the claims assume that nobody invents owners.
    None,
    /// Holders of a credential, one report each.
    Required,
}

impl CardBallot {
    /// How many yes an owner may have.
    pub fn most_yes(&self) -> Result<u64, Error> {
        super::whole_number("ballot.most_yes", &self.most_yes)
    }
}

impl CardSeries {
    /// How many cards the series has.
    pub fn times(&self) -> Result<u64, Error> {
        super::whole_number("series.times", &self.times)
    }

    /// Which one this is.
    pub fn number(&self) -> Result<u64, Error> {
        super::whole_number("series.number", &self.number)
    }
}
