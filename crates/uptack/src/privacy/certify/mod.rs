//! The largest divergence over all crowds, from both sides.
//!
//! [`crowds`] evaluates crowds, [`sweep`] covers all of them by ranges whose widths it learns, this module chooses the statement
//! about δ at one ε that the sweep has to prove, and [`epsilon`] the statement about ε at one δ. `docs/accounting.md` has the
//! arguments under "Adding an owner never hurts" and "From δ to ε".

mod crowds;
mod epsilon;
mod sweep;

use std::sync::Arc;

use crowds::Crowds;
use epsilon::EpsilonSearch;
use sweep::{Attained, Proposition};

use super::claim::{CLOSED_DELTA, CrowdValue};
use super::divergence::DivergenceRequest;
use super::views::ReducedView;
use super::work::WorkLimit;
use crate::certified::rounding::Enclosure;
use crate::progress::Progress;

/// How far above the largest value found a certificate may be, and which share of the work that is left it may take.
#[derive(Clone, Copy)]
struct CertificateMargin {
    excess: f64,
    share: f64,
}

/// Looks for the worst crowd of one view.
pub(crate) struct CrowdSearch<'a> {
    crowds: Crowds<'a>,
    precision: SearchPrecision,
}

/// How close to the largest value found a certificate of δ is meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchPrecision {
    /// As close as the work allows.
    Fine,
    /// The same, and at least as close as the certificate of an ε: whoever asks for the δ of an ε that was certified at some δ gets
    /// no more than that.
    AsEpsilon,
    /// Just closed: a certificate among many that are joined by chords.
    Rough,
}

/// Crowds of both truths that a search evaluates besides those of one truth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchedCrowds<'c> {
    /// How many of the others are *yes*.
    pub(crate) crowds: &'c [u64],
    pub(crate) ends: WatchedEnds,
}

/// How the upper end of a watched crowd is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchedEnds {
    /// From the lower end, without a proof. It costs a fraction of a bound and guides a search as well, unless certificates exceed
    /// the largest value found by much.
    Estimated,
    /// As in a certificate.
    Bounded,
}

impl WatchedCrowds<'_> {
    /// The crowds of one truth alone.
    pub(crate) const NONE: Self = Self { crowds: &[], ends: WatchedEnds::Bounded };
}

impl<'a> CrowdSearch<'a> {
    pub(crate) fn new(view: &'a ReducedView, owners: u64, limit: WorkLimit) -> Self {
        Self { crowds: Crowds::new(view, owners, limit), precision: SearchPrecision::Fine }
    }

    /// The same search, watched.
    pub(crate) fn watched(self, progress: Option<Arc<Progress>>) -> Self {
        Self { crowds: self.crowds.watched(progress), ..self }
    }

    /// The same search for certificates of another precision.
    pub(crate) fn with_precision(self, precision: SearchPrecision) -> Self {
        Self { precision, ..self }
    }

    /// The same search without evaluating all crowds one by one, however few they are.
    #[cfg(test)]
    pub(crate) fn without_enumeration(self) -> Self {
        Self { crowds: self.crowds.without_enumeration(), ..self }
    }

    /// The smallest δ that any ε reaches, with the crowd that shows it.
    pub(crate) fn floor(&self) -> CrowdValue {
        self.crowds.floor()
    }

    /// The ε from which on only the floor is left.
    pub(crate) fn largest_epsilon(&self) -> f64 {
        self.crowds.largest_epsilon()
    }

    /// δ at one ε over all crowds.
    pub(crate) fn delta(&self, epsilon: f64) -> CrowdValue {
        delta_over_all_crowds(&self.crowds, epsilon, self.precision)
    }

    /// ε at one δ over all crowds; `None` if δ is below the floor.
    pub(crate) fn epsilon(&self, delta: f64) -> Option<CrowdValue> {
        Some(self.epsilon_search(delta)?.over_all_crowds())
    }

    /// ε at one δ by the privacy blanket alone.
    pub(crate) fn blanket_epsilon(&self, delta: f64) -> Option<f64> {
        Some(self.epsilon_search(delta)?.by_blanket())
    }

    /// ε at one δ for the two crowds of one truth.
    pub(crate) fn epsilon_of_ends(&self, delta: f64) -> Option<CrowdValue> {
        Some(self.epsilon_search(delta)?.of_ends())
    }

