//! The law of a sum of two binomials, in time proportional to its width (`docs/accounting.md`, "Two classes").
//!
//! The probabilities g satisfy γ(k)·g(k+1) = α(k)·g(k) + β(k)·g(k−1). Below the point where α changes sign all parts are
//! positive, so that relative errors only add up; above that point the same holds for the law read backwards. Far from the
//! bottom the recurrence needs a first ratio of neighbours: any guess will do some steps earlier, because an error in the
//! ratio is damped at every step.

use super::binomial::{Binomial, Coin};
use super::rounding::ROUNDOFF;

/// Probabilities of the counts `first`, `first + 1`, ….
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) first: u64,
    pub(crate) probability: Vec<f64>,
    /// Relative error of each probability.
    pub(crate) relative_error: f64,
    /// Relative error of the ratio of two neighbours, which is much smaller.
    pub(crate) ratio_error: f64,
    /// Recurrence steps taken, as a measure of work.
    pub(crate) steps: u64,
}

/// The law of `left + right` on the counts `low..=high`, normalized to one there: the mass outside must be negligible,
/// and the caller accounts for it.
pub(crate) fn sum_of_two(left: Binomial, right: Binomial, low: u64, high: u64) -> Counts {
    let (left, shift_left) = without_certainty(left);
    let (right, shift_right) = without_certainty(right);
    let shift = shift_left + shift_right;
    let (low, high) = (low.saturating_sub(shift), high.saturating_sub(shift));
    let high = high.min(left.trials + right.trials);
    let low = low.min(high);
    let mut counts = if left.trials == 0 {
        single(right, low, high)
    } else if right.trials == 0 {
        single(left, low, high)
    } else {
        double(left, right, low, high)
    };
    counts.first += shift;
    counts
}

/// Coins that always fall to one side only shift the count.
fn without_certainty(law: Binomial) -> (Binomial, u64) {
    if law.coin.failure == 0.0 {
        (Binomial::new(0, law.coin), law.trials)
    } else if law.coin.success == 0.0 {
        (Binomial::new(0, law.coin), 0)
    } else {
        (law, 0)
    }
}

/// One binomial, multiplied out from its mode, where it is largest.
fn single(law: Binomial, low: u64, high: u64) -> Counts {
    let mode = (law.mean() as u64).clamp(low, high);
    let mut probability = vec![0.0; (high - low + 1) as usize];
    probability[(mode - low) as usize] = 1.0;
    let odds = if law.coin.failure > 0.0 { law.coin.success / law.coin.failure } else { 0.0 };
    // P(count + 1) / P(count).
    let ratio = |count: u64| (law.trials - count) as f64 / (count + 1) as f64 * odds;
    for count in mode..high {
        let index = (count - low) as usize;
        probability[index + 1] = probability[index] * ratio(count);
    }
    for count in (low..mode).rev() {
        let index = (count - low) as usize;
        probability[index] = probability[index + 1] / ratio(count);
    }
    normalized(low, probability, 8.0 * ROUNDOFF, 0.0)
}

fn double(left: Binomial, right: Binomial, low: u64, high: u64) -> Counts {
    let forward = Recurrence::new(left, right);
    let backward = forward.reversed();
    // Weights up to the turn come from below, the rest from above; both know the weight at the turn.
    let turn = forward.turn().map_or(low, |turn| (turn + 1).clamp(low, high));
    let mut weights = Weights { values: vec![1.0], error: 0.0, step_error: 0.0, lead: 0 };
    if turn > low {
        weights = forward.weights(low, turn);
    }
    if high > turn {
        let total = forward.trials;
        let rest = backward.weights(total - high, total - turn);
        weights.join(rest);
    }
    let mut counts = normalized(low, weights.values, weights.step_error, weights.error);
    counts.steps += weights.lead;
    counts
}

/// Scales the weights to a sum of one. Each was reached in at most as many steps as there are weights.
fn normalized(first: u64, mut probability: Vec<f64>, step_error: f64, start_error: f64) -> Counts {
    let total: f64 = probability.iter().sum();
    let scale = 1.0 / total;
    probability.iter_mut().for_each(|value| *value *= scale);
    let length = probability.len() as f64;
    let accumulated = step_error * length + start_error;
    Counts {
        first,
        steps: probability.len() as u64,
        probability,
        relative_error: 2.0 * accumulated + 8.0 * ROUNDOFF * length,
        ratio_error: 2.0 * accumulated,
    }
}

/// Unnormalized probabilities, how far the first ratio may be off, and how much each step adds to the error.
struct Weights {
    values: Vec<f64>,
    error: f64,
    step_error: f64,
    lead: u64,
}

impl Weights {
    /// Continues with weights that run backwards from above and end where these end.
    fn join(&mut self, rest: Self) {
        let here = self.values[self.values.len() - 1];
        let there = rest.values[rest.values.len() - 1];
        let scale = here / there;
        self.values.extend(rest.values.iter().rev().skip(1).map(|value| value * scale));
        self.error += rest.error + 4.0 * ROUNDOFF;
        self.step_error = self.step_error.max(rest.step_error);
        self.lead += rest.lead;
    }
}

