//! What an analyst asks, checked so that owners can answer it: predicates are parsed as they will be on a device.

use std::{collections::BTreeSet, fmt};
use uptack::card::{BallotQuery, Card, CardBallot, CardQuestion, CardSeries, Timestamp};

use crate::{error::Error, predicate::Predicate, typing::Declared};

/// A question that owners can evaluate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What counts as *yes*, for a single question.
    pub predicate: Option<String>,
    /// Many questions instead of one.
    pub ballot: Option<CardBallot>,
    /// The attributes that the predicates read.
    pub attributes: Vec<String>,
}

/// Why a question cannot be asked.
#[derive(Debug)]
pub struct Unaskable {
    /// The question at fault, if it is one of a ballot.
    pub name: Option<String>,
    /// Whether the predicate is one that owners do not evaluate; otherwise its types are wrong.
    pub is_syntax: bool,
    /// What is wrong.
    pub cause: Error,
}

impl fmt::Display for Unaskable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(formatter, "{name}: {}", self.cause),
            None => self.cause.fmt(formatter),
        }
    }
}

impl std::error::Error for Unaskable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

impl Question {
    /// A question that a person answers: it holds nothing that a device could evaluate.
    pub fn of_people() -> Self {
        Self { predicate: None, ballot: None, attributes: Vec::new() }
    }

    /// One question.
    ///
    /// ```
    /// use uptack_owner::{question::Question, typing::Declared};
    /// let question = Question::single("speed > 50.0 && station == \"7\"", &Declared::default()).unwrap();
    /// assert_eq!(question.attributes, ["speed", "station"]);
    /// assert!(Question::single("speed >", &Declared::default()).unwrap_err().is_syntax);
    /// ```
    pub fn single(predicate: &str, declared: &Declared) -> Result<Self, Unaskable> {
        let attributes = checked(None, predicate, declared)?.attributes().to_vec();
        Ok(Self { predicate: Some(predicate.to_owned()), ballot: None, attributes })
    }

    /// A ballot: whether an attribute has each of these values, for owners of whom `restriction` is true.
    pub fn each(
        attribute: &str,
        values: Vec<String>,
        restriction: Option<&str>,
        most_yes: u64,
        declared: &Declared,
    ) -> Result<Self, Unaskable> {
        let query = |name: String| BallotQuery { predicate: has_value(attribute, &name, restriction), name };
        let queries: Vec<BallotQuery> = values.into_iter().map(query).collect();
        let mut attributes = BTreeSet::new();
        for query in &queries {
            let predicate = checked(Some(&query.name), &query.predicate, declared)?;
            attributes.extend(predicate.attributes().iter().cloned());
        }
        let ballot = Some(CardBallot { most_yes, queries });
        Ok(Self { predicate: None, ballot, attributes: attributes.into_iter().collect() })
    }

    /// How many queries can differ for one owner if all of it is asked `times` times; `None` if that is without end.
    pub fn counted_queries(&self, times: u64) -> Result<Option<u64>, uptack::Error> {
        CardQuestion::of(None, self.predicate.as_deref(), self.ballot.as_ref()).counted_queries(times)
    }

    /// A card that asks this question in these words; `series` is the length of a window and the number of windows.
    pub fn on(&self, card: Card, words: &str, series: Option<(u64, u64)>) -> Card {
        let series =
            series.map(|(every, times)| CardSeries { times, number: Some(1), starts: Timestamp::EPOCH, every });
        Card {
            question: Some(words.to_owned()),
            predicate: self.predicate.clone(),
            ballot: self.ballot.clone(),
            attributes: self.attributes.clone(),
            series,
            ..card
        }
    }
}

/// The predicate that an attribute has a value, for owners of whom `restriction` is true.
fn has_value(attribute: &str, value: &str, restriction: Option<&str>) -> String {
    let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
    let equal = format!("{attribute} == \"{quoted}\"");
    match restriction {
        Some(restriction) => format!("({restriction}) && {equal}"),
        None => equal,
    }
}

/// Parses a predicate and checks its types; `name` is the name of its question on a ballot.
fn checked(name: Option<&str>, text: &str, declared: &Declared) -> Result<Predicate, Unaskable> {
    let refuse = |is_syntax| move |cause| Unaskable { name: name.map(str::to_owned), is_syntax, cause };
    let predicate = Predicate::parse(text).map_err(refuse(true))?;
    predicate.check_types(declared).map_err(refuse(false))?;
    Ok(predicate)
}
