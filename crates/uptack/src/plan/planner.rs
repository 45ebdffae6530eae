//! One request: what every family can do under it, ranked.

use std::collections::HashSet;

use super::certify::{Certified, as_it_stands, certify, tighten};
use super::family::Family;
use super::limits::Limits;
use super::noisy;
use super::request::{Form, Noise, Objective, Request, Trust};
use super::search::{Bound, Known};
use super::search::{Found, Search};
use super::solve::nothing_keeps;
use super::{Choice, EQUAL, Rule, tuned};
use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::mechanism::Mechanism;
use crate::numeric::normal;
use crate::privacy::{self, Guarantee, Target, Views, WorkLimit};
use crate::progress::Progress;

/// The plan and the best of every other family, all certified.
pub(super) struct Settled {
    pub(super) best: Kept,
    pub(super) rule: Rule,
    pub(super) others: Vec<Kept>,
    pub(super) gap: Option<f64>,
}

/// A mechanism that keeps the request.
pub(super) struct Kept {
    pub(super) family: Family,
    pub(super) mechanism: Mechanism,
    pub(super) sd: f64,
    /// What is minimized.
    pub(super) cost: f64,
    /// What the release gives away, if the request bounds it by a certificate.
    pub(super) release: Option<Guarantee>,
}

impl Kept {
    pub(super) fn name(&self) -> &'static str {
        if self.is_noisy() { self.family.noisy_name() } else { self.family.name() }
    }

    fn is_noisy(&self) -> bool {
        self.mechanism.noise().is_some()
    }

    /// Sorts the simplest first: without noise, then in the order of [`Family::ALL`].
    fn complexity(&self) -> (bool, usize) {
        let rank = Family::ALL.iter().position(|&known| known == self.family);
        (self.is_noisy(), rank.unwrap_or(usize::MAX))
    }
}

impl From<noisy::Planned> for Kept {
    fn from(planned: noisy::Planned) -> Self {
        let noisy::Planned { family, mechanism, sd, release } = planned;
        Self { family, mechanism, sd, cost: sd, release }
    }
}

impl From<Certified> for Kept {
    fn from(certified: Certified) -> Self {
        let Certified { family, mechanism, sd, cost, release, .. } = certified;
        Self { family, mechanism, sd, cost, release: Some(release) }
    }
}

/// Mechanisms that keep the request, and by which share the best of them could be better, if that is known.
struct Candidates {
    kept: Vec<Kept>,
    gap: Option<f64>,
}

impl Candidates {
    fn new(kept: impl IntoIterator<Item = impl Into<Kept>>, gap: Option<f64>) -> Self {
        Self { kept: kept.into_iter().map(Into::into).collect(), gap }
    }
}

