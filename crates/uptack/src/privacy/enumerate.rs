//! Every histogram of a small crowd, one by one.

use super::binomial::ROUNDOFF;
use super::bracket::Bracket;
use super::piece::{Direction, Share};

/// One observation about the target, with the classes that it may be in and those that only others can be in.
#[derive(Clone, Debug)]
pub(crate) struct Detail {
    pub(crate) inside: Vec<Share>,
    pub(crate) outside: Vec<Share>,
}

impl Detail {
    fn groups(&self) -> usize {
        self.inside.len() + self.outside.len()
    }

    /// Elementary steps that one crowd of `others` owners takes.
    pub(crate) fn cost(&self, others: u64) -> u64 {
        let axes = self.groups().saturating_sub(1) as u32;
        (others + 2).saturating_pow(axes).saturating_mul(self.groups() as u64).saturating_mul(others + 2)
    }

    /// The divergence in both directions when the others are `yes` yes- and `no` no-owners, from all histograms.
    pub(crate) fn divergence(&self, yes: u64, no: u64, growth: f64) -> [Bracket; 2] {
        let shares: Vec<Share> = self.inside.iter().chain(&self.outside).copied().collect();
        let law = |yes: bool| shares.iter().map(|share| share.of(yes)).collect::<Vec<f64>>();
        let side = (yes + no + 2) as usize;
        // The last class needs no axis: its count is what the others leave. The first classes are the target's.
        let strides: Vec<usize> =
            (0..shares.len()).map(|axis| if axis + 1 == shares.len() { 0 } else { side.pow(axis as u32) }).collect();
        let mut crowd = vec![0.0; side.pow(shares.len() as u32 - 1)];
        crowd[0] = 1.0;
        for truth in std::iter::repeat_n(true, yes as usize).chain(std::iter::repeat_n(false, no as usize)) {
            crowd = with_owner(&crowd, &law(truth), &strides);
        }
        let roundings = 8.0 * ROUNDOFF * (yes + no + 4) as f64;
        Direction::BOTH.map(|direction| {
            let weights: Vec<_> = self.inside.iter().map(|share| share.weight(direction, growth)).collect();
            let value = |index: usize, of: &dyn Fn(usize) -> f64| -> f64 {
                (0..weights.len())
                    .filter(|&class| index >= strides[class])
                    .map(|class| of(class) * crowd[index - strides[class]])
                    .sum()
            };
            let (mut sum, mut error) = (0.0, 0.0);
            for index in 0..crowd.len() {
                let difference = value(index, &|class| weights[class].value());
                let slack = roundings * value(index, &|class| weights[class].magnitude());
                if difference > -slack {
                    sum += difference.max(0.0);
                    error += slack;
                }
            }
            Bracket::around(sum, error, 0.0)
        })
    }
}

fn with_owner(crowd: &[f64], law: &[f64], strides: &[usize]) -> Vec<f64> {
    let mut next = vec![0.0; crowd.len()];
    for (index, mass) in crowd.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
        for (probability, stride) in law.iter().zip(strides) {
            next[index + stride] += probability * mass;
        }
    }
    next
}
