//! Sums of independent integer scores, by their characteristic function under a tilt.
//!
//! A score stands for a real number on a lattice. The transform's error is absolute; a tilt that moves the mean of the sum to
//! the place that is asked about makes it relative to the answer (`docs/accounting.md`, "Sums of scores").

use std::f64::consts::E;

use super::circle::{FallingTerms, Roots};
use super::root::half_octaves;
use super::root::newton;
use super::rounding::ROUNDOFF;
use super::score_group::ScoreGroup;
use super::spectrum::{self, VANISHING};

/// The sum of the scores of several groups of owners.
#[derive(Clone, Debug)]
pub(crate) struct ScoreSum {
    pub(crate) groups: Vec<ScoreGroup>,
}

/// Sums that the transform represents, and how little of the tilted law lies outside on either side, as a logarithm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SumSupport {
    pub(crate) low: i64,
    pub(crate) high: i64,
    pub(crate) log_outside: f64,
}

impl SumSupport {
    /// From the lowest to the highest sum.
    pub(crate) fn span(&self) -> i64 {
        self.high - self.low
    }

    /// The nodes of a circle on which no two sums of the window fall together.
    fn length(&self) -> usize {
        ((self.span() + 1) as usize).next_power_of_two().max(2)
    }

    /// How much of the tilted law lies outside on either side, at most.
    fn outside(&self) -> f64 {
        self.log_outside.exp()
    }
}

/// The tilted law of a sum on a window. The probability of a sum j is e^(`log_scale` − tilt·j) times its value here.
#[derive(Clone, Debug)]
pub(crate) struct TiltedLaw {
    pub(crate) first: i64,
    pub(crate) values: Vec<f64>,
    /// How far each value may be off, apart from what folds back from outside the window, which only adds.
    pub(crate) error: f64,
    pub(crate) folded: f64,
    pub(crate) log_scale: f64,
    /// Relative error of e^`log_scale` and of the tilted weights together.
    pub(crate) relative_error: f64,
    pub(crate) tilt: f64,
}

impl TiltedLaw {
    /// The true value behind a computed one, from below.
    #[inline]
    pub(crate) fn lower_bound(&self, value: f64) -> f64 {
        (value - self.error - self.folded).max(0.0)
    }

    /// The same from above.
    #[inline]
    pub(crate) fn upper_bound(&self, value: f64) -> f64 {
        value.max(0.0) + self.error
    }
}

/// The longest transform.
pub(crate) const LONGEST: i64 = 1 << 21;

impl ScoreSum {
    /// ln E[e^(tilt·sum)].
    pub(crate) fn cumulant(&self, tilt: f64) -> f64 {
        self.sum_over_owners(|group| group.log_normalizer(tilt))
    }

    /// Relative error of e^cumulant, the laws' own roundings included.
    pub(crate) fn relative_error(&self, tilt: f64) -> f64 {
        ROUNDOFF * self.sum_over_owners(|group| 16.0 + 8.0 * tilt.abs() * group.reach() as f64)
    }

    /// The sum over all owners of a value of their group.
    fn sum_over_owners(&self, value: impl Fn(&ScoreGroup) -> f64) -> f64 {
        self.groups.iter().map(|group| group.owners as f64 * value(group)).sum()
    }

    /// Mean and variance of the tilted sum.
    pub(crate) fn moments(&self, tilt: f64) -> (f64, f64) {
        let add = |(mean, variance): (f64, f64), group: &ScoreGroup| {
            let (own_mean, own_variance) = group.moments(tilt);
            (mean + group.owners as f64 * own_mean, variance + group.owners as f64 * own_variance)
        };
        self.groups.iter().fold((0.0, 0.0), add)
    }

    /// The smallest and the largest possible sum.
    pub(crate) fn extremes(&self) -> (i64, i64) {
        (self.extreme(ScoreGroup::lowest), self.extreme(ScoreGroup::highest))
    }

    /// The sum if every owner has this score of its group.
    fn extreme(&self, score: fn(&ScoreGroup) -> i64) -> i64 {
        let sums = self.groups.iter().map(|group| score(group).saturating_mul(group.owners as i64));
        sums.fold(0, i64::saturating_add)
    }

