//! One request: what every family can do under it, ranked.

use super::bound::Bound;
use super::certify::{self, Certified, as_it_stands, certify, tighten};
use super::family::Family;
use super::limits::Limits;
use super::noisy;
use super::request::{Form, Noise, Objective, Request, Trust};
use super::search::{Aim, Found, Search};
use super::{Choice, EQUAL, Rule, solve, tuned};
use crate::channel::Channel;
use crate::error::Error;
use crate::fraction::Fraction;
use crate::mechanism::Mechanism;
use crate::numeric::normal;
use crate::privacy::{self, Guarantee, Views, WorkLimit};
use crate::simulate::Progress;

/// What was certified: the plan, and the best of every other family.
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
    /// What the release gives away, where the request needed to know.
    pub(super) release: Option<Guarantee>,
}

impl Kept {
    pub(super) fn name(&self) -> &'static str {
        if self.is_noisy() { self.family.noisy_name() } else { self.family.name() }
    }

    fn is_noisy(&self) -> bool {
        self.mechanism.noise().is_some()
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

/// A request with its families.
pub(super) struct Planner<'a> {
    request: &'a Request,
    pub(super) limits: Limits,
    families: Vec<Family>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(request: &'a Request) -> Result<Self, Error> {
        request.check()?;
        Ok(Self { request, limits: Limits::new(request)?, families: families(request)? })
    }

    /// The best mechanism of every family that keeps the request, ranked; and how much better any other could be.
    pub(super) fn settle(&self, progress: &Progress) -> Result<Settled, Error> {
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
            certified.extend(self.tuned(&certified));
        }
        progress.advance_by(10);
        Candidates { kept: certified.into_iter().map(Kept::from).collect(), gap }
    }

    fn with_one_aggregator(&self) -> Candidates {
        let (planned, least) = noisy::with_one_aggregator(self.request, &self.families);
        let best = planned.iter().map(|one| one.sd).fold(f64::INFINITY, f64::min);
        let gap = Some((1.0 - least / best).max(0.0)).filter(|_| best.is_finite());
        Candidates { kept: planned.into_iter().map(Kept::from).collect(), gap }
    }

    /// Not bounded: noise and coins together have no order in which one mechanism gives away less than another.
    fn with_noise_and_owners(&self) -> Candidates {
        let planned = noisy::with_owners(self.request, &self.limits, &self.families);
        Candidates { kept: planned.into_iter().map(Kept::from).collect(), gap: None }
    }

    /// The best certified mechanism of a family of two numbers.
    fn certified(&self, family: Family, others: &[Certified]) -> Option<Certified> {
        let search = Search::new(self.request, &self.limits, family)?;
        self.limits.forget();
        // Then nothing tells the several-answer forms of a law from its one-answer form.
        let twin = others.iter().find(|other| {
            let alike = matches!(other.family, Family::NormalForm | Family::Blended);
            alike && !family.is_one_answer() && !self.answers_are_bounded_further()
        });
        if let Some(twin) = twin {
            if let Some(kept) = as_it_stands(self.request, &Found { family, ..twin.found }) {
                return Some(kept);
            }
            let same = |aim: &Aim, near: Option<&Found>| match near {
                None => Some(Found { family, ..twin.found }),
                Some(near) => search.best_near(near.place, aim),
            };
            return certify(self.request, &self.limits, same).map(|kept| tighten(self.request, &search, kept));
        }
        let certified = certify(self.request, &self.limits, |aim, near| match near {
            Some(near) => search.best_near(near.place, aim),
            None => search.best(aim.allowance),
        });
        certified.map(|kept| tighten(self.request, &search, kept))
    }

    /// Whether single answers are bounded by less than all answers of an owner together.
    fn answers_are_bounded_further(&self) -> bool {
        let linked = self.request.linked_epsilon.unwrap_or(f64::INFINITY);
        self.request.answer_epsilon.is_some_and(|answer| answer < linked)
    }

    /// By which share the best could be better in the families of two numbers; certifies what turns out better on the way.
    fn bound(&self, certified: &mut Vec<Certified>) -> f64 {
        let budget = match self.limits.owners() {
            0..100_000 => 300,
            100_000..5_000_000 => 80,
            _ => 40,
        };
        let mut least = f64::INFINITY;
        for &family in self.families.iter().filter(|&&family| self.is_bounded(family)) {
            let Some(search) = Search::new(self.request, &self.limits, family) else { continue };
            for attempt in 0..3 {
                let best = certified.iter().min_by(|a, b| a.sd.total_cmp(&b.sd));
                let Some((known, allowance)) = best.map(|best| (best.sd, best.allowance)) else { break };
                match search.bound(known, allowance, budget, attempt < 2) {
                    Bound::AtLeast(error) => {
                        least = least.min(error);
                        break;
                    }
                    Bound::Better(found) => {
                        let again = |aim: &Aim, near: Option<&Found>| {
                            search.best_near(near.map_or(found.place, |near| near.place), aim)
                        };
                        certified.extend(certify(self.request, &self.limits, again));
                    }
                }
            }
        }
        let best = certified.iter().map(|one| one.sd).fold(f64::INFINITY, f64::min);
        if best.is_finite() && least.is_finite() { (1.0 - least / best).max(0.0) } else { 0.0 }
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

    fn tuned(&self, starts: &[Certified]) -> Option<Certified> {
        tuned::certified(self.request, &self.limits, starts)
    }

    /// The least costly first; the simplest of those that are nearly as good before it.
    fn ranked(&self, Candidates { mut kept, gap }: Candidates) -> Result<Settled, Error> {
        let wanted = |one: &Kept| self.request.family.as_deref().is_none_or(|name| name == one.family.name());
        kept.retain(wanted);
        kept.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        let Some(least) = kept.first().map(|best| best.cost) else {
            return Err(solve::nothing_keeps(self.request));
        };
        let near = kept.iter().enumerate().filter(|(_, one)| one.cost <= least * (1.0 + EQUAL));
        let simplest = near.min_by_key(|(_, one)| (one.is_noisy(), rank(one.family))).map_or(0, |(index, _)| index);
        let best = kept.remove(simplest);
        let behind = 1.0 - least / best.cost;
        let rule = if behind > 0.0 { Rule::Simplest(behind) } else { Rule::Best };
        let mut named = vec![best.name()];
        kept.retain(|other| {
            let new = !named.contains(&other.name());
            named.push(other.name());
            new
        });
        let gap = gap.map(|gap| 1.0 - (1.0 - gap) * (least / best.cost));
        Ok(Settled { best, rule, others: kept, gap })
    }

    /// With the release as it was certified; `limit` is for the joint views, and for the release where it was not.
    pub(super) fn choose(&self, kept: &Kept, limit: WorkLimit) -> Result<Choice, Error> {
        let (mechanism, channel, sd) = (kept.mechanism.clone(), kept.mechanism.channel(), kept.sd);
        let views = match &kept.release {
            Some(release) => Views::with_release(&channel, limit, release),
            None => Views::of(&channel, self.limits.owners(), certify::target(self.request)?, limit),
        }?;
        let interval95_halfwidth = normal::upper_quantile(0.025) * sd;
        Ok(Choice { mechanism, channel, sd, interval95_halfwidth, views })
    }

    pub(super) fn robustness(&self, channel: &Channel) -> Result<Vec<(Fraction, Option<f64>)>, Error> {
        if self.request.trust == Trust::OneAggregator {
            return Ok(Vec::new());
        }
        let target = certify::target(self.request)?;
        let shares = [(9, 10), (3, 4), (1, 2)].map(|(part, whole)| Fraction::new(part, whole));
        let degraded = |share: Fraction| {
            let owners = privacy::honest_owners(self.limits.owners(), &share).ok()?;
            let guarantee = privacy::release(channel, owners).ok()?.guarantee(target);
            Some((share, guarantee.value().map(|value| value.upper())))
        };
        Ok(shares.into_iter().filter_map(|share| degraded(share.ok()?)).collect())
    }
}

