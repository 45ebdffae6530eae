//! Three classes in a crowd of both truths, from above.
//!
//! The crowd is the commoner truth's owners in full (`main`) and of the rarer truth's (`side`) those who are not in one
//! class, `outer`: the adversary is told who is in it, and these are dropped. The others still hide between the two inner
//! classes. The main group's outer count is then visible but for the target, and given it the inner count is a sum of two
//! binomials (`docs/accounting.md`, "Crowds of both truths").

use super::binomial::{Binomial, Coin, ROUNDOFF, window};
use super::mixed::Group;
use super::mixture::{Counts, sum_of_two};
use super::piece::Weight;
use super::view::Question;
use super::work::Work;

/// This share of the inner owners may be left out of a row's law: rows share the law of the one with fewest of them.
const SHARED: f64 = 2e-4;
/// Where rows contribute less than this share of the goal, more of them use one law, up to so many times more.
const UNIMPORTANT: f64 = 1e-4;
const COARSEST: u64 = 4;
/// Up to this many rows it is cheaper to add owners to a law than to compute it anew.
const FEW_ROWS: u64 = 24;

/// A crowd in which the side owners kept are all between the inner classes.
pub(crate) struct Told<'a> {
    /// For each direction the target's weights, in the order high, low, outer.
    targets: [[Weight; 3]; 2],
    /// The main group's outer count.
    rows: Binomial,
    main: Coin,
    side: Coin,
    /// How many of the side's owners are not in the outer class.
    kept: Binomial,
    log_cut: f64,
    goal: f64,
    work: &'a Work,
}

impl<'a> Told<'a> {
    pub(crate) fn new(
        targets: [[Weight; 3]; 2],
        main: Group<'_>,
        side: Group<'_>,
        outer: usize,
        question: Question,
        work: &'a Work,
    ) -> Self {
        let (high, low) = inner_pair(outer, main.law);
        let inner_coin = |group: Group<'_>| match group.law[high] + group.law[low] {
            total if total > 0.0 => Coin::between(group.law[high], group.law[low]),
            _ => Coin { success: 0.0, failure: 1.0 },
        };
        let outer_coin =
            |group: Group<'_>| Coin { success: group.law[outer], failure: group.law[high] + group.law[low] };
        Self {
            targets: targets.map(|target| [target[high], target[low], target[outer]]),
            rows: Binomial::new(main.owners, outer_coin(main)),
            main: inner_coin(main),
            side: inner_coin(side),
            kept: Binomial::new(side.owners, outer_coin(side).reversed()),
            log_cut: question.log_cut,
            goal: question.goal,
            work,
        }
    }

    /// How many of the side's owners are not in the outer class.
    pub(crate) fn kept(&self) -> Binomial {
        self.kept
    }

    /// A bound for both directions if `kept` of the side's owners are kept, or more.
    pub(crate) fn with_kept(&self, kept: u64) -> [f64; 2] {
        let (first, last) = window(&[self.rows], self.log_cut);
        let hidden = Binomial::new(kept, self.side);
        let inner = self.rows.trials as f64 * self.rows.coin.failure + kept as f64;
        let share = ((inner * SHARED) as u64).max(1);
        let mut laws = Laws::new(self.rows.trials, self.main, hidden, (first, last), share, self.log_cut);
        let anchor = self.rows.probability(last);
        let mut sums = self.targets.map(|target| Sum::new(target, anchor.value));
        let mut weight = anchor.value;
        let (mut before, mut coarseness) = (0.0, 1);
        for count in (first..=last).rev() {
            if laws.end_at(count) {
                let now = sums[0].value.max(sums[1].value);
                let little = now - before <= UNIMPORTANT * self.goal;
                coarseness = if little { (2 * coarseness).min(COARSEST) } else { 1 };
                before = now;
                laws.move_to(count, share * coarseness);
            }
            let below = if count > 0 { weight * ratio_below(&self.rows, count) } else { 0.0 };
            sums.iter_mut().for_each(|sum| sum.add_row(weight, below, self.main, &laws));
            weight = below;
        }
        self.work.spend(laws.steps + (last - first + 1));
        let rows = (last - first + 2) as f64;
        let relative_error = anchor.relative_error + laws.relative_error + 16.0 * ROUNDOFF * rows;
        sums.map(|sum| sum.upper(relative_error, self.log_cut))
    }
}

