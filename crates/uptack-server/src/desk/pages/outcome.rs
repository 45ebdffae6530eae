//! What a record says: the same numbers as `uptack result` makes from it.

use std::{sync::Arc, time::Duration};
use uptack::{
    card::Card,
    display,
    estimate::{Confidence, Estimate, Estimator, IntervalKind},
};
use uptack_dap::release::{record::Record, results::Estimated};

use super::{
    Pages,
    refusal::{Granted, Refusal},
    work::{Found, Jobs},
};
use crate::error::{Error, Result};

/// The confidence of intervals; for a ballot, of all of them together.
pub(super) const CONFIDENCE: f64 = 0.95;
/// How long a page waits for its estimates.
const PATIENCE: Duration = Duration::from_secs(20);

/// Outcomes by the name of their query: a record never changes.
#[derive(Default)]
pub(super) struct Outcomes(Jobs<std::result::Result<Arc<Outcome>, String>>);

/// A record with what follows from it.
pub(super) struct Outcome {
    /// The record with its estimates, as `uptack verify` takes it.
    pub(super) record: Record,
    pub(super) card: Card,
    pub(super) questions: Vec<One>,
}

/// What is known of one question.
pub(super) struct One {
    pub(super) name: Option<String>,
    pub(super) estimate: f64,
    pub(super) sd: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The estimate with the parts of its error.
    pub(super) parts: Estimate,
}

impl Pages {
    pub(super) async fn outcome(&self, query: &str, record: &str) -> Granted<Arc<Outcome>> {
        let text = record.to_owned();
        let compute = move || Outcome::of(&text).map(Arc::new).map_err(|error| error.to_string());
        match self.work.find(&self.outcomes.0, query, PATIENCE, compute).await {
            Found::Done(outcome) => outcome.as_ref().clone().map_err(|words| Error::environment(words).into()),
            Found::Later | Found::Busy => Err(Refusal::busy("The estimates are being made. Load the page again.")),
        }
    }
}

impl Outcome {
    fn of(text: &str) -> Result<Self> {
        let (record, opened) = Record::read(text)?;
        let channel = opened.card.checked_channel()?;
        let results = record.estimated(&channel, Confidence::new(CONFIDENCE)?, IntervalKind::Auto)?;
        let estimates = record_estimates(&record, &Estimator::new(&channel)?)?;
        let stated = results.estimates.iter().zip(estimates);
        let questions = stated.map(|(stated, parts)| One::read(stated, parts)).collect::<Result<_>>()?;
        Ok(Self { record: Record { results: Some(results), ..record }, card: opened.card, questions })
    }

    /// The estimates, one line per question.
    pub(super) fn csv(&self) -> String {
        let lines: String = self.questions.iter().map(One::csv_line).collect();
        format!("question,owners,estimate,sd,low,high,confidence\n{lines}")
    }

    /// The number of the card in its series.
    pub(super) fn number(&self) -> u64 {
        self.card.series.as_ref().and_then(|series| series.number).unwrap_or(1)
    }
}

/// The estimate of each question, with the parts of its error.
fn record_estimates(record: &Record, estimator: &Estimator) -> Result<Vec<Estimate>> {
    let observed = record.observed(estimator)?;
    Ok(observed.iter().map(|one| estimator.estimate_observed(&one.observation)).collect())
}

impl One {
    /// The name of the question; empty if it is the only one.
    pub(super) fn label(&self) -> String {
        self.name.clone().unwrap_or_default()
    }

    /// The ends of the interval, for people.
    pub(super) fn interval_words(&self) -> [String; 2] {
        display::interval(self.low, self.high)
    }

    fn csv_line(&self) -> String {
        let Self { estimate, sd, low, high, .. } = self;
        let (name, owners) = (self.label().replace('"', "\"\""), self.parts.owners);
        format!("\"{name}\",{owners},{estimate},{sd},{low},{high},{CONFIDENCE}\n")
    }

    /// The numbers as the record states them.
    fn read(stated: &Estimated, parts: Estimate) -> Result<Self> {
        let [low, high] = &stated.interval;
        Ok(Self {
            name: stated.name.clone(),
            estimate: number(&stated.estimate)?,
            sd: number(&stated.sd)?,
            low: number(low)?,
            high: number(high)?,
            parts,
        })
    }
}

fn number(text: &str) -> Result<f64> {
    text.parse().map_err(|_| Error::environment("an estimate is not a number"))
}
