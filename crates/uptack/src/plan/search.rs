//! The best law of a family that is a plane of two numbers: a grid that is refined around the cliff and both ends, then
//! golden section.

use super::curve::Curve;
use super::family::Family;
use super::law::Law;
use super::limits::Limits;
use super::request::{Objective, Request};

/// A law with its place in the family and what it costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) family: Family,
    pub(super) law: Law,
    pub(super) cost: f64,
    /// Its participation.
    pub(super) place: f64,
    /// How much doubt its answers leave.
    pub(super) doubt: f64,
}

/// What a search aims at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    /// The release's ε is divided by this.
    pub(super) allowance: f64,
    /// Nobody takes part more often.
    pub(super) most: f64,
    /// The law is hardly another than the one before.
    pub(super) near: bool,
}

/// How exactly the doubt is solved for while the search compares participations, in its logarithm: the error moves by half
/// of it.
const ACCURACY: f64 = 4e-4;
/// The same for what is kept.
const FINAL_ACCURACY: f64 = 1e-5;
/// Golden section stops after so many steps: the interval is then a 300th of what it was.
const GOLDEN_STEPS: u32 = 12;
/// So many are enough where the law before was nearly the same.
const NEAR_STEPS: u32 = 3;
/// It stops earlier where the cost differs by less than this between its two inner points and its width hardly matters.
const LEVEL: f64 = 1e-4;

/// The search in one family under one request.
pub(super) struct Search<'a> {
    pub(super) request: &'a Request,
    pub(super) limits: &'a Limits,
    pub(super) family: Family,
    pub(super) curve: Curve,
}

impl<'a> Search<'a> {
    pub(super) fn new(request: &'a Request, limits: &'a Limits, family: Family) -> Option<Self> {
        Some(Self { request, limits, family, curve: Curve::of(family, request)? })
    }

    /// The participations that are searched. Fewer than this take part only to be missed: below δ nobody would have to be
    /// hidden at all, and an estimate that never says anything is exact where nobody holds yes.
    pub(super) fn domain(&self) -> (f64, f64) {
        let most = self.request.participation.unwrap_or(1.0);
        if self.family == Family::RandomizedResponse {
            return (1.0, most);
        }
        let delta = self.limits.release().map_or(0.0, |(_, delta)| delta);
        (LEAST_PARTICIPATION.max(100.0 * delta).min(most), most)
    }

    /// The least costly law, where the release is to keep its ε over `allowance` in the crowds of one truth.
    pub(super) fn best(&self, allowance: f64) -> Option<Found> {
        let places = self.places(allowance);
        let mut best: Option<Found> = None;
        for &place in &places {
            if best.is_none_or(|best| self.may_cost(place, 1.01 * best.cost, allowance)) {
                best = cheaper(best, self.at(place, allowance, ACCURACY));
            }
        }
        let best = best?;
        if self.family == Family::RandomizedResponse {
            return self.at(1.0, allowance, FINAL_ACCURACY);
        }
        let index = places.iter().position(|&place| place == best.place)?;
        // The places are in no order: the neighbours are the nearest on either side.
        let below = places.iter().copied().filter(|&place| place < best.place).fold(self.domain().0, f64::max);
        let above = places.iter().copied().filter(|&place| place > best.place).fold(self.domain().1, f64::min);
        debug_assert!(below <= places[index] && places[index] <= above, "neighbours surround a place");
        self.refine(best, (below, above), allowance, GOLDEN_STEPS)
    }

    /// The least costly law near a place, as far as neighbours on the grid would be.
    pub(super) fn best_near(&self, place: f64, aim: &Aim) -> Option<Found> {
        let (least, most) = self.domain();
        let (most, allowance) = (most.min(aim.most.max(least)), aim.allowance);
        let place = place.min(most);
        if self.family == Family::RandomizedResponse {
            return self.at(1.0, allowance, FINAL_ACCURACY);
        }
        let share = if aim.near { 0.03 } else { 0.3 };
        let reach = share * (1.0 - place).max(1e-3).min(place);
        let ends = ((place - reach).max(least), (place + reach).min(most));
        let middle = self.at(place, allowance, ACCURACY);
        let sides = [0.2, 0.4, 0.6, 0.8].map(|share| ends.0 + share * (ends.1 - ends.0));
        if let Some(middle) = middle.filter(|_| aim.near) {
            return self.refine(middle, ends, allowance, NEAR_STEPS);
        }
        // The cliff moves with the allowance, and what is best just before it moves along.
        let moved = self.limits.release().map(|(epsilon, _)| {
            let cliff = epsilon - epsilon / allowance;
            1.0 - (1.0 - place) * cliff.exp()
        });
        let moved =
            moved.filter(|place| (least..=most).contains(place)).and_then(|place| self.at(place, allowance, ACCURACY));
        let mut best = cheaper(middle, moved);
        for place in sides.into_iter().chain([ends.1]) {
            if best.is_none_or(|best| self.may_cost(place, best.cost, allowance)) {
                best = cheaper(best, self.at(place, allowance, ACCURACY));
            }
        }
        let best = best?;
        let around = |reach: f64| ((best.place - reach).max(least), (best.place + reach).min(most));
        // The doubt is a saw: the tooth first, then what is around it.
        let tooth = self.refine(best, around(TOOTH * (1.0 - best.place)), allowance, GOLDEN_STEPS)?;
        cheaper(Some(tooth), self.refine(tooth, around(0.2 * (ends.1 - ends.0)), allowance, GOLDEN_STEPS))
    }

