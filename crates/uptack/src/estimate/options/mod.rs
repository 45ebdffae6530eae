//! From published counts of contributions to how many owners have each option.
//!
//! Each count is a noisy count of its own, with the law of
//! [`Contributions::count_law`], so that its estimate and its intervals are those of
//! [`Estimator`] for a yes/no question. Everything that needs several counts at once has a file here: sets of options, the
//! difference of two, means and quantiles. `docs/contributions.md` has the formulas.

mod consistency;
mod difference;
mod mean;
mod quantiles;
mod reading;
mod sets;
mod weighted;

pub use difference::DifferenceEstimate;
pub use mean::MeanEstimate;
pub use quantiles::QuantileEstimate;
pub use sets::SetEstimate;

use std::collections::HashMap;

use super::combined::{Estimate, Estimator};
use super::interval::{Confidence, Interval, IntervalKind};
use super::many::{Sharing, simultaneous};
use crate::contribution::Contributions;
use crate::error::Result;
use crate::option_counts::Published;
use reading::Reading;

/// Estimates how many owners have each option, from what one mechanism of contributions publishes.
///
/// ```
/// use uptack::{Published, contribution::Contributions, estimate::{Confidence, IntervalKind, options::OptionEstimator}};
/// let asked: Contributions = "choice(k=3,r=0.01) + laplace(scale=2)".parse()?;
/// let published: Published = serde_json::from_str(r#"{"owners":1000,"sums":[204,707,88]}"#).unwrap();
/// let estimator = OptionEstimator::new(&asked)?;
/// let estimates = estimator.estimate(&published, Confidence::new(0.95)?, IntervalKind::Auto)?;
/// let first = &estimates.options[0];
/// assert!((first.estimate - 200.0).abs() < 1e-9 && (first.sd - 5.407).abs() < 1e-3);
/// assert!(first.interval.low < 200.0 && first.simultaneous.low < first.interval.low);
/// let consistent: f64 = estimates.options.iter().map(|option| option.consistent).sum();
/// assert!((consistent - 1000.0).abs() < 1e-9);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OptionEstimator {
    asked: Contributions,
    /// For one count by itself.
    count: Estimator,
}

/// How many owners have each option.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionEstimates {
    /// How many owners there are.
    pub owners: u64,
    /// The confidence of each interval, and of all simultaneous ones together.
    pub confidence: Confidence,
    /// The options, in order.
    pub options: Vec<OptionEstimate>,
    /// What a reader of these numbers should know, one sentence each; empty if there is nothing to say.
    pub notes: Vec<String>,
}

/// How many owners have one option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptionEstimate {
    /// The estimate: unbiased, and not clipped to between 0 and the number of owners.
    pub estimate: f64,
    /// Its standard deviation at the estimate.
    pub sd: f64,
    /// The part of `sd` that would be left if every draw that does not depend on the truth were flagged, and without noise.
    pub sampling_sd: f64,
    /// The part that the noise of both aggregators adds; 0 without noise.
    pub aggregator_sd: f64,
    /// The rest, the price of the owners' own coins; the squares of the three add up to that of `sd`.
    pub privacy_sd: f64,
    /// An interval for this option by itself.
    pub interval: Interval,
    /// An exact interval; those of all options hold at once with the stated confidence.
    pub simultaneous: Interval,
    /// The estimate made consistent with the others. For a choice these are the nearest numbers to the estimates that are not negative
    /// and sum to the owners; otherwise each estimate is clipped to between 0 and the number of owners.
    pub consistent: f64,
    /// The estimate as a share of the owners.
    pub share: f64,
}

/// What one published count says by itself.
#[derive(Clone)]
struct CountEstimate {
    estimate: Estimate,
    interval: Interval,
    simultaneous: Interval,
}

impl OptionEstimator {
    /// An estimator for this mechanism. One whose counts do not depend on the truth is refused.
    pub fn new(asked: &Contributions) -> Result<Self> {
        Ok(Self { asked: asked.clone(), count: Estimator::new(&asked.count_channel())? })
    }

    /// The estimate of every option. `kind` is that of the intervals of single options; simultaneous ones are always exact.
    ///
    /// Options with the same published number share all that is computed, so that the cost grows with how many different numbers
    /// there are. Of two options only the first is counted, and the second has the mirrored numbers.
    pub fn estimate(
        &self,
        published: &Published,
        confidence: Confidence,
        kind: IntervalKind,
    ) -> Result<OptionEstimates> {
        let reading = self.read(published)?;
        let mut options = self.each(&reading, confidence, kind)?;
        self.make_consistent(reading.owners, &mut options)?;
        let notes = notes(&options, reading.owners, self.asked.is_choice());
        Ok(OptionEstimates { owners: reading.owners, confidence, options, notes })
    }

