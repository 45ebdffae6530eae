//! A lower bound on a composition: some fixed pair of neighbouring worlds attains it (`docs/composition.md`, "The lower
//! value").

use super::composed::Composition;
use super::convolution::{CellRange, HockeyStickBounds, RepeatedQuery};
use super::loss_distribution::LossDistribution;
use crate::certified::root::half_octaves;
use crate::certified::root::{Middle, bisect};
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::divergence::many_classes::PairLaw;

/// Cells of the grid for each standard deviation of one query's loss. Rounding down to the grid costs at most about
/// 0.4 / this of ε, and a grid of twice as many costs twice as much time.
const CELLS_PER_DEVIATION: f64 = 128.0;
/// The longest transform that is worth its time; about five are made for one lower end. A smaller limit makes grids coarser.
const LONGEST: usize = 1 << 18;
/// Outcomes of the lowest losses are left out as long as all queries together lose less than this of δ. A probability of which
/// only the error bound of a transform is left seems to have a very low loss, which would make the grid long.
const LEFT_OUT: f64 = 1e-5;
/// The part of δ that is given up for residuals that are improbably small together.
const IMPROBABLE: f64 = 1e-3;

/// A composition of pairs, each with its number of repetitions, from below.
#[derive(Debug, Clone)]
pub(in crate::privacy) struct Attained {
    /// With all losses rounded down to the grid.
    rounded: Composition,
    residuals: Vec<Residuals>,
}

impl Attained {
    /// Puts the pairs on one grid; `None` if all losses are zero.
    pub(in crate::privacy) fn new(pairs: &[(&PairLaw, u64)]) -> Option<Self> {
        let total: f64 = pairs.iter().map(|(_, times)| *times as f64).sum();
        let used = pairs.iter().filter(|(_, times)| *times > 0);
        let pairs: Vec<RepeatedPair> = used
            .map(|(law, times)| RepeatedPair { law: without_lowest(law, LEFT_OUT / total), times: *times })
            .collect();
        let rounded = on_finest_grid(&pairs)?;
        let residuals = pairs.iter().map(|pair| Residuals::new(pair, rounded.spacing())).collect();
        Some(Self { rounded, residuals })
    }

    /// δ at `epsilon` is at least this.
    pub(in crate::privacy) fn delta(&self, epsilon: f64) -> f64 {
        let tail = self.rounded.tail_at(epsilon);
        let mut best = tail.lower(epsilon);
        for _ in 0..2 {
            let improbable = IMPROBABLE * best;
            best = best.max(tail.lower(epsilon - self.lost(improbable)) - improbable);
        }
        best.clamp(0.0, 1.0)
    }

    /// ε at `delta` is at least this, and at most `above`.
    ///
    /// Far from its centre a transform is imprecise, so each is centred on the result of the previous one.
    pub(in crate::privacy) fn epsilon(&self, delta: f64, above: f64) -> f64 {
        let improbable = IMPROBABLE * delta;
        let (mut best, mut centre) = (0.0_f64, above);
        for _ in 0..6 {
            let found = largest_above(&self.rounded.tail_at(centre), delta + improbable, above);
            best = best.max(found);
            if found > 0.999 * centre && found < 1.001 * centre {
                break;
            }
            centre = if found > 0.0 { found } else { 0.5 * centre };
        }
        if best > 0.0 { best + self.lost(improbable) } else { 0.0 }.min(above)
    }

    /// A lower bound on what rounding down has taken from the sum of all losses, except for outcomes of at most this mass
    /// together.
    fn lost(&self, improbable: f64) -> f64 {
        if improbable <= 0.0 {
            return 0.0;
        }
        let orders = half_octaves(-8..=24).map(|factor| factor / self.rounded.spacing());
        let lost = orders.map(|order| self.lost_at(order, improbable));
        lost.filter(|lost| lost.is_finite()).fold(0.0, f64::max)
    }

    /// By Chernoff: for λ > 0, the measure of the outcomes whose residuals r sum to less than c is at most
    /// e^(λc)·∏E[e^(−λr)]. See `docs/composition.md`, "The lower value".
    fn lost_at(&self, order: f64, improbable: f64) -> f64 {
        let moments: f64 = self.residuals.iter().map(|residuals| residuals.log_moment(order)).sum();
        (improbable.ln() - moments) / order * (1.0 - 1e-9)
    }
}

