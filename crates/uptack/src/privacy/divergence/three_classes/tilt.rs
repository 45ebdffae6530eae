//! Exponentially tilted laws of a crowd over the three classes high, row and low (`docs/accounting.md`, "Tilting").

use std::f64::consts::PI;

use crate::certified::root::golden_section;
use crate::privacy::likelihood::CrowdLaws;

/// Limits on the search for tilts. They decide how sharp a bound is, never whether it holds.
const SEARCH_STEPS: usize = 60;
const NEWTON_STEPS: usize = 40;
/// The tilt of the high count is at least about this over its standard deviation. Less would make the sum beyond a turn a slow
/// series, more would move the tilted mean away from where the evidence turns.
const LEAST: f64 = 0.8;
/// That standard deviation is taken to be at least this.
const FEW: f64 = 3.0;
/// A tilt leaves at least this many owners to a class, on average.
const NEARLY_NOBODY: f64 = 0.3;

/// One value for the count of the class high and one for that of the class row. The count of low follows from them.
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

impl HighRow<f64> {
    /// The sum of the products for both counts.
    pub(super) fn dot(self, other: Self) -> f64 {
        self.high * other.high + self.row * other.row
    }
}

/// Exponents for both counts.
pub(super) type ClassTilt = HighRow<f64>;

impl ClassTilt {
    /// The factors on the probabilities of high, row and low.
    pub(super) fn factors(self) -> [f64; 3] {
        [self.high.exp(), self.row.exp(), 1.0]
    }
}

/// For pairs of classes, Σ over the owners of the product of their probabilities: high and low, row and low, high and row.
pub(super) struct Products {
    pub(super) high: f64,
    pub(super) row: f64,
    pub(super) both: f64,
}

/// Variances of both counts, and their covariance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covariance {
    pub(super) high: f64,
    pub(super) row: f64,
    pub(super) both: f64,
}

impl Covariance {
    pub(super) fn determinant(&self) -> f64 {
        self.high * self.row - self.both * self.both
    }

    /// The covariance of the counts along two directions.
    fn along(&self, a: HighRow<f64>, b: HighRow<f64>) -> f64 {
        a.high * b.high * self.high + a.row * b.row * self.row + (a.high * b.row + a.row * b.high) * self.both
    }
}

/// Bounds on the probabilities of the histograms in a corner: on that of all of them together (`all`), and on that of any single
/// one at its tip relative to it (`single`). A histogram further out by (i, j) in the two directions is less likely by the factor
/// exp(−i·u − j·v), where (u, v) is `at`.
#[derive(Clone, Copy, Debug)]
pub(super) struct CornerBound {
    pub(super) all: f64,
    pub(super) single: f64,
    pub(super) at: [f64; 2],
}

/// Counts of high and row that are at least `reached` in each of two directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Corner {
    pub(super) directions: [HighRow<f64>; 2],
    pub(super) reached: [f64; 2],
    /// Whether the second direction ends, so that its tilt may be negative.
    pub(super) ends: bool,
}

impl Corner {
    /// The tilt of both counts for tilts in the two directions.
    fn tilt(&self, [u, v]: [f64; 2]) -> ClassTilt {
        let [one, other] = self.directions;
        ClassTilt { high: u * one.high + v * other.high, row: u * one.row + v * other.row }
    }

    /// The tilts in the two directions, made nonnegative where they have to be.
    fn admissible(&self, [u, v]: [f64; 2]) -> [f64; 2] {
        [u.max(0.0), if self.ends { v } else { v.max(0.0) }]
    }

    /// By how much the mean of the counts exceeds the corner in each direction.
    fn excess(&self, mean: HighRow<f64>) -> [f64; 2] {
        [0, 1].map(|axis: usize| self.directions[axis].dot(mean) - self.reached[axis])
    }

    /// Newton's step for the exponent from `at`, where it has this gradient and this matrix [a, b; b, c] of second derivatives:
    /// a tilt that must not be negative stays at zero where it would be.
    fn newton_step(&self, at: [f64; 2], gradient: [f64; 2], [a, b, c]: [f64; 3]) -> [f64; 2] {
        let free = [0, 1].map(|axis: usize| at[axis] > 0.0 || gradient[axis] < 0.0 || axis == 1 && self.ends);
        let determinant = a * c - b * b;
        match free {
            [true, true] if determinant > 0.0 => {
                [b * gradient[1] - c * gradient[0], b * gradient[0] - a * gradient[1]].map(|step| step / determinant)
            }
            [true, _] => [-gradient[0] / a, 0.0],
            [false, true] => [0.0, -gradient[1] / c],
            [false, false] => [0.0; 2],
        }
    }
}

