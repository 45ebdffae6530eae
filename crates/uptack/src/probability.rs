//! Exact probabilities.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A probability on the grid of 2⁻⁶⁴: the integer that the sampler compares with and that the accounting counts.
///
/// It is serialized as the integer's decimal digits, because JSON numbers lose bits beyond 2⁵³.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Probability(u128);

impl Probability {
    /// The grid is 2^−`BITS`.
    pub const BITS: u32 = 64;
    /// Impossible.
    pub const ZERO: Self = Self(0);
    /// Certain.
    pub const ONE: Self = Self(1 << Self::BITS);

    /// `numerator` · 2⁻⁶⁴.
    pub fn from_numerator(numerator: u128) -> Result<Self> {
        if numerator > Self::ONE.0 {
            return Err(Error::law(format!("{numerator}/2^64 is more than 1")));
        }
        Ok(Self(numerator))
    }

    /// The integer over 2⁶⁴.
    pub fn numerator(self) -> u128 {
        self.0
    }

    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / Self::ONE.0 as f64
    }

    /// 1 − this.
    #[must_use]
    pub fn complement(self) -> Self {
        Self(Self::ONE.0 - self.0)
    }

    /// The sum, if it is at most 1.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Self::from_numerator(self.0 + other.0).ok()
    }

    /// The difference, if it is at least 0.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// The difference, or 0.
    ///
    /// Mechanisms use it if the exact parameters are ordered, so that rounding can make the difference negative by at most one
    /// unit.
    #[must_use]
    pub(crate) fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Twice this, or 1.
    #[must_use]
    pub(crate) fn doubled(self) -> Self {
        Self((self.0 * 2).min(Self::ONE.0))
    }
}

impl fmt::Debug for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/2^64", self.0)
    }
}

impl TryFrom<String> for Probability {
    type Error = Error;

    fn try_from(digits: String) -> Result<Self> {
        let numerator = digits
            .parse()
            .map_err(|_| Error::syntax(format!("`{}` is not an integer between 0 and 2^64", digits.escape_debug())))?;
        Self::from_numerator(numerator)
    }
}

impl From<Probability> for String {
    fn from(probability: Probability) -> Self {
        probability.0.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_between_zero_and_one() {
        let half = Probability::from_numerator(1 << 63).unwrap();
        assert_eq!(half.to_f64(), 0.5);
        assert_eq!(half.checked_add(half), Some(Probability::ONE));
        assert_eq!(half.checked_add(Probability::ONE), None);
        assert_eq!(half.checked_sub(Probability::ONE), None);
        assert!(Probability::from_numerator((1 << 64) + 1).unwrap_err().is_law());
    }

    #[test]
    fn serde_goes_through_the_same_checks() {
        let one: Probability = serde_json::from_str("\"18446744073709551616\"").unwrap();
        assert_eq!(one, Probability::ONE);
        assert_eq!(serde_json::to_string(&one).unwrap(), "\"18446744073709551616\"");
        for bad in ["\"18446744073709551617\"", "\"-1\"", "\"0.5\"", "5"] {
            assert!(serde_json::from_str::<Probability>(bad).is_err(), "{bad}");
        }
    }
}
