//! Prints composed guarantees as JSON, for an independent accountant to compare.
//!
//! `cargo run --release -p uptack-checks --bin composition_figures | python3 checks/composition_cross_check.py`

use std::io::Write as _;
use std::time::Instant;

use serde_json::{Value, json};
use uptack::Error;
use uptack::privacy::composition::{
    Accuracy, ApproximateProfile, Composition, FixedInAdvance, LaplaceProfile, LossDistribution, Profile, PureProfile,
};

/// A profile that both accountants can express.
#[derive(Clone, Copy)]
enum Mechanism {
    Gaussian { deviation: f64 },
    Laplace { epsilon: f64 },
    RandomizedResponse { epsilon: f64 },
    Approximate { epsilon: f64, delta: f64 },
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rows = Vec::new();
    for queries in cases() {
        for delta in [1e-3, 1e-6, 1e-8, 1e-10] {
            rows.push(row(&queries, delta)?);
        }
    }
    writeln!(std::io::stdout().lock(), "{}", serde_json::to_string_pretty(&json!({ "rows": rows }))?)?;
    Ok(())
}

fn cases() -> Vec<Vec<(Mechanism, u64)>> {
    use Mechanism::{Approximate, Gaussian, Laplace, RandomizedResponse};
    vec![
        vec![(Gaussian { deviation: 1.0 }, 1)],
        vec![(Gaussian { deviation: 5.0 }, 20)],
        vec![(Gaussian { deviation: 100.0 }, 10_000)],
        vec![(Laplace { epsilon: 0.5 }, 1)],
        vec![(Laplace { epsilon: 0.2 }, 30)],
        vec![(Laplace { epsilon: 0.01 }, 10_000)],
        vec![(RandomizedResponse { epsilon: 1.0 }, 2)],
        vec![(RandomizedResponse { epsilon: 0.3 }, 50)],
        vec![(RandomizedResponse { epsilon: 0.02 }, 10_000)],
        vec![(Approximate { epsilon: 0.5, delta: 1e-12 }, 12)],
        vec![(Approximate { epsilon: 0.125, delta: 1e-13 }, 200)],
        vec![
            (Gaussian { deviation: 10.0 }, 40),
            (Laplace { epsilon: 0.3 }, 5),
            (RandomizedResponse { epsilon: 0.7 }, 2),
        ],
    ]
}

fn row(queries: &[(Mechanism, u64)], delta: f64) -> Result<Value, Error> {
    let start = Instant::now();
    let total: u64 = queries.iter().map(|(_, times)| times).sum();
    let mut parts = Vec::new();
    for (mechanism, times) in queries {
        let loss = LossDistribution::from_profile(mechanism, Accuracy::for_repetitions(total, delta))?;
        parts.push((loss, *times));
    }
    let discretization: f64 = parts.iter().map(|(loss, _)| loss.spacing()).fold(0.0, f64::max);
    let epsilon = Composition::new(FixedInAdvance::new(parts)?).epsilon(delta)?;
    Ok(json!({
        "queries": queries.iter().map(|(mechanism, times)| described(mechanism, *times)).collect::<Vec<_>>(),
        "delta": delta,
        "lower": epsilon.map(|bounds| bounds.lower()),
        "upper": epsilon.map(|bounds| bounds.upper()),
        "spacing": discretization,
        "seconds": start.elapsed().as_secs_f64(),
    }))
}

fn described(mechanism: &Mechanism, times: u64) -> Value {
    match *mechanism {
        Mechanism::Gaussian { deviation } => {
            json!({ "name": "gaussian", "deviation": deviation, "times": times })
        }
        Mechanism::Laplace { epsilon } => {
            json!({ "name": "laplace", "epsilon": epsilon, "times": times })
        }
        Mechanism::RandomizedResponse { epsilon } => {
            json!({ "name": "randomized-response", "epsilon": epsilon, "times": times })
        }
        Mechanism::Approximate { epsilon, delta } => {
            json!({ "name": "approximate", "epsilon": epsilon, "delta": delta, "times": times })
        }
    }
}

impl Profile for Mechanism {
    fn delta_upper(&self, epsilon: f64) -> f64 {
        let of = |profile: Result<f64, Error>| profile.unwrap_or(1.0);
        match *self {
            Self::Gaussian { deviation } => gaussian(1.0 / deviation, epsilon),
            Self::Laplace { epsilon: own } => of(LaplaceProfile::new(own).map(|it| it.delta_upper(epsilon))),
            Self::RandomizedResponse { epsilon: own } => of(PureProfile::new(own).map(|it| it.delta_upper(epsilon))),
            Self::Approximate { epsilon: own, delta } => {
                of(ApproximateProfile::new(own, delta).map(|it| it.delta_upper(epsilon)))
            }
        }
    }

    fn floor(&self) -> f64 {
        if let Self::Approximate { delta, .. } = self { *delta } else { 0.0 }
    }
}

/// Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2), raised by what the difference may lose.
fn gaussian(ratio: f64, epsilon: f64) -> f64 {
    let cdf = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
    let (centre, half) = (epsilon / ratio, ratio / 2.0);
    let first = cdf(half - centre);
    (first - epsilon.exp() * cdf(-half - centre)).max(0.0) + 1e-14 * first
}
