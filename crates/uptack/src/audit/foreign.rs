//! An attack on any randomizer, as a black box: nothing is known of it but its outputs for each truth.
//!
//! Outputs are byte strings. The adversary looks at the whole output, at its length alone, and, if outputs are numbers of many
//! values, at their size. What it looks for is chosen on the first half of the outputs and tested on the second, so every bound
//! holds no matter how many events there were to choose from. All bounds together hold with the stated confidence.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::iter;

use serde::Serialize;

use super::collect::mixed;
use super::local::{Attack, Outcomes, Sample};
use super::{Finding, Verdict, some_of};
use crate::error::{Error, Result};
use crate::estimate::Confidence;
use crate::output::shortened;
use crate::privacy::{Delta, Epsilon};

/// What is claimed of a randomizer, and how it is attacked.
#[derive(Clone, Copy, Debug)]
pub struct ForeignAudit {
    /// The ε that is claimed of one output. If none is claimed, the audit only says what the outputs prove.
    pub epsilon: Option<Epsilon>,
    /// The δ that is claimed with it; none means 0.
    pub delta: Option<Delta>,
    /// How many outputs to ask for.
    pub samples: u64,
    /// How sure all bounds together are.
    pub confidence: Confidence,
}

/// What the outputs showed.
#[derive(Clone, Debug, Serialize)]
pub struct ForeignReport {
    /// The adversary who sees the output.
    pub output: Finding,
    /// The adversary who sees nothing but its length.
    pub length: Finding,
    /// The adversary who looks at how large it is; none if outputs are not numbers, or only a few different ones.
    pub size: Option<Finding>,
    /// The number of outputs that were looked at.
    pub samples: u64,
    /// Violated if anything above is.
    pub verdict: Verdict,
}

impl ForeignReport {
    /// What was proved by the most successful of the adversaries.
    pub fn strongest(&self) -> &Finding {
        let others = iter::once(&self.length).chain(&self.size);
        others.fold(&self.output, |best, next| if next.observed_lower > best.observed_lower { next } else { best })
    }
}

/// The outputs as they come, counted.
#[derive(Debug)]
pub struct ForeignOutputs {
    audit: ForeignAudit,
    seen: u64,
    values: Table<Vec<u8>>,
    lengths: Table<usize>,
    sizes: Sizes,
}

/// Fewer outputs prove nothing.
const FEWEST_SAMPLES: u64 = 1000;
/// Nobody waits for more outputs.
const MOST_SAMPLES: u64 = 1_000_000_000;
/// How many different outputs are told apart; all others count as one.
const MOST_OUTPUTS: usize = 1 << 16;
/// How many different lengths are told apart.
const MOST_LENGTHS: usize = 1 << 12;
/// The bytes of all outputs that are told apart.
const MOST_BYTES: usize = 1 << 26;
/// The number of parts of equal frequency that numbers are sorted into.
const PARTS: usize = 64;
/// How many numbers are kept to find these parts.
const MOST_NUMBERS: usize = 1 << 20;
/// Output, length, size.
const CHECKS: f64 = 3.0;

impl ForeignAudit {
    /// Begins to listen. Fewer than 1000 outputs are refused.
    pub fn listen(self) -> Result<ForeignOutputs> {
        if !(FEWEST_SAMPLES..=MOST_SAMPLES).contains(&self.samples) {
            return Err(Error::request(format!("{} samples cannot be audited", self.samples))
                .with_hint(format!("take at least {FEWEST_SAMPLES} and at most {MOST_SAMPLES}")));
        }
        Ok(ForeignOutputs {
            audit: self,
            seen: 0,
            values: Table::new(MOST_OUTPUTS),
            lengths: Table::new(MOST_LENGTHS),
            sizes: Sizes::Learning(Vec::new()),
        })
    }

    fn attack(&self, sample: Sample, name: impl Fn(&[usize]) -> String) -> Finding {
        let miss = self.confidence.miss() / CHECKS;
        let (claimed, delta) = (self.epsilon.map(Epsilon::value), self.delta.map_or(0.0, Delta::value));
        Attack { claimed, delta, miss }.run(&[sample], name)
    }
}