    /// δ at one ε for the two crowds of one truth.
    pub(crate) fn delta_of_ends(&self, epsilon: f64) -> CrowdValue {
        self.crowds.beyond_all_ratios(epsilon).unwrap_or_else(|| self.crowds.ends_at_depth(epsilon).0)
    }

    /// δ at one ε for the two crowds of one truth and for those watched besides, where only values near `delta` matter: far below
    /// it, the omitted mass may exceed the value. Once one crowd is above it, the others are skipped.
    pub(crate) fn delta_near(&self, epsilon: f64, delta: f64, watched: WatchedCrowds<'_>) -> Enclosure {
        if let Some(floor) = self.crowds.beyond_all_ratios(epsilon) {
            return floor.value;
        }
        // Without enumeration, which is for the last digits.
        let request = self.crowds.request(epsilon, Crowds::log_cut(delta, 14.0), delta);
        let mut found = self.crowds.ends_by_formula(request);
        let rough = self.crowds.rough_request(epsilon, delta);
        for &crowd in watched.crowds.iter().filter(|_| self.crowds.view.is_exact_in_every_crowd()) {
            if found.lower() > delta {
                break;
            }
            found = found.larger(match watched.ends {
                WatchedEnds::Estimated => self.crowds.estimated(crowd, rough),
                WatchedEnds::Bounded => self.crowds.directly(crowd, rough),
            });
        }
        found.value
    }

    /// A crowd whose δ at one ε is certainly above `delta`, if one is found: the worst of a few that lie closer together towards
    /// the ends, and of those around it.
    pub(crate) fn worse_crowd(&self, epsilon: f64, delta: f64) -> Option<u64> {
        if !self.crowds.view.is_exact_in_every_crowd() || self.crowds.beyond_all_ratios(epsilon).is_some() {
            return None;
        }
        let request = self.crowds.rough_request(epsilon, delta);
        let glanced = self.crowds.by_doubling().map(|crowd| self.crowds.estimated(crowd, request.glance()));
        let start = glanced.reduce(CrowdValue::larger).filter(|found| found.upper() > BESIDE_WORST * delta)?;
        let found = self.crowds.climbed(start.crowd, request);
        (found.lower() > delta).then_some(found.crowd)
    }

    /// The search for the ε of one δ; `None` if δ is below the floor.
    fn epsilon_search(&self, delta: f64) -> Option<EpsilonSearch<'_, 'a>> {
        (delta >= self.floor().upper()).then(|| EpsilonSearch::new(&self.crowds, delta))
    }
}

/// A certificate of a δ at most this much above the largest value found is looked for. The smallest margin is for two classes
/// alone, where it costs little: what composes many releases reads δ at many ε, and an excess in all of them is an excess in the
/// composed ε.
const MARGINS: [CertificateMargin; 5] = [
    CertificateMargin { excess: 4e-3, share: 0.3 },
    CertificateMargin { excess: 0.045, share: 0.6 },
    CertificateMargin { excess: 0.2, share: 0.5 },
    CertificateMargin { excess: 0.8, share: 0.5 },
    CertificateMargin { excess: 3.0, share: 1.0 },
];
/// A crowd whose δ is at least this share of a limit may have crowds beside it that exceed the limit.
const BESIDE_WORST: f64 = 0.3;
/// Divergences below this are bounded, but not searched for their worst crowd.
const NEGLIGIBLE: f64 = 1e-150;

/// The largest divergence over all crowds, and the worst crowd found.
fn delta_over_all_crowds(crowds: &Crowds<'_>, epsilon: f64, precision: SearchPrecision) -> CrowdValue {
    if let Some(floor) = crowds.beyond_all_ratios(epsilon) {
        return floor;
    }
    let (ends, request) = crowds.ends_at_depth(epsilon);
    if crowds.enumerable() {
        return crowds.every_crowd(request);
    }
    if ends.upper() < NEGLIGIBLE {
        let everywhere = crowds.half_crowd_bound(request).min(crowds.blanket(request));
        return ends.with_upper(everywhere.max(ends.upper()));
    }
    let search = DeltaSearch { crowds, request, precision };
    search.bounded(search.with_samples(ends))
}

/// The search for the δ of one ε.
struct DeltaSearch<'s, 'a> {
    crowds: &'s Crowds<'a>,
    request: DivergenceRequest,
    precision: SearchPrecision,
}

