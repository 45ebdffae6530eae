//! A crowd of both truths whose labels are told, from above (`docs/accounting.md`, "Labels").

use super::lattice::{Fineness, RealLaw, lattice_sum};
use super::oriented::OrientedCrowd;
use crate::certified::rounding::ROUNDOFF;
use crate::certified::score_sum::{LONGEST, ScoreSum, TiltedLaw, Window};
use crate::privacy::effort::Work;

/// The logarithm of the mass of B below the window that is left out; the inner expectation is tiny there.
const LOG_LEFT: f64 = -50.0;

/// The bound with labels told, by the mean B of the influences of the rarer truth's owners.
pub(super) struct Labelled<'a> {
    crowd: &'a OrientedCrowd,
    /// x − a: what an owner of the commoner truth adds in each class if B is zero.
    plain: Vec<f64>,
    /// r: what it adds for each unit of B.
    slopes: Vec<f64>,
    /// a/r: what an owner of the rarer truth adds to the mean in each class, with its probability.
    influences: Vec<(f64, f64)>,
}

impl<'a> Labelled<'a> {
    pub(super) fn new(crowd: &'a OrientedCrowd) -> Self {
        let (influences, _) = crowd.influences();
        let largest = influences.iter().map(|value| value.abs()).fold(0.0, f64::max);
        let plain = crowd.classes.iter().zip(&influences).map(|(class, influence)| {
            let given_back = class.ratio() * influence;
            let rounding = 64.0 * ROUNDOFF * (class.score.abs() + given_back.abs() + class.ratio() * largest);
            class.score - given_back + class.slack + rounding
        });
        Self {
            crowd,
            plain: plain.collect(),
            slopes: crowd.classes.iter().map(|class| class.ratio() * (1.0 + 8.0 * ROUNDOFF)).collect(),
            influences: influences.iter().copied().zip(crowd.classes.iter().map(|class| class.rare)).collect(),
        }
    }

    fn values(&self, mean: f64) -> Vec<f64> {
        self.plain.iter().zip(&self.slopes).map(|(plain, slope)| plain + slope * mean).collect()
    }

    fn given(&self, mean: f64, log_cut: f64, fineness: Fineness, work: &Work) -> f64 {
        self.crowd.mean_of_positive_part(&self.values(mean), log_cut, fineness, work)
    }

    pub(super) fn bound(&self, log_cut: f64, fineness: Fineness, work: &Work) -> f64 {
        let deviation = RealLaw(&self.influences).moments(0.0).1.sqrt();
        if deviation <= 0.0 || !deviation.is_finite() {
            return self.given(0.0, log_cut, fineness, work);
        }
        let (sum, spacing) =
            lattice_sum(&self.influences, self.crowd.rare, deviation / fineness.scores, fineness, LOG_LEFT);
        let tilt = self.joint_tilt(&sum, spacing);
        let (left, right) = (sum.window(0.0, LOG_LEFT), sum.window(tilt, log_cut.max(-60.0)));
        let window = Window { low: left.low.min(right.low), ..right };
        if window.high - window.low > LONGEST / 2 {
            return 1.0;
        }
        work.spend(20 * (window.high - window.low) as u64);
        let law = sum.law(tilt, window);
        let step = ((sum.moments(tilt).1.sqrt() / fineness.mean) as i64).max(1);
        let above = (law.log_scale - tilt * window.high as f64 + window.log_outside).exp();
        let inner = |j: i64| {
            let mean = j as f64 * spacing / self.crowd.rare as f64;
            self.given(mean, log_cut, fineness, work)
        };
        self.expectation(&law, step, above, inner) * (1.0 + 1e-9 + 2.0 * law.relative_error)
    }

    /// The expectation of the inner expectation, which grows with B, over the law of B on every `step`-th cell, where mass `above`
    /// lies above the law's window.
    fn expectation(&self, law: &TiltedLaw, step: i64, above: f64, inner: impl Fn(i64) -> f64) -> f64 {
        let top = self.influences.iter().map(|(value, _)| *value).fold(f64::NEG_INFINITY, f64::max);
        let most = self.values(top).into_iter().fold(0.0, f64::max);
        let mut total = above * most;
        let mut last = f64::INFINITY;
        for (index, mass) in coarse(law, step).iter().enumerate().rev() {
            let value = inner(law.first + index as i64 * step).min(last);
            // What is left is at most this.
            if value <= 1e-5 * total {
                return total + value;
            }
            total += mass * value;
            last = value;
        }
        total + LOG_LEFT.exp() * last.min(1.0)
    }

    /// The tilt of the rarer truth's scores that goes with that of the commoner truth's: where most of the expectation comes from.
    fn joint_tilt(&self, sum: &ScoreSum, spacing: f64) -> f64 {
        let rare = self.crowd.rare as f64;
        let mut tilt = 0.0;
        for _ in 0..6 {
            let mean = sum.moments(tilt).0 * spacing / rare;
            let values = self.values(mean);
            let law: Vec<(f64, f64)> =
                values.iter().copied().zip(self.crowd.classes.iter().map(|class| class.common)).collect();
            let real = RealLaw(&law);
            let own = real.tilt_for_zero();
            let normalizer = real.log_normalizer(own);
            let slope: f64 = law
                .iter()
                .zip(&self.slopes)
                .map(|((value, mass), slope)| mass * (own * value - normalizer).exp() * slope)
                .sum();
            let wanted = own * self.crowd.drawn() * slope * spacing / rare;
            tilt = 0.5 * (tilt + wanted);
        }
        if tilt.is_finite() { tilt.clamp(0.0, 50.0) } else { 0.0 }
    }
}

/// The law on every `step`-th cell from the first, from above: a mass between two is split so that its mean stays, which only
/// raises expectations of convex functions.
fn coarse(law: &TiltedLaw, step: i64) -> Vec<f64> {
    let count = (law.values.len() as i64 - 1).div_euclid(step) + 2;
    let mut masses = vec![0.0; count as usize];
    for (index, value) in law.values.iter().enumerate() {
        let j = law.first + index as i64;
        let mass = (value.max(0.0) + law.error) * (law.log_scale - law.tilt * j as f64).exp() * (1.0 + 1e-12);
        let (below, part) = (index as i64 / step, (index as i64 % step) as f64 / step as f64);
        masses[below as usize] += mass * (1.0 - part);
        masses[below as usize + 1] += mass * part;
    }
    masses
}
