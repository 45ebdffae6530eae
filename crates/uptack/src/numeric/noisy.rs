//! Laws of counts to which two aggregators each add discrete Laplace noise.
//!
//! One draw of discrete Laplace noise is the difference of two geometric ones, and adding a geometric draw to a law is a
//! recursion of positive terms: so the exact law with noise is that without it, run through four recursions that lose no digits.
//! Where that would take too many values, the narrower of count and noise is lumped into blocks that are narrow in relation to
//! the other, and tails are sums over them.

use super::lattice_sum::{ExactLaw, LatticeSum, Tails};
use crate::noise::DiscreteLaplace;

/// An exact law with noise is formed up to this many values.
const MOST_VALUES: f64 = 65_536.0;
/// What is left out of the noise on either side of an exact law: as in the law of the count.
const NEGLIGIBLE: f64 = 1e-18;
/// The same where tails are far.
const FAR_NEGLIGIBLE: f64 = 1e-52;
/// Blocks of noise for each standard deviation of the count. Within a block of mean z the tail of the count is curved by at most
/// (z/sd)² of itself, so that lumping errs by z²/(24·64²) at z standard deviations.
const NOISE_BLOCKS: f64 = 64.0;
/// Blocks of the count for each of its standard deviations, where the noise is at least as wide as that.
const COUNT_BLOCKS: f64 = 16.0;
/// How many of its standard deviations the count goes on either side: e^−42 is beyond.
const COUNT_REACH: f64 = 10.0;
/// In relation to itself, more than what lumping adds to the error of a tail.
pub(crate) const LUMPING_ERROR: f64 = 5e-4;

/// A law with noise that is too long to be written out.
#[derive(Clone, Debug)]
pub(crate) struct Lumped<'a> {
    count: LatticeSum<'a>,
    noise: DiscreteLaplace,
    blocks: Blocks,
}

/// What is summed over.
#[derive(Clone, Debug)]
enum Blocks {
    /// The mean of the noise in each block, and the probability of the block.
    Noise(Vec<(f64, f64)>),
    /// A value of the count, and the probability of the block around it.
    Count(Vec<(i128, f64)>),
}

/// The law of `count` and both draws, if it is not too long.
pub(crate) fn exact(count: &LatticeSum<'_>, noise: &DiscreteLaplace, far: bool) -> Option<ExactLaw> {
    let reach = noise.reach(if far { FAR_NEGLIGIBLE } else { NEGLIGIBLE });
    if count.exact_size() + 2.0 * reach as f64 > MOST_VALUES {
        return None;
    }
    let law = count.exact(far);
    let (first, masses) = law.parts();
    let room = vec![0.0; reach as usize];
    let mut sum = [&room, masses, &room].concat();
    for _ in 0..2 {
        add_geometric(sum.iter_mut(), noise);
        add_geometric(sum.iter_mut().rev(), noise);
    }
    Some(ExactLaw::new(first - i128::from(reach), sum))
}

/// Adds an independent geometric draw, in the direction of the masses.
fn add_geometric<'a>(masses: impl Iterator<Item = &'a mut f64>, noise: &DiscreteLaplace) {
    let (decay, gap) = (noise.decay(), noise.gap());
    let mut before = 0.0;
    for mass in masses {
        *mass = gap * *mass + decay * before;
        before = *mass;
    }
}

impl<'a> Lumped<'a> {
    /// `count` is a sum without noise.
    pub(crate) fn new(count: LatticeSum<'a>, noise: DiscreteLaplace, far: bool) -> Self {
        let sd = count.variance().sqrt();
        let blocks = if count.exact_size() <= MOST_VALUES && noise.scale().to_f64() >= sd {
            let law = count.exact(far);
            let (first, masses) = law.parts();
            Blocks::Count(masses.iter().enumerate().map(|(at, &mass)| (first + at as i128, mass)).collect())
        } else if noise.scale().to_f64() >= sd {
            Blocks::Count(count_blocks(&count, sd))
        } else {
            Blocks::Noise(noise_blocks(&noise, (sd / NOISE_BLOCKS).max(1.0) as i64))
        };
        Self { count, noise, blocks }
    }

