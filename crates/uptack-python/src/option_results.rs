//! What is said about mechanisms with options: guarantees, audits, simulations, and bars.

use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use uptack::audit::{Audit, AuditCoins, ClaimedEpsilons};
use uptack::contribution::Contributions;
use uptack::privacy::contributions::{ContributionViews, linked_epsilon, one_aggregator, statement};
use uptack::privacy::{self, Target, WorkLimit};
use uptack::simulate::{ContributionSimulation, CrowdSampling};
use uptack_chart::{Bar, Bars};
use uptack_document::{
    AuditDocument, contribution_privacy_json, contribution_views_json, pure_json, simulated_options_json,
};

use crate::channel::{read_confidence, read_interval, seed_or_random};
use crate::contributions::PyContributions;
use crate::failure::{PyFailure, Result, to_text};
use crate::long_work::{Listener, counted};
use crate::plan::{share, word};
use crate::privacy::target;

/// The views of a mechanism with options, by their names in the document.
const VIEWS: &[(&str, &str)] = &[
    ("linked", "linked"),
    ("one_aggregator", "one_aggregator"),
    ("release", "release"),
    ("owners_alone", "owners_alone"),
];

/// Every view, as `uptack privacy --json` prints it, or those of these names alone. Exactly one of `delta` and `epsilon` is
/// given.
#[pyfunction]
#[pyo3(signature = (contributions, owners, *, views, delta, epsilon, repeat, honest, work, progress))]
#[allow(clippy::too_many_arguments, reason = "they are keywords, and the package's own code names them again")]
pub(crate) fn contribution_privacy(
    py: Python<'_>,
    contributions: &PyContributions,
    owners: u64,
    views: Option<Vec<String>>,
    delta: Option<f64>,
    epsilon: Option<f64>,
    repeat: Option<u64>,
    honest: &str,
    work: u64,
    progress: Listener<'_>,
) -> PyResult<String> {
    let owners = privacy::honest_owners(owners, &share("honest", honest)?).map_err(PyFailure::from)?;
    let (target, limit) = (target(delta, epsilon)?, WorkLimit::default().times(work));
    let asked = contributions.asked.clone();
    let wanted = views.map(|names| names.iter().map(|name| word("views", name, VIEWS)).collect::<Result<Vec<_>>>());
    let wanted = wanted.transpose()?;
    let document = counted(py, progress, 1, move |progress| {
        let document = match wanted {
            None => all_views(&asked, owners, target, limit, repeat),
            Some(wanted) => some_views(&asked, owners, target, limit, repeat, &wanted),
        };
        progress.advance();
        document
    })?;
    to_text(&document)
}

fn all_views(
    asked: &Contributions,
    owners: u64,
    target: Target,
    limit: WorkLimit,
    repeat: Option<u64>,
) -> Result<Value, uptack::Error> {
    let views = ContributionViews::of(asked, owners, target, limit)?;
    let repeated = repeat.map(|times| views.repeated(times)).transpose()?;
    let words = statement(&views, repeated.as_ref())?;
    Ok(contribution_privacy_json(&views, repeated.as_ref(), &words))
}

/// The document with these views alone. Only those of the published counts take work, and those take it together.
fn some_views(
    asked: &Contributions,
    owners: u64,
    target: Target,
    limit: WorkLimit,
    repeat: Option<u64>,
    wanted: &[&str],
) -> Result<Value, uptack::Error> {
    let is_certified = repeat.is_some() || wanted.iter().any(|view| ["release", "owners_alone"].contains(view));
    let certified = is_certified.then(|| ContributionViews::of(asked, owners, target, limit)).transpose()?;
    let all = match &certified {
        Some(views) => contribution_views_json(views),
        None => json!({"linked": linked_epsilon(asked), "one_aggregator": one_aggregator(asked).map(pure_json)}),
    };
    let views: Map<String, Value> = wanted.iter().map(|&view| (view.to_owned(), all[view].clone())).collect();
    let mut document = json!({"mechanism": asked.to_string(), "owners": owners, "views": views});
    if let Some((views, times)) = certified.as_ref().zip(repeat) {
        document["repeated"] = contribution_privacy_json(views, Some(&views.repeated(times)?), "")["repeated"].clone();
    }
    Ok(document)
}

/// Audits the real sampler of a mechanism with options, as `uptack audit --json` prints it.
#[pyfunction]
#[pyo3(signature = (contributions, *, samples, owners, confidence, seed, progress))]
pub(crate) fn audit_contributions(
    py: Python<'_>,
    contributions: &PyContributions,
    samples: u64,
    owners: u64,
    confidence: &str,
    seed: Option<u64>,
    progress: Listener<'_>,
) -> PyResult<String> {
    let coins = seed.map_or(AuditCoins::System, AuditCoins::Seeded);
    let audit = Audit { samples, owners, confidence: read_confidence(confidence)?, coins };
    let asked = contributions.asked.clone();
    let (report, delta) = counted(py, progress, samples, move |progress| {
        let claims = ClaimedEpsilons::of_contributions(&asked);
        audit.run_contributions_with(&asked, &claims, progress).map(|report| (report, claims.delta))
    })?;
    to_text(&AuditDocument::new(contributions.asked.to_string(), &audit, delta, &report))
}

/// Whole runs, as `uptack simulate --json` prints them. `counts` are the owners who truly have each option.
#[pyfunction]
#[pyo3(signature = (contributions, *, owners, counts, trials, seed, confidence, interval, per_owner, progress))]
#[allow(clippy::too_many_arguments, reason = "they are keywords, and the package's own code names them again")]
pub(crate) fn simulate_contributions(
    py: Python<'_>,
    contributions: &PyContributions,
    owners: u64,
    counts: Vec<u64>,
    trials: u64,
    seed: Option<u64>,
    confidence: &str,
    interval: &str,
    per_owner: bool,
    progress: Listener<'_>,
) -> PyResult<String> {
    let simulation = ContributionSimulation {
        owners,
        counts,
        trials,
        seed: seed_or_random(seed)?,
        confidence: read_confidence(confidence)?,
        interval: read_interval(interval)?,
        crowd: if per_owner { CrowdSampling::PerOwner } else { CrowdSampling::Aggregated },
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (asked, names) = (contributions.asked.clone(), contributions.names.clone());
    let document = counted(py, progress, trials, move |progress| {
        let result = simulation.run_with(&asked, threads, progress)?;
        Ok::<_, uptack::Error>(simulated_options_json(&asked, &names, &simulation, &result))
    })?;
    to_text(&document)
}

/// A bar's name, value, and the ends of its interval.
type WrittenBar = (String, f64, f64, f64);

/// Bars with intervals, as SVG.
#[pyfunction]
pub(crate) fn bars(title: String, subtitle: String, bars: Vec<WrittenBar>) -> String {
    let bar = |(name, value, low, high): WrittenBar| Bar { name, value, low, high };
    Bars { title, subtitle, bars: bars.into_iter().map(bar).collect(), ..Bars::default() }.to_svg()
}
