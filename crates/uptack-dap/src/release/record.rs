//! The release record: everything from which anyone can recompute the estimate and the claims.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uptack::{
    Channel, Output, Probability, Tally,
    card::{Card, CardQuestion, Timestamp},
    estimate::{Confidence, Estimator, IntervalKind},
};

use crate::{
    ballot,
    error::{Error, Result},
    release::{
        Collected,
        results::{NamedTally, Observed, Results},
    },
    signed::{OpenedCard, SignedCard},
};

/// What was released about one query, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// The sums as they were collected: one for each cell, in the card's order; two for each question of a ballot. Empty
    /// if the aggregators add noise.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub counts: Vec<u64>,
    /// If the aggregators add noise: for each question, the number of answers `1` plus the noise of both.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sums: Option<Vec<i64>>,
    /// The counts in the form that estimators take, for a single question: without what no honest owner can have written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tally: Option<Tally>,
    /// Such a tally for each question of a ballot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tallies: Option<Vec<NamedTally>>,
    /// When the sums were collected.
    pub collected: String,
    /// What follows from the sums, as an analyst was shown it; everyone can compute it again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub results: Option<Results>,
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
        match (&self.tally, &self.tallies, &self.sums) {
            (Some(tally), None, None) => Ok(vec![Observed::of_tally(None, tally, estimator)?]),
            (None, Some(tallies), None) => {
                tallies.iter().map(|named| Observed::of_tally(Some(&named.name), &named.tally, estimator)).collect()
            }
            (None, None, Some(sums)) => self.observed_sums(sums, estimator),
            _ => Err(Error::input(
                "the release record has neither one tally, nor those of a ballot, nor sums with noise",
            )),
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
    pub fn new(signed: &SignedCard, batch: &Collected, now: u64) -> Result<Self> {
        let card = signed.open()?.card;
        let (tally, tallies) = tallies(&card, batch.reports, &batch.counts, batch.sums.as_deref())?;
        Ok(Self {
            version: VERSION.to_owned(),
            query: signed.query.clone(),
            card: signed.card.clone(),
            signature: signed.signature.clone(),
            reports: batch.reports,
            counts: batch.counts.clone(),
            sums: batch.sums.clone(),
            tally,
            tallies,
            collected: Timestamp::from_seconds(now)?.to_string(),
            results: None,
        })
    }

    /// Reads a record and checks nothing but its form.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| Error::input(format!("not a release record: {error}")))
    }

    /// Reads a record, and checks the card's name and signature, and that the tallies are those of the sums.
    pub fn read(text: &str) -> Result<(Self, OpenedCard)> {
        let record = Self::parse(text)?;
        if record.version != VERSION {
            return Err(Error::input("the release record's version is not 1"));
        }
        let opened = record.signed().open()?;
        let made = record.tallies_of(&opened.card)?;
        if made != (record.tally.clone(), record.tallies.clone()) {
            return Err(Error::input("the release record's tallies are not those of its sums"));
        }
        Ok((record, opened))
    }

    /// The tallies that follow from the record's sums; none if these carry noise.
    pub(crate) fn tallies_of(&self, card: &Card) -> Result<Tallies> {
        tallies(card, self.reports, &self.counts, self.sums.as_deref())
    }

    /// The card as it was signed.
    pub fn signed(&self) -> SignedCard {
        SignedCard { query: self.query.clone(), card: self.card.clone(), signature: self.signature.clone() }
    }
}

pub(crate) type Tallies = (Option<Tally>, Option<Vec<NamedTally>>);

fn tallies(card: &Card, reports: u64, counts: &[u64], sums: Option<&[i64]>) -> Result<Tallies> {
    match (card.mechanism.noise(), sums) {
        (None, None) => exact_tallies(card, counts, reports),
        (Some(_), Some(sums)) if counts.is_empty() && sums.len() == question_names(card).len() => Ok((None, None)),
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

fn exact_tallies(card: &Card, counts: &[u64], reports: u64) -> Result<Tallies> {
    let channel = card.checked_channel()?;
    let CardQuestion::Ballot(asked) = card.asked() else {
        return Ok((Some(Tally::from_cells(&channel, &possible(&channel, counts))?), None));
    };
    let outputs = ballot::outputs(counts, reports)?;
    if outputs.len() != asked.queries.len() {
        return Err(Error::input("the sums are not those of the card's ballot"));
    }
    let tallies =
        asked.queries.iter().zip(&outputs).map(|(query, outputs)| {
            Ok(NamedTally { name: query.name.clone(), tally: question_tally(&channel, outputs)? })
        });
    Ok((None, Some(tallies.collect::<Result<_>>()?)))
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
