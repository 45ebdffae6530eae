//! Drawing contributions, exactly and without a side channel that would reveal the truth.
//!
//! A coin is a uniform 64-bit integer u. Below g − r the contribution is told; in each of the K intervals of length r that follow, it
//! goes to one possibility; above them it goes to none. So the law drawn is the law accounted for. Which interval the coin is in
//! does not depend on the truth, and neither does the number of bytes read: the truth enters only as a mask at the end.

use std::hint::black_box;

use super::{Choice, Choices, Contributions};
use crate::coins::{CoinWords, Coins, SeededCoins, Unpredictable};
use crate::error::Result;
use crate::truth::spread;

/// Draws contributions of one mechanism.
///
/// ```
/// use uptack::OsCoins;
/// use uptack::contribution::{Choice, ContributionSampler, Contributions};
/// let asked: Contributions = "choice(k=4,r=0.001)".parse()?;
/// let sampler = ContributionSampler::new(&asked);
/// let drawn = sampler.draw(Choice::new(2), &mut OsCoins)?;
/// assert!(drawn.count().is_some_and(|count| count < 4));
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ContributionSampler {
    counts: u32,
    possibilities: u32,
    /// Coins below this tell the truth.
    telling: u128,
    /// How many coins each possibility has beyond that.
    other: u128,
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
        let law = contributions.law();
        Self {
            counts: contributions.counts() as u32,
            possibilities: contributions.possibilities(),
            telling: law.telling().numerator(),
            other: law.other().numerator(),
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

    /// Many contributions; if the coins fail, none.
    pub fn draw_many(&self, truths: &Choices, coins: &mut impl Unpredictable) -> Result<Vec<Contributed>> {
        self.draw_many_from(truths, coins)
    }

    /// As [`ContributionSampler::draw_many`], reproducibly; for tests and simulation only.
    pub fn draw_many_seeded(&self, truths: &Choices, coins: &mut SeededCoins) -> Vec<Contributed> {
        self.draw_many_from(truths, coins).expect("seeded coins do not fail")
    }

    pub(crate) fn draw_from(&self, truth: Choice, coins: &mut impl Coins) -> Result<Contributed> {
        let mut bytes = [0; 8];
        coins.fill(&mut bytes)?;
        Ok(self.contributed(truth.possibility(), u64::from_le_bytes(bytes)))
    }

    pub(crate) fn draw_many_from(&self, truths: &Choices, coins: &mut impl Coins) -> Result<Vec<Contributed>> {
        let mut words = CoinWords::new(coins);
        let draw = |&truth: &u32| {
            let mut word = [0];
            words.read(&mut word)?;
            Ok(self.contributed(truth, word[0]))
        };
        truths.possibilities().iter().map(draw).collect()
    }

    /// Where a coin sends a contribution. Only the coin decides which way is taken; the truth is selected by a mask.
    #[inline]
    fn contributed(&self, truth: u32, coin: u64) -> Contributed {
        let coin = u128::from(coin);
        let beyond = coin.wrapping_sub(self.telling);
        let drawn = match coin < self.telling {
            true => 0,
            false => beyond
                .checked_div(self.other)
                .map_or(self.possibilities, |interval| interval.min(u128::from(self.possibilities)) as u32),
        };
        let mask = spread(u64::from(coin < self.telling)) as u32;
        self.counted((truth & mask) | (drawn & !mask))
    }

    /// The count of a possibility, without a branch on which it is.
    #[inline]
    fn counted(&self, possibility: u32) -> Contributed {
        let uncounted = spread(u64::from(black_box(possibility) >= self.counts)) as u32;
        Contributed(possibility | uncounted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(text: &str) -> ContributionSampler {
        ContributionSampler::new(&text.parse().unwrap())
    }

    /// The law as stated: how many coins send a contribution of this truth to each possibility, K standing for none of them.
    fn meant(sampler: &ContributionSampler, coin: u128, truth: u32) -> u32 {
        if coin < sampler.telling {
            return truth;
        }
        let mut end = sampler.telling;
        for possibility in 0..sampler.possibilities {
            end += sampler.other;
            if coin < end {
                return possibility;
            }
        }
        sampler.possibilities
    }

    /// A possibility is constant between two edges, so exact edges are the exact law.
    #[test]
    fn every_threshold_is_exact() {
        for options in 2..=40u32 {
            let texts = [
                format!("choice(k={options},r={})", 0.9 / f64::from(options)),
                format!("choice(k={options},f=0.6,r=0.001)"),
                format!("choice(k={options},r=1/{options})"),
                format!("contributions(counts={options},most=2,r=1e-9)"),
                format!("choice(k={options},r=0)"),
                format!("choice(k={options},f=0,r=0)"),
            ];
            for sampler in texts.map(|text| self::sampler(&text)) {
                let ends = (0..=u128::from(sampler.possibilities)).map(|k| sampler.telling + k * sampler.other);
                let edges = ends.flat_map(|end| [end.wrapping_sub(1), end, end + 1]).chain([0, u128::from(u64::MAX)]);
                for coin in edges.filter_map(|edge| u64::try_from(edge).ok()) {
                    for truth in [0, options / 2, options - 1] {
                        let possibility = meant(&sampler, u128::from(coin), truth);
                        let expected = (possibility < sampler.counts).then_some(possibility as usize);
                        assert_eq!(sampler.contributed(truth, coin).count(), expected, "{sampler:?} {coin} {truth}");
                    }
                }
            }
        }
    }
}
