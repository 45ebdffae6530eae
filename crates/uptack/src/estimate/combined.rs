//! The combined estimator: generalized least squares over all that the tallies show.

use super::least_squares::{LeastSquares, Weights};
use super::observation::{Observation, Reader, Statistic, probability_of};
use crate::channel::{Bin, Cell, Channel};
use crate::error::{Error, Result};
use crate::noise::NoiseLaw;
use crate::numeric::lattice_sum::AddedNoise;
use crate::tally::Tally;

/// Estimates the number of yes-owners from tallies of one channel.
///
/// The cells of equal likelihood ratio are one class, and the classes' counts are sufficient. Their mean and
/// covariance are linear in the number of yes-owners; the estimate is the generalized least squares solution, with
/// the covariance taken at the estimate itself, clipped to between ½ and owners − ½. (At 0 or at all owners the
/// covariance of a one-sided class is singular, and a pseudo-inverse would throw the informative count away.)
///
/// ```
/// use uptack::{Mechanism, Tally, estimate::Estimator};
/// let channel = "normal-form(f=0.5, r=1e-4)".parse::<Mechanism>()?.channel();
/// let tally: Tally = serde_json::from_str(r#"{"answers":[{"1":260,"0":24740,"⊥":25000}]}"#).unwrap();
/// let estimate = Estimator::new(&channel)?.estimate(&tally)?;
/// assert!((estimate.estimate - 510.3).abs() < 0.1);
/// assert!((estimate.sd - 22.9).abs() < 0.1);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Estimator {
    pub(super) reader: Reader,
    bins: Vec<Bin>,
    source: CountKind,
    /// The statistics that are combined.
    system: LeastSquares,
    /// A statistic that counts the yes-owners and nobody else, if there is one.
    counted: Option<usize>,
    /// τ, the share of draws that depend on the truth.
    dependence: f64,
    /// How many draws of noise the count has, if it has noise: one by each aggregator for each published number.
    noise_draws: u32,
    /// The variance of all that noise; 0 without noise.
    noise_variance: f64,
}

/// The draws of noise of one published number.
const DRAWS_PER_SUM: u32 = 2;

/// What kind of statistics are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountKind {
    Classes,
    Bins,
}

/// The estimated number of yes-owners.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// How many owners answered.
    pub owners: u64,
    /// The estimate, not clipped to between 0 and `owners`. It is unbiased if one count is used, as with noise and wherever an owner
    /// has two answers; otherwise the counts' weights depend on the estimate, which matters if `few_answers` says so.
    pub estimate: f64,
    /// Its standard deviation at the estimate.
    pub sd: f64,
    /// The part of `sd` that would be left if every draw that does not depend on the truth were flagged, and without noise.
    pub sampling_sd: f64,
    /// The part that the noise of both aggregators adds; 0 without noise.
    pub aggregator_sd: f64,
    /// The rest, the price of the owners' own coins; the squares of the three add up to that of `sd`.
    pub privacy_sd: f64,
    /// How many answers the estimate rests on, if they are too few for its weights: then it is biased, and its error larger than
    /// `sd`. The interval does not depend on either.
    pub few_answers: Option<u64>,
    /// The estimate from each bin alone.
    pub by_bin: Vec<BinEstimate>,
}

/// With fewer answers than this, weights that depend on the estimate bias it. With 50, the error of `sampling` and `cancelling` is
/// still up to 2 % larger than stated; with a dozen 6 %, and with four 13 %.
const FEW_ANSWERS: i128 = 50;

/// The estimate from one bin alone: the paper's three lemmas, for any bin of any mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct BinEstimate {
    /// Which bin.
    pub bin: Bin,
    /// The estimate, or none if the bin does not depend on the truth.
    pub estimate: Option<f64>,
    /// Its standard deviation, in owners.
    pub sd: Option<f64>,
    /// σ of the bin's count, as the paper has it, and with the noise of both aggregators if they add any.
    pub sigma: f64,
    /// The estimates from the count − σ and + σ, the smaller one first.
    pub bounds: Option<(f64, f64)>,
}

