//! A discrete Fourier transform with a proved error bound (`docs/composition.md`, "Convolution").
//!
//! Library transforms are faster, but none states a bound, and a δ of 1e-10 is only a claim if the error of the sum
//! behind it is known. This is the plain radix-2 algorithm of Cooley and Tukey, for which Higham (*Accuracy
//! and Stability of Numerical Algorithms*, theorem 24.2) proves ‖error‖₂ ≤ tη/(1−tη)·‖result‖₂ with t = log₂ n,
//! η = μ + γ₄(√2 + μ), where μ bounds the error of the roots of unity.

use std::f64::consts::{PI, SQRT_2};
use std::ops::{Add, Mul, Neg, Sub};
use std::sync::OnceLock;

use super::rounding::ROUNDOFF;

/// A complex number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Complex {
    pub(crate) real: f64,
    pub(crate) imaginary: f64,
}

impl Complex {
    pub(crate) const ZERO: Self = Self { real: 0.0, imaginary: 0.0 };
    pub(crate) const ONE: Self = Self { real: 1.0, imaginary: 0.0 };

    /// Relative error of one product: √2·γ₂ (Higham, lemma 3.5), with a little room.
    pub(crate) const PRODUCT_ERROR: f64 = 4.0 * ROUNDOFF;

    /// How far each part of a [`Self::root_of_unity`] may be off, for an index below half the length: the angle is below π and
    /// carries two roundings, and sine and cosine add theirs. μ in the theorem.
    pub(super) const ROOT_ERROR: f64 = 12.0 * ROUNDOFF;

    /// e^(−2πi·index/length).
    pub(super) fn root_of_unity(index: usize, length: usize) -> Self {
        let (imaginary, real) = (-2.0 * PI / length as f64 * index as f64).sin_cos();
        Self { real, imaginary }
    }

    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self { real: factor * self.real, imaginary: factor * self.imaginary }
    }

    pub(super) fn reciprocal(self) -> Self {
        let square = self.squared_magnitude();
        Self { real: self.real / square, imaginary: -self.imaginary / square }
    }

    pub(crate) fn conjugate(self) -> Self {
        Self { imaginary: -self.imaginary, ..self }
    }

    /// The number times i.
    pub(crate) fn turned_left(self) -> Self {
        Self { real: -self.imaginary, imaginary: self.real }
    }

    pub(crate) fn magnitude(self) -> f64 {
        self.squared_magnitude().sqrt()
    }

    fn squared_magnitude(self) -> f64 {
        self.real * self.real + self.imaginary * self.imaginary
    }

    /// The power by repeated squaring: at most `exponent` products' worth of relative error.
    pub(crate) fn power(self, mut exponent: u64) -> Self {
        let mut result = Self::ONE;
        let mut square = self;
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result * square;
            }
            exponent >>= 1;
            if exponent > 0 {
                square = square * square;
            }
        }
        result
    }
}

impl Add for Complex {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self { real: self.real + other.real, imaginary: self.imaginary + other.imaginary }
    }
}

impl Sub for Complex {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self { real: self.real - other.real, imaginary: self.imaginary - other.imaginary }
    }
}

impl Mul for Complex {
    type Output = Self;

    #[inline]
    fn mul(self, other: Self) -> Self {
        Self {
            real: self.real * other.real - self.imaginary * other.imaginary,
            imaginary: self.real * other.imaginary + self.imaginary * other.real,
        }
    }
}

impl Neg for Complex {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        Self { real: -self.real, imaginary: -self.imaginary }
    }
}

/// Transforms of one length, a power of two.
pub(crate) struct Fourier {
    roots: Vec<Complex>,
}

impl Fourier {
    /// What one of the t stages adds to the relative error: η in the theorem.
    const STAGE_ERROR: f64 = Complex::ROOT_ERROR + 4.1 * ROUNDOFF * (SQRT_2 + Complex::ROOT_ERROR);

