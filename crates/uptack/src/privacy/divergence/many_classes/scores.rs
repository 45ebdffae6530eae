//! A crowd as the commoner truth sees it, and sums of scores on a lattice (`docs/accounting.md`, "Any number of classes" and
//! "Sums of scores").

use crate::certified::root::newton;
use crate::certified::rounding::ROUNDOFF;
use crate::certified::score_group::{Atom, ScoreGroup, tilted_moments};
use crate::certified::score_sum::{LONGEST, ScoreSum, SumSupport, TiltedLaw};
use crate::privacy::likelihood::{Crowd, Weight, WeightedClass};
use crate::privacy::work::WorkBudget;
use crate::truth::Truth;

/// With more owners than this, lattices are coarser.
pub(super) const VERY_MANY: u64 = 300_000;

/// The windows of sums leave out at least this mass, as a logarithm. A smaller one would make them longer and no bound better.
pub(super) const DEEPEST_WINDOW: f64 = -60.0;

/// How finely scores are put on lattices: cells per standard deviation of one owner's score, and of the rarer truth's mean.
/// Twice as many cost about twice as much and lose a quarter as much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fineness {
    pub(super) scores: f64,
    pub(super) mean: f64,
    /// No lattice has more cells than this; where very rare classes would need more, it is coarser.
    pub(super) most_cells: i64,
}

impl Fineness {
    /// Loses about one per cent of the variance.
    pub(crate) const COARSE: Self = Self { scores: 4.0, mean: 4.0, most_cells: 1 << 14 };
    /// For very large crowds, where a lattice has many cells.
    pub(crate) const LARGE: Self = Self { scores: 8.0, mean: 6.0, most_cells: 1 << 20 };
    /// For tests that compute thousands of bounds: loose, and as sound as any.
    #[cfg(test)]
    pub(crate) const TINY: Self = Self { scores: 4.0, mean: 4.0, most_cells: 1 << 10 };
    /// Loses less than a thousandth of the variance.
    pub(crate) const FINE: Self = Self { scores: 24.0, mean: 16.0, most_cells: 1 << 18 };

    /// How many cells the lattice of a sum of `owners` scores may have.
    fn most_cells(&self, owners: u64) -> f64 {
        // In a large crowd the usual number of cells is larger, and no class is so rare.
        (self.most_cells as f64).max(100.0 * (owners as f64).sqrt()).min(LONGEST as f64 / 2.0)
    }

    /// The fineness that a single sum over a crowd of one truth can afford.
    pub(crate) fn for_one_truth(others: u64) -> Self {
        if others > VERY_MANY { Self::LARGE } else { Self::FINE }
    }
}

/// How sums of scores are computed: the logarithm of the mass that may be left out, how fine the lattices are, and where the work
/// is counted.
#[derive(Clone, Copy)]
pub(super) struct Precision<'a> {
    pub(super) log_cut: f64,
    pub(super) fineness: Fineness,
    pub(super) work: &'a WorkBudget,
}

/// A sum of scores on a lattice.
pub(super) struct OnLattice {
    pub(super) sum: ScoreSum,
    pub(super) spacing: f64,
    /// At which the mean is zero, or nearest to it.
    pub(super) tilt: f64,
}

/// The sum of `owners` draws on a lattice of about the spacing wanted; a wider one where that would have too many cells.
pub(super) fn lattice_sum(law: &RealLaw, owners: u64, wanted: f64, fineness: Fineness, log_cut: f64) -> OnLattice {
    let largest = law.values().map(f64::abs).fold(0.0, f64::max);
    let mut spacing = wanted.max(largest * 1e-9);
    loop {
        let sum = ScoreSum { groups: vec![ScoreGroup { owners, atoms: law.on_lattice(spacing) }] };
        let tilt = sum.tilt_for(0.0);
        let window = sum.window(tilt, log_cut.max(DEEPEST_WINDOW));
        let excess = window.span() as f64 / fineness.most_cells(owners);
        if excess <= 1.0 {
            return OnLattice { sum, spacing, tilt };
        }
        spacing *= 1.5 * excess;
    }
}

/// The tilted law of a sum on a window; `None` if that is too long for a transform.
pub(super) fn law_on(window: SumSupport, sum: &ScoreSum, tilt: f64, work: &WorkBudget) -> Option<TiltedLaw> {
    if window.span() > LONGEST / 2 {
        return None;
    }
    work.spend(20 * window.span() as u64);
    Some(sum.law(tilt, window))
}

/// Values with their probabilities. Its moments and tilts choose lattices and decide no claim.
pub(super) struct RealLaw(pub(super) Vec<(f64, f64)>);

