//! A party that sees every truth, counts, and adds integer noise.

use std::fmt;

use uptack::{Coins, SeededCoins};

use crate::error::Error;

/// A trusted curator with its noise; substituting one owner's truth moves one station's count by 1.
#[derive(Clone, Debug)]
pub struct Curator {
    shape: Shape,
    epsilon: f64,
    delta: f64,
    /// The probability of each value from −reach to reach.
    masses: Vec<f64>,
    /// Their running sums.
    cumulative: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Laplace,
    Gaussian { sigma: f64 },
}

impl Curator {
    /// Discrete Laplace noise (Ghosh, Roughgarden and Sundararajan, 2009): P(x) ∝ e^(−ε|x|), pure ε.
    pub fn laplace(epsilon: f64) -> Result<Self, Error> {
        check(epsilon)?;
        let reach = (45.0 / epsilon).ceil() as i64 + 2;
        Ok(Self::new(Shape::Laplace, epsilon, 0.0, reach, |x| (-epsilon * x.abs()).exp()))
    }

    /// Discrete Gaussian noise (Canonne, Kamath and Steinke, 2020): P(x) ∝ e^(−x²/2σ²) with the least σ that keeps (ε, δ).
    pub fn gaussian(epsilon: f64, delta: f64) -> Result<Self, Error> {
        check(epsilon)?;
        if !(delta > 0.0 && delta < 1.0) {
            return Err(Error::new(format!("a δ of {delta} is not between 0 and 1")));
        }
        let (mut low, mut high) = (0.05, 1.0);
        while divergence(high, epsilon) > delta {
            high *= 2.0;
        }
        for _ in 0..60 {
            let half = 0.5 * (low + high);
            if divergence(half, epsilon) > delta { low = half } else { high = half }
        }
        let sigma = high;
        let reach = (9.5 * sigma).ceil() as i64 + 2;
        Ok(Self::new(Shape::Gaussian { sigma }, epsilon, delta, reach, |x| (-x * x / (2.0 * sigma * sigma)).exp()))
    }

    fn new(shape: Shape, epsilon: f64, delta: f64, reach: i64, weight: impl Fn(f64) -> f64) -> Self {
        let masses = normalized((-reach..=reach).map(|x| weight(x as f64)).collect());
        let mut sum = 0.0;
        let cumulative = masses
            .iter()
            .map(|mass| {
                sum += mass;
                sum
            })
            .collect();
        Self { shape, epsilon, delta, masses, cumulative }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self.shape {
            Shape::Laplace => "discrete Laplace",
            Shape::Gaussian { .. } => "discrete Gaussian",
        }
    }

    /// Of the released count.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// Of the released count.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// The standard deviation of the noise.
    pub fn sd(&self) -> f64 {
        self.values().map(|(x, mass)| (x * x) as f64 * mass).sum::<f64>().sqrt()
    }

    /// The least t for which the noise is beyond ±t with probability at most `miss`.
    pub fn half_width(&self, miss: f64) -> u64 {
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

    /// One draw of the noise.
    pub fn draw(&self, coins: &mut SeededCoins) -> Result<i64, Error> {
        let mut bytes = [0; 8];
        coins.fill(&mut bytes)?;
        let unit = (u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64;
        let index = self.cumulative.partition_point(|&sum| sum <= unit).min(self.masses.len() - 1);
        Ok(index as i64 - self.reach())
    }

    fn reach(&self) -> i64 {
        (self.masses.len() as i64 - 1) / 2
    }

    fn values(&self) -> impl Iterator<Item = (i64, f64)> {
        let reach = self.reach();
        self.masses.iter().enumerate().map(move |(index, &mass)| (index as i64 - reach, mass))
    }
}

impl fmt::Display for Curator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            Shape::Laplace => write!(f, "discrete-laplace(epsilon={})", self.epsilon),
            Shape::Gaussian { sigma } => write!(f, "discrete-gaussian(sigma={sigma:.4})"),
        }
    }
}

