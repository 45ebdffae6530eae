//! Laws of counts to which two aggregators each add noise.
//!
//! The exact law with noise is that without it, convolved twice with the noise. If that would take too many values, the
//! narrower of count and noise is lumped into blocks that are narrow in relation to the other, and tails are sums over them.

use super::lattice_sum::{ExactLaw, LatticeSum, Side, Tails};
use crate::noise::NoiseLaw;

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
/// How many standard deviations the blocks of the count reach on either side: e^−42 lies beyond.
const COUNT_REACH: f64 = 10.0;
/// More than the relative error that lumping adds to a tail.
pub(crate) const LUMPING_ERROR: f64 = 5e-4;

/// A law with noise that is too long to be written out.
#[derive(Clone, Debug)]
pub(crate) struct Lumped<'a> {
    count: LatticeSum<'a>,
    noise: NoiseLaw,
    blocks: Blocks,
}

/// The blocks that tails are summed over.
#[derive(Clone, Debug)]
enum Blocks {
    /// The mean of the noise in each block, and the probability of the block.
    Noise(Vec<(f64, f64)>),
    /// A value of the count, and the probability of the block around it.
    Count(Vec<(i128, f64)>),
}

/// The law of `count` and both draws, if it is not too long.
pub(crate) fn exact(count: &LatticeSum<'_>, noise: &NoiseLaw, far: bool) -> Option<ExactLaw> {
    let reach = noise.reach(if far { FAR_NEGLIGIBLE } else { NEGLIGIBLE });
    if count.exact_size() + 2.0 * reach as f64 > MOST_VALUES {
        return None;
    }
    let law = count.exact(far);
    let (first, masses) = law.parts();
    let room = vec![0.0; reach as usize];
    let mut sum = [&room, masses, &room].concat();
    noise.add_draw(&mut sum);
    noise.add_draw(&mut sum);
    Some(ExactLaw::new(first - i128::from(reach), sum))
}

impl<'a> Lumped<'a> {
    /// `count` is a sum without noise.
    pub(crate) fn new(count: LatticeSum<'a>, noise: NoiseLaw, far: bool) -> Self {
        Self { count, noise, blocks: Blocks::new(&count, &noise, far) }
    }

    /// The tails at `x`.
    pub(crate) fn tails(&self, x: i128) -> Tails {
        Tails::at(x, |x, side| self.tail(x, side))
    }

    /// P(sum ≥ x) or P(sum ≤ x).
    fn tail(&self, x: i128, side: Side) -> f64 {
        let tail: f64 = match &self.blocks {
            Blocks::Count(blocks) => blocks.iter().map(|&(at, mass)| mass * self.noise_tail(x - at, side)).sum(),
            Blocks::Noise(blocks) => {
                let at = x as f64;
                blocks.iter().map(|&(noise, mass)| mass * self.count_tail(at - noise, side)).sum()
            }
        };
        tail.min(1.0)
    }

    /// P(noise ≥ x) or P(noise ≤ x).
    fn noise_tail(&self, x: i128, side: Side) -> f64 {
        self.noise.sum_tail_beyond(if side == Side::Upper { x } else { -x })
    }

    /// P(count ≥ x) or P(count ≤ x).
    fn count_tail(&self, x: f64, side: Side) -> f64 {
        self.count.saddle_point_beyond(x - 0.5 * side.sign(), side)
    }
}

impl Blocks {
    /// Lumps the narrower of count and noise.
    fn new(count: &LatticeSum<'_>, noise: &NoiseLaw, far: bool) -> Self {
        let sd = count.variance().sqrt();
        if noise.width() < sd {
            return Self::Noise(noise_blocks(noise, (sd / NOISE_BLOCKS).max(1.0) as i64));
        }
        let is_short = count.exact_size() <= MOST_VALUES;
        Self::Count(if is_short { count.exact(far).values().collect() } else { count_blocks(count, sd) })
    }
}

/// The noise in blocks of `width` values on either side of 0.
fn noise_blocks(noise: &NoiseLaw, width: i64) -> Vec<(f64, f64)> {
    let reach = noise.reach(FAR_NEGLIGIBLE);
    let mut blocks = vec![(0.0, noise.sum_probability(0))];
    for start in (1..=reach.max(1)).step_by(width as usize) {
        let (mean, mass) = noise_block(noise, start, start + width);
        if mass > 0.0 {
            blocks.extend([(mean, mass), (-mean, mass)]);
        }
    }
    blocks
}

/// The mean and the probability of the block `start..end`.
fn noise_block(noise: &NoiseLaw, start: i64, end: i64) -> (f64, f64) {
    let (tail, next) = (noise.sum_upper_tail(start), noise.sum_upper_tail(end));
    // Σ k·P(k) of the block, by parts.
    let within = noise.sum_of_tails(start + 1) - noise.sum_of_tails(end + 1);
    let (mass, moment) = (tail - next, start as f64 * tail - end as f64 * next + within);
    ((moment / mass).clamp(start as f64, (end - 1) as f64), mass)
}

/// The count in blocks of a part of its standard deviation, by saddle points.
fn count_blocks(count: &LatticeSum<'_>, sd: f64) -> Vec<(i128, f64)> {
    let width = (sd / COUNT_BLOCKS).max(1.0) as i128;
    let middle = count.mean().round() as i128;
    let blocks = (COUNT_REACH * sd / width as f64) as i128;
    let block = |index: i128| {
        let start = middle + index * width;
        // The difference of the smaller tails loses fewer digits.
        let side = if index >= 0 { Side::Upper } else { Side::Lower };
        (start + width / 2, count_block_mass(count, start, start + width, side))
    };
    (-blocks..=blocks).map(block).collect()
}

/// The probability of the block `start..end`, as a difference of tails on one side.
fn count_block_mass(count: &LatticeSum<'_>, start: i128, end: i128, side: Side) -> f64 {
    let beyond = |at: i128| count.saddle_point_beyond(at as f64 - 0.5, side);
    let mass = match side {
        Side::Upper => beyond(start) - beyond(end),
        Side::Lower => beyond(end) - beyond(start),
    };
    mass.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::draws::Draws;
    use super::*;

    const VALUES: [i64; 2] = [0, 1];

    fn count<'a>(yes: (u64, &'a [f64]), no: (u64, &'a [f64])) -> LatticeSum<'a> {
        LatticeSum { groups: [yes, no].map(|(count, masses)| Draws { count, values: &VALUES, masses }), noise: None }
    }

    fn noise(scale: &str) -> NoiseLaw {
        NoiseLaw::laplace(scale.parse().unwrap())
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

    /// Lumped laws agree with those written out, at the tails that intervals need and beyond.
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
