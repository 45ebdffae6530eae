//! What an analyst asks, made such that owners can answer it: predicates are parsed as they will be on a device.

use std::fmt;
use uptack::{
    card::{BallotQuery, Card, CardBallot, CardSeries, Timestamp},
    privacy::composition::Ballot,
};

use crate::{error::Error, predicate::Predicate, typing::Declared};

/// What is asked, once it is known that owners can evaluate it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What a yes is, for a single question.
    pub predicate: Option<String>,
    /// Many questions in its place.
    pub ballot: Option<CardBallot>,
    /// The attributes that the predicates read.
    pub attributes: Vec<String>,
}

/// Why a question cannot be asked.
#[derive(Debug)]
pub struct Unaskable {
    /// The question of a ballot that is at fault.
    pub name: Option<String>,
    /// Whether the predicate is not one that owners evaluate; otherwise its types are wrong.
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
    /// A question that a person answers: there is nothing in it that a device could evaluate.
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
        let attributes = attributes(&[(None, predicate.to_owned())], declared)?;
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
        let asked = |value: String| {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let one = format!("{attribute} == \"{quoted}\"");
            let predicate = restriction.map_or(one.clone(), |all| format!("({all}) && {one}"));
            (Some(value), predicate)
        };
        let asked: Vec<(Option<String>, String)> = values.into_iter().map(asked).collect();
        let attributes = attributes(&asked, declared)?;
        let query = |(name, predicate)| BallotQuery { name: Option::unwrap_or_default(name), predicate };
        let ballot = CardBallot { most_yes, queries: asked.into_iter().map(query).collect() };
        Ok(Self { predicate: None, ballot: Some(ballot), attributes })
    }

    /// How many queries can differ for one owner if all of it is asked so many times; none where that is without end.
    pub fn counted_queries(&self, times: u64) -> Result<Option<u64>, uptack::Error> {
        let changing = match &self.ballot {
            Some(ballot) => Ballot::new(ballot.queries.len() as u64, ballot.most_yes)?.changing_queries(),
            None => 1,
        };
        Ok(changing.checked_mul(times).filter(|&queries| queries > 0))
    }

    /// A card that asks it in these words; `series` is the length of a window and how many there are.
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

/// The attributes that the predicates read, each once.
fn attributes(asked: &[(Option<String>, String)], declared: &Declared) -> Result<Vec<String>, Unaskable> {
    let mut attributes = Vec::new();
    for (name, text) in asked {
        let refuse = |is_syntax| move |cause| Unaskable { name: name.clone(), is_syntax, cause };
        let parsed = Predicate::parse(text).map_err(refuse(true))?;
        parsed.check_types(declared).map_err(refuse(false))?;
        attributes.extend(parsed.attributes().iter().cloned());
    }
    attributes.sort();
    attributes.dedup();
    Ok(attributes)
}
