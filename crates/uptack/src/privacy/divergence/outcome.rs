//! One outcome in one crowd: the choice between the formulas for up to three classes, and a bound where no formula is exact: the
//! adversary is told who is outside (`docs/accounting.md`, "The divergence of one crowd" and "Telling").

use std::ops::Add;

use super::averaged::{Falling, expected};
use super::many_classes::{self, Fineness, refined};
use super::one_truth::{self, OneTruthClass};
use super::three_classes::three_classes;
use super::two_classes::{two_classes, without_the_rarest};
use super::{DivergenceRequest, Divergences, WantedEnds};
use crate::certified::binomial::{Binomial, window};
use crate::certified::rounding::Enclosure;
use crate::parallel::joined;
use crate::privacy::likelihood::{
    ClassWeights, Crowd, CrowdLaws, DirectionBounds, OneTruth, PerDirection, PerTruth, Weight,
};
use crate::privacy::views::TargetOutcome;
use crate::privacy::work::WorkBudget;
use crate::truth::Truth;

/// From this many owners on, a crowd takes so long that one thread per direction pays.
const MANY_OWNERS: u64 = 5_000_000;

impl TargetOutcome {
    /// A crowd of one truth, in both directions.
    pub(super) fn one_truth(&self, crowd: OneTruth, request: DivergenceRequest, work: &WorkBudget) -> Divergences {
        let OneTruth { truth, owners } = crowd;
        let weights = self.weights(request.growth);
        let Some(law) = self.law(truth).filter(|_| self.classes.len() > 1) else {
            return weights.map(|weights| Weight::positive_parts(&weights));
        };
        let classes = weights.map(|weights| OneTruthClass::all(&weights, &law));
        let divergence = |others| {
            PerDirection::each(|direction| one_truth::divergence(&classes[direction], others, request.log_cut, work))
        };
        if self.counts_outside() || self.outside[truth] == 0.0 {
            return divergence(owners);
        }
        expected(Binomial::new(owners, self.inside(truth)), request, work, divergence)
    }

    /// The same where all others are inside.
    fn one_truth_inside(&self, crowd: OneTruth, request: DivergenceRequest, work: &WorkBudget) -> Divergences {
        if self.counts_outside() {
            return self.one_truth(crowd, request, work);
        }
        self.without_outside().one_truth(crowd, request, work)
    }

    /// A crowd of both truths, in both directions, whose owners are all inside, or where the outside is a class like any other.
    pub(super) fn both_truths(&self, crowd: Crowd, request: DivergenceRequest, work: &WorkBudget) -> Divergences {
        if self.classes.len() == 1 {
            return self.one_truth(OneTruth { truth: Truth::Yes, owners: 0 }, request, work);
        }
        let Some(laws) = self.laws() else {
            // Owners of the truth that is never inside reveal nothing.
            let truth = Truth::from_bool(self.law(Truth::Yes).is_some());
            return self.one_truth_inside(OneTruth { truth, owners: crowd[truth] }, request, work);
        };
        if let Some(crowd) = crowd.one_truth() {
            return self.one_truth_inside(crowd, request, work);
        }
        self.with_laws(laws, crowd, request, work)
    }

    /// The same where the owners have these laws over two or three classes.
    fn with_laws(
        &self,
        laws: PerTruth<Vec<f64>>,
        owners: Crowd,
        request: DivergenceRequest,
        work: &WorkBudget,
    ) -> Divergences {
        let weights = self.weights(request.growth);
        if laws.yes.len() == 2 {
            let crowd = CrowdLaws { owners, laws: laws.map(first) };
            return two_classes(weights.map(first), crowd, request.log_cut, work);
        }
        let crowd = CrowdLaws { owners, laws: laws.map(first) };
        self.sharp_enough(weights.map(first), crowd, request, work)
    }