impl ForeignOutputs {
    /// The truth that output number `index` answers: a fixed pattern without any visible order.
    ///
    /// ```
    /// use uptack::audit::ForeignOutputs;
    /// assert_eq!((0..10_000).filter(|&index| ForeignOutputs::truth(index)).count(), 5096);
    /// ```
    pub fn truth(index: u64) -> bool {
        mixed(index + 1) & 1 == 1
    }

    /// How many outputs came so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The next output: what the randomizer said to the truth [`ForeignOutputs::truth`] of [`ForeignOutputs::seen`].
    pub fn hear(&mut self, output: &[u8]) {
        let yes = Self::truth(self.seen);
        let training = self.seen < self.audit.samples / 2;
        if !training {
            self.sizes.settle();
        }
        self.values.count(output, output.len(), training, yes);
        self.lengths.count(&output.len(), 1, training, yes);
        self.sizes.count(output, training, yes);
        self.seen += 1;
    }

    /// What they showed. Refused while there are fewer than were asked for.
    pub fn report(self) -> Result<ForeignReport> {
        if self.seen < self.audit.samples {
            return Err(Error::input(format!("{} outputs for {} truths", self.seen, self.audit.samples))
                .with_hint("a randomizer says exactly one thing to each truth"));
        }
        let (output, length, size) = (self.output_finding(), self.length_finding(), self.size_finding());
        let violated = [&output, &length].into_iter().chain(&size).any(Finding::is_violated);
        Ok(ForeignReport { output, length, size, samples: self.seen, verdict: Verdict::violated_if(violated) })
    }

    fn output_finding(&self) -> Finding {
        let values = self.values.names();
        let value = |&index: &usize| values[index].map_or("none of the usual".to_owned(), |bytes| quoted(bytes));
        let name = |event: &[usize]| format!("the output is {}", some_of(event.iter().map(value)));
        self.audit.attack(self.values.sample("output"), name)
    }

    fn length_finding(&self) -> Finding {
        let lengths = self.lengths.names();
        let length = |&index: &usize| lengths[index].map_or("unusual".to_owned(), |length| format!("{length} bytes"));
        let name = |event: &[usize]| format!("the length is {}", some_of(event.iter().map(length)));
        self.audit.attack(self.lengths.sample("length"), name)
    }

    fn size_finding(&self) -> Option<Finding> {
        let Sizes::Parts { edges, training, test } = &self.sizes else { return None };
        let sample = Sample { name: "size".to_owned(), training: training.clone(), test: test.clone() };
        Some(self.audit.attack(sample, |event| {
            format!("the number is in {}", some_of(event.iter().map(|&part| part_name(edges, part))))
        }))
    }
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", shortened(&String::from_utf8_lossy(bytes)))
}

/// A part by its ends.
fn part_name(edges: &[f64], part: usize) -> String {
    match (part.checked_sub(1).map(|below| edges[below]), edges.get(part)) {
        (None, Some(high)) => format!("(-∞, {high})"),
        (Some(low), None) => format!("[{low}, ∞)"),
        (Some(low), Some(high)) => format!("[{low}, {high})"),
        (None, None) => "(-∞, ∞)".to_owned(),
    }
}

/// How often each outcome came up, by truth. Outcome 0 is everything that was not told apart while learning.
#[derive(Debug)]
struct Table<K> {
    known: HashMap<K, usize>,
    bytes: usize,
    most: usize,
    training: Outcomes,
    test: Outcomes,
}

impl<K: Clone + Eq + Hash> Table<K> {
    fn new(most: usize) -> Self {
        Self { known: HashMap::new(), bytes: 0, most, training: Outcomes::empty(1), test: Outcomes::empty(1) }
    }

    fn count<Q>(&mut self, key: &Q, bytes: usize, training: bool, yes: bool)
    where
        Q: ?Sized + Eq + Hash + ToOwned<Owned = K>,
        K: Borrow<Q>,
    {
        let index = match self.known.get(key) {
            Some(&index) => index,
            None if training && self.has_room_for(bytes) => self.learn(key.to_owned(), bytes),
            None => 0,
        };
        let outcomes = if training { &mut self.training } else { &mut self.test };
        outcomes.add(index, yes);
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        self.known.len() < self.most && self.bytes + bytes <= MOST_BYTES
    }

