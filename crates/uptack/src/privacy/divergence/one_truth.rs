//! The divergence in a crowd of one truth, exactly (`docs/accounting.md`, "A crowd of one truth").
//!
//! All others follow the same law q over the classes. So the law of the histogram with the target is a multinomial law times a
//! linear function of the counts, and the divergence is a sum, over the counts b of one class, of binomial tails. The tails
//! are carried along from one b to the next: as b falls, the number k of remaining owners grows and the threshold t(b) does not,
//! and every update adds something positive.

use crate::certified::binomial::{Binomial, Coin, Tail, window};
use crate::certified::enclosure::Enclosure;
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::effort::Work;
use crate::privacy::likelihood::Weight;

/// Σ over histograms of (first − e^ε·second)₊. `classes` are pairs of the target's weight w_c and the crowd's probability q_c; the
/// probabilities sum to one.
pub(crate) fn divergence(classes: &[(Weight, f64)], others: u64, log_cut: f64, work: &Work) -> Enclosure {
    let mut sum = Enclosure::ZERO;
    let mut reachable: Vec<(Weight, f64)> = Vec::with_capacity(classes.len());
    for &(weight, crowd) in classes {
        // A class that the crowd does not reach shows the target by itself.
        if crowd == 0.0 || others == 0 {
            sum = sum.plus(weight.positive_part());
        } else {
            reachable.push((weight, crowd));
        }
    }
    reachable.sort_by(|a, b| (b.0.value() / b.1).total_cmp(&(a.0.value() / a.1)));
    let rest = match reachable.as_slice() {
        [] => Enclosure::ZERO,
        [(weight, _)] => weight.positive_part(),
        [high, low] => two(*high, *low, others, log_cut, work),
        [high, middle, low] => three([*high, *middle, *low], others, log_cut, work),
        _ => unreachable!("classes are reduced to at most three before they come here"),
    };
    sum.plus(rest)
}

/// (1/N)·Σ over the inner counts of (score)₊ with `outer` owners in the outer class and the rest between two classes:
/// the score is linear in the count of the higher one.
struct Score {
    outer: f64,
    low: f64,
    high: f64,
}

impl Score {
    fn at(&self, outer: u64, inner: u64, count: u64) -> f64 {
        self.outer * outer as f64 + self.low * (inner - count) as f64 + self.high * count as f64
    }
}

/// Sums what the rows contribute, along with the same sum without cancellation, which scales the rounding error.
struct Sum {
    score: Score,
    magnitude: Score,
    value: f64,
    absolute: f64,
    error: f64,
}

impl Sum {
    fn new(outer: Option<(Weight, f64)>, high: (Weight, f64), low: (Weight, f64)) -> Self {
        let value = |class: (Weight, f64)| class.0.value() / class.1;
        let absolute = |class: (Weight, f64)| class.0.magnitude() / class.1;
        Self {
            score: Score { outer: outer.map_or(0.0, value), low: value(low), high: value(high) },
            magnitude: Score { outer: outer.map_or(0.0, absolute), low: absolute(low), high: absolute(high) },
            value: 0.0,
            absolute: 0.0,
            error: 0.0,
        }
    }

    /// Whether the score is positive, or so close to zero that rounding may hide it: what is counted in excess is within the error.
    fn positive(&self, outer: u64, inner: u64, count: u64) -> bool {
        let slack = 16.0 * ROUNDOFF * self.magnitude.at(outer, inner, count);
        self.score.at(outer, inner, count) > -slack
    }

    /// The smallest count with a positive score, `inner + 1` if there is none.
    fn threshold(&self, outer: u64, inner: u64) -> u64 {
        if !self.positive(outer, inner, inner) {
            return inner + 1;
        }
        let (base, slope) = (self.score.at(outer, inner, 0), self.score.high - self.score.low);
        let guess = if base >= 0.0 || slope <= 0.0 { 0.0 } else { -base / slope };
        let mut count = (guess as u64).min(inner);
        while !self.positive(outer, inner, count) {
            count += 1;
        }
        while count > 0 && self.positive(outer, inner, count - 1) {
            count -= 1;
        }
        count
    }

    /// The same where it is known to be at most `previous`, and is probably near it.
    fn threshold_below(&self, outer: u64, inner: u64, previous: u64) -> u64 {
        let mut count = previous;
        for _ in 0..4 {
            if count == 0 || count > inner || !self.positive(outer, inner, count - 1) {
                break;
            }
            count -= 1;
        }
        let below = count == 0 || count <= inner && !self.positive(outer, inner, count - 1);
        let found = below && self.positive(outer, inner, count);
        if found { count } else { self.threshold(outer, inner) }
    }

    fn add(&mut self, row: f64, outer: u64, inner: u64, threshold: u64, tail: &Tail) {
        let slope = self.score.high - self.score.low;
        let value = row * (self.score.at(outer, inner, threshold).max(0.0) * tail.mass + slope * tail.excess);
        let steep = (self.magnitude.high - self.magnitude.low).max(0.0);
        let absolute = row * (self.magnitude.at(outer, inner, threshold) * tail.mass + steep * tail.excess);
        self.value += value;
        self.absolute += absolute;
        self.error += value * tail.relative_error;
    }

