//! Planning with noise that the aggregators add: the bit that owners write, and the scale of the noise.
//!
//! Only the sum of one bit is published, so all that counts about an owner's answer is whether it is `1`. Of all mechanisms
//! with one answer and the same bit, the one that never says anything else reveals the least if nobody is honest, and the
//! fewest owners take part in it. So `noisy-sampling` can have the best bit of all, and a bound on the error over all bits
//! holds for all mechanisms.
//!
//! If one honest aggregator has to be enough, the best bit decides. If the claim's owners are counted on as well, the noise for
//! which one honest aggregator is enough already satisfies the request. The owners' coins can replace part of it, above all if
//! the local bounds demand coins anyway: the search moves along the flip rate, and looks for the least noise at each.

use super::bit_search::{self, Best, Bit, Goal, Region};
use super::family::{PlanFamily, ThreeClassLaw};
use super::limits::ReleaseLimit;
use super::request::Request;
use super::root::halved;
use crate::certified::root::{MOST_HALVINGS, Middle, bisect};
use crate::channel::Channel;
use crate::error::Result;
use crate::mechanism::{Mechanism, Noisy};
use crate::noise::{NoiseLaw, Scale};
use crate::privacy::{Guarantee, linked_epsilon, one_aggregator};

/// A mechanism with noise that satisfies the request.
#[derive(Clone, Debug)]
pub(super) struct NoisyPlan {
    pub(super) family: PlanFamily,
    pub(super) mechanism: Mechanism,
    pub(super) sd: f64,
    /// The guarantee of the release, if owners are counted on as well.
    pub(super) release: Option<Guarantee>,
}

/// The best of each family, and a lower bound on the error of every mechanism of one answer.
pub(super) fn with_one_aggregator(request: &Request, families: &[PlanFamily]) -> (Vec<NoisyPlan>, f64) {
    let Some((epsilon, _)) = request.release else { return (Vec::new(), 0.0) };
    let goal = Goal::new(request, epsilon.value());
    let planned = families.iter().filter_map(|&family| best_of_family(request, &goal, family)).collect();
    // Every bit is one of this family.
    let all_bits = search_regions(request, &goal, PlanFamily::NoisySampling);
    let least = all_bits.iter().map(|(_, best)| best.least).fold(f64::INFINITY, f64::min);
    (planned, if least.is_finite() { least } else { 0.0 })
}

fn best_of_family(request: &Request, goal: &Goal, family: PlanFamily) -> Option<NoisyPlan> {
    let found = search_regions(request, goal, family).into_iter();
    let (region, best) = found.min_by(|(_, one), (_, other)| one.error.total_cmp(&other.error))?;
    best_planned(request, family, &region, &best)
}

/// The best bit of each region of a family.
fn search_regions(request: &Request, goal: &Goal, family: PlanFamily) -> Vec<(Region, Best)> {
    let regions = Region::all(request, family).into_iter();
    regions.filter_map(|region| Some((region, bit_search::search(goal, &region)?))).collect()
}

fn best_planned(request: &Request, family: PlanFamily, region: &Region, best: &Best) -> Option<NoisyPlan> {
    let (epsilon, _) = request.release?;
    let local = local(request, family, region, &best.bit)?;
    let scale = least_scale_alone(&local.channel(), epsilon.value())?;
    let mechanism = noisy(local, scale).ok()?;
    let sd = sd(request, &mechanism.channel())?;
    Some(NoisyPlan { family, mechanism, sd, release: None })
}

/// Stray rates that are tried in each round, between the smallest and the largest that can be worth it.
const RATES: u32 = 9;
/// Rounds, each around the best rate of the previous one.
const ROUNDS: u32 = 2;
/// A rate is tried if it can be better by this share.
const WORTH: f64 = 1e-3;
/// The accuracy of the logarithm of the scale.
const ACCURACY: f64 = 1e-3;
/// The factors on the scale, tried in turn until the certificate satisfies the request.
const RAISES: [f64; 6] = [1.0, 1.0005, 1.002, 1.006, 1.02, 1.06];

/// The best of each family, certified.
pub(super) fn with_owners(request: &Request, limits: &ReleaseLimit, families: &[PlanFamily]) -> Vec<NoisyPlan> {
    let (alone, _) = with_one_aggregator(request, families);
    let together = alone.into_iter().map(|planned| {
        let better = NoiseSearch::new(request, limits, &planned).and_then(|search| search.better(&planned));
        better.unwrap_or_else(|| certified_alone(request, planned))
    });
    together.collect()
}

