//! Expectations of functions that fall with a binomial number (`docs/accounting.md`, "Telling").

use super::{DivergenceRequest, Divergences};
use crate::certified::binomial::{Binomial, window};
use crate::certified::binomial_sum::{SumLaw, sum_of_two};
use crate::certified::rounding::Enclosure;
use crate::privacy::likelihood::{Direction, DirectionBounds, PerDirection};
use crate::privacy::work::WorkBudget;

/// An upper bound, and an estimate of it without the losses of the method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundAttempt {
    pub(crate) bound: DirectionBounds,
    pub(crate) guess: DirectionBounds,
}

impl BoundAttempt {
    /// A value that could not be bounded any better.
    pub(crate) fn exact(value: DirectionBounds) -> Self {
        Self { bound: value, guess: value }
    }
}

/// With more blocks than this, a smaller range of crowds is the cheaper way.
const MOST_BLOCKS: f64 = 40.0;

/// Falling functions of a binomial number whose expectation is to be bounded.
pub(crate) struct Falling {
    pub(crate) law: Binomial,
    /// The values at the mean.
    pub(crate) center: DirectionBounds,
    /// Bounds for all numbers.
    pub(crate) everywhere: DirectionBounds,
    /// The largest bounds that are accepted.
    pub(crate) goals: DirectionBounds,
}

impl Falling {
    /// The expectations from above: as close as the goals need it, if that is within reach.
    pub(crate) fn expected(
        &self,
        log_cut: f64,
        work: &WorkBudget,
        function: impl Fn(u64) -> DirectionBounds,
    ) -> DirectionBounds {
        let (single, distance) = self.at_a_rare_number(log_cut, &function);
        if self.reached(single) {
            return single;
        }
        let law = CutLaw::new(self.law, log_cut);
        work.spend(law.counts.steps / 4);
        let enclosed = |number: u64| function(number).map(|upper| Enclosure::of_probability(0.0, upper));
        let mut best = single;
        let mut fineness = self.first_fineness(single, distance, law.deviation);
        while law.blocks_at(fineness) <= MOST_BLOCKS && !work.exhausted() {
            let blocks = NumberBlocks::of(&law, fineness);
            let finer = blocks.expectation(&enclosed).upper();
            best = best.min(finer);
            if self.reached(best) || blocks.are_single() {
                break;
            }
            fineness *= self.refinement(finer);
        }
        best
    }

    /// How many blocks per standard deviation to start with, if the function rises to `single` over `distance`.
    fn first_fineness(&self, single: DirectionBounds, distance: f64, deviation: f64) -> f64 {
        let slope = self.worst(single) / distance.max(1.0);
        // The loss is about that of half a block.
        let first = 0.6 * deviation * slope / self.worst(self.goals);
        if first.is_finite() { first.max(0.5) } else { 0.5 }
    }

    /// By which factor to refine blocks that gave these bounds.
    fn refinement(&self, bounds: DirectionBounds) -> f64 {
        let factor = 1.2 * self.worst(bounds) / self.worst(self.goals);
        if factor.is_finite() { factor.clamp(1.4, 8.0) } else { 2.0 }
    }

    /// A bound from the value at one number, below which the binomial rarely falls, and how far that number is from the mean.
    fn at_a_rare_number(&self, log_cut: f64, function: &impl Fn(u64) -> DirectionBounds) -> (DirectionBounds, f64) {
        let rarely = self.how_rarely().clamp(log_cut.exp(), 0.05);
        let (number, _) = window(&[self.law], rarely.ln());
        let values = function(number);
        let bound = values.with(self.everywhere, |value, everywhere| value + rarely * (everywhere - value).max(0.0));
        (bound, self.law.mean() - number as f64)
    }

    /// The probability with which the bounds for all numbers may stand in, at the cost of a small share of the goals.
    fn how_rarely(&self) -> f64 {
        let share = self.goals.with(self.everywhere, |goal, everywhere| 5e-4 * goal / (everywhere - goal).max(1e-300));
        share.yes_over_no.min(share.no_over_yes)
    }

    fn reached(&self, values: DirectionBounds) -> bool {
        values.with(self.goals, |value, goal| value <= goal).iter().all(|reached| *reached)
    }

    /// The largest logarithm of the values over those at the mean, where the values matter.
    fn worst(&self, values: DirectionBounds) -> f64 {
        let matters = |direction: &Direction| self.center[*direction] > 1e-3 * self.center[direction.opposite()];
        let logarithm = |direction: Direction| (values[direction] / self.center[direction]).ln();
        Direction::BOTH.into_iter().filter(matters).map(logarithm).fold(0.0, f64::max)
    }
}

/// The law of a binomial number but for mass of e^`log_cut` on either side, and its standard deviation.
struct CutLaw {
    counts: SumLaw,
    deviation: f64,
    /// The mass that is left out on either side at most.
    cut: f64,
}

