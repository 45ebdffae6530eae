//! The guarantee of a release if one aggregator is honest and nobody else (`docs/accounting.md`, "One honest aggregator").
//!
//! The adversary knows everybody else's bit and the other aggregator's noise, so it sees the target's bit w plus one draw Z
//! of discrete Laplace noise. With p and q the probabilities of w = 1 if the truth is *yes* and *no*, and a = e^(−1/t), the
//! ratio of the two laws of w + Z is one constant from 1 on and another one up to 0:
//!
//! ```text
//! ε = max{ |ln (p + (1−p)a)/(q + (1−q)a)|, |ln (1 − q(1−a))/(1 − p(1−a))| },   δ = 0
//! ```
//!
//! It is computed in rationals and rounded up to twelve decimal places, so that everybody computes the same decimal for a card,
//! and doubles are precise enough to check it in any language.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, ToPrimitive};

use super::classes::local_epsilon;
use crate::certified::exponential::Exponential;
use crate::certified::root::{bisect_integers, bracket_integers};
use crate::certified::rounding::Enclosure;
use crate::channel::{Channel, SummedBit};
use crate::noise::{DiscreteLaplace, NoiseLaw};
use crate::probability::Probability;
use crate::truth::PerTruth;

/// Claims are whole multiples of 10^−12.
const UNITS: f64 = 1e12;
/// Up to an ε of 1000 doubles lie closer together than the units, so that each number of units has a double of its own.
const PLAIN_UNITS: u128 = 1_000_000_000_000_000;

/// ε of the published sum if one aggregator is honest, even if nobody else is, whatever the crowd; δ is 0. `None` if the
/// channel has no noise.
///
/// ```
/// use uptack::{Mechanism, privacy::one_aggregator};
/// let told = "randomized-response(t=1) + laplace(scale=2)".parse::<Mechanism>()?.channel();
/// assert_eq!(one_aggregator(&told).map(|epsilon| epsilon.upper()), Some(0.5));
/// // A local channel before the noise makes the claim smaller.
/// let local = "randomized-response(t=0.9) + laplace(scale=2)".parse::<Mechanism>()?.channel();
/// assert!(one_aggregator(&local).is_some_and(|epsilon| epsilon.upper() < 0.4));
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn one_aggregator(channel: &Channel) -> Option<Enclosure> {
    let (NoiseLaw::Laplace(noise), bit) = (channel.noise()?, channel.summed_bit()?);
    let units = if bit.yes == bit.no { (0, 0) } else { epsilon_in_units(bit, noise) };
    Some(Enclosure::new(decimal(units.0.into()), decimal(units.1.into())))
}

/// ε of several published sums together, to each of which one owner adds a bit: pure epsilons add up, in whole units.
///
/// ```
/// use uptack::{Mechanism, privacy::one_aggregator_together};
/// let told = "randomized-response(t=1) + laplace(scale=3)".parse::<Mechanism>()?.channel();
/// assert_eq!(one_aggregator_together(&told, 6).map(|epsilon| epsilon.upper()), Some(2.000_000_000_004));
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn one_aggregator_together(channel: &Channel, sums: u64) -> Option<Enclosure> {
    one_aggregator(channel).map(|once| together(once, sums))
}

/// The same where ε of one sum is known.
pub(super) fn together(once: Enclosure, sums: u64) -> Enclosure {
    let lower = units(once.lower()) * u128::from(sums);
    let lower_end = if lower <= PLAIN_UNITS { decimal(lower) } else { decimal(lower).next_down() };
    Enclosure::new(lower_end, together_upper(once.upper(), sums))
}

/// The upper end alone.
pub(super) fn together_upper(once: f64, sums: u64) -> f64 {
    let upper = units(once) * u128::from(sums);
    if upper <= PLAIN_UNITS { decimal(upper) } else { decimal(upper).next_up() }
}

/// The units of a claim.
fn units(claim: f64) -> u128 {
    (claim * UNITS).round() as u128
}

/// The closed form in doubles, as tests compare it: off by some roundings, and by more where p is next to 1.
#[cfg(test)]
pub(crate) fn approximate(yes: f64, no: f64, scale: f64) -> f64 {
    let (decay, gap) = ((-1.0 / scale).exp(), -(-1.0 / scale).exp_m1());
    let (p, q) = (yes.max(no), yes.min(no));
    let raised = ((p - q) * gap / (q + (1.0 - q) * decay)).ln_1p();
    let lowered = ((p - q) * gap / ((1.0 - p) + p * decay)).ln_1p();
    raised.max(lowered)
}

