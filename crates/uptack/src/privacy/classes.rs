//! Classes of cells in exact integers: cells of equal ratio are one class (`docs/accounting.md`, "Classes"), and what follows
//! from the ratios alone: local guarantees, the floor, and views with at most three classes that bound a finer one.

use std::cmp::Ordering;

use super::likelihood::{ExactLikelihood, Likelihood};

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

    fn is_empty(&self) -> bool {
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

/// Compares yes/no of two nonempty classes exactly, by cross multiplication.
pub(crate) fn ratio_order(a: &ExactLikelihood, b: &ExactLikelihood) -> Ordering {
    cross(a.yes, b.no).cmp(&cross(b.yes, a.no))
}

/// The product of two numerators; only 2⁶⁴·2⁶⁴ does not fit and is larger than everything that does.
fn cross(a: u128, b: u128) -> (bool, u128) {
    a.checked_mul(b).map_or((true, 0), |product| (false, product))
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
        let alone = classes.iter().filter(|class| class[truth.other()] == 0);
        alone.map(|class| class[truth]).sum::<u128>()
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

/// The same classes garbled to at most three, by merging neighbours: whatever holds of the result from below holds of
/// the original.
pub(crate) fn merge_to_three(classes: &[ExactLikelihood]) -> Vec<ExactLikelihood> {
    let mut merged = reduce(classes.iter().copied());
    while merged.len() > 3 {
        // Merging inner neighbours of least mass loses least; the outer ratios carry the tails.
        let inner = 1..merged.len() - 2;
        let lightest = inner.min_by_key(|&index| total(&merged[index..index + 2]).mass());
        let index = lightest.unwrap_or(1);
        let joined = merged[index].merged(merged[index + 1]);
        merged.splice(index..index + 2, [joined]);
    }
    reduce(merged)
}

/// Classes, at most three, of which the given ones are a garbling: a class between two retained ratios is split over them,
/// keeping its mass under both truths (rounded so that the outer ratios gain). Whatever holds of the result from above holds
/// of the original.
pub(crate) fn split_to_three(classes: &[ExactLikelihood]) -> Vec<ExactLikelihood> {
    let sorted = reduce(classes.iter().copied());
    if sorted.len() <= 3 {
        return sorted;
    }
    let heaviest = (1..sorted.len() - 1).max_by_key(|&index| sorted[index].mass()).unwrap_or(1);
    let retained = [0, heaviest, sorted.len() - 1];
    let ends = retained.map(|index| sorted[index].to_doubles());
    let mut result = ends;
    for (index, class) in sorted.iter().enumerate().filter(|(index, _)| !retained.contains(index)) {
        let upper = usize::from(index > heaviest);
        let [high, low] = [ends[upper], ends[upper + 1]];
        let (of_high, of_low) = shares(class.to_doubles(), high, low);
        result[upper] = Likelihood::each(|truth| result[upper][truth] + of_high * high[truth]);
        result[upper + 1] = Likelihood::each(|truth| result[upper + 1][truth] + of_low * low[truth]);
    }
    widened(result, total(&sorted))
}

/// The s and t with s·high + t·low = (p, q). The ratios of the three classes fall from high to low, so that neither is negative.
fn shares(Likelihood { yes: p, no: q }: Likelihood, high: Likelihood, low: Likelihood) -> (f64, f64) {
    // Positive, because the ratios differ.
    let determinant = high.yes * low.no - low.yes * high.no;
    ((p * low.no - low.yes * q) / determinant, (high.yes * q - p * high.no) / determinant)
}

/// Back to integers: the middle gives, the ends take, so that rounding only spreads the ratios.
fn widened([high, _, low]: [Likelihood; 3], whole: ExactLikelihood) -> Vec<ExactLikelihood> {
    let slack = |mass: f64| mass * 64.0 * f64::EPSILON + 1.0;
    let more = |mass: f64| (mass + slack(mass)) as u128;
    let less = |mass: f64| (mass - slack(mass)).max(0.0) as u128;
    // The evidence class of each side grows, the counter-evidence shrinks; the middle keeps the totals.
    let top = ExactLikelihood { yes: more(high.yes), no: less(high.no) };
    let bottom = ExactLikelihood { yes: less(low.yes), no: more(low.no) };
    let middle = ExactLikelihood::each(|truth| whole[truth].saturating_sub(top[truth] + bottom[truth]));
    reduce([top, middle, bottom])
}
