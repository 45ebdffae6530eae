//! Evaluates the crowds of one view: single ones, the two of one truth, all of them where they are few (`docs/accounting.md`,
//! "The divergence of one crowd").

use std::cell::OnceCell;
use std::sync::Arc;

use crate::certified::rounding::{Enclosure, ROUNDOFF};
use crate::privacy::claim::CrowdValue;
use crate::privacy::divergence::{DivergenceRequest, Divergences, WantedEnds};
use crate::privacy::likelihood::{Crowd, OneTruth};
use crate::privacy::views::ReducedView;
use crate::privacy::work::{WorkBudget, WorkLimit};
use crate::progress::Progress;
use crate::truth::Truth;

/// With more owners, evaluating a single crowd of both truths and three classes takes seconds, and minutes where a class is
/// very rare.
const MOST_SAMPLED: u64 = 30_000_000;
/// Up to this many steps all crowds are evaluated one by one.
const ENUMERATION: u64 = 30_000_000;
/// Up to this many others, two classes are enumerated, too.
const FEW_OTHERS: u64 = 64;
/// With at most about this many owners who draw alike, it matters that their number is an integer.
const A_HANDFUL: f64 = 1000.0;
/// A crowd that only guides the search is computed to this share of its divergence.
const ROUGH: f64 = 1e-3;
/// The logarithm of a mass that is treated as zero.
const DEEPEST_CUT: f64 = -460.0;

/// All crowds of `others` owners besides the target, as one view shows them.
pub(super) struct Crowds<'a> {
    pub(super) view: &'a ReducedView,
    pub(super) others: u64,
    pub(super) work: WorkBudget,
    enumeration: u64,
    /// The floor, and the ε from which on only the floor is left, if they were found by enumeration.
    remainder: OnceCell<(CrowdValue, f64)>,
}

impl<'a> Crowds<'a> {
    pub(super) fn new(view: &'a ReducedView, owners: u64, limit: WorkLimit) -> Self {
        let work = WorkBudget::within(limit_for(view, limit), owners);
        let enumeration = ENUMERATION.saturating_mul(limit.multiple()).min(work.limit);
        Self { view, others: owners - 1, enumeration, work, remainder: OnceCell::new() }
    }

    pub(super) fn watched(self, progress: Option<Arc<Progress>>) -> Self {
        Self { work: self.work.watched(progress), ..self }
    }

    #[cfg(test)]
    pub(super) fn without_enumeration(self) -> Self {
        Self { enumeration: 0, ..self }
    }

    /// The crowd with `yes` yes-owners among the others.
    fn of(&self, yes: u64) -> Crowd {
        Crowd { yes, no: self.others - yes }
    }

    /// The worse direction of a crowd.
    fn found(crowd: u64, value: Divergences) -> CrowdValue {
        CrowdValue { value: value.largest(), crowd }
    }

    /// Beyond this ε only the floor is left.
    pub(super) fn largest_epsilon(&self) -> f64 {
        self.enumerated_remainder().map_or_else(|| self.view.largest_epsilon(), |(_, largest)| *largest)
    }

    /// The floor and the largest finite ratio of tallies that do not determine the cells, if all crowds can be enumerated. The
    /// cells by themselves only bound them: a cell that one truth alone reaches may hide among the others.
    fn enumerated_remainder(&self) -> Option<&(CrowdValue, f64)> {
        let is_bounded_only = !self.view.is_determined() && !self.view.floor().is_empty();
        (is_bounded_only && self.enumerable_by_histogram())
            .then(|| self.remainder.get_or_init(|| self.all_remainders()))
    }

