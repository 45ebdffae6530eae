//! ε at one δ over all crowds, and the ε at which one crowd's divergence, which falls with ε, reaches δ (`docs/accounting.md`,
//! "From δ to ε").

use super::CertificateMargin;
use super::crowds::Crowds;
use super::sweep::{Attained, Proposition};
use crate::certified::root::{FalsePosition, Middle, bisect};
use crate::certified::rounding::Enclosure;
use crate::privacy::claim::{CLOSED_EPSILON, CrowdValue};
use crate::privacy::divergence::{DivergenceRequest, WantedEnds};

/// The first margin for two classes, where it costs little. It is as fine as the first margin of a δ, of which ε is seldom a
/// higher power than the fiftieth, so that both questions about a channel have the same answer.
const FINE_MARGIN: CertificateMargin = CertificateMargin { excess: 1e-4, share: 0.3 };
/// The first margin otherwise: a little less than at which a certificate counts as closed.
const FIRST_MARGIN: f64 = 9.5e-4;
/// A certificate of an ε at most this much above the largest value found is looked for, first with the smallest margin.
const MARGINS: [CertificateMargin; 5] = [
    CertificateMargin { excess: FIRST_MARGIN, share: 0.75 },
    CertificateMargin { excess: 4e-3, share: 0.4 },
    CertificateMargin { excess: 1e-2, share: 0.4 },
    CertificateMargin { excess: 2.5e-2, share: 0.5 },
    CertificateMargin { excess: 0.1, share: 1.0 },
];
/// Where the ends are a factor of this apart, only the widest margin is tried, since its width hardly matters then.
const FAR_APART: f64 = 1.2;
/// A certificate is close enough if it exceeds the largest value found by at most this many times its margin.
const NEARLY: f64 = 1.05;
/// How often a sweep is repeated from the worst crowd that the last one found.
const MOST_REPEATED: usize = 4;
/// The relative precision of a lower end once twice the work is spent.
const COSTLY_TOLERANCE: f64 = 0.02;
/// Where not even the crowds of one truth can be bounded by this share of the local ε, the local ε is the claim. The larger share
/// is for views whose ends are close, so that the claim still closes.
const NEARLY_ALL_SHARP: f64 = 0.9995;
const NEARLY_ALL: f64 = 0.99;

/// The search for the ε of one δ, which is not below the floor.
pub(super) struct EpsilonSearch<'s, 'a> {
    crowds: &'s Crowds<'a>,
    delta: f64,
    log_cut: f64,
    /// The largest finite |ln(p/q)|, at which the claim needs no proof.
    largest: f64,
}

impl<'s, 'a> EpsilonSearch<'s, 'a> {
    pub(super) fn new(crowds: &'s Crowds<'a>, delta: f64) -> Self {
        Self { crowds, delta, log_cut: Crowds::log_cut(delta, 30.0), largest: crowds.largest_epsilon() }
    }

    /// The ε over all crowds, and the worst crowd found.
    pub(super) fn over_all_crowds(&self) -> CrowdValue {
        let crowds = self.crowds;
        if crowds.work.exhausted() {
            return CrowdValue { value: Enclosure::new(0.0, self.largest), crowd: 0 };
        }
        if self.is_nearly_local() {
            let found = crowds.solve_below(self.delta, self.largest, &|epsilon, ends| self.at_ends(epsilon, ends));
            return found.with_upper(self.largest);
        }
        let ends = self.of_ends();
        if crowds.enumerable() {
            return self.enumerated(ends);
        }
        self.bounded(self.with_samples(ends))
    }

    /// The worst crowd found with an upper end that holds for all crowds.
    fn bounded(&self, best: CrowdValue) -> CrowdValue {
        if self.is_too_costly() {
            return best.with_upper(self.largest);
        }
        let (upper, attained) = self.certified(best);
        let upper = match upper {
            Some(upper) => upper,
            None if self.is_too_costly() => self.largest,
            None => self.by_half_crowds(attained.value),
        };
        let value = Enclosure::new(attained.value, upper.min(self.largest));
        self.at_most_blanket(CrowdValue { value, crowd: attained.crowd })
    }

