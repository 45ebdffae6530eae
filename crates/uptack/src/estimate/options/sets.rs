//! How many owners have any option of a set.
//!
//! "One of these j options" is a yes/no question with p = g + (j−1)r and q = jr, whichever options they are, and the sum of their published
//! counts carries j times the noise of one. So its exact law is known, and the interval is exact.

use super::reading::Reading;
use super::{OptionEstimator, mirrored};
use crate::channel::{Cell, Channel, Output};
use crate::error::{Error, Result};
use crate::estimate::combined::Estimator;
use crate::estimate::interval::{Confidence, Interval, IntervalKind};
use crate::option_counts::Published;
use crate::probability::Probability;

/// How many owners have any option of a set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetEstimate {
    /// The estimate: unbiased, and not clipped to between 0 and the number of owners.
    pub estimate: f64,
    /// Its standard deviation at the estimate.
    pub sd: f64,
    /// An exact interval.
    pub interval: Interval,
    /// The estimate as a share of the owners.
    pub share: f64,
}

/// Published counts that are added up for a set of options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CountedSet {
    /// Their indices.
    pub(super) counts: Vec<usize>,
    /// Whether they count everybody who is not in the set.
    pub(super) is_rest: bool,
}

impl OptionEstimator {
    /// How many owners have any of these options, given by their indices from 0.
    ///
    /// For a choice, it is estimated from the smaller of the set and the rest of the options, because fewer counts carry less noise; so it
    /// may differ from the sum of the options' estimates, as these do not sum to the owners either. Refused if an owner may have
    /// several of the options: then the counts do not tell how many owners have any.
    pub fn union(&self, published: &Published, options: &[usize], confidence: Confidence) -> Result<SetEstimate> {
        let set = self.counted_set(options)?;
        let reading = self.read(published)?;
        let owners = reading.owners;
        let all = owners as f64;
        if set.counts.is_empty() {
            let known = if set.is_rest { all } else { 0.0 };
            let interval = Interval { low: known, high: known, kind: IntervalKind::Exact };
            return Ok(SetEstimate { estimate: known, sd: 0.0, interval, share: known / all });
        }
        let estimator = self.set_estimator(set.counts.len())?;
        let observation = estimator.observe_checked(owners, reading.sum_of(&set.counts));
        let found = estimator.estimate_observed(&observation);
        let interval = estimator.interval(&observation, confidence, IntervalKind::Exact);
        let (estimate, interval) =
            if set.is_rest { (all - found.estimate, mirrored(interval, owners)) } else { (found.estimate, interval) };
        Ok(SetEstimate { estimate, sd: found.sd, interval, share: estimate / all })
    }

    /// The counts by which the owners of a set of options are counted.
    pub(super) fn counted_set(&self, options: &[usize]) -> Result<CountedSet> {
        let is_in = self.check_set(options)?;
        let indices = |wanted: bool| (0..self.asked.counts()).filter(|&index| is_in[index] == wanted).collect();
        let (inside, rest): (Vec<usize>, Vec<usize>) = (indices(true), indices(false));
        // The second of two options is counted by nobody else's count but the first's.
        let is_rest = self.asked.is_choice()
            && if self.asked.has_uncounted() { is_in[self.asked.counts()] } else { rest.len() < inside.len() };
        Ok(CountedSet { counts: if is_rest { rest } else { inside }, is_rest })
    }

    /// Whether each option is in the set.
    fn check_set(&self, options: &[usize]) -> Result<Vec<bool>> {
        if options.is_empty() {
            return Err(Error::request("the set has no options"));
        }
        let all = self.asked.options();
        let mut is_in = vec![false; all];
        for &option in options {
            if option >= all {
                return Err(Error::request(format!("there is no option {}: there are {all}", option + 1)));
            }
            if std::mem::replace(&mut is_in[option], true) {
                return Err(Error::request(format!("option {} is in the set twice", option + 1)));
            }
        }
        if options.len() > 1 && self.asked.most() > 1 {
            return Err(Error::request(format!(
                "an owner may have up to {} of these options, so their counts do not tell how many owners have any",
                self.asked.most()
            )));
        }
        Ok(is_in)
    }

    /// The estimator of whether an owner has any of `size` options, from the sum of their counts.
    pub(super) fn set_estimator(&self, size: usize) -> Result<Estimator> {
        if size == 1 { Ok(self.count.clone()) } else { Estimator::of_sums(&self.set_channel(size)?, size as u32) }
    }

    /// Whether an owner is counted by any of `size` counts, as a yes/no question; with the noise of one count.
    fn set_channel(&self, size: usize) -> Result<Channel> {
        let law = self.asked.law();
        let (told, other, size) = (law.told().numerator(), law.other().numerator(), size as u128);
        let yes = Probability::from_numerator(told + (size - 1) * other)?;
        let no = Probability::from_numerator(size * other)?;
        let cells = vec![
            Cell::new(vec![Output::ONE], yes, no),
            Cell::new(vec![Output::ZERO], yes.complement(), no.complement()),
        ];
        Channel::from_cells(cells)?.with_optional_noise(self.asked.noise().copied())
    }
}

impl Reading {
    /// The sum of some of the counts.
    pub(super) fn sum_of(&self, counts: &[usize]) -> i128 {
        counts.iter().map(|&index| self.counts[index]).sum()
    }
}
