//! Outward rounding (`docs/accounting.md`, "Errors").
//!
//! The discipline is the same everywhere. A computed number carries a bound on its relative error: the roundings on the way are
//! counted, each as [`ROUNDOFF`], and an elementary function as a few of them. Where a number leaves a computation it is moved
//! outward by that bound, as an [`Enclosure`](super::enclosure::Enclosure) or by [`up`] and [`down`].
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
    // Knuth's two-sum: what is lost is exactly representable, so an exact sum is not inflated.
    let virtual_right = sum - left;
    let lost = (left - (sum - virtual_right)) + (right - virtual_right);
    if lost > 0.0 || !lost.is_finite() { sum.next_up() } else { sum }
}

/// An upper bound of (1 + relative)^count − 1.
pub(crate) fn compounded(relative: f64, count: f64) -> f64 {
    up((relative * count).exp_m1(), 2.0 * ELEMENTARY)
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
