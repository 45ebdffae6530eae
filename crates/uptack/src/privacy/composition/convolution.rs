//! Convolution of many loss distributions by a tilted Fourier transform, with its error carried along
//! (`docs/composition.md`, "Convolution").
//!
//! The error of a transform is absolute, the tail wanted is tiny. So every mass is first multiplied by e^(order·loss):
//! the tilted sum has its bulk where the tail is asked for, and undoing the tilt turns the absolute error into one
//! relative to the tail. Whatever wraps around only adds mass; what lies above the window is bounded by Chernoff.

use std::ops::RangeInclusive;

use super::loss_distribution::LossDistribution;
use crate::certified::fourier::{Complex, Fourier};
use crate::certified::rounding::{ELEMENTARY, ROUNDOFF, add_up, compounded, down, up};

/// −ln of the tilted mass that may lie outside the window.
const OUTSIDE: f64 = 44.0;
/// Below e^(−this) a spectral value is replaced by zero and counted as error.
const VANISHING: f64 = 650.0;
/// The largest tilt undone, as an exponent; losses further below the focus are not represented.
const LARGEST_EXPONENT: f64 = 600.0;

/// Identical queries of a composition: all parts lie on multiples of one spacing.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) loss: LossDistribution,
    pub(super) times: u64,
}

impl Part {
    fn count(&self) -> f64 {
        self.times as f64
    }

    fn reach(&self) -> f64 {
        self.loss.half() as f64 * self.loss.spacing()
    }
}

/// An upper bound of ln E\[e^(order·sum)\] over the finite losses of all parts.
pub(super) fn log_moment(parts: &[Part], order: f64) -> f64 {
    parts.iter().map(|part| part.count() * part.loss.log_moment(order)).sum()
}

/// Mean and deviation of the tilted sum; they choose windows and decide no claim.
pub(super) fn tilted_moments(parts: &[Part], order: f64) -> (f64, f64) {
    let (mut mean, mut variance) = (0.0, 0.0);
    for part in parts {
        let normalizer = part.loss.log_moment(order);
        let (mut first, mut second) = (0.0, 0.0);
        for (loss, mass) in part.loss.carrying() {
            let weight = tilted(mass, order * loss - normalizer);
            first += weight * loss;
            second += weight * loss * loss;
        }
        mean += part.count() * first;
        variance += part.count() * (second - first * first).max(0.0);
    }
    (mean, variance.sqrt())
}

/// The cells of the sum that are represented, and a bound on the mass above them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    bottom: i64,
    top: i64,
    above: f64,
    order: f64,
    spacing: f64,
}

impl Window {
    /// All of the tilted sum but e^(−44) of it on either side.
    pub(super) fn new(parts: &[Part], order: f64, spacing: f64) -> Self {
        let (mean, deviation) = tilted_moments(parts, order);
        let reach: f64 = parts.iter().map(|part| part.count() * part.reach()).sum();
        let chernoff = Chernoff::new(parts, order, (2.0 * OUTSIDE).sqrt() / deviation.max(spacing));
        let cell = |loss: f64| (loss / spacing).clamp(-1e15, 1e15);
        let top = cell(chernoff.top.min(reach).max(mean)).ceil() as i64;
        let bottom = cell(chernoff.bottom.max(-reach).min(mean)).floor() as i64;
        let above = if chernoff.top >= reach { 0.0 } else { mass_above(parts, chernoff.steep, top as f64 * spacing) };
        Self { bottom, top, above, order, spacing }
    }

    /// The length of the transform.
    pub(super) fn length(&self) -> usize {
        ((self.top - self.bottom + 1) as usize).next_power_of_two().max(2)
    }

    /// By how much the exponent of the tilt grows from one cell to the next.
    fn per_cell(&self) -> f64 {
        self.order * self.spacing
    }

    /// The cell of a loss, or the nearest one that is represented.
    fn cell_of(&self, loss: f64) -> i64 {
        ((loss / self.spacing).floor() as i64).clamp(self.bottom, self.top)
    }

