//! The largest divergence over all crowds, from both sides.

mod epsilon_root;
mod range_width;
mod sweep;

use std::sync::Arc;

use crate::certified::enclosure::Bracket;
use crate::privacy::classes::finite_epsilon;
use crate::privacy::divergence::{Observation, Question, Side};
use crate::privacy::effort::{Work, WorkLimit};
use crate::simulate::Progress;
use sweep::{Claim, Lower};

/// A certificate of an ε at most this much above the largest value found is looked for, first with the smallest margin, and
/// with the share given of the work that is left.
const EPSILON_MARGINS: [(f64, f64); 5] = [(9.5e-4, 0.75), (4e-3, 0.4), (1e-2, 0.4), (2.5e-2, 0.5), (0.1, 1.0)];
/// The same for δ. The smallest margin is for two classes alone, where it costs little: what composes many releases reads
/// δ at many ε, and an excess in all of them is an excess in the composed ε.
const DELTA_MARGINS: [(f64, f64); 5] = [(4e-3, 0.3), (0.045, 0.6), (0.2, 0.5), (0.8, 0.5), (3.0, 1.0)];
/// With more owners, evaluating a single crowd of both truths and three classes takes seconds, and minutes where a class is
/// very rare.
const MOST_SAMPLED: u64 = 30_000_000;
/// Ends further apart than this, in ε and in δ, do not close whatever the search does: it need not be thorough.
const CLOSED: [f64; 2] = [1e-3, 0.05];
/// Ends this many times apart only get the widest margin: what it adds does not matter then.
const FAR_APART: f64 = 1.2;
/// Where not even the crowds of one truth can be bounded by this share of the local ε, that ε is the claim: the first where both
/// ends are close, so that it still closes, the second where they are not.
const NEARLY_ALL: [f64; 2] = [0.9995, 0.99];
/// Up to this many steps all crowds are evaluated one by one.
const ENUMERATION: u64 = 30_000_000;
/// Up to so many others, two classes are enumerated, too.
const FEW_OTHERS: u64 = 64;
/// A crowd that is only looked at for where to search is computed to this share of its divergence.
const ROUGH: f64 = 1e-3;
/// Divergences below this are bounded, but not searched for their worst crowd.
const NEGLIGIBLE: f64 = 1e-150;
/// Nothing below this mass is told from zero.
const DEEPEST_CUT: f64 = -460.0;

/// A number with the crowd (yes among the others) at which it was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) bracket: Bracket,
    pub(crate) crowd: u64,
}

/// The lowest and highest the answer can be, and the worst crowd found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) lower: f64,
    pub(crate) upper: f64,
    pub(crate) crowd: u64,
}

/// Looks for the worst crowd of one view.
pub(crate) struct Search<'a> {
    view: &'a Observation,
    others: u64,
    work: Work,
    enumeration: u64,
}

impl<'a> Search<'a> {
    pub(crate) fn new(view: &'a Observation, owners: u64, limit: WorkLimit) -> Self {
        let enumeration = ENUMERATION.min(limit.for_owners(owners));
        Self { view, others: owners - 1, work: Work::within(limit, owners), enumeration }
    }

    /// The same search, watched.
    pub(crate) fn watched(mut self, progress: Option<Arc<Progress>>) -> Self {
        self.work = self.work.watched(progress);
        self
    }

    /// The same search without evaluating all crowds one by one, however few they are.
    #[cfg(test)]
    pub(crate) fn without_enumeration(mut self) -> Self {
        self.enumeration = 0;
        self
    }

