//! The positive terms, added up row by row (`docs/accounting.md`, "Rows").

use std::f64::consts::TAU;

use super::generating_function::{Nodes, odd};
use super::generating_function::{RowTransform, Signed, Transform};
use super::tail_bound::RowSide;
use super::tilt::{ClassTilt, HighRow};
use crate::certified::binomial::{Binomial, Coin, window};
use crate::certified::root::bisect_integers;
use crate::certified::rounding::Enclosure;
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::likelihood::{CrowdLaws, Weight};

/// Rows whose tilted mass beyond them is below e^this are not looked at: their sign would be lost in the noise.
const FARTHEST_ROW: f64 = -20.0;
/// The logarithm of the mass that is left out of the transform or folded back by it, relative to how much the terms change from
/// one to the next where they turn, as a logarithm.
const NOISE: f64 = -18.0;
/// A sum beyond a turn includes mass that is folded back from below it, damped by e^−this.
const DAMPED: f64 = 26.0;
/// At most this many terms may be undecided around a change of sign; more mean that the row is lost in the noise.
const UNDECIDED: u32 = 64;

/// Where the terms of a row turn positive: computed, and a count below which they certainly do not.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) count: i64,
    pub(super) certain: i64,
}

/// Adds up rows.
pub(super) struct RowSums {
    transform: Transform,
    row: RowTransform,
    untilt: Untilt,
    windows: SupportRanges,
    /// All owners with the target.
    owners: i64,
    /// The row count's standard deviation.
    deviation: f64,
    /// How far a term may be off.
    slack: f64,
    /// The tilted mass that the transform folds back into the sums beyond turns, over all rows.
    folded: f64,
    relative_error: f64,
    total: Total,
    steps: u64,
}

/// The sum over the rows so far.
#[derive(Default)]
struct Total {
    value: f64,
    error: f64,
    /// The contribution of the last row.
    last_added: f64,
    /// The largest factor by which a tilt was undone.
    heaviest: f64,
}

/// Terms around a turn whose sign is not certain: how many there are, and a bound on their sum.
#[derive(Default)]
struct Undecided {
    terms: u32,
    hidden: f64,
}

/// What undoes a tilt.
struct Untilt {
    tilt: ClassTilt,
    /// The tilted means of the counts high and row.
    center: HighRow<i64>,
    /// The logarithm of the factor at the center.
    level: f64,
}

impl Untilt {
    fn new(crowd: &CrowdLaws<3>, tilt: ClassTilt, center: HighRow<i64>) -> Self {
        let level = crowd.cumulant(tilt) - tilt.high * center.high as f64 - tilt.row * center.row as f64;
        Self { tilt, center, level }
    }

    /// The factor at the counts `high` and `row`.
    fn factor(&self, high: i64, row: i64) -> f64 {
        let exponent =
            self.tilt.high * (high - self.center.high) as f64 + self.tilt.row * (row - self.center.row) as f64;
        (self.level - exponent).exp()
    }

    /// How far the factor may be off, relatively, in a crowd of this many owners.
    fn relative_error(&self, owners: u64) -> f64 {
        64.0 * ROUNDOFF * (owners as f64 * (self.tilt.high.abs() + self.tilt.row.abs()) + 16.0)
    }
}

/// How much of the tilted law has to be kept for a precision.
struct Depth {
    /// The logarithm of what may be left out of the transform.
    noise: f64,
    windows: SupportRanges,
    /// The negative logarithm of the factor that damps mass folded back from below a turn.
    damped: f64,
}

impl Depth {
    fn new(tilted: &CrowdLaws<3>, target: &Signed, precision: f64) -> Self {
        // All constants are made for a precision of a per mille.
        let deeper = (1e-3 / precision).ln();
        let noise = noise(tilted, target, deeper);
        Self { noise, windows: SupportRanges::new(tilted, noise, deeper), damped: DAMPED + deeper }
    }

    /// The tilted mass that the transform folds back into a term.
    fn folded(&self, target: &Signed) -> f64 {
        8.0 * target.magnitude * self.noise.exp()
    }

    /// The same into the sums beyond turns, over all rows.
    fn folded_beyond(&self, target: &Signed) -> f64 {
        self.folded(target) + 4.0 * target.magnitude * (-self.damped).exp()
    }
}

/// Windows of the tilted counts with the target.
struct SupportRanges {
    /// The ranges of both counts, except for mass below the noise.
    high: (i64, i64),
    row: (i64, i64),
    /// The rows that can be distinguished from noise, and the turns that the transform keeps apart: only these are examined.
    rows: (i64, i64),
    turns: (i64, i64),
}