    /// [`Self::of`] keeps transforms of lengths below two to this power.
    const KEPT_LENGTHS: usize = 24;

    /// Prepares transforms of `length`, a power of two and at least 2.
    pub(crate) fn new(length: usize) -> Self {
        debug_assert!(length.is_power_of_two() && length >= 2);
        Self { roots: (0..length / 2).map(|index| Complex::root_of_unity(index, length)).collect() }
    }

    /// Transforms of `length`, prepared once and kept: for callers that need the same few lengths again and again.
    pub(crate) fn of(length: usize) -> &'static Self {
        static KEPT: [OnceLock<Fourier>; Fourier::KEPT_LENGTHS] = [const { OnceLock::new() }; Fourier::KEPT_LENGTHS];
        KEPT[length.trailing_zeros() as usize].get_or_init(|| Self::new(length))
    }

    /// Replaces `values` by their transform, not normalized.
    pub(crate) fn forward(&self, values: &mut [Complex]) {
        let length = values.len();
        debug_assert_eq!(length, 2 * self.roots.len());
        bit_reverse(values);
        let mut width = 1;
        while width < length {
            let stride = length / (2 * width);
            for block in values.chunks_exact_mut(2 * width) {
                self.combine_halves(block, stride);
            }
            width *= 2;
        }
    }

    /// Makes the transform of a block from those of its halves.
    #[inline]
    fn combine_halves(&self, block: &mut [Complex], stride: usize) {
        let (low, high) = block.split_at_mut(block.len() / 2);
        for (index, (left, right)) in low.iter_mut().zip(high).enumerate() {
            let turned = *right * self.roots[index * stride];
            *right = *left - turned;
            *left = *left + turned;
        }
    }

    /// The bound on ‖error‖₂/‖result‖₂ of [`Self::forward`].
    pub(crate) fn relative_error(&self) -> f64 {
        let total = (2.0 * self.roots.len() as f64).log2() * Self::STAGE_ERROR;
        total / (1.0 - total) * 1.01
    }
}

/// Moves every value to the index with its own index's bits in reverse order.
fn bit_reverse(values: &mut [Complex]) {
    let shift = usize::BITS - values.len().trailing_zeros();
    for index in 0..values.len() {
        let partner = index.reverse_bits() >> shift;
        if index < partner {
            values.swap(index, partner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_definition_within_the_stated_bound() {
        for length in [2_usize, 4, 64] {
            let signal: Vec<Complex> = (0..length)
                .map(|index| Complex { real: ((index * index) as f64).sin(), imaginary: (index as f64).cos() })
                .collect();
            let mut fast = signal.clone();
            let fourier = Fourier::of(length);
            fourier.forward(&mut fast);
            let (mut error, mut norm) = (0.0, 0.0);
            for (frequency, value) in fast.iter().enumerate() {
                let mut exact = Complex::ZERO;
                for (index, sample) in signal.iter().enumerate() {
                    let angle = -2.0 * PI * ((frequency * index) % length) as f64 / length as f64;
                    exact = exact + *sample * Complex { real: angle.cos(), imaginary: angle.sin() };
                }
                error += (exact.real - value.real).powi(2) + (exact.imaginary - value.imaginary).powi(2);
                norm += exact.magnitude().powi(2);
            }
            // The sum by definition is itself off by a few roundings per term.
            assert!((error / norm).sqrt() < fourier.relative_error() + length as f64 * ROUNDOFF, "{length}");
            assert!(fourier.relative_error() < 1e-13);
        }
    }

    #[test]
    fn powers() {
        let base = Complex { real: 0.6, imaginary: 0.8 };
        let mut slow = Complex { real: 1.0, imaginary: 0.0 };
        for exponent in 0..40 {
            let fast = base.power(exponent);
            assert!((fast.real - slow.real).abs() < 1e-14 && (fast.imaginary - slow.imaginary).abs() < 1e-14);
            slow = slow * base;
        }
    }
}
