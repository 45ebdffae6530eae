//! The seam between accounting and composition: δ as a function of ε, read onto a grid as a falling curve with its convex hull
//! (`docs/composition.md`, "From a profile to a measure").

use std::collections::BTreeMap;

use super::{not_negative, open_probability};
use crate::certified::rounding::{ELEMENTARY, probability_up, up};
use crate::{Error, Result};

/// A certified privacy profile of one query.
///
/// `delta_upper(ε)` is, for every ε ≥ 0, at least the largest hockey-stick divergence over all crowds **and both
/// directions** of the substitution. The true profile never increases with ε and is convex in e^ε; the certified
/// values need not be: whatever excess they carry is cut off by a convex hull, soundly.
///
/// Negative ε are never asked for: by symmetry δ(−ε) = 1 − e^(−ε) + e^(−ε)·δ(ε).
pub trait Profile {
    /// An upper bound of δ at `epsilon` ≥ 0.
    fn delta_upper(&self, epsilon: f64) -> f64;

    /// The same at many ε. A profile that is costly to evaluate may do so on several threads.
    fn deltas_upper(&self, epsilons: &[f64]) -> Vec<f64> {
        epsilons.iter().map(|epsilon| self.delta_upper(*epsilon)).collect()
    }

    /// A δ that no ε gets below, rounded down; it sharpens lower bounds only.
    fn floor(&self) -> f64 {
        0.0
    }
}

/// The profile of every ε-differentially private mechanism; randomized response attains it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PureProfile {
    epsilon: f64,
}

impl PureProfile {
    /// A pure guarantee ε.
    pub fn new(epsilon: f64) -> Result<Self> {
        not_negative("epsilon", epsilon).map(|epsilon| Self { epsilon })
    }
}

impl Profile for PureProfile {
    fn delta_upper(&self, epsilon: f64) -> f64 {
        pure_delta(self.epsilon, epsilon)
    }
}

/// The profile of every (ε, δ)-differentially private mechanism.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ApproximateProfile {
    epsilon: f64,
    delta: f64,
}

impl ApproximateProfile {
    /// An approximate guarantee (ε, δ).
    pub fn new(epsilon: f64, delta: f64) -> Result<Self> {
        Ok(Self { epsilon: not_negative("epsilon", epsilon)?, delta: open_probability(delta)? })
    }
}

impl Profile for ApproximateProfile {
    fn delta_upper(&self, epsilon: f64) -> f64 {
        probability_up(self.delta + (1.0 - self.delta) * pure_delta(self.epsilon, epsilon), 4.0 * ELEMENTARY)
    }

    fn floor(&self) -> f64 {
        self.delta
    }
}

/// The Laplace mechanism: sensitivity over scale is ε.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaplaceProfile {
    epsilon: f64,
}

impl LaplaceProfile {
    /// Laplace noise whose pure guarantee is ε.
    pub fn new(epsilon: f64) -> Result<Self> {
        not_negative("epsilon", epsilon).map(|epsilon| Self { epsilon })
    }
}

impl Profile for LaplaceProfile {
    fn delta_upper(&self, epsilon: f64) -> f64 {
        let excess = (self.epsilon - epsilon) / 2.0;
        if excess <= 0.0 { 0.0 } else { probability_up(-(-excess).exp_m1(), 2.0 * ELEMENTARY) }
    }
}

/// δ of randomized response with the pure guarantee `own`, asked at `epsilon`.
pub(super) fn pure_delta(own: f64, epsilon: f64) -> f64 {
    if epsilon >= own {
        return 0.0;
    }
    // (e^own − e^epsilon)/(1 + e^own), divided by e^own so that nothing overflows.
    probability_up(-(epsilon - own).exp_m1() / (1.0 + (-own).exp()), 4.0 * ELEMENTARY)
}

/// Losses beyond this are called infinite: nobody states a probability as small as e^(−128).
pub(super) const LARGEST_LOSS: f64 = 128.0;

/// Asks the profile, and never twice for the same ε.
pub(super) struct ProfileReader<'a, P: Profile + ?Sized> {
    profile: &'a P,
    known: BTreeMap<u64, f64>,
}

impl<'a, P: Profile + ?Sized> ProfileReader<'a, P> {
    pub(super) fn new(profile: &'a P) -> Self {
        Self { profile, known: BTreeMap::new() }
    }

    /// A δ that no ε gets below.
    pub(super) fn floor(&self) -> f64 {
        self.profile.floor()
    }

    fn delta(&mut self, epsilon: f64) -> Result<f64> {
        if let Some(delta) = self.known.get(&epsilon.to_bits()) {
            return Ok(*delta);
        }
        self.learn(epsilon, self.profile.delta_upper(epsilon))
    }

    fn learn(&mut self, epsilon: f64, delta: f64) -> Result<f64> {
        if delta.is_nan() || delta < 0.0 {
            return Err(Error::request(format!(
                "the privacy profile says delta = {delta} at epsilon = {epsilon}, which is not a probability"
            )));
        }
        self.known.insert(epsilon.to_bits(), delta.min(1.0));
        Ok(delta.min(1.0))
    }

