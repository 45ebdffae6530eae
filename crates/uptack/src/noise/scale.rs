//! The scale of a noise law, exact.

use std::fmt;
use std::str::FromStr;

use num_rational::BigRational;
use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::fraction::{Plain, rational};
use crate::output::shortened;

/// The scale of a noise law: an exact rational between [`Scale::SMALLEST`] and [`Scale::LARGEST`].
///
/// Written as a decimal or a ratio; what is printed reads back as the same number.
///
/// ```
/// use uptack::Scale;
/// let scale: Scale = "10/4".parse()?;
/// assert_eq!(scale.to_string(), "2.5");
/// assert_eq!((scale.numerator(), scale.denominator()), (5, 2));
/// assert!("0".parse::<Scale>().is_err());
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scale {
    numerator: u64,
    denominator: u64,
}

impl Scale {
    /// Less noise than this hides nothing: its ε would be 100.
    pub const SMALLEST: f64 = 0.01;
    /// More noise than this drowns every crowd.
    pub const LARGEST: f64 = 1e9;

    /// Longer than any honest scale.
    const LONGEST_TEXT: usize = 64;

    /// `numerator / denominator`.
    pub fn new(numerator: u64, denominator: u64) -> Result<Self> {
        if denominator == 0 {
            return Err(Error::syntax("the denominator of a scale is 0"));
        }
        Self::checked(&BigRational::new(numerator.into(), denominator.into()))
    }

    /// The numerator in lowest terms.
    pub fn numerator(self) -> u64 {
        self.numerator
    }

    /// The denominator in lowest terms.
    pub fn denominator(self) -> u64 {
        self.denominator
    }

    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        self.exact().to_f64().unwrap_or(Self::LARGEST)
    }

    pub(crate) fn exact(self) -> BigRational {
        BigRational::new_raw(self.numerator.into(), self.denominator.into())
    }

    fn checked(value: &BigRational) -> Result<Self> {
        if !Self::is_in_range(value) {
            return Err(Error::parameter(format!("a scale of {} is out of range", Plain(value)))
                .with_hint("a scale is from 0.01 to 1e9; 1 means ε = 1 for one honest aggregator, 2 means ε = 1/2"));
        }
        match (value.numer().to_u64(), value.denom().to_u64()) {
            (Some(numerator), Some(denominator)) => Ok(Self { numerator, denominator }),
            _ => Err(Error::parameter(format!("the scale {} has too many digits", Plain(value)))
                .with_hint("numerator and denominator must fit in 64 bits: write fewer digits")),
        }
    }

    /// From [`Scale::SMALLEST`] to [`Scale::LARGEST`], exactly.
    fn is_in_range(value: &BigRational) -> bool {
        let (smallest, largest) =
            (BigRational::new(1.into(), 100.into()), BigRational::from_integer(1_000_000_000.into()));
        (smallest..=largest).contains(value)
    }
}

impl FromStr for Scale {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let trimmed = text.trim();
        let value = if trimmed.len() > Self::LONGEST_TEXT { None } else { rational(trimmed) };
        let value = value.ok_or_else(|| {
            Error::syntax(format!("`{}` is not a scale", shortened(trimmed))).with_hint("write it as 2.5 or 5/2")
        })?;
        Self::checked(&value)
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Plain(&self.exact()).fmt(f)
    }
}

impl fmt::Debug for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Scale {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Scale> for String {
    fn from(scale: Scale) -> Self {
        scale.to_string()
    }
}
