//! The best law of a family with two parameters: a grid that is refined around the cliff and both ends, then golden section. And
//! a proof, box by box, that no law of the family has a much smaller error.

use super::family::{PlanFamily, ThreeClassLaw, TwoParameterFamily};
use super::limits::ReleaseLimit;
use super::request::{Objective, Request};
use super::root::halved;

/// A law of a family with its two parameters and its cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct CandidateLaw {
    pub(super) family: PlanFamily,
    pub(super) law: ThreeClassLaw,
    pub(super) cost: f64,
    /// Its participation.
    pub(super) participation: f64,
    /// Its flip rate.
    pub(super) flip_rate: f64,
}

/// The target of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    /// The release's ε is divided by this.
    pub(super) allowance: f64,
    /// The largest participation.
    pub(super) most: f64,
    /// Whether the law is expected to be close to the previous one.
    pub(super) near: bool,
}

/// The accuracy of the logarithm of the flip rate while the search compares participations. The relative error of the estimate
/// changes by half of it.
const ACCURACY: f64 = 4e-4;
/// The same for the law that is kept.
const FINAL_ACCURACY: f64 = 1e-5;
/// Steps of a golden section, after which the interval is a 300th of what it was.
const GOLDEN_STEPS: u32 = 12;
/// Steps of a golden section near the previous law.
const NEAR_STEPS: u32 = 3;
/// A golden section stops earlier if the costs at its two inner points differ by less than this share.
const LEVEL: f64 = 1e-4;
/// How far the first refinement looks around the best participation, as a share of those who do not take part: about one tooth of
/// the sawtooth just before the cliff.
const TOOTH: f64 = 4e-3;
/// The smallest participation that is searched.
const LEAST_PARTICIPATION: f64 = 1e-3;

/// The search in one family under one request.
pub(super) struct FamilySearch<'a> {
    pub(super) request: &'a Request,
    pub(super) limits: &'a ReleaseLimit,
    pub(super) family: PlanFamily,
    pub(super) curve: TwoParameterFamily,
}

impl<'a> FamilySearch<'a> {
    pub(super) fn new(request: &'a Request, limits: &'a ReleaseLimit, family: PlanFamily) -> Option<Self> {
        Some(Self { request, limits, family, curve: TwoParameterFamily::of(family, request)? })
    }

    /// The participations that are searched. They have a lower bound, because below δ nobody would have to be hidden at all, and
    /// because a mechanism that never answers has no error if there are no yes-owners.
    pub(super) fn domain(&self) -> (f64, f64) {
        let most = self.request.most_participation();
        if self.family == PlanFamily::RandomizedResponse {
            return (1.0, most);
        }
        let delta = self.limits.release().map_or(0.0, |(_, delta)| delta);
        (LEAST_PARTICIPATION.max(100.0 * delta).min(most), most)
    }

    /// The least costly law whose release keeps its ε over `allowance` in the crowds of one truth.
    pub(super) fn best(&self, allowance: f64) -> Option<CandidateLaw> {
        let participations = self.participations(allowance);
        let best = self.cheapest(None, participations.iter().copied(), allowance, 1.01)?;
        if self.family == PlanFamily::RandomizedResponse {
            return self.at(1.0, allowance, FINAL_ACCURACY);
        }
        self.refine(best, self.neighbours(best.participation, &participations), allowance, GOLDEN_STEPS)
    }

    /// The nearest participations on either side of one, or the ends of the domain.
    fn neighbours(&self, participation: f64, participations: &[f64]) -> (f64, f64) {
        let (least, most) = self.domain();
        let below = participations.iter().copied().filter(|&other| other < participation).fold(least, f64::max);
        let above = participations.iter().copied().filter(|&other| other > participation).fold(most, f64::min);
        debug_assert!(below <= participation && participation <= above, "neighbours surround a participation");
        (below, above)
    }

    /// The least costly law near a participation, within about one step of the grid.
    pub(super) fn best_near(&self, participation: f64, aim: &Aim) -> Option<CandidateLaw> {
        if self.family == PlanFamily::RandomizedResponse {
            return self.at(1.0, aim.allowance, FINAL_ACCURACY);
        }
        let stretch = Stretch::new(self.domain(), participation, aim);
        let middle = self.at(stretch.participation, aim.allowance, ACCURACY);
        match middle {
            Some(middle) if aim.near => self.refine(middle, stretch.ends, aim.allowance, NEAR_STEPS),
            _ => self.best_within(&stretch, middle, aim.allowance),
        }
    }

