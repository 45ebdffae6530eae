//! Laws in exact integers: the probabilities of numbered outcomes, which sum to 2⁶⁴.
//!
//! A channel has one law over its cells for each truth. Sampling, accounting and estimation all use these integers, and this
//! is where exact fractions become integers: each is rounded once, and one outcome takes the remainder.

use std::cmp::Ordering;

use num_rational::BigRational;
use num_traits::One;

use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::probability::Probability;
use crate::truth::PerTruth;

/// The probabilities of the outcomes 0, 1, 2, …, which sum to exactly one in integers over 2⁶⁴.
///
/// ```
/// use uptack::{Fraction, Law};
/// let third: Fraction = "1/3".parse()?;
/// let law = Law::from_fractions(&[&third, &third, &third]).expect("thirds sum to one");
/// assert_eq!(law.probabilities().iter().map(|part| part.numerator()).sum::<u128>(), 1 << 64);
/// assert_eq!(law.thresholds().outcome(u64::MAX), 2);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Law(Vec<Probability>);

impl Law {
    /// A law from its probabilities; `name` says in the error which law does not sum to one.
    pub fn new(name: &str, probabilities: Vec<Probability>) -> Result<Self> {
        let sum: u128 = probabilities.iter().map(|part| part.numerator()).sum();
        let one = Probability::ONE.numerator();
        match sum.cmp(&one) {
            Ordering::Equal => Ok(Self(probabilities)),
            Ordering::Less => Err(off_by(name, "little", one - sum)),
            Ordering::Greater => Err(off_by(name, "much", sum - one)),
        }
    }

    /// Rounds each fraction by itself and gives the remainder to the most likely outcome, the first of several; `None` if they
    /// do not sum to exactly one.
    pub fn from_fractions(parts: &[&Fraction]) -> Option<Self> {
        let sum: BigRational = parts.iter().map(|part| part.exact().clone()).sum();
        if !sum.is_one() {
            return None;
        }
        let rounded = with_remainder(parts.iter().map(|part| part.round().numerator()).collect());
        rounded.into_iter().map(|part| Probability::from_numerator(part).ok()).collect::<Option<_>>().map(Self)
    }

    /// Rounds running sums instead of the parts, so that no part is negative; what they leave of one is a last outcome.
    pub(crate) fn with_rest<'a>(parts: impl IntoIterator<Item = &'a Fraction>) -> Result<Self> {
        let (mut sum, mut reached, mut rounded) = (Fraction::zero(), Probability::ZERO, Vec::new());
        for part in parts {
            sum = sum.plus(part)?;
            let next = sum.round();
            rounded.push(next.saturating_sub(reached));
            reached = next;
        }
        rounded.push(reached.complement());
        Ok(Self(rounded))
    }

    /// One probability for each outcome.
    pub fn probabilities(&self) -> &[Probability] {
        &self.0
    }

    /// The outcomes that can occur.
    pub(crate) fn support(&self) -> Vec<usize> {
        (0..self.0.len()).filter(|&outcome| self.0[outcome] != Probability::ZERO).collect()
    }

    /// The coins at which one outcome ends and the next begins.
    pub fn thresholds(&self) -> Thresholds {
        let mut sums: Vec<u128> = self
            .0
            .iter()
            .scan(0, |sum, part| {
                *sum += part.numerator();
                Some(*sum)
            })
            .collect();
        sums.pop();
        Thresholds(sums)
    }

    /// The probability of each outcome given that it is none of those before it.
    pub(crate) fn given_none_before(&self) -> Vec<f64> {
        let mut left = Probability::ONE.numerator();
        let share = |part: &Probability| {
            let share = if left == 0 { 0.0 } else { part.numerator() as f64 / left as f64 };
            left -= part.numerator();
            share
        };
        self.0.iter().map(share).collect()
    }
}

/// Gives what is left of one to the largest number, the first of several.
fn with_remainder(mut rounded: Vec<u128>) -> Vec<u128> {
    let most_likely = (0..rounded.len()).max_by_key(|&outcome| (rounded[outcome], usize::MAX - outcome)).unwrap_or(0);
    let others = rounded.iter().sum::<u128>() - rounded[most_likely];
    rounded[most_likely] = Probability::ONE.numerator() - others;
    rounded
}

