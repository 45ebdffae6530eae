//! Convolution of many loss distributions by a tilted Fourier transform, with its error carried along
//! (`docs/composition.md`, "Convolution").
//!
//! The error of a transform is absolute, the tail wanted is tiny. So every mass is first multiplied by e^(order·loss):
//! the tilted sum has its bulk where the tail is asked for, and undoing the tilt turns the absolute error into one
//! relative to the tail. Whatever wraps around only adds mass; what lies above the window is bounded by Chernoff.

mod tail;
mod tilted_sum;
mod window;

pub(super) use tail::Tail;
pub(super) use window::Window;

use super::loss_distribution::LossDistribution;
use crate::certified::enclosure::Enclosure;
use crate::certified::rounding::{ELEMENTARY, ROUNDOFF, compounded};

/// −ln of the tilted mass that may lie outside the window.
const OUTSIDE: f64 = 44.0;
/// The largest tilt undone, as an exponent; losses further below the focus are not represented.
const LARGEST_EXPONENT: f64 = 600.0;

/// Identical queries of a composition: all parts lie on multiples of one spacing.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) loss: LossDistribution,
    pub(super) times: u64,
}

impl Part {
    /// The number of queries.
    pub(super) fn count(&self) -> f64 {
        self.times as f64
    }

    /// The largest finite loss of one query.
    fn reach(&self) -> f64 {
        self.loss.half() as f64 * self.loss.spacing()
    }

    /// Mean and variance of the tilted loss of one query.
    fn tilted_moments(&self, order: f64) -> (f64, f64) {
        let normalizer = self.loss.log_moment(order);
        let (mut first, mut second) = (0.0, 0.0);
        for (loss, mass) in self.loss.carrying() {
            let weight = tilted(mass, order * loss - normalizer);
            first += weight * loss;
            second += weight * loss * loss;
        }
        (first, (second - first * first).max(0.0))
    }
}

fn tilted(mass: f64, exponent: f64) -> f64 {
    // The normalizer bounds the sum, so no weight exceeds one except by rounding.
    if mass > 0.0 { (mass * exponent.exp()).min(1.0) } else { 0.0 }
}

/// The number of all queries.
pub(super) fn query_count(parts: &[Part]) -> f64 {
    parts.iter().map(Part::count).sum()
}

/// Σ of a value over all queries.
pub(super) fn sum_over_queries(parts: &[Part], value: impl Fn(&Part) -> f64) -> f64 {
    parts.iter().map(|part| part.count() * value(part)).sum()
}

/// An upper bound of ln E\[e^(order·sum)\] over the finite losses of all parts.
pub(super) fn log_moment(parts: &[Part], order: f64) -> f64 {
    sum_over_queries(parts, |part| part.loss.log_moment(order))
}

/// Mean and deviation of the tilted sum; they choose windows and decide no claim.
pub(super) fn tilted_moments(parts: &[Part], order: f64) -> (f64, f64) {
    let (mut mean, mut variance) = (0.0, 0.0);
    for part in parts {
        let (own_mean, own_variance) = part.tilted_moments(order);
        mean += part.count() * own_mean;
        variance += part.count() * own_variance;
    }
    (mean, variance.sqrt())
}

/// The mass of all paths on which at least one loss is infinite.
pub(super) fn infinite_mass(parts: &[Part]) -> Enclosure {
    let (mut log_finite, mut log_ratio, mut relative) = (0.0, 0.0, 16.0 * ELEMENTARY);
    for part in parts {
        let finite = part.loss.finite_mass();
        log_finite += part.count() * finite.ln();
        log_ratio += part.count() * (part.loss.infinite_mass() / finite).ln_1p();
        relative += part.count() * ROUNDOFF * (4.0 * part.loss.half() as f64 + 64.0);
    }
    if log_ratio <= 0.0 {
        return Enclosure::ZERO;
    }
    let mass = log_finite.exp() * log_ratio.exp_m1();
    Enclosure::within(mass, compounded(relative, 1.0))
}
