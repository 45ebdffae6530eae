//! What the leading 32 bits of a coin decide, without a division.
//!
//! 2³² neighbouring coins share their leading bits. Unless a threshold separates them, they all send a contribution to the same
//! possibility. There are at most K + 1 thresholds, so all but (K + 1)/2³² of the coins are decided, whatever the law.

use super::thresholds::{Drawn, Thresholds};

/// The bits of a coin that are read first.
const LEADING_BITS: u32 = 32;

/// How many coins share their leading bits.
const TOGETHER: u64 = 1 << LEADING_BITS;

/// The thresholds of a law, as far as leading bits reach.
#[derive(Clone, Debug)]
pub(super) struct LeadingBits {
    /// Leading bits below this tell the truth.
    told_below: u64,
    /// From these on, coins are beyond the first threshold; never if the intervals are shorter than [`TOGETHER`].
    divided_from: u64,
    /// From these on, the contribution goes to no possibility.
    silent_from: u64,
    /// The first coin that does not tell the truth. It is not needed if there is none.
    telling: u64,
    /// The length of an interval.
    other: u64,
    /// How far behind the start of an interval all coins of the same leading bits are still inside.
    inside: u64,
    /// ⌊2^(64 + shift)/other⌋, in 64 bits.
    reciprocal: u64,
    /// The position of the leading bit of `other`.
    shift: u32,
    possibilities: u32,
}

impl LeadingBits {
    pub(super) fn new(thresholds: &Thresholds) -> Self {
        let other = thresholds.other();
        let told_below = (thresholds.telling() >> LEADING_BITS) as u64;
        let shift = other.checked_ilog2().unwrap_or(0);
        let reciprocal = (1u128 << (u64::BITS + shift)).checked_div(u128::from(other)).unwrap_or(0);
        Self {
            told_below,
            divided_from: if other < TOGETHER { u64::MAX } else { told_below + 1 },
            silent_from: thresholds.end().div_ceil(u128::from(TOGETHER)) as u64,
            telling: thresholds.telling() as u64,
            other,
            inside: other.saturating_sub(TOGETHER),
            reciprocal: u64::try_from(reciprocal).unwrap_or(u64::MAX),
            shift,
            possibilities: thresholds.possibilities(),
        }
    }

    /// Where all coins with these leading bits send a contribution, and whether that is certain. If it is not, the rest of
    /// the coin decides.
    ///
    /// The reciprocal is at most one below 2^(64 + shift)/other, and `shift` is at least 32, so the quotient is at most 2⁻³² too
    /// small before it is rounded down. Where that changes the interval, the remainder is at least `other`, and so not `inside`.
    #[inline]
    pub(super) fn decide(&self, leading: u32) -> (Drawn, bool) {
        let beyond = (u64::from(leading) << LEADING_BITS).wrapping_sub(self.telling);
        let product = u128::from(beyond) * u128::from(self.reciprocal);
        let interval = (product >> u64::BITS) as u64 >> self.shift;
        let remainder = beyond.wrapping_sub(interval.wrapping_mul(self.other));
        let leading = u64::from(leading);
        let (told, silent) = (leading < self.told_below, leading >= self.silent_from);
        let divided = (leading >= self.divided_from) & (remainder <= self.inside);
        let possibility = if silent { self.possibilities } else { interval as u32 };
        (Drawn::new(told, possibility), told | silent | divided)
    }

    /// The coin with these leading bits whose other bits are the upper half of a word.
    pub(super) fn whole_coin(leading: u32, word: u64) -> u64 {
        (u64::from(leading) << LEADING_BITS) | (word >> LEADING_BITS)
    }
}