    /// The cells at which the tilt is undone relative to a reference: none so far below it that the factor would overflow.
    fn cells(&self, reference: i64) -> RangeInclusive<i64> {
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
    fn new(parts: &[Part], order: f64, usual: f64) -> Self {
        let base = log_moment(parts, order);
        let (mut top, mut bottom, mut steepest) = (f64::INFINITY, f64::NEG_INFINITY, usual);
        for half_octave in -8..=8 {
            let step = usual * f64::from(half_octave).exp2().sqrt();
            let above = (log_moment(parts, order + step) - base + OUTSIDE) / step;
            let below = -(log_moment(parts, order - step) - base + OUTSIDE) / step;
            if above < top {
                (top, steepest) = (above, step);
            }
            bottom = bottom.max(below);
        }
        Self { top, bottom, steep: order + steepest }
    }
}

/// An upper bound of the mass of the sum above a loss, by Chernoff's bound at this order.
fn mass_above(parts: &[Part], order: f64, loss: f64) -> f64 {
    let exponent = log_moment(parts, order) - order * loss * (1.0 - 4.0 * ROUNDOFF);
    up((exponent + 1e-9 * exponent.abs()).exp(), 4.0 * ELEMENTARY)
}

/// The hockey-stick curve of the composed measure, as an upper and a lower bound.
#[derive(Debug, Clone)]
pub(super) struct Tail {
    spacing: f64,
    first: i64,
    upper: Vec<Knot>,
    lower: Vec<Knot>,
    scale_upper: f64,
    scale_lower: f64,
    above: f64,
    infinite_upper: f64,
    infinite_lower: f64,
}

/// The curve at one knot, and its descent behind it.
#[derive(Debug, Clone, Copy)]
struct Knot {
    delta: f64,
    descent: f64,
}

impl Tail {
    /// Convolves; sharp for losses around `focus`.
    pub(super) fn new(parts: &[Part], window: Window, focus: f64) -> Self {
        let tilt = Tilt::new(parts, window.order);
        let sum = tilt.convolve(parts, &window);
        let reference = window.cell_of(focus);
        let cells = window.cells(reference);
        let first = *cells.start();
        let factor = |cell: i64| (-window.per_cell() * (cell - reference) as f64).exp();
        let masses: Vec<(f64, f64)> = cells.map(|cell| sum.mass(cell, factor(cell))).collect();
        let log_scale = tilt.log_total - window.order * window.spacing * reference as f64;
        let relative = tilt.relative_error(&window, masses.len());
        let (infinite_lower, infinite_upper) = infinite_mass(parts);
        Self {
            spacing: window.spacing,
            first,
            upper: curve(masses.iter().map(|mass| mass.0), window.spacing),
            lower: curve(masses.iter().map(|mass| mass.1), window.spacing),
            scale_upper: up(log_scale.exp(), relative),
            scale_lower: down(log_scale.exp(), relative),
            above: window.above,
            infinite_upper,
            infinite_lower,
        }
    }

    /// An upper bound of the composed curve at any ε.
    pub(super) fn upper(&self, epsilon: f64) -> f64 {
        let finite = self
            .interpolate(&self.upper, epsilon)
            .map(|delta| up(delta * self.scale_upper, 8.0 * ELEMENTARY).max(f64::MIN_POSITIVE));
        // Below the represented losses nothing better than certainty is known.
        finite.map_or(1.0, |finite| add_up(add_up(finite, self.above), self.infinite_upper)).min(1.0)
    }

    /// A lower bound of the composed measure's curve.
    pub(super) fn lower(&self, epsilon: f64) -> f64 {
        let first = self.first as f64 * self.spacing;
        let finite = self.interpolate(&self.lower, epsilon.max(first)).unwrap_or(0.0);
        down(down(finite * self.scale_lower, 8.0 * ELEMENTARY) + self.infinite_lower, ROUNDOFF)
    }

    /// The largest represented loss.
    pub(super) fn top(&self) -> f64 {
        (self.first + self.upper.len() as i64 - 1) as f64 * self.spacing
    }

