//! The divergence in a crowd of one truth, exactly (`docs/accounting.md`, "A crowd of one truth").
//!
//! All others follow the same law q over the classes. So the law of the histogram with the target is a multinomial law times a
//! linear function of the counts, and the divergence is a sum, over the counts b of one class, of binomial tails. The tails
//! are carried along from one b to the next: as b falls, the number k of remaining owners grows and the threshold t(b) does not,
//! and every update adds something positive.

use crate::certified::binomial::{Binomial, BinomialTail, Coin, real, window};
use crate::certified::rounding::Enclosure;
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::likelihood::Weight;
use crate::privacy::work::WorkBudget;

/// A class: the target's weight w in it, and the probability q of an owner of the crowd's truth.
#[derive(Clone, Copy)]
pub(crate) struct OneTruthClass {
    weight: Weight,
    crowd: f64,
}

impl OneTruthClass {
    /// The classes with these weights, over which the owners of the crowd have this law.
    pub(crate) fn all(weights: &[Weight], law: &[f64]) -> Vec<Self> {
        weights.iter().zip(law).map(|(weight, crowd)| Self { weight: *weight, crowd: *crowd }).collect()
    }

    /// x = w/q.
    fn score(&self) -> f64 {
        self.weight.value() / self.crowd
    }

    /// The score without cancellation, which scales its rounding error.
    fn magnitude(&self) -> f64 {
        self.weight.magnitude() / self.crowd
    }
}

/// Σ over histograms of (first − e^ε·second)₊, where the crowd's probabilities sum to one.
pub(crate) fn divergence(classes: &[OneTruthClass], others: u64, log_cut: f64, work: &WorkBudget) -> Enclosure {
    let (reached, alone): (Vec<OneTruthClass>, Vec<OneTruthClass>) =
        classes.iter().partition(|class| class.crowd != 0.0 && others != 0);
    // A class that the crowd does not reach shows the target by itself.
    let shown_alone = Weight::positive_parts(alone.iter().map(|class| &class.weight));
    shown_alone.plus(where_reached(reached, others, log_cut, work))
}

/// The same over the classes that the crowd reaches.
fn where_reached(mut classes: Vec<OneTruthClass>, others: u64, log_cut: f64, work: &WorkBudget) -> Enclosure {
    classes.sort_by(|a, b| b.score().total_cmp(&a.score()));
    match classes[..] {
        [] => Enclosure::ZERO,
        [only] => only.weight.positive_part(),
        [high, low] => two(high, low, others, log_cut, work),
        [high, middle, low] => three([high, middle, low], others, log_cut, work),
        _ => unreachable!("classes are reduced to at most three before they come here"),
    }
}

/// How the owners, the target among them, are split: how many are in the outer class (b), and how many in the other two (k).
#[derive(Clone, Copy)]
struct OwnerSplit {
    outer: u64,
    inner: u64,
}

/// S = Σ x_c·h_c as a function of the row and the count of the highest class, in which it is linear.
struct LinearScore {
    outer: f64,
    low: f64,
    high: f64,
}

impl LinearScore {
    #[inline]
    fn at(&self, OwnerSplit { outer, inner }: OwnerSplit, count: u64) -> f64 {
        self.outer * real(outer) + self.low * real(inner - count) + self.high * real(count)
    }
}

/// The sum of the rows' contributions, along with the same sum without cancellation, which scales the rounding error.
struct RowSum {
    score: LinearScore,
    magnitude: LinearScore,
    value: f64,
    absolute: f64,
    error: f64,
}

impl RowSum {
    fn new(outer: Option<OneTruthClass>, high: OneTruthClass, low: OneTruthClass) -> Self {
        let score = |of: fn(&OneTruthClass) -> f64| LinearScore {
            outer: outer.as_ref().map_or(0.0, of),
            low: of(&low),
            high: of(&high),
        };
        let (score, magnitude) = (score(OneTruthClass::score), score(OneTruthClass::magnitude));
        Self { score, magnitude, value: 0.0, absolute: 0.0, error: 0.0 }
    }

    /// Whether the score is positive, or so close to zero that rounding may hide that it is: any excess is within
    /// the error.
    #[inline]
    fn positive(&self, row: OwnerSplit, count: u64) -> bool {
        let slack = 16.0 * ROUNDOFF * self.magnitude.at(row, count);
        self.score.at(row, count) > -slack
    }

    /// t: the smallest count with a positive score, one more than `row.inner` if there is none.
    fn threshold(&self, row: OwnerSplit) -> u64 {
        if !self.positive(row, row.inner) {
            return row.inner + 1;
        }
        let (base, slope) = (self.score.at(row, 0), self.score.high - self.score.low);
        let guess = if base >= 0.0 || slope <= 0.0 { 0.0 } else { -base / slope };
        let mut count = (guess as u64).min(row.inner);
        while !self.positive(row, count) {
            count += 1;
        }
        while count > 0 && self.positive(row, count - 1) {
            count -= 1;
        }
        count
    }

