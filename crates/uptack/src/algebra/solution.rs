//! Working backwards: which bins to subtract from which, to be left with YES.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};

use super::coupling::Coupled;
use crate::channel::{Bin, Cell, Channel, Output, answer_name};
use crate::error::Error;
use crate::linear;
use crate::probability::Probability;

/// How the analyst finds YES from the tallies.
///
/// Looked at are the counts of the cells that speak loudest for *yes*, the single bins, and the differences of two
/// answers. Taken is the combination whose variance grows least with NO; of those, least with YES; of those, the one
/// of the fewest bins.
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
/// Up to so many bins every combination of four is tried.
const FEW_BINS: usize = 12;
/// Up to so many bins the general system is solved.
const SOME_BINS: usize = 32;

/// The solution, unless no tally depends on the truth.
pub(super) fn solve(coupled: &Coupled, channel: &Channel) -> Option<Solution> {
    let published = |bin: &Bin| channel.noise().is_none() || bin.output == Output::ONE;
    let bins: Vec<Bin> = channel.bins().into_iter().filter(published).collect();
    let best = candidates(channel, &bins).into_iter().filter_map(|weights| Measured::new(channel, &bins, weights));
    let best = best.min_by(|a, b| a.key().cmp(&b.key()))?;
    let used: Vec<(Bin, i64)> = bins.iter().copied().zip(best.weights).filter(|(_, weight)| *weight != 0).collect();
    let float = |value: &BigRational| linear::to_f64(value);
    let scale = float(&(&best.yes - &best.no));
    Some(Solution {
        variance_of_noise: channel.noise().map_or(0.0, |noise| 2.0 * noise.variance() / (scale * scale)),
        combination: bins_text(&used),
        holds: content_text(coupled, &used),
        chain: chain(coupled, channel, &used),
        bins: used,
        yes: float(&best.yes),
        no: float(&best.no),
        scale,
        noise_from_no: best.per_no.is_positive(),
        variance_per_yes: float(&best.per_yes),
        variance_per_no: float(&best.per_no),
    })
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
    fn new(channel: &Channel, bins: &[Bin], weights: Vec<i64>) -> Option<Self> {
        let value = |cell: &Cell| -> i64 {
            let counted = bins.iter().zip(&weights).filter(|(bin, _)| cell.outputs()[bin.answer] == bin.output);
            counted.map(|(_, weight)| weight).sum()
        };
        let values: Vec<BigInt> = channel.cells().iter().map(|cell| value(cell).into()).collect();
        // Σ value·law and Σ value²·law, over 2⁶⁴; and the variance, over 2¹²⁸.
        let moments = |law: fn(&Cell) -> Probability| {
            let laws = channel.cells().iter().map(|cell| BigInt::from(law(cell).numerator()));
            let weighted = laws.zip(&values).map(|(law, value)| law * value);
            let (mean, square) = weighted
                .zip(&values)
                .fold((BigInt::zero(), BigInt::zero()), |sums, (part, value)| (sums.0 + &part, sums.1 + part * value));
            let variance = (square << Probability::BITS) - &mean * &mean;
            (mean, variance)
        };
        let ((yes, per_yes), (no, per_no)) = (moments(Cell::yes), moments(Cell::no));
        let scale = &yes - &no;
        if scale.is_zero() {
            return None;
        }
        let square = &scale * &scale;
        let share = |numerator: BigInt| BigRational::new(numerator, BigInt::from(Probability::ONE.numerator()));
        let (per_yes, per_no) = (BigRational::new(per_yes, square.clone()), BigRational::new(per_no, square));
        Some(Self { weights, per_yes, per_no, yes: share(yes), no: share(no) })
    }

    fn key(&self) -> (&BigRational, &BigRational, usize) {
        (&self.per_no, &self.per_yes, self.weights.iter().filter(|weight| **weight != 0).count())
    }
}