    /// Whether not even a crowd of one truth should be evaluated any more: that is cheap where the formulas are exact, and costly
    /// where scores are summed.
    fn is_too_costly(&self) -> bool {
        !self.crowds.view.is_exact() && self.crowds.work.overdrawn()
    }

    /// Whether no search would bound ε much better than the local one does.
    fn is_nearly_local(&self) -> bool {
        let view = self.crowds.view;
        let nearly_all = if view.is_sharp() { NEARLY_ALL_SHARP } else { NEARLY_ALL } * self.largest;
        let bounded = view.is_exact() || self.crowds.enumerable();
        !bounded && self.at_ends(nearly_all, WantedEnds::Upper).upper() > self.delta
    }

    /// The ε of the two crowds of one truth.
    pub(super) fn of_ends(&self) -> CrowdValue {
        self.crowds.solve(self.delta, self.largest, &|epsilon, ends| self.at_ends(epsilon, ends))
    }

    /// The ε that the privacy blanket alone certifies.
    pub(super) fn by_blanket(&self) -> f64 {
        solve_from_above(self.delta, (0.0, self.largest), |epsilon| self.crowds.blanket(self.at(epsilon)))
    }

    /// The question at one ε.
    fn at(&self, epsilon: f64) -> DivergenceRequest {
        self.crowds.request(epsilon, self.log_cut, self.delta)
    }

    /// The same, as precisely as for a view that is bounded by itself.
    fn precisely_at(&self, epsilon: f64) -> DivergenceRequest {
        DivergenceRequest::new(epsilon, self.log_cut, self.delta)
    }

    fn at_ends(&self, epsilon: f64, ends: WantedEnds) -> CrowdValue {
        self.crowds.ends(DivergenceRequest { ends, ..self.at(epsilon) })
    }

    /// The ε of one crowd of both truths.
    fn of_crowd(&self, crowd: u64) -> CrowdValue {
        self.crowds.solve(self.delta, self.largest, &|epsilon, _| self.crowds.exactly(crowd, self.at(epsilon)))
    }

    /// Solves at the worst crowd found so far until no other crowd is worse there.
    fn enumerated(&self, ends: CrowdValue) -> CrowdValue {
        let mut best = ends;
        for _ in 0..64 {
            let worst = self.crowds.every_crowd(self.precisely_at(best.upper()));
            if worst.upper() <= self.delta {
                return best;
            }
            let exactly = |epsilon: f64, _| self.crowds.exactly(worst.crowd, self.precisely_at(epsilon));
            let found = self.crowds.solve(self.delta, self.largest, &exactly);
            best = best.with_upper(best.upper() * (1.0 + 1e-12)).larger(found);
        }
        best.with_upper(self.largest)
    }

    /// The worst of the crowds of one truth and a few crowds of both truths.
    fn with_samples(&self, ends: CrowdValue) -> CrowdValue {
        let is_worse = |found: &CrowdValue| found.lower() > self.delta;
        let samples = self.crowds.samples(self.at(ends.lower()));
        let worse = samples.into_iter().filter(is_worse).map(|found| found.crowd);
        worse.fold(ends, |best, crowd| {
            // An earlier sample may have shown more by now.
            let still_worse = is_worse(&self.crowds.exactly(crowd, self.at(best.lower())));
            if still_worse { worse_of(best, self.of_crowd(crowd)) } else { best }
        })
    }

    /// The smallest ε that a sweep shows, if one shows any, and the largest value found on the way.
    fn certified(&self, best: CrowdValue) -> (Option<f64>, Attained) {
        let mut attained = Attained::by(best);
        let everywhere = self.crowds.half_crowd_bound(self.at(best.upper()));
        for margin in margins(best.value, self.crowds.first_margin()) {
            if let Some(shown) = self.swept(best.upper(), margin, everywhere, &mut attained) {
                return (Some(self.sharpened(shown, margin, everywhere, &mut attained)), attained);
            }
        }
        (None, attained)
    }

