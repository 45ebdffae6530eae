//! How far a long computation has come, and whether it is to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Lets a caller show how far a computation on other threads has come, and stop it early.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// How many units of work are done: trials, calls, steps or points, as the computation says.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// One more unit is done.
    pub fn advance(&self) {
        self.advance_by(1);
    }

    /// This many more are done.
    pub fn advance_by(&self, more: u64) {
        self.done.fetch_add(more, Ordering::Relaxed);
    }

    /// Asks the workers to stop after what they are doing.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
