//! Planning contributions: one of several options, a ballot, or a series.
//!
//! With noise everything follows from closed forms, and a plan takes no search. By owners' coins alone, the share of owners who
//! take part is searched for, and each share has the fewest wrong answers that its certificate allows.

mod noisy;
mod owners;
#[cfg(test)]
mod tests;
mod words;

use super::request::{Noise, Request, Trust};
use super::solve::{self, Solved, Tradeoff, Unknown, nothing_keeps};
use crate::channel::Channel;
use crate::contribution::Contributions;
use crate::error::{Error, Result};
use crate::estimate::Confidence;
use crate::privacy::WorkLimit;
use crate::privacy::contributions::ContributionViews;
use crate::probability::Probability;
use crate::progress::Progress;
use crate::truth::PerTruth;

/// The best contributions and everything else that was found.
#[derive(Clone, Debug)]
pub struct ContributionPlan {
    /// The mechanism that is planned, its claims certified.
    pub best: PlannedContributions,
    /// The other one of noise and owners' coins alone, if either was allowed.
    pub alternatives: Vec<PlannedContributions>,
    /// The largest share by which another mechanism of the same form could have a smaller error; `None` if it was not bounded.
    pub gap: Option<f64>,
    /// Whose honesty the bounded claim depends on.
    pub trust: Trust,
    /// The smallest error at other bounds of the linked ε, if the aggregators add noise; empty otherwise.
    pub tradeoff: Vec<Tradeoff>,
    /// The expected owners.
    pub owners: u64,
    /// The smallest batch that may be released.
    pub minimum_batch: u64,
    /// The owners whom the claims count on.
    pub claim_owners: u64,
}

/// One mechanism of contributions with its error and its guarantees.
#[derive(Clone, Debug)]
pub struct PlannedContributions {
    /// The mechanism.
    pub mechanism: Contributions,
    /// The law of one count by itself.
    pub channel: Channel,
    /// The predicted standard deviation of one count, as the prior weighs it.
    pub sd: f64,
    /// Half the width of the 95 % interval of one count that is to be expected.
    pub interval95_halfwidth: f64,
    /// Its guarantees, for the claim's owners and everything that is published together.
    pub views: ContributionViews,
}

impl PlannedContributions {
    /// The probability that an owner's bit of one count is set, by whether the owner belongs to it: p and q.
    pub fn count_law(&self) -> PerTruth<Probability> {
        self.mechanism.count_law()
    }

    fn of(request: &Request, candidate: Candidate) -> Result<Self> {
        let Candidate { mechanism, sd } = candidate;
        let channel = mechanism.count_channel();
        Ok(Self {
            sd,
            interval95_halfwidth: request.predicted_half_width(&channel, Confidence::new(0.95)?)?,
            views: ContributionViews::of(&mechanism, request.claim_owners()?, request.target()?, WorkLimit::default())?,
            channel,
            mechanism,
        })
    }
}

impl ContributionPlan {
    /// The ε of the claim that the request bounds; `None` means no guarantee.
    pub fn epsilon(&self) -> Option<f64> {
        let views = &self.best.views;
        match self.trust {
            Trust::OneAggregator => views.one_aggregator.map(|claim| claim.upper()),
            Trust::Owners => views.release.value().map(|claim| claim.upper()),
        }
    }
}

/// A plan of contributions and the request that it answers, with the open quantity filled in.
#[derive(Clone, Debug)]
pub struct SolvedContributions {
    /// The request, complete.
    pub request: Request,
    /// Its plan.
    pub plan: ContributionPlan,
    /// The quantity that was solved for.
    pub unknown: Unknown,
}

impl SolvedContributions {
    /// The value that was solved for.
    pub fn value(&self) -> f64 {
        match self.unknown {
            Unknown::Error => self.plan.best.sd,
            Unknown::Epsilon => self.plan.epsilon().unwrap_or(f64::INFINITY),
            Unknown::Owners => self.plan.owners as f64,
        }
    }
}

/// A solved plan of whatever a request asks.
#[derive(Clone, Debug)]
pub enum AnySolved {
    /// Of a yes/no question: two options and a single count are one, too.
    YesNo(Box<Solved>),
    /// Of several counts.
    Contributions(Box<SolvedContributions>),
}

