//! From a bit to a mechanism with few digits and the least noise that keeps the request, certified.

use super::bit::Bit;
use super::region::Region;
use crate::channel::Channel;
use crate::error::Result;
use crate::mechanism::{Mechanism, Noisy};
use crate::noise::{DiscreteLaplace, Scale};
use crate::plan::family::Family;
use crate::plan::law::Law;
use crate::plan::request::Request;
use crate::privacy::{linked_epsilon, one_aggregator};

/// The doubt is raised by these shares, one after the other, until the rounded parameters keep the local bounds.
const MORE_DOUBT: [f64; 6] = [0.0, 2e-6, 6e-6, 2e-5, 2e-4, 2e-3];
/// Significant digits of a scale.
const DIGITS: i32 = 6;
/// How many units of its last digit a scale is raised by at most until its claim is kept.
const RAISES: u64 = 20;

/// How owners answer, with few digits.
pub(super) fn local(request: &Request, family: Family, region: &Region, bit: &Bit) -> Option<Mechanism> {
    MORE_DOUBT.into_iter().find_map(|more| {
        let bit = region.lifted(bit.missed * (1.0 + more), bit.stray * (1.0 + more))?;
        let mechanism = family.mechanism(&law(family, &bit)).ok()?;
        keeps_local(request, &mechanism).then_some(mechanism)
    })
}

fn keeps_local(request: &Request, mechanism: &Mechanism) -> bool {
    let most = request.cell_epsilon();
    most.is_infinite() || linked_epsilon(&mechanism.channel()).is_some_and(|epsilon| epsilon <= most)
}

fn law(family: Family, bit: &Bit) -> Law {
    match family {
        Family::RandomizedResponse => Law::symmetric(1.0, bit.missed.max(bit.stray)),
        Family::NormalForm => Law::symmetric((1.0 - bit.missed + bit.stray).min(1.0), bit.stray),
        _ => bit.silent_law(),
    }
}

/// The least scale of few digits with which one honest aggregator keeps `epsilon`, by the exact claim.
pub(super) fn least_scale(channel: &Channel, epsilon: f64) -> Option<Scale> {
    let needed = scale_of(Bit::of(channel.summed_bit()?).decay(epsilon.exp_m1()));
    let keeps = |scale: Scale| {
        let noisy = channel.clone().with_noise(DiscreteLaplace::new(scale)).ok()?;
        Some(one_aggregator(&noisy)?.upper() <= epsilon)
    };
    scales_from(needed).find(|scale| keeps(*scale) == Some(true))
}

/// The scale t of a = e^(−1/t).
pub(super) fn scale_of(decay: f64) -> f64 {
    (-1.0 / decay.ln()).max(Scale::SMALLEST)
}

/// Scales with few digits, upwards from the one nearest to a number.
pub(super) fn scales_from(scale: f64) -> impl Iterator<Item = Scale> {
    let places = DIGITS - 1 - scale.log10().floor() as i32;
    let unit = 10u64.pow(places.unsigned_abs());
    let nearest = (scale * 10f64.powi(places)).round() as u64;
    (nearest..nearest + RAISES).filter_map(move |number| match places >= 0 {
        true => Scale::new(number, unit).ok(),
        false => Scale::new(number.checked_mul(unit)?, 1).ok(),
    })
}

/// A mechanism with noise of this scale.
pub(super) fn noisy(local: Mechanism, scale: Scale) -> Result<Mechanism> {
    Ok(Mechanism::Noisy(Noisy::new(local, DiscreteLaplace::new(scale))?))
}

/// The error of a mechanism as it is written, if it is finite.
pub(super) fn sd(request: &Request, channel: &Channel) -> Option<f64> {
    let sd = request.predicted_sd(channel).ok()?;
    sd.is_finite().then_some(sd)
}
