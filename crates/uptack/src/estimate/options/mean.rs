//! The mean of values that the options have.
//!
//! Over the owners who have an option with a value, the mean μ solves Σ(vₖ−μ)yₖ = 0. The counts of a choice sum to n, so that any
//! multiple λ of Σŷ − n may be taken off the estimate of the left side without a bias; the best one is
//! λ = 1ᵀΣw/1ᵀΣ1, w being the weights of the estimates and Σ their covariance. If all options have a value, that is the mean with its best centring.

use super::OptionEstimator;
use super::reading::Reading;
use super::weighted::Crowd;
use crate::contribution::Bins;
use crate::error::{Error, Result};
use crate::estimate::interval::{Confidence, Interval, IntervalKind};
use crate::option_counts::Published;

/// The mean of the options' values over the owners who have one of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanEstimate {
    /// The estimate. It is unbiased if every owner has an option with a value, and a ratio of unbiased estimates otherwise.
    pub estimate: f64,
    /// Its standard deviation at the estimated counts; it knows nothing of the width of bins.
    pub sd: f64,
    /// An interval by saddle points at the estimated counts. It is not exact; simulations show how often it holds the truth.
    pub interval: Interval,
    /// How many owners have an option with a value: all of them, or an estimate.
    pub owners: f64,
    /// At most how far the mean of midpoints is from that of the values themselves, on top of everything else; none for values that are
    /// not the midpoints of bins, or if the bins at the ends have no end.
    pub bin_error: Option<f64>,
}

impl OptionEstimator {
    /// The mean of one value for each option. Refused if an owner may have several options.
    ///
    /// ```
    /// use uptack::{Published, contribution::Contributions, estimate::{Confidence, options::OptionEstimator}};
    /// let asked: Contributions = "choice(k=3,r=0.01) + laplace(scale=2)".parse()?;
    /// let published: Published = serde_json::from_str(r#"{"owners":1000,"sums":[204,707,88]}"#).unwrap();
    /// let mean = OptionEstimator::new(&asked)?.mean(&published, &[1.0, 2.0, 3.0], Confidence::new(0.95)?)?;
    /// assert!((mean.estimate - 1.88).abs() < 0.01 && mean.interval.low < 1.88 && mean.interval.high > 1.88);
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn mean(&self, published: &Published, values: &[f64], confidence: Confidence) -> Result<MeanEstimate> {
        self.mean_among(published, &Vec::from_iter(values.iter().map(|&value| Some(value))), confidence)
    }

    /// The mean over the owners who have an option with a value; those of the other options do not count.
    pub fn mean_among(
        &self,
        published: &Published,
        values: &[Option<f64>],
        confidence: Confidence,
    ) -> Result<MeanEstimate> {
        self.check_values(values)?;
        let reading = self.read(published)?;
        let given = || values.iter().copied().flatten();
        let (least, most) = (given().fold(f64::INFINITY, f64::min), given().fold(f64::NEG_INFINITY, f64::max));
        if least == most {
            let owners = self.owners_with_value(&reading, values);
            let interval = Interval { low: least, high: least, kind: IntervalKind::Exact };
            return Ok(MeanEstimate { estimate: least, sd: 0.0, interval, owners, bin_error: None });
        }
        if self.asked.counts() == 1 {
            return self.mean_of_two(published, [values[0], values[1]].map(Option::unwrap_or_default), confidence);
        }
        MeanProblem::new(self, &reading, values)?.solve((least, most), confidence)
    }

    /// The mean by midpoints of bins. Without values for the ends, it is that of the owners whose value lies between the edges; with
    /// them, that of all owners with a value. Owners without a value never count.
    pub fn mean_of_bins(
        &self,
        published: &Published,
        bins: &Bins,
        ends: Option<(f64, f64)>,
        confidence: Confidence,
    ) -> Result<MeanEstimate> {
        let Some((under, over)) = ends else {
            let mean = self.mean_among(published, &bins.midpoints(), confidence)?;
            return Ok(MeanEstimate { bin_error: Some(bins.widest_half()), ..mean });
        };
        self.mean_among(published, &bins.midpoints_with_ends(under, over)?, confidence)
    }

