//! The law of one contribution, in integers.

use num_bigint::BigUint;
use num_traits::{One, ToPrimitive};

use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::probability::Probability;

/// The probabilities of one contribution, which sum to exactly one in integers over 2⁶⁴: that of its true possibility (g),
/// that of each other one (r), and that of none of them (1 − f). All but the first are the same whatever the truth, and r is the same integer for
/// every wrong possibility; the true one takes the remainder.
///
/// ```
/// use uptack::contribution::Contributions;
/// let law = "choice(k=3,f=1/2,r=0.1)".parse::<Contributions>()?.law();
/// let sum = law.told().numerator() + 2 * law.other().numerator() + law.silent().numerator();
/// assert_eq!(sum, 1 << 64);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContributionLaw {
    possibilities: u32,
    told: Probability,
    other: Probability,
    silent: Probability,
}

impl ContributionLaw {
    /// Taking part with probability `part` (f), and each wrong possibility with probability `other` (r), which is at most f/K.
    pub(super) fn new(possibilities: u32, part: &Fraction, other: &Fraction) -> Result<Self> {
        let share = part.times(&Fraction::new(1, u64::from(possibilities))?);
        if *other > share {
            let f = if *part == Fraction::one() { "1".to_owned() } else { format!("f = {part}") };
            return Err(Error::parameter(format!(
                "r = {other} is more than {f} divided by the {possibilities} possibilities"
            ))
            .with_hint("a wrong possibility must not be likelier than the true one"));
        }
        let one = Probability::ONE.numerator();
        let silent = part.round().complement().numerator();
        // Rounding up could make a wrong possibility likelier than the true one, by less than one unit.
        let other = other.round().numerator().min((one - silent) / u128::from(possibilities));
        let told = one - silent - other * u128::from(possibilities - 1);
        let on_grid = |numerator| Probability::from_numerator(numerator).expect("a part of one");
        Ok(Self { possibilities, told: on_grid(told), other: on_grid(other), silent: on_grid(silent) })
    }

    /// How many possibilities there are (K).
    pub fn possibilities(self) -> u32 {
        self.possibilities
    }

    /// The probability of the true possibility (g).
    pub fn told(self) -> Probability {
        self.told
    }

    /// The probability of each other possibility (r).
    pub fn other(self) -> Probability {
        self.other
    }

    /// The probability of none of the possibilities, whatever the truth (1 − f).
    pub fn silent(self) -> Probability {
        self.silent
    }

    /// How much likelier the true possibility is than another one (g − r): the probability with which the truth is told by itself.
    pub fn telling(self) -> Probability {
        self.told.saturating_sub(self.other)
    }
}

/// Digits of a product of many probabilities, beyond those of each: a multiple of 2⁻¹⁹². Its error is at most 2⁻¹⁹² for each
/// factor, far below the 2⁻⁶⁴ to which the product is rounded in the end.
const DIGITS: u32 = 3 * Probability::BITS;

/// A probability to the power of `times`, in multiples of 2⁻¹⁹².
pub(super) fn power(probability: Probability, times: u32) -> BigUint {
    let mut square = BigUint::from(probability.numerator()) << (DIGITS - Probability::BITS);
    let mut product = BigUint::one() << DIGITS;
    for bit in 0..u32::BITS - times.leading_zeros() {
        if times >> bit & 1 == 1 {
            product = (product * &square) >> DIGITS;
        }
        square = (&square * &square) >> DIGITS;
    }
    product
}

/// A probability times such a power, rounded to the nearest.
pub(super) fn product(probability: Probability, power: &BigUint) -> Probability {
    let exact = BigUint::from(probability.numerator()) * power;
    let half = BigUint::one() << (DIGITS - 1);
    let rounded = (exact + half) >> DIGITS;
    rounded.to_u128().and_then(|numerator| Probability::from_numerator(numerator).ok()).unwrap_or(Probability::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn laws_sum_to_exactly_one(possibilities in 2u32..70_000, part in 0u64..=1000, other in 0u64..=1_000_000) {
            let part = Fraction::new(part, 1000).unwrap();
            let share = part.times(&Fraction::new(other, 1_000_000 * u64::from(possibilities)).unwrap());
            let law = ContributionLaw::new(possibilities, &part, &share).unwrap();
            let others = u128::from(possibilities - 1) * law.other().numerator();
            prop_assert_eq!(law.told().numerator() + others + law.silent().numerator(), 1 << 64);
            prop_assert!(law.told() >= law.other());
        }
    }
}
