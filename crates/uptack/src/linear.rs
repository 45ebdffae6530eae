//! The little exact linear algebra that channels need.

use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};

/// Whether the columns of the matrix (a list of rows) are linearly independent.
pub(crate) fn has_full_column_rank(rows: &[Vec<BigRational>]) -> bool {
    let columns = rows.first().map_or(0, Vec::len);
    rank(rows.to_vec()) == columns
}

/// The rank of a matrix, exactly.
pub(crate) fn rank(mut rows: Vec<Vec<BigRational>>) -> usize {
    let columns = rows.first().map_or(0, Vec::len);
    let mut rank = 0;
    for column in 0..columns {
        let Some(pivot) = (rank..rows.len()).find(|&row| !rows[row][column].is_zero()) else { continue };
        rows.swap(rank, pivot);
        let (done, below) = rows.split_at_mut(rank + 1);
        for row in below {
            subtract_multiple(row, &done[rank], column);
        }
        rank += 1;
    }
    rank
}

/// Coefficients `a` with Σ aᵢ·rowᵢ = target, if there are any; rows that are not needed get 0.
pub(crate) fn combination(rows: &[Vec<BigRational>], target: &[BigRational]) -> Option<Vec<BigRational>> {
    let (width, count) = (target.len(), rows.len());
    let basis = Basis::of(rows, width);
    let mut rest: Vec<_> = target.iter().cloned().chain(vec![BigRational::zero(); count]).collect();
    basis.reduce(&mut rest);
    let reached = rest[..width].iter().all(Zero::is_zero);
    reached.then(|| rest[width..].iter().map(|coefficient| -coefficient).collect())
}

/// Rows in echelon form, each with the column of its pivot.
#[derive(Default)]
struct Basis(Vec<(Vec<BigRational>, usize)>);

impl Basis {
    /// A basis of these rows. Each row is followed by its coefficients in terms of the given ones.
    fn of(rows: &[Vec<BigRational>], width: usize) -> Self {
        let mut basis = Self::default();
        for (index, row) in rows.iter().enumerate() {
            let mut coefficients = vec![BigRational::zero(); rows.len()];
            coefficients[index] = BigRational::one();
            basis.extend(row.iter().cloned().chain(coefficients).collect(), width);
        }
        basis
    }

    /// Makes the row zero in the column of every pivot.
    fn reduce(&self, row: &mut [BigRational]) {
        for (basis, pivot) in &self.0 {
            subtract_multiple(row, basis, *pivot);
        }
    }

    /// Adds a row unless its first `width` entries are a combination of those here.
    fn extend(&mut self, mut row: Vec<BigRational>, width: usize) {
        self.reduce(&mut row);
        if let Some(pivot) = row[..width].iter().position(|entry| !entry.is_zero()) {
            self.0.push((row, pivot));
        }
    }
}

/// The nearest double; no rational here is too large for one.
pub(crate) fn to_f64(value: &BigRational) -> f64 {
    value.to_f64().unwrap_or(f64::NAN)
}

/// Makes `row[pivot]` zero by subtracting a multiple of `basis`.
fn subtract_multiple(row: &mut [BigRational], basis: &[BigRational], pivot: usize) {
    if row[pivot].is_zero() {
        return;
    }
    let factor = &row[pivot] / &basis[pivot];
    for (entry, other) in row.iter_mut().zip(basis) {
        *entry -= &factor * other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(entries: &[&[i64]]) -> Vec<Vec<BigRational>> {
        entries.iter().map(|row| row.iter().map(|&e| BigRational::from_integer(e.into())).collect()).collect()
    }

    #[test]
    fn rank_is_exact() {
        assert_eq!(rank(rows(&[&[1, 1, 0], &[0, 1, 1], &[1, 2, 1]])), 2);
        assert_eq!(rank(rows(&[&[0, 0], &[0, 0]])), 0);
        assert_eq!(rank(rows(&[&[0, 1], &[1, 0]])), 2);
    }

    #[test]
    fn combination_reaches_what_it_can() {
        let matrix = rows(&[&[1, 1, 0], &[0, 0, 1], &[1, 0, 0], &[0, 1, 1]]);
        let target = &rows(&[&[0, 1, 0]])[0];
        let coefficients = combination(&matrix, target).unwrap();
        let reached: Vec<BigRational> =
            (0..3).map(|column| coefficients.iter().zip(&matrix).map(|(a, row)| a * &row[column]).sum()).collect();
        assert_eq!(&reached, target);
        assert!(combination(&rows(&[&[1, 1]]), &rows(&[&[1, 0]])[0]).is_none());
    }
}
