//! Sums of many independent whole numbers. Every weighted count of answers is such a sum.

use std::f64::consts::PI;

use super::draws::{Cumulants, Draws, Sines, Tilted};
use super::normal;
use crate::certified::fourier::{Complex, Fourier};
use crate::certified::root::newton_step;
use crate::noise::NoiseLaw;

/// The sum of several groups of independent draws.
///
/// All that is used of a group is its cumulant generating function, on the real axis for the saddle point and on the
/// imaginary axis for the exact law; anything else that has one can be added to the sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatticeSum<'a, const GROUPS: usize = 2> {
    pub(crate) groups: [Draws<'a>; GROUPS],
    pub(crate) noise: Option<AddedNoise>,
}

/// Independent draws of noise that are added to a sum: two for each published number that it is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddedNoise {
    pub(crate) law: NoiseLaw,
    pub(crate) draws: u32,
}

/// P(sum ≥ x), P(sum ≤ x) and P(sum = x).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tails {
    pub(crate) upper: f64,
    pub(crate) lower: f64,
    pub(crate) point: f64,
}

/// Which tail is meant: that of greater or that of smaller values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Upper,
    Lower,
}

impl Side {
    /// The direction in which the tail lies.
    pub(crate) fn sign(self) -> f64 {
        match self {
            Self::Upper => 1.0,
            Self::Lower => -1.0,
        }
    }

    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::Upper => Self::Lower,
            Self::Lower => Self::Upper,
        }
    }
}

impl Tails {
    const BELOW_ALL: Self = Self { upper: 1.0, lower: 0.0, point: 0.0 };
    const ABOVE_ALL: Self = Self { upper: 0.0, lower: 1.0, point: 0.0 };

    /// The tail on one side.
    pub(crate) fn on(&self, side: Side) -> f64 {
        match side {
            Side::Upper => self.upper,
            Side::Lower => self.lower,
        }
    }

    /// The tails at `x`, given P(sum ≥ value) and P(sum ≤ value) as a function.
    pub(super) fn at(x: i128, tail: impl Fn(i128, Side) -> f64) -> Self {
        let (upper, lower) = (tail(x, Side::Upper), tail(x, Side::Lower));
        // Either difference is exact in theory; the one on the side of the smaller tail loses fewer digits.
        let point = if upper < lower { upper - tail(x + 1, Side::Upper) } else { lower - tail(x - 1, Side::Lower) };
        Self { upper, lower, point: point.max(0.0) }
    }
}

/// The probabilities of all values that matter, and their sums from either side.
#[derive(Clone, Debug)]
pub(crate) struct ExactLaw {
    first: i128,
    masses: Vec<f64>,
    at_least: Vec<f64>,
    at_most: Vec<f64>,
}

/// An exact law leaves out less than e^−42 on either side, which is below 1e-18.
const NEGLIGIBLE: f64 = 42.0;
/// The same where tails are far.
const FAR_NEGLIGIBLE: f64 = 120.0;
/// How many bounds on the reach of noise are compared. Fewer make windows longer: by 3 % with 64.
const TILTS: u32 = 64;
/// More than any count.
const ENDLESS: i128 = i128::MAX / 4;
/// Below this the masses of the plain transform are too inexact, in relation to themselves, and tilted ones are used.
const WELL_RESOLVED: f64 = 1e-7;

