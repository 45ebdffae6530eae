//! One outcome in one crowd: the choice between the formulas for up to three classes, and a bound where no formula is exact: the adversary is told
//! who is outside (`docs/accounting.md`, "The divergence of one crowd" and "Telling").

use std::ops::Add;

use super::averaged::{Falling, expected};
use super::many_classes::{self, Fineness, refined};
use super::one_truth::{self, OneTruthClass};
use super::three_classes::three_classes;
use super::two_classes::{two_classes, without_the_rarest};
use super::{Divergences, Question};
use crate::certified::binomial::{Binomial, window};
use crate::certified::rounding::Enclosure;
use crate::parallel::joined;
use crate::privacy::likelihood::{Bounds, Crowd, CrowdLaws, OneTruth, PerDirection, PerTruth, Weight, Weights};
use crate::privacy::views::Outcome;
use crate::privacy::work::Work;
use crate::truth::Truth;

/// From this many owners on, a crowd takes so long that one thread per direction pays.
const MANY_OWNERS: u64 = 5_000_000;

impl Outcome {
    /// A crowd of one truth, in both directions.
    pub(super) fn one_truth(&self, crowd: OneTruth, question: Question, work: &Work) -> Divergences {
        let OneTruth { truth, owners } = crowd;
        let weights = self.weights(question.growth);
        let Some(law) = self.law(truth).filter(|_| self.classes.len() > 1) else {
            return weights.map(|weights| Weight::positive_parts(&weights));
        };
        let classes = weights.map(|weights| OneTruthClass::all(&weights, &law));
        let divergence = |others| {
            PerDirection::each(|direction| one_truth::divergence(&classes[direction], others, question.log_cut, work))
        };
        if self.counts_outside() || self.outside[truth] == 0.0 {
            return divergence(owners);
        }
        expected(Binomial::new(owners, self.inside(truth)), question, work, divergence)
    }

    /// The same where all others are inside.
    fn one_truth_inside(&self, crowd: OneTruth, question: Question, work: &Work) -> Divergences {
        if self.counts_outside() {
            return self.one_truth(crowd, question, work);
        }
        self.without_outside().one_truth(crowd, question, work)
    }

    /// A crowd of both truths, in both directions, whose owners are all inside, or where the outside is a class like any other.
    pub(super) fn both_truths(&self, crowd: Crowd, question: Question, work: &Work) -> Divergences {
        if self.classes.len() == 1 {
            return self.one_truth(OneTruth { truth: Truth::Yes, owners: 0 }, question, work);
        }
        let Some(laws) = self.laws() else {
            // Owners of the truth that is never inside reveal nothing.
            let truth = Truth::from_bool(self.law(Truth::Yes).is_some());
            return self.one_truth_inside(OneTruth { truth, owners: crowd[truth] }, question, work);
        };
        if let Some(crowd) = crowd.one_truth() {
            return self.one_truth_inside(crowd, question, work);
        }
        self.with_laws(laws, crowd, question, work)
    }

    /// The same where the owners have these laws over two or three classes.
    fn with_laws(&self, laws: PerTruth<Vec<f64>>, owners: Crowd, question: Question, work: &Work) -> Divergences {
        let weights = self.weights(question.growth);
        if laws.yes.len() == 2 {
            let crowd = CrowdLaws { owners, laws: laws.map(first) };
            return two_classes(weights.map(first), crowd, question.log_cut, work);
        }
        let crowd = CrowdLaws { owners, laws: laws.map(first) };
        self.sharp_enough(weights.map(first), crowd, question, work)
    }

    /// Three classes in a crowd of both truths by the cheapest method that is precise enough.
    fn sharp_enough(&self, weights: Weights<3>, crowd: CrowdLaws<3>, question: Question, work: &Work) -> Divergences {
        if let Some(value) = without_the_rarest(weights, crowd, question, work) {
            return value;
        }
        let exact = self.three_classes(weights, crowd, question, work);
        if exact.iter().all(|value| value.upper() <= question.goal.max(1.01 * value.lower())) {
            return exact;
        }
        self.bounded_otherwise(exact, crowd.owners, question, work)
    }

    /// Three classes in a crowd of both truths, each direction on a thread of its own where that is worth it.
    pub(super) fn three_classes(
        &self,
        weights: Weights<3>,
        crowd: CrowdLaws<3>,
        question: Question,
        work: &Work,
    ) -> Divergences {
        // Rows are counts of the class between the others by ratio, or of the outside.
        let row = if self.counts_outside() { 2 } else { 1 };
        let divergence = |weights: [Weight; 3], work: &Work| three_classes(weights, row, crowd, question, work);
        if crowd.owners.size() < MANY_OWNERS {
            return weights.map(|weights| divergence(weights, work));
        }
        each_on_its_thread(weights, work, divergence)
    }

    /// Where the formulas for three classes are not sharp, at the edge of what can occur: the owners of the commoner truth alone
    /// give a bound, and so does revealing the labels.
    fn bounded_otherwise(&self, exact: Divergences, crowd: Crowd, question: Question, work: &Work) -> Divergences {
        let common = OneTruth { truth: Truth::from_bool(crowd.yes > crowd.no), owners: crowd.yes.max(crowd.no) };
        let fewer = self.one_truth_inside(common, question, work);
        let bounded = exact.with(fewer, |exact, fewer| exact.at_most(fewer.upper()));
        // Sums of scores are costly: they are for a goal that is missed. Without a goal (a profile is read, often where the
        // divergence is next to nothing) the enclosure stays as wide as it is.
        let missed = bounded.iter().any(|value| value.upper() > question.goal);
        if question.goal <= 0.0 || !missed || work.exhausted() {
            return bounded;
        }
        let bound = |fineness| self.with_labels_revealed(crowd, question, fineness, work);
        bounded.with(refined(crowd.size(), question.goal, work, bound), Enclosure::at_most)
    }

