//! All crowds, range by range.

use super::range_width::{Pace, Tried};
use super::{Found, Search};
use crate::certified::binomial::{Binomial, Coin, window};
use crate::privacy::divergence::Question;
use crate::privacy::divergence::averaged::Attempt;

/// A search that has used this share of the work it may do must have got a third as far, or it is given up for a wider one.
const EARLY: f64 = 0.3;

/// What the sweep tries to show: at the question's ε no crowd has a divergence above `limit`; `largest` bounds all so far.
pub(super) struct Claim {
    pub(super) question: Question,
    pub(super) limit: f64,
    pub(super) largest: f64,
    /// The divergence at the crowds of one truth.
    pub(super) base: f64,
    /// By how much ε grows when the claim is weakened.
    pub(super) step: f64,
    /// The e^ε from which on the claim needs no proof.
    pub(super) trivial: f64,
    /// A bound for every crowd.
    pub(super) everywhere: f64,
    /// Whether a weaker claim will be tried if this one is too costly.
    pub(super) may_fail: bool,
}

/// The largest value known to occur.
pub(super) struct Lower {
    pub(super) value: f64,
    pub(super) crowd: u64,
}

impl Search<'_> {
    /// Covers all crowds by ranges, each bounded by the crowd of its fewest yes- and its fewest no-owners. Where a range
    /// cannot be bounded by the claim's limit although it is small, `weaken` weakens the claim, and `learned` says what an
    /// exact value there tells about the number sought. Returns whether all crowds were covered.
    pub(super) fn sweep(
        &self,
        claim: &mut Claim,
        lower: &mut Lower,
        weaken: impl Fn(&mut Claim, f64),
        learned: impl Fn(&Claim, &Found) -> f64,
    ) -> bool {
        let half = self.others / 2;
        // The two halves are one where the truths may be exchanged.
        let once = half == self.others || self.view.is_symmetric();
        self.sweep_half(false, half, claim, lower, &weaken, &learned)
            && (once || self.sweep_half(true, self.others - half - 1, claim, lower, &weaken, &learned))
    }

    /// The crowds with at most `last` owners of one truth among the others, starting from none: of *yes*, or of *no*.
    fn sweep_half(
        &self,
        of_no: bool,
        last: u64,
        claim: &mut Claim,
        lower: &mut Lower,
        weaken: &impl Fn(&mut Claim, f64),
        learned: &impl Fn(&Claim, &Found) -> f64,
    ) -> bool {
        let smallest = (self.others / 40_000).max(1);
        let (mut from, mut width) = (0, (self.others / 1000).max(1));
        let mut pace = Pace::new();
        // What the method lost in the last range.
        let mut loss = 0.0;
        let oriented = |count: u64| if of_no { self.others - count } else { count };
        while from <= last {
            if claim.question.growth >= claim.trivial {
                return true;
            }
            let used = self.work.used();
            if used >= 1.0 || claim.may_fail && used > EARLY && 3.0 * (from as f64) < used * last as f64 {
                return false;
            }
            let to = (from + (width - 1)).min(last);
            let (yes, no) = if of_no { (self.others - to, from) } else { (from, self.others - to) };
            let (bound, guess) = self.range_bound(yes, no, claim);
            let holds = bound <= claim.limit;
            if holds {
                loss = (bound / guess).ln();
            }
            let tried = Tried { from, width: to - from + 1, guess, holds };
            let next = pace.next(tried, claim.base, claim.limit, 1.1 * loss).max(smallest);
            if holds {
                claim.largest = claim.largest.max(bound);
                (from, width) = (to + 1, next);
                continue;
            }
            if width > smallest {
                width = next.clamp(smallest, width - 1);
                continue;
            }
            if self.view.is_exact_in_every_crowd() {
                for crowd in [oriented(from), oriented(to)] {
                    let found = self.exactly(crowd, claim.question);
                    let value = learned(claim, &found);
                    if value > lower.value {
                        *lower = Lower { value, crowd: found.crowd };
                    }
                }
            }
            weaken(claim, guess);
            width = smallest.saturating_mul(16);
        }
        true
    }

    /// A bound for all crowds of at least these numbers of yes- and no-owners and so many more of either truth that they are all,
    /// and a guess at what it would be without the losses of the method. An owner of unknown truth is at least now and then
    /// like one of the known truths: only where too few of them are, which is made rare, all crowds' bound stands in.
    fn range_bound(&self, yes: u64, no: u64, claim: &Claim) -> (f64, f64) {
        // A bound may be wrong by a hundred-thousandth of the limit.
        let log_cut = claim.question.log_cut.max(claim.limit.max(1e-300).ln() - 13.0);
        let unknown = self.others - yes - no;
        // Ranges end at the half, so that the bound for every crowd, which is one of half crowds, stands in for this one, too.
        debug_assert!(
            yes.max(no) >= self.others.div_ceil(2),
            "a range beyond the half: {yes} and {no} of {}",
            self.others
        );
        let rarely = (5e-4 * claim.limit / claim.everywhere).clamp(log_cut.exp(), 0.05);
        let [like_no, like_yes] = self.view.in_common();
        let share = like_no.max(like_yes);
        let coin = Coin { success: share, failure: 1.0 - share };
        let (alike, _) = window(&[Binomial::new(unknown, coin)], rarely.ln());
        let (yes, no) = if like_no >= like_yes { (yes, no + alike) } else { (yes + alike, no) };
        let price = if unknown > 0 { rarely * claim.everywhere } else { 0.0 };
        // Precise enough to use most of the room that there is.
        let precision = (0.04 * (claim.limit / claim.base - 1.0)).clamp(1e-9, 1e-3);
        let question = Question { log_cut, goal: claim.limit - price, precision, ..claim.question };
        let attempt = if self.view.is_exact_in_every_crowd() {
            Attempt::exact(self.view.both_truths(yes, no, question, &self.work).map(|value| value.upper()))
        } else {
            self.view.bound(yes, no, question, &self.work)
        };
        let largest = |values: [f64; 2]| values[0].max(values[1]) + price;
        (largest(attempt.bound), largest(attempt.guess))
    }
}