impl<const GROUPS: usize> LatticeSum<'_, GROUPS> {
    pub(crate) fn mean(&self) -> f64 {
        self.cumulants(0.0).mean
    }

    pub(crate) fn variance(&self) -> f64 {
        self.cumulants(0.0).variance
    }

    /// The largest step that one draw can make.
    pub(crate) fn range(&self) -> f64 {
        self.groups.iter().map(Draws::range).fold(0.0, f64::max)
    }

    /// The sum without its noise, which [`noisy`](super::noisy) adds again.
    pub(crate) fn without_noise(&self) -> Self {
        Self { noise: None, ..*self }
    }

    fn cumulants(&self, tilt: f64) -> Cumulants {
        let groups = self.groups.iter().map(|group| group.cumulants(tilt));
        let noise = self.noise.map(|noise| noise.cumulants(tilt));
        groups.chain(noise).fold(Cumulants::default(), Cumulants::plus)
    }

    /// The least and the greatest value of the sum; with noise, more than any count on either side.
    fn ends(&self) -> (i128, i128) {
        if self.noise.is_some() {
            return (-ENDLESS, ENDLESS);
        }
        self.count_ends()
    }

    /// The least and the greatest value without noise.
    fn count_ends(&self) -> (i128, i128) {
        let ends = self.groups.iter().map(Draws::ends);
        ends.fold((0, 0), |(low, high), (least, greatest)| (low + least, high + greatest))
    }

    /// How many values an exact law has to hold.
    pub(crate) fn exact_size(&self) -> f64 {
        let (low, high) = self.window(NEGLIGIBLE);
        (high - low) as f64 + 1.0
    }

    /// All values except for a probability below e^−`exponent` on either side: by Bernstein's inequality for the draws, and by
    /// Chernoff's for the noise, each within its own range.
    fn window(&self, exponent: f64) -> (i128, i128) {
        let (low, high) = self.without_noise().draws_window(exponent);
        let reach = self.noise.map_or(0, |noise| noise.reach(exponent));
        (low - reach, high + reach)
    }

    fn draws_window(&self, exponent: f64) -> (i128, i128) {
        let Cumulants { mean, variance, .. } = self.cumulants(0.0);
        let third = exponent * self.range() / 3.0;
        let width = third + (third * third + 2.0 * variance * exponent).sqrt() + 1.0;
        let (low, high) = self.ends();
        (((mean - width).floor() as i128).clamp(low, high), ((mean + width).ceil() as i128).clamp(low, high))
    }

    /// The law by inverting the characteristic function. Masses are right to about 1e-14, and in `far` tails to about
    /// 1e-9 of themselves down to 1e-20.
    pub(crate) fn exact(&self, far: bool) -> ExactLaw {
        let (first, last) = self.window(if far { FAR_NEGLIGIBLE } else { NEGLIGIBLE });
        let mut masses = self.masses(first, last, 0.0);
        if far {
            self.resolve_tail(first, &mut masses, Side::Lower);
            self.resolve_tail(first, &mut masses, Side::Upper);
        }
        ExactLaw::new(first, masses)
    }

    /// Replaces small masses on one side of the mean by those of a law that is tilted to that side.
    fn resolve_tail(&self, first: i128, masses: &mut [f64], side: Side) {
        let mean = self.mean();
        let last = first + masses.len() as i128 - 1;
        let resolved = self.masses(first, last, self.tail_tilt(side));
        for ((mass, resolved), value) in masses.iter_mut().zip(resolved).zip(first..) {
            let is_on_side = side.sign() * (value as f64 - mean) > 0.0;
            if is_on_side && *mass < WELL_RESOLVED {
                *mass = resolved;
            }
        }
    }

    /// The tilt that moves the mean several standard deviations to one side, but not to the very end of the range, where the tilted
    /// law would have only one value.
    fn tail_tilt(&self, side: Side) -> f64 {
        let Cumulants { mean, variance, .. } = self.cumulants(0.0);
        let (low, high) = self.ends();
        let room = match side {
            Side::Upper => high as f64 - mean,
            Side::Lower => mean - low as f64,
        };
        self.tilt_for(mean + side.sign() * (0.8 * room).min(6.5 * variance.sqrt()))
    }

    /// The masses of `first..=last`, transformed under a tilt and tilted back.
    fn masses(&self, first: i128, last: i128, tilt: f64) -> Vec<f64> {
        let length = (last - first + 1) as usize;
        let size = length.next_power_of_two().max(2);
        let mut values = Spectrum::new(self, first, size, tilt).whole();
        Fourier::of(size).forward(&mut values);
        let mut masses: Vec<f64> = values[..length].iter().map(|value| value.real.max(0.0)).collect();
        if tilt != 0.0 {
            self.undo_tilt(first, &mut masses, tilt);
        }
        masses
    }

    fn undo_tilt(&self, first: i128, masses: &mut [f64], tilt: f64) {
        let log_total = self.cumulants(tilt).value;
        for (mass, value) in masses.iter_mut().zip(first..) {
            *mass *= (log_total - tilt * value as f64).exp();
        }
    }

    /// A bound on the tail at `x` that lies away from the mean, and which tail that is.
    pub(crate) fn tail_bound(&self, x: i128) -> (f64, Side) {
        let (low, high) = self.ends();
        if x < low || x > high {
            return (0.0, if x > high { Side::Upper } else { Side::Lower });
        }
        let tilt = self.tilt_for(x as f64);
        let bound = (self.cumulants(tilt).value - tilt * x as f64).exp().min(1.0);
        (bound, if tilt > 0.0 { Side::Upper } else { Side::Lower })
    }

    /// The tails at `x` by the Lugannani–Rice formula for lattice variables (Daniels' second continuity correction,
    /// 1987). Its relative error falls like range²/variance.
    pub(crate) fn saddle_point(&self, x: i128) -> Tails {
        Tails::at(x, |x, side| self.saddle_point_from(x, side))
    }

    /// P(sum ≥ x) or P(sum ≤ x).
    fn saddle_point_from(&self, x: i128, side: Side) -> f64 {
        self.certain_tail(x, side).unwrap_or_else(|| self.saddle_point_beyond(x as f64 - side.sign() * 0.5, side))
    }

    /// The same if it is certain, because all values are on one side of `x`.
    fn certain_tail(&self, x: i128, side: Side) -> Option<f64> {
        let (low, high) = self.ends();
        let (is_all, is_none) = match side {
            Side::Upper => (x <= low, x > high),
            Side::Lower => (x >= high, x < low),
        };
        if is_all { Some(1.0) } else { is_none.then_some(0.0) }
    }

    /// P(sum > at) or P(sum < at), where `at` lies half way between two values.
    pub(super) fn saddle_point_beyond(&self, at: f64, side: Side) -> f64 {
        let tilt = self.tilt_for(at);
        let cumulants = self.cumulants(tilt);
        let deviation = (2.0 * (tilt * at - cumulants.value)).max(0.0).sqrt().copysign(tilt);
        // Near the mean both terms of the correction are large, and cancel.
        if deviation.abs() < 1e-3 {
            return self.normal_beyond(at, side);
        }
        let lattice = 2.0 * (tilt / 2.0).sinh() * cumulants.variance.sqrt();
        let correction = normal::density(deviation) * (1.0 / lattice - 1.0 / deviation);
        (normal::upper_tail(side.sign() * deviation) + side.sign() * correction).clamp(0.0, 1.0)
    }

    /// The same of a normal law with this mean and variance.
    fn normal_beyond(&self, at: f64, side: Side) -> f64 {
        let Cumulants { mean, variance, .. } = self.cumulants(0.0);
        normal::upper_tail(side.sign() * (at - mean) / variance.sqrt())
    }

    /// The tilt under which the mean is `target`, by Newton's method safeguarded by bisection.
    fn tilt_for(&self, target: f64) -> f64 {
        let (mut low, mut high) = (-self.steepest_tilt(), self.steepest_tilt());
        let mut tilt = 0.0;
        for _ in 0..100 {
            let Cumulants { mean, variance, .. } = self.cumulants(tilt);
            if mean < target {
                low = tilt
            } else {
                high = tilt
            }
            let next = newton_step((low, high), tilt, mean - target, variance);
            if (next - tilt).abs() <= 1e-14 * tilt.abs().max(1e-3 / self.range().max(1.0)) {
                return next;
            }
            tilt = next;
        }
        tilt
    }

    /// The largest tilt that is tried; beyond that of the noise there is no moment generating function.
    fn steepest_tilt(&self) -> f64 {
        let most = 50.0 / self.range().max(1.0);
        self.noise.map_or(most, |noise| most.min(noise.law.steepest_tilt()))
    }
}

