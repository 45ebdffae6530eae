//! The best bit that owners can write if aggregators add noise to the number of ones.
//!
//! A [`Bit`] is how often owners of either truth write a one, and determines the noise that it needs. A [`Region`] is the set of
//! bits that a family can write under the local bounds of a request, a [`Goal`] is the error to be minimized. [`search`] halves
//! boxes of bits, and proves how much better any other bit can be (`docs/choosing-parameters.md`, "How close a plan is to the
//! best").

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::family::{PlanFamily, ThreeClassLaw};
use super::request::{Prior, Request, YesPoint};
use crate::channel::SummedBit;

/// A bit that owners of one truth mostly write and owners of the other truth mostly do not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bit {
    /// How often owners of the first truth do not write it.
    pub(super) missed: f64,
    /// How often owners of the other truth do.
    pub(super) stray: f64,
    /// Whether it is the no-owners who mostly write it.
    pub(super) of_no: bool,
}

impl Bit {
    /// The bit of a channel.
    pub(super) fn of(law: SummedBit) -> Self {
        let of_no = law.no > law.yes;
        let (often, rarely) = if of_no { (law.no, law.yes) } else { (law.yes, law.no) };
        Self { missed: often.complement().to_f64(), stray: rarely.to_f64(), of_no }
    }

    /// The bias p − q: the difference between the truths.
    pub(super) fn lean(&self) -> f64 {
        1.0 - self.missed - self.stray
    }

    /// The variance of the bits of `often` owners who should write it and `rarely` owners who should not.
    pub(super) fn variance_of(&self, often: f64, rarely: f64) -> f64 {
        often * one_variance(self.missed) + rarely * one_variance(self.stray)
    }

    /// The smallest a = e^(−1/t) with which one honest aggregator guarantees ε = ln(1 + growth). Zero if the owners' own coins
    /// guarantee it.
    ///
    /// With d = p − q, m = min(1 − p, q) and g = 1 − a, both ratios of the closed form are at most 1 + growth exactly if
    /// g·(d + growth·(1 − m)) ≤ growth.
    pub(super) fn decay(&self, growth: f64) -> f64 {
        let (lean, least) = (self.lean(), self.missed.min(self.stray));
        ((lean - growth * least) / (lean + growth * (1.0 - least))).max(0.0)
    }

    /// The law with this bit in which the fewest take part: nobody says 0.
    pub(super) fn silent_law(&self) -> ThreeClassLaw {
        ThreeClassLaw::one_sided(1.0 - self.missed, self.stray, self.of_no)
    }
}

/// The variance of one owner's bit.
fn one_variance(probability: f64) -> f64 {
    probability * (1.0 - probability)
}

/// The variance of the noise of both aggregators together, each with this a.
pub(super) fn variance_of_both(decay: f64) -> f64 {
    4.0 * decay / (1.0 - decay).powi(2)
}

/// The smallest and the largest miss rate, and the smallest and the largest stray rate.
pub(super) type Sides = [(f64, f64); 2];

/// The bits of one family that keep the bounds on an owner's own answer and on taking part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    family: PlanFamily,
    /// The largest participation.
    most: f64,
    /// e^(−ε) of the local bound; zero without one.
    ratio: f64,
    pub(super) of_no: bool,
}

impl Region {
    /// The regions of a family. There is a second one if it matters whether yes-owners or no-owners mostly write the bit. Where
    /// everybody may take part, inverting the bit turns one into the other.
    pub(super) fn all(request: &Request, family: PlanFamily) -> Vec<Self> {
        let most = request.most_participation();
        let region = |of_no: bool| Self { family, most, ratio: (-request.cell_epsilon()).exp(), of_no };
        match family {
            PlanFamily::NoisySampling | PlanFamily::Tuned if most < 1.0 => vec![region(false), region(true)],
            PlanFamily::RandomizedResponse if most < 1.0 => Vec::new(),
            _ => vec![region(false)],
        }
    }

