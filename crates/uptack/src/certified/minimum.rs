//! The minimum of a function of one number. It chooses tilts and decides no claim (`docs/accounting.md`, "Tilting").

use std::ops::RangeInclusive;

/// Where a function that falls and then rises is least, by golden section: in at most `steps` steps, to `precision` of the
/// interval's width.
pub(crate) fn golden_section(
    (from, to): (f64, f64),
    steps: usize,
    precision: f64,
    function: impl Fn(f64) -> f64,
) -> f64 {
    let mut bracket = Bracket::new(from, to, &function);
    for _ in 0..steps {
        if bracket.high - bracket.low <= precision * (to - from) {
            break;
        }
        bracket.narrow(&function);
    }
    0.5 * (bracket.low + bracket.high)
}

/// The factors 2^(k/2) for all k in a range: where to look around a good guess.
pub(crate) fn half_octaves(range: RangeInclusive<i32>) -> impl Iterator<Item = f64> {
    range.map(|k| f64::from(k).exp2().sqrt())
}

const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// An interval that holds the minimum, and two places inside with the function's values there.
struct Bracket {
    low: f64,
    high: f64,
    left: Sample,
    right: Sample,
}

#[derive(Clone, Copy)]
struct Sample {
    place: f64,
    value: f64,
}

impl Sample {
    fn at(place: f64, function: &impl Fn(f64) -> f64) -> Self {
        Self { place, value: function(place) }
    }

    /// The left one of the two places inside an interval.
    fn left(low: f64, high: f64, function: &impl Fn(f64) -> f64) -> Self {
        Self::at(high - GOLDEN * (high - low), function)
    }

    fn right(low: f64, high: f64, function: &impl Fn(f64) -> f64) -> Self {
        Self::at(low + GOLDEN * (high - low), function)
    }
}

impl Bracket {
    fn new(low: f64, high: f64, function: &impl Fn(f64) -> f64) -> Self {
        Self { low, high, left: Sample::left(low, high, function), right: Sample::right(low, high, function) }
    }

    /// Drops the part of the interval beyond the higher of the two samples.
    fn narrow(&mut self, function: &impl Fn(f64) -> f64) {
        if self.left.value <= self.right.value {
            (self.high, self.right) = (self.right.place, self.left);
            self.left = Sample::left(self.low, self.high, function);
        } else {
            (self.low, self.left) = (self.left.place, self.right);
            self.right = Sample::right(self.low, self.high, function);
        }
    }
}