fn check(epsilon: f64) -> Result<(), Error> {
    if (1e-3..=50.0).contains(&epsilon) {
        return Ok(());
    }
    Err(Error::new(format!("an ε of {epsilon} is not between 0.001 and 50")))
}

fn normalized(mut weights: Vec<f64>) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    weights
}

/// δ at ε of discrete Gaussian noise on counts that differ by 1: Σ (P(x) − e^ε·P(x−1))₊, summed outright.
fn divergence(sigma: f64, epsilon: f64) -> f64 {
    let reach = (12.0 * sigma).ceil() as i64 + 2;
    let masses = normalized((-reach..=reach).map(|x| (-((x * x) as f64) / (2.0 * sigma * sigma)).exp()).collect());
    let parts = masses.windows(2).map(|pair| (pair[0] - epsilon.exp() * pair[1]).max(0.0));
    parts.sum::<f64>() + masses[masses.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2e^(−ε)/(1−e^(−ε))².
    #[test]
    fn discrete_laplace_has_its_textbook_variance() {
        for epsilon in [0.1f64, 1.0, 3.0] {
            let ratio = (-epsilon).exp();
            let expected = 2.0 * ratio / (1.0 - ratio).powi(2);
            let sd = Curator::laplace(epsilon).unwrap().sd();
            assert!((sd * sd / expected - 1.0).abs() < 1e-9, "{epsilon}: {}", sd * sd);
        }
        assert!((Curator::laplace(1.0).unwrap().sd() - 1.357).abs() < 1e-3);
    }

    /// The analytic Gaussian mechanism (Balle and Wang, 2018) needs σ = 5.10 for (1, 1e-8) and 9.86 for (0.5, 1e-8); the
    /// discrete one is its equal to a per cent, and its variance is σ² (Canonne, Kamath and Steinke, corollary 9).
    #[test]
    fn discrete_gaussian_has_its_textbook_variance() {
        for (epsilon, sigma) in [(1.0, 5.10), (0.5, 9.86)] {
            let curator = Curator::gaussian(epsilon, 1e-8).unwrap();
            assert!((curator.sd() / sigma - 1.0).abs() < 0.01, "{}", curator.sd());
            let Shape::Gaussian { sigma } = curator.shape else { panic!("not Gaussian") };
            assert!((curator.sd() / sigma - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn half_widths_hold_what_they_say_and_no_less_would() {
        let curator = Curator::laplace(1.0).unwrap();
        for miss in [0.05, 1e-3, 2e-5] {
            let t = curator.half_width(miss) as i64;
            let beyond = |t: i64| curator.values().filter(|(x, _)| x.abs() > t).map(|(_, mass)| mass).sum::<f64>();
            assert!(beyond(t) <= miss && beyond(t - 1) > miss, "{miss}: {t}");
        }
    }

    /// α = 1e-4: 40 000 draws have the mean and the variance of the law; a shift of 0.03 sd is seen.
    #[test]
    fn draws_follow_the_law() {
        for curator in [Curator::laplace(1.0).unwrap(), Curator::gaussian(1.0, 1e-8).unwrap()] {
            let mut coins = SeededCoins::new(3);
            let draws: Vec<f64> = (0..40_000).map(|_| curator.draw(&mut coins).unwrap() as f64).collect();
            let mean = draws.iter().sum::<f64>() / 40_000.0;
            let square = draws.iter().map(|x| x * x).sum::<f64>() / 40_000.0;
            assert!(mean.abs() < 3.9 * curator.sd() / 200.0, "{mean}");
            // The fourth moment of Laplace noise is at most 7 times the squared variance.
            let spread = 3.9 * (6f64).sqrt() * curator.sd().powi(2) / 200.0;
            assert!((square - curator.sd().powi(2)).abs() < spread, "{square}");
        }
    }
}
