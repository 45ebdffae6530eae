//! From a law to a mechanism whose certificate keeps the request. This decides what a family is worth.

use std::ops::ControlFlow;

use super::family::Family;
use super::limits::Limits;
use super::request::Request;
use super::search::{Aim, Found, Search};
use crate::certified::root::{MOST_HALVINGS, Middle, bisect};
use crate::channel::Channel;
use crate::error::Result;
use crate::mechanism::Mechanism;
use crate::privacy::{self, Guarantee};

/// A mechanism with its certificate over every crowd; one that leaves this module keeps the request.
#[derive(Clone, Debug)]
pub(super) struct Certified {
    pub(super) family: Family,
    pub(super) mechanism: Mechanism,
    pub(super) channel: Channel,
    /// The error of the mechanism as it is written.
    pub(super) sd: f64,
    /// What is minimized, of the mechanism as it is written.
    pub(super) cost: f64,
    /// What the release gives away.
    pub(super) release: Guarantee,
    /// The law it was written from.
    pub(super) found: Found,
    /// What the release's ε was divided by in the search, so that the certificate keeps it.
    pub(super) allowance: f64,
}

impl Certified {
    /// Writes a law as a mechanism with few digits and certifies it, whatever the certificate shows.
    fn from_law(request: &Request, found: &Found, allowance: f64) -> Result<Self> {
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

    /// The certified ε as a share of the one that the request allows; 0 if it allows any.
    fn used_share(&self, request: &Request) -> f64 {
        request.release.map_or(0.0, |(epsilon, _)| self.release_epsilon() / epsilon.value())
    }

    /// Whether the certificate leaves much of the request's ε unused.
    fn leaves_room(&self, request: &Request) -> bool {
        request.release.is_some_and(|(epsilon, _)| self.release_epsilon() < (1.0 - SLACK) * epsilon.value())
    }
}

/// By about how much a certificate is wider than the worst crowd. The search starts from it and learns the actual width.
const WIDE: f64 = 1.000_951;
/// Up to this many owners all crowds of two classes are enumerated, so that their certificate has no extra width.
const ENUMERATED_OWNERS: u64 = 1900;
/// How often the search is repeated with another allowance. Two or three attempts are enough, except where lattice effects
/// move the worst crowd.
const ATTEMPTS: u32 = 11;
/// How many crowds of both truths that turn out worse are added to the watched ones.
const WATCHES: u32 = 8;
/// A certificate that leaves this share of ε unused is tightened.
const SLACK: f64 = 0.005;
/// Tightening ends when the logarithm of the doubt is known to this accuracy.
const TIGHT: f64 = 2e-3;
/// The first step away from the cliff is at most this share of those who do not take part.
const FIRST_RETREAT: f64 = 0.01;
/// More allowance does not help if it removes less than this share of a miss.
const STUCK: f64 = 0.05;
/// A certificate that is this far below the bound leaves room worth using.
const ROOM: f64 = 1.5e-4;

/// The least costly mechanism for which `search` finds a law at an allowance that the certificate then keeps.
///
/// If the certificate misses, the allowance grows by as much as it missed, and participation and doubt are both
/// searched for again: just below the cliff at participation 1 − e^(−ε) no doubt would help.
pub(super) fn certify(
    request: &Request,
    limits: &Limits,
    search: impl Fn(&Aim, Option<&Found>) -> Option<Found>,
) -> Option<Certified> {
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

/// What the attempts to certify a law have shown so far.
struct Attempts<'a> {
    request: &'a Request,
    limits: &'a Limits,
    made: u32,
    best: Option<Certified>,
    /// The law found last.
    near: Option<Found>,
    allowance: f64,
    /// The smallest allowance at which a certificate kept the request.
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
    fn new(request: &'a Request, limits: &'a Limits) -> Self {
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

    /// Whether to search again before a certificate is computed: after the first law, which tells the allowance, and after a
    /// law for which a worse crowd is found.
    fn wants_another_law(&mut self, found: Found) -> Option<bool> {
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

    /// Certifies a law and moves the allowance accordingly; breaks if another attempt would not help.
    fn certify(&mut self, found: &Found) -> Option<ControlFlow<()>> {
        self.made += 1;
        let candidate = Certified::from_law(self.request, found, self.allowance).ok()?;
        let share = candidate.used_share(self.request);
        let kept = share <= 1.0 && keeps_local(self.request, &candidate.channel);
        Some(if kept { self.keep(candidate, share) } else { self.miss(&candidate, share) })
    }

    /// Keeps a candidate, and lowers the allowance by what its certificate leaves unused.
    fn keep(&mut self, candidate: Certified, share: f64) -> ControlFlow<()> {
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

    /// After a candidate that breaks the request: watches its worst crowd, retreats from the cliff, or raises the allowance.
    fn miss(&mut self, candidate: &Certified, share: f64) -> ControlFlow<()> {
        self.misses += 1;
        if self.watches_crowd_of(candidate, share) {
            return ControlFlow::Continue(());
        }
        if self.is_stuck(share) {
            self.retreat_from_cliff(candidate.found.place, share);
            return ControlFlow::Continue(());
        }
        self.last_share = share;
        self.raise_allowance(share)
    }

    /// A crowd of both truths that is much worse, or that more allowance did not help, is watched from now on.
    fn watches_crowd_of(&mut self, candidate: &Certified, share: f64) -> bool {
        let suspect = (share > 1.001 || self.misses > 1) && self.watches < WATCHES;
        if !(suspect && self.limits.watch(candidate.release.crowd())) {
            return false;
        }
        (self.misses, self.watches) = (0, self.watches + 1);
        true
    }

    /// Whether neither more allowance nor another crowd has helped.
    fn is_stuck(&self, share: f64) -> bool {
        self.best.is_none() && share.is_finite() && (share - self.last_share).abs() < STUCK * (share - 1.0)
    }

    /// Lowers the participation by what the cliff needs, in steps that may grow, and starts over with the allowance.
    fn retreat_from_cliff(&mut self, place: f64, share: f64) {
        let needed = self.request.release_epsilon().map_or(0.0, |epsilon| (epsilon * (share - 1.0)).exp_m1());
        self.most = 1.0 - (1.0 - place.min(self.most)) * (1.0 + (1.02 * needed).min(self.retreat));
        (self.allowance, self.last_share, self.retreat) = (WIDE, 0.0, 2.0 * self.retreat);
    }

    /// Raises the allowance by as much as the certificate missed; breaks if one that was kept is reached.
    fn raise_allowance(&mut self, share: f64) -> ControlFlow<()> {
        self.missed = self.missed.max(self.allowance);
        let growth = if share.is_finite() && share > 1.0 { share.min(1.5) } else { 1.0005 };
        self.allowance = self.allowance * growth * (1.0 + 2e-6);
        if self.allowance >= self.kept * (1.0 - 1e-5) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// By how much a certificate is wider than the worst crowd: not at all if all crowds are enumerated.
fn first_allowance(request: &Request, found: &Found) -> Option<f64> {
    let two_classes = found.law.occurring_classes().len() < 3;
    let enumerated = two_classes && request.claim_owners().ok()? <= ENUMERATED_OWNERS;
    Some(if request.release.is_none() || enumerated { 1.0 } else { WIDE })
}

/// Reduces the doubt at the same participation if a certificate leaves room, by bisection between what the crowds of one
/// truth need and what is certified.
///
/// δ has steps: a slightly smaller ε may need much more doubt, so dividing ε overshoots.
pub(super) fn tighten(request: &Request, search: &Search<'_>, kept: Certified) -> Certified {
    if !kept.leaves_room(request) {
        return kept;
    }
    let (place, certified) = (kept.found.place, kept.found.doubt.ln());
    let Some(needed) = search.at(place, 1.0, TIGHT) else { return kept };
    let mut best = kept;
    let is_below = |log_doubt: f64| {
        let found = search.with_doubt(place, log_doubt.exp());
        match found.and_then(|found| as_it_stands(request, &found)) {
            Some(better) if better.cost < best.cost => best = better,
            _ => return true,
        }
        false
    };
    let ends = (needed.doubt.max(f64::MIN_POSITIVE).ln(), certified);
    bisect(ends, Middle::Arithmetic, MOST_HALVINGS, |low, high| high - low <= TIGHT, is_below);
    best
}

/// A law as it stands, if its certificate keeps the request.
pub(super) fn as_it_stands(request: &Request, found: &Found) -> Option<Certified> {
    let candidate = Certified::from_law(request, found, 1.0).ok()?;
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

/// Whether an ε is at most a bound, up to rounding; none means no guarantee.
fn is_within(epsilon: Option<f64>, most: f64) -> bool {
    epsilon.is_some_and(|epsilon| epsilon <= most * (1.0 + 1e-12))
}
