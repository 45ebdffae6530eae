//! How many owners contributed to each count.

use crate::error::{Error, Result};

/// The sums of many owners' reports: for each count, how many of them have its bit set.
///
/// ```
/// use uptack::contribution::ContributionCounts;
/// let mut counts = ContributionCounts::new(3);
/// counts.add_report([0, 2]);
/// counts.add_report([2]);
/// assert_eq!((counts.owners(), counts.counts()), (2, [1, 0, 2].as_slice()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContributionCounts {
    owners: u64,
    counts: Vec<u64>,
}

impl ContributionCounts {
    /// No owners yet, and this many counts.
    pub fn new(counts: usize) -> Self {
        Self { owners: 0, counts: vec![0; counts] }
    }

    /// Counts of a known number of owners, none of whom adds twice to a count.
    pub fn of(owners: u64, counts: Vec<u64>) -> Result<Self> {
        if let Some(index) = counts.iter().position(|&count| count > owners) {
            let (number, count) = (index + 1, counts[index]);
            return Err(Error::counts(format!("count {number} is {count}, which exceeds the {owners} owners")));
        }
        Ok(Self { owners, counts })
    }

    /// Adds the report of one owner: the distinct counts to which it contributed.
    ///
    /// # Panics
    ///
    /// If a count is not one of these.
    pub fn add_report(&mut self, report: impl IntoIterator<Item = usize>) {
        self.owners += 1;
        report.into_iter().for_each(|count| self.counts[count] += 1);
    }

    /// Adds the reports of other owners, which must be of as many counts.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let (ours, theirs) = (self.counts.len(), other.counts.len());
        if ours != theirs {
            return Err(Error::counts(format!("{theirs} counts cannot be added to {ours}")));
        }
        self.owners += other.owners;
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        Ok(())
    }

    /// How many owners reported.
    pub fn owners(&self) -> u64 {
        self.owners
    }

    /// For each count, how many of them contributed to it.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_counts_are_refused() {
        assert!(ContributionCounts::of(3, vec![3, 0]).is_ok());
        let error = ContributionCounts::of(3, vec![3, 4]).unwrap_err();
        assert_eq!(error.to_string(), "count 2 is 4, which exceeds the 3 owners");
        assert!(ContributionCounts::new(2).merge(&ContributionCounts::new(3)).is_err());
    }

    #[test]
    fn merged_counts_add_up() {
        let mut one = ContributionCounts::of(5, vec![1, 2]).unwrap();
        one.merge(&ContributionCounts::of(2, vec![2, 0]).unwrap()).unwrap();
        assert_eq!(one, ContributionCounts::of(7, vec![3, 2]).unwrap());
    }
}