    fn interpolate(&self, curve: &[Knot], epsilon: f64) -> Option<f64> {
        let position = epsilon / self.spacing;
        let index = position.floor() - self.first as f64;
        if index < 0.0 {
            return None;
        }
        if index >= (curve.len() - 1) as f64 {
            return Some(0.0);
        }
        let inside = epsilon - position.floor() * self.spacing;
        let next = curve[index as usize + 1].delta;
        // The curve is linear in e^ε between two knots; both factors are positive.
        Some(next + inside.exp() * (self.spacing - inside).exp_m1().max(0.0) * curve[index as usize].descent)
    }
}

/// The curve at every knot from the masses, from the top down; sums of positive terms only.
fn curve(masses: impl DoubleEndedIterator<Item = f64> + ExactSizeIterator, spacing: f64) -> Vec<Knot> {
    let (shrink, growth) = ((-spacing).exp(), spacing.exp_m1());
    let mut knots = vec![Knot { delta: 0.0, descent: 0.0 }; masses.len()];
    let (mut delta, mut descent) = (0.0, 0.0);
    for (index, mass) in masses.enumerate().rev() {
        delta += growth * descent;
        knots[index] = Knot { delta, descent };
        descent = shrink * (descent + mass);
    }
    knots
}

/// Bounds of the mass of all paths on which at least one loss is infinite.
pub(super) fn infinite_mass(parts: &[Part]) -> (f64, f64) {
    let (mut log_finite, mut log_ratio, mut relative) = (0.0, 0.0, 16.0 * ELEMENTARY);
    for part in parts {
        let finite = part.loss.finite_mass();
        log_finite += part.count() * finite.ln();
        log_ratio += part.count() * (part.loss.infinite_mass() / finite).ln_1p();
        relative += part.count() * ROUNDOFF * (4.0 * part.loss.half() as f64 + 64.0);
    }
    if log_ratio <= 0.0 {
        return (0.0, 0.0);
    }
    let mass = log_finite.exp() * log_ratio.exp_m1();
    let relative = compounded(relative, 1.0);
    (down(mass, relative), up(mass, relative))
}

fn tilted(mass: f64, exponent: f64) -> f64 {
    // The normalizer bounds the sum, so no weight exceeds one but by rounding.
    if mass > 0.0 { (mass * exponent.exp()).min(1.0) } else { 0.0 }
}

/// The normalizers of a tilt and the rounding it costs.
struct Tilt {
    order: f64,
    normalizers: Vec<f64>,
    /// Σ times·normalizer, what undoing the tilt multiplies by, as a logarithm.
    log_total: f64,
    log_size: f64,
    relative: f64,
}

/// The tilted sum, with bounds on its error at every cell.
struct TiltedSum {
    values: Vec<f64>,
    error: f64,
    wrapped: f64,
}

impl TiltedSum {
    /// The mass of a cell times `factor`, from above and from below.
    #[inline]
    fn mass(&self, cell: i64, factor: f64) -> (f64, f64) {
        let value = self.values[cell.rem_euclid(self.values.len() as i64) as usize];
        let high = (value.max(0.0) + self.error) * factor;
        (high.max(f64::MIN_POSITIVE), (value - self.error - self.wrapped).max(0.0) * factor)
    }
}

impl Tilt {
    fn new(parts: &[Part], order: f64) -> Self {
        let normalizers: Vec<f64> = parts.iter().map(|part| part.loss.log_moment(order)).collect();
        let (mut log_total, mut log_size, mut relative) = (0.0, 0.0, 0.0);
        for (part, normalizer) in parts.iter().zip(&normalizers) {
            log_total += part.count() * normalizer;
            log_size += part.count() * normalizer.abs();
            let exponent = order * part.reach() + normalizer.abs();
            // What wraps around is added up cell by cell, one rounding each.
            let additions = 2.0 * part.loss.half() as f64;
            relative += part.count() * (2.0 * ELEMENTARY + ROUNDOFF * (4.0 * exponent + additions + 4.0));
        }
        Self { order, normalizers, log_total, log_size, relative }
    }

    /// The relative error of all masses after the tilt is undone, of so many cells.
    fn relative_error(&self, window: &Window, cells: usize) -> f64 {
        let extent = window.top.abs().max(window.bottom.abs()) as f64 * window.per_cell();
        let relative = self.relative
            + 4.0 * ROUNDOFF * (self.log_total.abs() + self.log_size + 2.0 * extent + LARGEST_EXPONENT)
            + 16.0 * ROUNDOFF * cells as f64
            + 4.0 * ELEMENTARY;
        compounded(relative, 1.0)
    }

