//! Outward rounding, and enclosures: numbers that are known to lie between two others (`docs/accounting.md`, "Errors").
//!
//! The discipline is the same everywhere. A computed number carries a bound on its relative error: the roundings on the way are
//! counted, each as [`ROUNDOFF`], and an elementary function as a few of them. Where a number leaves a computation it is moved
//! outward by that bound, as an [`Enclosure`] or by [`up`] and [`down`].
//!
//! Two facts are used throughout. The four operations and the square root are correctly rounded, so each is off by at most one
//! part in 2⁵³. `exp`, `exp_m1`, `ln`, `ln_1p`, `sin` and `cos` are within two roundings, as the platform's libraries state. The
//! constants that the document lists cover that; formulas that name the error use [`ELEMENTARY`], which is four times as much.

/// Half the distance from one to the next double: the relative error of one rounding.
pub(crate) const ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// Assumed largest relative error of an elementary function: four units in the last place.
pub(crate) const ELEMENTARY: f64 = 8.0 * ROUNDOFF;

/// A non-negative `value` that carries a relative error of at most `relative`, raised above the truth.
pub(crate) fn up(value: f64, relative: f64) -> f64 {
    (value * (1.0 + relative) * (1.0 + 4.0 * ROUNDOFF)).next_up()
}

/// [`up`] for a probability, which is at most one.
pub(crate) fn probability_up(value: f64, relative: f64) -> f64 {
    up(value, relative).min(1.0)
}

/// A non-negative `value` that carries a relative error of at most `relative`, lowered below the truth.
pub(crate) fn down(value: f64, relative: f64) -> f64 {
    (value * (1.0 - relative) * (1.0 - 4.0 * ROUNDOFF)).next_down().max(0.0)
}

/// The sum of two numbers, rounded up.
pub(crate) fn add_up(left: f64, right: f64) -> f64 {
    let sum = left + right;
    // Knuth's two-sum: the rounding error is exactly representable, so an exact sum is not inflated.
    let virtual_right = sum - left;
    let lost = (left - (sum - virtual_right)) + (right - virtual_right);
    if lost > 0.0 || !lost.is_finite() { sum.next_up() } else { sum }
}

/// An upper bound of (1 + relative)^count − 1.
pub(crate) fn compounded(relative: f64, count: f64) -> f64 {
    up((relative * count).exp_m1(), 2.0 * ELEMENTARY)
}

/// A certified enclosure: the truth is at least `lower` and at most `upper`. The upper end is the claim.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_never_rounded_down() {
        assert_eq!(add_up(0.5, 0.25), 0.75, "an exact sum stays");
        assert!(add_up(1.0, 1e-30) > 1.0);
        assert!(add_up(0.1, 0.2) >= 0.1 + 0.2);
        assert_eq!(add_up(f64::INFINITY, 1.0), f64::INFINITY);
    }

    #[test]
    fn raised_and_lowered_values_enclose() {
        for value in [0.0, 1e-320, 1e-15, 1.0, 3.7e8] {
            assert!(up(value, 0.0) > value);
            assert!(down(value, 0.0) <= value);
        }
        assert!(compounded(ROUNDOFF, 1e4) >= 1e4 * ROUNDOFF);
    }
}
