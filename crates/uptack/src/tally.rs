//! Counts of outputs, answer by answer: all that an analyst gets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::channel::{Channel, Output, answer_name};
use crate::error::{Error, Result};

/// For each answer, how often each output was given.
///
/// Tallies of parts of a crowd merge into the tally of the crowd.
///
/// ```
/// use uptack::Tally;
/// let mut tally: Tally = serde_json::from_str(r#"{"owners":3,"answers":[{"1":2,"bottom":1}]}"#)?;
/// tally.merge(&serde_json::from_str(r#"{"owners":1,"answers":[{"0":1}]}"#)?)?;
/// assert_eq!(tally.owners(), 4);
/// assert_eq!(serde_json::to_string(&tally)?, r#"{"owners":4,"answers":[{"0":1,"1":2,"⊥":1}]}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawTally")]
pub struct Tally {
    owners: u64,
    answers: Vec<BTreeMap<Output, u64>>,
}

/// A tally as it is read, before its counts are checked.
#[derive(Deserialize)]
struct RawTally {
    owners: Option<u64>,
    answers: Vec<BTreeMap<String, u64>>,
}

/// Larger counts are refused: they are more likely a mistake than a crowd, and sums of smaller ones stay exact.
pub const LARGEST_COUNT: u64 = 1 << 63;

impl Tally {
    /// From the counts of each answer, which must agree on the number of owners.
    pub fn new(answers: Vec<BTreeMap<Output, u64>>) -> Result<Self> {
        let totals = answers.iter().enumerate().map(|(answer, counts)| total(answer, counts));
        let totals = totals.collect::<Result<Vec<u64>>>()?;
        let owners = common_total(&totals)?;
        if owners == 0 {
            return Err(Error::counts("the tally counts no owners").with_hint("is the input empty?"));
        }
        Ok(Self { owners, answers })
    }

    /// From the count of each cell of a channel; outputs that nobody gave are counted 0.
    pub fn from_cells(channel: &Channel, cells: &[u64]) -> Result<Self> {
        let (has, wants) = (cells.len(), channel.cells().len());
        if has != wants {
            return Err(Error::counts(format!("{has} counts for a channel of {wants} cells")));
        }
        let mut answers = zero_counts(channel);
        for (cell, &count) in channel.cells().iter().zip(cells) {
            for (counts, output) in answers.iter_mut().zip(cell.outputs()) {
                add(counts, *output, count)?;
            }
        }
        Self::new(answers)
    }

    /// How many owners were counted.
    pub fn owners(&self) -> u64 {
        self.owners
    }

    /// The counts of each answer.
    pub fn answers(&self) -> &[BTreeMap<Output, u64>] {
        &self.answers
    }

    /// How often `output` was given as answer number `answer`; 0 if it never was.
    pub fn count(&self, answer: usize, output: Output) -> u64 {
        self.answers.get(answer).and_then(|counts| counts.get(&output)).copied().unwrap_or(0)
    }

    /// Adds the owners of another tally of the same query.
    ///
    /// On an error this tally is left as it was.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.answers.len() != other.answers.len() {
            let (here, there) = (self.answers.len(), other.answers.len());
            return Err(Error::counts(format!("a tally of {there} answers cannot be added to one of {here}"))
                .with_hint("add up only tallies of the same mechanism"));
        }
        let mut answers = self.answers.clone();
        for (counts, others) in answers.iter_mut().zip(&other.answers) {
            others.iter().try_for_each(|(&output, &count)| add(counts, output, count))?;
        }
        *self = Self::new(answers)?;
        Ok(())
    }

    /// The counts of the channel's bins, in their order.
    ///
    /// A tally with other answers or outputs is not one of this channel, and is refused.
    pub fn bin_counts(&self, channel: &Channel) -> Result<Vec<u64>> {
        let (has, wants) = (self.answers.len(), channel.answers().len());
        if has != wants {
            return Err(Error::counts(format!("the tally has {has} answers, the mechanism asks for {wants}"))
                .with_hint("was it made by another mechanism?"));
        }
        for (answer, (counts, outputs)) in self.answers.iter().zip(channel.answers()).enumerate() {
            check_outputs(answer, counts, outputs)?;
        }
        Ok(channel.bins().iter().map(|bin| self.count(bin.answer, bin.output)).collect())
    }
}

/// The number of owners, on which all answers must agree.
fn common_total(totals: &[u64]) -> Result<u64> {
    let Some(&owners) = totals.first() else {
        return Err(Error::counts("a tally needs at least one answer"));
    };
    match totals.iter().position(|&total| total != owners) {
        None => Ok(owners),
        Some(answer) => {
            let (letter, total) = (answer_name(answer), totals[answer]);
            Err(Error::counts(format!("answer A counts {owners} owners and answer {letter} counts {total}"))
                .with_hint("every owner gives every answer, so each answer's counts must have the same sum"))
        }
    }
}

/// A count of 0 for every output of every answer.
fn zero_counts(channel: &Channel) -> Vec<BTreeMap<Output, u64>> {
    channel.answers().iter().map(|outputs| outputs.iter().map(|&output| (output, 0)).collect()).collect()
}

