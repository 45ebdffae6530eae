//! By how many more owners have one option than another.

use super::OptionEstimator;
use super::reading::Reading;
use super::weighted::Crowd;
use crate::error::{Error, Result};
use crate::estimate::interval::{Confidence, Interval, IntervalKind};
use crate::numeric::draws::Draws;
use crate::numeric::lattice_sum::{AddedNoise, LatticeSum, Side};
use crate::option_counts::Published;

/// By how many more owners have one option than another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DifferenceEstimate {
    /// The estimate: unbiased.
    pub estimate: f64,
    /// Its standard deviation at the estimated counts; an upper bound if owners may have both options.
    pub sd: f64,
    /// An interval that holds the truth at least as often as stated.
    pub interval: Interval,
}

/// The part of the miss probability that is spent on how many owners have either option (Berger and Boos).
const SHARE_FOR_EITHER: f64 = 0.01;
/// An exact law of more values than this is not formed.
const MOST_VALUES: f64 = 65_536.0;

impl OptionEstimator {
    /// By how many more owners have the option `first` than the option `second`, given by their indices from 0.
    ///
    /// The law of the two counts' difference depends on the difference and on how many owners have either option. So a difference is rejected
    /// only if it is for the least and for the greatest number of these in an exact interval of its own, whose miss probability
    /// is taken off; the law is the wider, the more there are. If owners may have both options, the interval
    /// is that of two simultaneous intervals.
    pub fn difference(
        &self,
        published: &Published,
        first: usize,
        second: usize,
        confidence: Confidence,
    ) -> Result<DifferenceEstimate> {
        if first == second {
            return Err(Error::request(format!("option {} is compared with itself", first + 1)));
        }
        let reading = self.read(published)?;
        if self.asked.counts() == 1 {
            return self.difference_of_two(published, first, confidence);
        }
        let [one, other] = [first, second].map(|option| self.union(published, &[option], confidence));
        let (one, other) = (one?, other?);
        let estimate = one.estimate - other.estimate;
        if self.count.is_counted() {
            let interval = Interval { low: estimate, high: estimate, kind: IntervalKind::Exact };
            return Ok(DifferenceEstimate { estimate, sd: 0.0, interval });
        }
        if self.asked.most() > 1 {
            let interval = self.difference_by_both(published, [first, second], confidence)?;
            // Whatever the correlation of two estimates is, it is not below −1.
            return Ok(DifferenceEstimate { estimate, sd: one.sd + other.sd, interval });
        }
        let sd = self.difference_sd(&reading, [first, second], [one.estimate, other.estimate]);
        let interval = self.difference_interval(published, &reading, [first, second], (estimate, confidence))?;
        Ok(DifferenceEstimate { estimate, sd, interval })
    }

    /// Between two options there is one count: the difference is twice that, less the owners.
    fn difference_of_two(
        &self,
        published: &Published,
        first: usize,
        confidence: Confidence,
    ) -> Result<DifferenceEstimate> {
        let found = self.union(published, &[first], confidence)?;
        let at = |holders: f64| 2.0 * holders - published.owners() as f64;
        let Interval { low, high, kind } = found.interval;
        let interval = Interval { low: at(low), high: at(high), kind };
        Ok(DifferenceEstimate { estimate: at(found.estimate), sd: 2.0 * found.sd, interval })
    }

    fn difference_by_both(&self, published: &Published, pair: [usize; 2], confidence: Confidence) -> Result<Interval> {
        let half = Confidence::of_miss(confidence.miss() / 2.0)?;
        let [one, other] = pair.map(|option| self.union(published, &[option], half));
        let (one, other) = (one?.interval, other?.interval);
        Ok(Interval { low: one.low - other.high, high: one.high - other.low, kind: IntervalKind::Exact })
    }

    fn difference_sd(&self, reading: &Reading, pair: [usize; 2], estimates: [f64; 2]) -> f64 {
        // Options without a weight do not enter, whatever their holders.
        let mut holders = vec![0.0; self.asked.counts()];
        let mut weights = vec![0.0; self.asked.counts()];
        for ((option, estimate), weight) in pair.into_iter().zip(estimates).zip([1.0, -1.0]) {
            (holders[option], weights[option]) = (estimate.clamp(0.0, reading.owners as f64), weight);
        }
        Crowd::new(&self.asked, reading.owners, &holders).variance(&weights).sqrt()
    }