    /// The bound for any number of classes, in both directions (`docs/accounting.md`, "Labels").
    fn with_labels_revealed(&self, crowd: Crowd, question: Question, fineness: Fineness, work: &Work) -> Bounds {
        PerDirection::each(|direction| {
            let classes = self.weighted(direction, question.growth);
            many_classes::upper(&classes, crowd, question.log_cut, fineness, work)
        })
    }
}

/// The first N of at least N values.
pub(super) fn first<T: Copy, const N: usize>(values: Vec<T>) -> [T; N] {
    std::array::from_fn(|index| values[index])
}

/// A function of both directions' weights, computed on two threads.
fn each_on_its_thread<const N: usize>(
    weights: Weights<N>,
    work: &Work,
    function: impl Fn([Weight; N], &Work) -> Enclosure + Sync,
) -> Divergences {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let work = Work::apart();
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
    pub(super) fn new(outcomes: &'a [Outcome], crowd: Crowd, question: Question, work: &Work) -> Self {
        Self(outcomes.iter().map(|outcome| OutcomeBound::new(outcome, crowd, question, work)).collect())
    }

    /// A guess at the sum of the divergences.
    pub(super) fn guess(&self) -> Bounds {
        let guesses = self.0.iter().map(|outcome| outcome.guess);
        guesses.fold(PerDirection::both(0.0), |sum, guess| sum.with(guess, f64::add))
    }

    /// The sum of the divergences from above: at most the question's goal, if that is within reach.
    pub(super) fn bound(&self, question: Question, work: &Work) -> Bounds {
        let (guess, count) = (self.guess(), self.0.len());
        let goals = |outcome: &OutcomeBound<'_>| outcome.goals(question.goal, guess, count);
        let bounds = self.0.iter().map(|outcome| outcome.bound(goals(outcome), question, work));
        bounds.fold(PerDirection::both(0.0), |sum, bound| sum.with(bound, |a, b| (a + b) * (1.0 + f64::EPSILON)))
    }
}

/// One outcome in a crowd of both truths: a guess at its divergence, and how to bound it.
struct OutcomeBound<'a> {
    guess: Bounds,
    /// None where the guess is a bound.
    told: Option<OutsideTold<'a>>,
}

impl<'a> OutcomeBound<'a> {
    fn new(outcome: &'a Outcome, crowd: Crowd, question: Question, work: &Work) -> Self {
        work.spend(200);
        if let Some(crowd) = crowd.one_truth() {
            return Self { guess: outcome.one_truth(crowd, question, work).upper(), told: None };
        }
        if outcome.has_few_classes() {
            return Self { guess: outcome.both_truths(crowd, question, work).upper(), told: None };
        }
        let told = OutsideTold::new(outcome, crowd, question.log_cut);
        Self { guess: told.divergence(told.inside.mean() as u64, question, work), told: Some(told) }
    }

    /// The goals for this outcome, one of `outcomes`: its own guess and, in proportion to it, what all guesses together leave of
    /// the goal.
    fn goals(&self, goal: f64, all: Bounds, outcomes: usize) -> Bounds {
        // An outcome whose guess is next to nothing needs some room, too.
        let tiny = 1e-3 * goal;
        self.guess.with(all, |own, all| {
            let share = (own + tiny) / (all + tiny * outcomes as f64);
            own + (goal - all) * share
        })
    }

    /// A bound that does not exceed the goals, if that is within reach.
    fn bound(&self, goals: Bounds, question: Question, work: &Work) -> Bounds {
        let Some(told) = &self.told else { return self.guess };
        let everywhere = PerDirection::both(1.0);
        let falling = Falling { law: told.inside, center: self.guess, everywhere, goals };
        let given = |inside: u64| told.divergence(inside, question, work);
        falling.expected(question.log_cut, work, given).map(|value| value + 2.0 * question.log_cut.exp())
    }
}

/// An outcome whose outside is told to the adversary. The number inside is averaged for the owners of the commoner truth, and
/// taken at its smallest for those of the rarer one.
struct OutsideTold<'a> {
    outcome: &'a Outcome,
    common: Truth,
    /// The law of the number inside of the commoner truth's owners.
    inside: Binomial,
    /// At least this many of the rarer truth's owners are inside, but for a negligible probability.
    rare: u64,
}

impl<'a> OutsideTold<'a> {
    fn new(outcome: &'a Outcome, crowd: Crowd, log_cut: f64) -> Self {
        let common = Truth::from_bool(crowd.yes >= crowd.no);
        let inside = |truth: Truth| Binomial::new(crowd[truth], outcome.inside(truth));
        let (rare, _) = window(&[inside(common.other())], log_cut);
        Self { outcome, common, inside: inside(common), rare }
    }

    /// The divergence from above where `inside` of the commoner truth's owners are inside.
    fn divergence(&self, inside: u64, question: Question, work: &Work) -> Bounds {
        self.outcome.both_truths(Crowd::oriented(self.common, inside, self.rare), question, work).upper()
    }
}
