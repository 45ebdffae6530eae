use std::cmp::Ordering;

use super::{Family, parts_and_rest, several_answers};
use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::probability::Probability;

/// Two answers of three outputs; the shift of each population goes to an output of its own and then to ⊥3 together.
///
/// **Guarantee.** None for the release or for linked answers: noise that cancels for the analyst cancels for everyone
/// who sees the tallies, and a lone yes-owner in a crowd of no-owners shows with probability s, so δ ≥ s. Answer B
/// alone says nothing, answer A alone little. [`Blended`](super::Blended) is the repair.
///
/// **Algorithm.** The paper's *Cancelling the Noise*. Each law must sum to one over the same base, so πY = πN = s. In
/// NO_B the ⊥2 line must be π⊥2, else E\[⊥2B\] = π⊥2·TOTAL fails; E\[⊥2A\] prints π⊥1 where π⊥2 is meant; the last
/// expectation, labelled 3A, is that of 3B. One coin decides both answers.
///
/// **Utility.** The best estimate is n·h13 / (h13 + h23), with variance close to ((1−s)/s)·yes·no/n: it does not grow
/// with the crowd of no-owners.
///
/// **Cost.** Two answers of three outputs.
///
/// ```
/// use uptack::{Mechanism, estimate::Estimator};
/// let mechanism: Mechanism = "cancelling(b1=0.3, b2=0.3, b3=0.3, s=0.1)".parse()?;
/// let sd = Estimator::new(&mechanism.channel())?.sd(50_000, 500.0)?;
/// assert!((sd - (9.0 * 500.0 * 49_500.0 / 50_000.0_f64).sqrt()).abs() < 1e-9);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelling {
    values: [Fraction; 4],
}

impl Cancelling {
    /// Bases `b1`, `b2`, `b3` and the shift `s`, which sum to one.
    pub fn new(b1: Fraction, b2: Fraction, b3: Fraction, s: Fraction) -> Result<Self> {
        let others = b2.plus(&b3).and_then(|sum| sum.plus(&s)).map_err(|error| error.at("b2 + b3 + s"))?;
        let rest = others.complement();
        let (amount, way) = match b1.cmp(&rest) {
            Ordering::Equal => return Ok(Self { values: [b1, b2, b3, s] }),
            Ordering::Greater => (b1.minus(&rest)?, "much"),
            Ordering::Less => (rest.minus(&b1)?, "little"),
        };
        Err(Error::parameter(format!("b1 + b2 + b3 + s must be 1; it is {amount} too {way}"))
            .with_hint(format!("write b1={rest}")))
    }
}

impl Family for Cancelling {
    const NAME: &'static str = "cancelling";
    const KEYS: &'static [&'static str] = &["b1", "b2", "b3", "s"];

    fn from_values(values: Vec<Fraction>) -> Result<Self> {
        let [b1, b2, b3, s] = super::exactly(values);
        Self::new(b1, b2, b3, s)
    }

    fn values(&self) -> Vec<&Fraction> {
        self.values.iter().collect()
    }

    /// The rest is 11.
    fn channel(&self) -> Channel {
        let [_, b2, b3, s] = &self.values;
        let parts = parts_and_rest(&[b2, b3, s]).expect("the sum was checked");
        let [b2, b3, s, b1] = super::exactly(parts);
        let none = Probability::ZERO;
        several_answers("123", &[("11", b1, b1), ("22", b2, b2), ("33", b3, b3), ("13", s, none), ("23", none, s)])
    }
}
