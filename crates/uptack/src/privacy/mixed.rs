//! The divergence in a crowd of both truths: exactly for two classes, from above for three.

use super::binomial::{Binomial, Coin, ROUNDOFF, window};
use super::bracket::Bracket;
use super::mixture::{Counts, sum_of_two};
use super::piece::Weight;
use super::view::Question;
use super::work::Work;

/// Owners of one truth: how many, and their probabilities for each class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) owners: u64,
    pub(crate) law: &'a [f64],
}

/// Adds up Σ (difference)₊ together with what rounding may have moved or hidden.
#[derive(Clone, Copy, Default)]
struct Positive {
    value: f64,
    error: f64,
}

impl Positive {
    /// `slack` is how far the difference may be off; one that is negative by more counts for nothing.
    fn add(&mut self, difference: f64, slack: f64) {
        if difference > -slack {
            self.value += difference.max(0.0);
            self.error += slack;
        }
    }
}

/// Two classes: the count of the first is a sum of two binomials. Exact, for each of the given targets.
pub(crate) fn two_classes<const N: usize>(
    targets: [[Weight; 2]; N],
    groups: [Group<'_>; 2],
    log_cut: f64,
    work: &Work,
) -> [Bracket; N] {
    let [left, right] = groups.map(|group| Binomial::new(group.owners, Coin::between(group.law[0], group.law[1])));
    let (low, high) = window(&[left, right], log_cut);
    let counts = sum_of_two(left, right, low, high);
    work.spend(counts.steps);
    targets.map(|[first, second]| one_row(first, second, &counts, log_cut))
}

fn one_row(first: Weight, second: Weight, counts: &Counts, log_cut: f64) -> Bracket {
    // The ratio of neighbours may be off, and so may each weight.
    let one = (first.value(), 16.0 * ROUNDOFF * first.magnitude());
    let ratio_slack = 2.0 * counts.ratio_error * second.value().abs();
    let other = (second.value(), 16.0 * ROUNDOFF * second.magnitude() + ratio_slack);
    let (sum, _) = positive_sum(one, other, &counts.probability);
    let error = sum.error + (counts.relative_error + 2.0 * log_cut.exp()) * (sum.value + sum.error);
    Bracket::around(sum.value, error, 3.0 * log_cut.exp() * (first.first + second.first))
}

/// Σ over a of (one·g(a−1) + other·g(a))₊ and how many terms were looked at; each weight comes with how far it may be off.
/// The law g is log-concave, so the terms change sign once at most, and the sum starts at the end where they are positive.
fn positive_sum(one: (f64, f64), other: (f64, f64), law: &[f64]) -> (Positive, u64) {
    let mut sum = Positive::default();
    if one.0 <= -one.1 && other.0 <= -other.1 {
        return (sum, 1);
    }
    let mut terms = 0;
    // Returns whether the term is certainly negative, after which all are.
    let mut add = |below: f64, at: f64| {
        terms += 1;
        let (difference, slack) = (one.0 * below + other.0 * at, one.1 * below + other.1 * at);
        sum.add(difference, slack);
        difference < -slack
    };
    let last = law.len() - 1;
    if one.0 > 0.0 {
        add(law[last], 0.0);
        let _ = (1..=last).rev().any(|index| add(law[index - 1], law[index])) || add(0.0, law[0]);
    } else {
        add(0.0, law[0]);
        let _ = (1..=last).any(|index| add(law[index - 1], law[index])) || add(law[last], 0.0);
    }
    (sum, terms)
}

/// Three classes, from above: the crowd is `main` in full, and of `side` the adversary is told who is in the class `outer`;
/// those owners are dropped, the others still hide between the two inner classes. `alone` is the divergence in a crowd of
/// `main` only: it stands in where unusually many of the side's owners are dropped, which is made so unlikely that it does
/// not matter next to `goal`.
pub(crate) fn three_classes_above<const N: usize>(
    targets: [[Weight; 3]; N],
    main: Group<'_>,
    side: Group<'_>,
    outer: usize,
    question: Question,
    work: &Work,
    alone: [f64; N],
) -> [f64; N] {
    let log_cut = question.log_cut;

    let (high, low) = inner_pair(outer, main.law);
    let inner_coin = |group: Group<'_>| match group.law[high] + group.law[low] {
        total if total > 0.0 => Coin::between(group.law[high], group.law[low]),
        _ => Coin { success: 0.0, failure: 1.0 },
    };
    let excess = alone.iter().map(|alone| alone - question.goal).fold(0.0, f64::max);
    let rarely = if excess > 0.0 { (2e-4 * question.goal / excess).clamp(log_cut.exp(), 0.05) } else { 0.05 };
    let law = Binomial::new(main.owners, Coin { success: main.law[outer], failure: main.law[high] + main.law[low] });
    let ordered = targets.map(|target| [target[high], target[low], target[outer]]);
    let with_kept = |kept: u64| {
        let table = Table::new(law, inner_coin(main), Binomial::new(kept, inner_coin(side)), log_cut);
        if !work.affords(table.cost()) {
            return alone;
        }
        let sums = table.sums(ordered, work);
        std::array::from_fn(|index| {
            let mass: f64 = ordered[index].iter().map(|weight| weight.first).sum();
            sums[index] + 8.0 * mass * log_cut.exp()
        })
    };
    let dropped = Dropped::new(side, outer, rarely);
    let coarse: [f64; N] = dropped.average(side.owners, 1, alone, with_kept);
    let largest = |values: &[f64; N]| values.iter().copied().fold(0.0, f64::max);
    // Averaging over the number dropped pays only if the bound is just missed.
    if largest(&coarse) <= question.goal || dropped.most == dropped.fewest || largest(&coarse) > 1.3 * question.goal {
        return coarse;
    }
    dropped.average(side.owners, 6, alone, with_kept)
}

