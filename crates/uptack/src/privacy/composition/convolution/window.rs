//! Which cells of a tilted sum are represented (`docs/composition.md`, "Convolution").

use std::ops::RangeInclusive;

use super::{LARGEST_EXPONENT, OUTSIDE, Part, log_moment, sum_over_queries, tilted_moments};
use crate::certified::minimum::half_octaves;
use crate::certified::rounding::{ELEMENTARY, ROUNDOFF, up};

/// The cells of the sum that are represented, and a bound on the mass above them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(super) bottom: i64,
    pub(super) top: i64,
    pub(super) above: f64,
    pub(super) order: f64,
    pub(super) spacing: f64,
}

impl Window {
    /// All of the tilted sum but e^(−44) of it on either side.
    pub(crate) fn new(parts: &[Part], order: f64, spacing: f64) -> Self {
        let (mean, deviation) = tilted_moments(parts, order);
        let reach = sum_over_queries(parts, Part::reach);
        let chernoff = Chernoff::new(parts, order, (2.0 * OUTSIDE).sqrt() / deviation.max(spacing));
        let cell = |loss: f64| (loss / spacing).clamp(-1e15, 1e15);
        let top = cell(chernoff.top.min(reach).max(mean)).ceil() as i64;
        let bottom = cell(chernoff.bottom.max(-reach).min(mean)).floor() as i64;
        let above = if chernoff.top >= reach { 0.0 } else { mass_above(parts, chernoff.steep, top as f64 * spacing) };
        Self { bottom, top, above, order, spacing }
    }

    /// The length of the transform.
    pub(crate) fn length(&self) -> usize {
        ((self.top - self.bottom + 1) as usize).next_power_of_two().max(2)
    }

    /// By how much the exponent of the tilt grows from one cell to the next.
    pub(super) fn per_cell(&self) -> f64 {
        self.order * self.spacing
    }

    /// The largest exponent of the tilt at a cell.
    pub(super) fn largest_exponent(&self) -> f64 {
        self.top.abs().max(self.bottom.abs()) as f64 * self.per_cell()
    }

    /// The cell of a loss, or the nearest one that is represented.
    pub(super) fn cell_of(&self, loss: f64) -> i64 {
        ((loss / self.spacing).floor() as i64).clamp(self.bottom, self.top)
    }

    /// The cells at which the tilt is undone relative to a reference: none so far below it that the factor would overflow.
    pub(super) fn cells(&self, reference: i64) -> RangeInclusive<i64> {
        let per_cell = self.per_cell();
        let lowest = if per_cell > 0.0 {
            self.bottom.max(reference - (LARGEST_EXPONENT / per_cell).min(1e15) as i64)
        } else {
            self.bottom
        };
        lowest..=self.top
    }
}

/// Losses above and below which the tilted sum has at most e^(−44) of its mass, by Chernoff's bound.
struct Chernoff {
    top: f64,
    bottom: f64,
    /// The order that gives the top.
    steep: f64,
}

impl Chernoff {
    /// `usual` is the best step of the order for a Gaussian; some octaves around it are tried.
    fn new(parts: &[Part], order: f64, usual: f64) -> Self {
        let base = log_moment(parts, order);
        let bound = |step: f64| (log_moment(parts, order + step) - base + OUTSIDE) / step;
        let mut best = Self { top: f64::INFINITY, bottom: f64::NEG_INFINITY, steep: order + usual };
        for step in half_octaves(-8..=8).map(|factor| usual * factor) {
            let above = bound(step);
            if above < best.top {
                (best.top, best.steep) = (above, order + step);
            }
            best.bottom = best.bottom.max(bound(-step));
        }
        best
    }
}

/// An upper bound of the mass of the sum above a loss, by Chernoff's bound at this order.
fn mass_above(parts: &[Part], order: f64, loss: f64) -> f64 {
    let exponent = log_moment(parts, order) - order * loss * (1.0 - 4.0 * ROUNDOFF);
    up((exponent + 1e-9 * exponent.abs()).exp(), 4.0 * ELEMENTARY)
}