/// Certifies a mechanism for which one honest aggregator is enough; with honest owners it satisfies the request all the more.
fn certified_alone(request: &Request, planned: NoisyPlan) -> NoisyPlan {
    let release = request.release_guarantee(&planned.mechanism.channel()).ok();
    NoisyPlan { release, ..planned }
}

/// A bit, the scale of its noise, and the error of both.
#[derive(Clone, Copy)]
struct NoisyBit {
    flip_rate: f64,
    bit: Bit,
    scale: f64,
    error: f64,
}

struct NoiseSearch<'a> {
    request: &'a Request,
    limits: &'a ReleaseLimit,
    family: PlanFamily,
    region: Region,
    goal: Goal,
}

impl<'a> NoiseSearch<'a> {
    fn new(request: &'a Request, limits: &'a ReleaseLimit, planned: &NoisyPlan) -> Option<Self> {
        let (epsilon, _) = request.release?;
        let bit = Bit::of(planned.mechanism.channel().summed_bit()?);
        let mut regions = Region::all(request, planned.family).into_iter();
        let region = regions.find(|region| region.of_no == bit.of_no)?;
        let goal = Goal::new(request, epsilon.value());
        Some(Self { request, limits, family: planned.family, region, goal })
    }

    /// A certified mechanism that is better than this one.
    fn better(&self, planned: &NoisyPlan) -> Option<NoisyPlan> {
        let found = self.best_bit(planned.sd)?;
        self.certified(&found).filter(|better| better.sd < planned.sd)
    }

    /// The bit and noise with the smallest error, if it is below the known one: in rounds, each around the best rate of the
    /// previous one.
    fn best_bit(&self, known: f64) -> Option<NoisyBit> {
        let least = self.bit(0.0)?.stray;
        let (mut low, mut high) = (least, self.most_flip_rate(known)?.max(least));
        let mut best: Option<NoisyBit> = None;
        for _ in 0..ROUNDS {
            let step = (high - low) / f64::from(RATES - 1);
            for number in 0..RATES {
                let goal = best.map_or(known, |best| best.error) * (1.0 - WORTH);
                best = self.at(low + step * f64::from(number), goal).or(best);
            }
            let centre = best?.flip_rate;
            (low, high) = ((centre - step).max(least), centre + step);
        }
        best
    }

    /// The bit with this stray rate, or with a higher one if the local bounds demand it.
    fn bit(&self, flip_rate: f64) -> Option<Bit> {
        self.region.lifted(0.0, flip_rate)
    }

    /// The stray rate above which the owners' part of the error alone reaches the known error.
    fn most_flip_rate(&self, known: f64) -> Option<f64> {
        let is_worth = |flip_rate: f64| self.bit(flip_rate).is_some_and(|bit| self.goal.error_with(&bit, 0.0) < known);
        if !is_worth(0.0) {
            return None;
        }
        let (most, _) = halved((0.0, 1.0), 60, is_worth);
        Some(most)
    }

    /// The smallest noise at a stray rate, if the error is below `goal` with it.
    fn at(&self, flip_rate: f64, goal: f64) -> Option<NoisyBit> {
        let bit = self.bit(flip_rate)?;
        let smallest = Scale::SMALLEST.ln();
        if self.error(&bit, smallest) >= goal {
            return None;
        }
        let log_scale = self.least_scale(&bit, (smallest, self.largest_scale(&bit, goal)))?;
        Some(NoisyBit { flip_rate, bit, scale: log_scale.exp(), error: self.error(&bit, log_scale) })
    }

    /// The logarithm of the smallest scale between two that satisfies the bound, from above; `None` if the larger one does not.
    fn least_scale(&self, bit: &Bit, (low, high): (f64, f64)) -> Option<f64> {
        let keeps = |log_scale: f64| self.keeps(bit, log_scale.exp());
        if !keeps(high) {
            return None;
        }
        if keeps(low) {
            return Some(low);
        }
        let close = |low: f64, high: f64| high - low <= ACCURACY;
        let (_, least) = bisect((low, high), Middle::Arithmetic, MOST_HALVINGS, close, |log_scale| !keeps(log_scale));
        Some(least)
    }

    /// The logarithm of the scale at which the error is `goal`, or of the one that is enough without any owner.
    fn largest_scale(&self, bit: &Bit, goal: f64) -> f64 {
        let alone = self.request.release.map_or(0.0, |(epsilon, _)| scale_of(bit.decay(epsilon.value().exp_m1())));
        let ends = (Scale::SMALLEST.ln(), alone.ln());
        halved(ends, 50, |log_scale| self.error(bit, log_scale) < goal).0
    }

