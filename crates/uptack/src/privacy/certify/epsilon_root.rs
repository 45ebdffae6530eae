//! The ε at which a divergence, which falls with ε, reaches a δ (`docs/accounting.md`, "From δ to ε").

use super::crowds::Crowds;
use crate::certified::enclosure::Enclosure;
use crate::certified::root::{FalsePosition, Middle, bisect};
use crate::privacy::claim::Found;
use crate::privacy::divergence::Ends;

impl Crowds<'_> {
    /// The ε at which a falling function of it reaches `delta`. Where the function is bounded by different views from below and
    /// from above, each side is solved for itself.
    pub(super) fn solve(&self, delta: f64, largest: f64, function: &dyn Fn(f64, Ends) -> Found) -> Found {
        if self.view.is_exact() {
            return self.solve_one(delta, largest, None, &|epsilon| function(epsilon, Ends::Both));
        }
        let above = self.solve_one(delta, largest, None, &one_end(Ends::Upper, function)).upper();
        self.solve_below(delta, above, function).with_upper(above)
    }

    /// The same from below alone; at `largest` the function is known to be at most `delta`.
    pub(super) fn solve_below(&self, delta: f64, largest: f64, function: &dyn Fn(f64, Ends) -> Found) -> Found {
        // If both ends are close, the root of the lower one is just below that of the upper one.
        let near = self.view.is_sharp().then_some(0.9995 * largest);
        self.solve_one(delta, largest, near, &one_end(Ends::Lower, function))
    }

    /// The root of a function both of whose ends come from one view; the search starts at `near` if that is given.
    fn solve_one(&self, delta: f64, largest: f64, near: Option<f64>, function: &dyn Fn(f64) -> Found) -> Found {
        let first = function(0.0);
        if first.upper() <= delta {
            return Found { value: Enclosure::ZERO, crowd: first.crowd };
        }
        let mut search = RootSearch::new(first, delta, largest);
        let mut guess = near.unwrap_or_else(|| first_guess(first.upper(), delta, largest));
        let tolerance = self.tolerance(first.value);
        for round in 1..200 {
            if search.is_within(tolerance) {
                break;
            }
            let found = function(guess);
            if !search.note(guess, found) {
                let distance = 0.02 * relative_width(found.value);
                return Found { value: around(guess, distance, search.root.ends(), delta, function), ..search.found() };
            }
            // Where the function is far from straight, halving is faster.
            guess = if round % 4 == 0 { search.root.middle() } else { search.root.guess() };
        }
        search.found()
    }

    /// The relative precision of a root: a function that is not precise itself need not be solved precisely.
    fn tolerance(&self, at_zero: Enclosure) -> f64 {
        if self.view.is_exact() {
            (0.2 * at_zero.width()).clamp(1e-11, 1e-4)
        } else if self.view.is_sharp() {
            3e-5
        } else {
            1e-3
        }
    }
}

/// A search for the ε at which a divergence reaches δ.
struct RootSearch {
    root: FalsePosition,
    delta: f64,
    /// The worst crowd at the largest ε that is known to be below the root.
    crowd: u64,
}

impl RootSearch {
    /// A search from zero, where the divergence is known, to `largest`.
    fn new(at_zero: Found, delta: f64, largest: f64) -> Self {
        Self { root: FalsePosition::new(level(at_zero, delta), largest), delta, crowd: at_zero.crowd }
    }

    /// Notes on which side of the root an ε lies; returns whether its divergence is known well enough to tell.
    fn note(&mut self, epsilon: f64, found: Found) -> bool {
        let level = level(found, self.delta);
        if found.upper() <= self.delta {
            self.root.lower_high(epsilon, level);
            return true;
        }
        let is_below = found.lower() > self.delta;
        if is_below {
            self.root.raise_low(epsilon, level);
            self.crowd = found.crowd;
        }
        is_below
    }

    /// Whether the root is known to this share of it.
    fn is_within(&self, tolerance: f64) -> bool {
        let (low, high) = self.root.ends();
        high - low <= tolerance * high
    }

    fn found(&self) -> Found {
        let (low, high) = self.root.ends();
        Found { value: Enclosure::new(low, high), crowd: self.crowd }
    }
}

/// The logarithm of a divergence, from above, over δ: zero at the root.
fn level(found: Found, delta: f64) -> f64 {
    found.upper().ln() - delta.max(f64::MIN_POSITIVE).ln()
}

/// The distance between the ends of a value relative to the lower one, at most one.
fn relative_width(value: Enclosure) -> f64 {
    (value.upper() / value.lower().max(f64::MIN_POSITIVE) - 1.0).min(1.0)
}

/// The smallest ε between two, to a per mille and from above, at which a falling function is at most `delta`.
pub(super) fn solve_from_above(delta: f64, range: (f64, f64), function: impl Fn(f64) -> f64) -> f64 {
    let close = |low: f64, high: f64| high - low <= 1e-3 * high || high <= 1e-12;
    let is_below = |epsilon: f64| {
        let holds = function(epsilon) <= delta;
        !holds
    };
    bisect(range, Middle::Geometric, usize::MAX, close, is_below).1
}

/// The function with one of its ends in place of both.
fn one_end(ends: Ends, function: &dyn Fn(f64, Ends) -> Found) -> impl Fn(f64) -> Found {
    move |epsilon: f64| {
        let found = function(epsilon, ends);
        let value = if ends == Ends::Upper { found.upper() } else { found.lower() };
        Found { value: Enclosure::of_probability(value, value), ..found }
    }
}

/// The Gaussian with the same divergence at zero has about this ε.
fn first_guess(zero: f64, delta: f64, largest: f64) -> f64 {
    let scale = 2.5 * zero * (2.0 * (zero / delta.max(1e-300)).ln()).max(0.1).sqrt();
    scale.clamp(largest * 1e-9, largest * 0.9)
}

/// The nearest points on both sides of an undecided one that can be decided.
fn around(
    undecided: f64,
    first: f64,
    (low, high): (f64, f64),
    delta: f64,
    function: &dyn Fn(f64) -> Found,
) -> Enclosure {
    let first = first.max(1e-11);
    let lower = first_decided(undecided, -first, low, |point| function(point).lower() > delta);
    let upper = first_decided(undecided, first, high, |point| function(point).upper() <= delta);
    Enclosure::new(lower, upper)
}

/// The first point that can be decided at a relative distance from `start` that doubles and is negative downwards; `limit` where
/// there is none before it.
fn first_decided(start: f64, mut distance: f64, limit: f64, is_decided: impl Fn(f64) -> bool) -> f64 {
    loop {
        let point = start * (1.0 + distance);
        if distance.signum() * (point - limit) >= 0.0 {
            return limit;
        }
        if is_decided(point) {
            return point;
        }
        distance *= 2.0;
    }
}
