//! From a profile to a dominating privacy loss distribution on a grid.
//!
//! The grid's knots are whole multiples of a power of two, so every knot is an exact double. The masses are those
//! of a *measure*, not of a probability: rounding only ever adds mass, and `docs/composition.md` shows that domination
//! and composition survive that. Whether the measure dominates is checked after it was built, from the masses
//! as stored; nothing rests on how they were computed.

use super::profile::{LARGEST_LOSS, ProfileCurve, ProfileReader};
use super::{Profile, at_least_one, not_negative, open_probability};
use crate::certified::rounding::{ELEMENTARY, ROUNDOFF, probability_up, up};
use crate::{Error, Result};

/// How finely a profile is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accuracy {
    repetitions: u64,
    smallest_delta: f64,
    cells_per_deviation: u32,
}

impl Accuracy {
    /// Cells of the grid for each standard deviation of one query's loss, by default. The excess in
    /// ε is about one part in 12·64²; lower bounds are about 1 % below.
    pub const CELLS_PER_DEVIATION: u32 = 64;

    /// Sharp for `repetitions` of the query and every δ down to `smallest_delta`; sound for all others.
    pub fn for_repetitions(repetitions: u64, smallest_delta: f64) -> Self {
        Self { repetitions, smallest_delta, cells_per_deviation: Self::CELLS_PER_DEVIATION }
    }

    /// Another number of cells for each standard deviation. A profile is evaluated ten to twenty times as often as
    /// this, which matters if that is costly; 8 still keeps ε within a fraction of a percent. More than
    /// [`Self::CELLS_PER_DEVIATION`] sharpen a single query only: a composition goes back to that.
    pub fn cells_per_deviation(self, cells_per_deviation: u32) -> Self {
        Self { cells_per_deviation: cells_per_deviation.clamp(2, 1024), ..self }
    }

    /// The profile's value below which a larger loss may be called infinite.
    fn negligible(&self) -> Result<f64> {
        let repetitions = at_least_one("the number of repetitions", self.repetitions)?;
        Ok(open_probability(self.smallest_delta)? * 1e-4 / repetitions as f64)
    }
}

/// A measure on privacy losses that dominates one query, in both directions.
#[derive(Debug, Clone, PartialEq)]
pub struct LossDistribution {
    spacing: f64,
    /// Masses at the losses −half·spacing, …, half·spacing.
    masses: Vec<f64>,
    /// Mass at infinite loss.
    infinite: f64,
    /// The hockey-stick curve is nowhere above the profile's by more than this factor.
    inflation: f64,
    /// Mass that was moved upwards by more than one cell; only lower bounds need it.
    moved: f64,
}

impl LossDistribution {
    /// The most cells on one side; a profile that needs more is read more coarsely.
    const MOST_CELLS: f64 = 16_384.0;

    /// Reads the profile and connects the dots: between two knots the curve is replaced by its chord in e^ε.
    pub fn from_profile<P: Profile + ?Sized>(profile: &P, accuracy: Accuracy) -> Result<Self> {
        let negligible = accuracy.negligible()?;
        let mut reader = ProfileReader::new(profile);
        let largest = reader.largest_loss(negligible)?;
        let finest = power_of_two_below(largest / Self::MOST_CELLS);
        let mut spacing = power_of_two_below(largest / 32.0);
        loop {
            let loss = Self::on_grid(&mut reader, spacing, (largest / spacing).ceil() as usize + 2)?;
            let Some(finer) = loss.finer_spacing(accuracy, finest) else { return Ok(loss) };
            spacing = finer;
        }
    }

    /// Losses rounded down to the grid, with masses from below: whatever it says from below holds of the pair of laws.
    pub(super) fn from_below(losses: &[(f64, f64)], infinite: f64, spacing: f64) -> Self {
        let mut masses = rounded_down(losses, spacing);
        let beyond: f64 = losses.iter().filter(|(loss, _)| *loss == f64::INFINITY).map(|(_, mass)| mass).sum();
        // Adding up may have rounded upwards.
        let shrink = 1.0 - 2.0 * ROUNDOFF * (losses.len() as f64 + 4.0);
        masses.iter_mut().for_each(|mass| *mass *= shrink);
        Self { spacing, masses, infinite: (infinite + beyond) * shrink, inflation: 1.0, moved: 0.0 }
    }

