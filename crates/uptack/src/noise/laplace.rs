//! Discrete Laplace noise.
//!
//! # The law
//!
//! P(Z = k) = (1−a)/(1+a)·a^|k| over the whole numbers, a = e^(−1/t), t being the scale. Its variance is 2a/(1−a)². One draw
//! is the difference of two geometric ones, so that laws can be convolved with it without losing digits.
//!
//! # The sampler
//!
//! The construction is that of Canonne, Kamath and Steinke (*The Discrete Gaussian for Differential Privacy*, arXiv 2004.00010,
//! algorithms 1 and 2): an event of probability e^(−x) is decided by a run of events of rational probability, and the size of
//! the noise by such events. No float takes part, so the law drawn is the law stated. Aggregators, `tally --noise`,
//! simulations and audits all draw with it; a test compares it with libprio's sampler of the same law.
//!
//! # Its timing
//!
//! The sampler does not run in constant time, and no such promise is made. Attempts are rejected at random, and larger noise
//! takes more coins: every multiple of t costs about one more event of probability 1/e. So whoever can measure how long a draw
//! takes, or how many random bytes it reads, learns something about the size of the noise, though not its sign. The coins
//! read never depend on anybody's answer or on the sum. An aggregator draws inside the request that closes a batch, between
//! reading the database and sealing its share: the other aggregator and the collector see the duration of that whole request
//! through the network, and processes on the same machine may see more.

use super::chances::{Chances, CoinBytes, decays};
use super::scale::Scale;
use super::{ListedLaw, NoiseLaw};
use crate::coins::Coins;
use crate::error::{Error, Result};

/// The discrete Laplace law of scale t: P(Z = k) = (1−a)/(1+a)·a^|k| over the whole numbers, a = e^(−1/t).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DiscreteLaplace {
    scale: Scale,
}

impl DiscreteLaplace {
    pub(super) const LISTED: ListedLaw =
        ListedLaw { name: "laplace", document_name: "discrete-laplace", of_scale: NoiseLaw::laplace };

    /// The law of this scale.
    pub fn new(scale: Scale) -> Self {
        Self { scale }
    }

