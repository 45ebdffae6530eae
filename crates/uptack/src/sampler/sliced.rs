//! Both laws of a channel, as far as the leading bits of a coin decide them, for 64 coins at a time.

use crate::channel::MOST_CELLS;
use crate::coins::{CoinWords, Coins};
use crate::error::Result;
use crate::law::Thresholds;
use crate::packed::{MOST_PLANES, planes_for};
use crate::truth::PerTruth;

/// A coin stays undecided by its leading bits with a probability of at most one in this many.
const DECIDED: usize = 512;

/// Enough for the thresholds of two laws over 64 cells.
pub(super) const MOST_LEADING_BITS: usize = 16;
const _: () = assert!(2 * (MOST_CELLS - 1) * DECIDED <= 1 << MOST_LEADING_BITS);

/// Both laws as far as the leading bits of a coin decide them.
#[derive(Clone, Debug)]
pub(super) struct SlicedLaws {
    /// How many leading bits are compared.
    pub(super) bits: usize,
    /// The leading bits of the thresholds, without repetition and in order, in the top bits of a word.
    pub(super) prefixes: Vec<u64>,
    /// For each bit of a cell's number, where it flips under each truth.
    planes: Vec<PerTruth<Flips>>,
}

/// Where a bit of a cell's number flips.
#[derive(Clone, Debug)]
struct Flips {
    /// The bit before the first of them: all ones or zero.
    start: u64,
    /// Indices of prefixes; at each the bit flips for coins above it.
    prefixes: Vec<usize>,
}

/// The planes of a group of owners.
pub(super) type Planes<const WORDS: usize> = [[u64; WORDS]; MOST_PLANES];

impl SlicedLaws {
    pub(super) fn new(thresholds: &PerTruth<Thresholds>) -> Self {
        let coins = thresholds.each_ref().map(Thresholds::coins);
        let bits = enough_leading_bits(coins);
        let prefixes = leading_bits(coins, bits);
        let plane = |plane| coins.map(|law| Flips::new(law, plane, bits, &prefixes));
        let planes = (0..planes_for(thresholds.yes.outcomes())).map(plane).collect();
        Self { bits, prefixes, planes }
    }

    /// Which coins are above each prefix, and which are equal to any and so not yet decided.
    #[inline]
    pub(super) fn compare<const WORDS: usize>(
        &self,
        rows: &[[u64; WORDS]],
        reached: &mut [[u64; WORDS]],
    ) -> [u64; WORDS] {
        let mut undecided = [0; WORDS];
        for (reached, &prefix) in reached.iter_mut().zip(&self.prefixes) {
            let (above, equal) = compare_with(prefix, rows);
            *reached = above;
            (0..WORDS).for_each(|word| undecided[word] |= equal[word]);
        }
        undecided
    }

    /// The numbers of the cells under both laws, chosen by truth.
    #[inline]
    pub(super) fn select<const WORDS: usize>(&self, reached: &[[u64; WORDS]], truths: &[u64; WORDS]) -> Planes<WORDS> {
        let mut planes = [[0; WORDS]; MOST_PLANES];
        for (bits, plane) in planes.iter_mut().zip(&self.planes) {
            let PerTruth { yes, no } = plane.each_ref().map(|flips| flips.bits(reached));
            *bits = std::array::from_fn(|word| (yes[word] & truths[word]) | (no[word] & !truths[word]));
        }
        planes
    }

    /// The leading bits of a coin, followed by fresh ones.
    #[cold]
    pub(super) fn whole_coin<const WORDS: usize, C: Coins>(
        &self,
        rows: &[[u64; WORDS]],
        word: usize,
        lane: u32,
        words: &mut CoinWords<'_, C>,
    ) -> Result<u64> {
        let mut fresh = [0];
        words.read(&mut fresh)?;
        let prefix = rows.iter().fold(0, |prefix, row| (prefix << 1) | ((row[word] >> lane) & 1));
        Ok((prefix << (64 - self.bits)) | (fresh[0] >> self.bits))
    }
}