    /// The ε that a sweep shows if it starts above `found` by a margin; `None` if it shows nothing.
    fn swept(&self, found: f64, margin: CertificateMargin, everywhere: f64, attained: &mut Attained) -> Option<f64> {
        self.crowds.work.allow(margin.share);
        let mut proposition = self.proposition(found, margin, everywhere);
        let learned = |proposition: &Proposition, found: &CrowdValue| self.learned(proposition, found);
        let shown = self.crowds.sweep(&mut proposition, attained, |weaker, _| weaken(weaker), learned);
        shown.then(|| proposition.request.growth.ln() * (1.0 + 1e-14))
    }

    /// Repeats the sweep that held with a margin from the worst crowd found on the way, while each finds a worse one and the
    /// proven ε is far above it.
    fn sharpened(&self, mut shown: f64, held: CertificateMargin, everywhere: f64, attained: &mut Attained) -> f64 {
        let repetitions = if self.crowds.are_cheap() { MOST_REPEATED } else { 0 };
        let margin = CertificateMargin { excess: held.excess.min(FIRST_MARGIN), ..MARGINS[0] };
        for _ in 0..repetitions {
            let worst = attained.value;
            if shown <= worst * (1.0 + NEARLY * margin.excess) {
                break;
            }
            let again = self.swept(worst, margin, everywhere, attained);
            shown = again.map_or(shown, |again| again.min(shown));
            if attained.value <= worst {
                break;
            }
        }
        shown
    }

    /// The proposition that δ is enough for all crowds at an ε above `found` by a margin.
    fn proposition(
        &self,
        found: f64,
        CertificateMargin { excess, share }: CertificateMargin,
        everywhere: f64,
    ) -> Proposition {
        let start = (found * (1.0 + excess)).min(self.largest);
        Proposition {
            base: self.at_ends(start, WantedEnds::Lower).lower(),
            request: self.at(start),
            limit: self.delta,
            largest: 0.0,
            step: excess / 10.0,
            trivial: self.largest.exp(),
            everywhere,
            may_fail: share < 1.0,
        }
    }

    /// The ε that a crowd evaluated on the way is known to need.
    fn learned(&self, proposition: &Proposition, found: &CrowdValue) -> f64 {
        let worse = found.lower() > self.delta;
        let known = if worse { proposition.request.growth.ln() * (1.0 - 1e-12) } else { 0.0 };
        // A crowd that is not worse may still be the worst one so far, at a smaller ε.
        if !self.crowds.view.is_two_classes() || found.upper() < 0.98 * self.delta {
            return known;
        }
        self.of_crowd(found.crowd).lower().max(known)
    }

    /// An ε that holds for every crowd, from the two crowds of one truth and half the size.
    fn by_half_crowds(&self, lower: f64) -> f64 {
        let bound = |epsilon: f64| self.crowds.half_crowd_bound(self.precisely_at(epsilon));
        solve_from_above(self.delta, (lower, self.largest), bound)
    }

    /// The smaller of a value and the bound by the privacy blanket, to a per mille. A closed value is at most that much above
    /// the true ε, so the blanket could not lower it by more.
    fn at_most_blanket(&self, found: CrowdValue) -> CrowdValue {
        let blanket = |epsilon: f64| self.crowds.blanket(self.at(epsilon));
        let (lower, upper) = (found.lower(), found.upper());
        let closed = upper <= lower * (1.0 + CLOSED_EPSILON);
        if closed || self.crowds.work.overdrawn() || blanket(upper * 0.999) > self.delta {
            return found;
        }
        // It bounds the true ε, so it is not below the lower end.
        found.with_upper(solve_from_above(self.delta, (lower, upper), blanket))
    }
}

/// The crowd with the larger lower end. If that is the new one, its upper end covers the best so far, too.
fn worse_of(best: CrowdValue, found: CrowdValue) -> CrowdValue {
    if found.lower() > best.lower() {
        return found.with_upper(found.upper().max(best.upper()));
    }
    best
}

/// Raises the ε of a proposition, each time by a larger step.
fn weaken(proposition: &mut Proposition) {
    proposition.step *= 2.0;
    let weaker = proposition.request.growth.ln() * (1.0 + proposition.step) + 1e-6 * proposition.step;
    proposition.request.growth = weaker.exp().min(proposition.trivial);
}

