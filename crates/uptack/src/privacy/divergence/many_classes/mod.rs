//! Any number of classes, in a crowd of one truth or of both: bounds from above and from below (`docs/accounting.md`, "Any number
//! of classes").
//!
//! From above: given the histogram, the divergence is a conditional expectation, over which owners are *yes*, of a mean over the
//! owners of the commoner truth; so revealing the labels bounds it (Jensen). Adding terms whose conditional expectation is zero
//! makes that bound sharp to second order ([`labelled`]). From below: any test on a sum of scores ([`best_test`]).

mod best_test;
mod labelled;
mod lattice;
mod oriented;
mod pair_law;

pub(crate) use lattice::Fineness;
pub(crate) use pair_law::{PairLaw, pair_laws};

use crate::privacy::effort::Work;
use crate::privacy::likelihood::{Bounds, Crowd, Likelihood, PerTruth, WeightedClass};
use labelled::Labelled;
use lattice::Precision;
use oriented::OrientedCrowd;

/// The divergence of one direction in a crowd, from above.
pub(crate) fn upper(classes: &[WeightedClass], crowd: Crowd, log_cut: f64, fineness: Fineness, work: &Work) -> f64 {
    let (alone, crowd) = OrientedCrowd::split(classes, crowd);
    let precision = Precision { log_cut, fineness, work };
    let value = crowd.map_or(0.0, |crowd| upper_where_reached(&crowd, precision));
    ((alone + value) * (1.0 + 1e-12)).min(1.0)
}

/// The same for the classes that owners of the commoner truth reach.
fn upper_where_reached(crowd: &OrientedCrowd, precision: Precision<'_>) -> f64 {
    if crowd.rare > 0 {
        return Labelled::new(crowd).bound(precision);
    }
    let scores: Vec<f64> = crowd.classes.iter().map(|class| class.score + class.slack).collect();
    crowd.mean_of_positive_part(&scores, precision)
}

/// The same from below, by the best test on a sum of scores.
pub(crate) fn lower(classes: &[WeightedClass], crowd: Crowd, log_cut: f64, work: &Work) -> f64 {
    let (alone, crowd) = OrientedCrowd::split(classes, crowd);
    match crowd {
        // Owners of the rarer truth may hide what seems to show by itself.
        Some(crowd) if crowd.dropped => 0.0,
        Some(crowd) => alone * (1.0 - 1e-12) + best_test::lower(&crowd, log_cut, work),
        None => alone * (1.0 - 1e-12),
    }
}

/// The divergence of one direction in every crowd of `owners` with the target, from above, by the privacy blanket: each owner
/// draws, whatever its truth, from the law in proportion to min(p, q) with probability γ = Σ min(p, q), and the adversary is told
/// who does not and what they drew (Balle, Bell, Gascón, Nissim, *The privacy blanket of the shuffle model*, 2019). Evaluated
/// exactly, as Su et al. (2025) do: with B ~ Bernoulli(γ) for each owner it is (1/n)·E[(Σ B·x)₊], x = weight/min(p, q).
pub(crate) fn blanket(classes: &[WeightedClass], owners: u64, log_cut: f64, fineness: Fineness, work: &Work) -> f64 {
    upper(&under_blanket(classes), PerTruth { yes: 0, no: owners - 1 }, log_cut, fineness, work)
}

/// The classes as owners draw them from the blanket, whatever their truth, and one for those who do not.
fn under_blanket(classes: &[WeightedClass]) -> Vec<WeightedClass> {
    let covered: f64 = classes.iter().map(|class| class.likelihood.in_common()).sum();
    let told = (1.0 - covered).max(0.0);
    let drawn = classes.iter().map(|class| {
        let likelihood = Likelihood::of_either(class.likelihood.in_common());
        WeightedClass { likelihood, ..*class }
    });
    drawn.chain((told > 0.0).then(|| Likelihood::of_either(told).without_target())).collect()
}

/// A bound on a coarse lattice, and on a finer one if it misses the goal by little; without a goal, on the finer one at once.
pub(super) fn refined(owners: u64, goal: f64, work: &Work, bound: impl Fn(Fineness) -> Bounds) -> Bounds {
    if goal <= 0.0 && owners <= lattice::VERY_MANY {
        return bound(Fineness::FINE);
    }
    let coarse = bound(Fineness::COARSE);
    let largest = coarse.largest();
    let misses_by_little = largest > goal && largest < 1.3 * goal && !work.exhausted();
    if !misses_by_little || owners > lattice::VERY_MANY {
        return coarse;
    }
    coarse.min(bound(Fineness::FINE))
}
