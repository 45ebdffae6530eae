//! Trials: every station's question is asked, answered and estimated, many times.

mod count_law;
mod counter;
mod noisy_sum;
mod ranks;

use uptack::SeededCoins;
use uptack::estimate::Confidence;
use uptack::estimate::many::{Sharing, simultaneous};
use uptack::simulate::Progress;

use crate::error::Error;
use crate::method::{Law, Method};
use count_law::{Confidences, CountLaw};
use counter::{Counter, Noise, NoisyQuestions, Questions, Seen};
use noisy_sum::NoisySum;
use ranks::TrueRanks;

/// The level of every station's own interval, and of all of them at once.
pub const LEVEL: f64 = 0.95;
/// A station with fewer vehicles is small.
pub const SMALL: u64 = 5;
/// Where the rarest informative count expects at least this many, intervals should not be too wide either.
pub const MANY: f64 = 50.0;

/// What came of one station's trials.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StationResult {
    /// The mean of the estimates less the truth.
    pub bias: f64,
    /// The root of their mean squared error.
    pub rmse: f64,
    /// What theory says it is.
    pub predicted: f64,
    /// The share of 95 % intervals that held the truth.
    pub coverage: f64,
    /// The estimate of the first trial, for the map.
    pub example: f64,
    /// Whether the rarest informative count expects enough for the interval to be nearly exact.
    pub many: bool,
}

/// What came of a method's trials.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Trials that were done; fewer than asked for if stopped.
    pub trials: u64,
    /// A result a station, in the order of the traffic.
    pub stations: Vec<StationResult>,
    /// The share of stations whose rank was right, over all trials.
    pub ranks: f64,
    /// The share of trials in which the simultaneous intervals of all stations held.
    pub simultaneous: f64,
}

/// Repeats the whole way for every station.
///
/// `stream` numbers the coins, so that methods do not share any.
pub fn measure(
    method: &Method,
    vehicles: &[u64],
    owners: u64,
    trials: u64,
    (seed, stream): (u64, u64),
    progress: &Progress,
) -> Result<Measured, Error> {
    let mut counter = counter(method, vehicles, owners)?;
    let mut run = Run::new(vehicles);
    while run.trials < trials && !progress.stopped() {
        run.trial(&mut *counter, &mut SeededCoins::stream(seed, (stream << 32) + run.trials))?;
        progress.advance();
    }
    Ok(run.measured(&*counter))
}

/// Whoever answers for the stations by this method.
fn counter<'a>(method: &'a Method, vehicles: &[u64], owners: u64) -> Result<Box<dyn Counter + 'a>, Error> {
    let each = Confidence::new(LEVEL)?;
    let confidences = Confidences { each, all: simultaneous(each, vehicles.len(), Sharing::Bonferroni)? };
    if let Law::Curator(curator) = &method.law {
        return Ok(Box::new(Noise::new(curator, &confidences)));
    }
    let channel = method.channel()?.ok_or_else(|| Error::new("a method without a channel and without a curator"))?;
    Ok(match NoisySum::new(&channel, owners)? {
        Some(law) => Box::new(NoisyQuestions::new(law, vehicles, &confidences)?),
        None => Box::new(Questions::new(CountLaw::new(&channel, owners)?, vehicles, &confidences)?),
    })
}

/// Trials of all stations, as far as they are done.
struct Run<'a> {
    vehicles: &'a [u64],
    ranks: TrueRanks,
    sums: Vec<Sums>,
    /// Of the trial at hand.
    estimates: Vec<f64>,
    trials: u64,
    ranks_right: u64,
    all_held: u64,
}

impl<'a> Run<'a> {
    fn new(vehicles: &'a [u64]) -> Self {
        Self {
            vehicles,
            ranks: TrueRanks::new(vehicles),
            sums: vec![Sums::default(); vehicles.len()],
            estimates: vec![0.0; vehicles.len()],
            trials: 0,
            ranks_right: 0,
            all_held: 0,
        }
    }

    fn trial(&mut self, counter: &mut dyn Counter, coins: &mut SeededCoins) -> Result<(), Error> {
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

    fn measured(&self, counter: &dyn Counter) -> Measured {
        let trials = self.trials.max(1) as f64;
        let result =
            |(station, sums): (usize, &Sums)| sums.result(trials, counter.predicted(station), counter.many(station));
        Measured {
            trials: self.trials,
            stations: self.sums.iter().enumerate().map(result).collect(),
            ranks: self.ranks_right as f64 / (trials * self.vehicles.len() as f64),
            simultaneous: self.all_held as f64 / trials,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    error: f64,
    squared: f64,
    held: u64,
    example: f64,
}

impl Sums {
    fn add(&mut self, seen: Seen, yes: f64, first: bool) {
        let error = seen.estimate - yes;
        self.error += error;
        self.squared += error * error;
        self.held += u64::from(seen.holds);
        if first {
            self.example = seen.estimate;
        }
    }

    fn result(&self, trials: f64, predicted: f64, many: bool) -> StationResult {
        StationResult {
            bias: self.error / trials,
            rmse: (self.squared / trials).sqrt(),
            predicted,
            coverage: self.held as f64 / trials,
            example: self.example,
            many,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack::Mechanism;

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
}
