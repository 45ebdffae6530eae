//! Prints how often intervals of every kind hold the truth, by exact summation, and how wide they are.
//!
//! `cargo run --release -p uptack --example interval_coverage -- 20 60 200`

#![allow(clippy::print_stdout)]

#[path = "../tests/core/exact_coverage.rs"]
mod exact_coverage;

use exact_coverage::{Held, exact_coverage};
use uptack::Mechanism;
use uptack::estimate::{Confidence, IntervalKind};

const MECHANISMS: [&str; 14] = [
    "randomized-response(t=0.8)",
    "randomized-response(t=0.999)",
    "sampling(sy=0.05,sn=0.05)",
    "sampling(sy=0.5,sn=0.5)",
    "noisy-sampling(sy=0.5,sn=0.1)",
    "deniable-sampling(sy=0.5,sn=0.2,p1=0.5,p2=0.3)",
    "tuned(sy1=0.05,sy2=0.02,p1=0.9,p2=0.8,sn=0.01,p3=0.3)",
    "paired(b=0.5,sy=0.2,sn=0.05)",
    "cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)",
    "blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=0.01,rn=0.01)",
    "normal-form(f=0.5,r=0.001)",
    "normal-form(f=0.9,r=0.1)",
    "spread(pairs=2,f=0.5,r=0.05)",
    "custom(1=50/122:13/122, 0=3/122:41/122, ⊥=69/122:68/122)",
];
const KINDS: [IntervalKind; 4] = [IntervalKind::Auto, IntervalKind::Exact, IntervalKind::MidP, IntervalKind::Score];
const LEVELS: [f64; 3] = [0.9, 0.95, 0.999];

fn main() -> Result<(), uptack::Error> {
    let sizes: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    for owners in sizes {
        println!("\n{owners} owners: least coverage, mean coverage and mean width over every number of yes-owners\n");
        println!("| mechanism | level | auto | exact | mid-p | score |\n| --- | --- | --- | --- | --- | --- |");
        for text in MECHANISMS {
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