/// The law of the inner count of all, for one row after the other, with its sums from both ends.
struct Laws {
    trials: u64,
    coin: Coin,
    hidden: Binomial,
    /// So many rows use one law.
    share: u64,
    log_cut: f64,
    /// Whether each law is computed by itself, and not from the one before.
    alone: bool,
    first_row: u64,
    /// The row with the fewest inner owners for which the present law is right, and how many rows may still use it.
    row: u64,
    until: u64,
    law: Vec<f64>,
    scratch: Vec<f64>,
    /// The count that the law starts with.
    bottom: u64,
    /// Σ from each count up, and Σ of all below it.
    upper: Vec<f64>,
    lower: Vec<f64>,
    /// The first and the last count that are not too unlikely for a double, from the bottom.
    support: (usize, usize),
    relative_error: f64,
    steps: u64,
}

impl Laws {
    fn new(trials: u64, coin: Coin, hidden: Binomial, (first, last): (u64, u64), share: u64, log_cut: f64) -> Self {
        let mut laws = Self {
            trials,
            coin,
            hidden,
            share,
            log_cut,
            alone: share > FEW_ROWS,
            first_row: first,
            row: last,
            until: last,
            law: Vec::new(),
            scratch: Vec::new(),
            bottom: 0,
            upper: Vec::new(),
            lower: Vec::new(),
            support: (0, 0),
            relative_error: 0.0,
            steps: 0,
        };
        laws.start(last);
        laws
    }

    /// Whether the row `count` needs a law of its own.
    fn end_at(&self, count: u64) -> bool {
        count < self.until
    }

    /// Makes the law that of the row `count`, which also serves the `share` rows from there on.
    fn move_to(&mut self, count: u64, share: u64) {
        self.share = share;
        if self.row - count > FEW_ROWS || self.alone {
            self.start(count);
            return;
        }
        for _ in count..self.row {
            add_owner(&self.law, &mut self.scratch, self.coin);
            std::mem::swap(&mut self.law, &mut self.scratch);
            self.relative_error += 8.0 * ROUNDOFF;
        }
        self.steps += (self.row - count) * self.law.len() as u64 / 16;
        self.settle(count);
    }

    /// The law of a row from scratch; owners that are added to it later must stay within its window.
    fn start(&mut self, count: u64) {
        let inner = |count: u64| Binomial::new(self.trials - count, self.coin);
        let (bottom, _) = window(&[self.hidden, inner(count)], self.log_cut);
        // Where rows are many, each law has its own window; else there is room for the owners who are added later.
        let top = window(&[self.hidden, inner(count)], self.log_cut).1 + 1;
        let room = if self.alone { top } else { window(&[self.hidden, inner(self.first_row)], self.log_cut).1 + 1 };
        let counts = padded(sum_of_two(self.hidden, inner(count), bottom, top), bottom, room.max(top));
        self.relative_error = self.relative_error.max(counts.relative_error);
        self.steps += counts.steps;
        self.scratch.resize(counts.probability.len(), 0.0);
        self.bottom = bottom;
        self.law = counts.probability;
        self.settle(count);
    }

    /// The sums of the present law.
    fn settle(&mut self, count: u64) {
        self.row = count;
        self.until = count.saturating_sub(self.share - 1);
        let length = self.law.len();
        self.upper.resize(length + 1, 0.0);
        self.lower.resize(length + 1, 0.0);
        let (mut below, mut above) = (0.0, 0.0);
        self.upper[length] = 0.0;
        self.lower[0] = 0.0;
        for (value, sum) in self.law.iter().zip(&mut self.lower[1..]) {
            below += value;
            *sum = below;
        }
        for (value, sum) in self.law.iter().zip(&mut self.upper[..length]).rev() {
            above += value;
            *sum = above;
        }
        let possible = |value: &f64| *value > 0.0;
        self.support = (
            self.law.iter().position(possible).unwrap_or(0),
            self.law.iter().rposition(possible).unwrap_or(length - 1),
        );
        self.steps += length as u64 / 4;
    }
}

/// Adds up the rows of one direction: Σ over histograms of (high·G(a−1, b) + low·G(a, b) + outer·G(a, b−1))₊, rounded up.
struct Sum {
    weights: [Weight; 3],
    value: f64,
    magnitude: f64,
    /// Where the sign changed in the last row, as a count.
    turn: u64,
}

/// A coefficient with the sum of its parts' sizes, to which its rounding error is in proportion.
#[derive(Clone, Copy)]
struct Sized {
    value: f64,
    size: f64,
}

impl Sized {
    fn of(terms: [(Weight, f64); 2]) -> Self {
        let sum = |part: fn(&Weight) -> f64| part(&terms[0].0) * terms[0].1 + part(&terms[1].0) * terms[1].1;
        Self { value: sum(Weight::value), size: sum(Weight::magnitude) }
    }
}

