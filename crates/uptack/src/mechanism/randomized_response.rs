use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};

use super::{Family, trusted};
use crate::channel::{Cell, Channel, Output};
use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::probability::Probability;

/// Plain randomized response: tell the truth with probability t, else the opposite.
///
/// **Guarantee.** Each answer alone has ε = |ln(t / (1−t))|, and so has the linked view; there is nothing else to
/// link. In a crowd the release is far better protected than that.
///
/// **Algorithm.** Warner's survey technique (1965), the paper's baseline.
///
/// **Utility.** The estimate from the count of `1` has standard deviation √(n·t(1−t)) / |2t−1|, whatever the number of
/// yes-owners: it grows with the crowd.
///
/// **Cost.** One answer of two outputs.
///
/// `randomized-response(epsilon=ε)` is the one whose ε, of an answer alone and linked, is as large as can be written and not above the
/// given one: t is e^ε / (1 + e^ε), rounded towards 1/2. It is printed with its t. The published counts of a crowd have a smaller ε.
///
/// ```
/// use uptack::{Mechanism, estimate::Estimator};
/// assert_eq!("randomized-response(epsilon=1)".parse::<Mechanism>()?.to_string(), "randomized-response(t=0.731058578629)");
/// let (n, t) = (50_000.0_f64, 0.8_f64);
/// let mechanism: Mechanism = "randomized-response(t=0.8)".parse()?;
/// let sd = Estimator::new(&mechanism.channel())?.sd(50_000, 500.0)?;
/// assert!((sd - (n * t * (1.0 - t)).sqrt() / (2.0 * t - 1.0)).abs() < 1e-9);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomizedResponse {
    truthful: Fraction,
}

impl RandomizedResponse {
    /// Tell the truth with probability `truthful` (t).
    pub fn new(truthful: Fraction) -> Self {
        Self { truthful }
    }

    /// The one whose local ε is the largest that is not above `epsilon`, up to the twelfth digit of 1 − t.
    ///
    /// A t with t/(1−t) = e^ε is irrational. So 1 − t is rounded up, first to an integer over 2⁶⁴ and then to twelve digits; one more
    /// unit of the last digit keeps the certified ε, which is rounded up, below the one asked for as well. Beyond ε = 44.36 the integers
    /// end, and 1 − t is 2⁻⁶⁴.
    pub(super) fn for_epsilon(epsilon: &BigRational) -> Result<Self> {
        if epsilon.is_negative() {
            return Err(Error::parameter("epsilon is negative").with_hint("write epsilon=1"));
        }
        let flipped = rounded_up(least_flipped(&exp_lower(epsilon))).min(BigRational::new(1.into(), 2.into()));
        Ok(Self::new(Fraction::checked(BigRational::one() - flipped)?))
    }
}

/// Binary places of the fixed-point numbers in [`exp_lower`].
const PLACES: usize = 192;

/// e^ε from below, as a multiple of 2^−[`PLACES`]: the terms of the series are positive, and each is rounded down.
fn exp_lower(epsilon: &BigRational) -> BigInt {
    // Beyond this the answer does not change any more.
    let most = BigRational::from_integer(64.into());
    let scaled = (epsilon.min(&most) * BigRational::from_integer(BigInt::one() << PLACES)).floor().to_integer();
    let mut term = BigInt::one() << PLACES;
    let (mut sum, mut number) = (BigInt::zero(), 1_u32);
    while !term.is_zero() {
        sum += &term;
        term = ((term * &scaled) >> PLACES) / number;
        number += 1;
    }
    sum
}

/// The least 1 − t = k/2⁶⁴ with t ≤ (1−t)·e^ε, given e^ε as [`exp_lower`] returns it.
fn least_flipped(exponential: &BigInt) -> BigRational {
    let one = BigInt::one() << PLACES;
    let all = BigInt::from(Probability::ONE.numerator());
    let flipped = (&all * &one).div_ceil(&(one + exponential)).max(BigInt::one());
    BigRational::new(flipped, all)
}

