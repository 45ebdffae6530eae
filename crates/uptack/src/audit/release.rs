//! The adversary who holds the tallies and knows everybody's truth but the target's.
//!
//! Two crowds that differ in the target's truth are drawn again and again, and the likelihood ratio of the tallies is
//! compared with a threshold that was chosen on the training half. The other owners are all *no* or all *yes*. If the
//! aggregators add noise, the adversary holds the published sum and knows the noise of one aggregator: one draw is left in it.

use std::collections::BTreeMap;

use super::bound::{self, Hits};
use super::collect::{HALVES, Pieces, TEST, TRAINING, on_all_threads};
use super::score::{Ordered, Score};
use super::subject::{AuditCoins, Source, Subject};
use super::{Event, Finding};
use crate::channel::Channel;
use crate::error::Result;
use crate::packed::Truths;
use crate::privacy::Direction;
use crate::progress::Progress;
use crate::truth::Truth;

/// Two crowds, two worlds, two halves.
pub(super) const KINDS: u64 = 8;

/// How many releases of small crowds are drawn in one call of the sampler, whose owners are independent of each other.
pub(super) fn group_size(owners: u64) -> u64 {
    const OWNERS_PER_CALL: u64 = 2048;
    (OWNERS_PER_CALL / owners).max(1)
}

/// What is attacked, and how hard.
pub(super) struct ReleaseAttack<'a> {
    pub(super) channel: &'a Channel,
    pub(super) owners: u64,
    /// Releases of each kind; whole groups.
    pub(super) releases: u64,
    pub(super) delta: f64,
    pub(super) miss: f64,
    pub(super) coins: AuditCoins,
}

impl ReleaseAttack<'_> {
    pub(super) fn run(&self, subject: &impl Subject, claimed: Option<f64>, progress: &Progress) -> Result<Finding> {
        let crowds = [false, true].map(|others| TargetCrowd::new(self, others));
        let work = |counts: &mut [Scores; 2], piece: u64| {
            crowds.iter().zip(counts).try_for_each(|(crowd, counts)| crowd.draw_group(subject, piece, counts))
        };
        let group = group_size(self.owners);
        let pieces = Pieces { count: self.releases / group, calls: KINDS * group * self.owners, progress };
        let counts = on_all_threads(pieces, Default::default, work, merge)?;
        Ok(self.conclude(&crowds, &counts, claimed))
    }

    /// Tests the threshold that promises most on the training half on the other half.
    fn conclude(&self, crowds: &[TargetCrowd<'_>; 2], counts: &[Scores; 2], claimed: Option<f64>) -> Finding {
        let Some(PromisingThreshold { crowd, direction, threshold, .. }) = self.most_promising(counts) else {
            return Finding::nothing(claimed);
        };
        let [first, second] = self.sides(direction, test_hits(&counts[crowd], direction, threshold));
        let epsilon = bound::epsilon(first, second, self.delta, self.miss);
        let description = crowds[crowd].describe(direction, threshold);
        Finding::new(claimed, epsilon, Event::new(description, direction, first, second))
    }

    fn most_promising(&self, counts: &[Scores; 2]) -> Option<PromisingThreshold> {
        let choices = [0, 1].into_iter().flat_map(|crowd| Direction::BOTH.map(|direction| (crowd, direction)));
        let best = choices
            .map(|(crowd, direction)| self.best_threshold(crowd, direction, &counts[crowd]))
            .max_by(|one, other| one.epsilon.total_cmp(&other.epsilon));
        best.filter(|best| best.epsilon > 0.0)
    }

    /// The threshold of one crowd and direction that promises most.
    fn best_threshold(&self, crowd: usize, direction: Direction, counts: &Scores) -> PromisingThreshold {
        let z = bound::rough_quantile(self.miss);
        let mut best = PromisingThreshold { crowd, direction, threshold: Ordered(0.0), epsilon: 0.0 };
        let mut hits = [0, 0];
        let pass = |(&threshold, count): (&Ordered, &[[u64; 2]; HALVES])| {
            hits = [hits[0] + count[TRAINING][0], hits[1] + count[TRAINING][1]];
            let [first, second] = self.sides(direction, hits);
            let epsilon = bound::rough_epsilon(first, second, self.delta, z);
            if epsilon > best.epsilon {
                (best.threshold, best.epsilon) = (threshold, epsilon);
            }
        };
        match direction {
            Direction::YesOverNo => counts.iter().rev().for_each(pass),
            Direction::NoOverYes => counts.iter().for_each(pass),
        }
        best
    }

    /// Hits in the worlds no and yes, the world that the direction speaks for first.
    fn sides(&self, direction: Direction, hits: [u64; 2]) -> [Hits; 2] {
        direction.in_order(hits.map(|hits| Hits { hits, trials: self.releases }))
    }
}

