//! The adversary who holds the tallies and knows everybody's truth but the target's.
//!
//! Two crowds that differ in the target's truth are drawn again and again, and the likelihood ratio of the tallies is
//! compared with a threshold that was chosen on the training half. The other owners are all *no* or all *yes*; there the
//! ratio is Σ h·p/q over the cell counts h, or the inverse of Σ h·q/p (up to a constant). Where aggregators add noise, the adversary
//! holds the published sum and knows one aggregator's noise, so that one draw is left in it.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};

use super::bound::{self, Hits};
use super::collect::{HALVES, Pieces, TEST, TRAINING, on_all_threads};
use super::subject::{AuditCoins, Subject};
use super::{Event, Finding};
use crate::channel::{Channel, Class, Output};
use crate::error::Error;
use crate::linear;
use crate::noise::SummedBit;
use crate::packed::Truths;
use crate::privacy::Direction;
use crate::probability::Probability;
use crate::simulate::Progress;
use crate::truth::Truth;

/// Two crowds, two worlds, two halves.
pub(super) const KINDS: u64 = 8;

/// How many releases of small crowds are drawn in one call of the sampler, whose owners are independent of each other.
pub(super) fn group(owners: u64) -> u64 {
    const OWNERS_PER_CALL: u64 = 2048;
    (OWNERS_PER_CALL / owners).max(1)
}

/// What is attacked, and how hard.
pub(super) struct Attack<'a> {
    pub(super) channel: &'a Channel,
    pub(super) owners: u64,
    /// Releases of each kind; whole groups.
    pub(super) releases: u64,
    pub(super) delta: f64,
    pub(super) miss: f64,
    pub(super) coins: AuditCoins,
}

