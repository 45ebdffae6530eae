//! Convolution of many loss distributions by a tilted Fourier transform, with its error carried along
//! (`docs/composition.md`, "Convolution").
//!
//! The error of a transform is absolute, and the tail that is wanted is tiny. So every mass is first multiplied by
//! e^(order·loss): the tilted sum has its bulk where the tail is asked for, and undoing the tilt turns the absolute error into
//! one relative to the tail. Mass that wraps around the circle only adds to a bound; mass above the range of cells is bounded by
//! Chernoff.

use std::ops::RangeInclusive;

use super::loss_distribution::LossDistribution;
use crate::certified::fourier::{Complex, Fourier};
use crate::certified::root::half_octaves;
use crate::certified::rounding::{ELEMENTARY, Enclosure, ROUNDOFF, add_up, compounded, down, up};

/// −ln of the tilted mass that may lie outside the window.
const OUTSIDE: f64 = 44.0;
/// The largest tilt undone, as an exponent; losses further below the focus are not represented.
const LARGEST_EXPONENT: f64 = 600.0;

/// Identical queries of a composition: all parts lie on multiples of one spacing.
#[derive(Debug, Clone)]
pub(super) struct RepeatedQuery {
    pub(super) loss: LossDistribution,
    pub(super) times: u64,
}

impl RepeatedQuery {
    /// The number of queries.
    pub(super) fn count(&self) -> f64 {
        self.times as f64
    }

    /// The largest finite loss of one query.
    fn reach(&self) -> f64 {
        self.loss.half() as f64 * self.loss.spacing()
    }

    /// Mean and variance of the tilted loss of one query.
    fn tilted_moments(&self, order: f64) -> (f64, f64) {
        let normalizer = self.loss.log_moment(order);
        let (mut first, mut second) = (0.0, 0.0);
        for (loss, mass) in self.loss.carrying() {
            let weight = tilted(mass, order * loss - normalizer);
            first += weight * loss;
            second += weight * loss * loss;
        }
        (first, (second - first * first).max(0.0))
    }
}

fn tilted(mass: f64, exponent: f64) -> f64 {
    // The normalizer bounds the sum, so no weight exceeds one except by rounding.
    if mass > 0.0 { (mass * exponent.exp()).min(1.0) } else { 0.0 }
}

/// The number of all queries.
pub(super) fn query_count(parts: &[RepeatedQuery]) -> f64 {
    parts.iter().map(RepeatedQuery::count).sum()
}

/// Σ of a value over all queries.
pub(super) fn sum_over_queries(parts: &[RepeatedQuery], value: impl Fn(&RepeatedQuery) -> f64) -> f64 {
    parts.iter().map(|part| part.count() * value(part)).sum()
}

/// An upper bound of ln E\[e^(order·sum)\] over the finite losses of all parts.
pub(super) fn log_moment(parts: &[RepeatedQuery], order: f64) -> f64 {
    sum_over_queries(parts, |part| part.loss.log_moment(order))
}

/// Mean and deviation of the tilted sum; they choose windows and decide no claim.
pub(super) fn tilted_moments(parts: &[RepeatedQuery], order: f64) -> (f64, f64) {
    let (mut mean, mut variance) = (0.0, 0.0);
    for part in parts {
        let (own_mean, own_variance) = part.tilted_moments(order);
        mean += part.count() * own_mean;
        variance += part.count() * own_variance;
    }
    (mean, variance.sqrt())
}

/// The mass of all paths on which at least one loss is infinite.
pub(super) fn infinite_mass(parts: &[RepeatedQuery]) -> Enclosure {
    let (mut log_finite, mut log_ratio, mut relative) = (0.0, 0.0, 16.0 * ELEMENTARY);
    for part in parts {
        let finite = part.loss.finite_mass();
        log_finite += part.count() * finite.ln();
        log_ratio += part.count() * (part.loss.infinite_mass() / finite).ln_1p();
        relative += part.count() * ROUNDOFF * (4.0 * part.loss.half() as f64 + 64.0);
    }
    if log_ratio <= 0.0 {
        return Enclosure::ZERO;
    }
    let mass = log_finite.exp() * log_ratio.exp_m1();
    Enclosure::within(mass, compounded(relative, 1.0))
}

