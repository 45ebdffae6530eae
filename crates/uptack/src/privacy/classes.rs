//! Classes of cells in exact integers: cells of equal ratio are one class (`docs/accounting.md`, "Classes"), and what follows
//! from the ratios alone: local guarantees, the floor, and views with at most three classes that bound a finer one.

use std::cmp::Ordering;

use super::likelihood::{ExactLikelihood, Likelihood};
use crate::law::ratio_order;

/// The denominator of all numerators.
const WHOLE: f64 = (1_u128 << 64) as f64;

impl ExactLikelihood {
    /// Both probabilities, rounded once.
    pub(crate) fn rounded(self) -> Likelihood {
        self.map(|numerator| numerator as f64 / WHOLE)
    }

    /// Both numerators, rounded once.
    fn to_doubles(self) -> Likelihood {
        self.map(|numerator| numerator as f64)
    }

    /// Both classes as one.
    fn merged(self, other: Self) -> Self {
        Self { yes: self.yes + other.yes, no: self.no + other.no }
    }

    /// Whether no truth reaches the class.
    pub(crate) fn is_empty(&self) -> bool {
        self.yes == 0 && self.no == 0
    }

    fn mass(&self) -> u128 {
        self.yes + self.no
    }
}

/// Sums classes; the sum of disjoint classes is at most one whole.
pub(crate) fn total(classes: &[ExactLikelihood]) -> ExactLikelihood {
    classes.iter().fold(ExactLikelihood::default(), |sum, class| sum.merged(*class))
}

/// Joins classes of exactly equal ratio (they carry the same evidence) and drops empty ones; highest ratio first.
pub(crate) fn reduce(classes: impl IntoIterator<Item = ExactLikelihood>) -> Vec<ExactLikelihood> {
    let mut reduced: Vec<ExactLikelihood> = Vec::new();
    for class in classes.into_iter().filter(|class| !class.is_empty()) {
        match reduced.iter_mut().find(|kept| ratio_order(kept, &class) == Ordering::Equal) {
            Some(kept) => *kept = kept.merged(class),
            None => reduced.push(class),
        }
    }
    reduced.sort_by(|a, b| ratio_order(b, a));
    reduced
}

/// The largest |ln(yes/no)| over the classes, rounded up; infinite where one truth alone reaches a class.
pub(crate) fn local_epsilon(classes: &[ExactLikelihood]) -> f64 {
    classes.iter().filter(|class| !class.is_empty()).map(class_epsilon).fold(0.0, f64::max)
}

/// The largest finite |ln(yes/no)| over the classes, rounded up.
pub(crate) fn finite_epsilon(classes: &[ExactLikelihood]) -> f64 {
    classes.iter().filter(|class| class.yes > 0 && class.no > 0).map(class_epsilon).fold(0.0, f64::max)
}

/// The probability under each truth of the classes that this truth alone reaches.
pub(crate) fn one_sided(classes: &[ExactLikelihood]) -> ExactLikelihood {
    ExactLikelihood::each(|truth| {
        classes.iter().filter(|class| class[truth.other()] == 0).map(|class| class[truth]).sum()
    })
}

fn class_epsilon(class: &ExactLikelihood) -> f64 {
    let (large, small) = (class.yes.max(class.no), class.yes.min(class.no));
    if small == 0 {
        return f64::INFINITY;
    }
    // The difference is exact; the quotient and the logarithm lose at most a few units in the last place.
    let excess = (large - small) as f64 / small as f64;
    excess.ln_1p() * (1.0 + 16.0 * f64::EPSILON)
}

/// The same classes garbled to at most three, by merging neighbours: a lower bound for the result is one for the original.
pub(crate) fn merge_to_three(classes: &[ExactLikelihood]) -> Vec<ExactLikelihood> {
    let mut merged = reduce(classes.iter().copied());
    while merged.len() > 3 {
        let index = lightest_inner_pair(&merged);
        let joined = merged[index].merged(merged[index + 1]);
        merged.splice(index..index + 2, [joined]);
    }
    reduce(merged)
}

/// The first of the two inner neighbours of least mass. Merging these loses least; the outer ratios carry the tails.
fn lightest_inner_pair(classes: &[ExactLikelihood]) -> usize {
    let inner = 1..classes.len() - 2;
    inner.min_by_key(|&index| total(&classes[index..index + 2]).mass()).unwrap_or(1)
}

/// At most three classes whose garbling the given ones are: a class between two retained ratios is split over them, keeping
/// its mass under both truths (rounded so that the outer ratios gain). An upper bound for the result is one for the original.
pub(crate) fn split_to_three(classes: &[ExactLikelihood]) -> Vec<ExactLikelihood> {
    let sorted = reduce(classes.iter().copied());
    if sorted.len() <= 3 {
        return sorted;
    }
    let heaviest = (1..sorted.len() - 1).max_by_key(|&index| sorted[index].mass()).unwrap_or(1);
    let retained = [0, heaviest, sorted.len() - 1];
    let mut split = RetainedClasses::new(retained.map(|index| sorted[index].to_doubles()));
    for (index, class) in sorted.iter().enumerate().filter(|(index, _)| !retained.contains(index)) {
        split.add(class.to_doubles(), usize::from(index > heaviest));
    }
    widened(split.masses, total(&sorted))
}

/// Three classes by falling ratio, and their masses together with those of the classes that were split over them.
struct RetainedClasses {
    classes: [Likelihood; 3],
    masses: [Likelihood; 3],
}

impl RetainedClasses {
    fn new(classes: [Likelihood; 3]) -> Self {
        Self { classes, masses: classes }
    }

    /// Splits a class over the two retained ones that its ratio lies between: `upper` and the next.
    fn add(&mut self, class: Likelihood, upper: usize) {
        let (high, low) = (self.classes[upper], self.classes[upper + 1]);
        let (of_high, of_low) = shares(class, high, low);
        self.masses[upper] = self.masses[upper].plus_times(of_high, high);
        self.masses[upper + 1] = self.masses[upper + 1].plus_times(of_low, low);
    }
}

/// The s and t with s·high + t·low = (p, q). The ratios of the three classes fall from high to low, so that neither is negative.
fn shares(Likelihood { yes: p, no: q }: Likelihood, high: Likelihood, low: Likelihood) -> (f64, f64) {
    // Positive, because the ratios differ.
    let determinant = high.yes * low.no - low.yes * high.no;
    ((p * low.no - low.yes * q) / determinant, (high.yes * q - p * high.no) / determinant)
}

/// Back to integers: round the outer classes outward; the middle absorbs the difference. So rounding only spreads the ratios.
fn widened([high, _, low]: [Likelihood; 3], whole: ExactLikelihood) -> Vec<ExactLikelihood> {
    // The evidence class of each side grows, the counter-evidence shrinks; the middle keeps the totals.
    let top = ExactLikelihood { yes: certainly_above(high.yes), no: certainly_below(high.no) };
    let bottom = ExactLikelihood { yes: certainly_below(low.yes), no: certainly_above(low.no) };
    let middle = ExactLikelihood::each(|truth| whole[truth].saturating_sub(top[truth] + bottom[truth]));
    reduce([top, middle, bottom])
}

fn certainly_above(mass: f64) -> u128 {
    (mass + mass_error(mass)) as u128
}

fn certainly_below(mass: f64) -> u128 {
    (mass - mass_error(mass)).max(0.0) as u128
}

/// How far a mass that was added up from shares may be off, and one more for the rounding to an integer.
fn mass_error(mass: f64) -> f64 {
    mass * 64.0 * f64::EPSILON + 1.0
}
