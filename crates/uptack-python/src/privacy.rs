//! Guarantees of mechanisms, once and composed.

use std::sync::Arc;

use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use uptack::privacy::{self, Accountant, Delta, Epsilon, Repeated, Target, Views, WorkLimit};
use uptack::{Channel, Progress};
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

/// Whichever of δ and ε is given.
pub(crate) fn target(delta: Option<f64>, epsilon: Option<f64>) -> Result<Target> {
    match (delta, epsilon) {
        (Some(delta), None) => Ok(Target::Delta(Delta::new(delta)?)),
        (None, Some(epsilon)) => Ok(Target::Epsilon(Epsilon::new(epsilon)?)),
        _ => Err(PyFailure::request("give one of delta and epsilon, and not both")),
    }
}

/// A question about releases to a crowd, and how much work the answer may take.
#[derive(Clone, Copy)]
pub(crate) struct ReleaseQuestion {
    pub(crate) owners: u64,
    pub(crate) target: Target,
    pub(crate) limit: WorkLimit,
}

impl ReleaseQuestion {
    fn views(&self, law: &Channel, progress: &Arc<Progress>) -> Result<Views, uptack::Error> {
        Views::of_watched(law, self.owners, self.target, self.limit, Some(progress))
    }

    pub(crate) fn accountant(&self, law: &Channel, progress: &Arc<Progress>) -> Result<Accountant, uptack::Error> {
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
    pub(crate) fn together(
        &self,
        law: &Channel,
        times: u64,
        progress: &Arc<Progress>,
    ) -> Result<Repeated, uptack::Error> {
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
}
