//! Cards for programs that check the claim of one honest aggregator: integers, scale and claim, every second claim falsified in
//! its last digit.
//!
//! `cargo run --release -p uptack-checks --bin one_aggregator_vectors > vectors/one_aggregator.json`
#![allow(clippy::print_stdout, reason = "an example shows its results")]

use uptack::privacy::one_aggregator;
use uptack::{Mechanism, Probability};

const MECHANISMS: [&str; 10] = [
    "randomized-response(t=1)",
    "randomized-response(t=0.9999992)",
    "randomized-response(t=0.99)",
    "randomized-response(t=0.7)",
    "randomized-response(t=0.3)",
    "normal-form(f=0.5,r=1e-4)",
    "noisy-sampling(0.97,1e-5)",
    "noisy-sampling(0.001,0.4)",
    "deniable-sampling(0.8,0.6,0.9,0.3)",
    "tuned(0.05,0.02,0.9,0.8,0.01,0.3)",
];
const SCALES: [&str; 7] = ["0.05", "1/3", "1", "1.25", "22/7", "40", "1234.5"];

/// Claims are whole multiples of 10^−12.
const UNITS: f64 = 1e12;
/// How far the truth must be from a claim and from the falsified one, in units: doubles must tell on which side it is.
const APART: f64 = 0.15;

fn main() -> Result<(), uptack::Error> {
    let mut rows = Vec::new();
    for mechanism in MECHANISMS {
        for scale in SCALES {
            rows.extend(row(mechanism, scale, rows.len() % 2 == 0)?);
        }
    }
    println!("[\n{}\n]", rows.join(",\n"));
    Ok(())
}

/// One card; none where the truth is so close to a decimal that doubles might not decide.
fn row(mechanism: &str, scale: &str, valid: bool) -> Result<Option<String>, uptack::Error> {
    let channel = format!("{mechanism} + laplace(scale={scale})").parse::<Mechanism>()?.channel();
    let (Some(bit), Some(claim)) = (channel.summed_bit(), one_aggregator(&channel)) else { return Ok(None) };
    let units = (claim.upper() * UNITS).round();
    let exact = approximate(bit.yes, bit.no, scale) * UNITS;
    let clear = claim.lower() == claim.upper() || (APART..=1.0 - APART).contains(&(units - exact));
    let stated = if valid { units } else { units - 1.0 } as u64;
    let text = format!("{}.{:012}", stated / UNITS as u64, stated % UNITS as u64);
    let (yes, no) = (bit.yes.numerator(), bit.no.numerator());
    let row = format!(
        r#"  {{"mechanism": "{mechanism}", "yes": "{yes}", "no": "{no}", "scale": "{scale}", "claim": "{text}", "valid": {valid}}}"#
    );
    Ok(clear.then_some(row))
}

/// ε to some units in the last place of a double.
fn approximate(yes: Probability, no: Probability, scale: &str) -> f64 {
    let ratio: Vec<f64> = scale.split('/').filter_map(|part| part.parse().ok()).collect();
    let inverse = ratio.get(1).unwrap_or(&1.0) / ratio[0];
    let (p, q) = (yes.max(no), yes.min(no));
    let (decay, gap) = ((-inverse).exp(), -(-inverse).exp_m1());
    let difference = (p.numerator() - q.numerator()) as f64 / Probability::ONE.numerator() as f64 * gap;
    let raised = (difference / (q.to_f64() + q.complement().to_f64() * decay)).ln_1p();
    raised.max((difference / (p.complement().to_f64() + p.to_f64() * decay)).ln_1p())
}
