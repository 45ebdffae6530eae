//! Audits: of our own sampler, and of any callable.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use uptack::audit::{Audit, AuditCoins, Claims, ForeignAudit, ForeignOutputs};
use uptack::privacy::{Delta, Epsilon};
use uptack_document::{AuditDocument, ForeignDocument};

use crate::channel::{PyChannel, read_confidence};
use crate::failure::{Failure, to_text};
use crate::long_work::{Listener, counted};

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
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let coins = seed.map_or(AuditCoins::System, AuditCoins::Seeded);
    let audit = Audit { samples, owners, confidence: read_confidence(confidence)?, coins };
    let law = channel.channel.clone();
    let report = counted(py, progress, samples, move |progress| {
        let claims = Claims::of(&law, owners, delta)?;
        audit.run_with(&law, &claims, progress)
    })?;
    let report = report.map_err(Failure::from)?;
    to_text(&AuditDocument::new(channel.mechanism.to_string(), &audit, delta, &report))
}

/// Audits a callable that takes a truth and says anything, or that takes an array of truths and says one thing to each.
#[pyfunction]
#[pyo3(signature = (randomizer, name, *, epsilon, delta, samples, confidence, batch, progress))]
#[allow(clippy::too_many_arguments, reason = "they are keywords, and the package's own code names them again")]
pub(crate) fn audit_callable(
    py: Python<'_>,
    randomizer: &Bound<'_, PyAny>,
    name: &str,
    epsilon: f64,
    delta: f64,
    samples: u64,
    confidence: &str,
    batch: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let audit = ForeignAudit {
        epsilon: Some(Epsilon::new(epsilon).map_err(Failure::from)?),
        delta: if delta == 0.0 { None } else { Some(Delta::new(delta).map_err(Failure::from)?) },
        samples,
        confidence: read_confidence(confidence)?,
    };
    let mut outputs = audit.listen().map_err(Failure::from)?;
    match batch {
        Some(size) => hear_batches(py, randomizer, &mut outputs, samples, size.max(1), progress)?,
        None => hear_one_by_one(py, randomizer, &mut outputs, samples, progress)?,
    }
    let report = py.detach(|| outputs.report()).map_err(Failure::from)?;
    to_text(&ForeignDocument::new(name, &audit, &report))
}

/// Calls between two looks for signals.
const CALLS: u64 = 4096;

fn hear_one_by_one(
    py: Python<'_>,
    randomizer: &Bound<'_, PyAny>,
    outputs: &mut ForeignOutputs,
    samples: u64,
    progress: Listener<'_>,
) -> PyResult<()> {
    while outputs.seen() < samples {
        let said = randomizer.call1((ForeignOutputs::truth(outputs.seen()),))?;
        hear(&said, outputs)?;
        if outputs.seen().is_multiple_of(CALLS) {
            py.check_signals()?;
            progress.map_or(Ok(()), |progress| progress.call1((outputs.seen(), samples)).map(drop))?;
        }
    }
    Ok(())
}

fn hear_batches(
    py: Python<'_>,
    randomizer: &Bound<'_, PyAny>,
    outputs: &mut ForeignOutputs,
    samples: u64,
    size: usize,
    progress: Listener<'_>,
) -> PyResult<()> {
    while outputs.seen() < samples {
        let start = outputs.seen();
        let end = samples.min(start.saturating_add(size as u64));
        let truths: Vec<bool> = (start..end).map(ForeignOutputs::truth).collect();
        let array = numpy::PyArray1::from_vec(py, truths);
        let said = randomizer.call1((array,))?;
        let mut heard = 0;
        for output in said.try_iter()? {
            heard += 1;
            if start + heard <= end {
                hear(&output?, outputs)?;
            }
        }
        if start + heard != end {
            return Err(Failure::request(format!("the randomizer says {heard} things to {} truths", end - start))
                .with_hint("it must return one output for each truth, in their order")
                .into());
        }
        py.check_signals()?;
        progress.map_or(Ok(()), |progress| progress.call1((outputs.seen(), samples)).map(drop))?;
    }
    Ok(())
}

/// Bytes and text are as they are; anything else is what `repr` says of it, arrays by their bytes.
fn hear(said: &Bound<'_, PyAny>, outputs: &mut ForeignOutputs) -> PyResult<()> {
    if let Ok(bytes) = said.cast::<PyBytes>() {
        outputs.hear(bytes.as_bytes());
    } else if let Ok(text) = said.cast::<PyString>() {
        // Also text with lone surrogates is an output like any other.
        outputs.hear(text.to_string_lossy().as_bytes());
    } else if said.hasattr("tobytes")? && said.hasattr("shape")? && said.getattr("shape")?.len()? > 0 {
        let shape = said.getattr("shape")?.repr()?.to_string();
        let bytes = said.call_method0("tobytes")?;
        outputs.hear(&[shape.as_bytes(), bytes.extract::<&[u8]>()?].concat());
    } else if said.hasattr("item")? {
        outputs.hear(said.call_method0("item")?.repr()?.to_string_lossy().as_bytes());
    } else {
        outputs.hear(said.repr()?.to_string_lossy().as_bytes());
    }
    Ok(())
}
