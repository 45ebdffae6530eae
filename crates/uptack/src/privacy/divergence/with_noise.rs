//! The divergence of two classes where the noise of one aggregator is added to the count (`docs/accounting.md`, "One honest
//! aggregator").
//!
//! The law of the crowd's count is convolved with the noise by two passes over its window. Beyond the window the convolved law
//! is geometric, so that both tails are closed forms, however large the scale.

use super::many_classes::PairLaw;
use super::question::{Divergences, Question};
use super::two_classes::{Coefficient, Law, positive_sum};
use crate::certified::binomial::{Binomial, Coin, window};
use crate::certified::binomial_sum::sum_of_two;
use crate::certified::enclosure::Enclosure;
use crate::certified::rounding::{ROUNDOFF, down, up};
use crate::privacy::effort::Work;
use crate::privacy::likelihood::{Crowd, CrowdLaws, Direction, Likelihood, PerDirection, PerTruth, Weight};
use crate::privacy::views::{AddedNoise, Outcome};
use crate::truth::Truth;

/// A crowd in both directions, for a view of at most two classes with nothing outside.
pub(super) fn divergence(
    outcome: &Outcome,
    noise: &AddedNoise,
    crowd: Crowd,
    question: Question,
    work: &Work,
) -> Divergences {
    let weights = outcome.weights(question.growth);
    let [first, second] = outcome.classes[..] else {
        // Both truths write the same.
        return weights.map(|weights| Weight::positive_parts(&weights));
    };
    // What is cut may count against the second law, which carries the factor e^ε.
    let law = NoisyCount::new([first, second], noise, crowd, question.log_cut - question.growth.ln(), work);
    weights.map(|weights| law.positive_part(weights[0], weights[1], question.growth))
}

/// What a crowd shows of the target, from below.
pub(super) fn pair_laws(outcome: &Outcome, noise: &AddedNoise, crowd: Crowd, work: &Work) -> PerDirection<PairLaw> {
    let [first, second] = outcome.classes[..] else {
        return PerDirection::each(|_| PairLaw { losses: vec![(0.0, 1.0)], infinite: 0.0 });
    };
    let law = NoisyCount::new([first, second], noise, crowd, PAIR_CUT, work);
    PerDirection::each(|direction| law.pair_law([first, second], direction))
}

/// The logarithm of what is cut where no question says how much matters. A deeper cut makes the law longer and the lower end of
/// a composition no better.
const PAIR_CUT: f64 = -100.0;

/// Up to this many owners are added one by one, which is precise even where a class is very rare.
const FEW_OWNERS: u64 = 64;

/// The law of the crowd's count of the first class plus noise, on the window of the count.
struct NoisyCount {
    values: Vec<f64>,
    noise: AddedNoise,
    /// Of each value, and of the ratio of two neighbours.
    relative_error: f64,
    /// The mass of the crowd's count beyond the window at most.
    cut: f64,
}

impl NoisyCount {
    fn new(classes: [Likelihood; 2], noise: &AddedNoise, crowd: Crowd, log_cut: f64, work: &Work) -> Self {
        let laws = PerTruth::each(|truth| classes.map(|class| class[truth]));
        let count = PlainCount::new(CrowdLaws { owners: crowd, laws }.counts_of_first(), log_cut);
        let length = count.values.len();
        work.spend(4 * length as u64);
        let relative_error = count.relative_error + ROUNDOFF * (8.0 * length as f64 + 16.0);
        Self { values: convolved(&count.values, noise), noise: *noise, relative_error, cut: count.cut }
    }

    fn law(&self) -> Law<'_> {
        Law { values: &self.values, decay: self.noise.decay, gap: self.noise.gap }
    }

    /// Σ over k of (first·g(k−1) + second·g(k))₊.
    fn positive_part(&self, first: Weight, second: Weight, growth: f64) -> Enclosure {
        let one = Coefficient::new(first, 32.0);
        let other = Coefficient::new(second, 32.0).with_ratio_error(self.relative_error);
        let sum = positive_sum(one, other, self.law());
        let error = sum.error + (self.relative_error + self.cut) * (sum.value + sum.error) + growth * self.cut;
        Enclosure::around(sum.value, error, 2.0 * self.cut)
    }

    /// The losses and masses of all sums in one direction; each tail is one outcome, as the loss is the same all over it.
    fn pair_law(&self, [one, zero]: [Likelihood; 2], direction: Direction) -> PairLaw {
        let (first, second) = direction.truths();
        let loss = |(below, at): (f64, f64)| {
            let probability = |truth: Truth| one[truth] * below + zero[truth] * at;
            self.loss(probability(first), probability(second))
        };
        let law = self.law();
        PairLaw { losses: law.ends().into_iter().chain(law.inner()).filter_map(loss).collect(), infinite: 0.0 }
    }

    /// The loss of an outcome of these two probabilities and its mass, both from below; none where there is no mass.
    fn loss(&self, first: f64, second: f64) -> Option<(f64, f64)> {
        let relative = self.relative_error + self.cut + 8.0 * ROUNDOFF;
        let (likely, other) = (down(first, relative), up(second, relative) + self.cut);
        // A thousand roundings less: the logarithm and the quotient are a few.
        (likely > 0.0).then(|| ((likely / other).ln() - 1e3 * ROUNDOFF, likely))
    }
}

/// The law of the crowd's count of the first class without noise, on a window.
struct PlainCount {
    values: Vec<f64>,
    relative_error: f64,
    /// The mass beyond the window at most.
    cut: f64,
}

impl PlainCount {
    fn new(parts: [Binomial; 2], log_cut: f64) -> Self {
        let owners = parts[0].trials + parts[1].trials;
        if owners <= FEW_OWNERS {
            return Self::one_by_one(parts);
        }
        let (low, high) = window(&parts, log_cut);
        let counts = sum_of_two(parts[0], parts[1], low, high);
        let cut = if (low, high) == (0, owners) { 0.0 } else { 2.0 * log_cut.exp() };
        Self { values: counts.probability, relative_error: counts.relative_error, cut }
    }

    /// The law of few owners, who are added one by one.
    fn one_by_one(parts: [Binomial; 2]) -> Self {
        let coins = parts.into_iter().flat_map(|part| (0..part.trials).map(move |_| part.coin));
        let values = coins.fold(vec![1.0], with_one_trial);
        Self { relative_error: 8.0 * ROUNDOFF * values.len() as f64, values, cut: 0.0 }
    }
}

/// The law of one more trial added.
fn with_one_trial(mut law: Vec<f64>, coin: Coin) -> Vec<f64> {
    let mut before = 0.0;
    law.push(0.0);
    for value in &mut law {
        let here = *value;
        *value = coin.failure * here + coin.success * before;
        before = here;
    }
    law
}

/// g(k) = (1−a)/(1+a)·Σ f(x)·a^|k−x| on the numbers of f: what comes from below, and what comes from above.
fn convolved(law: &[f64], noise: &AddedNoise) -> Vec<f64> {
    let (decay, scale) = (noise.decay, noise.gap / (1.0 + noise.decay));
    let mut sums = vec![0.0; law.len()];
    let mut above = 0.0;
    for (sum, mass) in sums.iter_mut().zip(law).rev() {
        *sum = above;
        above = decay * (above + mass);
    }
    let mut below = 0.0;
    for (sum, mass) in sums.iter_mut().zip(law) {
        below = decay * below + mass;
        *sum = scale * (*sum + below);
    }
    sums
}
