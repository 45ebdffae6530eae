//! Independent draws of one law on whole numbers, plain and under an exponential tilt.
//!
//! A [`ScoreGroup`](crate::certified::score_group::ScoreGroup) is the same for privacy claims, which add up a bound on every
//! rounding. Here cumulants are relative to the likeliest value instead, because saddle points multiply them by the count.

use std::f64::consts::PI;
use std::sync::OnceLock;

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

impl Cumulants {
    /// Of the sum of two independent numbers.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, mean: self.mean + other.mean, variance: self.variance + other.variance }
    }

    /// Of the sum of this many independent numbers.
    fn times(self, count: f64) -> Self {
        Self { value: count * self.value, mean: count * self.mean, variance: count * self.variance }
    }
}

impl<'a> Draws<'a> {
    fn law(&self) -> impl Iterator<Item = (i64, f64)> + 'a {
        self.values.iter().copied().zip(self.masses.iter().copied())
    }

    /// The likeliest value under an exponential tilt. Everything is computed relative to it, so that
    /// a large count of a nearly certain law loses no digits.
    fn base(&self, tilt: f64) -> i64 {
        let weight = |index: usize| self.masses[index].ln() + tilt * self.values[index] as f64;
        let likeliest = (0..self.values.len()).max_by(|&a, &b| weight(a).total_cmp(&weight(b)));
        self.values[likeliest.expect("a law has values")]
    }

    pub(super) fn cumulants(&self, tilt: f64) -> Cumulants {
        if self.count == 0 { Cumulants::default() } else { self.cumulants_of_one(tilt).times(self.count as f64) }
    }

    fn cumulants_of_one(&self, tilt: f64) -> Cumulants {
        let base = self.base(tilt);
        let (mut growth, mut first, mut second) = (0.0, 0.0, 0.0);
        for (value, mass) in self.law() {
            let distance = (value - base) as f64;
            let change = mass * (tilt * distance).exp_m1();
            growth += change;
            first += distance * (mass + change);
            second += distance * distance * (mass + change);
        }
        let (base, total) = (base as f64, 1.0 + growth);
        let mean = first / total;
        let variance = (second / total - mean * mean).max(0.0);
        Cumulants { value: growth.ln_1p() + tilt * base, mean: mean + base, variance }
    }

    pub(super) fn tilted(&self, tilt: f64) -> Tilted<'a> {
        let base = self.base(tilt);
        let mut masses: Vec<f64> =
            self.law().map(|(value, mass)| mass * (tilt * (value - base) as f64).exp()).collect();
        let total: f64 = masses.iter().sum();
        masses.iter_mut().for_each(|mass| *mass /= total);
        Tilted { count: self.count, values: self.values, masses, base }
    }

    /// The least and the greatest sum that can occur.
    pub(super) fn ends(&self) -> (i128, i128) {
        let count = i128::from(self.count);
        let possible = || self.law().filter(|(_, mass)| *mass > 0.0).map(|(value, _)| i128::from(value));
        (possible().min().unwrap_or(0) * count, possible().max().unwrap_or(0) * count)
    }

    /// The distance between the least and the greatest value.
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

/// The sines of all multiples of π/size, twice around: with whole multiples as indices, no angle is ever rounded.
pub(super) struct Sines {
    size: usize,
    sines: Vec<f64>,
}

/// There is a table for each of the sizes 2⁰, 2¹, …: this many.
const SIZES: usize = 24;

impl Sines {
    /// The table for a size that is a power of two; computed once.
    pub(super) fn of(size: usize) -> &'static Self {
        static TABLES: [OnceLock<Sines>; SIZES] = [const { OnceLock::new() }; SIZES];
        debug_assert!(size.is_power_of_two());
        TABLES[size.trailing_zeros() as usize].get_or_init(|| {
            let sine = |index: usize| (PI * index as f64 / size as f64).sin();
            Self { size, sines: (0..2 * size).map(sine).collect() }
        })
    }

    /// sin(π·multiple/size).
    pub(super) fn sine(&self, multiple: i64) -> f64 {
        // A power of two: the remainder is a mask, also of negative numbers.
        self.sines[multiple as usize & (2 * self.size - 1)]
    }
}
