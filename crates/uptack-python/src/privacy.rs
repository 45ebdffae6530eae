//! What mechanisms give away, once and composed.

use pyo3::prelude::*;
use uptack::privacy::composition::{Composition, FixedInAdvance, add_local};
use uptack::privacy::{self, Accountant, Delta, Epsilon, Repeated, Target, Views, WorkLimit};
use uptack::{Channel, Mechanism};
use uptack_document::PrivacyCard;

use crate::channel::PyChannel;
use crate::failure::{Failure, to_text};
use crate::long_work::{Listener, counted};
use crate::plan::share;

/// Every view, as `uptack privacy --json` prints it. Exactly one of `delta` and `epsilon` is given.
#[pyfunction(name = "privacy")]
#[pyo3(signature = (channel, owners, *, delta, epsilon, repeat, honest, work, progress))]
#[allow(clippy::too_many_arguments, reason = "they are keywords, and the package's own code names them again")]
pub(crate) fn all_views(
    py: Python<'_>,
    channel: &PyChannel,
    owners: u64,
    delta: Option<f64>,
    epsilon: Option<f64>,
    repeat: Option<u64>,
    honest: &str,
    work: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let owners = privacy::honest_owners(owners, &share("honest", honest)?).map_err(Failure::from)?;
    let target = target(delta, epsilon)?;
    let limit = WorkLimit::default().times(work);
    let all = Views::work(&channel.channel, owners, limit);
    let (mechanism, law) = (channel.mechanism.to_string(), channel.channel.clone());
    let card = counted(py, progress, all, move |progress| {
        let views = Views::of_watched(&law, owners, target, limit, Some(progress))?;
        let accountant = privacy::release(&law, owners)?.with_limit(limit).watched(Some(progress));
        let repeated = repeat.map(|times| Repeated::of(&views, &accountant, target, times)).transpose()?;
        let statement = privacy::statement(&law, &views, &accountant, repeated.as_ref());
        Ok::<_, uptack::Error>(PrivacyCard { owners, target, views, repeated, statement })
    })?;
    to_text(&card.map_err(Failure::from)?.json(&mechanism))
}

fn target(delta: Option<f64>, epsilon: Option<f64>) -> Result<Target, Failure> {
    match (delta, epsilon) {
        (Some(delta), None) => Ok(Target::Delta(Delta::new(delta)?)),
        (None, Some(epsilon)) => Ok(Target::Epsilon(Epsilon::new(epsilon)?)),
        _ => Err(Failure::request("give one of delta and epsilon, and not both")),
    }
}

/// Releases of several mechanisms to the same owners, each so many times.
#[pyclass(name = "Composition", module = "uptack._core", frozen)]
pub(crate) struct PyComposition {
    parts: Vec<(Mechanism, u64)>,
    owners: u64,
    work: u64,
}

#[pymethods]
impl PyComposition {
    /// Mechanisms as text, each with its number of repetitions.
    #[new]
    fn new(parts: Vec<(String, u64)>, owners: u64, work: u64) -> Result<Self, Failure> {
        let mechanism = |(text, times): (String, u64)| Ok::<_, uptack::Error>((text.parse::<Mechanism>()?, times));
        let parts = parts.into_iter().map(mechanism).collect::<Result<Vec<_>, _>>()?;
        if parts.is_empty() || parts.iter().any(|(_, times)| *times == 0) {
            return Err(Failure::request("there is nothing to compose").with_hint("give at least one channel"));
        }
        Ok(Self { parts, owners, work })
    }

    /// The enclosure of ε at a δ; none where there is no guarantee.
    #[pyo3(signature = (delta, progress=None))]
    fn epsilon(&self, py: Python<'_>, delta: f64, progress: Listener<'_>) -> PyResult<Option<(f64, f64)>> {
        let delta = Delta::new(delta).map_err(Failure::from)?;
        self.found(py, Target::Delta(delta), progress)
    }

    /// The enclosure of δ at an ε.
    #[pyo3(signature = (epsilon, progress=None))]
    fn delta(&self, py: Python<'_>, epsilon: f64, progress: Listener<'_>) -> PyResult<Option<(f64, f64)>> {
        let epsilon = Epsilon::new(epsilon).map_err(Failure::from)?;
        self.found(py, Target::Epsilon(epsilon), progress)
    }

