//! The seam between accounting and composition: δ as a function of ε (`docs/composition.md`, "From a profile to a measure").

use super::{not_negative, open_probability};
use crate::Result;
use crate::certified::rounding::{ELEMENTARY, probability_up};

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
fn pure_delta(own: f64, epsilon: f64) -> f64 {
    if epsilon >= own {
        return 0.0;
    }
    // (e^own − e^epsilon)/(1 + e^own), divided by e^own so that nothing overflows.
    probability_up(-(epsilon - own).exp_m1() / (1.0 + (-own).exp()), 4.0 * ELEMENTARY)
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
