//! Working backwards: which bins to subtract from which, to be left with YES.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};

use super::coupling::Coupled;
use crate::channel::{Bin, Cell, Channel, Law};
use crate::error::Error;
use crate::linear;
use crate::probability::Probability;

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

/// One subtraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The difference of bins, as in `B3 - C3`.
    pub combination: String,
    /// What it holds, in terms.
    pub holds: String,
    /// How often it is added (or, below 0, subtracted) to make up the solution.
    pub weight: i64,
}

impl Solution {
    /// The estimate of YES from the value of the combination in a tally.
    pub fn estimate(&self, value: f64, owners: u64) -> f64 {
        (value - self.no * owners as f64) / self.scale
    }

    /// The standard deviation of the estimate in a crowd.
    pub fn sd(&self, owners: u64, yes: u64) -> Result<f64, Error> {
        let no = owners.checked_sub(yes).ok_or_else(|| {
            Error::request(format!("{yes} yes-owners are more than the {owners} owners"))
                .with_hint("give the number of owners who hold yes among all owners")
        })?;
        let owners_own = yes as f64 * self.variance_per_yes + no as f64 * self.variance_per_no;
        Ok((owners_own + self.variance_of_noise).sqrt())
    }
}

/// Classes beyond these are too faint to add to a solution.
const MOST_CLASSES: usize = 8;
/// Up to this many bins, every combination of four is tried.
const FEW_BINS: usize = 12;
/// Up to this many bins, the general system is solved.
const SOME_BINS: usize = 32;

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
    /// None where the mean of the combination is the same for both truths.
    fn new(channel: &Channel, bins: &[Bin], weights: Vec<i64>) -> Option<Self> {
        let combination = || bins.iter().copied().zip(weights.iter().copied());
        let value = |cell: &Cell| BigInt::from(cell.value_in(combination()));
        let values: Vec<BigInt> = channel.cells().iter().map(value).collect();
        let yes = Moments::of(channel, &values, Cell::yes);
        let no = Moments::of(channel, &values, Cell::no);
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

    fn key(&self) -> (&BigRational, &BigRational, usize) {
        (&self.per_no, &self.per_yes, self.weights.iter().filter(|weight| **weight != 0).count())
    }
}

/// What one owner adds to a combination under one law: the mean over 2⁶⁴ and the variance over 2¹²⁸.
struct Moments {
    mean: BigInt,
    variance: BigInt,
}

