//! Exponentially tilted laws of a crowd over the three classes high, row and low (`docs/accounting.md`, "Tilting").

use std::f64::consts::PI;

use crate::certified::minimum::golden_section;
use crate::privacy::likelihood::CrowdLaws;

/// Limits on the search for tilts, which decide how sharp a bound is, never whether it holds.
const SEARCH_STEPS: usize = 60;
const NEWTON_STEPS: usize = 40;
/// The tilt of the high count is at least about this over its standard deviation. Less would make the sum beyond a turn a slow
/// series, more would move the tilted mean away from where the evidence turns.
const LEAST: f64 = 0.8;
/// That standard deviation is taken to be at least this.
const FEW: f64 = 3.0;
/// A tilt leaves at least this many owners to a class, on average.
const NEARLY_NOBODY: f64 = 0.3;

/// One value for the count of the class high and one for that of the class row. The count of low is what they leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct HighRow<T> {
    pub(super) high: T,
    pub(super) row: T,
}

impl<T> HighRow<T> {
    pub(super) fn map<U>(self, function: impl Fn(T) -> U) -> HighRow<U> {
        HighRow { high: function(self.high), row: function(self.row) }
    }
}

/// Exponents for both counts.
pub(super) type Tilt = HighRow<f64>;

/// Variances of both counts, and their covariance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covariance {
    pub(super) high: f64,
    pub(super) row: f64,
    pub(super) both: f64,
}

/// Bounds on the probabilities of the histograms in a corner: on that of all of them together (`all`), and on that of any single one
/// at its tip relative to it (`single`). A histogram further out by (i, j) in the two directions is less likely by the factor
/// exp(−i·u − j·v), where (u, v) is `at`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) all: f64,
    pub(super) single: f64,
    pub(super) at: [f64; 2],
}

/// Counts of high and row that are at least `reached` in each of two directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Corner {
    pub(super) directions: [[f64; 2]; 2],
    pub(super) reached: [f64; 2],
    /// Whether the second direction ends, so that its tilt may be negative.
    pub(super) ends: bool,
}

impl Corner {
    /// The tilt of both counts for tilts in the two directions.
    fn tilt(&self, [u, v]: [f64; 2]) -> Tilt {
        let [one, other] = self.directions;
        Tilt { high: u * one[0] + v * other[0], row: u * one[1] + v * other[1] }
    }

    /// The tilts in the two directions, made nonnegative where they have to be.
    fn admissible(&self, [u, v]: [f64; 2]) -> [f64; 2] {
        [u.max(0.0), if self.ends { v } else { v.max(0.0) }]
    }
}

impl CrowdLaws<3> {
    /// ln E exp(tilt·counts). Its absolute error is some roundings of the owners times the tilt.
    pub(super) fn cumulant(&self, tilt: Tilt) -> f64 {
        let (high, row) = (tilt.high.exp_m1(), tilt.row.exp_m1());
        let group = |(owners, law): (u64, [f64; 3])| {
            let change = law[0] * high + law[1] * row;
            // Where 1 + change is small, it is computed without the difference.
            let logarithm = if change < -0.5 {
                (law[0] * tilt.high.exp() + law[1] * tilt.row.exp() + law[2]).ln()
            } else {
                change.ln_1p()
            };
            owners as f64 * logarithm
        };
        self.each().into_iter().map(group).sum()
    }

    /// The crowd whose owners draw from the tilted laws.
    pub(super) fn tilted(&self, tilt: Tilt) -> Self {
        let factors = [tilt.high.exp(), tilt.row.exp(), 1.0];
        let laws = self.laws.map(|law| {
            let weights = [0, 1, 2].map(|class: usize| law[class] * factors[class]);
            let total: f64 = weights.iter().sum();
            weights.map(|weight| weight / total)
        });
        Self { laws, ..*self }
    }

    /// Expected counts of high and row.
    pub(super) fn mean(&self) -> HighRow<f64> {
        let expected = |class: usize| self.each().into_iter().map(|(owners, law)| owners as f64 * law[class]).sum();
        HighRow { high: expected(0), row: expected(1) }
    }

    /// Σ over the owners of the product of two classes' probabilities.
    pub(super) fn product(&self, one: usize, other: usize) -> f64 {
        self.each().into_iter().map(|(owners, law)| owners as f64 * law[one] * law[other]).sum()
    }

    /// Variances of the counts of high and row, and their covariance.
    pub(super) fn covariance(&self) -> Covariance {
        let [both, high, row] = [self.product(0, 1), self.product(0, 2), self.product(1, 2)];
        Covariance { high: high + both, row: row + both, both: -both }
    }

    /// A tilt whose mean is the likeliest place at which the evidence turns: the target's tilted weights sum to zero there. Of the
    /// weights `x`, the first is positive, the last negative, and the sum not positive.
    pub(super) fn turning_tilt(&self, x: [f64; 3]) -> Tilt {
        let surplus: f64 = x.iter().sum();
        // With next to no tilt the sum beyond a turn would be a slow series.
        let deviation = self.covariance().high.sqrt().max(FEW);
        let straight = (-surplus / x[0]).max(0.0).ln_1p().max(LEAST / deviation);
        let surplus = -x[0] * straight.exp_m1();
        // On the curve x₀·e^high + x₁·e^row + x₂ = 0.
        let on_curve = |row: f64| {
            let excess = (-surplus - x[1] * row.exp_m1()) / x[0];
            (excess > -1.0).then(|| Tilt { high: excess.ln_1p(), row })
        };
        let rate = |row: f64| {
            on_curve(row).map_or(f64::INFINITY, |tilt| {
                let mean = self.tilted(tilt).mean();
                let rate = tilt.high * mean.high + tilt.row * mean.row - self.cumulant(tilt);
                if rate.is_nan() { f64::INFINITY } else { rate }
            })
        };
        let mut reach = 3.0 * straight;
        let least = |reach: f64| golden_section((-reach, reach), SEARCH_STEPS, 1e-4, rate);
        let mut row = least(reach);
        for _ in 0..4 {
            if row.abs() < 0.9 * reach {
                break;
            }
            reach *= 4.0;
            row = least(reach);
        }
        let tilt = on_curve(row).unwrap_or(Tilt { high: straight, row: 0.0 });
        let mut tilt = self.within_reach(tilt);
        let deviation = self.tilted(tilt).covariance().high.sqrt().max(FEW);
        tilt.high = tilt.high.max(0.5 * LEAST / deviation);
        tilt
    }

