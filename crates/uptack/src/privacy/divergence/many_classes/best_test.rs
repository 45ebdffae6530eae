//! The best test on a sum of scores, as a bound from below (`docs/accounting.md`, "From below").

use super::lattice::RealLaw;
use super::oriented::{OrientedClass, OrientedCrowd};
use crate::certified::rounding::ROUNDOFF;
use crate::certified::score_sum::{Draws, LONGEST, ScoreSum, TiltedLaw, Window};
use crate::privacy::effort::Work;

/// No lattice of a test has many more cells than this: where very rare classes would need more, it is coarser, and the test a
/// little worse.
const MOST_CELLS: i64 = 1 << 15;

/// Thresholds further away than this are not looked for.
const FURTHEST_TURN: f64 = 1e15;

/// The divergence of one direction from below.
pub(super) fn lower(crowd: &OrientedCrowd, log_cut: f64, work: &Work) -> f64 {
    let (influences, centre) = crowd.influences();
    let reference = (0..crowd.classes.len()).max_by(|a, b| {
        let mass = |index: &usize| crowd.classes[*index].common;
        mass(a).total_cmp(&mass(b))
    });
    let zero = influences[reference.unwrap_or(0)];
    let law = |of: fn(&OrientedClass) -> f64| -> Vec<(f64, f64)> {
        influences.iter().zip(&crowd.classes).map(|(value, class)| (*value - zero, of(class))).collect()
    };
    let (common, rare) = (law(|class| class.common), law(|class| class.rare));
    let owners = (crowd.common + crowd.rare) as f64;
    // Where the evidence is even.
    let turn =
        if crowd.rare == 0 { -crowd.drawn() * zero } else { -centre * crowd.rare as f64 - (owners + 1.0) * zero };
    let deviation = (RealLaw(&common).moments(0.0).1).sqrt();
    let mut spacing = deviation / if owners > 100_000.0 { 8.0 } else { 24.0 };
    if spacing <= 0.0 || !spacing.is_finite() {
        return 0.0;
    }
    let most = (MOST_CELLS as f64).max(100.0 * owners.sqrt());
    let sum = loop {
        let sum = rounded_sum([(crowd.common, &common), (crowd.rare, &rare)], spacing);
        let window = sum.window(sum.tilt_for(turn / spacing), log_cut.max(-60.0));
        let excess = (window.high - window.low) as f64 / most;
        if excess <= 1.0 {
            break sum;
        }
        spacing *= 1.1 * excess;
    };
    let scores: Vec<i64> = sum.groups[0].atoms.iter().map(|(score, _)| *score).collect();
    best_threshold(&sum, &scores, &crowd.classes, turn / spacing, log_cut, work)
}

/// The sum of the scores of both groups of owners, rounded to multiples of a spacing.
fn rounded_sum(groups: [(u64, &[(f64, f64)]); 2], spacing: f64) -> ScoreSum {
    let rounded = |&(value, mass): &(f64, f64)| ((value / spacing).round() as i64, mass);
    let present = groups.into_iter().filter(|(owners, _)| *owners > 0);
    let draws = present.map(|(owners, law)| Draws { owners, atoms: law.iter().map(rounded).collect() });
    ScoreSum { groups: draws.collect() }
}

/// The largest Σ weight·P(score + sum ≥ threshold) over all thresholds near `turn`, from below.
fn best_threshold(
    sum: &ScoreSum,
    scores: &[i64],
    classes: &[OrientedClass],
    turn: f64,
    log_cut: f64,
    work: &Work,
) -> f64 {
    // Where nothing turns the evidence, no threshold is better than none.
    if turn.is_nan() || turn.abs() > FURTHEST_TURN {
        return 0.0;
    }
    let tilt = sum.tilt_for(turn);
    let window = sum.window(tilt, log_cut.max(-60.0));
    if window.high - window.low > LONGEST / 2 {
        return 0.0;
    }
    work.spend(20 * (window.high - window.low) as u64);
    let law = sum.law(tilt, window);
    let focus = turn.round() as i64;
    let deviation = sum.moments(tilt).1.sqrt();
    let reach = scores.iter().map(|score| score.abs()).max().unwrap_or(0);
    let from = window.low.max(focus - (3.0 * deviation) as i64 - 2 * reach);
    let tails = Tails::new(&law, window, from, focus);
    let test = |threshold: i64| -> f64 {
        let part = |(class, score): (&OrientedClass, &i64)| {
            tails.weighted(class.weight.value() - class.weight.value_error(), threshold - score)
        };
        classes.iter().zip(scores).map(part).sum()
    };
    let last = (focus + (3.0 * deviation) as i64 + reach).min(window.high);
    let first = (from + reach).min(last);
    let best = (first..=last).map(test).fold(0.0, f64::max);
    let scale = (law.log_scale - tilt * focus as f64).exp();
    let value = best * scale * (1.0 - 2.0 * law.relative_error - 1e-11).max(0.0);
    // A scale beyond all numbers goes with tails below all numbers, of which nothing is known.
    if value.is_finite() { value } else { 0.0 }
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
            let (low, high) = ((value - law.error - law.folded).max(0.0), value.max(0.0) + law.error);
            bounds[index] = (bounds[index + 1].0 + low * factor(j), bounds[index + 1].1 + high * factor(j));
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