    /// Local ε of all cells of all releases; none where there is no guarantee.
    fn linked(&self) -> Result<Option<f64>, Failure> {
        Ok(sum_of(&self.parts, |channel, times| {
            privacy::linked_epsilon(channel).map(|once| add_local(once, times)).transpose()
        })?)
    }
}

/// What is proved for each part, added up; none if a part has none.
fn sum_of(
    parts: &[(Mechanism, u64)],
    each: impl Fn(&Channel, u64) -> Result<Option<f64>, uptack::Error>,
) -> Result<Option<f64>, uptack::Error> {
    let mut sum = Some(0.0);
    for (mechanism, times) in parts {
        let part = each(&mechanism.channel(), *times)?;
        sum = sum.zip(part).map(|(sum, part): (f64, f64)| match sum {
            // Adding to nothing is exact.
            0.0 => part,
            // A little more for each addition, so that the sum is never below the truth.
            _ => (sum + part).next_up(),
        });
    }
    Ok(sum)
}

impl PyComposition {
    fn found(&self, py: Python<'_>, target: Target, listener: Listener<'_>) -> PyResult<Option<(f64, f64)>> {
        let (parts, owners, work) = (self.parts.clone(), self.owners, self.work);
        let found = counted(py, listener, 0, move |progress| {
            let limit = WorkLimit::default().times(work);
            let watched = |channel: &Channel| {
                Ok::<_, uptack::Error>(privacy::release(channel, owners)?.with_limit(limit).watched(Some(progress)))
            };
            match parts.as_slice() {
                [(mechanism, times)] => {
                    let channel = mechanism.channel();
                    let views = Views::of_watched(&channel, owners, target, limit, Some(progress))?;
                    Ok(Repeated::of(&views, &watched(&channel)?, target, *times)?
                        .release
                        .map(|ends| (ends.lower(), ends.upper())))
                }
                several => {
                    let accountant =
                        |(mechanism, times): &(Mechanism, u64)| Ok((watched(&mechanism.channel())?, *times));
                    let accountants = several.iter().map(accountant).collect::<Result<Vec<_>, uptack::Error>>()?;
                    compose(&accountants, several, target)
                }
            }
        })?;
        Ok(found.map_err(|error: uptack::Error| Failure::from(error))?)
    }
}

/// The smallest δ that a composition is made precise for where ε is given.
const SMALLEST_DELTA: f64 = 1e-12;

/// Different mechanisms. Only the upper end is a claim: the worst crowds of different mechanisms may differ, so nothing is
/// proved from below.
fn compose(
    accountants: &[(Accountant, u64)],
    parts: &[(Mechanism, u64)],
    target: Target,
) -> Result<Option<(f64, f64)>, uptack::Error> {
    let smallest = match target {
        Target::Delta(delta) => delta.value(),
        Target::Epsilon(_) => SMALLEST_DELTA,
    };
    let all = accountants.iter().map(|(_, times)| *times).fold(0_u64, u64::saturating_add);
    let loss =
        |(accountant, times): &(Accountant, u64)| Ok((privacy::release_loss(accountant, all, smallest)?, *times));
    let losses = accountants.iter().map(loss).collect::<Result<Vec<_>, uptack::Error>>()?;
    let composition = Composition::new(FixedInAdvance::new(losses)?);
    let pure = sum_of(parts, |channel, times| {
        let linked = privacy::linked_epsilon(channel).map(|once| add_local(once, times)).transpose()?;
        let noisy = privacy::one_aggregator_together(channel, times).map(|all| all.upper());
        Ok([linked, noisy].into_iter().flatten().reduce(f64::min))
    })?;
    Ok(match target {
        Target::Delta(delta) => {
            let found = composition.epsilon(delta.value())?.map(|ends| ends.upper());
            let upper = [found, pure].into_iter().flatten().reduce(f64::min);
            upper.map(|upper| (0.0, upper))
        }
        Target::Epsilon(epsilon) if pure.is_some_and(|pure| epsilon.value() >= pure) => Some((0.0, 0.0)),
        Target::Epsilon(epsilon) => Some((0.0, composition.delta(epsilon.value())?.upper())),
    })
}
