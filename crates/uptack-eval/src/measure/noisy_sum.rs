//! A published sum with the aggregators' noise, for one channel and crowd and millions of trials.
//!
//! The sum of both aggregators' draws is sampled from a table of its law. The core's own sampler is exact in rationals, and
//! too slow for an evaluation, which needs no secret noise.

use uptack::estimate::Estimator;
use uptack::simulate::draw_counts;
use uptack::{Bin, Channel, Output, Probability, SeededCoins};

use super::coverage::{Confidences, Coverage};
use crate::error::Result;
use crate::method::IntegerLaw;

/// The number of ones among a crowd's answers plus the noise of both aggregators.
pub(crate) struct NoisySum {
    channel: Channel,
    estimator: Estimator,
    owners: u64,
    /// The cells whose answer is 1.
    ones: Vec<usize>,
    noise: IntegerLaw,
    /// How much a *yes* raises the expected sum (p − q), and the expected sum without any (nq).
    difference: f64,
    none: f64,
}

impl NoisySum {
    /// None if the channel has no noise.
    pub(crate) fn new(channel: &Channel, owners: u64) -> Result<Option<Self>> {
        let (Some(noise), Some(bit)) = (channel.noise(), channel.summed_bit()) else { return Ok(None) };
        let no = bit.no.numerator() as f64 / Probability::ONE.numerator() as f64;
        Ok(Some(Self {
            estimator: Estimator::new(channel)?,
            owners,
            ones: channel.cells_in(Bin { answer: 0, output: Output::ONE }),
            noise: IntegerLaw::new(noise.plausible_reach(), |value| noise.sum_probability(value)),
            difference: bit.difference(),
            none: owners as f64 * no,
            channel: channel.clone().without_noise(),
        }))
    }

    /// Draws what is published.
    pub(crate) fn draw(&self, yes: u64, coins: &mut SeededCoins) -> Result<i64> {
        let counts = draw_counts(&self.channel, self.owners, yes, coins)?;
        let ones: u64 = self.ones.iter().map(|&cell| counts[cell]).sum();
        Ok(ones as i64 + self.noise.draw(coins)?)
    }

    /// (S − nq)/(p − q).
    pub(crate) fn estimate(&self, sum: i64) -> f64 {
        (sum as f64 - self.none) / self.difference
    }

    /// The coverage if `yes` owners would say *yes*.
    pub(crate) fn coverage(&self, yes: u64, by: &Confidences) -> Result<Coverage> {
        Coverage::new(&self.estimator, self.owners, yes, by)
    }

    /// The standard deviation of the estimate if `yes` owners would say *yes*.
    pub(crate) fn sd(&self, yes: f64) -> Result<f64> {
        Ok(self.estimator.sd(self.owners, yes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack::Mechanism;
    use uptack::estimate::{Confidence, IntervalKind};

    /// Every estimate and every verdict is the core's.
    #[test]
    fn unrolled_is_the_same_as_the_core() {
        let by = Confidences { each: Confidence::new(0.95).unwrap(), all: Confidence::of_miss(0.05 / 2221.0).unwrap() };
        for text in
            ["randomized-response(t=1) + laplace(scale=1)", "randomized-response(t=0.9999) + laplace(scale=1.1)"]
        {
            let channel = text.parse::<Mechanism>().unwrap().channel();
            let law = NoisySum::new(&channel, 50_186).unwrap().unwrap();
            for (yes, trial) in [0u64, 4, 500].into_iter().flat_map(|yes| (0..40).map(move |trial| (yes, trial))) {
                let coverage = law.coverage(yes, &by).unwrap();
                let sum =
                    law.draw(yes, &mut SeededCoins::stream(5, trial)).unwrap() + [0, 4, -4, 11][trial as usize % 4];
                let observation = law.estimator.observe_sum(50_186, sum).unwrap();
                let reference = law.estimator.estimate_observed(&observation);
                assert!((law.estimate(sum) - reference.estimate).abs() < 1e-6 * reference.sd, "{text} {yes}");
                for (confidence, acceptance) in [(by.each, &coverage.each), (by.all, &coverage.all)] {
                    let held = law.estimator.covers(&observation, confidence, IntervalKind::Auto, yes);
                    assert_eq!(acceptance.holds_sum(sum), held, "{text} {yes} {sum}");
                }
            }
        }
    }

    #[test]
    fn a_channel_without_noise_has_no_such_sum() {
        let channel = "randomized-response(t=0.9)".parse::<Mechanism>().unwrap().channel();
        assert!(NoisySum::new(&channel, 100).unwrap().is_none());
    }
}
