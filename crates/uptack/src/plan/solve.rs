//! The inverse questions: the least ε, or the fewest owners, for a wanted error; and what keeps an error from being had.
//!
//! All of them ask [`least_sd`](super::least_sd), the error of a plan.

use super::request::{Request, Trust};
use super::{Plan, least_sd, plan_with};
use crate::error::Error;
use crate::privacy::{Epsilon, MOST_OWNERS};
use crate::simulate::Progress;

/// What is left open, and follows from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The standard deviation of the estimate.
    Error,
    /// The ε of the release.
    Epsilon,
    /// The number of owners.
    Owners,
}

/// A plan, and the request that it answers with what was open filled in.
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
pub fn solve(request: &Request, unknown: Unknown, error: Option<f64>, progress: &Progress) -> Result<Solved, Error> {
    let wanted = || error.ok_or_else(|| Error::request("the error has to be given where something else is solved for"));
    let plan = match unknown {
        Unknown::Error => plan_with(request, progress)?,
        Unknown::Epsilon => solve_epsilon_with(request, wanted()?, progress)?,
        Unknown::Owners => solve_owners_with(request, wanted()?, progress)?,
    };
    if let Some(error) = error.filter(|&error| unknown == Unknown::Error && plan.best.sd > error) {
        return Err(unattainable(request, error));
    }
    let release = match (unknown, request.release, plan.epsilon()) {
        (Unknown::Epsilon, Some((_, delta)), Some(epsilon)) => Some((Epsilon::new(epsilon)?, delta)),
        (_, release, _) => release,
    };
    let request = Request { owners: plan.owners, minimum_batch: plan.minimum_batch, release, ..request.clone() };
    Ok(Solved { request, plan, unknown })
}

