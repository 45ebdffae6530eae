//! Classes of cells in exact integers: reduction to distinct ratios, local guarantees, floors.

use std::cmp::Ordering;

/// What a numerator is over: probabilities are integers over 2⁶⁴.
const UNIT: u128 = 1 << 64;

/// A set of cells with its probability under both truths, as numerators over 2⁶⁴.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Class {
    yes: u128,
    no: u128,
}

impl Class {
    /// A class with these numerators over 2⁶⁴; none where one of them is more than one whole.
    pub(crate) fn new(yes: u128, no: u128) -> Option<Self> {
        (yes <= UNIT && no <= UNIT).then_some(Self { yes, no })
    }

    /// Numerator of the probability under the truth *yes*.
    pub(crate) fn yes(&self) -> u128 {
        self.yes
    }

    /// Numerator of the probability under the truth *no*.
    pub(crate) fn no(&self) -> u128 {
        self.no
    }

    pub(crate) fn yes_probability(&self) -> f64 {
        self.yes as f64 / UNIT as f64
    }

    pub(crate) fn no_probability(&self) -> f64 {
        self.no as f64 / UNIT as f64
    }

    /// Both classes as one.
    pub(crate) fn merged(self, other: Self) -> Self {
        Self { yes: self.yes + other.yes, no: self.no + other.no }
    }

    fn is_empty(&self) -> bool {
        self.yes == 0 && self.no == 0
    }
}

/// Sums classes; the sum of disjoint classes is at most one whole.
pub(crate) fn total(classes: &[Class]) -> Class {
    classes.iter().fold(Class::default(), |sum, class| sum.merged(*class))
}

/// Joins classes of exactly equal ratio (they carry the same evidence) and drops empty ones; highest ratio first.
pub(crate) fn reduce(classes: impl IntoIterator<Item = Class>) -> Vec<Class> {
    let mut reduced: Vec<Class> = Vec::new();
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
pub(crate) fn ratio_order(a: &Class, b: &Class) -> Ordering {
    cross(a.yes, b.no).cmp(&cross(b.yes, a.no))
}

/// The product of two numerators; only 2⁶⁴·2⁶⁴ does not fit and is larger than everything that does.
fn cross(a: u128, b: u128) -> (bool, u128) {
    a.checked_mul(b).map_or((true, 0), |product| (false, product))
}

/// The largest |ln(yes/no)| over the classes, rounded up; infinite where one truth alone reaches a class.
pub(crate) fn local_epsilon(classes: &[Class]) -> f64 {
    classes.iter().filter(|class| !class.is_empty()).map(class_epsilon).fold(0.0, f64::max)
}

/// The largest finite |ln(yes/no)| over the classes, rounded up.
pub(crate) fn finite_epsilon(classes: &[Class]) -> f64 {
    classes.iter().filter(|class| class.yes > 0 && class.no > 0).map(class_epsilon).fold(0.0, f64::max)
}

/// The probability of classes that one truth alone reaches, as numerators for *yes* and *no*.
pub(crate) fn one_sided(classes: &[Class]) -> Class {
    let sum = |one: fn(&Class) -> u128, other: fn(&Class) -> u128| {
        classes.iter().filter(|class| other(class) == 0).map(one).sum::<u128>()
    };
    Class { yes: sum(Class::yes, Class::no), no: sum(Class::no, Class::yes) }
}

fn class_epsilon(class: &Class) -> f64 {
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
pub(crate) fn merge_to_three(classes: &[Class]) -> Vec<Class> {
    let mut merged = reduce(classes.iter().copied());
    while merged.len() > 3 {
        // Merging inner neighbours of least mass loses least; the outer ratios carry the tails.
        let inner = 1..merged.len() - 2;
        let lightest =
            inner.min_by_key(|&index| total(&merged[index..index + 2]).yes + total(&merged[index..index + 2]).no);
        let index = lightest.unwrap_or(1);
        let joined = merged[index].merged(merged[index + 1]);
        merged.splice(index..index + 2, [joined]);
    }
    reduce(merged)
}

/// Classes, at most three, of which the given ones are a garbling: a class between two retained ratios is split over them,
/// keeping its mass under both truths (rounded so that the outer ratios gain). Whatever holds of the result from above holds
/// of the original.
pub(crate) fn split_to_three(classes: &[Class]) -> Vec<Class> {
    let sorted = reduce(classes.iter().copied());
    if sorted.len() <= 3 {
        return sorted;
    }
    let heaviest = (1..sorted.len() - 1).max_by_key(|&index| sorted[index].yes + sorted[index].no).unwrap_or(1);
    let retained = [0, heaviest, sorted.len() - 1];
    let mut result: Vec<[f64; 2]> =
        retained.iter().map(|&index| [sorted[index].yes as f64, sorted[index].no as f64]).collect();
    let ends: Vec<[f64; 2]> = result.clone();
    for (index, class) in sorted.iter().enumerate().filter(|(index, _)| !retained.contains(index)) {
        let upper = usize::from(index > heaviest);
        let [high, low] = [ends[upper], ends[upper + 1]];
        let (p, q) = (class.yes as f64, class.no as f64);
        // Solve s·high + t·low = (p, q); the determinant is positive because the ratios differ.
        let determinant = high[0] * low[1] - low[0] * high[1];
        let (s, t) = ((p * low[1] - low[0] * q) / determinant, (high[0] * q - p * high[1]) / determinant);
        for side in 0..2 {
            result[upper][side] += s * high[side];
            result[upper + 1][side] += t * low[side];
        }
    }
    widened(&result, total(&sorted))
}

/// Back to integers: the middle gives, the ends take, so that rounding only spreads the ratios.
fn widened(classes: &[[f64; 2]], whole: Class) -> Vec<Class> {
    let slack = |mass: f64| mass * 64.0 * f64::EPSILON + 1.0;
    let [high, _, low] = [classes[0], classes[1], classes[2]];
    // The evidence class of each side grows, the counter-evidence shrinks; the middle keeps the totals.
    let top = [(high[0] + slack(high[0])) as u128, (high[1] - slack(high[1])).max(0.0) as u128];
    let bottom = [(low[0] - slack(low[0])).max(0.0) as u128, (low[1] + slack(low[1])) as u128];
    let middle = [whole.yes.saturating_sub(top[0] + bottom[0]), whole.no.saturating_sub(top[1] + bottom[1])];
    reduce([top, middle, bottom].iter().map(|[yes, no]| Class { yes: *yes, no: *no }))
}
