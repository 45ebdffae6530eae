//! Where a falling function crosses zero, in as few calls as possible: each call costs an accounting or a whole plan.

use std::ops::ControlFlow::{self, Break, Continue};

use crate::certified::root::{Middle, bisect};

/// An interval around a point, halved this many times; `is_below` says whether a number is below the point.
pub(super) fn halved(ends: (f64, f64), times: usize, is_below: impl Fn(f64) -> bool) -> (f64, f64) {
    bisect(ends, Middle::Arithmetic, times, |_, _| false, is_below)
}

/// Where a falling function is no longer positive, and its slope there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Root {
    pub(super) at: f64,
    pub(super) slope: f64,
}

/// A chord between two points this close together tells the slope.
const NEAR: f64 = 0.5;
/// A value below this says only that the root is elsewhere.
const FAR_BELOW: f64 = -9.0;
/// Calls of the function.
const MOST_CALLS: u32 = 80;

/// Where a falling function becomes negative within the ends, approached from the negative side; `None` if it stays positive.
///
/// By secants from a guess of the place and the slope, and by bisection where they are slow once the root is bracketed.
pub(super) fn falling_root(
    function: impl Fn(f64) -> f64,
    (guess, slope): (f64, f64),
    (least, most): (f64, f64),
    accuracy: f64,
) -> Option<Root> {
    let mut secants = Secants::new((least, most), slope, accuracy);
    let mut x = guess.clamp(least, most);
    for call in 0..MOST_CALLS {
        let here = RootPoint { x, value: function(x) };
        if let Some(root) = secants.note(here) {
            return Some(root);
        }
        match secants.next(here, call) {
            Continue(next) => x = next,
            Break(root) => return root,
        }
    }
    secants.bracket.high.map(|high| secants.root_at(high.x))
}

/// A point of the function.
#[derive(Clone, Copy)]
struct RootPoint {
    x: f64,
    value: f64,
}

impl RootPoint {
    /// The slope of the chord to another point, if it says anything about the slope at the root.
    fn slope_to(self, other: Self) -> Option<f64> {
        let secant = (other.value - self.value) / (other.x - self.x);
        let near = (other.x - self.x).abs() < NEAR && other.value.min(self.value) > FAR_BELOW;
        (secant < 0.0 && near).then_some(secant)
    }
}

/// The last points on either side of the root: the function is positive at `low` and not at `high`.
#[derive(Clone, Copy, Default)]
struct RootBracket {
    low: Option<RootPoint>,
    high: Option<RootPoint>,
}

/// What [`falling_root`] knows of its function so far.
struct Secants {
    least: f64,
    most: f64,
    accuracy: f64,
    bracket: RootBracket,
    last: Option<RootPoint>,
    slope: f64,
    /// The longest next step while there is no bracket.
    longest_step: f64,
}

impl Secants {
    fn new((least, most): (f64, f64), slope: f64, accuracy: f64) -> Self {
        let slope = slope.min(-1e-3);
        Self { least, most, accuracy, bracket: RootBracket::default(), last: None, slope, longest_step: 0.05 }
    }

    fn root_at(&self, at: f64) -> Root {
        Root { at, slope: self.slope }
    }

    /// Takes note of a point; it is the root if the chord from the point before shows that it is near enough.
    fn note(&mut self, here: RootPoint) -> Option<Root> {
        let side = if here.value > 0.0 { &mut self.bracket.low } else { &mut self.bracket.high };
        *side = Some(here);
        let before = self.last.replace(here)?;
        self.slope = before.slope_to(here)?;
        // ln δ is concave in the logarithm of the flips: between two points it lies above its chord.
        let crosses = here.value <= 0.0 && before.value > 0.0;
        (crosses && here.value >= self.slope * self.accuracy).then(|| self.root_at(here.x))
    }

    /// The next point to evaluate, or the result.
    fn next(&mut self, here: RootPoint, call: u32) -> ControlFlow<Option<Root>, f64> {
        match (self.bracket.low, self.bracket.high) {
            (Some(low), Some(high)) if high.x - low.x < self.accuracy => Break(Some(self.root_at(high.x))),
            (Some(low), Some(high)) => Continue(self.between(low, high, call)),
            (Some(low), None) if low.x >= self.most => Break(None),
            (None, Some(high)) if high.x <= self.least => Break(Some(self.root_at(self.least))),
            _ => Continue(self.towards_root(here)),
        }
    }

    /// A little beyond where the chord crosses zero, so that the function is not positive there; in the middle every fourth
    /// time, and where the upper end says nothing.
    fn between(&self, low: RootPoint, high: RootPoint, call: u32) -> f64 {
        let width = high.x - low.x;
        let middle = low.x + 0.5 * width;
        let crossing = (low.x * high.value - high.x * low.value) / (high.value - low.value);
        let aimed = if call % 4 == 3 || high.value < FAR_BELOW { middle } else { crossing + 0.4 * self.accuracy };
        let margin = 0.01 * width;
        if aimed.is_finite() { aimed.clamp(low.x + margin, high.x - margin) } else { middle }
    }

