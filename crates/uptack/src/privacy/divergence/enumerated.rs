//! Every histogram of a small crowd, one by one (`docs/accounting.md`, "Few owners").

use super::Divergences;
use super::two_classes::Positive;
use crate::certified::rounding::Enclosure;
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::likelihood::{Crowd, DirectionBounds, Likelihood, PerDirection, PerTruth, Weight, weights};
use crate::privacy::views::DetailedOutcome;
use crate::truth::Truth;

/// Elementary steps that all crowds of `others` owners take: at each halving all owners are added once.
pub(super) fn cost(outcome: &DetailedOutcome, others: u64) -> u64 {
    let axes = outcome.axes() as u32;
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
    histograms.halve(&histograms.nobody(), (0, others), &mut |law| found.push(histograms.evaluate(law, growth)));
    found
}

/// What is left of the divergence when ε grows without end, and from which ε on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Remainder {
    /// The mass of the histograms that only the first truth can lead to, in each direction.
    pub(crate) certain: DirectionBounds,
    /// The largest |ln| of a ratio that is neither zero nor infinite.
    pub(crate) largest: f64,
}

impl Remainder {
    pub(super) fn plus(self, other: Self) -> Self {
        let certain = self.certain.with(other.certain, |one, other| one + other);
        Self { certain, largest: self.largest.max(other.largest) }
    }
}

/// The remainder in all crowds of `others` owners, from none to all of them *yes*.
pub(super) fn remainders(outcome: &DetailedOutcome, others: u64) -> Vec<Remainder> {
    let histograms = Histograms::new(outcome, others);
    let mut found = Vec::with_capacity(others as usize + 1);
    histograms.halve(&histograms.nobody(), (0, others), &mut |law| found.push(histograms.remainder(law)));
    found
}

/// The array of all histograms of a crowd with the target: of its classes, of which the last needs no axis because its count follows
/// from the others, or of the tallies that its classes add to. The classes that the target may be in come first.
struct Histograms<'a> {
    outcome: &'a DetailedOutcome,
    others: u64,
    /// By how much an index grows when an owner of each class is added.
    strides: Vec<usize>,
}

impl<'a> Histograms<'a> {
    fn new(outcome: &'a DetailedOutcome, others: u64) -> Self {
        let side = others as usize + 2;
        let stride = |class: usize| outcome.axes_of(class).map(|axis| side.pow(axis as u32)).sum();
        Self { outcome, others, strides: (0..outcome.count()).map(stride).collect() }
    }

    /// The law of the histogram of no owners, with room for all others and the target.
    fn nobody(&self) -> Vec<f64> {
        let mut law = vec![0.0; (self.others as usize + 2).pow(self.outcome.axes() as u32)];
        law[0] = 1.0;
        law
    }

    fn with_owners(&self, law: &[f64], truth: Truth, owners: u64) -> Vec<f64> {
        let classes = self.outcome.inside.iter().chain(&self.outcome.outside);
        let probabilities: Vec<f64> = classes.map(|class| class[truth]).collect();
        (0..owners).fold(law.to_vec(), |law, _| with_owner(&law, &probabilities, &self.strides))
    }

    /// All crowds with a number of yes-owners in a range, given the law of those owners who are in all of them.
    fn halve(&self, common: &[f64], (from, to): (u64, u64), visit: &mut dyn FnMut(&[f64])) {
        if from == to {
            return visit(common);
        }
        let middle = from + (to - from) / 2;
        self.halve(&self.with_owners(common, Truth::No, to - middle), (from, middle), visit);
        self.halve(&self.with_owners(common, Truth::Yes, middle + 1 - from), (middle + 1, to), visit);
    }

    /// The remainder in a crowd with this law.
    fn remainder(&self, law: &[f64]) -> Remainder {
        let laws = PerTruth::each(|truth| weights_of(&self.outcome.inside, truth));
        let mut found = Remainder { certain: PerDirection::both(0.0), largest: 0.0 };
        for index in 0..law.len() {
            let seen = PerTruth::each(|truth| self.with_target(law, index, &laws[truth], |weight| *weight));
            if seen.yes > 0.0 && seen.no > 0.0 {
                found.largest = found.largest.max((seen.yes / seen.no).ln().abs());
            } else {
                let certain = PerDirection { yes_over_no: seen.yes, no_over_yes: seen.no };
                found.certain = found.certain.with(certain, |sum, mass| sum + mass);
            }
        }
        found
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
    fn with_target<W>(&self, law: &[f64], index: usize, weights: &[W], of: impl Fn(&W) -> f64) -> f64 {
        let strides = weights.iter().zip(&self.strides).filter(|(_, stride)| index >= **stride);
        strides.map(|(weight, stride)| of(weight) * law[index - stride]).sum()
    }
}

/// The probabilities of the classes under one truth.
fn weights_of(classes: &[Likelihood], truth: Truth) -> Vec<f64> {
    classes.iter().map(|class| class[truth]).collect()
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
