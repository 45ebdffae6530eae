//! The asymmetric laws: who takes part and who answers the opposite differ between *yes* and *no*.
//!
//! Four numbers are too many for a bound, so that this is a walk: from the best symmetric and the best one-sided law, in
//! steps that shrink where none helps. Most steps are ruled out with one call of the accounting.

use super::certify::{Certified, as_it_stands, certify};
use super::family::Family;
use super::law::Law;
use super::limits::Limits;
use super::request::{Objective, Request};
use super::search::{Found, cheaper};

/// The best certified mechanism of the family that the walk finds; `starts` are where it begins.
pub(super) fn certified(request: &Request, limits: &Limits, starts: &[Certified]) -> Option<Certified> {
    let walk = Walk { request, limits };
    let walked = certify(request, limits, |aim, near| match near {
        Some(near) => walk.from(&Shape::of(&near.law), SMALL_STEP, aim.allowance),
        None => {
            let of = |family: Family| starts.iter().filter(move |start| start.family == family);
            let starts = of(Family::NormalForm).chain(of(Family::NoisySampling));
            let found = starts.map(|start| walk.from(&Shape::of(&start.found.law), FIRST_STEP, aim.allowance));
            found.fold(None, cheaper)
        }
    });
    walked.or_else(|| restated(request, starts))
}

/// Where the walk certifies nothing: the starts themselves, which are members of this family, too, with the few more flips
/// that the rounding of its parameters takes.
fn restated(request: &Request, starts: &[Certified]) -> Option<Certified> {
    let kept = |start: &Certified| {
        [1.0, 1.001, 1.003, 1.01, 1.03, 1.1].into_iter().find_map(|factor| {
            let Law { part, flip } = start.found.law;
            let law = Law { part, flip: [0, 1].map(|truth: usize| (flip[truth] * factor).min(part[truth])) };
            let found =
                Found { family: Family::Tuned, law, cost: request.cost(&law), place: part[0], doubt: law.flip[0] };
            as_it_stands(request, &found)
        })
    };
    let starts = starts.iter().filter(|start| matches!(start.family, Family::NormalForm | Family::NoisySampling));
    starts.filter_map(kept).min_by(|a, b| a.cost.total_cmp(&b.cost))
}

const FIRST_STEP: f64 = 0.3;
const SMALL_STEP: f64 = 0.06;
/// The walk ends where steps of this size do not help any more.
const SMALLEST_STEP: f64 = 0.02;
/// A step that helps by less than this does not.
const PROGRESS: f64 = 2e-4;

/// Who takes part, and the flips in proportion to one another.
#[derive(Clone, Copy, Debug)]
struct Shape {
    part: [f64; 2],
    flip: [f64; 2],
}

impl Shape {
    /// A one-sided law gets a trace of the missing flips, so that the walk can grow them.
    fn of(law: &Law) -> Self {
        let largest = law.flip[0].max(law.flip[1]);
        Self { part: law.part, flip: law.flip.map(|flip| (flip / largest).max(1e-4)) }
    }

    /// The larger flip being `doubt`. Whoever flips takes part.
    fn law(&self, doubt: f64) -> Law {
        let flip = self.flip.map(|flip| flip * doubt);
        Law { part: [0, 1].map(|truth: usize| self.part[truth].max(flip[truth])), flip }
    }

    /// Where the classes would cross over.
    fn most_doubt(&self) -> f64 {
        let sum = self.flip[0] + self.flip[1];
        (self.part[0] / sum).max(self.part[1] / sum).min(1.0)
    }

    fn neighbours(&self, step: f64, most: f64) -> Vec<Self> {
        let [yes, no] = self.part;
        let [ry, rn] = self.flip;
        let (up, down) = (1.0 + step, 1.0 / (1.0 + step));
        // Towards the end at `most` in shares of what is left, so that the walk can come close to it.
        let nearer = |part: f64| most - (most - part) * (1.0 - step);
        let with = |yes: f64, no: f64, ry: f64, rn: f64| {
            let largest = f64::max(ry, rn);
            Self { part: [yes.min(most), no.min(most)], flip: [ry / largest, rn / largest] }
        };
        vec![
            with(nearer(yes), no, ry, rn),
            with(yes * down, no, ry, rn),
            with(yes, nearer(no), ry, rn),
            with(yes, no * down, ry, rn),
            with(yes, no, ry * up, rn),
            with(yes, no, ry, rn * up),
            with(nearer(yes), nearer(no), ry, rn),
            with(yes * down, no * down, ry, rn),
            with(most - (most - yes) * up, no, ry, rn),
            with(yes, most - (most - no) * up, ry, rn),
        ]
    }
}

