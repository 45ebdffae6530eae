//! The divergence of a view in one crowd: the sum over the outcomes of what the adversary sees of the target.
//!
//! Which method for which crowd:
//!
//! | crowd | classes | method | section of `docs/accounting.md` |
//! | --- | --- | --- | --- |
//! | few owners | any | [`enumerated`]: every histogram | Few owners |
//! | one truth | up to three | [`one_truth`]: tails of binomials | A crowd of one truth |
//! | both truths | two | [`two_classes`]: the law of a sum of two binomials | Two classes |
//! | any, and noise | two | [`two_classes`]: the same law, convolved with the noise | One honest aggregator |
//! | both truths | three, one rare | [`two_classes`]: two classes, the third revealed | A rare class |
//! | both truths | three | [`three_classes`]: the generating function on two circles | Three classes |
//! | any | any | [`many_classes`]: sums of scores, from above and from below | Any number of classes |
//!
//! If an answer is seen as well and its outcome has three classes besides the outside, the adversary is told who is outside
//! ([`outcome`]), and the expectation over their number is bounded in blocks ([`averaged`]).

pub(crate) mod averaged;
mod enumerated;
pub(crate) mod many_classes;
pub(crate) mod one_truth;
mod outcome;
mod three_classes;
mod two_classes;

pub(crate) use averaged::BoundAttempt;
pub(crate) use enumerated::Remainder;

use many_classes::{Fineness, PairLaw, refined};
use outcome::OutcomeBounds;

use super::likelihood::{Crowd, DirectionBounds, OneTruth, PerDirection, WeightedClass};
use super::views::{DetailedOutcome, ReducedView, TargetOutcome};
use super::work::WorkBudget;
use crate::certified::rounding::Enclosure;

impl ReducedView {
    /// Elementary steps to enumerate all crowds; `None` if enumeration is not exact.
    pub(crate) fn enumeration_cost(&self, others: u64) -> Option<u64> {
        let cost = |sum: u64, outcome: &DetailedOutcome| sum.saturating_add(enumerated::cost(outcome, others));
        self.noise.is_none().then(|| self.enumerated_outcomes().iter().fold(0, cost))
    }

    /// What is left of the divergence beyond the largest finite ratio, in all crowds, from no to all owners *yes*.
    pub(crate) fn remainders(&self, others: u64) -> Vec<Remainder> {
        let each = self.enumerated_outcomes().iter().map(|outcome| enumerated::remainders(outcome, others));
        let sum = |sums: Vec<Remainder>, values: Vec<Remainder>| {
            sums.into_iter().zip(values).map(|(sum, value)| sum.plus(value)).collect()
        };
        each.reduce(sum).unwrap_or_default()
    }

    /// One crowd exactly, in both directions, for a view that can be enumerated.
    pub(crate) fn enumerated(&self, crowd: Crowd, growth: f64) -> Divergences {
        PerDirection::sum(
            self.enumerated_outcomes().iter().map(|outcome| enumerated::divergence(outcome, crowd, growth)),
        )
    }

    /// The same in all crowds, from no to all owners *yes*.
    pub(crate) fn all_enumerated(&self, others: u64, growth: f64) -> Vec<Divergences> {
        let nothing = vec![PerDirection::both(Enclosure::ZERO); others as usize + 1];
        self.enumerated_outcomes()
            .iter()
            .map(|outcome| enumerated::divergences(outcome, others, growth))
            .fold(nothing, |sums, values| sums.into_iter().zip(values).map(|(sum, value)| sum.plus(value)).collect())
    }

    /// A crowd of one truth, in both directions. The upper end bounds the view, the lower end the part of it that the tallies
    /// show.
    pub(crate) fn one_truth(&self, crowd: OneTruth, request: DivergenceRequest, work: &WorkBudget) -> Divergences {
        if self.noise.is_some() {
            return self.both_truths(crowd.into(), request, work);
        }
        if self.is_exact() {
            return outcomes_in_one_truth(&self.above, crowd, request, work);
        }
        let lower = self.one_truth_from_below(crowd, request, work);
        let upper = self.one_truth_from_above(crowd, request, work);
        lower.with(upper, |lower, upper| Enclosure::of_probability(lower.min(upper), upper))
    }

    /// The lower ends of a crowd of one truth: by the best tests where there are many classes, else the most that a coarser view
    /// shows.
    fn one_truth_from_below(&self, crowd: OneTruth, request: DivergenceRequest, work: &WorkBudget) -> DirectionBounds {
        if request.ends == WantedEnds::Upper {
            return PerDirection::both(0.0);
        }
        let tests = if self.needs_sums() { self.best_tests(crowd.into(), request, work) } else { None };
        tests.unwrap_or_else(|| self.most_of_coarser_views(crowd, request, work))
    }

    /// The most that any of the coarser views shows in a crowd of one truth.
    fn most_of_coarser_views(&self, crowd: OneTruth, request: DivergenceRequest, work: &WorkBudget) -> DirectionBounds {
        let shown = self.below.iter().map(|outcomes| outcomes_in_one_truth(outcomes, crowd, request, work));
        shown.fold(PerDirection::both(0.0), |most, value| most.with(value, |most, value| most.max(value.lower())))
    }

    /// The upper ends of a crowd of one truth.
    fn one_truth_from_above(&self, crowd: OneTruth, request: DivergenceRequest, work: &WorkBudget) -> DirectionBounds {
        match request.ends {
            WantedEnds::Lower => PerDirection::both(1.0),
            _ if !self.needs_sums() => outcomes_in_one_truth(&self.above, crowd, request, work).upper(),
            _ => self.sums_of_scores(crowd.into(), request, Fineness::for_one_truth(crowd.owners), work),
        }
    }

