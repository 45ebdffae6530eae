//! How far a long command is, on a terminal and nowhere else.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use uptack::Progress;

/// Writes a message to stderr.
pub(crate) fn say(text: &str) {
    // If stderr is closed, nobody wants to hear it.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// How far some work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgressStep {
    /// The things that are counted, as in "30 of 200 trials".
    pub(crate) what: &'static str,
    pub(crate) done: u64,
    /// Zero if it is not known.
    pub(crate) all: u64,
}

/// Does some work; if it takes long, and stderr is a terminal, shows what `now` says about it.
pub(crate) fn follow<T: Send>(now: impl Fn() -> ProgressStep, work: impl FnOnce() -> T + Send) -> T {
    let mut line = ProgressLine::new();
    if !line.terminal {
        return work();
    }
    let over = AtomicBool::new(false);
    let watcher = thread::current();
    thread::scope(|scope| {
        let working = scope.spawn(|| {
            let _end = WakeOnDrop { over: &over, watcher: &watcher };
            work()
        });
        line.show_until(&over, now);
        drop(line);
        working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Wakes the watching thread when it is dropped, even if the work panics.
struct WakeOnDrop<'a> {
    over: &'a AtomicBool,
    watcher: &'a thread::Thread,
}

impl Drop for WakeOnDrop<'_> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.watcher.unpark();
    }
}

/// Does some work that counts its progress up to `all`, and shows how far it is.
pub(crate) fn watched<T: Send>(what: &'static str, all: u64, work: impl FnOnce(&Progress) -> T + Send) -> T {
    let progress = Progress::default();
    follow(|| ProgressStep { what, done: progress.done().min(all), all }, || work(&progress))
}

/// Does some work of at most `most` steps, and shows how many millions of them are done.
pub(crate) fn watched_steps<T: Send>(most: u64, work: impl FnOnce(&Arc<Progress>) -> T + Send) -> T {
    let all = most.div_ceil(MILLION);
    follow_steps(|millions| ProgressStep { what: "million steps at most", done: millions.min(all), all }, work)
}

/// The same if it is not known in advance how many steps the work takes.
pub(crate) fn watched_without_total<T: Send>(work: impl FnOnce(&Arc<Progress>) -> T + Send) -> T {
    follow_steps(|millions| ProgressStep { what: "million steps", done: millions, all: 0 }, work)
}

fn follow_steps<T: Send>(now: impl Fn(u64) -> ProgressStep, work: impl FnOnce(&Arc<Progress>) -> T + Send) -> T {
    let progress = Arc::new(Progress::default());
    follow(|| now(progress.done() / MILLION), || work(&progress))
}

const MILLION: u64 = 1_000_000;

/// One line on stderr that is written over again and again; silent if stderr is not a terminal.
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
    /// Shorter work shows nothing.
    const PATIENCE: Duration = Duration::from_secs(1);

    pub(crate) fn new() -> Self {
        let terminal = io::stderr().is_terminal();
        Self { what: String::new(), started: Instant::now(), next: Self::PATIENCE, shown: false, terminal }
    }

    /// Shows that `done` of `all` are done; cheap enough to be called often.
    pub(crate) fn show(&mut self, what: &str, done: u64, all: u64) {
        if !self.terminal {
            return;
        }
        if self.what != what {
            self.begin(what);
        }
        let elapsed = self.started.elapsed();
        if elapsed < self.next {
            return;
        }
        // A terminal that cannot be written to has nobody to inform.
        let _ = write!(io::stderr(), "\r\x1b[K{}", words(what, done, all, elapsed));
        (self.shown, self.next) = (true, elapsed + Self::PAUSE);
    }

    /// Begins another part of the work; the time left is for this part alone.
    fn begin(&mut self, what: &str) {
        self.what = what.to_owned();
        self.started = Instant::now();
        self.next = if self.shown { Duration::ZERO } else { Self::PATIENCE };
    }

    fn show_until(&mut self, over: &AtomicBool, now: impl Fn() -> ProgressStep) {
        while !over.load(Ordering::Acquire) {
            let step = now();
            self.show(step.what, step.done, step.all);
            thread::park_timeout(Self::PAUSE);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// `30 of 200 trials, 12 s left`; the elapsed time if the remaining time cannot be estimated.
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

    /// Shows nothing if the command's output appears on the same terminal.
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
        let now = || ProgressStep { what: "things", done: 0, all: 1 };
        assert_eq!(follow(now, || 7), 7);
        assert!(std::panic::catch_unwind(|| follow(now, || panic!("as it should"))).is_err());
    }
}
