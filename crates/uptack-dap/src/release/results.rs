//! The estimates that follow from a record's sums: one for each question, with an interval.

use serde::{Deserialize, Serialize};
use uptack::{
    Fraction,
    estimate::{
        Confidence, Estimator, IntervalKind, Observation,
        many::{Sharing, simultaneous, simultaneous_kind},
    },
};

use crate::error::Result;

/// The estimates of a record, and how their intervals were made. Every number is a decimal string that reads back as
/// exactly the number that was computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// The confidence with which the interval holds the truth; for a ballot, all intervals at once.
    pub confidence: String,
    /// The kind of interval that was asked for.
    pub interval: IntervalKind,
    /// One for each question, in the card's order.
    pub estimates: Vec<Estimated>,
}

/// The estimate of one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimated {
    /// The question's name on a ballot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// How many owners were counted.
    pub owners: u64,
    /// How many of them have the true answer yes.
    pub estimate: String,
    /// The standard deviation of the estimate.
    pub sd: String,
    /// The lower and the upper end of the interval.
    pub interval: [String; 2],
    /// How the interval was made. On a ballot it is never `auto`.
    pub interval_kind: IntervalKind,
}

/// What a record shows about one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// The question's name on a ballot.
    pub name: Option<String>,
    /// The counts, or the sum.
    pub observation: Observation,
}

impl Results {
    /// The estimates of a single question, or of those of a ballot, by an estimator of a channel that was checked.
    pub(crate) fn of(
        questions: &[Observed],
        estimator: &Estimator,
        confidence: Confidence,
        interval: IntervalKind,
    ) -> Result<Self> {
        let (each, kind) = shared_interval(questions, confidence, interval)?;
        let estimate = |observed: &Observed| estimate(observed, estimator, each, kind);
        let estimates = questions.iter().map(estimate).collect();
        Ok(Self { confidence: level(confidence)?, interval, estimates })
    }

    /// The confidence as a number.
    pub fn confidence(&self) -> Result<Confidence> {
        // The complement is exact, so that 99.9999 % misses one time in a million.
        Ok(Confidence::of_miss(self.confidence.parse::<Fraction>()?.complement().to_f64())?)
    }
}

/// A confidence as the decimal that reads back as the same confidence.
fn level(confidence: Confidence) -> Result<String> {
    Ok(Fraction::from_f64(confidence.miss())?.complement().to_string())
}

/// The confidence and the kind that each interval needs for all of them to hold at once with `confidence`. A single question
/// gets all of it, and the kind that was asked for.
pub fn shared_interval(
    questions: &[Observed],
    confidence: Confidence,
    interval: IntervalKind,
) -> Result<(Confidence, IntervalKind)> {
    Ok(match questions {
        [Observed { name: None, .. }] => (confidence, interval),
        _ => (simultaneous(confidence, questions.len(), Sharing::Bonferroni)?, simultaneous_kind(interval)),
    })
}

fn estimate(observed: &Observed, estimator: &Estimator, confidence: Confidence, interval: IntervalKind) -> Estimated {
    let estimate = estimator.estimate_observed(&observed.observation);
    let interval = estimator.interval(&observed.observation, confidence, interval);
    Estimated {
        name: observed.name.clone(),
        owners: estimate.owners,
        estimate: estimate.estimate.to_string(),
        sd: estimate.sd.to_string(),
        interval: [interval.low.to_string(), interval.high.to_string()],
        interval_kind: interval.kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidences_survive_as_text() {
        for miss in [0.05, 0.3, 1e-6, 1e-4, 0.05 / 7.0, 1e-12, 0.123_456_789_012_345_67] {
            let confidence = Confidence::of_miss(miss).unwrap();
            let results =
                Results { confidence: level(confidence).unwrap(), interval: IntervalKind::Auto, estimates: Vec::new() };
            assert_eq!(results.confidence().unwrap(), confidence, "{}", results.confidence);
        }
        assert_eq!(level(Confidence::of_miss(0.05).unwrap()).unwrap(), "0.95");
    }
}
