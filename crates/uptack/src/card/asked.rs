//! What a card asks: one question, a ballot of many, a series of cards.

use serde::{Deserialize, Serialize};

use super::Timestamp;
use super::stated::decimal;
use crate::error::{Error, Result};

/// Many questions on one card, all answered in one report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardBallot {
    /// The most questions that an owner answers with a true yes; any further ones are answered as no.
    #[serde(with = "decimal")]
    pub most_yes: u64,
    /// The questions, in the order of the report.
    pub queries: Vec<BallotQuery>,
}

impl CardBallot {
    /// No two questions may have the same name.
    pub(super) fn check_names(&self) -> Result<()> {
        let mut names: Vec<&str> = self.queries.iter().map(|query| query.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Error::card(format!("two questions of the ballot are called `{}`", pair[0]))),
            None => Ok(()),
        }
    }
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
    #[serde(with = "decimal")]
    pub times: u64,
    /// The number of this card, from 1; left open on a draft that stands for all of them.
    #[serde(with = "decimal::or_open")]
    pub number: Option<u64>,
    /// When the first of them opens.
    pub starts: Timestamp,
    /// How many seconds each of them is open; the next one opens when it closes.
    #[serde(with = "decimal")]
    pub every: u64,
}

impl CardSeries {
    /// When this card of the series opens and closes; `None` if the series has no such card.
    ///
    /// ```
    /// use uptack::card::{CardSeries, Timestamp};
    /// let series = CardSeries { times: 12, number: Some(3), starts: Timestamp::from_seconds(600)?, every: 300 };
    /// assert_eq!(series.window(), Some((1200, 1500)));
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn window(&self) -> Option<(u64, u64)> {
        let before = self.number.filter(|number| (1..=self.times).contains(number))? - 1;
        let opens = self.starts.seconds().checked_add(before.checked_mul(self.every)?)?;
        Some((opens, opens.checked_add(self.every)?)).filter(|(opens, closes)| opens < closes)
    }
}