    /// Shrinks a tilt that would empty a class: the evidence then turns at the edge of what there is.
    fn within_reach(&self, mut tilt: Tilt) -> Tilt {
        let counts = |crowd: &Self| {
            let HighRow { high, row } = crowd.mean();
            [high, self.owners.size() as f64 - high - row]
        };
        // A class that is nearly empty without a tilt may stay so.
        let least = counts(self).map(|count| NEARLY_NOBODY.min(0.01 * count));
        for _ in 0..40 {
            let [high, low] = counts(&self.tilted(tilt));
            if high >= least[0] && low >= least[1] {
                break;
            }
            tilt = Tilt { high: 0.8 * tilt.high, row: 0.8 * tilt.row };
        }
        tilt
    }

    /// Chernoff's bound on the probabilities of a corner's histograms, at nearly the best tilt.
    pub(super) fn chernoff(&self, corner: &Corner) -> Bound {
        let exponent = |at: [f64; 2]| {
            let value = self.cumulant(corner.tilt(at)) - at[0] * corner.reached[0] - at[1] * corner.reached[1];
            if value.is_nan() { f64::INFINITY } else { value }
        };
        let mut at = [0.0; 2];
        let mut value: f64 = 0.0;
        for _ in 0..NEWTON_STEPS {
            let step = self.newton_step(corner, at);
            let scales = std::iter::successors(Some(1.0), |scale| Some(scale * 0.3)).take_while(|scale| *scale >= 1e-4);
            let points = scales.map(|scale| corner.admissible([0, 1].map(|axis: usize| at[axis] + scale * step[axis])));
            let mut lower = points.map(|point| (point, exponent(point))).filter(|(_, there)| *there < value);
            let Some((next, there)) = lower.next() else { break };
            let gain = value - there;
            (at, value) = (next, there);
            if gain < 0.02 {
                break;
            }
        }
        // The sums above are off by some roundings of the owners times the tilt.
        let tilt = corner.tilt(at);
        let slack = 1e-6 + 1e-13 * self.owners.size() as f64 * (tilt.high.abs() + tilt.row.abs());
        Bound { all: (value + slack).exp(), single: self.tilted(tilt).largest_probability(), at }
    }

    /// A bound on the probability of any single histogram: (2π)⁻²·∬|F̃| over both circles, where |F̃| is at most
    /// exp(−e·(1 − cos θ) − c·(1 − cos φ)) with c depending on θ (see `Decay`), and 1 − cos x ≥ 2x²/π².
    fn largest_probability(&self) -> f64 {
        let [both, high, row] = [self.product(0, 1), self.product(0, 2), self.product(1, 2)];
        let whole = row + both;
        let narrow = high + if whole > 0.0 { row * both / whole } else { 0.0 };
        // For |θ| ≤ π/2, c is at least (row + both)/√2; beyond, the first factor is small by itself.
        let near = (PI / narrow).sqrt() * (PI / whole).sqrt() * (0.5 * 2f64.sqrt()).sqrt() / 4.0;
        let bound = near + 0.5 * (-narrow).exp();
        if bound.is_nan() { 1.0 } else { bound.min(1.0) }
    }

    /// Newton's step for the exponent, within the quadrant of nonnegative numbers.
    fn newton_step(&self, corner: &Corner, at: [f64; 2]) -> [f64; 2] {
        let tilted = self.tilted(corner.tilt(at));
        let (mean, Covariance { high, row, both }) = (tilted.mean(), tilted.covariance());
        let along =
            |a: [f64; 2], b: [f64; 2]| a[0] * b[0] * high + a[1] * b[1] * row + (a[0] * b[1] + a[1] * b[0]) * both;
        let [one, other] = corner.directions;
        let slope = |direction: [f64; 2], reached: f64| direction[0] * mean.high + direction[1] * mean.row - reached;
        let gradient = [slope(one, corner.reached[0]), slope(other, corner.reached[1])];
        let [a, b, c] = [along(one, one) + 1e-9, along(one, other), along(other, other) + 1e-9];
        let free = [0, 1].map(|axis: usize| at[axis] > 0.0 || gradient[axis] < 0.0 || axis == 1 && corner.ends);
        match free {
            [true, true] => {
                let determinant = a * c - b * b;
                let step = [
                    (b * gradient[1] - c * gradient[0]) / determinant,
                    (b * gradient[0] - a * gradient[1]) / determinant,
                ];
                if determinant > 0.0 { step } else { [-gradient[0] / a, 0.0] }
            }
            [true, false] => [-gradient[0] / a, 0.0],
            [false, true] => [0.0, -gradient[1] / c],
            [false, false] => [0.0; 2],
        }
    }
}
