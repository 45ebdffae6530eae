//! Weighted sums of all counts: their covariance, and the tails of their errors by saddle points.

use crate::contribution::Contributions;
use crate::noise::NoiseLaw;
use crate::numeric::normal;

/// The counts of a crowd, before anybody has drawn a coin: each owner contributes at most once.
pub(super) struct Crowd<'a> {
    told: f64,
    other: f64,
    /// g − r.
    telling: f64,
    noise: Option<NoiseLaw>,
    owners: f64,
    /// How many owners have each counted option; not negative.
    holders: &'a [f64],
    /// How many possibilities are not counted; a contribution that goes there has weight 0.
    has_uncounted: bool,
}

/// A cumulant generating function with its first two derivatives.
#[derive(Clone, Copy, Default)]
struct Cumulants {
    value: f64,
    mean: f64,
    variance: f64,
}

impl<'a> Crowd<'a> {
    pub(super) fn new(asked: &Contributions, owners: u64, holders: &'a [f64]) -> Self {
        let law = asked.law();
        Self {
            told: law.told().to_f64(),
            other: law.other().to_f64(),
            telling: law.telling().to_f64(),
            noise: asked.noise().copied(),
            owners: owners as f64,
            holders,
            has_uncounted: asked.has_uncounted(),
        }
    }

    /// The variance of Σ aₖ·ŷₖ.
    pub(super) fn variance(&self, weights: &[f64]) -> f64 {
        let image = self.covariance_times(weights);
        weights.iter().zip(image).map(|(weight, part)| weight * part).sum::<f64>().max(0.0)
    }

    /// Σ·a, with Σ the covariance of the estimates: Cov(hⱼ, hₖ) = −[nr² + (yⱼ+yₖ)r(g−r)], and on the diagonal
    /// yg(1−g) + (n−y)r(1−r) and the noise; all over (g−r)².
    pub(super) fn covariance_times(&self, weights: &[f64]) -> Vec<f64> {
        let Self { told: g, other: r, telling, owners: n, .. } = *self;
        let noise = self.noise.map_or(0.0, |noise| 2.0 * noise.variance());
        let total: f64 = weights.iter().sum();
        let held: f64 = weights.iter().zip(self.holders).map(|(weight, holders)| weight * holders).sum();
        let entry = |(&weight, &y): (&f64, &f64)| {
            let own = y * g * (1.0 - g) + (n - y) * r * (1.0 - r) + noise;
            let others = n * r * r * (total - weight) + r * telling * (y * (total - 2.0 * weight) + held);
            (own * weight - others) / (telling * telling)
        };
        weights.iter().zip(self.holders).map(entry).collect()
    }

    /// By how much the variance of Σ aₖ·ŷₖ changes with the holders of each option; it is linear in them.
    pub(super) fn variance_slopes(&self, weights: &[f64]) -> Vec<f64> {
        let Self { told: g, other: r, telling, .. } = *self;
        let total: f64 = weights.iter().sum();
        let spread = g * (1.0 - g) - r * (1.0 - r);
        let slope = |&weight: &f64| {
            (weight * weight * spread - 2.0 * weight * (total - weight) * r * telling) / (telling * telling)
        };
        weights.iter().map(slope).collect()
    }

    /// How far Σ aₖ·ŷₖ is above its mean with this probability, which is at most one half; 0 if it has no variance.
    ///
    /// By the formula of Lugannani and Rice, which knows the skewness and the heavy tails that a normal law does not.
    pub(super) fn upper_quantile(&self, weights: &[f64], tail: f64) -> f64 {
        let scaled: Vec<f64> = weights.iter().map(|weight| weight / self.telling).collect();
        let largest = scaled.iter().fold(0.0f64, |largest, weight| largest.max(weight.abs()));
        if largest == 0.0 || self.cumulants(&scaled, 0.0).variance <= 0.0 {
            return 0.0;
        }
        let mean = self.cumulants(&scaled, 0.0).mean;
        let mut high = self.steepest_tilt(largest);
        let mut low = 0.0;
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if tail_at(self.cumulants(&scaled, middle), middle) > tail { low = middle } else { high = middle }
        }
        self.cumulants(&scaled, high).mean - mean
    }

    /// The largest tilt: beyond that of the noise there is no moment generating function, and without noise the tails at
    /// e^±40 are below any that is asked for.
    fn steepest_tilt(&self, largest: f64) -> f64 {
        self.noise.map_or(40.0, |noise| noise.steepest_tilt().min(40.0)) / largest
    }

    /// Of Σ aₖ·tₖ, tₖ the published counts.
    fn cumulants(&self, weights: &[f64], tilt: f64) -> Cumulants {
        let growths: Vec<f64> = weights.iter().map(|weight| (tilt * weight).exp_m1()).collect();
        let mut common = [0.0; 3];
        for (weight, growth) in weights.iter().zip(&growths) {
            let tilted = 1.0 + growth;
            common[0] += self.other * growth;
            common[1] += self.other * weight * tilted;
            common[2] += self.other * weight * weight * tilted;
        }
        let mut sum = Cumulants::default();
        for ((&weight, &growth), &holders) in weights.iter().zip(&growths).zip(self.holders) {
            let tilted = self.telling * (1.0 + growth);
            sum.add_owners(
                holders,
                [common[0] + self.telling * growth, common[1] + weight * tilted, common[2] + weight * weight * tilted],
            );
        }
        if self.has_uncounted {
            let uncounted = (self.owners - self.holders.iter().sum::<f64>()).max(0.0);
            sum.add_owners(uncounted, common);
        }
        if let Some(noise) = self.noise {
            weights.iter().for_each(|&weight| sum.add_noise(noise, weight, tilt));
        }
        sum
    }
}

impl Cumulants {
    /// Adds independent owners, given E e^(θx) − 1 of one and its first two derivatives.
    fn add_owners(&mut self, owners: f64, [growth, first, second]: [f64; 3]) {
        let mean = first / (1.0 + growth);
        self.value += owners * growth.ln_1p();
        self.mean += owners * mean;
        self.variance += owners * (second / (1.0 + growth) - mean * mean);
    }

    fn add_noise(&mut self, noise: NoiseLaw, weight: f64, tilt: f64) {
        let [value, mean, variance] = noise.sum_cumulants(weight * tilt);
        self.value += value;
        self.mean += weight * mean;
        self.variance += weight * weight * variance;
    }
}

/// P(sum ≥ the mean under this tilt), which is above 0.
fn tail_at(cumulants: Cumulants, tilt: f64) -> f64 {
    let deviation = (2.0 * (tilt * cumulants.mean - cumulants.value)).max(0.0).sqrt();
    let scaled = tilt * cumulants.variance.max(0.0).sqrt();
    if deviation < 1e-3 || scaled < 1e-3 {
        return normal::upper_tail(deviation);
    }
    (normal::upper_tail(deviation) + normal::density(deviation) * (1.0 / scaled - 1.0 / deviation)).clamp(0.0, 1.0)
}
