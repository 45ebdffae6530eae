//! e^x of a rational number, between two rationals (`docs/accounting.md`, "One honest aggregator").
//!
//! For formulas that anyone must be able to compute again to the last digit: no platform's `exp` is involved.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};

/// Bits after the binary point. Arguments are at most about a hundred, so that e^−x keeps more than 150 of them.
const BITS: u32 = 320;

/// Two numbers between which e^x lies, both in units of 2^−[`BITS`].
pub(crate) struct Exponential {
    lower: BigInt,
    upper: BigInt,
}

impl Exponential {
    /// Bits after the binary point.
    pub(crate) const BITS: u32 = BITS;

    /// e^x for an absolute value of at most about a hundred.
    pub(crate) fn of(x: &BigRational) -> Self {
        let positive = Self::of_positive(&x.abs());
        if x.is_negative() { positive.reciprocal() } else { positive }
    }

    /// The lower end in units of 2^−[`Exponential::BITS`].
    pub(crate) fn lower_units(&self) -> &BigInt {
        &self.lower
    }

    /// The upper end in units of 2^−[`Exponential::BITS`].
    pub(crate) fn upper_units(&self) -> &BigInt {
        &self.upper
    }

    pub(crate) fn lower(&self) -> BigRational {
        BigRational::new(self.lower.clone(), BigInt::one() << BITS)
    }

    pub(crate) fn upper(&self) -> BigRational {
        BigRational::new(self.upper.clone(), BigInt::one() << BITS)
    }

    fn of_positive(x: &BigRational) -> Self {
        // Halve until the series converges fast, and square as often.
        let halvings = x.to_integer().bits() as u32 + 4;
        let scaled: BigInt = (x.numer() << BITS).div_floor(&(x.denom() << halvings));
        let mut value = Self::series(&scaled);
        // The argument was rounded down by less than one unit, which moves e^x by less than two.
        value.upper += 2;
        for _ in 0..halvings {
            value = value.squared();
        }
        value
    }

    /// Σ x^k/k! for x < 1/8, in units of 2^−[`BITS`], every term rounded down.
    fn series(x: &BigInt) -> Self {
        let mut term = BigInt::one() << BITS;
        let mut sum = term.clone();
        let mut terms = 0;
        while !term.is_zero() {
            terms += 1;
            term = ((term * x) >> BITS) / terms;
            sum += &term;
        }
        // Each rounding loses at most two units of a term, and passes on less than a seventh of it; what follows the last
        // term is less than one.
        let upper = &sum + BigInt::from(3 * terms + 2);
        Self { lower: sum, upper }
    }

    fn squared(&self) -> Self {
        let square = |value: &BigInt| -> BigInt { (value * value) >> BITS };
        Self { lower: square(&self.lower), upper: square(&self.upper) + 1 }
    }

    fn reciprocal(&self) -> Self {
        let one = BigInt::one() << (2 * BITS);
        Self { lower: &one / &self.upper, upper: &one / &self.lower + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_traits::ToPrimitive;

    #[test]
    fn encloses_what_the_platform_computes() {
        for (numerator, denominator) in [(0, 1), (1, 1), (-1, 1), (1, 1_000_000_007), (355, 113), (-99, 1), (100, 1)] {
            let x = BigRational::new(numerator.into(), denominator.into());
            let found = Exponential::of(&x);
            let width = ((found.upper() - found.lower()) / found.lower()).to_f64().unwrap();
            assert!(found.lower() <= found.upper() && width < 1e-40, "{x}: {width}");
            let expected = (f64::from(numerator) / f64::from(denominator)).exp();
            assert!((found.lower().to_f64().unwrap() / expected - 1.0).abs() < 1e-13, "{x}");
        }
    }

    #[test]
    fn products_of_inverses_enclose_one() {
        for numerator in 1..40 {
            let x = BigRational::new(numerator.into(), 7.into());
            let (up, down) = (Exponential::of(&x), Exponential::of(&-x));
            assert!(up.lower() * down.lower() <= BigRational::one());
            assert!(up.upper() * down.upper() >= BigRational::one());
        }
    }
}