    /// The distance of two knots, a power of two.
    pub fn spacing(&self) -> f64 {
        self.spacing
    }

    /// The mass at infinite loss: the δ that no ε gets below (upper bound).
    pub fn infinite_mass(&self) -> f64 {
        self.infinite
    }

    /// The largest finite loss that carries mass.
    pub fn largest_finite_loss(&self) -> f64 {
        let half = self.half();
        let above = self.masses.iter().rposition(|mass| *mass > 0.0).unwrap_or(half);
        (above.max(half) - half) as f64 * self.spacing
    }

    /// An upper bound of δ at `epsilon` ≥ 0 for a single query.
    pub fn delta(&self, epsilon: f64) -> Result<f64> {
        let epsilon = not_negative("epsilon", epsilon)?;
        let above = self.losses().filter(|(loss, _)| *loss > epsilon);
        let finite: f64 = above.map(|(loss, mass)| mass * -(epsilon - loss).exp_m1()).sum();
        let relative = 2.0 * ELEMENTARY + 8.0 * ROUNDOFF * self.masses.len() as f64;
        Ok(probability_up(finite + self.infinite, relative))
    }

    /// An upper bound of ln E\[e^(order·loss)\] over the finite losses.
    pub(super) fn log_moment(&self, order: f64) -> f64 {
        let peak = self.log_moment_peak(order);
        let sum: f64 = self.carrying().map(|(loss, mass)| mass * (order * loss - peak).exp()).sum();
        let steps = self.masses.len() as f64 + 16.0;
        let largest = order.abs() * self.half() as f64 * self.spacing + peak.abs();
        let result = peak + sum.ln();
        result + 2.0 * ROUNDOFF * (steps + 8.0 * largest + 8.0 * result.abs()) + ELEMENTARY
    }

    /// The finite losses of the grid with their masses, from the smallest. Masses are rounded up, so they may add up to a little more than one.
    pub fn losses(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let half = self.half() as f64;
        let spacing = self.spacing;
        self.masses.iter().enumerate().map(move |(index, mass)| ((index as f64 - half) * spacing, *mass))
    }

    /// Losses that carry mass: a pair of laws may have only a few, on a fine grid.
    pub(super) fn carrying(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.losses().filter(|(_, mass)| *mass > 0.0)
    }

    /// Knots on either side of zero.
    pub(super) fn half(&self) -> usize {
        self.masses.len() / 2
    }

    pub(super) fn inflation(&self) -> f64 {
        self.inflation
    }

    pub(super) fn moved(&self) -> f64 {
        self.moved
    }

    /// Mass at all finite losses, rounded up; above 1 − infinite mass only by rounding.
    pub(super) fn finite_mass(&self) -> f64 {
        up(self.masses.iter().sum(), ROUNDOFF * self.masses.len() as f64)
    }

    /// The root mean square of the finite losses; it chooses grids and decides no claim.
    pub(super) fn deviation(&self) -> f64 {
        self.losses().map(|(loss, mass)| mass * loss * loss).sum::<f64>().sqrt()
    }

    /// The spacing to try next, unless the grid is fine enough.
    fn finer_spacing(&self, accuracy: Accuracy, finest: f64) -> Option<f64> {
        let deviation = self.deviation();
        let finer = power_of_two_below(deviation / f64::from(accuracy.cells_per_deviation)).max(finest);
        // A coarse grid overstates the deviation, so the goal recedes: approach it in steps of at most 8.
        (finer < self.spacing && deviation > 0.0).then(|| finer.max(self.spacing / 8.0))
    }

