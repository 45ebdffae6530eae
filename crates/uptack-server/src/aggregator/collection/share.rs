//! The one place where an aggregator's share of a batch is made ready to leave: noise is added, then it is sealed.
//!
//! Two draws for one batch would let a collector average the noise away. So [`seal`] is called in the transaction that
//! stores what it returns, once for each batch, and what leaves is what is stored: a repeated request gets the same bytes.
//! The draw itself is stored nowhere, and appears in no log, counter or error.

use num_bigint::{BigInt, BigUint};
use num_rational::Ratio;
use prio::dp::distributions::DiscreteLaplace as Sampler;
use rand::{distributions::Distribution, rngs::OsRng};
use uptack::DiscreteLaplace;
use uptack_dap::{
    protocol::{self, HpkeCiphertext, Interval, Sum},
    task::AggregatorTask,
};

/// This aggregator's share of a batch as it leaves: with this aggregator's noise, if the task has any, and sealed to the
/// collector.
pub(crate) fn seal(task: &AggregatorTask, interval: Interval, mut sum: Sum) -> uptack_dap::Result<HpkeCiphertext> {
    let parameters = &task.parameters;
    if let Some(noise) = &parameters.noise {
        sum.add_noise(&draw(noise, parameters.vdaf.length()));
    }
    let collector = &task.collector_hpke_config;
    protocol::seal_aggregate_share(collector, task.role.to_dap(), &parameters.task_id, interval, &sum)
}

/// One draw for each coordinate, from the operating system's generator.
fn draw(noise: &DiscreteLaplace, length: usize) -> Vec<i64> {
    let scale = noise.scale();
    let scale = Ratio::<BigUint>::new(scale.numerator().into(), scale.denominator().into());
    let sampler = Sampler::new(scale).expect("a scale is above zero");
    let to_i64 =
        |draw: BigInt| i64::try_from(draw).expect("even at the largest scale, one draw in e^(9·10⁹) is larger");
    sampler.sample_iter(OsRng).take(length).map(to_i64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Smallest violation seen: a scale that is off by about 5 %. α = 2·10⁻⁵ in all (each |z| < 4.4).
    #[test]
    fn draws_have_the_variance_of_their_scale_and_no_bias() {
        for scale in ["0.3", "1", "7/3", "250"] {
            let noise = DiscreteLaplace::new(scale.parse().unwrap());
            let drawn = draw(&noise, 20_000);
            let count = drawn.len() as f64;
            let mean = drawn.iter().map(|&value| value as f64).sum::<f64>() / count;
            assert!(mean.abs() < 4.4 * (noise.variance() / count).sqrt(), "{scale}: mean {mean}");
            let squares = drawn.iter().map(|&value| (value as f64).powi(2));
            let fourth = squares.clone().map(|square| square * square).sum::<f64>() / count;
            let (found, expected) = (squares.sum::<f64>() / count, noise.variance());
            let error = ((fourth - expected * expected) / count).sqrt();
            assert!((found - expected).abs() < 4.4 * error, "{scale}: {found} instead of {expected}");
        }
    }
}
