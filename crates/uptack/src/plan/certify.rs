//! From a law to a mechanism whose certificate satisfies the request. The family is ranked by its error.

use std::ops::ControlFlow;

use super::family::PlanFamily;
use super::limits::ReleaseLimit;
use super::request::Request;
use super::search::{Aim, CandidateLaw, FamilySearch};
use crate::certified::root::{MOST_HALVINGS, Middle, bisect};
use crate::channel::Channel;
use crate::error::Result;
use crate::mechanism::Mechanism;
use crate::privacy::{self, Guarantee};

/// A mechanism with its certificate over every crowd. Those that this module returns satisfy the request.
#[derive(Clone, Debug)]
pub(super) struct CertifiedMechanism {
    pub(super) family: PlanFamily,
    pub(super) mechanism: Mechanism,
    pub(super) channel: Channel,
    /// The error of the mechanism with its rounded parameters.
    pub(super) sd: f64,
    /// The objective at the rounded parameters.
    pub(super) cost: f64,
    /// The guarantee of the release.
    pub(super) release: Guarantee,
    /// The law before its parameters were rounded.
    pub(super) found: CandidateLaw,
    /// The divisor of the release's ε in the search, which leaves room for the certificate.
    pub(super) allowance: f64,
}

impl CertifiedMechanism {
    /// Rounds a law to a mechanism with few digits and certifies it. The certificate may exceed the request.
    fn from_law(request: &Request, found: &CandidateLaw, allowance: f64) -> Result<Self> {
        let mechanism = found.family.mechanism(&found.law)?;
        let channel = mechanism.channel();
        let sd = request.predicted_sd(&channel)?;
        let release = request.release_guarantee(&channel)?;
        let cost = if sd.is_finite() { found.cost * sd / request.sd(&found.law) } else { f64::INFINITY };
        Ok(Self { family: found.family, mechanism, channel, sd, cost, release, found: *found, allowance })
    }

    /// The certified ε of the release; infinite without a guarantee.
    fn release_epsilon(&self) -> f64 {
        self.release.value().map_or(f64::INFINITY, |value| value.upper())
    }

    /// The certified ε as a share of the requested one; 0 if the request does not bound it.
    fn used_share(&self, request: &Request) -> f64 {
        request.release.map_or(0.0, |(epsilon, _)| self.release_epsilon() / epsilon.value())
    }

    /// Whether the certificate leaves much of the request's ε unused.
    fn leaves_room(&self, request: &Request) -> bool {
        request.release.is_some_and(|(epsilon, _)| self.release_epsilon() < (1.0 - SLACK) * epsilon.value())
    }
}

/// The usual ratio between a certified ε and that of the worst crowd. The search starts from it and learns the actual ratio.
const WIDE: f64 = 1.000_951;
/// The same for two classes, whose certificates are closer.
const NARROW: f64 = 1.000_101;
/// Up to this many owners all crowds of two classes are enumerated, so that their certificate has no extra width.
const ENUMERATED_OWNERS: u64 = 1900;
/// How often the search is repeated with another allowance. Two or three attempts are enough, except where lattice effects
/// move the worst crowd.
const ATTEMPTS: u32 = 11;
/// How many crowds of both truths that turn out worse are added to the watched ones.
const WATCHES: u32 = 16;
/// A certificate that leaves this share of ε unused is tightened.
const SLACK: f64 = 0.005;
/// Tightening ends when the logarithm of the flip rate is known to this accuracy.
const TIGHT: f64 = 2e-3;
/// The first step away from the cliff is at most this share of those who do not take part.
const FIRST_RETREAT: f64 = 0.01;
/// A larger allowance does not help if it removes less than this share of the excess.
const STUCK: f64 = 0.05;
/// The search continues if the certified ε is below the bound by more than this share.
const ROOM: f64 = 1.5e-4;

/// The least costly mechanism whose certificate satisfies the request, among the laws that `search` finds at growing allowances.
///
/// If a certificate exceeds the request, the allowance grows by the same factor, and participation and flip rate are both
/// searched for again: just below the cliff at participation 1 − e^(−ε) no flip rate would help.
pub(super) fn certify(
    request: &Request,
    limits: &ReleaseLimit,
    search: impl Fn(&Aim, Option<&CandidateLaw>) -> Option<CandidateLaw>,
) -> Option<CertifiedMechanism> {
    let mut attempts = Attempts::new(request, limits);
    while attempts.made < ATTEMPTS {
        let Some(found) = search(&attempts.aim(), attempts.near.as_ref()) else { break };
        if attempts.wants_another_law(found)? {
            continue;
        }
        if attempts.certify(&found)?.is_break() {
            break;
        }
    }
    attempts.best
}