/// A positive number rounded up to twelve significant decimal digits, and one more unit of the last.
fn rounded_up(value: BigRational) -> BigRational {
    let ten = BigRational::from_integer(10.into());
    let smallest = BigRational::from_integer(BigInt::from(100_000_000_000_u64));
    let (mut digits, mut scale) = (value, BigRational::one());
    while digits < smallest {
        digits *= &ten;
        scale *= &ten;
    }
    (digits.ceil() + BigRational::one()) / scale
}

impl Family for RandomizedResponse {
    const NAME: &'static str = "randomized-response";
    const KEYS: &'static [&'static str] = &["t"];

    fn from_values(values: Vec<Fraction>) -> Result<Self> {
        let [truthful] = super::exactly(values);
        Ok(Self::new(truthful))
    }

    fn values(&self) -> Vec<&Fraction> {
        vec![&self.truthful]
    }

    /// The rest is the opposite of the truth, in both laws.
    fn channel(&self) -> Channel {
        let truth = self.truthful.round();
        let opposite = truth.complement();
        trusted(vec![Cell::new(vec![Output::ONE], truth, opposite), Cell::new(vec![Output::ZERO], opposite, truth)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;
    use crate::fraction::rational;
    use crate::privacy::linked_epsilon;

    fn certified(epsilon: &str) -> f64 {
        let mechanism: Mechanism = format!("randomized-response(epsilon={epsilon})").parse().unwrap();
        assert_eq!(mechanism.to_string().parse::<Mechanism>().unwrap(), mechanism);
        linked_epsilon(&mechanism.channel()).unwrap()
    }

    /// Also the certified ε, which is rounded up, is at most the one asked for; and no more than the digits cost is given away.
    #[test]
    fn an_epsilon_is_never_exceeded_and_nearly_reached() {
        for text in ["1e-9", "0.001", "0.1", "1/3", "0.5", "1", "2", "5", "6.92", "10", "20"] {
            let asked = rational(text).map(|value| crate::linear::to_f64(&value)).unwrap();
            let found = certified(text);
            assert!(found <= asked && found >= asked - 2e-11, "{text}: {found:?}");
        }
        for (text, least) in [("30", 29.999), ("40", 39.99), ("44", 43.6)] {
            let found = certified(text);
            assert!(found <= text.parse::<f64>().unwrap() && found > least, "{text}: {found:?}");
        }
        assert_eq!(certified("0"), 0.0);
        assert_eq!(certified("45"), certified("1000"));
    }

    /// The exact test in integers, without any logarithm: T ≤ (2⁶⁴ − T)·e^ε, and the next larger T that twelve digits can write fails it.
    #[test]
    fn the_law_is_the_largest_that_the_digits_allow() {
        for text in ["0.1", "1", "3", "10"] {
            let epsilon = rational(text).unwrap();
            let truthful = RandomizedResponse::for_epsilon(&epsilon).unwrap().truthful;
            let (one, exponential) = (BigInt::one() << PLACES, exp_lower(&epsilon));
            let holds = |flipped: &BigRational| {
                let truth = Fraction::checked(BigRational::one() - flipped).unwrap().round().numerator();
                BigInt::from(truth) * &one <= BigInt::from(Probability::ONE.numerator() - truth) * &exponential
            };
            let flipped = BigRational::one() - truthful.exact();
            assert!(holds(&flipped), "{text}");
            let smaller =
                &flipped * (BigRational::one() - BigRational::new(1.into(), BigInt::from(25_000_000_000_u64)));
            assert!(!holds(&smaller), "{text}");
        }
    }

    #[test]
    fn bad_epsilons_say_what_is_expected() {
        for (text, message) in [
            ("randomized-response(epsilon=-1)", "randomized-response: epsilon is negative"),
            ("randomized-response(epsilon=one)", "randomized-response: epsilon: `one` is not a number"),
            ("randomized-response(t=0.8,epsilon=1)", "randomized-response: t and epsilon are both given"),
            ("randomized-response(epsilon=1,t=0.8)", "randomized-response: t and epsilon are both given"),
        ] {
            let error = text.parse::<Mechanism>().unwrap_err();
            assert_eq!(error.to_string(), message);
            assert!(error.hint().is_some(), "{text}");
        }
    }
}
