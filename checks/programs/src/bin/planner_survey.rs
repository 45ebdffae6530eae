//! Plans random requests and looks for anything that is certified and better; the last line sums it up.
//!
//! `cargo run --release -p uptack-checks --bin planner_survey -- 500 60` plans 500 requests, or as many as an hour allows.

#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../../../../crates/uptack/tests/plan/survey.rs"]
mod survey;

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The crowds have up to a million owners.
const MOST_OWNERS: f64 = 1e6;
/// For each request this many random families of channels, and a grid, are looked through.
const RIVALS: usize = 40;

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let requests = numbers.first().map_or(500, |&requests| requests as usize);
    let longest = Duration::from_secs(60 * numbers.get(1).copied().unwrap_or(60));
    let start = Instant::now();
    let goes_on = |number: usize| {
        eprintln!("{number} of {requests} after {:.1} s", start.elapsed().as_secs_f64());
        start.elapsed() < longest
    };
    let survey = survey::survey(requests, MOST_OWNERS, RIVALS, goes_on);
    survey.failures.iter().for_each(|failure| println!("{failure}"));
    println!("{}", survey.summary());
    if survey.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