    /// The same where it is known to be at most `previous`, and is probably near it.
    fn threshold_below(&self, row: OwnerSplit, previous: u64) -> u64 {
        if previous == 0 && self.positive(row, 0) {
            return 0;
        }
        for count in (previous.saturating_sub(4)..previous.min(row.inner + 1)).rev() {
            if !self.positive(row, count) {
                let is_next = count + 1 < previous || count < row.inner && self.positive(row, count + 1);
                return if is_next { count + 1 } else { self.threshold(row) };
            }
        }
        self.threshold(row)
    }

    /// Adds E[S₊ | b] = S(t)·T_k(t) + (x₁ − x₂)·U_k(t), times the probability of the row.
    fn add(&mut self, probability: f64, row: OwnerSplit, threshold: u64, tail: &BinomialTail) {
        let slope = self.score.high - self.score.low;
        let value = probability * (self.score.at(row, threshold).max(0.0) * tail.mass + slope * tail.excess);
        let steep = (self.magnitude.high - self.magnitude.low).max(0.0);
        let absolute = probability * (self.magnitude.at(row, threshold) * tail.mass + steep * tail.excess);
        self.value += value;
        self.absolute += absolute;
        self.error += value * tail.relative_error;
    }

    /// Adds all rows of the window; returns the relative error of their probabilities.
    fn add_rows(&mut self, windows: &CountRanges, work: &WorkBudget) -> f64 {
        let mut tails = CarriedTails { bottom: windows.bottom, carried: None };
        let mut threshold = windows.outer.trials + 1;
        let (first, last) = windows.rows;
        let start = windows.outer.probability(last);
        for (row, probability) in windows.rows_down(start.value) {
            threshold = self.threshold_below(row, threshold);
            if threshold <= row.inner && threshold <= windows.top.saturating_add(1) {
                let tail = tails.at(Binomial::new(row.inner, windows.coin), threshold, work);
                self.add(probability, row, threshold, &tail);
            }
        }
        let rows = last - first + 1;
        work.spend(rows);
        start.relative_error + 8.0 * ROUNDOFF * rows as f64
    }

    /// A cut that is so deep that the omitted mass times the largest score stays below the given cut.
    fn deepened(&self, log_cut: f64, owners: u64) -> f64 {
        log_cut - (owners as f64 + 2.0).ln() - self.magnitude.high.max(self.score.high).ln_1p()
    }

    /// D = E[S₊]/N.
    fn enclosure(&self, owners: u64, relative_error: f64, truncated: f64) -> Enclosure {
        let scale = 1.0 / owners as f64;
        let error = self.error + relative_error * self.value + 24.0 * ROUNDOFF * self.absolute;
        Enclosure::around(self.value * scale, error * scale, truncated)
    }
}

/// Two classes: one tail.
fn two(high: OneTruthClass, low: OneTruthClass, others: u64, log_cut: f64, work: &WorkBudget) -> Enclosure {
    let row = OwnerSplit { outer: 0, inner: others + 1 };
    let owners = row.inner;
    let mut sum = RowSum::new(None, high, low);
    let threshold = sum.threshold(row);
    if threshold > owners {
        return Enclosure::ZERO;
    }
    let law = Binomial::new(owners, Coin::between(high.crowd, low.crowd));
    let bottom = bottom(law, threshold, sum.deepened(log_cut, owners));
    let tail = law.tail(threshold, bottom);
    work.spend(tail.steps);
    sum.add(1.0, row, threshold, &tail);
    let cut = if threshold <= bottom && threshold > 0 { log_cut.exp() } else { 0.0 };
    sum.enclosure(owners, 0.0, cut)
}

/// A count below which a law has negligible mass. It is needed for thresholds below the mean only.
fn bottom(law: Binomial, threshold: u64, log_cut: f64) -> u64 {
    if (threshold as f64) < law.mean() { window(&[law], log_cut).0 } else { 0 }
}

/// Three classes: a walk over the window of the lowest one's count.
fn three(classes: [OneTruthClass; 3], others: u64, log_cut: f64, work: &WorkBudget) -> Enclosure {
    let [high, middle, low] = classes;
    let owners = others + 1;
    let mut sum = RowSum::new(Some(low), high, middle);
    if !sum.positive(OwnerSplit { outer: 0, inner: owners }, owners) {
        return Enclosure::ZERO;
    }
    let windows = CountRanges::new(classes, owners, sum.deepened(log_cut, owners));
    let relative_error = sum.add_rows(&windows, work);
    // Left out: outer counts on both sides of the window, thresholds above the top, tails below the bottom, tails that
    // underflow. Each has at most the cut's mass under the first law.
    sum.enclosure(owners, relative_error, 5.0 * log_cut.exp())
}