    /// The bit of the region with the smallest rates that are at least these; `None` if no rates satisfy the bounds.
    pub(super) fn lifted(&self, missed: f64, stray: f64) -> Option<Bit> {
        let missed = missed.max(1.0 - self.most);
        let (missed, stray) = match self.family {
            PlanFamily::RandomizedResponse => {
                let flip = missed.max(stray).max(self.least_flip());
                (flip, flip)
            }
            _ => {
                let stray = stray.max((1.0 - missed) * self.ratio);
                (missed.max((1.0 - stray) * self.ratio).max(self.least_missed(stray)), stray)
            }
        };
        (missed + stray < 1.0).then_some(Bit { missed, stray, of_no: self.of_no })
    }

    /// The least flip of `randomized-response` under the local bound.
    fn least_flip(&self) -> f64 {
        self.ratio / (1.0 + self.ratio)
    }

    /// The smallest miss rate that the bound on participation allows. In `normal-form` p + q is the participation, because those
    /// who answer the opposite take part as well.
    fn least_missed(&self, stray: f64) -> f64 {
        match self.family {
            PlanFamily::NormalForm => 1.0 - self.most + stray,
            _ => 1.0 - self.most,
        }
    }

    /// Narrows a box to rates that bits of the region can have; `None` if there is no such bit.
    pub(super) fn tightened(&self, sides: Sides) -> Option<Sides> {
        match self.family {
            PlanFamily::RandomizedResponse => self.tightened_flips(sides),
            _ => self.tightened_flip_rates(sides),
        }
    }

    /// The same for `randomized-response`, in which both rates are equal.
    fn tightened_flips(&self, [missed, stray]: Sides) -> Option<Sides> {
        let low = missed.0.max(stray.0).max(self.least_flip());
        let high = missed.1.min(stray.1).min(0.5);
        (low < high).then_some([(low, high); 2])
    }

    fn tightened_flip_rates(&self, [missed, stray]: Sides) -> Option<Sides> {
        let low_stray = stray.0.max((1.0 - missed.1) * self.ratio);
        let low_missed = missed.0.max((1.0 - stray.1) * self.ratio).max(self.least_missed(low_stray));
        let missed = (low_missed, missed.1.min(1.0 - low_stray));
        let stray = (low_stray, stray.1.min(1.0 - low_missed));
        let possible = missed.0 <= missed.1 && stray.0 <= stray.1 && missed.0 + stray.0 < 1.0;
        possible.then_some([missed, stray])
    }
}

/// The objective: the error of the estimate, with the smallest noise that one honest aggregator needs.
#[derive(Clone, Debug)]
pub(super) struct Goal {
    owners: f64,
    yes: Prior,
    points: Vec<YesPoint>,
    /// e^ε − 1.
    growth: f64,
}

impl Goal {
    pub(super) fn new(request: &Request, epsilon: f64) -> Self {
        let (owners, yes) = (request.owners as f64, request.yes);
        Self { owners, yes, points: yes.points(), growth: epsilon.exp_m1() }
    }

    pub(super) fn error(&self, bit: &Bit) -> f64 {
        self.error_with(bit, bit.decay(self.growth))
    }

    /// The same with noise of another a.
    pub(super) fn error_with(&self, bit: &Bit, decay: f64) -> f64 {
        let noise = variance_of_both(decay);
        self.weighed(bit.of_no, |often, rarely| (bit.variance_of(often, rarely) + noise) / bit.lean().powi(2))
    }

    /// No bit of the box has a smaller error (`docs/choosing-parameters.md`, "How close a plan is to the best").
    ///
    /// The owners' parts of the variance, q(1 − q)/(p − q)² and its mirror image, grow with either rate, so that they are
    /// smallest at the smallest of both.
    pub(super) fn least_error(&self, [missed, stray]: Sides, of_no: bool) -> f64 {
        let clear = Bit { missed: missed.0, stray: stray.0, of_no };
        let lean = clear.lean();
        let noise = self.least_noise(&Bit { missed: missed.1, stray: stray.1, of_no }, lean);
        self.weighed(of_no, |often, rarely| {
            let coins = clear.variance_of(often, rarely) / lean.powi(2);
            (coins + noise).max(self.least_at_lean(often, rarely, lean))
        })
    }

