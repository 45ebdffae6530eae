//! The law of a sum of two binomials, in time proportional to its width (`docs/accounting.md`, "Two classes").
//!
//! The probabilities g satisfy γ(k)·g(k+1) = α(k)·g(k) + β(k)·g(k−1). Below the point where α changes sign all parts are
//! positive, so that relative errors only add up; above that point the same holds for the law read backwards. Far from the
//! bottom the recurrence needs a first ratio of neighbours. Any guess will do some steps earlier, because an error in the
//! ratio is damped at every step; where that would take too many steps, the ratio is a mean over the ways in which the count may
//! arise.

use super::binomial::Binomial;
use super::root::bisect_integers;
use super::rounding::ROUNDOFF;

/// Probabilities of the counts `first`, `first + 1`, ….
#[derive(Clone, Debug)]
pub(crate) struct SumLaw {
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
pub(crate) fn sum_of_two(left: Binomial, right: Binomial, low: u64, high: u64) -> SumLaw {
    let (left, shift_left) = without_certainty(left);
    let (right, shift_right) = without_certainty(right);
    let shift = shift_left + shift_right;
    let high = high.saturating_sub(shift).min(left.trials + right.trials);
    let low = low.saturating_sub(shift).min(high);
    let mut counts = match (left.trials, right.trials) {
        (0, _) => single(right, low, high),
        (_, 0) => single(left, low, high),
        _ => double(left, right, low, high),
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
fn single(law: Binomial, low: u64, high: u64) -> SumLaw {
    let mode = (law.mean() as u64).clamp(low, high);
    let mut probability = vec![0.0; (high - low + 1) as usize];
    probability[(mode - low) as usize] = 1.0;
    let odds = law.coin.odds();
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

/// Two binomials, by the recurrence from either end.
fn double(left: Binomial, right: Binomial, low: u64, high: u64) -> SumLaw {
    let forward = Recurrence::new(left, right);
    // Weights up to the turn come from below, the others from above; both know the weight at the turn.
    let turn = forward.turn().map_or(low, |turn| (turn + 1).clamp(low, high));
    let mut weights = if turn > low { forward.weights(low, turn) } else { SumWeights::of_one_count() };
    if high > turn {
        let trials = forward.trials;
        weights.join(forward.reversed().weights(trials - high, trials - turn));
    }
    let mut counts = normalized(low, weights.values, weights.step_error, weights.error);
    counts.steps += weights.lead;
    counts
}

/// Scales the weights to a sum of one. Each was reached in at most as many steps as there are weights.
fn normalized(first: u64, mut probability: Vec<f64>, step_error: f64, start_error: f64) -> SumLaw {
    let total: f64 = probability.iter().sum();
    let scale = 1.0 / total;
    probability.iter_mut().for_each(|value| *value *= scale);
    let length = probability.len() as f64;
    let accumulated = step_error * length + start_error;
    SumLaw {
        first,
        steps: probability.len() as u64,
        probability,
        relative_error: 2.0 * accumulated + 8.0 * ROUNDOFF * length,
        ratio_error: 2.0 * accumulated,
    }
}

/// Unnormalized probabilities, how far the first ratio may be off, and how much each step adds to the error.
struct SumWeights {
    values: Vec<f64>,
    error: f64,
    step_error: f64,
    /// Steps taken to find the first ratio.
    lead: u64,
}

impl SumWeights {
    fn of_one_count() -> Self {
        Self { values: vec![1.0], error: 0.0, step_error: 0.0, lead: 0 }
    }

    /// Continues with weights that run backwards from above and end where these end.
    fn join(&mut self, other: Self) {
        let here = self.values[self.values.len() - 1];
        let there = other.values[other.values.len() - 1];
        let scale = here / there;
        self.values.extend(other.values.iter().rev().skip(1).map(|value| value * scale));
        self.error += other.error + 4.0 * ROUNDOFF;
        self.step_error = self.step_error.max(other.step_error);
        self.lead += other.lead;
    }
}

/// A ratio of neighbours, the error of its logarithm, and its cost.
struct FirstRatio {
    ratio: f64,
    error: f64,
    steps: u64,
}

/// Sums of weights, and of weights times ratios: both are log-concave sequences, whose remainders are less than geometric series.
struct WeightedSum {
    weights: f64,
    ratios: f64,
    /// The weight and the ratio added last; the weight is zero if what follows was left out.
    last: (f64, f64),
    terms: u64,
}

impl WeightedSum {
    /// Begins with a weight of one.
    fn new(ratio: f64) -> Self {
        Self { weights: 1.0, ratios: ratio, last: (1.0, ratio), terms: 1 }
    }

    /// Adds terms, each given by its weight over the one before and its ratio, until what follows cannot change the sums.
    fn add_falling(&mut self, terms: impl Iterator<Item = (f64, f64)>) {
        for (factor, ratio) in terms {
            if self.is_complete_before(factor, ratio) {
                self.last.0 = 0.0;
                return;
            }
            self.last = (self.last.0 * factor, ratio);
            self.weights += self.last.0;
            self.ratios += self.last.0 * ratio;
            self.terms += 1;
        }
    }

    /// Whether both sums stay as they are if this term, and those that follow, are left out.
    #[inline]
    fn is_complete_before(&self, factor: f64, ratio: f64) -> bool {
        let is_done =
            |sum: f64, term: f64, factor: f64| factor < 1.0 && term * factor < ROUNDOFF * sum * (1.0 - factor);
        let (weight, previous) = self.last;
        let growth = if previous > 0.0 { factor * ratio / previous } else { f64::INFINITY };
        is_done(self.weights, weight, factor) && is_done(self.ratios, weight * previous, growth)
    }
}

/// The ways to split a count into a part that is `left`'s and a rest that is `right`'s.
struct Splits {
    left: Binomial,
    right: Binomial,
    count: u64,
    /// The smallest and the largest part.
    least: u64,
    most: u64,
}

impl Splits {
    fn new(left: Binomial, right: Binomial, count: u64) -> Self {
        Self { left, right, count, least: count.saturating_sub(right.trials), most: count.min(left.trials) }
    }

    /// The probability of `part` + 1 over that of `part`. It falls with the part.
    #[inline]
    fn growth(&self, part: u64) -> f64 {
        self.left.ratio_up(part) * self.right.ratio_down(self.count - part)
    }

    /// The ratio of neighbours of `right` alone, at the rest.
    #[inline]
    fn ratio(&self, part: u64) -> f64 {
        self.right.ratio_up(self.count - part)
    }

    /// The likeliest part.
    fn peak(&self) -> u64 {
        if self.most == self.least || self.growth(self.least) < 1.0 {
            return self.least;
        }
        bisect_integers((self.least as i64, self.most as i64), |part| self.growth(part as u64) >= 1.0).1 as u64
    }

    /// The parts after one: how much likelier each is than the one before, and its ratio.
    fn upwards(&self, part: u64) -> impl Iterator<Item = (f64, f64)> {
        (part..self.most).map(move |part| (self.growth(part), self.ratio(part + 1)))
    }

    /// The parts before one: how much likelier each is than the one after, and its ratio.
    fn downwards(&self, part: u64) -> impl Iterator<Item = (f64, f64)> {
        (self.least..part).rev().map(move |part| (1.0 / self.growth(part), self.ratio(part)))
    }
}

/// γ(k)·g(k+1) = α(k)·g(k) + β(k)·g(k−1) for the sum of two binomials.
struct Recurrence {
    left: Binomial,
    right: Binomial,
    trials: u64,
    /// α(k) = level − slope·(k − anchor).
    anchor: i64,
    level: f64,
    slope: f64,
    product: f64,
    failures: f64,
}

/// The weights grow from the window's edge to the mode; starting low keeps them in range.
const SMALL: f64 = 1e-100;

/// How far below the first count its ratio's recurrence starts; from further below would take longer than a sum.
const LEADS: [u64; 2] = [64, 256];

/// Rounding error of one step of the ratio's recurrence.
const STEP_ERROR: f64 = 12.0 * ROUNDOFF;

impl Recurrence {
    fn new(left: Binomial, right: Binomial) -> Self {
        let (p, q) = (left.coin, right.coin);
        let (anchor, level) = Self::anchored(left, right);
        Self {
            left,
            right,
            trials: left.trials + right.trials,
            anchor,
            level,
            slope: p.failure * q.success + p.success * q.failure,
            product: p.success * q.success,
            failures: p.failure * q.failure,
        }
    }

    /// The count from which α is computed, and α there: of the counts at which it is known without cancellation the one where it
    /// is nearest to zero, so that its differences lose least.
    fn anchored(left: Binomial, right: Binomial) -> (i64, f64) {
        let (p, q) = (left.coin, right.coin);
        let (own, others) = (left.trials as i64, right.trials as i64);
        let difference = (others - own) as f64;
        let known = [
            (0, own as f64 * p.success * q.failure + others as f64 * q.success * p.failure),
            (own, difference * p.failure * q.success),
            (others, -difference * p.success * q.failure),
        ];
        known.into_iter().min_by(|a, b| a.1.abs().total_cmp(&b.1.abs())).unwrap_or(known[0])
    }

    /// α(k), which is not negative up to the turn.
    #[inline]
    fn fresh(&self, count: u64) -> f64 {
        (self.level - self.slope * (count as i64 - self.anchor) as f64).max(0.0)
    }

    /// β(k).
    #[inline]
    fn carried(&self, count: u64) -> f64 {
        self.product * (self.trials - count + 1) as f64
    }

    /// γ(k).
    #[inline]
    fn divisor(&self, count: u64) -> f64 {
        self.failures * (count as f64 + 1.0)
    }

    fn reversed(&self) -> Self {
        Self::new(self.left.reversed(), self.right.reversed())
    }

    /// The last count at which α is certainly not negative.
    fn turn(&self) -> Option<u64> {
        let beyond = self.level / self.slope;
        let turn = self.anchor + (beyond - 8.0 * ROUNDOFF * beyond.abs()).floor() as i64;
        u64::try_from(turn).ok().map(|turn| turn.min(self.trials))
    }

    /// Weights of the counts `from..=to`, where the ratios at `from..to` are at or below the turn.
    fn weights(&self, from: u64, to: u64) -> SumWeights {
        let FirstRatio { ratio, error, steps } = self.first_ratio(from);
        let values = self.carry_on(from, to, ratio);
        let step_error = self.step_error(from, &values);
        SumWeights { values, error, step_error, lead: steps }
    }

    /// The ratio at a count: by a recurrence that starts far enough below for the error of its start to die out, or, if that
    /// would be far away, by summing two convolutions.
    fn first_ratio(&self, count: u64) -> FirstRatio {
        let mut steps = 0;
        for lead in LEADS {
            let start = count.saturating_sub(lead);
            let (ratio, error) = self.ratio_from(start, count);
            steps += count - start;
            if start == 0 || error < 1e3 * ROUNDOFF {
                return FirstRatio { ratio, error, steps };
            }
        }
        let summed = self.summed_ratio(count);
        FirstRatio { steps: steps + summed.steps, ..summed }
    }

    /// The ratio at a count by the recurrence from `start` on, with the error of its logarithm.
    fn ratio_from(&self, start: u64, count: u64) -> (f64, f64) {
        (start + 1..=count).fold(self.start(start), |(ratio, error), count| self.next(count, ratio, error))
    }

    /// The ratio at a count as the mean of right's own ratios, weighted by the products that sum to the probability of the count:
    /// from the largest product in both directions.
    fn summed_ratio(&self, count: u64) -> FirstRatio {
        let splits = Splits::new(self.left, self.right, count);
        let peak = splits.peak();
        let mut sum = WeightedSum::new(splits.ratio(peak));
        sum.add_falling(splits.upwards(peak));
        // The next count may also be `left`'s altogether, a case that no ratio of `right` covers.
        if splits.most == count && count < self.left.trials && sum.last.0 > 0.0 {
            sum.ratios += sum.last.0 * self.left.ratio_up(count);
        }
        sum.last = (1.0, splits.ratio(peak));
        sum.add_falling(splits.downwards(peak));
        FirstRatio {
            ratio: sum.ratios / sum.weights,
            error: 26.0 * ROUNDOFF * (sum.terms as f64 + 2.0),
            steps: sum.terms,
        }
    }

    /// The recurrence itself, from the first two weights on.
    fn carry_on(&self, from: u64, to: u64, ratio: f64) -> Vec<f64> {
        let mut values = Vec::with_capacity((to - from + 1) as usize);
        let (mut before, mut here) = (SMALL, SMALL * ratio);
        values.extend([before, here]);
        for count in from + 1..to {
            let sum = self.fresh(count) * here + self.carried(count) * before;
            (before, here) = (here, sum * (1.0 / self.divisor(count)));
            values.push(here);
        }
        values
    }

    /// A step rounds a few times, and the difference in α has an absolute error in proportion to its parts.
    fn step_error(&self, from: u64, values: &[f64]) -> f64 {
        let share = |(index, pair): (usize, &[f64])| pair[0] / (pair[1] * (from + index as u64 + 1) as f64);
        let largest = values.windows(2).enumerate().map(share).fold(0.0, f64::max);
        STEP_ERROR + 6.0 * ROUNDOFF * self.level.abs() / self.failures * largest
    }

    /// The ratio at `count` from the one before, with the error of its logarithm, which shrinks by the share that the
    /// previous ratio has in the sum.
    fn next(&self, count: u64, previous: f64, error: f64) -> (f64, f64) {
        let fresh = self.fresh(count);
        let carried = self.carried(count) / previous;
        let sum = fresh + carried;
        // The difference in `fresh` has an absolute error in proportion to its parts: to itself, and twice the level.
        let cancelled = 6.0 * ROUNDOFF * self.level.abs();
        // The share is largest at the smallest previous ratio that the error allows.
        let worst = carried * if error < 1e-3 { 1.0 + 1.01 * error } else { error.min(600.0).exp() };
        let share = if worst.is_finite() { worst / (fresh + worst) } else { 1.0 };
        (sum / self.divisor(count), error * share + STEP_ERROR + cancelled / sum)
    }

    /// A first ratio with the error of its logarithm: exact at zero, elsewhere the geometric mean of what the coins with the
    /// smaller and those with the larger odds alone would give.
    fn start(&self, count: u64) -> (f64, f64) {
        if count == 0 {
            return (self.ratio_at_zero(), STEP_ERROR);
        }
        let (one, other) = (self.left.coin.odds(), self.right.coin.odds());
        let scale = (self.trials - count) as f64 / (count + 1) as f64;
        let (small, large) = (one.min(other), one.max(other));
        (small.sqrt() * large.sqrt() * scale, 0.5 * (large / small).ln() + STEP_ERROR)
    }

    fn ratio_at_zero(&self) -> f64 {
        let ratio = |law: Binomial| law.trials as f64 * law.coin.success / law.coin.failure;
        ratio(self.left) + ratio(self.right)
    }
}

#[cfg(test)]
mod tests {
    use super::super::binomial::Coin;
    use super::*;

    /// At every count of small crowds, against the probabilities themselves.
    #[test]
    fn summed_ratios_are_those_of_the_law() {
        for (left, right) in [((40, 0.3), (60, 0.6)), ((7, 0.999), (300, 1e-3)), ((1, 0.5), (50, 0.2))] {
            let law = |(trials, success): (u64, f64)| Binomial::new(trials, Coin::of(success));
            let recurrence = Recurrence::new(law(left), law(right));
            let probability = |count: u64| -> f64 {
                (0..=count)
                    .map(|part| law(left).probability(part).value * law(right).probability(count - part).value)
                    .sum()
            };
            // Not where probabilities are too small for doubles.
            for count in (0..left.0 + right.0).filter(|count| probability(count + 1) > 1e-290) {
                let FirstRatio { ratio, error, .. } = recurrence.summed_ratio(count);
                let exact = probability(count + 1) / probability(count);
                assert!(
                    (ratio / exact).ln().abs() < error + 1e-12,
                    "{left:?} and {right:?} at {count}: {ratio}, not {exact}"
                );
            }
        }
    }

    /// In large crowds, against the recurrence from so far below that nothing of the error of its start is left.
    #[test]
    fn summed_ratios_are_those_of_the_recurrence() {
        let law = |trials: u64, success: f64| Binomial::new(trials, Coin::of(success));
        for (left, right) in [
            (law(1_000_000, 1.0 - 1e-5), law(99_000_000, 1e-5)),
            (law(500, 1.0 - 1e-3), law(1_000_000, 1e-3)),
            (law(30_000_000, 0.2), law(70_000_000, 0.6)),
        ] {
            let recurrence = Recurrence::new(left, right);
            let turn = recurrence.turn().unwrap_or(0);
            for count in [turn - 300, turn - 10] {
                let (ratio, error) = recurrence.ratio_from(count.saturating_sub(2_000_000), count);
                let summed = recurrence.summed_ratio(count);
                let distance = (summed.ratio / ratio).ln().abs();
                assert!(distance <= summed.error + error && error < 1e-9, "{left:?}, {right:?}: {distance}");
            }
        }
    }
}