    pub(super) fn listed(&self) -> &'static ListedLaw {
        &Self::LISTED
    }

    /// t.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// a = e^(−1/t), by which the probability falls from one whole number to the next.
    pub fn decay(&self) -> f64 {
        self.power(1.0)
    }

    /// a^size.
    fn power(&self, size: f64) -> f64 {
        (-size / self.scale.to_f64()).exp()
    }

    /// 1 − a, without cancellation.
    pub(crate) fn gap(&self) -> f64 {
        -(-1.0 / self.scale.to_f64()).exp_m1()
    }

    /// 2a/(1−a)².
    pub fn variance(&self) -> f64 {
        2.0 * self.decay() / self.gap().powi(2)
    }

    /// t.
    pub(super) fn width(&self) -> f64 {
        self.scale.to_f64()
    }

    /// P(Z = value).
    pub(super) fn probability(&self, value: i64) -> f64 {
        self.gap() / (1.0 + self.decay()) * self.power(value.unsigned_abs() as f64)
    }

    /// P(Z ≥ value).
    pub(super) fn upper_tail(&self, value: i64) -> f64 {
        if value <= 0 {
            return 1.0 - self.upper_tail(1 - value);
        }
        self.power(value as f64) / (1.0 + self.decay())
    }

    /// P(Z_A + Z_B = value).
    pub(super) fn sum_probability(&self, value: i64) -> f64 {
        let (a, gap, size) = (self.decay(), self.gap(), value.unsigned_abs() as f64);
        let rest = (1.0 + a * a) / (1.0 + a);
        gap / ((1.0 + a) * (1.0 + a)) * (size * gap + rest) * self.power(size)
    }

    /// P(Z_A + Z_B ≥ value).
    pub(super) fn sum_tail_beyond(&self, value: i128) -> f64 {
        if value <= 0 {
            return 1.0 - self.sum_tail_beyond(1 - value);
        }
        let (a, gap, size) = (self.decay(), self.gap(), value as f64);
        let rest = (1.0 + a * a) / (1.0 + a) + a;
        (size * gap + rest) / ((1.0 + a) * (1.0 + a)) * self.power(size)
    }

    /// Σ P(Z_A + Z_B ≥ k) over k ≥ value, for a value above 0.
    pub(super) fn sum_of_tails(&self, value: i64) -> f64 {
        let (a, gap, size) = (self.decay(), self.gap(), value as f64);
        let rest = (1.0 + a * a) / (1.0 + a) + 2.0 * a;
        (size + rest / gap) / ((1.0 + a) * (1.0 + a)) * self.power(size)
    }

    /// Of both draws together: the moment generating function of one is 1/(1 − 4a·sinh²(tilt/2)/(1−a)²).
    pub(super) fn sum_cumulants(&self, tilt: f64) -> [f64; 3] {
        let half = (tilt / 2.0).sinh();
        // 2a/(1−a)² is the variance.
        let size = self.variance();
        let left = 1.0 - 2.0 * size * half * half;
        let (first, second) = (size * tilt.sinh() / left, size * tilt.cosh() / left);
        [-2.0 * (-2.0 * size * half * half).ln_1p(), 2.0 * first, 2.0 * (second + first * first)]
    }

    /// Of one draw: the product of (1−b)/(1−b·e^(±iω)) for the geometric draws up and down, b = a·e^(±tilt).
    #[inline]
    pub(super) fn tilted_characteristic(&self, tilt: f64, half_sine: f64, sine: f64) -> (f64, f64) {
        let rate = 1.0 / self.scale.to_f64();
        let geometric = |tilt: f64| {
            let (decay, gap) = ((tilt - rate).exp(), -(tilt - rate).exp_m1());
            let turned = 2.0 * decay * half_sine * half_sine;
            (-0.5 * (2.0 * turned / (gap * gap)).ln_1p(), (decay * sine).atan2(gap + turned))
        };
        let (up, down) = (geometric(tilt), geometric(-tilt));
        (up.0 + down.0, up.1 - down.1)
    }

    /// From 1/t on, the law has no moment generating function.
    pub(super) fn steepest_tilt(&self) -> f64 {
        (1.0 - 1e-9) / self.scale.to_f64()
    }

    /// Adds the difference of two geometric draws, by recursions of positive terms.
    pub(super) fn add_draw(&self, masses: &mut [f64]) {
        self.add_geometric(masses.iter_mut());
        self.add_geometric(masses.iter_mut().rev());
    }

    /// Adds an independent geometric draw, in the direction of the masses.
    fn add_geometric<'a>(&self, masses: impl Iterator<Item = &'a mut f64>) {
        let (decay, gap) = (self.decay(), self.gap());
        let mut before = 0.0;
        for mass in masses {
            *mass = gap * *mass + decay * before;
            before = *mass;
        }
    }

    /// Several draws, which share the bytes that are read at a time.
    pub(super) fn draw_many(&self, count: usize, coins: &mut impl Coins) -> Result<Vec<i64>> {
        let mut bytes = CoinBytes::new(coins);
        (0..count).map(|_| draw(self.scale, &mut bytes)).collect()
    }
}

/// A draw at scale t/s.
fn draw(scale: Scale, chances: &mut impl Chances) -> Result<i64> {
    loop {
        if let Some(value) = attempt(scale, chances)? {
            return Ok(value);
        }
    }
}