impl Attack<'_> {
    pub(super) fn run(
        &self,
        subject: &impl Subject,
        claimed: Option<f64>,
        progress: &Progress,
    ) -> Result<Finding, Error> {
        let crowds = [false, true];
        let scores = crowds.map(|crowd| Score::new(self.channel, self.owners, crowd));
        let work = |counts: &mut [Scores; 2], piece: u64| {
            for crowd in crowds {
                let score = &scores[usize::from(crowd)];
                self.group(subject, piece, crowd, score, &mut counts[usize::from(crowd)])?;
            }
            Ok(())
        };
        let group = group(self.owners);
        let pieces = Pieces { count: self.releases / group, calls: KINDS * group * self.owners, progress };
        let counts = on_all_threads(pieces, Default::default, work, merge)?;
        Ok(self.conclude(&scores, &counts, claimed))
    }

    /// Draws one group of releases of each world and half for one crowd.
    fn group(
        &self,
        subject: &impl Subject,
        piece: u64,
        crowd: bool,
        score: &Score,
        counts: &mut Scores,
    ) -> Result<(), Error> {
        let group = group(self.owners) as usize;
        for (half, world) in [(TRAINING, false), (TRAINING, true), (TEST, false), (TEST, true)] {
            let kind = 4 * u64::from(crowd) + 2 * half as u64 + u64::from(world);
            let mut coins = self.coins.of(3, KINDS * piece + kind);
            let cells: Vec<usize> = subject.draw_many(&self.truths(piece, crowd, world), &mut coins)?.iter().collect();
            let noise = match self.channel.noise() {
                Some(noise) => subject.draw_noise(noise, group, &mut coins)?,
                None => vec![0; group],
            };
            for (release, noise) in cells.chunks_exact(cells.len() / group).zip(noise) {
                let score = score.of(&self.tally(release), noise);
                counts.entry(score).or_default()[half][usize::from(world)] += 1;
            }
        }
        Ok(())
    }

    /// The truths of one group of releases: the target's is `world`, all others' are `crowd`.
    fn truths(&self, piece: u64, crowd: bool, world: bool) -> Truths {
        let group = group(self.owners);
        let target = |release: u64| (piece * group + release) % self.owners;
        let truth = |release, owner| Truth::from_bool(if owner == target(release) { world } else { crowd });
        (0..group).flat_map(|release| (0..self.owners).map(move |owner| truth(release, owner))).collect()
    }

    /// How often each cell came up.
    fn tally(&self, cells: &[usize]) -> Vec<u64> {
        let mut tally = vec![0; self.channel.cells().len()];
        cells.iter().for_each(|&cell| tally[cell] += 1);
        tally
    }

    fn conclude(&self, scores: &[Score; 2], counts: &[Scores; 2], claimed: Option<f64>) -> Finding {
        let choices = [0, 1].into_iter().flat_map(|crowd| Direction::BOTH.map(|direction| (crowd, direction)));
        let best = choices
            .map(|(crowd, direction)| (crowd, direction, self.best_threshold(&counts[crowd], direction)))
            .max_by(|a, b| a.2.promise.total_cmp(&b.2.promise));
        let Some((crowd, direction, best)) = best.filter(|(.., best)| best.promise > 0.0) else {
            return Finding::nothing(claimed);
        };
        let (first, second) = self.sides(direction, test_hits(&counts[crowd], direction, best.threshold));
        let description = self.describe(scores[crowd].exact, crowd == 1, direction, best.threshold);
        let epsilon = bound::epsilon(first, second, self.delta, self.miss);
        Finding::new(claimed, epsilon, Event::new(description, direction, first, second))
    }

    /// Hits in the worlds no and yes, the world that the direction speaks for first.
    fn sides(&self, direction: Direction, hits: [u64; 2]) -> (Hits, Hits) {
        let [no, yes] = hits.map(|hits| Hits { hits, trials: self.releases });
        if direction == Direction::YesOverNo { (yes, no) } else { (no, yes) }
    }

    fn describe(&self, exact: bool, crowd: bool, direction: Direction, threshold: Ordered) -> String {
        let owners = self.owners as f64;
        let value = match (exact, crowd) {
            (true, false) => format!("likelihood ratio yes:no {{}} {:.6}", threshold.0 / owners),
            (true, true) => format!("likelihood ratio yes:no {{}} {:.6}", -owners / threshold.0),
            (false, _) if self.channel.noise().is_some() => {
                format!("the sum with one aggregator's noise, counted for yes, {{}} {}", threshold.0)
            }
            (false, _) => format!("weighted tallies {{}} {:.6}", threshold.0),
        };
        let relation = if direction == Direction::YesOverNo { "at least" } else { "at most" };
        let truth = if crowd { "yes" } else { "no" };
        format!("{} among {} others who hold {truth}", value.replace("{}", relation), self.owners - 1)
    }

    fn best_threshold(&self, counts: &Scores, direction: Direction) -> Promise {
        let z = bound::rough_quantile(self.miss);
        let mut best = Promise { promise: 0.0, threshold: Ordered(0.0) };
        let mut hits = [0, 0];
        let pass = |(threshold, count): (&Ordered, &[[u64; 2]; HALVES])| {
            hits = [hits[0] + count[TRAINING][0], hits[1] + count[TRAINING][1]];
            let (first, second) = self.sides(direction, hits);
            let promise = bound::rough_epsilon(first, second, self.delta, z);
            if promise > best.promise {
                best = Promise { promise, threshold: *threshold };
            }
        };
        match direction {
            Direction::YesOverNo => counts.iter().rev().for_each(pass),
            Direction::NoOverYes => counts.iter().for_each(pass),
        }
        best
    }
}

/// A threshold of the score, and the ε that it seems to prove on the training half.
struct Promise {
    promise: f64,
    threshold: Ordered,
}

/// For each score how often it came up, by half and world (no, yes).
type Scores = BTreeMap<Ordered, [[u64; 2]; HALVES]>;

/// How often a score of the test half was on the direction's side of the threshold, by world (no, yes).
fn test_hits(counts: &Scores, direction: Direction, threshold: Ordered) -> [u64; 2] {
    let inside = counts.iter().filter(|(score, _)| score.speaks_for(direction, threshold));
    inside.fold([0, 0], |sum, (_, count)| [sum[0] + count[TEST][0], sum[1] + count[TEST][1]])
}

fn merge(all: &mut [Scores; 2], part: [Scores; 2]) {
    for (all, part) in all.iter_mut().zip(part) {
        for (score, count) in part {
            let sums = all.entry(score).or_default();
            sums.iter_mut().flatten().zip(count.iter().flatten()).for_each(|(sum, count)| *sum += count);
        }
    }
}

/// A number with its total order; the larger, the likelier is a *yes*.
#[derive(Clone, Copy, Debug)]
struct Ordered(f64);

