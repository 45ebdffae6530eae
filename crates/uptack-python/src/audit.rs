//! Audits: of our own sampler, and of any callable.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use uptack::audit::{Audit, AuditCoins, ClaimedEpsilons, ForeignAudit, ForeignOutputs};
use uptack::privacy::{Delta, Epsilon};
use uptack_document::{AuditDocument, ForeignDocument};

use crate::channel::{PyChannel, read_confidence};
use crate::failure::{PyFailure, Result, to_text};
use crate::long_work::{Listener, check_in, counted};

/// Audits the real sampler of a channel, as `uptack audit --json` prints it.
#[pyfunction]
#[pyo3(signature = (channel, *, samples, owners, delta, confidence, seed, progress))]
#[allow(clippy::too_many_arguments, reason = "they are keywords, and the package's own code names them again")]
pub(crate) fn audit_channel(
    py: Python<'_>,
    channel: &PyChannel,
    samples: u64,
    owners: u64,
    delta: f64,
    confidence: &str,
    seed: Option<u64>,
    progress: Listener<'_>,
) -> PyResult<String> {
    let coins = seed.map_or(AuditCoins::System, AuditCoins::Seeded);
    let audit = Audit { samples, owners, confidence: read_confidence(confidence)?, coins };
    let law = channel.channel.clone();
    let report = counted(py, progress, samples, move |progress| {
        let claims = ClaimedEpsilons::of(&law, owners, delta)?;
        audit.run_with(&law, &claims, progress)
    })?;
    to_text(&AuditDocument::new(channel.mechanism.to_string(), &audit, delta, &report))
}

/// Audits a callable that takes a truth and returns anything, or that takes an array of truths and returns one output for
/// each. `claimed` are the ε and δ that it claims.
#[pyfunction]
#[pyo3(signature = (randomizer, name, *, claimed, samples, confidence, batch, progress))]
#[allow(clippy::too_many_arguments, reason = "they are keywords, and the package's own code names them again")]
pub(crate) fn audit_callable(
    py: Python<'_>,
    randomizer: &Bound<'_, PyAny>,
    name: &str,
    claimed: (f64, f64),
    samples: u64,
    confidence: &str,
    batch: Option<usize>,
    progress: Listener<'_>,
) -> PyResult<String> {
    let audit = read_audit(claimed, samples, confidence)?;
    let outputs = audit.listen().map_err(PyFailure::from)?;
    let mut interview = Interview { randomizer, outputs, samples, progress };
    match batch {
        Some(size) => interview.ask_in_batches(size.max(1))?,
        None => interview.ask_one_by_one()?,
    }
    let report = py.detach(|| interview.outputs.report()).map_err(PyFailure::from)?;
    to_text(&ForeignDocument::new(name, &audit, &report))
}

fn read_audit((epsilon, delta): (f64, f64), samples: u64, confidence: &str) -> Result<ForeignAudit> {
    Ok(ForeignAudit {
        epsilon: Some(Epsilon::new(epsilon)?),
        delta: if delta == 0.0 { None } else { Some(Delta::new(delta)?) },
        samples,
        confidence: read_confidence(confidence)?,
    })
}

/// Calls between two checks for signals.
const CALLS: u64 = 4096;

/// A callable that is asked truth by truth until there are enough outputs.
struct Interview<'a> {
    randomizer: &'a Bound<'a, PyAny>,
    outputs: ForeignOutputs,
    samples: u64,
    progress: Listener<'a>,
}

impl Interview<'_> {
    fn ask_one_by_one(&mut self) -> PyResult<()> {
        while self.outputs.seen() < self.samples {
            let output = self.randomizer.call1((ForeignOutputs::truth(self.outputs.seen()),))?;
            hear(&output, &mut self.outputs)?;
            if self.outputs.seen().is_multiple_of(CALLS) {
                self.check_in()?;
            }
        }
        Ok(())
    }

    fn ask_in_batches(&mut self, size: usize) -> PyResult<()> {
        while self.outputs.seen() < self.samples {
            let start = self.outputs.seen();
            self.ask_batch(start, self.samples.min(start.saturating_add(size as u64)))?;
            self.check_in()?;
        }
        Ok(())
    }

    fn ask_batch(&mut self, start: u64, end: u64) -> PyResult<()> {
        let truths: Vec<bool> = (start..end).map(ForeignOutputs::truth).collect();
        let answer = self.randomizer.call1((numpy::PyArray1::from_vec(self.randomizer.py(), truths),))?;
        let mut heard = 0;
        for output in answer.try_iter()? {
            heard += 1;
            if start + heard <= end {
                hear(&output?, &mut self.outputs)?;
            }
        }
        if start + heard != end {
            return Err(wrong_number(heard, end - start).into());
        }
        Ok(())
    }

    fn check_in(&self) -> PyResult<()> {
        check_in(self.randomizer.py(), self.progress, (self.outputs.seen(), self.samples))
    }
}

fn wrong_number(heard: u64, truths: u64) -> PyFailure {
    PyFailure::request(format!("the randomizer returned {heard} outputs for {truths} truths"))
        .with_hint("it must return one output for each truth, in their order")
}

/// Bytes and text count as they are, arrays by their shape and bytes, anything else by its `repr`.
fn hear(output: &Bound<'_, PyAny>, outputs: &mut ForeignOutputs) -> PyResult<()> {
    if let Ok(bytes) = output.cast::<PyBytes>() {
        outputs.hear(bytes.as_bytes());
    } else if let Ok(text) = output.cast::<PyString>() {
        // Text with lone surrogates is an output like any other.
        outputs.hear(text.to_string_lossy().as_bytes());
    } else if is_array(output)? {
        outputs.hear(&array_bytes(output)?);
    } else if output.hasattr("item")? {
        outputs.hear(output.call_method0("item")?.repr()?.to_string_lossy().as_bytes());
    } else {
        outputs.hear(output.repr()?.to_string_lossy().as_bytes());
    }
    Ok(())
}

/// Whether it is an array of at least one dimension.
fn is_array(output: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(output.hasattr("tobytes")? && output.hasattr("shape")? && output.getattr("shape")?.len()? > 0)
}

fn array_bytes(array: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let shape = array.getattr("shape")?.repr()?.to_string();
    let bytes = array.call_method0("tobytes")?;
    Ok([shape.as_bytes(), bytes.extract::<&[u8]>()?].concat())
}