    /// A crowd of both truths, in both directions, exactly; only for [`ReducedView::is_exact_in_every_crowd`].
    pub(crate) fn both_truths(&self, crowd: Crowd, request: DivergenceRequest, work: &WorkBudget) -> Divergences {
        let value = |outcome: &TargetOutcome| match &self.noise {
            Some(noise) => two_classes::noisy_divergence(outcome, noise, crowd, request, work),
            None => outcome.both_truths(crowd, request, work),
        };
        PerDirection::sum(self.above.iter().map(value))
    }

    /// The evidence about the target in a crowd, in both directions, from below. There are several laws where the tallies are
    /// only known to show several coarser views.
    pub(crate) fn pair_laws(&self, crowd: Crowd, work: &WorkBudget) -> Vec<PerDirection<PairLaw>> {
        match &self.noise {
            Some(noise) => {
                self.above.iter().map(|outcome| two_classes::noisy_pair_laws(outcome, noise, crowd, work)).collect()
            }
            None => self.shown().iter().filter_map(|classes| many_classes::pair_laws(classes, crowd, work)).collect(),
        }
    }

    /// A crowd of at least these owners, in both directions, from above. The bound is trivial where a guess shows that the
    /// question's goal is out of reach.
    pub(crate) fn bound(&self, crowd: Crowd, request: DivergenceRequest, work: &WorkBudget) -> BoundAttempt {
        if !self.has_few_classes() {
            let bound = |fineness| self.sums_of_scores(crowd, request, fineness, work);
            return BoundAttempt::exact(refined(crowd.size(), request.goal, work, bound));
        }
        self.bound_by_outcomes(crowd, request, work)
    }

    /// The same for few classes, where each outcome is bounded by itself.
    fn bound_by_outcomes(&self, crowd: Crowd, request: DivergenceRequest, work: &WorkBudget) -> BoundAttempt {
        let outcomes = OutcomeBounds::new(&self.above, crowd, request, work);
        let guess = outcomes.guess();
        if guess.largest() > request.goal {
            return BoundAttempt { bound: PerDirection::both(1.0), guess };
        }
        BoundAttempt { bound: outcomes.bound(request, work), guess }
    }

    /// A bound for every crowd of `others` owners at once: the privacy blanket.
    pub(crate) fn blanket(&self, others: u64, request: DivergenceRequest, work: &WorkBudget) -> f64 {
        let fineness = Fineness::for_one_truth(others);
        let bounds = self.sum_over_outcomes(request.growth, |classes| {
            many_classes::blanket(classes, others + 1, request.log_cut, fineness, work)
        });
        bounds.largest()
    }

    /// A crowd by sums of scores, from above.
    fn sums_of_scores(
        &self,
        crowd: Crowd,
        request: DivergenceRequest,
        fineness: Fineness,
        work: &WorkBudget,
    ) -> DirectionBounds {
        self.sum_over_outcomes(request.growth, |classes| {
            many_classes::upper(classes, crowd, request.log_cut, fineness, work)
        })
    }

    /// A crowd by the best tests on sums of scores, from below; `None` if the tallies do not determine the cells.
    fn best_tests(&self, crowd: Crowd, request: DivergenceRequest, work: &WorkBudget) -> Option<DirectionBounds> {
        let below = |classes: &[WeightedClass]| many_classes::lower(classes, crowd, request.log_cut, work);
        let values = self.is_determined().then(|| self.sum_over_outcomes(request.growth, below))?;
        Some(values.map(|value| (value * (1.0 - 1e-13)).max(0.0)))
    }

    /// The sum over the outcomes of a function of all their classes, in both directions.
    fn sum_over_outcomes(&self, growth: f64, function: impl Fn(&[WeightedClass]) -> f64) -> DirectionBounds {
        PerDirection::each(|direction| {
            let value = |outcome: &DetailedOutcome| function(&outcome.weighted(direction, growth));
            self.detail.iter().map(value).sum::<f64>() * (1.0 + 1e-14)
        })
    }
}

/// The sum over some outcomes in a crowd of one truth, in both directions.
fn outcomes_in_one_truth(
    outcomes: &[TargetOutcome],
    crowd: OneTruth,
    request: DivergenceRequest,
    work: &WorkBudget,
) -> Divergences {
    PerDirection::sum(outcomes.iter().map(|outcome| outcome.one_truth(crowd, request, work)))
}

/// The divergence in each direction.
pub(crate) type Divergences = PerDirection<Enclosure>;

/// Asks for the divergence at e^ε = `growth`, leaving out mass of at most e^`log_cut`. Bounds need not be sharp far below
/// `goal`, and above it need not be more precise than `precision`, relatively.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DivergenceRequest {
    pub(crate) growth: f64,
    pub(crate) log_cut: f64,
    pub(crate) goal: f64,
    pub(crate) precision: f64,
    pub(crate) ends: WantedEnds,
}

/// The precision of a glance. With a larger one, a glance costs less but decides less often.
const GLANCE: f64 = 0.25;

/// Which ends of an enclosure are asked for. Where both come from one computation, both are given in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedEnds {
    Both,
    Upper,
    Lower,
}

impl DivergenceRequest {
    /// A question at one ε, with a precision that is enough for a value by itself.
    pub(crate) fn new(epsilon: f64, log_cut: f64, goal: f64) -> Self {
        Self { growth: epsilon.exp(), log_cut, goal, precision: 1e-4, ends: WantedEnds::Both }
    }

    /// How far an answer of about `value` may be off: the precision of it or of the goal, whichever is larger.
    pub(crate) fn tolerance(&self, value: f64) -> f64 {
        self.precision * self.goal.max(value)
    }

    /// The same question about a crowd that a rough value may show not to be the worst one.
    pub(crate) fn glance(self) -> Self {
        Self { precision: GLANCE, ..self }
    }
}
