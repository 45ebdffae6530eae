//! Reading what was published, and refusing what no run of the mechanism can have published.

use super::OptionEstimator;
use crate::error::{Error, Result};
use crate::option_counts::{OptionCounts, Published};
use crate::sums::Sums;

/// Published counts that fit the mechanism.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) owners: u64,
    pub(super) counts: Vec<i128>,
}

impl OptionEstimator {
    /// Reads exact counts or sums with noise, whichever the mechanism publishes.
    pub(super) fn read(&self, published: &Published) -> Result<Reading> {
        let (has, wants) = (published.len(), self.asked.counts());
        if has != wants {
            return Err(Error::counts(format!("there are {has} published counts, and {} has {wants}", self.asked))
                .with_hint("was the tally made by another mechanism?"));
        }
        match published {
            Published::Counts(counts) => self.read_counts(counts),
            Published::Sums(sums) => self.read_sums(sums),
        }
    }

    fn read_counts(&self, counts: &OptionCounts) -> Result<Reading> {
        if let Some(noise) = self.asked.noise() {
            return Err(Error::counts(format!("with {noise} sums are published, not exact counts"))
                .with_hint("give the sums with their noise; exact counts belong to the mechanism without it"));
        }
        self.check_total(counts)?;
        Ok(Reading { owners: counts.owners(), counts: counts.counts().iter().map(|&count| count.into()).collect() })
    }

    fn read_sums(&self, sums: &Sums) -> Result<Reading> {
        let check = |(index, &sum): (usize, &i64)| {
            self.count.observe_sum(sums.owners(), sum).map(|_| i128::from(sum)).map_err(|error| {
                let place = if self.asked.counts() == 1 { String::new() } else { format!("count {}: ", index + 1) };
                Error::counts(format!("{place}{error}")).with_hint(error.hint().unwrap_or_default())
            })
        };
        let counts = sums.sums().iter().enumerate().map(check).collect::<Result<_>>()?;
        Ok(Reading { owners: sums.owners(), counts })
    }

    /// An owner adds to at most `most` counts, and to exactly one of a choice if nobody is silent.
    fn check_total(&self, counts: &OptionCounts) -> Result<()> {
        let (owners, most) = (counts.owners(), self.asked.most());
        let total: u128 = counts.counts().iter().map(|&count| u128::from(count)).sum();
        if total > u128::from(owners) * u128::from(most) {
            let each = if most == 1 { "one count".to_owned() } else { format!("{most} counts") };
            return Err(Error::counts(format!(
                "the counts sum to {total}, but each of the {owners} owners adds to at most {each}"
            ))
            .with_hint("was the tally made by another mechanism?"));
        }
        let everybody_counts = !self.asked.has_uncounted() && self.asked.law().silent().numerator() == 0;
        if everybody_counts && total != u128::from(owners) {
            return Err(Error::counts(format!(
                "the counts sum to {total}, but each of the {owners} owners adds to exactly one"
            ))
            .with_hint("are some owners missing from the counts?"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(mechanism: &str, json: &str) -> String {
        let estimator = OptionEstimator::new(&mechanism.parse().unwrap()).unwrap();
        let error = estimator.read(&serde_json::from_str(json).unwrap()).unwrap_err();
        assert!(error.is_counts());
        error.to_string()
    }

    #[test]
    fn counts_of_another_mechanism_are_refused() {
        for (mechanism, json, part) in [
            ("choice(k=3,r=0.1)", r#"{"owners":9,"counts":[4,5]}"#, "there are 2 published counts, and choice(k=3,"),
            ("choice(k=2,r=0.1)", r#"{"owners":9,"counts":[4,5]}"#, "there are 2 published counts, and choice(k=2,"),
            ("choice(k=3,r=0.1)", r#"{"owners":9,"counts":[4,5,1]}"#, "sum to 10, but each of the 9 owners adds to at"),
            ("choice(k=3,r=0.1)", r#"{"owners":9,"counts":[4,4,0]}"#, "sum to 8, but each of the 9 owners adds to ex"),
            ("choice(k=3,r=0.1)", r#"{"owners":9,"sums":[4,4,0]}"#, "this mechanism publishes all tallies"),
            ("choice(k=3,r=0.1) + laplace(scale=1)", r#"{"owners":9,"counts":[4,4,1]}"#, "with laplace(scale=1) sums"),
            ("choice(k=3,r=0.1) + laplace(scale=1)", r#"{"owners":9,"sums":[4,4,99]}"#, "count 3: a sum of 99 for 9"),
            (
                "contributions(counts=3,most=2,r=0.1)",
                r#"{"owners":3,"counts":[3,3,1]}"#,
                "sum to 7, but each of the 3 owners adds to at most 2 counts",
            ),
        ] {
            let message = refusal(mechanism, json);
            assert!(message.contains(part), "{mechanism} {json}: {message}");
        }
    }

    #[test]
    fn counts_that_can_occur_are_read() {
        for (mechanism, json) in [
            ("choice(k=3,r=0.1)", r#"{"owners":9,"counts":[4,5,0]}"#),
            ("choice(k=3,f=0.9,r=0.1)", r#"{"owners":9,"counts":[4,1,0]}"#),
            ("choice(k=2,r=0.1)", r#"{"owners":9,"counts":[4]}"#),
            ("contributions(counts=3,most=2,r=0.1)", r#"{"owners":3,"counts":[3,3,0]}"#),
            ("contributions(counts=3,r=0.1)", r#"{"owners":3,"counts":[0,0,0]}"#),
            ("choice(k=3,r=0.1) + laplace(scale=1)", r#"{"owners":9,"sums":[4,-4,29]}"#),
        ] {
            let estimator = OptionEstimator::new(&mechanism.parse().unwrap()).unwrap();
            assert!(estimator.read(&serde_json::from_str(json).unwrap()).is_ok(), "{mechanism} {json}");
        }
    }
}