/// The counts that matter with three classes.
struct CountRanges {
    /// The law of the count b of the lowest class, and its window.
    outer: Binomial,
    rows: (u64, u64),
    /// The coin with which the others split between the highest and the middle class: θ.
    coin: Coin,
    /// The counts a of the highest class are between these in every row.
    bottom: u64,
    top: u64,
}

impl CountRanges {
    fn new([high, middle, low]: [OneTruthClass; 3], owners: u64, log_cut: f64) -> Self {
        let coin = Coin::between(high.crowd, middle.crowd);
        let outer = Binomial::new(owners, Coin { success: low.crowd, failure: high.crowd + middle.crowd });
        let rows @ (first, last) = window(&[outer], log_cut);
        let (bottom, _) = window(&[Binomial::new(owners - last, coin)], log_cut);
        let (_, top) = window(&[Binomial::new(owners - first, coin)], log_cut);
        Self { outer, rows, coin, bottom, top }
    }

    /// The rows from the last one down, with their probabilities, given that of the last row.
    fn rows_down(&self, last: f64) -> impl Iterator<Item = (OwnerSplit, f64)> {
        let (first, start) = self.rows;
        let probabilities = std::iter::successors(Some((start, last)), move |&(outer, probability)| {
            (outer > first).then(|| (outer - 1, probability * self.outer.ratio_down(outer)))
        });
        let row = move |outer: u64| OwnerSplit { outer, inner: self.outer.trials - outer };
        probabilities.map(move |(outer, probability)| (row(outer), probability))
    }
}

/// A tail that starts below this would lose digits when it is carried along; it is left out.
const UNDERFLOW: f64 = 1e-250;

/// The tails of one row after the other, carried along where that is possible.
struct CarriedTails {
    /// Below this count the laws have negligible mass.
    bottom: u64,
    carried: Option<CarriedTail>,
}

impl CarriedTails {
    /// T(t) and U(t) of this law.
    fn at(&mut self, law: Binomial, threshold: u64, work: &WorkBudget) -> BinomialTail {
        let whole = threshold == 0 || threshold <= self.bottom;
        match &mut self.carried {
            Some(walk) if !whole && walk.leads_to(law, threshold) => walk.move_to(law.trials, threshold, work),
            _ => self.anew(law, threshold, whole, work),
        }
    }

    /// A tail that is not carried along from the row before; the next one may be carried along from it.
    fn anew(&mut self, law: Binomial, threshold: u64, whole: bool, work: &WorkBudget) -> BinomialTail {
        let far = threshold as f64 > law.mean() && law.probability(threshold).value < UNDERFLOW;
        if far {
            return BinomialTail { mass: 0.0, excess: 0.0, at: 0.0, relative_error: 0.0, steps: 1 };
        }
        let tail = law.tail(threshold, self.bottom);
        work.spend(tail.steps);
        // Far below the mean the sums are right, but cannot be carried along.
        if whole || tail.at >= UNDERFLOW {
            self.carried = (!whole).then_some(CarriedTail { law, threshold, tail });
        }
        tail
    }
}

/// A tail that is carried along from row to row.
struct CarriedTail {
    law: Binomial,
    threshold: u64,
    tail: BinomialTail,
}

impl CarriedTail {
    /// Whether additions alone lead to the tail of this law at this threshold.
    fn leads_to(&self, law: Binomial, threshold: u64) -> bool {
        self.law.trials <= law.trials && self.threshold >= threshold
    }

    fn move_to(&mut self, trials: u64, threshold: u64, work: &WorkBudget) -> BinomialTail {
        let mut steps = 0;
        while self.law.trials < trials {
            self.add_owner();
            steps += 1;
        }
        while self.threshold > threshold {
            self.lower_threshold();
            steps += 1;
        }
        work.spend(steps);
        self.tail.relative_error += 8.0 * ROUNDOFF * steps as f64;
        self.tail
    }

    /// T_{k+1}(t) = T_k(t) + θ·g_k(t−1), where θ·g_k(t−1) = g_k(t)·t·(1−θ)/(k+1−t), and U_{k+1}(t) = U_k(t) + θ·T_k(t).
    fn add_owner(&mut self) {
        let (n, t) = (self.law.trials, self.threshold);
        let Coin { success, failure } = self.law.coin;
        let share = failure / real(n + 1 - t);
        self.tail.excess += success * self.tail.mass;
        self.tail.mass += self.tail.at * (real(t) * share);
        self.tail.at *= real(n + 1) * share;
        self.law.trials = n + 1;
    }

    /// T_k(t−1) = T_k(t) + g_k(t−1) and U_k(t−1) = U_k(t) + T_k(t).
    fn lower_threshold(&mut self) {
        self.tail.at *= self.law.ratio_down(self.threshold);
        self.tail.excess += self.tail.mass;
        self.tail.mass += self.tail.at;
        self.threshold -= 1;
    }
}