    /// A cut that is deep enough for what is cut to stay below the given one after multiplication by the largest score.
    fn deepened(&self, log_cut: f64, owners: u64) -> f64 {
        log_cut - (owners as f64 + 2.0).ln() - self.magnitude.high.max(self.score.high).ln_1p()
    }

    fn bracket(&self, owners: u64, relative_error: f64, truncated: f64) -> Enclosure {
        let scale = 1.0 / owners as f64;
        let error = self.error + relative_error * self.value + 24.0 * ROUNDOFF * self.absolute;
        Enclosure::around(self.value * scale, error * scale, truncated)
    }
}

fn two(high: (Weight, f64), low: (Weight, f64), others: u64, log_cut: f64, work: &Work) -> Enclosure {
    let owners = others + 1;
    let law = Binomial::new(owners, Coin::between(high.1, low.1));
    let mut sum = Sum::new(None, high, low);
    let threshold = sum.threshold(0, owners);
    if threshold > owners {
        return Enclosure::ZERO;
    }
    let shallow = log_cut;
    let log_cut = sum.deepened(log_cut, owners);
    let bottom = if (threshold as f64) < law.mean() { window(&[law], log_cut).0 } else { 0 };
    let tail = law.tail(threshold, bottom);
    work.spend(tail.steps);
    sum.add(1.0, 0, owners, threshold, &tail);
    let cut = if threshold <= bottom && threshold > 0 { shallow.exp() } else { 0.0 };
    sum.bracket(owners, 0.0, cut)
}

fn three(classes: [(Weight, f64); 3], others: u64, log_cut: f64, work: &Work) -> Enclosure {
    let [high, middle, low] = classes;
    let owners = others + 1;
    let mut sum = Sum::new(Some(low), high, middle);
    if !sum.positive(0, owners, owners) {
        return Enclosure::ZERO;
    }
    let shallow = log_cut;
    let log_cut = sum.deepened(log_cut, owners);
    let coin = Coin::between(high.1, middle.1);
    let outer = Binomial::new(owners, Coin { success: low.1, failure: high.1 + middle.1 });
    let (first, last) = window(&[outer], log_cut);
    let (bottom, _) = window(&[Binomial::new(owners - last, coin)], log_cut);
    let (_, top) = window(&[Binomial::new(owners - first, coin)], log_cut);
    let start = outer.probability(last);
    let mut row = start.value;
    let mut walk: Option<Walk> = None;
    let mut threshold = owners + 1;
    for count in (first..=last).rev() {
        let inner = owners - count;
        threshold = sum.threshold_below(count, inner, threshold);
        if threshold <= inner && threshold <= top.saturating_add(1) {
            let tail = step(&mut walk, Binomial::new(inner, coin), threshold, bottom, work);
            sum.add(row, count, inner, threshold, &tail);
        }
        if count > first {
            row *= outer.ratio_down(count);
        }
    }
    work.spend(last - first + 1);
    let rows = (last - first + 1) as f64;
    let relative_error = start.relative_error + 8.0 * ROUNDOFF * rows;
    // Left out: outer counts on both sides of the window, thresholds above the top, tails below the bottom, tails that
    // underflow. Each has at most the cut's mass under the first law.
    sum.bracket(owners, relative_error, 5.0 * shallow.exp())
}

/// A tail that starts below this would lose digits when it is carried along; it is left out.
const UNDERFLOW: f64 = 1e-250;

/// A tail that is carried along from row to row.
struct Walk {
    law: Binomial,
    threshold: u64,
    tail: Tail,
}

fn step(walk: &mut Option<Walk>, law: Binomial, threshold: u64, bottom: u64, work: &Work) -> Tail {
    let flat = threshold == 0 || threshold <= bottom;
    let reusable = walk.as_ref().is_some_and(|walk| walk.law.trials <= law.trials && walk.threshold >= threshold);
    match walk {
        Some(walk) if reusable && !flat => walk.move_to(law.trials, threshold, work),
        _ => {
            let far = threshold as f64 > law.mean() && law.probability(threshold).value < UNDERFLOW;
            if far {
                return Tail { mass: 0.0, excess: 0.0, at: 0.0, relative_error: 0.0, steps: 1 };
            }
            let tail = law.tail(threshold, bottom);
            work.spend(tail.steps);
            if !flat && tail.at < UNDERFLOW {
                // Far below the mean: the sums are right, but cannot be carried along.
                return tail;
            }
            *walk = (!flat).then_some(Walk { law, threshold, tail });
            tail
        }
    }
}

impl Walk {
    fn move_to(&mut self, trials: u64, threshold: u64, work: &Work) -> Tail {
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

    fn add_owner(&mut self) {
        let (n, t) = (self.law.trials, self.threshold);
        let Coin { success, failure } = self.law.coin;
        let below = self.tail.at * self.law.ratio_down(t);
        self.tail.excess += success * self.tail.mass;
        self.tail.mass += success * below;
        self.tail.at *= (n + 1) as f64 * failure / (n + 1 - t) as f64;
        self.law.trials = n + 1;
    }

    fn lower_threshold(&mut self) {
        self.tail.at *= self.law.ratio_down(self.threshold);
        self.tail.excess += self.tail.mass;
        self.tail.mass += self.tail.at;
        self.threshold -= 1;
    }
}
