//! What keeps an error from being attained, and what would allow it.

use super::least_sd;
use super::request::Request;
use super::root::smallest;
use crate::error::{Error, Result};
use crate::privacy::Epsilon;

/// Why a request cannot be met, and what would be enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Infeasible {
    /// The least error under the constraints as they are; none if nothing keeps them.
    pub least_sd: Option<f64>,
    /// The constraints that bind, and the least error without each; zero if no constraint would be left.
    pub binding: Vec<(&'static str, f64)>,
    /// A value of each binding constraint at which the wanted error is attained with all others as they are: the nearest, to
    /// about a hundredth.
    pub nearest: Vec<(&'static str, f64)>,
}

/// The range in which an ε is looked for.
pub(super) const EPSILONS: (f64, f64) = (1e-3, 30.0);
/// A constraint binds if the error falls by more than this share without it.
const BINDING: f64 = 0.005;

/// Which constraints keep the error above `error`, and by how much each would have to give.
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
    /// Whether the least error under all constraints is larger than this one by more than a trifle.
    fn is_much_above(&self, sd: f64) -> bool {
        self.least_sd.is_none_or(|least| sd < least * (1.0 - BINDING))
    }

    fn describe(&self) -> String {
        let least = self.least_sd.map(|least| format!(": the least is {}", rounded_up(least)));
        let mut text = least.unwrap_or_default();
        for (name, without) in &self.binding {
            text.push_str(&format!("; {name} binds"));
            if *without > 0.0 {
                text.push_str(&format!(" (without it {})", rounded_up(*without)));
            }
        }
        for (name, value) in &self.nearest {
            text.push_str(&format!("; {name} {} would do", rounded_up(*value)));
        }
        text
    }
}

/// Five digits of a number, rounded up: what is said to be enough must be enough.
fn rounded_up(value: f64) -> f64 {
    let scale = 10f64.powi(4 - value.max(1e-300).log10().floor() as i32);
    (value * scale).ceil() / scale
}

/// What a request can bound.
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

    /// The values from the request's own up to the largest that is tried; none if it has no room left to give.
    fn room(self, request: &Request) -> Option<(f64, f64)> {
        let (least, most) = match self {
            Self::Epsilon => EPSILONS,
            Self::AnswerEpsilon | Self::LinkedEpsilon => (0.0, EPSILONS.1),
            Self::Participation => (1e-3, 1.0),
        };
        let own = self.value(request)?.max(least);
        (own < most).then_some((own, most))
    }

    /// The least error without it: zero if nothing else bounds the request, none if nothing keeps it even then.
    fn sd_without(self, request: &Request) -> Option<f64> {
        self.set(request, None)
            .filter(|without| without.check().is_ok())
            .map_or(Some(0.0), |without| least_sd(&without).ok())
    }

    /// The least error with another value of it; infinite if nothing keeps it.
    fn sd_at(self, request: &Request, value: f64) -> f64 {
        let changed = self.set(request, Some(value));
        changed.and_then(|request| least_sd(&request).ok()).unwrap_or(f64::INFINITY)
    }
}

/// The error for a request that no mechanism keeps, however large its error.
pub(super) fn nothing_keeps(request: &Request) -> Error {
    let family =
        request.family.as_ref().map_or("mechanism of the requested form".to_owned(), |name| format!("`{name}`"));
    Error::request(format!("no {family} keeps all constraints"))
        .with_hint("allow more participation, another form, or a larger epsilon")
}

/// The error for a request whose error cannot be attained, with what binds and what would be enough.
pub fn unattainable(request: &Request, error: f64) -> Error {
    match explain(request, error) {
        Ok(infeasible) => Error::request(format!("an error of {error} cannot be had{}", infeasible.describe()))
            .with_hint("allow a larger error, or give one of the constraints more room"),
        Err(cause) => cause,
    }
}
