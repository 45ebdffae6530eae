//! Drawing contributions, exactly and without a side channel that would reveal the truth.
//!
//! A coin is a uniform 64-bit integer that is compared with the law's integers, so the law drawn is the law accounted for. What
//! the coin says does not depend on the truth, and neither does the number of bytes read: the truth enters only where a mask
//! selects it or the possibility that the coin names.
//!
//! For many contributions the leading bits of each coin are read first. They decide all but a few; each of those then gets
//! the rest of its coin. The work is the same for every truth. The law decides, once, whether 16 leading bits are read ([`steps`]) or
//! 32 ([`leading`]): 16 take about half the time, but they leave too many coins undecided where thousands of possibilities are likely
//! and each of them takes only a few steps of 2⁻¹⁶.

mod leading;
mod steps;
mod thresholds;

use std::hint::black_box;

use super::{Choice, Choices, ContributionCounts, Contributions};
use crate::coins::{CoinWords, Coins, SeededCoins, Unpredictable};
use crate::error::{Error, Result};
use leading::LeadingBits;
use steps::WholeSteps;
use thresholds::{Drawn, Thresholds};

/// Draws contributions of one mechanism.
///
/// ```
/// use uptack::OsCoins;
/// use uptack::contribution::{ContributionSampler, Contributions};
/// let asked: Contributions = "contributions(counts=12,most=2,r=0.001)".parse()?;
/// let sampler = ContributionSampler::new(&asked);
/// let report = sampler.draw_report(&asked.choices_of(&[2, 7])?, &mut OsCoins)?;
/// assert!(report.len() <= 2 && report.iter().all(|&count| count < 12));
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ContributionSampler {
    counts: u32,
    most: u32,
    thresholds: Thresholds,
    leading: LeadingBits,
    /// If they decide nearly all coins.
    steps: Option<WholeSteps>,
}

/// Where one contribution goes: to a count, or to none that is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contributed(u32);

/// No count of a contribution.
const UNCOUNTED: u32 = u32::MAX;

impl Contributed {
    /// The index of the count.
    pub fn count(self) -> Option<usize> {
        (self.0 != UNCOUNTED).then_some(self.0 as usize)
    }
}

impl ContributionSampler {
    /// A sampler of exactly this mechanism's integers.
    pub fn new(contributions: &Contributions) -> Self {
        let thresholds = Thresholds::new(contributions.law());
        Self {
            counts: contributions.counts() as u32,
            most: contributions.most(),
            leading: LeadingBits::new(&thresholds),
            steps: Some(WholeSteps::new(&thresholds)).filter(WholeSteps::decide_nearly_all),
            thresholds,
        }
    }

    /// One contribution. It reads eight bytes.
    pub fn draw(&self, truth: Choice, coins: &mut impl Unpredictable) -> Result<Contributed> {
        self.draw_from(truth, coins)
    }

    /// As [`ContributionSampler::draw`], reproducibly; for tests and simulation only.
    pub fn draw_seeded(&self, truth: Choice, coins: &mut SeededCoins) -> Contributed {
        self.draw_from(truth, coins).expect("seeded coins do not fail")
    }

    /// The report of one owner: the counts to which at least one of its contributions goes, in ascending order, each of them once.
    /// It reads eight bytes per contribution, at once; if the coins fail, there is no report.
    ///
    /// `truths` are those of all contributions that an owner makes, as [`Contributions::choices_of`] gives them; another number of
    /// them is refused.
    pub fn draw_report(&self, truths: &[Choice], coins: &mut impl Unpredictable) -> Result<Vec<usize>> {
        self.draw_report_from(truths, coins)
    }

    /// As [`ContributionSampler::draw_report`], reproducibly; for tests and simulation only.
    pub fn draw_report_seeded(&self, truths: &[Choice], coins: &mut SeededCoins) -> Result<Vec<usize>> {
        self.draw_report_from(truths, coins)
    }

    /// Many contributions; if the coins fail, none.
    pub fn draw_many(&self, truths: &Choices, coins: &mut impl Unpredictable) -> Result<Vec<Contributed>> {
        self.draw_many_from(truths, coins)
    }