    /// The same on a grid twice as coarse: a mass between two knots is split so that its likelihood ratio is kept
    /// in the mean, which connects the dots once more.
    pub(super) fn coarsened(&self) -> Self {
        let mut masses = self.masses_on_every_other_knot();
        let relative = 4.0 * ELEMENTARY;
        masses.iter_mut().filter(|mass| **mass > 0.0).for_each(|mass| *mass = up(*mass, relative));
        Self {
            spacing: 2.0 * self.spacing,
            masses,
            infinite: self.infinite,
            inflation: up(self.inflation, 4.0 * relative),
            moved: self.moved,
        }
    }

    /// The masses on the knots of a grid twice as coarse, rounded to nearest.
    fn masses_on_every_other_knot(&self) -> Vec<f64> {
        let coarse_half = self.half().div_ceil(2);
        let mut masses = vec![0.0; 2 * coarse_half + 1];
        let upwards = 1.0 / (1.0 + (-self.spacing).exp());
        for (index, mass) in self.masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
            // Counted in fine knots from the first coarse one.
            let knot = index + 2 * coarse_half - self.half();
            if knot.is_multiple_of(2) {
                masses[knot / 2] += mass;
            } else {
                masses[knot / 2] += mass * (1.0 - upwards);
                masses[knot / 2 + 1] += mass * upwards;
            }
        }
        masses
    }

    fn on_grid<P: Profile + ?Sized>(reader: &mut ProfileReader<'_, P>, spacing: f64, half: usize) -> Result<Self> {
        let curve = reader.curve(spacing, half)?;
        let infinite = curve.deltas[half];
        let mut loss = Self { spacing, masses: connect(&curve), infinite, inflation: 1.0, moved: 0.0 };
        loss.dominate(&curve)?;
        loss.moved = up((infinite - reader.floor()).max(0.0) + loss.masses[0], 4.0 * ROUNDOFF);
        Ok(loss)
    }

    /// Raises all masses by the one factor that makes the measure dominate the curve at every vertex of its hull.
    ///
    /// Negative losses need no check of their own: where every mass is at least e^loss times its mirror image, and
    /// the total at least one, domination at ε carries over to −ε (`docs/composition.md`), without the cancellation
    /// that comparing numbers close to one would bring.
    fn dominate(&mut self, curve: &ProfileCurve) -> Result<()> {
        if self.infinite >= 1.0 {
            // Everything is given away: the mass at infinity dominates by itself.
            return Ok(());
        }
        let implied = self.finite_curve().split_off(self.half());
        let total: f64 = self.masses.iter().sum();
        let factor = self.missing_factor(total, &implied, curve);
        if !factor.is_finite() || factor > 1.5 {
            return Err(Error::request("the privacy profile falls faster than doubles can represent"));
        }
        let error = 16.0 * ROUNDOFF * self.masses.len() as f64 + 24.0 * ELEMENTARY;
        let factor = up(factor.max(1.0), error);
        let excess = self.largest_excess(factor, &implied, curve);
        self.inflation = up(excess.max(total * factor + self.infinite), error);
        self.raise(factor);
        Ok(())
    }

    /// The largest factor by which the curve of the masses, raised by `factor`, lies above the profile.
    fn largest_excess(&self, factor: f64, implied: &[f64], curve: &ProfileCurve) -> f64 {
        let excess = |(own, wanted): (&f64, &f64)| {
            let own = own * factor + self.infinite;
            if own > 0.0 { own / wanted } else { 1.0 }
        };
        implied.iter().zip(&curve.deltas).map(excess).fold(1.0, f64::max)
    }

    /// Multiplies all masses by a factor; those of positive losses are rounded up.
    fn raise(&mut self, factor: f64) {
        let half = self.half();
        let (negative, positive) = self.masses.split_at_mut(half + 1);
        negative.iter_mut().for_each(|mass| *mass *= factor);
        let raised = positive.iter_mut().filter(|mass| **mass > 0.0);
        raised.for_each(|mass| *mass = up(*mass * factor, 4.0 * ROUNDOFF));
    }

    /// The factor by which the masses, whose curve is `implied`, fall short of the curve at some vertex of its hull.
    fn missing_factor(&self, total: f64, implied: &[f64], curve: &ProfileCurve) -> f64 {
        let mut factor = (1.0 - self.infinite) / total;
        for &vertex in &curve.hull {
            let wanted = curve.deltas[vertex] - self.infinite;
            if wanted > 0.0 {
                factor = factor.max(wanted / implied[vertex]);
            }
        }
        factor
    }

    /// The hockey-stick curve of the finite masses at every knot: sums of positive terms only.
    fn finite_curve(&self) -> Vec<f64> {
        let (shrink, growth) = ((-self.spacing).exp(), self.spacing.exp_m1());
        let mut curve = vec![0.0; self.masses.len()];
        let mut tail = 0.0;
        for knot in (0..self.masses.len() - 1).rev() {
            tail = shrink * (tail + self.masses[knot + 1]);
            curve[knot] = curve[knot + 1] + growth * tail;
        }
        curve
    }

    fn log_moment_peak(&self, order: f64) -> f64 {
        self.carrying()
            .map(|(loss, mass)| order * loss + mass.ln())
            .fold(f64::NEG_INFINITY, f64::max)
            .clamp(-1e300, 1e300)
    }
}

