//! Exact chances, from which the samplers are built: uniform whole numbers, and events of rational probability or of
//! probability e^(−x). No float takes part.

use crate::coins::Coins;
use crate::error::Result;

/// Where whole numbers and events of rational probability come from.
pub(super) trait Chances {
    /// A uniform number below `bound`.
    fn below(&mut self, bound: u128) -> Result<u128>;

    /// Whether an event of probability `numerator / denominator` happens.
    fn happens(&mut self, numerator: u128, denominator: u128) -> Result<bool> {
        Ok(self.below(denominator)? < numerator)
    }
}

/// Whether an event of probability e^(−numerator/denominator) happens, for an exponent of at most 1: the first failure in a
/// row of events of probability x, x/2, x/3, … comes at an odd place with exactly this probability.
pub(super) fn decays(numerator: u128, denominator: u128, chances: &mut impl Chances) -> Result<bool> {
    let mut place = 1;
    while chances.happens(numerator, denominator * place)? {
        place += 1;
    }
    Ok(place % 2 == 1)
}

/// How many bytes are read at a time; those left over after the last draw are forgotten.
const BLOCK: usize = 64;

/// Chances from coins.
pub(super) struct CoinBytes<'c, C> {
    coins: &'c mut C,
    block: [u8; BLOCK],
    used: usize,
}

impl<'c, C: Coins> CoinBytes<'c, C> {
    pub(super) fn new(coins: &'c mut C) -> Self {
        Self { coins, block: [0; BLOCK], used: BLOCK }
    }

    fn byte(&mut self) -> Result<u8> {
        if self.used == BLOCK {
            self.coins.fill(&mut self.block)?;
            self.used = 0;
        }
        self.used += 1;
        Ok(self.block[self.used - 1])
    }
}

impl<C: Coins> Chances for CoinBytes<'_, C> {
    /// Draws as many bits as the largest number has, until the number they form is below the bound.
    fn below(&mut self, bound: u128) -> Result<u128> {
        let bits = u128::BITS - (bound - 1).leading_zeros();
        let mask = if bits == 0 { 0 } else { u128::MAX >> (u128::BITS - bits) };
        loop {
            let mut number = 0;
            for _ in 0..bits.div_ceil(8) {
                number = number << 8 | u128::from(self.byte()?);
            }
            if number & mask < bound {
                return Ok(number & mask);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::error::Error;

    /// Gives the bytes of a list, and then fails.
    pub(in crate::noise) struct Listed(pub(in crate::noise) Vec<u8>);

    impl Coins for Listed {
        fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
            if self.0.is_empty() {
                return Err(Error::coins("no more"));
            }
            let length = self.0.len().min(bytes.len());
            bytes[..length].copy_from_slice(&self.0[..length]);
            self.0.drain(..length);
            Ok(())
        }
    }

    #[test]
    fn every_number_below_a_bound_has_as_many_bytes() {
        for bound in 1..=256u128 {
            let mut hits = vec![0; bound as usize];
            for byte in 0..=255u8 {
                // A byte that is too large is followed by a zero, which is not counted.
                let mut coins = Listed([vec![byte], vec![0; BLOCK - 1]].concat());
                let mut bytes = CoinBytes::new(&mut coins);
                let number = bytes.below(bound).unwrap();
                if bytes.used <= 1 || bound == 1 {
                    hits[number as usize] += 1;
                }
            }
            assert!(hits.iter().all(|&count| count == hits[0] && count > 0), "{bound}: {hits:?}");
        }
    }

    /// Follows a list of outcomes and then takes the first of each; notes how probable it is to come that way.
    pub(in crate::noise) struct Path {
        outcomes: Vec<u128>,
        at: usize,
        /// For every choice the number of its outcomes.
        choices: Vec<u128>,
        probability: f64,
    }

    impl Path {
        fn choose(&mut self, probabilities: impl Fn(u128) -> f64, count: u128) -> u128 {
            if self.at == self.outcomes.len() {
                self.outcomes.push(0);
            }
            self.choices.push(count);
            let outcome = self.outcomes[self.at];
            self.at += 1;
            self.probability *= probabilities(outcome);
            outcome
        }
    }

    impl Chances for Path {
        fn below(&mut self, bound: u128) -> Result<u128> {
            Ok(self.choose(|_| 1.0 / bound as f64, bound))
        }

        /// Two outcomes, so that there are few paths; too improbable ones are given up.
        fn happens(&mut self, numerator: u128, denominator: u128) -> Result<bool> {
            let likely = numerator as f64 / denominator as f64;
            let outcome = self.choose(|outcome| if outcome == 0 { 1.0 - likely } else { likely }, 2);
            if self.probability < 1e-8 { Err(Error::coins("improbable")) } else { Ok(outcome == 1) }
        }
    }

    /// Every way that an attempt can go, added up: the probability of each result. Ways that are too improbable are left out.
    pub(in crate::noise) fn law_of<T: Ord>(attempt: impl Fn(&mut Path) -> Result<T>) -> BTreeMap<T, f64> {
        let (mut law, mut next) = (BTreeMap::new(), Some(Vec::new()));
        while let Some(outcomes) = next {
            let mut path = Path { outcomes, at: 0, choices: Vec::new(), probability: 1.0 };
            if let Ok(result) = attempt(&mut path) {
                *law.entry(result).or_default() += path.probability;
            }
            next = following(path);
        }
        law
    }

    /// The next list of outcomes in the order of a dictionary.
    fn following(path: Path) -> Option<Vec<u128>> {
        let mut outcomes = path.outcomes;
        outcomes.truncate(path.choices.len());
        while let Some(last) = outcomes.pop() {
            if last + 1 < path.choices[outcomes.len()] {
                outcomes.push(last + 1);
                return Some(outcomes);
            }
        }
        None
    }
}
