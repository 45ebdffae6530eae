//! The release record: everything from which anyone can recompute the estimate and the claims.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uptack::{
    Channel, Output, Probability, Tally,
    card::{Card, CardQuestion},
    estimate::{Confidence, Estimator, IntervalKind},
};

use crate::{
    ballot,
    error::{Error, Hint, Result},
    release::results::{Observed, Results},
    signed::SignedCard,
};
#[cfg(feature = "protocol")]
use crate::{release::Collected, signed::OpenedCard};

/// The one release about a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "RawRecord", try_from = "RawRecord")]
pub struct Record {
    /// The version of this form of record: `1`.
    pub version: String,
    /// The query.
    pub query: String,
    /// The card's canonical text, whose SHA-256 is the query's name.
    pub card: String,
    /// The desk's signature over it.
    pub signature: String,
    /// How many reports were added up.
    pub reports: u64,
    /// What they add up to.
    pub released: Released,
    /// When the sums were collected.
    pub collected: String,
    /// The estimates as an analyst was shown them; anyone can recompute them from the sums.
    pub results: Option<Results>,
}

/// What the reports of a record add up to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// Exact counts.
    Counts {
        /// As they were collected: one for each cell, in the card's order; two for each question of a ballot.
        counts: Vec<u64>,
        /// The counts of each question in the form that estimators take, without what no honest owner can have written.
        tallies: Vec<QuestionTally>,
    },
    /// For each question, the number of answers `1` plus the noise of both aggregators.
    Sums(Vec<i64>),
}

/// The tally of one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionTally {
    /// The question's name on a ballot; a single question has none.
    pub name: Option<String>,
    /// The tally.
    pub tally: Tally,
}

/// A record as it stands in JSON.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Record", deny_unknown_fields)]
struct RawRecord {
    version: String,
    query: String,
    card: String,
    signature: String,
    reports: u64,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    counts: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    sums: Option<Vec<i64>>,
    /// Of a single question.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    tally: Option<Tally>,
    /// Of the questions of a ballot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    tallies: Option<Vec<NamedTally>>,
    collected: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    results: Option<Results>,
}

#[derive(Serialize, Deserialize)]
struct NamedTally {
    name: String,
    #[serde(flatten)]
    tally: Tally,
}

impl From<Record> for RawRecord {
    fn from(record: Record) -> Self {
        let Record { version, query, card, signature, reports, released, collected, results } = record;
        let (counts, sums, tallies) = match released {
            Released::Counts { counts, tallies } => (counts, None, tallies),
            Released::Sums(sums) => (Vec::new(), Some(sums), Vec::new()),
        };
        let (tally, tallies) = split_tallies(tallies);
        Self { version, query, card, signature, reports, counts, sums, tally, tallies, collected, results }
    }
}

/// The tally of a single question, or those of a ballot.
fn split_tallies(tallies: Vec<QuestionTally>) -> (Option<Tally>, Option<Vec<NamedTally>>) {
    let (mut single, mut named) = (None, Vec::new());
    for QuestionTally { name, tally } in tallies {
        match name {
            None => single = Some(tally),
            Some(name) => named.push(NamedTally { name, tally }),
        }
    }
    (single, (!named.is_empty()).then_some(named))
}

impl TryFrom<RawRecord> for Record {
    type Error = &'static str;

    fn try_from(raw: RawRecord) -> std::result::Result<Self, &'static str> {
        let released = match (raw.sums, raw.tally, raw.tallies) {
            (Some(sums), None, None) if raw.counts.is_empty() => Released::Sums(sums),
            (Some(_), _, _) => return Err("sums with noise stand beside exact counts"),
            (None, Some(_), Some(_)) => return Err("the tally of one question stands beside those of a ballot"),
            (None, single, named) => {
                let single = single.map(|tally| QuestionTally { name: None, tally });
                let named = named.into_iter().flatten();
                let named = named.map(|NamedTally { name, tally }| QuestionTally { name: Some(name), tally });
                Released::Counts { counts: raw.counts, tallies: single.into_iter().chain(named).collect() }
            }
        };
        let RawRecord { version, query, card, signature, reports, collected, results, .. } = raw;
        Ok(Self { version, query, card, signature, reports, released, collected, results })
    }
}

pub(crate) const VERSION: &str = "1";