    /// Golden section between two places around one.
    fn refine(&self, start: Found, (mut low, mut high): (f64, f64), allowance: f64, steps: u32) -> Option<Found> {
        let golden = 0.5 * (5f64.sqrt() - 1.0);
        let at = |place: f64| self.at(place, allowance, ACCURACY);
        let cost = |found: &Option<Found>| found.map_or(f64::INFINITY, |found| found.cost);
        let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
        let (mut left_found, mut right_found) = (at(left), at(right));
        let mut best = [left_found, right_found].into_iter().fold(Some(start), cheaper);
        for _ in 0..steps {
            let (one, other) = (cost(&left_found), cost(&right_found));
            let level = (one / other - 1.0).abs() < LEVEL && (cost(&best) / one - 1.0).abs() < LEVEL;
            if high <= low || level {
                break;
            }
            if one < other {
                (high, right, right_found) = (right, left, left_found);
                left = high - golden * (high - low);
                left_found = at(left);
                best = cheaper(best, left_found);
            } else {
                (low, left, left_found) = (left, right, right_found);
                right = low + golden * (high - low);
                right_found = at(right);
                best = cheaper(best, right_found);
            }
        }
        best.map(|best| self.at(best.place, allowance, FINAL_ACCURACY).unwrap_or(best))
    }

    /// The law with the least doubt at a participation.
    pub(super) fn at(&self, place: f64, allowance: f64, accuracy: f64) -> Option<Found> {
        let least = self.curve.least_doubt(self.family, self.request, place)?;
        let law = |doubt: f64| self.curve.law(place, doubt);
        let doubt = self.limits.least_doubt(law, (least, self.curve.most_doubt()), allowance, accuracy)?;
        self.with_doubt(place, doubt)
    }

    /// The law of a participation and a doubt, if nobody would take part more often than allowed.
    pub(super) fn with_doubt(&self, place: f64, doubt: f64) -> Option<Found> {
        if self.curve.exceeds(place, doubt, self.domain().1) {
            return None;
        }
        let law = self.curve.law(place, doubt);
        let cost = self.request.cost(&law);
        cost.is_finite().then_some(Found { family: self.family, law, cost, place, doubt })
    }

    /// Whether a law of this participation may cost less than `most`: the one that costs as much must keep the bound.
    fn may_cost(&self, place: f64, most: f64, allowance: f64) -> bool {
        if self.request.objective != Objective::Sd {
            return true;
        }
        let doubt = self.doubt_at_error(place, most);
        doubt.is_some_and(|doubt| !self.limits.is_broken_at(&self.curve.law(place, doubt), allowance))
    }

    /// The most doubt at which the error is at most `error`; none where it is larger without any doubt.
    pub(super) fn doubt_at_error(&self, place: f64, error: f64) -> Option<f64> {
        let sd = |log_doubt: f64| self.request.sd(&self.curve.law(place, log_doubt.exp()));
        let (mut low, mut high) = (1e-18f64.ln(), self.curve.most_doubt().ln());
        if sd(low) > error {
            return None;
        }
        for _ in 0..44 {
            let half = 0.5 * (low + high);
            if sd(half) <= error { low = half } else { high = half }
        }
        Some(low.exp())
    }

    /// Where the search looks first: the likely best come first, because others are then ruled out quickly.
    fn places(&self, allowance: f64) -> Vec<f64> {
        let (least, most) = self.domain();
        if self.family == Family::RandomizedResponse {
            return if most >= 1.0 { vec![1.0] } else { Vec::new() };
        }
        let mut absent = Vec::new();
        if let Some((epsilon, _)) = self.limits.release() {
            // Where one direction of the divergence vanishes, in a crowd whose silent owners fluctuate.
            let cliff = (-epsilon / allowance).exp();
            let deviation = (cliff / self.limits.owners() as f64).sqrt();
            absent.extend([4.0, 6.0, 8.0, 11.0].map(|times| cliff + times * deviation));
            // Just before it the least doubt is a saw whose teeth grow narrower with the crowd.
            absent.extend([1.0 + 1e-6, 1.003, 1.005, 1.0075, 1.012, 1.03, 1.15, 0.9].map(|times| cliff * times));
        }
        absent.extend([0.0, 1e-4, 1e-3, 1e-2, 0.05]);
        let inner = absent.into_iter().map(|absent| 1.0 - absent).filter(|place| *place > least && *place <= most);
        let steps = (0..=12).map(|step| least + (most - least) * (f64::from(step) / 12.0).powi(2));
        let mut places: Vec<f64> = Vec::new();
        for place in inner.chain([most]).chain(steps) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }
}

/// How far the first refinement looks around the best place, as a share of those who do not take part: about one tooth of the
/// saw just before the cliff.
const TOOTH: f64 = 4e-3;
/// Fewer than one in a thousand are not asked to take part.
const LEAST_PARTICIPATION: f64 = 1e-3;

pub(super) fn cheaper(one: Option<Found>, other: Option<Found>) -> Option<Found> {
    match (one, other) {
        (Some(a), Some(b)) => Some(if b.cost < a.cost { b } else { a }),
        (one, other) => one.or(other),
    }
}
