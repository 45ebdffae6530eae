//! Root finding, where a monotone condition changes, and the minimum of a function of one number.
//!
//! No certificate depends on how close to a root the search came: a caller keeps the side on which its condition
//! was seen to hold. Three methods are enough. [`bisect`] only needs to know on which side of the root a point lies. [`newton`]
//! also uses values and slopes. [`FalsePosition`] uses values alone, and takes a fraction of the steps where each
//! costs a certificate (`docs/accounting.md`, "From δ to ε"). A minimum ([`golden_section`]) only chooses tilts
//! (`docs/accounting.md`, "Tilting").

use std::ops::RangeInclusive;

/// Where a bisection looks next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Middle {
    /// Half way between the ends.
    Arithmetic,
    /// At the geometric mean of the ends, which are not negative; at a quarter of the upper end if the lower one is zero.
    Geometric,
}

impl Middle {
    fn of(self, low: f64, high: f64) -> f64 {
        match self {
            Self::Arithmetic => 0.5 * (low + high),
            Self::Geometric if low == 0.0 => high / 4.0,
            Self::Geometric => (low * high).sqrt(),
        }
    }
}

/// More halvings than any two doubles need: a search whose ends are not numbers still ends.
pub(crate) const MOST_HALVINGS: usize = 1200;

/// Narrows an interval around a root until `close` says that it is narrow enough, in at most `steps` steps.
///
/// `is_below` says whether a point lies below the root. The lower end stays one for which it does, the upper end one for which
/// it does not.
pub(crate) fn bisect(
    (mut low, mut high): (f64, f64),
    middle: Middle,
    steps: usize,
    close: impl Fn(f64, f64) -> bool,
    mut is_below: impl FnMut(f64) -> bool,
) -> (f64, f64) {
    for _ in 0..steps {
        if close(low, high) {
            break;
        }
        let point = middle.of(low, high);
        if is_below(point) {
            low = point;
        } else {
            high = point;
        }
    }
    (low, high)
}

/// Where a growing function is zero, by Newton's method within the ends, until a step is smaller than `close` times the place.
/// `function` returns the value and the slope.
pub(crate) fn newton((mut low, mut high): (f64, f64), close: f64, function: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut place = 0.5 * (low + high);
    for _ in 0..30 {
        let (value, slope) = function(place);
        if value < 0.0 {
            low = place;
        } else {
            high = place;
        }
        let next = newton_step((low, high), place, value, slope);
        let step = (next - place).abs();
        place = next;
        if step < close * place || high - low < close * high {
            break;
        }
    }
    place
}

/// The next place of Newton's method, or half way between the ends if that lies outside them.
pub(crate) fn newton_step((low, high): (f64, f64), place: f64, value: f64, slope: f64) -> f64 {
    let next = place - value / slope;
    if next > low && next < high { next } else { 0.5 * (low + high) }
}

/// Like [`bisect`], on integers, until the ends are neighbours.
pub(crate) fn bisect_integers((mut low, mut high): (i64, i64), is_below: impl Fn(i64) -> bool) -> (i64, i64) {
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, high)
}

/// Ends for [`bisect_integers`], not negative, found from a guess in steps that double, so that a poor guess costs a few more
/// steps and not one per unit.
pub(crate) fn bracket_integers(guess: i64, is_below: impl Fn(i64) -> bool) -> (i64, i64) {
    let (mut low, mut high, mut step) = (guess, guess, 1);
    while low > 0 && !is_below(low) {
        (low, step) = ((low - step).max(0), 2 * step);
    }
    while is_below(high) {
        (high, step) = (high + step, 2 * step);
    }
    (low, high)
}

/// The Illinois variant of false position: a root between two points, given with their levels, which are positive below the
/// root and negative above it. An end that stays twice in a row has its level halved, so that no end stays forever.
pub(crate) struct FalsePosition {
    low: LevelPoint,
    high: LevelPoint,
    moved_last: Option<MovedEnd>,
}

#[derive(Clone, Copy)]
struct LevelPoint {
    place: f64,
    level: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum MovedEnd {
    Low,
    High,
}

impl FalsePosition {
    /// A root between zero, where the level is known, and a point whose level is not.
    pub(crate) fn new(level_at_zero: f64, high: f64) -> Self {
        let low = LevelPoint { place: 0.0, level: level_at_zero };
        Self { low, high: LevelPoint { place: high, level: f64::NEG_INFINITY }, moved_last: None }
    }

    /// The two points between which the root is.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.low.place, self.high.place)
    }