/// The masses at the knots below the losses; those beyond the largest loss are left out.
fn rounded_down(losses: &[(f64, f64)], spacing: f64) -> Vec<f64> {
    let kept = losses.iter().filter(|(loss, mass)| loss.abs() < LARGEST_LOSS && *mass > 0.0);
    let cells: Vec<(i64, f64)> = kept.map(|(loss, mass)| ((loss / spacing).floor() as i64, *mass)).collect();
    let half = cells.iter().map(|(cell, _)| cell.abs()).max().unwrap_or(0) + 1;
    let mut masses = vec![0.0; 2 * half as usize + 1];
    for (cell, mass) in cells {
        masses[(cell + half) as usize] += mass * (1.0 - 4.0 * ROUNDOFF);
    }
    masses
}

/// The largest power of two that is at most `value`.
fn power_of_two_below(value: f64) -> f64 {
    value.log2().floor().clamp(-1000.0, 1000.0).exp2()
}

/// The masses whose hockey-stick curve is the hull's, up to rounding; mirrored to negative losses by symmetry.
fn connect(curve: &ProfileCurve) -> Vec<f64> {
    let half = curve.half();
    let mut masses = vec![0.0; 2 * half + 1];
    masses[half] = (1.0 - curve.deltas[0] + 2.0 * curve.first_slope()).max(0.0);
    for (vertex, change) in curve.slope_changes() {
        // The mass of the second law is the change of slope; its double for negative losses is the same number.
        let second = change.max(0.0);
        masses[half - vertex] = second;
        if second > 0.0 {
            masses[half + vertex] = up(second * curve.epsilon(vertex).exp(), 2.0 * ELEMENTARY);
        }
    }
    masses
}

#[cfg(test)]
mod tests {
    use super::super::{ApproximateProfile, LaplaceProfile, PureProfile};
    use super::*;
    use proptest::prelude::*;

    fn sharp<P: Profile>(profile: &P) -> LossDistribution {
        LossDistribution::from_profile(profile, Accuracy::for_repetitions(1, 1e-15)).unwrap()
    }

    #[test]
    fn the_loss_of_randomized_response_is_two_atoms() {
        let loss = sharp(&PureProfile::new(1.0).unwrap());
        let near = |target: f64| -> f64 {
            loss.losses().filter(|(at, _)| (at - target).abs() <= loss.spacing()).map(|(_, mass)| mass).sum()
        };
        let truth = 1.0 / (1.0 + (-1.0_f64).exp());
        assert!((near(1.0) - truth).abs() < 1e-2, "{} {truth}", near(1.0));
        assert!((near(-1.0) - (1.0 - truth)).abs() < 1e-2);
        assert!((loss.finite_mass() - 1.0).abs() < 1e-9 && loss.finite_mass() >= 1.0);
        assert_eq!(loss.infinite_mass(), 0.0);
        assert!(loss.inflation() < 1.0 + 1e-9, "{}", loss.inflation());
    }

