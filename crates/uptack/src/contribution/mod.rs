//! Contributions: whatever a card publishes, an owner adds to at most k of its counts, and each contribution is one choice
//! among all of them (`docs/contributions.md`).
//!
//! One of K options is one contribution among K counts, a ballot is up to k contributions among its questions, and a series
//! is up to k among its windows. The coin of a contribution is the same for all of them: with some probability it is told, and
//! otherwise it goes to one of the possibilities, each with the same probability, whatever the truth.

mod bins;
mod choice;
mod counts;
mod law;
mod options;
mod parse;
mod rows;
mod sampler;
mod toss;

pub use bins::Bins;
pub use choice::{Choice, Choices};
pub use counts::ContributionCounts;
pub use law::ContributionLaw;
pub use options::{MOST_OPTIONS, OptionNames};
pub use rows::{OptionRowReader, OptionRows, RowHeader, json_row_is_choice};
pub use sampler::{Contributed, ContributionSampler};
pub use toss::Toss;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::channel::{Cell, Channel, Output};
use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::mechanism::{Mechanism, NormalForm};
use crate::noise::NoiseLaw;
use crate::probability::Probability;
use crate::truth::PerTruth;

/// A mechanism of contributions, written `choice(k=4,r=0.001)` or `contributions(counts=288,most=1,r=0.0001)`, either of which
/// may end in `+ laplace(scale=2)`.
///
/// **Guarantee.** If nobody else is honest, [`linked_epsilon`](crate::privacy::contributions::linked_epsilon): k·ln(g/r), with
/// g = f − (K−1)r the probability of the true possibility and r that of each other one. If one aggregator adds noise,
/// [`one_aggregator`](crate::privacy::contributions::one_aggregator): pure, for every crowd. Both hold for everything that is
/// published together.
///
/// **Algorithm.** Each contribution is told with probability f − Kr, goes to each of the K possibilities with probability r, and
/// to none of them with probability 1 − f. The possibilities of `choice` are its options; those of `contributions` are the
/// counts and *none*, and f is 1. An owner's report has one bit per count, which is set if any contribution goes there.
///
/// **Utility.** Every count is a noisy count of its own, with the law of [`Contributions::count_law`].
///
/// **Cost.** One draw per contribution, however many possibilities there are.
///
/// ```
/// use uptack::contribution::Contributions;
/// let asked: Contributions = "choice(k=4, r=1/1000) + laplace(scale=2)".parse()?;
/// assert_eq!(asked.to_string(), "choice(k=4,f=1,r=0.001) + laplace(scale=2)");
/// assert_eq!((asked.options(), asked.counts(), asked.most()), (4, 4, 1));
/// let law = asked.count_law();
/// assert!((law.yes.to_f64() - 0.997).abs() < 1e-15 && (law.no.to_f64() - 0.001).abs() < 1e-15);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Contributions {
    form: Form,
    possibilities: u32,
    most: u32,
    part: Fraction,
    other: Fraction,
    law: ContributionLaw,
    noise: Option<NoiseLaw>,
}

/// Which possibilities there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Options, of which each owner has exactly one.
    Choice,
    /// Counts, and *none* as the last possibility.
    Counts,
}

/// The most counts that one card can publish.
pub const MOST_COUNTS: u32 = 1 << 24;

impl Contributions {
    /// The names that parse.
    pub const NAMES: [&str; 2] = crate::mechanism::parse::CONTRIBUTIONS;

    /// One of `options` (K) options: taking part with probability `part` (f), and each wrong option with probability
    /// `other` (r).
    pub fn choice(options: u32, part: Fraction, other: Fraction) -> Result<Self> {
        if options < 2 {
            return Err(Error::parameter(format!("k = {options} options are no choice"))
                .with_hint("a choice has at least 2 options"));
        }
        if options > MOST_OPTIONS {
            return Err(Error::parameter(format!("k = {options} is more than {MOST_OPTIONS} options"))
                .with_hint("merge rare options into one"));
        }
        let law = ContributionLaw::new(options, &part, &other)?;
        Ok(Self { form: Form::Choice, possibilities: options, most: 1, part, other, law, noise: None })
    }

    /// Up to `most` (k) contributions, each of them one choice among `counts` (C) counts and *none*; each wrong possibility has
    /// probability `other` (r).
    pub fn counts_of(counts: u32, most: u32, other: Fraction) -> Result<Self> {
        if !(1..=MOST_COUNTS).contains(&counts) {
            return Err(Error::parameter(format!("counts = {counts} is not between 1 and {MOST_COUNTS}")));
        }
        if most < 1 || most > counts {
            return Err(Error::parameter(format!("most = {most} is not between 1 and the {counts} counts"))
                .with_hint("an owner adds at most once to each count"));
        }
        let (form, possibilities, part) = (Form::Counts, counts + 1, Fraction::one());
        let law = ContributionLaw::new(possibilities, &part, &other)?;
        Ok(Self { form, possibilities, most, part, other, law, noise: None })
    }