/// How many of the side's owners are dropped: at least `fewest` in the cases told apart, more than `most` rarely.
struct Dropped {
    law: Binomial,
    fewest: u64,
    most: u64,
}

impl Dropped {
    fn new(side: Group<'_>, outer: usize, rarely: f64) -> Self {
        let law =
            Binomial::new(side.owners, Coin { success: side.law[outer], failure: (1.0 - side.law[outer]).max(0.0) });
        let (mean, deviation) = (law.mean(), law.mean().sqrt());
        let mut dropped = Self { law, fewest: (mean - 2.0 * deviation).max(0.0) as u64, most: mean as u64 };
        while dropped.most < side.owners && dropped.at_least(dropped.most + 1) > rarely {
            dropped.most = (dropped.most + 1 + (deviation / 4.0) as u64).min(side.owners);
        }
        dropped.fewest = dropped.fewest.min(dropped.most);
        dropped
    }

    /// The probability that this many or more are dropped, rounded up.
    fn at_least(&self, count: u64) -> f64 {
        if count == 0 || self.law.coin.failure <= 0.0 && count <= self.law.trials {
            return 1.0;
        }
        if self.law.coin.success == 0.0 || count > self.law.trials {
            return 0.0;
        }
        let tail = self.law.tail(count, 0);
        (tail.mass * (1.0 + tail.relative_error)).min(1.0)
    }

    /// The average of a bound that grows with the number dropped, in `blocks` blocks each taken at its largest number; beyond
    /// `most` it is `alone`. Written as a sum of steps, each times the probability to get there, it stays an upper bound if
    /// these are rounded up.
    fn average<const N: usize>(
        &self,
        owners: u64,
        blocks: u64,
        alone: [f64; N],
        bound: impl Fn(u64) -> [f64; N],
    ) -> [f64; N] {
        let width = (self.most - self.fewest).div_ceil(blocks.max(1)).max(1);
        let mut last = if blocks == 1 { self.most } else { self.fewest };
        let mut value = bound(owners - last);
        let mut previous = value;
        while last < self.most {
            let probability = self.at_least(last + 1);
            last = (last + width).min(self.most);
            let next = bound(owners - last);
            (0..N).for_each(|index| value[index] += probability * (next[index] - previous[index]).max(0.0));
            previous = std::array::from_fn(|index| next[index].max(previous[index]));
        }
        let probability = self.at_least(self.most + 1);
        std::array::from_fn(|index| value[index] + probability * (alone[index] - previous[index]).max(0.0))
    }
}

