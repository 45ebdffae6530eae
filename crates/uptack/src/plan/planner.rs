//! The best mechanism of every family under one request, ranked.

use std::collections::HashSet;

use super::certify::{CertifiedMechanism, as_it_stands, certify, tighten};
use super::family::PlanFamily;
use super::limits::ReleaseLimit;
use super::noisy;
use super::request::{Form, Noise, Objective, Request, Trust};
use super::search::{CandidateLaw, FamilySearch};
use super::search::{ErrorBound, Known};
use super::solve::nothing_keeps;
use super::{EQUAL, PlannedMechanism, SelectionRule, tuned};
use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::estimate::Confidence;
use crate::fraction::Fraction;
use crate::mechanism::Mechanism;
use crate::privacy::{self, Guarantee, Target, Views, WorkLimit};
use crate::progress::Progress;

/// The plan and the best of every other family, all certified.
pub(super) struct RankedPlan {
    pub(super) best: FeasibleMechanism,
    pub(super) rule: SelectionRule,
    pub(super) others: Vec<FeasibleMechanism>,
    pub(super) gap: Option<f64>,
}

/// A mechanism that satisfies the request.
pub(super) struct FeasibleMechanism {
    pub(super) family: PlanFamily,
    pub(super) mechanism: Mechanism,
    pub(super) sd: f64,
    /// The value of the objective.
    pub(super) cost: f64,
    /// The guarantee of the release, if the request bounds it by a certificate.
    pub(super) release: Option<Guarantee>,
}

impl FeasibleMechanism {
    pub(super) fn name(&self) -> &'static str {
        if self.is_noisy() { self.family.noisy_name() } else { self.family.name() }
    }

    fn is_noisy(&self) -> bool {
        self.mechanism.noise().is_some()
    }

    /// Sorts the simplest first: without noise, then in the order of [`PlanFamily::ALL`].
    fn complexity(&self) -> (bool, usize) {
        let rank = PlanFamily::ALL.iter().position(|&known| known == self.family);
        (self.is_noisy(), rank.unwrap_or(usize::MAX))
    }
}

impl From<noisy::NoisyPlan> for FeasibleMechanism {
    fn from(planned: noisy::NoisyPlan) -> Self {
        let noisy::NoisyPlan { family, mechanism, sd, release } = planned;
        Self { family, mechanism, sd, cost: sd, release }
    }
}

impl From<CertifiedMechanism> for FeasibleMechanism {
    fn from(certified: CertifiedMechanism) -> Self {
        let CertifiedMechanism { family, mechanism, sd, cost, release, .. } = certified;
        Self { family, mechanism, sd, cost, release: Some(release) }
    }
}

/// Mechanisms that satisfy the request, and by which share the best of them could be better, if that is known.
struct FeasibleMechanisms {
    kept: Vec<FeasibleMechanism>,
    gap: Option<f64>,
}

impl FeasibleMechanisms {
    fn new(kept: impl IntoIterator<Item = impl Into<FeasibleMechanism>>, gap: Option<f64>) -> Self {
        Self { kept: kept.into_iter().map(Into::into).collect(), gap }
    }
}

