//! Binomial laws in certified double precision (`docs/accounting.md`, "Errors").
//!
//! Every quantity here is a sum or product of positive numbers, so its relative error is at most the number of
//! roundings times the unit roundoff. Each function says how many it spends; `docs/accounting.md` adds them up.

use super::root::{Middle, bisect};
use super::rounding::ROUNDOFF;

/// A biased coin with both probabilities kept, so that neither is lost to cancellation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Coin {
    /// Probability of success.
    pub(crate) success: f64,
    /// Probability of failure.
    pub(crate) failure: f64,
}

impl Coin {
    /// The coin that succeeds with this probability; its complement is only as precise as a subtraction.
    pub(crate) fn of(success: f64) -> Self {
        Self { success, failure: 1.0 - success }
    }

    /// The coin that falls to `success` against `failure` in proportion to two nonnegative masses, not both zero.
    pub(crate) fn between(success: f64, failure: f64) -> Self {
        let total = success + failure;
        Self { success: success / total, failure: failure / total }
    }

    /// The same coin, read from the other side.
    pub(crate) fn reversed(self) -> Self {
        Self { success: self.failure, failure: self.success }
    }
}

/// How often `trials` tosses of `coin` succeed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Binomial {
    /// Number of tosses.
    pub(crate) trials: u64,
    /// The coin tossed.
    pub(crate) coin: Coin,
}

/// A value and its relative error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Approximate {
    pub(crate) value: f64,
    pub(crate) relative_error: f64,
}

/// The tail above a threshold `t`: `mass` = P(X ≥ t) and `excess` = E(X − t)₊.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    pub(crate) mass: f64,
    pub(crate) excess: f64,
    /// Probability of the threshold itself.
    pub(crate) at: f64,
    pub(crate) relative_error: f64,
    /// Terms summed, as a measure of work.
    pub(crate) steps: u64,
}

/// A count as a double. By way of a signed integer, which processors convert in one instruction: no count is near 2⁶³.
#[inline]
pub(crate) fn real(count: u64) -> f64 {
    count as i64 as f64
}

impl Binomial {
    /// The law of `trials` tosses of `coin`.
    pub(crate) fn new(trials: u64, coin: Coin) -> Self {
        Self { trials, coin }
    }

    /// Expected number of successes.
    pub(crate) fn mean(&self) -> f64 {
        self.trials as f64 * self.coin.success
    }

    /// Probability of exactly `count` successes, by Stirling's series around the deviance (which is stationary at the
    /// mean, so that the rounding of the coin hardly matters).
    pub(crate) fn probability(&self, count: u64) -> Approximate {
        if count > self.trials {
            return Approximate { value: 0.0, relative_error: 0.0 };
        }
        if self.trials == 0 {
            return Approximate { value: 1.0, relative_error: 0.0 };
        }
        let rest = self.trials - count;
        if count == 0 || rest == 0 {
            return self.all_alike(rest == 0);
        }
        let (n, k, l) = (self.trials as f64, count as f64, rest as f64);
        let Coin { success, failure } = self.coin;
        let deviance = deviance(k, n * success) + deviance(l, n * failure);
        let correction = stirling(n) - stirling(k) - stirling(l);
        let scale = (n / (k * l) / std::f64::consts::TAU).sqrt();
        let distance = (k - n * success).abs();
        Approximate {
            value: scale * (correction - deviance).exp(),
            relative_error: ROUNDOFF * (512.0 + 8.0 * distance + 64.0 * deviance),
        }
    }

    /// Probability that all tosses succeed, or that all fail.
    fn all_alike(&self, succeed: bool) -> Approximate {
        let coin = if succeed { self.coin } else { self.coin.reversed() };
        let exponent = self.trials as f64 * logarithm_of(coin.success, coin.failure);
        Approximate { value: exponent.exp(), relative_error: ROUNDOFF * (16.0 + 8.0 * exponent.abs()) }
    }

