//! The law of a sum of two binomials, in time proportional to its width.
//!
//! The probabilities g satisfy a recurrence of three terms. Written for the ratio of neighbours it is
//! ρ(k) = (α(k) + β(k)/ρ(k−1)) / γ(k); below the point where α changes sign all parts are positive, an error in ρ is
//! damped and changes sign at every step. Above that point the same holds for the law read backwards.

use super::binomial::{Binomial, Coin, ROUNDOFF};

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
        from_ratios(low, &single_ratios(right, low, high), 8.0 * ROUNDOFF, high - low)
    } else if right.trials == 0 {
        from_ratios(low, &single_ratios(left, low, high), 8.0 * ROUNDOFF, high - low)
    } else {
        double(left, right, low, high)
    };
    counts.first += shift;
    counts
}

/// Coins that always fall to one side are no coins: they shift the count.
fn without_certainty(law: Binomial) -> (Binomial, u64) {
    if law.coin.failure == 0.0 {
        (Binomial::new(0, law.coin), law.trials)
    } else if law.coin.success == 0.0 {
        (Binomial::new(0, law.coin), 0)
    } else {
        (law, 0)
    }
}

fn single_ratios(law: Binomial, low: u64, high: u64) -> Vec<f64> {
    let odds = law.coin.success / law.coin.failure;
    (low..high).map(|count| (law.trials - count) as f64 / (count + 1) as f64 * odds).collect()
}

fn double(left: Binomial, right: Binomial, low: u64, high: u64) -> Counts {
    let forward = Recurrence::new(left, right);
    let backward = forward.reversed();
    // Ratios at low..turn come from below, those at turn..high from above.
    let turn = forward.turn().map_or(low, |turn| (turn + 1).clamp(low, high));
    let (mut ratios, mut error, mut steps) = (Vec::with_capacity((high - low) as usize), 0.0_f64, high - low);
    if turn > low {
        let part = forward.ratios(low, turn);
        steps += part.extra_steps;
        error = error.max(part.error);
        ratios.extend(part.ratios);
    }
    if high > turn {
        let total = forward.trials;
        let part = backward.ratios(total - high, total - turn);
        steps += part.extra_steps;
        error = error.max(part.error);
        ratios.extend(part.ratios.iter().rev().map(|ratio| 1.0 / ratio));
    }
    from_ratios(low, &ratios, error, steps)
}

/// Multiplies the ratios up from the mode, where the law is largest, and normalizes.
fn from_ratios(first: u64, ratios: &[f64], ratio_error: f64, steps: u64) -> Counts {
    let mode = ratios.partition_point(|ratio| *ratio > 1.0);
    let mut probability = vec![0.0; ratios.len() + 1];
    probability[mode] = 1.0;
    for index in mode..ratios.len() {
        probability[index + 1] = probability[index] * ratios[index];
    }
    for index in (0..mode).rev() {
        probability[index] = probability[index + 1] / ratios[index];
    }
    let total: f64 = probability.iter().sum();
    probability.iter_mut().for_each(|value| *value /= total);
    let relative_error = 2.0 * ratio_error + 24.0 * ROUNDOFF * (ratios.len() + 1) as f64;
    Counts { first, probability, relative_error, ratio_error, steps: steps + ratios.len() as u64 }
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

struct Ratios {
    ratios: Vec<f64>,
    error: f64,
    extra_steps: u64,
}

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

    /// The ratios at the counts `from..to`, all of them at or below the turn. The recurrence starts far enough below
    /// `from` for the error of its start to die out.
    fn ratios(&self, from: u64, to: u64) -> Ratios {
        let mut lead = 64;
        loop {
            let start = from.saturating_sub(lead);
            let (mut ratio, mut error) = self.start(start);
            for count in start + 1..=from {
                (ratio, error) = self.next(count, ratio, error);
            }
            if start == 0 || error < 1e3 * ROUNDOFF || lead > 8 * (to - from) + 4096 {
                return self.collect(from, to, ratio, error, from - start);
            }
            lead *= 4;
        }
    }

    fn collect(&self, from: u64, to: u64, mut ratio: f64, mut error: f64, extra_steps: u64) -> Ratios {
        let mut ratios = Vec::with_capacity((to - from) as usize);
        let mut worst = error;
        ratios.push(ratio);
        for count in from + 1..to {
            (ratio, error) = self.next(count, ratio, error);
            worst = worst.max(error);
            ratios.push(ratio);
        }
        Ratios { ratios, error: worst, extra_steps }
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

    /// A first ratio with the error of its logarithm: exact at zero, elsewhere the middle between what the coins with the smaller and with the
    /// larger odds would give.
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