/// A request with its families.
pub(super) struct Planner<'a> {
    request: &'a Request,
    pub(super) limits: Limits,
    families: Vec<Family>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(request: &'a Request) -> Result<Self> {
        request.check()?;
        Ok(Self { request, limits: Limits::new(request)?, families: families(request)? })
    }

    /// The best mechanism of every family that keeps the request, ranked; and how much better any other could be.
    pub(super) fn settle(&self, progress: &Progress) -> Result<Settled> {
        let candidates = match (self.request.noise, self.request.trust) {
            (Noise::None, _) => self.without_noise(progress),
            (_, Trust::OneAggregator) => self.with_one_aggregator(),
            (Noise::Aggregators, Trust::Owners) => self.with_noise_and_owners(),
            (Noise::Any, Trust::Owners) => {
                let mut all = self.with_noise_and_owners();
                all.kept.extend(self.without_noise(progress).kept);
                all
            }
        };
        self.ranked(candidates)
    }

    /// The best certified mechanism of every family without noise.
    fn without_noise(&self, progress: &Progress) -> Candidates {
        let mut certified: Vec<Certified> = Vec::new();
        for &family in self.families.iter().filter(|family| **family != Family::Tuned) {
            certified.extend(self.certified(family, &certified));
            progress.advance_by(60 / self.families.len() as u64);
        }
        let gap = match self.request.objective {
            Objective::Sd => Some(self.bound(&mut certified)),
            Objective::Paper { .. } => None,
        };
        if self.families.contains(&Family::Tuned) {
            certified.extend(tuned::certified(self.request, &self.limits, &certified));
        }
        progress.advance_by(10);
        Candidates::new(certified, gap)
    }

    fn with_one_aggregator(&self) -> Candidates {
        let (planned, least) = noisy::with_one_aggregator(self.request, &self.families);
        let best = least_of(planned.iter().map(|one| one.sd));
        let gap = best.is_finite().then(|| gap(least, best));
        Candidates::new(planned, gap)
    }

    /// Not bounded: noise and coins together have no order in which one mechanism gives away less than another.
    fn with_noise_and_owners(&self) -> Candidates {
        Candidates::new(noisy::with_owners(self.request, &self.limits, &self.families), None)
    }

    /// The best certified mechanism of a family of two numbers.
    fn certified(&self, family: Family, others: &[Certified]) -> Option<Certified> {
        let search = Search::new(self.request, &self.limits, family)?;
        self.limits.forget();
        let twin = self.twin(family, others).map(|twin| Found { family, ..twin.found });
        if let Some(kept) = twin.and_then(|twin| as_it_stands(self.request, &twin)) {
            return Some(kept);
        }
        let certified = certify(self.request, &self.limits, |aim, near| match near {
            Some(near) => search.best_near(near.place, aim),
            None => twin.or_else(|| search.best(aim.allowance)),
        });
        certified.map(|kept| tighten(self.request, &search, kept))
    }

    /// What is already certified with the laws of this family. Unless single answers are bounded further, a symmetric law is
    /// worth the same in all its forms, with one answer or with several.
    fn twin<'c>(&self, family: Family, certified: &'c [Certified]) -> Option<&'c Certified> {
        if family.is_one_answer() || self.answers_are_bounded_further() {
            return None;
        }
        certified.iter().find(|other| matches!(other.family, Family::NormalForm | Family::Blended))
    }

    /// Whether single answers are bounded by less than all answers of an owner together.
    fn answers_are_bounded_further(&self) -> bool {
        let linked = self.request.linked_epsilon.unwrap_or(f64::INFINITY);
        self.request.answer_epsilon.is_some_and(|answer| answer < linked)
    }

    /// By which share the best could be better in the families of two numbers. Certifies what turns out better on the way.
    fn bound(&self, certified: &mut Vec<Certified>) -> f64 {
        let mut least = f64::INFINITY;
        for &family in self.families.iter().filter(|&&family| self.is_bounded(family)) {
            if let Some(search) = Search::new(self.request, &self.limits, family) {
                least = least.min(self.bound_family(&search, certified));
            }
        }
        let best = least_of(certified.iter().map(|one| one.sd));
        if best.is_finite() && least.is_finite() { gap(least, best) } else { 0.0 }
    }

    /// A lower bound on the error of every law of one family; infinite if nothing is certified.
    fn bound_family(&self, search: &Search<'_>, certified: &mut Vec<Certified>) -> f64 {
        for attempt in 0..BOUND_ATTEMPTS {
            let Some(best) = certified.iter().min_by(|a, b| a.sd.total_cmp(&b.sd)) else { break };
            let known = Known { error: best.sd, allowance: best.allowance };
            match search.bound(known, self.bound_budget(), attempt + 1 < BOUND_ATTEMPTS) {
                Bound::AtLeast(error) => return error,
                Bound::Better(found) => certified.extend(certify(self.request, &self.limits, |aim, near| {
                    search.best_near(near.unwrap_or(&found).place, aim)
                })),
            }
        }
        f64::INFINITY
    }

    /// Calls of the accounting for each error that a bound is tried at; they take longer in larger crowds.
    fn bound_budget(&self) -> u32 {
        match self.limits.owners() {
            0..100_000 => 300,
            100_000..5_000_000 => 80,
            _ => 40,
        }
    }

    /// Whether the bound of a family is its own and not another's: `randomized-response` is `normal-form` at participation
    /// one, and several answers are alike in the release.
    fn is_bounded(&self, family: Family) -> bool {
        let has = |other: Family| self.families.contains(&other);
        match family {
            Family::RandomizedResponse => !has(Family::NormalForm),
            Family::NormalForm | Family::NoisySampling => true,
            Family::Tuned => false,
            Family::Blended | Family::Spread(_) if self.answers_are_bounded_further() => true,
            Family::Blended => !has(Family::NormalForm),
            Family::Spread(_) => !has(Family::NormalForm) && !has(Family::Blended),
        }
    }

    /// Ranks the candidates of the wanted family, or of all: the least costly first, but the simplest of those that are nearly
    /// as good before it.
    fn ranked(&self, Candidates { mut kept, gap }: Candidates) -> Result<Settled> {
        let wanted = |one: &Kept| self.request.family.as_deref().is_none_or(|name| name == one.family.name());
        kept.retain(wanted);
        kept.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        let least = kept.first().ok_or_else(|| nothing_keeps(self.request))?.cost;
        let best = kept.remove(simplest_within(least * (1.0 + EQUAL), &kept));
        retain_best_of_each_name(&best, &mut kept);
        let gap = gap.map(|gap| 1.0 - (1.0 - gap) * (least / best.cost));
        Ok(Settled { rule: Rule::of(least, best.cost), best, others: kept, gap })
    }

    /// The mechanism with its views; the release is the one that was certified, if any. `limit` bounds the work for the others.
    pub(super) fn choose(&self, kept: &Kept, limit: WorkLimit) -> Result<Choice> {
        let (mechanism, channel, sd) = (kept.mechanism.clone(), kept.mechanism.channel(), kept.sd);
        let views = match &kept.release {
            Some(release) => Views::with_release(&channel, limit, release),
            None => Views::of(&channel, self.limits.owners(), self.request.target()?, limit),
        }?;
        let interval95_halfwidth = normal::upper_quantile(0.025) * sd;
        Ok(Choice { mechanism, channel, sd, interval95_halfwidth, views })
    }

    /// ε of the release if only a share of the claim's owners is honest; empty if no owner is counted on.
    pub(super) fn robustness(&self, channel: &Channel) -> Result<Vec<(Fraction, Option<f64>)>> {
        if self.request.trust == Trust::OneAggregator {
            return Ok(Vec::new());
        }
        let target = self.request.target()?;
        let shares = [(9, 10), (3, 4), (1, 2)].into_iter().filter_map(|(part, whole)| Fraction::new(part, whole).ok());
        let degraded =
            shares.map(|share| self.degraded_epsilon(channel, &share, target).map(|epsilon| (share, epsilon)));
        Ok(degraded.filter_map(Result::ok).collect())
    }

    /// ε of the release if only this share of the claim's owners is honest; none means no guarantee.
    fn degraded_epsilon(&self, channel: &Channel, honest: &Fraction, target: Target) -> Result<Option<f64>> {
        let owners = privacy::honest_owners(self.limits.owners(), honest)?;
        let guarantee = privacy::release(channel, owners)?.guarantee(target);
        Ok(guarantee.value().map(|value| value.upper()))
    }
}

