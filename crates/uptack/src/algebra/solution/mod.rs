//! Working backwards: which bins to subtract from which, to be left with YES.

mod candidates;
mod chain;

pub use chain::Step;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, Zero};

use super::coupling::Coupled;
use crate::channel::{Bin, Channel};
use crate::error::{Error, Result};
use crate::law::Law;
use crate::linear;
use crate::probability::Probability;
use crate::truth::PerTruth;
use candidates::candidates;
use chain::{bins_text, chain, content_text};

/// How the analyst finds YES from the tallies.
///
/// The candidates are the counts of the cells that speak loudest for *yes*, the single bins, and the differences of
/// two answers. The one whose variance grows least with NO is chosen; among equals, the one whose variance grows least
/// with YES; then the one of the fewest bins.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The bins with their weights.
    pub bins: Vec<(Bin, i64)>,
    /// The bins as text, as in `C3 - A3`.
    pub combination: String,
    /// What the combination holds, in terms.
    pub holds: String,
    /// The subtractions that lead to it, from the last answer back to the first.
    pub chain: Vec<Step>,
    /// The share of YES in it.
    pub yes: f64,
    /// The share of NO in it.
    pub no: f64,
    /// `yes` − `no`, by which the analyst divides.
    pub scale: f64,
    /// The variance of the estimate that each yes-owner adds.
    pub variance_per_yes: f64,
    /// The variance of the estimate that each no-owner adds.
    pub variance_per_no: f64,
    /// The variance of the estimate that the noise of both aggregators adds; 0 without noise.
    pub variance_of_noise: f64,
    /// Whether noise from NO remains in the estimate.
    pub noise_from_no: bool,
}

impl Solution {
    /// The estimate of YES from the value of the combination in a tally.
    pub fn estimate(&self, value: f64, owners: u64) -> f64 {
        (value - self.no * owners as f64) / self.scale
    }

    /// The standard deviation of the estimate in a crowd.
    pub fn sd(&self, owners: u64, yes: u64) -> Result<f64> {
        let no = owners.checked_sub(yes).ok_or_else(|| {
            Error::request(format!("{yes} yes-owners are more than the {owners} owners"))
                .with_hint("give the number of owners who would say yes among all owners")
        })?;
        let owners_own = yes as f64 * self.variance_per_yes + no as f64 * self.variance_per_no;
        Ok((owners_own + self.variance_of_noise).sqrt())
    }
}

/// The solution, unless no tally depends on the truth.
pub(super) fn solve(coupled: &Coupled, channel: &Channel) -> Option<Solution> {
    let bins = channel.published_bins();
    let measured = candidates(channel, &bins).into_iter().filter_map(|weights| Measured::new(channel, &bins, weights));
    let best = measured.min_by(|a, b| a.key().cmp(&b.key()))?;
    Some(best.explain(coupled, channel, &bins))
}

/// A combination with its exact moments.
struct Measured {
    weights: Vec<i64>,
    yes: BigRational,
    no: BigRational,
    per_yes: BigRational,
    per_no: BigRational,
}

impl Measured {
    /// None if the mean of the combination is the same for both truths.
    fn new(channel: &Channel, bins: &[Bin], weights: Vec<i64>) -> Option<Self> {
        let values = values(channel, bins, &weights);
        let PerTruth { yes, no } = channel.laws().map(|law| ExactMoments::of(&law, &values));
        let scale = &yes.mean - &no.mean;
        if scale.is_zero() {
            return None;
        }
        let square = &scale * &scale;
        Some(Self {
            weights,
            per_yes: BigRational::new(yes.variance, square.clone()),
            per_no: BigRational::new(no.variance, square),
            yes: share(yes.mean),
            no: share(no.mean),
        })
    }

    /// The solution with its floating point numbers and its text.
    fn explain(self, coupled: &Coupled, channel: &Channel, bins: &[Bin]) -> Solution {
        let bins: Vec<(Bin, i64)> = bins.iter().copied().zip(self.weights).filter(|(_, weight)| *weight != 0).collect();
        let scale = linear::to_f64(&(&self.yes - &self.no));
        Solution {
            combination: bins_text(&bins),
            holds: content_text(coupled, &bins),
            chain: chain(coupled, channel, &bins),
            bins,
            yes: linear::to_f64(&self.yes),
            no: linear::to_f64(&self.no),
            scale,
            variance_per_yes: linear::to_f64(&self.per_yes),
            variance_per_no: linear::to_f64(&self.per_no),
            variance_of_noise: channel.noise().map_or(0.0, |noise| 2.0 * noise.variance() / (scale * scale)),
            noise_from_no: self.per_no.is_positive(),
        }
    }

    /// What is minimized, in order.
    fn key(&self) -> (&BigRational, &BigRational, usize) {
        (&self.per_no, &self.per_yes, self.weights.iter().filter(|weight| **weight != 0).count())
    }
}

