//! A crowd of both truths whose labels are revealed, from above (`docs/accounting.md`, "Labels").

use super::lattice::{DEEPEST_WINDOW, OnLattice, Precision, RealLaw, lattice_sum, law_on};
use super::oriented::{OrientedClass, OrientedCrowd};
use crate::certified::rounding::ROUNDOFF;
use crate::certified::score_sum::{ScoreSum, TiltedLaw, Window};
use crate::privacy::effort::Work;

/// The logarithm of the mass of B below the window that is left out; the inner expectation is tiny there.
const LOG_LEFT: f64 = -50.0;

/// The bound with labels revealed, by the mean B of the influences of the rarer truth's owners.
pub(super) struct Labelled<'a> {
    crowd: &'a OrientedCrowd,
    /// x − a: what an owner of the commoner truth adds in each class if B is zero.
    plain: Vec<f64>,
    /// r: what it adds for each unit of B.
    slopes: Vec<f64>,
    /// a/r: what an owner of the rarer truth adds to the mean in each class, with its probability.
    influences: RealLaw,
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
            influences: crowd.rare_law_of(&influences),
        }
    }

    /// What an owner of the commoner truth adds in each class if B is `mean`: x − a + B·r.
    fn values(&self, mean: f64) -> Vec<f64> {
        self.plain.iter().zip(&self.slopes).map(|(plain, slope)| plain + slope * mean).collect()
    }

    /// The inner expectation, given B.
    fn given(&self, mean: f64, precision: Precision<'_>) -> f64 {
        self.crowd.mean_of_positive_part(&self.values(mean), precision)
    }

    /// E[(mean_no(x) + T)₊], the bound with labels revealed.
    pub(super) fn bound(&self, precision: Precision<'_>) -> f64 {
        let deviation = self.influences.deviation();
        if deviation <= 0.0 || !deviation.is_finite() {
            return self.given(0.0, precision);
        }
        let (rare, fineness) = (self.crowd.rare, precision.fineness);
        let OnLattice { sum, spacing, .. } =
            lattice_sum(&self.influences, rare, deviation / fineness.scores, fineness, LOG_LEFT);
        let Some(mean) = self.law_of_mean(&sum, spacing, precision) else { return 1.0 };
        let inner = |j: i64| self.given(j as f64 * spacing / rare as f64, precision);
        self.expectation(&mean, inner, precision.work) * (1.0 + 1e-9 + 2.0 * mean.law.relative_error)
    }

    /// The law of B, tilted to where most of the bound comes from; none where it is too long.
    fn law_of_mean(&self, sum: &ScoreSum, spacing: f64, precision: Precision<'_>) -> Option<LawOfMean> {
        let tilt = self.joint_tilt(sum, spacing);
        let (left, right) = (sum.window(0.0, LOG_LEFT), sum.window(tilt, precision.log_cut.max(DEEPEST_WINDOW)));
        let window = Window { low: left.low.min(right.low), ..right };
        let law = law_on(window, sum, tilt, precision.work)?;
        let step = ((sum.moments(tilt).1.sqrt() / precision.fineness.mean) as i64).max(1);
        let above = (law.log_scale - tilt * window.high as f64 + window.log_outside).exp();
        Some(LawOfMean { law, step, above })
    }

    /// The expectation of the inner expectation, which grows with B, over the law of B.
    fn expectation(&self, LawOfMean { law, step, above }: &LawOfMean, inner: impl Fn(i64) -> f64, work: &Work) -> f64 {
        let mut total = above * self.largest_value();
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

    /// The most that an owner of the commoner truth adds in any class, whatever B is; at least zero.
    fn largest_value(&self) -> f64 {
        self.values(self.influences.largest()).into_iter().fold(0.0, f64::max)
    }

    /// The tilt of the rarer truth's scores that goes with that of the commoner truth's: where most of the expectation comes from.
    fn joint_tilt(&self, sum: &ScoreSum, spacing: f64) -> f64 {
        let rare = self.crowd.rare as f64;
        let mut tilt = 0.0;
        for _ in 0..6 {
            let mean = sum.moments(tilt).0 * spacing / rare;
            let wanted = self.tilt_of_mean(mean) * spacing / rare;
            tilt = 0.5 * (tilt + wanted);
        }
        if tilt.is_finite() { tilt.clamp(0.0, 50.0) } else { 0.0 }
    }

    /// By how much the logarithm of the inner expectation grows with B, about: the tilt of the commoner truth's values at which
    /// they sum to zero, times what a unit of B adds to the sum there.
    fn tilt_of_mean(&self, mean: f64) -> f64 {
        let law = self.crowd.law_of(&self.values(mean));
        let tilt = law.tilt_for_zero();
        tilt * self.crowd.drawn() * law.tilted_mean(tilt, &self.slopes)
    }
}

/// The law of B on every `step`-th cell of a lattice, and the mass above its window.
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
    for (index, mass) in (0..).zip(masses_from_above(law)) {
        let (below, part) = (index / step, (index % step) as f64 / step as f64);
        masses[below as usize] += mass * (1.0 - part);
        masses[below as usize + 1] += mass * part;
    }
    masses
}

/// The masses of a law without its tilt, from above.
fn masses_from_above(law: &TiltedLaw) -> impl Iterator<Item = f64> {
    let untilt = move |j: i64| (law.log_scale - law.tilt * j as f64).exp();
    (law.first..).zip(&law.values).map(move |(j, value)| law.upper_bound(*value) * untilt(j) * (1.0 + 1e-12))
}
