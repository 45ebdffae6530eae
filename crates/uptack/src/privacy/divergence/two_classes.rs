//! The divergence of two classes in a crowd of both truths, exactly (`docs/accounting.md`, "Two classes").

use super::question::Divergences;
use crate::certified::binomial::{Binomial, Coin, window};
use crate::certified::binomial_sum::{Counts, sum_of_two};
use crate::certified::enclosure::Enclosure;
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::effort::Work;
use crate::privacy::likelihood::{CrowdLaws, Weight, Weights};

/// The divergence for a target with these weights, exactly: the count of the first class is a sum of two binomials.
pub(crate) fn two_classes(weights: Weights<2>, crowd: CrowdLaws<2>, log_cut: f64, work: &Work) -> Divergences {
    let parts = crowd.counts_of_first();
    let (low, high) = window(&parts, log_cut);
    let counts = sum_of_two(parts[0], parts[1], low, high);
    work.spend(counts.steps);
    weights.map(|[first, second]| positive_part(first, second, &counts, log_cut))
}

impl CrowdLaws<2> {
    /// How many owners of each truth are in the first class.
    pub(super) fn counts_of_first(&self) -> [Binomial; 2] {
        self.each().map(|(owners, [first, second])| Binomial::new(owners, Coin::between(first, second)))
    }
}

/// Σ over a of (first·g(a−1) + second·g(a))₊, g the law of the count.
fn positive_part(first: Weight, second: Weight, counts: &Counts, log_cut: f64) -> Enclosure {
    // The ratio of neighbours may be off, and so may each weight.
    let one = Coefficient::new(first, 16.0);
    let other = Coefficient::new(second, 16.0).with_ratio_error(counts.ratio_error);
    let sum = positive_sum(one, other, Law { values: &counts.probability, decay: 0.0, gap: 1.0 });
    let error = sum.error + (counts.relative_error + 2.0 * log_cut.exp()) * (sum.value + sum.error);
    Enclosure::around(sum.value, error, 3.0 * log_cut.exp() * (first.first + second.first))
}

/// A coefficient, and how far it may be off.
#[derive(Clone, Copy)]
pub(super) struct Coefficient {
    pub(super) value: f64,
    pub(super) slack: f64,
}

/// A log-concave law g on consecutive numbers, which beyond both ends falls by the factor `decay` from one number to the next:
/// a = 0 where there is nothing beyond. `gap` is 1 − a.
#[derive(Clone, Copy)]
pub(super) struct Law<'a> {
    pub(super) values: &'a [f64],
    pub(super) decay: f64,
    pub(super) gap: f64,
}

impl Law<'_> {
    /// Σ of g(k−1) and Σ of g(k) over all k up to the first number, and over all k above the last one.
    pub(super) fn ends(&self) -> [(f64, f64); 2] {
        let [first, last] = [self.values[0], self.values[self.values.len() - 1]].map(|value| value / self.gap);
        [(first * self.decay, first), (last, last * self.decay)]
    }

    /// The pairs (g(k−1), g(k)) with both numbers on the window, by growing k.
    pub(super) fn inner(&self) -> impl DoubleEndedIterator<Item = (f64, f64)> {
        self.values.windows(2).map(|pair| (pair[0], pair[1]))
    }

    /// All pairs (g(k−1), g(k)) by growing k, where those beyond each end are added up to one.
    fn neighbours(&self) -> impl DoubleEndedIterator<Item = (f64, f64)> {
        let [below, above] = self.ends();
        std::iter::once(below).chain(self.inner()).chain([above])
    }
}

impl Coefficient {
    /// The value of a weight that is off by at most this many roundings of its magnitude.
    pub(super) fn new(weight: Weight, roundings: f64) -> Self {
        Self { value: weight.value(), slack: roundings * ROUNDOFF * weight.magnitude() }
    }

    /// The same where the value of the law that it multiplies may be off by `ratio_error` relative to the neighbouring one.
    pub(super) fn with_ratio_error(self, ratio_error: f64) -> Self {
        Self { slack: self.slack + 2.0 * ratio_error * self.value.abs(), ..self }
    }

    fn is_certainly_not_positive(self) -> bool {
        self.value <= -self.slack
    }
}

/// Adds up Σ (difference)₊ together with what rounding may have moved or hidden.
#[derive(Clone, Copy, Default)]
pub(super) struct Positive {
    pub(super) value: f64,
    pub(super) error: f64,
}

impl Positive {
    /// `slack` is how far the difference may be off; one that is negative by more counts for nothing.
    #[inline]
    pub(super) fn add(&mut self, difference: f64, slack: f64) {
        if difference > -slack {
            self.value += difference.max(0.0);
            self.error += slack;
        }
    }
}

/// Σ over a of (one·g(a−1) + other·g(a))₊. The law g is log-concave, so the terms change sign at most once, and the sum starts
/// at the end where they are positive.
pub(super) fn positive_sum(one: Coefficient, other: Coefficient, law: Law<'_>) -> Positive {
    let mut terms = Terms { one, other, sum: Positive::default() };
    if one.is_certainly_not_positive() && other.is_certainly_not_positive() {
        return terms.sum;
    }
    let mut neighbours = law.neighbours();
    let _ = if one.value > 0.0 {
        neighbours.rev().any(|pair| terms.add(pair))
    } else {
        neighbours.any(|pair| terms.add(pair))
    };
    terms.sum
}

/// The terms (one·g(k−1) + other·g(k))₊, and their sum so far.
struct Terms {
    one: Coefficient,
    other: Coefficient,
    sum: Positive,
}

impl Terms {
    /// Adds the term of g(k−1) and g(k); returns whether it is certainly negative, after which all are.
    #[inline]
    fn add(&mut self, (below, at): (f64, f64)) -> bool {
        let difference = self.one.value * below + self.other.value * at;
        let slack = self.one.slack * below + self.other.slack * at;
        self.sum.add(difference, slack);
        difference < -slack
    }
}