    /// The standard deviation of the estimate of an option that `holders` of `owners` have.
    ///
    /// ```
    /// use uptack::{contribution::Contributions, estimate::options::OptionEstimator};
    /// let asked: Contributions = "choice(k=3,r=0.01) + laplace(scale=2)".parse()?;
    /// // √(y·g(1−g) + (n−y)·r(1−r) + 2V)/(g − r), V = 2a/(1−a)², a = e^(−1/2).
    /// assert!((OptionEstimator::new(&asked)?.sd(1000, 200.0)? - 5.407_291_907_931_956).abs() < 1e-9);
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn sd(&self, owners: u64, holders: f64) -> Result<f64> {
        self.count.sd(owners, holders)
    }

    /// The mechanism.
    pub fn asked(&self) -> &Contributions {
        &self.asked
    }

    /// The estimator of one count by itself.
    pub(crate) fn count(&self) -> &Estimator {
        &self.count
    }

    /// The confidence that each of the counts needs for all of them to hold at once.
    pub(crate) fn shared_confidence(&self, all: Confidence) -> Result<Confidence> {
        simultaneous(all, self.asked.counts(), Sharing::Bonferroni).map_err(|error| {
            error.with_hint(format!("{} intervals at once cannot be as sure as that", self.asked.counts()))
        })
    }

    /// The options by themselves; what is consistent is still the estimate.
    fn each(&self, reading: &Reading, confidence: Confidence, kind: IntervalKind) -> Result<Vec<OptionEstimate>> {
        let shared = self.shared_confidence(confidence)?;
        let mut seen: HashMap<i128, CountEstimate> = HashMap::new();
        let mut options = Vec::with_capacity(self.asked.options());
        for &count in &reading.counts {
            let one = seen.entry(count).or_insert_with(|| self.one(reading.owners, count, (confidence, kind), shared));
            options.push(OptionEstimate::of(one, reading.owners));
        }
        if options.len() < self.asked.options() {
            options.push(options[0].mirrored(reading.owners));
        }
        Ok(options)
    }

    fn one(
        &self,
        owners: u64,
        count: i128,
        (confidence, kind): (Confidence, IntervalKind),
        shared: Confidence,
    ) -> CountEstimate {
        let observation = self.count.observe_checked(owners, count);
        CountEstimate {
            estimate: self.count.estimate_observed(&observation),
            interval: self.count.interval(&observation, confidence, kind),
            simultaneous: self.count.interval(&observation, shared, IntervalKind::Exact),
        }
    }

    /// The unbiased estimate of every option.
    fn unbiased(&self, reading: &Reading) -> Vec<f64> {
        let one = |&count: &i128| self.count.solve(&self.count.observe_checked(reading.owners, count)).0;
        let mut estimates: Vec<f64> = reading.counts.iter().map(one).collect();
        if estimates.len() < self.asked.options() {
            estimates.push(reading.owners as f64 - estimates[0]);
        }
        estimates
    }
}

impl OptionEstimate {
    fn of(count: &CountEstimate, owners: u64) -> Self {
        let CountEstimate { estimate, interval, simultaneous } = count;
        Self {
            estimate: estimate.estimate,
            sd: estimate.sd,
            sampling_sd: estimate.sampling_sd,
            aggregator_sd: estimate.aggregator_sd,
            privacy_sd: estimate.privacy_sd,
            interval: *interval,
            simultaneous: *simultaneous,
            consistent: estimate.estimate,
            share: estimate.estimate / owners as f64,
        }
    }

    /// The other of two options: everybody else.
    fn mirrored(&self, owners: u64) -> Self {
        Self {
            estimate: owners as f64 - self.estimate,
            interval: mirrored(self.interval, owners),
            simultaneous: mirrored(self.simultaneous, owners),
            consistent: owners as f64 - self.consistent,
            share: 1.0 - self.share,
            ..*self
        }
    }
}

/// The interval for everybody else.
fn mirrored(interval: Interval, owners: u64) -> Interval {
    let all = owners as f64;
    Interval { low: all - interval.high, high: all - interval.low, kind: interval.kind }
}

/// Why estimates are where no number of owners can be.
fn notes(options: &[OptionEstimate], owners: u64, is_choice: bool) -> Vec<String> {
    let below = options.iter().filter(|option| option.estimate < 0.0).count();
    let above = options.iter().filter(|option| option.estimate > owners as f64).count();
    let remedy = if is_choice {
        "The consistent estimates are not negative and sum to the owners."
    } else {
        "The consistent estimates are clipped to that range."
    };
    let mut notes = Vec::new();
    if below > 0 {
        notes.push(format!(
            "{} below 0: coins and noise move a small count in either direction, and cutting it off at 0 would bias it. {remedy}",
            some_of(below, options.len())
        ));
    }
    if above > 0 {
        notes.push(format!(
            "{} above the {owners} owners: coins and noise move a large count in either direction, and cutting it off would bias it. {remedy}",
            some_of(above, options.len())
        ));
    }
    notes
}

/// "1 of 12 estimates is", "3 of 12 estimates are".
fn some_of(some: usize, all: usize) -> String {
    let (estimates, verb) = (if all == 1 { "estimate" } else { "estimates" }, if some == 1 { "is" } else { "are" });
    format!("{some} of {all} {estimates} {verb}")
}

#[cfg(test)]
mod tests;
