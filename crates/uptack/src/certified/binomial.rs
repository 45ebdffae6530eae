//! Binomial laws in certified double precision (`docs/accounting.md`, "Errors").
//!
//! Every quantity here is a sum or product of positive numbers, so its relative error is at most the number of
//! roundings times the unit roundoff. Each function says how many it spends; `docs/accounting.md` adds them up.

use std::f64::consts::TAU;

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

    /// The same coin with success and failure exchanged.
    pub(crate) fn reversed(self) -> Self {
        Self { success: self.failure, failure: self.success }
    }

    /// Success against failure.
    pub(super) fn odds(self) -> f64 {
        self.success / self.failure
    }

    /// ln(`success`), from the failure if that is the smaller one.
    fn log_success(self) -> f64 {
        if self.success > 0.5 { (-self.failure).ln_1p() } else { self.success.ln() }
    }

    /// ln(failure + success·e^tilt), without overflow and without cancellation for small tilts.
    fn cumulant(self, tilt: f64) -> f64 {
        if tilt < 1.0 { (self.success * tilt.exp_m1()).ln_1p() } else { tilt + self.tilted_mass(tilt).ln() }
    }

    /// success + failure·e^(−tilt).
    fn tilted_mass(self, tilt: f64) -> f64 {
        self.success + self.failure * (-tilt).exp()
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

impl Approximate {
    fn exact(value: f64) -> Self {
        Self { value, relative_error: 0.0 }
    }
}

/// The tail above a threshold `t`: `mass` = P(X ≥ t) and `excess` = E(X − t)₊.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BinomialTail {
    pub(crate) mass: f64,
    pub(crate) excess: f64,
    /// Probability of the threshold itself.
    pub(crate) at: f64,
    pub(crate) relative_error: f64,
    /// Terms summed, as a measure of work.
    pub(crate) steps: u64,
}

/// A count as a double, by way of a signed integer, which processors convert in one instruction: no count is near 2⁶³.
#[inline]
pub(crate) fn real(count: u64) -> f64 {
    count as i64 as f64
}

impl Binomial {
    /// The law of `trials` tosses of `coin`.
    pub(crate) fn new(trials: u64, coin: Coin) -> Self {
        Self { trials, coin }
    }

    /// The same law with successes and failures exchanged.
    pub(super) fn reversed(&self) -> Self {
        Self::new(self.trials, self.coin.reversed())
    }

    /// Expected number of successes.
    pub(crate) fn mean(&self) -> f64 {
        self.trials as f64 * self.coin.success
    }

    /// Probability of exactly `count` successes.
    pub(crate) fn probability(&self, count: u64) -> Approximate {
        if count > self.trials {
            return Approximate::exact(0.0);
        }
        if self.trials == 0 {
            return Approximate::exact(1.0);
        }
        match count {
            0 => self.all_alike(self.coin.reversed()),
            _ if count == self.trials => self.all_alike(self.coin),
            _ => self.by_stirling(count),
        }
    }

    /// Probability that all tosses succeed with this coin.
    fn all_alike(&self, coin: Coin) -> Approximate {
        let exponent = self.trials as f64 * coin.log_success();
        Approximate { value: exponent.exp(), relative_error: ROUNDOFF * (16.0 + 8.0 * exponent.abs()) }
    }

    /// Probability of a count strictly between none and all, by Stirling's series around the deviance (which is stationary at the
    /// mean, so that the rounding of the coin hardly matters).
    fn by_stirling(&self, count: u64) -> Approximate {
        let (n, k, l) = (self.trials as f64, count as f64, (self.trials - count) as f64);
        let Coin { success, failure } = self.coin;
        let deviance = deviance(k, n * success) + deviance(l, n * failure);
        let correction = stirling(n) - stirling(k) - stirling(l);
        let scale = (n / (k * l) / TAU).sqrt();
        let distance = (k - n * success).abs();
        Approximate {
            value: scale * (correction - deviance).exp(),
            relative_error: ROUNDOFF * (512.0 + 8.0 * distance + 64.0 * deviance),
        }
    }

    /// P(X ≥ `threshold`) and E(X − `threshold`)₊ by direct summation; `bottom` is a count below which the law has
    /// negligible mass (see [`window`]), and the caller accounts for that mass.
    pub(crate) fn tail(&self, threshold: u64, bottom: u64) -> BinomialTail {
        let mean = self.mean();
        if threshold == 0 || threshold <= bottom {
            let relative_error = 8.0 * ROUNDOFF;
            return BinomialTail { mass: 1.0, excess: mean - threshold as f64, at: 0.0, relative_error, steps: 1 };
        }
        if threshold as f64 >= mean {
            return self.upper_tail(threshold);
        }
        let center = mean as u64;
        self.lower_threshold(self.upper_tail(center), center, threshold)
    }

    /// Extends the tail above `from` down to the threshold `to`.
    pub(crate) fn lower_threshold(&self, mut tail: BinomialTail, from: u64, to: u64) -> BinomialTail {
        for count in (to..from).rev() {
            tail.at *= self.ratio_down(count + 1);
            tail.excess += tail.mass;
            tail.mass += tail.at;
        }
        let steps = from - to;
        tail.relative_error += 8.0 * ROUNDOFF * steps as f64;
        tail.steps += steps;
        tail
    }

