//! Noise that the aggregators add to what is published.
//!
//! Each of the two aggregators draws noise and adds it to its share of the published sum, so that one honest aggregator is
//! enough to hide an owner, even if everybody else is dishonest. An adversary may know the noise of the other aggregator: a
//! privacy claim counts one draw, an error counts both.
//!
//! The rest of the library asks a [`NoiseLaw`] and does not know which law it is. Each law has a file here with all that
//! is known of it: its probabilities and tails, its exact sampler, its names and its tests. Elsewhere, a new law needs a
//! privacy claim of its own; the compiler lists those places, because they take the law apart with an irrefutable pattern.

mod chances;
mod laplace;
mod scale;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::certified::root::{bisect_integers, bracket_integers};
use crate::coins::{Coins, SeededCoins, Unpredictable};
use crate::display::separated;
use crate::error::{Error, Result};
use crate::output::shortened;

pub use laplace::DiscreteLaplace;
pub use scale::Scale;

/// The law of the noise that one aggregator adds to a sum, written `laplace(scale=2.5)`.
///
/// ```
/// use uptack::NoiseLaw;
/// let noise: NoiseLaw = "laplace(scale=1)".parse()?;
/// assert!((noise.variance() - 1.841_347).abs() < 1e-6);
/// assert!(((-30..=30).map(|k| noise.probability(k)).sum::<f64>() - 1.0).abs() < 1e-12);
/// assert_eq!(noise.to_string(), "laplace(scale=1)");
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoiseLaw {
    /// Discrete Laplace noise.
    Laplace(DiscreteLaplace),
}

/// Evaluates an expression for whichever law it is.
macro_rules! for_law {
    ($noise:expr, $law:ident => $body:expr) => {
        match $noise {
            NoiseLaw::Laplace($law) => $body,
        }
    };
}

/// A law as [`LAWS`] lists it.
struct ListedLaw {
    /// Its name in texts.
    name: &'static str,
    /// Its name in documents.
    document_name: &'static str,
    of_scale: fn(Scale) -> NoiseLaw,
}

/// The laws that can be read.
static LAWS: [ListedLaw; 1] = [DiscreteLaplace::LISTED];

impl NoiseLaw {
    /// Anything less probable than this is assumed not to happen.
    pub const IMPLAUSIBLE: f64 = 1e-18;

    /// Discrete Laplace noise of this scale.
    pub fn laplace(scale: Scale) -> Self {
        Self::Laplace(DiscreteLaplace::new(scale))
    }

    /// Whether a text such as `laplace` names a law.
    pub(crate) fn is_name(text: &str) -> bool {
        LAWS.iter().any(|law| law.name == text)
    }