/// The target among others who all have the same truth.
struct TargetCrowd<'a> {
    attack: &'a ReleaseAttack<'a>,
    /// The truth of the others.
    others: bool,
    score: Score,
}

impl<'a> TargetCrowd<'a> {
    fn new(attack: &'a ReleaseAttack<'a>, others: bool) -> Self {
        Self { attack, others, score: Score::new(attack.channel, attack.owners, others) }
    }

    /// Draws one group of releases of each world and half.
    fn draw_group(&self, subject: &impl Subject, piece: u64, counts: &mut Scores) -> Result<()> {
        for (half, world) in [(TRAINING, false), (TRAINING, true), (TEST, false), (TEST, true)] {
            let kind = 4 * u64::from(self.others) + 2 * half as u64 + u64::from(world);
            let coins = self.attack.coins.of(3, KINDS * piece + kind);
            for score in self.draw_scores(subject, &self.truths(piece, world), coins)? {
                counts.entry(score).or_default()[half][usize::from(world)] += 1;
            }
        }
        Ok(())
    }

    /// The scores of one group of releases.
    fn draw_scores(&self, subject: &impl Subject, truths: &Truths, mut coins: Source) -> Result<Vec<Ordered>> {
        let group = group_size(self.attack.owners) as usize;
        let cells: Vec<usize> = subject.draw_many(truths, &mut coins)?.iter().collect();
        let noise = match self.attack.channel.noise() {
            Some(noise) => subject.draw_noise(noise, group, &mut coins)?,
            None => vec![0; group],
        };
        let releases = cells.chunks_exact(cells.len() / group).zip(noise);
        Ok(releases.map(|(release, noise)| self.score.of(&self.tally(release), noise)).collect())
    }

    /// The truths of one group of releases: the target's is `world`.
    fn truths(&self, piece: u64, world: bool) -> Truths {
        let owners = self.attack.owners;
        let group = group_size(owners);
        let target = |release: u64| (piece * group + release) % owners;
        let truth = |release, owner| Truth::from_bool(if owner == target(release) { world } else { self.others });
        (0..group).flat_map(|release| (0..owners).map(move |owner| truth(release, owner))).collect()
    }

    /// How often each cell came up.
    fn tally(&self, cells: &[usize]) -> Vec<u64> {
        let mut tally = vec![0; self.attack.channel.cells().len()];
        for &cell in cells {
            tally[cell] += 1;
        }
        tally
    }

    /// The event that the score reaches a threshold, in words.
    fn describe(&self, direction: Direction, threshold: Ordered) -> String {
        let relation = if direction == Direction::YesOverNo { "at least" } else { "at most" };
        let event = self.describe_score(relation, threshold.0);
        let truth = if self.others { "yes" } else { "no" };
        format!("{event} among {} others who hold {truth}", self.attack.owners - 1)
    }

    fn describe_score(&self, relation: &str, threshold: f64) -> String {
        let owners = self.attack.owners as f64;
        match (self.score.exact, self.others) {
            (true, false) => format!("likelihood ratio yes:no {relation} {:.6}", threshold / owners),
            (true, true) => format!("likelihood ratio yes:no {relation} {:.6}", -owners / threshold),
            (false, _) if self.attack.channel.noise().is_some() => {
                format!("the sum with one aggregator's noise, counted for yes, {relation} {threshold}")
            }
            (false, _) => format!("weighted tallies {relation} {threshold:.6}"),
        }
    }
}

/// A threshold of one crowd's score, and the ε that it seems to prove on the training half.
struct PromisingThreshold {
    crowd: usize,
    direction: Direction,
    threshold: Ordered,
    epsilon: f64,
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