fn candidates(channel: &Channel, bins: &[Bin]) -> Vec<Vec<i64>> {
    let rows = Rows::new(channel, bins);
    let mut all: Vec<Vec<i64>> = loudest(channel).into_iter().filter_map(|target| rows.reach(target)).collect();
    all.extend((0..bins.len()).map(|bin| rows.weights(&[(bin, 1)])));
    for (first, second) in (0..bins.len()).flat_map(|first| (first + 1..bins.len()).map(move |second| (first, second)))
    {
        if bins[first].output == bins[second].output {
            all.push(rows.weights(&[(first, 1), (second, -1)]));
        }
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
        let set = |pass: &dyn Fn(&Cell) -> bool| {
            let cells = channel.cells().iter().enumerate().filter(|(_, cell)| pass(cell));
            cells.fold(0u64, |set, (index, _)| set | 1 << index)
        };
        let possible = set(&|cell| cell.yes() != Probability::ZERO || cell.no() != Probability::ZERO);
        let row = |bin: &Bin| set(&|cell| cell.outputs()[bin.answer] == bin.output) & possible;
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
        let few = self.rows.len() <= FEW_BINS;
        let found = self.one_or_two(target).or_else(|| few.then(|| self.four(target)).flatten());
        found.or_else(|| (self.rows.len() <= SOME_BINS).then(|| self.general(target)).flatten())
    }

    fn one_or_two(&self, target: u64) -> Option<Vec<i64>> {
        let count = self.rows.len();
        let pairs = || (0..count).flat_map(|first| (0..count).map(move |second| (first, second)));
        let single = (0..count).find(|&bin| self.rows[bin] == target).map(|bin| self.weights(&[(bin, 1)]));
        let difference = || {
            let fits = |&(first, second): &(usize, usize)| {
                let (first, second) = (self.rows[first], self.rows[second]);
                second & !first == 0 && first & !second == target
            };
            pairs().find(fits).map(|(first, second)| self.weights(&[(first, 1), (second, -1)]))
        };
        let sum = || {
            let fits = |&(first, second): &(usize, usize)| {
                self.rows[first] & self.rows[second] == 0 && self.rows[first] | self.rows[second] == target
            };
            pairs().find(fits).map(|(first, second)| self.weights(&[(first, 1), (second, 1)]))
        };
        single.or_else(difference).or_else(sum)
    }

    /// Two differences, one added to the other.
    fn four(&self, target: u64) -> Option<Vec<i64>> {
        let count = self.rows.len();
        let pairs: Vec<(usize, usize)> = (0..count)
            .flat_map(|plus| (0..count).map(move |minus| (plus, minus)))
            .filter(|(plus, minus)| plus != minus)
            .collect();
        let bit = |set: u64, cell: u32| (set >> cell & 1) as i64;
        let value = |pair: (usize, usize), cell| bit(self.rows[pair.0], cell) - bit(self.rows[pair.1], cell);
        let cells: Vec<u32> = (0..u64::BITS).filter(|&cell| bit(self.possible, cell) == 1).collect();
        for (index, &first) in pairs.iter().enumerate() {
            for &second in &pairs[index..] {
                if cells.iter().all(|&cell| value(first, cell) + value(second, cell) == bit(target, cell)) {
                    return Some(self.weights(&[(first.0, 1), (first.1, -1), (second.0, 1), (second.1, -1)]));
                }
            }
        }
        None
    }

    /// Any solution of the linear system, scaled to whole weights.
    fn general(&self, target: u64) -> Option<Vec<i64>> {
        let cells = (0..u64::BITS).filter(|&cell| self.possible >> cell & 1 == 1);
        let cells: Vec<u32> = cells.collect();
        let vector = |set: u64| -> Vec<BigRational> {
            cells.iter().map(|&cell| BigRational::from_integer((set >> cell & 1).into())).collect()
        };
        let rows: Vec<_> = self.rows.iter().map(|&row| vector(row)).collect();
        let solution = linear::combination(&rows, &vector(target))?;
        let common = solution.iter().fold(BigInt::from(1), |common, weight| common.lcm(weight.denom()));
        solution.iter().map(|weight| (weight * &common).to_integer().to_i64().filter(|w| w.abs() < 1 << 32)).collect()
    }
}

/// Σ w·bin as differences of successive answers, from the last answer back, and what is left of the first.
fn chain(coupled: &Coupled, channel: &Channel, used: &[(Bin, i64)]) -> Vec<Step> {
    let mut steps: Vec<(usize, Step)> = Vec::new();
    let mut outputs: Vec<_> = used.iter().map(|(bin, _)| bin.output).collect();
    outputs.sort();
    outputs.dedup();
    for output in outputs {
        let bins: Vec<Bin> = channel.bins().into_iter().filter(|bin| bin.output == output).collect();
        let weight = |bin: &Bin| used.iter().find(|(other, _)| other == bin).map_or(0, |(_, weight)| *weight);
        let mut reached = 0;
        for later in (0..bins.len()).rev() {
            reached += weight(&bins[later]);
            let mut parts = vec![(bins[later], 1)];
            parts.extend(later.checked_sub(1).map(|earlier| (bins[earlier], -1)));
            let step = step(coupled, &parts, reached);
            steps.extend(step.map(|step| (bins[later].answer, step)));
        }
    }
    steps.sort_by_key(|(answer, _)| std::cmp::Reverse(*answer));
    steps.into_iter().map(|(_, step)| step).collect()
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
    signed_text(ordered.into_iter().map(|(bin, weight)| (format!("{}{}", answer_name(bin.answer), bin.output), weight)))
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
