//! Choosing a mechanism: nobody wants to choose π's.
//!
//! Given how many owners there are, roughly how many hold yes, and how private it has to be, [`plan`] searches all
//! families for the mechanism of least error whose certificate keeps the request. [`solve_epsilon`] and [`solve_owners`]
//! answer the inverse questions.
//!
//! What a family is worth is one number: the error of its best *certified* mechanism. Plans, tables, charts, refusals and
//! solutions all rest on it. The search is deterministic; for the families of two numbers it ends with a bound on how
//! much better any other member can be ([`Plan::gap`]).
//!
//! ```
//! use uptack::plan::{Prior, Request, plan};
//! use uptack::privacy::{Delta, Epsilon};
//! let mut request = Request::new(50_000, Prior::at(500));
//! request.release = Some((Epsilon::new(1.0)?, Delta::new(1e-8)?));
//! let plan = plan(&request)?;
//! assert!(plan.best.sd < 7.05, "{}", plan.best.sd);
//! assert!(plan.best.views.release.value().unwrap().upper() <= 1.0);
//! assert!(plan.gap.unwrap() < 0.01);
//! # Ok::<(), uptack::Error>(())
//! ```

mod bound;
mod certify;
mod curve;
mod family;
mod law;
mod limits;
mod request;
mod search;
mod solve;
mod tuned;

pub use request::{Form, Objective, Over, Prior, Request};
pub use solve::{
    Infeasible, explain, solve_epsilon, solve_epsilon_with, solve_owners, solve_owners_with, unattainable,
};

use bound::Bound;
use certify::{Certified, as_it_stands, certify, tighten};
use family::Family;
use limits::Limits;
use search::{Aim, Found, Search};

use crate::channel::Channel;
use crate::error::Error;
use crate::fraction::Fraction;
use crate::mechanism::Mechanism;
use crate::numeric::normal;
use crate::privacy::{self, Views, WorkLimit};
use crate::simulate::Progress;

/// The best mechanism, with what else was found.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The mechanism that is planned, its claims certified.
    pub best: Choice,
    /// Why it is this one.
    pub rule: Rule,
    /// The best of each other family, the better ones first.
    ///
    /// All of them keep the request by a full certificate. What one of several answers together with the tallies gives away
    /// is claimed to be no more than what all answers of an owner give away, which may be much wider than the truth.
    pub alternatives: Vec<Choice>,
    /// By which share of itself the error could be smaller at most, with any member of the families that are bounded:
    /// `randomized-response`, `normal-form`, `noisy-sampling`, and `blended` and `spread` in the form in which they are
    /// planned, as far as they were asked for. None where another objective than the error is minimized.
    pub gap: Option<f64>,
    /// The owners who are expected.
    pub owners: u64,
    /// The smallest batch that may be released.
    pub minimum_batch: u64,
    /// The owners whom the claims count on.
    pub claim_owners: u64,
    /// ε of the release at the same δ if only this share of the claim's owners is honest; none is no guarantee.
    pub robustness: Vec<(Fraction, Option<f64>)>,
    /// How often the accounting was called in the search.
    pub calls: u64,
}

/// Why a plan is the one it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// It has the least error.
    Best,
    /// It is the simplest of those that are nearly as good as the best, which is better by this share.
    Simplest(f64),
}

/// One mechanism with its error and its guarantees.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Its law.
    pub channel: Channel,
    /// The predicted standard deviation, as the prior weighs it.
    pub sd: f64,
    /// Half the width of a 95 % interval: 1.96 standard deviations.
    pub interval95_halfwidth: f64,
    /// What it gives away, for the claim's owners.
    pub views: Views,
}

/// Why there is no plan for the paper's objective without a bound on the error.
pub fn paper_objective_alone() -> Error {
    Error::request(
        "the paper's objective alone has the minimum 0, which every deterministic law reaches: never answering, but also \
         telling the plain truth",
    )
    .with_hint("bound the error: the objective is then minimized among mechanisms that are exact enough")
}

/// δ of a plan that bounds none.
pub const USUAL_DELTA: f64 = 1e-8;
/// A simpler mechanism is preferred to a better one if its error is larger by less than this share.
pub const EQUAL: f64 = 2e-3;
/// A plan's progress counts up to this.
pub const PROGRESS: u64 = 100;

/// Work for what is shown for comparison only, in steps of about ten nanoseconds.
const LITTLE_WORK: u64 = 2_000_000;

/// The best mechanism for a request.
pub fn plan(request: &Request) -> Result<Plan, Error> {
    plan_with(request, &Progress::default())
}

