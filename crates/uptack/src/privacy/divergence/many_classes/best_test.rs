//! The best test on a sum of scores, as a bound from below (`docs/accounting.md`, "From below").

use super::lattice::{DEEPEST_WINDOW, RealLaw, law_on};
use super::oriented::{OrientedClass, OrientedCrowd};
use crate::certified::draws::Draws;
use crate::certified::rounding::ROUNDOFF;
use crate::certified::score_sum::{ScoreSum, TiltedLaw, Window};
use crate::privacy::effort::Work;

/// No lattice of a test has many more cells than this: where very rare classes would need more, it is coarser, and the test a
/// little worse.
const MOST_CELLS: i64 = 1 << 15;

/// Thresholds further away than this are not looked for.
const FURTHEST_TURN: f64 = 1e15;

/// The divergence of one direction from below.
pub(super) fn lower(crowd: &OrientedCrowd, log_cut: f64, work: &Work) -> f64 {
    let evidence = Evidence::new(crowd);
    let spacing = evidence.deviation() / if crowd.others() > 100_000.0 { 8.0 } else { 24.0 };
    if spacing <= 0.0 || !spacing.is_finite() {
        return 0.0;
    }
    let (sum, spacing) = evidence.on_lattice(spacing, log_cut);
    let scores: Vec<i64> = sum.groups[0].atoms.iter().map(|(score, _)| *score).collect();
    let turn = evidence.turn / spacing;
    Test { classes: &crowd.classes, scores: &scores, sum: &sum, turn }.best_threshold(log_cut, work)
}

/// What the others add to the evidence by their classes, counted from the likeliest class, and where it is even.
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

    /// The standard deviation of what one owner of the commoner truth adds.
    fn deviation(&self) -> f64 {
        self.groups[0].1.deviation()
    }

    /// The sum over all others on a lattice of this spacing, or of a wider one where that would have too many cells.
    fn on_lattice(&self, mut spacing: f64, log_cut: f64) -> (ScoreSum, f64) {
        let others = (self.groups[0].0 + self.groups[1].0) as f64;
        let most = (MOST_CELLS as f64).max(100.0 * others.sqrt());
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
        let draws = present.map(|(owners, law)| Draws { owners: *owners, atoms: law.0.iter().map(rounded).collect() });
        ScoreSum { groups: draws.collect() }
    }
}

/// Tests on the target's score plus the others' sum, which is even at `turn`.
struct Test<'a> {
    classes: &'a [OrientedClass],
    /// The score of each class.
    scores: &'a [i64],
    sum: &'a ScoreSum,
    turn: f64,
}

impl Test<'_> {
    /// The largest Σ w_c·P(s_c + S ≥ t) over all thresholds t near the turn, from below.
    fn best_threshold(&self, log_cut: f64, work: &Work) -> f64 {
        let Some((law, window)) = self.law_around_turn(log_cut, work) else { return 0.0 };
        let focus = self.turn.round() as i64;
        let around = (3.0 * self.sum.moments(law.tilt).1.sqrt()) as i64;
        let reach = self.largest_score();
        let tails = Tails::new(&law, window, window.low.max(focus - around - 2 * reach), focus);
        let last = (focus + around + reach).min(window.high);
        let first = (tails.from + reach).min(last);
        let best = (first..=last).map(|threshold| self.value(&tails, threshold)).fold(0.0, f64::max);
        with_factor(best, &law, focus)
    }

    /// The size of the largest score.
    fn largest_score(&self) -> i64 {
        self.scores.iter().map(|score| score.abs()).max().unwrap_or(0)
    }

    /// The law of the others' sum with its mean tilted to the turn, and its window. None where it is too long, or where nothing turns
    /// the evidence: then no threshold is better than none.
    fn law_around_turn(&self, log_cut: f64, work: &Work) -> Option<(TiltedLaw, Window)> {
        if self.turn.is_nan() || self.turn.abs() > FURTHEST_TURN {
            return None;
        }
        let tilt = self.sum.tilt_for(self.turn);
        let window = self.sum.window(tilt, log_cut.max(DEEPEST_WINDOW));
        Some((law_on(window, self.sum, tilt, work)?, window))
    }

    /// Σ w_c·P(s_c + S ≥ threshold) from below, but for the factor of the tails.
    fn value(&self, tails: &Tails, threshold: i64) -> f64 {
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
struct Tails {
    from: i64,
    bounds: Vec<(f64, f64)>,
    rounding: f64,
}

impl Tails {
    fn new(law: &TiltedLaw, window: Window, from: i64, focus: i64) -> Self {
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
