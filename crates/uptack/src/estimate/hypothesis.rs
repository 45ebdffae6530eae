//! Tests of how many owners hold *yes*, by a weighted count of what they wrote.
//!
//! A test of one hypothesis may use any statistic that does not depend on the tallies, so each uses the one that is
//! best for it: every owner counts by the score of its class. Scores are rounded to small whole numbers, so that the
//! law of their sum is a law on a lattice and can be computed exactly, and they are the same throughout a zone of
//! neighbouring hypotheses, so that within a zone the tails are monotone in the hypothesis.

use num_integer::Integer;

use super::combined::Estimator;
use super::observation::Statistic;
use crate::noise::DiscreteLaplace;
use crate::numeric::draws::Draws;
use crate::numeric::lattice_sum::{ExactLaw, LatticeSum, Tails};
use crate::numeric::noisy::{self, LUMPING_ERROR, Lumped};

/// The hypotheses that are tested by one statistic.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub(super) first: u64,
    pub(super) last: u64,
    owners: u64,
    /// What one owner counted by each of the estimator's statistics adds.
    weights: Vec<i64>,
    /// What one owner adds in all, with its probability by truth.
    law: OwnerLaw,
    noise: Option<DiscreteLaplace>,
}

/// What one owner adds to a weighted count: the values, each different, and their probabilities under each truth.
#[derive(Clone, Debug)]
struct OwnerLaw {
    values: Vec<i64>,
    yes: Vec<f64>,
    no: Vec<f64>,
}

impl OwnerLaw {
    /// E\[value^power\] under one of the two laws.
    fn moment(&self, law: &[f64], power: i32) -> f64 {
        self.values.iter().zip(law).map(|(&value, mass)| (value as f64).powi(power) * mass).sum()
    }

    fn variance(&self, law: &[f64]) -> f64 {
        let mean = self.moment(law, 1);
        (self.moment(law, 2) - mean * mean).max(0.0)
    }
}

/// What a test says of a hypothesis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    /// The probability of a statistic as great or greater.
    pub(super) upper: f64,
    /// The probability of one as small or smaller.
    pub(super) lower: f64,
    /// The probability of one as unacceptable or more so. Blaker's: how acceptable one is, is the smaller of its tails.
    pub(super) p: f64,
    /// The same with half of the probability of one that is exactly as unacceptable.
    pub(super) mid: f64,
    /// The last value of the opposite tail that is as unacceptable.
    opposite: Option<i128>,
}

impl Verdict {
    /// Which tail is the smaller one, and where the opposite one ends.
    pub(super) fn stretch(&self) -> (bool, Option<i128>) {
        (self.upper < self.lower, self.opposite)
    }

    /// Of a hypothesis that is out of the question: one tail is at most `bound`.
    fn rejected(bound: f64, upper: bool) -> Self {
        let (upper, lower) = if upper { (bound, 1.0) } else { (1.0, bound) };
        Self { upper, lower, p: 2.0 * bound, mid: 2.0 * bound, opposite: None }
    }
}

/// Below this variance, in units of the largest weight, laws are computed exactly and above by saddle points. Larger is
/// slower; smaller makes [`SADDLE_POINT_ERROR`] matter.
const LARGEST_EXACT: f64 = 250.0;
/// An exact law of more values than this is not formed.
const MOST_VALUES: f64 = 65_536.0;
/// Times range²/variance, more than the relative error of a saddle point.
const SADDLE_POINT_ERROR: f64 = 0.75;
/// More than the absolute error of an exact tail.
const EXACT_ERROR: f64 = 2e-13;
/// Below this α tails are computed with a relative error of 1e-6 at most.
const FAR: f64 = 1e-7;
/// Tails that differ by less than this in relation to themselves are equal up to rounding.
const TIE: f64 = 1e-9;

impl Zone {
    /// The statistic that these counts have.
    pub(super) fn statistic(&self, counts: &[i128]) -> i128 {
        self.weights.iter().zip(counts).map(|(&weight, &count)| i128::from(weight) * count).sum()
    }

    /// How the first of the counts counts; a published sum is the only one.
    pub(super) fn first_weight(&self) -> i64 {
        self.weights[0]
    }

    /// Whether its last hypothesis is that all owners hold *yes*.
    pub(super) fn ends_all(&self) -> bool {
        self.last == self.owners
    }