/// The cells of the sum that are represented, and a bound on the mass above them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellRange {
    pub(super) bottom: i64,
    pub(super) top: i64,
    pub(super) above: f64,
    pub(super) order: f64,
    pub(super) spacing: f64,
}

impl CellRange {
    /// All of the tilted sum but e^(−44) of it on either side.
    pub(crate) fn new(parts: &[RepeatedQuery], order: f64, spacing: f64) -> Self {
        let (mean, deviation) = tilted_moments(parts, order);
        let reach = sum_over_queries(parts, RepeatedQuery::reach);
        let chernoff = Chernoff::new(parts, order, (2.0 * OUTSIDE).sqrt() / deviation.max(spacing));
        let cell = |loss: f64| (loss / spacing).clamp(-1e15, 1e15);
        let top = cell(chernoff.top.min(reach).max(mean)).ceil() as i64;
        let bottom = cell(chernoff.bottom.max(-reach).min(mean)).floor() as i64;
        let above = if chernoff.top >= reach { 0.0 } else { mass_above(parts, chernoff.steep, top as f64 * spacing) };
        Self { bottom, top, above, order, spacing }
    }

    /// The length of the transform.
    pub(crate) fn length(&self) -> usize {
        ((self.top - self.bottom + 1) as usize).next_power_of_two().max(2)
    }

    /// By how much the exponent of the tilt grows from one cell to the next.
    pub(super) fn per_cell(&self) -> f64 {
        self.order * self.spacing
    }

    /// The largest exponent of the tilt at a cell.
    pub(super) fn largest_exponent(&self) -> f64 {
        self.top.abs().max(self.bottom.abs()) as f64 * self.per_cell()
    }

    /// The cell of a loss, or the nearest one that is represented.
    pub(super) fn cell_of(&self, loss: f64) -> i64 {
        ((loss / self.spacing).floor() as i64).clamp(self.bottom, self.top)
    }

    /// The cells at which the tilt is undone relative to a reference: none so far below it that the factor would overflow.
    pub(super) fn cells(&self, reference: i64) -> RangeInclusive<i64> {
        let per_cell = self.per_cell();
        let lowest = if per_cell > 0.0 {
            self.bottom.max(reference - (LARGEST_EXPONENT / per_cell).min(1e15) as i64)
        } else {
            self.bottom
        };
        lowest..=self.top
    }
}

/// Losses above and below which the tilted sum has at most e^(−44) of its mass, by Chernoff's bound.
struct Chernoff {
    top: f64,
    bottom: f64,
    /// The order that gives the top.
    steep: f64,
}

impl Chernoff {
    /// `usual` is the best step of the order for a Gaussian; some octaves around it are tried.
    fn new(parts: &[RepeatedQuery], order: f64, usual: f64) -> Self {
        let base = log_moment(parts, order);
        let bound = |step: f64| (log_moment(parts, order + step) - base + OUTSIDE) / step;
        let mut best = Self { top: f64::INFINITY, bottom: f64::NEG_INFINITY, steep: order + usual };
        for step in half_octaves(-8..=8).map(|factor| usual * factor) {
            let above = bound(step);
            if above < best.top {
                (best.top, best.steep) = (above, order + step);
            }
            best.bottom = best.bottom.max(bound(-step));
        }
        best
    }
}

/// An upper bound of the mass of the sum above a loss, by Chernoff's bound at this order.
fn mass_above(parts: &[RepeatedQuery], order: f64, loss: f64) -> f64 {
    let exponent = log_moment(parts, order) - order * loss * (1.0 - 4.0 * ROUNDOFF);
    up((exponent + 1e-9 * exponent.abs()).exp(), 4.0 * ELEMENTARY)
}

/// Below e^(−this) a spectral value is replaced by zero and counted as error.
const VANISHING: f64 = 650.0;

/// The normalizers of a tilt and the rounding it costs.
pub(super) struct LossTilt {
    order: f64,
    /// One for each part, as a logarithm.
    normalizers: Vec<f64>,
    /// Σ times·normalizer, what undoing the tilt multiplies by, as a logarithm.
    log_total: f64,
    /// Σ times·|normalizer|.
    log_size: f64,
    /// The relative error of the tilted weights of all queries together.
    relative: f64,
}