    fn check_values(&self, values: &[Option<f64>]) -> Result<()> {
        let (has, wants) = (values.len(), self.asked.options());
        if has != wants {
            return Err(Error::request(format!("there are {has} values for {wants} options"))
                .with_hint("give one value for each option, in their order"));
        }
        if self.asked.most() > 1 {
            return Err(Error::request("an owner may have several options, so that owners do not have one value each"));
        }
        if let Some(index) = values.iter().position(|value| value.is_some_and(|value| !value.is_finite())) {
            return Err(Error::request(format!("the value of option {} is not a number", index + 1)));
        }
        if values.iter().all(Option::is_none) {
            return Err(Error::request("no option has a value"));
        }
        Ok(())
    }

    /// How many owners have an option with a value, by the unbiased estimates.
    fn owners_with_value(&self, reading: &Reading, values: &[Option<f64>]) -> f64 {
        if self.asked.is_choice() && values.iter().all(Option::is_some) {
            return reading.owners as f64;
        }
        let estimates = self.unbiased(reading);
        estimates.iter().zip(values).filter(|(_, value)| value.is_some()).map(|(estimate, _)| estimate).sum()
    }

    /// Of two options there is one count, whose interval is exact.
    fn mean_of_two(&self, published: &Published, values: [f64; 2], confidence: Confidence) -> Result<MeanEstimate> {
        let first = self.union(published, &[0], confidence)?;
        let all = published.owners() as f64;
        let at = |holders: f64| values[1] + (values[0] - values[1]) * holders / all;
        let (one, other) = (at(first.interval.low), at(first.interval.high));
        let interval = Interval { low: one.min(other), high: one.max(other), kind: IntervalKind::Exact };
        let sd = (values[0] - values[1]).abs() * first.sd / all;
        Ok(MeanEstimate { estimate: at(first.estimate), sd, interval, owners: all, bin_error: None })
    }
}

/// How precisely the ends of an interval are found, in standard deviations. Finer takes longer, and coarser makes intervals wider.
const ROUGHLY: f64 = 1e-3;

/// Σ(vₖ−μ)ŷₖ − λ(μ)(Σŷ − n) as a line in μ.
struct MeanProblem<'a> {
    estimator: &'a OptionEstimator,
    owners: u64,
    /// Where the counts are evaluated that only the error depends on.
    holders: Vec<f64>,
    /// The weights of the estimates at μ are `at_zero` − μ·`per_unit`.
    at_zero: Vec<f64>,
    per_unit: Vec<f64>,
    /// The left side is `moment` − μ·`total`.
    moment: f64,
    total: f64,
}

impl<'a> MeanProblem<'a> {
    fn new(estimator: &'a OptionEstimator, reading: &Reading, values: &[Option<f64>]) -> Result<Self> {
        let estimates = estimator.unbiased(reading);
        let holders = estimator.consistent(reading.owners, &estimates)?;
        let valued: Vec<f64> = values.iter().map(|value| value.unwrap_or(0.0)).collect();
        let counted: Vec<f64> = values.iter().map(|value| f64::from(u8::from(value.is_some()))).collect();
        let owners = reading.owners;
        let centring = Centring::new(estimator, owners, &holders, &estimates);
        let (at_zero, moment) = centring.apply(&valued, &estimates);
        let (per_unit, total) = if estimator.asked.is_choice() && values.iter().all(Option::is_some) {
            (vec![0.0; values.len()], owners as f64)
        } else {
            centring.apply(&counted, &estimates)
        };
        if total <= 0.0 {
            return Err(Error::counts(
                "the estimated number of owners with a value is not above 0, so they have no mean",
            )
            .with_hint("coins and noise hide so few owners; ask more of them, or for wider ranges"));
        }
        Ok(Self { estimator, owners, holders, at_zero, per_unit, moment, total })
    }

    fn solve(&self, (least, most): (f64, f64), confidence: Confidence) -> Result<MeanEstimate> {
        let estimate = self.moment / self.total;
        let inside = estimate.clamp(least, most);
        let sd = self.crowd().variance(&self.weights(inside)).sqrt() / self.total;
        let tail = confidence.miss() / 2.0;
        let precision = ROUGHLY * sd;
        let is_too_low = |mean| self.left_side(mean) > self.reach(mean, tail, 1.0);
        let is_too_high = |mean| -self.left_side(mean) > self.reach(mean, tail, -1.0);
        let (low, high) = if self.is_of_everybody() {
            // How far the left side reaches does not depend on the mean.
            let [above, below] = [1.0, -1.0].map(|direction| self.reach(inside, tail, direction) / self.total);
            ((estimate - above).clamp(least, inside), (estimate + below).clamp(inside, most))
        } else {
            (last_accepted(inside, least, precision, is_too_low), last_accepted(inside, most, precision, is_too_high))
        };
        let interval = Interval { low, high, kind: IntervalKind::Score };
        Ok(MeanEstimate { estimate, sd, interval, owners: self.total, bin_error: None })
    }

