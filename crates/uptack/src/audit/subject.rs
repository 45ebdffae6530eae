//! What is audited, and the coins it is given.

use crate::coins::{Coins, OsCoins, SeededCoins};
use crate::error::Result;
use crate::noise::NoiseLaw;
use crate::packed::{PackedCells, Truths};
use crate::sampler::Sampler;
use crate::truth::Truth;

/// Something that claims to draw a channel's cells, and what aggregators add to their sums.
///
/// The real [`Sampler`] is audited through the very functions that its public entry points call; they differ only in
/// which coins their types admit.
pub(super) trait Subject: Sync {
    fn draw<C: Coins>(&self, truth: Truth, coins: &mut C) -> Result<usize>;
    fn draw_many<C: Coins>(&self, truths: &Truths, coins: &mut C) -> Result<PackedCells>;

    /// What one aggregator adds to each of `count` sums.
    fn draw_noise<C: Coins>(&self, noise: &NoiseLaw, count: usize, coins: &mut C) -> Result<Vec<i64>> {
        noise.draw_many_from(count, coins)
    }
}

impl Subject for Sampler {
    fn draw<C: Coins>(&self, truth: Truth, coins: &mut C) -> Result<usize> {
        self.draw_from(truth, coins)
    }

    fn draw_many<C: Coins>(&self, truths: &Truths, coins: &mut C) -> Result<PackedCells> {
        self.draw_many_from(truths, coins)
    }
}

/// Where an audit's coins come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditCoins {
    /// The operating system's generator: what owners use.
    System,
    /// A seed, for results that can be reproduced.
    Seeded(u64),
}

impl AuditCoins {
    /// The coins of piece number `piece` of part number `part` of the work, whichever thread does it.
    pub(super) fn of(self, part: u64, piece: u64) -> Source {
        match self {
            Self::System => Source::System(OsCoins),
            Self::Seeded(seed) => Source::Seeded(Box::new(SeededCoins::stream(seed, (part << 56) | piece))),
        }
    }
}

pub(super) enum Source {
    System(OsCoins),
    Seeded(Box<SeededCoins>),
}

impl Coins for Source {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        match self {
            Self::System(coins) => coins.fill(bytes),
            Self::Seeded(coins) => coins.fill(bytes),
        }
    }
}

/// Counts the bytes that are read.
pub(super) struct Counting<C> {
    pub(super) coins: C,
    pub(super) read: u64,
}

impl<C: Coins> Coins for Counting<C> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.read += bytes.len() as u64;
        self.coins.fill(bytes)
    }
}

/// Remembers what it gave, so that the same coins can be tossed again.
pub(super) struct Replay<C> {
    coins: C,
    given: Vec<u8>,
    read: usize,
}

impl<C: Coins> Replay<C> {
    pub(super) fn new(coins: C) -> Self {
        Self { coins, given: Vec::new(), read: 0 }
    }

    pub(super) fn rewind(&mut self) {
        self.read = 0;
    }

    /// The bytes read since it was rewound.
    pub(super) fn read(&self) -> usize {
        self.read
    }
}

impl<C: Coins> Coins for Replay<C> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        let end = self.read + bytes.len();
        if end > self.given.len() {
            let known = self.given.len();
            self.given.resize(end, 0);
            self.coins.fill(&mut self.given[known..])?;
        }
        bytes.copy_from_slice(&self.given[self.read..end]);
        self.read = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replayed_coins_are_the_same_and_then_go_on() {
        let mut replay = Replay::new(SeededCoins::new(4));
        let (mut first, mut second) = ([0; 12], [0; 24]);
        replay.fill(&mut first).unwrap();
        replay.rewind();
        replay.fill(&mut second).unwrap();
        assert_eq!(first, second[..12]);
        assert_ne!(second[..12], second[12..]);
        assert_eq!(replay.read(), 24);
    }
}
