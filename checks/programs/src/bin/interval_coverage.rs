//! Prints how often intervals of every kind hold the truth, by exact summation, and how wide they are.
//!
//! `cargo run --release -p uptack-checks --bin interval_coverage -- 20 60 200`; with words, such as `spread custom`, only
//! mechanisms that begin with one of them.

#![allow(clippy::print_stdout)]

#[path = "../../../../crates/uptack/tests/core/exact_coverage.rs"]
mod exact_coverage;
#[path = "../../../../crates/uptack/tests/core/mechanisms.rs"]
mod mechanisms;

use exact_coverage::{Held, exact_coverage};
use mechanisms::{MECHANISMS, NOISY};
use uptack::Mechanism;
use uptack::estimate::{Confidence, IntervalKind};

const KINDS: [IntervalKind; 4] = [IntervalKind::Auto, IntervalKind::Exact, IntervalKind::MidP, IntervalKind::Score];
const LEVELS: [f64; 3] = [0.9, 0.95, 0.999];

fn main() -> Result<(), uptack::Error> {
    let (sizes, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.parse::<u64>().is_ok());
    let is_wanted = |text: &&str| names.is_empty() || names.iter().any(|name| text.starts_with(name));
    let sizes: Vec<u64> = sizes.iter().filter_map(|argument| argument.parse().ok()).collect();
    for owners in sizes {
        println!("\n{owners} owners: least coverage, mean coverage and mean width over every number of yes-owners\n");
        println!("| mechanism | level | auto | exact | mid-p | score |\n| --- | --- | --- | --- | --- | --- |");
        for text in MECHANISMS.into_iter().chain(NOISY).filter(is_wanted) {
            print_rows(text, owners)?;
        }
    }
    Ok(())
}

fn print_rows(text: &str, owners: u64) -> Result<(), uptack::Error> {
    let channel = text.parse::<Mechanism>()?.channel();
    let mut cases = Vec::new();
    for level in LEVELS {
        let confidence = Confidence::new(level)?;
        cases.extend(KINDS.map(|kind| (kind, confidence)));
    }
    let held = exact_coverage(&channel, owners, &cases);
    for (level, held) in LEVELS.iter().zip(held.chunks(KINDS.len())) {
        let cells: Vec<String> = held.iter().map(|held| summary(held)).collect();
        println!("| `{text}` | {level} | {} |", cells.join(" | "));
    }
    Ok(())
}

fn summary(held: &[Held]) -> String {
    let mean = |part: fn(&Held) -> f64| held.iter().map(part).sum::<f64>() / held.len() as f64;
    let least = held.iter().map(|held| held.coverage).fold(1.0, f64::min);
    // Rounded down: a coverage is never said to be better than it is.
    let floor = |coverage: f64| (coverage * 1e4).floor() / 1e4;
    format!("{:.4} {:.4} {:.2}", floor(least), floor(mean(|held| held.coverage)), mean(|held| held.width))
}