/// Why a request cannot be met, and what could be.
#[derive(Clone, Debug, PartialEq)]
pub struct Infeasible {
    /// The least error under the constraints as they are; none where nothing keeps them.
    pub least_sd: Option<f64>,
    /// The constraints that bind, and the least error without each; zero where nothing would be left that bounds it.
    pub binding: Vec<(&'static str, f64)>,
    /// A value of each constraint at which the wanted error can be had, all others as they are: the nearest to about a
    /// hundredth.
    pub nearest: Vec<(&'static str, f64)>,
}

/// The range in which an ε is looked for.
const EPSILONS: (f64, f64) = (1e-3, 30.0);
/// The range in which a participation is looked for.
const PARTICIPATIONS: (f64, f64) = (1e-3, 1.0);
/// A constraint binds if the error falls by more than this share without it.
const BINDING: f64 = 0.005;

/// The plan with the least ε of the release, to a per mille, whose error is at most `error`; the request's own ε is not
/// looked at.
pub fn solve_epsilon(request: &Request, error: f64) -> Result<Plan, Error> {
    solve_epsilon_with(request, error, &Progress::default())
}

/// The same, counting its progress up to [`PROGRESS`](super::PROGRESS).
pub fn solve_epsilon_with(request: &Request, error: f64, progress: &Progress) -> Result<Plan, Error> {
    let Some((_, delta)) = request.release else {
        return Err(Error::request("epsilon can only be solved for at a delta").with_hint("give a delta"));
    };
    let at = |epsilon: f64| -> Result<Request, Error> {
        Ok(Request { release: Some((Epsilon::new(epsilon)?, delta)), ..request.clone() })
    };
    let sd = |epsilon: f64| {
        progress.advance_by(u64::from(progress.done() < 40) * 3);
        at(epsilon).and_then(|request| least_sd(&request)).unwrap_or(f64::INFINITY)
    };
    let Some(found) = smallest(EPSILONS, 1.0, 1e-3, error, sd) else {
        // The request's own ε is not a limit here: explain with the largest that was tried.
        return Err(unattainable(&at(EPSILONS.1)?, error));
    };
    plan_with(&at(found)?, progress)
}

/// The plan with the fewest owners whose error is at most `error`; the minimum batch keeps its share of them.
///
/// In crowds of less than twice those who hold yes the error may fall again, because few are left who hold no: such crowds
/// are looked at only where twice as many are enough. Where one honest aggregator is counted on and no owner, others add to
/// the error and hide nobody, so that the fewest are those who hold yes, or none at all.
pub fn solve_owners(request: &Request, error: f64) -> Result<Plan, Error> {
    solve_owners_with(request, error, &Progress::default())
}

/// The same, counting its progress up to [`PROGRESS`](super::PROGRESS).
pub fn solve_owners_with(request: &Request, error: f64, progress: &Progress) -> Result<Plan, Error> {
    let share = request.minimum_batch as f64 / request.owners as f64;
    let fewest = request.yes.high.max(2);
    let at = |owners: u64| -> Request {
        let minimum_batch = ((owners as f64 * share).ceil() as u64).clamp(1, owners);
        Request { owners, minimum_batch, ..request.clone() }
    };
    let sd = |owners: u64| {
        progress.advance_by(u64::from(progress.done() < 40) * 2);
        least_sd(&at(owners)).unwrap_or(f64::INFINITY)
    };
    let found = match request.trust {
        Trust::OneAggregator => Some(fewest).filter(|&fewest| sd(fewest) <= error),
        Trust::Owners => fewest_owners(fewest, error, sd),
    };
    let owners = found.ok_or_else(|| unattainable(request, error))?;
    plan_with(&at(owners), progress)
}

/// The fewest owners whose error is small enough: upwards in growing steps, because large crowds cost more to account
/// for. The error levels off as a crowd grows; where it does so above what is wanted, there is no number.
fn fewest_owners(fewest: u64, error: f64, sd: impl Fn(u64) -> f64) -> Option<u64> {
    let (mut low, mut high) = (fewest, fewest.saturating_mul(2).min(MOST_OWNERS));
    let mut here = sd(high);
    if here <= error && sd(low) <= error {
        return Some(low);
    }
    while here > error {
        if high >= MOST_OWNERS {
            return None;
        }
        low = high;
        high = if high < 100 { 2 * high } else { high + high / 2 }.min(MOST_OWNERS);
        let next = sd(high);
        if next > here * (1.0 - LEVEL) && next > error && high > 10_000 {
            return None;
        }
        here = next;
    }
    while high - low > (high / 1000).max(1) {
        let half = low + (high - low) / 2;
        if sd(half) <= error { high = half } else { low = half }
    }
    Some(high)
}

/// Half as many owners again that lower the error by less than this do not help.
const LEVEL: f64 = 2e-4;

/// Which constraints keep the error above `error`, and by how much each would have to give.
pub fn explain(request: &Request, error: f64) -> Result<Infeasible, Error> {
    request.check()?;
    let least = least_sd(request).ok();
    let mut binding = Vec::new();
    let mut nearest = Vec::new();
    for Relaxation { name, without, with, range } in relaxations(request) {
        // A constraint at the end of its range has no room left to give.
        if range.0 >= range.1 {
            continue;
        }
        let free = without.map_or(Some(0.0), |request| least_sd(&request).ok());
        let Some(free) = free.filter(|free| least.is_none_or(|least| *free < least * (1.0 - BINDING))) else {
            continue;
        };
        binding.push((name, free));
        let sd = |value: f64| with(value).and_then(|request| least_sd(&request).ok()).unwrap_or(f64::INFINITY);
        nearest.extend(smallest(range, range.0, 1e-2, error, sd).map(|value| (name, value)));
    }
    Ok(Infeasible { least_sd: least, binding, nearest })
}

type WithValue<'a> = Box<dyn Fn(f64) -> Option<Request> + 'a>;

/// A constraint, the request without it (none where nothing would be left), and with another value of it.
struct Relaxation<'a> {
    name: &'static str,
    without: Option<Request>,
    with: WithValue<'a>,
    /// The values that are looked at.
    range: (f64, f64),
}

fn relaxations(request: &Request) -> Vec<Relaxation<'_>> {
    let mut all: Vec<Relaxation<'_>> = Vec::new();
    let mut add = |name, without: Request, with: WithValue<'static>, range: (f64, f64)| {
        let without = without.check().is_ok().then_some(without);
        all.push(Relaxation { name, without, with, range });
    };
    let base = request.clone();
    if let Some((epsilon, delta)) = request.release {
        let without = Request { release: None, ..request.clone() };
        let base = base.clone();
        let with = move |value| Some(Request { release: Some((Epsilon::new(value).ok()?, delta)), ..base.clone() });
        add("epsilon", without, Box::new(with), (epsilon.value().max(EPSILONS.0), EPSILONS.1));
    }
    if let Some(answer) = request.answer_epsilon {
        let without = Request { answer_epsilon: None, ..request.clone() };
        let base = base.clone();
        let with = move |value| Some(Request { answer_epsilon: Some(value), ..base.clone() });
        add("answer-epsilon", without, Box::new(with), (answer, EPSILONS.1));
    }
    if let Some(linked) = request.linked_epsilon {
        let without = Request { linked_epsilon: None, ..request.clone() };
        let base = base.clone();
        let with = move |value| Some(Request { linked_epsilon: Some(value), ..base.clone() });
        add("linked-epsilon", without, Box::new(with), (linked, EPSILONS.1));
    }
    if let Some(participation) = request.participation {
        let without = Request { participation: None, ..request.clone() };
        let with = move |value| Some(Request { participation: Some(value), ..base.clone() });
        add("participation", without, Box::new(with), (participation.max(PARTICIPATIONS.0), PARTICIPATIONS.1));
    }
    all
}