    /// The least costly law of a stretch, given the one in its middle.
    fn best_within(&self, stretch: &Stretch, middle: Option<CandidateLaw>, allowance: f64) -> Option<CandidateLaw> {
        let best = cheaper(middle, self.moved_with_cliff(stretch, allowance));
        let participations = [0.2, 0.4, 0.6, 0.8].map(|share| stretch.ends.0 + share * stretch.width());
        let best = self.cheapest(best, participations.into_iter().chain([stretch.ends.1]), allowance, 1.0)?;
        // The minimum flip rate is a sawtooth; refine this tooth first, then its surroundings.
        let tooth = stretch.around(best.participation, TOOTH * (1.0 - best.participation));
        let tooth = self.refine(best, tooth, allowance, GOLDEN_STEPS)?;
        let wider = stretch.around(best.participation, 0.2 * stretch.width());
        cheaper(Some(tooth), self.refine(tooth, wider, allowance, GOLDEN_STEPS))
    }

    /// The cheapest of a known law and the laws at some participations. A participation is skipped if no law there can cost less
    /// than
    /// `margin` times the best so far.
    fn cheapest(
        &self,
        known: Option<CandidateLaw>,
        participations: impl Iterator<Item = f64>,
        allowance: f64,
        margin: f64,
    ) -> Option<CandidateLaw> {
        participations.fold(known, |best, participation| match best {
            Some(best) if !self.may_cost(participation, margin * best.cost, allowance) => Some(best),
            best => cheaper(best, self.at(participation, allowance, ACCURACY)),
        })
    }

    /// The law at the participation shifted along with the cliff: the cliff moves with the allowance, and so does the optimum
    /// just before it.
    fn moved_with_cliff(&self, stretch: &Stretch, allowance: f64) -> Option<CandidateLaw> {
        let (epsilon, _) = self.limits.release()?;
        let moved = 1.0 - (1.0 - stretch.participation) * (epsilon - epsilon / allowance).exp();
        let (least, most) = stretch.domain;
        if !(least..=most).contains(&moved) {
            return None;
        }
        self.at(moved, allowance, ACCURACY)
    }

    /// Golden section between two participations.
    fn refine(&self, start: CandidateLaw, ends: (f64, f64), allowance: f64, steps: u32) -> Option<CandidateLaw> {
        let at = |participation: f64| self.at(participation, allowance, ACCURACY);
        let mut section = GoldenSection::new(ends, at);
        let mut best = [section.left.found, section.right.found].into_iter().fold(Some(start), cheaper);
        for _ in 0..steps {
            if section.is_empty() || section.is_level(best) {
                break;
            }
            best = cheaper(best, section.narrow(at));
        }
        best.map(|best| self.at(best.participation, allowance, FINAL_ACCURACY).unwrap_or(best))
    }

    /// The law with the smallest flip rate at a participation.
    pub(super) fn at(&self, participation: f64, allowance: f64, accuracy: f64) -> Option<CandidateLaw> {
        let least = self.curve.least_flip_rate(self.family, self.request, participation)?;
        let law = |flip_rate: f64| self.curve.law(participation, flip_rate);
        let flip_rate = self.limits.least_flip_rate(law, (least, self.curve.most_flip_rate()), allowance, accuracy)?;
        self.with_flip_rate(participation, flip_rate)
    }

    /// The law of a participation and a flip rate, if no owner would take part more often than allowed.
    pub(super) fn with_flip_rate(&self, participation: f64, flip_rate: f64) -> Option<CandidateLaw> {
        if self.curve.exceeds(participation, flip_rate, self.domain().1) {
            return None;
        }
        let law = self.curve.law(participation, flip_rate);
        let cost = self.request.cost(&law);
        cost.is_finite().then_some(CandidateLaw { family: self.family, law, cost, participation, flip_rate })
    }

