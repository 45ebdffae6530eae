//! Any number of classes, in a crowd of one truth or of both: bounds from above and from below (`docs/accounting.md`, "Any number
//! of classes").
//!
//! From above ("Labels"): given the histogram, the divergence is a conditional expectation, over which owners are *yes*, of a
//! mean over the owners of the commoner truth; so revealing the labels bounds it (Jensen). Adding terms whose conditional
//! expectation is zero makes that bound sharp to second order ([`Labelled`]). From below ("From below"): any test on a sum of
//! scores ([`ThresholdTest`]).

mod pair_law;
mod scores;

pub(crate) use pair_law::{PairLaw, pair_laws};
pub(crate) use scores::Fineness;

use scores::{
    DEEPEST_WINDOW, OnLattice, OrientedClass, OrientedCrowd, Precision, RealLaw, VERY_MANY, lattice_sum, law_on,
};

use crate::certified::rounding::ROUNDOFF;
use crate::certified::score_group::ScoreGroup;
use crate::certified::score_sum::{LONGEST, ScoreSum, SumSupport, TiltedLaw};
use crate::privacy::likelihood::{Crowd, DirectionBounds, Likelihood, PerTruth, WeightedClass};
use crate::privacy::work::WorkBudget;

/// The divergence of one direction in a crowd, from above.
pub(crate) fn upper(
    classes: &[WeightedClass],
    crowd: Crowd,
    log_cut: f64,
    fineness: Fineness,
    work: &WorkBudget,
) -> f64 {
    let (alone, crowd) = OrientedCrowd::split(classes, crowd);
    let precision = Precision { log_cut, fineness, work };
    let value = crowd.map_or(0.0, |crowd| upper_where_reached(&crowd, precision));
    ((alone + value) * (1.0 + 1e-12)).min(1.0)
}

/// The same for the classes that owners of the commoner truth reach.
fn upper_where_reached(crowd: &OrientedCrowd, precision: Precision<'_>) -> f64 {
    if crowd.rare > 0 {
        return Labelled::new(crowd).bound(precision);
    }
    let scores: Vec<f64> = crowd.classes.iter().map(|class| class.score + class.slack).collect();
    crowd.mean_of_positive_part(&scores, precision)
}

/// The same from below, by the best test on a sum of scores.
pub(crate) fn lower(classes: &[WeightedClass], crowd: Crowd, log_cut: f64, work: &WorkBudget) -> f64 {
    let (alone, crowd) = OrientedCrowd::split(classes, crowd);
    match crowd {
        // Owners of the rarer truth may hide what seems to show by itself.
        Some(crowd) if crowd.dropped => 0.0,
        Some(crowd) => alone * (1.0 - 1e-12) + best_test(&crowd, log_cut, work),
        None => alone * (1.0 - 1e-12),
    }
}

/// The divergence of one direction in every crowd of `owners` with the target, from above, by the privacy blanket: each owner
/// draws, whatever its truth, from the law in proportion to min(p, q) with probability γ = Σ min(p, q), and the adversary is told
/// who does not and what they drew (Balle, Bell, Gascón, Nissim, *The privacy blanket of the shuffle model*, 2019). Evaluated
/// exactly, as Su et al. (2025) do: with B ~ Bernoulli(γ) for each owner it is (1/n)·E[(Σ B·x)₊], x = weight/min(p, q).
pub(crate) fn blanket(
    classes: &[WeightedClass],
    owners: u64,
    log_cut: f64,
    fineness: Fineness,
    work: &WorkBudget,
) -> f64 {
    upper(&under_blanket(classes), PerTruth { yes: 0, no: owners - 1 }, log_cut, fineness, work)
}