impl LossTilt {
    pub(super) fn new(parts: &[RepeatedQuery], order: f64) -> Self {
        let normalizers: Vec<f64> = parts.iter().map(|part| part.loss.log_moment(order)).collect();
        let (mut log_total, mut log_size, mut relative) = (0.0, 0.0, 0.0);
        for (part, normalizer) in parts.iter().zip(&normalizers) {
            log_total += part.count() * normalizer;
            log_size += part.count() * normalizer.abs();
            relative += part.count() * weight_error(part, order, *normalizer);
        }
        Self { order, normalizers, log_total, log_size, relative }
    }

    /// What undoing the tilt relative to a reference multiplies all masses by, with the relative error of these many cells.
    pub(super) fn scale(&self, window: &CellRange, reference: i64, cells: usize) -> Enclosure {
        let scale = (self.log_total - window.per_cell() * reference as f64).exp();
        Enclosure::within(scale, self.relative_error(window, cells))
    }

    /// The relative error of the masses of this many cells after the tilt is undone.
    fn relative_error(&self, window: &CellRange, cells: usize) -> f64 {
        let exponents = self.log_total.abs() + self.log_size + 2.0 * window.largest_exponent() + LARGEST_EXPONENT;
        let relative = self.relative + 4.0 * ROUNDOFF * exponents + 16.0 * ROUNDOFF * cells as f64 + 4.0 * ELEMENTARY;
        compounded(relative, 1.0)
    }

    /// The tilted law of the sum of all parts.
    pub(super) fn convolve(&self, parts: &[RepeatedQuery], window: &CellRange) -> TiltedSum {
        let fourier = Fourier::new(window.length());
        let mut product = LossSpectrum::one(window.length());
        for (part, normalizer) in parts.iter().zip(&self.normalizers) {
            let mut weights = self.weights(part, *normalizer, window);
            let error = transform_error(&fourier, &weights);
            fourier.forward(&mut weights);
            product.multiply(&weights, error, part.times);
        }
        product.invert(&fourier, query_count(parts))
    }

    /// The tilted masses of a part on the circle of a window's cells.
    fn weights(&self, part: &RepeatedQuery, normalizer: f64, window: &CellRange) -> Vec<Complex> {
        let mut weights = vec![Complex::ZERO; window.length()];
        let length = weights.len() as i64;
        let stride = (part.loss.spacing() / window.spacing) as i64;
        for (index, (loss, mass)) in part.loss.losses().enumerate() {
            let cell = (index as i64 - part.loss.half() as i64) * stride;
            weights[cell.rem_euclid(length) as usize].real += tilted(mass, self.order * loss - normalizer);
        }
        weights
    }
}

/// The relative error of the tilted weights of one query.
fn weight_error(part: &RepeatedQuery, order: f64, normalizer: f64) -> f64 {
    let exponent = order * part.reach() + normalizer.abs();
    // What wraps around is added up cell by cell, one rounding each.
    let additions = 2.0 * part.loss.half() as f64;
    2.0 * ELEMENTARY + ROUNDOFF * (4.0 * exponent + additions + 4.0)
}

/// How far the transform of real weights may be off at any one frequency, which may carry all of the error of the whole
/// transform.
fn transform_error(fourier: &Fourier, weights: &[Complex]) -> f64 {
    let norm: f64 = weights.iter().map(|weight| weight.real * weight.real).sum::<f64>().sqrt();
    fourier.relative_error() * (weights.len() as f64).sqrt() * norm * 1.01
}

/// The tilted sum, with bounds on its error at every cell.
pub(super) struct TiltedSum {
    values: Vec<f64>,
    error: f64,
    wrapped: f64,
}

impl TiltedSum {
    /// The masses of a window's cells with the tilt undone relative to a reference, from above and from below.
    pub(super) fn untilted(&self, window: &CellRange, reference: i64) -> Vec<(f64, f64)> {
        let factor = |cell: i64| (-window.per_cell() * (cell - reference) as f64).exp();
        window.cells(reference).map(|cell| self.mass(cell, factor(cell))).collect()
    }

