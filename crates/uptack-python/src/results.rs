//! Simulation, the paper's evaluation, algebra, verification, several queries, and how numbers are shown.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use uptack::algebra::Program;
use uptack::display;
use uptack::estimate::many::{self, Sharing};
use uptack::privacy::WorkLimit;
use uptack::simulate::{CrowdSampling, Simulation};
use uptack_dap::release::verification::{Document, Verifier};
use uptack_dap::signed::PublicKey;
use uptack_document::{AlgebraDocument, PredictedSd, SimulationDocument, check_holds, verification_json};
use uptack_eval::evaluation::Evaluation;
use uptack_eval::settings::{EvaluationSettings, Watch};
use uptack_eval::traffic::{self, Traffic};

use crate::channel::{PyChannel, read_confidence, read_interval, seed_or_random};
use crate::failure::{PyFailure, Result, to_text};
use crate::long_work::{Listener, counted, followed};

/// Whole runs, as `uptack simulate --json` prints them, and the estimate of each if they are to be kept.
#[pyfunction]
#[pyo3(signature = (channel, *, owners, yes, trials, seed, confidence, interval, per_owner, keep_estimates, progress))]
#[allow(clippy::too_many_arguments, reason = "they are keywords, and the package's own code names them again")]
pub(crate) fn simulate(
    py: Python<'_>,
    channel: &PyChannel,
    owners: u64,
    yes: u64,
    trials: u64,
    seed: Option<u64>,
    confidence: &str,
    interval: &str,
    per_owner: bool,
    keep_estimates: bool,
    progress: Listener<'_>,
) -> PyResult<(String, Vec<f64>)> {
    let simulation = Simulation {
        owners,
        yes,
        trials,
        seed: seed_or_random(seed)?,
        confidence: read_confidence(confidence)?,
        interval: read_interval(interval)?,
        crowd: if per_owner { CrowdSampling::PerOwner } else { CrowdSampling::Aggregated },
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let law = channel.channel.clone();
    let (result, estimates) = counted(py, progress, trials, move |progress| {
        if keep_estimates {
            return simulation.run_keeping_estimates(&law, threads, progress);
        }
        simulation.run_with(&law, threads, progress).map(|result| (result, Vec::new()))
    })?;
    Ok((to_text(&SimulationDocument::new(channel.mechanism.to_string(), &simulation, &result))?, estimates))
}

/// All rows, as `uptack evaluate --json` prints them; without data, of generated traffic.
#[pyfunction]
#[pyo3(signature = (*, data, at, trials, factors, seed, progress))]
pub(crate) fn evaluate(
    py: Python<'_>,
    data: Option<PathBuf>,
    at: Option<u32>,
    trials: u64,
    factors: Vec<u64>,
    seed: u64,
    progress: Listener<'_>,
) -> PyResult<String> {
    if factors.is_empty() || factors.contains(&0) {
        return Err(PyFailure::request("factors: give at least one, of 1 or more").into());
    }
    let traffic = match data {
        None => traffic::generate(seed).map_err(PyFailure::from)?,
        Some(path) => Traffic::read(File::open(path)?, at).map_err(PyFailure::from)?,
    };
    let settings = EvaluationSettings { factors, trials, seed, ..EvaluationSettings::default() };
    to_text(&run_evaluation(py, traffic, settings, progress)?.json())
}

fn run_evaluation(
    py: Python<'_>,
    traffic: Traffic,
    settings: EvaluationSettings,
    listener: Listener<'_>,
) -> PyResult<Evaluation> {
    let watch = Arc::new(Watch::default());
    let (watched, stopped) = (Arc::clone(&watch), Arc::clone(&watch));
    let now = move || {
        let (_, done, all) = watched.now();
        (done, all)
    };
    followed(py, listener, now, move || stopped.stop(), move || Evaluation::run(traffic, settings, &watch))
}

/// A program of the privacy algebra: its channel, and what `uptack algebra --json` prints.
#[pyfunction]
#[pyo3(signature = (text, *, owners, yes))]
pub(crate) fn algebra(text: &str, owners: Option<u64>, yes: Option<u64>) -> PyResult<(PyChannel, String)> {
    let program = Program::parse(text).map_err(PyFailure::from)?;
    let solution = program.solve();
    let crowd = PredictedSd::of(solution.as_ref(), owners, yes).map_err(PyFailure::from)?;
    let compiled = PyChannel::new(program.mechanism().clone());
    let document = to_text(&AlgebraDocument::new(&program, &compiled.channel, solution.as_ref(), crowd.as_ref()))?;
    Ok((compiled, document))
}

/// The check of a card or record, as `uptack verify --json` prints it.
#[pyfunction]
#[pyo3(signature = (text, *, toml, desk_key, allow_wider, work, progress))]
pub(crate) fn verify(
    py: Python<'_>,
    text: &str,
    toml: bool,
    desk_key: Option<&str>,
    allow_wider: bool,
    work: u64,
    progress: Listener<'_>,
) -> PyResult<String> {
    let document = if toml { read_card(text)? } else { read_document(text)? };
    let key = desk_key.map(read_desk_key).transpose()?;
    let limit = WorkLimit::default().times(work);
    let all = Verifier { desk_key: key.as_ref(), limit }.work(&document);
    let (kind, card) = (document.name(), document.card().ok());
    let not_checked = document.not_checked(key.as_ref());
    let checks = counted(py, progress, all, move |progress| {
        Verifier { desk_key: key.as_ref(), limit }.verify(&document, progress)
    })?;
    let sound = checks.iter().all(|check| check_holds(check, allow_wider));
    let trust = card.filter(|_| sound).and_then(|card| card.trust().ok()).unwrap_or_default();
    to_text(&verification_json(kind, &checks, &not_checked, &trust, allow_wider))
}

fn read_card(toml: &str) -> Result<Document> {
    let card = toml::from_str(toml).map_err(|error| PyFailure::request(format!("not a query card: {error}")))?;
    Ok(Document::Card(Box::new(card)))
}

fn read_document(text: &str) -> Result<Document> {
    let hint = "give a query card (.toml or JSON), a signed card, or what `uptack result --out` wrote";
    Document::from_json(text).map_err(|error| PyFailure::from(error).with_hint(hint))
}

fn read_desk_key(text: &str) -> Result<PublicKey> {
    text.parse().map_err(|error| PyFailure::request(format!("desk_key: {error}")))
}

/// The probability with which each of several intervals may miss.
#[pyfunction]
pub(crate) fn each_confidence(confidence: &str, queries: usize, sharing: &str) -> Result<f64> {
    let sharing = match sharing {
        "bonferroni" => Sharing::Bonferroni,
        "sidak" => Sharing::Sidak,
        other => {
            return Err(PyFailure::request(format!("sharing: `{}` is unknown", other.escape_debug()))
                .with_hint("it is bonferroni or sidak"));
        }
    };
    Ok(many::simultaneous(read_confidence(confidence)?, queries, sharing)?.miss())
}

/// The kind of the intervals that hold at once, by its name.
#[pyfunction]
pub(crate) fn simultaneous_kind(interval: &str) -> Result<&'static str> {
    Ok(uptack_document::interval_name(many::simultaneous_kind(read_interval(interval)?)))
}

/// Estimates with their standard deviations, made to sum to the owners.
#[pyfunction]
pub(crate) fn consistent(estimates: Vec<(f64, f64)>, owners: u64) -> Result<Vec<(f64, f64)>> {
    let adjusted = many::consistent(&estimates, owners)?;
    Ok(adjusted.into_iter().map(|query| (query.estimate, query.sd)).collect())
}

/// A claim for people: rounded up.
#[pyfunction]
pub(crate) fn claim(value: Option<f64>) -> String {
    display::claim(value)
}

/// A number for people.
#[pyfunction]
pub(crate) fn nearest(value: f64) -> String {
    display::nearest(value)
}
