//! What one owner adds to the published sum, as the search moves it, and the noise that it needs.

use crate::noise::SummedBit;
use crate::plan::law::Law;

/// A bit that owners of one truth mostly write and owners of the other truth mostly do not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bit {
    /// How often owners of the first truth do not write it.
    pub(super) missed: f64,
    /// How often owners of the other truth do.
    pub(super) stray: f64,
    /// Whether it is the no-owners who mostly write it.
    pub(super) of_no: bool,
}

impl Bit {
    /// The bit of a channel.
    pub(super) fn of(law: SummedBit) -> Self {
        let of_no = law.no > law.yes;
        let (often, rarely) = if of_no { (law.no, law.yes) } else { (law.yes, law.no) };
        Self { missed: often.complement().to_f64(), stray: rarely.to_f64(), of_no }
    }

    /// By how much the two truths differ: p − q.
    pub(super) fn lean(&self) -> f64 {
        1.0 - self.missed - self.stray
    }

    /// The variance of the bits of `often` owners who should write it and `rarely` owners who should not.
    pub(super) fn variance_of(&self, often: f64, rarely: f64) -> f64 {
        often * one_variance(self.missed) + rarely * one_variance(self.stray)
    }

    /// The least a = e^(−1/t) with which one honest aggregator keeps ε = ln(1 + growth). Zero if the owners' own coins keep
    /// it.
    ///
    /// With d = p − q, m = min(1 − p, q) and g = 1 − a, both ratios of the closed form are at most 1 + growth exactly if
    /// g·(d + growth·(1 − m)) ≤ growth.
    pub(super) fn decay(&self, growth: f64) -> f64 {
        let (lean, least) = (self.lean(), self.missed.min(self.stray));
        ((lean - growth * least) / (lean + growth * (1.0 - least))).max(0.0)
    }

    /// The law with this bit in which the fewest take part: nobody says 0.
    pub(super) fn silent_law(&self) -> Law {
        Law::one_sided(1.0 - self.missed, self.stray, self.of_no)
    }
}

/// The variance of one owner's bit.
fn one_variance(probability: f64) -> f64 {
    probability * (1.0 - probability)
}

/// The variance of what both aggregators add together, each with noise of this a.
pub(super) fn variance_of_both(decay: f64) -> f64 {
    4.0 * decay / (1.0 - decay).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiscreteLaplace;
    use crate::privacy::approximate_one_aggregator;

    /// The closed form solved for a is the closed form.
    #[test]
    fn the_decay_is_the_least_that_keeps_epsilon() {
        for (missed, stray) in [(0.0, 0.0), (1e-4, 1e-4), (0.3, 1e-3), (1e-3, 0.4), (0.45, 0.45)] {
            for epsilon in [0.05f64, 1.0, 4.0] {
                let bit = Bit { missed, stray, of_no: false };
                let decay = bit.decay(epsilon.exp_m1());
                let claim = |decay: f64| approximate_one_aggregator(1.0 - missed, stray, -1.0 / decay.ln());
                match decay > 0.0 {
                    true => assert!((claim(decay) / epsilon - 1.0).abs() < 1e-9, "{bit:?} {epsilon}"),
                    false => assert!(claim(1e-9) <= epsilon, "{bit:?} {epsilon}"),
                }
            }
        }
    }

    #[test]
    fn both_add_four_times_what_the_decay_says() {
        let noise: DiscreteLaplace = "laplace(scale=2.5)".parse().unwrap();
        assert!((variance_of_both(noise.decay()) / (2.0 * noise.variance()) - 1.0).abs() < 1e-12);
    }
}
