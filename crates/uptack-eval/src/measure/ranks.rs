//! Ranks of stations by their vehicles.

use std::ops::Range;

/// For each station, the ranks that are right for it, from the most vehicles down. Stations with equally many vehicles
/// share theirs.
pub(super) struct TrueRanks(Vec<Range<usize>>);

impl TrueRanks {
    pub(super) fn new(vehicles: &[u64]) -> Self {
        let mut sorted = vehicles.to_vec();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let ranks = |yes: &u64| {
            let larger = sorted.partition_point(|other| other > yes);
            larger..sorted.partition_point(|other| other >= yes)
        };
        Self(vehicles.iter().map(ranks).collect())
    }

    /// The number of stations whose estimates have a right rank.
    pub(super) fn right(&self, estimates: &[f64]) -> u64 {
        let mut order = Vec::from_iter(0..estimates.len());
        order.sort_unstable_by(|&a, &b| estimates[b].total_cmp(&estimates[a]).then(a.cmp(&b)));
        let right = order.into_iter().enumerate().filter(|(rank, station)| self.0[*station].contains(rank));
        right.count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_count_has_every_rank_right_and_noise_does_not() {
        let ranks = TrueRanks::new(&[5, 1, 5, 0]);
        assert_eq!(ranks.right(&[5.0, 1.0, 5.0, 0.0]), 4);
        assert_eq!(ranks.right(&[4.0, 1.0, 9.0, 0.0]), 4, "equals may change places");
        assert_eq!(ranks.right(&[0.0, 1.0, 9.0, 7.0]), 2);
    }
}