/// The largest number of units not above ε, and the smallest not below it.
fn epsilon_in_units(bit: SummedBit, noise: &DiscreteLaplace) -> (u64, u64) {
    if bit.yes.max(bit.no) == Probability::ONE && bit.yes.min(bit.no) == Probability::ZERO {
        return inverse_scale_in_units(noise);
    }
    let pair = BitAndNoise::new(bit, noise);
    units_around(pair.approximate(noise), 1, |growth| pair.is_within(&growth.lower()))
}

/// The largest number of units not above `times` an ε near `guess`, and the smallest not below it; `is_within` tells whether ε is
/// certainly at most the logarithm of the lower end of a number.
fn units_around(guess: f64, times: u32, is_within: impl Fn(&Exponential) -> bool) -> (u64, u64) {
    let guess = guess * f64::from(times);
    let is_below = |units: i64| {
        let bound = BigRational::new(units.into(), BigInt::from(UNITS as u64) * times);
        !is_within(&Exponential::of(&bound))
    };
    let (below, above) = bisect_integers(bracket_integers((guess * UNITS) as i64, is_below), is_below);
    (below.unsigned_abs(), above.unsigned_abs())
}

/// `times` an ε near `guess`, in whole units; `is_within` tells whether ε is certainly at most the logarithm of the lower end of a
/// number.
pub(super) fn multiple_in_units(guess: f64, times: u32, is_within: impl Fn(&Exponential) -> bool) -> Enclosure {
    let (below, above) = units_around(guess, times, is_within);
    Enclosure::new(decimal(below.into()), decimal(above.into()))
}

/// A rational ε in whole units.
pub(super) fn whole_units(epsilon: &BigRational) -> Enclosure {
    let exact = epsilon * BigInt::from(UNITS as u64);
    Enclosure::new(decimal(whole(&exact.floor()).into()), decimal(whole(&exact.ceil()).into()))
}

/// ln(large/small), rounded up; infinite if `small` is 0.
pub(super) fn ratio_epsilon(large: u128, small: u128) -> f64 {
    local_epsilon(&[PerTruth { yes: large, no: small }])
}

/// The same where the summed bit is the truth itself: ε = 1/t, the one case that can be a whole number of units.
fn inverse_scale_in_units(noise: &DiscreteLaplace) -> (u64, u64) {
    let exact = noise.scale().exact().recip() * BigInt::from(UNITS as u64);
    (whole(&exact.floor()), whole(&exact.ceil()))
}

/// The larger and the smaller probability of a one, and an enclosure of a.
struct BitAndNoise {
    high: BigRational,
    low: BigRational,
    decay: Exponential,
}

impl BitAndNoise {
    fn new(bit: SummedBit, noise: &DiscreteLaplace) -> Self {
        let decay = Exponential::of(&-noise.scale().exact().recip());
        Self { high: exact(bit.yes.max(bit.no)), low: exact(bit.yes.min(bit.no)), decay }
    }

    /// ε to some units in the last place of a double: each difference is taken before it is rounded.
    fn approximate(&self, noise: &DiscreteLaplace) -> f64 {
        let double = |value: BigRational| value.to_f64().unwrap_or(0.0);
        let rest = |law: &BigRational| double(BigRational::one() - law);
        let (decay, difference) = (noise.decay(), double(&self.high - &self.low) * noise.gap());
        let raised = difference / (double(self.low.clone()) + rest(&self.low) * decay);
        let lowered = difference / (rest(&self.high) + double(self.high.clone()) * decay);
        raised.max(lowered).ln_1p()
    }

    /// Whether both ratios are certainly at most `growth`.
    fn is_within(&self, growth: &BigRational) -> bool {
        let (least, most) = (self.decay.lower(), self.decay.upper());
        growth * from_one_on(&self.low, &least) >= from_one_on(&self.high, &most)
            && growth * up_to_zero(&self.high, &least) >= up_to_zero(&self.low, &most)
    }
}

fn exact(probability: Probability) -> BigRational {
    BigRational::new(probability.numerator().into(), Probability::ONE.numerator().into())
}