impl Moments {
    fn of(channel: &Channel, values: &[BigInt], law: Law) -> Self {
        let (mut mean, mut square) = (BigInt::zero(), BigInt::zero());
        for (cell, value) in channel.cells().iter().zip(values) {
            let part = BigInt::from(law(cell).numerator()) * value;
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

/// The combinations to choose from, as a weight for each bin.
fn candidates(channel: &Channel, bins: &[Bin]) -> Vec<Vec<i64>> {
    let rows = Rows::new(channel, bins);
    let mut all: Vec<Vec<i64>> = loudest(channel).into_iter().filter_map(|target| rows.reach(target)).collect();
    all.extend((0..bins.len()).map(|bin| rows.weights(&[(bin, 1)])));
    for first in 0..bins.len() {
        let later = (first + 1..bins.len()).filter(|&second| bins[first].output == bins[second].output);
        all.extend(later.map(|second| rows.weights(&[(first, 1), (second, -1)])));
    }
    all
}

/// The cells of the class of the highest likelihood ratio, of the two highest, and so on, as bit sets.
fn loudest(channel: &Channel) -> Vec<u64> {
    let classes = channel.classes();
    let mut reached = 0u64;
    let several = classes.len().saturating_sub(1).min(MOST_CLASSES);
    let add = |class: &crate::Class| {
        reached |= class.cells.iter().fold(0, |set, &cell| set | 1 << cell);
        reached
    };
    classes.iter().take(several).map(add).collect()
}

/// For each bin the possible cells that it counts, as a bit set: a channel has at most 64.
struct Rows {
    rows: Vec<u64>,
    possible: u64,
}

impl Rows {
    fn new(channel: &Channel, bins: &[Bin]) -> Self {
        let possible = cell_set(channel, Cell::is_possible);
        let row = |bin: &Bin| cell_set(channel, |cell| cell.outputs()[bin.answer] == bin.output) & possible;
        Self { rows: bins.iter().map(row).collect(), possible }
    }

    fn weights(&self, parts: &[(usize, i64)]) -> Vec<i64> {
        let mut weights = vec![0; self.rows.len()];
        for &(bin, weight) in parts {
            weights[bin] += weight;
        }
        weights
    }

    /// Weights under which the bins count the cells of the target and no others, as few as are easily found.
    fn reach(&self, target: u64) -> Option<Vec<i64>> {
        let up_to = |most: usize| (self.rows.len() <= most).then_some(());
        self.single(target)
            .or_else(|| self.difference(target))
            .or_else(|| self.disjoint_sum(target))
            .or_else(|| up_to(FEW_BINS).and_then(|()| self.two_differences(target)))
            .or_else(|| up_to(SOME_BINS).and_then(|()| self.general(target)))
    }

    fn single(&self, target: u64) -> Option<Vec<i64>> {
        let bin = self.rows.iter().position(|&row| row == target)?;
        Some(self.weights(&[(bin, 1)]))
    }

    /// A bin less another whose cells it all counts.
    fn difference(&self, target: u64) -> Option<Vec<i64>> {
        let (plus, minus) = self.pair(|plus, minus| minus & !plus == 0 && plus & !minus == target)?;
        Some(self.weights(&[(plus, 1), (minus, -1)]))
    }

    /// Two bins that have no cell in common.
    fn disjoint_sum(&self, target: u64) -> Option<Vec<i64>> {
        let (first, second) = self.pair(|first, second| first & second == 0 && first | second == target)?;
        Some(self.weights(&[(first, 1), (second, 1)]))
    }

    /// The first two bins whose cells fit.
    fn pair(&self, fits: impl Fn(u64, u64) -> bool) -> Option<(usize, usize)> {
        self.pairs().find(|&(first, second)| fits(self.rows[first], self.rows[second]))
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let count = self.rows.len();
        (0..count).flat_map(move |first| (0..count).map(move |second| (first, second)))
    }

    /// Two differences, one added to the other.
    fn two_differences(&self, target: u64) -> Option<Vec<i64>> {
        let pairs: Vec<(usize, usize)> = self.pairs().filter(|(plus, minus)| plus != minus).collect();
        let cells = self.possible_cells();
        for (index, &first) in pairs.iter().enumerate() {
            for &second in &pairs[index..] {
                let value = |cell: u32| self.difference_at(first, cell) + self.difference_at(second, cell);
                if cells.iter().all(|&cell| value(cell) == bit(target, cell)) {
                    return Some(self.weights(&[(first.0, 1), (first.1, -1), (second.0, 1), (second.1, -1)]));
                }
            }
        }
        None
    }

    /// How often the difference of two bins counts a cell: −1, 0 or 1.
    #[inline]
    fn difference_at(&self, (plus, minus): (usize, usize), cell: u32) -> i64 {
        bit(self.rows[plus], cell) - bit(self.rows[minus], cell)
    }

    fn possible_cells(&self) -> Vec<u32> {
        (0..u64::BITS).filter(|&cell| bit(self.possible, cell) == 1).collect()
    }

    /// Any solution of the linear system, scaled to whole weights.
    fn general(&self, target: u64) -> Option<Vec<i64>> {
        let cells = self.possible_cells();
        let vector = |set: u64| -> Vec<BigRational> {
            cells.iter().map(|&cell| BigRational::from_integer(bit(set, cell).into())).collect()
        };
        let rows: Vec<_> = self.rows.iter().map(|&row| vector(row)).collect();
        whole_weights(&linear::combination(&rows, &vector(target))?)
    }
}

/// Whether a set has a cell, as 1 or 0.
#[inline]
fn bit(set: u64, cell: u32) -> i64 {
    (set >> cell & 1) as i64
}

/// The cells that pass, as a bit set.
fn cell_set(channel: &Channel, pass: impl Fn(&Cell) -> bool) -> u64 {
    let cells = channel.cells().iter().enumerate().filter(|(_, cell)| pass(cell));
    cells.fold(0, |set, (index, _)| set | 1 << index)
}

/// The weights times their common denominator; none if they are too large to be of use.
fn whole_weights(weights: &[BigRational]) -> Option<Vec<i64>> {
    let common = weights.iter().fold(BigInt::from(1), |common, weight| common.lcm(weight.denom()));
    let whole = |weight: &BigRational| (weight * &common).to_integer().to_i64().filter(|w| w.abs() < 1 << 32);
    weights.iter().map(whole).collect()
}

/// Σ w·bin as differences of successive answers, from the last answer back, and what is left of the first.
fn chain(coupled: &Coupled, channel: &Channel, used: &[(Bin, i64)]) -> Vec<Step> {
    let mut outputs: Vec<_> = used.iter().map(|(bin, _)| bin.output).collect();
    outputs.sort();
    outputs.dedup();
    let mut steps: Vec<(usize, Step)> = Vec::new();
    for output in outputs {
        let bins: Vec<Bin> = channel.bins().into_iter().filter(|bin| bin.output == output).collect();
        steps.extend(chain_of_output(coupled, &bins, used));
    }
    steps.sort_by_key(|(answer, _)| std::cmp::Reverse(*answer));
    steps.into_iter().map(|(_, step)| step).collect()
}

/// The steps through the bins of one output, each with the later of its answers.
fn chain_of_output(coupled: &Coupled, bins: &[Bin], used: &[(Bin, i64)]) -> Vec<(usize, Step)> {
    let weight = |bin: &Bin| used.iter().find(|(other, _)| other == bin).map_or(0, |(_, weight)| *weight);
    let mut steps = Vec::new();
    let mut reached = 0;
    for later in (0..bins.len()).rev() {
        reached += weight(&bins[later]);
        let mut parts = vec![(bins[later], 1)];
        parts.extend(later.checked_sub(1).map(|earlier| (bins[earlier], -1)));
        steps.extend(step(coupled, &parts, reached).map(|step| (bins[later].answer, step)));
    }
    steps
}

/// A step turned so that what it holds starts with a plus; none where it adds nothing.
fn step(coupled: &Coupled, parts: &[(Bin, i64)], weight: i64) -> Option<Step> {
    let content = content(coupled, parts);
    let first = content.iter().find(|(_, weight)| *weight != 0)?.1;
    let turn = first.signum();
    let turned: Vec<(Bin, i64)> = parts.iter().map(|(bin, weight)| (*bin, weight * turn)).collect();
    let step = Step { combination: bins_text(&turned), holds: content_text(coupled, &turned), weight: weight * turn };
    (weight != 0).then_some(step)
}

/// What a combination of bins holds: a weight for each term.
fn content(coupled: &Coupled, parts: &[(Bin, i64)]) -> Vec<(usize, i64)> {
    let mut weights = vec![0; coupled.terms.len()];
    for (bin, weight) in parts {
        for (_, held) in coupled.contents.iter().filter(|(other, _)| other == bin) {
            held.iter().for_each(|(term, sign)| weights[*term] += weight * sign);
        }
    }
    weights.into_iter().enumerate().filter(|(_, weight)| *weight != 0).collect()
}

fn content_text(coupled: &Coupled, parts: &[(Bin, i64)]) -> String {
    let name = |(term, weight): (usize, i64)| (coupled.terms[term].name.clone(), weight);
    signed_text(content(coupled, parts).into_iter().map(name))
}

fn bins_text(parts: &[(Bin, i64)]) -> String {
    let mut ordered: Vec<(Bin, i64)> = parts.to_vec();
    // What is subtracted comes last, as one would write it.
    ordered.sort_by_key(|(_, weight)| *weight < 0);
    signed_text(ordered.into_iter().map(|(bin, weight)| (bin.name(), weight)))
}

fn signed_text(parts: impl Iterator<Item = (String, i64)>) -> String {
    let mut text = String::new();
    for (name, weight) in parts {
        let sign = match (text.is_empty(), weight < 0) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        };
        let times = if weight.abs() == 1 { String::new() } else { format!("{}*", weight.abs()) };
        text.push_str(&format!("{sign}{times}{name}"));
    }
    if text.is_empty() { "0".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::Program;
    use super::*;
    use crate::Mechanism;

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