    /// δ at one ε over all crowds.
    pub(crate) fn delta(&self, epsilon: f64) -> Answer {
        if let Some(floor) = self.beyond_all_ratios(epsilon) {
            return Answer { lower: floor.bracket.lower(), upper: floor.bracket.upper(), crowd: floor.crowd };
        }
        let (mut best, question) = self.ends_at_depth(epsilon);
        if self.enumerable() {
            best = self.every_crowd(question);
            return Answer { lower: best.bracket.lower(), upper: best.bracket.upper(), crowd: best.crowd };
        }
        if best.bracket.upper() < NEGLIGIBLE {
            let everywhere = self.half_crowd_bound(question).min(self.view.blanket(self.others, question, &self.work));
            let upper = everywhere.max(best.bracket.upper());
            return Answer { lower: best.bracket.lower(), upper, crowd: best.crowd };
        }
        best = self.samples(question).into_iter().fold(best, larger);
        let mut lower = Lower { value: best.bracket.lower(), crowd: best.crowd };
        let everywhere = self.half_crowd_bound(question);
        // From the upper end: where the view is only bounded, the lower one is of another view.
        let (found, base) = (best.bracket.upper(), lower.value);
        let apart = found > (1.0 + CLOSED[1]) * lower.value;
        let mut upper = everywhere;
        let skipped = if apart { 2 } else { usize::from(!self.view.is_two_classes()) };
        for (margin, share) in DELTA_MARGINS.into_iter().skip(skipped) {
            self.work.allow(share);
            let limit = (found * (1.0 + margin)).min(everywhere);
            let mut claim = Claim {
                question,
                limit,
                largest: found,
                base,
                step: 0.0,
                trivial: f64::INFINITY,
                everywhere,
                may_fail: share < 1.0,
            };
            // Where a small range stays above the limit a new limit is set.
            let weaken = |claim: &mut Claim, failed: f64| claim.limit = failed * 1.01;
            if self.sweep(&mut claim, &mut lower, weaken, |_, found| found.bracket.lower()) {
                upper = claim.largest;
                break;
            }
        }
        if upper > (1.0 + CLOSED[1]) * lower.value {
            upper = upper.min(self.view.blanket(self.others, question, &self.work).max(lower.value));
        }
        Answer { lower: lower.value, upper: upper.min(1.0), crowd: lower.crowd }
    }

    /// ε at one δ over all crowds; none where δ is below the floor.
    pub(crate) fn epsilon(&self, delta: f64) -> Option<Answer> {
        let floor = self.floor();
        if delta < floor.bracket.upper() {
            return None;
        }
        let largest = finite_epsilon(self.view.ratios());
        if self.work.exhausted() {
            return Some(Answer { lower: 0.0, upper: largest, crowd: 0 });
        }
        let log_cut = (delta.max(1e-300).ln() - 30.0).max(DEEPEST_CUT);
        let at = |epsilon: f64| self.question(epsilon.exp(), log_cut, delta);
        let ends = |epsilon: f64, side: Side| self.ends(Question { side, ..at(epsilon) });
        let nearly_all = NEARLY_ALL[usize::from(!self.view.is_sharp())] * largest;
        let bounded = self.view.is_exact() || self.enumerable();
        if !bounded && ends(nearly_all, Side::Above).bracket.upper() > delta {
            // No search would bound it much better than the local ε does.
            let found = self.solve_below(delta, largest, &ends);
            return Some(Answer { upper: largest, ..found });
        }
        let ends = self.solve(delta, largest, &ends);
        if self.enumerable() {
            return Some(self.enumerated_epsilon(delta, largest, ends, log_cut));
        }
        let mut best = ends;
        let worse = |found: &Found| found.bracket.lower() > delta;
        for crowd in self.samples(at(best.lower)).iter().filter(|found| worse(found)).map(|found| found.crowd) {
            if !worse(&self.exactly(crowd, at(best.lower))) {
                continue;
            }
            let answer = self.solve(delta, largest, &|epsilon, _| self.exactly(crowd, at(epsilon)));
            if answer.lower > best.lower {
                best = Answer { upper: answer.upper.max(best.upper), ..answer };
            }
        }
        let mut lower = Lower { value: best.lower, crowd: best.crowd };
        let trivial = largest.exp();
        let learned = |claim: &Claim, found: &Found| {
            if found.bracket.lower() > delta {
                return claim.question.growth.ln() * (1.0 - 1e-12);
            }
            // The crowd may still be the worst one so far, at a smaller ε.
            let crowd = found.crowd;
            if !self.view.is_two_classes() || found.bracket.upper() < 0.98 * delta {
                return 0.0;
            }
            self.solve(delta, largest, &|epsilon, _| self.exactly(crowd, at(epsilon))).lower
        };
        // One crowd of one truth is cheap where the formulas are exact, and costly where scores are summed.
        let costly = !self.view.is_exact();
        if costly && self.work.overdrawn() {
            return Some(Answer { upper: largest, ..best });
        }
        let everywhere = self.half_crowd_bound(at(best.upper));
        let apart = best.upper > (1.0 + CLOSED[0]) * best.lower;
        let skipped = if best.upper > FAR_APART * best.lower { EPSILON_MARGINS.len() - 1 } else { usize::from(apart) };
        let mut margins: Vec<(f64, f64)> = EPSILON_MARGINS.into_iter().skip(skipped).collect();
        if skipped == 0 {
            // What is lost at the ends leaves less room for the certificate to close.
            margins[0].0 -= (best.upper / best.lower - 1.0).max(0.0);
        }
        for (margin, share) in margins {
            self.work.allow(share);
            let start = (best.upper * (1.0 + margin)).min(largest);
            let base = self.ends(Question { side: Side::Below, ..at(start) }).bracket.lower();
            let step = margin / 10.0;
            let may_fail = share < 1.0;
            let mut claim =
                Claim { question: at(start), limit: delta, largest: 0.0, base, step, trivial, everywhere, may_fail };
            let weaken = |claim: &mut Claim, _: f64| {
                claim.step *= 2.0;
                let weaker = claim.question.growth.ln() * (1.0 + claim.step) + 1e-6 * claim.step;
                claim.question.growth = weaker.exp().min(trivial);
            };
            if self.sweep(&mut claim, &mut lower, weaken, learned) {
                let upper = claim.question.growth.ln() * (1.0 + 1e-14);
                let found = Answer { lower: lower.value, upper: upper.min(largest), crowd: lower.crowd };
                return Some(self.at_most_blanket(found, delta, log_cut));
            }
        }
        let range = (lower.value, largest);
        let upper = if costly && self.work.overdrawn() { largest } else { self.half_crowds(delta, range, log_cut) };
        let found = Answer { lower: lower.value, upper: upper.min(largest), crowd: lower.crowd };
        Some(self.at_most_blanket(found, delta, log_cut))
    }

