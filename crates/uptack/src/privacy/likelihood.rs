//! A class's probabilities under both truths, and the target's weight in it (`docs/accounting.md`, "What is bounded").

use std::ops::Index;

use crate::certified::rounding::Enclosure;
use crate::certified::rounding::ROUNDOFF;
pub(crate) use crate::truth::PerTruth;
use crate::truth::Truth;

/// The probabilities (p, q) of a class for an owner of the truth *yes* and of the truth *no*.
pub(crate) type Likelihood = PerTruth<f64>;

/// The same as exact numerators over 2⁶⁴.
pub(crate) type ExactLikelihood = PerTruth<u128>;

/// The other owners (y, m): for how many of them the truth is *yes*, and for how many *no*.
pub(crate) type Crowd = PerTruth<u64>;

impl Crowd {
    /// `owners` owners of one truth, and `of_other` of the other.
    pub(crate) fn oriented(truth: Truth, owners: u64, of_other: u64) -> Self {
        let crowd = Self { yes: owners, no: of_other };
        if matches!(truth, Truth::Yes) { crowd } else { crowd.exchanged() }
    }

    /// How many owners there are.
    pub(crate) fn size(self) -> u64 {
        self.yes + self.no
    }

    /// The only truth that occurs, with all its owners; `None` if both occur.
    pub(crate) fn one_truth(self) -> Option<OneTruth> {
        let only = OneTruth { truth: Truth::from_bool(self.yes > 0), owners: self.size() };
        (self.yes.min(self.no) == 0).then_some(only)
    }
}

/// A crowd of owners who all have the same truth.
#[derive(Clone, Copy)]
pub(crate) struct OneTruth {
    pub(crate) truth: Truth,
    pub(crate) owners: u64,
}

impl From<OneTruth> for Crowd {
    fn from(OneTruth { truth, owners }: OneTruth) -> Self {
        Self::oriented(truth, owners, 0)
    }
}

/// A crowd over N classes: how many owners there are of each truth, and their probabilities of the classes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrowdLaws<const N: usize> {
    pub(crate) owners: Crowd,
    pub(crate) laws: PerTruth<[f64; N]>,
}

impl<const N: usize> CrowdLaws<N> {
    /// The number and the law of the owners of each truth, *yes* first.
    pub(crate) fn each(&self) -> [(u64, [f64; N]); 2] {
        [(self.owners.yes, self.laws.yes), (self.owners.no, self.laws.no)]
    }

    /// The expected number of owners in a class.
    pub(crate) fn expected(&self, class: usize) -> f64 {
        self.sum_over_owners(|law| law[class])
    }

    /// The sum over all owners of a function of their laws.
    pub(crate) fn sum_over_owners(&self, function: impl Fn([f64; N]) -> f64) -> f64 {
        self.each().into_iter().map(|(owners, law)| owners as f64 * function(law)).sum()
    }

    /// The class with the fewest expected owners.
    pub(crate) fn rarest(&self) -> usize {
        (0..N).min_by(|a, b| self.expected(*a).total_cmp(&self.expected(*b))).unwrap_or(0)
    }
}

impl Likelihood {
    /// A class that nobody is in.
    pub(crate) const NONE: Self = Self { yes: 0.0, no: 0.0 };

    /// A class that both truths reach with the same probability.
    pub(crate) fn of_either(probability: f64) -> Self {
        Self { yes: probability, no: probability }
    }

    /// The target's weight in this class.
    pub(crate) fn weight(self, direction: Direction, growth: f64) -> Weight {
        let (first, second) = direction.truths();
        Weight { first: self[first], second: growth * self[second] }
    }

    /// This class together with the target's weight in it.
    pub(crate) fn weighted(self, direction: Direction, growth: f64) -> WeightedClass {
        WeightedClass { likelihood: self, weight: self.weight(direction, growth) }
    }

    /// This class if the target is never in it.
    pub(crate) fn without_target(self) -> WeightedClass {
        WeightedClass { likelihood: self, weight: Weight::ZERO }
    }

    /// This class and `factor` times another one.
    pub(crate) fn plus_times(self, factor: f64, other: Self) -> Self {
        Self::each(|truth| self[truth] + factor * other[truth])
    }

    /// Whether exactly one truth reaches the class.
    pub(crate) fn is_one_sided(self) -> bool {
        (self.yes == 0.0) != (self.no == 0.0)
    }

    /// min(p, q): the probability that both truths share.
    pub(crate) fn in_common(self) -> f64 {
        self.yes.min(self.no)
    }
}

/// The truth that the event under study is evidence for: the divergence is P(first) − e^ε·P(second).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// How much likelier an event can be when the target's truth is *yes*.
    YesOverNo,
    /// How much likelier an event can be when the target's truth is *no*.
    NoOverYes,
}

impl Direction {
    /// Both directions of the substitution.
    pub const BOTH: [Self; 2] = [Self::YesOverNo, Self::NoOverYes];

    /// The truth that the event is evidence for, and the other one, whose law carries the factor e^ε.
    pub(crate) fn truths(self) -> (Truth, Truth) {
        match self {
            Self::YesOverNo => (Truth::Yes, Truth::No),
            Self::NoOverYes => (Truth::No, Truth::Yes),
        }
    }

    /// Reorders the values of *no* and *yes*: first that of the truth that the event is evidence for. Applied twice it restores
    /// the order.
    pub(crate) fn in_order<T>(self, [no, yes]: [T; 2]) -> [T; 2] {
        match self {
            Self::YesOverNo => [yes, no],
            Self::NoOverYes => [no, yes],
        }
    }

    /// The direction with the truths exchanged.
    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::YesOverNo => Self::NoOverYes,
            Self::NoOverYes => Self::YesOverNo,
        }
    }
}

