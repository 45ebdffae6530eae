//! The law of a tilted sum, by the product of its parts' transforms (`docs/composition.md`, "Convolution").

use super::{LARGEST_EXPONENT, OUTSIDE, Part, Window, query_count, tilted};
use crate::certified::enclosure::Enclosure;
use crate::certified::fourier::{Complex, Fourier};
use crate::certified::rounding::{ELEMENTARY, ROUNDOFF, compounded, up};

/// Below e^(−this) a spectral value is replaced by zero and counted as error.
const VANISHING: f64 = 650.0;

/// The normalizers of a tilt and the rounding it costs.
pub(super) struct Tilt {
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

impl Tilt {
    pub(super) fn new(parts: &[Part], order: f64) -> Self {
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
    pub(super) fn scale(&self, window: &Window, reference: i64, cells: usize) -> Enclosure {
        let scale = (self.log_total - window.per_cell() * reference as f64).exp();
        Enclosure::within(scale, self.relative_error(window, cells))
    }

    /// The relative error of the masses of this many cells after the tilt is undone.
    fn relative_error(&self, window: &Window, cells: usize) -> f64 {
        let exponents = self.log_total.abs() + self.log_size + 2.0 * window.largest_exponent() + LARGEST_EXPONENT;
        let relative = self.relative + 4.0 * ROUNDOFF * exponents + 16.0 * ROUNDOFF * cells as f64 + 4.0 * ELEMENTARY;
        compounded(relative, 1.0)
    }

    /// The tilted law of the sum of all parts.
    pub(super) fn convolve(&self, parts: &[Part], window: &Window) -> TiltedSum {
        let fourier = Fourier::new(window.length());
        let mut product = Product::one(window.length());
        for (part, normalizer) in parts.iter().zip(&self.normalizers) {
            let mut weights = self.weights(part, *normalizer, window);
            let error = transform_error(&fourier, &weights);
            fourier.forward(&mut weights);
            product.multiply(&weights, error, part.times);
        }
        product.invert(&fourier, query_count(parts))
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
}

/// The relative error of the tilted weights of one query.
fn weight_error(part: &Part, order: f64, normalizer: f64) -> f64 {
    let exponent = order * part.reach() + normalizer.abs();
    // What wraps around is added up cell by cell, one rounding each.
    let additions = 2.0 * part.loss.half() as f64;
    2.0 * ELEMENTARY + ROUNDOFF * (4.0 * exponent + additions + 4.0)
}

/// How far the transform of real weights may be off at any one frequency, which may carry all of the error of the whole transform.
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
    pub(super) fn untilted(&self, window: &Window, reference: i64) -> Vec<(f64, f64)> {
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
struct Product {
    frequencies: Vec<Frequency>,
    /// The length of the whole circle.
    length: usize,
}

impl Product {
    fn one(length: usize) -> Self {
        Self { frequencies: vec![Frequency::ONE; length / 2 + 1], length }
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

    /// The conjugate of the whole spectrum. The inverse transform is the conjugate of the transform of the conjugate, and the sum is
    /// real.
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
struct Frequency {
    value: Complex,
    log_low: f64,
    log_high: f64,
}

impl Frequency {
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