    /// Whether every owner has an option with a value: then the weights do not depend on the mean.
    fn is_of_everybody(&self) -> bool {
        self.per_unit.iter().all(|&weight| weight == 0.0)
    }

    fn crowd(&self) -> Crowd<'_> {
        Crowd::new(&self.estimator.asked, self.owners, &self.holders)
    }

    fn left_side(&self, mean: f64) -> f64 {
        self.moment - mean * self.total
    }

    fn weights(&self, mean: f64) -> Vec<f64> {
        self.at_zero.iter().zip(&self.per_unit).map(|(at_zero, per_unit)| at_zero - mean * per_unit).collect()
    }

    /// How far above 0, or for −1 below it, the left side is with probability `tail` if this is the mean.
    ///
    /// The counts in its law are estimated, so the variance is raised by its own standard deviation; and as the law is
    /// one of whole numbers, half of the smallest step is added.
    fn reach(&self, mean: f64, tail: f64, direction: f64) -> f64 {
        let weights: Vec<f64> = self.weights(mean).iter().map(|weight| direction * weight).collect();
        let crowd = self.crowd();
        let variance = crowd.variance(&weights);
        if variance <= 0.0 {
            return 0.0;
        }
        let doubt = crowd.variance(&crowd.variance_slopes(&weights)).sqrt();
        let step = 0.5 * smallest_gap(&weights) / self.estimator.asked.law().telling().to_f64();
        crowd.upper_quantile(&weights, tail) * (1.0 + doubt / variance).sqrt() + step
    }
}

/// What is known of the sum of all estimates: its mean n, and how it varies with each of them.
struct Centring {
    /// Σ1; 0 if the true sum is not known, or if the estimates have it exactly.
    with_sum: Vec<f64>,
    /// Σŷ − n.
    excess: f64,
}

impl Centring {
    fn new(estimator: &OptionEstimator, owners: u64, holders: &[f64], estimates: &[f64]) -> Self {
        let asked = &estimator.asked;
        // Without noise and silence the estimates of a choice have the sum exactly, and nothing can be gained.
        let is_exact = asked.noise().is_none() && asked.law().silent().numerator() == 0;
        let with_sum = if asked.is_choice() && !is_exact {
            Crowd::new(asked, owners, holders).covariance_times(&vec![1.0; holders.len()])
        } else {
            vec![0.0; holders.len()]
        };
        Self { with_sum, excess: estimates.iter().sum::<f64>() - owners as f64 }
    }

    /// The weights less the best share of the sum, and what they estimate.
    fn apply(&self, weights: &[f64], estimates: &[f64]) -> (Vec<f64>, f64) {
        let variance: f64 = self.with_sum.iter().sum();
        let share = if variance > 0.0 { dot(weights, &self.with_sum) / variance } else { 0.0 };
        let estimate = dot(weights, estimates) - share * self.excess;
        (weights.iter().map(|weight| weight - share).collect(), estimate)
    }
}

/// The last mean from `inside` to `end` that is not rejected, to within `precision` and rather too far.
fn last_accepted(inside: f64, end: f64, precision: f64, is_rejected: impl Fn(f64) -> bool) -> f64 {
    if !is_rejected(end) {
        return end;
    }
    let (mut accepted, mut rejected) = (inside, end);
    while (rejected - accepted).abs() > precision {
        let middle = 0.5 * (accepted + rejected);
        if middle == accepted || middle == rejected {
            break;
        }
        if is_rejected(middle) { rejected = middle } else { accepted = middle }
    }
    rejected
}

/// The smallest difference of two different weights.
fn smallest_gap(weights: &[f64]) -> f64 {
    let mut sorted = weights.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
    let gaps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.filter(|gap| *gap > 1e-9 * (most - least)).fold(most - least, f64::min)
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}