    /// The noise's part of the variance in a box, from its corner with the highest rates and its largest bias d: it is
    /// 4·(1 − E·m/d)·(1 + E·(1 − m)/d)/E², with E = e^ε − 1 and m the smaller rate.
    fn least_noise(&self, noisiest: &Bit, lean: f64) -> f64 {
        let (growth, least, smallest) = (self.growth, noisiest.missed.min(noisiest.stray), noisiest.lean());
        if smallest <= 0.0 {
            return 0.0;
        }
        let factors = (1.0 - growth * least / smallest).max(0.0) * (1.0 + growth * (1.0 - least) / lean);
        (4.0 * factors / growth.powi(2)).max(variance_of_both(noisiest.decay(growth)) / lean.powi(2))
    }

    /// A lower bound on the variance of every bit that leans by at most `lean`: it grows as the lean vanishes.
    fn least_at_lean(&self, often: f64, rarely: f64, lean: f64) -> f64 {
        let by_noise = |holders: f64| holders.min(4.0) / (2.0 * self.growth);
        let by_coins = |holders: f64| 0.5 * holders * (1.0 - lean);
        let stray_is_less = by_noise(rarely).max(by_coins(often));
        let missed_is_less = by_noise(often).max(by_coins(rarely));
        stray_is_less.min(missed_is_less) / lean
    }

    /// The rates at which a thousandth of an owner is expected to err; smaller ones hardly matter.
    pub(super) fn traces(&self, of_no: bool) -> [f64; 2] {
        let (yes, no) = (self.yes.high as f64, self.owners - self.yes.low as f64);
        let (often, rarely) = if of_no { (no, yes) } else { (yes, no) };
        [often, rarely].map(|holders| 1e-3 / (1.0 + holders))
    }

    /// The error if the variance is this function of how many should write the bit and how many should not.
    fn weighed(&self, of_no: bool, variance: impl Fn(f64, f64) -> f64) -> f64 {
        let at = |yes: f64| {
            let (often, rarely) = if of_no { (self.owners - yes, yes) } else { (yes, self.owners - yes) };
            variance(often, rarely).sqrt()
        };
        self.yes.summarize(self.points.iter().map(|point| (point.weight, at(point.yes))))
    }
}

/// The best bit that was found, its error, and a lower bound on the error of every bit of the region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best {
    pub(super) bit: Bit,
    pub(super) error: f64,
    pub(super) least: f64,
}

/// Boxes are halved until none can be better by more than this share.
const ACCURACY: f64 = 3e-4;
/// How many boxes are halved at most.
const BUDGET: usize = 10_000;
/// The rounding error of the bound itself.
const ROUNDING: f64 = 1e-12;
/// The scale on which rates near one are stretched.
const NEARLY_ALL: f64 = 1e-3;
/// The smallest step of the local search, in the logarithm of a rate.
const SMALLEST_STEP: f64 = 1e-7;

/// A box of rates, and a lower bound on the error of its bits.
struct BitBox {
    sides: Sides,
    least: f64,
}

impl PartialEq for BitBox {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for BitBox {}

impl PartialOrd for BitBox {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BitBox {
    /// The most promising is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.least.total_cmp(&self.least)
    }
}

/// The best bit of the region.
pub(super) fn search(goal: &Goal, region: &Region) -> Option<Best> {
    let mut search = BitSearch { goal, region, traces: goal.traces(region.of_no), best: None };
    search.try_flip_rates(0.0, 0.0);
    let least = search.halve_boxes();
    search.walk();
    let (bit, error) = search.best?;
    Some(Best { bit, error, least: (least * (1.0 - ROUNDING)).min(error) })
}

struct BitSearch<'a> {
    goal: &'a Goal,
    region: &'a Region,
    /// Miss and stray rates that hardly matter.
    traces: [f64; 2],
    /// The best bit so far and its error.
    best: Option<(Bit, f64)>,
}

