//! Sums of independent integer scores, by their characteristic function under a tilt.
//!
//! A score stands for a real number on a lattice. The transform's error is absolute; a tilt that moves the mean of the sum to
//! the place that is asked about makes it relative to the answer (`docs/accounting.md`, "Sums of scores").

use std::f64::consts::E;

use super::circle::{FallingTerms, Roots};
use super::draws::Draws;
use super::minimum::half_octaves;
use super::root::newton;
use super::rounding::ROUNDOFF;
use super::spectrum::{self, VANISHING};

/// The sum of the scores of several groups of owners.
#[derive(Clone, Debug)]
pub(crate) struct ScoreSum {
    pub(crate) groups: Vec<Draws>,
}

/// Sums that the transform represents, and how little of the tilted law lies outside on either side, as a logarithm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) low: i64,
    pub(crate) high: i64,
    pub(crate) log_outside: f64,
}

impl Window {
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
    fn sum_over_owners(&self, value: impl Fn(&Draws) -> f64) -> f64 {
        self.groups.iter().map(|group| group.owners as f64 * value(group)).sum()
    }

    /// Mean and variance of the tilted sum.
    pub(crate) fn moments(&self, tilt: f64) -> (f64, f64) {
        let add = |(mean, variance): (f64, f64), group: &Draws| {
            let (own_mean, own_variance) = group.moments(tilt);
            (mean + group.owners as f64 * own_mean, variance + group.owners as f64 * own_variance)
        };
        self.groups.iter().fold((0.0, 0.0), add)
    }

    /// The smallest and the largest possible sum.
    pub(crate) fn extremes(&self) -> (i64, i64) {
        (self.extreme(Draws::lowest), self.extreme(Draws::highest))
    }

    /// The sum if every owner has this score of its group.
    fn extreme(&self, score: fn(&Draws) -> i64) -> i64 {
        let sums = self.groups.iter().map(|group| score(group).saturating_mul(group.owners as i64));
        sums.fold(0, i64::saturating_add)
    }

