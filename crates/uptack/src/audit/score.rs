//! The likelihood ratio of tallies, as a weighted sum of what they show.
//!
//! If all owners but the target are *no*, the ratio is Σ h·p/q over the cell counts h; if they are all *yes*, it is the inverse
//! of Σ h·q/p (both up to a constant).

use std::cmp::Ordering;

use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};

use crate::channel::{Bin, Channel, Class, Output, SummedBit};
use crate::linear;
use crate::privacy::Direction;
use crate::probability::Probability;

/// A weighted sum of visible counts.
///
/// If the tallies determine the cells, the visible counts are those of the cells, otherwise those of the bins: the adversary
/// never uses what the release does not show.
pub(super) struct Score {
    terms: Vec<(Vec<usize>, f64)>,
    /// Whether it is the likelihood ratio, and not only a guess at it.
    pub(super) exact: bool,
    /// How the noise counts; 0 if there is none.
    noise_weight: f64,
}

impl Score {
    /// The score of a target among `owners` owners if the truth of all others is `crowd`.
    pub(super) fn new(channel: &Channel, owners: u64, crowd: bool) -> Self {
        if let Some(bit) = channel.noise().and(channel.summed_bit()) {
            return Self::of_sum(channel, bit);
        }
        let weights = weights(channel, owners, crowd);
        if channel.determined() {
            let terms = weights.iter().enumerate().map(|(cell, weight)| (vec![cell], approximate(weight)));
            return Self { terms: terms.collect(), exact: true, noise_weight: 0.0 };
        }
        Self::of_bins(channel, &weights)
    }

    /// The published sum. All its parts have log-concave laws, so the likelihood ratio is monotone in it.
    fn of_sum(channel: &Channel, bit: SummedBit) -> Self {
        let weight = if bit.yes >= bit.no { 1.0 } else { -1.0 };
        let ones = channel.cells_in(Bin { answer: 0, output: Output::ONE });
        Self { terms: vec![(ones, weight)], exact: false, noise_weight: weight }
    }

    /// The same sum written with bins; if that is impossible, the sum that each answer alone would suggest.
    fn of_bins(channel: &Channel, weights: &[BigRational]) -> Self {
        let members = cells_by_bin(channel);
        // Impossible cells set no condition.
        let target: Vec<BigRational> = channel.possible_cells().iter().map(|&cell| weights[cell].clone()).collect();
        let combination = linear::combination(&channel.matrix_of_possible_cells(), &target);
        let exact = combination.is_some();
        let bins = combination.unwrap_or_else(|| members.iter().map(|cells| mean(channel, weights, cells)).collect());
        Self { terms: members.into_iter().zip(bins.iter().map(approximate)).collect(), exact, noise_weight: 0.0 }
    }

    /// The score of the counts of cells, and of the noise that is added to the sum.
    pub(super) fn of(&self, cells: &[u64], noise: i64) -> Ordered {
        let count = |members: &[usize]| members.iter().map(|&cell| cells[cell]).sum::<u64>() as f64;
        let counted: f64 = self.terms.iter().map(|(members, weight)| weight * count(members)).sum();
        // Adding 0 turns the −0 that no owners in any weighted cell would give into 0.
        Ordered(counted + self.noise_weight * noise as f64 + 0.0)
    }
}

/// A number with its total order; the larger, the likelier is a *yes*.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordered(pub(super) f64);

