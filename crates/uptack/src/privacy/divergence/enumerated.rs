//! Every histogram of a small crowd, one by one (`docs/accounting.md`, "Few owners").

use super::Divergences;
use super::two_classes::Positive;
use crate::certified::rounding::Enclosure;
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::likelihood::{Crowd, PerDirection, Weight, weights};
use crate::privacy::views::DetailedOutcome;
use crate::truth::Truth;

/// Elementary steps that all crowds of `others` owners take: at each halving all owners are added once.
pub(super) fn cost(outcome: &DetailedOutcome, others: u64) -> u64 {
    let axes = outcome.count().saturating_sub(1) as u32;
    let halvings = u64::from(u64::BITS - others.leading_zeros()) + 1;
    let additions = (others + 2).saturating_mul(halvings);
    (others + 2).saturating_pow(axes).saturating_mul(outcome.count() as u64).saturating_mul(additions)
}

/// The divergence in both directions in one crowd, from all histograms.
pub(super) fn divergence(outcome: &DetailedOutcome, crowd: Crowd, growth: f64) -> Divergences {
    let histograms = Histograms::new(outcome, crowd.size());
    let law = histograms.with_owners(&histograms.nobody(), Truth::Yes, crowd.yes);
    histograms.evaluate(&histograms.with_owners(&law, Truth::No, crowd.no), growth)
}

/// The divergences in all crowds of `others` owners, from none to all of them *yes*.
pub(super) fn divergences(outcome: &DetailedOutcome, others: u64, growth: f64) -> Vec<Divergences> {
    let histograms = Histograms::new(outcome, others);
    let mut found = Vec::with_capacity(others as usize + 1);
    histograms.halve(&histograms.nobody(), (0, others), growth, &mut found);
    found
}

/// The array of all histograms of a crowd with the target. The last class needs no axis: its count follows from the others. The
/// classes that the target may be in come first.
struct Histograms<'a> {
    outcome: &'a DetailedOutcome,
    others: u64,
    /// By how much an index grows when an owner of each class is added.
    strides: Vec<usize>,
}

impl<'a> Histograms<'a> {
    fn new(outcome: &'a DetailedOutcome, others: u64) -> Self {
        let (side, classes) = (others as usize + 2, outcome.count());
        let strides = (0..classes).map(|axis| if axis + 1 == classes { 0 } else { side.pow(axis as u32) }).collect();
        Self { outcome, others, strides }
    }

    /// The law of the histogram of no owners, with room for all others and the target.
    fn nobody(&self) -> Vec<f64> {
        let mut law = vec![0.0; (self.others as usize + 2).pow(self.outcome.count() as u32 - 1)];
        law[0] = 1.0;
        law
    }

    fn with_owners(&self, law: &[f64], truth: Truth, owners: u64) -> Vec<f64> {
        let classes = self.outcome.inside.iter().chain(&self.outcome.outside);
        let probabilities: Vec<f64> = classes.map(|class| class[truth]).collect();
        (0..owners).fold(law.to_vec(), |law, _| with_owner(&law, &probabilities, &self.strides))
    }

    /// All crowds with a number of yes-owners in a range, given the law of those owners who are in all of them.
    fn halve(&self, common: &[f64], (from, to): (u64, u64), growth: f64, found: &mut Vec<Divergences>) {
        if from == to {
            found.push(self.evaluate(common, growth));
            return;
        }
        let middle = from + (to - from) / 2;
        self.halve(&self.with_owners(common, Truth::No, to - middle), (from, middle), growth, found);
        self.halve(&self.with_owners(common, Truth::Yes, middle + 1 - from), (middle + 1, to), growth, found);
    }

    /// The divergence in both directions in a crowd with this law.
    fn evaluate(&self, law: &[f64], growth: f64) -> Divergences {
        PerDirection::each(|direction| {
            self.positive_part(law, &Vec::from_iter(weights(&self.outcome.inside, direction, growth)))
        })
    }

    /// Σ over the histograms h of (Σ_c w_c·G(h − e_c))₊, where G is the law of the others' histogram.
    fn positive_part(&self, law: &[f64], weights: &[Weight]) -> Enclosure {
        let roundings = 8.0 * ROUNDOFF * (self.others + 4) as f64;
        let mut sum = Positive::default();
        for index in 0..law.len() {
            let difference = self.with_target(law, index, weights, Weight::value);
            let slack = roundings * self.with_target(law, index, weights, Weight::magnitude);
            sum.add(difference, slack);
        }
        Enclosure::around(sum.value, sum.error, 0.0)
    }

    /// Σ over the target's classes c of a function of w_c times G(h − e_c), h the histogram at this index.
    #[inline]
    fn with_target(&self, law: &[f64], index: usize, weights: &[Weight], of: impl Fn(&Weight) -> f64) -> f64 {
        let strides = weights.iter().zip(&self.strides).filter(|(_, stride)| index >= **stride);
        strides.map(|(weight, stride)| of(weight) * law[index - stride]).sum()
    }
}

fn with_owner(law: &[f64], probabilities: &[f64], strides: &[usize]) -> Vec<f64> {
    let mut next = vec![0.0; law.len()];
    for (index, mass) in law.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
        for (probability, stride) in probabilities.iter().zip(strides) {
            next[index + stride] += probability * mass;
        }
    }
    next
}
