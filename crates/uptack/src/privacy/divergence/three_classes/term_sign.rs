//! The sign of the term of a single histogram, however unlikely it is (`docs/accounting.md`, "The remaining rows").
//!
//! The probability of the histogram h in a crowd of y yes- and m no-owners is, up to a factor that the target does not change,
//! ∏1/h_c! times the coefficient of z^y in ∏(q_c + p_c·z)^h_c: every owner is one of either truth. Coefficients of such
//! a product are probabilities of a sum of binomials, tilted to where y is likely, and a sum of them is a short Fourier sum.

use std::f64::consts::TAU;

use super::nodes::{Polar, chord, falling_sum, mirrored, odd};
use crate::certified::binomial::{Binomial, Coin, window};
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::likelihood::{CrowdLaws, Likelihood};

/// What is left out of the Fourier sum, as a logarithm.
const NOISE: f64 = -36.0;

/// Whether a target with the weights `x` (each with its rounding error) makes the first law certainly the less likely one at the
/// histogram of all, which is given by the counts of the classes.
pub(super) fn is_negative(crowd: &CrowdLaws<3>, x: [(f64, f64); 3], counts: [i64; 3]) -> bool {
    let histogram = Histogram { crowd, counts };
    let Some(coefficients) = histogram.coefficients() else { return false };
    let (mut sum, mut slack) = (0.0, 0.0);
    for class in histogram.classes() {
        let (part, error) = coefficients.times(histogram.product_without(class));
        let (scale, (value, value_error)) = (counts[class] as f64, x[class]);
        sum += value * scale * part;
        slack += scale * (value_error * part + value.abs() * (error + 16.0 * ROUNDOFF * part));
    }
    sum < -slack
}

/// A histogram of all owners, the target included.
struct Histogram<'a> {
    crowd: &'a CrowdLaws<3>,
    counts: [i64; 3],
}

impl Histogram<'_> {
    /// The classes that somebody is in.
    fn classes(&self) -> impl Iterator<Item = usize> {
        (0..3).filter(move |class| self.counts[*class] > 0)
    }

    fn likelihood(&self, class: usize) -> Likelihood {
        self.crowd.laws.map(|law| law[class])
    }

    /// The coefficients with one owner less in each class that somebody is in: what all terms have in common.
    fn coefficients(&self) -> Option<Coefficients> {
        let one_less = |class: usize| (self.counts[class] as u64 - 1, self.likelihood(class));
        let classes = self.classes().map(one_less).filter(|(_, class)| class.yes + class.no > 0.0);
        Coefficients::new(&classes.collect::<Vec<_>>(), self.crowd.owners.yes)
    }

    /// The coefficients of ∏(q + p·z) over the classes that somebody is in, but for one: at most two.
    fn product_without(&self, class: usize) -> [f64; 3] {
        let others = self.classes().filter(|other| *other != class).map(|other| self.likelihood(other));
        others.fold([1.0, 0.0, 0.0], |[a, b, c], Likelihood { yes: p, no: q }| [a * q, b * q + a * p, c * q + b * p])
    }
}

/// The coefficients of z^k, z^(k−1) and z^(k−2) in ∏(q + p·z)^count, up to a factor, and how far each may be off.
struct Coefficients {
    values: [f64; 3],
    error: f64,
}

impl Coefficients {
    /// The coefficients for classes that owners reach; none where they leave the range of doubles.
    fn new(classes: &[(u64, Likelihood)], k: u64) -> Option<Self> {
        let tilt = tilt_to(classes, k as f64 - 1.0);
        let part = |(count, class): &(u64, Likelihood)| Binomial::new(*count, tilted_coin(*class, tilt));
        let parts: Vec<Binomial> = classes.iter().map(part).collect();
        let (probabilities, error) = probabilities(&parts, k as i64);
        Self::without_tilt(probabilities, error, tilt)
    }

    /// The coefficients from probabilities under a tilt, each of which may be off by `error`.
    fn without_tilt(probabilities: [f64; 3], error: f64, tilt: f64) -> Option<Self> {
        let factor = tilt.exp();
        let scales = [1.0, factor, factor * factor];
        let values = [0, 1, 2].map(|index: usize| probabilities[index] * scales[index]);
        let error = error * scales.iter().fold(1.0, |a: f64, b| a.max(*b));
        (error.is_finite() && values.iter().all(|value| value.is_finite())).then_some(Self { values, error })
    }