    /// The mass of a cell times `factor`, from above and from below.
    #[inline]
    fn mass(&self, cell: i64, factor: f64) -> (f64, f64) {
        let value = self.values[cell.rem_euclid(self.values.len() as i64) as usize];
        let high = (value.max(0.0) + self.error) * factor;
        (high.max(f64::MIN_POSITIVE), (value - self.error - self.wrapped).max(0.0) * factor)
    }
}

/// The spectrum of the sum at the first half of all frequencies; the second half is its mirror image.
struct LossSpectrum {
    frequencies: Vec<SpectrumValue>,
    /// The length of the whole circle.
    length: usize,
}

impl LossSpectrum {
    fn one(length: usize) -> Self {
        Self { frequencies: vec![SpectrumValue::ONE; length / 2 + 1], length }
    }

    fn multiply(&mut self, spectrum: &[Complex], error: f64, times: u64) {
        for (frequency, value) in self.frequencies.iter_mut().zip(spectrum) {
            frequency.multiply(*value, error, times);
        }
    }

    /// No cell's error exceeds the mean of the errors of all frequencies.
    fn spectral_error(&self, total: f64) -> f64 {
        let rounding = compounded(Complex::PRODUCT_ERROR + 8.0 * ELEMENTARY, total + 64.0);
        let mut sum = 0.0;
        for (index, frequency) in self.frequencies.iter().enumerate() {
            let both_sides = if index == 0 || 2 * index == self.length { 1.0 } else { 2.0 };
            sum += both_sides * frequency.error(rounding);
        }
        let length = self.length as f64;
        sum / length * (1.0 + 4.0 * ROUNDOFF * length)
    }

    /// The conjugate of the whole spectrum. The inverse transform is the conjugate of the transform of the conjugate, and the
    /// sum is real.
    fn conjugate_spectrum(&self) -> Vec<Complex> {
        let inner = &self.frequencies[1..self.frequencies.len() - 1];
        let first_half = self.frequencies.iter().map(|frequency| frequency.value.conjugate());
        first_half.chain(inner.iter().rev().map(|frequency| frequency.value)).collect()
    }

    /// The sum itself; `total` is the number of its terms.
    fn invert(self, fourier: &Fourier, total: f64) -> TiltedSum {
        let spectral = self.spectral_error(total);
        let mut spectrum = self.conjugate_spectrum();
        let norm: f64 = spectrum.iter().map(|value| value.magnitude().powi(2)).sum::<f64>().sqrt();
        fourier.forward(&mut spectrum);
        let length = self.length as f64;
        let scale = 1.0 / length;
        let transform = fourier.relative_error() * norm / length.sqrt();
        TiltedSum {
            values: spectrum.iter().map(|value| value.real * scale).collect(),
            // Weights that underflow are less than this together.
            error: up(spectral + transform, 0.01) + 1e-290,
            wrapped: 4.0 * (-OUTSIDE).exp(),
        }
    }
}

/// The spectrum at one frequency: its value and the logarithms between which its magnitude may move.
#[derive(Clone, Copy)]
struct SpectrumValue {
    value: Complex,
    log_low: f64,
    log_high: f64,
}

impl SpectrumValue {
    const ONE: Self = Self { value: Complex::ONE, log_low: 0.0, log_high: 0.0 };

    /// Multiplies by a power of a value that may be off by `error`.
    #[inline]
    fn multiply(&mut self, value: Complex, error: f64, times: u64) {
        let (count, magnitude) = (times as f64, value.magnitude());
        self.log_low += count * magnitude.ln();
        self.log_high += count * (magnitude + error).ln();
        self.value = if self.vanishes() { Complex::ZERO } else { self.value * value.power(times) };
    }

    fn vanishes(&self) -> bool {
        self.log_high < -VANISHING
    }

    /// |X^T − X̂^T| ≤ (|X̂| + error)^T − |X̂|^T, and the rounding of the powers.
    #[inline]
    fn error(&self, rounding: f64) -> f64 {
        // Logarithms near −650 carry more rounding than those near 0.
        let slack = 32.0 * ROUNDOFF * self.log_high.abs();
        let moved = if self.vanishes() { 1.0 } else { -(self.log_low - self.log_high).exp_m1() + rounding + slack };
        self.log_high.exp() * moved
    }
}