    /// Notes a point below the root.
    pub(crate) fn raise_low(&mut self, point: f64, level: f64) {
        if self.moved_last == Some(MovedEnd::Low) {
            self.high.level *= 0.5;
        }
        self.low = LevelPoint { place: point, level: level.max(f64::MIN_POSITIVE) };
        self.moved_last = Some(MovedEnd::Low);
    }

    /// Notes a point above the root.
    pub(crate) fn lower_high(&mut self, point: f64, level: f64) {
        if self.moved_last == Some(MovedEnd::High) {
            self.low.level *= 0.5;
        }
        self.high = LevelPoint { place: point, level: level.min(-f64::MIN_POSITIVE) };
        self.moved_last = Some(MovedEnd::High);
    }

    /// A point well inside, for functions that are far from straight.
    pub(crate) fn middle(&self) -> f64 {
        Middle::Geometric.of(self.low.place, self.high.place)
    }

    /// Where the straight line between both ends has its root.
    pub(crate) fn guess(&self) -> f64 {
        let (low, high) = self.ends();
        if !self.high.level.is_finite() {
            return if low == 0.0 { self.middle() } else { self.middle().min(2.0 * low) };
        }
        let width = high - low;
        let share = self.low.level / (self.low.level - self.high.level);
        (low + width * share).clamp(low + 1e-6 * width, high - 1e-6 * width)
    }
}

/// Where a function that falls and then rises is least, by golden section: in at most `steps` steps, to `precision` of the
/// interval's width.
pub(crate) fn golden_section(
    (from, to): (f64, f64),
    steps: usize,
    precision: f64,
    function: impl Fn(f64) -> f64,
) -> f64 {
    let mut bracket = GoldenBracket::new(from, to, &function);
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
struct GoldenBracket {
    low: f64,
    high: f64,
    left: GoldenPoint,
    right: GoldenPoint,
}

#[derive(Clone, Copy)]
struct GoldenPoint {
    place: f64,
    value: f64,
}

impl GoldenPoint {
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

impl GoldenBracket {
    fn new(low: f64, high: f64, function: &impl Fn(f64) -> f64) -> Self {
        Self { low, high, left: GoldenPoint::left(low, high, function), right: GoldenPoint::right(low, high, function) }
    }

    /// Drops the part of the interval beyond the higher of the two samples.
    fn narrow(&mut self, function: &impl Fn(f64) -> f64) {
        if self.left.value <= self.right.value {
            (self.high, self.right) = (self.right.place, self.left);
            self.left = GoldenPoint::left(self.low, self.high, function);
        } else {
            (self.low, self.left) = (self.left.place, self.right);
            self.right = GoldenPoint::right(self.low, self.high, function);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bisection_keeps_the_root_between_its_ends() {
        for middle in [Middle::Arithmetic, Middle::Geometric] {
            let (low, high) = bisect((0.0, 8.0), middle, 200, |low, high| high - low < 1e-12, |x| x * x < 2.0);
            assert!(low * low < 2.0 && high * high >= 2.0 && high - low < 1e-12, "{middle:?}: {low} {high}");
        }
        assert_eq!(bisect_integers((-3, 100), |x| x < 42), (41, 42));
        assert_eq!(
            bisect((0.0, 1.0), Middle::Arithmetic, 0, |_, _| false, |_| true),
            (0.0, 1.0),
            "no steps, no change"
        );
    }

    #[test]
    fn newton_finds_a_root_also_where_the_slope_misleads() {
        assert!((newton((0.0, 8.0), 1e-9, |x| (x * x - 2.0, 2.0 * x)) - 2_f64.sqrt()).abs() < 1e-8);
        // Without a slope it halves.
        assert!((newton((0.0, 8.0), 1e-4, |x| (x - 3.0, 0.0)) - 3.0).abs() < 1e-3);
    }

    #[test]
    fn false_position_finds_a_root_in_few_steps() {
        // ln of a falling divergence: level(x) = 3 − x².
        let level = |x: f64| 3.0 - x * x;
        let mut root = FalsePosition::new(level(0.0), 10.0);
        let mut point = root.guess();
        for _ in 0..30 {
            if level(point) > 0.0 {
                root.raise_low(point, level(point));
            } else {
                root.lower_high(point, level(point));
            }
            point = root.guess();
        }
        let (low, high) = root.ends();
        assert!(low * low <= 3.0 && high * high >= 3.0 && high - low < 1e-4, "{low} {high}");
        assert!(root.middle() >= low && root.middle() <= high);
    }
}
