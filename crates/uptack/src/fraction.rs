//! Exact parameters.

use std::fmt;
use std::str::FromStr;

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::probability::Probability;
use crate::quantity::refusal;

/// A parameter of a mechanism: an exact rational between 0 and 1.
///
/// Parameters stay exact until a cell's probability is rounded to the grid of [`Probability`], once. So `1/3` and
/// `33 %` mean what they say, and a mechanism that is printed and read again has the identical integers.
///
/// ```
/// use uptack::Fraction;
/// let tenth: Fraction = "10%".parse()?;
/// assert_eq!(tenth, "0.1".parse()?);
/// assert_eq!(tenth, "1/10".parse()?);
/// assert_eq!(tenth.to_string(), "0.1");
/// assert_eq!("2/6".parse::<Fraction>()?.to_string(), "1/3");
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fraction(BigRational);

/// Longer than any honest parameter; limits what a hostile one costs.
const LONGEST_TEXT: usize = 256;
/// Exponents beyond this are zero on every grid that we use.
const LARGEST_EXPONENT: u32 = 400;
/// Decimals of more places than this are printed as ratios.
const MOST_PLACES: u32 = 40;

impl Fraction {
    /// Nothing.
    pub fn zero() -> Self {
        Self(BigRational::zero())
    }

    /// Certainty.
    pub fn one() -> Self {
        Self(BigRational::one())
    }

    /// `numerator / denominator`, which must lie between 0 and 1.
    pub fn new(numerator: u64, denominator: u64) -> Result<Self> {
        if denominator == 0 {
            return Err(Error::syntax("the denominator of a fraction is 0"));
        }
        Self::checked(BigRational::new(numerator.into(), denominator.into()))
    }

    /// The shortest decimal that reads back as `value`: `0.1` is taken as 1/10, which is what its writer meant.
    pub fn from_f64(value: f64) -> Result<Self> {
        if value.is_finite() {
            format!("{value:e}").parse()
        } else {
            Err(Error::parameter(format!("{value} is not a probability")))
        }
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        self.0.to_f64().unwrap_or(0.0)
    }

    /// 1 − this.
    #[must_use]
    pub fn complement(&self) -> Self {
        Self(BigRational::one() - &self.0)
    }

    /// Rounded to the grid, half to even; the one rounding in a parameter's life.
    pub fn round(&self) -> Probability {
        let one: BigInt = BigInt::one() << Probability::BITS;
        let (floor, rest) = (self.0.numer() * one).div_mod_floor(self.0.denom());
        let twice = rest * 2;
        let up = twice > *self.0.denom() || (twice == *self.0.denom() && floor.is_odd());
        let rounded = floor + BigInt::from(u8::from(up));
        Probability::from_numerator(rounded.to_u128().unwrap_or(Probability::ONE.numerator()))
            .unwrap_or(Probability::ONE)
    }

    /// The exact value of a probability on the grid.
    pub fn from_probability(probability: Probability) -> Self {
        let one: BigInt = BigInt::one() << Probability::BITS;
        Self(BigRational::new(probability.numerator().into(), one))
    }

    /// The product, which never leaves \[0, 1\].
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        Self(&self.0 * &other.0)
    }

    /// The sum, if it is at most 1.
    pub fn plus(&self, other: &Self) -> Result<Self> {
        Self::checked(&self.0 + &other.0)
    }

    /// The difference, if it is at least 0.
    pub fn minus(&self, other: &Self) -> Result<Self> {
        Self::checked(&self.0 - &other.0)
    }

    pub(crate) fn exact(&self) -> &BigRational {
        &self.0
    }

    pub(crate) fn checked(value: BigRational) -> Result<Self> {
        if value.is_negative() || value > BigRational::one() {
            return Err(Error::parameter(format!("{} is not between 0 and 1", Plain(&value)))
                .with_hint("a probability may be written 0.05, 1/20 or 5%"));
        }
        Ok(Self(value))
    }
}

impl FromStr for Fraction {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let trimmed = text.trim();
        if trimmed.len() > LONGEST_TEXT {
            return Err(Error::syntax(format!("a number of {} characters is too long", trimmed.len())));
        }
        let (number, percent) = match trimmed.strip_suffix('%') {
            Some(number) => (number.trim_end(), true),
            None => (trimmed, false),
        };
        let value = rational(number).ok_or_else(|| {
            Error::syntax(refusal(trimmed, "a number")).with_hint("a probability may be written 0.05, 1/20 or 5%")
        })?;
        Self::checked(if percent { value / BigInt::from(100) } else { value })
    }
}

/// A number written as a decimal or as a ratio, exactly.
pub(crate) fn rational(text: &str) -> Option<BigRational> {
    match text.split_once('/') {
        Some((numerator, denominator)) => ratio(numerator, denominator),
        None => decimal(text),
    }
}

fn ratio(numerator: &str, denominator: &str) -> Option<BigRational> {
    let denominator = match denominator.trim().split_once('^') {
        Some(("2", power)) => BigInt::one() << power.parse::<u32>().ok().filter(|&p| p <= 1024)?,
        Some(_) => return None,
        None => unsigned(denominator.trim())?,
    };
    if denominator.is_zero() {
        return None;
    }
    Some(BigRational::new(unsigned(numerator.trim())?, denominator))
}

fn unsigned(digits: &str) -> Option<BigInt> {
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if is_number { digits.parse().ok() } else { None }
}

fn decimal(text: &str) -> Option<BigRational> {
    match text.strip_prefix('-') {
        Some(magnitude) => unsigned_decimal(magnitude).map(|magnitude| -magnitude),
        None => unsigned_decimal(text.strip_prefix('+').unwrap_or(text)),
    }
}