    /// P(X = count − 1) / P(X = count), for a count of at least one.
    pub(crate) fn ratio_down(&self, count: u64) -> f64 {
        real(count) * self.coin.failure / (real(self.trials - count + 1) * self.coin.success)
    }

    /// P(X = count + 1) / P(X = count).
    pub(crate) fn ratio_up(&self, count: u64) -> f64 {
        real(self.trials - count) * self.coin.success / (real(count + 1) * self.coin.failure)
    }

    /// Sums upwards until the remainder cannot change the sums; the ratio of neighbours falls, so the remainder is at most a
    /// geometric series.
    fn upper_tail(&self, threshold: u64) -> BinomialTail {
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
            // Once a weight has underflowed, so have all that follow; without this the loop would run to the last trial.
            if weight == 0.0 || gap > 0.0 && weight * (steps as f64 * gap + 1.0) < ROUNDOFF * excess * gap * gap {
                break;
            }
        }
        let relative_error = at.relative_error + ROUNDOFF * (8.0 * steps as f64 + 8.0);
        BinomialTail { mass, excess, at: at.value, relative_error, steps }
    }
}

/// Counts outside of which the sum of independent binomials has little mass: P(X < low) and P(X > high) are each at
/// most exp(`log_cut`), by Chernoff's bound at the best tilt.
pub(crate) fn window(parts: &[Binomial], log_cut: f64) -> (u64, u64) {
    let reversed: Vec<Binomial> = parts.iter().map(Binomial::reversed).collect();
    (all_trials(parts) - reach(&reversed, -log_cut), reach(parts, -log_cut))
}

fn all_trials(parts: &[Binomial]) -> u64 {
    parts.iter().map(|part| part.trials).sum()
}

/// A count whose upper tail has at least the exponent `rate`, rounded away from the mean; all trials if there is none.
fn reach(parts: &[Binomial], rate: f64) -> u64 {
    let wanted = rate * (1.0 + 1e-9) + 1e-3;
    let Some(bracket) = tilt_bracket(parts, wanted) else { return all_trials(parts) };
    let is_below = |tilt: f64| TiltedCount::new(parts, tilt).exponent < wanted;
    // Any tilt with a sufficient exponent gives a valid count, and two per cent are close enough.
    let (_, tilt) = bisect(bracket, Middle::Arithmetic, 4, |_, _| false, is_below);
    ((TiltedCount::new(parts, tilt).count + 1.0).ceil() as u64).min(all_trials(parts))
}

/// Two tilts, the lower with too small an exponent and the upper with a sufficient one.
fn tilt_bracket(parts: &[Binomial], wanted: f64) -> Option<(f64, f64)> {
    let exponent = |tilt: f64| TiltedCount::new(parts, tilt).exponent;
    let mut high = gaussian_tilt(parts, wanted);
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
    Some((low, high))
}

/// The tilt at which a Gaussian of the same variance has this exponent, where the search starts.
fn gaussian_tilt(parts: &[Binomial], exponent: f64) -> f64 {
    let variance: f64 = parts.iter().map(|part| part.mean() * part.coin.failure).sum();
    (2.0 * exponent / variance.max(1e-12)).sqrt().min(300.0)
}

/// A sum of binomials under a tilt: its mean count, and the exponent of Chernoff's bound on the tail above that count.
struct TiltedCount {
    count: f64,
    exponent: f64,
}

impl TiltedCount {
    fn new(parts: &[Binomial], tilt: f64) -> Self {
        let (mut count, mut cumulant) = (0.0, 0.0);
        for part in parts {
            let n = part.trials as f64;
            count += n * part.coin.success / part.coin.tilted_mass(tilt);
            cumulant += n * part.coin.cumulant(tilt);
        }
        Self { count, exponent: tilt * count - cumulant }
    }
}

/// x·ln(x/m) − x + m without cancellation.
pub(crate) fn deviance(x: f64, m: f64) -> f64 {
    let u = (x - m) / m;
    if u.abs() > 0.25 {
        return x * (x / m).ln() - (x - m);
    }
    // With v = u/(2+u): ln(1+u) = 2·atanh(v), so the value is (x−m)·v + 2x·(v³/3 + v⁵/5 + …).
    let v = (x - m) / (x + m);
    (x - m) * v + 2.0 * x * atanh_series(v)
}

/// v³/3 + v⁵/5 + … for |v| of at most 1/7.
fn atanh_series(v: f64) -> f64 {
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
    series
}

/// ln(n!) − ½ln(2πn) − n·ln n + n.
pub(crate) fn stirling(n: f64) -> f64 {
    if n < 16.0 {
        let factorial: f64 = (1..=n as u64).map(|factor| factor as f64).product();
        return factorial.ln() - 0.5 * (TAU * n).ln() - n * n.ln() + n;
    }
    stirling_series(1.0 / n)
}

/// The series of [`stirling`] in 1/n, with terms to the 13th power, by Horner's rule.
fn stirling_series(inverse: f64) -> f64 {
    const COEFFICIENTS: [f64; 5] = [1.0 / 1188.0, 1.0 / 1680.0, 1.0 / 1260.0, 1.0 / 360.0, 1.0 / 12.0];
    let square = inverse * inverse;
    let last = 691.0 / 360_360.0 - square / 156.0;
    inverse * COEFFICIENTS.iter().fold(last, |series, coefficient| coefficient - square * series)
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