/// Coefficients are sums of a few products.
const COEFFICIENT_ERROR: f64 = 16.0 * ROUNDOFF;

impl Sum {
    /// One row above the last only the target can be the owner too many.
    fn new(weights: [Weight; 3], last_row: f64) -> Self {
        let value = weights[2].value().max(0.0) * last_row;
        Self { weights, value, magnitude: weights[2].magnitude() * last_row, turn: 0 }
    }

    /// The row of weight `weight`; the one with an outer owner less has `below`.
    fn add_row(&mut self, weight: f64, below: f64, Coin { success, failure }: Coin, laws: &Laws) {
        let [high, low, outer] = self.weights;
        // One more inner owner makes g(a) into success·g(a−1) + failure·g(a).
        let one = Sized::of([(high, weight), (outer, below * success)]);
        let other = Sized::of([(low, weight), (outer, below * failure)]);
        let slack = COEFFICIENT_ERROR + 2.0 * laws.relative_error;
        if one.value <= -slack * one.size && other.value <= -slack * other.size {
            return;
        }
        // The law is log-concave, so the terms change sign once at most.
        let rising = one.value > 0.0;
        let turn = self.find_turn(one, other, slack, rising, laws);
        let length = laws.law.len();
        let (first, second) = if rising {
            (laws.upper[turn.saturating_sub(1)], laws.upper[turn])
        } else {
            (laws.lower[turn], laws.lower[(turn + 1).min(length)])
        };
        self.turn = laws.bottom + turn as u64;
        self.value += one.value * first + other.value * second;
        self.magnitude += one.size * first + other.size * second;
    }

    /// The outermost term that is not certainly negative: the first one where they rise, else the last one. Terms outside of
    /// the law's support are zero and belong to either side.
    fn find_turn(&self, one: Sized, other: Sized, slack: f64, rising: bool, laws: &Laws) -> usize {
        let law = &laws.law;
        let (first, last) = (laws.support.0, laws.support.1 + 1);
        let negative = |index: usize| {
            let below = if index == 0 { 0.0 } else { law[index - 1] };
            let at = if index == law.len() { 0.0 } else { law[index] };
            let value = one.value * below + other.value * at;
            value < -slack * (one.size * below + other.size * at)
        };
        let mut turn = (self.turn.saturating_sub(laws.bottom) as usize).clamp(first, last);
        if rising {
            while turn < last && negative(turn) {
                turn += 1;
            }
            while turn > first && !negative(turn - 1) {
                turn -= 1;
            }
        } else {
            while turn > first && negative(turn) {
                turn -= 1;
            }
            while turn < last && !negative(turn + 1) {
                turn += 1;
            }
        }
        turn
    }

    /// With all that rounding may have hidden, and the mass that was left out.
    fn upper(&self, relative_error: f64, log_cut: f64) -> f64 {
        let mass: f64 = self.weights.iter().map(|weight| weight.first).sum();
        let slack = COEFFICIENT_ERROR + 2.0 * relative_error;
        let sum = (self.value.max(0.0) + 2.0 * slack * self.magnitude) * (1.0 + 2.0 * relative_error);
        let upper = sum + 8.0 * mass * log_cut.exp();
        // Laws whose far ends are beyond doubles have no error bound; the whole mass is always a bound.
        if upper.is_finite() { upper } else { mass }
    }
}

/// The law of a count with one more owner.
fn add_owner(law: &[f64], more: &mut [f64], Coin { success, failure }: Coin) {
    more[0] = failure * law[0];
    for (pair, value) in law.windows(2).zip(&mut more[1..]) {
        *value = success * pair[0] + failure * pair[1];
    }
}

/// P(X = count − 1) / P(X = count), also for coins without failure.
fn ratio_below(law: &Binomial, count: u64) -> f64 {
    if law.coin.success == 0.0 { 0.0 } else { law.ratio_down(count) }
}

/// The two classes besides `outer`, the rarer one first: its count is narrow.
fn inner_pair(outer: usize, law: &[f64]) -> (usize, usize) {
    let (one, other) = ((outer + 1) % 3, (outer + 2) % 3);
    if law[one] <= law[other] { (one, other) } else { (other, one) }
}

fn padded(counts: Counts, bottom: u64, top: u64) -> Counts {
    let mut probability = vec![0.0; (top - bottom + 1) as usize];
    let shift = (counts.first - bottom) as usize;
    probability[shift..shift + counts.probability.len()].copy_from_slice(&counts.probability);
    Counts { first: bottom, probability, ..counts }
}