    /// The smaller of what was found and the bound by the privacy blanket, to a per mille. What is closed is no more than that
    /// above the truth, and so above the blanket.
    fn at_most_blanket(&self, found: Answer, delta: f64, log_cut: f64) -> Answer {
        let blanket =
            |epsilon: f64| self.view.blanket(self.others, self.question(epsilon.exp(), log_cut, delta), &self.work);
        let closed = found.upper <= found.lower * (1.0 + CLOSED[0]);
        if closed || self.work.overdrawn() || blanket(found.upper * 0.999) > delta {
            return found;
        }
        // It bounds the truth, so that it is not below what was found.
        Answer { upper: Self::solve_from_above(delta, (found.lower, found.upper), blanket), ..found }
    }

    /// ε at one δ by the privacy blanket alone.
    pub(crate) fn blanket_epsilon(&self, delta: f64) -> Option<f64> {
        if delta < self.floor().bracket.upper() {
            return None;
        }
        let log_cut = (delta.max(1e-300).ln() - 30.0).max(DEEPEST_CUT);
        let function =
            |epsilon: f64| self.view.blanket(self.others, self.question(epsilon.exp(), log_cut, delta), &self.work);
        Some(Self::solve_from_above(delta, (0.0, finite_epsilon(self.view.ratios())), function))
    }

    /// ε at one δ for the two crowds of one truth.
    pub(crate) fn epsilon_of_ends(&self, delta: f64) -> Option<Answer> {
        if delta < self.floor().bracket.upper() {
            return None;
        }
        let log_cut = (delta.max(1e-300).ln() - 30.0).max(DEEPEST_CUT);
        let largest = finite_epsilon(self.view.ratios());
        let at = |epsilon: f64, side: Side| Question { side, ..self.question(epsilon.exp(), log_cut, delta) };
        Some(self.solve(delta, largest, &|epsilon, side| self.ends(at(epsilon, side))))
    }

    /// δ at one ε for the two crowds of one truth.
    pub(crate) fn delta_of_ends(&self, epsilon: f64) -> Found {
        self.beyond_all_ratios(epsilon).unwrap_or_else(|| self.ends_at_depth(epsilon).0)
    }