impl DeltaSearch<'_, '_> {
    /// The worst of the known crowds and a few crowds of both truths. They are evaluated roughly; only one that may be the worst
    /// is worth its precise value.
    fn with_samples(&self, best: CrowdValue) -> CrowdValue {
        let glance = DivergenceRequest { goal: best.lower(), ..self.request }.glance();
        let rough = self.crowds.samples(glance).into_iter().reduce(CrowdValue::larger);
        match rough.filter(|rough| rough.upper() > best.lower()) {
            Some(worse) => best.larger(self.crowds.exactly(worse.crowd, self.request)),
            None => best,
        }
    }

    /// The worst crowd found with an upper end that holds for all crowds.
    fn bounded(&self, best: CrowdValue) -> CrowdValue {
        let (mut upper, mut attained) = self.certified(best);
        if self.precision == SearchPrecision::AsEpsilon {
            upper = self.as_for_epsilon(best, upper, &mut attained);
        }
        if upper > (1.0 + CLOSED_DELTA) * attained.value {
            upper = upper.min(self.crowds.blanket(self.request).max(attained.value));
        }
        CrowdValue { value: Enclosure::new(attained.value, upper.min(1.0)), crowd: attained.crowd }
    }

    /// The smallest bound that a sweep shows, and the largest value found on the way.
    fn certified(&self, best: CrowdValue) -> (f64, Attained) {
        let everywhere = self.crowds.half_crowd_bound(self.request);
        let mut attained = Attained::by(best);
        for margin in self.margins(best.value) {
            self.crowds.work.allow(margin.share);
            let mut proposition = self.proposition(best.value, margin, everywhere);
            // Where a small range stays above the limit, a new limit is set.
            let weaken = |proposition: &mut Proposition, failed: f64| proposition.limit = failed * 1.01;
            if self.crowds.sweep(&mut proposition, &mut attained, weaken, |_, found| found.lower()) {
                return (proposition.largest, attained);
            }
        }
        (everywhere, attained)
    }

    /// A bound, or a smaller one that the search for an ε would prove: it asks about an ε just above the one that the largest value
    /// found needs, so that value is taken at an ε just below this one.
    fn as_for_epsilon(&self, best: CrowdValue, upper: f64, attained: &mut Attained) -> f64 {
        let slightly_less = self.request.growth.ln() / (1.0 + self.crowds.first_margin().excess * 0.99);
        let request = DivergenceRequest { growth: slightly_less.exp(), ..self.request };
        let needed = self.crowds.ends(request).larger(self.crowds.exactly(best.crowd, request)).upper();
        if upper <= needed || self.crowds.work.exhausted() || !self.crowds.view.is_exact_in_every_crowd() {
            return upper;
        }
        self.crowds.work.allow(0.9);
        // Of half crowds, as ranges need it: a bound for whole crowds alone would not do.
        let everywhere = self.crowds.half_crowd_bound(self.request);
        let usual = self.proposition(best.value, MARGINS[1], everywhere);
        let mut proposition = Proposition { limit: needed.min(everywhere), may_fail: false, ..usual };
        let weaken = |proposition: &mut Proposition, failed: f64| proposition.limit = failed * 1.001;
        let is_shown = self.crowds.sweep(&mut proposition, attained, weaken, |_, found| found.lower());
        if is_shown { upper.min(proposition.largest) } else { upper }
    }

    /// The margins to try, given how well the largest value found is known.
    fn margins(&self, best: Enclosure) -> impl Iterator<Item = CertificateMargin> {
        let apart = best.upper() > (1.0 + CLOSED_DELTA) * best.lower();
        let is_fine = self.precision != SearchPrecision::Rough && self.crowds.view.is_two_classes();
        let skipped = if apart { 2 } else { usize::from(!is_fine) };
        MARGINS.into_iter().skip(skipped)
    }

    /// The proposition that no crowd's divergence exceeds the largest value found by more than a margin.
    fn proposition(
        &self,
        best: Enclosure,
        CertificateMargin { excess, share }: CertificateMargin,
        everywhere: f64,
    ) -> Proposition {
        // From the upper end: where the view is only bounded, the lower one is of another view.
        let found = best.upper();
        Proposition {
            request: self.request,
            limit: (found * (1.0 + excess)).min(everywhere),
            largest: found,
            base: best.lower(),
            step: 0.0,
            trivial: f64::INFINITY,
            everywhere,
            may_fail: share < 1.0,
        }
    }
}
