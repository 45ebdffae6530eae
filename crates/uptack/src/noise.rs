//! Noise that the aggregators add to what is published.
//!
//! Each of the two aggregators adds discrete Laplace noise to its share of the published sum, so that one honest
//! aggregator is enough to hide an owner, even if everybody else is dishonest. An adversary may know the noise of the other
//! aggregator: a privacy claim counts one draw, an error counts both.

use std::fmt;
use std::str::FromStr;

use num_rational::BigRational;
use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::fraction::{Plain, rational};
use crate::output::shortened;
use crate::probability::Probability;

/// What one owner adds to the published sum: the probability of a one, by truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummedBit {
    /// If the truth is *yes*.
    pub yes: Probability,
    /// If it is *no*.
    pub no: Probability,
}

impl SummedBit {
    /// By how much a *yes* raises the expected sum: p − q, exact before it is rounded.
    pub fn difference(self) -> f64 {
        (self.yes.numerator() as i128 - self.no.numerator() as i128) as f64 / Probability::ONE.numerator() as f64
    }

    /// The variance of the sum over a crowd, before noise.
    pub fn variance(self, owners: f64, yes: f64) -> f64 {
        let one = |law: Probability| law.to_f64() * law.complement().to_f64();
        yes * one(self.yes) + (owners - yes) * one(self.no)
    }
}

/// The scale of a Laplace law: an exact rational between [`Scale::SMALLEST`] and [`Scale::LARGEST`].
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

/// The discrete Laplace law of scale t: P(Z = k) = (1−a)/(1+a)·a^|k| over the whole numbers, a = e^(−1/t).
///
/// ```
/// use uptack::DiscreteLaplace;
/// let noise: DiscreteLaplace = "laplace(scale=1)".parse()?;
/// assert!((noise.variance() - 1.841_347).abs() < 1e-6);
/// assert!(((-30..=30).map(|k| noise.probability(k)).sum::<f64>() - 1.0).abs() < 1e-12);
/// assert_eq!(noise.to_string(), "laplace(scale=1)");
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DiscreteLaplace {
    scale: Scale,
}

/// The name of the law in documents.
const LAW: &str = "discrete-laplace";

impl DiscreteLaplace {
    /// Anything less probable than this is assumed not to happen.
    pub const IMPLAUSIBLE: f64 = 1e-18;

    /// The law of this scale.
    pub fn new(scale: Scale) -> Self {
        Self { scale }
    }

    /// t.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// a = e^(−1/t), by which the probability falls from one whole number to the next.
    pub fn decay(&self) -> f64 {
        self.power(1.0)
    }

    /// a^size.
    fn power(&self, size: f64) -> f64 {
        (-size / self.scale.to_f64()).exp()
    }

    /// 1 − a, without cancellation.
    pub(crate) fn gap(&self) -> f64 {
        -(-1.0 / self.scale.to_f64()).exp_m1()
    }

    /// 2a/(1−a)².
    pub fn variance(&self) -> f64 {
        2.0 * self.decay() / self.gap().powi(2)
    }

    /// P(Z = value).
    pub fn probability(&self, value: i64) -> f64 {
        self.gap() / (1.0 + self.decay()) * self.power(value.unsigned_abs() as f64)
    }

    /// P(Z ≥ value).
    pub fn upper_tail(&self, value: i64) -> f64 {
        if value <= 0 {
            return 1.0 - self.upper_tail(1 - value);
        }
        self.power(value as f64) / (1.0 + self.decay())
    }

    /// P(Z_A + Z_B = value): what both aggregators add together.
    pub fn sum_probability(&self, value: i64) -> f64 {
        let (a, gap, size) = (self.decay(), self.gap(), value.unsigned_abs() as f64);
        let rest = (1.0 + a * a) / (1.0 + a);
        gap / ((1.0 + a) * (1.0 + a)) * (size * gap + rest) * self.power(size)
    }

    /// P(Z_A + Z_B ≥ value).
    pub fn sum_upper_tail(&self, value: i64) -> f64 {
        self.sum_tail_beyond(i128::from(value))
    }

    /// P(Z_A + Z_B ≥ value), for values of any size.
    pub(crate) fn sum_tail_beyond(&self, value: i128) -> f64 {
        if value <= 0 {
            return 1.0 - self.sum_tail_beyond(1 - value);
        }
        let (a, gap, size) = (self.decay(), self.gap(), value as f64);
        let rest = (1.0 + a * a) / (1.0 + a) + a;
        (size * gap + rest) / ((1.0 + a) * (1.0 + a)) * self.power(size)
    }

    /// Σ P(Z_A + Z_B ≥ k) over k ≥ value, for a value above 0.
    pub(crate) fn sum_of_tails(&self, value: i64) -> f64 {
        let (a, gap, size) = (self.decay(), self.gap(), value as f64);
        let rest = (1.0 + a * a) / (1.0 + a) + 2.0 * a;
        (size + rest / gap) / ((1.0 + a) * (1.0 + a)) * self.power(size)
    }

    /// How far both draws together can plausibly reach: the least b with P(|Z_A + Z_B| > b) below
    /// [`DiscreteLaplace::IMPLAUSIBLE`]. A published sum that is off by more than this from any number that owners can
    /// write is not the result of a run.
    ///
    /// ```
    /// use uptack::DiscreteLaplace;
    /// let noise: DiscreteLaplace = "laplace(scale=1)".parse()?;
    /// assert_eq!(noise.plausible_reach(), 44);
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn plausible_reach(&self) -> i64 {
        self.reach(Self::IMPLAUSIBLE)
    }

