//! The sum of two independent binomials: what a bin counts when owners of both truths can land in it.

use super::{binomial, normal};

/// X + Y with X ~ Binomial(`yes`, `p`) and Y ~ Binomial(`no`, `q`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwoBinomials {
    pub(crate) yes: u64,
    pub(crate) p: f64,
    pub(crate) no: u64,
    pub(crate) q: f64,
}

/// P(sum ≥ x), P(sum ≤ x) and P(sum = x).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tails {
    pub(crate) upper: f64,
    pub(crate) lower: f64,
    pub(crate) point: f64,
}

/// Beyond this variance the tails are taken from the saddle point, whose relative error falls like 1/variance.
const LARGEST_SUMMED_VARIANCE: f64 = 1e6;

impl TwoBinomials {
    pub(crate) fn mean(&self) -> f64 {
        self.yes as f64 * self.p + self.no as f64 * self.q
    }

    pub(crate) fn variance(&self) -> f64 {
        self.yes as f64 * self.p * (1.0 - self.p) + self.no as f64 * self.q * (1.0 - self.q)
    }

    /// The tails at `x`.
    pub(crate) fn tails(&self, x: u64) -> Tails {
        if self.variance() > LARGEST_SUMMED_VARIANCE { self.saddle_point(x) } else { self.summed(x) }
    }

    /// Every pair of counts that matters, with no approximation but rounding and masses below 1e-26.
    fn summed(&self, x: u64) -> Tails {
        let (first_low, first_high) = binomial::window(self.yes, self.p);
        let (second_low, second_high) = binomial::window(self.no, self.q);
        let first = binomial::probabilities(self.yes, self.p, first_low, first_high);
        let second = binomial::probabilities(self.no, self.q, second_low, second_high);
        let at_least = reverse_sums(&second);
        let at_most = running_sums(&second);
        let mut tails = Tails { upper: 0.0, lower: 0.0, point: 0.0 };
        for (index, &mass) in first.iter().enumerate() {
            // What the second count must reach for the sum to be x.
            let needed = i128::from(x) - i128::from(first_low + index as u64);
            let offset = needed - i128::from(second_low);
            let inside = usize::try_from(offset).ok().filter(|&at| at < second.len());
            match inside {
                Some(at) => {
                    tails.upper += mass * at_least[at];
                    tails.lower += mass * at_most[at];
                    tails.point += mass * second[at];
                }
                None if offset < 0 => tails.upper += mass,
                None => tails.lower += mass,
            }
        }
        tails
    }

    /// The Lugannani–Rice formula for lattice variables (second continuity correction of Daniels 1987).
    fn saddle_point(&self, x: u64) -> Tails {
        let upper = |x: f64| self.saddle_point_upper(x);
        let at = x as f64;
        let (upper, above) = (upper(at), upper(at + 1.0));
        Tails { upper, lower: (1.0 - above).max(0.0), point: (upper - above).max(0.0) }.with_lower(self.mirrored(x))
    }

    /// P(sum ≤ x) as the upper tail of the misses, so that a small one is not the difference of large ones.
    fn mirrored(&self, x: u64) -> f64 {
        let misses = Self { p: 1.0 - self.p, q: 1.0 - self.q, ..*self };
        misses.saddle_point_upper(self.yes as f64 + self.no as f64 - x as f64)
    }

    /// P(sum ≥ x).
    fn saddle_point_upper(&self, x: f64) -> f64 {
        let total = self.yes as f64 + self.no as f64;
        if x <= 0.0 {
            return 1.0;
        }
        if x > total {
            return 0.0;
        }
        // The continuity-corrected point, kept inside the range of the sum.
        let corrected = (x - 0.5).clamp(0.25, total - 0.25);
        let tilt = self.tilt_for(corrected);
        let (cumulant, _, spread) = self.cumulants(tilt);
        let deviation = (2.0 * (tilt * corrected - cumulant)).max(0.0).sqrt().copysign(tilt);
        let lattice = 2.0 * (tilt / 2.0).sinh() * spread.sqrt();
        if deviation.abs() < 1e-4 {
            let z = (corrected - self.mean()) / self.variance().sqrt();
            return normal::upper_tail(z);
        }
        (normal::upper_tail(deviation) + normal::density(deviation) * (1.0 / lattice - 1.0 / deviation)).clamp(0.0, 1.0)
    }