impl Ordered {
    fn speaks_for(self, direction: Direction, threshold: Self) -> bool {
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

/// A weighted sum of visible counts.
///
/// Where the tallies fix the cells, the visible counts are those of the cells; else only those of the bins, so that the
/// adversary never uses what the release does not show.
struct Score {
    terms: Vec<(Vec<usize>, f64)>,
    /// Whether it is the likelihood ratio, and not only a guess at it.
    exact: bool,
    /// How the noise counts; 0 where there is none.
    noise_weight: f64,
}

impl Score {
    fn new(channel: &Channel, owners: u64, crowd: bool) -> Self {
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

    /// The published sum. All its parts have log-concave laws, so that the likelihood ratio is monotone in it.
    fn of_sum(channel: &Channel, bit: SummedBit) -> Self {
        let weight = if bit.yes >= bit.no { 1.0 } else { -1.0 };
        let ones = |cell: &usize| channel.cells()[*cell].outputs()[0] == Output::ONE;
        let ones = (0..channel.cells().len()).filter(ones).collect();
        Self { terms: vec![(ones, weight)], exact: false, noise_weight: weight }
    }

    /// The same sum written with bins; where it cannot be, the sum that each answer alone would suggest.
    fn of_bins(channel: &Channel, weights: &[BigRational]) -> Self {
        let matrix = channel.matrix();
        let counted = |row: &Vec<i64>| (0..row.len()).filter(|&cell| row[cell] == 1).collect();
        let members: Vec<Vec<usize>> = matrix.iter().map(counted).collect();
        // Impossible cells set no condition.
        let target: Vec<BigRational> = channel.possible_cells().iter().map(|&cell| weights[cell].clone()).collect();
        let combination = linear::combination(&channel.matrix_of_possible_cells(), &target);
        let exact = combination.is_some();
        let bins = combination.unwrap_or_else(|| members.iter().map(|cells| mean(channel, weights, cells)).collect());
        Self { terms: members.into_iter().zip(bins.iter().map(approximate)).collect(), exact, noise_weight: 0.0 }
    }

    fn of(&self, cells: &[u64], noise: i64) -> Ordered {
        let count = |members: &[usize]| members.iter().map(|&cell| cells[cell]).sum::<u64>() as f64;
        let counted: f64 = self.terms.iter().map(|(members, weight)| weight * count(members)).sum();
        // Adding 0 turns the −0 that no owners in any weighted cell would give into 0.
        Ordered(counted + self.noise_weight * noise as f64 + 0.0)
    }
}

fn approximate(weight: &BigRational) -> f64 {
    weight.to_f64().unwrap_or(0.0)
}

/// The mean weight of a bin's cells, each as likely as it is on average over the truths.
fn mean(channel: &Channel, weights: &[BigRational], members: &[usize]) -> BigRational {
    let share = |cell: usize| {
        let cell = &channel.cells()[cell];
        BigRational::from_integer((cell.yes().numerator() + cell.no().numerator()).into())
    };
    let total: BigRational = members.iter().map(|&cell| share(cell)).sum();
    if total.is_zero() {
        return total;
    }
    members.iter().map(|&cell| share(cell) * &weights[cell]).sum::<BigRational>() / total
}

/// For each cell p/q in a crowd of *no*, −q/p in a crowd of *yes*. A cell that only one truth can reach outweighs all
/// other owners together.
fn weights(channel: &Channel, owners: u64, crowd: bool) -> Vec<BigRational> {
    let classes = channel.classes();
    let ratios = classes.iter().filter_map(|class| ratio(class, crowd));
    let largest = ratios.fold(BigRational::one(), |most, ratio| most.max(ratio));
    let outweighing = largest * BigRational::from_integer((u128::from(owners) + 1).into());
    let mut weights = vec![BigRational::zero(); channel.cells().len()];
    for class in &classes {
        let weight = ratio(class, crowd).unwrap_or_else(|| outweighing.clone());
        let signed = if crowd { -weight } else { weight };
        class.cells.iter().for_each(|&cell| weights[cell] = signed.clone());
    }
    weights
}

/// How much likelier a class is under the truth that the crowd does not hold; none where only that truth reaches it.
fn ratio(class: &Class, crowd: bool) -> Option<BigRational> {
    let whole = |probability: Probability| BigRational::from_integer(probability.numerator().into());
    let (top, bottom) = if crowd { (class.no, class.yes) } else { (class.yes, class.no) };
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
