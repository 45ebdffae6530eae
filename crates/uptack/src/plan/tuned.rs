//! The asymmetric laws: who takes part and who answers the opposite differ between *yes* and *no*.
//!
//! Four numbers are too many for a bound, so this is a walk from the best symmetric and the best one-sided law, in steps that
//! shrink when none of them helps. Most steps are ruled out with one call of the accounting.

use std::array;

use super::certify::{Certified, as_it_stands, certify};
use super::family::Family;
use super::family::Law;
use super::limits::Limits;
use super::request::{Objective, Request};
use super::root::halved;
use super::search::{Found, cheaper};

/// The best certified mechanism of the family that the walk finds; `starts` are where it begins.
pub(super) fn certified(request: &Request, limits: &Limits, starts: &[Certified]) -> Option<Certified> {
    let walk = Walk { request, limits };
    let walked = certify(request, limits, |aim, near| match near {
        Some(near) => walk.best_from(&Shape::of(&near.law), SMALL_STEP, aim.allowance),
        None => walk.best_from_starts(starts, aim.allowance),
    });
    walked.or_else(|| restated(request, starts))
}

/// The starts themselves, for when the walk certifies nothing: they are members of this family as well, with the few more
/// flips that the rounding of its parameters takes.
fn restated(request: &Request, starts: &[Certified]) -> Option<Certified> {
    let starts = starts.iter().filter(|start| matches!(start.family, Family::NormalForm | Family::NoisySampling));
    let kept = starts.filter_map(|start| {
        let mut laws = MORE_FLIPS.into_iter().map(|factor| with_more_flips(&start.found.law, factor));
        laws.find_map(|law| as_it_stands(request, &found(request, law, law.flip[0])))
    });
    kept.min_by(|one, other| one.cost.total_cmp(&other.cost))
}

fn with_more_flips(&Law { part, flip }: &Law, factor: f64) -> Law {
    Law { part, flip: array::from_fn(|truth| (flip[truth] * factor).min(part[truth])) }
}

fn found(request: &Request, law: Law, doubt: f64) -> Found {
    Found { family: Family::Tuned, law, cost: request.cost(&law), place: law.part[0], doubt }
}

/// What the flips of a start are multiplied by, one factor after the other, until its certificate keeps the request.
const MORE_FLIPS: [f64; 6] = [1.0, 1.001, 1.003, 1.01, 1.03, 1.1];
/// The step of a walk that begins at a start.
const FIRST_STEP: f64 = 0.3;
/// The step of a walk that begins near the law before.
const SMALL_STEP: f64 = 0.06;
/// The walk ends when steps of this size do not help any more.
const SMALLEST_STEP: f64 = 0.02;
/// A step helps if it lowers the cost by more than this share.
const PROGRESS: f64 = 2e-4;
/// How exactly the logarithm of the doubt is solved for during the walk, and for the law that is kept.
const ACCURACY: f64 = 4e-4;
const FINAL_ACCURACY: f64 = 1e-5;
/// The doubt at which the searches for one begin.
const SMALLEST_DOUBT: f64 = 1e-17;

/// Who takes part, and the flips as shares of the larger one.
#[derive(Clone, Copy, Debug)]
struct Shape {
    part: [f64; 2],
    flip: [f64; 2],
}

impl Shape {
    /// The shape of a law. A one-sided law gets a trace of the missing flips, so that the walk can grow them.
    fn of(&Law { part, flip }: &Law) -> Self {
        let largest = flip[0].max(flip[1]);
        Self { part, flip: flip.map(|flip| (flip / largest).max(1e-4)) }
    }

    /// Nobody takes part more often than `most`.
    fn new(part: [f64; 2], flip: [f64; 2], most: f64) -> Self {
        let largest = f64::max(flip[0], flip[1]);
        Self { part: part.map(|part| part.min(most)), flip: flip.map(|flip| flip / largest) }
    }

    /// The law whose larger flip is `doubt`. Everybody who flips takes part.
    fn law(&self, doubt: f64) -> Law {
        let flip = self.flip.map(|flip| flip * doubt);
        Law { part: array::from_fn(|truth| self.part[truth].max(flip[truth])), flip }
    }

