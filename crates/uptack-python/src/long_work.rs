//! Work that takes long: without the interpreter's lock, interruptible, with progress.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use uptack::simulate::Progress;

use crate::failure::internal;

/// Between two looks for signals.
const PAUSE: Duration = Duration::from_millis(50);

/// Somebody who is told how much of how much is done; 0 of all is not known.
pub(crate) type Listener<'a> = Option<&'a Bound<'a, PyAny>>;

/// Does work that counts its steps, of `all`.
pub(crate) fn counted<T: Send + 'static>(
    py: Python<'_>,
    listener: Listener<'_>,
    all: u64,
    work: impl FnOnce(&Arc<Progress>) -> T + Send + 'static,
) -> PyResult<T> {
    let progress = Arc::new(Progress::default());
    let (watched, stopped) = (Arc::clone(&progress), Arc::clone(&progress));
    let now = move || (if all == 0 { watched.done() } else { watched.done().min(all) }, all);
    followed(py, listener, now, move || stopped.stop(), move || work(&progress))
}

/// Does work on a thread of its own. On Ctrl-C, or if the listener fails, the work is told to stop and not waited for: what
/// does not look at the request comes to its end unseen.
pub(crate) fn followed<T: Send + 'static>(
    py: Python<'_>,
    listener: Listener<'_>,
    now: impl Fn() -> (u64, u64),
    stop: impl Fn(),
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let spawned = thread::Builder::new().name("uptack".to_owned()).spawn(move || {
        // Nobody listens any more after an interrupt.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    spawned.map_err(|error| internal(&format!("no thread: {error}")))?;
    loop {
        let (outcome, again) = py.detach(move || (receiver.recv_timeout(PAUSE), receiver));
        receiver = again;
        match outcome {
            Ok(Ok(found)) => return tell(listener, now()).map(|()| found),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return Err(internal("the work ended in a panic")),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = py.check_signals().and_then(|()| tell(listener, now())) {
                    stop();
                    return Err(error);
                }
            }
        }
    }
}

fn tell(listener: Listener<'_>, now: (u64, u64)) -> PyResult<()> {
    listener.map_or(Ok(()), |listener| listener.call1(now).map(drop))
}
