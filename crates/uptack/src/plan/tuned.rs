//! The asymmetric laws: who takes part and who answers the opposite differ between *yes* and *no*.
//!
//! Four parameters are too many for a bound, so this is a local search from the best symmetric and the best one-sided law, in
//! steps that shrink when none of them helps. Most steps are ruled out with one call of the accounting.

use super::certify::{CertifiedMechanism, as_it_stands, certify};
use super::family::PlanFamily;
use super::family::ThreeClassLaw;
use super::limits::ReleaseLimit;
use super::request::{Objective, Request};
use super::root::halved;
use super::search::{CandidateLaw, cheaper};
use crate::truth::PerTruth;

/// The best certified mechanism of the family that a local search from `starts` finds.
pub(super) fn certified(
    request: &Request,
    limits: &ReleaseLimit,
    starts: &[CertifiedMechanism],
) -> Option<CertifiedMechanism> {
    let walk = TunedSearch { request, limits };
    let walked = certify(request, limits, |aim, near| match near {
        Some(near) => walk.best_from(&TunedShape::of(&near.law), SMALL_STEP, aim.allowance),
        None => walk.best_from_starts(starts, aim.allowance),
    });
    walked.or_else(|| restated(request, starts))
}

/// The starts themselves, in case the search certifies nothing: they are members of this family as well, with slightly more
/// flips for the rounding of its parameters.
fn restated(request: &Request, starts: &[CertifiedMechanism]) -> Option<CertifiedMechanism> {
    let starts =
        starts.iter().filter(|start| matches!(start.family, PlanFamily::NormalForm | PlanFamily::NoisySampling));
    let kept = starts.filter_map(|start| {
        let mut laws = MORE_FLIPS.into_iter().map(|factor| with_more_flips(&start.found.law, factor));
        laws.find_map(|law| as_it_stands(request, &found(request, law, law.flips.yes)))
    });
    kept.min_by(|one, other| one.cost.total_cmp(&other.cost))
}

fn with_more_flips(&ThreeClassLaw { participation, flips }: &ThreeClassLaw, factor: f64) -> ThreeClassLaw {
    ThreeClassLaw { participation, flips: flips.with(participation, |flips, most| (flips * factor).min(most)) }
}

fn found(request: &Request, law: ThreeClassLaw, flip_rate: f64) -> CandidateLaw {
    CandidateLaw {
        family: PlanFamily::Tuned,
        law,
        cost: request.cost(&law),
        participation: law.participation.yes,
        flip_rate,
    }
}

/// The factors on the flips of a start, tried in turn until its certificate satisfies the request.
const MORE_FLIPS: [f64; 6] = [1.0, 1.001, 1.003, 1.01, 1.03, 1.1];
/// The first step of a search from a start.
const FIRST_STEP: f64 = 0.3;
/// The first step of a search from the previous law.
const SMALL_STEP: f64 = 0.06;
/// The search ends when steps of this size no longer help.
const SMALLEST_STEP: f64 = 0.02;
/// A step helps if it lowers the cost by more than this share.
const PROGRESS: f64 = 2e-4;
/// The accuracy of the logarithm of the flip rate during the search, and for the final law.
const ACCURACY: f64 = 4e-4;
const FINAL_ACCURACY: f64 = 1e-5;
/// The lower end of searches for a flip rate.
const SMALLEST_FLIP_RATE: f64 = 1e-17;

/// Who takes part, and the flips as shares of the larger one.
#[derive(Clone, Copy, Debug)]
struct TunedShape {
    participation: PerTruth<f64>,
    flips: PerTruth<f64>,
}

impl TunedShape {
    /// The shape of a law. A one-sided law gets a trace of the missing flips, so that the search can increase them.
    fn of(&ThreeClassLaw { participation, flips }: &ThreeClassLaw) -> Self {
        let largest = flips.yes.max(flips.no);
        Self { participation, flips: flips.map(|flips| (flips / largest).max(1e-4)) }
    }

    /// Nobody takes part more often than `most`.
    fn new(participation: PerTruth<f64>, flips: PerTruth<f64>, most: f64) -> Self {
        let largest = f64::max(flips.yes, flips.no);
        Self { participation: participation.map(|part| part.min(most)), flips: flips.map(|flips| flips / largest) }
    }

    /// The law whose larger flip rate is `flip_rate`. Everybody who flips takes part.
    fn law(&self, flip_rate: f64) -> ThreeClassLaw {
        let flips = self.flips.map(|flips| flips * flip_rate);
        ThreeClassLaw { participation: self.participation.with(flips, f64::max), flips }
    }

    /// The flip rate at which the classes would swap their meaning.
    fn most_flip_rate(&self) -> f64 {
        let sum = self.flips.yes + self.flips.no;
        (self.participation.yes / sum).max(self.participation.no / sum).min(1.0)
    }

