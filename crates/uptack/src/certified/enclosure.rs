//! A number that is known to lie between two others (`docs/accounting.md`, "Errors").

use super::rounding::{down, up};

/// A certified enclosure: the truth is at least `lower` and at most `upper`. What is claimed is the upper end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enclosure {
    lower: f64,
    upper: f64,
}

impl Enclosure {
    /// Zero, exactly.
    pub const ZERO: Self = Self { lower: 0.0, upper: 0.0 };

    /// Any number between two ends.
    pub(crate) fn new(lower: f64, upper: f64) -> Self {
        Self { lower, upper }
    }

    /// A non-negative number that was computed as `value`, with a relative error of at most `relative`.
    pub(crate) fn within(value: f64, relative: f64) -> Self {
        Self { lower: down(value, relative), upper: up(value, relative) }
    }

    /// A probability between two ends, which are clipped to \[0, 1\].
    pub(crate) fn of_probability(lower: f64, upper: f64) -> Self {
        debug_assert!(lower <= upper, "the lower end {lower} is above the upper end {upper}");
        Self { lower: lower.max(0.0), upper: upper.clamp(0.0, 1.0) }
    }

    /// A probability that was computed as `value`, with an error of at most `error`, where mass of at most `truncated` was
    /// left out.
    pub(crate) fn around(value: f64, error: f64, truncated: f64) -> Self {
        let error = error * (1.0 + 1e-9) + f64::MIN_POSITIVE;
        if value == 0.0 && truncated == 0.0 && error <= f64::MIN_POSITIVE {
            return Self::ZERO;
        }
        Self::of_probability((value - error).max(0.0), value + error + truncated)
    }

    /// The truth is at least this.
    pub fn lower(&self) -> f64 {
        self.lower
    }

    /// The truth is at most this.
    pub fn upper(&self) -> f64 {
        self.upper
    }

    /// The midpoint of both ends.
    pub fn middle(&self) -> f64 {
        0.5 * (self.lower + self.upper)
    }

    /// The distance between the ends relative to the upper one.
    pub(crate) fn width(&self) -> f64 {
        if self.upper > self.lower { (self.upper - self.lower) / self.upper } else { 0.0 }
    }

    /// Upper over lower, less one; infinite where the lower end is zero and the upper is not.
    pub(crate) fn gap(&self) -> f64 {
        let Self { lower, upper } = *self;
        if upper <= lower {
            0.0
        } else if lower > 0.0 {
            upper / lower - 1.0
        } else {
            f64::INFINITY
        }
    }

    /// Encloses the larger of two numbers.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { lower: self.lower.max(other.lower), upper: self.upper.max(other.upper) }
    }

    /// The same number, now also known to be at most `bound`.
    pub(crate) fn at_most(self, bound: f64) -> Self {
        Self { upper: self.upper.min(bound.max(self.lower)), ..self }
    }

    /// Encloses the sum of two probabilities.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self::of_probability((self.lower + other.lower) * (1.0 - 1e-15), (self.upper + other.upper) * (1.0 + 1e-15))
    }

    /// The same number with another upper end.
    pub(crate) fn with_upper(self, upper: f64) -> Self {
        Self { upper, ..self }
    }
}
