//! Several releases together, and the loss distributions that they are made of.

use std::sync::Arc;

use pyo3::prelude::*;
use uptack::contribution::{AnyMechanism, Contributions};
use uptack::privacy::composition::{
    Accuracy, Composition, FixedInAdvance, LossDistribution, Profile, PureProfile, add_local,
};
use uptack::privacy::contributions::{ContributionViews, OwnersAlone, linked_epsilon, one_aggregator};
use uptack::privacy::{self, Delta, Target, WorkLimit};
use uptack::{Channel, Progress, parallel};

use crate::failure::{PyFailure, Result};
use crate::long_work::{Listener, counted};
use crate::plan::share;
use crate::privacy::{ReleaseQuestion, target};

/// A measure on privacy losses that dominates one release.
#[pyfunction]
#[pyo3(signature = (mechanism, owners, *, repetitions, smallest_delta, honest, work, progress))]
#[allow(clippy::too_many_arguments, reason = "they are keywords, and the package's own code names them again")]
pub(crate) fn release_loss(
    py: Python<'_>,
    mechanism: &str,
    owners: u64,
    repetitions: u64,
    smallest_delta: f64,
    honest: &str,
    work: u64,
    progress: Listener<'_>,
) -> PyResult<WrittenLoss> {
    let owners = privacy::honest_owners(owners, &share("honest", honest)?).map_err(PyFailure::from)?;
    let smallest = Target::Delta(Delta::new(smallest_delta).map_err(PyFailure::from)?);
    let question = ReleaseQuestion { owners, target: smallest, limit: WorkLimit::default().times(work) };
    let mechanism: AnyMechanism = mechanism.parse().map_err(PyFailure::from)?;
    let loss =
        counted(py, progress, 0, move |progress| question.loss(&mechanism, repetitions, smallest_delta, progress))?;
    let (losses, masses) = loss.losses().filter(|(_, mass)| *mass > 0.0).unzip();
    Ok((loss.spacing(), losses, masses, loss.infinite_mass()))
}

/// The distance of two losses, the losses that have mass, their masses, and the mass at infinity.
type WrittenLoss = (f64, Vec<f64>, Vec<f64>, f64);

impl ReleaseQuestion {
    /// One mechanism, repeated.
    fn repeated(
        &self,
        mechanism: &AnyMechanism,
        times: u64,
        progress: &Arc<Progress>,
    ) -> Result<Option<LowerAndUpper>, uptack::Error> {
        let release = match Law::of(mechanism) {
            Law::YesNo(law) => self.together(&law, times, progress)?.release,
            Law::Options(asked) => {
                ContributionViews::of(asked, self.owners, self.target, self.limit)?.repeated(times)?.release
            }
        };
        Ok(release.map(|ends| (ends.lower(), ends.upper())))
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
        let loss = |(mechanism, times): &ReleasePart| Ok((self.loss(mechanism, all, smallest, progress)?, *times));
        parts.iter().map(loss).collect()
    }

    /// A measure on privacy losses that dominates one release.
    fn loss(
        &self,
        mechanism: &AnyMechanism,
        repetitions: u64,
        smallest_delta: f64,
        progress: &Arc<Progress>,
    ) -> Result<LossDistribution, uptack::Error> {
        match Law::of(mechanism) {
            Law::YesNo(law) => privacy::release_loss(&self.accountant(&law, progress)?, repetitions, smallest_delta),
            Law::Options(asked) => {
                let accuracy = Accuracy::for_repetitions(repetitions, smallest_delta);
                LossDistribution::from_profile(&CountsProfile::new(asked, self)?, accuracy)
            }
        }
    }
}

/// How a mechanism is accounted for.
enum Law<'a> {
    /// As a yes/no question, which two options are, too.
    YesNo(Channel),
    Options(&'a Contributions),
}

impl<'a> Law<'a> {
    fn of(mechanism: &'a AnyMechanism) -> Self {
        match mechanism {
            AnyMechanism::YesNo(mechanism) => Self::YesNo(mechanism.channel()),
            AnyMechanism::Contributions(asked) => match asked.yes_no() {
                Some(mechanism) => Self::YesNo(mechanism.channel()),
                None => Self::Options(asked),
            },
        }
    }

    /// Local ε of all reports of one owner to `times` releases; none if there is no guarantee.
    fn linked(&self, times: u64) -> Result<Option<f64>, uptack::Error> {
        let once = match self {
            Self::YesNo(law) => privacy::linked_epsilon(law),
            Self::Options(asked) => linked_epsilon(asked),
        };
        once.map(|once| add_local(once, times)).transpose()
    }

    /// ε of `times` releases at δ = 0 by the noise of one honest aggregator; none without noise.
    fn by_noise(&self, times: u64) -> Result<Option<f64>, uptack::Error> {
        match self {
            Self::YesNo(law) => Ok(privacy::one_aggregator_together(law, times).map(|all| all.upper())),
            Self::Options(asked) => one_aggregator(asked).map(|once| add_local(once.upper(), times)).transpose(),
        }
    }
}

/// The certified δ of published counts of options: noise gives nothing away, so the smaller of what coins and noise guarantee.
struct CountsProfile {
    alone: OwnersAlone,
    noise: Option<PureProfile>,
}

impl CountsProfile {
    fn new(asked: &Contributions, question: &ReleaseQuestion) -> Result<Self, uptack::Error> {
        let alone = OwnersAlone::new(asked, question.owners)?.with_limit(question.limit);
        let noise = one_aggregator(asked).map(|claim| PureProfile::new(claim.upper())).transpose()?;
        Ok(Self { alone, noise })
    }
}

impl Profile for CountsProfile {
    fn delta_upper(&self, epsilon: f64) -> f64 {
        let by_noise = self.noise.map_or(1.0, |noise| noise.delta_upper(epsilon));
        if by_noise == 0.0 { 0.0 } else { by_noise.min(self.alone.delta_upper(epsilon)) }
    }

    fn deltas_upper(&self, epsilons: &[f64]) -> Vec<f64> {
        parallel::map(parallel::cores(), epsilons.len(), |index| self.delta_upper(epsilons[index]))
    }

    fn floor(&self) -> f64 {
        if self.noise.is_some() { 0.0 } else { Profile::floor(&self.alone) }
    }
}

/// The smallest δ that a composition is made precise for where ε is given.
const SMALLEST_DELTA: f64 = 1e-12;

/// A mechanism and how many times it is released.
type ReleasePart = (AnyMechanism, u64);

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
        let mechanism = |(text, times): (String, u64)| Ok::<_, uptack::Error>((text.parse::<AnyMechanism>()?, times));
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
        Ok(sum_of(&self.parts, |law, times| law.linked(times))?)
    }
}

/// The sum of a bound over all parts; `None` if a part has none.
fn sum_of(
    parts: &[ReleasePart],
    each: impl Fn(&Law<'_>, u64) -> Result<Option<f64>, uptack::Error>,
) -> Result<Option<f64>, uptack::Error> {
    let mut sum = Some(0.0);
    for (mechanism, times) in parts {
        let part = each(&Law::of(mechanism), *times)?;
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
    sum_of(parts, |law, times| Ok(smaller(law.linked(times)?, law.by_noise(times)?)))
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
            [(mechanism, times)] => question.repeated(mechanism, *times, progress),
            several => question.composed(several, progress),
        })
    }
}