    /// δ at one ε for the two crowds of one truth and for `crowds` besides, where only values near `delta` matter: far below
    /// it, what is left out counts for more than what is there. Once one of them is above it the others are left out.
    pub(crate) fn delta_near(&self, epsilon: f64, delta: f64, crowds: &[u64]) -> Bracket {
        if let Some(floor) = self.beyond_all_ratios(epsilon) {
            return floor.bracket;
        }
        let log_cut = (delta.max(1e-300).ln() - 14.0).max(DEEPEST_CUT);
        let question = self.question(epsilon.exp(), log_cut, delta);
        // Enumerating is for the last digits.
        let mut found = self.ends_by_formula(question);
        for &crowd in crowds.iter().filter(|_| self.view.is_exact_in_every_crowd()) {
            if found.bracket.lower() > delta {
                break;
            }
            found = larger(found, self.directly(crowd, Question { precision: ROUGH, ..question }));
        }
        found.bracket
    }

    /// A crowd whose δ at one ε is certainly above `delta`, if one is among a few that lie closer together towards the ends:
    /// the worst of these.
    pub(crate) fn worse_crowd(&self, epsilon: f64, delta: f64) -> Option<u64> {
        let possible = self.view.is_exact_in_every_crowd() && self.beyond_all_ratios(epsilon).is_none();
        let log_cut = (delta.max(1e-300).ln() - 14.0).max(DEEPEST_CUT);
        let question = self.question(epsilon.exp(), log_cut, delta);
        let question = Question { precision: ROUGH, ..question };
        let counts = std::iter::successors(Some(1u64), |count| Some(count * 2));
        let counts = counts.take_while(|count| possible && 2 * count <= self.others);
        let crowds = counts.flat_map(|count| [count, self.others - count]);
        let found = crowds.map(|crowd| self.directly(crowd, question)).reduce(larger)?;
        (found.bracket.lower() > delta).then_some(found.crowd)
    }

    /// The δ that no ε gets below, with the crowd that shows it.
    pub(crate) fn floor(&self) -> Found {
        let mass = self.view.floor();
        let (numerator, crowd) = if mass.yes() >= mass.no() { (mass.yes(), 0) } else { (mass.no(), self.others) };
        let nearest = numerator as f64;
        let value = if (nearest as u128) < numerator { nearest.next_up() } else { nearest } / 2f64.powi(64);
        // Tallies that do not fix the cells may hide what a cell alone would show.
        let shown = if self.view.is_determined() { value * (1.0 - 1e-15) } else { 0.0 };
        let bracket = if numerator == 0 { Bracket::ZERO } else { Bracket::new(shown, value) };
        Found { bracket, crowd }
    }

    /// Beyond the largest finite ratio only the floor is left.
    fn beyond_all_ratios(&self, epsilon: f64) -> Option<Found> {
        (epsilon >= finite_epsilon(self.view.ratios())).then(|| self.floor())
    }

    /// The ends, computed with a cut far below their value.
    fn ends_at_depth(&self, epsilon: f64) -> (Found, Question) {
        let mut question = self.question(epsilon.exp(), -70.0, 0.0);
        loop {
            let found = self.ends(question);
            let deep = found.bracket.lower() > 0.0 && found.bracket.lower().ln() > question.log_cut + 28.0;
            if deep || question.log_cut <= DEEPEST_CUT {
                return (found, question);
            }
            question.log_cut = (question.log_cut * 2.0).max(DEEPEST_CUT);
        }
    }

    /// A question to the view. Where it is bounded by different views from both sides, these need not be precise.
    fn question(&self, growth: f64, log_cut: f64, goal: f64) -> Question {
        let question = Question::new(growth, log_cut, goal);
        if self.view.is_sharp() { question } else { Question { precision: 0.1, ..question } }
    }

    fn ends(&self, question: Question) -> Found {
        if self.enumerable_by_histogram() {
            return larger(self.exactly(0, question), self.exactly(self.others, question));
        }
        self.ends_by_formula(question)
    }

    fn ends_by_formula(&self, question: Question) -> Found {
        let end = |yes| {
            let [one, other] = self.view.one_truth(yes, self.others, question, &self.work);
            Found { bracket: one.max(other), crowd: if yes { self.others } else { 0 } }
        };
        larger(end(false), end(true))
    }

    /// Whether every crowd can be evaluated exactly at little cost.
    fn enumerable(&self) -> bool {
        self.enumerable_by_histogram()
            || self.view.is_two_classes() && self.others.saturating_mul(self.others) <= self.enumeration / 8
    }