/// Plans a request for anything whose error, ε or owners are left open, as [`solve`](super::solve) does for yes/no questions.
///
/// ```
/// use uptack::plan::{AnySolved, Asked, Prior, Request, Unknown, solve_any};
/// use uptack::privacy::Epsilon;
/// use uptack::Progress;
/// let mut request = Request::one_aggregator(50_186, Prior::at(0), Epsilon::new(1.0)?)?;
/// request.asked = Asked::Options(12);
/// let AnySolved::Contributions(solved) = solve_any(&request, Unknown::Epsilon, Some(6.0), &Progress::default())? else {
///     unreachable!("twelve options are several counts");
/// };
/// assert!(solved.plan.best.sd <= 6.0 && solved.value() < 1.0);
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn solve_any(request: &Request, unknown: Unknown, error: Option<f64>, progress: &Progress) -> Result<AnySolved> {
    if request.asked.is_yes_no() {
        return solve::solve(request, unknown, error, progress).map(Box::new).map(AnySolved::YesNo);
    }
    let request = solve::filled_in(request, unknown, error, progress)?;
    let plan = plan_contributions(&request)?;
    solve::check_error(&request, unknown, error, plan.best.sd)?;
    progress.advance_by(super::PROGRESS.saturating_sub(progress.done()));
    let request = solve::stated(request, unknown, plan.epsilon())?;
    Ok(AnySolved::Contributions(Box::new(SolvedContributions { request, plan, unknown })))
}

/// The best mechanism for a request that asks for several counts.
///
/// ```
/// use uptack::plan::{Asked, Prior, Request, plan_contributions};
/// use uptack::privacy::Epsilon;
/// let mut request = Request::one_aggregator(50_186, Prior::at(100), Epsilon::new(1.0)?)?;
/// // A count every five minutes for a day.
/// request.asked = Asked::Counts { counts: 288, most: 1 };
/// let plan = plan_contributions(&request)?;
/// assert!(plan.best.sd < 6.71 && plan.epsilon().is_some_and(|epsilon| epsilon <= 1.0), "{}", plan.best.sd);
/// assert!(plan.best.views.linked.is_some_and(|linked| linked <= 8.0));
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn plan_contributions(request: &Request) -> Result<ContributionPlan> {
    let mut planned = candidates(request)?.into_iter().map(|candidate| PlannedContributions::of(request, candidate));
    let best = planned.next().unwrap_or_else(|| Err(nothing_keeps(request)))?;
    let alternatives = planned.collect::<Result<_>>()?;
    Ok(ContributionPlan {
        alternatives,
        gap: None,
        trust: request.trust,
        tradeoff: solve::tradeoff_around(request, best.sd),
        owners: request.owners,
        minimum_batch: request.minimum_batch,
        claim_owners: request.claim_owners()?,
        best,
    })
}

/// The error of [`plan_contributions`] alone.
pub(super) fn least_sd(request: &Request) -> Result<f64> {
    let candidates = candidates(request)?;
    candidates.first().map(|candidate| candidate.sd).ok_or_else(|| nothing_keeps(request))
}

/// A mechanism that satisfies the request, with its error.
struct Candidate {
    mechanism: Contributions,
    sd: f64,
}

/// The mechanisms that satisfy the request, the best first: one with noise, one by owners' coins alone, as far as either is allowed.
fn candidates(request: &Request) -> Result<Vec<Candidate>> {
    request.check()?;
    if request.asked.is_yes_no() {
        return Err(Error::request("a yes/no question has one count")
            .with_hint("plan a yes/no question")
            .about("asked"));
    }
    let noisy = (request.noise != Noise::None).then(|| noisy::planned(request)).flatten();
    let plain =
        (request.trust == Trust::Owners && request.noise != Noise::Aggregators).then(|| plain(request)).flatten();
    let measured = |mechanism: Contributions| {
        let sd = request.predicted_sd(&mechanism.count_channel()).ok().filter(|sd| sd.is_finite())?;
        Some(Candidate { mechanism, sd })
    };
    let mut candidates: Vec<Candidate> = noisy.into_iter().chain(plain).filter_map(measured).collect();
    candidates.sort_by(|one, other| one.sd.total_cmp(&other.sd));
    Ok(candidates)
}

/// The best mechanism by owners' coins alone, to which the usual limit on the linked ε does not apply.
fn plain(request: &Request) -> Option<Contributions> {
    if request.asked.most() > 1 {
        return None;
    }
    let linked_epsilon = request.linked_epsilon.filter(|_| !request.linked_epsilon_for_noise_only);
    owners::planned(&Request { linked_epsilon, ..request.clone() })
}