    /// P(X ≥ `threshold`) and E(X − `threshold`)₊ by direct summation; `bottom` is a count below which the law has
    /// negligible mass (see [`window`]), and the caller accounts for that mass.
    pub(crate) fn tail(&self, threshold: u64, bottom: u64) -> Tail {
        let mean = self.mean();
        if threshold == 0 || threshold <= bottom {
            let relative_error = 8.0 * ROUNDOFF;
            return Tail { mass: 1.0, excess: mean - threshold as f64, at: 0.0, relative_error, steps: 1 };
        }
        if threshold as f64 >= mean {
            return self.upper_tail(threshold);
        }
        let center = mean as u64;
        let above = self.upper_tail(center);
        let mut weight = above.at;
        let (mut mass, mut excess) = (above.mass, above.excess);
        for count in (threshold..center).rev() {
            weight *= self.ratio_down(count + 1);
            excess += mass;
            mass += weight;
        }
        let steps = center - threshold;
        Tail {
            mass,
            excess,
            at: weight,
            relative_error: above.relative_error + 8.0 * ROUNDOFF * steps as f64,
            steps: above.steps + steps,
        }
    }

    /// P(X = count − 1) / P(X = count), for a count of at least one.
    pub(crate) fn ratio_down(&self, count: u64) -> f64 {
        real(count) * self.coin.failure / (real(self.trials - count + 1) * self.coin.success)
    }

    /// P(X = count + 1) / P(X = count).
    pub(crate) fn ratio_up(&self, count: u64) -> f64 {
        real(self.trials - count) * self.coin.success / (real(count + 1) * self.coin.failure)
    }

    /// Sums upwards until what is left cannot change the sums; the ratio of neighbours falls, so the rest is at most a
    /// geometric series.
    fn upper_tail(&self, threshold: u64) -> Tail {
        let at = self.probability(threshold);
        let (mut mass, mut excess, mut weight) = (at.value, 0.0, at.value);
        let mut steps = 1;
        for count in threshold..self.trials {
            let ratio = self.ratio_up(count);
            weight *= ratio;
            mass += weight;
            excess += weight * steps as f64;
            steps += 1;
            let gap = 1.0 - ratio;
            // Once a weight has underflown, all further ones have; without this the loop would run to the last trial.
            if weight == 0.0 || gap > 0.0 && weight * (steps as f64 * gap + 1.0) < ROUNDOFF * excess * gap * gap {
                break;
            }
        }
        let relative_error = at.relative_error + ROUNDOFF * (8.0 * steps as f64 + 8.0);
        Tail { mass, excess, at: at.value, relative_error, steps }
    }
}

/// Counts outside of which the sum of independent binomials has little mass: P(X < low) and P(X > high) are each at
/// most exp(`log_cut`), by Chernoff's bound at the best tilt.
pub(crate) fn window(parts: &[Binomial], log_cut: f64) -> (u64, u64) {
    let trials: u64 = parts.iter().map(|part| part.trials).sum();
    let high = reach(parts, -log_cut).map_or(trials, |count| (count.ceil() as u64).min(trials));
    let mirrored: Vec<Binomial> = parts.iter().map(|part| Binomial::new(part.trials, part.coin.reversed())).collect();
    let low = reach(&mirrored, -log_cut).map_or(0, |count| trials.saturating_sub(count.ceil() as u64));
    (low, high)
}

/// The count whose upper tail has the exponent `rate`, rounded away from the mean; none where even the largest count
/// has a smaller exponent.
fn reach(parts: &[Binomial], rate: f64) -> Option<f64> {
    let exponent = |tilt: f64| tilted(parts, tilt).exponent;
    let wanted = rate * (1.0 + 1e-9) + 1e-3;
    let variance: f64 = parts.iter().map(|part| part.mean() * part.coin.failure).sum();
    // Any tilt with a sufficient exponent gives a valid count. The first guess is a Gaussian's, and two per cent are close enough.
    let mut high = (2.0 * wanted / variance.max(1e-12)).sqrt().min(300.0);
    while exponent(high) < wanted {
        high *= 1.5;
        if high > 700.0 {
            return None;
        }
    }
    let mut low = high / 1.5;
    while exponent(low) >= wanted {
        (high, low) = (low, low / 1.5);
    }
    let (_, high) = bisect((low, high), Middle::Arithmetic, 4, |_, _| false, |tilt| exponent(tilt) < wanted);
    Some(tilted(parts, high).count + 1.0)
}