    /// Three classes in a crowd of both truths by the cheapest method that is precise enough.
    fn sharp_enough(
        &self,
        weights: ClassWeights<3>,
        crowd: CrowdLaws<3>,
        request: DivergenceRequest,
        work: &WorkBudget,
    ) -> Divergences {
        if let Some(value) = without_the_rarest(weights, crowd, request, work) {
            return value;
        }
        let exact = self.three_classes(weights, crowd, request, work);
        let is_sharp = |value: &Enclosure| match request.ends {
            WantedEnds::Lower if value.lower() > 0.0 => true,
            _ => value.upper() <= request.goal.max(1.01 * value.lower()),
        };
        if exact.iter().all(is_sharp) {
            return exact;
        }
        self.bounded_otherwise(exact, crowd.owners, request, work)
    }

    /// Three classes in a crowd of both truths, each direction on a thread of its own where that is worth it.
    pub(super) fn three_classes(
        &self,
        weights: ClassWeights<3>,
        crowd: CrowdLaws<3>,
        request: DivergenceRequest,
        work: &WorkBudget,
    ) -> Divergences {
        // Rows are counts of the class between the others by ratio, or of the outside.
        let row = if self.counts_outside() { 2 } else { 1 };
        let divergence = |weights: [Weight; 3], work: &WorkBudget| three_classes(weights, row, crowd, request, work);
        if crowd.owners.size() < MANY_OWNERS {
            return weights.map(|weights| divergence(weights, work));
        }
        each_on_its_thread(weights, work, divergence)
    }

    /// Where the formulas for three classes are not sharp, at the edge of what can occur: the owners of the commoner truth alone
    /// give a bound, and so does revealing the labels.
    fn bounded_otherwise(
        &self,
        exact: Divergences,
        crowd: Crowd,
        request: DivergenceRequest,
        work: &WorkBudget,
    ) -> Divergences {
        let common = OneTruth { truth: Truth::from_bool(crowd.yes > crowd.no), owners: crowd.yes.max(crowd.no) };
        let fewer = self.one_truth_inside(common, request, work);
        let bounded = exact.with(fewer, |exact, fewer| exact.at_most(fewer.upper()));
        // Sums of scores are costly: they are for a goal that is missed. Without a goal (a profile is read, often where the
        // divergence is next to nothing) the enclosure stays as wide as it is.
        let missed = bounded.iter().any(|value| value.upper() > request.goal);
        if request.goal <= 0.0 || !missed || work.exhausted() {
            return bounded;
        }
        let bound = |fineness| self.with_labels_revealed(crowd, request, fineness, work);
        bounded.with(refined(crowd.size(), request.goal, work, bound), Enclosure::at_most)
    }

    /// The bound for any number of classes, in both directions (`docs/accounting.md`, "Labels").
    fn with_labels_revealed(
        &self,
        crowd: Crowd,
        request: DivergenceRequest,
        fineness: Fineness,
        work: &WorkBudget,
    ) -> DirectionBounds {
        PerDirection::each(|direction| {
            let classes = self.weighted(direction, request.growth);
            many_classes::upper(&classes, crowd, request.log_cut, fineness, work)
        })
    }
}

/// The first N of at least N values.
pub(super) fn first<T: Copy, const N: usize>(values: Vec<T>) -> [T; N] {
    std::array::from_fn(|index| values[index])
}

/// A function of both directions' weights, computed on two threads.
fn each_on_its_thread<const N: usize>(
    weights: ClassWeights<N>,
    work: &WorkBudget,
    function: impl Fn([Weight; N], &WorkBudget) -> Enclosure + Sync,
) -> Divergences {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let work = WorkBudget::unlimited();
            (function(weights.no_over_yes, &work), work.spent())
        });
        let yes_over_no = function(weights.yes_over_no, work);
        let (no_over_yes, spent) = joined(other);
        work.spend(spent);
        PerDirection { yes_over_no, no_over_yes }
    })
}

/// All outcomes in a crowd, each bounded by itself.
pub(super) struct OutcomeBounds<'a>(Vec<OutcomeBound<'a>>);

impl<'a> OutcomeBounds<'a> {
    pub(super) fn new(
        outcomes: &'a [TargetOutcome],
        crowd: Crowd,
        request: DivergenceRequest,
        work: &WorkBudget,
    ) -> Self {
        Self(outcomes.iter().map(|outcome| OutcomeBound::new(outcome, crowd, request, work)).collect())
    }