/// The hockey-stick curve of the composed measure, as an upper and a lower bound.
#[derive(Debug, Clone)]
pub(crate) struct HockeyStickBounds {
    upper: HockeyStickCurve,
    lower: HockeyStickCurve,
    /// The factor on both curves.
    scale: Enclosure,
    /// The mass above the represented losses, at most.
    above: f64,
    infinite: Enclosure,
}

impl HockeyStickBounds {
    /// Convolves; sharp for losses around `focus`.
    pub(crate) fn new(parts: &[RepeatedQuery], window: CellRange, focus: f64) -> Self {
        let tilt = LossTilt::new(parts, window.order);
        let reference = window.cell_of(focus);
        let masses = tilt.convolve(parts, &window).untilted(&window, reference);
        let first = *window.cells(reference).start();
        Self {
            upper: HockeyStickCurve::new(masses.iter().map(|mass| mass.0), first, window.spacing),
            lower: HockeyStickCurve::new(masses.iter().map(|mass| mass.1), first, window.spacing),
            scale: tilt.scale(&window, reference, masses.len()),
            above: window.above,
            infinite: infinite_mass(parts),
        }
    }

    /// An upper bound of the composed curve at any ε.
    pub(crate) fn upper(&self, epsilon: f64) -> f64 {
        // Below the represented losses nothing better than certainty is known.
        let Some(delta) = self.upper.at(epsilon) else { return 1.0 };
        let finite = up(delta * self.scale.upper(), 8.0 * ELEMENTARY).max(f64::MIN_POSITIVE);
        add_up(add_up(finite, self.above), self.infinite.upper()).min(1.0)
    }

    /// A lower bound of the composed measure's curve.
    pub(crate) fn lower(&self, epsilon: f64) -> f64 {
        let delta = self.lower.at(epsilon.max(self.lower.first_knot())).unwrap_or(0.0);
        down(down(delta * self.scale.lower(), 8.0 * ELEMENTARY) + self.infinite.lower(), ROUNDOFF)
    }

    /// The largest represented loss.
    pub(crate) fn top(&self) -> f64 {
        self.upper.last_knot()
    }
}

/// The hockey-stick curve of masses on a grid.
#[derive(Debug, Clone)]
struct HockeyStickCurve {
    spacing: f64,
    /// The cell of the first knot.
    first: i64,
    knots: Vec<Knot>,
}

/// The curve at one knot, and its descent behind it.
#[derive(Debug, Clone, Copy)]
struct Knot {
    delta: f64,
    descent: f64,
}

impl HockeyStickCurve {
    /// The curve at every knot from the masses, from the top down; sums of positive terms only.
    fn new(masses: impl DoubleEndedIterator<Item = f64> + ExactSizeIterator, first: i64, spacing: f64) -> Self {
        let (shrink, growth) = ((-spacing).exp(), spacing.exp_m1());
        let mut knots = vec![Knot { delta: 0.0, descent: 0.0 }; masses.len()];
        let (mut delta, mut descent) = (0.0, 0.0);
        for (index, mass) in masses.enumerate().rev() {
            delta += growth * descent;
            knots[index] = Knot { delta, descent };
            descent = shrink * (descent + mass);
        }
        Self { spacing, first, knots }
    }

    fn first_knot(&self) -> f64 {
        self.first as f64 * self.spacing
    }

    fn last_knot(&self) -> f64 {
        (self.first + self.knots.len() as i64 - 1) as f64 * self.spacing
    }

    /// The curve at any ε; none below the first knot.
    fn at(&self, epsilon: f64) -> Option<f64> {
        let position = epsilon / self.spacing;
        let index = position.floor() - self.first as f64;
        if index < 0.0 {
            return None;
        }
        if index >= (self.knots.len() - 1) as f64 {
            return Some(0.0);
        }
        let (knot, next) = (self.knots[index as usize], self.knots[index as usize + 1]);
        let inside = epsilon - position.floor() * self.spacing;
        // The curve is linear in e^ε between two knots; both factors are positive.
        Some(next.delta + inside.exp() * (self.spacing - inside).exp_m1().max(0.0) * knot.descent)
    }
}
