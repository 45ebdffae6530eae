//! A bound on the terms in rows that are too far away to be added up, from the sign of single terms, however unlikely
//! (`docs/accounting.md`, "The remaining rows").
//!
//! The sign of a term: the probability of the histogram h in a crowd of y yes- and m no-owners is, up to a factor that the
//! target does not change, ∏1/h_c! times the coefficient of z^y in ∏(q_c + p_c·z)^h_c: every owner is one of either truth.
//! Coefficients of such a product are probabilities of a sum of binomials, tilted to where y is likely, and a sum of them is a
//! short Fourier sum.

use std::f64::consts::TAU;

use super::generating_function::{Polar, chord, falling_sum, mirrored, odd};
use super::tilt::{ClassTilt, Corner, CornerBound, HighRow};
use crate::certified::binomial::{Binomial, Coin, window};
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::likelihood::{CrowdLaws, Likelihood, Weight};
use crate::privacy::work::WorkBudget;

/// Rows with fewer or with more owners in the row class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RowSide {
    Fewer,
    More,
}

impl RowSide {
    pub(super) const BOTH: [Self; 2] = [Self::Fewer, Self::More];

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
/// a row is at most Σ G(h)·x_c over crowds h for which some, but not all h + e_c are in A: those one step before a turn, and
/// those at the edge of the first row. The former are bounded by a staircase of rows whose turns are known.
pub(super) struct TailBound<'a> {
    crowd: &'a CrowdLaws<3>,
    weights: [Weight; 3],
    tilt: ClassTilt,
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
type ReachedCount = (HighRow<f64>, f64);

impl Stair {
    /// The high count of a crowd one step before the turn. The turn counts the target, too.
    fn by_high_count(self) -> ReachedCount {
        (HighRow { high: 1.0, row: 0.0 }, self.turn as f64 - 1.0)
    }

    /// The sum of the counts high and row there.
    fn by_both_counts(self) -> ReachedCount {
        (HighRow { high: 1.0, row: 1.0 }, (self.turn + self.row) as f64 - 1.0)
    }
}

/// The staircase ends after this many steps; the rows beyond are bounded as a whole.
const MOST_STEPS: usize = 200;
/// The cost of a step, in elementary steps.
const STEP_COST: u64 = 800;
/// The logarithm by which the tilt's factor changes over one step. Longer steps lose more, shorter ones cost more.
const STEP: f64 = 0.5;

impl<'a> TailBound<'a> {
    pub(super) fn new(crowd: &'a CrowdLaws<3>, weights: [Weight; 3], tilt: ClassTilt, side: RowSide) -> Self {
        Self { crowd, weights, tilt, side }
    }

