//! What the leading 16 bits of a coin decide, where they decide nearly all coins.
//!
//! 2⁴⁸ neighbouring coins share their leading bits: a step. Of the 2¹⁶ steps, the truth, each possibility and silence get as many as
//! their integers hold whole, so that a step says one thing. The few steps that are left hold what remains of every integer, and
//! their coins are decided one by one. So the law stays exact, while most contributions cost 16 bits.

use super::thresholds::{Drawn, Thresholds};
use super::{BLOCK, TossedBlock};
use crate::coins::{CoinWords, Coins};
use crate::error::Result;

/// The bits of a coin behind its leading ones.
const STEP_BITS: u32 = 48;
const STEPS: u64 = 1 << (u64::BITS - STEP_BITS);

/// Each step that is left to other bits costs another word for its coins. With more of them than this, 32 leading bits are faster.
const MOST_UNDECIDED: u64 = STEPS / 8;

/// Steps in this order: those that tell the truth, as many for each possibility, those that are silent, those that are left.
#[derive(Clone, Debug)]
pub(super) struct WholeSteps {
    told_below: u16,
    silent_from: u16,
    pub(super) undecided_from: u16,
    quotient: Quotient,
    possibilities: u32,
    /// Where the coins of the steps that are left send a contribution.
    pub(super) rest: Thresholds,
}

impl WholeSteps {
    pub(super) fn new(thresholds: &Thresholds) -> Self {
        let possibilities = u64::from(thresholds.possibilities());
        let whole = |coins: u128| (coins >> STEP_BITS) as u64;
        let mut told = whole(thresholds.telling());
        let mut other = whole(thresholds.other().into());
        let mut silent = whole((1 << u64::BITS) - thresholds.end());
        if told + possibilities * other + silent == STEPS {
            // At least one step is left, so that the numbers of all others have 16 bits.
            let given_up = [&mut silent, &mut told, &mut other].into_iter().find(|steps| **steps > 0);
            *given_up.expect("the steps have a sum above zero") -= 1;
        }
        let silent_from = told + possibilities * other;
        Self {
            told_below: told as u16,
            silent_from: silent_from as u16,
            undecided_from: (silent_from + silent) as u16,
            quotient: Quotient::new(told as u16, other as u16),
            possibilities: thresholds.possibilities(),
            rest: thresholds.without(u128::from(told) << STEP_BITS, other << STEP_BITS),
        }
    }

    /// Whether so few steps are left that this is faster than more leading bits.
    pub(super) fn decide_nearly_all(&self) -> bool {
        STEPS - u64::from(self.undecided_from) <= MOST_UNDECIDED
    }

    /// What the coins of one block say.
    #[inline]
    pub(super) fn toss_block<C: Coins>(&self, words: &mut CoinWords<'_, C>, block: &mut TossedBlock) -> Result<()> {
        let mut quadruples = [0; BLOCK / 4];
        words.read(&mut quadruples)?;
        let mut steps = [0; BLOCK];
        for (word, steps) in quadruples.iter().zip(steps.as_chunks_mut().0) {
            *steps = [*word as u16, (word >> 16) as u16, (word >> 32) as u16, (word >> 48) as u16];
        }
        for (lane, &step) in steps.iter().enumerate() {
            let drawn = self.decided(step);
            (block.told[lane], block.possibilities[lane]) = (drawn.told, drawn.possibility);
        }
        let undecided = steps.map(|step| u8::from(step >= self.undecided_from));
        if undecided.iter().fold(0, |any, undecided| any | undecided) != 0 {
            self.toss_rest(&steps, &undecided, words, block)?;
        }
        Ok(())
    }

    /// What a step says that is not left to other bits.
    #[inline(always)]
    pub(super) fn decided(&self, step: u16) -> Drawn {
        let silent = step >= self.silent_from;
        let possibility = if silent { self.possibilities } else { u32::from(self.quotient.of(step)) };
        Drawn::new(step < self.told_below, possibility)
    }