impl RealLaw {
    /// The values.
    pub(super) fn values(&self) -> impl Iterator<Item = f64> {
        self.0.iter().map(|(value, _)| *value)
    }

    /// The largest value.
    pub(super) fn largest(&self) -> f64 {
        self.values().fold(f64::NEG_INFINITY, f64::max)
    }

    /// The likeliest value; zero if there is none.
    pub(super) fn likeliest(&self) -> f64 {
        self.0.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |(value, _)| *value)
    }

    /// The same on a lattice: a value between two cells is split so that its mean stays.
    fn on_lattice(&self, spacing: f64) -> Vec<Atom> {
        let mut atoms = Vec::with_capacity(2 * self.0.len());
        for (value, mass) in &self.0 {
            // A hair upwards covers the rounding of the place.
            let place = value / spacing + 4.0 * f64::EPSILON * (value / spacing).abs();
            let (below, part) = (place.floor(), place - place.floor());
            atoms.push((below as i64, mass * (1.0 - part)));
            if part > 0.0 {
                atoms.push((below as i64 + 1, mass * part));
            }
        }
        atoms
    }

    fn log_normalizer(&self, tilt: f64) -> f64 {
        let peak = self.0.iter().filter(|(_, mass)| *mass > 0.0).map(|(value, _)| tilt * value);
        let peak = peak.fold(f64::NEG_INFINITY, f64::max);
        peak + self.0.iter().map(|(value, mass)| mass * (tilt * value - peak).exp()).sum::<f64>().ln()
    }

    /// Mean and variance of the tilted law.
    pub(super) fn moments(&self, tilt: f64) -> (f64, f64) {
        tilted_moments(self.0.iter().copied(), tilt)
    }

    /// The standard deviation without a tilt.
    pub(super) fn deviation(&self) -> f64 {
        self.moments(0.0).1.sqrt()
    }

    /// The mean under the tilted law of another value of each outcome.
    pub(super) fn tilted_mean(&self, tilt: f64, others: &[f64]) -> f64 {
        let normalizer = self.log_normalizer(tilt);
        let part = |((value, mass), other): (&(f64, f64), &f64)| mass * (tilt * value - normalizer).exp() * other;
        self.0.iter().zip(others).map(part).sum()
    }

    /// The tilt, not negative, at which the mean is zero.
    pub(super) fn tilt_for_zero(&self) -> f64 {
        let largest = self.largest();
        if self.moments(0.0).0 >= 0.0 || largest <= 0.0 {
            return 0.0;
        }
        let mut range = (0.0, 1e-3 / largest);
        while self.moments(range.1).0 < 0.0 {
            range = (range.1, 2.0 * range.1);
            // Further out the exponentials overflow.
            if range.1 * largest > 700.0 {
                return range.0;
            }
        }
        newton(range, 1e-4, |tilt| self.moments(tilt))
    }
}

/// The cost of a node of a transform besides a step for each class: powers and exponentials.
const STEPS_PER_NODE: u64 = 6;

/// The cost of finding a tilt and a range, in nodes.
const NODES_OF_A_TILT: u64 = 300;

/// How many owners there are of the commoner and of the rarer truth, and the classes that the commoner truth reaches.
pub(super) struct OrientedCrowd {
    pub(super) classes: Vec<OrientedClass>,
    pub(super) common: u64,
    pub(super) rare: u64,
    /// Owners of the rarer truth were left out, because there are classes that only one truth reaches.
    pub(super) dropped: bool,
}

/// A class with its probability under the commoner and the rarer truth, the target's weight, that weight over the former
/// probability, and how far this score may be off.
#[derive(Clone, Copy)]
pub(super) struct OrientedClass {
    pub(super) common: f64,
    pub(super) rare: f64,
    pub(super) weight: Weight,
    pub(super) score: f64,
    pub(super) slack: f64,
}

impl OrientedClass {
    /// A class that owners of the commoner truth reach.
    fn new(WeightedClass { likelihood, weight }: &WeightedClass, commoner: Truth) -> Self {
        let (common, rare) = (likelihood[commoner], likelihood[commoner.other()]);
        let score = weight.value() / common;
        let slack = (weight.value_error() + 8.0 * ROUNDOFF * weight.magnitude()) / common;
        Self { common, rare, weight: *weight, score, slack }
    }

    /// How much likelier the class is under the rarer truth.
    pub(super) fn ratio(&self) -> f64 {
        self.rare / self.common
    }
}

