//! The best mechanism of every family if one honest aggregator and the claim's owners are counted on together.
//!
//! Noise that is enough for one honest aggregator alone keeps the request already. Owners' coins take a part of its work
//! over, most where the local bounds demand coins anyway: the search moves along the doubt that answers leave, and looks for
//! the least noise at each.

use super::bit::Bit;
use super::one_aggregator::{Planned, with_one_aggregator};
use super::region::{Goal, Region};
use super::written::{self, scale_of, scales_from};
use crate::channel::Channel;
use crate::mechanism::Mechanism;
use crate::noise::{DiscreteLaplace, Scale};
use crate::plan::certify::target;
use crate::plan::family::Family;
use crate::plan::limits::Limits;
use crate::plan::request::Request;
use crate::privacy::{self, Guarantee};

/// Doubts that are looked at in each round between the least and the most that can be worth it.
const PLACES: u32 = 9;
/// Rounds, each around the best place of the one before.
const ROUNDS: u32 = 2;
/// A doubt is looked at if it can be better by this share.
const WORTH: f64 = 1e-3;
/// How exactly the scale is solved for, in its logarithm.
const ACCURACY: f64 = 1e-3;
/// What the scale is raised by, one after the other, until the certificate keeps the request.
const RAISES: [f64; 6] = [1.0, 1.0005, 1.002, 1.006, 1.02, 1.06];

/// The best of each family, certified.
pub(in crate::plan) fn with_owners(request: &Request, limits: &Limits, families: &[Family]) -> Vec<Planned> {
    let (alone, _) = with_one_aggregator(request, families);
    let together = alone.into_iter().map(|planned| {
        let better = Search::new(request, limits, &planned).and_then(|search| search.better(&planned));
        better.unwrap_or_else(|| certified_alone(request, planned))
    });
    together.collect()
}

/// What one honest aggregator keeps, it keeps together with owners.
fn certified_alone(request: &Request, planned: Planned) -> Planned {
    Planned { release: guarantee(request, &planned.mechanism), ..planned }
}

fn guarantee(request: &Request, mechanism: &Mechanism) -> Option<Guarantee> {
    let owners = request.claim_owners().ok()?;
    Some(privacy::release(&mechanism.channel(), owners).ok()?.guarantee(target(request).ok()?))
}

/// A bit, the scale of its noise, and the error of both.
#[derive(Clone, Copy)]
struct Place {
    doubt: f64,
    bit: Bit,
    scale: f64,
    error: f64,
}

struct Search<'a> {
    request: &'a Request,
    limits: &'a Limits,
    family: Family,
    region: Region,
    goal: Goal,
}

impl<'a> Search<'a> {
    fn new(request: &'a Request, limits: &'a Limits, planned: &Planned) -> Option<Self> {
        let (epsilon, _) = request.release?;
        let bit = Bit::of(planned.mechanism.channel().summed_bit()?);
        let mut regions = Region::all(request, planned.family).into_iter();
        let region = regions.find(|region| region.of_no == bit.of_no)?;
        let goal = Goal::new(request, epsilon.value());
        Some(Self { request, limits, family: planned.family, region, goal })
    }

    /// A mechanism that is certified and better than one.
    fn better(&self, planned: &Planned) -> Option<Planned> {
        let known = planned.sd;
        let least = self.bit(0.0)?.stray;
        let (mut low, mut high) = (least, self.most_doubt(known)?.max(least));
        let mut best: Option<Place> = None;
        for _ in 0..ROUNDS {
            let step = (high - low) / f64::from(PLACES - 1);
            for number in 0..PLACES {
                let goal = best.map_or(known, |best| best.error) * (1.0 - WORTH);
                best = self.at(low + step * f64::from(number), goal).or(best);
            }
            let centre = best?.doubt;
            (low, high) = ((centre - step).max(least), centre + step);
        }
        self.certified(&best?).filter(|better| better.sd < known)
    }

    /// The bit with so much doubt, or as much as the local bounds demand, of those who should not write it.
    fn bit(&self, doubt: f64) -> Option<Bit> {
        self.region.lifted(0.0, doubt)
    }

    /// With more doubt than this the owners' part of the error alone is as large as what is known.
    fn most_doubt(&self, known: f64) -> Option<f64> {
        let worth = |doubt: f64| self.bit(doubt).is_some_and(|bit| self.goal.error_with(&bit, 0.0) < known);
        let (mut low, mut high) = (0.0, 1.0);
        if !worth(low) {
            return None;
        }
        for _ in 0..60 {
            let half = 0.5 * (low + high);
            if worth(half) { low = half } else { high = half }
        }
        Some(low)
    }

    /// The least noise at a doubt, if the error is below `goal` with it.
    fn at(&self, doubt: f64, goal: f64) -> Option<Place> {
        let bit = self.bit(doubt)?;
        let error = |log: f64| self.goal.error_with(&bit, (-1.0 / log.exp()).exp());
        let mut low = Scale::SMALLEST.ln();
        if error(low) >= goal {
            return None;
        }
        let mut high = self.largest_scale(&bit, goal);
        if !self.keeps(&bit, high.exp()) {
            return None;
        }
        if self.keeps(&bit, low.exp()) {
            high = low;
        }
        while high - low > ACCURACY {
            let half = 0.5 * (low + high);
            if self.keeps(&bit, half.exp()) { high = half } else { low = half }
        }
        Some(Place { doubt, bit, scale: high.exp(), error: error(high) })
    }

    /// The logarithm of the scale at which the error is `goal`, or of the one that is enough without any owner.
    fn largest_scale(&self, bit: &Bit, goal: f64) -> f64 {
        let alone = self.request.release.map_or(0.0, |(epsilon, _)| scale_of(bit.decay(epsilon.value().exp_m1())));
        let (mut low, mut high) = (Scale::SMALLEST.ln(), alone.ln());
        for _ in 0..50 {
            let half = 0.5 * (low + high);
            if self.goal.error_with(bit, (-1.0 / half.exp()).exp()) < goal { low = half } else { high = half }
        }
        low
    }

    fn keeps(&self, bit: &Bit, scale: f64) -> bool {
        let noisy = |scale: Scale| bit.silent_law().channel().ok()?.with_noise(DiscreteLaplace::new(scale)).ok();
        scales_from(scale).next().and_then(noisy).is_some_and(|channel: Channel| self.limits.is_kept(&channel))
    }

    fn certified(&self, place: &Place) -> Option<Planned> {
        let (epsilon, _) = self.request.release?;
        let local = written::local(self.request, self.family, &self.region, &place.bit)?;
        RAISES.into_iter().find_map(|raise| {
            let scale = scales_from(place.scale * raise).next()?;
            let mechanism = written::noisy(local.clone(), scale).ok()?;
            let release = guarantee(self.request, &mechanism)?;
            let kept = release.value().is_some_and(|value| value.upper() <= epsilon.value());
            let sd = written::sd(self.request, &mechanism.channel())?;
            kept.then_some(Planned { family: self.family, mechanism, sd, release: Some(release) })
        })
    }
}