impl Estimator {
    /// An estimator for this channel. A channel whose tallies do not depend on the truth is refused.
    ///
    /// With noise, the observation is a published sum, and the estimate is (sum − owners·q)/(p − q).
    ///
    /// ```
    /// use uptack::{Mechanism, estimate::Estimator};
    /// let channel = "randomized-response(t=0.999) + laplace(scale=1)".parse::<Mechanism>()?.channel();
    /// let estimator = Estimator::new(&channel)?;
    /// let estimate = estimator.estimate_observed(&estimator.observe_sum(50_000, 549)?);
    /// assert!((estimate.estimate - 500.0).abs() < 1.0);
    /// assert!((estimate.aggregator_sd - 1.923).abs() < 0.001);
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn new(channel: &Channel) -> Result<Self> {
        Self::of_sums(channel, 1)
    }

    /// An estimator from the sum of this many published numbers, each with its noise; without noise, the same as for one.
    pub(super) fn of_sums(channel: &Channel, sums: u32) -> Result<Self> {
        let reader = Reader::new(channel);
        let source = if reader.classes_visible { CountKind::Classes } else { CountKind::Bins };
        if !source.statistics(&reader).iter().any(Statistic::is_informative) {
            return Err(Error::parameter("the tallies of this mechanism do not depend on the truth")
                .with_hint("yes-owners and no-owners must answer by different laws"));
        }
        Ok(match channel.noise() {
            None => Self::of_tallies(channel, reader, source),
            Some(&law) => Self::of_sum(channel, reader, source, AddedNoise { law, draws: DRAWS_PER_SUM * sums }),
        })
    }

    fn of_tallies(channel: &Channel, reader: Reader, source: CountKind) -> Self {
        let statistics = source.statistics(&reader);
        Self {
            bins: channel.published_bins(),
            source,
            system: LeastSquares::new(channel, statistics),
            counted: statistics.iter().position(Statistic::counts_yes),
            dependence: dependence(channel),
            noise_draws: 0,
            noise_variance: 0.0,
            reader,
        }
    }

    fn of_sum(channel: &Channel, reader: Reader, source: CountKind, noise: AddedNoise) -> Self {
        let statistics = source.statistics(&reader);
        Self {
            bins: channel.published_bins(),
            source,
            system: LeastSquares::of_first(channel, statistics),
            counted: None,
            dependence: statistics[0].difference().abs(),
            noise_draws: noise.draws,
            noise_variance: f64::from(noise.draws) * noise.law.variance(),
            reader,
        }
    }

    /// The estimate with its standard deviation.
    pub fn estimate(&self, tally: &Tally) -> Result<Estimate> {
        Ok(self.estimate_observed(&self.observe(tally)?))
    }

    /// Reads a tally, once for several questions about it. A channel with noise has none, and refuses it.
    pub fn observe(&self, tally: &Tally) -> Result<Observation> {
        self.reader.read(tally)
    }

    /// Reads the published sum of a channel with noise.
    ///
    /// It refuses if the channel has no noise, and if the sum lies farther outside 0 to `owners` than
    /// [`NoiseLaw::plausible_reach`](crate::NoiseLaw::plausible_reach).
    pub fn observe_sum(&self, owners: u64, sum: i64) -> Result<Observation> {
        self.reader.read_sum(owners, sum)
    }

    /// The same from the counts of cells, in the channel's order; with noise, the sum as it is if the noise happens to be 0.
    pub fn observe_cells(&self, cells: &[u64]) -> Observation {
        self.reader.read_cells(cells)
    }