/// The characteristic function of a tilted sum less its first value, over `size`, at the angles 2π·index/size.
struct Spectrum<'a, const GROUPS: usize> {
    groups: [Tilted<'a>; GROUPS],
    noise: Option<AddedNoise>,
    tilt: f64,
    size: usize,
    /// How far the first value is from the sum of the groups' bases.
    shift: f64,
    sines: &'static Sines,
}

impl<'a, const GROUPS: usize> Spectrum<'a, GROUPS> {
    fn new(sum: &'a LatticeSum<'_, GROUPS>, first: i128, size: usize, tilt: f64) -> Self {
        let groups = sum.groups.each_ref().map(|group| group.tilted(tilt));
        let start: i128 = groups.iter().map(|group| i128::from(group.base) * i128::from(group.count)).sum();
        let shift = (first - start).rem_euclid(size as i128) as f64;
        Self { groups, noise: sum.noise, tilt, size, shift, sines: Sines::of(size) }
    }

    /// The values at all angles; the second half mirrors the first.
    fn whole(&self) -> Vec<Complex> {
        let size = self.size;
        let mut values = vec![Complex::ZERO; size];
        for index in 0..=size / 2 {
            let Some(value) = self.at(index) else { continue };
            values[index] = value;
            if index > 0 && index < size / 2 {
                values[size - index] = value.conjugate();
            }
        }
        values
    }