impl Record {
    /// The estimates that follow from the record's tallies or sums, by a channel that was checked.
    pub fn estimated(&self, channel: &Channel, confidence: Confidence, interval: IntervalKind) -> Result<Results> {
        let estimator = Estimator::new(channel)?;
        Results::of(&self.observed(&estimator)?, &estimator, confidence, interval)
    }

    /// What the record shows about each question, for an estimator of its channel.
    pub fn observed(&self, estimator: &Estimator) -> Result<Vec<Observed>> {
        match &self.released {
            Released::Counts { tallies, .. } if tallies.is_empty() => Err(Error::input(
                "the release record has neither one tally, nor those of a ballot, nor sums with noise",
            )),
            Released::Counts { tallies, .. } => {
                let observe = |QuestionTally { name, tally }: &QuestionTally| {
                    Ok(Observed { name: name.clone(), observation: estimator.observe(tally)? })
                };
                tallies.iter().map(observe).collect()
            }
            Released::Sums(sums) => self.observed_sums(sums, estimator),
        }
    }

    /// The counts as they were collected; none if the aggregators add noise.
    pub fn counts(&self) -> &[u64] {
        match &self.released {
            Released::Counts { counts, .. } => counts,
            Released::Sums(_) => &[],
        }
    }

    /// The sums, if the aggregators add noise.
    pub fn sums(&self) -> Option<&[i64]> {
        match &self.released {
            Released::Counts { .. } => None,
            Released::Sums(sums) => Some(sums),
        }
    }

    /// The tally of each question; none if the aggregators add noise.
    pub fn tallies(&self) -> &[QuestionTally] {
        match &self.released {
            Released::Counts { tallies, .. } => tallies,
            Released::Sums(_) => &[],
        }
    }

    /// The tally of a single question.
    pub fn tally(&self) -> Option<&Tally> {
        match self.tallies() {
            [QuestionTally { name: None, tally }] => Some(tally),
            _ => None,
        }
    }

    fn observed_sums(&self, sums: &[i64], estimator: &Estimator) -> Result<Vec<Observed>> {
        let names = question_names(&Card::from_json(&self.card)?);
        let observe = |(name, sum): (Option<String>, &i64)| {
            Ok(Observed { name, observation: estimator.observe_sum(self.reports, *sum)? })
        };
        names.into_iter().zip(sums).map(observe).collect()
    }

    /// The record of a collected batch.
    #[cfg(feature = "protocol")]
    pub fn new(signed: &SignedCard, batch: &Collected, now: u64) -> Result<Self> {
        let card = signed.open()?.card;
        let tallies = tallies(&card, batch.reports, &batch.counts, batch.sums.as_deref())?;
        let released = match &batch.sums {
            Some(sums) => Released::Sums(sums.clone()),
            None => Released::Counts { counts: batch.counts.clone(), tallies },
        };
        Ok(Self {
            version: VERSION.to_owned(),
            query: signed.query.clone(),
            card: signed.card.clone(),
            signature: signed.signature.clone(),
            reports: batch.reports,
            released,
            collected: uptack::card::Timestamp::from_seconds(now)?.to_string(),
            results: None,
        })
    }

    /// Reads a record and checks nothing but its form.
    pub fn parse(text: &str) -> Result<Self> {
        let raw: RawRecord =
            serde_json::from_str(text).map_err(|error| Error::input(format!("not a release record: {error}")))?;
        Self::try_from(raw).map_err(|contradiction| {
            Error::input(format!("the release record contradicts itself: {contradiction}"))
                .with_hint(Some(Hint::DistrustDocument))
        })
    }

    /// Reads a record, and checks the card's name and signature, and that the tallies are those of the sums.
    #[cfg(feature = "protocol")]
    pub fn read(text: &str) -> Result<(Self, OpenedCard)> {
        let record = Self::parse(text)?;
        if record.version != VERSION {
            return Err(Error::input("the release record's version is not 1"));
        }
        let opened = record.signed().open()?;
        if record.tallies_of(&opened.card)? != record.tallies() {
            return Err(Error::input("the release record's tallies are not those of its sums"));
        }
        Ok((record, opened))
    }

    /// The tallies that follow from the record's sums; none if these carry noise.
    pub(crate) fn tallies_of(&self, card: &Card) -> Result<Vec<QuestionTally>> {
        tallies(card, self.reports, self.counts(), self.sums())
    }

