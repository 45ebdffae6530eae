//! What a record says: the same numbers as `uptack result` makes from it.

use std::sync::Arc;
use uptack::{
    card::Card,
    estimate::{Confidence, Estimate, Estimator, IntervalKind},
};
use uptack_dap::release::{record::Record, results::Estimated};

use super::{
    Pages,
    refusal::Refusal,
    work::{Found, Jobs},
};
use crate::error::{Error, Result};

/// How sure intervals are to hold the truth; those of a ballot, all together.
pub(super) const CONFIDENCE: f64 = 0.95;
/// How long a page waits for its estimates.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

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
    pub(super) async fn outcome(&self, query: &str, record: &str) -> std::result::Result<Arc<Outcome>, Refusal> {
        let text = record.to_owned();
        let compute = move || Outcome::of(&text).map(Arc::new).map_err(|error| error.to_string());
        match self.work.find(&self.outcomes.0, query, PATIENCE, compute).await {
            Found::Done(outcome) => outcome.as_ref().clone().map_err(|words| Error::environment(words).into()),
            Found::Later | Found::Busy => Err(Refusal::page(
                axum::http::StatusCode::SERVICE_UNAVAILABLE,
                "The estimates are being made. Load the page again.",
            )),
        }
    }
}

impl Outcome {
    fn of(text: &str) -> Result<Self> {
        let (record, opened) = Record::read(text)?;
        let channel = opened.card.checked_channel()?;
        let results = record.estimated(&channel, Confidence::new(CONFIDENCE)?, IntervalKind::Auto)?;
        let estimator = Estimator::new(&channel)?;
        let observed = record.observed(&estimator)?;
        let parts = observed.iter().map(|one| estimator.estimate_observed(&one.observation));
        let questions =
            results.estimates.iter().zip(parts).map(|(one, parts)| One::read(one, parts)).collect::<Result<_>>()?;
        Ok(Self { record: Record { results: Some(results), ..record }, card: opened.card, questions })
    }

    /// One line for each question.
    pub(super) fn csv(&self) -> String {
        let line = |one: &One| {
            let name = one.name.as_deref().unwrap_or_default().replace('"', "\"\"");
            let owners = one.parts.owners;
            format!("\"{name}\",{owners},{},{},{},{},{CONFIDENCE}\n", one.estimate, one.sd, one.low, one.high)
        };
        let lines: String = self.questions.iter().map(line).collect();
        format!("question,owners,estimate,sd,low,high,confidence\n{lines}")
    }
}

impl One {
    /// The numbers as the record states them.
    fn read(stated: &Estimated, parts: Estimate) -> Result<Self> {
        let number = |text: &str| text.parse().map_err(|_| Error::environment("an estimate is not a number"));
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
