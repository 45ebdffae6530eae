//! The inverse questions: the smallest ε, or the fewest owners, for a wanted error; which constraints keep an error from being
//! attained; and the error as the bound on the linked ε varies.
//!
//! All of them ask [`least_sd`](super::least_sd), the error of a plan.

use std::iter;

use super::request::{Noise, Request, Trust};
use super::root::smallest;
use super::{Plan, least_sd, plan_with};
use crate::error::{Error, Result};
use crate::privacy::{Epsilon, MOST_OWNERS};
use crate::progress::Progress;

/// The quantity that is left open and follows from everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The standard deviation of the estimate.
    Error,
    /// The ε of the release.
    Epsilon,
    /// The number of owners.
    Owners,
}

/// A plan and the request that it answers, with the open quantity filled in.
#[derive(Clone, Debug)]
pub struct Solved {
    /// The request, complete.
    pub request: Request,
    /// Its plan.
    pub plan: Plan,
    /// The quantity that was solved for.
    pub unknown: Unknown,
}

impl Solved {
    /// The value that was solved for.
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
/// use uptack::Progress;
/// let request = Request::one_aggregator(50_000, Prior::at(500), Epsilon::new(1.0)?)?;
/// let solved = solve(&request, Unknown::Epsilon, Some(8.0), &Progress::default())?;
/// assert!(solved.plan.best.sd <= 8.0 && solved.value() < 1.0);
/// assert!(solve(&request, Unknown::Error, Some(0.1), &Progress::default()).is_err());
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn solve(request: &Request, unknown: Unknown, error: Option<f64>, progress: &Progress) -> Result<Solved> {
    let request = filled_in(request, unknown, error, progress)?;
    let plan = plan_with(&request, progress)?;
    check_error(&request, unknown, error, plan.best.sd)?;
    let request = stated(request, unknown, plan.epsilon())?;
    Ok(Solved { request, plan, unknown })
}

/// The request with the open quantity filled in; unchanged if that is the error.
pub(super) fn filled_in(
    request: &Request,
    unknown: Unknown,
    error: Option<f64>,
    progress: &Progress,
) -> Result<Request> {
    let wanted = || error.ok_or_else(|| Error::request("the error must be given to solve for something else"));
    match unknown {
        Unknown::Error => Ok(request.clone()),
        Unknown::Epsilon => least_epsilon(request, wanted()?, progress),
        Unknown::Owners => fewest_owners(request, wanted()?, progress),
    }
}

/// Refuses an error that is larger than was wanted. Quantities that were solved for already keep it.
pub(super) fn check_error(request: &Request, unknown: Unknown, wanted: Option<f64>, sd: f64) -> Result<()> {
    match wanted {
        Some(wanted) if unknown == Unknown::Error && sd > wanted => Err(unattainable(request, wanted)),
        _ => Ok(()),
    }
}

/// The request with the claim of its plan as ε, if ε was solved for.
pub(super) fn stated(mut request: Request, unknown: Unknown, claim: Option<f64>) -> Result<Request> {
    if let (Unknown::Epsilon, Some((solved, _)), Some(epsilon)) = (unknown, &mut request.release, claim) {
        *solved = Epsilon::new(epsilon)?;
    }
    Ok(request)
}

/// The plan with the least ε of the release, to a per mille, whose error is at most `error`; the request's own ε is ignored.
pub fn solve_epsilon(request: &Request, error: f64) -> Result<Plan> {
    solve_epsilon_with(request, error, &Progress::default())
}

/// The same, counting its progress up to [`PROGRESS`](super::PROGRESS).
pub fn solve_epsilon_with(request: &Request, error: f64, progress: &Progress) -> Result<Plan> {
    plan_with(&least_epsilon(request, error, progress)?, progress)
}

/// The request with the least ε at which its error is at most `error`.
fn least_epsilon(request: &Request, error: f64, progress: &Progress) -> Result<Request> {
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
        Some(epsilon) => with_epsilon(epsilon),
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
    plan_with(&fewest_owners(request, error, progress)?, progress)
}

/// The request with the fewest owners for whom the error is at most `error`.
fn fewest_owners(request: &Request, error: f64, progress: &Progress) -> Result<Request> {
    let fewest = request.yes.high.max(2);
    let sd = |owners: u64| {
        advance_search(progress, 2);
        least_sd(&request.with_owners(owners as f64)).unwrap_or(f64::INFINITY)
    };
    let found = match request.trust {
        Trust::OneAggregator => Some(fewest).filter(|&fewest| sd(fewest) <= error),
        Trust::Owners => search_fewest_owners(fewest, error, sd),
    };
    let owners = found.ok_or_else(|| unattainable(request, error))?;
    Ok(request.with_owners(owners as f64))
}

/// The fewest owners whose error is small enough, to a thousandth.
fn search_fewest_owners(fewest: u64, error: f64, sd: impl Fn(u64) -> f64) -> Option<u64> {
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

/// Why a request cannot be satisfied, and which constraints would be enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Infeasible {
    /// The smallest error under the constraints as they are; `None` if no mechanism satisfies them.
    pub least_sd: Option<f64>,
    /// The constraints that bind, and the smallest error without each; zero if no constraint would be left.
    pub binding: Vec<(&'static str, f64)>,
    /// A value of each binding constraint at which the wanted error is attained with all others as they are: the nearest, to
    /// about a hundredth.
    pub nearest: Vec<(&'static str, f64)>,
}

/// The range in which an ε is looked for.
pub(super) const EPSILONS: (f64, f64) = (1e-3, 30.0);
/// A constraint binds if the error falls by more than this share without it.
const BINDING: f64 = 0.005;

/// The constraints that keep the error above `error`, and how far each would have to be relaxed.
pub fn explain(request: &Request, error: f64) -> Result<Infeasible> {
    request.check()?;
    let mut infeasible = Infeasible { least_sd: least_sd(request).ok(), binding: Vec::new(), nearest: Vec::new() };
    for constraint in Constraint::ALL {
        let Some(range) = constraint.room(request) else { continue };
        let Some(sd) = constraint.sd_without(request).filter(|sd| infeasible.is_much_above(*sd)) else { continue };
        infeasible.binding.push((constraint.name(), sd));
        let nearest = smallest(range, range.0, 1e-2, error, |value| constraint.sd_at(request, value));
        infeasible.nearest.extend(nearest.map(|value| (constraint.name(), value)));
    }
    Ok(infeasible)
}

impl Infeasible {
    /// Whether the smallest error under all constraints is clearly larger than this one.
    fn is_much_above(&self, sd: f64) -> bool {
        self.least_sd.is_none_or(|least| sd < least * (1.0 - BINDING))
    }

    fn describe(&self) -> String {
        let least = self.least_sd.map(|least| format!(": the smallest is {}", rounded_up(least)));
        let mut text = least.unwrap_or_default();
        for (name, without) in &self.binding {
            text.push_str(&format!("; {name} binds"));
            if *without > 0.0 {
                text.push_str(&format!(" (without it {})", rounded_up(*without)));
            }
        }
        for (name, value) in &self.nearest {
            text.push_str(&format!("; {name} {} is enough", rounded_up(*value)));
        }
        text
    }
}

/// Five digits of a number, rounded up, so that a value that is called enough is enough.
fn rounded_up(value: f64) -> f64 {
    let scale = 10f64.powi(4 - value.max(1e-300).log10().floor() as i32);
    (value * scale).ceil() / scale
}

/// A quantity that a request can bound.
#[derive(Clone, Copy, Debug)]
enum Constraint {
    Epsilon,
    AnswerEpsilon,
    LinkedEpsilon,
    Participation,
}

impl Constraint {
    const ALL: [Self; 4] = [Self::Epsilon, Self::AnswerEpsilon, Self::LinkedEpsilon, Self::Participation];

    fn name(self) -> &'static str {
        match self {
            Self::Epsilon => "epsilon",
            Self::AnswerEpsilon => "answer-epsilon",
            Self::LinkedEpsilon => "linked-epsilon",
            Self::Participation => "participation",
        }
    }

    fn value(self, request: &Request) -> Option<f64> {
        match self {
            Self::Epsilon => request.release_epsilon(),
            Self::AnswerEpsilon => request.answer_epsilon,
            Self::LinkedEpsilon => request.linked_epsilon,
            Self::Participation => request.participation,
        }
    }

    /// The request with another value of this constraint, or without it.
    fn set(self, request: &Request, value: Option<f64>) -> Option<Request> {
        let mut changed = request.clone();
        match self {
            Self::Epsilon => {
                let epsilon = value.map(Epsilon::new).transpose().ok()?;
                changed.release = epsilon.zip(request.release.map(|(_, delta)| delta));
            }
            Self::AnswerEpsilon => changed.answer_epsilon = value,
            Self::LinkedEpsilon => changed.linked_epsilon = value,
            Self::Participation => changed.participation = value,
        }
        Some(changed)
    }

    /// The values from the request's own up to the largest that is tried; `None` if it cannot be relaxed.
    fn room(self, request: &Request) -> Option<(f64, f64)> {
        let (least, most) = match self {
            Self::Epsilon => EPSILONS,
            Self::AnswerEpsilon | Self::LinkedEpsilon => (0.0, EPSILONS.1),
            Self::Participation => (1e-3, 1.0),
        };
        let own = self.value(request)?.max(least);
        (own < most).then_some((own, most))
    }

    /// The smallest error without it: zero if nothing else bounds the request, `None` if no mechanism satisfies it even then.
    fn sd_without(self, request: &Request) -> Option<f64> {
        self.set(request, None)
            .filter(|without| without.check().is_ok())
            .map_or(Some(0.0), |without| least_sd(&without).ok())
    }

    /// The smallest error with another value of it; infinite if no mechanism satisfies it.
    fn sd_at(self, request: &Request, value: f64) -> f64 {
        let changed = self.set(request, Some(value));
        changed.and_then(|request| least_sd(&request).ok()).unwrap_or(f64::INFINITY)
    }
}

/// The error for a request that no mechanism satisfies, however large its error.
pub(super) fn nothing_keeps(request: &Request) -> Error {
    let family =
        request.family.as_ref().map_or("mechanism of the requested form".to_owned(), |name| format!("`{name}`"));
    Error::request(format!("no {family} satisfies all constraints"))
        .with_hint("allow more participation, another form, or a larger epsilon")
}

/// The error for a request whose error cannot be attained, with the constraints that bind and the values that would be enough.
pub fn unattainable(request: &Request, error: f64) -> Error {
    match explain(request, error) {
        Ok(infeasible) => Error::request(format!("an error of {error} cannot be attained{}", infeasible.describe()))
            .with_hint("allow a larger error, or give one of the constraints more room")
            .about("error"),
        Err(cause) => cause,
    }
}

/// The least error at a bound of the linked ε.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tradeoff {
    /// The bound, if there is one.
    pub linked: Option<f64>,
    /// The standard deviation of the estimate.
    pub sd: f64,
}

/// The bounds that are tried if one honest aggregator is enough.
const BOUNDS: [f64; 11] = [14.0, 12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0];
/// The bounds that are tried if each takes a search with certificates.
const FEWER_BOUNDS: [f64; 4] = [12.0, 9.0, 7.0, 5.0];

/// The least error of a request without a bound on the linked ε, and at smaller and smaller bounds. A bound under which there
/// is no plan has no entry.
///
/// ```
/// use uptack::plan::{Prior, Request, tradeoff};
/// use uptack::privacy::Epsilon;
/// let request = Request::one_aggregator(50_000, Prior::at(500), Epsilon::new(1.0)?)?;
/// let tradeoff = tradeoff(&request)?;
/// assert_eq!(tradeoff[0].linked, None);
/// assert!(tradeoff.windows(2).all(|pair| pair[0].sd <= pair[1].sd));
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn tradeoff(request: &Request) -> Result<Vec<Tradeoff>> {
    request.check()?;
    let bounds: &[f64] = if request.trust == Trust::OneAggregator { &BOUNDS } else { &FEWER_BOUNDS };
    let linked = iter::once(None).chain(bounds.iter().copied().map(Some));
    Ok(linked.filter_map(|linked| at(request, linked)).collect())
}

fn at(request: &Request, linked: Option<f64>) -> Option<Tradeoff> {
    let bounded = Request { linked_epsilon: linked, linked_epsilon_for_noise_only: false, ..request.clone() };
    let sd = least_sd(&bounded).ok()?;
    Some(Tradeoff { linked, sd })
}

/// The same with the plan's own bound among the others; empty without noise, where the release itself needs a local channel.
pub(super) fn tradeoff_around(request: &Request, sd: f64) -> Vec<Tradeoff> {
    if request.noise == Noise::None {
        return Vec::new();
    }
    let mut all = tradeoff(request).unwrap_or_default();
    all.retain(|other| other.linked != request.linked_epsilon);
    all.push(Tradeoff { linked: request.linked_epsilon, sd });
    let looseness = |one: &Tradeoff| one.linked.unwrap_or(f64::INFINITY);
    all.sort_by(|one, other| looseness(other).total_cmp(&looseness(one)));
    all
}
