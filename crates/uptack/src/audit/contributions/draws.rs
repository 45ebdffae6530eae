//! Calling the sampler of contributions, many times, on all threads: one owner per call, and many owners per call.
//!
//! Every owner has one of the worlds' truths, in a fixed pattern without any visible order. Pieces alternate between two halves:
//! events are chosen on the first and tested on the second half.

use std::collections::BTreeMap;
use std::iter::zip;

use super::subject::ContributionSubject;
use super::worlds::Worlds;
use crate::audit::collect::{HALVES, Pieces, mixed, on_all_threads};
use crate::audit::subject::{AuditCoins, Counting};
use crate::contribution::{Choice, Choices, Contributed, Contributions};
use crate::error::Result;
use crate::progress::Progress;

/// Ranges of counts that are not watched, each of which is one bin.
const RANGES: usize = 64;

/// Where single contributions go: each watched count has a bin, the other counts share [`RANGES`], and the last bin is for what is
/// not counted.
pub(super) struct Bins<'a> {
    worlds: &'a Worlds,
    counts: usize,
    /// How many counts share each bin.
    members: Vec<u64>,
}

impl<'a> Bins<'a> {
    pub(super) fn new(worlds: &'a Worlds, asked: &Contributions) -> Self {
        let mut bins = Self { worlds, counts: asked.counts(), members: vec![0; worlds.watched.len() + RANGES + 1] };
        for count in 0..bins.counts {
            let bin = bins.bin(Some(count));
            bins.members[bin] += 1;
        }
        bins
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    fn bin(&self, count: Option<usize>) -> usize {
        let watched = &self.worlds.watched;
        let Some(count) = count else { return self.len() - 1 };
        let place = watched.iter().position(|&watched| watched == count);
        place.unwrap_or(watched.len() + count * RANGES / self.counts)
    }

    /// The stated probability of each bin for a contribution with this truth.
    pub(super) fn stated(&self, asked: &Contributions, truth: u32) -> Vec<f64> {
        let law = asked.law();
        let (told, other) = (law.told().to_f64(), law.other().to_f64());
        let mut stated: Vec<f64> = self.members.iter().map(|&members| members as f64 * other).collect();
        let counted = (truth as usize) < self.counts;
        let last = stated.len() - 1;
        stated[last] = law.silent().to_f64() + if asked.has_uncounted() { other } else { 0.0 };
        stated[self.bin(counted.then_some(truth as usize))] += told - other;
        stated
    }

    pub(super) fn name(&self, bin: usize) -> String {
        match self.worlds.watched.get(bin) {
            Some(count) => format!("count {}", count + 1),
            None if bin + 1 == self.len() => "no count".to_owned(),
            None => format!("range {} of the other counts", bin - self.worlds.watched.len() + 1),
        }
    }
}

/// How often everything came up, in one half of the pieces.
#[derive(Clone)]
pub(super) struct Counts {
    /// By world: outcomes of one owner per call.
    pub(super) single: Vec<Vec<u64>>,
    /// By world: outcomes of many owners per call.
    pub(super) batch: Vec<Vec<u64>>,
    /// By another owner's world and the target's: whether the other's first contribution is told, and the target's outcome.
    pub(super) neighbours: Vec<Vec<Vec<u64>>>,
    /// By tested truth: the bins of single contributions.
    pub(super) contributions: Vec<Vec<u64>>,
    /// By whether the truths of two consecutive contributions are counted: whether each of them goes where it belongs.
    pub(super) consecutive: Vec<Vec<u64>>,
    /// By world: bytes that a call for one owner read.
    pub(super) lengths: Vec<BTreeMap<u64, u64>>,
}

impl Counts {
    fn new(worlds: &Worlds, truths: usize, bins: usize) -> Self {
        let (count, outcomes) = (worlds.worlds.len(), worlds.outcomes());
        Self {
            single: vec![vec![0; outcomes]; count],
            batch: vec![vec![0; outcomes]; count],
            neighbours: vec![vec![vec![0; 2 * outcomes]; count]; count],
            contributions: vec![vec![0; bins]; truths],
            consecutive: vec![vec![0; 4]; 4],
            lengths: vec![BTreeMap::new(); count],
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        zip(&mut self.neighbours, &other.neighbours).for_each(|(ours, theirs)| add(ours, theirs));
        add(&mut self.single, &other.single);
        add(&mut self.batch, &other.batch);
        add(&mut self.contributions, &other.contributions);
        add(&mut self.consecutive, &other.consecutive);
        for (ours, theirs) in zip(&mut self.lengths, &other.lengths) {
            theirs.iter().for_each(|(&length, count)| *ours.entry(length).or_default() += count);
        }
    }
}

fn add(sums: &mut [Vec<u64>], others: &[Vec<u64>]) {
    for (sum, other) in zip(sums.iter_mut().flatten(), others.iter().flatten()) {
        *sum += other;
    }
}

/// Owners that are drawn at a time, an even number.
const PIECE: u64 = 512;

/// What is drawn, and from which coins.
pub(super) struct Drawing<'a, S> {
    pub(super) subject: &'a S,
    pub(super) asked: &'a Contributions,
    pub(super) worlds: &'a Worlds,
    pub(super) bins: &'a Bins<'a>,
    pub(super) coins: AuditCoins,
}

impl<S: ContributionSubject> Drawing<'_, S> {
    /// Draws about `calls` contributions one owner at a time and as many in batches; returns the counts of each half, and the
    /// calls made.
    pub(super) fn run(&self, calls: u64, progress: &Progress) -> Result<([Counts; HALVES], u64)> {
        let most = u64::from(self.asked.most());
        let count = (calls / (PIECE * most) / 2 * 2).max(2);
        let pieces = Pieces { count, calls: 2 * PIECE * most, progress };
        let made = pieces.count * pieces.calls;
        let truths = self.worlds.tested_truths(self.asked);
        let empty = || [(); HALVES].map(|()| Counts::new(self.worlds, truths.len(), self.bins.len()));
        let work =
            |halves: &mut [Counts; HALVES], piece: u64| self.piece(piece, &truths, &mut halves[piece as usize % 2]);
        let merge = |all: &mut [Counts; HALVES], part: [Counts; HALVES]| {
            zip(all, &part).for_each(|(half, other)| half.merge(other));
        };
        Ok((on_all_threads(pieces, empty, work, merge)?, made))
    }