/// The classes as owners draw them from the blanket, whatever their truth, and one for those who do not.
fn under_blanket(classes: &[WeightedClass]) -> Vec<WeightedClass> {
    let covered: f64 = classes.iter().map(|class| class.likelihood.in_common()).sum();
    let told = (1.0 - covered).max(0.0);
    let drawn = classes.iter().map(|class| {
        let likelihood = Likelihood::of_either(class.likelihood.in_common());
        WeightedClass { likelihood, ..*class }
    });
    drawn.chain((told > 0.0).then(|| Likelihood::of_either(told).without_target())).collect()
}

/// A bound on a coarse lattice, and on a finer one if it misses the goal by little; without a goal, on the finer one at once.
pub(super) fn refined(
    owners: u64,
    goal: f64,
    work: &WorkBudget,
    bound: impl Fn(Fineness) -> DirectionBounds,
) -> DirectionBounds {
    if goal <= 0.0 && owners <= VERY_MANY {
        return bound(Fineness::FINE);
    }
    let coarse = bound(Fineness::COARSE);
    let largest = coarse.largest();
    let misses_by_little = largest > goal && largest < 1.3 * goal && !work.exhausted();
    if !misses_by_little || owners > VERY_MANY {
        return coarse;
    }
    coarse.min(bound(Fineness::FINE))
}

/// The logarithm of the mass of B below the window that is left out; the inner expectation is tiny there.
const LOG_LEFT: f64 = -50.0;

/// The bound with labels revealed, by the mean B of the influences of the rarer truth's owners.
struct Labelled<'a> {
    crowd: &'a OrientedCrowd,
    /// x − a: the contribution of an owner of the commoner truth in each class if B is zero.
    plain: Vec<f64>,
    /// r: its growth with B.
    slopes: Vec<f64>,
    /// a/r: the contribution of an owner of the rarer truth to the mean in each class, with its probability.
    influences: RealLaw,
}