    /// Whether a law of this participation may cost less than `most`: only if the law that costs `most` is within the bound.
    fn may_cost(&self, participation: f64, most: f64, allowance: f64) -> bool {
        if self.request.objective != Objective::Sd {
            return true;
        }
        let flip_rate = self.flip_rate_at_error(participation, most);
        flip_rate
            .is_some_and(|flip_rate| !self.limits.is_broken_at(&self.curve.law(participation, flip_rate), allowance))
    }

    /// The largest flip rate at which the error is at most `error`; `None` if the error is larger without any flips.
    pub(super) fn flip_rate_at_error(&self, participation: f64, error: f64) -> Option<f64> {
        let sd = |log_flip_rate: f64| self.request.sd(&self.curve.law(participation, log_flip_rate.exp()));
        let ends = (1e-18f64.ln(), self.curve.most_flip_rate().ln());
        if sd(ends.0) > error {
            return None;
        }
        let (most, _) = halved(ends, 44, |log_flip_rate| sd(log_flip_rate) <= error);
        Some(most.exp())
    }

    /// The grid of participations. The most promising come first, so that the others are ruled out quickly.
    fn participations(&self, allowance: f64) -> Vec<f64> {
        let (least, most) = self.domain();
        if self.family == PlanFamily::RandomizedResponse {
            return if most >= 1.0 { vec![1.0] } else { Vec::new() };
        }
        let absent = self.shares_near_cliff(allowance).into_iter().chain([0.0, 1e-4, 1e-3, 1e-2, 0.05]);
        let inner =
            absent.map(|absent| 1.0 - absent).filter(|participation| *participation > least && *participation <= most);
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
        // Just before it the minimum flip rate is a sawtooth whose teeth become narrower as the crowd grows.
        let saw = [1.0 + 1e-6, 1.003, 1.005, 1.0075, 1.012, 1.03, 1.15, 0.9].map(|times| cliff * times);
        beyond.into_iter().chain(saw).collect()
    }
}

/// The participations without repetitions, in the order in which they first occur.
fn distinct(participations: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut distinct = Vec::new();
    for participation in participations {
        if !distinct.contains(&participation) {
            distinct.push(participation);
        }
    }
    distinct
}

/// The interval of a search near a participation.
struct Stretch {
    domain: (f64, f64),
    participation: f64,
    ends: (f64, f64),
}

impl Stretch {
    fn new((least, most): (f64, f64), participation: f64, aim: &Aim) -> Self {
        let domain = (least, most.min(aim.most.max(least)));
        let participation = participation.min(domain.1);
        let share = if aim.near { 0.03 } else { 0.3 };
        let mut stretch = Self { domain, participation, ends: domain };
        stretch.ends = stretch.around(participation, share * (1.0 - participation).max(1e-3).min(participation));
        stretch
    }

    fn width(&self) -> f64 {
        self.ends.1 - self.ends.0
    }

    /// The part of the domain within reach of a participation.
    fn around(&self, participation: f64, reach: f64) -> (f64, f64) {
        ((participation - reach).max(self.domain.0), (participation + reach).min(self.domain.1))
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
    participation: f64,
    found: Option<CandidateLaw>,
}

impl Probe {
    fn at(participation: f64, at: impl Fn(f64) -> Option<CandidateLaw>) -> Self {
        Self { participation, found: at(participation) }
    }

    fn cost(&self) -> f64 {
        cost(self.found)
    }
}

impl GoldenSection {
    const RATIO: f64 = 0.618_033_988_749_894_9;

    fn new((low, high): (f64, f64), at: impl Fn(f64) -> Option<CandidateLaw>) -> Self {
        let left = Probe::at(high - Self::RATIO * (high - low), &at);
        let right = Probe::at(low + Self::RATIO * (high - low), &at);
        Self { low, high, left, right }
    }

    fn is_empty(&self) -> bool {
        self.high <= self.low
    }

    /// Whether neither the inner points nor the best law differ enough for the interval's width to matter.
    fn is_level(&self, best: Option<CandidateLaw>) -> bool {
        let (left, right) = (self.left.cost(), self.right.cost());
        (left / right - 1.0).abs() < LEVEL && (cost(best) / left - 1.0).abs() < LEVEL
    }

