//! What a card asks: one question, a ballot of many, a series of cards.

use serde::{Deserialize, Serialize};

use super::stated::decimal;
use super::{Card, Timestamp};
use crate::contribution::AnyMechanism;
use crate::display::grouped;
use crate::error::{Error, Result};
use crate::privacy::composition::Ballot;

/// What a card asks: [`Card::asked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardQuestion<'a> {
    /// A question for a person, in words if the card has any. There is nothing that a device could evaluate.
    Person(Option<&'a str>),
    /// A predicate that a device evaluates on its owner's attributes.
    Predicate(&'a str),
    /// Many predicates, all answered in one report.
    Ballot(&'a CardBallot),
}

impl<'a> CardQuestion<'a> {
    /// What is asked by a card with these fields: the words, the predicate and the ballot, as far as it has them.
    pub fn of(words: Option<&'a str>, predicate: Option<&'a str>, ballot: Option<&'a CardBallot>) -> Self {
        match (ballot, predicate) {
            (Some(ballot), _) => Self::Ballot(ballot),
            (None, Some(predicate)) => Self::Predicate(predicate),
            (None, None) => Self::Person(words),
        }
    }

    /// The predicates, in the order of the report; there are none if a person is asked.
    pub fn predicates(self) -> Vec<&'a str> {
        match self {
            Self::Person(_) => Vec::new(),
            Self::Predicate(predicate) => vec![predicate],
            Self::Ballot(ballot) => ballot.queries.iter().map(|query| query.predicate.as_str()).collect(),
        }
    }

    /// How many answers one report holds.
    pub fn answers(self) -> usize {
        match self {
            Self::Person(_) | Self::Predicate(_) => 1,
            Self::Ballot(ballot) => ballot.queries.len(),
        }
    }

    /// How many queries can differ for one owner if all of it is asked `times` times; `None` if that is none or without end.
    pub fn counted_queries(self, times: u64) -> Result<Option<u64>> {
        let changing = match self {
            Self::Person(_) | Self::Predicate(_) => 1,
            Self::Ballot(CardBallot { most_yes, queries }) => {
                let queries = queries.len() as u64;
                // In a series, the limit is for all windows, and may be beyond the questions of one.
                let most_yes = if times > 1 { queries.min(*most_yes) } else { *most_yes };
                Ballot::new(queries, most_yes)?.changing_queries()
            }
        };
        Ok(changing.checked_mul(times).filter(|&queries| queries > 0))
    }
}

impl Card {
    /// What the card asks.
    ///
    /// A card that states both a predicate and a ballot is read as a ballot; it is refused when it is verified.
    pub fn asked(&self) -> CardQuestion<'_> {
        CardQuestion::of(self.question.as_deref(), self.predicate.as_deref(), self.ballot.as_ref())
    }

    /// Whether the question is for a person.
    pub fn asks_person(&self) -> bool {
        matches!(self.asked(), CardQuestion::Person(_))
    }

    /// How many counts everything that the card asks has: its questions, in every window of its series. `None` if they cannot be
    /// counted.
    pub fn asked_counts(&self) -> Option<u64> {
        let times = self.series.as_ref().map_or(1, |series| series.times);
        (self.asked().answers() as u64).checked_mul(times)
    }

    /// How many queries of this card can differ for one owner, including repetitions. Contributions are accounted for together, as one.
    pub fn counted_queries(&self) -> Result<u64> {
        if matches!(self.mechanism, AnyMechanism::Contributions(_)) {
            return Ok(1);
        }
        let times = self.series.as_ref().map_or(1, |series| series.times);
        let queries = self.asked().counted_queries(times)?;
        queries.ok_or_else(|| Error::card("the card's series is empty or without end"))
    }

    /// In how many of the counts each owner is counted, and whom the counts therefore miss; `None` for independent questions.
    pub fn contribution_words(&self) -> Option<String> {
        let AnyMechanism::Contributions(contributions) = &self.mechanism else { return None };
        let (most, counts) = (contributions.most(), grouped(contributions.counts() as u64));
        let often = if most == 1 { "one".to_owned() } else { grouped(most.into()) };
        let missed = match self.series {
            Some(_) => "windows miss owners who were counted that often before",
            None => "later questions miss owners who were counted that often before",
        };
        Some(format!("each owner is counted in at most {often} of the {counts} counts: {missed}"))
    }

    /// The card that stands for its whole series: without the fields in which the cards of the series differ.
    pub fn without_number(&self) -> Self {
        let mut card = Self { opens: None, closes: None, ..self.clone() };
        if let Some(series) = &mut card.series {
            series.number = None;
        }
        card
    }
}

/// Many questions on one card, all answered in one report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardBallot {
    /// The most questions that an owner answers with a true yes, in all windows of a series together if the mechanism is one of
    /// contributions; any further ones are answered as no.
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
    /// The name of the estimate.
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

    /// When the last card of the series closes, in seconds since the epoch; `None` if that is beyond all times.
    pub fn ends(&self) -> Option<u64> {
        self.starts.seconds().checked_add(self.times.checked_mul(self.every)?)
    }
}
