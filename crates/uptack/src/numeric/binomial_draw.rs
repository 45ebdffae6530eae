//! Draws from the binomial distribution.

use std::f64::consts::PI;

use crate::certified::binomial::{deviance, stirling};

/// One draw, from uniform doubles in \[0, 1).
///
/// Small means by inversion; others by Hörmann's transformed rejection (BTRS, *The Generation of Binomial Random
/// Variates*, 1993), whose cost does not depend on `trials`. Both are exact up to the rounding of doubles.
pub(crate) fn draw(trials: u64, p: f64, mut uniform: impl FnMut() -> f64) -> u64 {
    if trials == 0 || p <= 0.0 {
        return 0;
    }
    if p >= 1.0 {
        return trials;
    }
    if p > 0.5 {
        return trials - draw(trials, 1.0 - p, uniform);
    }
    if trials as f64 * p < 10.0 { invert(trials, p, &mut uniform) } else { reject(trials, p, &mut uniform) }
}

/// Draws by inverting the distribution.
fn invert(trials: u64, p: f64, uniform: &mut impl FnMut() -> f64) -> u64 {
    loop {
        if let Some(hits) = quantile(uniform(), trials, p) {
            return hits;
        }
    }
}

/// Walks up the distribution until it exceeds a number below one.
fn quantile(mut left: f64, trials: u64, p: f64) -> Option<u64> {
    let (n, odds) = (trials as f64, p / (1.0 - p));
    let mut mass = (n * (-p).ln_1p()).exp();
    // At a mean below 10, the mass beyond 200 is under 1e-180: only the rounding of the sum leads there.
    for hits in 0..=trials.min(200) {
        if left < mass {
            return Some(hits);
        }
        left -= mass;
        mass *= (n - hits as f64) / (hits as f64 + 1.0) * odds;
    }
    None
}

/// Rejection from a table-mountain envelope around the mode.
fn reject(trials: u64, p: f64, uniform: &mut impl FnMut() -> f64) -> u64 {
    let n = trials as f64;
    let hat = Hat::new(n, p);
    let mode = ((n + 1.0) * p).floor();
    loop {
        let v = uniform();
        let u = uniform() - 0.5;
        let centred = 0.5 - u.abs();
        let hits = hat.hits(u, centred);
        if centred >= 0.07 && v <= hat.shortcut {
            return hits as u64;
        }
        if hits < 0.0 || hits > n {
            continue;
        }
        if hat.log_height(v, centred) <= log_mass(hits, n, p) - log_mass(mode, n, p) {
            return hits as u64;
        }
    }
}

/// The constants of Hörmann's transformed rejection, by his names.
struct Hat {
    a: f64,
    b: f64,
    c: f64,
    alpha: f64,
    /// Below this height every draw near the centre is accepted.
    shortcut: f64,
}

impl Hat {
    fn new(n: f64, p: f64) -> Self {
        let sd = (n * p * (1.0 - p)).sqrt();
        let b = 1.15 + 2.53 * sd;
        Self {
            a: -0.0873 + 0.0248 * b + 0.01 * p,
            b,
            c: n * p + 0.5,
            alpha: (2.83 + 5.1 / b) * sd,
            shortcut: 0.92 - 4.2 / b,
        }
    }

    /// The count proposed by u, which is `centred` away from the nearer end of its range.
    fn hits(&self, u: f64, centred: f64) -> f64 {
        ((2.0 * self.a / centred + self.b) * u + self.c).floor()
    }

    /// The logarithm of the height at which v falls under the hat, in units of P(mode).
    fn log_height(&self, v: f64, centred: f64) -> f64 {
        (v * self.alpha / (self.a / (centred * centred) + self.b)).ln()
    }
}

/// ln P(k), up to a constant that all counts share.
fn log_mass(k: f64, n: f64, p: f64) -> f64 {
    -(negative_log_part(k, n * p) + negative_log_part(n - k, n * (1.0 - p)))
}

/// What the successes, or the failures, add to −ln P, given their number and its mean.
fn negative_log_part(count: f64, mean: f64) -> f64 {
    if count > 0.0 {
        stirling(count) + deviance(count, mean) + 0.5 * count.ln()
    } else {
        // The exact value is the mean, and the general form leaves out ½·ln 2π.
        mean - 0.5 * (2.0 * PI).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certified::binomial::{Binomial, Coin};

    /// The counts within 12 standard deviations and 60 of the mean.
    fn likely(trials: u64, p: f64) -> (u64, u64) {
        let mean = trials as f64 * p;
        let width = 60.0 + 12.0 * (mean * (1.0 - p)).sqrt();
        ((mean - width).max(0.0) as u64, ((mean + width) as u64).min(trials))
    }

    fn masses(trials: u64, p: f64) -> Vec<f64> {
        let (low, high) = likely(trials, p);
        let law = Binomial::new(trials, Coin::of(p));
        (low..=high).map(|hits| law.probability(hits).value).collect()
    }

    /// A χ² test of the draws against the exact law, α = 1e-4 for each case (fixed seed).
    #[test]
    fn draws_follow_the_law() {
        for (trials, p) in
            [(40u64, 0.1), (40, 0.3), (100, 0.5), (1000, 0.98), (60, 0.35), (1_000_000, 3e-5), (1_000_000_000, 1e-6)]
        {
            let mut coins = crate::SeededCoins::new(11);
            let draws = 200_000u32;
            let low = likely(trials, p).0;
            let expected = masses(trials, p);
            let mut counts = vec![0u32; expected.len()];
            for _ in 0..draws {
                counts[(draw(trials, p, || coins.uniform()) - low) as usize] += 1;
            }
            let (mut chi_squared, mut degrees) = (0.0, -1.0);
            let (mut seen, mut wanted) = (0.0, 0.0);
            for (&count, &mass) in counts.iter().zip(&expected) {
                seen += f64::from(count);
                wanted += f64::from(draws) * mass;
                if wanted >= 20.0 {
                    chi_squared += (seen - wanted) * (seen - wanted) / wanted;
                    degrees += 1.0;
                    (seen, wanted) = (0.0, 0.0);
                }
            }
            // Wilson and Hilferty's normal approximation of χ².
            let z =
                ((chi_squared / degrees).cbrt() - (1.0 - 2.0 / (9.0 * degrees))) / (2.0f64 / (9.0 * degrees)).sqrt();
            assert!(z < 3.72, "{trials} {p}: chi² {chi_squared} at {degrees}, z = {z}");
        }
    }
}