    /// The least b with P(|Z_A + Z_B| > b) below `outside`.
    pub(crate) fn reach(&self, outside: f64) -> i64 {
        let inside = |reach: i64| 2.0 * self.sum_upper_tail(reach + 1) < outside;
        let (mut low, mut high) = (-1, 1);
        while !inside(high) {
            (low, high) = (high, 2 * high);
        }
        while high - low > 1 {
            let half = low + (high - low) / 2;
            if inside(half) { high = half } else { low = half }
        }
        high
    }
}

impl FromStr for DiscreteLaplace {
    type Err = Error;

    /// Reads `laplace(scale=2)`, or `laplace(2)`.
    fn from_str(text: &str) -> Result<Self> {
        let scale = scale_text(text).ok_or_else(|| {
            Error::syntax(format!("`{}` is not a noise", shortened(text.trim())))
                .with_hint("noise is written laplace(scale=2)")
        })?;
        scale.parse().map(Self::new).map_err(|error: Error| error.at("laplace"))
    }
}

/// What stands for the scale in `laplace(scale=2)` or `laplace(2)`.
fn scale_text(text: &str) -> Option<&str> {
    let (name, rest) = text.trim().split_once('(')?;
    let argument = rest.strip_suffix(')').filter(|_| name.trim() == "laplace")?;
    match argument.split_once('=') {
        Some((key, value)) => (key.trim() == "scale").then_some(value),
        None => Some(argument),
    }
}

impl fmt::Display for DiscreteLaplace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "laplace(scale={})", self.scale)
    }
}

/// As documents state it: `{"law": "discrete-laplace", "scale": "2.5"}`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stated {
    law: String,
    scale: Scale,
}

impl Serialize for DiscreteLaplace {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Stated { law: LAW.to_owned(), scale: self.scale }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for DiscreteLaplace {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stated = Stated::deserialize(deserializer)?;
        if stated.law != LAW {
            return Err(serde::de::Error::custom(format!("the law of the noise is not {LAW}")));
        }
        Ok(Self::new(stated.scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(text: &str) -> DiscreteLaplace {
        text.parse().unwrap()
    }

    #[test]
    fn texts_and_documents_read_back() {
        for text in ["laplace(scale=1)", "laplace(scale=2.5)", "laplace(scale=1/3)", "laplace(scale=1000)"] {
            assert_eq!(noise(text).to_string(), text);
            let json = serde_json::to_string(&noise(text)).unwrap();
            assert_eq!(serde_json::from_str::<DiscreteLaplace>(&json).unwrap(), noise(text));
        }
        assert_eq!(noise(" laplace( 5/2 ) "), noise("laplace(scale=2.5)"));
        for text in ["laplace", "laplace()", "laplace(scale=0)", "laplace(scale=-1)", "laplace(t=1)", "gauss(scale=1)"]
        {
            assert!(text.parse::<DiscreteLaplace>().is_err(), "{text}");
        }
        for json in [r#"{"law":"gauss","scale":"1"}"#, r#"{"law":"discrete-laplace","scale":"0"}"#, r#""laplace""#] {
            assert!(serde_json::from_str::<DiscreteLaplace>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn the_variance_and_tails_are_those_of_the_law() {
        for text in ["laplace(scale=0.2)", "laplace(scale=1)", "laplace(scale=7.3)"] {
            let noise = noise(text);
            let sum: f64 = (-400..=400).map(|k| (k * k) as f64 * noise.probability(k)).sum();
            assert!((sum / noise.variance() - 1.0).abs() < 1e-10, "{text}");
            for from in [-5, 0, 1, 4] {
                let tail: f64 = (from..=400).map(|k| noise.probability(k)).sum();
                assert!((tail - noise.upper_tail(from)).abs() < 1e-12, "{text} {from}");
            }
        }
    }

    #[test]
    fn both_draws_together_are_a_convolution() {
        for text in ["laplace(scale=0.2)", "laplace(scale=1)", "laplace(scale=7.3)"] {
            let noise = noise(text);
            for value in [-30, -2, 0, 1, 5, 40] {
                let sum: f64 = (-600..=600).map(|k| noise.probability(k) * noise.probability(value - k)).sum();
                assert!((noise.sum_probability(value) / sum - 1.0).abs() < 1e-11, "{text} {value}");
                let tail: f64 = (value..=900).map(|k| noise.sum_probability(k)).sum();
                assert!((noise.sum_upper_tail(value) / tail - 1.0).abs() < 1e-11, "{text} {value}");
            }
        }
    }

    #[test]
    fn the_reach_is_the_least_that_is_plausible() {
        for text in ["laplace(scale=0.01)", "laplace(scale=1)", "laplace(scale=10)", "laplace(scale=1000000000)"] {
            let (noise, outside) = (noise(text), |b: i64| 2.0 * noise(text).sum_upper_tail(b + 1));
            let reach = noise.plausible_reach();
            assert!(outside(reach) < DiscreteLaplace::IMPLAUSIBLE, "{text}: {reach}");
            assert!(reach == 0 || outside(reach - 1) >= DiscreteLaplace::IMPLAUSIBLE, "{text}: {reach}");
        }
    }
}
