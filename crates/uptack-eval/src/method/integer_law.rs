//! A table of a symmetric distribution over the integers.

use uptack::SeededCoins;

use crate::error::Result;
use crate::uniform::uniform;

/// Integer noise, with the probability of each value from −reach to reach.
#[derive(Clone, Debug)]
pub(crate) struct IntegerLaw {
    masses: Vec<f64>,
    /// Their running sums.
    cumulative: Vec<f64>,
}

impl IntegerLaw {
    /// The law proportional to a weight that is the same on both sides of 0.
    pub(crate) fn new(reach: i64, weight: impl Fn(i64) -> f64) -> Self {
        let mut masses: Vec<f64> = (-reach..=reach).map(weight).collect();
        let all: f64 = masses.iter().sum();
        masses.iter_mut().for_each(|mass| *mass /= all);
        let cumulative = running_sums(&masses);
        Self { masses, cumulative }
    }

    /// All values with their probabilities.
    pub(crate) fn values(&self) -> impl Iterator<Item = (i64, f64)> {
        let reach = self.reach();
        self.masses.iter().enumerate().map(move |(index, &mass)| (index as i64 - reach, mass))
    }

    /// The law of the sum of two draws.
    pub(crate) fn twice(&self) -> Self {
        let reach = self.reach();
        let mass = |value: i64| usize::try_from(value + reach).ok().and_then(|at| self.masses.get(at)).unwrap_or(&0.0);
        Self::new(2 * reach, |sum| self.values().map(|(value, first)| first * mass(sum - value)).sum())
    }

    pub(crate) fn sd(&self) -> f64 {
        self.values().map(|(value, mass)| (value * value) as f64 * mass).sum::<f64>().sqrt()
    }

    /// The least t for which a draw is beyond ±t with probability at most `miss`.
    pub(crate) fn half_width(&self, miss: f64) -> u64 {
        let reach = self.reach();
        let mut beyond = 0.0;
        for t in (0..reach).rev() {
            beyond += 2.0 * self.masses[(reach + t + 1) as usize];
            if beyond > miss {
                return t as u64 + 1;
            }
        }
        0
    }

    /// One draw.
    pub(crate) fn draw(&self, coins: &mut SeededCoins) -> Result<i64> {
        let unit = uniform(coins)?;
        let index = self.cumulative.partition_point(|&sum| sum <= unit).min(self.masses.len() - 1);
        Ok(index as i64 - self.reach())
    }

    fn reach(&self) -> i64 {
        (self.masses.len() as i64 - 1) / 2
    }
}

fn running_sums(values: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |&value: &f64| {
        sum += value;
        sum
    };
    values.iter().map(add).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_widths_hold_what_they_say_and_no_less_would() {
        let law = IntegerLaw::new(47, |x| (-(x.abs() as f64)).exp());
        for miss in [0.05, 1e-3, 2e-5] {
            let t = law.half_width(miss) as i64;
            let beyond = |t: i64| law.values().filter(|(x, _)| x.abs() > t).map(|(_, mass)| mass).sum::<f64>();
            assert!(beyond(t) <= miss && beyond(t - 1) > miss, "{miss}: {t}");
        }
    }

    #[test]
    fn two_draws_have_twice_the_variance() {
        let law = IntegerLaw::new(47, |x| (-(x.abs() as f64)).exp());
        assert!((law.twice().sd().powi(2) / law.sd().powi(2) - 2.0).abs() < 1e-9);
        assert!((law.twice().values().map(|(_, mass)| mass).sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
