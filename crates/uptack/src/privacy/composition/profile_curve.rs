//! A profile as a falling curve on a grid, and its convex hull (`docs/composition.md`, "From a profile to a measure").

use std::collections::BTreeMap;

use super::Profile;
use crate::Error;
use crate::certified::rounding::{ELEMENTARY, up};

/// Losses beyond this are called infinite: e^(−128) is no longer a probability anybody states.
pub(super) const LARGEST_LOSS: f64 = 128.0;

/// Asks the profile, and never twice for the same ε.
pub(super) struct Reader<'a, P: Profile + ?Sized> {
    profile: &'a P,
    known: BTreeMap<u64, f64>,
}

impl<'a, P: Profile + ?Sized> Reader<'a, P> {
    pub(super) fn new(profile: &'a P) -> Self {
        Self { profile, known: BTreeMap::new() }
    }

    /// A δ that no ε gets below.
    pub(super) fn floor(&self) -> f64 {
        self.profile.floor()
    }

    fn delta(&mut self, epsilon: f64) -> Result<f64, Error> {
        if let Some(delta) = self.known.get(&epsilon.to_bits()) {
            return Ok(*delta);
        }
        let delta = self.profile.delta_upper(epsilon);
        self.learn(epsilon, delta)
    }

    fn learn(&mut self, epsilon: f64, delta: f64) -> Result<f64, Error> {
        if delta.is_nan() || delta < 0.0 {
            return Err(Error::request(format!(
                "the privacy profile says delta = {delta} at epsilon = {epsilon}, which is not a probability"
            )));
        }
        self.known.insert(epsilon.to_bits(), delta.min(1.0));
        Ok(delta.min(1.0))
    }

    /// An ε beyond which the profile is negligible or no longer falls, within a tenth.
    pub(super) fn largest_loss(&mut self, negligible: f64) -> Result<f64, Error> {
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

    /// The profile at the knots 0, spacing, …, half·spacing, as far down as monotony and symmetry allow.
    pub(super) fn curve(&mut self, spacing: f64, half: usize) -> Result<Vec<f64>, Error> {
        self.learn_all((0..=half).map(|knot| knot as f64 * spacing))?;
        let mut curve = Vec::with_capacity(half + 1);
        let mut least = 1.0_f64;
        for knot in 0..=half {
            least = least.min(self.delta(knot as f64 * spacing)?);
            curve.push(least);
        }
        curve[0] = bound_at_zero(&curve, spacing);
        Ok(curve)
    }

    /// Asks about all ε at once, except for those that are known.
    fn learn_all(&mut self, epsilons: impl Iterator<Item = f64>) -> Result<(), Error> {
        let unknown: Vec<f64> = epsilons.filter(|epsilon| !self.known.contains_key(&epsilon.to_bits())).collect();
        for (epsilon, delta) in unknown.iter().zip(self.profile.deltas_upper(&unknown)) {
            self.learn(*epsilon, delta)?;
        }
        Ok(())
    }
}

/// δ(0) from above. The chord from −ε to ε bounds it, too: by symmetry it meets zero at (2δ(ε) + e^ε − 1)/(e^ε + 1).
fn bound_at_zero(curve: &[f64], spacing: f64) -> f64 {
    let chord = |(knot, delta): (usize, &f64)| {
        let growth = (knot as f64 * spacing).exp_m1();
        up((2.0 * delta + growth) / (growth + 2.0), 4.0 * ELEMENTARY)
    };
    curve.iter().enumerate().skip(1).map(chord).fold(curve[0], f64::min)
}

/// The slope, in e^ε, of the chord between two knots.
pub(super) fn slope(curve: &[f64], left: usize, right: usize, spacing: f64) -> f64 {
    (curve[right] - curve[left]) / ((left as f64 * spacing).exp() * ((right - left) as f64 * spacing).exp_m1())
}

/// The knots of the greatest convex minorant. The true profile is convex and below every dot, hence below this.
pub(super) fn lower_hull(curve: &[f64], spacing: f64) -> Vec<usize> {
    let mut hull: Vec<usize> = Vec::new();
    for knot in 0..curve.len() {
        while let [.., before, last] = hull[..] {
            if slope(curve, before, last, spacing) <= slope(curve, last, knot, spacing) {
                break;
            }
            hull.pop();
        }
        hull.push(knot);
    }
    hull
}
