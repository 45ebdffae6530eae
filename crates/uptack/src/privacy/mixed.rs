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
    let (kept, fewer) = kept_owners(side, outer, rarely);
    let hidden = Binomial::new(kept, inner_coin(side));
    let law = Binomial::new(main.owners, Coin { success: main.law[outer], failure: main.law[high] + main.law[low] });
    let table = Table::new(law, inner_coin(main), hidden, log_cut);
    let sums = table.sums(targets.map(|target| [target[high], target[low], target[outer]]), work);
    std::array::from_fn(|index| {
        let mass: f64 = targets[index].iter().map(|weight| weight.first).sum();
        let value = sums[index] + 8.0 * mass * log_cut.exp();
        value + fewer * (alone[index] - value).max(0.0)
    })
}

/// How many of the side's owners are kept at least, but for a small probability, which is the second number.
fn kept_owners(side: Group<'_>, outer: usize, rarely: f64) -> (u64, f64) {
    let dropped = Binomial::new(side.owners, Coin { success: side.law[outer], failure: 1.0 - side.law[outer] });
    if side.law[outer] == 0.0 {
        return (side.owners, 0.0);
    }
    let step = 1 + (dropped.mean().sqrt() / 4.0) as u64;
    let mut most = dropped.mean() as u64;
    while most < side.owners {
        let tail = dropped.tail(most + 1, 0);
        let more = tail.mass * (1.0 + tail.relative_error);
        if more <= rarely {
            return (side.owners - most, more);
        }
        most += step;
    }
    (0, 0.0)
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