    /// Tells one more outcome apart from now on; returns its number.
    fn learn(&mut self, key: K, bytes: usize) -> usize {
        let index = self.known.len() + 1;
        self.known.insert(key, index);
        self.bytes += bytes;
        for outcomes in [&mut self.training, &mut self.test] {
            outcomes.yes.push(0);
            outcomes.no.push(0);
        }
        index
    }

    /// The outcomes by their numbers.
    fn names(&self) -> Vec<Option<&K>> {
        let mut names = vec![None; self.known.len() + 1];
        for (key, &index) in &self.known {
            names[index] = Some(key);
        }
        names
    }

    fn sample(&self, name: &str) -> Sample {
        Sample { name: name.to_owned(), training: self.training.clone(), test: self.test.clone() }
    }
}

/// Outputs as numbers.
#[derive(Debug)]
enum Sizes {
    /// Those of the first half, with their truths.
    Learning(Vec<(f64, bool)>),
    /// The edges between parts, and how many were in each.
    Parts { edges: Vec<f64>, training: Outcomes, test: Outcomes },
    /// Outputs are not numbers, or only a few different ones.
    None,
}

impl Sizes {
    fn count(&mut self, output: &[u8], training: bool, yes: bool) {
        match self {
            Self::Learning(numbers) if training => match number(output) {
                Some(number) if numbers.len() < MOST_NUMBERS => numbers.push((number, yes)),
                Some(_) => {}
                None => *self = Self::None,
            },
            // An output that is no longer a number counts as the smallest.
            Self::Parts { edges, test, .. } => test.add(number(output).map_or(0, |number| part(edges, number)), yes),
            _ => {}
        }
    }

    /// Finds the parts, once the first half is over.
    fn settle(&mut self) {
        let Self::Learning(numbers) = self else { return };
        let Some(edges) = edges(numbers.iter().map(|(number, _)| *number).collect()) else {
            *self = Self::None;
            return;
        };
        let mut training = Outcomes::empty(edges.len() + 1);
        numbers.iter().for_each(|&(number, yes)| training.add(part(&edges, number), yes));
        let test = Outcomes::empty(edges.len() + 1);
        *self = Self::Parts { edges, training, test };
    }
}

/// An output as a number, if it is one.
fn number(output: &[u8]) -> Option<f64> {
    let number: f64 = str::from_utf8(output).ok()?.trim().parse().ok()?;
    (!number.is_nan()).then_some(number)
}

/// The edges between parts that come up about equally often; none if few of the numbers are different.
fn edges(mut numbers: Vec<f64>) -> Option<Vec<f64>> {
    numbers.sort_unstable_by(f64::total_cmp);
    let mut different = numbers.clone();
    different.dedup();
    if different.len() <= PARTS {
        return None;
    }
    let mut edges: Vec<f64> = (1..PARTS).map(|part| numbers[part * numbers.len() / PARTS]).collect();
    edges.dedup();
    Some(edges)
}