impl CutLaw {
    fn new(law: Binomial, log_cut: f64) -> Self {
        let (low, high) = window(&[law], log_cut);
        let counts = sum_of_two(law, Binomial::new(0, law.coin), low, high);
        Self { counts, deviation: (law.mean() * law.coin.failure).sqrt(), cut: log_cut.exp() }
    }

    /// Whether the ends of expectations with `fineness` blocks to a standard deviation are within a factor of `near`. The smaller
    /// expectation need not be so close where the blocks are fine.
    fn is_close_enough(&self, values: Divergences, near: f64, fineness: f64) -> bool {
        let close = |value: &Enclosure| value.upper() <= near * value.lower() || value.upper() <= 2.0 * self.cut;
        let largest = values.upper().largest();
        values.iter().all(|value| close(value) || value.upper() <= 0.5 * largest && fineness > 8.0)
    }

    /// About how many blocks there are with `fineness` of them to a standard deviation.
    fn blocks_at(&self, fineness: f64) -> f64 {
        3.5 * fineness.min(self.counts.probability.len() as f64 / 4.0)
    }
}

/// Blocks of a random number: the smallest number of each (and the largest of all), and how likely each block is.
struct NumberBlocks {
    starts: Vec<u64>,
    probability: Vec<f64>,
    error: f64,
    /// The probability beyond the blocks on either side at most.
    cut: f64,
}

/// Blocks get finer until the two ends of an expectation are this close, or [`FINEST`] to a standard deviation.
const CLOSE: f64 = 1.003;
const FINEST: f64 = 128.0;

impl NumberBlocks {
    /// Blocks for which probability times width is about the same, `fineness` to a standard deviation in the middle.
    fn of(CutLaw { counts, deviation, cut }: &CutLaw, fineness: f64) -> Self {
        let most = deviation / (2.5 * fineness * fineness);
        let error = counts.relative_error + counts.probability.len() as f64 * f64::EPSILON;
        let mut blocks = Self { starts: vec![counts.first], probability: vec![0.0], error, cut: *cut };
        for (number, mass) in (counts.first..).zip(&counts.probability) {
            blocks.add(number, *mass, most);
        }
        blocks.starts.push(counts.first + counts.probability.len() as u64 - 1);
        blocks
    }

    /// Adds the next number to the last block, or to a new one where probability times width would be more than `most`.
    #[inline]
    fn add(&mut self, number: u64, mass: f64, most: f64) {
        let last = self.probability.len() - 1;
        let width = number - self.starts[last];
        if width > 0 && (self.probability[last] + mass) * width as f64 > most {
            self.starts.push(number);
            self.probability.push(mass);
        } else {
            self.probability[last] += mass;
        }
    }

    /// Whether no block has more than one number.
    fn are_single(&self) -> bool {
        self.starts.windows(2).all(|pair| pair[1] - pair[0] <= 1)
    }

    /// The expectation of two falling functions of the number.
    fn expectation(&self, function: &impl Fn(u64) -> Divergences) -> Divergences {
        let values: Vec<Divergences> = self.starts.iter().map(|&start| function(start)).collect();
        PerDirection::each(|direction| {
            let values: Vec<Enclosure> = values.iter().map(|value| value[direction]).collect();
            self.between_starts(&values)
        })
    }

    /// The expectation of a falling function with these values at the starts.
    fn between_starts(&self, values: &[Enclosure]) -> Enclosure {
        let (mut lower, mut upper) = (0.0, 0.0);
        for (index, (probability, ends)) in self.probability.iter().zip(values.windows(2)).enumerate() {
            // A block's largest number is below the next block's smallest; a block of one number is that number.
            let end = if self.is_single(index) { ends[0] } else { ends[1] };
            lower += probability * end.lower().min(ends[0].lower());
            upper += probability * ends[0].upper();
        }
        let upper = (upper * (1.0 + self.error) + 2.0 * self.cut).max(lower);
        Enclosure::of_probability(lower * (1.0 - self.error), upper)
    }

    /// Whether a block has one number only. The last one ends with its largest number, not before the next block.
    fn is_single(&self, index: usize) -> bool {
        let last = index + 1 == self.probability.len();
        self.starts[index + 1] - self.starts[index] == u64::from(!last)
    }
}

/// The expectation of falling functions of a binomial number, with ends that are close to each other.
pub(crate) fn expected(
    law: Binomial,
    request: DivergenceRequest,
    work: &WorkBudget,
    function: impl Fn(u64) -> Divergences,
) -> Divergences {
    let law = CutLaw::new(law, request.log_cut);
    let near = CLOSE.max(1.0 + request.precision);
    // Few numbers are taken one by one, which is exact.
    let mut fineness = if law.counts.probability.len() <= 64 { f64::INFINITY } else { 2.0 };
    loop {
        work.spend(law.counts.steps);
        let values = NumberBlocks::of(&law, fineness).expectation(&function);
        // Wide ends are sound; a stranger's card must not cost more than was allowed for it.
        if law.is_close_enough(values, near, fineness) || fineness >= FINEST || work.exhausted() {
            return values;
        }
        fineness *= 4.0;
    }
}