    /// The doubt at which the classes would swap their meaning.
    fn most_doubt(&self) -> f64 {
        let sum = self.flip[0] + self.flip[1];
        (self.part[0] / sum).max(self.part[1] / sum).min(1.0)
    }

    /// The shapes one step away.
    fn neighbours(&self, step: f64, most: f64) -> [Self; 10] {
        let [yes, no] = self.part;
        let [ry, rn] = self.flip;
        let (up, down) = (1.0 + step, 1.0 / (1.0 + step));
        // Towards `most` in shares of what is left, so that the walk can come close to it.
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
        .map(|(part, flip)| Self::new(part, flip, most))
    }
}

struct Walk<'a> {
    request: &'a Request,
    limits: &'a Limits,
}

impl Walk<'_> {
    /// The best law that is found from the starts of either family.
    fn best_from_starts(&self, starts: &[Certified], allowance: f64) -> Option<Found> {
        let of = |family: Family| starts.iter().filter(move |start| start.family == family);
        let starts = of(Family::NormalForm).chain(of(Family::NoisySampling));
        starts.map(|start| self.best_from(&Shape::of(&start.found.law), FIRST_STEP, allowance)).fold(None, cheaper)
    }

    /// The best law that is found from one shape.
    fn best_from(&self, start: &Shape, first_step: f64, allowance: f64) -> Option<Found> {
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
    fn best_neighbour(&self, shape: &Shape, step: f64, goal: f64, allowance: f64) -> Option<(Shape, Found)> {
        let neighbours = shape.neighbours(step, self.request.most_participation()).into_iter();
        let promising = neighbours.filter(|shape| self.may_cost(shape, goal, allowance));
        let found = promising.filter_map(|shape| Some((shape, self.at(&shape, allowance, ACCURACY)?)));
        found.min_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost))
    }

    /// Calls of the accounting that one walk may make; they take longer in larger crowds.
    fn budget(&self) -> u64 {
        match self.limits.owners() {
            0..20_000 => 500,
            20_000..200_000 => 250,
            200_000..5_000_000 => 60,
            _ => 20,
        }
    }

    /// The law of a shape with the least doubt.
    fn at(&self, shape: &Shape, allowance: f64, accuracy: f64) -> Option<Found> {
        let ends = (self.least_doubt(shape)?, shape.most_doubt());
        let doubt = self.limits.least_doubt(|doubt| shape.law(doubt), ends, allowance, accuracy)?;
        let law = shape.law(doubt);
        // A class that only one truth can reach would show nothing at all if no owner has that truth.
        if law.no()[1] <= 1e-3 * law.yes()[1] || law.yes()[0] <= law.no()[0] {
            return None;
        }
        let found = found(self.request, law, doubt);
        found.cost.is_finite().then_some(found)
    }

    /// Whether the shape may cost less than `goal`: the law that costs as much must keep the bound.
    fn may_cost(&self, shape: &Shape, goal: f64, allowance: f64) -> bool {
        if self.request.objective != Objective::Sd {
            return true;
        }
        let sd = |log_doubt: f64| self.request.sd(&shape.law(log_doubt.exp()));
        let ends = (SMALLEST_DOUBT.ln(), shape.most_doubt().ln());
        let least = sd(ends.0);
        if least.is_nan() || least > goal {
            return false;
        }
        let (most, _) = halved(ends, 40, |log_doubt| sd(log_doubt) <= goal);
        !self.limits.is_broken_at(&shape.law(most.exp()), allowance)
    }

    /// The least doubt under the bounds of an owner's only answer, whose ε falls with it.
    fn least_doubt(&self, shape: &Shape) -> Option<f64> {
        let bound = self.request.cell_epsilon();
        if bound.is_infinite() {
            return Some(0.0);
        }
        let keeps = |log_doubt: f64| shape.law(log_doubt.exp()).linked_epsilon() <= bound * (1.0 - 1e-5);
        let ends = (SMALLEST_DOUBT.ln(), shape.most_doubt().ln() - 1e-9);
        if !keeps(ends.1) {
            return None;
        }
        let (_, least) = halved(ends, 50, |log_doubt| !keeps(log_doubt));
        Some(least.exp())
    }
}
