//! What a desk releases about a query: the record, the estimates that follow from it, and anyone's check of both.

#[cfg(test)]
mod falsified;
pub mod record;
pub mod results;
pub mod verification;

use std::ops::RangeInclusive;

use uptack::NoiseLaw;

use crate::error::{Error, Result};

/// A released batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collected {
    /// How many reports are in the batch.
    pub reports: u64,
    /// The sum: one count for each cell, or for each bit. Empty if the aggregators add noise.
    pub counts: Vec<u64>,
    /// If the aggregators add noise: for each bit, its sum plus both draws of noise, which may be below zero.
    pub sums: Option<Vec<i64>>,
    /// Start of the first window that holds a report.
    pub start: u64,
    /// End of the last window that holds a report.
    pub finish: u64,
}

impl Collected {
    /// The tally that estimators take, for the channel whose cells were counted.
    pub fn tally(&self, channel: &uptack::Channel) -> Result<uptack::Tally> {
        uptack::Tally::from_cells(channel, &self.counts).map_err(Error::input_because)
    }
}

/// The sums that this many reports and two draws of noise can have, except with a probability below 10⁻¹⁸.
pub(crate) fn plausible(noise: &NoiseLaw, reports: u64) -> RangeInclusive<i128> {
    let reach = i128::from(noise.plausible_reach());
    -reach..=i128::from(reports) + reach
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_plausible_as_far_as_noise_can_reach() {
        let range = plausible(&"laplace(scale=1)".parse().unwrap(), 10);
        assert_eq!(range, -44..=54);
        let widest = plausible(&"laplace(scale=1000000000)".parse().unwrap(), u64::MAX);
        assert!(*widest.start() < -(1 << 35) && *widest.end() > i128::from(u64::MAX) + (1 << 35));
    }
}
