//! The evidence in a crowd for a target that is *yes* against *no*, from below: losses and masses that compose
//! (`docs/composition.md`, "The lower value").

use std::ops::RangeInclusive;

use super::scores::{DEEPEST_WINDOW, RealLaw, law_on};
use super::scores::{OrientedCrowd, commoner};
use crate::certified::score_group::ScoreGroup;
use crate::certified::score_sum::{ScoreSum, TiltedLaw};
use crate::privacy::likelihood::{Crowd, Direction, Likelihood, PerDirection, weighted};
use crate::privacy::work::WorkBudget;
use crate::truth::Truth;

/// Outcomes of one query in a pair of worlds, possibly coarsened: losses from below with their masses from below.
#[derive(Debug, Clone)]
pub(crate) struct PairLaw {
    /// (ln of the ratio of the two laws, mass under the first).
    pub(crate) losses: Vec<(f64, f64)>,
    /// Mass of outcomes that the second law does not have.
    pub(crate) infinite: f64,
}

impl PairLaw {
    /// Adds an outcome with a lower bound on its first and an upper bound on its second probability, unless either is zero.
    fn add(&mut self, one: f64, other: f64) {
        if one > 0.0 && other > 0.0 {
            self.losses.push(((one / other).ln(), one));
        }
    }

    /// Adds a class of these probabilities in which the target shows by itself.
    fn add_alone(&mut self, one: f64, other: f64) {
        let (one, other) = (one * (1.0 - 1e-14), other * (1.0 + 1e-14));
        self.add(one, other);
        self.infinite += if other > 0.0 { 0.0 } else { one };
    }
}

/// The evidence of a sum of scores for a target that is *yes* against *no*: the losses and masses of its outcomes, from
/// below, in both directions. `None` if that is not known.
pub(crate) fn pair_laws(classes: &[Likelihood], crowd: Crowd, work: &WorkBudget) -> Option<PerDirection<PairLaw>> {
    let classes = ScoredClass::all(classes, crowd)?;
    if classes.iter().any(|class| class.alone) && crowd.one_truth().is_none() {
        return None;
    }
    let shown = ShownSum::new(classes, crowd, work)?;
    Some(PerDirection::each(|direction| shown.pair_law(direction)))
}

/// A class with its score. Where the target is `alone` in it, nobody else reaches it, and the target shows by itself.
struct ScoredClass {
    likelihood: Likelihood,
    score: i64,
    alone: bool,
}

impl ScoredClass {
    /// The classes with scores by their contribution to the evidence; `None` if there are no such scores.
    fn all(classes: &[Likelihood], crowd: Crowd) -> Option<Vec<Self>> {
        let scores = integer_scores(classes, crowd)?;
        Some(classes.iter().zip(scores).map(|(class, score)| Self::new(*class, score, crowd)).collect())
    }

    fn new(likelihood: Likelihood, score: i64, crowd: Crowd) -> Self {
        let unreached = |truth: Truth| crowd[truth] > 0 && likelihood[truth] <= 0.0;
        let nobody = crowd.size() == 0 && likelihood.no <= 0.0;
        Self { likelihood, score, alone: unreached(Truth::Yes) || unreached(Truth::No) || nobody }
    }
}

/// The sum of the scores of all owners but the target.
fn others_sum(classes: &[ScoredClass], crowd: Crowd) -> ScoreSum {
    let atoms = |truth: Truth| {
        let atoms = classes.iter().map(|class| (class.score, class.likelihood[truth]));
        atoms.filter(|(_, mass)| *mass > 0.0).collect()
    };
    let present = [Truth::Yes, Truth::No].into_iter().filter(|truth| crowd[*truth] > 0);
    ScoreSum { groups: present.map(|truth| ScoreGroup { owners: crowd[truth], atoms: atoms(truth) }).collect() }
}

/// The law of the sum of all scores, the target's included.
struct ShownSum {
    classes: Vec<ScoredClass>,
    /// The law of the others' sum, and the mass beyond it on either side.
    law: TiltedLaw,
    outside: f64,
    /// All sums with the target that are looked at.
    sums: RangeInclusive<i64>,
}