    /// The hypothesis under which the statistic is expected to be `statistic`, and its standard deviation there.
    pub(super) fn guess(&self, statistic: i128) -> (f64, f64) {
        let (yes, no) = (self.law.moment(&self.law.yes, 1), self.law.moment(&self.law.no, 1));
        let owners = self.owners as f64;
        let guess = ((statistic as f64 - owners * no) / (yes - no)).clamp(0.0, owners);
        let inside = guess.clamp(0.5f64.min(owners / 2.0), (owners - 0.5).max(owners / 2.0));
        (guess, self.sum(inside as u64).variance().sqrt() / (yes - no))
    }

    fn sum(&self, yes: u64) -> LatticeSum<'_> {
        let draws = |count, masses| Draws { count, values: &self.law.values, masses };
        LatticeSum { groups: [draws(yes, &self.law.yes), draws(self.owners - yes, &self.law.no)], noise: self.noise }
    }

    /// Tests that `yes` owners hold *yes*, for an interval that may miss with probability `miss`.
    pub(super) fn test(&self, yes: u64, statistic: i128, miss: f64) -> Verdict {
        if yes > 0 && yes < self.owners {
            // By Chernoff's bound most hypotheses are rejected without their law.
            let (bound, upper) = self.sum(yes).tail_bound(statistic);
            if bound < miss / 8.0 {
                return Verdict::rejected(bound, upper);
            }
        }
        self.hypothesis(yes, miss).verdict(statistic)
    }

    /// One hypothesis, for tests of several statistics.
    pub(super) fn hypothesis(&self, yes: u64, miss: f64) -> Hypothesis<'_> {
        let sum = self.sum(yes);
        let side = match yes {
            0 => Some(Side::Upper),
            _ if yes == self.owners => Some(Side::Lower),
            _ => None,
        };
        let (law, margin) = Law::of(sum, miss < FAR);
        Hypothesis { sum, law, margin, side }
    }
}

/// How the law of a statistic is computed.
enum Law<'a> {
    Exact(ExactLaw),
    SaddlePoint(LatticeSum<'a>),
    Lumped(Lumped<'a>),
}

impl<'a> Law<'a> {
    fn of(sum: LatticeSum<'a>, far: bool) -> (Self, Margin) {
        let count = sum.without_noise();
        let size = count.variance() / (count.range() * count.range()).max(1.0);
        let small = size <= LARGEST_EXACT && count.exact_size() <= MOST_VALUES;
        let exact = match sum.noise {
            None => small.then(|| count.exact(far)),
            Some(noise) => noisy::exact(&count, &noise, far),
        };
        let saddle_point = if small { 0.0 } else { SADDLE_POINT_ERROR / size };
        match (exact, sum.noise) {
            (Some(law), _) if far => (Self::Exact(law), Margin::factor(1.0 + 1e-6)),
            (Some(law), _) => (Self::Exact(law), Margin { factor: 1.0, term: EXACT_ERROR }),
            (None, Some(noise)) => {
                (Self::Lumped(Lumped::new(count, noise, far)), Margin::factor(1.0 + saddle_point + LUMPING_ERROR))
            }
            (None, None) => (Self::SaddlePoint(sum), Margin::factor(1.0 + saddle_point)),
        }
    }

    fn exact(&self) -> Option<&ExactLaw> {
        if let Self::Exact(law) = self { Some(law) } else { None }
    }

    fn tails(&self, statistic: i128) -> Tails {
        match self {
            Self::Exact(law) => law.tails(statistic),
            Self::SaddlePoint(sum) => sum.saddle_point(statistic),
            Self::Lumped(law) => law.tails(statistic),
        }
    }
}

/// At an end of the range only one tail speaks against a hypothesis: nothing lies on the other side of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Upper,
    Lower,
}

/// Covers the errors of arithmetic.
#[derive(Clone, Copy, Debug)]
struct Margin {
    factor: f64,
    term: f64,
}

impl Margin {
    fn factor(factor: f64) -> Self {
        Self { factor, term: 0.0 }
    }
}

/// A hypothesis with the law of its statistic.
pub(super) struct Hypothesis<'a> {
    sum: LatticeSum<'a>,
    law: Law<'a>,
    margin: Margin,
    side: Option<Side>,
}