    /// A bound on the positive terms in the rows beyond `start.row`. The rows beyond the staircase should add no more than
    /// `negligible`.
    pub(super) fn bound(&self, start: Stair, negligible: f64, work: &WorkBudget) -> f64 {
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

    /// A lower bound on the counts one step before a turn between two stairs: known from the turn of the first or of the last
    /// row.
    fn shape_between(&self, stair: Stair, next: Stair) -> ReachedCount {
        let flat = stair.slope.abs() < 0.5;
        let from_first = flat == (self.side == RowSide::Fewer);
        if from_first { self.natural(stair) } else { self.opposite(next) }
    }

    /// The rows of one step. Over a step the turn is only known to move by 0 or by 1 per row; the loss is the difference to
    /// `slope`.
    fn length(&self, slope: f64) -> i64 {
        let lost = slope.abs().min(1.0 - slope.abs()).max(0.02);
        let rows = (STEP / (self.tilt.high * lost)).max(1.0);
        let deviation = self.crowd.tilted(self.tilt).covariance().row.sqrt();
        rows.min(0.5 * deviation + 1.0) as i64
    }

    /// A lower bound on the counts one step before a turn in all rows beyond one whose turn is known.
    fn natural(&self, stair: Stair) -> ReachedCount {
        match self.side {
            RowSide::Fewer => stair.by_high_count(),
            RowSide::More => stair.by_both_counts(),
        }
    }

    /// The same in the rows before one whose turn is known.
    fn opposite(&self, stair: Stair) -> ReachedCount {
        match self.side {
            RowSide::Fewer => stair.by_both_counts(),
            RowSide::More => stair.by_high_count(),
        }
    }

    /// A bound for the histograms one step before a turn in `length` rows beyond `row`, weighted.
    fn strip(&self, row: i64, length: i64, shape: ReachedCount) -> f64 {
        let bound = self.corner_bound(row, shape, true);
        // One row more: the corner starts at the row itself.
        self.before() * bound.all * bound.single * series(bound.at[1], Some(length + 1)) * (1.0 + 1e-9)
    }

    /// The same for all rows beyond `row`.
    fn all(&self, row: i64, shape: ReachedCount) -> f64 {
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
    fn corner_bound(&self, row: i64, (direction, reached): ReachedCount, ends: bool) -> CornerBound {
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

/// The logarithm of the mass that is left out of the Fourier sum.
const FOURIER_NOISE: f64 = -36.0;

/// Whether a target with the weights `x` (each with its rounding error) makes the first law certainly the less likely one at the
/// histogram of all, which is given by the counts of the classes.
pub(super) fn is_negative(crowd: &CrowdLaws<3>, x: [(f64, f64); 3], counts: [i64; 3]) -> bool {
    let histogram = Histogram { crowd, counts };
    let Some(coefficients) = histogram.coefficients() else { return false };
    let (mut sum, mut slack) = (0.0, 0.0);
    for class in histogram.classes() {
        let (part, error) = coefficients.times(histogram.product_without(class));
        let (scale, (value, value_error)) = (counts[class] as f64, x[class]);
        sum += value * scale * part;
        slack += scale * (value_error * part + value.abs() * (error + 16.0 * ROUNDOFF * part));
    }
    sum < -slack
}

/// A histogram of all owners, the target included.
struct Histogram<'a> {
    crowd: &'a CrowdLaws<3>,
    counts: [i64; 3],
}

impl Histogram<'_> {
    /// The classes that somebody is in.
    fn classes(&self) -> impl Iterator<Item = usize> {
        (0..3).filter(move |class| self.counts[*class] > 0)
    }

    fn likelihood(&self, class: usize) -> Likelihood {
        self.crowd.laws.map(|law| law[class])
    }

    /// The coefficients with one owner less in each nonempty class: the common factor of all terms.
    fn coefficients(&self) -> Option<Coefficients> {
        let one_less = |class: usize| (self.counts[class] as u64 - 1, self.likelihood(class));
        let classes = self.classes().map(one_less).filter(|(_, class)| class.yes + class.no > 0.0);
        Coefficients::new(&classes.collect::<Vec<_>>(), self.crowd.owners.yes)
    }

    /// The coefficients of ∏(q + p·z) over the classes that somebody is in, but for one: at most two.
    fn product_without(&self, class: usize) -> [f64; 3] {
        let others = self.classes().filter(|other| *other != class).map(|other| self.likelihood(other));
        others.fold([1.0, 0.0, 0.0], |[a, b, c], Likelihood { yes: p, no: q }| [a * q, b * q + a * p, c * q + b * p])
    }
}

/// The coefficients of z^k, z^(k−1) and z^(k−2) in ∏(q + p·z)^count, up to a factor, and how far each may be off.
struct Coefficients {
    values: [f64; 3],
    error: f64,
}

impl Coefficients {
    /// The coefficients for classes that owners reach; `None` if they leave the range of doubles.
    fn new(classes: &[(u64, Likelihood)], k: u64) -> Option<Self> {
        let tilt = tilt_to(classes, k as f64 - 1.0);
        let part = |(count, class): &(u64, Likelihood)| Binomial::new(*count, tilted_coin(*class, tilt));
        let parts: Vec<Binomial> = classes.iter().map(part).collect();
        let (probabilities, error) = probabilities(&parts, k as i64);
        Self::without_tilt(probabilities, error, tilt)
    }

    /// The coefficients from probabilities under a tilt, each of which may be off by `error`.
    fn without_tilt(probabilities: [f64; 3], error: f64, tilt: f64) -> Option<Self> {
        let factor = tilt.exp();
        let scales = [1.0, factor, factor * factor];
        let values = [0, 1, 2].map(|index: usize| probabilities[index] * scales[index]);
        let error = error * scales.iter().fold(1.0, |a: f64, b| a.max(*b));
        (error.is_finite() && values.iter().all(|value| value.is_finite())).then_some(Self { values, error })
    }

    /// The coefficient of z^k after multiplication by a polynomial of degree two, and how far it may be off.
    fn times(&self, polynomial: [f64; 3]) -> (f64, f64) {
        let value = polynomial.iter().zip(&self.values).map(|(one, other)| one * other).sum();
        (value, polynomial.iter().sum::<f64>() * self.error)
    }
}

/// The truth of an owner of a class as a coin, with a factor of e^`tilt` on *yes*.
fn tilted_coin(Likelihood { yes: p, no: q }: Likelihood, tilt: f64) -> Coin {
    if p > 0.0 && q > 0.0 { Coin::between(p, q * (-tilt).exp()) } else { Coin::between(p, q) }
}

/// The probabilities that a sum of binomials is k, k − 1 and k − 2, and how far each may be off: a Fourier sum around k − 1.
fn probabilities(parts: &[Binomial], k: i64) -> ([f64; 3], f64) {
    let nodes = nodes_around(parts, k);
    let step = TAU / nodes as f64;
    // Slightly less, which covers rounding.
    let variance: f64 = parts.iter().map(|part| part.mean() * part.coin.failure).sum::<f64>() * (1.0 - 1e-9);
    let mut sums = NeighbourSums::new(parts);
    for node in 0..=nodes / 2 {
        let theta = node as f64 * step;
        if variance * chord(theta) > -FOURIER_NOISE {
            sums.error += 2.0 * falling_sum(theta, step, |theta| variance * chord(theta));
            break;
        }
        sums.add(generating(parts, theta, k - 1), mirrored(node), theta);
    }
    sums.means(nodes as f64)
}

/// Fourier sums for three neighbouring coefficients, around the middle one, and how far each may be off.
struct NeighbourSums {
    owners: f64,
    values: [f64; 3],
    error: f64,
}

impl NeighbourSums {
    fn new(parts: &[Binomial]) -> Self {
        let owners: u64 = parts.iter().map(|part| part.trials).sum();
        Self { owners: owners as f64, values: [0.0; 3], error: 0.0 }
    }

    /// Adds a value of the generating function, which stands for this many nodes.
    fn add(&mut self, Polar { size, angle }: Polar, nodes: f64, theta: f64) {
        let size = nodes * size;
        for (index, sum) in self.values.iter_mut().enumerate() {
            *sum += size * (angle - theta * (1.0 - index as f64)).cos();
        }
        self.error += size * ROUNDOFF * (64.0 + 16.0 * self.owners * theta);
    }

    /// The means over all nodes, and how far each may be off, what folds back included.
    fn means(&self, nodes: f64) -> ([f64; 3], f64) {
        (self.values.map(|value| value.max(0.0) / nodes), self.error / nodes + 4.0 * FOURIER_NOISE.exp())
    }
}

/// Enough nodes for nothing but noise to fold back to k, k − 1 and k − 2; odd.
fn nodes_around(parts: &[Binomial], k: i64) -> i64 {
    let (low, high) = window(parts, FOURIER_NOISE);
    odd((k - low as i64).max(high as i64 - k + 2).max(1) + 3)
}

/// The generating function of a sum of binomials on the circle, without the phase of the center.
fn generating(parts: &[Binomial], theta: f64, center: i64) -> Polar {
    let (mut logarithm, mut angle) = (0.0, -theta * center as f64);
    for part in parts {
        let Coin { success, failure } = part.coin;
        logarithm += 0.5 * part.trials as f64 * (-(2.0 * success * failure * chord(theta)).min(1.0)).ln_1p();
        angle += part.trials as f64 * (success * theta.sin()).atan2(success * theta.cos() + failure);
    }
    Polar { size: logarithm.exp(), angle }
}

/// The logarithm of the factor on p for which the mean number of successes is about `wanted`.
fn tilt_to(classes: &[(u64, Likelihood)], wanted: f64) -> f64 {
    let mut tilt = 0.0_f64;
    for _ in 0..60 {
        let (mean, variance) = tilted_moments(classes, tilt);
        let step = ((wanted - mean) / variance.max(1e-9)).clamp(-1.0, 1.0);
        tilt = (tilt + step).clamp(-60.0, 60.0);
        if step.abs() * variance.sqrt() < 1e-3 {
            break;
        }
    }
    tilt
}

/// Mean and variance of the number of successes under a tilt.
fn tilted_moments(classes: &[(u64, Likelihood)], tilt: f64) -> (f64, f64) {
    let (mut mean, mut variance) = (0.0, 0.0);
    for (count, class) in classes {
        let success = class.yes / (class.yes + class.no * (-tilt).exp());
        mean += *count as f64 * success;
        variance += *count as f64 * success * (1.0 - success);
    }
    (mean, variance)
}