/// The margins to try, given how well the largest value found is known, and the smallest that is worth its cost.
fn margins(best: Enclosure, first: CertificateMargin) -> Vec<CertificateMargin> {
    let (lower, upper) = (best.lower(), best.upper());
    let apart = upper > (1.0 + CLOSED_EPSILON) * lower;
    let skipped = if upper > FAR_APART * lower { MARGINS.len() - 1 } else { usize::from(apart) };
    let mut margins: Vec<CertificateMargin> = MARGINS.into_iter().skip(skipped).collect();
    if skipped > 0 {
        return margins;
    }
    // The width of the known value leaves less room for the certificate to close.
    let width = (upper / lower - 1.0).max(0.0);
    margins[0].excess -= width;
    if first.excess < FIRST_MARGIN && width < 0.5 * first.excess {
        margins.insert(0, CertificateMargin { excess: first.excess - width, ..first });
    }
    margins
}

impl Crowds<'_> {
    /// The first margin of a certificate.
    pub(super) fn first_margin(&self) -> CertificateMargin {
        if self.view.is_two_classes() { FINE_MARGIN } else { MARGINS[0] }
    }

    /// The ε at which a falling function of it reaches `delta`. Where the function is bounded by different views from below and
    /// from above, each side is solved for itself.
    pub(super) fn solve(
        &self,
        delta: f64,
        largest: f64,
        function: &dyn Fn(f64, WantedEnds) -> CrowdValue,
    ) -> CrowdValue {
        if self.has_exact_values() {
            return self.solve_one(delta, largest, None, WantedEnds::Both, function);
        }
        let above = self.solve_one(delta, largest, None, WantedEnds::Upper, function).upper();
        self.solve_below(delta, above, function).with_upper(above)
    }

    /// The same from below alone; at `largest` the function is known to be at most `delta`.
    pub(super) fn solve_below(
        &self,
        delta: f64,
        largest: f64,
        function: &dyn Fn(f64, WantedEnds) -> CrowdValue,
    ) -> CrowdValue {
        // If both ends are close, the root of the lower one is just below that of the upper one.
        let near = self.view.is_sharp().then_some(0.9995 * largest);
        self.solve_one(delta, largest, near, WantedEnds::Lower, function)
    }

    /// The root of a function both of whose ends come from one view, or of one of its ends; the search starts at `near` if that
    /// is given.
    fn solve_one(
        &self,
        delta: f64,
        largest: f64,
        near: Option<f64>,
        ends: WantedEnds,
        function: &dyn Fn(f64, WantedEnds) -> CrowdValue,
    ) -> CrowdValue {
        let function = one_end(ends, function);
        let first = function(0.0);
        if first.upper() <= delta {
            return CrowdValue { value: Enclosure::ZERO, crowd: first.crowd };
        }
        let mut search = RootSearch::new(first, delta, largest);
        let mut guess = near.unwrap_or_else(|| first_guess(first.upper(), delta, largest));
        let tolerance = self.tolerance(first.value);
        for round in 1..200 {
            // A claim rests on its upper end: the lower one is not worth much more work than was allowed.
            let is_costly = ends == WantedEnds::Lower && self.work.overdrawn();
            if search.is_within(if is_costly { tolerance.max(COSTLY_TOLERANCE) } else { tolerance }) {
                break;
            }
            let found = function(guess);
            if !search.note(guess, found) {
                let distance = 0.02 * relative_width(found.value);
                return CrowdValue {
                    value: around(guess, distance, search.root.ends(), delta, &function),
                    ..search.found()
                };
            }
            // Where the function is far from straight, halving is faster.
            guess = if round % 4 == 0 { search.root.middle() } else { search.root.guess() };
        }
        search.found()
    }

    /// The relative precision of a root: a function that is not precise itself need not be solved precisely.
    fn tolerance(&self, at_zero: Enclosure) -> f64 {
        if self.has_exact_values() {
            (0.2 * at_zero.width()).clamp(1e-11, 1e-4)
        } else if self.view.is_sharp() {
            3e-5
        } else {
            1e-3
        }
    }
}

