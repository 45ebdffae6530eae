//! Cumulative counts and quantiles of options that have an order.
//!
//! "At most option j" is a set of options, whose count has an exact law. The q-quantile is the first option j with Yⱼ ≥ ⌈qN⌉, Yⱼ owners having
//! one of the options up to j, and N owners any of them. An option is dropped if a test shows that Yⱼ is too small, or that
//! Yⱼ₋₁ is already enough. Only the true one can be dropped wrongly, so that the tests need no correction for how many options there are.

use super::OptionEstimator;
use super::reading::Reading;
use crate::error::{Error, Result};
use crate::estimate::combined::Estimator;
use crate::estimate::interval::Confidence;
use crate::numeric::lattice_sum::Side;
use crate::option_counts::Published;

/// The option at which a share of the owners is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileEstimate {
    /// Which share.
    pub q: f64,
    /// The index of the option, by the consistent estimates.
    pub option: usize,
    /// The first option of the interval.
    pub low: usize,
    /// The last option of the interval.
    pub high: usize,
}

/// The part of the miss probability that is spent on how many owners have any of the options, if that is not known.
const SHARE_FOR_TOTAL: f64 = 0.1;
/// So many standard deviations away nothing is left of any tail: noise falls by more than e^−50.
const CERTAIN: f64 = 40.0;

/// How many owners have any of the options in order.
#[derive(Clone, Copy)]
struct Total {
    low: u64,
    high: u64,
}

impl OptionEstimator {
    /// Quantiles over all options in their order. For a choice they are over all owners, otherwise over those who have any option.
    pub fn quantiles(
        &self,
        published: &Published,
        shares: &[f64],
        confidence: Confidence,
    ) -> Result<Vec<QuantileEstimate>> {
        self.quantiles_among(published, &Vec::from_iter(0..self.asked.options()), shares, confidence)
    }

    /// Quantiles over the owners who have one of some options, which are given in the order of their values. Owners with another option,
    /// such as *no value*, do not count.
    ///
    /// The interval is the hull of all options that are not dropped. It holds the true quantile with at least the stated confidence.
    pub fn quantiles_among(
        &self,
        published: &Published,
        ordered: &[usize],
        shares: &[f64],
        confidence: Confidence,
    ) -> Result<Vec<QuantileEstimate>> {
        if let Some(q) = shares.iter().find(|q| !(0.0..=1.0).contains(*q)) {
            return Err(Error::request(format!("{q} is not a share between 0 and 1"))
                .with_hint("the median is the quantile at 0.5"));
        }
        let cumulative = self.cumulative_among(published, ordered)?;
        let scan = Scan::new(self, published, ordered, confidence)?;
        Ok(shares.iter().map(|&q| scan.quantile(q, &cumulative)).collect())
    }

    /// How many owners have one of the options up to each of them, by the consistent estimates: it never falls.
    pub fn cumulative(&self, published: &Published) -> Result<Vec<f64>> {
        self.cumulative_among(published, &Vec::from_iter(0..self.asked.options()))
    }

    /// The same for some options, in this order.
    pub fn cumulative_among(&self, published: &Published, ordered: &[usize]) -> Result<Vec<f64>> {
        self.counted_set(ordered)?;
        let reading = self.read(published)?;
        let consistent = self.consistent(reading.owners, &self.unbiased(&reading))?;
        let mut sum = 0.0;
        let add = |&option: &usize| {
            sum += consistent[option];
            sum
        };
        Ok(ordered.iter().map(add).collect())
    }
}

/// The tests of one publication, for any share.
struct Scan<'a> {
    estimator: &'a OptionEstimator,
    reading: Reading,
    ordered: &'a [usize],
    total: Total,
    /// What each of the two tests may miss.
    each_miss: f64,
}

impl<'a> Scan<'a> {
    fn new(
        estimator: &'a OptionEstimator,
        published: &Published,
        ordered: &'a [usize],
        confidence: Confidence,
    ) -> Result<Self> {
        let reading = estimator.read(published)?;
        let everybody = estimator.asked.is_choice() && ordered.len() == estimator.asked.options();
        let (total, miss) = if everybody {
            (Total { low: reading.owners, high: reading.owners }, confidence.miss())
        } else {
            let spent = SHARE_FOR_TOTAL * confidence.miss();
            let interval = estimator.union(published, ordered, Confidence::of_miss(spent)?)?.interval;
            (Total { low: interval.low as u64, high: interval.high.ceil() as u64 }, confidence.miss() - spent)
        };
        Ok(Self { estimator, reading, ordered, total, each_miss: miss / 2.0 })
    }

    fn quantile(&self, q: f64, cumulative: &[f64]) -> QuantileEstimate {
        let last = self.ordered.len() - 1;
        let target = q * cumulative[last];
        let point = cumulative.iter().position(|&sum| sum >= target * (1.0 - 1e-12) && sum > 0.0).unwrap_or(last);
        let (least, most) = (rank(q, self.total.low), rank(q, self.total.high));
        // The quantile is after an option at which too few are reached, and not after one at which enough are.
        let is_after = |index: usize| index < last && self.shows(index, least, Side::Lower);
        let is_reached = |index: usize| self.shows(index, most - 1, Side::Upper);
        let low = (0..=last).find(|&index| !is_after(index)).unwrap_or(last).min(point);
        let high = (0..last).rev().find(|&index| !is_reached(index)).map_or(0, |index| index + 1).max(point);
        QuantileEstimate { q, option: self.ordered[point], low: self.ordered[low], high: self.ordered[high] }
    }

    /// Whether the count of the options up to `index` is on this side of what `holders` owners would give, so far that it shows that
    /// there are fewer or more.
    fn shows(&self, index: usize, holders: u64, side: Side) -> bool {
        let set = self.estimator.counted_set(&self.ordered[..=index]).expect("the whole set has been checked");
        let owners = self.reading.owners;
        let (holders, side) = if set.is_rest { (owners - holders, side.opposite()) } else { (holders, side) };
        if set.counts.is_empty() {
            // Everybody has one of these options.
            return false;
        }
        let estimator = self.estimator.set_estimator(set.counts.len()).expect("a set is as informative as one option");
        let sum = self.reading.sum_of(&set.counts);
        is_rejected(&estimator, (owners, holders), sum, side, self.each_miss)
    }
}

/// The rank of the quantile at `q` of this many owners.
fn rank(q: f64, owners: u64) -> u64 {
    ((q * owners as f64).ceil() as u64).clamp(1, owners.max(1))
}

/// Whether a sum at least as far on one side has a probability of at most `miss`, if `holders` of `owners` are in the set.
fn is_rejected(estimator: &Estimator, (owners, holders): (u64, u64), sum: i128, side: Side, miss: f64) -> bool {
    let observation = estimator.observe_checked(owners, sum);
    let distance = estimator.solve(&observation).0 - holders as f64;
    if estimator.is_counted() {
        return side.sign() * distance > 0.0;
    }
    let sd = estimator.sd(owners, holders as f64).unwrap_or(f64::INFINITY);
    if distance.abs() > CERTAIN * sd {
        return side.sign() * distance > 0.0;
    }
    let zone = estimator.zone_of(owners, holders);
    !zone.tail_exceeds(holders, zone.statistic(estimator.counts(&observation)), side, miss)
}