    fn toss_rest<C: Coins>(
        &self,
        steps: &[u16; BLOCK],
        undecided: &[u8; BLOCK],
        words: &mut CoinWords<'_, C>,
        block: &mut TossedBlock,
    ) -> Result<()> {
        for lane in lanes(undecided) {
            let mut word = [0];
            words.read(&mut word)?;
            let drawn = self.rest.drawn(self.rest_of_coin(steps[lane], word[0]));
            (block.told[lane], block.possibilities[lane]) = (drawn.told, drawn.possibility);
        }
        Ok(())
    }

    /// The place of a coin among those of all steps that are left; the upper bits of a word follow its leading bits.
    fn rest_of_coin(&self, step: u16, word: u64) -> u64 {
        (u64::from(step - self.undecided_from) << STEP_BITS) | (word >> (u64::BITS - STEP_BITS))
    }
}

/// Divides by a constant, without a division and in 16 bits, which compilers turn into vectors.
///
/// For d > 0 let 2ˢ be the largest power of two that is not above it, and m = ⌊2¹⁶⁺ˢ/d⌋ with the remainder e. If e ≤ 2ˢ, then
/// ⌊(n + 1)·m/2¹⁶⁺ˢ⌋ = ⌊n/d⌋ for all n + 1 < 2¹⁶; otherwise d − e < 2ˢ, and ⌊n·(m + 1)/2¹⁶⁺ˢ⌋ is. A power of two has m = 2¹⁶ and
/// e = 0, or just as well m = 2¹⁶ − 1 and e = 2ˢ.
#[derive(Clone, Debug)]
struct Quotient {
    start: u16,
    multiplier: u16,
    shift: u32,
}

impl Quotient {
    /// (n − start)/divisor for all n from `start` up to 2¹⁶ − 2; zero if the divisor is.
    fn new(start: u16, divisor: u16) -> Self {
        let Some(shift) = divisor.checked_ilog2() else { return Self { start, multiplier: 0, shift: 0 } };
        let power = (1u64 << (16 + shift)) - u64::from(divisor.is_power_of_two());
        let (multiplier, remainder) = (power / u64::from(divisor), power % u64::from(divisor));
        let adds_one = remainder <= 1 << shift;
        Self {
            start: start.wrapping_sub(u16::from(adds_one)),
            multiplier: (multiplier + u64::from(!adds_one)) as u16,
            shift,
        }
    }

    #[inline(always)]
    fn of(&self, number: u16) -> u16 {
        let product = u32::from(number.wrapping_sub(self.start)) * u32::from(self.multiplier);
        ((product >> 16) as u16) >> self.shift
    }
}

/// The numbers of the bytes that are 1, where all others are 0.
fn lanes(flags: &[u8; BLOCK]) -> impl Iterator<Item = usize> {
    // The product moves the lowest bit of byte i to bit 56 + i, and nothing else into the highest byte.
    let gathered = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    let eights = flags.as_chunks().0.iter().enumerate();
    let mut left = eights.fold(0, |bits, (index, bytes)| bits | (gathered(bytes) << (8 * index)));
    std::iter::from_fn(move || {
        let lane = (left != 0).then(|| left.trailing_zeros() as usize);
        left &= left.wrapping_sub(1);
        lane
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every divisor, at both ends of every interval.
    #[test]
    fn quotients_are_exact() {
        for divisor in 1..u16::MAX {
            for (start, most) in [(0, u16::MAX - 1), (1, u16::MAX - 1), (40_000, 25_000)] {
                let quotient = Quotient::new(start, divisor);
                for first in (0..=most.min(u16::MAX - 1 - start)).step_by(divisor.into()) {
                    let last = first.saturating_add(divisor - 1).min(u16::MAX - 1 - start);
                    let expected = first / divisor;
                    assert_eq!([first, last].map(|number| quotient.of(start + number)), [expected; 2], "{divisor}");
                }
            }
        }
    }

    #[test]
    fn lanes_are_the_numbers_of_the_flags() {
        for pattern in [0, 1, 1 << 63, u64::MAX, 0x8040_2010_0804_0201, 0x1234_5678_9abc_def0] {
            let flags = std::array::from_fn(|lane| (pattern >> lane & 1) as u8);
            assert!(lanes(&flags).eq((0..BLOCK).filter(|lane| pattern >> lane & 1 == 1)), "{pattern:x}");
        }
    }
}
