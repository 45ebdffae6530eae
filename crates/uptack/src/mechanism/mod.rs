//! The paper's family of mechanisms, each as parameters that yield a [`Channel`].
//!
//! *Anonymized Local Privacy* (Joy & Gerla, arXiv 1703.07949) gives for each mechanism the marginal law of each answer.
//! If a mechanism asks for several answers, the differences between them cancel only if one coin decides all of them;
//! the couplings used here are the ones under which the paper's differences cancel (the monotone one for [`Paired`]).
//! Wherever the printed text cannot be meant as it stands, the mechanism's page says how it is read and why.

mod blended;
mod cancelling;
mod custom;
mod deniable_sampling;
mod noisy;
mod noisy_sampling;
mod normal_form;
mod paired;
pub(crate) mod parse;
mod randomized_response;
mod sampling;
mod spread;
mod tuned;

pub use blended::Blended;
pub use cancelling::Cancelling;
pub use custom::Custom;
pub use deniable_sampling::DeniableSampling;
pub use noisy::Noisy;
pub use noisy_sampling::NoisySampling;
pub use normal_form::NormalForm;
pub use paired::Paired;
pub use parse::nearest_name;
pub use randomized_response::RandomizedResponse;
pub use sampling::Sampling;
pub use spread::Spread;
pub use tuned::Tuned;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::channel::{Cell, Channel, Output};
use crate::display::separated;
use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::law::Law;
use crate::noise::NoiseLaw;
use crate::probability::Probability;

/// Any mechanism that can be written as `name(key=value, …)`, and with noise `name(key=value, …) + laplace(scale=…)`.
///
/// Parameters may be decimals, fractions or percentages, by key or in the order of the keys. What is printed reads
/// back to the identical integers.
///
/// ```
/// use uptack::Mechanism;
/// let mechanism: Mechanism = "normal-form(f=50%, r=1/10000)".parse()?;
/// assert_eq!(mechanism.to_string(), "normal-form(f=0.5,r=0.0001)");
/// assert_eq!(mechanism, "normal-form(0.5, 1e-4)".parse()?);
///
/// let error = "normal-from(f=0.5,r=0.1)".parse::<Mechanism>().unwrap_err();
/// assert_eq!(error.hint(), Some("did you mean `normal-form`?"));
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Mechanism {
    /// See [`RandomizedResponse`].
    RandomizedResponse(RandomizedResponse),
    /// See [`Sampling`].
    Sampling(Sampling),
    /// See [`NoisySampling`].
    NoisySampling(NoisySampling),
    /// See [`DeniableSampling`].
    DeniableSampling(DeniableSampling),
    /// See [`Tuned`].
    Tuned(Tuned),
    /// See [`Paired`].
    Paired(Paired),
    /// See [`Cancelling`].
    Cancelling(Cancelling),
    /// See [`Blended`].
    Blended(Blended),
    /// See [`NormalForm`].
    NormalForm(NormalForm),
    /// See [`Spread`].
    Spread(Spread),
    /// See [`Custom`].
    Custom(Custom),
    /// See [`Noisy`].
    Noisy(Noisy),
}

/// What every mechanism with numbered parameters has in common.
trait Family: Sized {
    const NAME: &'static str;
    const KEYS: &'static [&'static str];

    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// From one value per key, in the order of the keys.
    fn from_values(values: Vec<Fraction>) -> Result<Self>;
    fn values(&self) -> Vec<&Fraction>;
    fn channel(&self) -> Channel;
}

/// A family of two numbers: for each truth, the share of owners who take part. The law is made from the rounded shares.
/// Owners who do not take part say ⊥.
macro_rules! family_of_shares {
    ($family:ident, $name:literal, |$yes:ident, $no:ident| $channel:expr) => {
        impl crate::mechanism::Family for $family {
            const NAME: &'static str = $name;
            const KEYS: &'static [&'static str] = &["sy", "sn"];

            fn from_values(values: Vec<Fraction>) -> Result<Self, crate::error::Error> {
                let [yes, no] = crate::mechanism::exactly(values);
                Ok(Self::new(yes, no))
            }

            fn values(&self) -> Vec<&Fraction> {
                vec![&self.yes, &self.no]
            }

            fn channel(&self) -> crate::channel::Channel {
                let ($yes, $no) = (self.yes.round(), self.no.round());
                $channel
            }
        }
    };
}
use family_of_shares;

