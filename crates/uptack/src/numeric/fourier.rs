//! The discrete Fourier transform that turns characteristic functions into laws.

use std::f64::consts::PI;
use std::sync::OnceLock;

/// The sines of all multiples of π/size, twice around: with whole multiples as indices, no angle is ever rounded.
pub(crate) struct Sines {
    size: usize,
    sines: Vec<f64>,
}

/// There is a table for each of the sizes 2⁰, 2¹, …: this many.
const SIZES: usize = 24;

impl Sines {
    /// The table for a size that is a power of two; computed once.
    pub(crate) fn of(size: usize) -> &'static Self {
        static TABLES: [OnceLock<Sines>; SIZES] = [const { OnceLock::new() }; SIZES];
        debug_assert!(size.is_power_of_two());
        TABLES[size.trailing_zeros() as usize].get_or_init(|| {
            let sine = |index: usize| (PI * index as f64 / size as f64).sin();
            Self { size, sines: (0..2 * size).map(sine).collect() }
        })
    }

    /// sin(π·multiple/size).
    pub(crate) fn sine(&self, multiple: i64) -> f64 {
        // A power of two: the remainder is a mask, also of negative numbers.
        self.sines[multiple as usize & (2 * self.size - 1)]
    }

    /// sin and cos of 2π·multiple/size.
    fn root(&self, multiple: usize) -> (f64, f64) {
        let mask = 2 * self.size - 1;
        (self.sines[(2 * multiple) & mask], self.sines[(2 * multiple + self.size / 2) & mask])
    }
}

/// Σₖ values\[k\]·e^(−2πi·kx/size) for every x, in place; the size must be a power of two.
pub(crate) fn transform(real: &mut [f64], imaginary: &mut [f64]) {
    let size = real.len();
    permute(real, imaginary);
    let sines = Sines::of(size);
    let mut half = 1;
    while half < size {
        combine_halves(real, imaginary, half, sines);
        half *= 2;
    }
}

/// Makes the transforms of all blocks of twice `half` from those of their halves.
#[inline]
fn combine_halves(real: &mut [f64], imaginary: &mut [f64], half: usize, sines: &Sines) {
    let size = real.len();
    let stride = size / (2 * half);
    for start in (0..size).step_by(2 * half) {
        for offset in 0..half {
            let (sine, cosine) = sines.root(offset * stride);
            let (low, high) = (start + offset, start + offset + half);
            let re = real[high] * cosine + imaginary[high] * sine;
            let im = imaginary[high] * cosine - real[high] * sine;
            (real[high], imaginary[high]) = (real[low] - re, imaginary[low] - im);
            (real[low], imaginary[low]) = (real[low] + re, imaginary[low] + im);
        }
    }
}

/// Moves every entry to the index whose bits are those of its own, reversed.
fn permute(real: &mut [f64], imaginary: &mut [f64]) {
    let size = real.len();
    if size < 2 {
        return;
    }
    let shift = usize::BITS - size.trailing_zeros();
    for index in 0..size {
        let other = index.reverse_bits() >> shift;
        if index < other {
            real.swap(index, other);
            imaginary.swap(index, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_sum() {
        for size in [1usize, 2, 4, 64] {
            let value = |k: usize| (((k * 7 + 3) % 11) as f64 - 5.0, ((k * 5 + 1) % 13) as f64 - 6.0);
            let (mut real, mut imaginary): (Vec<f64>, Vec<f64>) = (0..size).map(value).unzip();
            transform(&mut real, &mut imaginary);
            for x in 0..size {
                let term = |k: usize| {
                    let (sine, cosine) = (-2.0 * PI * ((k * x) % size) as f64 / size as f64).sin_cos();
                    let (re, im) = value(k);
                    (re * cosine - im * sine, re * sine + im * cosine)
                };
                let sum = (0..size).map(term).fold((0.0, 0.0), |sum, term| (sum.0 + term.0, sum.1 + term.1));
                assert!((sum.0 - real[x]).abs() < 1e-11 && (sum.1 - imaginary[x]).abs() < 1e-11, "{size} {x}");
            }
        }
    }
}
