//! Owners who draw scores from one law, and that law under a tilt (`docs/accounting.md`, "Sums of scores").

/// Owners who draw their scores independently from one law.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    pub(crate) owners: u64,
    /// Scores with their probabilities.
    pub(crate) atoms: Vec<(i64, f64)>,
}

impl Draws {
    pub(super) fn log_normalizer(&self, tilt: f64) -> f64 {
        let peak = self.atoms.iter().map(|(score, _)| tilt * *score as f64).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = self.atoms.iter().map(|(score, mass)| mass * (tilt * *score as f64 - peak).exp()).sum();
        if peak.abs() < 1e-3 {
            // Near zero the sum of the probabilities themselves is one, exactly.
            let excess: f64 = self.atoms.iter().map(|(score, mass)| mass * (tilt * *score as f64).exp_m1()).sum();
            return excess.ln_1p();
        }
        peak + sum.ln()
    }

    pub(super) fn moments(&self, tilt: f64) -> (f64, f64) {
        tilted_moments(self.atoms.iter().map(|(score, mass)| (*score as f64, *mass)), tilt)
    }

    pub(super) fn reach(&self) -> i64 {
        self.atoms.iter().map(|(score, _)| score.abs()).max().unwrap_or(0)
    }

    pub(super) fn lowest(&self) -> i64 {
        self.atoms.iter().map(|(score, _)| *score).min().unwrap_or(0)
    }

    pub(super) fn highest(&self) -> i64 {
        self.atoms.iter().map(|(score, _)| *score).max().unwrap_or(0)
    }
}

/// Mean and variance of the tilted law of values with these masses, whatever these sum to, in one pass (the update of West). For
/// choosing tilts and lattices, not for claims: a large value with a small mass that comes first costs digits.
pub(crate) fn tilted_moments(law: impl Iterator<Item = (f64, f64)> + Clone, tilt: f64) -> (f64, f64) {
    let occurring = law.filter(|(_, mass)| *mass > 0.0);
    let peak = occurring.clone().map(|(value, _)| tilt * value).fold(f64::NEG_INFINITY, f64::max);
    let (mut total, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for (value, mass) in occurring {
        let weight = mass * (tilt * value - peak).exp();
        total += weight;
        if total > 0.0 {
            let distance = value - mean;
            mean += distance * weight / total;
            squares += weight * distance * (value - mean);
        }
    }
    (mean, if total > 0.0 { squares / total } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_a_tilted_law() {
        let law = [(-2.0, 0.25), (1.0, 0.5), (3.0, 0.25)];
        let (mean, variance) = tilted_moments(law.into_iter(), 0.0);
        assert!((mean - 0.75).abs() < 1e-15 && (variance - (0.25 * 4.0 + 0.5 + 0.25 * 9.0 - 0.5625)).abs() < 1e-14);
        // Tilted far enough, only the largest is left.
        let (mean, variance) = tilted_moments(law.into_iter(), 200.0);
        assert!((mean - 3.0).abs() < 1e-12 && variance < 1e-12);
    }
}