    /// As [`ContributionSampler::draw_many`], reproducibly; for tests and simulation only.
    pub fn draw_many_seeded(&self, truths: &Choices, coins: &mut SeededCoins) -> Vec<Contributed> {
        self.draw_many_from(truths, coins).expect("seeded coins do not fail")
    }

    /// The counts of many owners' reports, whose truths follow one another, as many per owner as it makes contributions. An owner
    /// adds at most once to each count. The contributions are those that [`ContributionSampler::draw_many`] draws from the
    /// same coins.
    pub fn count_many(&self, truths: &Choices, coins: &mut impl Unpredictable) -> Result<ContributionCounts> {
        self.count_many_from(truths, coins)
    }

    /// As [`ContributionSampler::count_many`], reproducibly; for tests and simulation only.
    pub fn count_many_seeded(&self, truths: &Choices, coins: &mut SeededCoins) -> Result<ContributionCounts> {
        self.count_many_from(truths, coins)
    }

    pub(crate) fn draw_from(&self, truth: Choice, coins: &mut impl Coins) -> Result<Contributed> {
        let mut bytes = [0; 8];
        coins.fill(&mut bytes)?;
        Ok(self.contributed(truth.possibility(), u64::from_le_bytes(bytes)))
    }

    pub(crate) fn draw_report_from(&self, truths: &[Choice], coins: &mut impl Coins) -> Result<Vec<usize>> {
        if truths.len() != self.most as usize {
            return Err(Error::request(format!("an owner makes {} contributions, not {}", self.most, truths.len())));
        }
        let mut bytes = vec![0; 8 * truths.len()];
        coins.fill(&mut bytes)?;
        let coins = bytes.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes));
        let mut drawn: Vec<Contributed> =
            truths.iter().zip(coins).map(|(truth, coin)| self.contributed(truth.possibility(), coin)).collect();
        Ok(distinct(&mut drawn).collect())
    }

    pub(crate) fn draw_many_from(&self, truths: &Choices, coins: &mut impl Coins) -> Result<Vec<Contributed>> {
        self.draw_words(truths.possibilities(), &mut CoinWords::new(coins))
    }

    pub(crate) fn count_many_from(&self, truths: &Choices, coins: &mut impl Coins) -> Result<ContributionCounts> {
        let most = self.most as usize;
        if !truths.len().is_multiple_of(most) {
            return Err(Error::request(format!("{} truths are not {most} for each owner", truths.len())));
        }
        let mut words = CoinWords::new(coins);
        let mut counts = ContributionCounts::new(self.counts as usize);
        // Whole blocks, so that no coin is left over between two pieces.
        for piece in truths.possibilities().chunks(most * OWNERS_AT_A_TIME) {
            let mut drawn = self.draw_words(piece, &mut words)?;
            drawn.chunks_exact_mut(most).for_each(|owner| counts.add_report(distinct(owner)));
        }
        Ok(counts)
    }

    fn draw_words<C: Coins>(&self, truths: &[u32], words: &mut CoinWords<'_, C>) -> Result<Vec<Contributed>> {
        match &self.steps {
            Some(steps) => self.draw_blocks(truths, |block| steps.toss_block(words, block)),
            None => self.draw_blocks(truths, |block| self.toss_block(words, block)),
        }
    }

    #[inline]
    fn draw_blocks(
        &self,
        truths: &[u32],
        mut toss: impl FnMut(&mut TossedBlock) -> Result<()>,
    ) -> Result<Vec<Contributed>> {
        let mut drawn = vec![Contributed(0); truths.len().next_multiple_of(BLOCK)];
        let mut coins = TossedBlock { told: [0; BLOCK], possibilities: [0; BLOCK] };
        let (blocks, rest) = truths.as_chunks();
        let mut last = [0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        let last = (!rest.is_empty()).then_some(&last);
        for (truths, drawn) in blocks.iter().chain(last).zip(drawn.as_chunks_mut().0) {
            toss(&mut coins)?;
            self.contribute_block(truths, &coins, drawn);
        }
        drawn.truncate(truths.len());
        Ok(drawn)
    }

    #[inline]
    fn contribute_block(&self, truths: &[u32; BLOCK], coins: &TossedBlock, drawn: &mut [Contributed; BLOCK]) {
        // Hidden from the compiler, once for the whole block, so that it cannot turn either choice into a branch.
        let told = black_box(&coins.told);
        let possibilities: [u32; BLOCK] = std::array::from_fn(|lane| {
            selected(truths[lane], Drawn { told: told[lane], possibility: coins.possibilities[lane] })
        });
        let uncounted = possibilities.map(|possibility| u32::from(possibility >= self.counts));
        let uncounted = black_box(&uncounted);
        for (lane, drawn) in drawn.iter_mut().enumerate() {
            *drawn = counted(possibilities[lane], uncounted[lane]);
        }
    }

    /// What the coins of one block say. A coin that its leading bits do not decide gets another word.
    #[inline]
    fn toss_block<C: Coins>(&self, words: &mut CoinWords<'_, C>, block: &mut TossedBlock) -> Result<()> {
        let mut pairs = [0; BLOCK / 2];
        words.read(&mut pairs)?;
        let mut leading = [0; BLOCK];
        for (pair, halves) in pairs.iter().zip(leading.as_chunks_mut().0) {
            *halves = [*pair as u32, (pair >> 32) as u32];
        }
        let mut undecided = [0; BLOCK];
        for lane in 0..BLOCK {
            let (drawn, rest) = self.leading.decide(leading[lane]);
            (block.told[lane], block.possibilities[lane], undecided[lane]) = (drawn.told, drawn.possibility, rest);
        }
        if undecided.iter().fold(0, |any, rest| any | rest) != 0 {
            self.toss_rest(&leading, &undecided, words, block)?;
        }
        Ok(())
    }

    #[cold]
    fn toss_rest<C: Coins>(
        &self,
        leading: &[u32; BLOCK],
        undecided: &[u32; BLOCK],
        words: &mut CoinWords<'_, C>,
        block: &mut TossedBlock,
    ) -> Result<()> {
        for lane in (0..BLOCK).filter(|&lane| undecided[lane] != 0) {
            let mut word = [0];
            words.read(&mut word)?;
            let drawn = self.thresholds.drawn(LeadingBits::whole_coin(leading[lane], word[0]));
            (block.told[lane], block.possibilities[lane]) = (drawn.told, drawn.possibility);
        }
        Ok(())
    }

    /// Where a coin sends a contribution. Only the coin decides which way is taken.
    fn contributed(&self, truth: u32, coin: u64) -> Contributed {
        let possibility = selected(truth, black_box(self.thresholds.drawn(coin)));
        counted(possibility, black_box(u32::from(possibility >= self.counts)))
    }
}

/// Contributions that are drawn together.
const BLOCK: usize = 64;

/// What the coins of a block say, as [`Drawn`] does of one.
struct TossedBlock {
    told: [u32; BLOCK],
    possibilities: [u32; BLOCK],
}

/// Owners whose reports are drawn before they are counted: a multiple of [`BLOCK`].
const OWNERS_AT_A_TIME: usize = 1024;

/// The possibility of a contribution: its truth if the coin says so.
#[inline]
fn selected(truth: u32, coin: Drawn) -> u32 {
    (truth & coin.told) | (coin.possibility & !coin.told)
}

/// The count of a possibility; `uncounted` is 1 if it has none.
#[inline]
fn counted(possibility: u32, uncounted: u32) -> Contributed {
    Contributed(possibility | 0u32.wrapping_sub(uncounted))
}

/// The distinct counts of one owner's contributions, in ascending order. How long that takes depends only on where the
/// contributions go, which the linked guarantee covers.
fn distinct(contributions: &mut [Contributed]) -> impl Iterator<Item = usize> {
    contributions.sort_unstable_by_key(|contributed| contributed.0);
    let groups = contributions.chunk_by(|one, next| one == next);
    groups.filter_map(|group| group[0].count())
}

#[cfg(test)]
mod tests;