    /// The tails at `x`.
    pub(crate) fn tails(&self, x: i128) -> Tails {
        let (upper, lower) = (self.beyond(x, 1), self.beyond(x, -1));
        let point = if upper < lower { upper - self.beyond(x + 1, 1) } else { lower - self.beyond(x - 1, -1) };
        Tails { upper, lower, point: point.max(0.0) }
    }

    /// P(sum ≥ x) for sign 1 and P(sum ≤ x) for sign −1.
    fn beyond(&self, x: i128, sign: i128) -> f64 {
        let tail: f64 = match &self.blocks {
            Blocks::Count(blocks) => {
                blocks.iter().map(|&(at, mass)| mass * self.noise.sum_tail_beyond(sign * (x - at))).sum()
            }
            Blocks::Noise(blocks) => {
                let sign = sign as f64;
                let tail = |noise: f64| self.count.saddle_point_beyond(x as f64 - noise - 0.5 * sign, sign);
                blocks.iter().map(|&(noise, mass)| mass * tail(noise)).sum()
            }
        };
        tail.min(1.0)
    }
}

/// The noise in blocks of `width` values on either side of 0.
fn noise_blocks(noise: &DiscreteLaplace, width: i64) -> Vec<(f64, f64)> {
    let reach = noise.reach(FAR_NEGLIGIBLE);
    let mut blocks = vec![(0.0, noise.sum_probability(0))];
    for start in (1..=reach.max(1)).step_by(width as usize) {
        let end = start + width;
        let (tail, next) = (noise.sum_upper_tail(start), noise.sum_upper_tail(end));
        // Σ k·P(k) of the block, by parts.
        let within = noise.sum_of_tails(start + 1) - noise.sum_of_tails(end + 1);
        let (mass, moment) = (tail - next, start as f64 * tail - end as f64 * next + within);
        if mass > 0.0 {
            let mean = (moment / mass).clamp(start as f64, (end - 1) as f64);
            blocks.extend([(mean, mass), (-mean, mass)]);
        }
    }
    blocks
}

