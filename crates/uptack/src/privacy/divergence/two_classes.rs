//! The divergence of two classes in a crowd of both truths, exactly.

use crate::certified::binomial::{Binomial, Coin, ROUNDOFF, window};
use crate::certified::binomial_sum::{Counts, sum_of_two};
use crate::certified::enclosure::Bracket;
use crate::privacy::effort::Work;
use crate::privacy::likelihood::Weight;

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
    let sum = positive_sum(one, other, &counts.probability);
    let error = sum.error + (counts.relative_error + 2.0 * log_cut.exp()) * (sum.value + sum.error);
    Bracket::around(sum.value, error, 3.0 * log_cut.exp() * (first.first + second.first))
}

/// Σ over a of (one·g(a−1) + other·g(a))₊; each weight comes with how far it may be off.
/// The law g is log-concave, so the terms change sign once at most, and the sum starts at the end where they are positive.
fn positive_sum(one: (f64, f64), other: (f64, f64), law: &[f64]) -> Positive {
    let mut sum = Positive::default();
    if one.0 <= -one.1 && other.0 <= -other.1 {
        return sum;
    }
    // Returns whether the term is certainly negative, after which all are.
    let mut add = |below: f64, at: f64| {
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
    sum
}
