//! What a fixed pair of neighbouring worlds gives away at least: a lower bound that somebody attains.

use super::composed::Composition;
use super::convolution::{Part, Window};
use super::loss_distribution::LossDistribution;

/// Outcomes of one query in a pair of worlds, coarsened as one likes: losses from below with their masses from below.
#[derive(Debug, Clone)]
pub(in crate::privacy) struct PairLaw {
    /// (ln of the ratio of the two laws, mass under the first).
    pub(in crate::privacy) losses: Vec<(f64, f64)>,
    /// Mass of outcomes that the second law does not have.
    pub(in crate::privacy) infinite: f64,
}

/// Cells of the grid for each standard deviation of one query's loss, over the root of the number of queries: rounding down
/// loses half a cell for each query, about 0.3 % of ε with this number and half as much with twice as many cells.
const CELLS_PER_DEVIATION: f64 = 32.0;
/// The longest transform that is worth it: some twenty are made for one lower end. Shorter ones make it lower, since every loss
/// is rounded down to a coarser grid.
const LONGEST: usize = 1 << 15;
/// The same for more than a few queries, where every transform is raised to a power.
const LONGEST_OF_MANY: usize = 1 << 11;
/// So many queries are a few.
const FEW: f64 = 8.0;

/// A composition of pairs, each so many times, from below.
#[derive(Debug, Clone)]
pub(in crate::privacy) struct Attained(Composition);

impl Attained {
    /// Puts the pairs on one grid; none where all losses are zero.
    pub(in crate::privacy) fn new(pairs: &[(&PairLaw, u64)]) -> Option<Self> {
        let square = |pair: &PairLaw| pair.losses.iter().map(|(loss, mass)| loss * loss * mass).sum::<f64>();
        let deviation = pairs.iter().map(|(pair, _)| square(pair)).fold(0.0, f64::max).sqrt();
        let total: f64 = pairs.iter().map(|(_, times)| *times as f64).sum();
        let cells = (CELLS_PER_DEVIATION * total.sqrt()).clamp(64.0, 1024.0);
        let mut spacing = (deviation / cells).log2().floor().exp2();
        if !(spacing.is_finite() && spacing > 1e-12) {
            return None;
        }
        loop {
            let part = |(pair, times): &(&PairLaw, u64)| Part {
                loss: LossDistribution::from_below(&pair.losses, pair.infinite, spacing),
                times: *times,
            };
            let parts: Vec<Part> = pairs.iter().filter(|(_, times)| *times > 0).map(part).collect();
            let longest = parts.iter().map(|part| 2 * part.loss.half() + 1).max().unwrap_or(1);
            let most = if total <= FEW { LONGEST } else { LONGEST_OF_MANY };
            if longest <= most && Window::new(&parts, 0.0, spacing).length() <= most {
                return Some(Self(Composition::on_grid(parts, spacing)));
            }
            spacing *= 2.0;
        }
    }

    /// δ at `epsilon` is at least this.
    pub(in crate::privacy) fn delta(&self, epsilon: f64) -> f64 {
        self.0.tail_at(epsilon).lower(epsilon).clamp(0.0, 1.0)
    }

    /// ε at `delta` is at least this, and at most `above`, within a hundredth.
    ///
    /// Every ε tried has a transform of its own, centred on it: far from its centre a transform loses what it is asked for.
    pub(in crate::privacy) fn epsilon(&self, delta: f64, above: f64) -> f64 {
        let holds = |epsilon: f64| self.delta(epsilon) > delta;
        let (mut high, mut distance) = (above, 2e-3 * above);
        while distance < above && !holds(above - distance) {
            (high, distance) = (above - distance, 2.0 * distance);
        }
        let mut low = (above - distance).max(0.0);
        while high - low > 1e-2 * high && high > 1e-9 {
            let middle = 0.5 * (low + high);
            if holds(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coin_thrice() {
        // Randomized response with ln 3: three times the same way, by hand at ε = ln 3: losses ln 27, ln 3 (thrice), ….
        let loss = 3.0_f64.ln();
        let pair = PairLaw { losses: vec![(loss, 0.75), (-loss, 0.25)], infinite: 0.0 };
        let attained = Attained::new(&[(&pair, 3)]).unwrap();
        let truth = 0.75_f64.powi(3) * (1.0 - 3.0 / 27.0);
        let found = attained.delta(loss);
        assert!(found <= truth && found > 0.99 * truth, "{found} against {truth}");
        let back = attained.epsilon(found * 0.999, 3.0);
        assert!(back <= loss * 1.01 && back > 0.98 * loss, "{back}");
    }

    #[test]
    fn outcomes_of_one_world_only_are_infinite_losses() {
        let pair = PairLaw { losses: vec![(0.1, 0.89), (-0.1, 0.1)], infinite: 0.01 };
        let found = Attained::new(&[(&pair, 2)]).unwrap().delta(5.0);
        let truth = 1.0 - 0.99_f64.powi(2);
        assert!(found <= truth && found > truth * (1.0 - 1e-6), "{found} against {truth}");
    }
}