/// A request with its families.
pub(super) struct Planner<'a> {
    request: &'a Request,
    pub(super) limits: ReleaseLimit,
    families: Vec<PlanFamily>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(request: &'a Request) -> Result<Self> {
        request.check()?;
        Ok(Self { request, limits: ReleaseLimit::new(request)?, families: families(request)? })
    }

    /// The best mechanism of every family that satisfies the request, ranked; and how much better any other could be.
    pub(super) fn settle(&self, progress: &Progress) -> Result<RankedPlan> {
        let candidates = match (self.request.noise, self.request.trust) {
            (Noise::None, _) => self.without_noise(progress),
            (_, Trust::OneAggregator) => self.with_one_aggregator(),
            (Noise::Aggregators, Trust::Owners) => self.with_noise_and_owners(),
            (Noise::Any, Trust::Owners) => {
                let mut all = self.with_noise_and_owners();
                all.kept.extend(self.plain_alternatives(progress)?.kept);
                all
            }
        };
        self.ranked(candidates)
    }

    /// The mechanisms without noise that compete with those with noise, whose limit on the linked ε may not be theirs.
    fn plain_alternatives(&self, progress: &Progress) -> Result<FeasibleMechanisms> {
        if !self.request.linked_epsilon_for_noise_only {
            return Ok(self.without_noise(progress));
        }
        let request = Request { linked_epsilon: None, linked_epsilon_for_noise_only: false, ..self.request.clone() };
        Ok(Planner::new(&request)?.without_noise(progress))
    }

    /// The best certified mechanism of every family without noise.
    fn without_noise(&self, progress: &Progress) -> FeasibleMechanisms {
        let mut certified: Vec<CertifiedMechanism> = Vec::new();
        for &family in self.families.iter().filter(|family| **family != PlanFamily::Tuned) {
            certified.extend(self.certified(family, &certified));
            progress.advance_by(60 / self.families.len() as u64);
        }
        let gap = match self.request.objective {
            Objective::Sd => Some(self.bound(&mut certified)),
            Objective::Paper { .. } => None,
        };
        if self.families.contains(&PlanFamily::Tuned) {
            certified.extend(tuned::certified(self.request, &self.limits, &certified));
        }
        progress.advance_by(10);
        FeasibleMechanisms::new(certified, gap)
    }

    fn with_one_aggregator(&self) -> FeasibleMechanisms {
        let (planned, least) = noisy::with_one_aggregator(self.request, &self.families);
        let best = least_of(planned.iter().map(|one| one.sd));
        let gap = best.is_finite().then(|| gap(least, best));
        FeasibleMechanisms::new(planned, gap)
    }

    /// The best mechanisms with noise and honest owners. Without a bound: mechanisms with both coins and noise are not ordered
    /// by what they reveal.
    fn with_noise_and_owners(&self) -> FeasibleMechanisms {
        FeasibleMechanisms::new(noisy::with_owners(self.request, &self.limits, &self.families), None)
    }

    /// The best certified mechanism of a family with two parameters.
    fn certified(&self, family: PlanFamily, others: &[CertifiedMechanism]) -> Option<CertifiedMechanism> {
        let search = FamilySearch::new(self.request, &self.limits, family)?;
        self.limits.forget();
        let twin = self.twin(family, others).map(|twin| CandidateLaw { family, ..twin.found });
        if let Some(kept) = twin.and_then(|twin| as_it_stands(self.request, &twin)) {
            return Some(kept);
        }
        let certified = certify(self.request, &self.limits, |aim, near| match near {
            Some(near) => search.best_near(near.participation, aim),
            None => twin.or_else(|| search.best(aim.allowance)),
        });
        certified.map(|kept| tighten(self.request, &search, kept))
    }

    /// A mechanism that is already certified with the laws of this family. Unless single answers are bounded further, a
    /// symmetric law is worth the same in all its forms, with one answer or with several.
    fn twin<'c>(&self, family: PlanFamily, certified: &'c [CertifiedMechanism]) -> Option<&'c CertifiedMechanism> {
        if family.is_one_answer() || self.answers_are_bounded_further() {
            return None;
        }
        certified.iter().find(|other| matches!(other.family, PlanFamily::NormalForm | PlanFamily::Blended))
    }

    /// Whether single answers are bounded by less than all answers of an owner together.
    fn answers_are_bounded_further(&self) -> bool {
        let linked = self.request.linked_epsilon.unwrap_or(f64::INFINITY);
        self.request.answer_epsilon.is_some_and(|answer| answer < linked)
    }

    /// By which share the best could be better in the families with two parameters. Certifies better laws that it finds on the
    /// way.
    fn bound(&self, certified: &mut Vec<CertifiedMechanism>) -> f64 {
        let mut least = f64::INFINITY;
        for &family in self.families.iter().filter(|&&family| self.is_bounded(family)) {
            if let Some(search) = FamilySearch::new(self.request, &self.limits, family) {
                least = least.min(self.bound_family(&search, certified));
            }
        }
        let best = least_of(certified.iter().map(|one| one.sd));
        if best.is_finite() && least.is_finite() { gap(least, best) } else { 0.0 }
    }

    /// A lower bound on the error of every law of one family; infinite if nothing is certified.
    fn bound_family(&self, search: &FamilySearch<'_>, certified: &mut Vec<CertifiedMechanism>) -> f64 {
        for attempt in 0..BOUND_ATTEMPTS {
            let Some(best) = certified.iter().min_by(|a, b| a.sd.total_cmp(&b.sd)) else { break };
            let known = Known { error: best.sd, allowance: best.allowance };
            match search.bound(known, self.bound_budget(), attempt + 1 < BOUND_ATTEMPTS) {
                ErrorBound::AtLeast(error) => return error,
                ErrorBound::Better(found) => certified.extend(certify(self.request, &self.limits, |aim, near| {
                    search.best_near(near.unwrap_or(&found).participation, aim)
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
    fn is_bounded(&self, family: PlanFamily) -> bool {
        let has = |other: PlanFamily| self.families.contains(&other);
        match family {
            PlanFamily::RandomizedResponse => !has(PlanFamily::NormalForm),
            PlanFamily::NormalForm | PlanFamily::NoisySampling => true,
            PlanFamily::Tuned => false,
            PlanFamily::Blended | PlanFamily::Spread(_) if self.answers_are_bounded_further() => true,
            PlanFamily::Blended => !has(PlanFamily::NormalForm),
            PlanFamily::Spread(_) => !has(PlanFamily::NormalForm) && !has(PlanFamily::Blended),
        }
    }

    /// Ranks the candidates of the wanted family, or of all: the least costly first, but the simplest of those that are nearly
    /// as good before it.
    fn ranked(&self, FeasibleMechanisms { mut kept, gap }: FeasibleMechanisms) -> Result<RankedPlan> {
        let wanted =
            |one: &FeasibleMechanism| self.request.family.as_deref().is_none_or(|name| name == one.family.name());
        kept.retain(wanted);
        kept.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        let least = kept.first().ok_or_else(|| nothing_keeps(self.request))?.cost;
        let best = kept.remove(simplest_within(least * (1.0 + EQUAL), &kept));
        retain_best_of_each_name(&best, &mut kept);
        let gap = gap.map(|gap| 1.0 - (1.0 - gap) * (least / best.cost));
        Ok(RankedPlan { rule: SelectionRule::of(least, best.cost), best, others: kept, gap })
    }

    /// The mechanism with its views; the release is the one that was certified, if any. `limit` bounds the work for the others.
    pub(super) fn choose(&self, kept: &FeasibleMechanism, limit: WorkLimit) -> Result<PlannedMechanism> {
        let (mechanism, channel, sd) = (kept.mechanism.clone(), kept.mechanism.channel(), kept.sd);
        let views = match &kept.release {
            Some(release) => Views::with_release(&channel, limit, release),
            None => Views::of(&channel, self.limits.owners(), self.request.target()?, limit),
        }?;
        let interval95_halfwidth = self.request.predicted_half_width(&channel, Confidence::new(0.95)?)?;
        Ok(PlannedMechanism { mechanism, channel, sd, interval95_halfwidth, views })
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

    /// ε of the release if only this share of the claim's owners is honest; `None` means no guarantee.
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
fn simplest_within(most: f64, kept: &[FeasibleMechanism]) -> usize {
    let near = kept.partition_point(|one| one.cost <= most);
    (0..near).min_by_key(|&index| kept[index].complexity()).unwrap_or(0)
}

/// Keeps the first of each name, and none with the name of the best.
fn retain_best_of_each_name(best: &FeasibleMechanism, others: &mut Vec<FeasibleMechanism>) {
    let mut named = HashSet::from([best.name()]);
    others.retain(|other| named.insert(other.name()));
}

/// The families to search, in the order of [`PlanFamily::ALL`].
fn families(request: &Request) -> Result<Vec<PlanFamily>> {
    match &request.family {
        Some(name) => named_families(request, name),
        // Asymmetric laws were never better by half a per cent, and take the most time to certify: only where asked for.
        None => {
            let searched = |family: &PlanFamily| *family != PlanFamily::Tuned && has_form(request, *family);
            Ok(needed_families(request).filter(searched).collect())
        }
    }
}

/// The families of a name, after those from which their search starts.
fn named_families(request: &Request, name: &str) -> Result<Vec<PlanFamily>> {
    let named: Vec<PlanFamily> = needed_families(request).filter(|family| family.name() == name).collect();
    if named.is_empty() {
        return Err(unknown_family(name));
    }
    let noisy = needs_noise(request);
    if noisy && named.iter().any(|family| !family.is_one_answer()) {
        return Err(Error::request(format!(
            "`{name}` has several answers, but noise is added to the number of answers 1"
        ))
        .with_hint("plan a mechanism of one answer, or without noise"));
    }
    if noisy || named != [PlanFamily::Tuned] {
        return Ok(named);
    }
    Ok(vec![PlanFamily::NormalForm, PlanFamily::NoisySampling, PlanFamily::Tuned])
}

fn unknown_family(name: &str) -> Error {
    let mut known = PlanFamily::ALL.map(PlanFamily::name).to_vec();
    known.dedup();
    Error::request(format!("`{name}` is not a family that can be planned"))
        .with_hint(format!("known names: {}", known.join(", ")))
}

/// All families, without three pairs of `spread` if two allow every law. A signal of J pairs leans by at most 1/J, so two are
/// enough if the bound on an answer allows a lean of one half.
fn needed_families(request: &Request) -> impl Iterator<Item = PlanFamily> {
    let two_pairs_do = request.answer_epsilon.is_none_or(|epsilon| (0.5 * epsilon).tanh() >= 0.5);
    PlanFamily::ALL.into_iter().filter(move |family| *family != PlanFamily::Spread(3) || !two_pairs_do)
}

/// Whether a family has as many answers as the request asks for and bounds.
fn has_form(request: &Request, family: PlanFamily) -> bool {
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