    fn all_remainders(&self) -> (CrowdValue, f64) {
        let remainders = self.view.remainders(self.others);
        let error = 16.0 * ROUNDOFF * (self.others + 4) as f64 * remainders.len() as f64;
        let largest = remainders.iter().map(|one| one.largest).fold(0.0, f64::max);
        let certain = (0..).zip(&remainders).map(|(crowd, one)| {
            let mass = one.certain.largest();
            let value = if mass > 0.0 { Enclosure::within(mass, error) } else { Enclosure::ZERO };
            CrowdValue { value: Enclosure::of_probability(value.lower(), value.upper()), crowd }
        });
        let floor = certain.reduce(CrowdValue::larger).unwrap_or(CrowdValue { value: Enclosure::ZERO, crowd: 0 });
        (floor, largest * (1.0 + 1e-12) + error)
    }

    /// The smallest δ that any ε reaches, with the crowd that shows it.
    pub(super) fn floor(&self) -> CrowdValue {
        if let Some((floor, _)) = self.enumerated_remainder() {
            return *floor;
        }
        let mass = self.view.floor();
        let (numerator, crowd) = if mass.yes >= mass.no { (mass.yes, 0) } else { (mass.no, self.others) };
        if numerator == 0 {
            return CrowdValue { value: Enclosure::ZERO, crowd };
        }
        let upper = rounded_up(numerator);
        // Tallies that do not determine the cells may hide the evidence of a single cell.
        let shown = if self.view.is_determined() { upper * (1.0 - 1e-15) } else { 0.0 };
        CrowdValue { value: Enclosure::of_probability(shown, upper), crowd }
    }

    /// The floor, where ε is beyond the largest finite ratio.
    pub(super) fn beyond_all_ratios(&self, epsilon: f64) -> Option<CrowdValue> {
        (epsilon >= self.largest_epsilon()).then(|| self.floor())
    }

    /// The logarithm of the mass that may be left out where values near `delta` matter: ln δ − `below`.
    pub(super) fn log_cut(delta: f64, below: f64) -> f64 {
        (delta.max(1e-300).ln() - below).max(DEEPEST_CUT)
    }

    /// A question to the view, less precise if different views bound it from below and from above.
    pub(super) fn request(&self, epsilon: f64, log_cut: f64, goal: f64) -> DivergenceRequest {
        let request = DivergenceRequest::new(epsilon, log_cut, goal);
        if self.view.is_sharp() { request } else { DivergenceRequest { precision: 0.1, ..request } }
    }

    /// The same where a rough answer near `delta` is enough.
    pub(super) fn rough_request(&self, epsilon: f64, delta: f64) -> DivergenceRequest {
        DivergenceRequest { precision: ROUGH, ..self.request(epsilon, Self::log_cut(delta, 14.0), delta) }
    }

    /// The crowds of one truth, computed with a cut far below their value, and the question that was asked.
    pub(super) fn ends_at_depth(&self, epsilon: f64) -> (CrowdValue, DivergenceRequest) {
        let mut request = self.request(epsilon, -70.0, 0.0);
        loop {
            let found = self.ends(request);
            let deep = found.lower() > 0.0 && found.lower().ln() > request.log_cut + 28.0;
            if deep || request.log_cut <= DEEPEST_CUT {
                return (found, request);
            }
            request.log_cut = (request.log_cut * 2.0).max(DEEPEST_CUT);
        }
    }

    /// The two crowds of one truth.
    pub(super) fn ends(&self, request: DivergenceRequest) -> CrowdValue {
        if self.enumerable_by_histogram() {
            return self.exactly(0, request).larger(self.exactly(self.others, request));
        }
        self.ends_by_formula(request)
    }

    /// The same without enumerating their histograms.
    pub(super) fn ends_by_formula(&self, request: DivergenceRequest) -> CrowdValue {
        let end = |truth: Truth| {
            let crowd = OneTruth { truth, owners: self.others };
            Self::found(Crowd::from(crowd).yes, self.view.one_truth(crowd, request, &self.work))
        };
        let one = end(Truth::No);
        // If the truths can be exchanged, the other end has the same divergence. Formulas are quick, and show that to all digits.
        if !self.view.is_exact() && self.view.is_symmetric() { one } else { one.larger(end(Truth::Yes)) }
    }