/// The part that a number is in.
fn part(edges: &[f64], number: f64) -> usize {
    edges.partition_point(|edge| *edge <= number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coins::SeededCoins;

    fn audited(epsilon: f64, samples: u64, seed: u64, mut say: impl FnMut(bool, f64) -> String) -> ForeignReport {
        let confidence = Confidence::new(0.95).unwrap();
        let audit = ForeignAudit { epsilon: Epsilon::new(epsilon).ok(), delta: None, samples, confidence };
        let mut outputs = audit.listen().unwrap();
        let mut coins = SeededCoins::new(seed);
        for index in 0..samples {
            outputs.hear(say(ForeignOutputs::truth(index), coins.uniform()).as_bytes());
        }
        outputs.report().unwrap()
    }

    fn response(truth: bool, unit: f64, keep: f64) -> String {
        u8::from(truth == (unit < keep)).to_string()
    }

    #[test]
    fn ten_correct_randomizers_are_not_accused() {
        // Were the claims tight, one of ten audits at 95 % would accuse a correct randomizer in 40 % of such tens; the seeds are
        // fixed.
        for seed in 0..10 {
            let epsilon = 0.25 * (1 + seed) as f64;
            let keep = epsilon.exp() / (1.0 + epsilon.exp());
            let report = audited(epsilon, 40_000, seed, |truth, unit| response(truth, unit, keep));
            assert_eq!(report.verdict, Verdict::Consistent, "{seed}: {report:?}");
            assert!(report.output.observed_lower > 0.75 * epsilon, "{seed}");
        }
    }

    #[test]
    fn a_coin_that_is_off_by_one_is_found() {
        // A hundred faces, of which one too many tells the truth.
        let keep = |faces: f64| move |truth: bool, unit: f64| response(truth, unit, faces / 100.0);
        let claimed = (75f64 / 25.0).ln();
        assert_eq!(audited(claimed, 400_000, 1, keep(75.0)).verdict, Verdict::Consistent);
        assert_eq!(audited(claimed, 400_000, 1, keep(76.0)).verdict, Verdict::Violated);
    }

    #[test]
    fn a_leak_by_length_alone_is_found() {
        let mut number = 0;
        // No output comes up twice, and its digits say nothing.
        let report = audited(1.0, 10_000, 3, |truth, _| {
            number += 1;
            format!("{:0width$}x", number, width = if truth { 9 } else { 8 })
        });
        assert_eq!((report.verdict, report.size.is_none()), (Verdict::Violated, true));
        assert!(report.length.is_violated() && report.length.observed_lower > 5.0);
        assert!(!report.output.is_violated(), "{:?}", report.output);
    }

    #[test]
    fn noise_that_is_too_small_is_found_by_its_size() {
        let laplace = |scale: f64| {
            move |truth: bool, unit: f64| {
                let centred = unit - 0.5;
                let noise = -scale * centred.signum() * (-2.0 * centred.abs()).ln_1p();
                (f64::from(u8::from(truth)) + noise).to_string()
            }
        };
        let sound = audited(1.0, 40_000, 5, laplace(1.0));
        assert_eq!(sound.verdict, Verdict::Consistent, "{sound:?}");
        let small = audited(1.0, 40_000, 5, laplace(0.5));
        assert!(small.size.as_ref().is_some_and(Finding::is_violated), "{small:?}");
    }

    #[test]
    fn delta_is_conceded() {
        // One in a hundred shouts its truth.
        let shout = |truth: bool, unit: f64| match unit {
            unit if unit < 0.01 => truth.to_string(),
            unit => response(truth, (unit - 0.01) / 0.99, 0.5),
        };
        assert_eq!(audited(0.1, 20_000, 7, shout).verdict, Verdict::Violated);
        let confidence = Confidence::new(0.95).unwrap();
        let (epsilon, delta) = (Epsilon::new(0.1).ok(), Some(Delta::new(0.02).unwrap()));
        let mut outputs = ForeignAudit { epsilon, delta, samples: 20_000, confidence }.listen().unwrap();
        let mut coins = SeededCoins::new(7);
        for index in 0..20_000 {
            outputs.hear(shout(ForeignOutputs::truth(index), coins.uniform()).as_bytes());
        }
        assert_eq!(outputs.report().unwrap().verdict, Verdict::Consistent);
    }

    #[test]
    fn any_bytes_are_an_output_and_memory_is_bounded() {
        let confidence = Confidence::new(0.95).unwrap();
        let audit = ForeignAudit { epsilon: Epsilon::new(1.0).ok(), delta: None, samples: 200_000, confidence };
        let mut outputs = audit.listen().unwrap();
        assert!(audit.listen().unwrap().report().is_err());
        for index in 0..audit.samples {
            outputs.hear(&index.to_le_bytes()[..1 + (index % 7) as usize]);
        }
        assert!(outputs.values.known.len() <= MOST_OUTPUTS && outputs.lengths.known.len() == 7);
        assert_eq!(outputs.report().unwrap().verdict, Verdict::Consistent);
        assert!(ForeignAudit { samples: 10, ..audit }.listen().is_err());
    }
}
