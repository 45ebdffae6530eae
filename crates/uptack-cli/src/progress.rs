//! How far a long command is, on a terminal and nowhere else.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use uptack::simulate::Progress;

/// A line of talk on stderr.
pub(crate) fn say(text: &str) {
    // Whoever closed stderr does not want to hear it.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// How far some work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// What is counted, as in "30 of 200 trials".
    pub(crate) what: &'static str,
    pub(crate) done: u64,
    /// Zero where it is not known.
    pub(crate) all: u64,
}

/// Does some work; where it takes long, and stderr is a terminal, shows what `now` says of it.
pub(crate) fn follow<T: Send>(now: impl Fn() -> Step, work: impl FnOnce() -> T + Send) -> T {
    let mut line = ProgressLine::new();
    if !line.terminal {
        return work();
    }
    let over = AtomicBool::new(false);
    let watcher = thread::current();
    thread::scope(|scope| {
        let working = scope.spawn(|| {
            let _end = End { over: &over, watcher: &watcher };
            work()
        });
        while !over.load(Ordering::Acquire) {
            let step = now();
            line.show(step.what, step.done, step.all);
            thread::park_timeout(ProgressLine::PAUSE);
        }
        drop(line);
        working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Wakes whoever watches, also where the work panics.
struct End<'a> {
    over: &'a AtomicBool,
    watcher: &'a thread::Thread,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.watcher.unpark();
    }
}

/// Does some work that counts its progress up to `all`, and shows how far it is.
pub(crate) fn watched<T: Send>(what: &'static str, all: u64, work: impl FnOnce(&Progress) -> T + Send) -> T {
    let progress = Progress::default();
    follow(|| Step { what, done: progress.done().min(all), all }, || work(&progress))
}

/// One line on stderr that is written over; silent where stderr is not a terminal.
pub(crate) struct ProgressLine {
    what: String,
    started: Instant,
    next: Duration,
    shown: bool,
    terminal: bool,
}

impl ProgressLine {
    /// Between two lines.
    pub(crate) const PAUSE: Duration = Duration::from_millis(200);
    /// Work that is over sooner shows nothing.
    const PATIENCE: Duration = Duration::from_secs(1);

    pub(crate) fn new() -> Self {
        let terminal = io::stderr().is_terminal();
        Self { what: String::new(), started: Instant::now(), next: Self::PATIENCE, shown: false, terminal }
    }

    /// Shows that `done` of `all` are done; it may be called as often as one likes.
    pub(crate) fn show(&mut self, what: &str, done: u64, all: u64) {
        if !self.terminal {
            return;
        }
        if self.what != what {
            // Time left is that of this part of the work.
            let wait = if self.shown { Duration::ZERO } else { Self::PATIENCE };
            (self.what, self.started, self.next) = (what.to_owned(), Instant::now(), wait);
        }
        let elapsed = self.started.elapsed();
        if elapsed < self.next {
            return;
        }
        // A terminal that cannot be written to has nobody to inform.
        let _ = write!(io::stderr(), "\r\x1b[K{}", words(what, done, all, elapsed));
        (self.shown, self.next) = (true, elapsed + Self::PAUSE);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// `30 of 200 trials, 12 s left`; the time that has passed where what is left cannot be told.
fn words(what: &str, done: u64, all: u64, elapsed: Duration) -> String {
    let count = if all == 0 { format!("{done} {what}") } else { format!("{done} of {all} {what}") };
    if done == 0 || all == 0 {
        return format!("{count}, {} so far", span(elapsed.as_secs_f64()));
    }
    let left = all.saturating_sub(done) as f64 / done as f64;
    format!("{count}, {} left", span(elapsed.as_secs_f64() * left))
}

/// A span of time, in the unit that suits it.
pub(crate) fn span(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 99.5 => format!("{seconds:.0} s"),
        seconds if seconds < 5970.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.0} h", seconds / 3600.0),
    }
}

/// A file or a stream that shows how much of it has been read.
pub(crate) struct Watched<R> {
    source: R,
    line: ProgressLine,
    read: u64,
    all: u64,
}

impl Watched<File> {
    pub(crate) fn file(source: File) -> Self {
        let all = source.metadata().ok().filter(|data| data.is_file()).map_or(0, |data| data.len());
        Self { all, ..Self::stream(source) }
    }
}

impl<R> Watched<R> {
    pub(crate) fn stream(source: R) -> Self {
        Self { source, line: ProgressLine::new(), read: 0, all: 0 }
    }

    /// Shows nothing if what is made of it appears on the same terminal.
    pub(crate) fn unless(mut self, terminal: bool) -> Self {
        self.line.terminal &= !terminal;
        self
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        self.read += length as u64;
        self.line.show("MB read", self.read / 1_000_000, self.all / 1_000_000);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_tell_what_is_left() {
        let trials = |done, all, seconds| words("trials", done, all, Duration::from_secs(seconds));
        assert_eq!(trials(30, 120, 10), "30 of 120 trials, 30 s left");
        assert_eq!(trials(0, 120, 3), "0 of 120 trials, 3 s so far");
        assert_eq!(trials(7, 0, 3), "7 trials, 3 s so far");
        assert_eq!(trials(1, 100, 3), "1 of 100 trials, 5 min left");
        assert_eq!(trials(1, 10_000, 3), "1 of 10000 trials, 8 h left");
        assert_eq!(trials(130, 120, 3), "130 of 120 trials, 0 s left");
    }

    #[test]
    fn work_is_done_whether_or_not_anybody_watches() {
        let now = || Step { what: "things", done: 0, all: 1 };
        assert_eq!(follow(now, || 7), 7);
        assert!(std::panic::catch_unwind(|| follow(now, || panic!("as it should"))).is_err());
    }
}