    fn difference_interval(
        &self,
        published: &Published,
        reading: &Reading,
        pair: [usize; 2],
        (estimate, confidence): (f64, Confidence),
    ) -> Result<Interval> {
        let spent = Confidence::of_miss((SHARE_FOR_EITHER * confidence.miss()).max(Confidence::SMALLEST_MISS))?;
        let either = self.union(published, &pair, spent)?.interval;
        let test = DifferenceTest {
            masses: self.difference_masses(),
            noise: self.asked.noise().map(|&law| AddedNoise { law, draws: 4 }),
            owners: reading.owners,
            either: (either.low as u64, either.high.ceil() as u64),
            observed: reading.counts[pair[0]] - reading.counts[pair[1]],
            limit: (confidence.miss() - spent.miss()).max(Confidence::SMALLEST_MISS) / 2.0,
        };
        let most = test.either.1 as i64;
        let middle = (estimate.round() as i64).clamp(-most, most);
        let low = last_accepted(middle, -most, |difference| test.accepts(difference, Side::Upper));
        let high = last_accepted(middle, most, |difference| test.accepts(difference, Side::Lower));
        let (low, high) = ((low as f64).min(estimate), (high as f64).max(estimate));
        let all = reading.owners as f64;
        Ok(Interval { low: low.max(-all), high: high.min(all), kind: IntervalKind::Exact })
    }

    /// The probabilities of 1, −1 and 0 for an owner of the first option, of the second, and of any other.
    fn difference_masses(&self) -> [[f64; 3]; 3] {
        let law = self.asked.law();
        let (g, r) = (law.told().to_f64(), law.other().to_f64());
        let neither = (1.0 - g - r).max(0.0);
        [[g, r, neither], [r, g, neither], [r, r, 1.0 - 2.0 * r]]
    }
}

/// What an owner adds to the difference.
const STEPS: [i64; 3] = [1, -1, 0];

/// Tests of one difference after the other.
struct DifferenceTest {
    masses: [[f64; 3]; 3],
    noise: Option<AddedNoise>,
    owners: u64,
    /// The least and the greatest number of owners with either option.
    either: (u64, u64),
    observed: i128,
    limit: f64,
}

impl DifferenceTest {
    /// Whether what was observed, or more on this side, is likely enough for any number of owners with either option.
    fn accepts(&self, difference: i64, side: Side) -> bool {
        let size = difference.unsigned_abs();
        let parity = |either: u64| (either ^ size) & 1;
        let least = self.either.0.max(size);
        let least = least + parity(least);
        let Some(greatest) = self.either.1.min(self.owners).checked_sub(parity(self.either.1.min(self.owners))) else {
            return false;
        };
        let exceeds = |either: u64| self.tail(difference, either, side) > self.limit;
        least <= greatest && (exceeds(greatest) || (least < greatest && exceeds(least)))
    }

    fn tail(&self, difference: i64, either: u64, side: Side) -> f64 {
        let (size, rest) = (difference.unsigned_abs(), either - difference.unsigned_abs());
        let (more, less) = (rest / 2 + size, rest / 2);
        let (first, second) = if difference >= 0 { (more, less) } else { (less, more) };
        let counts = [first, second, self.owners - either];
        let draws = |index: usize| Draws { count: counts[index], values: &STEPS, masses: &self.masses[index] };
        let sum = LatticeSum { groups: [draws(0), draws(1), draws(2)], noise: self.noise };
        let far = self.limit < 1e-7;
        let tails = if sum.exact_size() <= MOST_VALUES {
            sum.exact(far).tails(self.observed)
        } else {
            sum.saddle_point(self.observed)
        };
        tails.on(side)
    }
}

/// The last number from `middle` to `end` that is accepted, if acceptance ends once; with one more after it, because numbers of
/// different parity are tested against different crowds.
fn last_accepted(middle: i64, end: i64, accepts: impl Fn(i64) -> bool) -> i64 {
    if accepts(end) {
        return end;
    }
    let (mut inside, mut outside) = (middle, end);
    while (outside - inside).abs() > 1 {
        let half = inside + (outside - inside) / 2;
        if accepts(half) { inside = half } else { outside = half }
    }
    let beyond = outside + (end - middle).signum();
    if (beyond - end) * (end - middle).signum() <= 0 && accepts(beyond) { beyond } else { inside }
}
