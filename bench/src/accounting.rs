//! The exact accounting against the best published bound, and composition.

use uptack::Mechanism;
use uptack::privacy::composition::{Accuracy, Composition, FixedInAdvance, LossDistribution, Profile};
use uptack::privacy::{Accountant, Delta, Epsilon, release};

use crate::Size;
use crate::clock::{Rounds, seconds_of};
use crate::table::{Row, Target};

const LOCAL: f64 = 1.0;
const DELTA: f64 = 1e-6;

pub fn measure(size: &Size) -> Vec<Row> {
    let (million, hundred_million) = (randomized_response(1_000_000), randomized_response(100_000_000));
    let delta = Delta::new(DELTA).expect("a delta");
    let (mut ours, mut larger, mut bound) = (Rounds::default(), Rounds::default(), Rounds::default());
    for _ in 0..size.simulation_rounds.min(5) {
        ours.push(seconds_of(|| million.epsilon_of_ends(delta)));
        larger.push(seconds_of(|| hundred_million.epsilon_of_ends(delta)));
        bound.push(seconds_of(|| bound_epsilon(1_000_000, LOCAL, DELTA)));
    }
    let mut rows = vec![
        Row::new("ε(δ) at the ends, randomized response, 10⁶ owners", Target::None, ours.median() * 1e3, "ms"),
        Row::new("  the variation-ratio bound takes", Target::AtLeast(50.0), bound.median() / ours.median(), "×"),
        Row::new("  10⁸ owners take", Target::AtMost(20.0), larger.median() / ours.median(), "×"),
    ];
    rows.push(Row::new("composing 10 000 releases", Target::AtMost(1.0), composing(), "s"));
    rows
}

fn randomized_response(owners: u64) -> Accountant {
    let text = format!("randomized-response(t={})", 1.0 / (1.0 + (-LOCAL).exp()));
    release(&text.parse::<Mechanism>().expect("a mechanism").channel(), owners).expect("a crowd")
}

/// The profile at the ends, read once for the composition; what is measured is the composing.
struct Ends(Accountant);

impl Profile for Ends {
    fn delta_upper(&self, epsilon: f64) -> f64 {
        Epsilon::new(epsilon).map_or(0.0, |epsilon| self.0.delta_of_ends(epsilon).upper())
    }
}

fn composing() -> f64 {
    let channel = "normal-form(f=1,r=0.000979)".parse::<Mechanism>().expect("a mechanism").channel();
    let profile = Ends(release(&channel, 50_000).expect("a crowd"));
    let accuracy = Accuracy::for_repetitions(10_000, 1e-8).cells_per_deviation(8);
    let loss = LossDistribution::from_profile(&profile, accuracy).expect("a profile");
    seconds_of(|| {
        let queries = FixedInAdvance::repeated(loss.clone(), 10_000).expect("some queries");
        Composition::new(queries).epsilon(1e-8).expect("a delta")
    })
}

/// ε at δ of the variation-ratio bound (Wang et al., PVLDB 17(8), 2024) for shuffled randomized response, by bisection to
/// a relative 1e-4: the straightforward way.
fn bound_epsilon(owners: u64, local: f64, delta: f64) -> f64 {
    let (mut low, mut high) = (0.0, local);
    while high - low > 1e-4 * high {
        let middle = 0.5 * (low + high);
        if bound_delta(owners, local, middle) > delta { low = middle } else { high = middle }
    }
    high
}

/// Σ over the number of clones of its probability times the divergence given it, which is a difference of two binomial
/// tails at the count from which on the likelihood ratio exceeds e^ε.
fn bound_delta(owners: u64, local: f64, epsilon: f64) -> f64 {
    let alpha = 1.0 / (local.exp() + 1.0);
    let (beta, growth) = (1.0 - alpha, epsilon.exp());
    let share = 2.0 * alpha;
    let n = (owners - 1) as f64;
    let (mean, deviation) = (n * share, (n * share * (1.0 - share)).sqrt());
    let (low, high) = ((mean - 8.0 * deviation).max(0.0) as u64, ((mean + 8.0 * deviation) as u64).min(owners - 1));
    let ratio = (growth * beta - alpha) / (beta - growth * alpha);
    let log_mass = |c: f64| {
        ln_gamma(n + 1.0) - ln_gamma(c + 1.0) - ln_gamma(n - c + 1.0) + c * share.ln() + (n - c) * (1.0 - share).ln()
    };
    let given = |c: f64| {
        let from = (ratio * (c + 1.0) / (1.0 + ratio)).floor() + 1.0;
        let (one_less, here) = (fair_tail(c, from - 1.0), fair_tail(c, from));
        (beta * one_less + alpha * here) - growth * (alpha * one_less + beta * here)
    };
    (low..=high).map(|c| log_mass(c as f64).exp() * given(c as f64).max(0.0)).sum()
}

/// P(Binomial(trials, ½) ≥ hits), by the regularized incomplete beta function.
pub fn fair_tail(trials: f64, hits: f64) -> f64 {
    if hits <= 0.0 {
        return 1.0;
    }
    if hits > trials {
        return 0.0;
    }
    let (a, b) = (hits, trials - hits + 1.0);
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + (a + b) * 0.5f64.ln()).exp();
    if 0.5 < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b) / a
    } else {
        1.0 - front * continued_fraction(b, a) / b
    }
}

/// Lentz's evaluation of the incomplete beta function's continued fraction at ½.
fn continued_fraction(a: f64, b: f64) -> f64 {
    let x = 0.5;
    let (mut c, mut d) = (1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0)));
    let mut product = d;
    for step in 1..100_000 {
        let m = f64::from(step);
        for term in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / (1.0 + term * d);
            c = 1.0 + term / c;
            product *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-13 {
            break;
        }
    }
    product
}

fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}