impl Hypothesis<'_> {
    /// The most acceptable statistic: the median, or the mean where the two are as good as the same.
    pub(super) fn middle(&self) -> i128 {
        self.law.exact().map_or_else(|| self.sum.mean().round() as i128, ExactLaw::median)
    }

    /// The standard deviation of the statistic.
    pub(super) fn sd(&self) -> f64 {
        self.sum.variance().sqrt()
    }

    pub(super) fn verdict(&self, statistic: i128) -> Verdict {
        let tails = self.law.tails(statistic);
        let Tails { upper, lower, point } = tails;
        let (p, mid, opposite) = match self.side {
            Some(Side::Upper) => (upper, upper - 0.5 * point, None),
            Some(Side::Lower) => (lower, lower - 0.5 * point, None),
            None => self.both_sides(tails),
        };
        let p = (p * self.margin.factor + self.margin.term).min(1.0);
        Verdict { upper, lower, p, mid, opposite }
    }

    /// The p-value on both sides, its mid-p, and where the opposite tail ends.
    fn both_sides(&self, Tails { upper, lower, point }: Tails) -> (f64, f64, Option<i128>) {
        let smaller = upper.min(lower);
        let opposite = self.opposite(upper < lower, smaller);
        let tied = if opposite.tail >= smaller * (1.0 - TIE) { opposite.point } else { 0.0 };
        let p = smaller + opposite.tail;
        (p, p - 0.5 * (point + tied), opposite.end)
    }

    /// The part of the opposite tail that is as unacceptable as a tail of probability `smaller`.
    fn opposite(&self, low: bool, smaller: f64) -> Opposite {
        // Where the lattice is fine, the whole tail, to within less than one value.
        let Some(law) = self.law.exact() else { return Opposite { tail: smaller, point: 0.0, end: None } };
        let most = smaller * (1.0 + TIE);
        let end = if low { law.low_end(most) } else { law.high_end(most) };
        let point = end.map_or(0.0, |(at, _)| law.tails(at).point);
        Opposite { tail: end.map_or(0.0, |(_, tail)| tail), point, end: end.map(|(at, _)| at) }
    }
}

struct Opposite {
    tail: f64,
    point: f64,
    end: Option<i128>,
}

impl Estimator {
    /// All hypotheses 0..=owners, in zones.
    pub(super) fn zones(&self, owners: u64) -> Vec<Zone> {
        let mut zones: Vec<Zone> = Vec::new();
        for (first, last) in ranges(owners) {
            let weights = self.whole_weights(owners, middle(owners, first, last));
            match zones.last_mut() {
                Some(zone) if zone.weights == weights => zone.last = last,
                _ => zones.push(self.zone(owners, (first, last), weights)),
            }
        }
        zones
    }

    /// The zone that a hypothesis belongs to, or a part of it.
    pub(super) fn zone_of(&self, owners: u64, yes: u64) -> Zone {
        let ranges = ranges(owners);
        let (first, last) = ranges[ranges.partition_point(|&(_, last)| last < yes)];
        self.zone(owners, (first, last), self.whole_weights(owners, middle(owners, first, last)))
    }

    fn zone(&self, owners: u64, (first, last): (u64, u64), weights: Vec<i64>) -> Zone {
        let law = self.owner_law(&weights);
        Zone { first, last, owners, weights, law, noise: self.noise() }
    }

    /// What an owner who wrote each of the cells adds.
    pub(super) fn cell_values(&self, zone: &Zone) -> Vec<i64> {
        (0..self.cells().len()).map(|cell| self.cell_value(&zone.weights, cell)).collect()
    }

    fn cell_value(&self, weights: &[i64], cell: usize) -> i64 {
        let counted = weights.iter().zip(self.statistics()).filter(|(_, statistic)| statistic.cells[cell]);
        counted.map(|(weight, _)| weight).sum()
    }

    /// What one owner adds, with its probability by truth.
    fn owner_law(&self, weights: &[i64]) -> OwnerLaw {
        let mut sums: Vec<(i64, u128, u128)> = Vec::new();
        for (index, cell) in self.cells().iter().enumerate() {
            let value = self.cell_value(weights, index);
            let (yes, no) = (cell.yes().numerator(), cell.no().numerator());
            match sums.iter_mut().find(|(other, ..)| *other == value) {
                Some(sum) => *sum = (value, sum.1 + yes, sum.2 + no),
                None => sums.push((value, yes, no)),
            }
        }
        let part = |sum: u128| sum as f64 / crate::Probability::ONE.numerator() as f64;
        OwnerLaw {
            values: sums.iter().map(|sum| sum.0).collect(),
            yes: sums.iter().map(|sum| part(sum.1)).collect(),
            no: sums.iter().map(|sum| part(sum.2)).collect(),
        }
    }

