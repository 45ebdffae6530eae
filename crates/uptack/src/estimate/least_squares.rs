//! The linear algebra of generalized least squares: which counts to combine, their covariance, and its inverse.

use num_rational::BigRational;
use num_traits::Zero;

use super::observation::{Statistic, probability_of};
use crate::channel::Channel;
use crate::law::Law;
use crate::linear;
use crate::truth::PerTruth;

/// Some statistics of a channel, as a system of equations for the number of yes-owners.
#[derive(Clone, Debug)]
pub(super) struct LeastSquares {
    /// Indices of the statistics that are combined.
    pub(super) chosen: Vec<usize>,
    /// d = p − q of each.
    pub(super) difference: Vec<f64>,
    /// Their covariance for one owner of each truth, row by row.
    covariance: PerTruth<Vec<f64>>,
}

impl LeastSquares {
    /// A system of independent statistics.
    pub(super) fn new(channel: &Channel, statistics: &[Statistic]) -> Self {
        Self::of(channel, statistics, independent(channel, statistics))
    }

    /// A system of the first statistic alone.
    pub(super) fn of_first(channel: &Channel, statistics: &[Statistic]) -> Self {
        Self::of(channel, statistics, vec![0])
    }

    fn of(channel: &Channel, statistics: &[Statistic], chosen: Vec<usize>) -> Self {
        Self {
            difference: chosen.iter().map(|&index| statistics[index].difference()).collect(),
            covariance: channel.laws().map(|law| covariance(statistics, &chosen, &law)),
            chosen,
        }
    }

    /// The weights at this many yes-owners and no-owners, with a variance that is added to every entry of the covariance.
    pub(super) fn weights(&self, yes: f64, no: f64, added: f64) -> Weights {
        let entries = self.covariance.yes.iter().zip(&self.covariance.no);
        let covariance = entries.map(|(p, q)| yes * p + no * q + added).collect();
        let values = Cholesky::of(covariance, self.chosen.len()).solve(self.difference.clone());
        let information = dot(&values, &self.difference);
        Weights { values, information }
    }
}

/// How much each statistic counts, for a covariance S.
pub(super) struct Weights {
    /// S⁻¹d.
    pub(super) values: Vec<f64>,
    /// dᵀS⁻¹d, one over the variance of the estimate.
    pub(super) information: f64,
}

impl Weights {
    /// The weighted sum of the statistics' excesses.
    pub(super) fn combine(&self, excess: &[f64]) -> f64 {
        dot(&self.values, excess)
    }

    /// The variance of the estimate.
    pub(super) fn variance(&self) -> f64 {
        1.0 / self.information
    }
}

/// As many statistics as possible such that no combination of them is without variance under both truths.
///
/// A combination has no variance under a truth if it is constant over the cells that truth can reach.
fn independent(channel: &Channel, statistics: &[Statistic]) -> Vec<usize> {
    let PerTruth { yes, no } = channel.laws().map(|law| law.support());
    let supports = [yes, no];
    let (mut kept, mut rows): (Vec<usize>, Vec<Vec<BigRational>>) = (Vec::new(), Vec::new());
    for index in by_likelihood(statistics) {
        let row = variations(&statistics[index], &supports);
        if row.iter().any(|entry| !entry.is_zero()) && linear::combination(&rows, &row).is_none() {
            kept.push(index);
            rows.push(row);
        }
    }
    kept
}

/// The statistics in the order in which they are kept if possible: the likeliest one last, so that the kept ones are small and well
/// conditioned.
fn by_likelihood(statistics: &[Statistic]) -> Vec<usize> {
    let mut order = Vec::from_iter(0..statistics.len());
    order.sort_by_key(|&index| statistics[index].probability.yes.max(statistics[index].probability.no));
    order
}

/// By how much a statistic's value at each cell of a support differs from its value at the first, one support after the other.
fn variations(statistic: &Statistic, supports: &[Vec<usize>]) -> Vec<BigRational> {
    let value = |cell: usize| i64::from(statistic.cells[cell]);
    let difference = |cell: usize, first: usize| BigRational::from_integer((value(cell) - value(first)).into());
    supports.iter().flat_map(|cells| cells[1..].iter().map(move |&cell| difference(cell, cells[0]))).collect()
}

/// The covariance of the chosen statistics for one owner under one law, row by row.
fn covariance(statistics: &[Statistic], chosen: &[usize], law: &Law) -> Vec<f64> {
    let pairs = chosen.iter().flat_map(|&row| chosen.iter().map(move |&column| (row, column)));
    let entry = |(row, column): (usize, usize)| {
        let (first, second) = (&statistics[row], &statistics[column]);
        if row == column { variance_of(first, law) } else { covariance_of(first, second, law) }
    };
    pairs.map(entry).collect()
}

fn variance_of(statistic: &Statistic, law: &Law) -> f64 {
    let mean = joint(statistic, statistic, law);
    mean * (1.0 - mean)
}

fn covariance_of(first: &Statistic, second: &Statistic, law: &Law) -> f64 {
    let mean = |statistic| joint(statistic, statistic, law);
    joint(first, second, law) - mean(first) * mean(second)
}

/// The probability that an owner counts in both statistics.
fn joint(first: &Statistic, second: &Statistic, law: &Law) -> f64 {
    let in_both = first.cells.iter().zip(&second.cells).map(|(first, second)| *first && *second);
    let counted = law.probabilities().iter().zip(in_both).filter(|(_, in_both)| *in_both);
    probability_of(counted.map(|(part, _)| part.numerator()).sum())
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

/// The lower triangular factor of a small symmetric positive definite matrix, row by row.
struct Cholesky {
    factor: Vec<f64>,
    size: usize,
}

impl Cholesky {
    fn of(mut matrix: Vec<f64>, size: usize) -> Self {
        for column in 0..size {
            let pivot = matrix[column * size + column].max(f64::MIN_POSITIVE).sqrt();
            for row in column..size {
                matrix[row * size + column] /= pivot;
            }
            for next in column + 1..size {
                for row in next..size {
                    matrix[row * size + next] -= matrix[row * size + column] * matrix[next * size + column];
                }
            }
        }
        Self { factor: matrix, size }
    }

    fn entry(&self, row: usize, column: usize) -> f64 {
        self.factor[row * self.size + column]
    }

    /// Solves the system with this right side.
    fn solve(&self, mut right: Vec<f64>) -> Vec<f64> {
        for row in 0..self.size {
            let known: f64 = (0..row).map(|k| self.entry(row, k) * right[k]).sum();
            right[row] = (right[row] - known) / self.entry(row, row);
        }
        for row in (0..self.size).rev() {
            let known: f64 = (row + 1..self.size).map(|k| self.entry(k, row) * right[k]).sum();
            right[row] = (right[row] - known) / self.entry(row, row);
        }
        right
    }
}