/// A search for the ε at which a divergence reaches δ.
struct RootSearch {
    root: FalsePosition,
    delta: f64,
    /// The worst crowd at the largest ε that is known to be below the root.
    crowd: u64,
}

impl RootSearch {
    /// A search from zero, where the divergence is known, to `largest`.
    fn new(at_zero: CrowdValue, delta: f64, largest: f64) -> Self {
        Self { root: FalsePosition::new(level(at_zero, delta), largest), delta, crowd: at_zero.crowd }
    }

    /// Notes on which side of the root an ε lies; returns whether its divergence is known well enough to tell.
    fn note(&mut self, epsilon: f64, found: CrowdValue) -> bool {
        let level = level(found, self.delta);
        if found.upper() <= self.delta {
            self.root.lower_high(epsilon, level);
            return true;
        }
        let is_below = found.lower() > self.delta;
        if is_below {
            self.root.raise_low(epsilon, level);
            self.crowd = found.crowd;
        }
        is_below
    }

    /// Whether the root is known to this share of it.
    fn is_within(&self, tolerance: f64) -> bool {
        let (low, high) = self.root.ends();
        high - low <= tolerance * high
    }

    fn found(&self) -> CrowdValue {
        let (low, high) = self.root.ends();
        CrowdValue { value: Enclosure::new(low, high), crowd: self.crowd }
    }
}

/// The logarithm of a divergence, from above, over δ: zero at the root.
fn level(found: CrowdValue, delta: f64) -> f64 {
    found.upper().ln() - delta.max(f64::MIN_POSITIVE).ln()
}

/// The distance between the ends of a value relative to the lower one, at most one.
fn relative_width(value: Enclosure) -> f64 {
    (value.upper() / value.lower().max(f64::MIN_POSITIVE) - 1.0).min(1.0)
}

/// The smallest ε between two, to a per mille and from above, at which a falling function is at most `delta`.
pub(super) fn solve_from_above(delta: f64, range: (f64, f64), function: impl Fn(f64) -> f64) -> f64 {
    let close = |low: f64, high: f64| high - low <= 1e-3 * high || high <= 1e-12;
    let is_below = |epsilon: f64| {
        let holds = function(epsilon) <= delta;
        !holds
    };
    bisect(range, Middle::Geometric, usize::MAX, close, is_below).1
}

/// The function with one of its ends in place of both, if one is wanted.
fn one_end(ends: WantedEnds, function: &dyn Fn(f64, WantedEnds) -> CrowdValue) -> impl Fn(f64) -> CrowdValue {
    move |epsilon: f64| {
        let found = function(epsilon, ends);
        let value = match ends {
            WantedEnds::Both => return found,
            WantedEnds::Upper => found.upper(),
            WantedEnds::Lower => found.lower(),
        };
        CrowdValue { value: Enclosure::of_probability(value, value), ..found }
    }
}

/// The Gaussian with the same divergence at zero has about this ε.
fn first_guess(zero: f64, delta: f64, largest: f64) -> f64 {
    let scale = 2.5 * zero * (2.0 * (zero / delta.max(1e-300)).ln()).max(0.1).sqrt();
    scale.clamp(largest * 1e-9, largest * 0.9)
}

/// The nearest points on both sides of an undecided one that can be decided.
fn around(
    undecided: f64,
    first: f64,
    (low, high): (f64, f64),
    delta: f64,
    function: &dyn Fn(f64) -> CrowdValue,
) -> Enclosure {
    let first = first.max(1e-11);
    let lower = first_decided(undecided, -first, low, |point| function(point).lower() > delta);
    let upper = first_decided(undecided, first, high, |point| function(point).upper() <= delta);
    Enclosure::new(lower, upper)
}

/// The first point that can be decided at a relative distance from `start` that doubles and is negative downwards; `limit` where
/// there is none before it.
fn first_decided(start: f64, mut distance: f64, limit: f64, is_decided: impl Fn(f64) -> bool) -> f64 {
    loop {
        let point = start * (1.0 + distance);
        if distance.signum() * (point - limit) >= 0.0 {
            return limit;
        }
        if is_decided(point) {
            return point;
        }
        distance *= 2.0;
    }
}