    /// The same with noise that each aggregator adds to each count.
    #[must_use]
    pub fn with_noise(self, noise: Option<NoiseLaw>) -> Self {
        Self { noise, ..self }
    }

    /// How many options an owner can truly have: those of a choice, or the counts.
    pub fn options(&self) -> usize {
        match self.form {
            Form::Choice => self.possibilities as usize,
            Form::Counts => self.counts(),
        }
    }

    /// How many counts are published (C). Of two options, the first is counted, and the second is everybody else.
    pub fn counts(&self) -> usize {
        match self.form {
            Form::Choice if self.possibilities > 2 => self.possibilities as usize,
            _ => self.possibilities as usize - 1,
        }
    }

    /// How many contributions an owner makes (k). Those that go to no count look like the others.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// Whether an owner can truly belong to no count that is published: to the second of two options, or to *none*.
    pub fn has_uncounted(&self) -> bool {
        self.counts() < self.possibilities as usize
    }

    /// Whether every owner has exactly one of the options, so that all true counts sum to the number of owners.
    pub fn is_choice(&self) -> bool {
        self.form == Form::Choice
    }

    /// The possibilities of one contribution (K): the counts, and what is not counted.
    pub fn possibilities(&self) -> u32 {
        self.possibilities
    }

    /// The law of one contribution, in integers.
    pub fn law(&self) -> ContributionLaw {
        self.law
    }

    /// What each aggregator adds to each count.
    pub fn noise(&self) -> Option<&NoiseLaw> {
        self.noise.as_ref()
    }

    /// The probability that an owner's bit of one count is set, by whether the owner truly belongs to it:
    /// 1 − (1−g)(1−r)^(k−1) and 1 − (1−r)^k. Exact for one contribution, and rounded to the nearest integer over 2⁶⁴ for several.
    pub fn count_law(&self) -> PerTruth<Probability> {
        let (told, other) = (self.law.told(), self.law.other());
        if self.most == 1 {
            return PerTruth { yes: told, no: other };
        }
        let others = law::power(other.complement(), self.most - 1);
        let is_set = |first: Probability| law::product(first.complement(), &others).complement();
        PerTruth { yes: is_set(told), no: is_set(other) }
    }

    /// One count as a yes/no question by itself: who belongs to it, with [`Contributions::count_law`] and the noise.
    pub fn count_channel(&self) -> Channel {
        let law = self.count_law();
        let cells = vec![
            Cell::new(vec![Output::ONE], law.yes, law.no),
            Cell::new(vec![Output::ZERO], law.yes.complement(), law.no.complement()),
        ];
        let channel = Channel::from_cells(cells).expect("both laws sum to one");
        channel.with_optional_noise(self.noise).expect("it has one answer")
    }

    /// The yes/no mechanism that this is, if it is one: a choice between two options, or a single count.
    pub fn yes_no(&self) -> Option<Mechanism> {
        if self.counts() != 1 {
            return None;
        }
        let local = Mechanism::NormalForm(NormalForm::new(self.part.clone(), self.other.clone()).ok()?);
        match self.noise {
            None => Some(local),
            Some(noise) => crate::mechanism::Noisy::new(local, noise).ok().map(Mechanism::Noisy),
        }
    }

    /// The probability of taking part (f).
    pub fn part(&self) -> &Fraction {
        &self.part
    }

    /// The probability of each wrong possibility (r).
    pub fn other(&self) -> &Fraction {
        &self.other
    }

    /// The mechanism's name, as written before its parameters.
    pub fn name(&self) -> &'static str {
        match self.form {
            Form::Choice => parse::CHOICE,
            Form::Counts => parse::CONTRIBUTIONS,
        }
    }
}

impl FromStr for Contributions {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse::contributions(text)
    }
}

impl fmt::Display for Contributions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, most, other) = (self.name(), self.most, &self.other);
        match self.form {
            Form::Choice => write!(f, "{name}(k={},f={},r={other})", self.possibilities, self.part)?,
            Form::Counts => write!(f, "{name}(counts={},most={most},r={other})", self.counts())?,
        }
        self.noise.map_or(Ok(()), |noise| write!(f, " + {noise}"))
    }
}

impl TryFrom<String> for Contributions {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Contributions> for String {
    fn from(contributions: Contributions) -> Self {
        contributions.to_string()
    }
}

/// Any mechanism: one of a yes/no question, or one of contributions.
///
/// ```
/// use uptack::contribution::AnyMechanism;
/// let asked: AnyMechanism = "choice(k=3,r=0.01)".parse()?;
/// assert!(matches!(asked, AnyMechanism::Contributions(_)));
/// let asked: AnyMechanism = "randomized-response(t=0.8)".parse()?;
/// assert!(matches!(asked, AnyMechanism::YesNo(_)));
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AnyMechanism {
    /// A mechanism of a yes/no question.
    YesNo(Box<Mechanism>),
    /// A mechanism of contributions.
    Contributions(Box<Contributions>),
}

impl AnyMechanism {
    /// Its name, as written before its parameters.
    pub fn name(&self) -> &'static str {
        match self {
            Self::YesNo(mechanism) => mechanism.name(),
            Self::Contributions(contributions) => contributions.name(),
        }
    }

