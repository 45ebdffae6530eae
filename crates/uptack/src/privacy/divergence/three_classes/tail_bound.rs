//! A bound on what the rows that are too far away to be added up may add (`docs/accounting.md`, "The remaining rows").

use super::term_sign::is_negative;
use super::tilt::{Bound, Corner, HighRow, Tilt};
use crate::privacy::effort::Work;
use crate::privacy::likelihood::{CrowdLaws, Weight};

/// Rows with fewer or with more owners in the row class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RowSide {
    Fewer,
    More,
}

impl RowSide {
    pub(super) fn step(self) -> i64 {
        if self == Self::Fewer { -1 } else { 1 }
    }

    /// The last possible row, the target included.
    fn last(self, others: u64) -> i64 {
        if self == Self::Fewer { 0 } else { others as i64 + 1 }
    }
}

/// A bound on the positive terms beyond a row.
///
/// With t(b) the turn of the row b, t(b) ≥ t(b+1) ≥ t(b) − 1, and Σ_c x_c ≤ 0. So the sum Σ_A f over the positive terms A beyond
/// a row is at most Σ G(h)·x_c over crowds h for which some, but not all h + e_c are in A: those one step before a turn, and those
/// at the edge of the first row. The former are bounded by a staircase of rows whose turns are known.
pub(super) struct TailBound<'a> {
    crowd: &'a CrowdLaws<3>,
    weights: [Weight; 3],
    tilt: Tilt,
    side: RowSide,
}

/// A row, a count (`turn`) before which its terms do not turn positive, and by about how much that moves from row to row.
#[derive(Clone, Copy)]
pub(super) struct Stair {
    pub(super) row: i64,
    pub(super) turn: i64,
    pub(super) slope: f64,
}

/// A direction, and the number that the counts reach in it.
type Shape = (HighRow<f64>, f64);

impl Stair {
    /// What the high count of a crowd one step before the turn reaches. The turn counts the target, too.
    fn by_high_count(self) -> Shape {
        (HighRow { high: 1.0, row: 0.0 }, self.turn as f64 - 1.0)
    }

    /// What the counts high and row together reach there.
    fn by_both_counts(self) -> Shape {
        (HighRow { high: 1.0, row: 1.0 }, (self.turn + self.row) as f64 - 1.0)
    }
}

/// The staircase ends after this many steps; the rows beyond are bounded as a whole.
const MOST_STEPS: usize = 200;
/// What a step costs, in elementary steps.
const STEP_COST: u64 = 800;
/// The logarithm by which the tilt's factor changes over one step. Longer steps lose more, shorter ones cost more.
const STEP: f64 = 0.5;

impl<'a> TailBound<'a> {
    pub(super) fn new(crowd: &'a CrowdLaws<3>, weights: [Weight; 3], tilt: Tilt, side: RowSide) -> Self {
        Self { crowd, weights, tilt, side }
    }

    /// A bound on the positive terms in the rows beyond `start.row`. What is left out of the staircase should be no more than
    /// `negligible`.
    pub(super) fn bound(&self, start: Stair, negligible: f64, work: &Work) -> f64 {
        let mut stair = start;
        let last = self.side.last(self.crowd.owners.size());
        let length = self.length(start.slope);
        let mut sum = if start.row == last { 0.0 } else { self.edge(start) + self.inside(start) };
        for _ in 0..MOST_STEPS {
            work.spend(STEP_COST);
            let left = (last - stair.row).abs();
            if left == 0 {
                return sum;
            }
            let rest = self.all(stair.row, self.natural(stair));
            if rest <= negligible {
                return sum + rest;
            }
            let length = length.min(left);
            let next = self.next(stair, length);
            sum += self.strip(stair.row, length, self.shape_between(stair, next));
            stair = next;
        }
        sum + self.all(stair.row, self.natural(stair))
    }

    /// The stair `length` rows further out.
    fn next(&self, stair: Stair, length: i64) -> Stair {
        let row = stair.row + length * self.side.step();
        let turn = self.next_turn(row, stair.turn, length, stair.slope);
        Stair { row, turn, slope: 0.5 * (stair.slope + (turn - stair.turn) as f64 / length as f64) }
    }

    /// What the counts one step before a turn reach between two stairs: known from the turn of the first or of the last row.
    fn shape_between(&self, stair: Stair, next: Stair) -> Shape {
        let flat = stair.slope.abs() < 0.5;
        let from_first = flat == (self.side == RowSide::Fewer);
        if from_first { self.natural(stair) } else { self.opposite(next) }
    }

    /// The rows of one step. Over a step the turn is only known to move by 0 or by 1 per row; what is lost is the difference to
    /// `slope`.
    fn length(&self, slope: f64) -> i64 {
        let lost = slope.abs().min(1.0 - slope.abs()).max(0.02);
        let rows = (STEP / (self.tilt.high * lost)).max(1.0);
        let deviation = self.crowd.tilted(self.tilt).covariance().row.sqrt();
        rows.min(0.5 * deviation + 1.0) as i64
    }

