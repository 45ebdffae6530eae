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
