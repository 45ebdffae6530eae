//! An aggregator's share of a batch on its way out: noise is added, then the share is sealed. Nothing else releases a share.
//!
//! Two draws for one batch would let a collector average the noise away. So the noise is derived from the task's secret and from
//! all that identifies the release: whoever asks again, and however much this aggregator has forgotten since, gets the same
//! noise. The sealed share is stored besides, in the transaction that marks the batch as released, and a repeated request gets the
//! stored bytes. The noise itself is stored nowhere, and appears in no log, counter or error.

use uptack_dap::{
    Error,
    protocol::{self, BatchInterval, SealedShare},
};

use crate::aggregator::{noise_secret::Release, store::Batch, tasks::ServedTask};

/// This aggregator's share of a batch as it leaves: with this aggregator's noise, if the task has any, and sealed to the
/// collector.
pub(crate) fn seal(task: &ServedTask, interval: BatchInterval, batch: Batch) -> uptack_dap::Result<SealedShare> {
    let Batch { mut sum, reports, checksum } = batch;
    let release = Release { interval, reports, checksum, sum: &sum };
    let noise = task.noise_secret.noise(&task.definition, &release);
    if let Some(noise) = noise.map_err(|error| Error::environment(error.to_string()).because(error))? {
        sum.add_noise(&noise);
    }
    let collector = &task.definition.collector_hpke_config;
    protocol::seal_sum(collector, task.definition.role, task.id(), interval, &sum)
}

#[cfg(test)]
mod tests {
    use std::array::from_fn;

    use num_bigint::BigUint;
    use num_rational::Ratio;
    use prio::dp::distributions::DiscreteLaplace;
    use rand::{SeedableRng, distributions::Distribution, rngs::StdRng};
    use uptack::{NoiseLaw, Scale, SeededCoins};

    const DRAWS: usize = 40_000;

    /// How many draws of our sampler fall into each of eleven bins; the outer ones hold the tails.
    fn ours(scale: Scale, bin_width: i64) -> [f64; 11] {
        let (noise, mut coins) = (NoiseLaw::laplace(scale), SeededCoins::new(5));
        binned((0..DRAWS).map(|_| noise.draw_seeded(&mut coins)), bin_width)
    }

    /// The same by libprio's sampler.
    fn libprio(scale: Scale, bin_width: i64) -> [f64; 11] {
        let scale = Ratio::<BigUint>::new(scale.numerator().into(), scale.denominator().into());
        let draws = DiscreteLaplace::new(scale).unwrap().sample_iter(StdRng::seed_from_u64(6));
        binned(draws.take(DRAWS).map(|draw| i64::try_from(draw).unwrap()), bin_width)
    }

    fn binned(draws: impl Iterator<Item = i64>, width: i64) -> [f64; 11] {
        let mut counts = [0.0; 11];
        draws.for_each(|draw| counts[(draw.div_euclid(width).clamp(-5, 5) + 5) as usize] += 1.0);
        counts
    }

    /// χ² of two samples of one size; bins that neither fell into count nothing.
    fn chi_square(one: [f64; 11], other: [f64; 11]) -> f64 {
        let terms: [f64; 11] = from_fn(|bin| (one[bin] - other[bin]).powi(2) / (one[bin] + other[bin]).max(1.0));
        terms.iter().sum()
    }

    /// α = 10⁻⁶ for each scale: with at most 10 degrees of freedom χ² exceeds 48 with a smaller probability. A scale that is
    /// off by a tenth is seen.
    #[test]
    fn our_noise_has_the_law_of_libprio() {
        for (scale, wrong, bin_width) in [("0.3", "0.33", 1), ("1", "0.9", 1), ("7/3", "2.1", 1), ("250", "275", 125)] {
            let [scale, wrong]: [Scale; 2] = [scale, wrong].map(|text| text.parse().unwrap());
            let theirs = libprio(scale, bin_width);
            let sound = chi_square(ours(scale, bin_width), theirs);
            assert!(sound < 48.0, "{scale}: {sound}");
            let broken = chi_square(ours(wrong, bin_width), theirs);
            assert!(broken > 48.0, "{scale}: {broken}");
        }
    }
}