    fn enumerable_by_histogram(&self) -> bool {
        self.view.enumeration_cost(self.others).is_some_and(|cost| cost <= self.enumeration)
    }

    /// Whether single crowds are evaluated by enumerating their histograms. Of two classes a crowd is quickly evaluated without,
    /// while enumerating takes the square of its size; but in a small one with rare classes only enumeration is precise.
    fn enumerates(&self) -> bool {
        self.enumerable_by_histogram() && (self.others <= FEW_OTHERS || !self.view.is_two_classes())
    }

    /// One crowd in the worse direction, without enumerating its histograms.
    fn directly(&self, crowd: u64, question: Question) -> Found {
        let [one, other] = self.view.both_truths(crowd, self.others - crowd, question, &self.work);
        Found { bracket: one.max(other), crowd }
    }

    /// One crowd exactly, in the worse direction.
    fn exactly(&self, crowd: u64, question: Question) -> Found {
        let rest = self.others - crowd;
        let [one, other] = if self.enumerates() {
            self.view.enumerated(crowd, rest, question.growth)
        } else {
            self.view.both_truths(crowd, rest, question, &self.work)
        };
        Found { bracket: one.max(other), crowd }
    }

    fn every_crowd(&self, question: Question) -> Found {
        if self.enumerates() {
            let values = self.view.all_enumerated(self.others, question.growth).into_iter().zip(0..);
            let found = values.map(|([one, other], crowd)| Found { bracket: one.max(other), crowd });
            return found.reduce(larger).unwrap_or_else(|| self.floor());
        }
        (0..=self.others).map(|crowd| self.exactly(crowd, question)).reduce(larger).unwrap_or_else(|| self.floor())
    }

    /// Solves at the worst crowd found so far until no other crowd is worse there.
    fn enumerated_epsilon(&self, delta: f64, largest: f64, ends: Answer, log_cut: f64) -> Answer {
        let mut best = ends;
        for _ in 0..64 {
            let question = Question::new(best.upper.exp(), log_cut, delta);
            let worst = self.every_crowd(question);
            if worst.bracket.upper() <= delta {
                return best;
            }
            let answer = self.solve(delta, largest, &|epsilon, _| {
                self.exactly(worst.crowd, Question::new(epsilon.exp(), log_cut, delta))
            });
            best = Answer {
                lower: best.lower.max(answer.lower),
                upper: (best.upper * (1.0 + 1e-12)).max(answer.upper),
                crowd: if answer.lower > best.lower { answer.crowd } else { best.crowd },
            };
        }
        Answer { upper: largest, ..best }
    }

    /// A few crowds of both truths, where they can be evaluated exactly in reasonable time. They only ever raise the lower end.
    fn samples(&self, question: Question) -> Vec<Found> {
        let costly = !self.view.is_two_classes() && self.others > MOST_SAMPLED;
        if costly || !self.view.is_exact_in_every_crowd() {
            return Vec::new();
        }
        let parts = if self.view.is_two_classes() { 8 } else { 4 };
        let crowd = |part: u32| (self.others as f64 * f64::from(part) / f64::from(parts)) as u64;
        let mut crowds: Vec<u64> = (1..parts).map(crowd).collect();
        crowds.dedup();
        crowds.into_iter().map(|crowd| self.exactly(crowd, question)).collect()
    }

    /// A bound for all crowds at little cost: each has at least half of the others on one side.
    fn half_crowd_bound(&self, question: Question) -> f64 {
        let half = self.others.div_ceil(2);
        let question = Question { side: Side::Above, ..question };
        let bound = |yes: bool| {
            let [one, other] = self.view.one_truth(yes, half, question, &self.work);
            one.upper().max(other.upper())
        };
        bound(true).max(bound(false))
    }

    /// An ε that holds for every crowd, from the two crowds of one truth and half the size.
    fn half_crowds(&self, delta: f64, range: (f64, f64), log_cut: f64) -> f64 {
        let bound = |epsilon: f64| self.half_crowd_bound(Question::new(epsilon.exp(), log_cut, delta));
        Self::solve_from_above(delta, range, bound)
    }
}

fn larger(a: Found, b: Found) -> Found {
    let crowd = if b.bracket.lower() > a.bracket.lower() { b.crowd } else { a.crowd };
    Found { bracket: a.bracket.max(b.bracket), crowd }
}