    /// The error of a bit with noise of a scale.
    fn error(&self, bit: &Bit, log_scale: f64) -> f64 {
        self.goal.error_with(bit, (-1.0 / log_scale.exp()).exp())
    }

    /// Whether a bit with noise of a scale satisfies the bound in the crowds of one truth.
    fn keeps(&self, bit: &Bit, scale: f64) -> bool {
        let noisy = |scale: Scale| bit.silent_law().channel().ok()?.with_noise(NoiseLaw::laplace(scale)).ok();
        scales_from(scale).next().and_then(noisy).is_some_and(|channel: Channel| self.limits.is_kept(&channel))
    }

    /// The mechanism of a bit and its noise, the scale raised until its certificate satisfies the request.
    fn certified(&self, found: &NoisyBit) -> Option<NoisyPlan> {
        let local = local(self.request, self.family, &self.region, &found.bit)?;
        RAISES.into_iter().find_map(|raise| self.certified_at(&local, found.scale * raise))
    }

    fn certified_at(&self, local: &Mechanism, scale: f64) -> Option<NoisyPlan> {
        let (epsilon, _) = self.request.release?;
        let mechanism = noisy(local.clone(), scales_from(scale).next()?).ok()?;
        let channel = mechanism.channel();
        let release = self.request.release_guarantee(&channel).ok()?;
        let kept = release.value().is_some_and(|value| value.upper() <= epsilon.value());
        let sd = sd(self.request, &channel)?;
        kept.then_some(NoisyPlan { family: self.family, mechanism, sd, release: Some(release) })
    }
}

/// The rates are raised by these shares, in turn, until the rounded parameters satisfy the local bounds.
const HIGHER_RATES: [f64; 6] = [0.0, 2e-6, 6e-6, 2e-5, 2e-4, 2e-3];
/// Significant digits of a scale.
const DIGITS: i32 = 6;
/// A scale is raised by at most this many units of its last digit until its claim is satisfied.
const MOST_RAISES: u64 = 20;

/// The owners' mechanism, with parameters of few digits.
fn local(request: &Request, family: PlanFamily, region: &Region, bit: &Bit) -> Option<Mechanism> {
    HIGHER_RATES.into_iter().find_map(|more| {
        let bit = region.lifted(bit.missed * (1.0 + more), bit.stray * (1.0 + more))?;
        let mechanism = family.mechanism(&law(family, &bit)).ok()?;
        keeps_local(request, &mechanism).then_some(mechanism)
    })
}

fn keeps_local(request: &Request, mechanism: &Mechanism) -> bool {
    let most = request.cell_epsilon();
    most.is_infinite() || linked_epsilon(&mechanism.channel()).is_some_and(|epsilon| epsilon <= most)
}

fn law(family: PlanFamily, bit: &Bit) -> ThreeClassLaw {
    match family {
        PlanFamily::RandomizedResponse => ThreeClassLaw::symmetric(1.0, bit.missed.max(bit.stray)),
        PlanFamily::NormalForm => ThreeClassLaw::symmetric((1.0 - bit.missed + bit.stray).min(1.0), bit.stray),
        _ => bit.silent_law(),
    }
}

/// The smallest scale of few digits with which one honest aggregator guarantees `epsilon`, by the exact claim.
fn least_scale_alone(channel: &Channel, epsilon: f64) -> Option<Scale> {
    let needed = scale_of(Bit::of(channel.summed_bit()?).decay(epsilon.exp_m1()));
    let keeps = |scale: Scale| {
        let noisy = channel.clone().with_noise(NoiseLaw::laplace(scale)).ok()?;
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
    (nearest..nearest + MOST_RAISES).filter_map(move |number| match places >= 0 {
        true => Scale::new(number, unit).ok(),
        false => Scale::new(number.checked_mul(unit)?, 1).ok(),
    })
}

/// A mechanism with noise of this scale.
fn noisy(local: Mechanism, scale: Scale) -> Result<Mechanism> {
    Ok(Mechanism::Noisy(Noisy::new(local, NoiseLaw::laplace(scale))?))
}

/// The error of a mechanism, if it is finite.
fn sd(request: &Request, channel: &Channel) -> Option<f64> {
    let sd = request.predicted_sd(channel).ok()?;
    sd.is_finite().then_some(sd)
}