    /// The tilt at which the mean is `wanted`, or the nearest one that is neither negative nor too steep for doubles.
    pub(crate) fn tilt_for(&self, wanted: f64) -> f64 {
        if self.moments(0.0).0 >= wanted {
            return 0.0;
        }
        let reach = self.groups.iter().map(ScoreGroup::reach).max().unwrap_or(1).max(1) as f64;
        let (mut low, mut high) = (0.0, 1.0 / reach);
        while self.moments(high).0 < wanted {
            (low, high) = (high, 2.0 * high);
            if high * reach > 500.0 {
                return low;
            }
        }
        self.tilt_between(low, high, wanted)
    }

    /// The tilt at which the mean is `wanted`, given two tilts at which it is smaller and larger.
    fn tilt_between(&self, low: f64, high: f64, wanted: f64) -> f64 {
        newton((low, high), 1e-3, |tilt| {
            let (mean, variance) = self.moments(tilt);
            (mean - wanted, variance)
        })
    }

    /// All of the tilted sum but e^`log_cut` on either side (Chernoff).
    pub(crate) fn window(&self, tilt: f64, log_cut: f64) -> SumSupport {
        self.window_by(&self.further_tilts(tilt, log_cut), log_cut)
    }

    /// What tilting further in either direction shows of the tilted sum. The best step for a Gaussian, and some octaves around
    /// it.
    fn further_tilts(&self, tilt: f64, log_cut: f64) -> Vec<FurtherTilt> {
        let base = self.cumulant(tilt);
        let (_, variance) = self.moments(tilt);
        let usual = (-2.0 * log_cut / variance.max(1e-12)).sqrt();
        let further = |factor: f64| {
            let step = usual * factor;
            FurtherTilt { step, above: self.cumulant(tilt + step) - base, below: self.cumulant(tilt - step) - base }
        };
        half_octaves(-12..=8).map(further).collect()
    }

    fn window_by(&self, further: &[FurtherTilt], log_cut: f64) -> SumSupport {
        let (lowest, highest) = self.extremes();
        let (mut low, mut high) = (lowest as f64, highest as f64);
        for tilt in further {
            let (below, above) = tilt.ends(log_cut);
            low = low.max(below);
            high = high.min(above);
        }
        SumSupport {
            low: (low.floor() as i64).max(lowest),
            high: (high.ceil() as i64).min(highest),
            log_outside: log_cut,
        }
    }

    /// The tilted law on a window.
    pub(crate) fn law(&self, tilt: f64, window: SumSupport) -> TiltedLaw {
        let length = window.length();
        let (values, error) = spectrum::law(&self.groups, tilt, length);
        let value = |sum: i64| values[sum.rem_euclid(length as i64) as usize];
        TiltedLaw {
            first: window.low,
            values: (window.low..=window.high).map(value).collect(),
            error,
            folded: 4.0 * window.outside(),
            log_scale: self.cumulant(tilt),
            relative_error: self.relative_error(tilt),
            tilt,
        }
    }

    /// E[(sum)₊] from above, in units of the lattice, and its cost in nodes. Any tilt will do; with the mean at zero the terms
    /// j·e^(−tilt·j) are largest about where the tilted law is.
    pub(crate) fn positive_part(&self, tilt: f64, log_cut: f64) -> (f64, u64) {
        let (lowest, highest) = self.extremes();
        if highest <= 0 {
            return (0.0, 0);
        }
        if lowest >= 0 {
            return (self.mean_of_nonnegative(), 0);
        }
        let log_cut = log_cut.max(-VANISHING + 10.0);
        let further = self.further_tilts(tilt, log_cut);
        let window = self.window_by(&further, log_cut);
        let largest = largest_term(tilt, highest);
        let beyond = window.outside() * largest;
        let scale = self.cumulant(tilt).exp() * (1.0 + 2.0 * self.relative_error(tilt) + 1e-12);
        if window.high <= 0 {
            return (beyond * scale, 0);
        }
        let positive = PositiveSums::new(&further, tilt, &window, largest);
        if positive.length > LONGEST as usize {
            return (f64::INFINITY, 0);
        }
        let (inside, cost) = self.tilted_positive_part(tilt, &positive);
        ((inside + beyond) * scale, cost)
    }

    /// The mean without a tilt, from above, by one addition after another: relative errors do not grow if no score is negative.
    fn mean_of_nonnegative(&self) -> f64 {
        let mean = self.sum_over_owners(ScoreGroup::plain_mean);
        mean.max(0.0) * (1.0 + 1e-12 + self.relative_error(0.0))
    }