    /// An ε beyond which the profile is negligible or no longer falls, within a tenth.
    pub(super) fn largest_loss(&mut self, negligible: f64) -> Result<f64> {
        let mut high = LARGEST_LOSS;
        let enough = negligible + self.delta(high)? * 1.0001;
        while high > 1e-9 && self.delta(high / 2.0)? <= enough {
            high /= 2.0;
        }
        let mut low = high / 2.0;
        // Not `bisect`: the profile may fail.
        while high > 1.1 * low {
            let middle = (low + high) / 2.0;
            if self.delta(middle)? <= enough {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(high)
    }

    /// The profile at the knots 0, spacing, …, half·spacing, as far down as monotonicity and symmetry allow.
    pub(super) fn curve(&mut self, spacing: f64, half: usize) -> Result<ProfileCurve> {
        self.learn_all((0..=half).map(|knot| knot as f64 * spacing))?;
        let mut deltas = Vec::with_capacity(half + 1);
        let mut least = 1.0_f64;
        for knot in 0..=half {
            least = least.min(self.delta(knot as f64 * spacing)?);
            deltas.push(least);
        }
        deltas[0] = bound_at_zero(&deltas, spacing);
        Ok(ProfileCurve::new(deltas, spacing))
    }

    /// Asks about all ε at once, except for those that are known.
    fn learn_all(&mut self, epsilons: impl Iterator<Item = f64>) -> Result<()> {
        let unknown: Vec<f64> = epsilons.filter(|epsilon| !self.known.contains_key(&epsilon.to_bits())).collect();
        for (epsilon, delta) in unknown.iter().zip(self.profile.deltas_upper(&unknown)) {
            self.learn(*epsilon, delta)?;
        }
        Ok(())
    }
}

/// δ(0) from above. The chord from −ε to ε bounds it, too: by symmetry it meets zero at (2δ(ε) + e^ε − 1)/(e^ε + 1).
fn bound_at_zero(deltas: &[f64], spacing: f64) -> f64 {
    let chord = |(knot, delta): (usize, &f64)| {
        let growth = (knot as f64 * spacing).exp_m1();
        up((2.0 * delta + growth) / (growth + 2.0), 4.0 * ELEMENTARY)
    };
    deltas.iter().enumerate().skip(1).map(chord).fold(deltas[0], f64::min)
}

/// A falling profile at the knots 0, spacing, …, and its greatest convex minorant. The true profile is convex and below every
/// dot, hence below the minorant.
pub(super) struct ProfileCurve {
    pub(super) spacing: f64,
    /// δ at each knot, from above.
    pub(super) deltas: Vec<f64>,
    /// The knots that the minorant goes through.
    pub(super) hull: Vec<usize>,
}

impl ProfileCurve {
    fn new(deltas: Vec<f64>, spacing: f64) -> Self {
        let mut curve = Self { spacing, deltas, hull: Vec::new() };
        for knot in 0..curve.deltas.len() {
            curve.extend_hull(knot);
        }
        curve
    }

    /// Adds a knot to the hull, and drops those that no longer belong to it.
    fn extend_hull(&mut self, knot: usize) {
        while let [.., before, last] = self.hull[..] {
            if self.slope(before, last) <= self.slope(last, knot) {
                break;
            }
            self.hull.pop();
        }
        self.hull.push(knot);
    }

    /// The ε of a knot.
    pub(super) fn epsilon(&self, knot: usize) -> f64 {
        knot as f64 * self.spacing
    }

    /// The slope, in e^ε, of the chord between two knots.
    fn slope(&self, left: usize, right: usize) -> f64 {
        let width = self.epsilon(left).exp() * self.epsilon(right - left).exp_m1();
        (self.deltas[right] - self.deltas[left]) / width
    }

    /// The slope of the minorant after zero.
    pub(super) fn first_slope(&self) -> f64 {
        self.slope(self.hull[0], self.hull[1])
    }

    /// By how much the slope of the minorant changes at each vertex after zero; after the last it is flat.
    pub(super) fn slope_changes(&self) -> Vec<(usize, f64)> {
        let slopes: Vec<f64> = self.hull.windows(2).map(|pair| self.slope(pair[0], pair[1])).collect();
        let after = slopes[1..].iter().chain(&[0.0]);
        let changes = slopes.iter().zip(after).map(|(before, after)| after - before);
        self.hull[1..].iter().copied().zip(changes).collect()
    }

    /// The number of knots after the first.
    pub(super) fn half(&self) -> usize {
        self.deltas.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms() {
        let pure = PureProfile::new(1.0).unwrap();
        assert!((pure.delta_upper(0.0) - 0.5_f64.tanh()).abs() < 1e-14);
        assert_eq!(pure.delta_upper(1.0), 0.0);
        assert!((LaplaceProfile::new(2.0).unwrap().delta_upper(0.0) - (1.0 - (-1.0_f64).exp())).abs() < 1e-14);
        let approximate = ApproximateProfile::new(1.0, 1e-3).unwrap();
        assert!((approximate.delta_upper(5.0) - 1e-3).abs() < 1e-15);
    }

    #[test]
    fn bad_parameters_are_refused() {
        assert!(PureProfile::new(-1.0).is_err());
        assert!(LaplaceProfile::new(f64::NAN).is_err());
        assert!(ApproximateProfile::new(1.0, 1.0).is_err());
    }
}
