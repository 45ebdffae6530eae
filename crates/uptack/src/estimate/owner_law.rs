//! What one owner adds to a weighted count.

use super::observation::probability_of;
use crate::channel::Cell;
use crate::truth::PerTruth;

/// The values that one owner may add to a weighted count, each different, and their probabilities under each truth.
#[derive(Clone, Debug)]
pub(super) struct OwnerLaw {
    pub(super) values: Vec<i64>,
    pub(super) masses: PerTruth<Vec<f64>>,
}

impl OwnerLaw {
    /// From the value that an owner who writes each of the cells adds.
    pub(super) fn new(cells: &[Cell], cell_values: impl Iterator<Item = i64>) -> Self {
        let mut numerators = Numerators::default();
        for (cell, value) in cells.iter().zip(cell_values) {
            numerators.add(value, cell);
        }
        let Numerators { values, masses } = numerators;
        Self { values, masses: masses.map(|masses| masses.into_iter().map(probability_of).collect()) }
    }

    /// The mean of what an owner of each truth adds.
    pub(super) fn means(&self) -> PerTruth<f64> {
        self.masses.each_ref().map(|law| self.moment(law, 1))
    }

    /// The variance of the weighted count at `yes` of `owners`.
    pub(super) fn count_variance(&self, owners: f64, yes: f64) -> f64 {
        yes * self.variance(&self.masses.yes) + (owners - yes) * self.variance(&self.masses.no)
    }

    /// Whether a yes-owner adds more than a no-owner, stochastically: then tails are monotone in the hypothesis. Scores of
    /// classes rise with the ratio of the laws, so that they always do; weights of bins may not.
    pub(super) fn dominates(&self) -> bool {
        let mut order = Vec::from_iter(0..self.values.len());
        order.sort_unstable_by_key(|&index| self.values[index]);
        let mut lead = 0.0;
        order.into_iter().all(|index| {
            lead += self.masses.no[index] - self.masses.yes[index];
            lead >= -1e-12
        })
    }

    /// E\[value^power\] under one of the two laws.
    fn moment(&self, law: &[f64], power: i32) -> f64 {
        self.values.iter().zip(law).map(|(&value, mass)| (value as f64).powi(power) * mass).sum()
    }

    fn variance(&self, law: &[f64]) -> f64 {
        let mean = self.moment(law, 1);
        (self.moment(law, 2) - mean * mean).max(0.0)
    }
}

/// An [`OwnerLaw`] with the numerators of its probabilities, while it is added up.
#[derive(Default)]
struct Numerators {
    values: Vec<i64>,
    masses: PerTruth<Vec<u128>>,
}

impl Numerators {
    fn add(&mut self, value: i64, cell: &Cell) {
        let index = self.values.iter().position(|other| *other == value).unwrap_or(self.values.len());
        if index == self.values.len() {
            self.values.push(value);
            self.masses.yes.push(0);
            self.masses.no.push(0);
        }
        let PerTruth { yes, no } = cell.probability().numerators();
        self.masses.yes[index] += yes;
        self.masses.no[index] += no;
    }
}
