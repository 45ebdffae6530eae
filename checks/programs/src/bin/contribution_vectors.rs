//! Contributions for programs that check their claims: integers and claims, every second claim of one honest aggregator falsified in
//! its last digit.
//!
//! `cargo run --release -p uptack-checks --bin contribution_vectors > vectors/contributions.json`
#![allow(clippy::print_stdout, reason = "an example shows its results")]

use serde_json::json;
use uptack::Probability;
use uptack::contribution::Contributions;
use uptack::privacy::contributions::{linked_epsilon, one_aggregator};

const MECHANISMS: [&str; 14] = [
    "choice(k=2,f=0.5,r=0.001)",
    "choice(k=3,f=1,r=0)",
    "choice(k=3,f=1,r=1/7)",
    "choice(k=4,f=0.6,r=0.0001)",
    "choice(k=12,f=1,r=0.0003342)",
    "choice(k=2221,f=1,r=0.0001922)",
    "choice(k=65536,f=1,r=1e-5)",
    "contributions(counts=1,most=1,r=0.01)",
    "contributions(counts=2,most=1,r=0.2)",
    "contributions(counts=12,most=2,r=0.0024)",
    "contributions(counts=24,most=4,r=0.0127)",
    "contributions(counts=288,most=1,r=0.0003059)",
    "contributions(counts=288,most=5,r=0)",
    "contributions(counts=640000,most=1,r=1e-7)",
];
const SCALES: [&str; 7] = ["0.05", "1/3", "1", "2", "22/7", "40", "1234.5"];

/// Claims are whole multiples of 10^−12.
const UNITS: f64 = 1e12;
/// How far ε must be from a whole number of units, unless it is one: doubles must tell on which side it is.
const APART: f64 = 0.15;

fn main() -> Result<(), uptack::Error> {
    let mut rows = Vec::new();
    for mechanism in MECHANISMS {
        for scale in SCALES {
            let contributions: Contributions = format!("{mechanism} + laplace(scale={scale})").parse()?;
            rows.extend(row(&contributions, rows.len() % 2 == 0));
        }
    }
    println!("[\n{}\n]", rows.join(",\n"));
    Ok(())
}

/// One row; none where ε is so close to a decimal that doubles might not decide.
fn row(contributions: &Contributions, valid: bool) -> Option<String> {
    let (claim, law) = (one_aggregator(contributions)?, contributions.law());
    let beyond = (approximate(contributions)? * f64::from(contributions.most()) * UNITS).rem_euclid(1.0);
    let plain = law.other().numerator() == 0 && law.silent().numerator() == 0;
    if !plain && !(APART..=1.0 - APART).contains(&beyond) {
        return None;
    }
    let units = (claim.upper() * UNITS).round() as u64;
    let stated = if valid { units } else { units.checked_sub(1)? };
    let row = json!({
        "mechanism": contributions.to_string(),
        "told": law.told().numerator().to_string(),
        "other": law.other().numerator().to_string(),
        "silent": law.silent().numerator().to_string(),
        "linked": linked_epsilon(contributions).map(|epsilon| epsilon.to_string()),
        "one_aggregator": format!("{}.{:012}", stated / UNITS as u64, stated % UNITS as u64),
        "valid": valid,
    });
    Some(format!("  {row}"))
}

/// ε of one contribution, to some units in the last place of a double.
fn approximate(contributions: &Contributions) -> Option<f64> {
    let (law, scale) = (contributions.law(), contributions.noise()?.scale());
    let [g, r, s] = [law.told(), law.other(), law.silent()].map(Probability::to_f64);
    let inverse = scale.denominator() as f64 / scale.numerator() as f64;
    let (a, difference) = ((-inverse).exp(), law.telling().to_f64() * -(-inverse).exp_m1());
    let (others, uncounted) = (contributions.counts() as f64 - 1.0, contributions.has_uncounted());
    let u = if uncounted { r + s } else { s };
    let apart = difference * (1.0 + a) / (r + u * a + (g + (others - 1.0) * r) * a * a);
    let raised = difference / (r + (g + s) * a + others * r * a * a);
    let lowered = difference / (r + s + (g + others * r) * a);
    let lone = if uncounted { raised.max(lowered) } else { 0.0 };
    Some(if others > 0.0 { apart.max(lone) } else { lone }.ln_1p())
}
