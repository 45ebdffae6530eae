//! A crowd of both truths whose labels are told, from above (`docs/accounting.md`, "Labels").

use super::lattice::{Fineness, OnLattice, RealLaw, lattice_sum};
use super::oriented::{OrientedClass, OrientedCrowd};
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
        let plain = |(class, influence): (&OrientedClass, &f64)| plain_part(class, *influence, largest);
        Self {
            crowd,
            plain: crowd.classes.iter().zip(&influences).map(plain).collect(),
            slopes: crowd.classes.iter().map(|class| class.ratio() * (1.0 + 8.0 * ROUNDOFF)).collect(),
            influences: influences.iter().copied().zip(crowd.classes.iter().map(|class| class.rare)).collect(),
        }
    }

    /// What an owner of the commoner truth adds in each class if B is `mean`: x − a + B·r.
    fn values(&self, mean: f64) -> Vec<f64> {
        self.plain.iter().zip(&self.slopes).map(|(plain, slope)| plain + slope * mean).collect()
    }

    /// The inner expectation, given B.
    fn given(&self, mean: f64, log_cut: f64, fineness: Fineness, work: &Work) -> f64 {
        self.crowd.mean_of_positive_part(&self.values(mean), log_cut, fineness, work)
    }

    /// E[(mean_no(x) + T)₊], the bound by labels that are told.
    pub(super) fn bound(&self, log_cut: f64, fineness: Fineness, work: &Work) -> f64 {
        let deviation = RealLaw(&self.influences).deviation();
        if deviation <= 0.0 || !deviation.is_finite() {
            return self.given(0.0, log_cut, fineness, work);
        }
        let OnLattice { sum, spacing, .. } =
            lattice_sum(&self.influences, self.crowd.rare, deviation / fineness.scores, fineness, LOG_LEFT);
        let Some(mean) = self.law_of_mean(&sum, spacing, log_cut, fineness, work) else { return 1.0 };
        let inner = |j: i64| self.given(j as f64 * spacing / self.crowd.rare as f64, log_cut, fineness, work);
        self.expectation(&mean, inner, work) * (1.0 + 1e-9 + 2.0 * mean.law.relative_error)
    }

    /// The law of B, tilted to where most of the bound comes from; none where it is too long.
    fn law_of_mean(
        &self,
        sum: &ScoreSum,
        spacing: f64,
        log_cut: f64,
        fineness: Fineness,
        work: &Work,
    ) -> Option<LawOfMean> {
        let tilt = self.joint_tilt(sum, spacing);
        let (left, right) = (sum.window(0.0, LOG_LEFT), sum.window(tilt, log_cut.max(-60.0)));
        let window = Window { low: left.low.min(right.low), ..right };
        if window.span() > LONGEST / 2 {
            return None;
        }
        work.spend(20 * window.span() as u64);
        let law = sum.law(tilt, window);
        let step = ((sum.moments(tilt).1.sqrt() / fineness.mean) as i64).max(1);
        let above = (law.log_scale - tilt * window.high as f64 + window.log_outside).exp();
        Some(LawOfMean { law, step, above })
    }

    /// The expectation of the inner expectation, which grows with B, over the law of B.
    fn expectation(&self, LawOfMean { law, step, above }: &LawOfMean, inner: impl Fn(i64) -> f64, work: &Work) -> f64 {
        let top = self.influences.iter().map(|(value, _)| *value).fold(f64::NEG_INFINITY, f64::max);
        let most = self.values(top).into_iter().fold(0.0, f64::max);
        let mut total = above * most;
        let mut last = f64::INFINITY;
        for (index, mass) in coarse(law, *step).iter().enumerate().rev() {
            let value = inner(law.first + index as i64 * step).min(last);
            // What is left is at most this.
            if value <= 1e-5 * total || work.overdrawn() {
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
            let law = self.crowd.law_of(&self.values(mean));
            let real = RealLaw(&law);
            let own = real.tilt_for_zero();
            let slope = real.tilted_mean(own, &self.slopes);
            let wanted = own * self.crowd.drawn() * slope * spacing / rare;
            tilt = 0.5 * (tilt + wanted);
        }
        if tilt.is_finite() { tilt.clamp(0.0, 50.0) } else { 0.0 }
    }
}

/// The law of B on a lattice, of which every `step`-th cell is used, and the mass above its window.
struct LawOfMean {
    law: TiltedLaw,
    step: i64,
    above: f64,
}

/// x − a in one class, from above, where the largest influence is `largest` in size.
fn plain_part(class: &OrientedClass, influence: f64, largest: f64) -> f64 {
    let given_back = class.ratio() * influence;
    let rounding = 64.0 * ROUNDOFF * (class.score.abs() + given_back.abs() + class.ratio() * largest);
    class.score - given_back + class.slack + rounding
}

/// The law on every `step`-th cell from the first, from above: a mass between two is split so that its mean stays, which only
/// raises expectations of convex functions.
fn coarse(law: &TiltedLaw, step: i64) -> Vec<f64> {
    let count = (law.values.len() as i64 - 1).div_euclid(step) + 2;
    let mut masses = vec![0.0; count as usize];
    for (index, value) in law.values.iter().enumerate() {
        let j = law.first + index as i64;
        let mass = law.upper_bound(*value) * (law.log_scale - law.tilt * j as f64).exp() * (1.0 + 1e-12);
        let (below, part) = (index as i64 / step, (index as i64 % step) as f64 / step as f64);
        masses[below as usize] += mass * (1.0 - part);
        masses[below as usize + 1] += mass * part;
    }
    masses
}
