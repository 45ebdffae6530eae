//! The inverse questions: the least ε, or the fewest owners, for a wanted error.
//!
//! All of them ask [`least_sd`](super::least_sd), the error of a plan.

use super::infeasible::{EPSILONS, unattainable};
use super::request::{Request, Trust};
use super::root::smallest;
use super::{Plan, least_sd, plan_with};
use crate::error::{Error, Result};
use crate::privacy::{Epsilon, MOST_OWNERS};
use crate::simulate::Progress;

/// What is left open and follows from everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The standard deviation of the estimate.
    Error,
    /// The ε of the release.
    Epsilon,
    /// The number of owners.
    Owners,
}

/// A plan and the request that it answers, with what was open filled in.
#[derive(Clone, Debug)]
pub struct Solved {
    /// The request, complete.
    pub request: Request,
    /// Its plan.
    pub plan: Plan,
    /// What was solved for.
    pub unknown: Unknown,
}

impl Solved {
    /// What was solved for, as a number.
    pub fn value(&self) -> f64 {
        match self.unknown {
            Unknown::Error => self.plan.best.sd,
            Unknown::Epsilon => self.plan.epsilon().unwrap_or(f64::INFINITY),
            Unknown::Owners => self.plan.owners as f64,
        }
    }
}

/// Plans a request whose error, ε or owners are left open. `error` is the largest standard deviation that is wanted; where
/// the error itself is open it may be left out.
///
/// ```
/// use uptack::plan::{Prior, Request, Unknown, solve};
/// use uptack::privacy::Epsilon;
/// use uptack::simulate::Progress;
/// let request = Request::one_aggregator(50_000, Prior::at(500), Epsilon::new(1.0)?)?;
/// let solved = solve(&request, Unknown::Epsilon, Some(8.0), &Progress::default())?;
/// assert!(solved.plan.best.sd <= 8.0 && solved.value() < 1.0);
/// assert!(solve(&request, Unknown::Error, Some(0.1), &Progress::default()).is_err());
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn solve(request: &Request, unknown: Unknown, error: Option<f64>, progress: &Progress) -> Result<Solved> {
    let wanted = || error.ok_or_else(|| Error::request("the error has to be given where something else is solved for"));
    let plan = match unknown {
        Unknown::Error => plan_within(request, error, progress)?,
        Unknown::Epsilon => solve_epsilon_with(request, wanted()?, progress)?,
        Unknown::Owners => solve_owners_with(request, wanted()?, progress)?,
    };
    let mut request = Request { owners: plan.owners, minimum_batch: plan.minimum_batch, ..request.clone() };
    if let (Unknown::Epsilon, Some((solved, _)), Some(epsilon)) = (unknown, &mut request.release, plan.epsilon()) {
        *solved = Epsilon::new(epsilon)?;
    }
    Ok(Solved { request, plan, unknown })
}

/// The plan of a request, if its error is at most the one that is given.
fn plan_within(request: &Request, error: Option<f64>, progress: &Progress) -> Result<Plan> {
    let plan = plan_with(request, progress)?;
    match error {
        Some(error) if plan.best.sd > error => Err(unattainable(request, error)),
        _ => Ok(plan),
    }
}

/// The plan with the least ε of the release, to a per mille, whose error is at most `error`; the request's own ε is ignored.
pub fn solve_epsilon(request: &Request, error: f64) -> Result<Plan> {
    solve_epsilon_with(request, error, &Progress::default())
}

/// The same, counting its progress up to [`PROGRESS`](super::PROGRESS).
pub fn solve_epsilon_with(request: &Request, error: f64, progress: &Progress) -> Result<Plan> {
    let Some((_, delta)) = request.release else {
        return Err(Error::request("epsilon can only be solved for at a delta").with_hint("give a delta"));
    };
    let with_epsilon = |epsilon: f64| -> Result<Request> {
        Ok(Request { release: Some((Epsilon::new(epsilon)?, delta)), ..request.clone() })
    };
    let sd = |epsilon: f64| {
        advance_search(progress, 3);
        with_epsilon(epsilon).and_then(|request| least_sd(&request)).unwrap_or(f64::INFINITY)
    };
    match smallest(EPSILONS, 1.0, 1e-3, error, sd) {
        Some(epsilon) => plan_with(&with_epsilon(epsilon)?, progress),
        // The request's own ε is not a limit here: explain with the largest that was tried.
        None => Err(unattainable(&with_epsilon(EPSILONS.1)?, error)),
    }
}

/// The search for an unknown, of any length, takes up the first part of the progress.
fn advance_search(progress: &Progress, by: u64) {
    if progress.done() < 40 {
        progress.advance_by(by);
    }
}

/// The plan with the fewest owners whose error is at most `error`; the minimum batch keeps its share of them.
///
/// With fewer than two owners per yes-owner the error may fall again, because few no-owners are left; such crowds are tried
/// only if two owners per yes-owner are enough. If one honest aggregator is counted on and no owner, no-owners add to the
/// error and hide nobody: either the yes-owners alone are enough, or no crowd is.
pub fn solve_owners(request: &Request, error: f64) -> Result<Plan> {
    solve_owners_with(request, error, &Progress::default())
}

/// The same, counting its progress up to [`PROGRESS`](super::PROGRESS).
pub fn solve_owners_with(request: &Request, error: f64, progress: &Progress) -> Result<Plan> {
    let fewest = request.yes.high.max(2);
    let sd = |owners: u64| {
        advance_search(progress, 2);
        least_sd(&request.with_owners(owners as f64)).unwrap_or(f64::INFINITY)
    };
    let found = match request.trust {
        Trust::OneAggregator => Some(fewest).filter(|&fewest| sd(fewest) <= error),
        Trust::Owners => fewest_owners(fewest, error, sd),
    };
    let owners = found.ok_or_else(|| unattainable(request, error))?;
    plan_with(&request.with_owners(owners as f64), progress)
}

/// The fewest owners whose error is small enough, to a thousandth.
fn fewest_owners(fewest: u64, error: f64, sd: impl Fn(u64) -> f64) -> Option<u64> {
    let double = fewest.saturating_mul(2).min(MOST_OWNERS);
    let sd_of_double = sd(double);
    if sd_of_double <= error && sd(fewest) <= error {
        return Some(fewest);
    }
    let (mut low, mut high) = match sd_of_double > error {
        true => enough_owners(double, sd_of_double, error, &sd)?,
        false => (fewest, double),
    };
    while high - low > (high / 1000).max(1) {
        let half = low + (high - low) / 2;
        if sd(half) <= error { high = half } else { low = half }
    }
    Some(high)
}

/// A number of owners that is too small and a larger one that is enough: upwards from `low` in growing steps, because large
/// crowds cost more to account for. The error levels off as a crowd grows; if it does so above what is wanted, no number is
/// enough.
fn enough_owners(mut low: u64, mut sd_of_low: f64, error: f64, sd: impl Fn(u64) -> f64) -> Option<(u64, u64)> {
    while low < MOST_OWNERS {
        let high = if low < 100 { 2 * low } else { low + low / 2 }.min(MOST_OWNERS);
        let sd_of_high = sd(high);
        if sd_of_high <= error {
            return Some((low, high));
        }
        if sd_of_high > sd_of_low * (1.0 - LEVEL) && high > 10_000 {
            return None;
        }
        (low, sd_of_low) = (high, sd_of_high);
    }
    None
}

/// Half as many owners again do not help if they lower the error by less than this share.
const LEVEL: f64 = 2e-4;