    /// A guess at the sum of the divergences.
    pub(super) fn guess(&self) -> DirectionBounds {
        let guesses = self.0.iter().map(|outcome| outcome.guess);
        guesses.fold(PerDirection::both(0.0), |sum, guess| sum.with(guess, f64::add))
    }

    /// The sum of the divergences from above: at most the question's goal, if that is within reach.
    pub(super) fn bound(&self, request: DivergenceRequest, work: &WorkBudget) -> DirectionBounds {
        let (guess, count) = (self.guess(), self.0.len());
        let goals = |outcome: &OutcomeBound<'_>| outcome.goals(request.goal, guess, count);
        let bounds = self.0.iter().map(|outcome| outcome.bound(goals(outcome), request, work));
        bounds.fold(PerDirection::both(0.0), |sum, bound| sum.with(bound, |a, b| (a + b) * (1.0 + f64::EPSILON)))
    }
}

/// One outcome in a crowd of both truths: a guess at its divergence, and how to bound it.
struct OutcomeBound<'a> {
    guess: DirectionBounds,
    /// `None` if the guess is a bound.
    told: Option<OutsideTold<'a>>,
}

impl<'a> OutcomeBound<'a> {
    fn new(outcome: &'a TargetOutcome, crowd: Crowd, request: DivergenceRequest, work: &WorkBudget) -> Self {
        work.spend(200);
        if let Some(crowd) = crowd.one_truth() {
            return Self { guess: outcome.one_truth(crowd, request, work).upper(), told: None };
        }
        if outcome.has_few_classes() {
            return Self { guess: outcome.both_truths(crowd, request, work).upper(), told: None };
        }
        let told = OutsideTold::new(outcome, crowd, request.log_cut);
        Self { guess: told.divergence(told.inside.mean() as u64, request, work), told: Some(told) }
    }

    /// The goals for this outcome, one of `outcomes`: its own guess and, in proportion to it, a share of the gap between the
    /// goal and all guesses together.
    fn goals(&self, goal: f64, all: DirectionBounds, outcomes: usize) -> DirectionBounds {
        // An outcome whose guess is next to nothing needs some room, too.
        let tiny = 1e-3 * goal;
        self.guess.with(all, |own, all| {
            let share = (own + tiny) / (all + tiny * outcomes as f64);
            own + (goal - all) * share
        })
    }

    /// A bound that does not exceed the goals, if that is within reach.
    fn bound(&self, goals: DirectionBounds, request: DivergenceRequest, work: &WorkBudget) -> DirectionBounds {
        let Some(told) = &self.told else { return self.guess };
        let everywhere = PerDirection::both(1.0);
        let falling = Falling { law: told.inside, center: self.guess, everywhere, goals };
        let given = |inside: u64| told.divergence(inside, request, work);
        falling.expected(request.log_cut, work, given).map(|value| value + 2.0 * request.log_cut.exp())
    }
}

/// An outcome whose outside is told to the adversary. The number inside is averaged for the owners of the commoner truth, and
/// taken at its smallest for those of the rarer one.
struct OutsideTold<'a> {
    outcome: &'a TargetOutcome,
    common: Truth,
    /// The law of the number inside of the commoner truth's owners.
    inside: Binomial,
    /// At least this many of the rarer truth's owners are inside, but for a negligible probability.
    rare: u64,
}

impl<'a> OutsideTold<'a> {
    fn new(outcome: &'a TargetOutcome, crowd: Crowd, log_cut: f64) -> Self {
        let common = Truth::from_bool(crowd.yes >= crowd.no);
        let inside = |truth: Truth| Binomial::new(crowd[truth], outcome.inside(truth));
        let (rare, _) = window(&[inside(common.other())], log_cut);
        Self { outcome, common, inside: inside(common), rare }
    }

    /// The divergence from above where `inside` of the commoner truth's owners are inside.
    fn divergence(&self, inside: u64, request: DivergenceRequest, work: &WorkBudget) -> DirectionBounds {
        self.outcome.both_truths(Crowd::oriented(self.common, inside, self.rare), request, work).upper()
    }
}