/// The law of one query under two neighbouring worlds, and how often it is repeated.
struct RepeatedPair {
    law: PairLaw,
    times: u64,
}

impl RepeatedPair {
    /// The mean square of the finite losses.
    fn mean_square(&self) -> f64 {
        self.law.losses.iter().map(|(loss, mass)| loss * loss * mass).sum()
    }

    /// With losses rounded down to a grid.
    fn rounded_down(&self, spacing: f64) -> RepeatedQuery {
        RepeatedQuery {
            loss: LossDistribution::from_below(&self.law.losses, self.law.infinite, spacing),
            times: self.times,
        }
    }
}

/// The pairs with their losses rounded down to the finest grid whose transform is not too long; `None` if all losses are zero.
fn on_finest_grid(pairs: &[RepeatedPair]) -> Option<Composition> {
    let mut spacing = finest_spacing(pairs)?;
    loop {
        if let Some(rounded) = on_grid(pairs, spacing) {
            return Some(rounded);
        }
        spacing *= 2.0;
    }
}

/// The spacing of the finest grid that is worth its time, a power of two; `None` if all losses are zero.
fn finest_spacing(pairs: &[RepeatedPair]) -> Option<f64> {
    let deviation = pairs.iter().map(RepeatedPair::mean_square).fold(0.0, f64::max).sqrt();
    let spacing = (deviation / CELLS_PER_DEVIATION).log2().floor().exp2();
    (spacing.is_finite() && spacing > 1e-12).then_some(spacing)
}

/// The pairs with their losses rounded down to a grid; `None` if their transform would be too long.
fn on_grid(pairs: &[RepeatedPair], spacing: f64) -> Option<Composition> {
    let parts: Vec<RepeatedQuery> = pairs.iter().map(|pair| pair.rounded_down(spacing)).collect();
    let longest = parts.iter().map(|part| 2 * part.loss.half() + 1).max().unwrap_or(1);
    let fits = longest <= LONGEST && CellRange::new(&parts, 0.0, spacing).length() <= LONGEST;
    fits.then(|| Composition::on_grid(parts, spacing))
}

/// The largest ε up to `above` at which the tail is certainly above `delta`; zero if there is none.
fn largest_above(tail: &HockeyStickBounds, delta: f64, above: f64) -> f64 {
    let close = |low: f64, high: f64| high - low <= 1e-5 * high || high <= 1e-9;
    bisect((0.0, above), Middle::Arithmetic, usize::MAX, close, |epsilon| tail.lower(epsilon) > delta).0
}

/// How far the losses of one query lie above the cells of the grid that they were rounded down to.
#[derive(Debug, Clone)]
struct Residuals {
    /// (residual, mass).
    atoms: Vec<(f64, f64)>,
    times: u64,
}

impl Residuals {
    fn new(pair: &RepeatedPair, spacing: f64) -> Self {
        let residual = |loss: f64| loss - (loss / spacing).floor() * spacing;
        let atoms = pair.law.losses.iter().map(|(loss, mass)| (residual(*loss), *mass)).collect();
        Self { atoms, times: pair.times }
    }

    /// An upper bound of ln E\[e^(−order·residual)\], of all queries together.
    fn log_moment(&self, order: f64) -> f64 {
        let least = self.atoms.iter().map(|(residual, _)| *residual).fold(f64::INFINITY, f64::min);
        let sum: f64 = self.atoms.iter().map(|(residual, mass)| mass * (order * (least - residual)).exp()).sum();
        let rounding = ROUNDOFF * (self.atoms.len() as f64 + 64.0 + order * least);
        self.times as f64 * (sum.ln() - order * least + 4.0 * rounding)
    }
}

/// The pair without outcomes of the lowest losses, of at most this mass together.
fn without_lowest(pair: &PairLaw, mass: f64) -> PairLaw {
    let mut losses = pair.losses.clone();
    losses.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left_out = 0.0;
    let lowest = losses.iter().take_while(|(loss, own)| {
        left_out += own;
        *loss < 0.0 && left_out <= mass
    });
    let count = lowest.count();
    PairLaw { losses: losses.split_off(count), infinite: pair.infinite }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coin_thrice() {
        // Randomized response with ln 3, three times the same way; at ε = ln 3 by hand: the losses are ln 27, ln 3 (thrice), ….
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