impl ShownSum {
    /// `None` if the law would be too long.
    fn new(classes: Vec<ScoredClass>, crowd: Crowd, work: &WorkBudget) -> Option<Self> {
        let sum = others_sum(&classes, crowd);
        let window = sum.window(0.0, DEEPEST_WINDOW);
        let law = law_on(window, &sum, 0.0, work)?;
        let reach = classes.iter().map(|class| class.score.abs()).max().unwrap_or(0);
        let sums = window.low - reach..=window.high + reach;
        Some(Self { classes, law, outside: window.log_outside.exp(), sums })
    }

    fn pair_law(&self, direction: Direction) -> PairLaw {
        let (first, second) = direction.truths();
        let mut pair = PairLaw { losses: Vec::new(), infinite: 0.0 };
        let relative = 1.0 - 4.0 * self.law.relative_error - 1e-12;
        for j in self.sums.clone() {
            pair.add(self.below(j, first) * relative, self.above(j, second) / relative);
        }
        for class in self.classes.iter().filter(|class| class.alone) {
            pair.add_alone(class.likelihood[first], class.likelihood[second]);
        }
        pair
    }

    /// The probability that all scores sum to `j` if the target has this truth, from below.
    fn below(&self, j: i64, truth: Truth) -> f64 {
        self.sum(j, truth, 0.0, |value| self.law.lower_bound(value)) * (1.0 - 1e-14)
    }

    /// The same from above.
    fn above(&self, j: i64, truth: Truth) -> f64 {
        self.sum(j, truth, self.outside, |value| self.law.upper_bound(value)) * (1.0 + 1e-14) + 2.0 * self.outside
    }

    /// Σ over the classes in which the target is not alone of its probability times a bound on the others' law, which is `beyond`
    /// past its last value.
    fn sum(&self, j: i64, truth: Truth, beyond: f64, bound: impl Fn(f64) -> f64) -> f64 {
        let part = |class: &ScoredClass| {
            let place = usize::try_from(j - class.score - self.law.first).ok()?;
            let crowd = self.law.values.get(place).map_or(beyond, |value| bound(*value));
            (!class.alone).then_some(class.likelihood[truth] * crowd)
        };
        self.classes.iter().filter_map(part).sum()
    }
}

/// Integer scores for all classes, in the order given, by their contribution to the evidence.
fn integer_scores(classes: &[Likelihood], crowd: Crowd) -> Option<Vec<i64>> {
    if crowd.size() == 0 {
        return Some((0..classes.len() as i64).collect());
    }
    let mut places = places_where_reached(classes, crowd)?.into_iter();
    let score = |class: &Likelihood| -> Option<i64> {
        if class[commoner(crowd)] == 0.0 {
            return Some(0);
        }
        places.next().filter(|place| place.abs() < 1e9).map(|place| place as i64)
    };
    classes.iter().map(score).collect()
}

/// The contributions of the classes that the commoner truth reaches to the evidence, in steps of an integer score. `None` if the
/// influences of the rarer truth's owners are unknown.
fn places_where_reached(classes: &[Likelihood], crowd: Crowd) -> Option<Vec<f64>> {
    let weighted = Vec::from_iter(weighted(classes, Direction::YesOverNo, 1.0));
    let (_, oriented) = OrientedCrowd::split(&weighted, crowd);
    let oriented = oriented.filter(|oriented| !oriented.dropped)?;
    let (influences, _) = oriented.influences();
    let law = oriented.law_of(&influences);
    let (zero, spacing) = (law.likeliest(), score_spacing(&law, crowd.size()));
    Some(influences.iter().map(|influence| ((influence - zero) / spacing).round()).collect())
}

/// The influence that one step of an integer score stands for. Two classes are apart by one step, whatever their influences.
fn score_spacing(influences: &RealLaw, owners: u64) -> f64 {
    if let [(first, _), (second, _)] = influences.0[..] {
        return (first - second).abs();
    }
    // This many cells per standard deviation of one owner's score, but not more than a transform has room for.
    let cells = (2e4 / (owners as f64).sqrt()).clamp(0.5, 8.0);
    influences.deviation() / cells
}