/// A bound or a limit on the divergence in each direction.
pub(crate) type DirectionBounds = PerDirection<f64>;

/// One value for each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PerDirection<T> {
    pub(crate) yes_over_no: T,
    pub(crate) no_over_yes: T,
}

impl<T> PerDirection<T> {
    /// The value of a function for each direction.
    pub(crate) fn each(mut value: impl FnMut(Direction) -> T) -> Self {
        Self { yes_over_no: value(Direction::YesOverNo), no_over_yes: value(Direction::NoOverYes) }
    }

    /// The image of both values.
    pub(crate) fn map<U>(self, mut function: impl FnMut(T) -> U) -> PerDirection<U> {
        PerDirection { yes_over_no: function(self.yes_over_no), no_over_yes: function(self.no_over_yes) }
    }

    /// Both values, the one of [`Direction::YesOverNo`] first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        [&self.yes_over_no, &self.no_over_yes].into_iter()
    }
}

impl<T: Copy> PerDirection<T> {
    /// The same value in both directions.
    pub(crate) fn both(value: T) -> Self {
        Self { yes_over_no: value, no_over_yes: value }
    }

    /// Combines two values direction by direction.
    pub(crate) fn with<U: Copy, V>(
        self,
        other: PerDirection<U>,
        mut combine: impl FnMut(T, U) -> V,
    ) -> PerDirection<V> {
        PerDirection::each(|direction| combine(self[direction], other[direction]))
    }
}

impl<T> Index<Direction> for PerDirection<T> {
    type Output = T;

    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::YesOverNo => &self.yes_over_no,
            Direction::NoOverYes => &self.no_over_yes,
        }
    }
}

impl DirectionBounds {
    /// The value of the worse direction.
    pub(crate) fn largest(self) -> f64 {
        self.yes_over_no.max(self.no_over_yes)
    }

    /// The smaller value of two in each direction.
    pub(crate) fn min(self, other: Self) -> Self {
        self.with(other, f64::min)
    }
}

impl PerDirection<Enclosure> {
    /// The value of the worse direction.
    pub(crate) fn largest(self) -> Enclosure {
        self.yes_over_no.max(self.no_over_yes)
    }

    /// Both upper ends.
    pub(crate) fn upper(self) -> DirectionBounds {
        self.map(|value| value.upper())
    }

    /// The sum in each direction.
    pub(crate) fn plus(self, other: Self) -> Self {
        self.with(other, Enclosure::plus)
    }

    /// The sum of many, in each direction.
    pub(crate) fn sum(values: impl Iterator<Item = Self>) -> Self {
        values.fold(Self::both(Enclosure::ZERO), Self::plus)
    }
}

/// The weights of this many classes, in each direction.
pub(crate) type ClassWeights<const CLASSES: usize> = PerDirection<[Weight; CLASSES]>;

/// The target's weight in one class: `first` − `second`, where `second` carries the factor e^ε.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight {
    pub(crate) first: f64,
    pub(crate) second: f64,
}

impl Weight {
    /// The weight of a target that is never in the class.
    pub(crate) const ZERO: Self = Self { first: 0.0, second: 0.0 };

    pub(crate) fn value(&self) -> f64 {
        self.first - self.second
    }

    /// How far the value may be off.
    pub(crate) fn value_error(&self) -> f64 {
        16.0 * ROUNDOFF * self.magnitude()
    }

    pub(crate) fn magnitude(&self) -> f64 {
        self.first + self.second
    }

    /// The weight for the opposite event.
    pub(crate) fn exchanged(self) -> Self {
        Self { first: self.second, second: self.first }
    }

    pub(crate) fn positive_part(&self) -> Enclosure {
        if self.second == 0.0 {
            return Enclosure::around(self.first, 2.0 * ROUNDOFF * self.first, 0.0);
        }
        // Rounding can hide a positive part of at most this size.
        let error = 8.0 * ROUNDOFF * self.magnitude();
        if self.value() < -error { Enclosure::ZERO } else { Enclosure::around(self.value().max(0.0), error, 0.0) }
    }

    /// Σ w_c.
    pub(crate) fn sum_of_values(weights: &[Self]) -> f64 {
        weights.iter().map(Self::value).sum()
    }

    /// The same without cancellation, which scales its rounding error.
    pub(crate) fn sum_of_magnitudes(weights: &[Self]) -> f64 {
        weights.iter().map(Self::magnitude).sum()
    }

    /// (w)₊ from above: the divergence that the target alone adds in a class that nobody else reaches.
    pub(crate) fn shown_alone(&self) -> f64 {
        self.value().max(0.0) + if self.value() > 0.0 { self.value_error() } else { 0.0 }
    }

    /// Σ (w_c)₊: the divergence where the histogram of the others reveals nothing.
    pub(crate) fn positive_parts<'a>(weights: impl IntoIterator<Item = &'a Self>) -> Enclosure {
        weights.into_iter().map(Self::positive_part).fold(Enclosure::ZERO, Enclosure::plus)
    }
}

/// A class that owners may be in, and the target's weight there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WeightedClass {
    pub(crate) likelihood: Likelihood,
    pub(crate) weight: Weight,
}

/// The target's weights in some classes.
pub(crate) fn weights(classes: &[Likelihood], direction: Direction, growth: f64) -> impl Iterator<Item = Weight> {
    classes.iter().map(move |class| class.weight(direction, growth))
}

/// The classes together with these weights.
pub(crate) fn weighted(
    classes: &[Likelihood],
    direction: Direction,
    growth: f64,
) -> impl Iterator<Item = WeightedClass> {
    classes.iter().map(move |class| class.weighted(direction, growth))
}
