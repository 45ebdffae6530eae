//! When a report is sent: drawn before the truth is looked at, and never so soon that evaluating it could show.
//!
//! A leader sees when an owner fetches keys and when its report arrives. Between the two lies everything whose duration
//! can depend on the truth. So the moment of sending is drawn first, and lies later than evaluation can end.

use rand::{Rng, rngs::OsRng};

use crate::predicate::{MOST_STEPS, SLOWEST_STEP};

/// No report is sent sooner than this many seconds of the clock after its card was accepted.
///
/// Only whole seconds are counted, so at least one fewer is certain to pass. A longer delay would cost short queries
/// their window; a shorter one would let slow devices show how long they evaluated.
pub const FIXED_DELAY: u64 = 3;

const _: () = assert!(MOST_STEPS * SLOWEST_STEP < (FIXED_DELAY - 1) * 1_000_000_000, "the delay hides all evaluation");

/// The shortest window in which an owner can answer at all, in seconds: it has to hear of the query, wait for the fixed
/// delay, and have a moment left to send again.
pub const LEAST_WINDOW: u64 = FIXED_DELAY + 2;

/// How many answers to single questions one process evaluates and seals per second, on a slow machine.
const ANSWERS_PER_SECOND: u64 = 1000;
/// How many reports one process sends per second to servers on the same machine, which is the slowest case for both.
const REPORTS_PER_SECOND: u64 = 1000;
/// Sealing costs about as much as the answers to this many questions.
const SEALING: u64 = 1;
/// The pause between two attempts to reach a server that is away, in seconds.
const PATIENCE: std::ops::RangeInclusive<u64> = 1..=5;

/// How long one process takes to make these reports, in seconds, rounded down; a single one takes no time.
pub(crate) fn time_to_make(reports: usize, questions: usize) -> u64 {
    let answers = (reports as u64).saturating_mul(questions as u64 / 8 + SEALING);
    answers / ANSWERS_PER_SECOND
}

/// How long one process takes to send these reports, in seconds, rounded down; a single one takes no time.
pub(crate) fn time_to_send(reports: usize) -> u64 {
    reports as u64 / REPORTS_PER_SECOND
}

/// The moment of an upload: any second of the window that is late enough and leaves time to retry; `None` if there is no
/// such second.
pub(crate) fn moment(now: u64, to_make: u64, closes: u64, within: Option<u64>) -> Option<u64> {
    let earliest = now.checked_add(FIXED_DELAY)?.checked_add(to_make)?;
    let latest = closes.checked_sub(closes.saturating_sub(now).div_ceil(10))?;
    let spread = latest.checked_sub(earliest)?;
    Some(earliest + OsRng.gen_range(0..=within.unwrap_or(spread).min(spread)))
}

/// When to try again: after a random pause, and not before the time that the server asked for.
pub(crate) fn retry_at(now: u64, error: &uptack_dap::Error) -> u64 {
    let asked = error.retry_after().map_or(0, |pause| pause.as_secs());
    now.saturating_add(OsRng.gen_range(PATIENCE).max(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_lies_between_the_delay_and_the_time_to_retry() {
        let moments: Vec<u64> = (0..2000).map(|_| moment(1000, 0, 1100, None).unwrap()).collect();
        assert_eq!(moments.iter().min(), Some(&(1000 + FIXED_DELAY)));
        assert_eq!(moments.iter().max(), Some(&1090));
        let soon: Vec<u64> = (0..200).map(|_| moment(1000, 2, 1100, Some(1)).unwrap()).collect();
        assert!(soon.iter().all(|moment| (1005..=1006).contains(moment)));
    }

    #[test]
    fn a_window_that_cannot_hold_the_delay_has_no_moment() {
        assert_eq!(moment(1000, 0, 1000 + FIXED_DELAY, None), None);
        assert_eq!(moment(1000, 0, 1001 + FIXED_DELAY, None), Some(1000 + FIXED_DELAY));
        assert_eq!(moment(1000, 5, 1001 + FIXED_DELAY, None), None);
        // One that hears of it within the first second.
        assert!(moment(1001, 0, 1000 + LEAST_WINDOW, None).is_some());
        assert!(moment(1001, 0, 999 + LEAST_WINDOW, None).is_none());
        assert_eq!(moment(1000, 0, 900, None), None);
        assert_eq!(moment(u64::MAX, 0, u64::MAX, None), None);
    }
}