/// The count in blocks of a part of its standard deviation, by saddle points.
fn count_blocks(count: &LatticeSum<'_>, sd: f64) -> Vec<(i128, f64)> {
    let width = (sd / COUNT_BLOCKS).max(1.0) as i128;
    let middle = count.mean().round() as i128;
    let blocks = (COUNT_REACH * sd / width as f64) as i128;
    let beyond = |at: i128, sign: i128| count.saddle_point_beyond(at as f64 - 0.5, sign as f64);
    let block = |index: i128| {
        let start = middle + index * width;
        // The difference of the smaller tails loses fewer digits.
        let mass = if index >= 0 {
            beyond(start, 1) - beyond(start + width, 1)
        } else {
            beyond(start + width, -1) - beyond(start, -1)
        };
        (start + width / 2, mass.max(0.0))
    };
    (-blocks..=blocks).map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::super::draws::Draws;
    use super::*;

    const VALUES: [i64; 2] = [0, 1];

    fn count<'a>(yes: (u64, &'a [f64]), no: (u64, &'a [f64])) -> LatticeSum<'a> {
        LatticeSum { groups: [yes, no].map(|(count, masses)| Draws { count, values: &VALUES, masses }), noise: None }
    }

    fn noise(scale: &str) -> DiscreteLaplace {
        DiscreteLaplace::new(scale.parse().unwrap())
    }

    /// The law of the noise alone is the closed form, in relation to itself, far into the tails.
    #[test]
    fn recursions_lose_no_digits() {
        for scale in ["0.1", "1", "7/3", "40"] {
            let (nobody, noise) = (count((0, &[0.5, 0.5]), (0, &[0.5, 0.5])), noise(scale));
            let law = exact(&nobody, &noise, true).unwrap();
            let far = noise.reach(1e-30);
            for value in [-far, -1, 0, 1, far / 2, far] {
                let tails = law.tails(i128::from(value));
                assert!((tails.point / noise.sum_probability(value) - 1.0).abs() < 1e-10, "{scale} {value}");
                let upper = noise.sum_upper_tail(value);
                assert!((tails.upper / upper - 1.0).abs() < 1e-10, "{scale} {value}: {tails:?} {upper}");
            }
        }
    }

    /// Lumps agree with what is written out, at the tails that intervals need and beyond.
    #[test]
    fn lumping_errs_less_than_its_margin() {
        let cases: [(LatticeSum<'_>, &str); 5] = [
            // The noise is lumped.
            (count((3000, &[0.2, 0.8]), (90_000, &[0.8, 0.2])), "10"),
            (count((3000, &[0.2, 0.8]), (1_000_000, &[0.8, 0.2])), "150"),
            (count((1_000_000, &[0.2, 0.8]), (1_000_000, &[0.8, 0.2])), "1"),
            // The count is lumped.
            (count((3000, &[0.2, 0.8]), (90_000, &[0.8, 0.2])), "300"),
            (count((30, &[0.2, 0.8]), (90, &[0.8, 0.2])), "500"),
        ];
        for (count, scale) in cases {
            let noise = noise(scale);
            let law = exact(&count, &noise, false).unwrap();
            let lumped = Lumped::new(count, noise, false);
            let (mean, sd) = (count.mean(), (count.variance() + 2.0 * noise.variance()).sqrt());
            let size = count.variance();
            for z in (-45..=45).step_by(3) {
                let x = (mean + f64::from(z) / 10.0 * sd).round() as i128;
                let (fast, slow) = (lumped.tails(x), law.tails(x));
                let margin = LUMPING_ERROR + 0.75 / size;
                for (fast, slow) in [(fast.upper, slow.upper), (fast.lower, slow.lower)] {
                    assert!((fast / slow - 1.0).abs() < margin, "{scale} at {z}: {fast} {slow}, size {size}");
                }
            }
        }
    }

    /// Counts that are too long to be written out are lumped by saddle points.
    #[test]
    fn blocks_of_a_huge_count_are_as_good() {
        let huge = count((0, &[0.5, 0.5]), (1_000_000_000, &[0.5, 0.5]));
        let noise = noise("40000");
        let blocks = count_blocks(&huge, huge.variance().sqrt());
        let total: f64 = blocks.iter().map(|(_, mass)| mass).sum();
        let mean: f64 = blocks.iter().map(|&(at, mass)| at as f64 * mass).sum();
        let square: f64 = blocks.iter().map(|&(at, mass)| (at as f64 - mean).powi(2) * mass).sum();
        assert!((total - 1.0).abs() < 1e-4 && (mean - huge.mean()).abs() < 20.0, "{total} {mean}");
        assert!((square / huge.variance() - 1.0).abs() < 1e-3, "{square}");
        let tails = Lumped::new(huge, noise, false).tails(500_000_000);
        assert!((tails.upper - 0.5).abs() < 1e-4 && (tails.lower - 0.5).abs() < 1e-4, "{tails:?}");
    }

    #[test]
    fn blocks_of_noise_keep_its_mass_and_variance() {
        for (scale, width) in [("1", 1), ("1", 7), ("10", 3), ("1000", 100)] {
            let (noise, most) = (noise(scale), (width * width) as f64 / 4.0);
            let blocks = noise_blocks(&noise, width);
            let total: f64 = blocks.iter().map(|(_, mass)| mass).sum();
            let square: f64 = blocks.iter().map(|(at, mass)| at * at * mass).sum();
            assert!((total - 1.0).abs() < 1e-9, "{scale} {width}: {total}");
            let variance = 2.0 * noise.variance();
            assert!(square <= variance * (1.0 + 1e-9) && square >= variance - most, "{scale} {width}: {square}");
        }
    }
}
