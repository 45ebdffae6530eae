//! Progress on a terminal.

use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use uptack::simulate::Progress;

/// A line of talk on stderr.
pub(crate) fn say(text: &str) {
    // Whoever closed stderr does not want to hear it.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Does work that counts its progress up to `all` on a thread of its own, and shows how far it is.
pub(crate) fn watched<T: Send>(what: &str, all: u64, work: impl FnOnce(&Progress) -> T + Send) -> T {
    let progress = Progress::default();
    thread::scope(|scope| {
        let worker = scope.spawn(|| work(&progress));
        let mut line = ProgressLine::new();
        while !worker.is_finished() {
            line.show(what, progress.done().min(all), all);
            thread::park_timeout(ProgressLine::PAUSE / 4);
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// One line on stderr that is written over; silent where stderr is no terminal.
pub(crate) struct ProgressLine {
    started: Instant,
    shown: bool,
    terminal: bool,
}

impl ProgressLine {
    pub(crate) const PAUSE: Duration = Duration::from_millis(200);
    /// Work that is over sooner shows nothing.
    const PATIENCE: Duration = Duration::from_millis(600);

    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), shown: false, terminal: io::stderr().is_terminal() }
    }

    /// Shows that `done` of `all` are done.
    pub(crate) fn show(&mut self, what: &str, done: u64, all: u64) {
        let elapsed = self.started.elapsed();
        if !self.terminal || elapsed < Self::PATIENCE {
            return;
        }
        let left = match done {
            0 => String::new(),
            _ => format!(", {:.0} s left", elapsed.as_secs_f64() * (all - done.min(all)) as f64 / done as f64),
        };
        // A terminal that cannot be written to has nobody to inform.
        let _ = write!(io::stderr(), "\r\x1b[K{done} of {all} {what}{left}");
        self.shown = true;
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