    /// The estimate from an observation.
    pub fn estimate_observed(&self, observation: &Observation) -> Estimate {
        let owners = observation.owners as f64;
        let (estimate, variance) = self.solve(observation);
        let yes = estimate.clamp(0.0, owners);
        let aggregators = self.aggregator_variance();
        let owners_own = (variance - aggregators).max(0.0);
        let sampling = self.sampling_variance(owners, yes).min(owners_own);
        Estimate {
            owners: observation.owners,
            estimate,
            sd: variance.sqrt(),
            sampling_sd: sampling.sqrt(),
            aggregator_sd: aggregators.sqrt(),
            privacy_sd: (owners_own - sampling).max(0.0).sqrt(),
            few_answers: self.few_answers(observation),
            by_bin: self.by_bin(observation, yes),
        }
    }

    /// The answers that are combined with weights that depend on the estimate, if they are few.
    fn few_answers(&self, observation: &Observation) -> Option<u64> {
        // One count has one weight. Bins count an owner once per answer, but are combined only where classes cannot be told apart.
        if self.counted.is_some() || self.system.chosen.len() < 2 || self.source == CountKind::Bins {
            return None;
        }
        let answers: i128 = self.system.chosen.iter().map(|&index| observation.classes[index]).sum();
        u64::try_from(answers).ok().filter(|_| answers < FEW_ANSWERS)
    }

    /// The standard deviation of the estimate at `yes` of `owners`.
    pub fn sd(&self, owners: u64, yes: f64) -> Result<f64> {
        check_yes(owners, yes)?;
        if self.counted.is_some() {
            return Ok(0.0);
        }
        let (yes, no) = away_from_ends(owners, yes);
        Ok(self.weights(yes, no).variance().sqrt())
    }

    /// The standard deviation of the estimate from each bin alone, at `yes` of `owners`; none if the bin does not
    /// depend on the truth.
    pub fn bin_sds(&self, owners: u64, yes: f64) -> Result<Vec<Option<f64>>> {
        check_yes(owners, yes)?;
        let variance =
            |bin: &Statistic| bin.variance(owners as f64, yes) + self.noise_variance / bin.difference().powi(2);
        let sd = |bin: &Statistic| bin.is_informative().then(|| variance(bin).sqrt());
        Ok(self.reader.bins.iter().map(sd).collect())
    }

    /// The estimate alone and its variance.
    pub(crate) fn solve(&self, observation: &Observation) -> (f64, f64) {
        match self.counted {
            Some(counted) => (self.counts(observation)[counted] as f64, 0.0),
            None => self.solve_system(observation),
        }
    }

    /// The solution of the system with the covariance taken at the solution itself, by fixed-point iteration.
    fn solve_system(&self, observation: &Observation) -> (f64, f64) {
        let owners = observation.owners as f64;
        let (low, high) = self.clipping(owners);
        let excess = self.excess(observation);
        let mut at = owners / 2.0;
        let mut solution = (at, f64::INFINITY);
        for round in 0..200 {
            solution = self.solve_at(owners, at, &excess);
            let next = solution.0.clamp(low, high);
            if (next - at).abs() <= 1e-10 * solution.1.sqrt().max(1e-6) {
                break;
            }
            // A cycle, should there be one, is broken by meeting half way.
            at = if round < 50 { next } else { 0.5 * (at + next) };
        }
        solution
    }

    /// The estimate and its variance with the covariance at `yes` of `owners`.
    fn solve_at(&self, owners: f64, yes: f64, excess: &[f64]) -> (f64, f64) {
        let weights = self.weights(yes, owners - yes);
        (weights.combine(excess) / weights.information, weights.variance())
    }

    /// The least and the greatest number of yes-owners at which the covariance is taken. Noise has a variance whatever
    /// the crowd; without it there may be none at the very ends.
    fn clipping(&self, owners: f64) -> (f64, f64) {
        let room = if self.noise_variance > 0.0 { 0.0 } else { 0.5f64.min(owners / 2.0) };
        (room, owners - room)
    }

    /// The standardized residual of the hypothesis that `yes` owners are yes-owners; it falls in `yes`.
    pub(super) fn score(&self, observation: &Observation, excess: &[f64], yes: f64) -> f64 {
        let (yes, no) = away_from_ends(observation.owners, yes);
        let weights = self.weights(yes, no);
        (weights.combine(excess) - yes * weights.information) / weights.information.sqrt()
    }

