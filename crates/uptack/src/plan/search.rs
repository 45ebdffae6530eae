//! The best law of a family with two parameters: a grid that is refined around the cliff and both ends, then golden section. And a
//! proof, box by box, that no law of the family has a much smaller error.

use super::family::{Curve, Family, Law};
use super::limits::Limits;
use super::request::{Objective, Request};
use super::root::halved;

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
    /// The largest participation.
    pub(super) most: f64,
    /// Whether the law hardly differs from the one before.
    pub(super) near: bool,
}

/// How exactly the logarithm of the doubt is solved for while the search compares participations. The error moves by half of
/// it.
const ACCURACY: f64 = 4e-4;
/// The same for the law that is kept.
const FINAL_ACCURACY: f64 = 1e-5;
/// Steps of a golden section, after which the interval is a 300th of what it was.
const GOLDEN_STEPS: u32 = 12;
/// Steps that are enough if the law before was nearly the same.
const NEAR_STEPS: u32 = 3;
/// A golden section stops earlier if the costs at its two inner points differ by less than this share.
const LEVEL: f64 = 1e-4;
/// How far the first refinement looks around the best place, as a share of those who do not take part: about one tooth of
/// the saw just before the cliff.
const TOOTH: f64 = 4e-3;
/// The least participation that is planned.
const LEAST_PARTICIPATION: f64 = 1e-3;

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

    /// The participations that are searched. There is a least one, because below δ nobody would have to be hidden at all, and
    /// because an estimate that never says anything is exact if there are no yes-owners.
    pub(super) fn domain(&self) -> (f64, f64) {
        let most = self.request.most_participation();
        if self.family == Family::RandomizedResponse {
            return (1.0, most);
        }
        let delta = self.limits.release().map_or(0.0, |(_, delta)| delta);
        (LEAST_PARTICIPATION.max(100.0 * delta).min(most), most)
    }

    /// The least costly law whose release keeps its ε over `allowance` in the crowds of one truth.
    pub(super) fn best(&self, allowance: f64) -> Option<Found> {
        let places = self.places(allowance);
        let best = self.cheapest(None, places.iter().copied(), allowance, 1.01)?;
        if self.family == Family::RandomizedResponse {
            return self.at(1.0, allowance, FINAL_ACCURACY);
        }
        self.refine(best, self.neighbours(best.place, &places), allowance, GOLDEN_STEPS)
    }

    /// The nearest of some places on either side of one, or the ends of the domain.
    fn neighbours(&self, place: f64, places: &[f64]) -> (f64, f64) {
        let (least, most) = self.domain();
        let below = places.iter().copied().filter(|&other| other < place).fold(least, f64::max);
        let above = places.iter().copied().filter(|&other| other > place).fold(most, f64::min);
        debug_assert!(below <= place && place <= above, "neighbours surround a place");
        (below, above)
    }

    /// The least costly law near a place, about as far away as neighbours on the grid would be.
    pub(super) fn best_near(&self, place: f64, aim: &Aim) -> Option<Found> {
        if self.family == Family::RandomizedResponse {
            return self.at(1.0, aim.allowance, FINAL_ACCURACY);
        }
        let stretch = Stretch::new(self.domain(), place, aim);
        let middle = self.at(stretch.place, aim.allowance, ACCURACY);
        match middle {
            Some(middle) if aim.near => self.refine(middle, stretch.ends, aim.allowance, NEAR_STEPS),
            _ => self.best_within(&stretch, middle, aim.allowance),
        }
    }

    /// The least costly law of a stretch, given the one in its middle.
    fn best_within(&self, stretch: &Stretch, middle: Option<Found>, allowance: f64) -> Option<Found> {
        let best = cheaper(middle, self.moved_with_cliff(stretch, allowance));
        let places = [0.2, 0.4, 0.6, 0.8].map(|share| stretch.ends.0 + share * stretch.width());
        let best = self.cheapest(best, places.into_iter().chain([stretch.ends.1]), allowance, 1.0)?;
        // The least doubt is a saw: its tooth first, then what is around it.
        let tooth = stretch.around(best.place, TOOTH * (1.0 - best.place));
        let tooth = self.refine(best, tooth, allowance, GOLDEN_STEPS)?;
        let wider = stretch.around(best.place, 0.2 * stretch.width());
        cheaper(Some(tooth), self.refine(tooth, wider, allowance, GOLDEN_STEPS))
    }

    /// The cheaper of what is known and the laws at some places. A place is skipped if no law there can cost less than
    /// `margin` times the best so far.
    fn cheapest(
        &self,
        known: Option<Found>,
        places: impl Iterator<Item = f64>,
        allowance: f64,
        margin: f64,
    ) -> Option<Found> {
        places.fold(known, |best, place| match best {
            Some(best) if !self.may_cost(place, margin * best.cost, allowance) => Some(best),
            best => cheaper(best, self.at(place, allowance, ACCURACY)),
        })
    }

    /// The law at a place that moved along with the cliff: the cliff moves with the allowance, and so does what is best just
    /// before it.
    fn moved_with_cliff(&self, stretch: &Stretch, allowance: f64) -> Option<Found> {
        let (epsilon, _) = self.limits.release()?;
        let moved = 1.0 - (1.0 - stretch.place) * (epsilon - epsilon / allowance).exp();
        let (least, most) = stretch.domain;
        if !(least..=most).contains(&moved) {
            return None;
        }
        self.at(moved, allowance, ACCURACY)
    }

    /// Golden section between two places around one.
    fn refine(&self, start: Found, ends: (f64, f64), allowance: f64, steps: u32) -> Option<Found> {
        let at = |place: f64| self.at(place, allowance, ACCURACY);
        let mut section = GoldenSection::new(ends, at);
        let mut best = [section.left.found, section.right.found].into_iter().fold(Some(start), cheaper);
        for _ in 0..steps {
            if section.is_empty() || section.is_level(best) {
                break;
            }
            best = cheaper(best, section.narrow(at));
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

    /// The most doubt at which the error is at most `error`; none if it is larger without any doubt.
    pub(super) fn doubt_at_error(&self, place: f64, error: f64) -> Option<f64> {
        let sd = |log_doubt: f64| self.request.sd(&self.curve.law(place, log_doubt.exp()));
        let ends = (1e-18f64.ln(), self.curve.most_doubt().ln());
        if sd(ends.0) > error {
            return None;
        }
        let (most, _) = halved(ends, 44, |log_doubt| sd(log_doubt) <= error);
        Some(most.exp())
    }

    /// Where the search looks first: the likely best come first, because others are then ruled out quickly.
    fn places(&self, allowance: f64) -> Vec<f64> {
        let (least, most) = self.domain();
        if self.family == Family::RandomizedResponse {
            return if most >= 1.0 { vec![1.0] } else { Vec::new() };
        }
        let absent = self.shares_near_cliff(allowance).into_iter().chain([0.0, 1e-4, 1e-3, 1e-2, 0.05]);
        let inner = absent.map(|absent| 1.0 - absent).filter(|place| *place > least && *place <= most);
        let steps = (0..=12).map(|step| least + (most - least) * (f64::from(step) / 12.0).powi(2));
        distinct(inner.chain([most]).chain(steps))
    }

    /// Shares of owners who do not take part, around the cliff at e^(−ε).
    fn shares_near_cliff(&self, allowance: f64) -> Vec<f64> {
        let Some((epsilon, _)) = self.limits.release() else { return Vec::new() };
        // Where one direction of the divergence vanishes, in a crowd whose silent owners fluctuate.
        let cliff = (-epsilon / allowance).exp();
        let deviation = (cliff / self.limits.owners() as f64).sqrt();
        let beyond = [4.0, 6.0, 8.0, 11.0].map(|times| cliff + times * deviation);
        // Just before it the least doubt is a saw whose teeth grow narrower with the crowd.
        let saw = [1.0 + 1e-6, 1.003, 1.005, 1.0075, 1.012, 1.03, 1.15, 0.9].map(|times| cliff * times);
        beyond.into_iter().chain(saw).collect()
    }
}

/// The places without repetitions, in the order in which they first occur.
fn distinct(places: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut distinct = Vec::new();
    for place in places {
        if !distinct.contains(&place) {
            distinct.push(place);
        }
    }
    distinct
}

/// Where a search near a place looks.
struct Stretch {
    domain: (f64, f64),
    place: f64,
    ends: (f64, f64),
}

impl Stretch {
    fn new((least, most): (f64, f64), place: f64, aim: &Aim) -> Self {
        let domain = (least, most.min(aim.most.max(least)));
        let place = place.min(domain.1);
        let share = if aim.near { 0.03 } else { 0.3 };
        let mut stretch = Self { domain, place, ends: domain };
        stretch.ends = stretch.around(place, share * (1.0 - place).max(1e-3).min(place));
        stretch
    }

    fn width(&self) -> f64 {
        self.ends.1 - self.ends.0
    }

    /// The part of the domain within reach of a place.
    fn around(&self, place: f64, reach: f64) -> (f64, f64) {
        ((place - reach).max(self.domain.0), (place + reach).min(self.domain.1))
    }
}

/// An interval of participations with the laws at its two inner points.
struct GoldenSection {
    low: f64,
    high: f64,
    left: Probe,
    right: Probe,
}

/// A participation and the law found there.
#[derive(Clone, Copy)]
struct Probe {
    place: f64,
    found: Option<Found>,
}

impl Probe {
    fn at(place: f64, at: impl Fn(f64) -> Option<Found>) -> Self {
        Self { place, found: at(place) }
    }

    fn cost(&self) -> f64 {
        cost(self.found)
    }
}

impl GoldenSection {
    const RATIO: f64 = 0.618_033_988_749_894_9;

    fn new((low, high): (f64, f64), at: impl Fn(f64) -> Option<Found>) -> Self {
        let left = Probe::at(high - Self::RATIO * (high - low), &at);
        let right = Probe::at(low + Self::RATIO * (high - low), &at);
        Self { low, high, left, right }
    }

    fn is_empty(&self) -> bool {
        self.high <= self.low
    }

    /// Whether neither the inner points nor the best law differ enough for the interval's width to matter.
    fn is_level(&self, best: Option<Found>) -> bool {
        let (left, right) = (self.left.cost(), self.right.cost());
        (left / right - 1.0).abs() < LEVEL && (cost(best) / left - 1.0).abs() < LEVEL
    }

    /// Drops the end next to the more expensive inner point; returns the law at the new inner point.
    fn narrow(&mut self, at: impl Fn(f64) -> Option<Found>) -> Option<Found> {
        if self.left.cost() < self.right.cost() {
            (self.high, self.right) = (self.right.place, self.left);
            self.left = Probe::at(self.high - Self::RATIO * (self.high - self.low), at);
            self.left.found
        } else {
            (self.low, self.left) = (self.left.place, self.right);
            self.right = Probe::at(self.low + Self::RATIO * (self.high - self.low), at);
            self.right.found
        }
    }
}

fn cost(found: Option<Found>) -> f64 {
    found.map_or(f64::INFINITY, |found| found.cost)
}

/// The less costly of two laws, or the only one.
pub(super) fn cheaper(one: Option<Found>, other: Option<Found>) -> Option<Found> {
    match (one, other) {
        (Some(a), Some(b)) => Some(if b.cost < a.cost { b } else { a }),
        (one, other) => one.or(other),
    }
}

/// What the boxes showed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    /// No law of the family that keeps the request has a smaller error than this.
    AtLeast(f64),
    /// A law that is better than what was known, judged by the crowds of one truth.
    Better(Found),
}