/// The state of the attempts to certify a law.
struct Attempts<'a> {
    request: &'a Request,
    limits: &'a ReleaseLimit,
    made: u32,
    best: Option<CertifiedMechanism>,
    /// The law found last.
    near: Option<CandidateLaw>,
    allowance: f64,
    /// The smallest allowance at which a certificate satisfied the request.
    kept: f64,
    /// The largest allowance at which one did not.
    missed: f64,
    /// Misses since a crowd was last added to the watched ones.
    misses: u32,
    /// The used share of ε at the last miss.
    last_share: f64,
    /// The largest participation that the search may use.
    most: f64,
    /// The longest next step of `most` away from the cliff.
    retreat: f64,
    /// How many crowds were added to the watched ones.
    watches: u32,
}

impl<'a> Attempts<'a> {
    fn new(request: &'a Request, limits: &'a ReleaseLimit) -> Self {
        Self {
            request,
            limits,
            made: 0,
            best: None,
            near: None,
            allowance: 1.0,
            kept: f64::INFINITY,
            missed: 0.0,
            misses: 0,
            last_share: 0.0,
            most: 1.0,
            retreat: FIRST_RETREAT,
            watches: 0,
        }
    }

    fn aim(&self) -> Aim {
        Aim { allowance: self.allowance, most: self.most, near: self.made + self.watches > 1 }
    }

    /// Whether to search again before a certificate is computed: after the first law, which determines the allowance, and after a
    /// law for which a worse crowd is found.
    fn wants_another_law(&mut self, found: CandidateLaw) -> Option<bool> {
        if self.near.replace(found).is_none() {
            self.allowance = first_allowance(self.request, &found)?;
            if self.allowance > 1.0 {
                return Some(true);
            }
        }
        let worse = self.watches < WATCHES && self.limits.finds_worse_crowd(&found.law);
        self.watches += u32::from(worse);
        Some(worse)
    }

    /// Certifies a law and adjusts the allowance; breaks if another attempt would not help.
    fn certify(&mut self, found: &CandidateLaw) -> Option<ControlFlow<()>> {
        self.made += 1;
        let candidate = CertifiedMechanism::from_law(self.request, found, self.allowance).ok()?;
        let share = candidate.used_share(self.request);
        let kept = share <= 1.0 && keeps_local(self.request, &candidate.channel);
        Some(if kept { self.keep(candidate, share) } else { self.miss(&candidate, share) })
    }

    /// Keeps a candidate, and lowers the allowance by the share of ε that its certificate leaves unused.
    fn keep(&mut self, candidate: CertifiedMechanism, share: f64) -> ControlFlow<()> {
        self.kept = self.kept.min(self.allowance);
        if self.best.as_ref().is_none_or(|best| candidate.cost < best.cost) {
            self.best = Some(candidate);
        }
        let less = (self.allowance * share * (1.0 + 2e-6)).max(1.0);
        let used_up = self.request.release.is_none() || share > 1.0 - ROOM;
        if used_up || less <= self.missed * (1.0 + 1e-5) || self.allowance == less {
            return ControlFlow::Break(());
        }
        self.allowance = less;
        ControlFlow::Continue(())
    }

    /// Handles a candidate that violates the request: watches its worst crowd, retreats from the cliff, or raises the allowance.
    fn miss(&mut self, candidate: &CertifiedMechanism, share: f64) -> ControlFlow<()> {
        self.misses += 1;
        if self.watches_crowd_of(candidate, share) {
            // Where each law has another worst crowd, watching them does not end in a certificate.
            let is_late = self.best.is_none() && 2 * self.made > ATTEMPTS;
            return if is_late { self.raise_allowance(share) } else { ControlFlow::Continue(()) };
        }
        if self.is_stuck(share) {
            self.retreat_from_cliff(candidate.found.participation, share);
            return ControlFlow::Continue(());
        }
        self.last_share = share;
        self.raise_allowance(share)
    }

    /// Watches the candidate's worst crowd from now on, if it is much worse than those of one truth, or if a larger allowance
    /// did not help.
    fn watches_crowd_of(&mut self, candidate: &CertifiedMechanism, share: f64) -> bool {
        let suspect = (share > 1.001 || self.misses > 1) && self.watches < WATCHES;
        // Where even the certificate of a crowd is wide, an estimate of it is too good.
        let bounds_crowds = || !candidate.release.certificate().closed() && self.limits.bound_crowds();
        let sees_more = || candidate.release.crowd().is_some_and(|crowd| self.limits.watch(crowd)) | bounds_crowds();
        if !(suspect && sees_more()) {
            return false;
        }
        (self.misses, self.watches) = (0, self.watches + 1);
        true
    }