    #[test]
    fn mass_at_infinity_is_the_floor() {
        let loss = sharp(&ApproximateProfile::new(0.5, 1e-6).unwrap());
        assert!((loss.infinite_mass() / 1e-6 - 1.0).abs() < 1e-3 && loss.infinite_mass() >= 1e-6);
        assert!(loss.delta(3.0).unwrap() >= 1e-6);
    }

    #[test]
    fn the_extension_to_negative_epsilon_dominates_both_ways() {
        let profile = LaplaceProfile::new(1.0).unwrap();
        let loss = sharp(&profile);
        let half = loss.half();
        let curve = loss.finite_curve();
        for knot in 1..half {
            let epsilon = knot as f64 * loss.spacing();
            let reflected = 1.0 - (-epsilon).exp() + (-epsilon).exp() * profile.delta_upper(epsilon);
            let own = curve[half - knot];
            assert!(own >= reflected - 1e-15 && own < reflected + 1e-4, "{epsilon}: {own} {reflected}");
        }
    }

    #[test]
    fn a_noisy_certificate_is_cut_to_its_convex_hull() {
        struct Noisy(LaplaceProfile);
        impl Profile for Noisy {
            fn delta_upper(&self, epsilon: f64) -> f64 {
                let wobble = (epsilon * 1e6).sin().abs();
                self.0.delta_upper(epsilon) * (1.0 + 0.05 * wobble)
            }
        }
        let plain = LaplaceProfile::new(1.0).unwrap();
        let noisy = sharp(&Noisy(plain));
        for epsilon in [0.0, 0.1, 0.3, 0.7, 0.95] {
            let delta = noisy.delta(epsilon).unwrap();
            assert!(delta >= plain.delta_upper(epsilon) && delta < 1.06 * plain.delta_upper(epsilon) + 1e-3);
        }
        assert!(noisy.finite_mass() < 1.0 + 1e-9, "noise must not become mass");
    }

    #[test]
    fn coarsening_dominates_and_keeps_the_ratio() {
        let loss = sharp(&LaplaceProfile::new(1.0).unwrap());
        let coarse = loss.coarsened();
        assert_eq!(coarse.spacing(), 2.0 * loss.spacing());
        for step in 0..40 {
            let epsilon = 0.031 * f64::from(step);
            let (fine, rough) = (loss.delta(epsilon).unwrap(), coarse.delta(epsilon).unwrap());
            assert!(rough >= fine * (1.0 - 1e-12) && rough < fine + 1e-3, "{epsilon}: {fine} {rough}");
        }
    }

    #[test]
    fn bad_profiles_are_named() {
        struct Broken;
        impl Profile for Broken {
            fn delta_upper(&self, _: f64) -> f64 {
                f64::NAN
            }
        }
        let error = LossDistribution::from_profile(&Broken, Accuracy::for_repetitions(1, 1e-8)).unwrap_err();
        assert!(error.to_string().contains("NaN at epsilon"), "{error}");
        let pure = PureProfile::new(1.0).unwrap();
        assert!(LossDistribution::from_profile(&pure, Accuracy::for_repetitions(0, 1e-8)).is_err());
        assert!(LossDistribution::from_profile(&pure, Accuracy::for_repetitions(1, 0.0)).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn never_below_the_profile(own in 1e-4_f64..20.0, delta in 1e-12_f64..0.5, at in 0.0_f64..1.5) {
            let profile = ApproximateProfile::new(own, delta).unwrap();
            let loss = LossDistribution::from_profile(&profile, Accuracy::for_repetitions(7, 1e-10)).unwrap();
            let epsilon = at * own;
            prop_assert!(loss.delta(epsilon).unwrap() >= profile.delta_upper(epsilon) * (1.0 - 1e-14));
        }
    }
}