impl SupportRanges {
    /// `deeper` is by how much the logarithms of all that is left out must be below the usual.
    fn new(tilted: &CrowdLaws<3>, noise: f64, deeper: f64) -> Self {
        let farthest = FARTHEST_ROW - deeper;
        Self {
            high: window_of(tilted, 0, noise),
            row: window_of(tilted, 1, noise),
            rows: window_of(tilted, 1, farthest),
            turns: window_of(tilted, 0, farthest),
        }
    }

    /// Enough nodes on each circle for what folds back to be outside of the windows; `damping` is over how many counts a sum
    /// beyond a turn is damped.
    fn nodes(&self, damping: i64) -> Nodes {
        Nodes {
            high: odd((self.turns.1 - self.high.0 + damping).max(self.high.1 - self.turns.0) + 4),
            row: odd((self.rows.1 - self.row.0).max(self.row.1 - self.rows.0) + 4),
        }
    }
}

/// All counts of a class, the target included, but for mass of e^`log_cut` on either side.
fn window_of(crowd: &CrowdLaws<3>, class: usize, log_cut: f64) -> (i64, i64) {
    let parts = crowd.each().map(|(owners, law)| {
        let coin = Coin { success: law[class], failure: law[(class + 1) % 3] + law[(class + 2) % 3] };
        Binomial::new(owners, coin)
    });
    let (low, high) = window(&parts, log_cut);
    (low as i64, high as i64 + 1)
}

/// The logarithm of what may be left out of the transform: small against how the terms change where they turn.
fn noise(tilted: &CrowdLaws<3>, target: &Signed, deeper: f64) -> f64 {
    let covariance = tilted.covariance();
    // About the largest probability of a single histogram.
    let density = 1.0 / (TAU * covariance.determinant().max(1.0).sqrt());
    (target.high * density / covariance.high.max(1.0) / (8.0 * target.magnitude)).ln()
        + NOISE
        + (3.0 * (covariance.high.sqrt() / 16.0).ln_1p()).min(11.0)
        - deeper
}

impl RowSums {
    /// `None` if so much would have to be computed that no claim is worth it.
    pub(super) fn new(crowd: &CrowdLaws<3>, weights: &[Weight; 3], tilt: ClassTilt, precision: f64) -> Option<Self> {
        let tilted = crowd.tilted(tilt);
        let center = tilted.mean().map(|mean| mean.round() as i64);
        let target = Signed::new(weights, tilt);
        let depth = Depth::new(&tilted, &target, precision);
        let nodes = depth.windows.nodes((depth.damped / tilt.high).ceil() as i64);
        let transform = Transform::new(&tilted, target, center, nodes, tilt.high, depth.noise)?;
        let untilt = Untilt::new(crowd, tilt, center);
        Some(Self {
            row: transform.new_row(),
            slack: transform.term_error() + depth.folded(&target),
            steps: (transform.size() * 8) as u64,
            transform,
            relative_error: untilt.relative_error(crowd.owners.size()),
            untilt,
            folded: depth.folded_beyond(&target),
            windows: depth.windows,
            owners: crowd.owners.size() as i64 + 1,
            deviation: tilted.covariance().row.sqrt(),
            total: Total::default(),
        })
    }

    pub(super) fn tilt(&self) -> ClassTilt {
        self.untilt.tilt
    }

    pub(super) fn center(&self) -> HighRow<i64> {
        self.untilt.center
    }

    pub(super) fn deviation(&self) -> f64 {
        self.deviation
    }

    /// The sum so far.
    pub(super) fn value(&self) -> f64 {
        self.total.value
    }

