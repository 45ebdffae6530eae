//! From a law to a mechanism whose certificate keeps the request: what a family is worth is decided here.

use super::family::Family;
use super::limits::Limits;
use super::request::Request;
use super::search::{Aim, Found, Search};
use crate::channel::Channel;
use crate::error::Error;
use crate::estimate::Estimator;
use crate::mechanism::Mechanism;
use crate::privacy::{self, Guarantee, Target};

/// A mechanism that keeps the request, certified over every crowd.
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

/// A certificate is wider than the worst crowd by about this; the search starts from it and learns what it really is.
const WIDE: f64 = 1.000_951;
/// Up to here all crowds of two classes are enumerated, so that their certificate is not wide at all.
const ENUMERATED_OWNERS: u64 = 1900;
/// So often the search is repeated with another allowance. Two or three are enough but where lattice effects move the worst crowd.
const ATTEMPTS: u32 = 11;
/// So often a crowd of both truths that turns out worse is added to those that are watched.
const WATCHES: u32 = 8;
/// A certificate that leaves this share of ε unused is tightened.
const SLACK: f64 = 0.005;
/// Tightening ends where the logarithm of the doubt is known to this accuracy.
const TIGHT: f64 = 2e-3;
/// The first step away from the cliff is at most this share of those who do not take part.
const FIRST_RETREAT: f64 = 0.01;
/// Allowance that takes less than this share of a miss away does not help.
const STUCK: f64 = 0.05;
/// A certificate that is this far below the bound leaves room worth using.
const ROOM: f64 = 1.5e-4;

/// The least costly mechanism for which `search` finds a law at an allowance that the certificate then keeps.
///
/// Where the certificate misses, the allowance grows by as much as it missed, and participation and doubt are both
/// searched for again: just below the cliff at participation 1 − e^(−ε) no doubt would help.
pub(super) fn certify(
    request: &Request,
    limits: &Limits,
    search: impl Fn(&Aim, Option<&Found>) -> Option<Found>,
) -> Option<Certified> {
    let mut allowance = 1.0;
    let mut best: Option<Certified> = None;
    let mut near: Option<Found> = None;
    let (mut kept, mut missed, mut misses) = (f64::INFINITY, 0.0f64, 0);
    let (mut most, mut share_before, mut retreat) = (1.0, 0.0, FIRST_RETREAT);
    let (mut attempts, mut watches) = (0, 0);
    while attempts < ATTEMPTS {
        let aim = Aim { allowance, most, near: attempts + watches > 1 };
        let Some(found) = search(&aim, near.as_ref()) else { break };
        if near.is_none() {
            allowance = first_allowance(request, &found)?;
        }
        if near.replace(found).is_none() && allowance > 1.0 {
            continue;
        }
        if watches < WATCHES && limits.finds_worse_crowd(&found.law) {
            watches += 1;
            continue;
        }
        attempts += 1;
        let candidate = written(request, &found, allowance).ok()?;
        let upper = candidate.release.value().map_or(f64::INFINITY, |value| value.upper());
        let share = request.release.map_or(0.0, |(epsilon, _)| upper / epsilon.value());
        if share <= 1.0 && keeps_local(request, &candidate.channel) {
            kept = kept.min(allowance);
            if best.as_ref().is_none_or(|best| candidate.cost < best.cost) {
                best = Some(candidate);
            }
            let less = (allowance * share * (1.0 + 2e-6)).max(1.0);
            if request.release.is_none() || share > 1.0 - ROOM || less <= missed * (1.0 + 1e-5) || allowance == less {
                break;
            }
            allowance = less;
        } else {
            // A crowd of both truths that is much worse, or that more allowance did not help, is watched from now on.
            misses += 1;
            if (share > 1.001 || misses > 1) && watches < WATCHES && limits.watch(candidate.release.crowd()) {
                (misses, watches) = (0, watches + 1);
                continue;
            }
            // Where neither helps, participation has to give way: by what the cliff needs, in steps that may grow.
            if best.is_none() && share.is_finite() && (share - share_before).abs() < STUCK * (share - 1.0) {
                let needed = request.release.map_or(0.0, |(epsilon, _)| (epsilon.value() * (share - 1.0)).exp_m1());
                most = 1.0 - (1.0 - found.place.min(most)) * (1.0 + (1.02 * needed).min(retreat));
                (allowance, share_before, retreat) = (WIDE, 0.0, 2.0 * retreat);
                continue;
            }
            share_before = share;
            missed = missed.max(allowance);
            let more = if share.is_finite() && share > 1.0 { allowance * share.min(1.5) } else { allowance * 1.0005 };
            allowance = more * (1.0 + 2e-6);
            if allowance >= kept * (1.0 - 1e-5) {
                break;
            }
        }
    }
    best
}

