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
    method: Method<'a>,
}

enum Method<'a> {
    /// The guess is a bound.
    Exact,
    /// The adversary is told who is outside: for owners of the commoner truth their number is averaged over, for those of the
    /// rarer truth it is taken at its largest.
    Outside { outcome: &'a Outcome, common: Truth, law: Binomial, rare: u64 },
}

impl<'a> OutcomeBound<'a> {
    pub(super) fn new(outcome: &'a Outcome, crowd: Crowd, question: Question, work: &'a Work) -> Self {
        work.spend(200);
        if let Some((truth, owners)) = crowd.one_truth() {
            let guess = outcome.one_truth(truth, owners, question, work).upper();
            return Self { guess, method: Method::Exact };
        }
        if outcome.has_few_classes() {
            return Self { guess: outcome.both_truths(crowd, question, work).upper(), method: Method::Exact };
        }
        let common = Truth::from_bool(crowd.yes >= crowd.no);
        let law = Binomial::new(crowd[common], outcome.inside(common));
        let rare = Binomial::new(crowd[common.other()], outcome.inside(common.other()));
        let (rare, _) = window(&[rare], question.log_cut);
        let inside = Crowd::oriented(common, law.mean() as u64, rare);
        let guess = outcome.both_truths(inside, question, work).upper();
        Self { guess, method: Method::Outside { outcome, common, law, rare } }
    }

    /// A bound that does not exceed the goals, if that is within reach.
    pub(super) fn bound(&self, goals: PerDirection<f64>, question: Question, work: &Work) -> PerDirection<f64> {
        match &self.method {
            Method::Exact => self.guess,
            Method::Outside { outcome, common, law, rare } => {
                let given =
                    |inside: u64| outcome.both_truths(Crowd::oriented(*common, inside, *rare), question, work).upper();
                let everywhere = PerDirection::both(1.0);
                let falling = Falling { law: *law, center: self.guess, everywhere, goals };
                falling.expected(question.log_cut, work, given).map(|value| value + 2.0 * question.log_cut.exp())
            }
        }
    }
}
