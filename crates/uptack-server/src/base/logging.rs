//! Structured logs for the programs of this project.

use std::{
    fs::File,
    io::{IsTerminal, stderr},
    sync::Mutex,
    time::{Duration, Instant},
};
use tracing::Level;

use super::lock;

/// Logs to standard error from `level` up: as text to a terminal, otherwise one JSON object per line. Later calls
/// change nothing.
///
/// Log lines contain names of tasks, counts, states and reasons: no token, no key, no share, no report, and no address
/// of a client.
pub fn init(level: Level) {
    let lines = tracing_subscriber::fmt().with_max_level(level).with_writer(stderr);
    let _ = if stderr().is_terminal() { lines.try_init() } else { lines.json().try_init() };
}

/// Logs as text to a file, or to standard error without one: from `INFO` up, or from `DEBUG` up if `verbose`.
pub fn init_text(verbose: bool, file: Option<File>) {
    let lines = tracing_subscriber::fmt().with_max_level(level(verbose)).with_ansi(false);
    let _ = match file {
        Some(file) => lines.with_writer(Mutex::new(file)).try_init(),
        None => lines.with_writer(stderr).try_init(),
    };
}

/// Logs as [`init`] does: from `INFO` up, or from `DEBUG` up if `verbose`.
pub fn init_verbose(verbose: bool) {
    init(level(verbose));
}

fn level(verbose: bool) -> Level {
    if verbose { Level::DEBUG } else { Level::INFO }
}

/// Lets the first line through, then one per pause, with the number of lines that were dropped. A fault that every
/// request meets must not fill the log, least of all if the fault is a full disk.
#[derive(Debug)]
pub struct Throttle {
    pause: Duration,
    state: Mutex<Option<(Instant, u64)>>,
}

impl Throttle {
    /// One line per minute.
    pub const fn per_minute() -> Self {
        Self { pause: Duration::from_secs(60), state: Mutex::new(None) }
    }

    /// Whether to log now: none if not, otherwise how many lines were dropped since the last one.
    pub fn pass(&self) -> Option<u64> {
        self.pass_at(Instant::now())
    }

    fn pass_at(&self, now: Instant) -> Option<u64> {
        match &mut *lock(&self.state) {
            Some((last, held)) if now.duration_since(*last) < self.pause => {
                *held += 1;
                None
            }
            other => other.replace((now, 0)).map_or(Some(0), |(_, held)| Some(held)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_passes_in_a_while_and_says_how_many_did_not() {
        let throttle = Throttle::per_minute();
        let start = Instant::now();
        let at = |seconds| throttle.pass_at(start + Duration::from_secs(seconds));
        assert_eq!([at(0), at(1), at(59), at(60), at(61), at(200)], [Some(0), None, None, Some(2), None, Some(1)]);
        assert_eq!(at(300), Some(0));
    }
}