/// The law of the main group's outer count (by rows), and within a row of the inner count of all.
struct Table {
    law: Binomial,
    coin: Coin,
    first: u64,
    last: u64,
    start: Counts,
}

impl Table {
    fn new(law: Binomial, coin: Coin, hidden: Binomial, log_cut: f64) -> Self {
        let (first, last) = window(&[law], log_cut);
        let inner = |count: u64| Binomial::new(law.trials - count, coin);
        let (bottom, _) = window(&[hidden, inner(last)], log_cut);
        let top = window(&[hidden, inner(first)], log_cut).1 + 1;
        let start = padded(sum_of_two(hidden, inner(last), bottom, top), bottom, top);
        Self { law, coin, first, last, start }
    }

    /// About how many steps [`Table::sums`] takes.
    fn cost(&self) -> u64 {
        (self.last - self.first + 1).saturating_mul(self.start.probability.len() as u64) / 2
    }

    /// Σ over histograms of (high·G(a−1, b) + low·G(a, b) + outer·G(a, b−1))₊ for each target, rounded up. The last row's
    /// weight and the errors of both laws are relative and multiply the sum.
    fn sums<const N: usize>(self, targets: [[Weight; 3]; N], work: &Work) -> [f64; N] {
        let anchor = self.law.probability(self.last);
        let rows = (self.last - self.first + 2) as f64;
        let relative_error = anchor.relative_error + self.start.relative_error + 16.0 * ROUNDOFF * rows;
        let ratio_error = 2.0 * (self.start.relative_error + 8.0 * ROUNDOFF * rows);
        // One row above the last: there only the target can be the owner too many.
        let mut sums = targets.map(|target| raised(target[2]).max(0.0) * anchor.value);
        let (mut weight, mut inner) = (anchor.value, self.start.probability);
        let mut scratch = vec![0.0; inner.len()];
        let Coin { success, failure } = self.coin;
        let mut steps = self.start.steps;
        for count in (self.first..=self.last).rev() {
            let below = if count > 0 { weight * ratio_below(&self.law, count) } else { 0.0 };
            for (sum, [high, low, outer]) in sums.iter_mut().zip(&targets) {
                // One more inner owner makes g(a) into success·g(a−1) + failure·g(a).
                let one = (raised(*high) * weight, raised(*outer) * below * success);
                let other = (raised(*low) * weight, raised(*outer) * below * failure);
                let with_slack = |weight: f64| (weight, ratio_error * weight.abs());
                let (row, terms) = positive_sum(with_slack(rounded_sum(one)), with_slack(rounded_sum(other)), &inner);
                *sum += row.value + row.error;
                steps += terms;
            }
            steps += inner.len() as u64 / 4;
            add_owner(&inner, &mut scratch, self.coin);
            std::mem::swap(&mut inner, &mut scratch);
            weight = below;
        }
        work.spend(steps);
        sums.map(|sum| sum * (1.0 + 2.0 * relative_error))
    }
}

/// The law of a count with one more owner.
fn add_owner(law: &[f64], more: &mut [f64], Coin { success, failure }: Coin) {
    more[0] = failure * law[0];
    for (pair, value) in law.windows(2).zip(&mut more[1..]) {
        *value = success * pair[0] + failure * pair[1];
    }
}

fn rounded_sum((a, b): (f64, f64)) -> f64 {
    a + b + 8.0 * ROUNDOFF * (a.abs() + b.abs())
}

/// A weight rounded up.
fn raised(weight: Weight) -> f64 {
    weight.value() + 8.0 * ROUNDOFF * weight.magnitude()
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
