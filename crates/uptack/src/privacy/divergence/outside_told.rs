//! Outcomes in a crowd of both truths where they can only be bounded: the adversary is told who is outside
//! (`docs/accounting.md`, "Telling").

use std::ops::Add;

use super::averaged::Falling;
use super::question::Question;
use crate::certified::binomial::{Binomial, window};
use crate::privacy::effort::Work;
use crate::privacy::likelihood::{Bounds, Crowd, PerDirection};
use crate::privacy::views::Outcome;
use crate::truth::Truth;

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