/// A number of law proportional to e^(−x/t) over 0, 1, …, divided by s, and a sign; `None` if the attempt has to be repeated.
fn attempt(scale: Scale, chances: &mut impl Chances) -> Result<Option<i64>> {
    let (t, s) = (u128::from(scale.numerator()), u128::from(scale.denominator()));
    let Some(number) = attempt_geometric(t, chances)? else { return Ok(None) };
    let size = i64::try_from(number / s).map_err(|_| Error::coins("the coins give noise beyond 2^63"))?;
    let negative = chances.happens(1, 2)?;
    // Zero would come up with either sign.
    Ok(match (negative, size) {
        (true, 0) => None,
        (true, size) => Some(-size),
        (false, size) => Some(size),
    })
}

/// A number of law proportional to e^(−x/t) over 0, 1, …; `None` if the attempt has to be repeated.
fn attempt_geometric(t: u128, chances: &mut impl Chances) -> Result<Option<u128>> {
    let start = chances.below(t)?;
    if !decays(start, t, chances)? {
        return Ok(None);
    }
    let mut turns = 0;
    while decays(1, 1, chances)? {
        turns += 1;
    }
    Ok(Some(start + t * turns))
}

#[cfg(test)]
mod tests {
    use super::super::chances::tests::{Listed, law_of};
    use super::*;
    use crate::coins::{CoinKey, DerivedCoins, SeededCoins};

    fn noise(scale: &str) -> DiscreteLaplace {
        DiscreteLaplace::new(scale.parse().unwrap())
    }

    #[test]
    fn the_variance_and_tails_are_those_of_the_law() {
        for scale in ["0.2", "1", "7.3"] {
            let noise = noise(scale);
            let sum: f64 = (-400..=400).map(|k| (k * k) as f64 * noise.probability(k)).sum();
            assert!((sum / noise.variance() - 1.0).abs() < 1e-10, "{scale}");
            for from in [-5, 0, 1, 4] {
                let tail: f64 = (from..=400).map(|k| noise.probability(k)).sum();
                assert!((tail - noise.upper_tail(from)).abs() < 1e-12, "{scale} {from}");
            }
        }
    }

    #[test]
    fn both_draws_together_are_a_convolution() {
        for scale in ["0.2", "1", "7.3"] {
            let noise = noise(scale);
            for value in [-30, -2, 0, 1, 5, 40] {
                let sum: f64 = (-600..=600).map(|k| noise.probability(k) * noise.probability(value - k)).sum();
                assert!((noise.sum_probability(value) / sum - 1.0).abs() < 1e-11, "{scale} {value}");
                let tail: f64 = (value..=900).map(|k| noise.sum_probability(k)).sum();
                assert!((noise.sum_tail_beyond(value.into()) / tail - 1.0).abs() < 1e-11, "{scale} {value}");
            }
        }
    }

    fn draw_seeded(noise: DiscreteLaplace, coins: &mut SeededCoins) -> i64 {
        noise.draw_many(1, coins).unwrap()[0]
    }

    /// All ways that an attempt can go, added up: of those that come to something, the law is the stated one but for what was
    /// given up.
    #[test]
    fn the_law_is_the_stated_one_path_by_path() {
        for scale in ["1", "1/3", "5/2", "3"] {
            let mut law = law_of(|path| attempt(scale.parse().unwrap(), path));
            let followed: f64 = law.values().sum();
            let given_up = 1.0 - followed;
            assert!(given_up < 1e-3, "{scale}: {followed}");
            law.remove(&None);
            let total: f64 = law.values().sum();
            for (value, probability) in law {
                let stated = noise(scale).probability(value.unwrap());
                let error = (probability / total - stated).abs();
                assert!(error <= given_up / total, "{scale} {value:?}: {probability} of {total}, {stated}");
            }
        }
    }

    /// χ² of the values within ±`most` and the two tails.
    fn chi_square(law: &DiscreteLaplace, drawn: &DiscreteLaplace, most: i64, draws: usize) -> f64 {
        chi_square_of(law, &drawn.draw_many(draws, &mut SeededCoins::new(3)).unwrap(), most)
    }