/// A sum of binomials under a tilt: its mean count, and the exponent of Chernoff's bound on the tail above that count.
struct TiltedCount {
    count: f64,
    exponent: f64,
}

fn tilted(parts: &[Binomial], tilt: f64) -> TiltedCount {
    let (mut count, mut cumulant) = (0.0, 0.0);
    for part in parts {
        let n = part.trials as f64;
        let Coin { success, failure } = part.coin;
        count += n * success / (success + failure * (-tilt).exp());
        // ln(failure + success·e^t), without overflow and without cancellation for small tilts.
        cumulant += n * if tilt < 1.0 {
            (success * tilt.exp_m1()).ln_1p()
        } else {
            tilt + (success + failure * (-tilt).exp()).ln()
        };
    }
    TiltedCount { count, exponent: tilt * count - cumulant }
}

/// ln(`coin`) where `other` is its complement.
fn logarithm_of(coin: f64, other: f64) -> f64 {
    if coin > 0.5 { (-other).ln_1p() } else { coin.ln() }
}

/// x·ln(x/m) − x + m without cancellation.
pub(crate) fn deviance(x: f64, m: f64) -> f64 {
    let u = (x - m) / m;
    if u.abs() > 0.25 {
        return x * (x / m).ln() - (x - m);
    }
    // With v = u/(2+u): ln(1+u) = 2·atanh(v), so the value is (x−m)·v + 2x·(v³/3 + v⁵/5 + …).
    let v = (x - m) / (x + m);
    let square = v * v;
    let mut power = v * square;
    let mut series = 0.0;
    for odd in (3..40).step_by(2) {
        let term = power / f64::from(odd);
        series += term;
        power *= square;
        if term.abs() <= ROUNDOFF * series.abs() {
            break;
        }
    }
    (x - m) * v + 2.0 * x * series
}

/// ln(n!) − ½ln(2πn) − n·ln n + n.
pub(crate) fn stirling(n: f64) -> f64 {
    if n < 16.0 {
        let factorial: f64 = (1..=n as u64).map(|factor| factor as f64).product();
        return factorial.ln() - 0.5 * (std::f64::consts::TAU * n).ln() - n * n.ln() + n;
    }
    let inverse = 1.0 / n;
    let square = inverse * inverse;
    inverse
        * (1.0 / 12.0
            - square
                * (1.0 / 360.0
                    - square
                        * (1.0 / 1260.0
                            - square
                                * (1.0 / 1680.0
                                    - square * (1.0 / 1188.0 - square * (691.0 / 360_360.0 - square / 156.0))))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_direct_products() {
        for n in [1u32, 2, 7, 20, 60] {
            for p in [1e-6, 0.1, 0.5, 0.9] {
                let mut direct = (1.0f64 - p).powi(n as i32);
                for k in 0..=n {
                    let value = Binomial::new(u64::from(n), Coin::of(p)).probability(u64::from(k)).value;
                    let close = (value / direct - 1.0).abs() < 1e-12 || direct < 1e-290;
                    assert!(close, "n {n} p {p} k {k}: {value} {direct}");
                    direct *= f64::from(n - k) / f64::from(k + 1) * p / (1.0 - p);
                }
            }
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
            let mean = n as f64 * p;
            let width = 60.0 + 12.0 * (mean * (1.0 - p)).sqrt();
            let likely = (mean - width).max(0.0) as u64..=((mean + width) as u64).min(n);
            let law = Binomial::new(n, Coin::of(p));
            let sum: f64 = likely.map(|count| law.probability(count).value).sum();
            assert!((sum - 1.0).abs() < 1e-10, "{n} {p}: {sum}");
        }
    }
}
