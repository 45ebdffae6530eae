//! The ε at which a divergence, which falls with ε, reaches a δ.

use super::{Answer, Found, Search};
use crate::certified::enclosure::Bracket;
use crate::privacy::divergence::Side;

impl Search<'_> {
    /// The ε at which a falling function of it reaches `delta`. Where the function is bounded by different views from below and
    /// from above, each side is solved for itself.
    pub(super) fn solve(&self, delta: f64, largest: f64, function: &dyn Fn(f64, Side) -> Found) -> Answer {
        if self.view.is_exact() {
            return self.solve_one(delta, largest, None, &|epsilon| function(epsilon, Side::Both));
        }
        let above = self.solve_one(delta, largest, None, &one_side(Side::Above, function));
        let below = self.solve_below(delta, above.upper, function);
        Answer { upper: above.upper, ..below }
    }

    /// The same from below alone, where the function is at most `delta` at `largest` whatever its ends are there.
    pub(super) fn solve_below(&self, delta: f64, largest: f64, function: &dyn Fn(f64, Side) -> Found) -> Answer {
        // Where both ends are close, one is hardly below the other.
        let near = self.view.is_sharp().then_some(0.9995 * largest);
        self.solve_one(delta, largest, near, &one_side(Side::Below, function))
    }

    fn solve_one(&self, delta: f64, largest: f64, near: Option<f64>, function: &dyn Fn(f64) -> Found) -> Answer {
        let first = function(0.0);
        let mut crowd = first.crowd;
        if first.bracket.upper() <= delta {
            return Answer { lower: 0.0, upper: 0.0, crowd };
        }
        let goal = delta.max(f64::MIN_POSITIVE).ln();
        let mut bracket = Bracketing {
            low: (0.0, first.bracket.upper().ln() - goal),
            high: (largest, f64::NEG_INFINITY),
            last: None,
        };
        let mut guess = near.unwrap_or_else(|| first_guess(first.bracket.upper(), delta, largest));
        // A function that is not precise itself need not be solved precisely.
        let tolerance = if self.view.is_exact() {
            (0.2 * first.bracket.width()).clamp(1e-11, 1e-4)
        } else if self.view.is_sharp() {
            3e-5
        } else {
            1e-3
        };
        for round in 1..200 {
            if bracket.high.0 - bracket.low.0 <= tolerance * bracket.high.0 {
                break;
            }
            let found = function(guess);
            let level = found.bracket.upper().ln() - goal;
            if found.bracket.upper() <= delta {
                bracket.lower_high(guess, level);
            } else if found.bracket.lower() > delta {
                bracket.raise_low(guess, level);
                crowd = found.crowd;
            } else {
                let width = (found.bracket.upper() / found.bracket.lower().max(f64::MIN_POSITIVE) - 1.0).min(1.0);
                let (low, high) = around(guess, 0.02 * width, (bracket.low.0, bracket.high.0), delta, function);
                return Answer { lower: low, upper: high, crowd };
            }
            // Where the function is far from straight, halving is faster.
            guess = if round % 4 == 0 { bracket.middle() } else { bracket.guess() };
        }
        Answer { lower: bracket.low.0, upper: bracket.high.0, crowd }
    }

    /// The smallest ε between two, to a per mille and from above, at which a falling function is at most `delta`.
    pub(super) fn solve_from_above(delta: f64, (low, high): (f64, f64), function: impl Fn(f64) -> f64) -> f64 {
        let (mut low, mut high) = (low, high);
        while high - low > 1e-3 * high && high > 1e-12 {
            let middle = if low == 0.0 { high / 4.0 } else { (low * high).sqrt() };
            if function(middle) <= delta {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }
}

/// One end of a function's values, as both.
fn one_side(side: Side, function: &dyn Fn(f64, Side) -> Found) -> impl Fn(f64) -> Found {
    move |epsilon: f64| {
        let found = function(epsilon, side);
        let value = if side == Side::Above { found.bracket.upper() } else { found.bracket.lower() };
        Found { bracket: Bracket::new(value, value), ..found }
    }
}

/// The Gaussian with the same divergence at zero has about this ε.
fn first_guess(zero: f64, delta: f64, largest: f64) -> f64 {
    let scale = 2.5 * zero * (2.0 * (zero / delta.max(1e-300)).ln()).max(0.1).sqrt();
    scale.clamp(largest * 1e-9, largest * 0.9)
}

/// A root between two points, by the Illinois variant of false position: points with their levels, positive below the root.
struct Bracketing {
    low: (f64, f64),
    high: (f64, f64),
    /// Which end moved last: true for the high one.
    last: Option<bool>,
}

impl Bracketing {
    fn raise_low(&mut self, point: f64, level: f64) {
        if self.last == Some(false) {
            self.high.1 *= 0.5;
        }
        self.low = (point, level.max(f64::MIN_POSITIVE));
        self.last = Some(false);
    }

    fn lower_high(&mut self, point: f64, level: f64) {
        if self.last == Some(true) {
            self.low.1 *= 0.5;
        }
        self.high = (point, level.min(-f64::MIN_POSITIVE));
        self.last = Some(true);
    }

    fn middle(&self) -> f64 {
        if self.low.0 > 0.0 { (self.low.0 * self.high.0).sqrt() } else { 0.25 * self.high.0 }
    }

    fn guess(&self) -> f64 {
        let ((low, above), (high, below)) = (self.low, self.high);
        if !below.is_finite() {
            return if low == 0.0 { high / 4.0 } else { (low * high).sqrt().min(2.0 * low) };
        }
        let (width, share) = (high - low, above / (above - below));
        (low + width * share).clamp(low + 1e-6 * width, high - 1e-6 * width)
    }
}

/// The nearest points on both sides of an undecided one that can be decided.
fn around(
    undecided: f64,
    first: f64,
    (low, high): (f64, f64),
    delta: f64,
    function: &dyn Fn(f64) -> Found,
) -> (f64, f64) {
    let decide = |sign: f64, limit: f64, decided: &dyn Fn(&Bracket) -> bool| {
        let mut distance = first.max(1e-11);
        loop {
            let point = undecided * (1.0 + sign * distance);
            if sign * (point - limit) >= 0.0 {
                return limit;
            }
            if decided(&function(point).bracket) {
                return point;
            }
            distance *= 2.0;
        }
    };
    (decide(-1.0, low, &|bracket| bracket.lower() > delta), decide(1.0, high, &|bracket| bracket.upper() <= delta))
}