    pub(super) fn last_added(&self) -> f64 {
        self.total.last_added
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// The last row on one side that can be distinguished from noise.
    pub(super) fn last(&self, side: RowSide) -> i64 {
        if side == RowSide::Fewer { self.windows.rows.0 } else { self.windows.rows.1 }
    }

    /// The sum of all positive terms, where those beyond the rows are at most `beyond` and all together at most `whole`.
    pub(super) fn enclosure(&self, beyond: f64, whole: f64) -> Enclosure {
        let Total { value, error, heaviest, .. } = self.total;
        let error = (error + self.folded * heaviest) * (1.0 + self.relative_error) + value.abs() * self.relative_error;
        // A value that underflows to zero is still above zero.
        let upper = ((value + error + beyond) * (1.0 + 1e-12)).max(0.0) + f64::MIN_POSITIVE;
        let lower = (value - error) * (1.0 - 1e-12);
        if upper.is_finite() {
            Enclosure::of_probability(lower.clamp(0.0, upper), upper.min(whole.max(lower)))
        } else {
            Enclosure::of_probability(0.0, whole)
        }
    }

    /// Adds the row of one count, where the terms turn positive at about `guess`. `None` if the row is lost in the noise.
    pub(super) fn add(&mut self, count: i64, guess: i64) -> Option<Turn> {
        self.transform.fill_row(count, &mut self.row);
        self.steps += (self.transform.size() / 8) as u64 + 16;
        // Beyond the last count that there is in this row nothing is positive.
        let end = self.owners - count + 1;
        let turn = self.turn(guess, end)?;
        let mut undecided = Undecided::default();
        let certain = self.first_decided(turn - 1, -1, (count, end), &mut undecided)? + 1;
        self.first_decided(turn, 1, (count, end), &mut undecided)?;
        self.total.last_added = 0.0;
        if turn < end {
            self.add_beyond(turn, count);
        }
        self.total.error += undecided.hidden;
        Some(Turn { count: turn, certain })
    }

    /// Adds all terms of the present row from the turn on.
    fn add_beyond(&mut self, turn: i64, row: i64) {
        let here = self.untilt.factor(turn, row);
        let added = here * self.transform.beyond(&self.row, turn);
        self.total.last_added = added;
        self.total.value += added;
        self.total.error += here * self.transform.beyond_error();
        self.total.heaviest = self.total.heaviest.max(here);
    }

    /// The first count, from `count` on in steps of ±1, at which the sign of the term is certain: positive going up, negative
    /// going down. Where there is none in this row it is the first one beyond it. `None` if too many terms are undecided.
    fn first_decided(
        &self,
        mut count: i64,
        step: i64,
        (row, end): (i64, i64),
        undecided: &mut Undecided,
    ) -> Option<i64> {
        let (lowest, highest) = self.windows.turns;
        while (0..end).contains(&count) {
            let term = step as f64 * self.transform.term(&self.row, count);
            if term > self.slack {
                break;
            }
            undecided.hidden += (self.slack - term) * self.untilt.factor(count, row);
            undecided.terms += 1;
            count += step;
            let out_of_sight = (0..end).contains(&count) && !(lowest..=highest).contains(&count);
            if undecided.terms > UNDECIDED || out_of_sight {
                return None;
            }
        }
        Some(count)
    }

    /// Whether rounding does not exclude that the term at this count of the present row is positive.
    fn may_be_positive(&self, count: i64) -> bool {
        self.transform.term(&self.row, count) >= -self.slack
    }

    /// The first count of the present row with a term that is not certainly negative, `end` if there is none.
    fn turn(&self, guess: i64, end: i64) -> Option<i64> {
        let (lowest, highest) = self.windows.turns;
        let (bottom, top) = (lowest.max(0), end.min(highest + 1));
        if bottom >= top {
            return None;
        }
        let is_below = |count: i64| !self.may_be_positive(count);
        let around = doubling(guess.clamp(bottom, top - 1), (bottom - 1, top), is_below);
        let (below, turn) = bisect_integers(around, is_below);
        // At an edge that is not one of the row itself, the transform does not decide.
        let lost = turn == top && top < end || below == bottom - 1 && bottom > 0;
        (!lost).then_some(turn)
    }
}

/// Two counts around a root, found by ever longer steps from `start`: the first is below the root or the lower limit, the
/// second is not below it or the upper limit. The limits themselves are not looked at.
fn doubling(start: i64, (lowest, highest): (i64, i64), is_below: impl Fn(i64) -> bool) -> (i64, i64) {
    if is_below(start) {
        return steps_while(start, 1, highest, is_below);
    }
    let (above, below) = steps_while(start, -1, lowest, |count| !is_below(count));
    (below, above)
}

/// Ever longer steps from `start` towards a limit, as long as a condition holds: the last count at which it does, and the first
/// at which it does not, or the limit.
fn steps_while(start: i64, mut step: i64, limit: i64, holds: impl Fn(i64) -> bool) -> (i64, i64) {
    let mut last = start;
    loop {
        let next = last + step;
        if (next - limit) * step.signum() >= 0 {
            return (last, limit);
        }
        if !holds(next) {
            return (last, next);
        }
        (last, step) = (next, 2 * step);
    }
}