/// What an owner who gives each cell adds to a combination.
fn values(channel: &Channel, bins: &[Bin], weights: &[i64]) -> Vec<BigInt> {
    let combination = || bins.iter().copied().zip(weights.iter().copied());
    channel.cells().iter().map(|cell| BigInt::from(cell.value_in(combination()))).collect()
}

/// What one owner adds to a combination under one law: the mean over 2⁶⁴ and the variance over 2¹²⁸.
struct ExactMoments {
    mean: BigInt,
    variance: BigInt,
}

impl ExactMoments {
    fn of(law: &Law, values: &[BigInt]) -> Self {
        let (mut mean, mut square) = (BigInt::zero(), BigInt::zero());
        for (probability, value) in law.probabilities().iter().zip(values) {
            let part = BigInt::from(probability.numerator()) * value;
            square += &part * value;
            mean += part;
        }
        let variance = (square << Probability::BITS) - &mean * &mean;
        Self { mean, variance }
    }
}

/// A numerator over 2⁶⁴ as a rational.
fn share(numerator: BigInt) -> BigRational {
    BigRational::new(numerator, BigInt::from(Probability::ONE.numerator()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::Program;
    use crate::{Cell, Mechanism};

    fn solved(mechanism: &str) -> (Channel, Solution) {
        let channel = mechanism.parse::<Mechanism>().unwrap().channel();
        let solution = Program::of_channel(&channel).unwrap().solve().unwrap();
        (channel, solution)
    }

    /// Mean and variance of the combination under a law, straight from the cells.
    fn moments(channel: &Channel, solution: &Solution, law: fn(&Cell) -> Probability) -> (f64, f64) {
        let value = |cell: &Cell| -> f64 {
            let counted = solution.bins.iter().filter(|(bin, _)| cell.outputs()[bin.answer] == bin.output);
            counted.map(|(_, weight)| *weight as f64).sum()
        };
        let mean: f64 = channel.cells().iter().map(|cell| value(cell) * law(cell).to_f64()).sum();
        let parts = channel.cells().iter().map(|cell| (value(cell) - mean).powi(2) * law(cell).to_f64());
        (mean, parts.sum())
    }

    #[test]
    fn the_paper_s_differences_are_found() {
        for (mechanism, combination, noise) in [
            ("paired(b=0.5,sy=0.2,sn=0.05)", "A1 - B1", true),
            ("paired(b=0.5,sy=0.2,sn=0)", "A1 - B1", false),
            ("cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)", "A1 - B1", false),
            ("blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=1e-4,rn=1e-4)", "C3 - A3", true),
            ("blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=1e-4,rn=0)", "C3 - A3", false),
            ("sampling(sy=0.05,sn=0.02)", "A1", false),
            ("noisy-sampling(sy=0.05,sn=0.01)", "A1", true),
            ("randomized-response(t=0.8)", "A1", true),
            ("spread(pairs=2,f=0.5,r=0.01)", "B3 + D3 - A3 - C3", true),
            ("custom(1=0.1:0.2, 0=0.9:0.8)", "A0", true),
        ] {
            let (channel, solution) = solved(mechanism);
            assert_eq!((solution.combination.as_str(), solution.noise_from_no), (combination, noise), "{mechanism}");
            let ((yes, per_yes), (no, per_no)) =
                (moments(&channel, &solution, Cell::yes), moments(&channel, &solution, Cell::no));
            assert!((yes - solution.yes).abs() < 1e-12 && (no - solution.no).abs() < 1e-12);
            assert!((per_yes / (yes - no).powi(2) - solution.variance_per_yes).abs() < 1e-9);
            assert!((per_no / (yes - no).powi(2) - solution.variance_per_no).abs() < 1e-9);
            // The expectation of the combination is solved for the yes that made it.
            let value = 300.0 * yes + 700.0 * no;
            assert!((solution.estimate(value, 1000) - 300.0).abs() < 1e-6, "{mechanism}");
        }
    }

    #[test]
    fn nothing_is_solved_where_nothing_depends_on_the_truth() {
        let channel = "randomized-response(t=0.5)".parse::<Mechanism>().unwrap().channel();
        assert_eq!(Program::of_channel(&channel).unwrap().solve(), None);
        // The cells depend on the truth here, the tallies do not.
        let hidden = Channel::parse_cells("11=0.5:0, 22=0.5:0, 12=0:0.5, 21=0:0.5").unwrap();
        assert_eq!(Program::of_channel(&hidden).unwrap().solve(), None);
    }

    #[test]
    fn more_yes_than_owners_is_refused() {
        let (_, solution) = solved("cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)");
        assert!((solution.sd(50_000, 500).unwrap() - (9.0f64 * 500.0).sqrt()).abs() < 1e-9);
        assert!(solution.sd(10, 11).unwrap_err().is_request());
    }
}