    /// The value at one angle; none if it is negligible.
    #[inline]
    fn at(&self, index: usize) -> Option<Complex> {
        let single = self.groups.each_ref().map(|group| group.characteristic(self.sines, index as i64));
        let (noise_size, noise_angle) = self.noise_at(index);
        let sizes = self.groups.iter().zip(single).map(|(group, single)| group.log_size(single));
        let log_size = sizes.sum::<f64>() + noise_size;
        (log_size > -NEGLIGIBLE).then(|| {
            let (imaginary, real) = (self.angle(index, single) + noise_angle).sin_cos();
            Complex { real, imaginary }.scaled(log_size.exp() / self.size as f64)
        })
    }

    /// The logarithm of the size of the noise's characteristic function at one angle, and its angle.
    #[inline]
    fn noise_at(&self, index: usize) -> (f64, f64) {
        let Some(AddedNoise { law, draws }) = self.noise else { return (0.0, 0.0) };
        let (half_sine, sine) = (self.sines.sine(index as i64), self.sines.sine(2 * index as i64));
        let (log_size, angle) = law.tilted_characteristic(self.tilt, half_sine, sine);
        (f64::from(draws) * log_size, f64::from(draws) * angle)
    }

    /// The angle of the value, given the groups' characteristic functions of one draw.
    #[inline]
    fn angle(&self, index: usize, single: [(f64, f64); GROUPS]) -> f64 {
        let size = self.size as f64;
        let turned: f64 = self.groups.iter().zip(single).map(|(group, single)| group.angle(single)).sum();
        turned - 2.0 * PI * ((index as f64 * self.shift) % size) / size
    }
}

impl AddedNoise {
    /// The cumulants of all draws together.
    fn cumulants(&self, tilt: f64) -> Cumulants {
        // The law knows those of two draws.
        let [value, mean, variance] = self.law.sum_cumulants(tilt).map(|part| part * f64::from(self.draws) / 2.0);
        Cumulants { value, mean, variance }
    }

    /// All draws together are beyond this with a probability below e^−`exponent` on either side, by the best of some Chernoff bounds.
    fn reach(&self, exponent: f64) -> i128 {
        let steepest = self.law.steepest_tilt();
        let tilts = (1..TILTS).map(|step| steepest * f64::from(step) / f64::from(TILTS));
        let bounds = tilts.map(|tilt| (self.cumulants(tilt).value + exponent) / tilt);
        bounds.fold(f64::INFINITY, f64::min).ceil() as i128
    }
}

/// Replaces each number by the sum of those so far.
fn add_up_in_order<'a>(numbers: impl Iterator<Item = &'a mut f64>) {
    let mut sum = 0.0;
    for number in numbers {
        sum += *number;
        *number = sum;
    }
}

impl ExactLaw {
    pub(super) fn new(first: i128, masses: Vec<f64>) -> Self {
        let (mut at_least, mut at_most) = (masses.clone(), masses.clone());
        add_up_in_order(at_least.iter_mut().rev());
        add_up_in_order(at_most.iter_mut());
        Self { first, masses, at_least, at_most }
    }

    /// The least value, and the probabilities from there on.
    pub(super) fn parts(&self) -> (i128, &[f64]) {
        (self.first, &self.masses)
    }