/// The tilts at which the tilted weights x of the target sum to zero: x₀·e^high + x₁·e^row + x₂ = 0.
struct TurningCurve {
    /// x₀ and x₁.
    high_weight: f64,
    row_weight: f64,
    /// The high tilt where there is none of the row count.
    straight: f64,
    /// −Σx, made larger where the curve is moved further out.
    deficit: f64,
}

impl TurningCurve {
    /// The curve of these weights, or one further out where it would come too close to no tilt at all for a count of this
    /// standard deviation.
    fn new(x: [f64; 3], deviation: f64) -> Self {
        let [high, row, _] = x;
        let surplus: f64 = x.iter().sum();
        // With next to no tilt the sum beyond a turn would be a slow series.
        let straight = (-surplus / high).max(0.0).ln_1p().max(LEAST / deviation);
        Self { high_weight: high, row_weight: row, straight, deficit: high * straight.exp_m1() }
    }

    /// The point with this tilt of the row count, if there is one.
    fn at(&self, row: f64) -> Option<ClassTilt> {
        let excess = (self.deficit - self.row_weight * row.exp_m1()) / self.high_weight;
        (excess > -1.0).then_some(ClassTilt { high: excess.ln_1p(), row })
    }

    /// The point at which a function is least.
    fn least(&self, function: impl Fn(ClassTilt) -> f64) -> ClassTilt {
        let value = |row: f64| self.at(row).map_or(f64::INFINITY, &function);
        let search = |reach: f64| golden_section((-reach, reach), SEARCH_STEPS, 1e-4, value);
        let mut reach = 3.0 * self.straight;
        let mut row = search(reach);
        for _ in 0..4 {
            if row.abs() < 0.9 * reach {
                break;
            }
            reach *= 4.0;
            row = search(reach);
        }
        self.at(row).unwrap_or(ClassTilt { high: self.straight, row: 0.0 })
    }
}

impl CrowdLaws<3> {
    /// ln E exp(tilt·counts). Its absolute error is some roundings of the owners times the tilt.
    pub(super) fn cumulant(&self, tilt: ClassTilt) -> f64 {
        let growth = tilt.map(f64::exp_m1);
        self.sum_over_owners(|law| cumulant_of_one(law, tilt, growth))
    }

    /// How unlikely the mean of the tilted law is, as a negative logarithm to first order: τ·mean − K(τ).
    fn rate(&self, tilt: ClassTilt) -> f64 {
        let mean = self.tilted(tilt).mean();
        let rate = tilt.dot(mean) - self.cumulant(tilt);
        if rate.is_nan() { f64::INFINITY } else { rate }
    }

    /// The crowd whose owners draw from the tilted laws.
    pub(super) fn tilted(&self, tilt: ClassTilt) -> Self {
        let factors = tilt.factors();
        Self { laws: self.laws.map(|law| reweighted(law, factors)), ..*self }
    }

    /// Expected counts of high and row.
    pub(super) fn mean(&self) -> HighRow<f64> {
        HighRow { high: self.expected(0), row: self.expected(1) }
    }

    /// Expected counts of high and low.
    fn mean_of_high_and_low(&self) -> [f64; 2] {
        let HighRow { high, row } = self.mean();
        [high, self.owners.size() as f64 - high - row]
    }

    /// The products of all pairs of classes.
    pub(super) fn products(&self) -> Products {
        Products { high: self.product(0, 2), row: self.product(1, 2), both: self.product(0, 1) }
    }

    /// Σ over the owners of the product of two classes' probabilities.
    fn product(&self, one: usize, other: usize) -> f64 {
        self.each().into_iter().map(|(owners, law)| owners as f64 * law[one] * law[other]).sum()
    }

    /// Variances of the counts of high and row, and their covariance.
    pub(super) fn covariance(&self) -> Covariance {
        let Products { high, row, both } = self.products();
        Covariance { high: high + both, row: row + both, both: -both }
    }

    /// A tilt whose mean is the likeliest place at which the evidence turns: the target's tilted weights sum to zero there. Of
    /// the weights `x`, the first is positive, the last negative, and the sum not positive.
    pub(super) fn turning_tilt(&self, x: [f64; 3]) -> ClassTilt {
        let curve = TurningCurve::new(x, self.high_deviation());
        let tilt = self.within_reach(curve.least(|tilt| self.rate(tilt)));
        let deviation = self.tilted(tilt).high_deviation();
        ClassTilt { high: tilt.high.max(0.5 * LEAST / deviation), ..tilt }
    }

    /// The standard deviation of the high count.
    fn high_deviation(&self) -> f64 {
        self.covariance().high.sqrt().max(FEW)
    }

