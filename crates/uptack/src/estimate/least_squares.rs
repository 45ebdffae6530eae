//! The linear algebra of generalized least squares: which counts to combine, their covariance, and its inverse.

use num_rational::BigRational;
use num_traits::Zero;

use super::observation::Statistic;
use crate::channel::{Cell, Channel, Law};
use crate::linear;
use crate::probability::Probability;

/// Statistics no combination of which is without variance under both truths, as many as there are.
///
/// A combination has no variance under a truth where it is constant over the cells that truth can reach.
pub(super) fn independent(channel: &Channel, statistics: &[Statistic]) -> Vec<usize> {
    let supports = [support(channel, Cell::yes), support(channel, Cell::no)];
    // The likeliest statistic is left out first, so that what is kept is small and well conditioned.
    let mut order: Vec<usize> = (0..statistics.len()).collect();
    order.sort_by_key(|&index| statistics[index].yes.max(statistics[index].no));
    let (mut kept, mut rows): (Vec<usize>, Vec<Vec<BigRational>>) = (Vec::new(), Vec::new());
    for index in order {
        let row: Vec<_> = supports.iter().flat_map(|support| variation(&statistics[index], support)).collect();
        if row.iter().any(|entry| !entry.is_zero()) && linear::combination(&rows, &row).is_none() {
            kept.push(index);
            rows.push(row);
        }
    }
    kept
}

/// The cells that a truth can reach.
fn support(channel: &Channel, law: Law) -> Vec<usize> {
    (0..channel.cells().len()).filter(|&cell| law(&channel.cells()[cell]) != Probability::ZERO).collect()
}

/// By how much a statistic's value at each cell differs from its value at the first.
fn variation(statistic: &Statistic, cells: &[usize]) -> Vec<BigRational> {
    let value = |cell: usize| i64::from(statistic.cells[cell]);
    let difference = |&cell: &usize| BigRational::from_integer((value(cell) - value(cells[0])).into());
    cells[1..].iter().map(difference).collect()
}

/// The covariance of the chosen statistics for one owner under one law, row by row.
pub(super) fn covariance(channel: &Channel, statistics: &[Statistic], chosen: &[usize], law: Law) -> Vec<f64> {
    let mean = |index: usize| -> f64 { joint(channel, statistics, index, index, law) };
    let entry = |(row, column): (usize, usize)| {
        let (row, column) = (chosen[row], chosen[column]);
        if row == column {
            return mean(row) * (1.0 - mean(row));
        }
        joint(channel, statistics, row, column, law) - mean(row) * mean(column)
    };
    let size = chosen.len();
    (0..size * size).map(|at| entry((at / size, at % size))).collect()
}

/// The probability that an owner counts in both statistics.
fn joint(channel: &Channel, statistics: &[Statistic], first: usize, second: usize, law: Law) -> f64 {
    let both = |cell: usize| statistics[first].cells[cell] && statistics[second].cells[cell];
    let cells = channel.cells().iter().enumerate().filter(|(cell, _)| both(*cell));
    cells.map(|(_, cell)| law(cell).numerator()).sum::<u128>() as f64 / Probability::ONE.numerator() as f64
}

pub(super) fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

/// Solves a small symmetric positive definite system by Cholesky's method.
pub(super) fn solve_positive(mut matrix: Vec<f64>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    factorize(&mut matrix, size);
    for row in 0..size {
        let known: f64 = (0..row).map(|k| matrix[row * size + k] * right[k]).sum();
        right[row] = (right[row] - known) / matrix[row * size + row];
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|k| matrix[k * size + row] * right[k]).sum();
        right[row] = (right[row] - known) / matrix[row * size + row];
    }
    right
}

/// Replaces the lower triangle of a matrix by its Cholesky factor.
fn factorize(matrix: &mut [f64], size: usize) {
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
}
