//! Trials: every station's question is asked, answered and estimated many times.

mod counter;
mod unrolled;

use std::ops::Range;

use counter::{ChoiceCounts, CuratedCount, NoisyQuestions, Questions, StationCounter, StationEstimate};
use unrolled::{Confidences, CountLaw, NoisySum};
use uptack::Progress;
use uptack::SeededCoins;

use crate::error::{Error, Result};
use crate::method::{Method, Protocol};

/// The confidence level of every station's own interval, and of the simultaneous intervals of all stations.
pub const LEVEL: f64 = 0.95;
/// Stations with fewer vehicles are small.
pub const SMALL: u64 = 5;
/// If the rarest informative count expects at least this many, intervals should not be too wide, either.
pub const MANY: f64 = 50.0;

/// The result of one station's trials.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StationResult {
    /// The truth.
    pub vehicles: u64,
    /// The mean of the estimates minus the truth.
    pub bias: f64,
    /// The root mean squared error of the estimates.
    pub rmse: f64,
    /// What theory predicts for it.
    pub predicted: f64,
    /// The share of 95 % intervals that held the truth.
    pub coverage: f64,
    /// The estimate of the first trial, for the map.
    pub example: f64,
    /// Whether the rarest informative count expects enough for the interval to be nearly exact.
    pub many: bool,
}

/// The result of a method's trials.
#[derive(Clone, Debug)]
pub struct TrialResults {
    /// The number of trials; fewer than asked for if stopped.
    pub trials: u64,
    /// One result per station, in the order of the traffic.
    pub stations: Vec<StationResult>,
    /// The share of stations whose rank was right, over all trials.
    pub ranks: f64,
    /// The share of trials in which the simultaneous intervals of all stations held.
    pub simultaneous: f64,
    /// Everything that was published in the first trial, if all stations are drawn together: one number per station and, if there
    /// are owners elsewhere, theirs.
    pub published: Option<Vec<i64>>,
}

/// Asks the question of every station in every trial.
///
/// `stream` numbers the streams of coins, so that methods do not share any.
pub fn measure(
    method: &Method,
    vehicles: &[u64],
    owners: u64,
    trials: u64,
    (seed, stream): (u64, u64),
    progress: &Progress,
) -> Result<TrialResults> {
    let mut counter = counter(method, vehicles, owners)?;
    let mut run = TrialRun::new(vehicles);
    while run.trials < trials && !progress.stopped() {
        run.trial(&mut *counter, &mut SeededCoins::stream(seed, (stream << 32) + run.trials))?;
        progress.advance();
    }
    run.measured(&*counter)
}

/// The counter of stations by this method.
fn counter<'a>(method: &'a Method, vehicles: &[u64], owners: u64) -> Result<Box<dyn StationCounter + 'a>> {
    let confidences = Confidences::of_stations(vehicles.len())?;
    if let Protocol::Curator(curator) = &method.law {
        return Ok(Box::new(CuratedCount::new(curator, &confidences)));
    }
    if let Protocol::Contributions(asked) = &method.law
        && let Some(counts) = ChoiceCounts::new(asked, vehicles, owners, &confidences)?
    {
        return Ok(Box::new(counts));
    }
    let channel = method.channel()?.ok_or_else(|| Error::new("a method without a channel and without a curator"))?;
    Ok(match NoisySum::new(&channel, owners)? {
        Some(law) => Box::new(NoisyQuestions::new(law, vehicles, &confidences)?),
        None => Box::new(Questions::new(CountLaw::new(&channel, owners)?, vehicles, &confidences)?),
    })
}

/// The trials of all stations so far.
struct TrialRun<'a> {
    vehicles: &'a [u64],
    ranks: TrueRanks,
    sums: Vec<StationSums>,
    /// The estimates of the current trial.
    estimates: Vec<f64>,
    trials: u64,
    ranks_right: u64,
    all_held: u64,
    published: Option<Vec<i64>>,
}

impl<'a> TrialRun<'a> {
    fn new(vehicles: &'a [u64]) -> Self {
        Self {
            vehicles,
            ranks: TrueRanks::new(vehicles),
            sums: vec![StationSums::default(); vehicles.len()],
            estimates: vec![0.0; vehicles.len()],
            trials: 0,
            ranks_right: 0,
            all_held: 0,
            published: None,
        }
    }

    fn trial(&mut self, counter: &mut dyn StationCounter, coins: &mut SeededCoins) -> Result<()> {
        counter.begin(coins)?;
        if self.trials == 0 {
            self.published = counter.published().map(<[i64]>::to_vec);
        }
        let mut all_hold = true;
        for (station, &yes) in self.vehicles.iter().enumerate() {
            let seen = counter.ask(station, yes, coins)?;
            self.sums[station].add(seen, yes as f64, self.trials == 0);
            all_hold &= seen.holds_together;
            self.estimates[station] = seen.estimate;
        }
        self.ranks_right += self.ranks.right(&self.estimates);
        self.all_held += u64::from(all_hold);
        self.trials += 1;
        Ok(())
    }

