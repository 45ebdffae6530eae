//! How often intervals hold the truth, by summing the probabilities of all outcomes instead of drawing.

use uptack::estimate::{Confidence, Estimator, IntervalKind};
use uptack::{Cell, Channel, Probability};

/// A kind of interval at a confidence.
pub(crate) type Case = (IntervalKind, Confidence);

/// Of the intervals of one case, at one number of yes-owners: how probable it is that they hold it, and how wide they
/// are on average.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub(crate) coverage: f64,
    pub(crate) width: f64,
}

/// For every case and every number of yes-owners what intervals are worth; what is left out is below 1e-9.
pub(crate) fn exact_coverage(channel: &Channel, owners: u64, cases: &[Case]) -> Vec<Vec<Held>> {
    if channel.noise().is_some() {
        return cases.iter().map(|&case| coverage_of_sums(channel, owners, case)).collect();
    }
    let outcomes = Outcomes::new(channel, owners);
    let intervals: Vec<Vec<(f64, f64)>> = cases.iter().map(|&case| outcomes.intervals(case)).collect();
    let mut held = vec![vec![Held::default(); owners as usize + 1]; cases.len()];
    let no_laws = outcomes.laws(Cell::no);
    for (yes, law) in outcomes.laws(Cell::yes).iter().enumerate() {
        let masses = outcomes.joined(law, &no_laws[owners as usize - yes]);
        for (held, intervals) in held.iter_mut().zip(&intervals) {
            for (&(low, high), &place) in intervals.iter().zip(&outcomes.places) {
                let inside = low <= yes as f64 && yes as f64 <= high;
                held[yes].coverage += if inside { masses[place] } else { 0.0 };
                held[yes].width += masses[place] * (high - low);
            }
        }
    }
    held
}

/// The same for a channel with noise: outcomes are the sums that can be published.
fn coverage_of_sums(channel: &Channel, owners: u64, case: Case) -> Vec<Held> {
    let reach = channel.noise().unwrap().plausible_reach();
    let intervals: Vec<(f64, f64)> = intervals_of_sums(channel, owners, reach, case);
    let held = |yes: u64| {
        let mut held = Held::default();
        for (&mass, &(low, high)) in law_of_sums(channel, owners, yes, reach).iter().zip(&intervals) {
            held.coverage += if low <= yes as f64 && yes as f64 <= high { mass } else { 0.0 };
            held.width += mass * (high - low);
        }
        held
    };
    (0..=owners).map(held).collect()
}

/// The interval of every sum from −`reach` on.
fn intervals_of_sums(channel: &Channel, owners: u64, reach: i64, (kind, confidence): Case) -> Vec<(f64, f64)> {
    let estimator = Estimator::new(channel).unwrap();
    let sums = -reach..=owners as i64 + reach;
    let observe = |sum: i64| estimator.observe_sum(owners, sum).unwrap();
    if kind == IntervalKind::Score {
        let interval = |sum| estimator.interval(&observe(sum), confidence, kind);
        return sums.map(interval).map(|interval| (interval.low, interval.high)).collect();
    }
    let estimate = |sum: i64| estimator.estimate_observed(&observe(sum)).estimate.clamp(0.0, owners as f64);
    let mut intervals: Vec<(f64, f64)> = sums.clone().map(|sum| (estimate(sum), estimate(sum))).collect();
    for yes in 0..=owners {
        let acceptance = estimator.acceptance(owners, yes, confidence, kind).unwrap();
        for (interval, sum) in intervals.iter_mut().zip(sums.clone()) {
            if acceptance.holds_sum(sum) {
                *interval = (interval.0.min(yes as f64), interval.1.max(yes as f64));
            }
        }
    }
    intervals
}

/// The probability of every sum from −`reach` on: bit by bit, and then draw by draw of the noise.
pub(crate) fn law_of_sums(channel: &Channel, owners: u64, yes: u64, reach: i64) -> Vec<f64> {
    let (noise, bit) = (channel.noise().unwrap(), channel.summed_bit().unwrap());
    let mut bits = vec![1.0];
    for owner in 0..owners {
        let one = if owner < yes { bit.yes.to_f64() } else { bit.no.to_f64() };
        let stay = |at: usize| bits.get(at).copied().unwrap_or(0.0) * (1.0 - one);
        let step = |at: usize| if at == 0 { 0.0 } else { bits[at - 1] * one };
        bits = (0..=bits.len()).map(|at| stay(at) + step(at)).collect();
    }
    // One draw and the other, each within the reach of both.
    let one: Vec<f64> = (-reach..=reach).map(|value| noise.probability(value)).collect();
    let mut both = vec![0.0; one.len()];
    for (first, mass) in one.iter().enumerate() {
        for (second, part) in one.iter().enumerate() {
            let sum = first as i64 + second as i64 - reach;
            if (0..both.len() as i64).contains(&sum) {
                both[sum as usize] += mass * part;
            }
        }
    }
    let mut law = vec![0.0; bits.len() + both.len() - 1];
    for (first, mass) in bits.iter().enumerate() {
        both.iter().enumerate().for_each(|(second, part)| law[first + second] += mass * part);
    }
    law
}

