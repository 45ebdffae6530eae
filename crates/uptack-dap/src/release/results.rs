//! What follows from a record's sums: an estimate for each question, with an interval.

use serde::{Deserialize, Serialize};
use uptack::{
    Channel, Fraction, Tally,
    estimate::{
        Confidence, Estimator, IntervalKind,
        many::{Sharing, simultaneous},
    },
};

use crate::error::{Error, Result};

/// One question's tally of a ballot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTally {
    /// The question's name on the card.
    pub name: String,
    /// The tally.
    #[serde(flatten)]
    pub tally: Tally,
}

/// The estimates of a record, and how their intervals are made. Every number is a decimal string that reads back as
/// exactly the number that was computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// How sure the intervals are to hold the truth; those of a ballot, all together.
    pub confidence: String,
    /// How they were asked for.
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
    /// How many of them hold yes.
    pub estimate: String,
    /// The standard deviation of that.
    pub sd: String,
    /// At least and at most so many.
    pub interval: [String; 2],
    /// How the interval was made; never `auto`.
    pub interval_kind: IntervalKind,
}

impl Results {
    /// What the tally of one question, or those of a ballot, say by a channel that was checked.
    pub(crate) fn of(
        (tally, tallies): (Option<&Tally>, Option<&[NamedTally]>),
        channel: &Channel,
        confidence: Confidence,
        interval: IntervalKind,
    ) -> Result<Self> {
        let asked = Asked { estimator: Estimator::new(channel)?, confidence, interval };
        let estimates = match (tally, tallies) {
            (Some(tally), None) => vec![asked.estimate(None, tally)?],
            (None, Some(tallies)) => {
                let each = Asked { confidence: simultaneous(confidence, tallies.len(), Sharing::Bonferroni)?, ..asked };
                let named = |NamedTally { name, tally }: &NamedTally| each.estimate(Some(name), tally);
                tallies.iter().map(named).collect::<Result<_>>()?
            }
            _ => return Err(Error::input("the release record has neither one tally nor those of a ballot")),
        };
        Ok(Self { confidence: level(confidence)?, interval, estimates })
    }

    /// The confidence as a number.
    pub fn confidence(&self) -> Result<Confidence> {
        // What is left to one is formed exactly, so that 99.9999 % misses one time in a million.
        Ok(Confidence::of_miss(self.confidence.parse::<Fraction>()?.complement().to_f64())?)
    }
}

/// A confidence as the decimal that reads back as it.
fn level(confidence: Confidence) -> Result<String> {
    Ok(Fraction::from_f64(confidence.miss())?.complement().to_string())
}

struct Asked {
    estimator: Estimator,
    confidence: Confidence,
    interval: IntervalKind,
}

impl Asked {
    fn estimate(&self, name: Option<&String>, tally: &Tally) -> Result<Estimated> {
        let observation = self.estimator.observe(tally)?;
        let estimate = self.estimator.estimate_observed(&observation);
        let interval = self.estimator.interval(&observation, self.confidence, self.interval);
        Ok(Estimated {
            name: name.cloned(),
            owners: estimate.owners,
            estimate: estimate.estimate.to_string(),
            sd: estimate.sd.to_string(),
            interval: [interval.low.to_string(), interval.high.to_string()],
            interval_kind: interval.kind,
        })
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