    /// The tilt at which the mean is `wanted`, or the nearest one that is neither negative nor too steep for doubles.
    pub(crate) fn tilt_for(&self, wanted: f64) -> f64 {
        if self.moments(0.0).0 >= wanted {
            return 0.0;
        }
        let reach = self.groups.iter().map(Draws::reach).max().unwrap_or(1).max(1) as f64;
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
    pub(crate) fn window(&self, tilt: f64, log_cut: f64) -> Window {
        let base = self.cumulant(tilt);
        let (_, variance) = self.moments(tilt);
        let (lowest, highest) = self.extremes();
        // The best step for a Gaussian; some octaves around it are tried.
        let usual = (-2.0 * log_cut / variance.max(1e-12)).sqrt();
        let (mut low, mut high) = (lowest as f64, highest as f64);
        for factor in half_octaves(-12..=8) {
            let (below, above) = self.chernoff(tilt, base, log_cut, usual * factor);
            low = low.max(below);
            high = high.min(above);
        }
        Window { low: (low.floor() as i64).max(lowest), high: (high.ceil() as i64).min(highest), log_outside: log_cut }
    }

    /// Sums below and above which the tilted law, of the cumulant `base`, has at most e^`log_cut`: by a tilt that is one
    /// step further. Infinite, or not numbers, if a cumulant overflows.
    fn chernoff(&self, tilt: f64, base: f64, log_cut: f64, step: f64) -> (f64, f64) {
        let above = (self.cumulant(tilt + step) - base - log_cut) / step;
        let below = -(self.cumulant(tilt - step) - base - log_cut) / step;
        // Slightly wider, which covers the rounding of the cumulants.
        let room = 1.0 + 1e-6 * (above.abs() + below.abs());
        (below - room, above + room)
    }

    /// The tilted law on a window.
    pub(crate) fn law(&self, tilt: f64, window: Window) -> TiltedLaw {
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

    /// E[(sum)₊] from above, in units of the lattice, and what it cost in nodes. Any tilt will do; with the mean at zero the terms
    /// j·e^(−tilt·j) are largest about where the tilted law is.
    pub(crate) fn positive_part(&self, tilt: f64, log_cut: f64) -> (f64, u64) {
        let (lowest, highest) = self.extremes();
        if highest <= 0 {
            return (0.0, 0);
        }
        if lowest >= 0 {
            return (self.mean_of_nonnegative(), 0);
        }
        let window = self.window(tilt, log_cut.max(-VANISHING + 10.0));
        if window.high <= 0 {
            let bound = self.cumulant(tilt).exp() * window.outside() * largest_term(tilt, highest) * 1.01;
            return (bound, 0);
        }
        if window.span() + 1 > LONGEST {
            return (f64::INFINITY, 0);
        }
        let (inside, cost) = self.tilted_positive_part(tilt, window);
        let outside = window.outside() * largest_term(tilt, highest);
        let scale = self.cumulant(tilt).exp() * (1.0 + 2.0 * self.relative_error(tilt) + 1e-12);
        ((inside + outside) * scale, cost)
    }

    /// The mean without a tilt, from above, by one addition after another: relative errors do not grow if no score is negative.
    fn mean_of_nonnegative(&self) -> f64 {
        let mean = self.sum_over_owners(Draws::plain_mean);
        mean.max(0.0) * (1.0 + 1e-12 + self.relative_error(0.0))
    }

    /// Σ j·e^(−tilt·j) times the tilted law, over the positive sums j of the window, from above, and what it cost in nodes.
    fn tilted_positive_part(&self, tilt: f64, window: Window) -> (f64, u64) {
        let roots = Roots::of(window.length());
        let terms = FallingTerms::new(tilt, window.high, &roots);
        let (mut sum, mut error) = (0.0, 0.0);
        let scanned = spectrum::scan(&self.groups, tilt, &roots, |node, value, value_error| {
            let (product, product_error) = terms.product_with(node, value, value_error);
            sum += product;
            error += product_error;
        });
        // At a node that is left out, the sum over j has at most as many terms as there are positive sums.
        error += scanned.left_out * largest_term(tilt, window.high) * window.high as f64;
        let scale = 1.0 / roots.length as f64;
        ((sum.max(0.0) + error * 1.01) * scale * (1.0 + 1e-12), scanned.evaluated)
    }
}

/// The largest j·e^(−tilt·j) for j from 1 to `last`.
fn largest_term(tilt: f64, last: i64) -> f64 {
    let last = last.max(1) as f64;
    if tilt * last <= 1.0 { last } else { (1.0 / (E * tilt)).max(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of three owners with scores −1, 0 and 2, by enumeration; under any tilt the bound is one, and close.
    #[test]
    fn the_positive_part_holds_under_any_tilt() {
        let law = [(-1, 0.5), (0, 0.3), (2, 0.2)];
        let pairs = law.iter().flat_map(|a| law.iter().map(move |b| (a.0 + b.0, a.1 * b.1)));
        let triples = pairs.flat_map(|a| law.iter().map(move |b| (a.0 + b.0, a.1 * b.1)));
        let exact: f64 = triples.map(|(sum, mass)| f64::from(sum.max(0)) * mass).sum();
        let atoms = law.iter().map(|(score, mass)| (i64::from(*score), *mass)).collect();
        let sum = ScoreSum { groups: vec![Draws { owners: 3, atoms }] };
        for tilt in [0.0, 1e-3, 0.1, sum.tilt_for(0.0), 1.0, 3.0] {
            let (bound, _) = sum.positive_part(tilt, -60.0);
            assert!(bound >= exact && bound < exact * (1.0 + 1e-6), "{tilt}: {bound} for {exact}");
        }
    }

    /// If no score is negative, the positive part is the mean, to the last digits whatever the order of the scores.
    #[test]
    fn the_mean_of_scores_that_are_not_negative_is_exact() {
        let atoms = vec![(1_000_000_000, 1e-15), (1, 1.0 - 1e-15)];
        let (bound, _) = ScoreSum { groups: vec![Draws { owners: 1, atoms }] }.positive_part(0.0, -60.0);
        assert!((1.000_001 - 1e-12..1.000_001 + 1e-11).contains(&bound), "{bound}");
    }
}