fn unsigned_decimal(text: &str) -> Option<BigRational> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = unsigned(&format!("{whole}{part}"))?;
    scaled(digits, exponent.checked_sub(i32::try_from(part.len()).ok()?)?)
}

/// `digits`·10^`exponent`, unless the exponent is absurd.
fn scaled(digits: BigInt, exponent: i32) -> Option<BigRational> {
    let size = exponent.unsigned_abs();
    if size > LARGEST_EXPONENT {
        return None;
    }
    let power = BigInt::from(BigUint::from(10u8).pow(size));
    Some(if exponent < 0 { BigRational::new(digits, power) } else { BigRational::from(digits * power) })
}

/// A rational as the shortest text that reads back exactly: a decimal if that terminates, else a ratio.
pub(crate) struct Plain<'a>(pub(crate) &'a BigRational);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (twos, fives, rest) = factors(self.0.denom());
        let places = twos.max(fives);
        match (rest.is_one(), fives) {
            (true, _) if places <= MOST_PLACES => fmt_decimal(self.0, places, f),
            (true, 0) => write!(f, "{}/2^{twos}", self.0.numer()),
            _ => write!(f, "{}/{}", self.0.numer(), self.0.denom()),
        }
    }
}

/// A rational that terminates after this many places, with an exponent if it starts with many zeros.
fn fmt_decimal(value: &BigRational, places: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let scaled = (value * BigRational::from(BigInt::from(10).pow(places))).to_integer();
    if scaled.is_negative() {
        f.write_str("-")?;
    }
    let digits = format!("{:0>width$}", scaled.abs().to_string(), width = places as usize + 1);
    let (whole, part) = digits.split_at(digits.len() - places as usize);
    let leading_zeros = part.len() - part.trim_start_matches('0').len();
    if whole == "0" && leading_zeros >= 4 {
        let (first, others) = part[leading_zeros..].split_at(1);
        write!(f, "{}e-{}", with_point(first, others), leading_zeros + 1)
    } else {
        f.write_str(&with_point(whole, part))
    }
}

/// Digits before and after the point, which is left out if none come after it.
fn with_point(whole: &str, part: &str) -> String {
    if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") }
}

/// The powers of 2 and 5 in `denominator`, and what is left.
fn factors(denominator: &BigInt) -> (u32, u32, BigInt) {
    let mut rest = denominator.clone();
    let (twos, fives) = (divide_out(&mut rest, 2), divide_out(&mut rest, 5));
    (twos, fives, rest)
}

/// Divides a number by a prime as often as it can be, and returns how often that was.
fn divide_out(number: &mut BigInt, prime: u8) -> u32 {
    let prime = BigInt::from(prime);
    let mut power = 0;
    while number.is_multiple_of(&prime) && !number.is_zero() {
        *number /= &prime;
        power += 1;
    }
    power
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Plain(&self.0).fmt(f)
    }
}

impl fmt::Debug for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Fraction {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Fraction> for String {
    fn from(fraction: Fraction) -> Self {
        fraction.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Fraction {
        text.parse().unwrap()
    }

    #[test]
    fn notations_agree() {
        for same in [["0.05", "5%"], ["1/20", "5e-2"], ["0.050", ".05"], ["50e-3", "5.0 %"]] {
            assert_eq!(parse(same[0]), parse(same[1]));
            assert_eq!(parse(same[0]), parse("0.05"));
        }
        assert_eq!(parse("9223372036854775808/2^64"), parse("0.5"));
    }

    #[test]
    fn rounds_once_and_half_to_even() {
        let third = (1u128 << 64) / 3;
        assert_eq!(parse("1/3").round().numerator(), third);
        assert_eq!(parse("2/3").round().numerator(), third * 2 + 1);
        assert_eq!(parse("1/2^65").round().numerator(), 0);
        assert_eq!(parse("3/2^65").round().numerator(), 2);
        assert_eq!(Fraction::one().round(), Probability::ONE);
    }

    #[test]
    fn bad_texts_are_refused() {
        for text in ["", "x", "1/0", "1//2", "0x1", "1e999999999", "0.1.2", "--1", "1/3^2", "NaN", "inf", "5%%", "1e"] {
            assert!(text.parse::<Fraction>().unwrap_err().is_syntax(), "{text}");
        }
        for text in ["1.0000001", "-0.1", "101%", "3/2"] {
            assert!(text.parse::<Fraction>().unwrap_err().is_parameter(), "{text}");
        }
        assert!("1".repeat(10_000).parse::<Fraction>().is_err());
    }

    #[test]
    fn prints_what_a_person_would_write() {
        for text in ["0", "1", "0.05", "1/3", "8.2e-5", "0.0020499999999999997", "1.5e-7", "0.001"] {
            assert_eq!(parse(text).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_is_the_identity(numerator in 0u64.., denominator in 1u64..) {
            let (low, high) = (numerator.min(denominator), numerator.max(denominator));
            let fraction = Fraction::new(low, high).unwrap();
            prop_assert_eq!(&parse(&fraction.to_string()), &fraction);
            let grid = Fraction::from_probability(fraction.round());
            prop_assert_eq!(parse(&grid.to_string()).round(), fraction.round());
        }

        #[test]
        fn doubles_survive(value in 0.0f64..=1.0) {
            let fraction = Fraction::from_f64(value).unwrap();
            prop_assert_eq!(fraction.to_f64(), value);
        }

        #[test]
        fn complements_round_to_complements(numerator in 0u64.., denominator in 1u64..) {
            let (low, high) = (numerator.min(denominator), numerator.max(denominator));
            let fraction = Fraction::new(low, high).unwrap();
            prop_assert_eq!(fraction.round().complement(), fraction.complement().round());
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<Fraction>();
        }
    }
}
