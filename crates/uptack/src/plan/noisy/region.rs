//! The bits that a family can write under the local bounds of a request, and what each costs.

use super::bit::{Bit, variance_of_both};
use crate::plan::family::Family;
use crate::plan::request::{Prior, Request};

/// The least and the largest of both doubts: missed, then stray.
pub(super) type Sides = [(f64, f64); 2];

/// The bits of one family that keep the bounds on an owner's own answer and on taking part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    family: Family,
    /// The largest participation.
    most: f64,
    /// e^(−ε) of the local bound; zero without one.
    ratio: f64,
    pub(super) of_no: bool,
}

impl Region {
    /// The regions of a family. There is a second one if it matters whether yes-owners or no-owners are those who speak. Where
    /// everybody may take part, exchanging what is written for what is not turns one into the other.
    pub(super) fn all(request: &Request, family: Family) -> Vec<Self> {
        let most = request.most_participation();
        let region = |of_no: bool| Self { family, most, ratio: (-request.cell_epsilon()).exp(), of_no };
        match family {
            Family::NoisySampling | Family::Tuned if most < 1.0 => vec![region(false), region(true)],
            Family::RandomizedResponse if most < 1.0 => Vec::new(),
            _ => vec![region(false)],
        }
    }

    /// The bit of the region with the least doubt that has at least this much; none if no doubt is enough.
    pub(super) fn lifted(&self, missed: f64, stray: f64) -> Option<Bit> {
        let missed = missed.max(1.0 - self.most);
        let (missed, stray) = match self.family {
            Family::RandomizedResponse => {
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

    /// The least missed doubt that participation leaves. In `normal-form` p + q is the participation, because those who answer
    /// the opposite take part as well.
    fn least_missed(&self, stray: f64) -> f64 {
        match self.family {
            Family::NormalForm => 1.0 - self.most + stray,
            _ => 1.0 - self.most,
        }
    }

    /// Narrows a box to doubts that bits of the region can have; none if there is no such bit.
    pub(super) fn tightened(&self, sides: Sides) -> Option<Sides> {
        match self.family {
            Family::RandomizedResponse => self.tightened_flips(sides),
            _ => self.tightened_doubts(sides),
        }
    }

    /// Of `randomized-response`, in which both doubts are the same.
    fn tightened_flips(&self, [missed, stray]: Sides) -> Option<Sides> {
        let low = missed.0.max(stray.0).max(self.least_flip());
        let high = missed.1.min(stray.1).min(0.5);
        (low < high).then_some([(low, high); 2])
    }

    fn tightened_doubts(&self, [missed, stray]: Sides) -> Option<Sides> {
        let low_stray = stray.0.max((1.0 - missed.1) * self.ratio);
        let low_missed = missed.0.max((1.0 - stray.1) * self.ratio).max(self.least_missed(low_stray));
        let missed = (low_missed, missed.1.min(1.0 - low_stray));
        let stray = (low_stray, stray.1.min(1.0 - low_missed));
        let possible = missed.0 <= missed.1 && stray.0 <= stray.1 && missed.0 + stray.0 < 1.0;
        possible.then_some([missed, stray])
    }
}

/// What is minimized: the error of the estimate, with the least noise that one honest aggregator needs.
#[derive(Clone, Debug)]
pub(super) struct Goal {
    owners: f64,
    yes: Prior,
    points: Vec<f64>,
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
    /// The owners' parts of the variance, q(1 − q)/(p − q)² and its mirror image, grow with either doubt, so that they are
    /// least at the least of both.
    pub(super) fn least_error(&self, [missed, stray]: Sides, of_no: bool) -> f64 {
        let clear = Bit { missed: missed.0, stray: stray.0, of_no };
        let lean = clear.lean();
        let noise = self.least_noise(&Bit { missed: missed.1, stray: stray.1, of_no }, lean);
        self.weighed(of_no, |often, rarely| {
            let coins = clear.variance_of(often, rarely) / lean.powi(2);
            (coins + noise).max(self.least_at_lean(often, rarely, lean))
        })
    }

    /// The noise's part of the variance in a box, from its corner with the most doubt and its largest lean d: it is
    /// 4·(1 − E·m/d)·(1 + E·(1 − m)/d)/E², with E = e^ε − 1 and m the smaller doubt.
    fn least_noise(&self, doubtful: &Bit, lean: f64) -> f64 {
        let (growth, least, smallest) = (self.growth, doubtful.missed.min(doubtful.stray), doubtful.lean());
        if smallest <= 0.0 {
            return 0.0;
        }
        let factors = (1.0 - growth * least / smallest).max(0.0) * (1.0 + growth * (1.0 - least) / lean);
        (4.0 * factors / growth.powi(2)).max(variance_of_both(doubtful.decay(growth)) / lean.powi(2))
    }

    /// A lower bound on the variance of every bit that leans by at most `lean`: it grows as the lean vanishes.
    fn least_at_lean(&self, often: f64, rarely: f64, lean: f64) -> f64 {
        let by_noise = |holders: f64| holders.min(4.0) / (2.0 * self.growth);
        let by_coins = |holders: f64| 0.5 * holders * (1.0 - lean);
        let stray_is_less = by_noise(rarely).max(by_coins(often));
        let missed_is_less = by_noise(often).max(by_coins(rarely));
        stray_is_less.min(missed_is_less) / lean
    }

    /// The doubts of either side that add up to a thousandth of an owner: less of it hardly matters.
    pub(super) fn traces(&self, of_no: bool) -> [f64; 2] {
        let yes = self.points.iter().copied().fold(0.0, f64::max);
        let no = self.owners - self.points.iter().copied().fold(f64::INFINITY, f64::min);
        let (often, rarely) = if of_no { (no, yes) } else { (yes, no) };
        [often, rarely].map(|holders| 1e-3 / (1.0 + holders))
    }

    /// The error if the variance is this function of how many should write the bit and how many should not.
    fn weighed(&self, of_no: bool, variance: impl Fn(f64, f64) -> f64) -> f64 {
        let at = |yes: f64| {
            let (often, rarely) = if of_no { (self.owners - yes, yes) } else { (yes, self.owners - yes) };
            variance(often, rarely).sqrt()
        };
        self.yes.summarize(self.points.iter().map(|&yes| at(yes)))
    }
}
