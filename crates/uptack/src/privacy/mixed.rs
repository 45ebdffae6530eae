//! The divergence in a crowd of both truths: exactly for two classes, from above for three.

use super::binomial::{Binomial, Coin, ROUNDOFF, window};
use super::bracket::Bracket;
use super::mixture::{Counts, sum_of_two};
use super::piece::Weight;
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
    let (one, other) = (first.value(), second.value());
    // The ratio of neighbours may be off, and so may each weight.
    let (one_slack, other_slack) = (16.0 * ROUNDOFF * first.magnitude(), 16.0 * ROUNDOFF * second.magnitude());
    let ratio_slack = 2.0 * counts.ratio_error * other.abs();
    let mut sum = Positive::default();
    let mut below = 0.0;
    for &at in counts.probability.iter().chain(&[0.0]) {
        sum.add(one * below + other * at, one_slack * below + (other_slack + ratio_slack) * at);
        below = at;
    }
    let error = sum.error + (counts.relative_error + 2.0 * log_cut.exp()) * (sum.value + sum.error);
    Bracket::around(sum.value, error, 3.0 * log_cut.exp() * (first.first + second.first))
}

/// Three classes, from above: the crowd is `main` in full, and of `side` the adversary is told who is in the class `outer`;
/// those owners are dropped, the others still hide between the two inner classes. With an empty side this is exact.
pub(crate) fn three_classes_above<const N: usize>(
    targets: [[Weight; 3]; N],
    main: Group<'_>,
    side: Group<'_>,
    outer: usize,
    log_cut: f64,
    work: &Work,
) -> [f64; N] {
    let (high, low) = inner_pair(outer);
    let told = Coin { success: side.law[high] + side.law[low], failure: side.law[outer] };
    let (kept, _) = window(&[Binomial::new(side.owners, told)], log_cut);
    let law = Binomial::new(main.owners, Coin { success: main.law[outer], failure: main.law[high] + main.law[low] });
    let (first, last) = window(&[law], log_cut);
    let coin = |group: Group<'_>| match group.law[high] + group.law[low] {
        total if total > 0.0 => Coin::between(group.law[high], group.law[low]),
        _ => Coin { success: 0.0, failure: 1.0 },
    };
    let hidden = Binomial::new(if told.success > 0.0 { kept } else { 0 }, coin(side));
    let inner = |count: u64| Binomial::new(main.owners - count, coin(main));
    let (bottom, _) = window(&[hidden, inner(last)], log_cut);
    let top = window(&[hidden, inner(first)], log_cut).1 + 1;
    let start = padded(sum_of_two(hidden, inner(last), bottom, top), bottom, top);
    let mut rows = Rows { coin: coin(main), current: start.probability, scratch: Vec::new() };
    let mut sums = [Positive::default(); N];
    let anchor = law.probability(last);
    let mut weight = anchor.value;
    let near = 4.0 * (start.relative_error + 16.0 * ROUNDOFF * (last - first + 2) as f64);
    for count in (first..=last).rev() {
        let below = if count > 0 { weight * ratio_below(&law, count) } else { 0.0 };
        rows.advance();
        for (sum, target) in sums.iter_mut().zip(&targets) {
            let weights = [raised(target[high]) * weight, raised(target[low]) * weight, raised(target[outer]) * below];
            rows.add(weights, near, sum);
        }
        weight = below;
    }
    work.spend((last - first + 1) * (top - bottom + 1) / 4 + start.steps);
    std::array::from_fn(|index| {
        let target = &targets[index];
        let mass: f64 = target.iter().map(|weight| weight.first).sum();
        // One row above the last: there only the target can be the owner too many.
        let edge = raised(target[outer]).max(0.0) * anchor.value;
        let sum = sums[index].value + sums[index].error + edge;
        sum * (1.0 + near + 2.0 * anchor.relative_error) + 8.0 * mass * log_cut.exp()
    })
}

/// A weight rounded up.
fn raised(weight: Weight) -> f64 {
    weight.value() + 8.0 * ROUNDOFF * weight.magnitude()
}

/// P(X = count − 1) / P(X = count), also for coins without failure.
fn ratio_below(law: &Binomial, count: u64) -> f64 {
    if law.coin.success == 0.0 { 0.0 } else { law.ratio_down(count) }
}

/// The two classes besides `outer`, higher ratio first.
fn inner_pair(outer: usize) -> (usize, usize) {
    match outer {
        0 => (1, 2),
        1 => (0, 2),
        _ => (0, 1),
    }
}

fn padded(counts: Counts, bottom: u64, top: u64) -> Counts {
    let mut probability = vec![0.0; (top - bottom + 1) as usize];
    let shift = (counts.first - bottom) as usize;
    probability[shift..shift + counts.probability.len()].copy_from_slice(&counts.probability);
    Counts { first: bottom, probability, ..counts }
}

/// The inner law for one outer count, and for one more inner owner.
struct Rows {
    coin: Coin,
    current: Vec<f64>,
    scratch: Vec<f64>,
}

impl Rows {
    /// Moves on to one more inner owner; `scratch` keeps the law with one fewer.
    fn advance(&mut self) {
        let Coin { success, failure } = self.coin;
        std::mem::swap(&mut self.current, &mut self.scratch);
        self.current.clear();
        self.current.reserve(self.scratch.len());
        self.current.push(failure * self.scratch[0]);
        let pairs = self.scratch.windows(2).map(|pair| success * pair[0] + failure * pair[1]);
        self.current.extend(pairs);
    }

    /// The row's sum over the inner counts a of (high·g(a−1) + low·g(a) + outer·g⁺(a))₊, where g is the law with the fewer and
    /// g⁺ that with the more inner owners.
    fn add(&self, [high, low, outer]: [f64; 3], near: f64, sum: &mut Positive) {
        let part = |weight: f64| (weight.max(0.0), -weight.min(0.0));
        let ((high_plus, high_minus), (low_plus, low_minus), (outer_plus, outer_minus)) =
            (part(high), part(low), part(outer));
        let (plus, minus) = (
            low_plus * self.scratch[0] + outer_plus * self.current[0],
            low_minus * self.scratch[0] + outer_minus * self.current[0],
        );
        sum.add(plus - minus, near * plus);
        let (mut value, mut error) = (0.0, 0.0);
        for (pair, more) in self.scratch.windows(2).zip(&self.current[1..]) {
            let plus = high_plus * pair[0] + low_plus * pair[1] + outer_plus * more;
            let minus = high_minus * pair[0] + low_minus * pair[1] + outer_minus * more;
            let slack = near * plus;
            let difference = plus - minus;
            value += difference.max(0.0);
            error += if difference > -slack { slack } else { 0.0 };
        }
        sum.value += value;
        sum.error += error;
    }
}
