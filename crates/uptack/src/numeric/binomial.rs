//! The binomial distribution, accurate in its far tails.

/// The probability of `hits` in `trials` at probability `p`.
///
/// Loader's saddle-point form (*Fast and Accurate Computation of Binomial Probabilities*, 2000): the large terms are
/// cancelled analytically before they are evaluated.
pub(crate) fn probability(hits: f64, trials: f64, p: f64) -> f64 {
    let misses = trials - hits;
    if hits < 0.0 || misses < 0.0 {
        return 0.0;
    }
    if p <= 0.0 || p >= 1.0 {
        let certain = if p <= 0.0 { 0.0 } else { trials };
        return if hits == certain { 1.0 } else { 0.0 };
    }
    if hits == 0.0 {
        return (trials * (-p).ln_1p()).exp();
    }
    if misses == 0.0 {
        return (trials * p.ln()).exp();
    }
    let exponent = stirling_error(trials)
        - stirling_error(hits)
        - stirling_error(misses)
        - deviance(hits, trials * p)
        - deviance(misses, trials * (1.0 - p));
    exponent.exp() * (trials / (2.0 * std::f64::consts::PI * hits * misses)).sqrt()
}

/// ln n! − ln(√(2πn)·(n/e)ⁿ).
fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        return libm::lgamma(n + 1.0) - (n + 0.5) * n.ln() + n - 0.5 * (2.0 * std::f64::consts::PI).ln();
    }
    let square = n * n;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square) / square)
        / n
}

/// x·ln(x/mean) + mean − x, without cancellation where x is close to the mean.
fn deviance(x: f64, mean: f64) -> f64 {
    let difference = x - mean;
    if difference.abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() + mean - x;
    }
    let ratio = difference / (x + mean);
    let mut sum = difference * ratio;
    let mut power = 2.0 * x * ratio;
    for odd in 1..1000 {
        power *= ratio * ratio;
        let next = sum + power / f64::from(2 * odd + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

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

/// Walks up the distribution until it exceeds a uniform number.
fn invert(trials: u64, p: f64, uniform: &mut impl FnMut() -> f64) -> u64 {
    let odds = p / (1.0 - p);
    let n = trials as f64;
    let start = (n * (-p).ln_1p()).exp();
    loop {
        let (mut left, mut mass) = (uniform(), start);
        // Beyond 200 at a mean below 10 the mass is under 1e-180: only rounding of the sum leads there.
        for hits in 0..=trials.min(200) {
            if left < mass {
                return hits;
            }
            left -= mass;
            mass *= (n - hits as f64) / (hits as f64 + 1.0) * odds;
        }
    }
}

/// Rejection from a table-mountain envelope around the mode.
fn reject(trials: u64, p: f64, uniform: &mut impl FnMut() -> f64) -> u64 {
    let n = trials as f64;
    let sd = (n * p * (1.0 - p)).sqrt();
    let b = 1.15 + 2.53 * sd;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let c = n * p + 0.5;
    let alpha = (2.83 + 5.1 / b) * sd;
    let shortcut = 0.92 - 4.2 / b;
    let mode = ((n + 1.0) * p).floor();
    loop {
        let v = uniform();
        let u = uniform() - 0.5;
        let centred = 0.5 - u.abs();
        let hits = ((2.0 * a / centred + b) * u + c).floor();
        if centred >= 0.07 && v <= shortcut {
            return hits as u64;
        }
        if hits < 0.0 || hits > n {
            continue;
        }
        let height = (v * alpha / (a / (centred * centred) + b)).ln();
        if height <= log_ratio(hits, mode, n, p) {
            return hits as u64;
        }
    }
}

/// ln of P(hits) / P(mode).
fn log_ratio(hits: f64, mode: f64, n: f64, p: f64) -> f64 {
    let log_mass = |k: f64| {
        let (rest, mut sum) = (n - k, 0.0);
        if k > 0.0 {
            sum += stirling_error(k) + deviance(k, n * p) + 0.5 * k.ln();
        }
        if rest > 0.0 {
            sum += stirling_error(rest) + deviance(rest, n * (1.0 - p)) + 0.5 * rest.ln();
        }
        // At an end of the range the whole mass is n·ln(p) or n·ln(1−p), of which the other terms are not formed.
        if k == 0.0 || rest == 0.0 {
            sum += deviance_at_zero(if k == 0.0 { n * p } else { n * (1.0 - p) });
        }
        -sum
    };
    log_mass(hits) - log_mass(mode)
}

/// The deviance and the Stirling term of a count of 0: ½·ln 2π less than the general form has.
fn deviance_at_zero(mean: f64) -> f64 {
    mean - 0.5 * (2.0 * std::f64::consts::PI).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counts within 12 standard deviations and 60 of the mean.
    fn likely(trials: u64, p: f64) -> (u64, u64) {
        let mean = trials as f64 * p;
        let width = 60.0 + 12.0 * (mean * (1.0 - p)).sqrt();
        ((mean - width).max(0.0) as u64, ((mean + width) as u64).min(trials))
    }

    fn masses(trials: u64, p: f64) -> Vec<f64> {
        let (low, high) = likely(trials, p);
        (low..=high).map(|hits| probability(hits as f64, trials as f64, p)).collect()
    }

    #[test]
    fn agrees_with_direct_products() {
        for n in [1u32, 2, 7, 20, 60] {
            for p in [1e-6, 0.1, 0.5, 0.9] {
                let mut direct = (1.0f64 - p).powi(n as i32);
                for k in 0..=n {
                    let value = probability(f64::from(k), f64::from(n), p);
                    let close = (value / direct - 1.0).abs() < 1e-12 || direct < 1e-290;
                    assert!(close, "n {n} p {p} k {k}: {value} {direct}");
                    direct *= f64::from(n - k) / f64::from(k + 1) * p / (1.0 - p);
                }
            }
        }
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
                counts[(draw(trials, p, || coins.unit()) - low) as usize] += 1;
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

    #[test]
    fn masses_sum_to_one_at_every_size() {
        for (n, p) in [
            (1u64, 0.3),
            (50_000, 1e-4),
            (50_000, 0.2),
            (1_000_000_000, 0.2),
            (1_000_000_000, 3e-9),
            (10, 1.0),
            (10, 0.0),
        ] {
            let sum: f64 = masses(n, p).iter().sum();
            assert!((sum - 1.0).abs() < 1e-10, "{n} {p}: {sum}");
        }
    }
}