/// One expression for every family with parameters, and others for `custom` and for mechanisms with noise, so that the
/// variants are listed only once.
macro_rules! for_family {
    ($mechanism:expr, $inner:ident => $body:expr, custom $custom:ident => $other:expr, noisy $noisy:ident => $with_noise:expr) => {
        match $mechanism {
            Mechanism::RandomizedResponse($inner) => $body,
            Mechanism::Sampling($inner) => $body,
            Mechanism::NoisySampling($inner) => $body,
            Mechanism::DeniableSampling($inner) => $body,
            Mechanism::Tuned($inner) => $body,
            Mechanism::Paired($inner) => $body,
            Mechanism::Cancelling($inner) => $body,
            Mechanism::Blended($inner) => $body,
            Mechanism::NormalForm($inner) => $body,
            Mechanism::Spread($inner) => $body,
            Mechanism::Custom($custom) => $other,
            Mechanism::Noisy($noisy) => $with_noise,
        }
    };
}

impl Mechanism {
    /// The names that parse, in the order in which the paper introduces them; our own additions last.
    pub const NAMES: [&str; 11] = [
        RandomizedResponse::NAME,
        Sampling::NAME,
        NoisySampling::NAME,
        DeniableSampling::NAME,
        Tuned::NAME,
        Paired::NAME,
        Cancelling::NAME,
        Blended::NAME,
        NormalForm::NAME,
        Spread::NAME,
        Custom::NAME,
    ];

    /// The mechanism's name, as written before its parameters.
    pub fn name(&self) -> &'static str {
        for_family!(self, family => family.name(), custom _custom => Custom::NAME, noisy noisy => noisy.mechanism().name())
    }

    /// Its law, in integers.
    pub fn channel(&self) -> Channel {
        for_family!(self, family => family.channel(), custom custom => custom.channel().clone(), noisy noisy => noisy.channel())
    }

    /// How owners answer, without what the aggregators add.
    pub fn local(&self) -> &Self {
        match self {
            Self::Noisy(noisy) => noisy.mechanism(),
            _ => self,
        }
    }

    /// What each aggregator adds to the published sum; `None` if all tallies are published as they are.
    pub fn noise(&self) -> Option<&NoiseLaw> {
        match self {
            Self::Noisy(noisy) => Some(noisy.noise()),
            _ => None,
        }
    }

    /// The mechanism of one of [`NAMES`](Self::NAMES), from what stands in its brackets.
    fn named(name: &str, arguments: &str) -> Result<Self> {
        match name {
            RandomizedResponse::NAME => parse::randomized_response(arguments).map(Self::RandomizedResponse),
            Sampling::NAME => parse::family(arguments).map(Self::Sampling),
            NoisySampling::NAME => parse::family(arguments).map(Self::NoisySampling),
            DeniableSampling::NAME => parse::family(arguments).map(Self::DeniableSampling),
            Tuned::NAME => parse::family(arguments).map(Self::Tuned),
            Paired::NAME => parse::family(arguments).map(Self::Paired),
            Cancelling::NAME => parse::family(arguments).map(Self::Cancelling),
            Blended::NAME => parse::family(arguments).map(Self::Blended),
            NormalForm::NAME => parse::family(arguments).map(Self::NormalForm),
            Spread::NAME => parse::spread(arguments).map(Self::Spread),
            Custom::NAME => Custom::parse(arguments).map(Self::Custom),
            _ => unreachable!("the name is one of those listed"),
        }
    }
}

impl FromStr for Mechanism {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some((mechanism, noise)) = parse::sum(text) {
            return Noisy::parse(mechanism, noise).map(Self::Noisy);
        }
        let (name, arguments) = parse::call(text)?;
        if !Self::NAMES.contains(&name) {
            return Err(unknown_mechanism(name));
        }
        Self::named(name, arguments).map_err(|error| error.at(name))
    }
}

/// The error for a name that is not that of a mechanism of a yes/no question.
fn unknown_mechanism(name: &str) -> Error {
    if parse::CONTRIBUTIONS.contains(&name) {
        return Error::syntax(format!("`{name}` is not a mechanism of a yes/no question"));
    }
    let known: Vec<&str> = Mechanism::NAMES.into_iter().chain(parse::CONTRIBUTIONS).collect();
    parse::unknown("mechanism", name, &known)
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments = for_family!(self, family => arguments(family), custom custom => custom.to_string(), noisy noisy => return noisy.fmt(f));
        match self {
            Self::Spread(spread) => write!(f, "{}(pairs={},{arguments})", Spread::NAME, spread.pairs()),
            _ => write!(f, "{}({arguments})", self.name()),
        }
    }
}

