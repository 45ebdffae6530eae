//! Work that takes long: without the interpreter's lock, interruptible, with progress.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use uptack::Progress;

use crate::failure::{PyFailure, internal};

/// Time between two checks for signals.
const PAUSE: Duration = Duration::from_millis(50);

/// A callable that is told how much is done, and of how much; 0 if that is not known.
pub(crate) type Listener<'a> = Option<&'a Bound<'a, PyAny>>;

/// Does work that counts its steps, of `all`.
pub(crate) fn counted<T, E>(
    py: Python<'_>,
    listener: Listener<'_>,
    all: u64,
    work: impl FnOnce(&Arc<Progress>) -> Result<T, E> + Send + 'static,
) -> PyResult<T>
where
    T: Send + 'static,
    E: Into<PyFailure> + Send + 'static,
{
    let progress = Arc::new(Progress::default());
    let (watched, stopped) = (Arc::clone(&progress), Arc::clone(&progress));
    let now = move || (if all == 0 { watched.done() } else { watched.done().min(all) }, all);
    followed(py, listener, now, move || stopped.stop(), move || work(&progress))
}

/// Does work on its own thread. On Ctrl-C, or if the listener fails, the work is told to stop but not waited for: work that
/// ignores the request runs to its end unseen.
pub(crate) fn followed<T, E>(
    py: Python<'_>,
    listener: Listener<'_>,
    now: impl Fn() -> (u64, u64),
    stop: impl Fn(),
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> PyResult<T>
where
    T: Send + 'static,
    E: Into<PyFailure> + Send + 'static,
{
    let mut receiver = spawn(work)?;
    loop {
        let (outcome, again) = py.detach(move || (receiver.recv_timeout(PAUSE), receiver));
        receiver = again;
        match outcome {
            Ok(Ok(found)) => {
                tell(listener, now())?;
                return found.map_err(|error| PyErr::from(Into::<PyFailure>::into(error)));
            }
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return Err(internal("the work ended in a panic")),
            Err(RecvTimeoutError::Timeout) => check_in(py, listener, now()).inspect_err(|_| stop())?,
        }
    }
}

/// Looks for signals, and tells the listener of the progress.
pub(crate) fn check_in(py: Python<'_>, listener: Listener<'_>, now: (u64, u64)) -> PyResult<()> {
    py.check_signals()?;
    tell(listener, now)
}

fn tell(listener: Listener<'_>, now: (u64, u64)) -> PyResult<()> {
    listener.map_or(Ok(()), |listener| listener.call1(now).map(drop))
}

/// Starts work on its own thread, which sends the result, or the panic that ended it.
fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> PyResult<Receiver<thread::Result<T>>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let spawned = thread::Builder::new().name("uptack".to_owned()).spawn(move || {
        // After an interrupt nobody is listening any more.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    spawned.map_err(|error| internal(&format!("no thread: {error}")))?;
    Ok(receiver)
}
