//! Calling the sampler, many times, on all threads.
//!
//! Truths are a fixed random pattern, the same for every chunk: both truths come up in every lane of a word and in
//! every order. Chunks alternate between two halves: events are chosen on the first and tested on the second.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::subject::{AuditCoins, Counting, Source, Subject};
use crate::error::Error;
use crate::packed::{LANES, Truths};
use crate::simulate::Progress;
use crate::truth::Truth;

/// Which half a chunk belongs to.
pub(super) const HALVES: usize = 2;
/// Events are chosen on this half.
pub(super) const TRAINING: usize = 0;
/// And tested on this one.
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

    fn index(&self, truths: (bool, bool), first: usize, second: usize) -> usize {
        ((usize::from(truths.0) * 2 + usize::from(truths.1)) * self.cells + first) * self.cells + second
    }

    fn add(&mut self, truths: (bool, bool), first: usize, second: usize) {
        let index = self.index(truths, first, second);
        self.counts[index] += 1;
    }

    fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
    }

    /// The counts of all pairs of cells of two owners with these truths, the second owner's cell running faster.
    pub(super) fn pairs(&self, truths: (bool, bool)) -> &[u64] {
        let start = self.index(truths, 0, 0);
        &self.counts[start..start + self.cells * self.cells]
    }

    /// How often each cell came up for an owner with this truth.
    pub(super) fn owners(&self, truth: bool) -> Vec<u64> {
        let mut counts = vec![0; self.cells];
        for other in [false, true] {
            let (as_first, as_second) = (self.pairs((truth, other)), self.pairs((other, truth)));
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

/// What one half of the chunks gave.
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

impl Counts {
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

/// Two words' owners, the least in which all pairs can be formed.
const LEAST_CHUNK: u64 = 2 * LANES as u64;
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

/// Draws `calls` owners one at a time and as many in batches; the counts of each half, and the calls made.
pub(super) fn collect(
    subject: &impl Subject,
    cells: usize,
    calls: u64,
    coins: AuditCoins,
    progress: &Progress,
) -> Result<([Counts; HALVES], u64), Error> {
    let chunks = Chunks::new(calls);
    let truths: Vec<bool> = pattern(chunks.owners);
    let packed: Truths = truths.iter().map(|&truth| Truth::from_bool(truth)).collect();
    let work = |halves: &mut [Counts; HALVES], chunk: u64| {
        let half = &mut halves[(chunk % 2) as usize];
        singly(subject, &truths, coins.of(1, chunk), half)?;
        in_batches(subject, &truths, &packed, coins.of(2, chunk), half)
    };
    let empty = || [Counts::new(cells), Counts::new(cells)];
    let merge = |all: &mut [Counts; HALVES], part: [Counts; HALVES]| {
        all.iter_mut().zip(&part).for_each(|(half, other)| half.merge(other));
    };
    let pieces = Pieces { count: chunks.count, calls: 2 * chunks.owners as u64, progress };
    let made = pieces.count * pieces.calls;
    Ok((on_all_threads(pieces, empty, work, merge)?, made))
}

fn singly(subject: &impl Subject, truths: &[bool], coins: Source, counts: &mut Counts) -> Result<(), Error> {
    let mut coins = Counting { coins, read: 0 };
    let mut draw = |truth: bool| {
        coins.read = 0;
        let cell = subject.draw(Truth::from_bool(truth), &mut coins)?;
        *counts.lengths[usize::from(truth)].entry(coins.read).or_default() += 1;
        Ok::<_, Error>(cell)
    };
    for pair in truths.chunks_exact(2) {
        let cells = (draw(pair[0])?, draw(pair[1])?);
        counts.single.add((pair[0], pair[1]), cells.0, cells.1);
    }
    Ok(())
}

fn in_batches(
    subject: &impl Subject,
    truths: &[bool],
    packed: &Truths,
    mut coins: Source,
    counts: &mut Counts,
) -> Result<(), Error> {
    let cells: Vec<usize> = subject.draw_many(packed, &mut coins)?.iter().collect();
    for (truths, cells) in truths.chunks_exact(2).zip(cells.chunks_exact(2)) {
        counts.batch.add((truths[0], truths[1]), cells[0], cells[1]);
    }
    for (truths, cells) in truths.chunks_exact(2 * LANES).zip(cells.chunks_exact(2 * LANES)) {
        for lane in 0..LANES {
            counts.lanes.add((truths[lane], truths[LANES + lane]), cells[lane], cells[LANES + lane]);
        }
    }
    Ok(())
}

/// A fixed pattern without order (Steele, Lea and Flood's SplitMix); it is neither secret nor a coin.
fn pattern(owners: usize) -> Vec<bool> {
    (1..=owners as u64).map(|owner| mixed(owner) & 1 == 1).collect()
}

/// A number without order from each number.
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

/// Does pieces of work on all threads and merges what they add up, which must not depend on the order.
pub(super) fn on_all_threads<T: Send>(
    pieces: Pieces<'_>,
    empty: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, u64) -> Result<(), Error> + Sync,
    merge: impl Fn(&mut T, T),
) -> Result<T, Error> {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| pieces.work_off(&next, empty(), &work))).collect();
        let mut all = empty();
        for worker in workers {
            merge(&mut all, worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

impl Pieces<'_> {
    /// One thread's part: the next piece that nobody has taken, until there are no more.
    fn work_off<T>(
        &self,
        next: &AtomicU64,
        mut sums: T,
        work: impl Fn(&mut T, u64) -> Result<(), Error>,
    ) -> Result<T, Error> {
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
