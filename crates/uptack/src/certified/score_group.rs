//! Owners who draw scores from one law, and that law under a tilt (`docs/accounting.md`, "Sums of scores").

/// A score with its probability.
pub(crate) type Atom = (i64, f64);

/// Owners who draw their scores independently from one law.
#[derive(Clone, Debug)]
pub(crate) struct ScoreGroup {
    pub(crate) owners: u64,
    pub(crate) atoms: Vec<Atom>,
}

impl ScoreGroup {
    /// ln E\[e^(tilt·score)\].
    pub(super) fn log_normalizer(&self, tilt: f64) -> f64 {
        let peak = self.law().map(|(score, _)| tilt * score).fold(f64::NEG_INFINITY, f64::max);
        if peak.abs() < 1e-3 {
            // Near zero the sum of the probabilities themselves is one, exactly.
            return self.expectation(|score| (tilt * score).exp_m1()).ln_1p();
        }
        peak + self.expectation(|score| (tilt * score - peak).exp()).ln()
    }

    fn expectation(&self, function: impl Fn(f64) -> f64) -> f64 {
        self.law().map(|(score, mass)| mass * function(score)).sum()
    }

    /// Scores, as doubles, with their probabilities.
    fn law(&self) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        self.atoms.iter().map(|(score, mass)| (*score as f64, *mass))
    }

    /// Scores with their probabilities under a tilt with this log normalizer.
    pub(super) fn tilted(&self, tilt: f64, log_normalizer: f64) -> Vec<Atom> {
        let weight = |score: i64| (tilt * score as f64 - log_normalizer).exp();
        self.atoms.iter().map(|&(score, mass)| (score, mass * weight(score))).collect()
    }

    /// Mean and variance of one score under a tilt.
    pub(super) fn moments(&self, tilt: f64) -> (f64, f64) {
        tilted_moments(self.law(), tilt)
    }

    /// The mean of one score without a tilt, by one addition after another.
    pub(super) fn plain_mean(&self) -> f64 {
        self.law().map(|(score, mass)| score * mass).sum()
    }

    /// The largest absolute value of a score.
    pub(super) fn reach(&self) -> i64 {
        self.scores().map(i64::abs).max().unwrap_or(0)
    }

    pub(super) fn lowest(&self) -> i64 {
        self.scores().min().unwrap_or(0)
    }

    pub(super) fn highest(&self) -> i64 {
        self.scores().max().unwrap_or(0)
    }

    fn scores(&self) -> impl Iterator<Item = i64> + '_ {
        self.atoms.iter().map(|(score, _)| *score)
    }
}

/// Mean and variance of the tilted law of values with these masses, whatever these sum to, in one pass. For choosing tilts and
/// lattices, not for claims: a large value with a small mass that comes first costs digits.
pub(crate) fn tilted_moments(law: impl Iterator<Item = (f64, f64)> + Clone, tilt: f64) -> (f64, f64) {
    let occurring = law.filter(|(_, mass)| *mass > 0.0);
    let peak = occurring.clone().map(|(value, _)| tilt * value).fold(f64::NEG_INFINITY, f64::max);
    let mut moments = RunningMoments::default();
    for (value, mass) in occurring {
        moments.add(value, mass * (tilt * value - peak).exp());
    }
    (moments.mean, moments.variance())
}

/// Mean and variance of weighted values, updated value by value (West 1979).
#[derive(Default)]
struct RunningMoments {
    total: f64,
    mean: f64,
    /// Σ weight·(value − mean)².
    squares: f64,
}

impl RunningMoments {
    #[inline]
    fn add(&mut self, value: f64, weight: f64) {
        self.total += weight;
        if self.total > 0.0 {
            let distance = value - self.mean;
            self.mean += distance * weight / self.total;
            self.squares += weight * distance * (value - self.mean);
        }
    }

    fn variance(&self) -> f64 {
        if self.total > 0.0 { self.squares / self.total } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_a_tilted_law() {
        let law = [(-2.0, 0.25), (1.0, 0.5), (3.0, 0.25)];
        let (mean, variance) = tilted_moments(law.into_iter(), 0.0);
        assert!((mean - 0.75).abs() < 1e-15 && (variance - (0.25 * 4.0 + 0.5 + 0.25 * 9.0 - 0.5625)).abs() < 1e-14);
        // Under a steep tilt only the largest value is left.
        let (mean, variance) = tilted_moments(law.into_iter(), 200.0);
        assert!((mean - 3.0).abs() < 1e-12 && variance < 1e-12);
    }
}