/// The commoner truth of a crowd; *no* where both are equally common.
pub(super) fn commoner(crowd: Crowd) -> Truth {
    Truth::from_bool(crowd.no < crowd.yes)
}

impl OrientedCrowd {
    /// Separates the classes that nobody else is in, where the target shows by itself: their positive part, and the other
    /// classes.
    pub(super) fn split(classes: &[WeightedClass], crowd: Crowd) -> (f64, Option<Self>) {
        let truth = commoner(crowd);
        let is_reached = |class: &&WeightedClass| class.likelihood[truth] != 0.0 && crowd[truth] != 0;
        let alone = classes.iter().filter(|class| !is_reached(class)).map(|class| class.weight.shown_alone());
        let alone = alone.fold(0.0, |sum, shown| sum + shown);
        let reached: Vec<_> = classes.iter().filter(is_reached).map(|class| OrientedClass::new(class, truth)).collect();
        let one_sided = classes.iter().any(|class| class.likelihood.is_one_sided());
        (alone, (!reached.is_empty()).then(|| Self::new(reached, crowd, one_sided)))
    }

    /// A crowd over the classes that its commoner truth reaches; `one_sided` is whether some class is reached by one truth only.
    fn new(classes: Vec<OrientedClass>, crowd: Crowd, one_sided: bool) -> Self {
        let truth = commoner(crowd);
        let (common, rare) = (crowd[truth], crowd[truth.other()]);
        let dropped = one_sided && rare > 0;
        Self { classes, common, rare: if dropped { 0 } else { rare }, dropped }
    }

    /// Values of the classes with their probabilities under the commoner truth.
    pub(super) fn law_of(&self, values: &[f64]) -> RealLaw {
        RealLaw(values.iter().copied().zip(self.classes.iter().map(|class| class.common)).collect())
    }

    /// The same with their probabilities under the rarer truth.
    pub(super) fn rare_law_of(&self, values: &[f64]) -> RealLaw {
        RealLaw(values.iter().copied().zip(self.classes.iter().map(|class| class.rare)).collect())
    }

    /// The owners of the commoner truth and the target, as if it were one of them.
    pub(super) fn drawn(&self) -> f64 {
        (self.common + 1) as f64
    }

    /// All owners but the target.
    pub(super) fn others(&self) -> f64 {
        (self.common + self.rare) as f64
    }

    /// Owners of the commoner truth for each of the rarer: κ.
    fn balance(&self) -> f64 {
        self.drawn() / self.rare as f64
    }

    /// The constant k that makes the influences average to zero.
    fn centre(&self) -> f64 {
        let share = |class: &OrientedClass| class.common * class.ratio() / (class.ratio() + self.balance());
        let total: f64 = self.classes.iter().map(share).sum();
        self.classes.iter().map(|class| share(class) * class.score).sum::<f64>() / total
    }

    /// The contribution of an owner in each class to the evidence, whatever its truth, to first order: (x − k)/(r + κ); and k.
    pub(super) fn influences(&self) -> (Vec<f64>, f64) {
        if self.rare == 0 {
            return (self.classes.iter().map(|class| class.score).collect(), 0.0);
        }
        let (centre, balance) = (self.centre(), self.balance());
        (self.classes.iter().map(|class| (class.score - centre) / (class.ratio() + balance)).collect(), centre)
    }

    /// E[(mean of the values of all drawn)₊] from above.
    pub(super) fn mean_of_positive_part(&self, values: &[f64], precision: Precision<'_>) -> f64 {
        if values.iter().all(|value| *value <= 0.0) {
            return 0.0;
        }
        let law = self.law_of(values);
        let mean = self.positive_part_of_sum(&law, precision) / self.drawn();
        // Without a guarantee from the transform there is still the sum of all positive values.
        let simple: f64 = law.0.iter().map(|(value, mass)| value.max(0.0) * mass).sum();
        mean.min(simple) * (1.0 + 1e-12)
    }

    /// E[(sum of the values of all drawn)₊] by a transform on a lattice.
    fn positive_part_of_sum(&self, law: &RealLaw, precision: Precision<'_>) -> f64 {
        let Precision { log_cut, fineness, work } = precision;
        let deviation = law.moments(law.tilt_for_zero()).1.sqrt();
        let OnLattice { sum, spacing, tilt } =
            lattice_sum(law, self.common + 1, deviation / fineness.scores, fineness, log_cut);
        let (value, nodes) = sum.positive_part(tilt, log_cut);
        work.spend((nodes + NODES_OF_A_TILT) * (self.classes.len() as u64 + STEPS_PER_NODE));
        value * spacing
    }
}