/// p + (1−p)·a, to which the probabilities of w + Z are in proportion from 1 on.
fn from_one_on(law: &BigRational, decay: &BigRational) -> BigRational {
    law + (BigRational::one() - law) * decay
}

/// 1 − p·(1−a), to which the probabilities of w + Z are in proportion up to 0.
fn up_to_zero(law: &BigRational, decay: &BigRational) -> BigRational {
    BigRational::one() - law * (BigRational::one() - decay)
}

fn whole(units: &BigRational) -> u64 {
    units.to_integer().to_u64().unwrap_or(u64::MAX)
}

/// A number of units as the double that is printed with exactly these decimals.
fn decimal(units: u128) -> f64 {
    units as f64 / UNITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;

    fn claim(text: &str) -> Enclosure {
        one_aggregator(&text.parse::<Mechanism>().unwrap().channel()).unwrap()
    }

    #[test]
    fn plain_truths_cost_the_inverse_of_the_scale() {
        for (scale, epsilon) in [("1", 1.0), ("2", 0.5), ("0.01", 100.0), ("4/3", 0.75)] {
            let found = claim(&format!("randomized-response(t=1) + laplace(scale={scale})"));
            assert_eq!((found.lower(), found.upper()), (epsilon, epsilon));
        }
        assert_eq!(claim("randomized-response(t=1) + laplace(scale=3)").upper(), 0.333_333_333_334);
    }

    #[test]
    fn the_claim_is_the_closed_form_rounded_up() {
        for text in ["randomized-response(t=0.9)", "normal-form(f=0.5,r=1e-4)", "noisy-sampling(0.97,1e-5)"] {
            for scale in ["0.05", "0.7", "1", "13.5", "10000"] {
                let channel = format!("{text} + laplace(scale={scale})").parse::<Mechanism>().unwrap().channel();
                let bit = channel.summed_bit().unwrap();
                let expected = approximate(bit.yes.to_f64(), bit.no.to_f64(), scale.parse().unwrap());
                let found = one_aggregator(&channel).unwrap();
                assert!(found.lower() <= expected + 1e-13 && found.upper() >= expected - 1e-13, "{text} {scale}");
                assert!(found.upper() - found.lower() < 1.1e-12, "{text} {scale}: {found:?}");
            }
        }
        assert_eq!(claim("randomized-response(t=0.5) + laplace(scale=1)"), Enclosure::ZERO);
    }

    /// Doubles cannot distinguish such a p from 1, nor such a q from 0, although the noise makes a difference.
    #[test]
    fn probabilities_next_to_their_ends_are_distinguished_from_them() {
        let claim = |p: u128, q: u128| {
            let probability = |numerator: u128| Probability::from_numerator(numerator).unwrap();
            let bit = SummedBit { yes: probability(p), no: probability(q) };
            let noise = DiscreteLaplace::new("0.02".parse().unwrap());
            epsilon_in_units(bit, &noise).1 as f64 / UNITS
        };
        let whole = Probability::ONE.numerator();
        // ln 2⁶⁴ + ln(1 − 2⁻⁶⁴) and less where a·2⁶⁴ is not small: both differ from the 50 of the noise alone.
        assert!((claim(whole - 1, 1) - 44.357_867_954_762).abs() < 1e-11, "{}", claim(whole - 1, 1));
        assert!((claim(whole - 1000, 1000) - 37.453_660_718_945).abs() < 1e-11, "{}", claim(whole - 1000, 1000));
        assert_eq!(claim(whole, 0), 50.0);
    }

    #[test]
    fn sums_of_claims_keep_their_decimals() {
        let once = claim("randomized-response(t=1) + laplace(scale=3)");
        assert_eq!(together(once, 1), once);
        assert_eq!(together(once, 3).upper(), 1.000_000_000_002);
        assert_eq!(together(once, 3).lower(), 0.999_999_999_999);
        assert!(together(once, u64::MAX).upper() >= together(once, u64::MAX).lower());
        assert_eq!(together(Enclosure::ZERO, 7), Enclosure::ZERO);
    }

    #[test]
    fn exchanging_the_truths_changes_nothing() {
        let told = claim("randomized-response(t=0.8) + laplace(scale=1.5)");
        assert_eq!(claim("randomized-response(t=0.2) + laplace(scale=1.5)"), told);
    }
}