    /// The same for values that were drawn already.
    fn chi_square_of(law: &DiscreteLaplace, drawn: &[i64], most: i64) -> f64 {
        let (mut hits, draws) = (vec![0.0; 2 * most as usize + 3], drawn.len());
        for value in drawn {
            hits[(value.clamp(&(-most - 1), &(most + 1)) + most + 1) as usize] += 1.0;
        }
        let stated = |place: usize| {
            let value = place as i64 - most - 1;
            if value.abs() > most { law.upper_tail(most + 1) } else { law.probability(value) }
        };
        let term = |(place, &hits): (usize, &f64)| {
            let expected = stated(place) * draws as f64;
            (hits - expected).powi(2) / expected
        };
        hits.iter().enumerate().map(term).sum()
    }

    /// α = 1e-6 for each scale: with 10 degrees of freedom χ² is above 48 with a smaller probability. A scale that is off by a
    /// tenth is far above it.
    #[test]
    fn draws_have_the_stated_law_and_a_wrong_scale_is_seen() {
        for (scale, wrong) in [("1", "0.9"), ("2.5", "2.25"), ("10", "11"), ("7/3", "2.1")] {
            let (law, wrong) = (noise(scale), noise(wrong));
            let sound = chi_square(&law, &law, 4, 200_000);
            assert!(sound < 48.0, "{scale}: {sound}");
            let broken = chi_square(&law, &wrong, 4, 200_000);
            assert!(broken > 100.0, "{scale}: {broken}");
        }
    }

    /// Each draw has a key of its own, as the batches of an aggregator do. α = 1e-6 for each scale, as above; a scale that is off
    /// by a tenth is seen.
    #[test]
    fn draws_from_derived_coins_have_the_stated_law_key_by_key() {
        let mut keys = SeededCoins::new(4);
        for (scale, wrong) in [("1", "0.9"), ("2.5", "2.25")] {
            let (law, wrong) = (noise(scale), noise(wrong));
            let drawn = (0..100_000).map(|_| {
                let mut key = [0; 32];
                keys.fill(&mut key).unwrap();
                law.draw_many(1, &mut DerivedCoins::new(CoinKey::from_secret_bytes(key))).unwrap()[0]
            });
            let drawn: Vec<i64> = drawn.collect();
            let (sound, broken) = (chi_square_of(&law, &drawn, 4), chi_square_of(&wrong, &drawn, 4));
            assert!(sound < 48.0 && broken > 100.0, "{scale}: {sound} {broken}");
        }
    }

    /// Pinned, and computed by another program: a version that drew other noise from the same key would, after a restore, add a
    /// second draw to a batch.
    #[test]
    fn the_noise_of_a_key_stays_what_it_was() {
        let drawn = noise("2.5").draw_many(12, &mut DerivedCoins::new(CoinKey::from_secret_bytes([7; 32]))).unwrap();
        assert_eq!(drawn, [-2, 0, 1, 0, 4, -2, -5, -1, 5, 1, -1, 1]);
    }

    /// Smallest violation seen: a scale that is off by about 5 %. α = 2·10⁻⁵ in all (each |z| < 4.4).
    #[test]
    fn draws_from_the_system_have_the_variance_of_their_scale_and_no_bias() {
        for scale in ["0.3", "1", "7/3", "250"] {
            let noise = noise(scale);
            let drawn = noise.draw_many(20_000, &mut crate::OsCoins).unwrap();
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

    #[test]
    fn failing_coins_give_no_noise() {
        assert!(noise("1").draw_many(1, &mut Listed(Vec::new())).is_err());
    }

    #[test]
    fn the_ends_of_the_scales_can_be_drawn() {
        let mut coins = SeededCoins::new(8);
        assert!((0..100).all(|_| draw_seeded(noise("0.01"), &mut coins) == 0));
        let large: Vec<i64> = (0..100).map(|_| draw_seeded(noise("1e9"), &mut coins)).collect();
        assert!(large.iter().any(|value| value.abs() > 100_000_000) && large.iter().any(|value| *value < 0));
    }
}