    /// Count − owners·q of the combined statistics.
    pub(super) fn excess(&self, observation: &Observation) -> Vec<f64> {
        let (statistics, counts) = (self.statistics(), self.counts(observation));
        let excess = |&index: &usize| statistics[index].excess(counts[index], observation.owners);
        self.system.chosen.iter().map(excess).collect()
    }

    /// Whether the two truths never give the same answer, so that the yes-owners are simply counted.
    pub(super) fn is_counted(&self) -> bool {
        self.counted.is_some()
    }

    /// How much more an owner counted by each statistic speaks for *yes*, at `yes` of `owners`.
    pub(super) fn scores(&self, owners: f64, yes: f64) -> Vec<f64> {
        match self.source {
            CountKind::Classes => self.class_scores(owners, yes),
            CountKind::Bins => self.bin_scores(owners, yes),
        }
    }

    /// For classes, S⁻¹d is (p−q)/(yes·p + no·q) up to a factor and a constant that all classes share: S differs from the
    /// covariance of a multinomial by a multiple of ddᵀ (Sherman and Morrison).
    fn class_scores(&self, owners: f64, yes: f64) -> Vec<f64> {
        let score = |class: &Statistic| class.difference() / (yes * class.p() + (owners - yes) * class.q());
        self.reader.classes.iter().map(score).collect()
    }

    fn bin_scores(&self, owners: f64, yes: f64) -> Vec<f64> {
        let mut scores = vec![0.0; self.reader.bins.len()];
        let weights = self.weights(yes, owners - yes).values;
        self.system.chosen.iter().zip(weights).for_each(|(&index, weight)| scores[index] = weight);
        scores
    }

    /// The variance of the estimate at `yes` of `owners`.
    pub(super) fn variance(&self, owners: f64, yes: f64) -> f64 {
        self.weights(yes, owners - yes).variance()
    }

    pub(crate) fn noise(&self) -> Option<NoiseLaw> {
        self.reader.channel.noise().copied()
    }

    /// All noise of the count.
    pub(super) fn added_noise(&self) -> Option<AddedNoise> {
        self.noise().map(|law| AddedNoise { law, draws: self.noise_draws })
    }

    /// The observation of a sum of published numbers that have been checked one by one.
    pub(crate) fn observe_checked(&self, owners: u64, sum: i128) -> Observation {
        self.reader.read_checked(owners, sum)
    }

    pub(super) fn cells(&self) -> &[Cell] {
        self.reader.channel.cells()
    }

    pub(super) fn statistics(&self) -> &[Statistic] {
        self.source.statistics(&self.reader)
    }

    pub(super) fn counts<'a>(&self, observation: &'a Observation) -> &'a [i128] {
        match self.source {
            CountKind::Classes => &observation.classes,
            CountKind::Bins => &observation.bins,
        }
    }

    /// The weights for the covariance at this many yes-owners and no-owners.
    fn weights(&self, yes: f64, no: f64) -> Weights {
        // With noise there is only one count, and the noise adds to its variance.
        self.system.weights(yes, no, self.noise_variance)
    }

    /// The variance if every draw that does not depend on the truth were flagged.
    fn sampling_variance(&self, owners: f64, yes: f64) -> f64 {
        (1.0 - self.dependence) / self.dependence * yes * (owners - yes) / owners
    }

    /// What the noise of both aggregators adds to the variance of the estimate.
    fn aggregator_variance(&self) -> f64 {
        if self.noise_variance == 0.0 {
            return 0.0;
        }
        // With noise there is one count alone.
        let difference = self.system.difference[0];
        self.noise_variance / (difference * difference)
    }

    fn by_bin(&self, observation: &Observation, yes: f64) -> Vec<BinEstimate> {
        let owners = observation.owners;
        let counted = self.reader.bins.iter().zip(&self.bins).zip(&observation.bins);
        let estimate = |((statistic, &bin), &count): ((&Statistic, &Bin), &i128)| {
            let sigma = (statistic.count_variance(owners as f64, yes) + self.noise_variance).sqrt();
            BinEstimate::new(bin, statistic, statistic.excess(count, owners), sigma)
        };
        counted.map(estimate).collect()
    }
}

