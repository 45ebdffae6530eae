//! What the leading 32 bits of a coin decide, without a division.
//!
//! 2³² neighbouring coins share their leading bits. Unless a threshold is among or near them, they all send a contribution to the
//! same possibility. That decides all but about 4/(r·2³²) of the coins that do not tell the truth. Everything is 32-bit arithmetic
//! without a branch, which compilers turn into vectors.

use super::thresholds::{Drawn, Thresholds};

/// The bits of a coin that are read first.
const LEADING_BITS: u32 = 32;

/// The thresholds of a law, as far as leading bits reach.
///
/// A coin's quotient is (coin − telling)/other, of which the integral part is the interval that it is in. It is computed with 32
/// fractional bits, M = 2⁶⁴/other of which are one step of the leading bits.
#[derive(Clone, Debug)]
pub(super) struct LeadingBits {
    /// Leading bits below this tell the truth.
    told_below: u32,
    /// Leading bits above this send the contribution to no possibility.
    silent_above: u32,
    /// ⌊M·2^shift⌋, in 32 bits.
    reciprocal: u32,
    shift: u32,
    /// How close to the start of its interval a quotient may be computed.
    margin: u32,
    /// How many fractions behind that are certain; 0 if an interval is so short that none is.
    certain: u32,
    possibilities: u32,
}

impl LeadingBits {
    /// The quotient d·M of d steps is at most M too large, because the first step may begin before the first interval, and at
    /// most 2^(32 − shift) + 1 too small, because the reciprocal is rounded. The coins of a step are within M of its first.
    pub(super) fn new(thresholds: &Thresholds) -> Self {
        let other = u128::from(thresholds.other());
        let step = (1u128 << u64::BITS).checked_div(other).unwrap_or(u128::MAX >> 1);
        // Without an interval that is longer than a step, nothing is divided.
        let divides = step < 1 << (LEADING_BITS - 3);
        let shift = if divides { (step as u32 + 1).leading_zeros() } else { 0 };
        let reciprocal = if divides { (1u128 << (u64::BITS + shift)) / other } else { 0 };
        let margin = if divides { step as u32 + 2 } else { 0 };
        let behind = (1u64 << (LEADING_BITS - shift)) + u64::from(margin) + 1;
        let certain = (1u64 << LEADING_BITS).saturating_sub(u64::from(margin) + behind);
        let steps = |coins: u128| u32::try_from(coins >> LEADING_BITS).unwrap_or(u32::MAX);
        Self {
            told_below: steps(thresholds.telling()),
            silent_above: steps(thresholds.end().saturating_sub(1)),
            reciprocal: reciprocal as u32,
            shift,
            margin,
            certain: if divides { certain as u32 } else { 0 },
            possibilities: thresholds.possibilities(),
        }
    }

    /// Where all coins with these leading bits send a contribution, and all ones if the rest of the coin has to decide.
    #[inline(always)]
    pub(super) fn decide(&self, leading: u32) -> (Drawn, u32) {
        let steps = leading.wrapping_sub(self.told_below);
        let product = u64::from(steps) * u64::from(self.reciprocal);
        let (interval, fraction) = ((product >> (LEADING_BITS + self.shift)) as u32, (product >> self.shift) as u32);
        let (told, silent) = (leading < self.told_below, leading > self.silent_above);
        let certain = fraction.wrapping_sub(self.margin) < self.certain;
        let possibility = if silent { self.possibilities } else { interval };
        (Drawn::new(told, possibility), 0u32.wrapping_sub(u32::from(!(told | silent | certain))))
    }

    /// The coin with these leading bits whose other bits are the upper half of a word.
    pub(super) fn whole_coin(leading: u32, word: u64) -> u64 {
        (u64::from(leading) << LEADING_BITS) | (word >> LEADING_BITS)
    }
}
