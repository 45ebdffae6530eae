//! The closed form for one honest aggregator against a computation of its own in rationals, and against the law itself.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};

use super::super::{Enclosure, one_aggregator, release};
use super::{Cases, epsilon};
use crate::{Channel, Probability};

const CASES: usize = 1000;
const SEED: u64 = 0x5eed_0000_0014_0001;

/// Decimal places of the rationals.
const DIGITS: u32 = 90;

/// e^x for |x| of at most some hundred: the plain series, in whole multiples of 10^−90 and with the error of its roundings.
fn exponential(x: &BigRational) -> (BigRational, BigRational) {
    let one = BigInt::from(10).pow(DIGITS);
    let (mut term, mut sum, mut index) = (one.clone(), one.clone(), 0_u32);
    let positive = x.abs();
    while !term.is_zero() {
        index += 1;
        term = &term * positive.numer() / (positive.denom() * index);
        sum += &term;
    }
    // A term that is rounded down by one unit makes those after it smaller by e^|x| units at most.
    let error = BigInt::from(index) * (&sum / &one + 1_u32) * 2_u32;
    let (low, high) = (BigRational::new(sum.clone(), one.clone()), BigRational::new(sum + error, one));
    if x.is_negative() { (high.recip(), low.recip()) } else { (low, high) }
}

fn rational(probability: Probability) -> BigRational {
    BigRational::new(probability.numerator().into(), BigInt::one() << 64_u32)
}

/// A claim as a decimal of twelve places, which it is exactly.
fn decimal(claim: f64) -> BigRational {
    BigRational::new(BigInt::from((claim * 1e12).round() as u64), BigInt::from(10).pow(12))
}

/// The largest ratio of the two laws of w + Z, which has two values in each direction, for both ends of a.
fn largest_ratio(channel: &Channel) -> (BigRational, BigRational) {
    let (bit, noise) = (channel.summed_bit().unwrap(), channel.noise().unwrap());
    let (p, q) = (rational(bit.yes), rational(bit.no));
    let scale = BigRational::new(noise.scale().numerator().into(), noise.scale().denominator().into());
    let (low, high) = exponential(&-scale.recip());
    let at = |law: &BigRational, one: &BigRational, zero: &BigRational| law * one + (BigRational::one() - law) * zero;
    let one = BigRational::one();
    let ratios = |a: &BigRational| {
        let (above, below) = (at(&p, &one, a) / at(&q, &one, a), at(&p, a, &one) / at(&q, a, &one));
        [above.clone(), above.recip(), below.clone(), below.recip()].into_iter().max().unwrap()
    };
    let ends = [ratios(&low), ratios(&high)];
    (ends.iter().min().unwrap().clone(), ends.iter().max().unwrap().clone())
}

#[test]
fn the_claim_is_the_closed_form_in_rationals() {
    let mut cases = Cases(SEED);
    for case in 0..CASES {
        let scale = cases.scale(0.02, 2000.0);
        let channel = cases.noisy_bit(scale);
        let found = one_aggregator(&channel).unwrap();
        let (least, most) = largest_ratio(&channel);
        let (upper, lower) = (decimal(found.upper()), decimal(found.lower()));
        assert!(exponential(&upper).1 >= least, "case {case}: {found:?} is below the truth of {channel:?}");
        assert!(exponential(&lower).0 <= most, "case {case}: {found:?} is above the truth of {channel:?}");
        assert!(&upper - &lower <= BigRational::new(1.into(), BigInt::from(10).pow(12)), "case {case}: {found:?}");
    }
}

/// P(w + Z = k) for both truths.
fn law(channel: &Channel, k: i64) -> (f64, f64) {
    let (bit, noise) = (channel.summed_bit().unwrap(), channel.noise().unwrap());
    let at =
        |one: Probability| one.to_f64() * noise.probability(k - 1) + one.complement().to_f64() * noise.probability(k);
    (at(bit.yes), at(bit.no))
}

/// The law itself, cut where less than e^−45 is left: its largest ratio is ε, and its divergences are those of an empty crowd.
#[test]
fn the_law_of_a_bit_and_noise_has_this_epsilon() {
    let mut cases = Cases(SEED ^ 0xffff);
    for case in 0..CASES {
        let scale = cases.scale(0.05, 20.0);
        let channel = cases.noisy_bit(scale);
        let reach = (45.0 * scale.to_f64()).ceil() as i64 + 1;
        let all: Vec<(f64, f64)> = (-reach..=reach + 1).map(|k| law(&channel, k)).collect();
        let found = one_aggregator(&channel).unwrap();
        let largest = all.iter().map(|(yes, no)| (yes / no).ln().abs()).fold(0.0, f64::max);
        assert!(
            largest <= found.upper() + 1e-12 && largest >= found.lower() - 1e-12,
            "case {case}: {found:?} {largest}"
        );
        if case % 4 > 0 {
            continue;
        }
        let at = found.upper() * cases.unit();
        let sum = |of: &dyn Fn(&(f64, f64)) -> f64| all.iter().map(|pair| of(pair).max(0.0)).sum::<f64>();
        let growth = at.exp();
        let truth = sum(&|(yes, no)| yes - growth * no).max(sum(&|(yes, no)| no - growth * yes));
        let delta = release(&channel, 1).unwrap().delta(epsilon(at)).value().unwrap();
        assert!((delta.lower() - 1e-13..=delta.upper() + 1e-13).contains(&truth), "case {case}: {delta:?} {truth}");
        assert!(delta.upper() - delta.lower() < 1e-12, "case {case}: {delta:?}");
    }
}

#[test]
fn values_of_an_independent_program() {
    for (text, value) in [
        ("noisy-sampling(0.999,0.001) + laplace(scale=1)", 0.997_650_872_297_604_5),
        ("noisy-sampling(0.9,0.1) + laplace(scale=2.5)", 0.318_465_052_043_154_5),
        ("noisy-sampling(0.6,0.05) + laplace(scale=0.4)", 1.598_328_291_826_624_6),
        ("noisy-sampling(0.7,0.3) + laplace(scale=3)", 0.132_304_988_708_544_54),
        ("noisy-sampling(0.98,0.0005) + laplace(scale=1.25)", 0.788_312_899_763_897_7),
    ] {
        let found: Enclosure = one_aggregator(&super::channel(text)).unwrap();
        assert!(found.lower() <= value + 1e-15 && found.upper() >= value - 1e-15, "{text}: {found:?}");
    }
}
