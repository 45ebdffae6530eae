//! Tests of how many owners are yes-owners, by a weighted count of what they wrote.
//!
//! A test of one hypothesis may use any statistic that does not depend on the tallies, so each uses the one that is
//! best for it: every owner counts by the score of its class. Scores are rounded to small whole numbers, so that the
//! law of their sum is a law on a lattice and can be computed exactly, and they are the same throughout a zone of
//! neighbouring hypotheses, so that within a zone the tails are monotone in the hypothesis.

use super::observation::probability_of;
use crate::channel::Cell;
use crate::noise::NoiseLaw;
use crate::numeric::draws::Draws;
use crate::numeric::lattice_sum::{AddedNoise, ExactLaw, LatticeSum, Side, Tails};
use crate::numeric::noisy::{self, LUMPING_ERROR, Lumped};
use crate::truth::PerTruth;

/// The hypotheses that are tested by one statistic.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) owners: u64,
    /// What one owner counted by each of the estimator's statistics adds.
    pub(super) weights: Vec<i64>,
    /// What one owner adds in all, with its probability by truth.
    pub(super) law: OwnerLaw,
    pub(super) noise: Option<AddedNoise>,
}

/// What a test says of a hypothesis.
#[derive(Clone, Copy, Debug)]
pub(super) struct TestResult {
    /// The probability of a statistic as great or greater.
    pub(super) upper: f64,
    /// The probability of one as small or smaller.
    pub(super) lower: f64,
    /// The probability of one that is as unacceptable or more so. How acceptable a statistic is, is the smaller of its two tails (Blaker).
    pub(super) p: f64,
    /// The same with half of the probability of one that is exactly as unacceptable.
    pub(super) mid: f64,
    /// The last value of the opposite tail that is as unacceptable.
    opposite: Option<i128>,
}

impl TestResult {
    /// Which tail is the smaller one, and where the opposite one ends.
    pub(super) fn stretch(&self) -> (Side, Option<i128>) {
        (if self.upper < self.lower { Side::Upper } else { Side::Lower }, self.opposite)
    }

    /// Of a hypothesis that is certainly rejected: one tail is at most `bound`.
    fn rejected(bound: f64, side: Side) -> Self {
        let (upper, lower) = match side {
            Side::Upper => (bound, 1.0),
            Side::Lower => (1.0, bound),
        };
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
/// Over the number of draws of noise, more than the relative error of a saddle point for a sum with noise that is too wide to be
/// written out.
const NOISE_SADDLE_POINT_ERROR: f64 = 0.5;
/// Above this variance of a sum, saddle points are right to within a factor of [`CLOSE`].
const LARGEST_UNSURE: f64 = 10.0;
/// Tails within this factor of a limit are compared with it by their exact law.
const CLOSE: f64 = 2.0;
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

    /// The weight of the first count; a published sum is the only one.
    pub(super) fn first_weight(&self) -> i64 {
        self.weights[0]
    }

    /// Whether its last hypothesis is that all owners are yes-owners.
    pub(super) fn ends_all(&self) -> bool {
        self.last == self.owners
    }

    /// The hypothesis under which the statistic is expected to be `statistic`, and its standard deviation there.
    pub(super) fn guess(&self, statistic: i128) -> (f64, f64) {
        let PerTruth { yes, no } = self.law.means();
        let owners = self.owners as f64;
        let guess = ((statistic as f64 - owners * no) / (yes - no)).clamp(0.0, owners);
        let inside = guess.clamp(0.5f64.min(owners / 2.0), (owners - 0.5).max(owners / 2.0));
        (guess, self.sum(inside as u64).variance().sqrt() / (yes - no))
    }

    /// The statistic if `yes` owners are yes-owners.
    fn sum(&self, yes: u64) -> LatticeSum<'_> {
        let draws = |count, masses| Draws { count, values: &self.law.values, masses };
        let PerTruth { yes: yes_masses, no: no_masses } = self.law.masses.each_ref();
        LatticeSum { groups: [draws(yes, yes_masses), draws(self.owners - yes, no_masses)], noise: self.noise }
    }

    /// Tests that `yes` owners are yes-owners, for an interval that may miss with probability `miss`.
    pub(super) fn test(&self, yes: u64, statistic: i128, miss: f64) -> TestResult {
        if yes > 0 && yes < self.owners {
            // By Chernoff's bound most hypotheses are rejected without computing their law.
            let (bound, side) = self.sum(yes).tail_bound(statistic);
            if bound < miss / 8.0 {
                return TestResult::rejected(bound, side);
            }
        }
        self.hypothesis(yes, miss).verdict(statistic)
    }