    /// The tilted masses of a part on the circle of a window's cells.
    fn weights(&self, part: &Part, normalizer: f64, window: &Window) -> Vec<Complex> {
        let mut weights = vec![Complex::ZERO; window.length()];
        let length = weights.len() as i64;
        let stride = (part.loss.spacing() / window.spacing) as i64;
        for (index, (loss, mass)) in part.loss.losses().enumerate() {
            let cell = (index as i64 - part.loss.half() as i64) * stride;
            weights[cell.rem_euclid(length) as usize].real += tilted(mass, self.order * loss - normalizer);
        }
        weights
    }

    /// The tilted law of the sum of all parts, by the product of their transforms.
    fn convolve(&self, parts: &[Part], window: &Window) -> TiltedSum {
        let length = window.length();
        let fourier = Fourier::new(length);
        let mut product = Product::one(length / 2 + 1);
        for (part, normalizer) in parts.iter().zip(&self.normalizers) {
            let mut weights = self.weights(part, *normalizer, window);
            // One frequency may carry all of the error of the whole transform.
            let norm: f64 = weights.iter().map(|weight| weight.real * weight.real).sum::<f64>().sqrt();
            let error = fourier.relative_error() * (length as f64).sqrt() * norm * 1.01;
            fourier.forward(&mut weights);
            product.multiply(&weights, error, part.times);
        }
        let total: f64 = parts.iter().map(Part::count).sum();
        product.invert(&fourier, total)
    }
}

/// The spectrum of the sum: its values and the logarithms between which its magnitude may move.
struct Product {
    values: Vec<Complex>,
    log_low: Vec<f64>,
    log_high: Vec<f64>,
}

impl Product {
    fn one(length: usize) -> Self {
        let values = vec![Complex { real: 1.0, imaginary: 0.0 }; length];
        Self { values, log_low: vec![0.0; length], log_high: vec![0.0; length] }
    }

    fn multiply(&mut self, spectrum: &[Complex], error: f64, times: u64) {
        let count = times as f64;
        for (index, value) in spectrum.iter().take(self.values.len()).enumerate() {
            let magnitude = value.magnitude();
            self.log_low[index] += count * magnitude.ln();
            self.log_high[index] += count * (magnitude + error).ln();
            self.values[index] = if self.log_high[index] < -VANISHING {
                Complex::ZERO
            } else {
                self.values[index].times(value.power(times))
            };
        }
    }

    /// |X^T − X̂^T| ≤ (|X̂| + error)^T − |X̂|^T, summed over all frequencies: no cell's error exceeds the mean of that.
    fn spectral_error(&self, length: usize, total: f64) -> f64 {
        let rounding = compounded(Complex::PRODUCT_ERROR + 8.0 * ELEMENTARY, total + 64.0);
        let mut sum = 0.0;
        for (index, (low, high)) in self.log_low.iter().zip(&self.log_high).enumerate() {
            let both_sides = if index == 0 || 2 * index == length { 1.0 } else { 2.0 };
            // Logarithms near −650 carry more rounding than those near 0.
            let slack = 32.0 * ROUNDOFF * high.abs();
            let moved = if *high < -VANISHING { 1.0 } else { -(low - high).exp_m1() + rounding + slack };
            sum += both_sides * high.exp() * moved;
        }
        sum / length as f64 * (1.0 + 4.0 * ROUNDOFF * length as f64)
    }

    /// The conjugate of the whole spectrum, of which the second half is the mirror image of the first. The inverse transform is the
    /// conjugate of the transform of the conjugate, and the sum is real.
    fn conjugate_spectrum(&self) -> Vec<Complex> {
        let inner = 1..self.values.len() - 1;
        let conjugate = self.values.iter().map(|value| value.conjugate());
        conjugate.chain(self.values[inner].iter().rev().copied()).collect()
    }

    fn invert(self, fourier: &Fourier, total: f64) -> TiltedSum {
        let length = 2 * (self.values.len() - 1);
        let spectral = self.spectral_error(length, total);
        let mut full = self.conjugate_spectrum();
        let norm: f64 = full.iter().map(|value| value.magnitude().powi(2)).sum::<f64>().sqrt();
        fourier.forward(&mut full);
        let scale = 1.0 / length as f64;
        let transform = fourier.relative_error() * norm / (length as f64).sqrt();
        TiltedSum {
            values: full.iter().map(|value| value.real * scale).collect(),
            // Weights that underflow are less than this together.
            error: up(spectral + transform, 0.01) + 1e-290,
            wrapped: 4.0 * (-OUTSIDE).exp(),
        }
    }
}
