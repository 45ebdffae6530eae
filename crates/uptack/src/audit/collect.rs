//! Calling the sampler, many times, on all threads.
//!
//! Truths are a fixed random pattern, the same for every chunk: both truths come up in every lane of a word and in
//! every order. Chunks alternate between two halves: events are chosen on the first and tested on the second half.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::iter::zip;
use std::sync::atomic::{AtomicU64, Ordering};

use super::subject::{AuditCoins, Counting, Source, Subject};
use crate::error::{Error, Result};
use crate::packed::{LANES, Truths};
use crate::parallel::{self, cores};
use crate::progress::Progress;
use crate::truth::Truth;

/// Chunks alternate between this many halves.
pub(super) const HALVES: usize = 2;
/// Events are chosen on this half.
pub(super) const TRAINING: usize = 0;
/// Events are tested on this half.
pub(super) const TEST: usize = 1;

/// How often each pair of cells came up for two owners with given truths; no owner is in two pairs.
#[derive(Clone, Debug)]
pub(super) struct PairTable {
    cells: usize,
    counts: Vec<u64>,
}

impl PairTable {
    fn new(cells: usize) -> Self {
        Self { cells, counts: vec![0; 4 * cells * cells] }
    }

    fn index(&self, [one, other]: [bool; 2], [first, second]: [usize; 2]) -> usize {
        ((usize::from(one) * 2 + usize::from(other)) * self.cells + first) * self.cells + second
    }

    fn add(&mut self, truths: [bool; 2], cells: [usize; 2]) {
        let index = self.index(truths, cells);
        self.counts[index] += 1;
    }

    /// Adds the pairs of neighbours.
    fn add_neighbours(&mut self, truths: &[bool], cells: &[usize]) {
        for (&truths, &cells) in zip(truths.as_chunks().0, cells.as_chunks().0) {
            self.add(truths, cells);
        }
    }

    /// Adds the pairs in the same lane of consecutive words.
    fn add_lanes(&mut self, truths: &[bool], cells: &[usize]) {
        for (truths, cells) in zip(truths.chunks_exact(2 * LANES), cells.chunks_exact(2 * LANES)) {
            for lane in 0..LANES {
                self.add([truths[lane], truths[LANES + lane]], [cells[lane], cells[LANES + lane]]);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
    }

    /// The counts of all pairs of cells of two owners with these truths, the second owner's cell running faster.
    pub(super) fn pairs(&self, truths: [bool; 2]) -> &[u64] {
        let start = self.index(truths, [0, 0]);
        &self.counts[start..start + self.cells * self.cells]
    }

    /// How often each cell came up for an owner with this truth.
    pub(super) fn owners(&self, truth: bool) -> Vec<u64> {
        let mut counts = vec![0; self.cells];
        for other in [false, true] {
            let (as_first, as_second) = (self.pairs([truth, other]), self.pairs([other, truth]));
            for first in 0..self.cells {
                for second in 0..self.cells {
                    counts[first] += as_first[first * self.cells + second];
                    counts[second] += as_second[first * self.cells + second];
                }
            }
        }
        counts
    }
}

/// The counts of one half of the chunks.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// One owner per call; pairs of consecutive calls.
    pub(super) single: PairTable,
    /// Many owners per call; pairs of neighbours.
    pub(super) batch: PairTable,
    /// Many owners per call; pairs in the same lane of consecutive words.
    pub(super) lanes: PairTable,
    /// Bytes that a call for one owner read, by truth (no, yes).
    pub(super) lengths: [BTreeMap<u64, u64>; 2],
}

/// How the sampler is called.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path {
    /// For one owner.
    Single,
    /// For many owners at once.
    Batch,
    /// Both together, which shows the most if they draw the same law.
    Both,
}

impl Display for Path {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Single => "single",
            Self::Batch => "batch",
            Self::Both => "single and batch",
        })
    }
}

impl Counts {
    /// How often each cell came up on a path for an owner with this truth.
    pub(super) fn owners(&self, path: Path, truth: bool) -> Vec<u64> {
        let (single, batch) = (&self.single, &self.batch);
        match path {
            Path::Single => single.owners(truth),
            Path::Batch => batch.owners(truth),
            Path::Both => single.owners(truth).iter().zip(batch.owners(truth)).map(|(a, b)| a + b).collect(),
        }
    }

    fn new(cells: usize) -> Self {
        let table = PairTable::new(cells);
        Self { single: table.clone(), batch: table.clone(), lanes: table, lengths: Default::default() }
    }

    fn merge(&mut self, other: &Self) {
        self.single.merge(&other.single);
        self.batch.merge(&other.batch);
        self.lanes.merge(&other.lanes);
        for (lengths, others) in self.lengths.iter_mut().zip(&other.lengths) {
            others.iter().for_each(|(&length, count)| *lengths.entry(length).or_default() += count);
        }
    }

    /// Both halves together.
    pub(super) fn whole(halves: &[Self; HALVES]) -> Self {
        let mut whole = halves[TRAINING].clone();
        whole.merge(&halves[TEST]);
        whole
    }
}

/// The owners of two words, the fewest among whom all pairs can be formed.
const LEAST_CHUNK: u64 = 2 * LANES as u64;
/// The most owners of a chunk.
const LARGEST_CHUNK: u64 = 1 << 15;

/// How `calls` calls are cut up: an even number of chunks, each a whole number of pairs of words.
#[derive(Clone, Copy, Debug)]
struct Chunks {
    owners: usize,
    count: u64,
}

impl Chunks {
    fn new(calls: u64) -> Self {
        let owners = (calls / 16).clamp(LEAST_CHUNK, LARGEST_CHUNK) / LEAST_CHUNK * LEAST_CHUNK;
        Self { owners: owners as usize, count: calls / owners / 2 * 2 }
    }
}

