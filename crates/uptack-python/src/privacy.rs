//! Guarantees of mechanisms, once and composed.

use std::sync::Arc;

use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use uptack::Progress;
use uptack::privacy::composition::{Composition, FixedInAdvance, LossDistribution, add_local};
use uptack::privacy::{self, Accountant, Delta, Epsilon, Repeated, Target, Views, WorkLimit};
use uptack::{Channel, Mechanism};
use uptack_document::{PrivacyDocument, pure_json, repeated_json};

use crate::channel::PyChannel;
use crate::failure::{PyFailure, Result, to_text};
use crate::long_work::{Listener, counted};
use crate::plan::{share, word};

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

/// The views of these names, with the keys of the whole document that are about them. Nothing else is computed.
#[pyfunction]
#[pyo3(signature = (channel, owners, *, views, delta, epsilon, repeat, honest, work, progress))]
#[allow(clippy::too_many_arguments, reason = "they are keywords, and the package's own code names them again")]
pub(crate) fn some_views(
    py: Python<'_>,
    channel: &PyChannel,
    owners: u64,
    views: Vec<String>,
    delta: Option<f64>,
    epsilon: Option<f64>,
    repeat: Option<u64>,
    honest: &str,
    work: u64,
    progress: Listener<'_>,
) -> PyResult<String> {
    let owners = privacy::honest_owners(owners, &share("honest", honest)?).map_err(PyFailure::from)?;
    let question = ReleaseQuestion { owners, target: target(delta, epsilon)?, limit: WorkLimit::default().times(work) };
    let wanted = views.iter().map(|name| ViewName::named(name)).collect::<Result<Vec<_>>>()?;
    let law = channel.channel.clone();
    let all = question.work(&law, &wanted);
    let mut document = counted(py, progress, all, move |progress| question.some(&law, &wanted, repeat, progress))?;
    document["mechanism"] = json!(channel.mechanism.to_string());
    to_text(&document)
}

/// A measure on privacy losses that dominates one release.
#[pyfunction]
#[pyo3(signature = (channel, owners, *, repetitions, smallest_delta, honest, work, progress))]
#[allow(clippy::too_many_arguments, reason = "they are keywords, and the package's own code names them again")]
pub(crate) fn release_loss(
    py: Python<'_>,
    channel: &PyChannel,
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
    let law = channel.channel.clone();
    let loss = counted(py, progress, 0, move |progress| {
        privacy::release_loss(&question.accountant(&law, progress)?, repetitions, smallest_delta)
    })?;
    let (losses, masses) = loss.losses().filter(|(_, mass)| *mass > 0.0).unzip();
    Ok((loss.spacing(), losses, masses, loss.infinite_mass()))
}

/// The distance of two losses, the losses that have mass, their masses, and the mass at infinity.
type WrittenLoss = (f64, Vec<f64>, Vec<f64>, f64);

/// A view by its name in the document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ViewName {
    Answers,
    Linked,
    OneAggregator,
    Release,
    OwnersAlone,
    AnswersWithRelease,
}

impl ViewName {
    const ALL: [(&'static str, Self); 6] = [
        ("answers", Self::Answers),
        ("linked", Self::Linked),
        ("one_aggregator", Self::OneAggregator),
        ("release", Self::Release),
        ("owners_alone", Self::OwnersAlone),
        ("answers_with_release", Self::AnswersWithRelease),
    ];

    fn named(name: &str) -> Result<Self> {
        word("views", name, &Self::ALL)
    }

    fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// How many certificates all views take.
    fn all_certificates(law: &Channel) -> u64 {
        Self::ALL.iter().map(|(_, view)| view.certificates(law)).sum()
    }

    /// How many certificates over all crowds it takes.
    fn certificates(self, law: &Channel) -> u64 {
        match self {
            Self::Answers | Self::Linked | Self::OneAggregator => 0,
            Self::Release => 1,
            Self::OwnersAlone => u64::from(law.noise().is_some()),
            Self::AnswersWithRelease => law.answers().len() as u64,
        }
    }
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

    /// The most steps that these views may take.
    fn work(&self, law: &Channel, wanted: &[ViewName]) -> u64 {
        let certificates: u64 = wanted.iter().map(|view| view.certificates(law)).sum();
        let each = Views::work(law, self.owners, self.limit) / ViewName::all_certificates(law);
        each.saturating_mul(certificates)
    }

    /// The document with these views alone.
    fn some(
        &self,
        law: &Channel,
        wanted: &[ViewName],
        repeat: Option<u64>,
        progress: &Arc<Progress>,
    ) -> Result<Value, uptack::Error> {
        let mut views = Map::new();
        for view in wanted {
            views.insert(view.name().to_owned(), self.view(law, *view, progress)?);
        }
        let mut document = json!({"owners": self.owners, "views": views});
        if let Some(times) = repeat {
            document["repeated"] = repeated_json(&self.together(law, times, progress)?, self.target);
        }
        Ok(document)
    }

    /// One view, as it stands in the whole document.
    fn view(&self, law: &Channel, view: ViewName, progress: &Arc<Progress>) -> Result<Value, uptack::Error> {
        let certified = |accountant: Accountant| {
            accountant.with_limit(self.limit).watched(Some(progress)).guarantee(self.target).json()
        };
        let answers = 0..law.answers().len();
        Ok(match view {
            ViewName::Answers => {
                json!(answers.map(|answer| privacy::answer_epsilon(law, answer)).collect::<Result<Vec<_>, _>>()?)
            }
            ViewName::Linked => json!(privacy::linked_epsilon(law)),
            ViewName::OneAggregator => json!(privacy::one_aggregator(law).map(pure_json)),
            ViewName::Release => certified(privacy::release(law, self.owners)?),
            ViewName::OwnersAlone if law.noise().is_none() => Value::Null,
            ViewName::OwnersAlone => certified(privacy::owners_alone(law, self.owners)?),
            ViewName::AnswersWithRelease => answers
                .map(|answer| Ok(certified(privacy::answer_with_release(law, answer, self.owners)?)))
                .collect::<Result<_, uptack::Error>>()?,
        })
    }

    /// The composition of a mechanism with itself, which needs no view of a crowd but the release.
    fn together(&self, law: &Channel, times: u64, progress: &Arc<Progress>) -> Result<Repeated, uptack::Error> {
        let accountant = self.accountant(law, progress)?;
        let answers = 0..law.answers().len();
        let views = Views {
            answers: answers.map(|answer| privacy::answer_epsilon(law, answer)).collect::<Result<_, _>>()?,
            linked: privacy::linked_epsilon(law),
            one_aggregator: privacy::one_aggregator(law),
            release: accountant.guarantee(self.target),
            owners_alone: None,
            answers_with_release: Vec::new(),
        };
        Repeated::of(&views, &accountant, self.target, times)
    }

    /// One mechanism, repeated.
    fn repeated(
        &self,
        law: &Channel,
        times: u64,
        progress: &Arc<Progress>,
    ) -> Result<Option<LowerAndUpper>, uptack::Error> {
        let repeated = self.together(law, times, progress)?;
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