    fn piece(&self, piece: u64, truths: &[u32], counts: &mut Counts) -> Result<()> {
        // Another pattern for each pair of pieces, so that both halves have the same truths.
        let worlds: Vec<usize> = (1..=PIECE).map(|owner| self.world(piece / 2 * PIECE + owner)).collect();
        self.singly(piece, &worlds, counts)?;
        self.in_batch(piece, &worlds, truths, counts)
    }

    fn world(&self, owner: u64) -> usize {
        (mixed(owner) % self.worlds.worlds.len() as u64) as usize
    }

    fn singly(&self, piece: u64, worlds: &[usize], counts: &mut Counts) -> Result<()> {
        let mut coins = Counting { coins: self.coins.of(1, piece), read: 0 };
        let choices: Vec<Vec<Choice>> = self.worlds.worlds.iter().map(|world| world.choices()).collect();
        for &world in worlds {
            coins.read = 0;
            let report = self.subject.draw_report(&choices[world], &mut coins)?;
            counts.single[world][self.worlds.outcome(report.into_iter())] += 1;
            *counts.lengths[world].entry(coins.read).or_default() += 1;
        }
        Ok(())
    }

    fn in_batch(&self, piece: u64, worlds: &[usize], tested: &[u32], counts: &mut Counts) -> Result<()> {
        let truths: Vec<u32> =
            worlds.iter().flat_map(|&world| self.worlds.worlds[world].truths.iter().copied()).collect();
        let choices: Choices = truths.iter().copied().map(Choice::new).collect();
        let drawn = self.subject.draw_many(&choices, &mut self.coins.of(2, piece))?;
        self.add_contributions(&truths, &drawn, tested, counts);
        let reports: Vec<(usize, bool)> = drawn
            .chunks(self.worlds.worlds[0].truths.len())
            .zip(worlds)
            .map(|(report, &world)| {
                let outcome = self.worlds.outcome(report.iter().filter_map(|drawn| drawn.count()));
                (outcome, self.is_own(self.worlds.worlds[world].truths[0], report[0]))
            })
            .collect();
        for (&(outcome, _), &world) in zip(&reports, worlds) {
            counts.batch[world][outcome] += 1;
        }
        for (reports, worlds) in zip(reports.chunks_exact(2), worlds.chunks_exact(2)) {
            let outcome = usize::from(reports[0].1) * self.worlds.outcomes() + reports[1].0;
            counts.neighbours[worlds[0]][worlds[1]][outcome] += 1;
        }
        Ok(())
    }

    fn add_contributions(&self, truths: &[u32], drawn: &[Contributed], tested: &[u32], counts: &mut Counts) {
        for (&truth, contributed) in zip(truths, drawn) {
            if let Some(place) = tested.iter().position(|&tested| tested == truth) {
                counts.contributions[place][self.bins.bin(contributed.count())] += 1;
            }
        }
        for (truths, drawn) in zip(truths.chunks_exact(2), drawn.chunks_exact(2)) {
            let counted = [0, 1].map(|place| usize::from(self.is_counted(truths[place])));
            let own = [0, 1].map(|place| usize::from(self.is_own(truths[place], drawn[place])));
            counts.consecutive[2 * counted[0] + counted[1]][2 * own[0] + own[1]] += 1;
        }
    }

    pub(super) fn is_counted(&self, truth: u32) -> bool {
        (truth as usize) < self.asked.counts()
    }

    /// Whether a contribution goes where it belongs.
    fn is_own(&self, truth: u32, contributed: Contributed) -> bool {
        contributed.count() == self.is_counted(truth).then_some(truth as usize)
    }
}
