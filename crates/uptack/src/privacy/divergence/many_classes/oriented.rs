//! A crowd as the commoner truth sees it (`docs/accounting.md`, "Any number of classes").

use super::lattice::{OnLattice, Precision, RealLaw, lattice_sum};
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::likelihood::{Crowd, Weight, WeightedClass};
use crate::truth::Truth;

/// What a node of a transform costs besides a step for each class: powers and exponentials.
const STEPS_PER_NODE: u64 = 6;

/// What finding a tilt and a window costs, in nodes.
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
    /// Separates the classes that nobody else is in, where the target shows by itself: their positive part, and the other classes.
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

    /// What an owner in each class adds to the evidence, whatever its truth, to first order: (x − k)/(r + κ); and k.
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
