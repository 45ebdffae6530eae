//! Which combinations of bins to choose among: those that count just the cells that speak loudest for *yes*, the single bins,
//! and the differences of two answers.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::ToPrimitive;

use crate::channel::{Bin, Cell, Channel, Class};
use crate::linear;

/// Classes beyond these are too faint to add to a solution.
const MOST_CLASSES: usize = 8;
/// Up to this many bins, every combination of four is tried.
const FEW_BINS: usize = 12;
/// Up to this many bins, the general system is solved.
const SOME_BINS: usize = 32;

/// The combinations to choose from, as a weight for each bin.
pub(super) fn candidates(channel: &Channel, bins: &[Bin]) -> Vec<Vec<i64>> {
    let rows = Rows::new(channel, bins);
    let loudest = loudest(channel).into_iter().filter_map(|target| rows.reach(target));
    let single = (0..bins.len()).map(|bin| rows.weights(&[(bin, 1)]));
    let differences = differences(bins).map(|(first, second)| rows.weights(&[(first, 1), (second, -1)]));
    loudest.chain(single).chain(differences).collect()
}

/// The pairs of bins of the same output in two answers, the earlier one first.
fn differences(bins: &[Bin]) -> impl Iterator<Item = (usize, usize)> {
    let pairs = (0..bins.len()).flat_map(|first| (first + 1..bins.len()).map(move |second| (first, second)));
    pairs.filter(|&(first, second)| bins[first].output == bins[second].output)
}

/// The cells of the class of the highest likelihood ratio, of the two highest, and so on, as bit sets.
fn loudest(channel: &Channel) -> Vec<u64> {
    let classes = channel.classes();
    let several = classes.len().saturating_sub(1).min(MOST_CLASSES);
    let cells = |class: &Class| class.cells.iter().fold(0, |set, &cell| set | 1 << cell);
    let union = |reached: &mut u64, class: &Class| {
        *reached |= cells(class);
        Some(*reached)
    };
    classes.iter().take(several).scan(0, union).collect()
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
    channel.cells().iter().enumerate().map(|(index, cell)| u64::from(pass(cell)) << index).sum()
}

/// The weights times their common denominator; none if they are too large to be of use.
fn whole_weights(weights: &[BigRational]) -> Option<Vec<i64>> {
    let common = weights.iter().fold(BigInt::from(1), |common, weight| common.lcm(weight.denom()));
    let whole = |weight: &BigRational| (weight * &common).to_integer().to_i64().filter(|w| w.abs() < 1 << 32);
    weights.iter().map(whole).collect()
}