    /// Whether neither more allowance nor another crowd has helped.
    fn is_stuck(&self, share: f64) -> bool {
        self.best.is_none() && share.is_finite() && (share - self.last_share).abs() < STUCK * (share - 1.0)
    }

    /// Lowers the largest participation to stay clear of the cliff, in growing steps, and resets the allowance.
    fn retreat_from_cliff(&mut self, participation: f64, share: f64) {
        let needed = self.request.release_epsilon().map_or(0.0, |epsilon| (epsilon * (share - 1.0)).exp_m1());
        self.most = 1.0 - (1.0 - participation.min(self.most)) * (1.0 + (1.02 * needed).min(self.retreat));
        (self.allowance, self.last_share, self.retreat) = (WIDE, 0.0, 2.0 * self.retreat);
    }

    /// Raises the allowance by the factor that the certificate exceeded the request; breaks if it reaches one that was
    /// sufficient.
    fn raise_allowance(&mut self, share: f64) -> ControlFlow<()> {
        self.missed = self.missed.max(self.allowance);
        let growth = if share.is_finite() && share > 1.0 { share.min(1.5) } else { 1.0005 };
        self.allowance = self.allowance * growth * (1.0 + 2e-6);
        if self.allowance >= self.kept * (1.0 - 1e-5) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The first allowance: 1 if all crowds are enumerated, since the certificate is then exact.
fn first_allowance(request: &Request, found: &CandidateLaw) -> Option<f64> {
    let two_classes = found.law.occurring_classes().len() < 3;
    let enumerated = two_classes && request.claim_owners().ok()? <= ENUMERATED_OWNERS;
    Some(match request.release {
        None => 1.0,
        Some(_) if enumerated => 1.0,
        Some(_) if two_classes => NARROW,
        Some(_) => WIDE,
    })
}

/// Lowers the flip rate at the same participation if a certificate leaves room, by bisection between the flip rate that the
/// crowds of one truth need and the certified one.
///
/// δ has steps: a slightly smaller ε may need a much higher flip rate, so dividing ε overshoots.
pub(super) fn tighten(request: &Request, search: &FamilySearch<'_>, kept: CertifiedMechanism) -> CertifiedMechanism {
    if !kept.leaves_room(request) {
        return kept;
    }
    let (participation, certified) = (kept.found.participation, kept.found.flip_rate.ln());
    let Some(needed) = search.at(participation, 1.0, TIGHT) else { return kept };
    let mut best = kept;
    let is_below = |log_flip_rate: f64| {
        let found = search.with_flip_rate(participation, log_flip_rate.exp());
        match found.and_then(|found| as_it_stands(request, &found)) {
            Some(better) if better.cost < best.cost => best = better,
            _ => return true,
        }
        false
    };
    let ends = (needed.flip_rate.max(f64::MIN_POSITIVE).ln(), certified);
    bisect(ends, Middle::Arithmetic, MOST_HALVINGS, |low, high| high - low <= TIGHT, is_below);
    best
}

/// The mechanism of a law, if its certificate satisfies the request.
pub(super) fn as_it_stands(request: &Request, found: &CandidateLaw) -> Option<CertifiedMechanism> {
    let candidate = CertifiedMechanism::from_law(request, found, 1.0).ok()?;
    let kept = request.release.is_none_or(|(epsilon, _)| candidate.release_epsilon() <= epsilon.value());
    (kept && keeps_local(request, &candidate.channel)).then_some(candidate)
}

/// Whether the local ε of each answer and of the whole cell are small enough.
fn keeps_local(request: &Request, channel: &Channel) -> bool {
    let answer_keeps = |answer: usize, most: f64| {
        let epsilon = privacy::answer_epsilon(channel, answer).ok().flatten();
        is_within(epsilon, most)
    };
    let mut answers = 0..channel.answers().len();
    request.linked_epsilon.is_none_or(|most| is_within(privacy::linked_epsilon(channel), most))
        && request.answer_epsilon.is_none_or(|most| answers.all(|answer| answer_keeps(answer, most)))
}

/// Whether an ε is at most a bound, up to rounding; `None` means no guarantee.
fn is_within(epsilon: Option<f64>, most: f64) -> bool {
    epsilon.is_some_and(|epsilon| epsilon <= most * (1.0 + 1e-12))
}
