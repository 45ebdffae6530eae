//! Independent draws of one law on whole numbers, plain and under an exponential tilt.

use super::fourier::Sines;

/// Independent draws of one law on whole numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws<'a> {
    /// How many are drawn.
    pub(crate) count: u64,
    /// The numbers, each different.
    pub(crate) values: &'a [i64],
    /// Their probabilities.
    pub(crate) masses: &'a [f64],
}

/// A cumulant generating function with its first two derivatives.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cumulants {
    pub(super) value: f64,
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Draws<'_> {
    /// The likeliest value under an exponential tilt. Everything is computed relative to it, so that
    /// a large count of a nearly certain law loses no digits.
    fn base(&self, tilt: f64) -> i64 {
        let weight = |index: usize| self.masses[index].ln() + tilt * self.values[index] as f64;
        let likeliest = (0..self.values.len()).max_by(|&a, &b| weight(a).total_cmp(&weight(b)));
        self.values[likeliest.expect("a law has values")]
    }

    pub(super) fn cumulants(&self, tilt: f64) -> Cumulants {
        if self.count == 0 {
            return Cumulants::default();
        }
        let base = self.base(tilt);
        let (mut growth, mut first, mut second) = (0.0, 0.0, 0.0);
        for (&value, &mass) in self.values.iter().zip(self.masses) {
            let distance = (value - base) as f64;
            let change = mass * (tilt * distance).exp_m1();
            growth += change;
            first += distance * (mass + change);
            second += distance * distance * (mass + change);
        }
        let (count, total) = (self.count as f64, 1.0 + growth);
        let mean = first / total;
        Cumulants {
            value: count * (growth.ln_1p() + tilt * base as f64),
            mean: count * (mean + base as f64),
            variance: count * (second / total - mean * mean).max(0.0),
        }
    }

    pub(super) fn tilted(&self, tilt: f64) -> Tilted<'_> {
        let base = self.base(tilt);
        let weights: Vec<f64> =
            self.values.iter().zip(self.masses).map(|(&v, &m)| m * (tilt * (v - base) as f64).exp()).collect();
        let total: f64 = weights.iter().sum();
        let masses = weights.into_iter().map(|weight| weight / total).collect();
        Tilted { count: self.count, values: self.values, masses, base }
    }

    pub(super) fn ends(&self) -> (i128, i128) {
        let count = i128::from(self.count);
        let possible = || {
            self.values.iter().zip(self.masses).filter(|(_, mass)| **mass > 0.0).map(|(value, _)| i128::from(*value))
        };
        (possible().min().unwrap_or(0) * count, possible().max().unwrap_or(0) * count)
    }

    pub(super) fn range(&self) -> f64 {
        let (low, high) = (self.values.iter().min(), self.values.iter().max());
        low.zip(high).map_or(0.0, |(low, high)| (high - low) as f64)
    }
}

/// Draws under an exponential tilt. Their characteristic function is that of the distance from `base`.
pub(super) struct Tilted<'a> {
    pub(super) count: u64,
    values: &'a [i64],
    masses: Vec<f64>,
    pub(super) base: i64,
}

impl Tilted<'_> {
    /// E\[e^(i·angle·(value − base))\] − 1 of one draw, at the angle 2π·turn/size.
    #[inline]
    pub(super) fn characteristic(&self, sines: &Sines, turn: i64) -> (f64, f64) {
        let (mut re, mut im) = (0.0, 0.0);
        for (&value, &mass) in self.values.iter().zip(&self.masses) {
            let multiple = turn * (value - self.base);
            let half = sines.sine(multiple);
            re -= 2.0 * mass * half * half;
            im += mass * sines.sine(2 * multiple);
        }
        (re, im)
    }

    /// The logarithm of the size of all draws' characteristic function, given that of one.
    #[inline]
    pub(super) fn log_size(&self, (re, im): (f64, f64)) -> f64 {
        let count = self.count as f64;
        if count == 0.0 { 0.0 } else { 0.5 * count * (2.0 * re + re * re + im * im).ln_1p() }
    }

    /// The angle of all draws' characteristic function, given that of one.
    #[inline]
    pub(super) fn angle(&self, (re, im): (f64, f64)) -> f64 {
        self.count as f64 * im.atan2(1.0 + re)
    }
}