    /// Whether the statistic, or one farther on this side, has a probability above `limit` if `yes` owners are yes-owners.
    pub(super) fn tail_exceeds(&self, yes: u64, statistic: i128, side: Side, limit: f64) -> bool {
        let sum = self.sum(yes);
        if sum.variance() > LARGEST_UNSURE {
            // Most tails are far from the limit, and a saddle point is enough to see on which side.
            let about = sum.saddle_point(statistic).on(side);
            if !(limit / CLOSE..=limit * CLOSE).contains(&about) {
                return about > limit;
            }
        }
        let (law, margin) = StatisticLaw::of(sum, limit < FAR);
        margin.cover(law.tails(statistic).on(side)) > limit
    }

    /// One hypothesis, for tests of several statistics.
    pub(super) fn hypothesis(&self, yes: u64, miss: f64) -> Hypothesis<'_> {
        let sum = self.sum(yes);
        let only_side = match yes {
            0 => Some(Side::Upper),
            _ if yes == self.owners => Some(Side::Lower),
            _ => None,
        };
        let (law, margin) = StatisticLaw::of(sum, miss < FAR);
        Hypothesis { sum, law, margin, only_side }
    }
}

/// How the law of a statistic is computed.
enum StatisticLaw<'a> {
    Exact(ExactLaw),
    SaddlePoint(LatticeSum<'a>),
    Lumped(Lumped<'a>),
}

impl<'a> StatisticLaw<'a> {
    /// The law of a sum, and the margin that covers its errors.
    fn of(sum: LatticeSum<'a>, far: bool) -> (Self, Margin) {
        match sum.noise {
            None => Self::without_noise(sum, far),
            Some(AddedNoise { law, draws: 2 }) => Self::with_noise(sum.without_noise(), law, far),
            Some(noise) => Self::with_many_draws(sum, noise, far),
        }
    }

    /// With noise of another number of draws than the two of one count.
    fn with_many_draws(sum: LatticeSum<'a>, noise: AddedNoise, far: bool) -> (Self, Margin) {
        if sum.exact_size() <= MOST_VALUES {
            return (Self::Exact(sum.exact(far)), Margin::of_exact_law(far));
        }
        (Self::SaddlePoint(sum), Margin::factor(1.0 + NOISE_SADDLE_POINT_ERROR / f64::from(noise.draws)))
    }

    fn without_noise(sum: LatticeSum<'a>, far: bool) -> (Self, Margin) {
        match saddle_point_error(&sum) {
            None => (Self::Exact(sum.exact(far)), Margin::of_exact_law(far)),
            Some(error) => (Self::SaddlePoint(sum), Margin::factor(1.0 + error)),
        }
    }

    fn with_noise(count: LatticeSum<'a>, noise: NoiseLaw, far: bool) -> (Self, Margin) {
        if let Some(law) = noisy::exact(&count, &noise, far) {
            return (Self::Exact(law), Margin::of_exact_law(far));
        }
        let saddle_point_error = saddle_point_error(&count).unwrap_or(0.0);
        let margin = Margin::factor(1.0 + saddle_point_error + LUMPING_ERROR);
        (Self::Lumped(Lumped::new(count, noise, far)), margin)
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

/// A bound on the relative error of saddle points for a sum without noise; none if it is small enough for its exact law.
fn saddle_point_error(sum: &LatticeSum<'_>) -> Option<f64> {
    let size = sum.variance() / (sum.range() * sum.range()).max(1.0);
    let is_small = size <= LARGEST_EXACT && sum.exact_size() <= MOST_VALUES;
    (!is_small).then(|| SADDLE_POINT_ERROR / size)
}

/// What a p-value is multiplied by and raised by, to cover the errors of arithmetic.
#[derive(Clone, Copy, Debug)]
struct Margin {
    factor: f64,
    term: f64,
}

impl Margin {
    fn of_exact_law(far: bool) -> Self {
        if far { Self::factor(1.0 + 1e-6) } else { Self { factor: 1.0, term: EXACT_ERROR } }
    }

    fn factor(factor: f64) -> Self {
        Self { factor, term: 0.0 }
    }

    fn cover(self, p: f64) -> f64 {
        (p * self.factor + self.term).min(1.0)
    }
}

/// A hypothesis with the law of its statistic.
pub(super) struct Hypothesis<'a> {
    sum: LatticeSum<'a>,
    law: StatisticLaw<'a>,
    margin: Margin,
    /// At an end of the range, the only tail that speaks against it: nothing lies on the other side.
    only_side: Option<Side>,
}

impl Hypothesis<'_> {
    /// The most acceptable statistic: the median, or the mean if the two are practically the same.
    pub(super) fn middle(&self) -> i128 {
        self.law.exact().map_or_else(|| self.sum.mean().round() as i128, ExactLaw::median)
    }

    /// The standard deviation of the statistic.
    pub(super) fn sd(&self) -> f64 {
        self.sum.variance().sqrt()
    }

    pub(super) fn verdict(&self, statistic: i128) -> TestResult {
        let tails = self.law.tails(statistic);
        let Tails { upper, lower, point } = tails;
        let (p, mid, opposite) = match self.only_side {
            Some(Side::Upper) => (upper, upper - 0.5 * point, None),
            Some(Side::Lower) => (lower, lower - 0.5 * point, None),
            None => self.both_sides(tails),
        };
        TestResult { upper, lower, p: self.margin.cover(p), mid, opposite }
    }

    /// The p-value on both sides, its mid-p, and where the opposite tail ends.
    fn both_sides(&self, Tails { upper, lower, point }: Tails) -> (f64, f64, Option<i128>) {
        let smaller = upper.min(lower);
        let opposite = self.opposite(if upper < lower { Side::Lower } else { Side::Upper }, smaller);
        let tied = if opposite.tail >= smaller * (1.0 - TIE) { opposite.point } else { 0.0 };
        let p = smaller + opposite.tail;
        (p, p - 0.5 * (point + tied), opposite.end)
    }

    /// The part of the opposite tail, on this side, that is as unacceptable as a tail of probability `smaller`.
    fn opposite(&self, side: Side, smaller: f64) -> Opposite {
        // On a fine lattice that is the whole tail, to within less than one value.
        let Some(law) = self.law.exact() else { return Opposite { tail: smaller, point: 0.0, end: None } };
        match law.end(side, smaller * (1.0 + TIE)) {
            None => Opposite { tail: 0.0, point: 0.0, end: None },
            Some((end, tail)) => Opposite { tail, point: law.tails(end).point, end: Some(end) },
        }
    }
}

struct Opposite {
    tail: f64,
    point: f64,
    end: Option<i128>,
}

/// The values that one owner may add to a weighted count, each different, and their probabilities under each truth.
#[derive(Clone, Debug)]
pub(super) struct OwnerLaw {
    pub(super) values: Vec<i64>,
    pub(super) masses: PerTruth<Vec<f64>>,
}

impl OwnerLaw {
    /// From the value that an owner who writes each of the cells adds.
    pub(super) fn new(cells: &[Cell], cell_values: impl Iterator<Item = i64>) -> Self {
        let mut numerators = Numerators::default();
        for (cell, value) in cells.iter().zip(cell_values) {
            numerators.add(value, cell);
        }
        let Numerators { values, masses } = numerators;
        Self { values, masses: masses.map(|masses| masses.into_iter().map(probability_of).collect()) }
    }

    /// The mean of what an owner of each truth adds.
    pub(super) fn means(&self) -> PerTruth<f64> {
        self.masses.each_ref().map(|law| self.moment(law, 1))
    }

    /// The variance of the weighted count at `yes` of `owners`.
    pub(super) fn count_variance(&self, owners: f64, yes: f64) -> f64 {
        yes * self.variance(&self.masses.yes) + (owners - yes) * self.variance(&self.masses.no)
    }

    /// Whether a yes-owner adds more than a no-owner, stochastically: then tails are monotone in the hypothesis. Scores of
    /// classes rise with the ratio of the laws, so that they always do; weights of bins may not.
    pub(super) fn dominates(&self) -> bool {
        let mut order = Vec::from_iter(0..self.values.len());
        order.sort_unstable_by_key(|&index| self.values[index]);
        let mut lead = 0.0;
        order.into_iter().all(|index| {
            lead += self.masses.no[index] - self.masses.yes[index];
            lead >= -1e-12
        })
    }

    /// E\[value^power\] under one of the two laws.
    fn moment(&self, law: &[f64], power: i32) -> f64 {
        self.values.iter().zip(law).map(|(&value, mass)| (value as f64).powi(power) * mass).sum()
    }

    fn variance(&self, law: &[f64]) -> f64 {
        let mean = self.moment(law, 1);
        (self.moment(law, 2) - mean * mean).max(0.0)
    }
}

/// An [`OwnerLaw`] with the numerators of its probabilities, while it is added up.
#[derive(Default)]
struct Numerators {
    values: Vec<i64>,
    masses: PerTruth<Vec<u128>>,
}

impl Numerators {
    fn add(&mut self, value: i64, cell: &Cell) {
        let index = self.values.iter().position(|other| *other == value).unwrap_or(self.values.len());
        if index == self.values.len() {
            self.values.push(value);
            self.masses.yes.push(0);
            self.masses.no.push(0);
        }
        let PerTruth { yes, no } = cell.probability().numerators();
        self.masses.yes[index] += yes;
        self.masses.no[index] += no;
    }
}