struct Recurrence {
    left: Binomial,
    right: Binomial,
    trials: u64,
    constant: f64,
    slope: f64,
    product: f64,
    failures: f64,
}

/// The weights grow from the window's edge to the mode; starting low keeps them in range.
const SMALL: f64 = 1e-100;

/// Rounding error of one step of the ratio's recurrence.
const STEP_ERROR: f64 = 12.0 * ROUNDOFF;

impl Recurrence {
    fn new(left: Binomial, right: Binomial) -> Self {
        let (p, q) = (left.coin, right.coin);
        Self {
            left,
            right,
            trials: left.trials + right.trials,
            constant: left.trials as f64 * p.success * q.failure + right.trials as f64 * q.success * p.failure,
            slope: p.failure * q.success + p.success * q.failure,
            product: p.success * q.success,
            failures: p.failure * q.failure,
        }
    }

    fn reversed(&self) -> Self {
        let reverse = |law: Binomial| Binomial::new(law.trials, law.coin.reversed());
        Self::new(reverse(self.left), reverse(self.right))
    }

    /// The last count at which α is certainly not negative.
    fn turn(&self) -> Option<u64> {
        let turn = (self.constant / self.slope * (1.0 - 8.0 * ROUNDOFF)).floor();
        (turn >= 0.0).then_some((turn as u64).min(self.trials))
    }

    /// Weights of the counts `from..=to`, where the ratios at `from..to` are at or below the turn. The recurrence starts far
    /// enough below `from` for the error of its start to die out.
    fn weights(&self, from: u64, to: u64) -> Weights {
        let mut lead = 64;
        loop {
            let start = from.saturating_sub(lead);
            let (mut ratio, mut error) = self.start(start);
            for count in start + 1..=from {
                (ratio, error) = self.next(count, ratio, error);
            }
            if start == 0 || error < 1e3 * ROUNDOFF || lead > 8 * (to - from) + 4096 {
                let values = self.carry_on(from, to, ratio);
                let step_error = self.step_error(from, &values);
                return Weights { values, error, step_error, lead: from - start };
            }
            lead *= 4;
        }
    }

    /// The recurrence itself from the first two weights on.
    fn carry_on(&self, from: u64, to: u64, ratio: f64) -> Vec<f64> {
        let mut values = Vec::with_capacity((to - from + 1) as usize);
        let (mut before, mut here) = (SMALL, SMALL * ratio);
        values.extend([before, here]);
        for count in from + 1..to {
            let k = count as f64;
            let fresh = (self.constant - self.slope * k).max(0.0);
            let carried = self.product * (self.trials - count + 1) as f64;
            let scale = 1.0 / (self.failures * (k + 1.0));
            (before, here) = (here, (fresh * here + carried * before) * scale);
            values.push(here);
        }
        values
    }

    /// A step rounds a few times, and the difference in α has an absolute error in proportion to its parts.
    fn step_error(&self, from: u64, values: &[f64]) -> f64 {
        let share = |(index, pair): (usize, &[f64])| pair[0] / (pair[1] * (from + index as u64 + 1) as f64);
        let largest = values.windows(2).enumerate().map(share).fold(0.0, f64::max);
        STEP_ERROR + 4.0 * ROUNDOFF * self.constant / self.failures * largest
    }

    /// The ratio at `count` from the one before, with the error of its logarithm, which shrinks by the share that the
    /// previous ratio has in the sum.
    fn next(&self, count: u64, previous: f64, error: f64) -> (f64, f64) {
        let k = count as f64;
        let fresh = (self.constant - self.slope * k).max(0.0);
        let carried = self.product * ((self.trials - count + 1) as f64) / previous;
        let sum = fresh + carried;
        // The difference in `fresh` has an absolute error in proportion to its parts.
        let cancelled = 4.0 * ROUNDOFF * self.constant;
        // The share is largest at the smallest previous ratio that the error allows.
        let worst = carried * if error < 1e-3 { 1.0 + 1.01 * error } else { error.min(600.0).exp() };
        let share = if worst.is_finite() { worst / (fresh + worst) } else { 1.0 };
        (sum / (self.failures * (k + 1.0)), error * share + STEP_ERROR + cancelled / sum)
    }

    /// A first ratio with the error of its logarithm: exact at zero, elsewhere the geometric mean of what the coins with the smaller
    /// and those with the larger odds alone would give.
    fn start(&self, count: u64) -> (f64, f64) {
        if count == 0 {
            return (self.constant / self.failures, STEP_ERROR);
        }
        let odds = |coin: Coin| coin.success / coin.failure;
        let (one, other) = (odds(self.left.coin), odds(self.right.coin));
        let scale = (self.trials - count) as f64 / (count + 1) as f64;
        let (small, large) = (one.min(other), one.max(other));
        (small.sqrt() * large.sqrt() * scale, 0.5 * (large / small).ln() + STEP_ERROR)
    }
}