    /// Drops the end next to the more expensive inner point; returns the law at the new inner point.
    fn narrow(&mut self, at: impl Fn(f64) -> Option<CandidateLaw>) -> Option<CandidateLaw> {
        if self.left.cost() < self.right.cost() {
            (self.high, self.right) = (self.right.participation, self.left);
            self.left = Probe::at(self.high - Self::RATIO * (self.high - self.low), at);
            self.left.found
        } else {
            (self.low, self.left) = (self.left.participation, self.right);
            self.right = Probe::at(self.low + Self::RATIO * (self.high - self.low), at);
            self.right.found
        }
    }
}

fn cost(found: Option<CandidateLaw>) -> f64 {
    found.map_or(f64::INFINITY, |found| found.cost)
}

/// The less costly of two laws, or the only one.
pub(super) fn cheaper(one: Option<CandidateLaw>, other: Option<CandidateLaw>) -> Option<CandidateLaw> {
    match (one, other) {
        (Some(a), Some(b)) => Some(if b.cost < a.cost { b } else { a }),
        (one, other) => one.or(other),
    }
}

/// The result of a proof by boxes.
#[derive(Clone, Copy, Debug)]
pub(super) enum ErrorBound {
    /// No law of the family that satisfies the request has a smaller error than this.
    AtLeast(f64),
    /// A law that is better than the known one, judged by the crowds of one truth.
    Better(CandidateLaw),
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

impl FamilySearch<'_> {
    /// A lower bound on the error of every law of the family that satisfies the request, near the known error if possible. Each
    /// share that is tried may spend `budget` calls of the accounting. A better law is reported only if `news` is set.
    ///
    /// From the largest participation downwards in boxes [a, b]: let y be the flip rate at which the error is T at
    /// participation b. If a crowd of one truth shows that (a, y) breaks the bound, then every law in the box that keeps it
    /// has a higher flip rate than y, because it would otherwise reveal more than (a, y); and its error is at least that of
    /// (b, y), which is T. One call of the accounting for each box.
    pub(super) fn bound(&self, known: Known, budget: u32, news: bool) -> ErrorBound {
        let (least, most) = self.domain();
        let (mut b, mut width) = (most, FIRST_WIDTH * most);
        let mut goals = SHARES.into_iter().map(|share| known.error * (1.0 - share));
        let (mut goal, mut left) = (goals.next().unwrap_or(0.0), budget);
        while b > least {
            // Even without flips the error at participation b exceeds the goal, hence at every smaller participation.
            let Some(flip_rate) = self.flip_rate_at_error(b, goal) else { return ErrorBound::AtLeast(goal) };
            let a = (b - width).max(least);
            left = left.saturating_sub(1);
            if self.is_impossible(a, flip_rate) {
                (b, width) = (a, width * 1.7);
                continue;
            }
            width = (b - a) * 0.4;
            let stuck = width < 1e-4 * (1.0 - a).max(1e-7) || !self.is_impossible(b, flip_rate);
            if !stuck && left > 0 {
                continue;
            }
            if let Some(better) = news.then(|| self.better_at([a, b], known)).flatten() {
                return ErrorBound::Better(better);
            }
            let Some(next) = goals.next() else { return ErrorBound::AtLeast(0.0) };
            (goal, left, width) = (next, budget, FIRST_WIDTH * b);
        }
        ErrorBound::AtLeast(goal)
    }

    /// The best law at these participations, if its error is clearly below the known one.
    fn better_at(&self, participations: [f64; 2], known: Known) -> Option<CandidateLaw> {
        let found =
            participations.into_iter().filter_map(|participation| self.at(participation, known.allowance, 1e-3));
        let better = found.filter(|found| found.cost < known.error * (1.0 - NEWS));
        better.min_by(|one, other| one.cost.total_cmp(&other.cost))
    }

    /// Whether the local bounds, the participation or a crowd of one truth rule the law out, and with it all laws of at least
    /// this participation and no higher flip rate.
    fn is_impossible(&self, participation: f64, flip_rate: f64) -> bool {
        match self.curve.least_flip_rate(self.family, self.request, participation) {
            None => true,
            Some(least) if flip_rate < least => true,
            Some(least) => {
                self.curve.exceeds(participation, least, self.domain().1)
                    || self.limits.is_broken(&self.curve.law(participation, flip_rate))
            }
        }
    }
}