fn rank(family: Family) -> usize {
    Family::ALL.iter().position(|&known| known == family).unwrap_or(usize::MAX)
}

fn families(request: &Request) -> Result<Vec<Family>, Error> {
    // What bounds one answer of several does not bound their tallies at all.
    let tallies_bounded = request.release.is_some() || request.linked_epsilon.is_some();
    let noisy = request.noise == Noise::Aggregators || request.trust == Trust::OneAggregator;
    let formed = |family: &Family| match request.form {
        _ if noisy => family.is_one_answer(),
        Form::One => family.is_one_answer(),
        Form::Several => !family.is_one_answer(),
        Form::Any => family.is_one_answer() || tallies_bounded,
    };
    // A signal of J pairs leans by at most 1/J. Where half a lean keeps the bound of an answer, two pairs allow every law.
    let two_pairs_do = request.answer_epsilon.is_none_or(|epsilon| (0.5 * epsilon).tanh() >= 0.5);
    let needed = |family: &Family| *family != Family::Spread(3) || !two_pairs_do;
    let Some(name) = &request.family else {
        // Asymmetric laws were never better by half a per cent, and take the most time to certify: only where asked for.
        let all = Family::ALL.into_iter().filter(formed).filter(needed);
        return Ok(all.filter(|family| *family != Family::Tuned).collect());
    };
    let named: Vec<Family> = Family::ALL.into_iter().filter(needed).filter(|family| family.name() == name).collect();
    if noisy && named.iter().any(|family| !family.is_one_answer()) {
        return Err(Error::request(format!(
            "`{name}` has several answers, and noise is added to the number of answers 1"
        ))
        .with_hint("plan a mechanism of one answer, or without noise"));
    }
    // The asymmetric search needs somewhere to start from.
    let starts = if name == Family::Tuned.name() && !noisy {
        vec![Family::NormalForm, Family::NoisySampling]
    } else {
        Vec::new()
    };
    if named.is_empty() {
        let mut known: Vec<&str> = Family::ALL.iter().map(|family| family.name()).collect();
        known.dedup();
        return Err(
            Error::request(format!("`{name}` is not planned")).with_hint(format!("known are {}", known.join(", ")))
        );
    }
    Ok(starts.into_iter().chain(named).collect())
}
