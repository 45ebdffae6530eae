//! Guarantees of mechanisms, once and composed.

use std::sync::Arc;

use pyo3::prelude::*;
use uptack::Progress;
use uptack::privacy::composition::{Composition, FixedInAdvance, LossDistribution, add_local};
use uptack::privacy::{self, Accountant, Delta, Epsilon, Repeated, Target, Views, WorkLimit};
use uptack::{Channel, Mechanism};
use uptack_document::PrivacyDocument;

use crate::channel::PyChannel;
use crate::failure::{PyFailure, Result, to_text};
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
    progress: Listener<'_>,
) -> PyResult<String> {
    let owners = privacy::honest_owners(owners, &share("honest", honest)?).map_err(PyFailure::from)?;
    let question = ReleaseQuestion { owners, target: target(delta, epsilon)?, limit: WorkLimit::default().times(work) };
    let law = channel.channel.clone();
    let all = Views::work(&law, owners, question.limit);
    let card = counted(py, progress, all, move |progress| question.card(&law, repeat, progress))?;
    to_text(&card.json(&channel.mechanism.to_string()))
}

fn target(delta: Option<f64>, epsilon: Option<f64>) -> Result<Target> {
    match (delta, epsilon) {
        (Some(delta), None) => Ok(Target::Delta(Delta::new(delta)?)),
        (None, Some(epsilon)) => Ok(Target::Epsilon(Epsilon::new(epsilon)?)),
        _ => Err(PyFailure::request("give one of delta and epsilon, and not both")),
    }
}

/// A question about releases to a crowd, and how much work the answer may take.
#[derive(Clone, Copy)]
struct ReleaseQuestion {
    owners: u64,
    target: Target,
    limit: WorkLimit,
}

impl ReleaseQuestion {
    fn views(&self, law: &Channel, progress: &Arc<Progress>) -> Result<Views, uptack::Error> {
        Views::of_watched(law, self.owners, self.target, self.limit, Some(progress))
    }

    fn accountant(&self, law: &Channel, progress: &Arc<Progress>) -> Result<Accountant, uptack::Error> {
        Ok(privacy::release(law, self.owners)?.with_limit(self.limit).watched(Some(progress)))
    }

    fn card(
        &self,
        law: &Channel,
        repeat: Option<u64>,
        progress: &Arc<Progress>,
    ) -> Result<PrivacyDocument, uptack::Error> {
        let views = self.views(law, progress)?;
        let accountant = self.accountant(law, progress)?;
        let repeated = repeat.map(|times| Repeated::of(&views, &accountant, self.target, times)).transpose()?;
        let statement = privacy::statement(law, &views, &accountant, repeated.as_ref());
        Ok(PrivacyDocument { owners: self.owners, target: self.target, views, repeated, statement })
    }

    /// One mechanism, repeated.
    fn repeated(
        &self,
        law: &Channel,
        times: u64,
        progress: &Arc<Progress>,
    ) -> Result<Option<LowerAndUpper>, uptack::Error> {
        let views = self.views(law, progress)?;
        let repeated = Repeated::of(&views, &self.accountant(law, progress)?, self.target, times)?;
        Ok(repeated.release.map(|ends| (ends.lower(), ends.upper())))
    }

    /// Different mechanisms. Only the upper end is a claim: the worst crowds of different mechanisms may differ, so nothing
    /// is proved from below.
    fn composed(
        &self,
        parts: &[ReleasePart],
        progress: &Arc<Progress>,
    ) -> Result<Option<LowerAndUpper>, uptack::Error> {
        let composition = Composition::new(FixedInAdvance::new(self.losses(parts, progress)?)?);
        let pure = pure_epsilon(parts)?;
        Ok(match self.target {
            Target::Delta(delta) => {
                let found = composition.epsilon(delta.value())?.map(|ends| ends.upper());
                smaller(found, pure).map(|upper| (0.0, upper))
            }
            Target::Epsilon(epsilon) if pure.is_some_and(|pure| epsilon.value() >= pure) => Some((0.0, 0.0)),
            Target::Epsilon(epsilon) => Some((0.0, composition.delta(epsilon.value())?.upper())),
        })
    }