    /// The coefficient of z^k after multiplication by a polynomial of degree two, and how far it may be off.
    fn times(&self, polynomial: [f64; 3]) -> (f64, f64) {
        let value = polynomial.iter().zip(&self.values).map(|(one, other)| one * other).sum();
        (value, polynomial.iter().sum::<f64>() * self.error)
    }
}

/// The truth of an owner of a class as a coin, with a factor of e^`tilt` on *yes*.
fn tilted_coin(Likelihood { yes: p, no: q }: Likelihood, tilt: f64) -> Coin {
    if p > 0.0 && q > 0.0 { Coin::between(p, q * (-tilt).exp()) } else { Coin::between(p, q) }
}

/// The probabilities that a sum of binomials is k, k − 1 and k − 2, and how far each may be off: a Fourier sum around k − 1.
fn probabilities(parts: &[Binomial], k: i64) -> ([f64; 3], f64) {
    let nodes = nodes_around(parts, k);
    let step = TAU / nodes as f64;
    // Slightly less, which covers rounding.
    let variance: f64 = parts.iter().map(|part| part.mean() * part.coin.failure).sum::<f64>() * (1.0 - 1e-9);
    let mut sums = NeighbourSums::new(parts);
    for node in 0..=nodes / 2 {
        let theta = node as f64 * step;
        if variance * chord(theta) > -NOISE {
            sums.error += 2.0 * falling_sum(theta, step, |theta| variance * chord(theta));
            break;
        }
        sums.add(generating(parts, theta, k - 1), mirrored(node), theta);
    }
    sums.means(nodes as f64)
}

/// Fourier sums for three neighbouring coefficients, around the middle one, and how far each may be off.
struct NeighbourSums {
    owners: f64,
    values: [f64; 3],
    error: f64,
}

impl NeighbourSums {
    fn new(parts: &[Binomial]) -> Self {
        let owners: u64 = parts.iter().map(|part| part.trials).sum();
        Self { owners: owners as f64, values: [0.0; 3], error: 0.0 }
    }

    /// Adds a value of the generating function, which stands for this many nodes.
    fn add(&mut self, Polar { size, angle }: Polar, nodes: f64, theta: f64) {
        let size = nodes * size;
        for (index, sum) in self.values.iter_mut().enumerate() {
            *sum += size * (angle - theta * (1.0 - index as f64)).cos();
        }
        self.error += size * ROUNDOFF * (64.0 + 16.0 * self.owners * theta);
    }

    /// The means over all nodes, and how far each may be off, what folds back included.
    fn means(&self, nodes: f64) -> ([f64; 3], f64) {
        (self.values.map(|value| value.max(0.0) / nodes), self.error / nodes + 4.0 * NOISE.exp())
    }
}

/// Enough nodes for nothing but noise to fold back to k, k − 1 and k − 2; odd.
fn nodes_around(parts: &[Binomial], k: i64) -> i64 {
    let (low, high) = window(parts, NOISE);
    odd((k - low as i64).max(high as i64 - k + 2).max(1) + 3)
}

/// The generating function of a sum of binomials on the circle, without the phase of the center.
fn generating(parts: &[Binomial], theta: f64, center: i64) -> Polar {
    let (mut logarithm, mut angle) = (0.0, -theta * center as f64);
    for part in parts {
        let Coin { success, failure } = part.coin;
        logarithm += 0.5 * part.trials as f64 * (-(2.0 * success * failure * chord(theta)).min(1.0)).ln_1p();
        angle += part.trials as f64 * (success * theta.sin()).atan2(success * theta.cos() + failure);
    }
    Polar { size: logarithm.exp(), angle }
}

/// The logarithm of the factor on p for which the mean number of successes is about `wanted`.
fn tilt_to(classes: &[(u64, Likelihood)], wanted: f64) -> f64 {
    let mut tilt = 0.0_f64;
    for _ in 0..60 {
        let (mean, variance) = tilted_moments(classes, tilt);
        let step = ((wanted - mean) / variance.max(1e-9)).clamp(-1.0, 1.0);
        tilt = (tilt + step).clamp(-60.0, 60.0);
        if step.abs() * variance.sqrt() < 1e-3 {
            break;
        }
    }
    tilt
}

/// Mean and variance of the number of successes under a tilt.
fn tilted_moments(classes: &[(u64, Likelihood)], tilt: f64) -> (f64, f64) {
    let (mut mean, mut variance) = (0.0, 0.0);
    for (count, class) in classes {
        let success = class.yes / (class.yes + class.no * (-tilt).exp());
        mean += *count as f64 * success;
        variance += *count as f64 * success * (1.0 - success);
    }
    (mean, variance)
}