    /// The channel of one published count by itself: that of a yes/no question, or [`Contributions::count_channel`].
    pub fn count_channel(&self) -> Channel {
        match self {
            Self::YesNo(mechanism) => mechanism.channel(),
            Self::Contributions(contributions) => contributions.count_channel(),
        }
    }

    /// What each aggregator adds.
    pub fn noise(&self) -> Option<&NoiseLaw> {
        match self {
            Self::YesNo(mechanism) => mechanism.noise(),
            Self::Contributions(contributions) => contributions.noise(),
        }
    }
}

impl FromStr for AnyMechanism {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if parse::is_contributions(text) {
            text.parse().map(|contributions: Contributions| Self::Contributions(Box::new(contributions)))
        } else {
            text.parse().map(|mechanism: Mechanism| Self::YesNo(Box::new(mechanism)))
        }
    }
}

impl fmt::Display for AnyMechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::YesNo(mechanism) => mechanism.fmt(f),
            Self::Contributions(contributions) => contributions.fmt(f),
        }
    }
}

impl TryFrom<String> for AnyMechanism {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<AnyMechanism> for String {
    fn from(mechanism: AnyMechanism) -> Self {
        mechanism.to_string()
    }
}

impl From<Mechanism> for AnyMechanism {
    fn from(mechanism: Mechanism) -> Self {
        Self::YesNo(Box::new(mechanism))
    }
}

impl From<Contributions> for AnyMechanism {
    fn from(contributions: Contributions) -> Self {
        Self::Contributions(Box::new(contributions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Contributions {
        text.parse().unwrap()
    }

    #[test]
    fn every_text_reads_back_to_the_identical_integers() {
        for text in [
            "choice(k=2,f=1,r=0.1)",
            "choice(k=2,f=0.5,r=0.1)",
            "choice(k=12,f=0.626,r=1/30000)",
            "choice(k=65536,f=1,r=1e-6)",
            "contributions(counts=1,most=1,r=0.01)",
            "contributions(counts=288,most=5,r=0.0001)",
            "contributions(counts=640000,most=1,r=1e-7) + laplace(scale=2.5)",
            "choice(k=3,f=1,r=0) + laplace(scale=1/3)",
        ] {
            let mechanism: AnyMechanism = text.parse().unwrap();
            assert_eq!(mechanism.to_string(), text);
            let json = serde_json::to_string(&mechanism).unwrap();
            assert_eq!(serde_json::from_str::<AnyMechanism>(&json).unwrap(), mechanism);
        }
    }

    /// A choice between two options and a single count are the yes/no mechanism with the same law.
    #[test]
    fn two_options_and_one_count_are_a_yes_no_question() {
        for text in [
            "choice(k=2,f=0.5,r=0.1)",
            "choice(k=2,r=0.01) + laplace(scale=1)",
            "contributions(counts=1,most=1,r=0.01) + laplace(scale=1)",
        ] {
            let contributions = read(text);
            assert_eq!((contributions.counts(), contributions.has_uncounted()), (1, true));
            let yes_no = contributions.yes_no().unwrap().channel();
            let bit = yes_no.summed_bit().unwrap();
            assert_eq!((bit.yes, bit.no), (contributions.law().told(), contributions.law().other()));
            assert_eq!(contributions.count_channel().summed_bit(), Some(bit));
        }
        assert_eq!(read("choice(k=3,r=0.01)").yes_no(), None);
    }

    #[test]
    fn several_contributions_set_a_bit_if_any_of_them_does() {
        let contributions = read("contributions(counts=5,most=3,r=0.02)");
        let law = contributions.count_law();
        let (g, r) = (1.0 - 5.0 * 0.02, 0.02_f64);
        assert!((law.yes.to_f64() - (1.0 - (1.0 - g) * (1.0 - r).powi(2))).abs() < 1e-15);
        assert!((law.no.to_f64() - (1.0 - (1.0 - r).powi(3))).abs() < 1e-15);
    }

    /// The law of one count is rounded once, from more digits than it keeps, however many contributions there are.
    #[test]
    fn the_law_of_a_count_is_that_of_exact_fractions() {
        for text in ["contributions(counts=5,most=3,r=0.02)", "contributions(counts=90,most=40,r=1/307)"] {
            let contributions = read(text);
            let stays = |law: Probability| Fraction::from_probability(law.complement());
            let other = stays(contributions.law().other());
            let missed = |first: Probability| (1..contributions.most()).fold(stays(first), |all, _| all.times(&other));
            let law = contributions.count_law();
            assert_eq!(law.yes, missed(contributions.law().told()).complement().round());
            assert_eq!(law.no, missed(contributions.law().other()).complement().round());
        }
        let many = read("contributions(counts=16777216,most=16777216,r=1e-8)").count_law();
        assert!((many.no.to_f64() - (1.0 - (16_777_216.0 * (-1e-8f64).ln_1p()).exp())).abs() < 1e-12);
    }
}