    /// The privacy loss of each part, with its number of repetitions.
    fn losses(
        &self,
        parts: &[ReleasePart],
        progress: &Arc<Progress>,
    ) -> Result<Vec<(LossDistribution, u64)>, uptack::Error> {
        let smallest = match self.target {
            Target::Delta(delta) => delta.value(),
            Target::Epsilon(_) => SMALLEST_DELTA,
        };
        let all = parts.iter().map(|(_, times)| *times).fold(0_u64, u64::saturating_add);
        let loss = |(mechanism, times): &ReleasePart| {
            let accountant = self.accountant(&mechanism.channel(), progress)?;
            Ok((privacy::release_loss(&accountant, all, smallest)?, *times))
        };
        parts.iter().map(loss).collect()
    }
}

/// The smallest δ that a composition is made precise for where ε is given.
const SMALLEST_DELTA: f64 = 1e-12;

/// A mechanism and how many times it is released.
type ReleasePart = (Mechanism, u64);

/// The ends of an enclosure.
type LowerAndUpper = (f64, f64);

/// Releases of several mechanisms to the same owners, each a number of times.
#[pyclass(name = "Composition", module = "uptack._core", frozen)]
pub(crate) struct PyComposition {
    parts: Vec<ReleasePart>,
    owners: u64,
    work: u64,
}

#[pymethods]
impl PyComposition {
    /// Mechanisms as text, each with its number of repetitions.
    #[new]
    fn new(parts: Vec<(String, u64)>, owners: u64, work: u64) -> Result<Self> {
        let mechanism = |(text, times): (String, u64)| Ok::<_, uptack::Error>((text.parse::<Mechanism>()?, times));
        let parts = parts.into_iter().map(mechanism).collect::<Result<Vec<_>, _>>()?;
        if parts.is_empty() || parts.iter().any(|(_, times)| *times == 0) {
            return Err(PyFailure::request("there is nothing to compose").with_hint("give at least one channel"));
        }
        Ok(Self { parts, owners, work })
    }

    /// The enclosure of ε at a δ; none where there is no guarantee.
    #[pyo3(signature = (delta, progress=None))]
    fn epsilon(&self, py: Python<'_>, delta: f64, progress: Listener<'_>) -> PyResult<Option<LowerAndUpper>> {
        self.enclosure(py, target(Some(delta), None)?, progress)
    }

    /// The enclosure of δ at an ε.
    #[pyo3(signature = (epsilon, progress=None))]
    fn delta(&self, py: Python<'_>, epsilon: f64, progress: Listener<'_>) -> PyResult<Option<LowerAndUpper>> {
        self.enclosure(py, target(None, Some(epsilon))?, progress)
    }

    /// Local ε of all cells of all releases; none where there is no guarantee.
    fn linked(&self) -> Result<Option<f64>> {
        Ok(sum_of(&self.parts, repeated_linked_epsilon)?)
    }
}

/// The sum of a bound over all parts; `None` if a part has none.
fn sum_of(
    parts: &[ReleasePart],
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

/// ε of all parts at δ = 0; none if a part has none.
fn pure_epsilon(parts: &[ReleasePart]) -> Result<Option<f64>, uptack::Error> {
    sum_of(parts, |channel, times| {
        let noisy = privacy::one_aggregator_together(channel, times).map(|all| all.upper());
        Ok(smaller(repeated_linked_epsilon(channel, times)?, noisy))
    })
}

fn repeated_linked_epsilon(channel: &Channel, times: u64) -> Result<Option<f64>, uptack::Error> {
    privacy::linked_epsilon(channel).map(|once| add_local(once, times)).transpose()
}

/// The smaller of two bounds, if there is any.
fn smaller(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    [one, other].into_iter().flatten().reduce(f64::min)
}

impl PyComposition {
    fn enclosure(&self, py: Python<'_>, target: Target, listener: Listener<'_>) -> PyResult<Option<LowerAndUpper>> {
        let question = ReleaseQuestion { owners: self.owners, target, limit: WorkLimit::default().times(self.work) };
        let parts = self.parts.clone();
        counted(py, listener, 0, move |progress| match parts.as_slice() {
            [(mechanism, times)] => question.repeated(&mechanism.channel(), *times, progress),
            several => question.composed(several, progress),
        })
    }
}