/// The counts that the classes of a channel can have. Any cell of a class stands for the class.
struct Outcomes<'a> {
    channel: &'a Channel,
    estimator: Estimator,
    owners: u64,
    first_cells: Vec<usize>,
    counts: Vec<Vec<u64>>,
    /// Where the probability of each is found: the counts but the last as digits.
    places: Vec<usize>,
}

/// Outcomes, as places, with their probabilities.
type Law = Vec<(usize, f64)>;

impl<'a> Outcomes<'a> {
    fn new(channel: &'a Channel, owners: u64) -> Self {
        let first_cells: Vec<usize> = channel.classes().iter().map(|class| class.cells[0]).collect();
        let mut counts = vec![vec![]];
        for _ in 1..first_cells.len() {
            let longer = |shorter: Vec<u64>| {
                let left = owners - shorter.iter().sum::<u64>();
                (0..=left).map(move |next| [shorter.as_slice(), &[next]].concat())
            };
            counts = counts.into_iter().flat_map(longer).collect();
        }
        let digits = |counts: &Vec<u64>| counts.iter().fold(0, |place, &count| place * (owners + 1) + count) as usize;
        let places = counts.iter().map(digits).collect();
        counts.iter_mut().for_each(|counts| counts.push(owners - counts.iter().sum::<u64>()));
        Self { channel, estimator: Estimator::new(channel).unwrap(), owners, first_cells, counts, places }
    }

    fn cells(&self, counts: &[u64]) -> Vec<u64> {
        let mut cells = vec![0; self.channel.cells().len()];
        self.first_cells.iter().zip(counts).for_each(|(&cell, &count)| cells[cell] = count);
        cells
    }

    /// The interval of every outcome: all that is accepted, everything between, and the estimate.
    fn intervals(&self, (kind, confidence): Case) -> Vec<(f64, f64)> {
        let cells: Vec<Vec<u64>> = self.counts.iter().map(|counts| self.cells(counts)).collect();
        if kind == IntervalKind::Score {
            let interval = |cells: &Vec<u64>| {
                let interval = self.estimator.interval(&self.estimator.observe_cells(cells), confidence, kind);
                (interval.low, interval.high)
            };
            return cells.iter().map(interval).collect();
        }
        let estimate = |cells: &Vec<u64>| {
            let estimate = self.estimator.estimate_observed(&self.estimator.observe_cells(cells)).estimate;
            estimate.clamp(0.0, self.owners as f64)
        };
        let mut intervals: Vec<(f64, f64)> = cells.iter().map(|cells| (estimate(cells), estimate(cells))).collect();
        for yes in 0..=self.owners {
            let acceptance = self.estimator.acceptance(self.owners, yes, confidence, kind).unwrap();
            for (interval, cells) in intervals.iter_mut().zip(&cells) {
                if acceptance.holds(cells) {
                    *interval = (interval.0.min(yes as f64), interval.1.max(yes as f64));
                }
            }
        }
        intervals
    }

    /// The laws of the counts of 0, 1, …, all owners of one truth. Probabilities below 1e-14 are left out.
    fn laws(&self, part: fn(&Cell) -> Probability) -> Vec<Law> {
        let classes = self.channel.classes();
        let sum = |cells: &[usize]| cells.iter().map(|&cell| part(&self.channel.cells()[cell]).to_f64()).sum::<f64>();
        let unit = |class: usize| match classes.len() - 1 - class {
            0 => 0,
            behind => (self.owners as usize + 1).pow(behind as u32 - 1),
        };
        let step: Law = classes.iter().enumerate().map(|(class, c)| (unit(class), sum(&c.cells))).collect();
        let mut laws = vec![vec![(0, 1.0)]];
        for _ in 0..self.owners {
            let masses = self.joined(&laws[laws.len() - 1], &step);
            laws.push(masses.into_iter().enumerate().filter(|(_, mass)| *mass > 1e-14).collect());
        }
        laws
    }

    /// The law of the sum of two, by place.
    fn joined(&self, first: &Law, second: &Law) -> Vec<f64> {
        let mut masses = vec![0.0; (self.owners as usize + 1).pow(self.first_cells.len() as u32 - 1)];
        for (place, mass) in first {
            for (other, part) in second {
                masses[place + other] += mass * part;
            }
        }
        masses
    }
}