    /// Whether every crowd can be evaluated exactly at little cost.
    pub(super) fn enumerable(&self) -> bool {
        self.enumerable_by_histogram()
            || self.view.is_two_classes() && self.others.saturating_mul(self.others) <= self.enumeration / self.factor()
    }

    /// How many steps a crowd of two classes takes for each owner: more where the noise is added to its law.
    fn factor(&self) -> u64 {
        if self.view.noise.is_some() { 32 } else { 8 }
    }

    /// Whether crowds are cheap to evaluate: two classes and no noise.
    pub(super) fn are_cheap(&self) -> bool {
        self.view.is_two_classes() && self.view.noise.is_none()
    }

    /// Whether both ends of a single crowd come from one computation.
    pub(super) fn has_exact_values(&self) -> bool {
        self.view.is_exact() || !self.view.is_determined() && self.enumerable_by_histogram()
    }

    fn enumerable_by_histogram(&self) -> bool {
        self.view.enumeration_cost(self.others).is_some_and(|cost| cost <= self.enumeration)
    }

    /// Whether single crowds are evaluated by enumerating their histograms. With two classes the formula is quick, while
    /// enumeration takes the square of the crowd's size; but in a small crowd with rare classes only enumeration is precise.
    fn enumerates(&self) -> bool {
        self.enumerable_by_histogram() && (self.others <= FEW_OTHERS || !self.view.is_two_classes())
    }

    /// One crowd in the worse direction, without enumerating its histograms.
    pub(super) fn directly(&self, crowd: u64, request: DivergenceRequest) -> CrowdValue {
        Self::found(crowd, self.view.both_truths(self.of(crowd), request, &self.work))
    }

    /// One crowd in the worse direction, bounded from below; what lies above the lower end is not more than rounding and the
    /// precision asked for, but that is not proven.
    pub(super) fn estimated(&self, crowd: u64, request: DivergenceRequest) -> CrowdValue {
        let found = self.directly(crowd, DivergenceRequest { ends: WantedEnds::Lower, ..request });
        let likely = found.lower() * (1.0 + request.precision);
        if found.lower() > 0.0 { found.with_upper(likely.min(found.upper())) } else { found }
    }

    /// The worst crowd around one, by steps that are halved where neither neighbour is worse.
    pub(super) fn climbed(&self, start: u64, request: DivergenceRequest) -> CrowdValue {
        let mut best = self.estimated(start, request);
        let mut step = start.min(self.others - start) / 2;
        while step > 0 {
            let beside = [best.crowd.saturating_sub(step), (best.crowd + step).min(self.others)];
            let worse = beside.into_iter().map(|crowd| self.estimated(crowd, request)).reduce(CrowdValue::larger);
            match worse.filter(|worse| worse.lower() > best.lower()) {
                Some(worse) => best = worse,
                None => step /= 2,
            }
        }
        best
    }

    /// One crowd exactly, in the worse direction.
    pub(super) fn exactly(&self, crowd: u64, request: DivergenceRequest) -> CrowdValue {
        if self.enumerates() {
            return Self::found(crowd, self.view.enumerated(self.of(crowd), request.growth));
        }
        self.directly(crowd, request)
    }

    /// The worst of all crowds, each evaluated exactly.
    pub(super) fn every_crowd(&self, request: DivergenceRequest) -> CrowdValue {
        let worst = if self.enumerates() { self.worst_enumerated(request) } else { self.worst_by_formula(request) };
        worst.unwrap_or_else(|| self.floor())
    }

    fn worst_enumerated(&self, request: DivergenceRequest) -> Option<CrowdValue> {
        let values = self.view.all_enumerated(self.others, request.growth);
        (0..).zip(values).map(|(crowd, value)| Self::found(crowd, value)).reduce(CrowdValue::larger)
    }

    fn worst_by_formula(&self, request: DivergenceRequest) -> Option<CrowdValue> {
        // If the truths can be exchanged, a crowd is as bad as its mirror image.
        let last = if self.view.is_symmetric() { self.others / 2 } else { self.others };
        (0..=last).map(|crowd| self.directly(crowd, request)).reduce(CrowdValue::larger)
    }

