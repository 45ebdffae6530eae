//! The best bit of a region by halving boxes, and a proof of how much better any other can be
//! (`docs/choosing-parameters.md`, "How close a plan is to the best").

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::bit::Bit;
use super::region::{Goal, Region, Sides};

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
/// The scale on which doubts near one are stretched.
const NEARLY_ALL: f64 = 1e-3;
/// The smallest step of the walk, in the logarithm of the doubt.
const SMALLEST_STEP: f64 = 1e-7;

/// Doubts between two corners, and a lower bound on the error of the bits among them.
struct Box {
    sides: Sides,
    least: f64,
}

impl PartialEq for Box {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Box {}

impl PartialOrd for Box {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Box {
    /// The most promising is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.least.total_cmp(&self.least)
    }
}

/// The best bit of the region.
pub(super) fn search(goal: &Goal, region: &Region) -> Option<Best> {
    let mut search = Search { goal, region, traces: goal.traces(region.of_no), best: None };
    search.try_doubts(0.0, 0.0);
    let least = search.halve_boxes();
    search.walk();
    let (bit, error) = search.best?;
    Some(Best { bit, error, least: (least * (1.0 - ROUNDING)).min(error) })
}

struct Search<'a> {
    goal: &'a Goal,
    region: &'a Region,
    /// Doubts of either side that hardly matter.
    traces: [f64; 2],
    /// The best bit so far and its error.
    best: Option<(Bit, f64)>,
}

impl Search<'_> {
    fn error(&self) -> f64 {
        self.best.map_or(f64::INFINITY, |(_, error)| error)
    }

    /// Tries the bit with the least doubt that has at least this much.
    fn try_doubts(&mut self, missed: f64, stray: f64) {
        let Some(bit) = self.region.lifted(missed, stray) else { return };
        let error = self.goal.error(&bit);
        if error.is_finite() && error < self.error() {
            self.best = Some((bit, error));
        }
    }

    /// Halves the most promising box until none can be better by more than the accuracy; returns a lower bound on the error
    /// of every bit.
    fn halve_boxes(&mut self) -> f64 {
        let mut open: BinaryHeap<Box> = self.tight_box([(0.0, 1.0), (0.0, 1.0)]).into_iter().collect();
        for step in 0.. {
            let Some(next) = open.pop() else { break };
            if next.least >= self.error() * (1.0 - ACCURACY) || step == BUDGET {
                return next.least;
            }
            for sides in self.halves(next.sides) {
                let Some(half) = self.tight_box(sides) else { continue };
                let [missed, stray] = half.sides;
                self.try_doubts(missed.0, stray.0);
                self.try_doubts(missed.1, stray.1);
                open.push(half);
            }
        }
        f64::INFINITY
    }

    /// The box around the bits of the region between these sides, if there are any.
    fn tight_box(&self, sides: Sides) -> Option<Box> {
        let sides = self.region.tightened(sides)?;
        Some(Box { sides, least: self.goal.least_error(sides, self.region.of_no) })
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

    /// A doubt in coordinates that stretch both ends: a little doubt, and nearly all.
    fn stretched(&self, side: usize, doubt: f64) -> f64 {
        ((doubt + self.traces[side]) / (1.0 - doubt + NEARLY_ALL)).ln()
    }

    fn length(&self, side: usize, (low, high): (f64, f64)) -> f64 {
        self.stretched(side, high) - self.stretched(side, low)
    }

    /// The doubt half way between two, in stretched coordinates.
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
        let moved = |(doubt, trace): (f64, f64), direction: f64| {
            ((doubt + trace) * (step * direction).exp() - trace).clamp(0.0, 1.0)
        };
        for x in [-1.0, 0.0, 1.0] {
            for y in [-1.0, 0.0, 1.0].into_iter().filter(|&y| (x, y) != (0.0, 0.0)) {
                self.try_doubts(moved(missed, x), moved(stray, y));
            }
        }
    }
}
