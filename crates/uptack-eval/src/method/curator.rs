//! A party that sees every truth, counts, and adds integer noise from a table of its law.

use std::fmt;

use uptack::SeededCoins;

use crate::error::{Error, Result};
use crate::planned::ReleaseTarget;

/// A trusted curator with its noise.
#[derive(Clone, Debug)]
pub struct Curator {
    shape: CuratorNoise,
    epsilon: f64,
    delta: f64,
    law: IntegerNoise,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum CuratorNoise {
    Laplace { scale: f64 },
    Gaussian { sigma: f64 },
}

/// How many published counts change, by 1 each, if one owner's truth is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangedCounts {
    /// One station's question.
    One,
    /// All stations at once, where each owner is at one of them: the count that it leaves and the one that it joins.
    Two,
}

impl ChangedCounts {
    /// As a number.
    pub fn count(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

impl Curator {
    /// Discrete Laplace noise (Ghosh, Roughgarden and Sundararajan, 2009): P(x) ∝ e^(−|x|/t), pure ε. The counts
    /// that change share ε.
    pub fn laplace(epsilon: f64, changes: ChangedCounts) -> Result<Self> {
        check(epsilon)?;
        let scale = changes.count() as f64 / epsilon;
        let reach = (45.0 * scale).ceil() as i64 + 2;
        let law = IntegerNoise::new(reach, |x| (-(x.abs() as f64) / scale).exp());
        Ok(Self { shape: CuratorNoise::Laplace { scale }, epsilon, delta: 0.0, law })
    }

    /// Discrete Gaussian noise (Canonne, Kamath and Steinke, 2020): P(x) ∝ e^(−x²/2σ²) with the least σ that keeps (ε, δ).
    pub fn gaussian(epsilon: f64, delta: f64, changes: ChangedCounts) -> Result<Self> {
        check(epsilon)?;
        if !(delta > 0.0 && delta < 1.0) {
            return Err(Error::new(format!("a δ of {delta} is not between 0 and 1")));
        }
        let sigma = least_sigma(|sigma| divergence(sigma, epsilon, changes) <= delta);
        Ok(Self { shape: CuratorNoise::Gaussian { sigma }, epsilon, delta, law: gaussian_law(sigma, 9.5) })
    }

    /// The name of its noise.
    pub fn name(&self) -> &'static str {
        match self.shape {
            CuratorNoise::Laplace { .. } => "discrete Laplace",
            CuratorNoise::Gaussian { .. } => "discrete Gaussian",
        }
    }

    /// The ε of all counts that are released.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The δ of all counts that are released.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// The noise of each count.
    pub(crate) fn law(&self) -> &IntegerNoise {
        &self.law
    }
}

impl fmt::Display for Curator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            CuratorNoise::Laplace { scale } => write!(f, "discrete-laplace(scale={scale})"),
            CuratorNoise::Gaussian { sigma } => write!(f, "discrete-gaussian(sigma={sigma:.4})"),
        }
    }
}

fn check(epsilon: f64) -> Result<()> {
    if (1e-3..=50.0).contains(&epsilon) {
        return Ok(());
    }
    Err(Error::new(format!("an ε of {epsilon} is not between 0.001 and 50")))
}

fn gaussian_law(sigma: f64, deviations: f64) -> IntegerNoise {
    let reach = (deviations * sigma).ceil() as i64 + 2;
    IntegerNoise::new(reach, |x| (-((x * x) as f64) / (2.0 * sigma * sigma)).exp())
}

/// The least σ that is enough; every larger one must be, too.
fn least_sigma(enough: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.05, 1.0);
    while !enough(high) {
        high *= 2.0;
    }
    while high - low > 1e-9 * high {
        let middle = 0.5 * (low + high);
        if enough(middle) { high = middle } else { low = middle }
    }
    high
}

/// The δ of discrete Gaussian noise at ε if one count changes by 1, or two do.
///
/// The loss of one count at x is (1 − 2x)/2σ², so that of two depends on the sum of both draws alone.
fn divergence(sigma: f64, epsilon: f64, changes: ChangedCounts) -> f64 {
    let law = gaussian_law(sigma, 12.0);
    let law = if changes == ChangedCounts::Two { law.twice() } else { law };
    let shift = changes.count() as f64;
    let part = |(x, mass): (i64, f64)| {
        let loss = (shift - 2.0 * x as f64) / (2.0 * sigma * sigma);
        mass * (-(epsilon - loss).exp_m1()).max(0.0)
    };
    law.values().map(part).sum()
}

/// The least σ of discrete Gaussian noise on each of many counts that keeps the guarantee for all of them together if `moved` of
/// them change by 1, one way or the other. Only for an ε and a δ that need σ ≥ 0.75.
///
/// The loss is (2S + m)/2σ² with S the sum of m draws, whose law is that of one draw with mσ² instead of σ² up to a factor of e^τ,
/// τ ≤ 5(m−1)e^(−π²σ²) (Poisson summation). So with s₀ = ⌊εσ² − m/2⌋ + 1, δ ≤ e^τ·(P(S ≥ s₀) − e^ε·P(S ≥ s₀ + m)).
pub(crate) fn least_sigma_of_moved(ReleaseTarget { epsilon, delta }: ReleaseTarget, moved: u64) -> f64 {
    least_sigma(|sigma| sigma >= 0.75 && moved_divergence(sigma, epsilon, moved) <= delta)
}

fn moved_divergence(sigma: f64, epsilon: f64, moved: u64) -> f64 {
    let m = moved as f64;
    let sum = gaussian_law(sigma * m.sqrt(), 12.0);
    let tail = |from: i64| sum.values().filter(|(value, _)| *value >= from).map(|(_, mass)| mass).sum::<f64>();
    let first = (epsilon * sigma * sigma - m / 2.0).floor() as i64 + 1;
    let factor = (5.0 * (m - 1.0) * (-(std::f64::consts::PI * sigma).powi(2)).exp()).exp();
    factor * (tail(first) - epsilon.exp() * tail(first + moved as i64))
}

