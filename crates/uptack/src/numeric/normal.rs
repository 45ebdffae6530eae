//! The normal distribution's tail and its inverse.

use std::f64::consts::{PI, SQRT_2};

/// P(Z > z).
pub(crate) fn upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// The density at z.
pub(crate) fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// The z with P(Z > z) = `tail`, for a tail in (0, ½].
///
/// Newton's method on the logarithm of the tail, which is concave, from a start beyond the root.
pub(crate) fn upper_quantile(tail: f64) -> f64 {
    debug_assert!(tail > 0.0 && tail <= 0.5);
    let target = tail.ln();
    let mut z = (-2.0 * target).sqrt();
    for _ in 0..60 {
        let reached = upper_tail(z);
        let step = (reached.ln() - target) * reached / density(z);
        z += step;
        if step.abs() <= 1e-15 * z.abs().max(1.0) {
            break;
        }
    }
    z.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_tabulated_ones() {
        // Values of the standard normal distribution as printed in any table.
        for (tail, z) in
            [(0.025, 1.959_963_984_540_054), (0.005, 2.575_829_303_548_901), (0.5, 0.0), (1e-9, 5.997_807_015_007_687)]
        {
            assert!((upper_quantile(tail) - z).abs() < 1e-12, "{tail}: {}", upper_quantile(tail));
        }
        for exponent in 1..300 {
            let tail = 10f64.powi(-exponent);
            assert!((upper_tail(upper_quantile(tail)) / tail - 1.0).abs() < 1e-11);
        }
    }
}