impl<'a> Labelled<'a> {
    fn new(crowd: &'a OrientedCrowd) -> Self {
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

    /// The contribution of an owner of the commoner truth in each class if B is `mean`: x − a + B·r.
    fn values(&self, mean: f64) -> Vec<f64> {
        self.plain.iter().zip(&self.slopes).map(|(plain, slope)| plain + slope * mean).collect()
    }

    /// The inner expectation, given B.
    fn given(&self, mean: f64, precision: Precision<'_>) -> f64 {
        self.crowd.mean_of_positive_part(&self.values(mean), precision)
    }

    /// E[(mean_no(x) + T)₊], the bound with labels revealed.
    fn bound(&self, precision: Precision<'_>) -> f64 {
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

    /// The law of B, tilted to where most of the bound comes from; `None` if it is too long.
    fn law_of_mean(&self, sum: &ScoreSum, spacing: f64, precision: Precision<'_>) -> Option<LawOfMean> {
        let tilt = self.joint_tilt(sum, spacing);
        let (left, right) = (sum.window(0.0, LOG_LEFT), sum.window(tilt, precision.log_cut.max(DEEPEST_WINDOW)));
        let window = SumSupport { low: left.low.min(right.low), ..right };
        let law = law_on(window, sum, tilt, precision.work)?;
        let step = ((sum.moments(tilt).1.sqrt() / precision.fineness.mean) as i64).max(1);
        let above = (law.log_scale - tilt * window.high as f64 + window.log_outside).exp();
        Some(LawOfMean { law, step, above })
    }

    /// The expectation of the inner expectation, which grows with B, over the law of B.
    fn expectation(
        &self,
        LawOfMean { law, step, above }: &LawOfMean,
        inner: impl Fn(i64) -> f64,
        work: &WorkBudget,
    ) -> f64 {
        let mut total = above * self.largest_value();
        let mut last = f64::INFINITY;
        for (index, mass) in coarse(law, *step).iter().enumerate().rev() {
            let value = inner(law.first + index as i64 * step).min(last);
            // The rest is at most this.
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

    /// The tilt of the rarer truth's scores that goes with that of the commoner truth's: where most of the expectation comes
    /// from.
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

/// No lattice of a test has many more cells than this: where very rare classes would need more, it is coarser, and the test a
/// little worse.
const MOST_CELLS: i64 = 1 << 15;

/// Thresholds further away than this are not looked for.
const FURTHEST_TURN: f64 = 1e15;

/// The divergence of one direction from below.
fn best_test(crowd: &OrientedCrowd, log_cut: f64, work: &WorkBudget) -> f64 {
    let evidence = Evidence::new(crowd);
    let spacing = evidence.deviation() / if crowd.others() > 100_000.0 { 8.0 } else { 24.0 };
    if spacing <= 0.0 || !spacing.is_finite() {
        return 0.0;
    }
    let (sum, spacing) = evidence.on_lattice(spacing, log_cut, if work.overdrawn() { 25.0 } else { 100.0 });
    let scores: Vec<i64> = sum.groups[0].atoms.iter().map(|(score, _)| *score).collect();
    let turn = evidence.turn / spacing;
    ThresholdTest { classes: &crowd.classes, scores: &scores, sum: &sum, turn }.best_threshold(log_cut, work)
}

/// The others' contributions to the evidence by their classes, relative to the likeliest class, and the point at which the
/// evidence is even.
struct Evidence {
    /// For the commoner and the rarer truth: the number of its owners, and the influences with their probabilities.
    groups: [(u64, RealLaw); 2],
    turn: f64,
}

impl Evidence {
    fn new(crowd: &OrientedCrowd) -> Self {
        let (influences, centre) = crowd.influences();
        let zero = crowd.law_of(&influences).likeliest();
        let values: Vec<f64> = influences.iter().map(|value| value - zero).collect();
        let groups = [(crowd.common, crowd.law_of(&values)), (crowd.rare, crowd.rare_law_of(&values))];
        let turn = if crowd.rare == 0 {
            -crowd.drawn() * zero
        } else {
            -centre * crowd.rare as f64 - (crowd.others() + 1.0) * zero
        };
        Self { groups, turn }
    }

    /// The standard deviation of the contribution of one owner of the commoner truth.
    fn deviation(&self) -> f64 {
        self.groups[0].1.deviation()
    }

    /// The sum over all others on a lattice of this spacing, or of a wider one where that would have too many cells: more than
    /// `most` times the square root of the others.
    fn on_lattice(&self, mut spacing: f64, log_cut: f64, most: f64) -> (ScoreSum, f64) {
        let others = (self.groups[0].0 + self.groups[1].0) as f64;
        let most = (MOST_CELLS as f64).max(most * others.sqrt()).min(LONGEST as f64 / 2.0);
        loop {
            let sum = self.rounded_sum(spacing);
            let window = sum.window(sum.tilt_for(self.turn / spacing), log_cut.max(DEEPEST_WINDOW));
            let excess = window.span() as f64 / most;
            if excess <= 1.0 {
                return (sum, spacing);
            }
            spacing *= 1.1 * excess;
        }
    }

    /// The sum over all others, each rounded to a multiple of a spacing.
    fn rounded_sum(&self, spacing: f64) -> ScoreSum {
        let rounded = |&(value, mass): &(f64, f64)| ((value / spacing).round() as i64, mass);
        let present = self.groups.iter().filter(|(owners, _)| *owners > 0);
        let draws =
            present.map(|(owners, law)| ScoreGroup { owners: *owners, atoms: law.0.iter().map(rounded).collect() });
        ScoreSum { groups: draws.collect() }
    }
}

/// Tests on the target's score plus the others' sum, which is even at `turn`.
struct ThresholdTest<'a> {
    classes: &'a [OrientedClass],
    /// The score of each class.
    scores: &'a [i64],
    sum: &'a ScoreSum,
    turn: f64,
}

impl ThresholdTest<'_> {
    /// The largest Σ w_c·P(s_c + S ≥ t) over all thresholds t near the turn, from below.
    fn best_threshold(&self, log_cut: f64, work: &WorkBudget) -> f64 {
        let Some((law, window)) = self.law_around_turn(log_cut, work) else { return 0.0 };
        let focus = self.turn.round() as i64;
        let around = (3.0 * self.sum.moments(law.tilt).1.sqrt()) as i64;
        let reach = self.largest_score();
        let tails = TailBounds::new(&law, window, window.low.max(focus - around - 2 * reach), focus);
        let last = (focus + around + reach).min(window.high);
        let first = (tails.from + reach).min(last);
        let best = (first..=last).map(|threshold| self.value(&tails, threshold)).fold(0.0, f64::max);
        with_factor(best, &law, focus)
    }

    /// The size of the largest score.
    fn largest_score(&self) -> i64 {
        self.scores.iter().map(|score| score.abs()).max().unwrap_or(0)
    }

    /// The law of the others' sum with its mean tilted to the turn, and its window. `None` if it is too long, or where nothing
    /// turns the evidence: then no threshold is better than none.
    fn law_around_turn(&self, log_cut: f64, work: &WorkBudget) -> Option<(TiltedLaw, SumSupport)> {
        if self.turn.is_nan() || self.turn.abs() > FURTHEST_TURN {
            return None;
        }
        let tilt = self.sum.tilt_for(self.turn);
        let window = self.sum.window(tilt, log_cut.max(DEEPEST_WINDOW));
        Some((law_on(window, self.sum, tilt, work)?, window))
    }

    /// Σ w_c·P(s_c + S ≥ threshold) from below, but for the factor of the tails.
    fn value(&self, tails: &TailBounds, threshold: i64) -> f64 {
        let part = |(class, score): (&OrientedClass, &i64)| {
            tails.weighted(class.weight.value() - class.weight.value_error(), threshold - score)
        };
        self.classes.iter().zip(self.scores).map(part).sum()
    }
}

/// A value that was computed from tails times their factor e^(log_scale − tilt·focus), from below.
fn with_factor(value: f64, law: &TiltedLaw, focus: i64) -> f64 {
    let factor = (law.log_scale - law.tilt * focus as f64).exp();
    let lower = value * factor * (1.0 - 2.0 * law.relative_error - 1e-11).max(0.0);
    // If the factor overflows, the tails underflow, and nothing is known of them.
    if lower.is_finite() { lower } else { 0.0 }
}

/// The tails P(sum ≥ j) for j from `from` on, but for the factor e^(log_scale − tilt·focus): each from below and from above.
struct TailBounds {
    from: i64,
    bounds: Vec<(f64, f64)>,
    rounding: f64,
}

impl TailBounds {
    fn new(law: &TiltedLaw, window: SumSupport, from: i64, focus: i64) -> Self {
        let factor = |j: i64| (-law.tilt * (j - focus) as f64).exp();
        let size = (window.high - from + 2).max(1) as usize;
        let beyond = window.log_outside.exp() * factor(window.high);
        let mut bounds = vec![(0.0, beyond); size];
        for index in (0..size - 1).rev() {
            let j = from + index as i64;
            let value = law.values[(j - law.first) as usize];
            let (below, above) = bounds[index + 1];
            bounds[index] = (below + law.lower_bound(value) * factor(j), above + law.upper_bound(value) * factor(j));
        }
        let rounding = 4.0 * ROUNDOFF * (size as f64 + 64.0 + law.tilt * size as f64);
        Self { from, bounds, rounding }
    }

    /// A weight times the tail at `j`, from below.
    fn weighted(&self, weight: f64, j: i64) -> f64 {
        let place = (j - self.from).clamp(0, self.bounds.len() as i64 - 1) as usize;
        if weight > 0.0 {
            weight * self.bounds[place].0 * (1.0 - self.rounding)
        } else {
            weight * self.bounds[place].1 * (1.0 + self.rounding)
        }
    }
}