    /// What the counts one step before a turn reach in all rows beyond one whose turn is known.
    fn natural(&self, stair: Stair) -> Shape {
        match self.side {
            RowSide::Fewer => stair.by_high_count(),
            RowSide::More => stair.by_both_counts(),
        }
    }

    /// The same in the rows before one whose turn is known.
    fn opposite(&self, stair: Stair) -> Shape {
        match self.side {
            RowSide::Fewer => stair.by_both_counts(),
            RowSide::More => stair.by_high_count(),
        }
    }

    /// A bound for the histograms one step before a turn in `length` rows beyond `row`, weighted.
    fn strip(&self, row: i64, length: i64, shape: Shape) -> f64 {
        let bound = self.corner_bound(row, shape, true);
        // One row more: the corner starts at the row itself.
        self.before() * bound.all * bound.single * series(bound.at[1], Some(length + 1)) * (1.0 + 1e-9)
    }

    /// The same for all rows beyond `row`.
    fn all(&self, row: i64, shape: Shape) -> f64 {
        let bound = self.corner_bound(row, shape, false);
        // Without an outward tilt the series is infinite, but all histograms of the corner have at most the corner's mass.
        self.before() * bound.all * (bound.single * series(bound.at[1], None)).min(1.0) * (1.0 + 1e-9)
    }

    /// A bound for the crowds at the edge, from which a target in the row class moves across it.
    fn edge(&self, stair: Stair) -> f64 {
        let weight = self.across_edge();
        if weight == 0.0 {
            return 0.0;
        }
        // It is a single row, so any tilt outwards will do.
        let bound = self.corner_bound(stair.row, self.natural(stair), true);
        weight * bound.all * (bound.single * series(bound.at[0], None)).min(1.0) * (1.0 + 1e-9)
    }

    /// The most that a target in the row class adds by moving across the edge.
    fn across_edge(&self) -> f64 {
        let middle = self.weights[1];
        let signed = self.side.step() as f64 * middle.value();
        (signed + middle.value_error()).max(0.0)
    }

    /// Where rounding does not exclude that Σ_c x_c > 0, crowds h with all three h + e_c beyond the row count, too.
    fn inside(&self, stair: Stair) -> f64 {
        let sum = Weight::sum_of_values(&self.weights);
        let error: f64 = 2.0 * self.weights.iter().map(Weight::value_error).sum::<f64>();
        if sum < -error {
            return 0.0;
        }
        (sum + error) * self.corner_bound(stair.row, self.natural(stair), false).all
    }

    /// The most that a crowd one step before a turn adds.
    fn before(&self) -> f64 {
        let [high, middle, _] = self.weights.map(|weight| weight.value() + weight.value_error());
        high + middle.max(0.0)
    }

    /// A bound for the histograms of this shape in the rows beyond `row`; `ends` is whether the rows end.
    fn corner_bound(&self, row: i64, (direction, reached): Shape, ends: bool) -> Bound {
        // The edge is the row below or the row itself.
        let (outwards, first) = match self.side {
            RowSide::Fewer => (-1.0, 1.0 - row as f64),
            RowSide::More => (1.0, row as f64),
        };
        let outwards = HighRow { high: 0.0, row: outwards };
        self.crowd.chernoff(&Corner { directions: [direction, outwards], reached: [reached, first], ends })
    }

    /// A count before which the terms do not turn in the row `row`, given one (`turn`) for the row `length` rows earlier.
    fn next_turn(&self, row: i64, turn: i64, length: i64, slope: f64) -> i64 {
        let known = if self.side == RowSide::Fewer { turn } else { turn - length };
        // Start a little too far, then go back until the sign is certain.
        let mut back = -2;
        loop {
            let candidate = turn + (slope * length as f64).round() as i64 - back;
            if candidate <= known {
                return known;
            }
            if self.is_negative_before(row, candidate) {
                return candidate;
            }
            back += 1 + back.max(0);
        }
    }

    /// A count before which the terms do not turn in the row `row`, probably near `guess`.
    pub(super) fn turn(&self, row: i64, guess: i64) -> i64 {
        let mut back = 0;
        while back < guess {
            if self.is_negative_before(row, guess - back) {
                return guess - back;
            }
            back = 2 * back + 1;
        }
        0
    }

    /// Whether the term before this count is certainly negative.
    fn is_negative_before(&self, row: i64, turn: i64) -> bool {
        let counts = [turn - 1, row, self.crowd.owners.size() as i64 + 2 - turn - row];
        let weights = self.weights.map(|weight| (weight.value(), weight.value_error()));
        counts.iter().all(|count| *count >= 0) && is_negative(self.crowd, weights, counts)
    }
}

/// 1 + e^(−step) + e^(−2·step) + …: the given number of terms, or all of them.
fn series(step: f64, terms: Option<i64>) -> f64 {
    let all = 1.0 / -(-step).exp_m1();
    match terms {
        None if step > 0.0 => all,
        None => f64::INFINITY,
        Some(terms) if step.abs() * terms as f64 <= 1e-6 => 1.000_001 * terms as f64,
        Some(terms) => all * -(-step * terms as f64).exp_m1(),
    }
}