    /// Σ j·e^(−tilt·j) times the tilted law, over the sums j up to the last, from above, and its cost in nodes.
    fn tilted_positive_part(&self, tilt: f64, sums: &PositiveSums) -> (f64, u64) {
        let roots = Roots::of(sums.length);
        let terms = FallingTerms::new(tilt, sums.last, &roots);
        let (mut sum, mut error) = (0.0, 0.0);
        let scanned = spectrum::scan(&self.groups, tilt, &roots, |node, value, value_error| {
            let (product, product_error) = terms.product_with(node, value, value_error);
            sum += product;
            error += product_error;
        });
        // At a node that is left out, the sum over j has at most as many terms as there are positive sums.
        error += scanned.left_out * largest_term(tilt, sums.last) * sums.last as f64;
        let scale = 1.0 / roots.length as f64;
        ((sum.max(0.0) + error * 1.01) * scale * (1.0 + 1e-12), scanned.evaluated)
    }
}

/// A tilt that is a step further, in either direction.
struct FurtherTilt {
    step: f64,
    /// How much larger the cumulant is at the tilt plus the step, and at the tilt minus the step. Infinite, or not numbers, if
    /// it overflows.
    above: f64,
    below: f64,
}

impl FurtherTilt {
    /// Sums below and above which the tilted law has at most e^`log_cut` (Chernoff).
    fn ends(&self, log_cut: f64) -> (f64, f64) {
        let above = (self.above - log_cut) / self.step;
        let below = -(self.below - log_cut) / self.step;
        let room = room(above.abs() + below.abs());
        (below - room, above + room)
    }
}

/// What makes ends of windows slightly wider, which covers the rounding of the cumulants.
fn room(size: f64) -> f64 {
    1.0 + 1e-6 * size
}

/// The sums whose terms j·e^(−tilt·j) are added up, from 1 to the last, and a circle for that.
///
/// Far up, where the law is small, the terms are small too: fewer sums are needed than for the law alone. What folds back onto a
/// sum only adds, and it adds little if term and law together are small wherever two sums meet. So the circle may be shorter
/// than the window.
struct PositiveSums {
    last: i64,
    length: usize,
}

impl PositiveSums {
    /// Such that what is beyond the last sum adds at most as much as all that is outside the window of the law would, if all its
    /// terms were the largest one.
    fn new(further: &[FurtherTilt], tilt: f64, window: &SumSupport, largest: f64) -> Self {
        // The term of a sum j of the window is at most e^(slack + log_outside − tilt·j) times the largest one.
        let slack = (window.high as f64 / largest).ln().max(0.0) - window.log_outside;
        let last = last_sum(further, tilt, slack).ceil().min(window.high as f64);
        let distance = folding_distance(further, tilt, slack, last).min(window.span() as f64);
        Self { last: last as i64, length: (distance.max(last) as usize + 1).next_power_of_two().max(2) }
    }
}

/// A sum beyond which term and law together are at most e^log_outside of the largest term: with a step s further they are at most
/// e^(above + slack + log_outside − (s + tilt)·sum) of it, and terms fall from 1/tilt on.
fn last_sum(further: &[FurtherTilt], tilt: f64, slack: f64) -> f64 {
    let ends = further.iter().map(|further| (further.above + slack) / (further.step + tilt));
    let nearest = ends.fold(f64::INFINITY, f64::min);
    (nearest + room(nearest.abs())).max(1.0 / tilt)
}

/// How far apart two sums have to be so that, up to the last sum, the term of one times the law of the other is as small. This
/// decides how sharp a bound is, not whether it holds.
fn folding_distance(further: &[FurtherTilt], tilt: f64, slack: f64, last: f64) -> f64 {
    let distances = further.iter().map(|further| {
        let at_last = (further.step - tilt).max(0.0) * last;
        (further.below + slack + at_last) / further.step
    });
    distances.fold(f64::INFINITY, f64::min).ceil()
}

