//! One outcome in a crowd of both truths where it can only be bounded: the adversary is told who is outside
//! (`docs/accounting.md`, "Telling").

use super::averaged::Falling;
use super::question::Question;
use crate::certified::binomial::{Binomial, window};
use crate::privacy::effort::Work;
use crate::privacy::likelihood::{Crowd, PerDirection};
use crate::privacy::views::Outcome;
use crate::truth::Truth;

/// One outcome in a crowd of both truths: a guess at its divergence, and how to bound it.
pub(super) struct OutcomeBound<'a> {
    pub(super) guess: PerDirection<f64>,
    /// None where the guess is a bound.
    told: Option<OutsideTold<'a>>,
}

impl<'a> OutcomeBound<'a> {
    pub(super) fn new(outcome: &'a Outcome, crowd: Crowd, question: Question, work: &'a Work) -> Self {
        work.spend(200);
        if let Some((truth, owners)) = crowd.one_truth() {
            return Self { guess: outcome.one_truth(truth, owners, question, work).upper(), told: None };
        }
        if outcome.has_few_classes() {
            return Self { guess: outcome.both_truths(crowd, question, work).upper(), told: None };
        }
        let told = OutsideTold::new(outcome, crowd, question.log_cut);
        Self { guess: told.divergence(told.inside.mean() as u64, question, work), told: Some(told) }
    }

    /// A bound that does not exceed the goals, if that is within reach.
    pub(super) fn bound(&self, goals: PerDirection<f64>, question: Question, work: &Work) -> PerDirection<f64> {
        let Some(told) = &self.told else { return self.guess };
        let everywhere = PerDirection::both(1.0);
        let falling = Falling { law: told.inside, center: self.guess, everywhere, goals };
        let given = |inside: u64| told.divergence(inside, question, work);
        falling.expected(question.log_cut, work, given).map(|value| value + 2.0 * question.log_cut.exp())
    }
}

/// An outcome of which the adversary is told who is outside: for owners of the commoner truth the number inside is averaged over,
/// for those of the rarer truth it is taken at its smallest.
struct OutsideTold<'a> {
    outcome: &'a Outcome,
    common: Truth,
    /// The law of the number inside of the commoner truth's owners.
    inside: Binomial,
    /// A number of the rarer truth's owners that are inside but for a negligible probability.
    rare: u64,
}

impl<'a> OutsideTold<'a> {
    fn new(outcome: &'a Outcome, crowd: Crowd, log_cut: f64) -> Self {
        let common = Truth::from_bool(crowd.yes >= crowd.no);
        let inside = |truth: Truth| Binomial::new(crowd[truth], outcome.inside(truth));
        let (rare, _) = window(&[inside(common.other())], log_cut);
        Self { outcome, common, inside: inside(common), rare }
    }

    /// The divergence from above where so many of the commoner truth's owners are inside.
    fn divergence(&self, inside: u64, question: Question, work: &Work) -> PerDirection<f64> {
        self.outcome.both_truths(Crowd::oriented(self.common, inside, self.rare), question, work).upper()
    }
}
