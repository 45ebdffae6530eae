//! Planned contributions: one choice among all stations, and up to k windows of a day.

use uptack::contribution::Contributions;

use uptack::privacy::Delta;
use uptack::privacy::contributions::OwnersAlone;

use crate::error::Result;
use crate::planned::{Crowd, ReleaseTarget};

/// Everything that a release publishes together, and what it may give away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoisyTarget {
    /// The ε of everything together if one aggregator is honest.
    pub epsilon: f64,
    /// The ε of all that an owner writes; none if owners tell the truth.
    pub linked: Option<f64>,
}

/// One of `options` options, with noise.
pub(crate) fn choice(options: u64, target: NoisyTarget) -> Result<Contributions> {
    let k = options as f64;
    let other = target.linked.map_or(0.0, |linked| 1.0 / (linked.exp() + k - 1.0));
    let told = 1.0 - (k - 1.0) * other;
    let growth = target.epsilon.exp();
    let decay = ((told - growth * other) / (growth * (told + (k - 2.0) * other) - (k - 1.0) * other)).sqrt();
    written(&format!("choice(k={options},r={})", rounded_up(other)), -1.0 / decay.ln())
}

/// Up to `most` of `counts` counts, with noise.
pub(crate) fn counts(counts: u64, most: u64, target: NoisyTarget) -> Result<Contributions> {
    let (c, k) = (counts as f64, most as f64);
    let other = target.linked.map_or(0.0, |linked| 1.0 / ((linked / k).exp() + c));
    let epsilon = |scale: f64| k * one_contribution(c, other, scale);
    let (mut low, mut high) = (0.01, 1e9);
    while high - low > 1e-12 * high {
        let middle = 0.5 * (low + high);
        if epsilon(middle) <= target.epsilon { high = middle } else { low = middle }
    }
    written(&format!("contributions(counts={counts},most={most},r={})", rounded_up(other)), high)
}

fn one_contribution(c: f64, r: f64, scale: f64) -> f64 {
    let (a, g) = ((-1.0 / scale).exp(), 1.0 - c * r);
    let moved = ((g / a + r * (c - 1.0) * a + r) / (r / a + (g + (c - 2.0) * r) * a + r)).ln();
    let left = ((g / a + (c - 1.0) * r * a + r) / (r / a + (c - 1.0) * r * a + g)).ln();
    let joined = ((g + c * r * a) / (r + (g + (c - 1.0) * r) * a)).ln();
    moved.max(left).max(joined)
}

fn rounded_up(value: f64) -> f64 {
    (value * 1e15).ceil() / 1e15
}

fn written(local: &str, scale: f64) -> Result<Contributions> {
    Ok(format!("{local} + laplace(scale={})", (scale * 1e9).ceil() / 1e9).parse()?)
}

/// Temporary: everybody takes part, with the fewest wrong answers that the certificate allows.
pub(crate) fn choice_by_owners(crowd: Crowd, options: u64, wanted: ReleaseTarget) -> Result<Contributions> {
    let asked = |other: f64| -> Result<Contributions> { Ok(format!("choice(k={options},r={other:.15})").parse()?) };
    let delta = Delta::new(wanted.delta)?;
    let keeps = |other: f64| -> Result<bool> {
        let claim = OwnersAlone::new(&asked(other)?, crowd.owners)?.epsilon(delta);
        Ok(claim.value().is_some_and(|value| value.upper() <= wanted.epsilon))
    };
    let (mut low, mut high) = (1.0 / crowd.owners as f64, (100.0 / crowd.owners as f64).min(0.99 / options as f64));
    while high / low > 1.0005 {
        let middle = (low * high).sqrt();
        if keeps(middle)? { high = middle } else { low = middle }
    }
    asked(high)
}
