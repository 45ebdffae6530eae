//! The paper's evaluation.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use uptack_eval::evaluation::Evaluation;
use uptack_eval::settings::{EvaluationSettings, Watch};
use uptack_eval::traffic::{self, Traffic};

use crate::failure::{PyFailure, to_text};
use crate::long_work::{Listener, followed};

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
    to_text(&run(py, traffic, settings, progress)?.json())
}

fn run(py: Python<'_>, traffic: Traffic, settings: EvaluationSettings, listener: Listener<'_>) -> PyResult<Evaluation> {
    let watch = Arc::new(Watch::default());
    let (watched, stopped) = (Arc::clone(&watch), Arc::clone(&watch));
    let now = move || {
        let (_, done, all) = watched.now();
        (done, all)
    };
    followed(py, listener, now, move || stopped.stop(), move || Evaluation::run(traffic, settings, &watch))
}