/// The parameters of a family as `key=value,…`.
fn arguments<F: Family>(family: &F) -> String {
    let pairs = F::KEYS.iter().zip(family.values());
    separated(pairs.map(|(key, value)| format!("{key}={value}")), ",")
}

impl TryFrom<String> for Mechanism {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Mechanism> for String {
    fn from(mechanism: Mechanism) -> Self {
        mechanism.to_string()
    }
}

/// The channel of a one-answer mechanism, from its laws over the outputs 1, 0 and ⊥.
fn one_answer(yes: [Probability; 3], no: [Probability; 3]) -> Channel {
    let outputs = [Output::ONE, Output::ZERO, Output::BOTTOM];
    let cells = outputs.iter().zip(yes.into_iter().zip(no));
    trusted(cells.map(|(&output, (yes, no))| Cell::new(vec![output], yes, no)).collect())
}

/// One answer's law over 1, 0 and ⊥, from the probability of taking part and that of saying 1; who takes part otherwise says 0.
fn taking_part(part: Probability, one: Probability) -> [Probability; 3] {
    [one, part.saturating_sub(one), part.complement()]
}

/// The channel of a several-answer mechanism, from its cells' names and laws.
fn several_answers(outputs: &str, cells: &[(&str, Probability, Probability)]) -> Channel {
    let cell = |&(name, yes, no): &(&str, Probability, Probability)| Cell::new(outputs_of(name), yes, no);
    let answers = vec![outputs_of(outputs); cells[0].0.len()];
    Channel::new(answers, cells.iter().map(cell).collect()).expect("a family's laws sum to one")
}

/// The outputs with these symbols, as in `132`.
fn outputs_of(symbols: &str) -> Vec<Output> {
    symbols.chars().map(|symbol| Output::new(symbol).expect("the families' outputs are digits")).collect()
}

fn trusted(cells: Vec<Cell>) -> Channel {
    Channel::from_cells(cells).expect("a family's laws sum to one")
}

/// Rounds the running sums instead of the parts, so that the parts and what is left of one are never negative.
///
/// The last number returned is the rest.
fn parts_and_rest(parts: &[&Fraction]) -> Result<Vec<Probability>> {
    Ok(Law::with_rest(parts.iter().copied())?.probabilities().to_vec())
}

/// The values as an array; the parser yields one per key.
fn exactly<T, const N: usize>(values: Vec<T>) -> [T; N] {
    values.try_into().unwrap_or_else(|values: Vec<T>| unreachable!("{} values for {N} keys", values.len()))
}

/// `left ≤ right`, or an error that says by how much it is not so.
fn at_most((left_name, left): (&str, &Fraction), (right_name, right): (&str, &Fraction)) -> Result<()> {
    if left <= right {
        return Ok(());
    }
    let excess = left.minus(right)?;
    Err(Error::parameter(format!("{left_name} = {left} is more than {right_name} = {right}, by {excess}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings_of_tests::FAMILY;

    #[test]
    fn every_mechanism_reads_back_to_the_identical_channel() {
        let others = [
            "sampling(sy=0.05,sn=1/3)",
            "custom(11=0.5:0.25, 12=0.25:0.25, 22=0.25:0.5)",
            "normal-form(f=0.5,r=0.0001) + laplace(scale=2.5)",
            "custom(1=0.5:0.25, 0=0.5:0.75) + laplace(scale=1/3)",
        ];
        for &text in FAMILY.iter().chain(&others) {
            let mechanism: Mechanism = text.parse().unwrap();
            assert_eq!(mechanism.to_string(), text);
            let again: Mechanism = mechanism.to_string().parse().unwrap();
            assert_eq!(again.channel(), mechanism.channel(), "{text}");
            assert!(Mechanism::NAMES.contains(&mechanism.name()));
            let json = serde_json::to_string(&mechanism).unwrap();
            assert_eq!(serde_json::from_str::<Mechanism>(&json).unwrap(), mechanism);
        }
    }

    #[test]
    fn parts_never_leave_a_negative_rest() {
        let two_thirds: Fraction = "2/9".parse().unwrap();
        let third: Fraction = "1/3".parse().unwrap();
        let parts = parts_and_rest(&[&two_thirds, &two_thirds, &two_thirds, &third]).unwrap();
        assert_eq!(parts.iter().map(|part| part.numerator()).sum::<u128>(), 1 << 64);
        assert_eq!(parts[4], Probability::ZERO);
        assert!(parts_and_rest(&[&two_thirds, &Fraction::one()]).is_err());
    }
}