    /// The values with their probabilities.
    pub(super) fn values(&self) -> impl Iterator<Item = (i128, f64)> + '_ {
        (self.first..).zip(self.masses.iter().copied())
    }

    /// The tails at `x`.
    pub(crate) fn tails(&self, x: i128) -> Tails {
        let offset = x - self.first;
        match usize::try_from(offset).ok().filter(|&index| index < self.masses.len()) {
            Some(index) => Tails { upper: self.at_least[index], lower: self.at_most[index], point: self.masses[index] },
            None if offset < 0 => Tails::BELOW_ALL,
            None => Tails::ABOVE_ALL,
        }
    }

    /// The least value whose lower tail is at least one half.
    pub(crate) fn median(&self) -> i128 {
        let index = self.at_most.partition_point(|&lower| lower < 0.5).min(self.masses.len() - 1);
        self.first + index as i128
    }

    /// The innermost value whose tail on this side is at most `tail`, with that tail; none if every tail is larger.
    pub(crate) fn end(&self, side: Side, tail: f64) -> Option<(i128, f64)> {
        match side {
            Side::Upper => self.high_end(tail),
            Side::Lower => self.low_end(tail),
        }
    }

    /// The greatest value whose lower tail is at most `tail`, with that tail.
    fn low_end(&self, tail: f64) -> Option<(i128, f64)> {
        let index = self.at_most.partition_point(|&lower| lower <= tail).checked_sub(1)?;
        Some((self.first + index as i128, self.at_most[index]))
    }

    /// The least value whose upper tail is at most `tail`, with that tail.
    fn high_end(&self, tail: f64) -> Option<(i128, f64)> {
        let index = self.at_least.partition_point(|&upper| upper > tail);
        Some((self.first + index as i128, *self.at_least.get(index)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certified::binomial::{Binomial, Coin};

    /// The law by convolving draw after draw.
    fn convolved(sum: &LatticeSum<'_>) -> (i128, Vec<f64>) {
        let lows = sum.groups.map(|group| *group.values.iter().min().unwrap());
        let low: i128 = sum.groups.iter().zip(lows).map(|(g, low)| i128::from(low) * i128::from(g.count)).sum();
        let most: i64 = sum.groups.iter().map(|g| g.count as i64 * g.range() as i64).sum();
        let mut law = vec![0.0; most as usize + 1];
        law[0] = 1.0;
        for (group, low) in sum.groups.iter().zip(lows) {
            for _ in 0..group.count {
                let mut next = vec![0.0; law.len()];
                for (at, mass) in law.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
                    for (value, part) in group.values.iter().zip(group.masses).filter(|(_, part)| **part > 0.0) {
                        next[at + (value - low) as usize] += mass * part;
                    }
                }
                law = next;
            }
        }
        (low, law)
    }

    fn sum<'a>(values: &'a [i64], yes: (u64, &'a [f64]), no: (u64, &'a [f64])) -> LatticeSum<'a> {
        LatticeSum { groups: [yes, no].map(|(count, masses)| Draws { count, values, masses }), noise: None }
    }

    #[test]
    fn exact_laws_agree_with_convolution() {
        for sum in [
            sum(&[0, 1], (5, &[0.7, 0.3]), (12, &[0.95, 0.05])),
            sum(&[0, 1], (9, &[0.0, 1.0]), (3, &[1.0, 0.0])),
            sum(&[0, 1], (10, &[0.2, 0.8]), (50, &[0.8, 0.2])),
            sum(&[-3, 0, 8], (11, &[0.3, 0.5, 0.2]), (0, &[0.1, 0.2, 0.7])),
            sum(&[0, 1, 5, 16], (20, &[0.25, 0.25, 0.25, 0.25]), (40, &[0.001, 0.499, 0.4, 0.1])),
        ] {
            let (low, slow) = convolved(&sum);
            for far in [false, true] {
                let fast = sum.exact(far);
                let (mut upper, mut lower) = (1.0, 0.0);
                for (index, mass) in slow.iter().enumerate() {
                    lower += mass;
                    let tails = fast.tails(low + index as i128);
                    assert!((tails.point - mass).abs() < 1e-14, "{sum:?} {index}: {tails:?} {mass}");
                    assert!((tails.upper - upper).abs() < 1e-13 && (tails.lower - lower).abs() < 1e-13);
                    let relative = (tails.point / mass - 1.0).abs();
                    assert!(!far || *mass < 1e-20 || relative < 1e-6, "{sum:?} {index}: {relative} of {mass}");
                    upper -= mass;
                }
            }
        }
    }

    #[test]
    fn a_rare_value_in_a_huge_crowd_is_as_exact() {
        let sum = sum(&[0, 1], (0, &[0.5, 0.5]), (1_000_000_000, &[1.0 - 1e-6, 1e-6]));
        let law = sum.exact(false);
        for hits in [850i128, 1000, 1150] {
            let mass = Binomial::new(1_000_000_000, Coin::of(1e-6)).probability(hits as u64).value;
            assert!((law.tails(hits).point / mass - 1.0).abs() < 1e-9, "{hits}");
        }
    }

    /// Where saddle points take over, at variance/range² = 250, the relative error of every tail is below 0.6·range²/variance:
    /// a margin of ¾·range²/variance is enough, and more than that beyond.
    #[test]
    fn saddle_points_meet_the_exact_law_where_they_take_over() {
        let sums = [
            sum(&[0, 1], (100, &[0.2, 0.8]), (1500, &[0.8, 0.2])),
            sum(&[0, 1], (50, &[0.5, 0.5]), (250_000, &[0.999, 0.001])),
            sum(&[0, 1], (0, &[0.5, 0.5]), (250_000_000, &[1.0 - 1e-6, 1e-6])),
            sum(&[0, 1, 2], (2100, &[0.4999, 0.5, 0.0001]), (2000, &[0.0001, 0.5, 0.4999])),
            sum(&[0, 1, 12], (280, &[0.001, 0.5, 0.499]), (74_000, &[0.499, 0.5, 0.001])),
            sum(&[0, 3, 8], (800, &[0.25, 0.5, 0.25]), (1200, &[0.3, 0.5, 0.2])),
        ];
        for sum in sums {
            let law = sum.exact(true);
            let size = sum.variance() / (sum.range() * sum.range());
            assert!((240.0..300.0).contains(&size), "{size}");
            for z in -65..=65 {
                let x = (sum.mean() + f64::from(z) / 10.0 * sum.variance().sqrt()).round() as i128;
                let (fast, slow) = (sum.saddle_point(x), law.tails(x));
                for (fast, slow) in [(fast.upper, slow.upper), (fast.lower, slow.lower)] {
                    assert!((fast / slow - 1.0).abs() * size < 0.6, "{sum:?} at {z}: {fast} {slow}, size {size}");
                }
            }
        }
    }

    fn with_noise(sum: LatticeSum<'static>, scale: &str, draws: u32) -> LatticeSum<'static> {
        LatticeSum { noise: Some(AddedNoise { law: NoiseLaw::laplace(scale.parse().unwrap()), draws }), ..sum }
    }

    /// Noise in the transform is noise added draw by draw, which loses no digits.
    #[test]
    fn many_draws_of_noise_agree_with_convolution() {
        let count = sum(&[0, 1], (10, &[0.2, 0.8]), (50, &[0.9, 0.1]));
        for (scale, draws) in [("0.3", 4), ("2", 4), ("2", 6), ("1", 24), ("3", 200)] {
            let noisy = with_noise(count, scale, draws);
            let law = noisy.noise.unwrap().law;
            for far in [false, true] {
                let (first, last) = noisy.window(FAR_NEGLIGIBLE);
                let mut slow = vec![0.0; (last - first + 1) as usize];
                for (value, mass) in count.exact(true).values() {
                    slow[(value - first) as usize] = mass;
                }
                (0..draws).for_each(|_| law.add_draw(&mut slow));
                let slow = ExactLaw::new(first, slow);
                let fast = noisy.exact(far);
                for z in -80..=80 {
                    let x = (noisy.mean() + f64::from(z) / 10.0 * noisy.variance().sqrt()).round() as i128;
                    let (fast, slow) = (fast.tails(x), slow.tails(x));
                    for (fast, slow) in [(fast.upper, slow.upper), (fast.lower, slow.lower)] {
                        assert!((fast - slow).abs() < 2e-13, "{scale} {draws} {z}: {fast} {slow}");
                        let relative = (fast / slow - 1.0).abs();
                        assert!(!far || slow < 1e-14 || relative < 1e-6, "{scale} {draws} {z}: {relative} of {slow}");
                    }
                }
            }
        }
    }

    /// Where noise is all that matters, the relative error of a tail is below half of one over the number of draws.
    #[test]
    fn saddle_points_of_noise_err_by_its_draws() {
        let nobody = sum(&[0, 1], (0, &[0.5, 0.5]), (0, &[0.5, 0.5]));
        for draws in [4, 6, 10, 40, 200] {
            let noisy = with_noise(nobody, "20", draws);
            let law = noisy.exact(true);
            for z in -50..=50 {
                let x = (f64::from(z) / 10.0 * noisy.variance().sqrt()).round() as i128;
                let (fast, slow) = (noisy.saddle_point(x), law.tails(x));
                for (fast, slow) in [(fast.upper, slow.upper), (fast.lower, slow.lower)] {
                    let error = (fast / slow - 1.0).abs() * f64::from(draws);
                    assert!(error < 0.5, "{draws} at {z}: {fast} {slow}");
                }
            }
        }
    }
}