fn off_by(name: &str, way: &str, numerator: u128) -> Error {
    let amount = numerator as f64 / Probability::ONE.numerator() as f64;
    Error::law(format!("law({name}) does not sum to 1: {amount} too {way}"))
}

/// The cumulative sums of a [`Law`], without the last, which is one: the smallest coins that give the outcomes 1, 2, ….
#[derive(Clone, Debug)]
pub struct Thresholds(Vec<u128>);

impl Thresholds {
    /// The outcome that a uniform coin gives: how many thresholds it reaches. It is compared with every one, so that the time
    /// this takes does not depend on the outcome.
    #[inline]
    pub fn outcome(&self, coin: u64) -> u64 {
        let coin = u128::from(coin);
        self.0.iter().map(|&threshold| u64::from(coin >= threshold)).sum()
    }

    /// How many outcomes the law has.
    pub fn outcomes(&self) -> usize {
        self.0.len() + 1
    }

    pub(crate) fn coins(&self) -> &[u128] {
        &self.0
    }
}

/// Compares the ratios yes : no of two outcomes, given the numerators of their probabilities, exactly, by cross multiplication.
/// At least one number of each is above zero.
pub(crate) fn ratio_order(a: &PerTruth<u128>, b: &PerTruth<u128>) -> Ordering {
    // Only 2⁶⁴·2⁶⁴ does not fit, and it is larger than everything that does.
    let product = |x: u128, y: u128| x.checked_mul(y).map_or((true, 0), |product| (false, product));
    product(a.yes, b.no).cmp(&product(b.yes, a.no))
}

impl PerTruth<Probability> {
    /// By how much a *yes* raises the probability: p − q, exact before it is rounded.
    pub fn difference(self) -> f64 {
        (self.yes.numerator() as i128 - self.no.numerator() as i128) as f64 / Probability::ONE.numerator() as f64
    }

    /// The variance of how many owners of a crowd are counted, each with the probability of its truth.
    pub fn variance(self, owners: f64, yes: f64) -> f64 {
        let one = |law: Probability| law.to_f64() * law.complement().to_f64();
        yes * one(self.yes) + (owners - yes) * one(self.no)
    }

    /// The numerators over 2⁶⁴.
    pub(crate) fn numerators(self) -> PerTruth<u128> {
        self.map(Probability::numerator)
    }

    /// Both together, of outcomes that exclude each other. Neither sum exceeds one.
    pub(crate) fn plus(self, other: Self) -> Self {
        self.with(other, |sum, part| sum.checked_add(part).unwrap_or(Probability::ONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(numerators: &[u128]) -> Vec<Probability> {
        numerators.iter().map(|&numerator| Probability::from_numerator(numerator).unwrap()).collect()
    }

    #[test]
    fn a_law_sums_to_exactly_one() {
        assert!(Law::new("yes", parts(&[1 << 63, 1 << 63])).is_ok());
        let error = Law::new("no", parts(&[1 << 63, 1 << 62])).unwrap_err();
        assert_eq!(error.to_string(), "law(no) does not sum to 1: 0.25 too little");
        assert!(Law::new("no", parts(&[1 << 64, 1])).unwrap_err().is_law());
        assert!(Law::new("no", Vec::new()).is_err());
    }

    #[test]
    fn every_coin_belongs_to_the_outcome_of_its_threshold() {
        let thresholds = Law::new("yes", parts(&[3, 0, (1 << 64) - 4, 1])).unwrap().thresholds();
        let outcomes = [0, 2, 3, u64::MAX - 1, u64::MAX].map(|coin| thresholds.outcome(coin));
        assert_eq!(outcomes, [0, 0, 2, 2, 3]);
        assert_eq!(thresholds.outcomes(), 4);
    }

    #[test]
    fn ratios_are_compared_exactly() {
        let pair = |yes, no| PerTruth { yes, no };
        let one = 1 << 64;
        assert_eq!(ratio_order(&pair(one, one), &pair(1, 1)), Ordering::Equal);
        assert_eq!(ratio_order(&pair(one, 0), &pair(0, one)), Ordering::Greater);
        assert_eq!(ratio_order(&pair(one, one - 1), &pair(one - 1, one)), Ordering::Greater);
        assert_eq!(ratio_order(&pair(one - 1, one), &pair(one, one)), Ordering::Less);
    }
}