/// The error for a request that nothing keeps, whatever the error may be.
pub(super) fn nothing_keeps(request: &Request) -> Error {
    let family =
        request.family.as_ref().map_or("mechanism of the requested form".to_owned(), |name| format!("`{name}`"));
    Error::request(format!("no {family} keeps all constraints"))
        .with_hint("allow more participation, another form, or a larger epsilon")
}

/// The error for a request whose error cannot be had, with what binds and what would do.
pub fn unattainable(request: &Request, error: f64) -> Error {
    match explain(request, error) {
        Ok(infeasible) => Error::request(format!("an error of {error} cannot be had{}", describe(&infeasible)))
            .with_hint("allow a larger error, or give one of the constraints more room"),
        Err(cause) => cause,
    }
}

fn describe(infeasible: &Infeasible) -> String {
    // Upwards, so that what is said to be the least can be had.
    let up = |value: f64| {
        let scale = 10f64.powi(4 - value.max(1e-300).log10().floor() as i32);
        (value * scale).ceil() / scale
    };
    let mut text = infeasible.least_sd.map_or(String::new(), |least| format!(": the least is {}", up(least)));
    for (name, without) in &infeasible.binding {
        text.push_str(&match *without > 0.0 {
            true => format!("; {name} binds (without it {})", up(*without)),
            false => format!("; {name} binds"),
        });
    }
    for (name, value) in &infeasible.nearest {
        text.push_str(&format!("; {name} {} would do", up(*value)));
    }
    text
}

/// The smallest value in a range, to a relative accuracy and from above, at which a falling function is at most `limit`.
///
/// From `start` in growing steps until it is bracketed, then where a power law through both ends would cross: most errors
/// nearly are one.
fn smallest(
    (least, most): (f64, f64),
    start: f64,
    accuracy: f64,
    limit: f64,
    function: impl Fn(f64) -> f64,
) -> Option<f64> {
    let excess = |log: f64| (function(log.exp()) / limit).ln();
    let (least, most) = (least.ln(), most.ln());
    let mut at = start.ln().clamp(least, most);
    let [mut low, mut high]: [Option<(f64, f64)>; 2] = [None; 2];
    let mut step = 0.3;
    for round in 0.. {
        let value = excess(at);
        *(if value <= 0.0 { &mut high } else { &mut low }) = Some((at, value));
        at = match (low, high) {
            (Some(low), Some(high)) if high.0 - low.0 <= accuracy => return Some(high.0.exp()),
            (Some(low), Some(high)) => between(low, high, 0.45 * accuracy, round),
            (Some((at, _)), None) if at >= most => return None,
            (None, Some((at, _))) if at <= least => return Some(at.exp()),
            (None, _) => (at - step).max(least),
            (_, None) => (at + step).min(most),
        };
        step *= 2.0;
    }
    None
}

/// Where to look next between two ends: at the crossing, a little to either side in turn so that both ends come near;
/// in the middle every third time and where an end says nothing.
fn between(low: (f64, f64), high: (f64, f64), margin: f64, round: u32) -> f64 {
    let middle = 0.5 * (low.0 + high.0);
    let crossing = low.0 + (high.0 - low.0) * low.1 / (low.1 - high.1);
    let aimed = crossing + if round.is_multiple_of(2) { margin } else { -margin };
    if round % 3 == 2 || !aimed.is_finite() {
        return middle;
    }
    aimed.clamp(low.0 + margin, high.0 - margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_value_is_bracketed_and_approached_from_above() {
        let calls = std::cell::Cell::new(0);
        let error = |value: f64| {
            calls.set(calls.get() + 1);
            if value < 0.01 { f64::INFINITY } else { 7.0 / value }
        };
        for limit in [0.5, 7.0, 300.0, 699.0] {
            calls.set(0);
            let found = smallest((1e-3, 30.0), 1.0, 1e-3, limit, error).unwrap();
            assert!(found >= 7.0 / limit && found <= 7.0 / limit * 1.0011, "{limit}: {found}");
            assert!(calls.get() <= 20, "{limit}: {}", calls.get());
        }
        assert_eq!(smallest((1e-3, 30.0), 1.0, 1e-3, 0.1, error), None);
        assert_eq!(smallest((1e-3, 30.0), 1.0, 1e-3, 5.0, |_| 1.0).map(|value| value < 1.001e-3), Some(true));
    }
}