/// How many leading bits it takes to decide nearly all coins.
fn enough_leading_bits(thresholds: PerTruth<&[u128]>) -> usize {
    let is_enough = |&bits: &usize| leading_bits(thresholds, bits).len() * DECIDED <= 1 << bits;
    (1..MOST_LEADING_BITS).find(is_enough).unwrap_or(MOST_LEADING_BITS)
}

/// A threshold, if some coins reach it and others do not.
fn inner_threshold(threshold: u128) -> Option<u64> {
    u64::try_from(threshold).ok().filter(|&threshold| threshold != 0)
}

/// The leading bits of the thresholds of both laws, without repetition and in order.
fn leading_bits(thresholds: PerTruth<&[u128]>, bits: usize) -> Vec<u64> {
    let inner = thresholds.yes.iter().chain(thresholds.no).filter_map(|&threshold| inner_threshold(threshold));
    let mut prefixes: Vec<u64> = inner.map(|threshold| leading(threshold, bits)).collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    prefixes
}

/// The top `bits` bits of a word, in their places.
fn leading(word: u64, bits: usize) -> u64 {
    word & !(u64::MAX >> bits)
}

/// Which coins have leading bits above the prefix, and which have the same.
#[inline]
fn compare_with<const WORDS: usize>(prefix: u64, rows: &[[u64; WORDS]]) -> ([u64; WORDS], [u64; WORDS]) {
    let (mut above, mut equal) = ([0; WORDS], [u64::MAX; WORDS]);
    for (bit, row) in rows.iter().enumerate() {
        let both: [u64; WORDS] = std::array::from_fn(|word| equal[word] & row[word]);
        if (prefix << bit) >> 63 == 1 {
            equal = both;
        } else {
            above = std::array::from_fn(|word| above[word] | both[word]);
            equal = std::array::from_fn(|word| equal[word] ^ both[word]);
        }
    }
    (above, equal)
}

/// The numbers of the bits set.
#[inline]
pub(super) fn lanes(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lane = (word != 0).then(|| word.trailing_zeros());
        word &= word.wrapping_sub(1);
        lane
    })
}

/// Replaces the number of one owner's cell, which its leading bits did not decide.
pub(super) fn replace<const WORDS: usize>(planes: &mut Planes<WORDS>, word: usize, lane: u32, cell: u64) {
    for (bit, plane) in planes.iter_mut().enumerate() {
        plane[word] = (plane[word] & !(1 << lane)) | (((cell >> bit) & 1) << lane);
    }
}

impl Flips {
    /// Bit b of a count that goes up by one at each threshold flips at every 2ᵇ-th of them.
    fn new(law: &[u128], plane: usize, bits: usize, prefixes: &[u64]) -> Self {
        let mut flips = Self { start: 0, prefixes: Vec::new() };
        for &threshold in law.iter().skip((1 << plane) - 1).step_by(1 << plane) {
            match inner_threshold(threshold).map(|inner| prefixes.binary_search(&leading(inner, bits))) {
                // A coin above a prefix is above all thresholds that begin with it, and two flips cancel.
                Some(Ok(prefix)) if flips.prefixes.last() == Some(&prefix) => drop(flips.prefixes.pop()),
                Some(Ok(prefix)) => flips.prefixes.push(prefix),
                Some(Err(_)) => unreachable!("the prefix of every threshold is listed"),
                // Every coin reaches a threshold of 0, and none a threshold of one.
                None if threshold == 0 => flips.start = !flips.start,
                None => {}
            }
        }
        flips
    }

    #[inline]
    fn bits<const WORDS: usize>(&self, reached: &[[u64; WORDS]]) -> [u64; WORDS] {
        let mut bits = [self.start; WORDS];
        for &prefix in &self.prefixes {
            (0..WORDS).for_each(|word| bits[word] ^= reached[prefix][word]);
        }
        bits
    }
}