/// Where a certificate leaves room: less doubt at the same participation, by halving between what the crowds of one truth need
/// and what is certified.
///
/// δ has steps: an ε that is a little smaller may need much more doubt, so that dividing ε overshoots.
pub(super) fn tighten(request: &Request, search: &Search<'_>, kept: Certified) -> Certified {
    let upper = kept.release.value().map_or(f64::INFINITY, |value| value.upper());
    let slack = request.release.is_some_and(|(epsilon, _)| upper < (1.0 - SLACK) * epsilon.value());
    let (place, mut high) = (kept.found.place, kept.found.doubt.ln());
    let needed = if slack { search.at(place, 1.0, TIGHT) } else { None };
    let Some(mut low) = needed.map(|found| found.doubt.max(f64::MIN_POSITIVE).ln()) else { return kept };
    let mut best = kept;
    while high - low > TIGHT {
        let half = 0.5 * (low + high);
        match search.with_doubt(place, half.exp()).and_then(|found| as_it_stands(request, &found)) {
            Some(better) if better.cost < best.cost => (best, high) = (better, half),
            _ => low = half,
        }
    }
    best
}

/// By how much a certificate is wider than the worst crowd: not at all where all crowds are enumerated.
fn first_allowance(request: &Request, found: &Found) -> Option<f64> {
    let (yes, no) = (found.law.yes(), found.law.no());
    let two_classes = (0..3).filter(|&class| yes[class] > 0.0 || no[class] > 0.0).count() < 3;
    let enumerated = two_classes && request.claim_owners().ok()? <= ENUMERATED_OWNERS;
    Some(if request.release.is_none() || enumerated { 1.0 } else { WIDE })
}

/// A law as it stands, if its certificate keeps the request.
pub(super) fn as_it_stands(request: &Request, found: &Found) -> Option<Certified> {
    let candidate = written(request, found, 1.0).ok()?;
    let upper = candidate.release.value().map_or(f64::INFINITY, |value| value.upper());
    let kept = request.release.is_none_or(|(epsilon, _)| upper <= epsilon.value());
    (kept && keeps_local(request, &candidate.channel)).then_some(candidate)
}

/// A law as a mechanism with few digits, and its certificate.
fn written(request: &Request, found: &Found, allowance: f64) -> Result<Certified, Error> {
    let mechanism = found.family.mechanism(&found.law)?;
    let channel = mechanism.channel();
    let sd = request.yes.predicted_sd(&Estimator::new(&channel)?, request.owners)?;
    let release = privacy::release(&channel, request.claim_owners()?)?.guarantee(target(request)?);
    let cost = if sd.is_finite() { found.cost * sd / request.sd(&found.law) } else { f64::INFINITY };
    Ok(Certified { family: found.family, mechanism, channel, sd, cost, release, found: *found, allowance })
}

/// The δ at which the release is accounted for.
pub(super) fn target(request: &Request) -> Result<Target, Error> {
    let usual = || privacy::Delta::new(super::USUAL_DELTA);
    Ok(Target::Delta(request.release.map_or_else(usual, |(_, delta)| Ok(delta))?))
}

/// Whether the local ε of each answer and of the whole cell are small enough.
fn keeps_local(request: &Request, channel: &Channel) -> bool {
    let within = |epsilon: Option<f64>, most: f64| epsilon.is_some_and(|epsilon| epsilon <= most * (1.0 + 1e-12));
    let answer = |answer: usize| privacy::answer_epsilon(channel, answer).ok().flatten();
    request.linked_epsilon.is_none_or(|most| within(privacy::linked_epsilon(channel), most))
        && request.answer_epsilon.is_none_or(|most| (0..channel.answers().len()).all(|k| within(answer(k), most)))
}