impl BinEstimate {
    /// From count − owners·q, and σ of the count.
    fn new(bin: Bin, statistic: &Statistic, excess: f64, sigma: f64) -> Self {
        let difference = statistic.difference();
        let estimate = statistic.is_informative().then(|| excess / difference);
        let sd = estimate.map(|_| sigma / difference.abs());
        let bounds = estimate.zip(sd).map(|(estimate, sd)| (estimate - sd, estimate + sd));
        Self { bin, estimate, sd, sigma, bounds }
    }
}

impl CountKind {
    fn statistics(self, reader: &Reader) -> &[Statistic] {
        match self {
            Self::Classes => &reader.classes,
            Self::Bins => &reader.bins,
        }
    }
}

/// The numbers of yes-owners and of no-owners, neither of them 0: at the very ends a one-sided class has no variance, and the limit
/// is what the estimator has there. Both, because near `owners` the nearest double below it would be far off.
fn away_from_ends(owners: u64, yes: f64) -> (f64, f64) {
    let n = owners as f64;
    let edge = 1e-18 * n.min(1.0);
    (yes.clamp(edge, n), (n - yes).clamp(edge, n))
}

pub(crate) fn check_yes(owners: u64, yes: f64) -> Result<()> {
    if owners == 0 {
        return Err(Error::request("there are no owners"));
    }
    if !(0.0..=owners as f64).contains(&yes) {
        return Err(Error::request(format!("{yes} of {owners} owners cannot say yes")));
    }
    Ok(())
}

