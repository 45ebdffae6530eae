//! Trials: every station's question is asked, answered and estimated, many times.

mod count_law;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use uptack::SeededCoins;
use uptack::estimate::Confidence;
use uptack::estimate::many::{Sharing, simultaneous};
use uptack::simulate::Progress;

use crate::error::Error;
use crate::method::{Curator, Law, Method};
use count_law::{Confidences, CountLaw, Coverage};

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
    let each = Confidence::new(LEVEL)?;
    let all = simultaneous(each, vehicles.len(), Sharing::Bonferroni)?;
    let confidences = Confidences { each, all };
    let mut counter: Box<dyn Counter> = match (&method.law, method.channel()?) {
        (Law::Curator(curator), _) => Box::new(Noise::new(curator, &confidences)),
        (_, Some(channel)) => Box::new(Questions::new(CountLaw::new(&channel, owners)?, vehicles, &confidences)?),
        (_, None) => return Err(Error::new("a method without a channel and without a curator")),
    };
    let ranks = TrueRanks::new(vehicles);
    let mut sums = vec![Sums::default(); vehicles.len()];
    let (mut done, mut right, mut together) = (0, 0u64, 0u64);
    let mut estimates = vec![0.0; vehicles.len()];
    while done < trials && !progress.stopped() {
        let mut coins = SeededCoins::stream(seed, (stream << 32) + done);
        let mut all_hold = true;
        for (station, &yes) in vehicles.iter().enumerate() {
            let seen = counter.ask(station, yes, &mut coins)?;
            sums[station].add(seen, yes as f64, done == 0);
            all_hold &= seen.holds_together;
            estimates[station] = seen.estimate;
        }
        right += ranks.right(&estimates);
        together += u64::from(all_hold);
        done += 1;
        progress.advance();
    }
    let count = done.max(1) as f64;
    let result =
        |(station, sums): (usize, &Sums)| sums.result(count, counter.predicted(station), counter.many(station));
    Ok(Measured {
        trials: done,
        stations: sums.iter().enumerate().map(result).collect(),
        ranks: right as f64 / (count * vehicles.len() as f64),
        simultaneous: together as f64 / count,
    })
}

/// One estimate and what its intervals are worth.
#[derive(Clone, Copy)]
struct Seen {
    estimate: f64,
    holds: bool,
    holds_together: bool,
}

/// Something that answers for a station.
trait Counter {
    fn ask(&mut self, station: usize, yes: u64, coins: &mut SeededCoins) -> Result<Seen, Error>;
    fn predicted(&self, station: usize) -> f64;
    fn many(&self, station: usize) -> bool;
}

/// Every owner answers by a channel.
struct Questions {
    law: CountLaw,
    /// One for each distinct number of vehicles.
    coverages: Vec<Coverage>,
    /// Which of them is a station's.
    index: Vec<usize>,
    many: Vec<bool>,
}

impl Questions {
    fn new(law: CountLaw, vehicles: &[u64], confidences: &Confidences) -> Result<Self, Error> {
        let (mut coverages, mut known) = (Vec::new(), HashMap::new());
        let mut index = Vec::with_capacity(vehicles.len());
        for &yes in vehicles {
            if let Entry::Vacant(entry) = known.entry(yes) {
                entry.insert(coverages.len());
                coverages.push(Coverage::new(&law, yes, confidences)?);
            }
            index.push(known[&yes]);
        }
        let many = vehicles.iter().map(|&yes| law.smallest_expected(yes as f64) >= MANY).collect();
        Ok(Self { law, coverages, index, many })
    }
}

impl Counter for Questions {
    fn ask(&mut self, station: usize, yes: u64, coins: &mut SeededCoins) -> Result<Seen, Error> {
        let counts = self.law.draw(yes, coins)?;
        let estimate = self.law.estimate(&counts);
        let coverage = &self.coverages[self.index[station]];
        let (holds, holds_together) = (coverage.each(&counts), coverage.all(&counts));
        Ok(Seen { estimate, holds, holds_together })
    }

    fn predicted(&self, station: usize) -> f64 {
        self.coverages[self.index[station]].sd()
    }

    fn many(&self, station: usize) -> bool {
        self.many[station]
    }
}

/// A curator adds noise.
struct Noise<'a> {
    curator: &'a Curator,
    each: u64,
    all: u64,
}

impl<'a> Noise<'a> {
    fn new(curator: &'a Curator, confidences: &Confidences) -> Self {
        let width = |confidence: Confidence| curator.half_width(confidence.miss());
        Self { curator, each: width(confidences.each), all: width(confidences.all) }
    }
}

impl Counter for Noise<'_> {
    fn ask(&mut self, _: usize, yes: u64, coins: &mut SeededCoins) -> Result<Seen, Error> {
        let noise = self.curator.draw(coins)?;
        let size = noise.unsigned_abs();
        Ok(Seen { estimate: yes as f64 + noise as f64, holds: size <= self.each, holds_together: size <= self.all })
    }

    fn predicted(&self, _: usize) -> f64 {
        self.curator.sd()
    }

    fn many(&self, _: usize) -> bool {
        false
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

/// The places that a station may have among all, by falling vehicles; stations of equally many share theirs.
struct TrueRanks(Vec<(usize, usize)>);

impl TrueRanks {
    fn new(vehicles: &[u64]) -> Self {
        let mut sorted = vehicles.to_vec();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let places =
            |yes: &u64| (sorted.partition_point(|other| other > yes), sorted.partition_point(|other| other >= yes));
        Self(vehicles.iter().map(places).collect())
    }

    /// How many stations the estimates put in a right place.
    fn right(&self, estimates: &[f64]) -> u64 {
        let mut order: Vec<usize> = (0..estimates.len()).collect();
        order.sort_unstable_by(|&a, &b| estimates[b].total_cmp(&estimates[a]).then(a.cmp(&b)));
        let right = order.into_iter().enumerate().filter(|&(place, station)| {
            let (from, to) = self.0[station];
            (from..to).contains(&place)
        });
        right.count() as u64
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
        for text in ["randomized-response(t=0.75)", "normal-form(f=1,r=1e-3)", "blended(0,0.25,0.25,0,0.5,1e-4,1e-4)"] {
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
    fn a_plain_count_has_every_rank_right_and_noise_does_not() {
        let ranks = TrueRanks::new(&[5, 1, 5, 0]);
        assert_eq!(ranks.right(&[5.0, 1.0, 5.0, 0.0]), 4);
        assert_eq!(ranks.right(&[4.0, 1.0, 9.0, 0.0]), 4, "equals may change places");
        assert_eq!(ranks.right(&[0.0, 1.0, 9.0, 7.0]), 2);
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