    /// A few crowds of both truths, where they can be evaluated exactly in reasonable time. They only ever raise the lower end.
    pub(super) fn samples(&self, request: DivergenceRequest) -> Vec<CrowdValue> {
        let costly = !self.view.is_two_classes() && self.others > MOST_SAMPLED;
        if costly || !self.view.is_exact_in_every_crowd() {
            return Vec::new();
        }
        let mut crowds: Vec<u64> = self.evenly_spaced().chain(self.next_to_the_ends()).collect();
        crowds.sort_unstable();
        crowds.dedup();
        crowds.into_iter().map(|crowd| self.exactly(crowd, request)).collect()
    }

    /// Crowds that divide all of them into a few equal parts.
    fn evenly_spaced(&self) -> impl Iterator<Item = u64> {
        let parts = if self.view.is_two_classes() { 8 } else { 4 };
        let last = if self.view.is_symmetric() { parts / 2 } else { parts - 1 };
        (1..=last).map(move |part| (self.others as f64 * f64::from(part) / f64::from(parts)) as u64)
    }

    /// Crowds that lie closer together towards the ends: 1, 2, 4, … owners of one truth, up to half of all.
    pub(super) fn by_doubling(&self) -> impl Iterator<Item = u64> {
        let counts = std::iter::successors(Some(1_u64), |count| Some(count * 2));
        counts.take_while(move |count| 2 * count <= self.others).flat_map(move |count| self.with_mirror_image(count))
    }

    /// A crowd and its mirror image. If the truths can be exchanged, one is as bad as the other and stands for both.
    fn with_mirror_image(&self, crowd: u64) -> impl Iterator<Item = u64> {
        [crowd, self.others - crowd].into_iter().take(if self.view.is_symmetric() { 1 } else { 2 })
    }

    /// Crowds of nearly one truth, nearer and nearer to the ends, where only a handful of owners may draw alike: the worst crowd
    /// may be one of them then, and costs little.
    fn next_to_the_ends(&self) -> Vec<u64> {
        let like = self.view.in_common();
        if !self.are_cheap() || like.yes.max(like.no) * self.others as f64 > A_HANDFUL {
            return Vec::new();
        }
        let rarer = (4..u64::BITS).map(|halvings| self.others >> halvings).take_while(|rarer| *rarer > 0);
        rarer.flat_map(|rarer| self.with_mirror_image(rarer)).collect()
    }

    /// A bound for all crowds at little cost: each has at least half of the others on one side.
    pub(super) fn half_crowd_bound(&self, request: DivergenceRequest) -> f64 {
        let half = self.others.div_ceil(2);
        let request = DivergenceRequest { ends: WantedEnds::Upper, ..request };
        let bound = |truth: Truth| {
            let crowd = OneTruth { truth, owners: half };
            self.view.one_truth(crowd, request, &self.work).upper().largest()
        };
        bound(Truth::Yes).max(bound(Truth::No))
    }

    /// The bound of the privacy blanket, which holds for all crowds.
    pub(super) fn blanket(&self, request: DivergenceRequest) -> f64 {
        self.view.blanket(self.others, request, &self.work)
    }
}

/// The limit for one view. A sum of scores on its lattice costs about the same in every crowd. Where an answer is seen as well,
/// there is one for each of its outputs, and more work hardly ever closes a claim that a quarter of it leaves open.
fn limit_for(view: &ReducedView, limit: WorkLimit) -> WorkLimit {
    if !view.needs_sums() {
        return limit;
    }
    let limit = limit.whatever_the_crowd();
    if view.is_joint() { limit.quarter() } else { limit }
}

/// A numerator over 2⁶⁴ as a double, rounded up.
fn rounded_up(numerator: u128) -> f64 {
    let nearest = numerator as f64;
    let above = if (nearest as u128) < numerator { nearest.next_up() } else { nearest };
    above / 2_f64.powi(64)
}