/// τ = Σ(p−q)₊.
fn dependence(channel: &Channel) -> f64 {
    let parts = channel.cells().iter().map(|cell| cell.yes().numerator().saturating_sub(cell.no().numerator()));
    probability_of(parts.sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;

    fn estimator(text: &str) -> Estimator {
        Estimator::new(&text.parse::<Mechanism>().unwrap().channel()).unwrap()
    }

    fn estimate(text: &str, json: &str) -> Estimate {
        estimator(text).estimate(&serde_json::from_str(json).unwrap()).unwrap()
    }

    #[test]
    fn expected_tallies_give_the_truth_back() {
        for (text, yes) in [
            ("randomized-response(0.75)", 4000u64),
            ("sampling(0.25,0.5)", 4000),
            ("noisy-sampling(0.5,0.25)", 4000),
            ("paired(0.5,0.25,0.125)", 4000),
            ("cancelling(0.25,0.25,0.25,0.25)", 4000),
            ("blended(0,0.25,0.25,0,0.5,0.125,0.0625)", 4000),
            ("spread(2,0.5,0.125)", 4000),
        ] {
            let estimator = estimator(text);
            let owners = 64_000u64;
            let channel = text.parse::<Mechanism>().unwrap().channel();
            let mean = |c: &crate::Cell| yes as f64 * c.yes().to_f64() + (owners - yes) as f64 * c.no().to_f64();
            let cells: Vec<u64> = channel.cells().iter().map(|cell| mean(cell).round() as u64).collect();
            let result = estimator.estimate_observed(&estimator.observe_cells(&cells));
            assert!((result.estimate - yes as f64).abs() < 1e-6, "{text}: {}", result.estimate);
            assert!((result.sampling_sd.hypot(result.privacy_sd) - result.sd).abs() < 1e-9);
        }
    }

    #[test]
    fn cancelling_has_its_closed_form() {
        let json = r#"{"answers":[{"1":15007,"2":19950,"3":15043},{"1":15000,"2":15000,"3":20000}]}"#;
        let result = estimate("cancelling(0.3,0.3,0.3,0.1)", json);
        assert!((result.estimate - 50_000.0 * 7.0 / 4957.0).abs() < 1e-6, "{}", result.estimate);
    }

    #[test]
    fn truth_told_plainly_is_counted() {
        let result = estimate("randomized-response(1)", r#"{"answers":[{"1":7,"0":93}]}"#);
        assert_eq!((result.estimate, result.sd), (7.0, 0.0));
        let result = estimate("randomized-response(0)", r#"{"answers":[{"1":7,"0":93}]}"#);
        assert_eq!((result.estimate, result.sd), (93.0, 0.0));
    }

    #[test]
    fn a_channel_without_information_is_refused() {
        let channel = "randomized-response(0.5)".parse::<Mechanism>().unwrap().channel();
        assert!(Estimator::new(&channel).unwrap_err().is_parameter());
    }

    #[test]
    fn estimates_are_not_clipped_and_never_nan() {
        let result = estimate("randomized-response(0.75)", r#"{"answers":[{"1":0,"0":100}]}"#);
        assert!((result.estimate + 50.0).abs() < 1e-9);
        for text in ["sampling(0.05,0.05)", "noisy-sampling(0.5,0)", "normal-form(0.5,0)", "tuned(0.5,0,1,0,0.5,0)"] {
            for json in [r#"{"answers":[{"⊥":1}]}"#, r#"{"answers":[{"1":1}]}"#, r#"{"answers":[{"⊥":1000000}]}"#] {
                let result = estimate(text, json);
                assert!(result.estimate.is_finite() && result.sd.is_finite(), "{text} {json} {result:?}");
            }
        }
    }

    /// Of 120 owners, `sampling(0.05,0.02)` hears from about four: 5.8 too few are estimated if all say yes, and the error at 60 is
    /// 31.7 where 28.7 is predicted. Noise and two answers have one weight, so that no crowd is too small for them.
    #[test]
    fn an_estimate_from_few_answers_says_so() {
        let few = |text: &str, cells: &[u64]| {
            let estimator = estimator(text);
            estimator.estimate_observed(&estimator.observe_cells(cells)).few_answers
        };
        assert_eq!(few("sampling(0.05,0.02)", &[3, 1, 116]), Some(4));
        assert_eq!(few("sampling(0.05,0.02)", &[40, 10, 950]), None);
        assert_eq!(few("cancelling(0.3,0.3,0.3,0.1)", &[36, 36, 36, 6, 6]), Some(12));
        assert_eq!(few("randomized-response(0.75)", &[3, 2]), None);
        assert_eq!(few("noisy-sampling(0.05,0.01)", &[3, 0, 117]), None);
        assert_eq!(few("normal-form(0.5,0.01) + laplace(scale=1)", &[3, 2, 5]), None);
    }

    /// At all owners the error of a one-sided class vanishes as it does at none. It was NaN there.
    #[test]
    fn errors_are_numbers_at_both_ends() {
        for text in ["sampling(0.3,0.3)", "cancelling(0.3,0.3,0.3,0.1)", "normal-form(0.5,0)", "normal-form(0.5,1e-3)"]
        {
            let estimator = estimator(text);
            let [none, all] = [0.0, 2000.0].map(|yes| estimator.sd(2000, yes).unwrap());
            assert!((none - all).abs() < 1e-6, "{text}: {none} {all}");
            let observation = estimator.observe_cells(&vec![100; estimator.cells().len()]);
            let owners = observation.owners() as f64;
            assert!(estimator.score(&observation, &estimator.excess(&observation), owners).is_finite(), "{text}");
        }
    }

    #[test]
    fn impossible_requests_are_refused() {
        let estimator = estimator("randomized-response(0.75)");
        assert!(estimator.sd(10, 11.0).unwrap_err().is_request());
        assert!(estimator.sd(0, 0.0).unwrap_err().is_request());
        assert!(estimator.sd(10, f64::NAN).unwrap_err().is_request());
    }
}