/// The certified mechanism that a bound is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) error: f64,
    pub(super) allowance: f64,
}

/// The shares below the known error at which a bound is tried, one after the other.
const SHARES: [f64; 10] = [0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.2, 0.5];
/// A law within this share of the known error is not reported as better.
const NEWS: f64 = 0.002;
/// The width of the first box of a share, as a share of its upper end.
const FIRST_WIDTH: f64 = 0.01;

impl Search<'_> {
    /// A lower bound on the error of every law of the family that keeps the request, near the known error if possible. Each
    /// share of it that is tried may spend `budget` calls of the accounting. A better law is reported if `news` says so.
    ///
    /// From the largest participation downwards in boxes [a, b]: let y be the doubt at which the error is T at
    /// participation b. If a crowd of one truth shows that (a, y) breaks the bound, then every law in the box that keeps it
    /// has more doubt than y, because it would otherwise give away more than (a, y); and its error is at least that of
    /// (b, y), which is T. One call of the accounting for each box.
    pub(super) fn bound(&self, known: Known, budget: u32, news: bool) -> Bound {
        let (least, most) = self.domain();
        let (mut b, mut width) = (most, FIRST_WIDTH * most);
        let mut goals = SHARES.into_iter().map(|share| known.error * (1.0 - share));
        let (mut goal, mut left) = (goals.next().unwrap_or(0.0), budget);
        while b > least {
            // With participation b at most and no doubt at all the error is larger: so it is everywhere below.
            let Some(doubt) = self.doubt_at_error(b, goal) else { return Bound::AtLeast(goal) };
            let a = (b - width).max(least);
            left = left.saturating_sub(1);
            if self.is_impossible(a, doubt) {
                (b, width) = (a, width * 1.7);
                continue;
            }
            width = (b - a) * 0.4;
            let stuck = width < 1e-4 * (1.0 - a).max(1e-7) || !self.is_impossible(b, doubt);
            if !stuck && left > 0 {
                continue;
            }
            if let Some(better) = news.then(|| self.better_at([a, b], known)).flatten() {
                return Bound::Better(better);
            }
            let Some(next) = goals.next() else { return Bound::AtLeast(0.0) };
            (goal, left, width) = (next, budget, FIRST_WIDTH * b);
        }
        Bound::AtLeast(goal)
    }

    /// The best law at these participations, if its error is clearly below the known one.
    fn better_at(&self, places: [f64; 2], known: Known) -> Option<Found> {
        let found = places.into_iter().filter_map(|place| self.at(place, known.allowance, 1e-3));
        let better = found.filter(|found| found.cost < known.error * (1.0 - NEWS));
        better.min_by(|one, other| one.cost.total_cmp(&other.cost))
    }

    /// Whether the local bounds, the participation or a crowd of one truth rule the law out, and all laws with as much
    /// participation and no more doubt.
    fn is_impossible(&self, place: f64, doubt: f64) -> bool {
        match self.curve.least_doubt(self.family, self.request, place) {
            None => true,
            Some(least) if doubt < least => true,
            Some(least) => {
                self.curve.exceeds(place, least, self.domain().1)
                    || self.limits.is_broken(&self.curve.law(place, doubt))
            }
        }
    }
}
