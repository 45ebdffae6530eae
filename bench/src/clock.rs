//! Time, as the processor spends it.

use std::hint::black_box;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};

/// Seconds of processor time that this process has used, all threads added up.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("every Unix has this clock");
    Duration::from(time).as_secs_f64()
}

/// The same of all child processes that have ended.
pub fn children_cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the kernel knows its children");
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 * 1e-6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// The seconds that `work` takes; what it makes counts as used.
pub fn seconds_of<T>(work: impl FnOnce() -> T) -> f64 {
    let start = cpu_seconds();
    black_box(work());
    cpu_seconds() - start
}

/// One contestant's seconds, round after round.
#[derive(Clone, Debug, Default)]
pub struct Rounds(Vec<f64>);

impl Rounds {
    pub fn push(&mut self, seconds: f64) {
        self.0.push(seconds);
    }

    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
    }
}