/// The largest j·e^(−tilt·j) for j from 1 to `last`.
fn largest_term(tilt: f64, last: i64) -> f64 {
    let last = last.max(1) as f64;
    if tilt * last <= 1.0 { last } else { (1.0 / (E * tilt)).max(1.0) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::certified::score_group::Atom;

    /// Of three owners with scores −1, 0 and 2, by enumeration; under any tilt the bound is one, and close.
    #[test]
    fn the_positive_part_holds_under_any_tilt() {
        let law = [(-1, 0.5), (0, 0.3), (2, 0.2)];
        let pairs = law.iter().flat_map(|a| law.iter().map(move |b| (a.0 + b.0, a.1 * b.1)));
        let triples = pairs.flat_map(|a| law.iter().map(move |b| (a.0 + b.0, a.1 * b.1)));
        let exact: f64 = triples.map(|(sum, mass)| f64::from(sum.max(0)) * mass).sum();
        let atoms = law.iter().map(|(score, mass)| (i64::from(*score), *mass)).collect();
        let sum = ScoreSum { groups: vec![ScoreGroup { owners: 3, atoms }] };
        for tilt in [0.0, 1e-3, 0.1, sum.tilt_for(0.0), 1.0, 3.0] {
            let (bound, _) = sum.positive_part(tilt, -60.0);
            assert!(bound >= exact && bound < exact * (1.0 + 1e-6), "{tilt}: {bound} for {exact}");
        }
    }

    /// E[(sum)₊] by convolution: positive terms only.
    fn by_convolution(owners: u64, atoms: &[Atom]) -> f64 {
        let lowest = atoms.iter().map(|atom| atom.0).min().unwrap();
        let reach = atoms.iter().map(|atom| (atom.0 - lowest) as usize).max().unwrap();
        let mut law = vec![1.0];
        for _ in 0..owners {
            let mut next = vec![0.0; law.len() + reach];
            for (score, weight) in atoms {
                let shifted = &mut next[(score - lowest) as usize..];
                shifted.iter_mut().zip(&law).for_each(|(sum, mass)| *sum += weight * mass);
            }
            law = next;
        }
        let sum = |place: usize| place as f64 + lowest as f64 * owners as f64;
        law.iter().enumerate().map(|(place, mass)| sum(place).max(0.0) * mass).sum()
    }

    /// The sum of 1000 scores is hardly ever positive. Sums fold onto each other on the circle, and the bound loses nothing by
    /// it.
    #[test]
    fn the_positive_part_holds_on_a_circle_shorter_than_the_window() {
        let atoms = vec![(-1, 0.75), (2, 0.25)];
        let exact = by_convolution(1000, &atoms);
        let sum = ScoreSum { groups: vec![ScoreGroup { owners: 1000, atoms }] };
        let (tilt, log_cut) = (sum.tilt_for(0.0), -40.0);
        let (window, further) = (sum.window(tilt, log_cut), sum.further_tilts(tilt, log_cut));
        let circle = PositiveSums::new(&further, tilt, &window, largest_term(tilt, 2000));
        assert!(circle.last < window.high && circle.length < window.length(), "{} and {}", circle.last, circle.length);
        let (bound, _) = sum.positive_part(tilt, log_cut);
        assert!(bound >= exact * (1.0 - 1e-11) && bound < exact * (1.0 + 1e-9), "{bound:e} for {exact:e}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Whatever the scores, the tilt and the cut: the bound holds, and at the tilt that is meant for it, it is close.
        #[test]
        fn the_positive_part_holds_for_random_scores(
            scores in proptest::collection::btree_map(-9_i64..10, 1e-4_f64..1.0, 2..6),
            owners in 1_u64..400,
            steepness in 0.0_f64..2.0,
            log_cut in -60.0_f64..-5.0,
        ) {
            let total: f64 = scores.values().sum();
            let atoms: Vec<Atom> = scores.iter().map(|(score, weight)| (*score, weight / total)).collect();
            let exact = by_convolution(owners, &atoms);
            let sum = ScoreSum { groups: vec![ScoreGroup { owners, atoms }] };
            let meant = sum.tilt_for(0.0);
            for tilt in [meant, meant * steepness, steepness] {
                let (bound, _) = sum.positive_part(tilt, log_cut);
                prop_assert!(bound >= exact * (1.0 - 1e-11), "{tilt}, {log_cut}: {bound:e} for {exact:e}");
            }
            let (bound, _) = sum.positive_part(meant, -60.0);
            prop_assert!(bound <= exact * (1.0 + 1e-9), "{meant}: {bound:e} for {exact:e}");
        }
    }

    /// If no score is negative, the positive part is the mean, to the last digits whatever the order of the scores.
    #[test]
    fn the_mean_of_scores_that_are_not_negative_is_exact() {
        let atoms = vec![(1_000_000_000, 1e-15), (1, 1.0 - 1e-15)];
        let (bound, _) = ScoreSum { groups: vec![ScoreGroup { owners: 1, atoms }] }.positive_part(0.0, -60.0);
        assert!((1.000_001 - 1e-12..1.000_001 + 1e-11).contains(&bound), "{bound}");
    }
}
