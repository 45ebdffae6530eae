//! Samplers of contributions that are broken on purpose, so that the auditor can be seen to catch them. They exist only where
//! debug assertions are on.

use std::str::FromStr;

use super::subject::ContributionSubject;
use crate::audit::broken::Coin;
use crate::coins::Coins;
use crate::contribution::{Choice, Choices, Contributed, ContributionSampler, Contributions};
use crate::display::separated;
use crate::error::{Error, Result};
use crate::noise::NoiseLaw;
use crate::output::shortened;

/// How a sampler of contributions is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenContributions {
    /// The second possibility is twice as likely as it should be where it is wrong.
    DoubledOption,
    /// All contributions of an owner share one coin; if owners make one contribution each, every second owner of a batch is given
    /// the coin of the one before.
    ReusedCoin,
    /// The honest aggregator adds noise to all counts but the first.
    NoiseMissingOnOne,
}

impl BrokenContributions {
    /// One of each kind.
    pub const ALL: [Self; 3] = [Self::DoubledOption, Self::ReusedCoin, Self::NoiseMissingOnOne];

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::DoubledOption => "doubled-option",
            Self::ReusedCoin => "reused-coin",
            Self::NoiseMissingOnOne => "noise-missing-on-one",
        }
    }
}

impl FromStr for BrokenContributions {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|control| control.name() == text).ok_or_else(|| {
            let names = separated(Self::ALL.into_iter().map(Self::name), ", ");
            Error::syntax(format!("`{}` is not a broken control of contributions", shortened(text)))
                .with_hint(format!("the controls are {names}"))
        })
    }
}

/// Draws contributions wrongly.
pub(super) struct BrokenSampler {
    control: BrokenContributions,
    sampler: ContributionSampler,
    most: usize,
    /// The coins that tell the second possibility instead of the truth.
    stolen: std::ops::Range<u128>,
}

impl BrokenSampler {
    pub(super) fn new(asked: &Contributions, control: BrokenContributions) -> Result<Self> {
        if control == BrokenContributions::NoiseMissingOnOne && asked.noise().is_none() {
            return Err(Error::request(format!("{} needs a mechanism with noise", control.name()))
                .with_hint("as in choice(k=4,r=0.001) + laplace(scale=2)"));
        }
        let law = asked.law();
        let (telling, other) = (law.telling().numerator(), law.other().numerator());
        let stolen = telling.saturating_sub(other)..telling;
        Ok(Self { control, sampler: ContributionSampler::new(asked), most: asked.most() as usize, stolen })
    }

    fn one(&self, truth: Choice, mut coin: Coin) -> Result<Contributed> {
        let is_stolen = self.stolen.contains(&u128::from(u64::from_le_bytes(coin.0)));
        let doubled = self.control == BrokenContributions::DoubledOption && is_stolen;
        self.sampler.draw_from(if doubled { Choice::new(1) } else { truth }, &mut coin)
    }

    /// Contributions one by one; where coins are reused, one serves `shared` of them.
    fn each(&self, truths: &[Choice], shared: usize, coins: &mut impl Coins) -> Result<Vec<Contributed>> {
        let shared = if self.control == BrokenContributions::ReusedCoin { shared } else { 1 };
        let mut drawn = Vec::with_capacity(truths.len());
        for together in truths.chunks(shared) {
            let coin = Coin::toss(coins)?;
            for &truth in together {
                drawn.push(self.one(truth, coin)?);
            }
        }
        Ok(drawn)
    }
}

impl ContributionSubject for BrokenSampler {
    fn draw_report<C: Coins>(&self, truths: &[Choice], coins: &mut C) -> Result<Vec<usize>> {
        let drawn = self.each(truths, self.most, coins)?;
        let counts = drawn.into_iter().filter_map(Contributed::count);
        Ok(Vec::from_iter(std::collections::BTreeSet::from_iter(counts)))
    }

    fn draw_many<C: Coins>(&self, truths: &Choices, coins: &mut C) -> Result<Vec<Contributed>> {
        self.each(&truths.to_vec(), self.most.max(2), coins)
    }

    fn draw_noise<C: Coins>(
        &self,
        noise: &NoiseLaw,
        releases: usize,
        counts: usize,
        coins: &mut C,
    ) -> Result<Vec<i64>> {
        let mut drawn = noise.draw_many_from(releases * counts, coins)?;
        if self.control == BrokenContributions::NoiseMissingOnOne {
            drawn.iter_mut().step_by(counts).for_each(|noise| *noise = 0);
        }
        Ok(drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for control in BrokenContributions::ALL {
            assert_eq!(control.name().parse::<BrokenContributions>().unwrap(), control);
        }
        assert!("sound".parse::<BrokenContributions>().unwrap_err().hint().unwrap().contains("doubled-option"));
    }
}