impl BitSearch<'_> {
    fn error(&self) -> f64 {
        self.best.map_or(f64::INFINITY, |(_, error)| error)
    }

    /// Tries the bit with the smallest rates that are at least these.
    fn try_flip_rates(&mut self, missed: f64, stray: f64) {
        let Some(bit) = self.region.lifted(missed, stray) else { return };
        let error = self.goal.error(&bit);
        if error.is_finite() && error < self.error() {
            self.best = Some((bit, error));
        }
    }

    /// Halves the most promising box until none can be better by more than the accuracy; returns a lower bound on the error
    /// of every bit.
    fn halve_boxes(&mut self) -> f64 {
        let mut open: BinaryHeap<BitBox> = self.tight_box([(0.0, 1.0), (0.0, 1.0)]).into_iter().collect();
        for step in 0.. {
            let Some(next) = open.pop() else { break };
            if next.least >= self.error() * (1.0 - ACCURACY) || step == BUDGET {
                return next.least;
            }
            for sides in self.halves(next.sides) {
                let Some(half) = self.tight_box(sides) else { continue };
                let [missed, stray] = half.sides;
                self.try_flip_rates(missed.0, stray.0);
                self.try_flip_rates(missed.1, stray.1);
                open.push(half);
            }
        }
        f64::INFINITY
    }

    /// The box around the bits of the region between these sides, if there are any.
    fn tight_box(&self, sides: Sides) -> Option<BitBox> {
        let sides = self.region.tightened(sides)?;
        Some(BitBox { sides, least: self.goal.least_error(sides, self.region.of_no) })
    }

    /// Two boxes for one, across its longer side.
    fn halves(&self, sides: Sides) -> [Sides; 2] {
        let long = usize::from(self.length(1, sides[1]) > self.length(0, sides[0]));
        let (low, high) = sides[long];
        let middle = self.middle(long, sides[long]);
        [(low, middle), (middle, high)].map(|ends| {
            let mut half = sides;
            half[long] = ends;
            half
        })
    }

    /// A rate in coordinates that stretch both ends of its range.
    fn stretched(&self, side: usize, flip_rate: f64) -> f64 {
        ((flip_rate + self.traces[side]) / (1.0 - flip_rate + NEARLY_ALL)).ln()
    }

    fn length(&self, side: usize, (low, high): (f64, f64)) -> f64 {
        self.stretched(side, high) - self.stretched(side, low)
    }

    /// The rate half way between two, in stretched coordinates.
    fn middle(&self, side: usize, (low, high): (f64, f64)) -> f64 {
        let odds = (0.5 * (self.stretched(side, low) + self.stretched(side, high))).exp();
        ((odds * (1.0 + NEARLY_ALL) - self.traces[side]) / (1.0 + odds)).clamp(low, high)
    }

    /// From the best bit in all eight directions, in steps that shrink when none of them helps.
    fn walk(&mut self) {
        let mut step = 0.25;
        while step > SMALLEST_STEP {
            let before = self.error();
            self.try_neighbours(step);
            if self.error() >= before {
                step *= 0.5;
            }
        }
    }

    /// Tries the bits one step away from the best one.
    fn try_neighbours(&mut self, step: f64) {
        let Some((centre, _)) = self.best else { return };
        let [missed, stray] = [(centre.missed, self.traces[0]), (centre.stray, self.traces[1])];
        let moved = |(flip_rate, trace): (f64, f64), direction: f64| {
            ((flip_rate + trace) * (step * direction).exp() - trace).clamp(0.0, 1.0)
        };
        for x in [-1.0, 0.0, 1.0] {
            for y in [-1.0, 0.0, 1.0].into_iter().filter(|&y| (x, y) != (0.0, 0.0)) {
                self.try_flip_rates(moved(missed, x), moved(stray, y));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiscreteLaplace;
    use crate::privacy::approximate_one_aggregator;

    /// The closed form solved for a is the closed form.
    #[test]
    fn the_decay_is_the_least_that_keeps_epsilon() {
        for (missed, stray) in [(0.0, 0.0), (1e-4, 1e-4), (0.3, 1e-3), (1e-3, 0.4), (0.45, 0.45)] {
            for epsilon in [0.05f64, 1.0, 4.0] {
                let bit = Bit { missed, stray, of_no: false };
                let decay = bit.decay(epsilon.exp_m1());
                let claim = |decay: f64| approximate_one_aggregator(1.0 - missed, stray, -1.0 / decay.ln());
                match decay > 0.0 {
                    true => assert!((claim(decay) / epsilon - 1.0).abs() < 1e-9, "{bit:?} {epsilon}"),
                    false => assert!(claim(1e-9) <= epsilon, "{bit:?} {epsilon}"),
                }
            }
        }
    }

    #[test]
    fn both_add_four_times_what_the_decay_says() {
        let noise = DiscreteLaplace::new("2.5".parse().unwrap());
        assert!((variance_of_both(noise.decay()) / (2.0 * noise.variance()) - 1.0).abs() < 1e-12);
    }
}