struct Walk<'a> {
    request: &'a Request,
    limits: &'a Limits,
}

impl Walk<'_> {
    fn from(&self, start: &Shape, first_step: f64, allowance: f64) -> Option<Found> {
        let most = self.request.participation.unwrap_or(1.0);
        let budget = self.limits.calls() + self.budget();
        let (mut shape, mut here) = (*start, self.at(start, allowance, 4e-4)?);
        let mut step = first_step;
        while step > SMALLEST_STEP && self.limits.calls() < budget {
            let goal = here.cost * (1.0 - PROGRESS);
            let moves = shape.neighbours(step, most).into_iter().filter(|shape| self.may_cost(shape, goal, allowance));
            let found = moves.filter_map(|shape| Some((shape, self.at(&shape, allowance, 4e-4)?)));
            match found.min_by(|a, b| a.1.cost.total_cmp(&b.1.cost)) {
                Some((better, found)) if found.cost < goal => (shape, here) = (better, found),
                _ => step *= 0.4,
            }
        }
        self.at(&shape, allowance, 1e-5)
    }

    /// Calls of the accounting; they take longer in larger crowds.
    fn budget(&self) -> u64 {
        match self.limits.owners() {
            0..20_000 => 500,
            20_000..200_000 => 250,
            200_000..5_000_000 => 60,
            _ => 20,
        }
    }

    fn at(&self, shape: &Shape, allowance: f64, accuracy: f64) -> Option<Found> {
        let most = shape.most_doubt();
        let least = self.least_doubt(shape, most)?;
        let doubt = self.limits.least_doubt(|doubt| shape.law(doubt), (least, most), allowance, accuracy)?;
        let law = shape.law(doubt);
        // A class that one truth alone can reach would show nothing at all where nobody holds it.
        if law.no()[1] <= 1e-3 * law.yes()[1] || law.yes()[0] <= law.no()[0] {
            return None;
        }
        let cost = self.request.cost(&law);
        cost.is_finite().then_some(Found { family: Family::Tuned, law, cost, place: law.part[0], doubt })
    }

    /// Whether the shape may cost less than `goal`: the law that costs as much must keep the bound.
    fn may_cost(&self, shape: &Shape, goal: f64, allowance: f64) -> bool {
        if self.request.objective != Objective::Sd {
            return true;
        }
        let sd = |log_doubt: f64| self.request.sd(&shape.law(log_doubt.exp()));
        let (mut low, mut high) = (1e-17f64.ln(), shape.most_doubt().ln());
        let least = sd(low);
        if least.is_nan() || least > goal {
            return false;
        }
        for _ in 0..40 {
            let half = 0.5 * (low + high);
            if sd(half) <= goal { low = half } else { high = half }
        }
        !self.limits.is_broken_at(&shape.law(low.exp()), allowance)
    }

    /// The least doubt under the bounds of an owner's only answer; its ε falls with it.
    fn least_doubt(&self, shape: &Shape, most: f64) -> Option<f64> {
        let bounds = [self.request.answer_epsilon, self.request.linked_epsilon];
        let bound = bounds.into_iter().flatten().fold(f64::INFINITY, f64::min);
        let keeps = |log_doubt: f64| shape.law(log_doubt.exp()).linked_epsilon() <= bound * (1.0 - 1e-5);
        if bound.is_infinite() {
            return Some(0.0);
        }
        let (mut low, mut high) = (1e-17f64.ln(), most.ln() - 1e-9);
        if !keeps(high) {
            return None;
        }
        for _ in 0..50 {
            let half = 0.5 * (low + high);
            if keeps(half) { high = half } else { low = half }
        }
        Some(high.exp())
    }
}