fn check_outputs(answer: usize, counts: &BTreeMap<Output, u64>, outputs: &[Output]) -> Result<()> {
    match counts.iter().find(|&(output, &count)| count > 0 && !outputs.contains(output)) {
        Some((output, _)) => Err(Error::counts(format!(
            "answer {} counts the output {output}, which the mechanism does not have",
            answer_name(answer)
        ))
        .with_hint("was the tally made by another mechanism?")),
        None => Ok(()),
    }
}

fn add(counts: &mut BTreeMap<Output, u64>, output: Output, count: u64) -> Result<()> {
    let sum = counts.entry(output).or_insert(0);
    *sum = checked_sum(*sum, count, output)?;
    Ok(())
}

fn total(answer: usize, counts: &BTreeMap<Output, u64>) -> Result<u64> {
    let sum = counts.iter().try_fold(0, |sum, (&output, &count)| checked_sum(sum, count, output));
    sum.map_err(|error| error.at(format!("answer {}", answer_name(answer))))
}

/// The sum of two counts of an output, if it is not too large.
fn checked_sum(one: u64, other: u64, output: Output) -> Result<u64> {
    one.checked_add(other).filter(|&sum| sum <= LARGEST_COUNT).ok_or_else(|| {
        Error::counts(format!("the count of {output} is over 2^63"))
            .with_hint("check the input; no crowd is as large as that")
    })
}

impl TryFrom<RawTally> for Tally {
    type Error = Error;

    fn try_from(raw: RawTally) -> Result<Self> {
        let answers = raw.answers.into_iter().enumerate().map(|(answer, counts)| {
            by_output(counts).map_err(|error| error.at(format!("answer {}", answer_name(answer))))
        });
        let tally = Self::new(answers.collect::<Result<_>>()?)?;
        match raw.owners {
            Some(owners) if owners != tally.owners => {
                Err(Error::counts(format!("owners is {owners}, but the counts of each answer sum to {}", tally.owners)))
            }
            _ => Ok(tally),
        }
    }
}

/// The counts of one answer by output; `⊥` and `bottom` are the same output.
fn by_output(counts: BTreeMap<String, u64>) -> Result<BTreeMap<Output, u64>> {
    let mut read = BTreeMap::new();
    for (text, count) in counts {
        let output = text.parse::<Output>()?;
        if read.insert(output, count).is_some() {
            return Err(Error::syntax(format!("the output {output} is counted twice")));
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;
    use proptest::prelude::*;

    fn read(json: &str) -> Result<Tally, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn bad_tallies_say_what_is_wrong() {
        for (json, part) in [
            (r#"{"answers":[]}"#, "at least one answer"),
            (r#"{"answers":[{"1":0}]}"#, "counts no owners"),
            (r#"{"answers":[{"1":5},{"1":4}]}"#, "answer A counts 5 owners and answer B counts 4"),
            (r#"{"owners":4,"answers":[{"1":5}]}"#, "owners is 4"),
            (r#"{"answers":[{"1":9223372036854775808,"0":1}]}"#, "answer A: the count of 1 is over 2^63"),
            (r#"{"answers":[{"x":5}]}"#, "answer A: `x` is not an output"),
            (r#"{"answers":[{"bottom":5,"⊥":5}]}"#, "the output ⊥ is counted twice"),
            (r#"{"answers":[{"1":-5}]}"#, "invalid value"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(part), "{json}: {error}");
        }
    }

    #[test]
    fn a_tally_of_another_mechanism_is_refused() {
        let channel = "sampling(0.5,0.5)".parse::<Mechanism>().unwrap().channel();
        let other = read(r#"{"answers":[{"1":5,"2":1}]}"#).unwrap();
        assert!(other.bin_counts(&channel).unwrap_err().to_string().contains("output 2"));
        let two = read(r#"{"answers":[{"1":5},{"1":5}]}"#).unwrap();
        assert!(two.bin_counts(&channel).unwrap_err().to_string().contains("2 answers"));
        let fine = read(r#"{"answers":[{"1":5,"2":0}]}"#).unwrap();
        assert_eq!(fine.bin_counts(&channel).unwrap(), [5, 0, 0]);
    }

    proptest! {
        #[test]
        fn merging_is_counting_together(left in prop::collection::vec(0u64..1000, 6), right in prop::collection::vec(1u64..1000, 6)) {
            let channel = "blended(0,0.25,0.25,0,0.5,0.1,0.1)".parse::<Mechanism>().unwrap().channel();
            let both: Vec<u64> = left.iter().zip(&right).map(|(a, b)| a + b).collect();
            let mut merged = Tally::from_cells(&channel, &right).unwrap();
            if let Ok(left) = Tally::from_cells(&channel, &left) {
                merged.merge(&left).unwrap();
                prop_assert_eq!(&merged, &Tally::from_cells(&channel, &both).unwrap());
            }
            let json = serde_json::to_string(&merged).unwrap();
            prop_assert_eq!(serde_json::from_str::<Tally>(&json).unwrap(), merged);
        }
    }
}