/// The same, counting its progress up to [`PROGRESS`].
pub fn plan_with(request: &Request, progress: &Progress) -> Result<Plan, Error> {
    let planner = Planner::new(request)?;
    let Settled { best, rule, others, gap } = planner.settle(progress)?;
    let claim_owners = planner.limits.owners();
    // As anybody computes it again from the card.
    let best = planner.choose(&best, WorkLimit::default())?;
    progress.advance_by(10);
    // Joint views of several answers take longer than everything else: all answers of an owner together bound them.
    let little = |family: Family| WorkLimit::steps(if family.is_one_answer() { LITTLE_WORK } else { 0 });
    let alternative = |other: &Certified| planner.choose(other, little(other.family));
    let alternatives = others.iter().map(alternative).collect::<Result<_, _>>()?;
    let robustness = planner.robustness(&best.channel)?;
    progress.advance_by(PROGRESS.saturating_sub(progress.done()));
    let (owners, minimum_batch) = (request.owners, request.minimum_batch);
    let calls = planner.limits.calls();
    Ok(Plan { best, rule, alternatives, gap, owners, minimum_batch, claim_owners, robustness, calls })
}

/// The mechanism of [`plan`] alone, certified to keep the request.
///
/// What else a plan tells (every view, how it fares with fewer honest owners, the gap) takes most of its time in large
/// crowds, above all where there are several answers.
///
/// ```
/// use uptack::plan::{Prior, Request, least_error};
/// let mut request = Request::new(50_000, Prior::at(500));
/// request.linked_epsilon = Some(3f64.ln());
/// // With a yes or no truth nothing is better than randomized response then.
/// assert!(least_error(&request)?.to_string().starts_with("randomized-response(t=0.7"));
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn least_error(request: &Request) -> Result<Mechanism, Error> {
    Ok(Planner::new(request)?.settle(&Progress::default())?.best.mechanism)
}

/// The error of [`plan`] alone.
pub fn least_sd(request: &Request) -> Result<f64, Error> {
    Ok(Planner::new(request)?.settle(&Progress::default())?.best.sd)
}

/// The least certified error of each family under the constraints, by its name, as [`plan`] ranks them. A family that
/// cannot keep them is left out.
pub fn errors_by_family(request: &Request) -> Result<Vec<(&'static str, f64)>, Error> {
    let settled = Planner::new(request)?.settle(&Progress::default())?;
    let all = std::iter::once(&settled.best).chain(&settled.others);
    Ok(all.map(|certified| (certified.family.name(), certified.sd)).collect())
}

/// What was certified: the plan, and the best of every other family.
struct Settled {
    best: Certified,
    rule: Rule,
    others: Vec<Certified>,
    gap: Option<f64>,
}

/// A request with its families.
struct Planner<'a> {
    request: &'a Request,
    limits: Limits,
    families: Vec<Family>,
}

impl<'a> Planner<'a> {
    fn new(request: &'a Request) -> Result<Self, Error> {
        request.check()?;
        Ok(Self { request, limits: Limits::new(request)?, families: families(request)? })
    }

    /// The best certified mechanism of every family, ranked; and how much better the bounded families could be.
    fn settle(&self, progress: &Progress) -> Result<Settled, Error> {
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
        self.ranked(certified, gap)
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
    fn ranked(&self, mut certified: Vec<Certified>, gap: Option<f64>) -> Result<Settled, Error> {
        let wanted = |one: &Certified| self.request.family.as_deref().is_none_or(|name| name == one.family.name());
        certified.retain(wanted);
        certified.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        let Some(least) = certified.first().map(|best| best.cost) else {
            return Err(solve::nothing_keeps(self.request));
        };
        let near = certified.iter().enumerate().filter(|(_, one)| one.cost <= least * (1.0 + EQUAL));
        let simplest = near.min_by_key(|(_, one)| rank(one.family)).map_or(0, |(index, _)| index);
        let best = certified.remove(simplest);
        let behind = 1.0 - least / best.cost;
        let rule = if behind > 0.0 { Rule::Simplest(behind) } else { Rule::Best };
        let mut named = vec![best.family.name()];
        certified.retain(|other| {
            let new = !named.contains(&other.family.name());
            named.push(other.family.name());
            new
        });
        let gap = gap.map(|gap| 1.0 - (1.0 - gap) * (least / best.cost));
        Ok(Settled { best, rule, others: certified, gap })
    }

    /// With the release as it was certified; `limit` is for the joint views.
    fn choose(&self, certified: &Certified, limit: WorkLimit) -> Result<Choice, Error> {
        let Certified { mechanism, channel, sd, .. } = certified.clone();
        let views = Views::with_release(&channel, limit, &certified.release)?;
        let interval95_halfwidth = normal::upper_quantile(0.025) * sd;
        Ok(Choice { mechanism, channel, sd, interval95_halfwidth, views })
    }

    fn robustness(&self, channel: &Channel) -> Result<Vec<(Fraction, Option<f64>)>, Error> {
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
    let formed = |family: &Family| match request.form {
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
    // The asymmetric search needs somewhere to start from.
    let starts =
        if name == Family::Tuned.name() { vec![Family::NormalForm, Family::NoisySampling] } else { Vec::new() };
    if named.is_empty() {
        let mut known: Vec<&str> = Family::ALL.iter().map(|family| family.name()).collect();
        known.dedup();
        return Err(
            Error::request(format!("`{name}` is not planned")).with_hint(format!("known are {}", known.join(", ")))
        );
    }
    Ok(starts.into_iter().chain(named).collect())
}