/// Integer noise, with the probability of each value from −reach to reach.
#[derive(Clone, Debug)]
pub(crate) struct IntegerNoise {
    masses: Vec<f64>,
    /// Their running sums.
    cumulative: Vec<f64>,
}

impl IntegerNoise {
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
        let unit = coins.uniform();
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
    use uptack::SeededCoins;

    use super::*;

    /// 2e^(−ε)/(1−e^(−ε))².
    #[test]
    fn discrete_laplace_has_its_textbook_variance() {
        for epsilon in [0.1f64, 1.0, 3.0] {
            let ratio = (-epsilon).exp();
            let expected = 2.0 * ratio / (1.0 - ratio).powi(2);
            let sd = Curator::laplace(epsilon, ChangedCounts::One).unwrap().law().sd();
            assert!((sd * sd / expected - 1.0).abs() < 1e-9, "{epsilon}: {}", sd * sd);
        }
        assert!((Curator::laplace(1.0, ChangedCounts::One).unwrap().law().sd() - 1.357).abs() < 1e-3);
    }

    /// The analytic Gaussian mechanism (Balle and Wang, 2018) needs σ = 5.10 for (1, 1e-8) and 9.86 for (0.5, 1e-8); the
    /// discrete one is within a per cent of it, and its variance is σ² (Canonne, Kamath and Steinke, corollary 9).
    #[test]
    fn discrete_gaussian_has_its_textbook_variance() {
        for (epsilon, sigma) in [(1.0, 5.10), (0.5, 9.86)] {
            let curator = Curator::gaussian(epsilon, 1e-8, ChangedCounts::One).unwrap();
            assert!((curator.law().sd() / sigma - 1.0).abs() < 0.01, "{}", curator.law().sd());
            let CuratorNoise::Gaussian { sigma } = curator.shape else { panic!("not Gaussian") };
            assert!((curator.law().sd() / sigma - 1.0).abs() < 1e-6);
        }
    }

    /// Of one and two counts, by convolution as well; of more, as another program computed them.
    #[test]
    fn many_moved_counts_need_the_noise_of_their_number() {
        let target = ReleaseTarget { epsilon: 1.0, delta: 1e-8 };
        for (changes, moved) in [(ChangedCounts::One, 1), (ChangedCounts::Two, 2)] {
            let sigma = least_sigma(|sigma| divergence(sigma, 1.0, changes) <= 1e-8);
            assert!((least_sigma_of_moved(target, moved) / sigma - 1.0).abs() < 1e-6, "{moved}: {sigma}");
        }
        for (moved, sigma) in [(1, 5.109), (2, 7.209), (10, 16.129), (40, 32.258), (288, 86.556)] {
            assert!((least_sigma_of_moved(target, moved) - sigma).abs() < 1e-3, "{moved}");
        }
    }

    /// Two counts that change by 1 are like one that changes by √2 for Gaussian noise, and share ε for Laplace noise.
    #[test]
    fn two_changes_cost_what_they_must() {
        let sd = |curator: Result<Curator>| curator.unwrap().law().sd();
        let gaussian = |changes| sd(Curator::gaussian(1.0, 1e-8, changes));
        assert!((gaussian(ChangedCounts::Two) / (2f64.sqrt() * gaussian(ChangedCounts::One)) - 1.0).abs() < 0.01);
        let half = sd(Curator::laplace(0.5, ChangedCounts::One));
        assert!((sd(Curator::laplace(1.0, ChangedCounts::Two)) / half - 1.0).abs() < 1e-12);
    }

    /// α = 1e-4: 40 000 draws have the mean and the variance of the law; a shift of 0.03 sd is seen.
    #[test]
    fn draws_follow_the_law() {
        for curator in [
            Curator::laplace(1.0, ChangedCounts::One).unwrap(),
            Curator::gaussian(1.0, 1e-8, ChangedCounts::One).unwrap(),
        ] {
            let mut coins = SeededCoins::new(3);
            let draws: Vec<f64> = (0..40_000).map(|_| curator.law().draw(&mut coins).unwrap() as f64).collect();
            let mean = draws.iter().sum::<f64>() / 40_000.0;
            let square = draws.iter().map(|x| x * x).sum::<f64>() / 40_000.0;
            assert!(mean.abs() < 3.9 * curator.law().sd() / 200.0, "{mean}");
            // The fourth moment of Laplace noise is at most 7 times the squared variance.
            let spread = 3.9 * (6f64).sqrt() * curator.law().sd().powi(2) / 200.0;
            assert!((square - curator.law().sd().powi(2)).abs() < spread, "{square}");
        }
    }

    #[test]
    fn half_widths_hold_what_they_say_and_no_less_would() {
        let law = IntegerNoise::new(47, |x| (-(x.abs() as f64)).exp());
        for miss in [0.05, 1e-3, 2e-5] {
            let t = law.half_width(miss) as i64;
            let beyond = |t: i64| law.values().filter(|(x, _)| x.abs() > t).map(|(_, mass)| mass).sum::<f64>();
            assert!(beyond(t) <= miss && beyond(t - 1) > miss, "{miss}: {t}");
        }
    }

    #[test]
    fn two_draws_have_twice_the_variance() {
        let law = IntegerNoise::new(47, |x| (-(x.abs() as f64)).exp());
        assert!((law.twice().sd().powi(2) / law.sd().powi(2) - 2.0).abs() < 1e-9);
        assert!((law.twice().values().map(|(_, mass)| mass).sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
