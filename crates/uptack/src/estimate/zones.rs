//! Zones of neighbouring hypotheses, and the whole weights by which the owners are counted in each.

use std::f64::consts::SQRT_2;

use num_integer::Integer;

use super::combined::Estimator;
use super::hypothesis::{OwnerLaw, Zone};
use super::observation::Statistic;

impl Estimator {
    /// All hypotheses 0..=owners, in zones.
    pub(super) fn zones(&self, owners: u64) -> Vec<Zone> {
        let mut zones: Vec<Zone> = Vec::new();
        for (first, last) in ranges(owners) {
            let weights = self.whole_weights(owners, middle(owners, first, last));
            match zones.last_mut() {
                Some(zone) if zone.weights == weights => zone.last = last,
                _ => zones.push(self.zone(owners, (first, last), weights)),
            }
        }
        zones
    }

    /// The zone that a hypothesis belongs to, or a part of it.
    pub(super) fn zone_of(&self, owners: u64, yes: u64) -> Zone {
        let ranges = ranges(owners);
        let (first, last) = ranges[ranges.partition_point(|&(_, last)| last < yes)];
        self.zone(owners, (first, last), self.whole_weights(owners, middle(owners, first, last)))
    }

    fn zone(&self, owners: u64, (first, last): (u64, u64), weights: Vec<i64>) -> Zone {
        let law = self.owner_law(&weights);
        Zone { first, last, owners, weights, law, noise: self.added_noise() }
    }

    /// What an owner who writes each of the cells adds to the statistic of a zone.
    pub(super) fn cell_values(&self, zone: &Zone) -> Vec<i64> {
        self.values_by_cell(&zone.weights).collect()
    }

    fn owner_law(&self, weights: &[i64]) -> OwnerLaw {
        OwnerLaw::new(self.cells(), self.values_by_cell(weights))
    }

    fn values_by_cell(&self, weights: &[i64]) -> impl Iterator<Item = i64> {
        (0..self.cells().len()).map(move |cell| {
            let counted = weights.iter().zip(self.statistics()).filter(|(_, statistic)| statistic.cells[cell]);
            counted.map(|(weight, _)| weight).sum()
        })
    }

    /// The score of each statistic at `yes`, rounded to whole numbers without a common divisor.
    fn whole_weights(&self, owners: u64, yes: f64) -> Vec<i64> {
        if self.statistics().len() == 1 {
            return self.single(owners as f64);
        }
        let weights = self.rounded_scores(owners, yes);
        if self.owner_law(&weights).dominates() { weights } else { self.single(owners as f64) }
    }

    /// The scores at `yes` of `owners`, rounded on the coarsest scale that is worth it, and in small crowds on the finest.
    fn rounded_scores(&self, owners: u64, yes: f64) -> Vec<i64> {
        let scores = self.scores(owners as f64, yes);
        let finest = finest(owners);
        let coarsest = if owners <= FINE_CROWD { finest } else { 1 };
        let mut best = (0.0, Vec::new());
        for scale in coarsest..=finest {
            let weights = rounded(&scores, scale);
            let efficiency = self.efficiency(&weights, owners as f64, yes);
            if efficiency > best.0 + WORTHWHILE {
                best = (efficiency, weights);
            }
        }
        best.1
    }

    /// Counts by one statistic alone.
    fn single(&self, owners: f64) -> Vec<i64> {
        let best = self.best_statistic(owners);
        let statistic = &self.statistics()[best];
        let mut weights = vec![0; self.statistics().len()];
        weights[best] = if statistic.probability.difference() > 0.0 { 1 } else { -1 };
        weights
    }

    /// The index of the statistic that is the best one by itself for a crowd of two halves.
    fn best_statistic(&self, owners: f64) -> usize {
        let informative = self.statistics().iter().enumerate().filter(|(_, statistic)| statistic.is_informative());
        let variance = |statistic: &Statistic| statistic.variance(owners, owners / 2.0);
        let best = informative.min_by(|(_, a), (_, b)| variance(a).total_cmp(&variance(b)));
        best.expect("an estimator has an informative count").0
    }

    /// (difference of the means)²/variance of the weighted count, relative to that of the estimate: what it says about the truth.
    fn efficiency(&self, weights: &[i64], owners: f64, yes: f64) -> f64 {
        let law = self.owner_law(weights);
        let means = law.means();
        (means.yes - means.no).powi(2) / law.count_variance(owners, yes) * self.variance(owners, yes)
    }
}

/// A finer scale is used only if it explains this much more of the variance.
const WORTHWHILE: f64 = 5e-4;
/// Up to this many owners the finest scale is always used: it separates outcomes that a coarser one counts as equal.
const FINE_CROWD: u64 = 400;

/// The largest weight: finer in small crowds, where the law is cheap and outcomes are few. It is odd there, so that what
/// lies half way between two classes is not exactly half way between their weights, and fewer outcomes count the same.
fn finest(owners: u64) -> i64 {
    if owners <= FINE_CROWD { (1800 / owners.max(1) as i64).clamp(7, 25) | 1 } else { 12 }
}

/// Scores as whole numbers from 0 to `scale`, divided by what they have in common.
fn rounded(scores: &[f64], scale: i64) -> Vec<i64> {
    let low = scores.iter().copied().fold(f64::INFINITY, f64::min);
    let high = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let place = |score: &f64| ((score - low) / (high - low) * scale as f64).round() as i64;
    without_common_divisor(scores.iter().map(place).collect())
}

fn without_common_divisor(mut weights: Vec<i64>) -> Vec<i64> {
    let divisor = weights.iter().fold(0_i64, |divisor, weight| divisor.gcd(weight)).max(1);
    for weight in &mut weights {
        *weight /= divisor;
    }
    weights
}

/// Ranges of hypotheses over which the smaller of yes and no changes by a factor of at most √2.
fn ranges(owners: u64) -> Vec<(u64, u64)> {
    let starts = starts(owners);
    let ends = starts[1..].iter().map(|start| start - 1).chain([owners]);
    starts.iter().copied().zip(ends).collect()
}

/// The first hypothesis of each range.
fn starts(owners: u64) -> Vec<u64> {
    let mut starts = vec![0];
    let mut next = 1.0f64;
    while next.ceil() as u64 <= owners / 2 {
        let start = next.ceil() as u64;
        starts.extend([start, owners - start + 1]);
        next *= SQRT_2;
    }
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// The geometric middle of a range, seen from the nearer end of all hypotheses.
fn middle(owners: u64, first: u64, last: u64) -> f64 {
    let all = owners as f64;
    let yes = if first <= owners - last {
        geometric_mean(first, last)
    } else {
        all - geometric_mean(owners - last, owners - first)
    };
    // Beyond 2^53 owners, half an owner less is the same number.
    yes.clamp(0.5f64.min(all / 2.0), (all - 0.5).max(all / 2.0).min(all.next_down()))
}

/// The geometric mean of two counts, where 0 counts as one half.
fn geometric_mean(a: u64, b: u64) -> f64 {
    ((a as f64).max(0.5) * (b as f64).max(0.5)).sqrt()
}
