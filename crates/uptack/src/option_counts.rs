//! Counts of several options over the same owners: exact ones, and whichever kind a mechanism publishes.

use serde::{Deserialize, Serialize};

use crate::coins::Unpredictable;
use crate::error::{Error, Result};
use crate::noise::NoiseLaw;
use crate::sums::{Sums, check_owners};

/// How many of the owners' reports count for each option, exactly: what a mechanism without noise publishes.
///
/// Whether the counts fit a mechanism is checked by
/// [`OptionEstimator`](crate::estimate::options::OptionEstimator), which knows it.
///
/// ```
/// use uptack::OptionCounts;
/// let counts: OptionCounts = serde_json::from_str(r#"{"owners":10,"counts":[2,7,1]}"#)?;
/// assert_eq!((counts.owners(), counts.counts()), (10, &[2, 7, 1][..]));
/// assert_eq!(serde_json::to_string(&counts)?, r#"{"owners":10,"counts":[2,7,1]}"#);
/// assert!(serde_json::from_str::<OptionCounts>(r#"{"owners":10,"counts":[11]}"#).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawCounts")]
pub struct OptionCounts {
    owners: u64,
    counts: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCounts {
    owners: u64,
    counts: Vec<u64>,
}

impl OptionCounts {
    /// One count for each option, none of them above the number of owners.
    pub fn new(owners: u64, counts: Vec<u64>) -> Result<Self> {
        if counts.is_empty() {
            return Err(Error::counts("there are no counts").with_hint("each option has one"));
        }
        check_owners(owners)?;
        match counts.iter().position(|&count| count > owners) {
            None => Ok(Self { owners, counts }),
            Some(index) => Err(Error::counts(format!(
                "count {} is {}, which is more than the {owners} owners",
                index + 1,
                counts[index]
            ))
            .with_hint("an owner adds at most once to each count")),
        }
    }

    /// The same with the noise of two aggregators on each count, which is drawn afresh each time.
    ///
    /// ```
    /// use uptack::{NoiseLaw, OptionCounts, OsCoins};
    /// let noise: NoiseLaw = "laplace(scale=2)".parse()?;
    /// let sums = OptionCounts::new(10, vec![2, 7, 1])?.with_noise(&noise, &mut OsCoins)?;
    /// assert_eq!((sums.owners(), sums.sums().len()), (10, 3));
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn with_noise(&self, noise: &NoiseLaw, coins: &mut impl Unpredictable) -> Result<Sums> {
        let added = noise.draw_many(2 * self.counts.len(), coins)?;
        Ok(self.with_draws(&added))
    }

    /// The same with two draws on each count.
    pub(crate) fn with_draws(&self, draws: &[i64]) -> Sums {
        let sum = |(&count, added): (&u64, &[i64])| {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            added.iter().fold(count, |sum, &draw| sum.saturating_add(draw))
        };
        let sums = self.counts.iter().zip(draws.chunks_exact(2)).map(sum).collect();
        Sums::new(self.owners, sums).expect("the owners and the number of counts have been checked")
    }

    /// How many owners there are.
    pub fn owners(&self) -> u64 {
        self.owners
    }

    /// The count of each option.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}

impl TryFrom<RawCounts> for OptionCounts {
    type Error = Error;

    fn try_from(raw: RawCounts) -> Result<Self> {
        Self::new(raw.owners, raw.counts)
    }
}

/// What is published of several options: exact counts, or sums with noise.
///
/// ```
/// use uptack::Published;
/// let published: Published = serde_json::from_str(r#"{"owners":10,"sums":[2,-1]}"#)?;
/// assert!(matches!(published, Published::Sums(_)) && published.owners() == 10 && published.len() == 2);
/// let error = serde_json::from_str::<Published>(r#"{"owners":10}"#).unwrap_err();
/// assert!(error.to_string().contains("neither `counts` nor `sums`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, try_from = "RawPublished")]
pub enum Published {
    /// Exact counts.
    Counts(OptionCounts),
    /// Counts with the noise of two aggregators.
    Sums(Sums),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPublished {
    owners: u64,
    counts: Option<Vec<u64>>,
    sums: Option<Vec<i64>>,
}

impl Published {
    /// How many owners there are.
    pub fn owners(&self) -> u64 {
        match self {
            Self::Counts(counts) => counts.owners(),
            Self::Sums(sums) => sums.owners(),
        }
    }

    /// How many counts there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Counts(counts) => counts.counts().len(),
            Self::Sums(sums) => sums.sums().len(),
        }
    }

    /// Whether there are none, which no constructor allows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl TryFrom<RawPublished> for Published {
    type Error = Error;

    fn try_from(raw: RawPublished) -> Result<Self> {
        match (raw.counts, raw.sums) {
            (Some(counts), None) => OptionCounts::new(raw.owners, counts).map(Self::Counts),
            (None, Some(sums)) => Sums::new(raw.owners, sums).map(Self::Sums),
            (Some(_), Some(_)) => Err(Error::counts("there are both `counts` and `sums`")
                .with_hint("counts are exact and sums have noise; give those that the mechanism publishes")),
            (None, None) => Err(Error::counts("there are neither `counts` nor `sums`")),
        }
    }
}

impl From<OptionCounts> for Published {
    fn from(counts: OptionCounts) -> Self {
        Self::Counts(counts)
    }
}

impl From<Sums> for Published {
    fn from(sums: Sums) -> Self {
        Self::Sums(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_counts_say_what_is_wrong() {
        for (json, part) in [
            (r#"{"owners":3,"counts":[]}"#, "there are no counts"),
            (r#"{"owners":3,"counts":[1,4]}"#, "count 2 is 4, which is more than the 3 owners"),
            (r#"{"owners":0,"counts":[0]}"#, "no owners"),
            (r#"{"owners":3,"counts":[-1]}"#, "invalid value"),
            (r#"{"owners":3,"counts":[1],"sums":[1]}"#, "both `counts` and `sums`"),
            (r#"{"owners":3,"tallies":[1]}"#, "unknown field"),
        ] {
            let error = serde_json::from_str::<Published>(json).unwrap_err().to_string();
            assert!(error.contains(part), "{json}: {error}");
        }
    }

    #[test]
    fn noise_is_drawn_twice_for_each_count() {
        let counts = OptionCounts::new(100, vec![5, 0, 95]).unwrap();
        assert_eq!(counts.with_draws(&[1, -3, 0, -2, 4, 4]).sums(), [3, -2, 103]);
        let noise: NoiseLaw = "laplace(scale=3)".parse().unwrap();
        let draw = || counts.with_noise(&noise, &mut crate::OsCoins).unwrap();
        let first = draw();
        assert!((0..50).any(|_| draw() != first), "noise is drawn anew");
    }

    #[test]
    fn published_numbers_are_written_as_they_are_read() {
        for json in [r#"{"owners":10,"counts":[2,7]}"#, r#"{"owners":10,"sums":[-2,17]}"#] {
            let published: Published = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&published).unwrap(), json);
        }
    }
}
