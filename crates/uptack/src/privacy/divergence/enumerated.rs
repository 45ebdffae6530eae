//! Every histogram of a small crowd, one by one.

use super::many_classes::Member;
use crate::certified::binomial::ROUNDOFF;
use crate::certified::enclosure::Bracket;
use crate::privacy::likelihood::{Direction, Share};

/// One observation about the target, with the classes that it may be in and those that only others can be in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Detail {
    pub(crate) inside: Vec<Share>,
    pub(crate) outside: Vec<Share>,
}

impl Detail {
    /// Whether there are three classes at most and no more than one of them is only the others', or the target's class is certain,
    /// so that the others tell nothing.
    pub(crate) fn is_small(&self) -> bool {
        self.inside.len() <= 1 || self.groups() <= 3 && self.outside.len() <= 1
    }

    /// All classes with the target's weights, which are zero where only others are.
    pub(crate) fn members(&self, direction: Direction, growth: f64) -> Vec<Member> {
        let nothing = Share { yes: 0.0, no: 0.0 };
        let inside = self.inside.iter().map(|share| share.member(share.weight(direction, growth)));
        inside.chain(self.outside.iter().map(|share| share.member(nothing.weight(direction, growth)))).collect()
    }

    /// The same with the truths exchanged.
    pub(crate) fn mirrored(&self) -> Self {
        let exchange =
            |shares: &[Share]| shares.iter().rev().map(|share| Share { yes: share.no, no: share.yes }).collect();
        Self { inside: exchange(&self.inside), outside: exchange(&self.outside) }
    }

    fn groups(&self) -> usize {
        self.inside.len() + self.outside.len()
    }

    /// Elementary steps that all crowds of `others` owners take: at each halving all owners are added once.
    pub(crate) fn cost(&self, others: u64) -> u64 {
        let axes = self.groups().saturating_sub(1) as u32;
        let halvings = u64::from(u64::BITS - others.leading_zeros()) + 1;
        let additions = (others + 2).saturating_mul(halvings);
        (others + 2).saturating_pow(axes).saturating_mul(self.groups() as u64).saturating_mul(additions)
    }

    /// The divergences in all crowds of `others` owners, from none to all of them *yes*.
    pub(crate) fn divergences(&self, others: u64, growth: f64) -> Vec<[Bracket; 2]> {
        let mut found = Vec::with_capacity(others as usize + 1);
        self.halve(&self.nobody(others), (0, others), others, growth, &mut found);
        found
    }

    /// All crowds with a number of yes-owners in a range, given the crowd of those owners who are in all of them.
    fn halve(&self, common: &[f64], (from, to): (u64, u64), others: u64, growth: f64, found: &mut Vec<[Bracket; 2]>) {
        if from == to {
            found.push(self.evaluate(common, others, growth));
            return;
        }
        let middle = from + (to - from) / 2;
        self.halve(&self.with_owners(common, false, to - middle, others), (from, middle), others, growth, found);
        self.halve(&self.with_owners(common, true, middle + 1 - from, others), (middle + 1, to), others, growth, found);
    }

    /// The law of the histogram of no owners, with room for `others` and the target.
    fn nobody(&self, others: u64) -> Vec<f64> {
        let mut crowd = vec![0.0; (others as usize + 2).pow(self.groups() as u32 - 1)];
        crowd[0] = 1.0;
        crowd
    }

    /// The last class needs no axis: its count is what the others leave. The first classes are the target's.
    fn strides(&self, others: u64) -> Vec<usize> {
        let side = others as usize + 2;
        let classes = self.groups();
        (0..classes).map(|axis| if axis + 1 == classes { 0 } else { side.pow(axis as u32) }).collect()
    }

    fn with_owners(&self, crowd: &[f64], yes: bool, owners: u64, others: u64) -> Vec<f64> {
        let law: Vec<f64> = self.inside.iter().chain(&self.outside).map(|share| share.of(yes)).collect();
        let strides = self.strides(others);
        (0..owners).fold(crowd.to_vec(), |crowd, _| with_owner(&crowd, &law, &strides))
    }

    /// The divergence in both directions when the others are `yes` yes- and `no` no-owners, from all histograms.
    pub(crate) fn divergence(&self, yes: u64, no: u64, growth: f64) -> [Bracket; 2] {
        let others = yes + no;
        let crowd = self.with_owners(&self.nobody(others), true, yes, others);
        self.evaluate(&self.with_owners(&crowd, false, no, others), others, growth)
    }

    /// The divergence in both directions in a crowd of `others` owners with this law.
    fn evaluate(&self, crowd: &[f64], others: u64, growth: f64) -> [Bracket; 2] {
        let strides = self.strides(others);
        let roundings = 8.0 * ROUNDOFF * (others + 4) as f64;
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
