//! The hockey-stick curve of a composition (`docs/composition.md`, "Convolution").

use super::tilted_sum::Tilt;
use super::{Part, Window, infinite_mass};
use crate::certified::enclosure::Enclosure;
use crate::certified::rounding::{ELEMENTARY, ROUNDOFF, add_up, down, up};

/// The hockey-stick curve of the composed measure, as an upper and a lower bound.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    upper: Curve,
    lower: Curve,
    /// What both curves are multiplied by.
    scale: Enclosure,
    /// The mass above the represented losses, at most.
    above: f64,
    infinite: Enclosure,
}

impl Tail {
    /// Convolves; sharp for losses around `focus`.
    pub(crate) fn new(parts: &[Part], window: Window, focus: f64) -> Self {
        let tilt = Tilt::new(parts, window.order);
        let reference = window.cell_of(focus);
        let masses = tilt.convolve(parts, &window).untilted(&window, reference);
        let first = *window.cells(reference).start();
        Self {
            upper: Curve::new(masses.iter().map(|mass| mass.0), first, window.spacing),
            lower: Curve::new(masses.iter().map(|mass| mass.1), first, window.spacing),
            scale: tilt.scale(&window, reference, masses.len()),
            above: window.above,
            infinite: infinite_mass(parts),
        }
    }

    /// An upper bound of the composed curve at any ε.
    pub(crate) fn upper(&self, epsilon: f64) -> f64 {
        // Below the represented losses nothing better than certainty is known.
        let Some(delta) = self.upper.at(epsilon) else { return 1.0 };
        let finite = up(delta * self.scale.upper(), 8.0 * ELEMENTARY).max(f64::MIN_POSITIVE);
        add_up(add_up(finite, self.above), self.infinite.upper()).min(1.0)
    }

    /// A lower bound of the composed measure's curve.
    pub(crate) fn lower(&self, epsilon: f64) -> f64 {
        let delta = self.lower.at(epsilon.max(self.lower.first_knot())).unwrap_or(0.0);
        down(down(delta * self.scale.lower(), 8.0 * ELEMENTARY) + self.infinite.lower(), ROUNDOFF)
    }

    /// The largest represented loss.
    pub(crate) fn top(&self) -> f64 {
        self.upper.last_knot()
    }
}

/// The hockey-stick curve of masses on a grid.
#[derive(Debug, Clone)]
struct Curve {
    spacing: f64,
    /// The cell of the first knot.
    first: i64,
    knots: Vec<Knot>,
}

/// The curve at one knot, and its descent behind it.
#[derive(Debug, Clone, Copy)]
struct Knot {
    delta: f64,
    descent: f64,
}

impl Curve {
    /// The curve at every knot from the masses, from the top down; sums of positive terms only.
    fn new(masses: impl DoubleEndedIterator<Item = f64> + ExactSizeIterator, first: i64, spacing: f64) -> Self {
        let (shrink, growth) = ((-spacing).exp(), spacing.exp_m1());
        let mut knots = vec![Knot { delta: 0.0, descent: 0.0 }; masses.len()];
        let (mut delta, mut descent) = (0.0, 0.0);
        for (index, mass) in masses.enumerate().rev() {
            delta += growth * descent;
            knots[index] = Knot { delta, descent };
            descent = shrink * (descent + mass);
        }
        Self { spacing, first, knots }
    }

    fn first_knot(&self) -> f64 {
        self.first as f64 * self.spacing
    }

    fn last_knot(&self) -> f64 {
        (self.first + self.knots.len() as i64 - 1) as f64 * self.spacing
    }

    /// The curve at any ε; none below the first knot.
    fn at(&self, epsilon: f64) -> Option<f64> {
        let position = epsilon / self.spacing;
        let index = position.floor() - self.first as f64;
        if index < 0.0 {
            return None;
        }
        if index >= (self.knots.len() - 1) as f64 {
            return Some(0.0);
        }
        let (knot, next) = (self.knots[index as usize], self.knots[index as usize + 1]);
        let inside = epsilon - position.floor() * self.spacing;
        // The curve is linear in e^ε between two knots; both factors are positive.
        Some(next.delta + inside.exp() * (self.spacing - inside).exp_m1().max(0.0) * knot.descent)
    }
}