    /// The logarithm of E\[e^(tilt·sum)\] with its first two derivatives.
    fn cumulants(&self, tilt: f64) -> (f64, f64, f64) {
        let part = |trials: u64, p: f64| {
            let trials = trials as f64;
            let tilted = p * tilt.exp() / (p * tilt.exp_m1() + 1.0);
            (trials * (p * tilt.exp_m1()).ln_1p(), trials * tilted, trials * tilted * (1.0 - tilted))
        };
        let (a, b) = (part(self.yes, self.p), part(self.no, self.q));
        (a.0 + b.0, a.1 + b.1, a.2 + b.2)
    }

    /// The tilt under which the mean is `target`, by Newton's method safeguarded by bisection.
    fn tilt_for(&self, target: f64) -> f64 {
        let (mut low, mut high) = (-50.0, 50.0);
        let mut tilt = 0.0;
        for _ in 0..100 {
            let (_, mean, spread) = self.cumulants(tilt);
            if mean < target {
                low = tilt
            } else {
                high = tilt
            }
            let newton = tilt - (mean - target) / spread;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            if (next - tilt).abs() <= 1e-15 * tilt.abs().max(1e-3) {
                return next;
            }
            tilt = next;
        }
        tilt
    }
}

impl Tails {
    fn with_lower(self, lower: f64) -> Self {
        Self { lower, ..self }
    }
}

fn running_sums(masses: &[f64]) -> Vec<f64> {
    masses
        .iter()
        .scan(0.0, |sum, mass| {
            *sum += mass;
            Some(*sum)
        })
        .collect()
}

fn reverse_sums(masses: &[f64]) -> Vec<f64> {
    let mut sums: Vec<f64> = masses.to_vec();
    for index in (0..sums.len().saturating_sub(1)).rev() {
        sums[index] += sums[index + 1];
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brute_force(law: TwoBinomials, x: u64) -> Tails {
        let mut tails = Tails { upper: 0.0, lower: 0.0, point: 0.0 };
        for a in 0..=law.yes {
            for b in 0..=law.no {
                let mass = binomial::probability(a as f64, law.yes as f64, law.p)
                    * binomial::probability(b as f64, law.no as f64, law.q);
                tails.upper += if a + b >= x { mass } else { 0.0 };
                tails.lower += if a + b <= x { mass } else { 0.0 };
                tails.point += if a + b == x { mass } else { 0.0 };
            }
        }
        tails
    }

    #[test]
    fn sums_agree_with_brute_force() {
        for law in [
            TwoBinomials { yes: 5, p: 0.3, no: 12, q: 0.05 },
            TwoBinomials { yes: 0, p: 0.3, no: 12, q: 0.0 },
            TwoBinomials { yes: 9, p: 1.0, no: 3, q: 0.5 },
        ] {
            for x in 0..=law.yes + law.no + 1 {
                let (fast, slow) = (law.tails(x), brute_force(law, x));
                assert!((fast.upper - slow.upper).abs() < 1e-13, "{law:?} {x} {fast:?} {slow:?}");
                assert!((fast.lower - slow.lower).abs() < 1e-13);
                assert!((fast.point - slow.point).abs() < 1e-13);
            }
        }
    }

    /// The switch to the saddle point changes no tail by more than 3e-6 of itself, and less as the crowd grows.
    #[test]
    fn saddle_point_meets_the_sum_where_it_takes_over() {
        for law in [
            TwoBinomials { yes: 500_000, p: 0.8, no: 5_500_000, q: 0.2 },
            TwoBinomials { yes: 1_000_000, p: 0.5, no: 900_000_000, q: 8e-4 },
            TwoBinomials { yes: 4_000_000, p: 0.4999, no: 90_000_000, q: 1e-7 },
        ] {
            assert!(law.variance() > 0.9 * LARGEST_SUMMED_VARIANCE, "{}", law.variance());
            for z in [-6.0, -4.0, -2.0, -0.5, 0.5, 2.0, 4.0, 6.0] {
                let x = (law.mean() + z * law.variance().sqrt()).round() as u64;
                let (fast, slow) = (law.saddle_point(x), law.summed(x));
                assert!((fast.upper / slow.upper - 1.0).abs() < 3e-6, "{z}: {fast:?} {slow:?}");
                assert!((fast.lower / slow.lower - 1.0).abs() < 3e-6, "{z}: {fast:?} {slow:?}");
            }
        }
    }
}