/// How often a family is bounded; all but the last time it may report a better law, which is then certified.
const BOUND_ATTEMPTS: u32 = 3;

fn least_of(errors: impl Iterator<Item = f64>) -> f64 {
    errors.fold(f64::INFINITY, f64::min)
}

/// By which share of itself the best error could be smaller.
fn gap(least: f64, best: f64) -> f64 {
    (1.0 - least / best).max(0.0)
}

/// The index of the simplest mechanism that costs at most this, of mechanisms in the order of their costs.
fn simplest_within(most: f64, kept: &[Kept]) -> usize {
    let near = kept.partition_point(|one| one.cost <= most);
    (0..near).min_by_key(|&index| kept[index].complexity()).unwrap_or(0)
}

/// Keeps the first of each name, and none with the name of the best.
fn retain_best_of_each_name(best: &Kept, others: &mut Vec<Kept>) {
    let mut named = HashSet::from([best.name()]);
    others.retain(|other| named.insert(other.name()));
}

/// The families to search, in the order of [`Family::ALL`].
fn families(request: &Request) -> Result<Vec<Family>> {
    match &request.family {
        Some(name) => named_families(request, name),
        // Asymmetric laws were never better by half a per cent, and take the most time to certify: only where asked for.
        None => {
            let searched = |family: &Family| *family != Family::Tuned && has_form(request, *family);
            Ok(needed_families(request).filter(searched).collect())
        }
    }
}

/// The families of a name, after those from which their search starts.
fn named_families(request: &Request, name: &str) -> Result<Vec<Family>> {
    let named: Vec<Family> = needed_families(request).filter(|family| family.name() == name).collect();
    if named.is_empty() {
        return Err(unknown_family(name));
    }
    let noisy = needs_noise(request);
    if noisy && named.iter().any(|family| !family.is_one_answer()) {
        return Err(Error::request(format!(
            "`{name}` has several answers, and noise is added to the number of answers 1"
        ))
        .with_hint("plan a mechanism of one answer, or without noise"));
    }
    if noisy || named != [Family::Tuned] {
        return Ok(named);
    }
    Ok(vec![Family::NormalForm, Family::NoisySampling, Family::Tuned])
}

fn unknown_family(name: &str) -> Error {
    let mut known = Family::ALL.map(Family::name).to_vec();
    known.dedup();
    Error::request(format!("`{name}` is not planned")).with_hint(format!("known are {}", known.join(", ")))
}

/// All families, without three pairs of `spread` if two allow every law. A signal of J pairs leans by at most 1/J, so two are
/// enough if the bound on an answer allows a lean of one half.
fn needed_families(request: &Request) -> impl Iterator<Item = Family> {
    let two_pairs_do = request.answer_epsilon.is_none_or(|epsilon| (0.5 * epsilon).tanh() >= 0.5);
    Family::ALL.into_iter().filter(move |family| *family != Family::Spread(3) || !two_pairs_do)
}

/// Whether a family has as many answers as the request asks for and bounds.
fn has_form(request: &Request, family: Family) -> bool {
    match request.form {
        _ if needs_noise(request) => family.is_one_answer(),
        Form::One => family.is_one_answer(),
        Form::Several => !family.is_one_answer(),
        Form::Any => family.is_one_answer() || request.bounds_tallies(),
    }
}

/// Whether every mechanism that keeps the request has noise.
fn needs_noise(request: &Request) -> bool {
    request.noise == Noise::Aggregators || request.trust == Trust::OneAggregator
}