    /// The card as it was signed.
    pub fn signed(&self) -> SignedCard {
        SignedCard { query: self.query.clone(), card: self.card.clone(), signature: self.signature.clone() }
    }
}

fn tallies(card: &Card, reports: u64, counts: &[u64], sums: Option<&[i64]>) -> Result<Vec<QuestionTally>> {
    match (card.mechanism.noise(), sums) {
        (None, None) => exact_tallies(card, counts, reports),
        (Some(_), Some(sums)) if counts.is_empty() && sums.len() == question_names(card).len() => Ok(Vec::new()),
        (Some(_), Some(_)) => Err(Error::input("there is not one sum for each of the card's questions")),
        (Some(_), None) => Err(Error::input("the sums have no noise, and the card's mechanism has")),
        (None, Some(_)) => Err(Error::input("the sums carry noise, and the card's mechanism has none")),
    }
}

/// The names of a ballot's questions; a single question has none.
fn question_names(card: &Card) -> Vec<Option<String>> {
    match card.asked() {
        CardQuestion::Person(_) | CardQuestion::Predicate(_) => vec![None],
        CardQuestion::Ballot(ballot) => ballot.queries.iter().map(|query| Some(query.name.clone())).collect(),
    }
}

fn exact_tallies(card: &Card, counts: &[u64], reports: u64) -> Result<Vec<QuestionTally>> {
    let channel = card.checked_channel()?;
    let CardQuestion::Ballot(asked) = card.asked() else {
        let tally = Tally::from_cells(&channel, &possible(&channel, counts))?;
        return Ok(vec![QuestionTally { name: None, tally }]);
    };
    let outputs = ballot::outputs(counts, reports)?;
    if outputs.len() != asked.queries.len() {
        return Err(Error::input("the sums are not those of the card's ballot"));
    }
    let tallies = asked.queries.iter().zip(&outputs).map(|(query, outputs)| {
        Ok(QuestionTally { name: Some(query.name.clone()), tally: question_tally(&channel, outputs)? })
    });
    tallies.collect()
}

/// The counts without the cells that the mechanism never draws: a dishonest report may name one, which would spoil the
/// estimate.
fn possible(channel: &Channel, counts: &[u64]) -> Vec<u64> {
    let kept = |(index, count): (usize, &u64)| match channel.cells().get(index) {
        Some(cell) if !is_drawn(cell) => 0,
        _ => *count,
    };
    counts.iter().enumerate().map(kept).collect()
}

fn is_drawn(cell: &uptack::Cell) -> bool {
    cell.yes() != Probability::ZERO || cell.no() != Probability::ZERO
}

/// The tally of one question's outputs. If dishonest reports set both bits of a question, no ⊥ may be left, and the tally
/// counts more owners than there were reports.
fn question_tally(channel: &Channel, outputs: &ballot::Outputs) -> Result<Tally> {
    let drawn = |output: Output| channel.cells().iter().any(|cell| cell.outputs()[0] == output && is_drawn(cell));
    let count = |output: Output| match output {
        output if !drawn(output) => 0,
        Output::ONE => outputs.ones,
        Output::ZERO => outputs.zeros,
        _ => outputs.bottoms.unwrap_or(0),
    };
    let counts: BTreeMap<Output, u64> = channel.answers()[0].iter().map(|&output| (output, count(output))).collect();
    Ok(Tally::new(vec![counts])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(text: &str) -> Channel {
        text.parse::<uptack::Mechanism>().unwrap().channel()
    }

    #[test]
    fn what_no_honest_owner_writes_is_not_in_the_tally() {
        let never_bottom = channel("normal-form(f=1,r=0.2)");
        assert_eq!(possible(&never_bottom, &[5, 6, 2]), [5, 6, 0]);
        let outputs = ballot::Outputs { ones: 5, zeros: 6, bottoms: Some(2) };
        assert_eq!(question_tally(&never_bottom, &outputs).unwrap().owners(), 11);
        let bottom = channel("normal-form(f=0.5,r=0.2)");
        assert_eq!(possible(&bottom, &[5, 6, 2]), [5, 6, 2]);
        assert_eq!(question_tally(&bottom, &outputs).unwrap().owners(), 13);
        let both = ballot::Outputs { ones: 9, zeros: 6, bottoms: None };
        assert_eq!(question_tally(&bottom, &both).unwrap().owners(), 15);
    }
}