    fn listed(&self) -> &'static ListedLaw {
        for_law!(self, law => law.listed())
    }

    /// The law of the same kind with another scale.
    pub fn with_scale(self, scale: Scale) -> Self {
        (self.listed().of_scale)(scale)
    }

    /// The parameter of the law, in the unit of the sum.
    pub fn scale(&self) -> Scale {
        for_law!(self, law => law.scale())
    }

    /// The variance of one draw.
    pub fn variance(&self) -> f64 {
        for_law!(self, law => law.variance())
    }

    /// How wide the law is, in the unit of the sum. It decides how values are grouped; no privacy claim depends on it.
    pub(crate) fn width(&self) -> f64 {
        for_law!(self, law => law.width())
    }

    /// P(Z = value), Z being one draw.
    pub fn probability(&self, value: i64) -> f64 {
        for_law!(self, law => law.probability(value))
    }

    /// P(Z ≥ value).
    pub fn upper_tail(&self, value: i64) -> f64 {
        for_law!(self, law => law.upper_tail(value))
    }

    /// P(Z_A + Z_B = value), for the draws of both aggregators.
    pub fn sum_probability(&self, value: i64) -> f64 {
        for_law!(self, law => law.sum_probability(value))
    }

    /// P(Z_A + Z_B ≥ value).
    pub fn sum_upper_tail(&self, value: i64) -> f64 {
        self.sum_tail_beyond(i128::from(value))
    }

    /// P(Z_A + Z_B ≥ value), for values of any size.
    pub(crate) fn sum_tail_beyond(&self, value: i128) -> f64 {
        for_law!(self, law => law.sum_tail_beyond(value))
    }

    /// Σ P(Z_A + Z_B ≥ k) over k ≥ value, for a value above 0.
    pub(crate) fn sum_of_tails(&self, value: i64) -> f64 {
        for_law!(self, law => law.sum_of_tails(value))
    }

    /// ln E e^(tilt·(Z_A + Z_B)) and its first two derivatives.
    pub(crate) fn sum_cumulants(&self, tilt: f64) -> [f64; 3] {
        for_law!(self, law => law.sum_cumulants(tilt))
    }

    /// The characteristic function of one draw under an exponential tilt: the logarithm of its size, and its angle. It is given the sines
    /// of half the angle at which it is asked for, and of the whole.
    #[inline]
    pub(crate) fn tilted_characteristic(&self, tilt: f64, half_sine: f64, sine: f64) -> (f64, f64) {
        for_law!(self, law => law.tilted_characteristic(tilt, half_sine, sine))
    }

    /// The largest tilt at which [`NoiseLaw::sum_cumulants`] may be asked for.
    pub(crate) fn steepest_tilt(&self) -> f64 {
        for_law!(self, law => law.steepest_tilt())
    }

    /// Convolves a law over consecutive whole numbers with that of one draw, in place. Mass that noise carries beyond either
    /// end is lost.
    pub(crate) fn add_draw(&self, masses: &mut [f64]) {
        for_law!(self, law => law.add_draw(masses));
    }

    /// How far both draws together can plausibly reach: the least b with P(|Z_A + Z_B| > b) below
    /// [`NoiseLaw::IMPLAUSIBLE`]. A published sum that is farther than this from any number that owners can write is not
    /// the result of a run.
    ///
    /// ```
    /// use uptack::NoiseLaw;
    /// let noise: NoiseLaw = "laplace(scale=1)".parse()?;
    /// assert_eq!(noise.plausible_reach(), 44);
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn plausible_reach(&self) -> i64 {
        self.reach(Self::IMPLAUSIBLE)
    }

    /// The least b with P(|Z_A + Z_B| > b) below `outside`.
    pub(crate) fn reach(&self, outside: f64) -> i64 {
        let is_below = |reach: i64| 2.0 * self.sum_upper_tail(reach + 1) >= outside;
        bisect_integers(bracket_integers(0, is_below), is_below).1
    }

    /// One draw, exact, as an aggregator makes it. The module's page on each law says what the time it takes depends on.
    pub fn draw(&self, coins: &mut impl Unpredictable) -> Result<i64> {
        Ok(self.draw_many_from(1, coins)?[0])
    }

    /// One draw for each of `count` sums. They share the bytes that are read at a time.
    pub fn draw_many(&self, count: usize, coins: &mut impl Unpredictable) -> Result<Vec<i64>> {
        self.draw_many_from(count, coins)
    }

    /// Like [`NoiseLaw::draw`], but reproducible; for tests and simulation only.
    ///
    /// ```
    /// use uptack::{NoiseLaw, SeededCoins};
    /// let noise: NoiseLaw = "laplace(scale=2.5)".parse()?;
    /// let mut coins = SeededCoins::new(1);
    /// let squares: i64 = (0..10_000).map(|_| noise.draw_seeded(&mut coins).pow(2)).sum();
    /// assert!((squares as f64 / 10_000.0 / noise.variance() - 1.0).abs() < 0.1);
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn draw_seeded(&self, coins: &mut SeededCoins) -> i64 {
        self.draw_many_from(1, coins).expect("seeded coins do not fail")[0]
    }

    /// [`NoiseLaw::draw_many`] from any coins: what audits attack, and what everything else calls.
    pub(crate) fn draw_many_from(&self, count: usize, coins: &mut impl Coins) -> Result<Vec<i64>> {
        for_law!(self, law => law.draw_many(count, coins))
    }
}

impl FromStr for NoiseLaw {
    type Err = Error;