    /// Towards the root and a little beyond it, in steps that may grow.
    fn towards_root(&mut self, here: RootPoint) -> f64 {
        let newton = (-here.value / self.slope).abs();
        let reach = (1.05 * newton + 0.4 * self.accuracy).clamp(self.accuracy, self.longest_step);
        self.longest_step *= 2.5;
        if here.value > 0.0 { (here.x + reach).min(self.most) } else { (here.x - reach).max(self.least) }
    }
}

/// The smallest value in a range, to a relative accuracy and from above, at which a falling function is at most `limit`.
///
/// From `start` in growing steps until it is bracketed, then where a power law through both ends would cross: most errors
/// nearly are one.
pub(crate) fn smallest(
    (least, most): (f64, f64),
    start: f64,
    accuracy: f64,
    limit: f64,
    function: impl Fn(f64) -> f64,
) -> Option<f64> {
    let (least, most) = (least.ln(), most.ln());
    let mut x = start.ln().clamp(least, most);
    let mut bracket = RootBracket::default();
    let mut step = 0.3;
    for call in 0.. {
        let here = RootPoint { x, value: (function(x.exp()) / limit).ln() };
        // NaN is not small enough.
        let side = if here.value <= 0.0 { &mut bracket.high } else { &mut bracket.low };
        *side = Some(here);
        x = match (bracket.low, bracket.high) {
            (Some(low), Some(high)) if high.x - low.x <= accuracy => return Some(high.x.exp()),
            (Some(low), Some(high)) => beside_crossing(low, high, 0.45 * accuracy, call),
            (Some(low), None) if low.x >= most => return None,
            (None, Some(high)) if high.x <= least => return Some(high.x.exp()),
            (None, _) => (x - step).max(least),
            (_, None) => (x + step).min(most),
        };
        step *= 2.0;
    }
    None
}

/// Where the chord between two ends crosses zero, a little to either side in turn so that both ends come near; in the middle
/// every third time and where an end says nothing.
fn beside_crossing(low: RootPoint, high: RootPoint, margin: f64, call: u32) -> f64 {
    let crossing = low.x + (high.x - low.x) * low.value / (low.value - high.value);
    let aimed = crossing + if call.is_multiple_of(2) { margin } else { -margin };
    if call % 3 == 2 || !aimed.is_finite() {
        return 0.5 * (low.x + high.x);
    }
    aimed.clamp(low.x + margin, high.x - margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_approached_from_the_negative_side() {
        for guess in [-9.0, -1.0, 0.3, 0.63, 4.0] {
            for slope in [-1e-4, -1.2, -50.0] {
                let root = falling_root(|x| 0.25 - x * x * x, (guess, slope), (-10.0, 10.0), 1e-6).unwrap();
                assert!(root.at.powi(3) >= 0.25 && root.at - 0.25f64.cbrt() < 2e-6, "{guess} {slope}: {root:?}");
            }
        }
        assert_eq!(falling_root(|x| 1.0 - x, (0.0, -1.0), (-1.0, 0.5), 1e-6), None);
        assert_eq!(falling_root(|x| -1.0 - x, (0.2, -1.0), (0.0, 0.5), 1e-6).map(|root| root.at), Some(0.0));
    }

    /// Where the function falls off a cliff the secant says little, and the bracket decides.
    #[test]
    fn a_cliff_is_found() {
        let cliff = |x: f64| if x < 1.0 { 3.0 - 0.1 * x } else { -1e4 };
        let root = falling_root(cliff, (0.2, -18.0), (-5.0, 9.0), 1e-4).unwrap();
        assert!(root.at >= 1.0 && root.at < 1.0 + 1e-3, "{root:?}");
    }

    #[test]
    fn the_smallest_value_is_bracketed_and_approached_from_above() {
        let calls = std::cell::Cell::new(0);
        let error = |value: f64| {
            calls.set(calls.get() + 1);
            if value < 0.01 { f64::INFINITY } else { 7.0 / value }
        };
        for limit in [0.5, 7.0, 300.0, 699.0] {
            calls.set(0);
            let found = smallest((1e-3, 30.0), 1.0, 1e-3, limit, error).unwrap();
            assert!(found >= 7.0 / limit && found <= 7.0 / limit * 1.0011, "{limit}: {found}");
            assert!(calls.get() <= 20, "{limit}: {}", calls.get());
        }
        assert_eq!(smallest((1e-3, 30.0), 1.0, 1e-3, 0.1, error), None);
        assert_eq!(smallest((1e-3, 30.0), 1.0, 1e-3, 5.0, |_| 1.0).map(|value| value < 1.001e-3), Some(true));
    }
}