    /// The shapes one step away.
    fn neighbours(&self, step: f64, most: f64) -> [Self; 10] {
        let PerTruth { yes, no } = self.participation;
        let PerTruth { yes: ry, no: rn } = self.flips;
        let (up, down) = (1.0 + step, 1.0 / (1.0 + step));
        // Towards `most` in shares of the remaining distance, so that the search can come close to it.
        let nearer = |part: f64| most - (most - part) * (1.0 - step);
        let farther = |part: f64| most - (most - part) * up;
        [
            ([nearer(yes), no], [ry, rn]),
            ([yes * down, no], [ry, rn]),
            ([yes, nearer(no)], [ry, rn]),
            ([yes, no * down], [ry, rn]),
            ([yes, no], [ry * up, rn]),
            ([yes, no], [ry, rn * up]),
            ([nearer(yes), nearer(no)], [ry, rn]),
            ([yes * down, no * down], [ry, rn]),
            ([farther(yes), no], [ry, rn]),
            ([yes, farther(no)], [ry, rn]),
        ]
        .map(|([yes, no], [ry, rn])| Self::new(PerTruth { yes, no }, PerTruth { yes: ry, no: rn }, most))
    }
}

struct TunedSearch<'a> {
    request: &'a Request,
    limits: &'a ReleaseLimit,
}

impl TunedSearch<'_> {
    /// The best law that is found from the starts of either family.
    fn best_from_starts(&self, starts: &[CertifiedMechanism], allowance: f64) -> Option<CandidateLaw> {
        let of = |family: PlanFamily| starts.iter().filter(move |start| start.family == family);
        let starts = of(PlanFamily::NormalForm).chain(of(PlanFamily::NoisySampling));
        starts.map(|start| self.best_from(&TunedShape::of(&start.found.law), FIRST_STEP, allowance)).fold(None, cheaper)
    }

    /// The best law that is found from one shape.
    fn best_from(&self, start: &TunedShape, first_step: f64, allowance: f64) -> Option<CandidateLaw> {
        let last_call = self.limits.calls() + self.budget();
        let (mut shape, mut here) = (*start, self.at(start, allowance, ACCURACY)?);
        let mut step = first_step;
        while step > SMALLEST_STEP && self.limits.calls() < last_call {
            let goal = here.cost * (1.0 - PROGRESS);
            match self.best_neighbour(&shape, step, goal, allowance) {
                Some((better, found)) if found.cost < goal => (shape, here) = (better, found),
                _ => step *= 0.4,
            }
        }
        self.at(&shape, allowance, FINAL_ACCURACY)
    }

    /// The best of the shapes one step away that may cost less than `goal`.
    fn best_neighbour(
        &self,
        shape: &TunedShape,
        step: f64,
        goal: f64,
        allowance: f64,
    ) -> Option<(TunedShape, CandidateLaw)> {
        let neighbours = shape.neighbours(step, self.request.most_participation()).into_iter();
        let promising = neighbours.filter(|shape| self.may_cost(shape, goal, allowance));
        let found = promising.filter_map(|shape| Some((shape, self.at(&shape, allowance, ACCURACY)?)));
        found.min_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost))
    }

    /// Calls of the accounting that one search may make; each takes longer in larger crowds.
    fn budget(&self) -> u64 {
        match self.limits.owners() {
            0..20_000 => 500,
            20_000..200_000 => 250,
            200_000..5_000_000 => 60,
            _ => 20,
        }
    }

    /// The law of a shape with the smallest flip rate.
    fn at(&self, shape: &TunedShape, allowance: f64, accuracy: f64) -> Option<CandidateLaw> {
        let ends = (self.least_flip_rate(shape)?, shape.most_flip_rate());
        let flip_rate = self.limits.least_flip_rate(|flip_rate| shape.law(flip_rate), ends, allowance, accuracy)?;
        let law = shape.law(flip_rate);
        // A class that only one truth can reach would show nothing at all if no owner has that truth.
        if law.no()[1] <= 1e-3 * law.yes()[1] || law.yes()[0] <= law.no()[0] {
            return None;
        }
        let found = found(self.request, law, flip_rate);
        found.cost.is_finite().then_some(found)
    }

    /// Whether the shape may cost less than `goal`: only if the law that costs `goal` is within the bound.
    fn may_cost(&self, shape: &TunedShape, goal: f64, allowance: f64) -> bool {
        if self.request.objective != Objective::Sd {
            return true;
        }
        let sd = |log_flip_rate: f64| self.request.sd(&shape.law(log_flip_rate.exp()));
        let ends = (SMALLEST_FLIP_RATE.ln(), shape.most_flip_rate().ln());
        let least = sd(ends.0);
        if least.is_nan() || least > goal {
            return false;
        }
        let (most, _) = halved(ends, 40, |log_flip_rate| sd(log_flip_rate) <= goal);
        !self.limits.is_broken_at(&shape.law(most.exp()), allowance)
    }

    /// The smallest flip rate under the bounds on an owner's only answer, whose ε falls as it grows.
    fn least_flip_rate(&self, shape: &TunedShape) -> Option<f64> {
        let bound = self.request.cell_epsilon();
        if bound.is_infinite() {
            return Some(0.0);
        }
        let keeps = |log_flip_rate: f64| shape.law(log_flip_rate.exp()).linked_epsilon() <= bound * (1.0 - 1e-5);
        let ends = (SMALLEST_FLIP_RATE.ln(), shape.most_flip_rate().ln() - 1e-9);
        if !keeps(ends.1) {
            return None;
        }
        let (_, least) = halved(ends, 50, |log_flip_rate| !keeps(log_flip_rate));
        Some(least.exp())
    }
}