    /// Shrinks a tilt that would empty a class: the evidence then turns at the edge of what there is.
    fn within_reach(&self, mut tilt: ClassTilt) -> ClassTilt {
        // A class that is nearly empty without a tilt may stay so.
        let least = self.mean_of_high_and_low().map(|count| NEARLY_NOBODY.min(0.01 * count));
        for _ in 0..40 {
            let [high, low] = self.tilted(tilt).mean_of_high_and_low();
            if high >= least[0] && low >= least[1] {
                break;
            }
            tilt = ClassTilt { high: 0.8 * tilt.high, row: 0.8 * tilt.row };
        }
        tilt
    }

    /// Chernoff's bound on the probabilities of a corner's histograms, at nearly the best tilt.
    pub(super) fn chernoff(&self, corner: &Corner) -> CornerBound {
        let (mut at, mut value) = ([0.0; 2], 0.0);
        for _ in 0..NEWTON_STEPS {
            let Some((next, there)) = self.descend(corner, at, value) else { break };
            let gain = value - there;
            (at, value) = (next, there);
            if gain < 0.02 {
                break;
            }
        }
        // The sums above are off by some roundings of the owners times the tilt.
        let tilt = corner.tilt(at);
        let slack = 1e-6 + 1e-13 * self.owners.size() as f64 * (tilt.high.abs() + tilt.row.abs());
        CornerBound { all: (value + slack).exp(), single: self.tilted(tilt).largest_probability(), at }
    }

    /// The exponent of Chernoff's bound for a corner, at tilts in its two directions: K(τ) − τ·reached.
    fn exponent(&self, corner: &Corner, at: [f64; 2]) -> f64 {
        let value = self.cumulant(corner.tilt(at)) - at[0] * corner.reached[0] - at[1] * corner.reached[1];
        if value.is_nan() { f64::INFINITY } else { value }
    }

    /// A point at which the exponent is below `value`, and the exponent there: by Newton's step from `at`, or a part of it.
    fn descend(&self, corner: &Corner, at: [f64; 2], value: f64) -> Option<([f64; 2], f64)> {
        let step = self.newton_step(corner, at);
        let scales = std::iter::successors(Some(1.0), |scale| Some(scale * 0.3)).take_while(|scale| *scale >= 1e-4);
        let points = scales.map(|scale| corner.admissible([0, 1].map(|axis: usize| at[axis] + scale * step[axis])));
        points.map(|point| (point, self.exponent(corner, point))).find(|(_, there)| *there < value)
    }

    /// Newton's step for the exponent.
    fn newton_step(&self, corner: &Corner, at: [f64; 2]) -> [f64; 2] {
        let tilted = self.tilted(corner.tilt(at));
        let covariance = tilted.covariance();
        let [one, other] = corner.directions;
        let curvature =
            [covariance.along(one, one) + 1e-9, covariance.along(one, other), covariance.along(other, other) + 1e-9];
        corner.newton_step(at, corner.excess(tilted.mean()), curvature)
    }

    /// A bound on the probability of any single histogram: (2π)⁻²·∬|F̃| over both circles, where |F̃| is at most
    /// exp(−e·(1 − cos θ) − c·(1 − cos φ)) with c depending on θ (see `Decay`), and 1 − cos x ≥ 2x²/π².
    fn largest_probability(&self) -> f64 {
        let Products { high, row, both } = self.products();
        let whole = row + both;
        let narrow = high + if whole > 0.0 { row * both / whole } else { 0.0 };
        // For |θ| ≤ π/2, c is at least (row + both)/√2; beyond, the first factor is small by itself.
        let near = (PI / narrow).sqrt() * (PI / whole).sqrt() * (0.5 * 2f64.sqrt()).sqrt() / 4.0;
        let bound = near + 0.5 * (-narrow).exp();
        if bound.is_nan() { 1.0 } else { bound.min(1.0) }
    }
}

/// ln E exp(tilt·counts) of one owner, where `growth` is e^tilt − 1.
fn cumulant_of_one([high, row, low]: [f64; 3], tilt: ClassTilt, growth: HighRow<f64>) -> f64 {
    let change = high * growth.high + row * growth.row;
    // Where 1 + change is small, it is computed without the difference.
    if change < -0.5 { (high * tilt.high.exp() + row * tilt.row.exp() + low).ln() } else { change.ln_1p() }
}

/// The law in proportion to a law's probabilities times these factors.
fn reweighted(law: [f64; 3], factors: [f64; 3]) -> [f64; 3] {
    let weights = [0, 1, 2].map(|class: usize| law[class] * factors[class]);
    let total: f64 = weights.iter().sum();
    weights.map(|weight| weight / total)
}
