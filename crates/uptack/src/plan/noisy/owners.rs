//! The best mechanism of every family if one honest aggregator and the claim's owners are counted on together.
//!
//! Noise for which one honest aggregator alone is enough already keeps the request. Owners' coins take over a part of its work,
//! above all if the local bounds demand coins anyway. The search moves along the doubt that answers leave, and looks for
//! the least noise at each doubt.

use super::bit::Bit;
use super::one_aggregator::{Planned, with_one_aggregator};
use super::region::{Goal, Region};
use super::written::{self, scale_of, scales_from};
use crate::certified::root::{MOST_HALVINGS, Middle, bisect};
use crate::channel::Channel;
use crate::mechanism::Mechanism;
use crate::noise::{DiscreteLaplace, Scale};
use crate::plan::family::Family;
use crate::plan::limits::Limits;
use crate::plan::request::Request;
use crate::plan::root::halved;

/// Doubts that are tried in each round, between the least and the most that can be worth it.
const PLACES: u32 = 9;
/// Rounds, each around the best place of the one before.
const ROUNDS: u32 = 2;
/// A doubt is tried if it can be better by this share.
const WORTH: f64 = 1e-3;
/// How exactly the logarithm of the scale is solved for.
const ACCURACY: f64 = 1e-3;
/// What the scale is multiplied by, one factor after the other, until the certificate keeps the request.
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

/// A mechanism for which one honest aggregator is enough keeps the request together with owners.
fn certified_alone(request: &Request, planned: Planned) -> Planned {
    let release = request.release_guarantee(&planned.mechanism.channel()).ok();
    Planned { release, ..planned }
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

    /// A certified mechanism that is better than this one.
    fn better(&self, planned: &Planned) -> Option<Planned> {
        let place = self.best_place(planned.sd)?;
        self.certified(&place).filter(|better| better.sd < planned.sd)
    }

    /// The place with the least error, if it is below the known one: in rounds, each around the best place of the one before.
    fn best_place(&self, known: f64) -> Option<Place> {
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
        best
    }

    /// The bit with this much stray doubt, or as much as the local bounds demand.
    fn bit(&self, doubt: f64) -> Option<Bit> {
        self.region.lifted(0.0, doubt)
    }

    /// The doubt above which the owners' part of the error alone is as large as what is known.
    fn most_doubt(&self, known: f64) -> Option<f64> {
        let is_worth = |doubt: f64| self.bit(doubt).is_some_and(|bit| self.goal.error_with(&bit, 0.0) < known);
        if !is_worth(0.0) {
            return None;
        }
        let (most, _) = halved((0.0, 1.0), 60, is_worth);
        Some(most)
    }

    /// The least noise at a doubt, if the error is below `goal` with it.
    fn at(&self, doubt: f64, goal: f64) -> Option<Place> {
        let bit = self.bit(doubt)?;
        let smallest = Scale::SMALLEST.ln();
        if self.error(&bit, smallest) >= goal {
            return None;
        }
        let log_scale = self.least_scale(&bit, (smallest, self.largest_scale(&bit, goal)))?;
        Some(Place { doubt, bit, scale: log_scale.exp(), error: self.error(&bit, log_scale) })
    }

    /// The logarithm of the least scale between two that keeps the bound, from above; none if the larger one does not.
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

    /// Whether a bit with noise of a scale keeps the bound in the crowds of one truth.
    fn keeps(&self, bit: &Bit, scale: f64) -> bool {
        let noisy = |scale: Scale| bit.silent_law().channel().ok()?.with_noise(DiscreteLaplace::new(scale)).ok();
        scales_from(scale).next().and_then(noisy).is_some_and(|channel: Channel| self.limits.is_kept(&channel))
    }

    /// The mechanism of a place, its scale raised until its certificate keeps the request.
    fn certified(&self, place: &Place) -> Option<Planned> {
        let local = written::local(self.request, self.family, &self.region, &place.bit)?;
        RAISES.into_iter().find_map(|raise| self.certified_at(&local, place.scale * raise))
    }

    fn certified_at(&self, local: &Mechanism, scale: f64) -> Option<Planned> {
        let (epsilon, _) = self.request.release?;
        let mechanism = written::noisy(local.clone(), scales_from(scale).next()?).ok()?;
        let channel = mechanism.channel();
        let release = self.request.release_guarantee(&channel).ok()?;
        let kept = release.value().is_some_and(|value| value.upper() <= epsilon.value());
        let sd = written::sd(self.request, &channel)?;
        kept.then_some(Planned { family: self.family, mechanism, sd, release: Some(release) })
    }
}
