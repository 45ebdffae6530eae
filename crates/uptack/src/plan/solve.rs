//! The inverse questions: the least ε, or the fewest owners, for a wanted error.

use super::request::Request;
use super::{Plan, least_sd, plan};
use crate::error::Error;
use crate::privacy::{Epsilon, MOST_OWNERS};

/// Why a request cannot be met, and what could be.
#[derive(Clone, Debug, PartialEq)]
pub struct Infeasible {
    /// The least error under the constraints as they are.
    pub least_sd: f64,
    /// The constraints that bind, and the least error without each.
    pub binding: Vec<(&'static str, f64)>,
    /// The nearest value of each constraint at which the wanted error can be had, all others as they are.
    pub nearest: Vec<(&'static str, f64)>,
}

const SMALLEST_EPSILON: f64 = 1e-4;
const LARGEST_EPSILON: f64 = 30.0;

/// The plan with the least ε of the release whose error is at most `error`; the request's own ε is not looked at.
pub fn solve_epsilon(request: &Request, error: f64) -> Result<Plan, Error> {
    let Some((_, delta)) = request.release else {
        return Err(Error::request("epsilon can only be solved for at a delta").with_hint("give --delta"));
    };
    let at = |epsilon: f64| -> Result<Request, Error> {
        Ok(Request { release: Some((Epsilon::new(epsilon)?, delta)), ..request.clone() })
    };
    let value = smallest(SMALLEST_EPSILON, LARGEST_EPSILON, 1e-3, |epsilon| Ok(least_sd(&at(epsilon)?)? <= error))?;
    let mut epsilon = value.ok_or_else(|| unattainable(request, error))?;
    // What is certified and rounded may be a little worse than what was searched.
    for _ in 0..12 {
        let plan = plan(&at(epsilon)?)?;
        if plan.best.sd <= error {
            return Ok(plan);
        }
        epsilon *= 1.001;
    }
    Err(unattainable(request, error))
}

/// The plan with the fewest owners, at least twice those who hold yes, whose error is at most `error`; the minimum batch
/// keeps its share of them.
pub fn solve_owners(request: &Request, error: f64) -> Result<Plan, Error> {
    let share = request.minimum_batch as f64 / request.owners as f64;
    // With nearly everybody holding yes, the plan would live on that knowledge instead of on the answers.
    let fewest = (2 * request.yes.high).max(2);
    let at = |owners: f64| -> Request {
        let owners = (owners.ceil() as u64).clamp(fewest, MOST_OWNERS);
        let minimum_batch = ((owners as f64 * share).ceil() as u64).clamp(1, owners);
        Request { owners, minimum_batch, ..request.clone() }
    };
    let sd_at = |owners: f64| least_sd(&at(owners));
    let mut owners = fewest_owners(fewest as f64, error, sd_at)?.ok_or_else(|| unattainable(request, error))?;
    // Small crowds have lattice effects: the certified error does not fall with every further owner.
    for _ in 0..40 {
        let plan = plan(&at(owners))?;
        if plan.best.sd <= error {
            return Ok(plan);
        }
        owners = (owners * 1.002).max(owners + 1.0);
    }
    Err(unattainable(request, error))
}

/// The fewest owners whose error is small enough: upwards in growing steps, because large crowds cost more to account
/// for. The error levels off as a crowd grows; where it does so above what is wanted, there is no number.
fn fewest_owners(least: f64, error: f64, sd_at: impl Fn(f64) -> Result<f64, Error>) -> Result<Option<f64>, Error> {
    let (mut low, mut high) = (least, least);
    let mut sd = sd_at(high)?;
    while sd > error {
        if high >= MOST_OWNERS as f64 {
            return Ok(None);
        }
        low = high;
        high = (high * 4.0).min(MOST_OWNERS as f64);
        let next = sd_at(high)?;
        if next > sd * (1.0 - LEVEL) && next > error && high > 1e4 {
            return Ok(None);
        }
        sd = next;
    }
    if low == high {
        return Ok(Some(least));
    }
    let good = |owners: f64| Ok(sd_at(owners)? <= error);
    smallest(low, high, 1e-3, good)
}

/// Four times as many owners that lower the error by less than this do not help.
const LEVEL: f64 = 5e-4;

/// Which constraints keep the error above `error`, and by how much each would have to give.
pub fn explain(request: &Request, error: f64) -> Result<Infeasible, Error> {
    let least = least_sd(request)?;
    let mut binding = Vec::new();
    let mut nearest = Vec::new();
    for (name, without, with) in relaxations(request) {
        let free = without.map_or(Ok(0.0), |request| least_sd(&request))?;
        if free < least * 0.995 {
            binding.push((name, free));
            let good =
                |value: f64| Ok(with(value).is_some_and(|request| least_sd(&request).is_ok_and(|sd| sd <= error)));
            let (low, high) = if name == "participation" { (1e-3, 1.0) } else { (SMALLEST_EPSILON, LARGEST_EPSILON) };
            nearest.extend(smallest(low, high, 1e-2, good)?.map(|value| (name, value)));
        }
    }
    Ok(Infeasible { least_sd: least, binding, nearest })
}

type WithValue<'a> = Box<dyn Fn(f64) -> Option<Request> + 'a>;

/// Each constraint with the request without it (none where nothing would be left), and with another value of it.
fn relaxations(request: &Request) -> Vec<(&'static str, Option<Request>, WithValue<'_>)> {
    let bounded = |request: Request| {
        let any = request.release.is_some() || request.answer_epsilon.is_some() || request.linked_epsilon.is_some();
        any.then_some(request)
    };
    let mut all: Vec<(&'static str, Option<Request>, WithValue<'_>)> = Vec::new();
    if let Some((_, delta)) = request.release {
        let with = move |value| Some(Request { release: Some((Epsilon::new(value).ok()?, delta)), ..request.clone() });
        all.push(("epsilon", bounded(Request { release: None, ..request.clone() }), Box::new(with)));
    }
    if request.answer_epsilon.is_some() {
        let with = |value| Some(Request { answer_epsilon: Some(value), ..request.clone() });
        all.push(("answer-epsilon", bounded(Request { answer_epsilon: None, ..request.clone() }), Box::new(with)));
    }
    if request.linked_epsilon.is_some() {
        let with = |value| Some(Request { linked_epsilon: Some(value), ..request.clone() });
        all.push(("linked-epsilon", bounded(Request { linked_epsilon: None, ..request.clone() }), Box::new(with)));
    }
    if request.participation.is_some() {
        let with = |value| Some(Request { participation: Some(value), ..request.clone() });
        all.push(("participation", Some(Request { participation: None, ..request.clone() }), Box::new(with)));
    }
    all
}

/// The error for a request that nothing keeps, whatever the error may be.
pub(super) fn nothing_keeps(_request: &Request) -> Error {
    Error::request("no mechanism of the requested form keeps all constraints")
        .with_hint("allow more participation, another form, or a larger epsilon")
}

/// The error for a request whose error cannot be had, with what binds and what would do.
pub fn unattainable(request: &Request, error: f64) -> Error {
    let detail = explain(request, error).map(|infeasible| describe(&infeasible)).unwrap_or_default();
    Error::request(format!("an error of {error} cannot be had{detail}"))
        .with_hint("allow a larger error, or give one of the constraints more room")
}

fn describe(infeasible: &Infeasible) -> String {
    let mut text = format!(": the least is {:.4}", infeasible.least_sd);
    for (name, without) in &infeasible.binding {
        text.push_str(&format!("; {name} binds (without it {without:.4})"));
    }
    for (name, value) in &infeasible.nearest {
        text.push_str(&format!("; {name} {value:.4} would do"));
    }
    text
}

/// The smallest value in a range, to a relative accuracy, for which the monotone test holds.
fn smallest(
    low: f64,
    high: f64,
    accuracy: f64,
    holds: impl Fn(f64) -> Result<bool, Error>,
) -> Result<Option<f64>, Error> {
    if !holds(high)? {
        return Ok(None);
    }
    if holds(low)? {
        return Ok(Some(low));
    }
    let (mut low, mut high) = (low.ln(), high.ln());
    while high - low > accuracy {
        let half = 0.5 * (low + high);
        if holds(half.exp())? { high = half } else { low = half }
    }
    Ok(Some(high.exp()))
}