/// Draws `calls` owners one at a time and as many in batches; returns the counts of each half, and the calls made.
pub(super) fn collect(
    subject: &impl Subject,
    cells: usize,
    calls: u64,
    coins: AuditCoins,
    progress: &Progress,
) -> Result<([Counts; HALVES], u64)> {
    let chunks = Chunks::new(calls);
    let pieces = Pieces { count: chunks.count, calls: 2 * chunks.owners as u64, progress };
    let made = pieces.count * pieces.calls;
    let drawing = Drawing::new(subject, chunks.owners, coins);
    let empty = || [Counts::new(cells), Counts::new(cells)];
    let work = |halves: &mut [Counts; HALVES], chunk: u64| drawing.chunk(chunk, &mut halves[(chunk % 2) as usize]);
    Ok((on_all_threads(pieces, empty, work, merge_halves)?, made))
}

fn merge_halves(all: &mut [Counts; HALVES], part: [Counts; HALVES]) {
    all.iter_mut().zip(&part).for_each(|(half, other)| half.merge(other));
}

/// The truths of every chunk, drawn again and again.
struct Drawing<'a, S> {
    subject: &'a S,
    truths: Vec<bool>,
    packed: Truths,
    coins: AuditCoins,
}

impl<'a, S: Subject> Drawing<'a, S> {
    fn new(subject: &'a S, owners: usize, coins: AuditCoins) -> Self {
        let truths = pattern(owners);
        Self { subject, packed: truths.iter().copied().map(Truth::from_bool).collect(), truths, coins }
    }

    /// Draws one chunk both ways.
    fn chunk(&self, chunk: u64, counts: &mut Counts) -> Result<()> {
        self.singly(self.coins.of(1, chunk), counts)?;
        self.in_batch(self.coins.of(2, chunk), counts)
    }

    fn singly(&self, coins: Source, counts: &mut Counts) -> Result<()> {
        let mut coins = Counting { coins, read: 0 };
        let mut cells = Vec::with_capacity(self.truths.len());
        for &truth in &self.truths {
            coins.read = 0;
            cells.push(self.subject.draw(Truth::from_bool(truth), &mut coins)?);
            *counts.lengths[usize::from(truth)].entry(coins.read).or_default() += 1;
        }
        counts.single.add_neighbours(&self.truths, &cells);
        Ok(())
    }

    fn in_batch(&self, mut coins: Source, counts: &mut Counts) -> Result<()> {
        let cells: Vec<usize> = self.subject.draw_many(&self.packed, &mut coins)?.iter().collect();
        counts.batch.add_neighbours(&self.truths, &cells);
        counts.lanes.add_lanes(&self.truths, &cells);
        Ok(())
    }
}

/// A fixed pattern without any visible order (Steele, Lea and Flood's SplitMix); it is neither secret nor a coin.
fn pattern(owners: usize) -> Vec<bool> {
    (1..=owners as u64).map(|owner| mixed(owner) & 1 == 1).collect()
}

/// A number without any visible order, from each number.
pub(super) fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Pieces of work: how many, and how many calls of the sampler each of them makes.
pub(super) struct Pieces<'a> {
    pub(super) count: u64,
    pub(super) calls: u64,
    pub(super) progress: &'a Progress,
}

/// Does pieces of work on all threads and merges their sums, which must not depend on the order.
pub(super) fn on_all_threads<T: Send>(
    pieces: Pieces<'_>,
    empty: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, u64) -> Result<()> + Sync,
    merge: impl Fn(&mut T, T),
) -> Result<T> {
    let next = AtomicU64::new(0);
    let mut all = empty();
    for part in parallel::map(cores(), cores(), |_| pieces.work_off(&next, empty(), &work)) {
        merge(&mut all, part?);
    }
    Ok(all)
}

impl Pieces<'_> {
    /// One thread's part: takes the next piece that nobody has taken until none is left.
    fn work_off<T>(&self, next: &AtomicU64, mut sums: T, work: impl Fn(&mut T, u64) -> Result<()>) -> Result<T> {
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= self.count {
                return Ok(sums);
            }
            if self.progress.stopped() {
                return Err(Error::request("the audit was stopped"));
            }
            work(&mut sums, piece)?;
            self.progress.advance_by(self.calls);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mechanism, Sampler};

    #[test]
    fn every_call_is_counted_once() {
        let channel = "sampling(0.5,0.5)".parse::<Mechanism>().unwrap().channel();
        let sampler = Sampler::new(&channel);
        for calls in [300, 5000, 100_000] {
            let (halves, made) = collect(&sampler, 3, calls, AuditCoins::Seeded(1), &Progress::default()).unwrap();
            let whole = Counts::whole(&halves);
            let total = |table: &PairTable| [false, true].iter().flat_map(|&t| table.owners(t)).sum::<u64>();
            assert_eq!(total(&whole.single) + total(&whole.batch), made);
            assert_eq!(total(&whole.lanes), total(&whole.batch));
            assert!(made <= 2 * calls && made > calls, "{calls}: {made}");
            assert_eq!(whole.lengths.iter().flat_map(BTreeMap::values).sum::<u64>(), total(&whole.single));
            assert_eq!(total(&halves[0].single), total(&halves[1].single));
        }
    }

    #[test]
    fn the_pattern_has_both_truths_in_every_lane() {
        let truths = pattern(LARGEST_CHUNK as usize);
        for lane in 0..LANES {
            let yes = truths.iter().skip(lane).step_by(LANES).filter(|&&truth| truth).count();
            assert!((150..362).contains(&yes), "lane {lane}: {yes} of 512");
        }
    }
}
