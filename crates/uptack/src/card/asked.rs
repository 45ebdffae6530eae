//! What a card asks beyond one question once: ballots and series; and whom it trusts.

use serde::{Deserialize, Serialize};

use super::timestamp;
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
/// The cards of one series differ in `number`, `opens` and `closes`, and in nothing else; and the number decides the
/// other two: card `number` opens at `starts` + (`number` − 1) · `every` and closes `every` later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardSeries {
    /// How many cards the series has.
    pub times: String,
    /// Which one this is, from 1.
    pub number: String,
    /// When the first of them opens.
    pub starts: String,
    /// How many seconds each of them is open; the next one opens when it closes.
    pub every: String,
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

    /// How many seconds each of them is open.
    pub fn every(&self) -> Result<u64, Error> {
        super::whole_number("series.every", &self.every)
    }

    /// When this card of the series opens and closes; nothing if the series has no such card.
    ///
    /// ```
    /// use uptack::card::CardSeries;
    /// let series = CardSeries {
    ///     times: "12".into(),
    ///     number: "3".into(),
    ///     starts: "1970-01-01T00:10:00Z".into(),
    ///     every: "300".into(),
    /// };
    /// assert_eq!(series.window()?, Some((1200, 1500)));
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn window(&self) -> Result<Option<(u64, u64)>, Error> {
        let (times, number, every) = (self.times()?, self.number()?, self.every()?);
        let starts = timestamp::seconds(&self.starts)?;
        if number == 0 || number > times || every == 0 {
            return Ok(None);
        }
        let opens = (number - 1).checked_mul(every).and_then(|before| starts.checked_add(before));
        Ok(opens.and_then(|opens| Some((opens, opens.checked_add(every)?))))
    }
}
