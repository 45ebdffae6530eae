//! All crowds, range by range (`docs/accounting.md`, "Ranges" and "Owners of unknown truth").

use super::crowds::Crowds;
use super::range_width::{RangeWidth, Tried};
use crate::certified::binomial::{Binomial, Coin, window};
use crate::privacy::claim::Found;
use crate::privacy::divergence::{Attempt, Question};
use crate::privacy::likelihood::Crowd;
use crate::truth::Truth;

/// A search that has used this share of the work it may do must have got a third as far, or it is given up for a wider one.
const EARLY: f64 = 0.3;

/// What the sweep tries to show: at the question's ε no crowd has a divergence above `limit`; `largest` bounds all so far.
pub(super) struct Proposition {
    pub(super) question: Question,
    pub(super) limit: f64,
    pub(super) largest: f64,
    /// The divergence at the crowds of one truth.
    pub(super) base: f64,
    /// By how much ε grows when the proposition is weakened.
    pub(super) step: f64,
    /// The e^ε from which on the proposition needs no proof.
    pub(super) trivial: f64,
    /// A bound for every crowd.
    pub(super) everywhere: f64,
    /// Whether a weaker proposition will be tried if this one is too costly.
    pub(super) may_fail: bool,
}

/// The largest value known to occur.
pub(super) struct Attained {
    pub(super) value: f64,
    pub(super) crowd: u64,
}

impl Attained {
    /// The lower end of what was found.
    pub(super) fn by(found: Found) -> Self {
        Self { value: found.value.lower(), crowd: found.crowd }
    }
}

impl Crowds<'_> {
    /// Covers all crowds by ranges, each bounded by the crowd of its fewest yes- and its fewest no-owners. Where a range
    /// cannot be bounded by the limit although it is small, `weaken` weakens the proposition, and `learned` says what an
    /// exact value there tells about the number sought. Returns whether all crowds were covered.
    pub(super) fn sweep(
        &self,
        proposition: &mut Proposition,
        attained: &mut Attained,
        weaken: impl Fn(&mut Proposition, f64),
        learned: impl Fn(&Proposition, &Found) -> f64,
    ) -> bool {
        let half = self.others / 2;
        // The two halves are one where the truths may be exchanged.
        let once = half == self.others || self.view.is_symmetric();
        self.sweep_half(Truth::Yes, half, proposition, attained, &weaken, &learned)
            && (once || self.sweep_half(Truth::No, self.others - half - 1, proposition, attained, &weaken, &learned))
    }

    /// The crowds with at most `last` owners of one truth among the others, starting from none.
    fn sweep_half(
        &self,
        truth: Truth,
        last: u64,
        proposition: &mut Proposition,
        attained: &mut Attained,
        weaken: &impl Fn(&mut Proposition, f64),
        learned: &impl Fn(&Proposition, &Found) -> f64,
    ) -> bool {
        let smallest = (self.others / 40_000).max(1);
        let (mut from, mut width) = (0, (self.others / 1000).max(1));
        let mut widths = RangeWidth::new();
        // What the method lost in the last range.
        let mut loss = 0.0;
        while from <= last {
            if proposition.question.growth >= proposition.trivial {
                return true;
            }
            let used = self.work.used();
            if used >= 1.0 || proposition.may_fail && used > EARLY && 3.0 * (from as f64) < used * last as f64 {
                return false;
            }
            let to = (from + (width - 1)).min(last);
            let (bound, guess) = self.range_bound(Crowd::oriented(truth, from, self.others - to), proposition);
            let holds = bound <= proposition.limit;
            if holds {
                loss = (bound / guess).ln();
            }
            let tried = Tried { from, width: to - from + 1, guess, holds };
            let next = widths.next(tried, proposition.base, proposition.limit, 1.1 * loss).max(smallest);
            if holds {
                proposition.largest = proposition.largest.max(bound);
                (from, width) = (to + 1, next);
                continue;
            }
            if width > smallest {
                width = next.clamp(smallest, width - 1);
                continue;
            }
            for count in [from, to] {
                self.learn(Crowd::oriented(truth, count, self.others - count), proposition, attained, learned);
            }
            weaken(proposition, guess);
            width = smallest.saturating_mul(16);
        }
        true
    }

    /// Evaluates one crowd of a range that could not be bounded, if it has exact formulas.
    fn learn(
        &self,
        crowd: Crowd,
        proposition: &Proposition,
        attained: &mut Attained,
        learned: &impl Fn(&Proposition, &Found) -> f64,
    ) {
        if !self.view.is_exact_in_every_crowd() {
            return;
        }
        let found = self.exactly(crowd.yes, proposition.question);
        let value = learned(proposition, &found);
        if value > attained.value {
            *attained = Attained { value, crowd: found.crowd };
        }
    }

    /// A bound for all crowds of at least these yes- and no-owners and as many more of either truth as are missing, and a guess
    /// at what it would be without the losses of the method. An owner of unknown truth draws with some probability from the law
    /// of one known truth; where too few of them do, which is made rare, the bound for all crowds stands in.
    fn range_bound(&self, known: Crowd, proposition: &Proposition) -> (f64, f64) {
        // A bound may be wrong by a hundred-thousandth of the limit.
        let log_cut = proposition.question.log_cut.max(proposition.limit.max(1e-300).ln() - 13.0);
        let unknown = self.others - known.size();
        // Ranges end at the half, so that the bound for every crowd, which is one of half crowds, stands in for this one, too.
        debug_assert!(
            known.yes.max(known.no) >= self.others.div_ceil(2),
            "a range beyond the half: {known:?} of {}",
            self.others
        );
        let rarely = (5e-4 * proposition.limit / proposition.everywhere).clamp(log_cut.exp(), 0.05);
        let like = self.view.in_common();
        let share = like.no.max(like.yes);
        let coin = Coin { success: share, failure: 1.0 - share };
        let (alike, _) = window(&[Binomial::new(unknown, coin)], rarely.ln());
        let crowd = if like.no >= like.yes {
            Crowd { no: known.no + alike, ..known }
        } else {
            Crowd { yes: known.yes + alike, ..known }
        };
        let price = if unknown > 0 { rarely * proposition.everywhere } else { 0.0 };
        // Precise enough to use most of the room that there is.
        let precision = (0.04 * (proposition.limit / proposition.base - 1.0)).clamp(1e-9, 1e-3);
        let question = Question { log_cut, goal: proposition.limit - price, precision, ..proposition.question };
        let attempt = if self.view.is_exact_in_every_crowd() {
            Attempt::exact(self.view.both_truths(crowd, question, &self.work).upper())
        } else {
            self.view.bound(crowd, question, &self.work)
        };
        (attempt.bound.largest() + price, attempt.guess.largest() + price)
    }
}
