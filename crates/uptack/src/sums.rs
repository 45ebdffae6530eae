//! What is published if the aggregators add noise.

use serde::{Deserialize, Serialize};

use crate::channel::Output;
use crate::coins::Unpredictable;
use crate::error::{Error, Result};
use crate::noise::NoiseLaw;
use crate::tally::{LARGEST_COUNT, Tally};

/// The published numbers of a channel with noise: for each question, the number of answers `1` plus what both aggregators
/// added. So a sum may be negative or above the number of owners.
///
/// Whether noise can explain a sum at all depends on its scale;
/// [`Estimator::observe_sum`](crate::estimate::Estimator::observe_sum) checks that.
///
/// ```
/// use uptack::Sums;
/// let sums: Sums = serde_json::from_str(r#"{"owners":3,"sums":[2,-1]}"#)?;
/// assert_eq!((sums.owners(), sums.sums()), (3, &[2, -1][..]));
/// assert_eq!(serde_json::to_string(&sums)?, r#"{"owners":3,"sums":[2,-1]}"#);
/// assert!(serde_json::from_str::<Sums>(r#"{"owners":0,"sums":[2]}"#).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Sums {
    owners: u64,
    sums: Vec<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    owners: u64,
    sums: Vec<i64>,
}

impl Sums {
    /// One sum for each question, over the same owners.
    pub fn new(owners: u64, sums: Vec<i64>) -> Result<Self> {
        if sums.is_empty() {
            return Err(Error::counts("there are no sums").with_hint("each question has one"));
        }
        check_owners(owners)?;
        Ok(Self { owners, sums })
    }

    /// The number of answers `1` of a tally plus the noise of two aggregators, which is drawn afresh each time.
    ///
    /// Refused for tallies of several answers: noise is added to one number per question.
    pub fn of_tally(tally: &Tally, noise: &NoiseLaw, coins: &mut impl Unpredictable) -> Result<Self> {
        let answers = tally.answers().len();
        if answers != 1 {
            return Err(Error::counts(format!("noise cannot be added to the tallies of {answers} answers"))
                .with_hint("noise is added to the number of answers 1 of a mechanism with one answer"));
        }
        let added = noise.draw(coins)?.saturating_add(noise.draw(coins)?);
        let counted = i64::try_from(tally.count(0, Output::ONE)).unwrap_or(i64::MAX);
        Self::new(tally.owners(), vec![counted.saturating_add(added)])
    }

    /// How many owners answered; published without noise.
    pub fn owners(&self) -> u64 {
        self.owners
    }

    /// The sum of each question.
    pub fn sums(&self) -> &[i64] {
        &self.sums
    }
}

impl TryFrom<Raw> for Sums {
    type Error = Error;

    fn try_from(raw: Raw) -> Result<Self> {
        Self::new(raw.owners, raw.sums)
    }
}

/// Refuses an empty crowd, and one larger than any count can be.
pub(crate) fn check_owners(owners: u64) -> Result<()> {
    match owners {
        0 => Err(Error::counts("the sums are of no owners")),
        1..=LARGEST_COUNT => Ok(()),
        _ => Err(Error::counts(format!("{owners} owners are more than 2^63"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_tally_is_near_its_ones() {
        let noise: NoiseLaw = "laplace(scale=2)".parse().unwrap();
        let tally: Tally = serde_json::from_str(r#"{"answers":[{"1":700,"0":200,"⊥":100}]}"#).unwrap();
        let draw = || Sums::of_tally(&tally, &noise, &mut crate::OsCoins).unwrap();
        let sums: Vec<Sums> = (0..50).map(|_| draw()).collect();
        assert!(sums.iter().all(|sum| sum.owners() == 1000 && (sum.sums()[0] - 700).abs() <= noise.plausible_reach()));
        assert!(sums.iter().any(|sum| sum != &sums[0]), "noise is drawn anew");
        let two: Tally = serde_json::from_str(r#"{"answers":[{"1":7},{"1":7}]}"#).unwrap();
        assert!(Sums::of_tally(&two, &noise, &mut crate::OsCoins).unwrap_err().is_counts());
    }

    #[test]
    fn malformed_sums_are_refused() {
        for json in [
            r#"{"owners":3}"#,
            r#"{"owners":3,"sums":[]}"#,
            r#"{"owners":3,"sums":[1.5]}"#,
            r#"{"owners":3,"sums":[1],"answers":[]}"#,
            r#"{"owners":-3,"sums":[1]}"#,
            r#"{"owners":18446744073709551615,"sums":[1]}"#,
            r#"{"owners":3,"sums":[9223372036854775808]}"#,
        ] {
            assert!(serde_json::from_str::<Sums>(json).is_err(), "{json}");
        }
    }
}
