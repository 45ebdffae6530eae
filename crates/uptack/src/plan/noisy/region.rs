//! The bits that a family can write under the local bounds of a request, and what each costs.

use super::bit::{Bit, variance_of_both};
use crate::plan::family::Family;
use crate::plan::request::{Prior, Request};

/// The bits of one family that keep the bounds on an owner's own answer and on taking part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    family: Family,
    /// Nobody takes part more often.
    most: f64,
    /// e^(−ε) of the local bound; zero without one.
    ratio: f64,
    pub(super) of_no: bool,
}

impl Region {
    /// The regions of a family: a second one if it matters whether owners of *yes* or of *no* are those who speak. Where
    /// everybody may take part, exchanging what is written for what is not turns one into the other.
    pub(super) fn all(request: &Request, family: Family) -> Vec<Self> {
        let most = request.participation.unwrap_or(1.0);
        let region = |of_no: bool| Self { family, most, ratio: (-request.cell_epsilon()).exp(), of_no };
        match family {
            Family::NoisySampling | Family::Tuned if most < 1.0 => vec![region(false), region(true)],
            Family::RandomizedResponse if most < 1.0 => Vec::new(),
            _ => vec![region(false)],
        }
    }

    /// The bit of the region with the least doubt that has at least so much; none where all doubt is not enough.
    pub(super) fn lifted(&self, missed: f64, stray: f64) -> Option<Bit> {
        let missed = missed.max(1.0 - self.most);
        let (missed, stray) = match self.family {
            Family::RandomizedResponse => {
                let flip = missed.max(stray).max(self.ratio / (1.0 + self.ratio));
                (flip, flip)
            }
            _ => {
                let stray = stray.max((1.0 - missed) * self.ratio);
                (missed.max((1.0 - stray) * self.ratio).max(self.least_missed(stray)), stray)
            }
        };
        (missed + stray < 1.0).then_some(Bit { missed, stray, of_no: self.of_no })
    }

    /// Whoever answers the opposite takes part as well in `normal-form`: p + q is its participation.
    fn least_missed(&self, stray: f64) -> f64 {
        match self.family {
            Family::NormalForm => 1.0 - self.most + stray,
            _ => 1.0 - self.most,
        }
    }

    /// Less doubt in a box than this is in no bit of the region; none where there is no such bit at all.
    pub(super) fn tightened(&self, [missed, stray]: [(f64, f64); 2]) -> Option<[(f64, f64); 2]> {
        if self.family == Family::RandomizedResponse {
            let (low, high) =
                (missed.0.max(stray.0).max(self.ratio / (1.0 + self.ratio)), missed.1.min(stray.1).min(0.5));
            return (low < high).then_some([(low, high); 2]);
        }
        let low_stray = stray.0.max((1.0 - missed.1) * self.ratio);
        let low_missed = missed.0.max((1.0 - stray.1) * self.ratio).max(self.least_missed(low_stray));
        let (missed, stray) = ((low_missed, missed.1.min(1.0 - low_stray)), (low_stray, stray.1.min(1.0 - low_missed)));
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

    /// The same with another a.
    pub(super) fn error_with(&self, bit: &Bit, decay: f64) -> f64 {
        let noise = variance_of_both(decay);
        self.weighed(bit.of_no, |often, rarely| {
            (often * one_variance(bit.missed) + rarely * one_variance(bit.stray) + noise) / bit.lean().powi(2)
        })
    }

    /// No bit of the box has a smaller error (`docs/choosing-parameters.md`, "How near the best a plan is").
    ///
    /// The owners' parts of the variance, q(1 − q)/(p − q)² and its mirror image, grow with either doubt, so that they are
    /// least at the least of both.
    pub(super) fn least_error(&self, [missed, stray]: [(f64, f64); 2], of_no: bool) -> f64 {
        let clear = Bit { missed: missed.0, stray: stray.0, of_no };
        let lean = clear.lean();
        let noise = self.least_noise(&Bit { missed: missed.1, stray: stray.1, of_no }, lean);
        self.weighed(of_no, |often, rarely| {
            let coins = (often * one_variance(clear.missed) + rarely * one_variance(clear.stray)) / lean.powi(2);
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

    /// The variance of a bit that leans by so much or less is at least this: it grows as the lean vanishes.
    fn least_at_lean(&self, often: f64, rarely: f64, lean: f64) -> f64 {
        let by_noise = |holders: f64| holders.min(4.0) / (2.0 * self.growth);
        let by_coins = |holders: f64| 0.5 * holders * (1.0 - lean);
        let stray_is_less = by_noise(rarely).max(by_coins(often));
        let missed_is_less = by_noise(often).max(by_coins(rarely));
        stray_is_less.min(missed_is_less) / lean
    }

    /// How much doubt one owner in a thousand of each side is: less of it hardly matters.
    pub(super) fn traces(&self, of_no: bool) -> [f64; 2] {
        let yes = self.points.iter().copied().fold(0.0, f64::max);
        let no = self.owners - self.points.iter().copied().fold(f64::INFINITY, f64::min);
        let (often, rarely) = if of_no { (no, yes) } else { (yes, no) };
        [often, rarely].map(|holders| 1e-3 / (1.0 + holders))
    }

    /// The error where those who should write the bit and those who should not have this variance together.
    fn weighed(&self, of_no: bool, variance: impl Fn(f64, f64) -> f64) -> f64 {
        let at = |yes: f64| {
            let (often, rarely) = if of_no { (self.owners - yes, yes) } else { (yes, self.owners - yes) };
            variance(often, rarely).sqrt()
        };
        self.yes.summarize(self.points.iter().map(|&yes| at(yes)))
    }
}

fn one_variance(probability: f64) -> f64 {
    probability * (1.0 - probability)
}
