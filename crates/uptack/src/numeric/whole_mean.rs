//! The mean of a function over a range of whole numbers, from its values at a few points.

/// Ranges of at most this many numbers are averaged number by number. In shorter ones the nodes of the rule would be too far
/// from those of Gauss and Legendre for [`Recurrence::root_near`] to find each of them.
const MOST_SUMMED: u64 = 64;
/// How many numbers at either end stand for themselves. With none, the mean of √y over 0 to 64 is off by 4e-4: the square root
/// bends most between the first whole numbers.
const ENDS: u64 = 8;
/// How many points stand for the rest. The error falls with the third power of this number at worst, which is for a square root
/// that starts at an end of the range, as the standard deviation of a count does.
const NODES: usize = 16;
/// Newton's method doubles the digits in each step, and starts with two.
const STEPS: usize = 6;

/// Points and their weights: Σ weight·f(point) is the mean of f over the whole numbers `first..=last`.
///
/// The numbers near either end stand for themselves; a Gaussian rule stands for those between.
pub(crate) fn points(first: u64, last: u64) -> Vec<(f64, f64)> {
    let count = last - first + 1;
    let alone = |number: u64| (number as f64, 1.0 / count as f64);
    if count <= MOST_SUMMED {
        return (first..=last).map(alone).collect();
    }
    let (start, end) = (first + ENDS, last - ENDS);
    let between = (end - start + 1) as f64 / count as f64;
    let inner = gaussian(start, end).map(|(point, weight)| (point, between * weight));
    (first..start).map(alone).chain(inner).chain((end + 1..=last).map(alone)).collect()
}

/// The Gaussian rule for whole numbers of equal weight, from the discrete Chebyshev polynomials. For a long range it is that of
/// Gauss and Legendre. The points are not whole.
fn gaussian(first: u64, last: u64) -> impl Iterator<Item = (f64, f64)> {
    let count = (last - first + 1) as f64;
    let rule = Recurrence::new(count);
    let middle = first as f64 + 0.5 * (last - first) as f64;
    (0..NODES).map(move |index| {
        let node = rule.root_near(legendre_guess(index));
        (middle + 0.5 * count * node, rule.weight(node))
    })
}

/// The orthonormal polynomials of N equally spaced numbers of equal weight, in units in which they fill −1 to 1:
/// s·p_k = a_(k+1)·p_(k+1) + a_k·p_(k−1), with a_k² = k²(1 − k²/N²)/(4k² − 1).
struct Recurrence([f64; NODES + 1]);

impl Recurrence {
    fn new(count: f64) -> Self {
        Self(std::array::from_fn(|k| {
            let k = k as f64;
            (k * k * (1.0 - (k / count).powi(2)) / (4.0 * k * k - 1.0)).abs().sqrt()
        }))
    }

    /// The root of the highest polynomial nearest to a guess.
    fn root_near(&self, guess: f64) -> f64 {
        let mut at = guess;
        for _ in 0..STEPS {
            let (value, slope) = self.highest(at);
            at -= value / slope;
        }
        at
    }

    /// The highest polynomial and its derivative.
    fn highest(&self, at: f64) -> (f64, f64) {
        let (mut before, mut now) = ((0.0, 0.0), (1.0, 0.0));
        for k in 0..NODES {
            let value = (at * now.0 - self.0[k] * before.0) / self.0[k + 1];
            let slope = (now.0 + at * now.1 - self.0[k] * before.1) / self.0[k + 1];
            (before, now) = (now, (value, slope));
        }
        now
    }

    /// The weight of a node: one over the sum of the squares of the polynomials below the highest.
    fn weight(&self, node: f64) -> f64 {
        let (mut before, mut now, mut sum) = (0.0, 1.0, 1.0);
        for k in 0..NODES - 1 {
            (before, now) = (now, (node * now - self.0[k] * before) / self.0[k + 1]);
            sum += now * now;
        }
        1.0 / sum
    }
}

/// About the node of this index in Gauss and Legendre's rule, from the smallest.
fn legendre_guess(index: usize) -> f64 {
    -(std::f64::consts::PI * (index as f64 + 0.75) / (NODES as f64 + 0.5)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(first: u64, last: u64, f: impl Fn(f64) -> f64) -> f64 {
        points(first, last).into_iter().map(|(point, weight)| weight * f(point)).sum()
    }

    fn summed(first: u64, last: u64, f: impl Fn(f64) -> f64) -> f64 {
        (first..=last).map(|number| f(number as f64)).sum::<f64>() / (last - first + 1) as f64
    }

    #[test]
    fn points_are_inside_and_weights_positive_for_every_length() {
        for last in (0..3000).chain([10_000, 1_000_000, 1_000_000_000]) {
            let points = points(0, last);
            assert!(points.is_sorted_by(|a, b| a.0 < b.0), "{last}: {points:?}");
            assert!(points.iter().all(|&(at, weight)| (0.0..=last as f64).contains(&at) && weight > 0.0), "{last}");
            assert!((points.iter().map(|point| point.1).sum::<f64>() - 1.0).abs() < 1e-12, "{last}");
        }
    }

    #[test]
    fn polynomials_are_averaged_exactly() {
        for last in [0, 3, 63, 64, 65, 100, 1000] {
            for degree in [1, 2, 7, 30, 31] {
                let f = |number: f64| ((number + 1.0) / (last + 1) as f64).powi(degree);
                let (found, exact) = (mean(0, last, f), summed(0, last, f));
                assert!((found / exact - 1.0).abs() < 1e-11, "{last} {degree}: {found} {exact}");
            }
        }
    }

    /// The hardest case among standard deviations: √y from 0 on.
    #[test]
    fn square_roots_are_averaged_to_four_digits() {
        for last in [1, 16, 63, 64, 65, 80, 100, 1000, 100_000] {
            let (found, exact) = (mean(0, last, f64::sqrt), summed(0, last, f64::sqrt));
            assert!((found / exact - 1.0).abs() < 5e-5, "{last}: {found} {exact}");
        }
    }
}
