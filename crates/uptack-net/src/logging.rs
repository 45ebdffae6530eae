//! Structured logs for the programs of this project.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use tracing_subscriber::filter::LevelFilter;

/// Writes one JSON object a line to standard error, from `level` up. Later calls change nothing.
///
/// Log lines carry names of tasks, counts, states and reasons: no token, no key, no share, no
/// report, and no address of a client.
pub fn init(level: tracing::Level) {
    let _ = tracing_subscriber::fmt()
        .json()
        .with_max_level(LevelFilter::from_level(level))
        .with_writer(std::io::stderr)
        .try_init();
}

/// Logs from `INFO` up, or from `DEBUG` up.
pub fn init_verbose(verbose: bool) {
    init(if verbose { tracing::Level::DEBUG } else { tracing::Level::INFO });
}

/// Between two log lines about the same trouble. Shorter, and a full disk is filled by its own log.
const PAUSE: Duration = Duration::from_secs(30);

/// A log line that repeats itself as often as somebody outside likes, and is written at most twice a minute.
///
/// ```
/// use uptack_net::logging::Occasional;
///
/// static TROUBLE: Occasional = Occasional::new();
/// TROUBLE.note(|unsaid| tracing::error!(unsaid, "storage is full"));
/// ```
#[derive(Debug)]
pub struct Occasional(Mutex<(Option<Instant>, u64)>);

impl Occasional {
    /// A line that was not written yet.
    pub const fn new() -> Self {
        Self(Mutex::new((None, 0)))
    }

    /// Has the line written if it was not written lately; it is told how many times it was left out since.
    pub fn note(&self, write: impl FnOnce(u64)) {
        if let Some(unsaid) = self.count(Instant::now()) {
            write(unsaid);
        }
    }

    fn count(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (written, unsaid) = &mut *state;
        if written.is_some_and(|written| now < written + PAUSE) {
            *unsaid += 1;
            return None;
        }
        *written = Some(now);
        Some(std::mem::take(unsaid))
    }
}

impl Default for Occasional {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_failures_are_two_lines() {
        let line = Occasional::new();
        let start = Instant::now();
        let written: Vec<u64> = (0..1000).filter_map(|_| line.count(start)).collect();
        assert_eq!(written, [0]);
        assert_eq!(line.count(start + PAUSE), Some(999));
        assert_eq!(line.count(start + PAUSE), None);
    }
}
