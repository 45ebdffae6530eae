//! Where each coin sends a contribution, by definition.

use crate::contribution::ContributionLaw;

/// The thresholds of a law among the 2⁶⁴ coins. Coins below g − r tell the truth; in each of the K intervals of length r that
/// follow, a contribution goes to one possibility; above them it goes to none.
#[derive(Clone, Debug)]
pub(super) struct Thresholds {
    telling: u128,
    other: u64,
    possibilities: u32,
}

/// What a coin says, whatever the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    /// All ones if the truth is told.
    pub(super) told: u32,
    /// Otherwise the possibility to which the contribution goes; K stands for none of them.
    pub(super) possibility: u32,
}

impl Drawn {
    #[inline]
    pub(super) fn new(told: bool, possibility: u32) -> Self {
        Self { told: 0u32.wrapping_sub(u32::from(told)), possibility }
    }
}

impl Thresholds {
    pub(super) fn new(law: ContributionLaw) -> Self {
        // At most 2⁶³, since there are at least two possibilities.
        let other = law.other().numerator() as u64;
        Self { telling: law.telling().numerator(), other, possibilities: law.possibilities() }
    }

    /// The thresholds of what is left when this many coins are taken from those that tell the truth and from those of each
    /// possibility.
    pub(super) fn without(&self, telling: u128, other: u64) -> Self {
        Self { telling: self.telling - telling, other: self.other - other, possibilities: self.possibilities }
    }

    /// How many coins tell the truth.
    pub(super) fn telling(&self) -> u128 {
        self.telling
    }

    /// How many coins send a contribution to each possibility, beyond those that tell the truth.
    pub(super) fn other(&self) -> u64 {
        self.other
    }

    /// The first coin that sends a contribution to no possibility.
    pub(super) fn end(&self) -> u128 {
        self.telling + u128::from(self.possibilities) * u128::from(self.other)
    }

    pub(super) fn possibilities(&self) -> u32 {
        self.possibilities
    }

    /// What one coin says.
    pub(super) fn drawn(&self, coin: u64) -> Drawn {
        if u128::from(coin) < self.telling {
            return Drawn::new(true, 0);
        }
        let beyond = coin - self.telling as u64;
        let interval = beyond.checked_div(self.other).unwrap_or(u64::MAX).min(u64::from(self.possibilities));
        Drawn::new(false, interval as u32)
    }
}