    fn measured(&self, counter: &dyn StationCounter) -> Result<TrialResults> {
        let trials = self.trials.max(1) as f64;
        let results = (0..self.vehicles.len()).map(|station| self.result(station, counter));
        Ok(TrialResults {
            trials: self.trials,
            stations: results.collect::<Result<_>>()?,
            ranks: self.ranks_right as f64 / (trials * self.vehicles.len() as f64),
            simultaneous: self.all_held as f64 / trials,
            published: self.published.clone(),
        })
    }

    fn result(&self, station: usize, counter: &dyn StationCounter) -> Result<StationResult> {
        let (vehicles, sums) = (self.vehicles[station], &self.sums[station]);
        let trials = self.trials.max(1) as f64;
        Ok(StationResult {
            vehicles,
            bias: sums.error / trials,
            rmse: (sums.squared / trials).sqrt(),
            predicted: counter.predicted(vehicles)?,
            coverage: sums.held as f64 / trials,
            example: sums.example,
            many: counter.many(vehicles),
        })
    }
}

/// Sums over the trials of one station.
#[derive(Clone, Copy, Default)]
struct StationSums {
    error: f64,
    squared: f64,
    held: u64,
    example: f64,
}

impl StationSums {
    fn add(&mut self, seen: StationEstimate, yes: f64, first: bool) {
        let error = seen.estimate - yes;
        self.error += error;
        self.squared += error * error;
        self.held += u64::from(seen.holds);
        if first {
            self.example = seen.estimate;
        }
    }
}

/// For each station, the ranks that are right for it, from the most vehicles down. Stations with equally many vehicles
/// share theirs.
pub(super) struct TrueRanks(Vec<Range<usize>>);

impl TrueRanks {
    pub(super) fn new(vehicles: &[u64]) -> Self {
        let mut sorted = vehicles.to_vec();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let ranks = |yes: &u64| {
            let larger = sorted.partition_point(|other| other > yes);
            larger..sorted.partition_point(|other| other >= yes)
        };
        Self(vehicles.iter().map(ranks).collect())
    }

    /// The number of stations whose estimates have a right rank.
    pub(super) fn right(&self, estimates: &[f64]) -> u64 {
        let mut order = Vec::from_iter(0..estimates.len());
        order.sort_unstable_by(|&a, &b| estimates[b].total_cmp(&estimates[a]).then(a.cmp(&b)));
        let right = order.into_iter().enumerate().filter(|(rank, station)| self.0[*station].contains(rank));
        right.count() as u64
    }
}

#[cfg(test)]
mod tests {
    use uptack::Mechanism;

    use super::*;

    fn vehicles() -> Vec<u64> {
        (0..60).map(|index| [0, 1, 3, 4, 12, 80][index % 6]).collect()
    }

    fn method(text: &str) -> Method {
        Method::family("m", text.parse::<Mechanism>().unwrap())
    }

    /// α = 1e-4: 60 stations times 300 trials; the mean squared error over the stations is known to 4 % then.
    #[test]
    fn measured_errors_and_coverages_are_what_theory_says() {
        for text in [
            "randomized-response(t=0.75)",
            "normal-form(f=1,r=1e-3)",
            "blended(0,0.25,0.25,0,0.5,1e-4,1e-4)",
            "randomized-response(t=1) + laplace(scale=1)",
            "randomized-response(t=0.999) + laplace(scale=1.2)",
        ] {
            let measured = measure(&method(text), &vehicles(), 50_000, 300, (1, 1), &Progress::default()).unwrap();
            let mean = |value: fn(&StationResult) -> f64| {
                measured.stations.iter().map(value).sum::<f64>() / measured.stations.len() as f64
            };
            let ratio = mean(|s| s.rmse * s.rmse) / mean(|s| s.predicted * s.predicted);
            assert!((ratio - 1.0).abs() < 0.05, "{text}: {ratio}");
            let coverage = mean(|s| s.coverage);
            assert!((0.94..=0.995).contains(&coverage), "{text}: {coverage}");
            assert!(measured.simultaneous >= 0.90, "{text}: {}", measured.simultaneous);
        }
    }

    #[test]
    fn whoever_stops_gets_what_was_done() {
        let progress = Progress::default();
        progress.stop();
        let measured = measure(&method("normal-form(f=1,r=1e-3)"), &vehicles(), 1000, 5, (1, 1), &progress).unwrap();
        assert_eq!(measured.trials, 0);
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let run =
            |seed| measure(&method("normal-form(f=1,r=1e-3)"), &vehicles(), 1000, 5, (seed, 1), &Progress::default());
        assert_eq!(run(3).unwrap().stations, run(3).unwrap().stations);
        assert_ne!(run(3).unwrap().stations, run(4).unwrap().stations);
    }

    #[test]
    fn a_plain_count_has_every_rank_right_and_noise_does_not() {
        let ranks = TrueRanks::new(&[5, 1, 5, 0]);
        assert_eq!(ranks.right(&[5.0, 1.0, 5.0, 0.0]), 4);
        assert_eq!(ranks.right(&[4.0, 1.0, 9.0, 0.0]), 4, "equals may change places");
        assert_eq!(ranks.right(&[0.0, 1.0, 9.0, 7.0]), 2);
    }
}