    /// The score of each statistic at `yes`, rounded to whole numbers without a common divisor.
    fn whole_weights(&self, owners: u64, yes: f64) -> Vec<i64> {
        if self.statistics().len() == 1 {
            return self.single(owners as f64);
        }
        let scores = self.scores(owners as f64, yes);
        let finest = finest(owners);
        let mut best = (0.0, Vec::new());
        let coarsest = if owners <= FINE_CROWD { finest } else { 1 };
        for scale in coarsest..=finest {
            let weights = rounded(&scores, scale);
            let efficiency = self.efficiency(&weights, owners as f64, yes);
            if efficiency > best.0 + WORTHWHILE {
                best = (efficiency, weights);
            }
        }
        if dominates(&self.owner_law(&best.1)) { best.1 } else { self.single(owners as f64) }
    }

    /// Counts by one statistic alone: the best one for a crowd of two halves.
    fn single(&self, owners: f64) -> Vec<i64> {
        let informative = self.statistics().iter().enumerate().filter(|(_, statistic)| statistic.yes != statistic.no);
        let variance = |statistic: &Statistic| statistic.variance(owners, owners / 2.0);
        let best = informative.min_by(|(_, a), (_, b)| variance(a).total_cmp(&variance(b)));
        let (best, statistic) = best.expect("an estimator has an informative count");
        let mut weights = vec![0; self.statistics().len()];
        weights[best] = if statistic.yes > statistic.no { 1 } else { -1 };
        weights
    }

    /// (difference of the means)²/variance of the weighted count: what it says about the truth.
    fn efficiency(&self, weights: &[i64], owners: f64, yes: f64) -> f64 {
        let law = self.owner_law(weights);
        let difference = law.moment(&law.yes, 1) - law.moment(&law.no, 1);
        let total = yes * law.variance(&law.yes) + (owners - yes) * law.variance(&law.no);
        difference.powi(2) / total * self.variance(owners, yes)
    }
}

/// Whether a yes-owner adds more than a no-owner, stochastically: then tails are monotone in the hypothesis. Scores of
/// classes rise with the ratio of the laws, so that it is always so; weights of bins may be different.
fn dominates(law: &OwnerLaw) -> bool {
    let mut order: Vec<usize> = (0..law.values.len()).collect();
    order.sort_unstable_by_key(|&index| law.values[index]);
    let mut lead = 0.0;
    order.into_iter().all(|index| {
        lead += law.no[index] - law.yes[index];
        lead >= -1e-12
    })
}

/// A finer scale is used only if it explains so much more of the variance.
const WORTHWHILE: f64 = 5e-4;
/// Up to this many owners the finest scale is always used: it parts outcomes that a coarser one counts as equal.
const FINE_CROWD: u64 = 400;

/// The largest weight: finer in small crowds, where the law is cheap and outcomes are few. It is odd there, so that what
/// lies half way between two classes is not exactly half way between their weights, and fewer outcomes count the same.
fn finest(owners: u64) -> i64 {
    if owners <= FINE_CROWD { (1800 / owners.max(1) as i64).clamp(7, 25) | 1 } else { 12 }
}

/// Scores as whole numbers from 0 to `scale`, divided by what they have in common.
fn rounded(scores: &[f64], scale: i64) -> Vec<i64> {
    let (low, high) =
        scores.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &s| (low.min(s), high.max(s)));
    let place = |score: f64| ((score - low) / (high - low) * scale as f64).round() as i64;
    let weights: Vec<i64> = scores.iter().map(|&score| place(score)).collect();
    let divisor = weights.iter().fold(0, |divisor: i64, weight| divisor.gcd(weight)).max(1);
    weights.into_iter().map(|weight| weight / divisor).collect()
}

/// Ranges of hypotheses over which the smaller of yes and no changes by a factor of at most √2.
fn ranges(owners: u64) -> Vec<(u64, u64)> {
    let mut starts = vec![0u64];
    let mut next = 1.0f64;
    while next.ceil() as u64 <= owners / 2 {
        starts.push(next.ceil() as u64);
        starts.push(owners - next.ceil() as u64 + 1);
        next *= std::f64::consts::SQRT_2;
    }
    starts.sort_unstable();
    starts.dedup();
    let ends = starts[1..].iter().map(|start| start - 1).chain([owners]);
    starts.iter().copied().zip(ends).collect()
}

/// The geometric middle of a range, seen from the nearer end of all hypotheses.
fn middle(owners: u64, first: u64, last: u64) -> f64 {
    let geometric = |a: u64, b: u64| ((a as f64).max(0.5) * (b as f64).max(0.5)).sqrt();
    let yes = if first <= owners - last {
        geometric(first, last)
    } else {
        owners as f64 - geometric(owners - last, owners - first)
    };
    // Beyond 2^53 owners, half an owner less is the same number.
    let all = owners as f64;
    yes.clamp(0.5f64.min(all / 2.0), (all - 0.5).max(all / 2.0).min(all.next_down()))
}