    /// Reads `laplace(scale=2)`, or `laplace(2)`.
    fn from_str(text: &str) -> Result<Self> {
        let (law, scale) = law_and_scale(text).ok_or_else(|| {
            Error::syntax(format!("`{}` is not a noise law", shortened(text.trim())))
                .with_hint("noise is written laplace(scale=2)")
        })?;
        scale.parse().map(law.of_scale).map_err(|error: Error| error.at(law.name))
    }
}

/// The law in `laplace(scale=2)` or `laplace(2)`, and the text of its scale.
fn law_and_scale(text: &str) -> Option<(&'static ListedLaw, &str)> {
    let (name, rest) = text.trim().split_once('(')?;
    let (argument, law) = (rest.strip_suffix(')')?, LAWS.iter().find(|law| law.name == name.trim())?);
    match argument.split_once('=') {
        Some((key, value)) => (key.trim() == "scale").then_some((law, value)),
        None => Some((law, argument)),
    }
}

impl fmt::Display for NoiseLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(scale={})", self.listed().name, self.scale())
    }
}

/// A law as documents state it: `{"law": "discrete-laplace", "scale": "2.5"}`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatedLaw {
    law: String,
    scale: Scale,
}

impl Serialize for NoiseLaw {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let law = self.listed().document_name.to_owned();
        StatedLaw { law, scale: self.scale() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for NoiseLaw {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stated = StatedLaw::deserialize(deserializer)?;
        let law = LAWS.iter().find(|law| law.document_name == stated.law).ok_or_else(|| {
            let known = separated(LAWS.iter().map(|law| law.document_name), " or ");
            serde::de::Error::custom(format!("the law of the noise is not {known}"))
        })?;
        Ok((law.of_scale)(stated.scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(text: &str) -> NoiseLaw {
        text.parse().unwrap()
    }

    #[test]
    fn texts_and_documents_read_back() {
        for text in ["laplace(scale=1)", "laplace(scale=2.5)", "laplace(scale=1/3)", "laplace(scale=1000)"] {
            assert_eq!(noise(text).to_string(), text);
            let json = serde_json::to_string(&noise(text)).unwrap();
            assert_eq!(serde_json::from_str::<NoiseLaw>(&json).unwrap(), noise(text));
        }
        assert_eq!(
            serde_json::to_string(&noise("laplace(5/2)")).unwrap(),
            r#"{"law":"discrete-laplace","scale":"2.5"}"#
        );
        assert_eq!(noise(" laplace( 5/2 ) "), noise("laplace(scale=2.5)"));
        for text in ["laplace", "laplace()", "laplace(scale=0)", "laplace(scale=-1)", "laplace(t=1)", "gauss(scale=1)"]
        {
            assert!(text.parse::<NoiseLaw>().is_err(), "{text}");
        }
        for json in [r#"{"law":"gauss","scale":"1"}"#, r#"{"law":"discrete-laplace","scale":"0"}"#, r#""laplace""#] {
            assert!(serde_json::from_str::<NoiseLaw>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn every_law_listed_reads_back_with_any_scale() {
        for law in &LAWS {
            let noise = (law.of_scale)("2.5".parse().unwrap());
            assert_eq!(noise.to_string(), format!("{}(scale=2.5)", law.name));
            assert_eq!(noise.to_string().parse::<NoiseLaw>().unwrap(), noise);
            let document = serde_json::json!({"law": law.document_name, "scale": "2.5"});
            assert_eq!(serde_json::to_value(noise).unwrap(), document);
            assert_eq!(serde_json::from_value::<NoiseLaw>(document).unwrap(), noise);
            let scale = "1/3".parse().unwrap();
            assert_eq!(noise.with_scale(scale), (law.of_scale)(scale));
        }
    }

    #[test]
    fn the_reach_is_the_least_that_is_plausible() {
        for text in ["laplace(scale=0.01)", "laplace(scale=1)", "laplace(scale=10)", "laplace(scale=1000000000)"] {
            let (noise, outside) = (noise(text), |b: i64| 2.0 * noise(text).sum_upper_tail(b + 1));
            let reach = noise.plausible_reach();
            assert!(outside(reach) < NoiseLaw::IMPLAUSIBLE, "{text}: {reach}");
            assert!(reach == 0 || outside(reach - 1) >= NoiseLaw::IMPLAUSIBLE, "{text}: {reach}");
        }
    }
}
