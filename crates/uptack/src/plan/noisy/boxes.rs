//! The best bit of a region by halving boxes, and a proof of how much better any other can be
//! (`docs/choosing-parameters.md`, "How near the best a plan is").

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::bit::Bit;
use super::region::{Goal, Region};

/// The best bit that was found, its error, and an error that no bit of the region is below.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best {
    pub(super) bit: Bit,
    pub(super) error: f64,
    pub(super) least: f64,
}

/// Boxes are halved until none can be better by more than this share.
const ACCURACY: f64 = 3e-4;
/// So many boxes are looked at.
const BUDGET: usize = 10_000;
/// Rounding of the bound itself.
const ROUNDING: f64 = 1e-12;
/// Less than this share of ones is hardly any.
const REST: f64 = 1e-3;
/// The last step of the walk, in the logarithm of the doubt.
const SMALLEST_STEP: f64 = 1e-7;

struct Box {
    sides: [(f64, f64); 2],
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
    let traces = goal.traces(region.of_no);
    let boxed = |sides| {
        let sides = region.tightened(sides)?;
        Some(Box { sides, least: goal.least_error(sides, region.of_no) })
    };
    let mut found = improved(goal, region, None, (0.0, 0.0));
    let mut open: BinaryHeap<Box> = boxed([(0.0, 1.0), (0.0, 1.0)]).into_iter().collect();
    let mut least = f64::INFINITY;
    for step in 0.. {
        let Some(next) = open.pop() else { break };
        let known = found.map_or(f64::INFINITY, |(_, error)| error);
        if next.least >= known * (1.0 - ACCURACY) || step == BUDGET {
            least = next.least;
            break;
        }
        for sides in halves(next.sides, traces) {
            let Some(half) = boxed(sides) else { continue };
            found = improved(goal, region, found, (half.sides[0].0, half.sides[1].0));
            found = improved(goal, region, found, (half.sides[0].1, half.sides[1].1));
            open.push(half);
        }
    }
    let (bit, error) = walk(goal, region, found?, traces);
    Some(Best { bit, error, least: (least * (1.0 - ROUNDING)).min(error) })
}

type Found = Option<(Bit, f64)>;

fn improved(goal: &Goal, region: &Region, known: Found, (missed, stray): (f64, f64)) -> Found {
    let bit = region.lifted(missed, stray).map(|bit| (bit, goal.error(&bit)));
    match (known, bit.filter(|(_, error)| error.is_finite())) {
        (Some(known), Some(bit)) => Some(if bit.1 < known.1 { bit } else { known }),
        (known, bit) => known.or(bit),
    }
}

/// Two boxes for one, across the longer side, in coordinates that stretch both ends: a little doubt, and nearly all.
fn halves(sides: [(f64, f64); 2], traces: [f64; 2]) -> [[(f64, f64); 2]; 2] {
    let stretched = |side: usize, doubt: f64| ((doubt + traces[side]) / (1.0 - doubt + REST)).ln();
    let length = |side: usize| stretched(side, sides[side].1) - stretched(side, sides[side].0);
    let long = usize::from(length(1) > length(0));
    let (low, high) = sides[long];
    let odds = (0.5 * (stretched(long, low) + stretched(long, high))).exp();
    let middle = ((odds * (1.0 + REST) - traces[long]) / (1.0 + odds)).clamp(low, high);
    let with = |ends: (f64, f64)| {
        let mut half = sides;
        half[long] = ends;
        half
    };
    [with((low, middle)), with((middle, high))]
}

/// From a bit in all eight directions, in steps that shrink where none helps.
pub(super) fn walk(goal: &Goal, region: &Region, start: (Bit, f64), traces: [f64; 2]) -> (Bit, f64) {
    let mut best = start;
    let mut step = 0.25;
    while step > SMALLEST_STEP {
        let before = best.1;
        let moved = |doubt: f64, trace: f64, direction: i32| {
            ((doubt + trace) * (step * f64::from(direction)).exp() - trace).clamp(0.0, 1.0)
        };
        let centre = best.0;
        for (x, y) in (-1..=1).flat_map(|x| (-1..=1).map(move |y| (x, y))).filter(|&direction| direction != (0, 0)) {
            let place = (moved(centre.missed, traces[0], x), moved(centre.stray, traces[1], y));
            best = improved(goal, region, Some(best), place).unwrap_or(best);
        }
        if best.1 >= before {
            step *= 0.5;
        }
    }
    best
}