impl Ordered {
    /// Whether it is on the direction's side of a threshold.
    pub(super) fn speaks_for(self, direction: Direction, threshold: Self) -> bool {
        match direction {
            Direction::YesOverNo => self >= threshold,
            Direction::NoOverYes => self <= threshold,
        }
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ordered {}

fn approximate(weight: &BigRational) -> f64 {
    weight.to_f64().unwrap_or(0.0)
}

/// The cells that each bin counts.
fn cells_by_bin(channel: &Channel) -> Vec<Vec<usize>> {
    channel.bins().into_iter().map(|bin| channel.cells_in(bin)).collect()
}

/// The mean weight of a bin's cells, each as likely as it is on average over the truths.
fn mean(channel: &Channel, weights: &[BigRational], members: &[usize]) -> BigRational {
    let total: BigRational = members.iter().map(|&cell| likelihood(channel, cell)).sum();
    if total.is_zero() {
        return total;
    }
    members.iter().map(|&cell| likelihood(channel, cell) * &weights[cell]).sum::<BigRational>() / total
}

/// How likely a cell is under both truths together, up to a constant.
fn likelihood(channel: &Channel, cell: usize) -> BigRational {
    let cell = &channel.cells()[cell];
    BigRational::from_integer((cell.yes().numerator() + cell.no().numerator()).into())
}

/// For each cell p/q in a crowd of *no*, −q/p in a crowd of *yes*.
fn weights(channel: &Channel, owners: u64, crowd: bool) -> Vec<BigRational> {
    let classes = channel.classes();
    let outweighing = outweighing(&classes, owners, crowd);
    let mut weights = vec![BigRational::zero(); channel.cells().len()];
    for class in &classes {
        let weight = ratio(class, crowd).unwrap_or_else(|| outweighing.clone());
        let signed = if crowd { -weight } else { weight };
        class.cells.iter().for_each(|&cell| weights[cell] = signed.clone());
    }
    weights
}

/// The weight of a cell that only one truth can reach: more than all other owners have together.
fn outweighing(classes: &[Class], owners: u64, crowd: bool) -> BigRational {
    let ratios = classes.iter().filter_map(|class| ratio(class, crowd));
    let largest = ratios.fold(BigRational::one(), |most, ratio| most.max(ratio));
    largest * BigRational::from_integer((u128::from(owners) + 1).into())
}

/// How much likelier a class is under the truth that the crowd does not hold; none if only that truth reaches it.
fn ratio(class: &Class, crowd: bool) -> Option<BigRational> {
    let whole = |probability: Probability| BigRational::from_integer(probability.numerator().into());
    let (top, bottom) = if crowd {
        (class.probability.no, class.probability.yes)
    } else {
        (class.probability.yes, class.probability.no)
    };
    (bottom != Probability::ZERO).then(|| whole(top) / whole(bottom))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;

    fn channel(text: &str) -> Channel {
        text.parse::<Mechanism>().unwrap().channel()
    }

    #[test]
    fn the_score_is_the_sum_of_ratios() {
        let channel = channel("custom(1=1/2:1/8, 0=1/2:7/8)");
        let score = Score::new(&channel, 10, false);
        assert!((score.of(&[3, 7], 0).0 - (3.0 * 4.0 + 7.0 * 4.0 / 7.0)).abs() < 1e-12);
        let score = Score::new(&channel, 10, true);
        assert!((score.of(&[3, 7], 0).0 + 3.0 / 4.0 + 7.0 * 7.0 / 4.0).abs() < 1e-12);
    }

    #[test]
    fn a_cell_that_gives_the_truth_away_outweighs_everybody() {
        let channel = channel("cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)");
        let shown = channel.cells().iter().position(|cell| cell.name() == "13").unwrap();
        let base = channel.cells().iter().position(|cell| cell.name() == "11").unwrap();
        let score = Score::new(&channel, 50, false);
        let mut counts = vec![0; channel.cells().len()];
        counts[base] = 50;
        let hidden = score.of(&counts, 0);
        (counts[base], counts[shown]) = (49, 1);
        assert!(score.of(&counts, 0) > hidden);
    }

    /// The pairs of `spread` hide which pair carried the shift, not how many did: the sum of ratios is visible.
    #[test]
    fn bins_are_enough_where_the_ratio_is_visible() {
        let channel = channel("spread(pairs=2,f=1/2,r=1/8)");
        assert!(!channel.determined());
        let weights = weights(&channel, 20, false);
        let score = Score::new(&channel, 20, false);
        assert_eq!(score.terms.len(), channel.bins().len());
        for (cell, weight) in weights.iter().enumerate() {
            let mut counts = vec![0; channel.cells().len()];
            counts[cell] = 1;
            assert!((score.of(&counts, 0).0 - approximate(weight)).abs() < 1e-9);
        }
    }
}
