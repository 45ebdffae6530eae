//! One line of the tables.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::compare::Comparison;
use crate::measure::{Measured, StationResult};
use crate::method::{Claims, Kind};

/// One method in one comparison with one population.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it has in common with others.
    pub comparison: Comparison,
    /// What people call it.
    pub label: String,
    /// Where it comes from.
    pub kind: Kind,
    /// In words that every command accepts, where there is a channel.
    pub mechanism: String,
    /// By how much the population has grown.
    pub factor: u64,
    /// All owners.
    pub owners: u64,
    /// What came of it.
    pub measured: Arc<Measured>,
    /// What it gives away.
    pub claims: Arc<Claims>,
    /// Bytes an owner, and whether they answer for all stations at once.
    pub bytes: (u64, bool),
    /// Coins an owner.
    pub coins: u64,
    /// Who must be honest for what it has in common with others.
    pub honest: Honest,
}

impl Row {
    /// The root of the mean squared error over all stations.
    pub fn rmse(&self) -> f64 {
        self.root_mean(|station| station.rmse)
    }

    /// What theory says it is.
    pub fn predicted(&self) -> f64 {
        self.root_mean(|station| station.predicted)
    }

    fn root_mean(&self, value: impl Fn(&StationResult) -> f64) -> f64 {
        let stations = &self.measured.stations;
        (stations.iter().map(|station| value(station).powi(2)).sum::<f64>() / stations.len() as f64).sqrt()
    }

    /// The error at all stations that have this many vehicles, taken together.
    pub fn at(&self, vehicles: &[u64], yes: u64) -> ErrorAt {
        let same = || self.with_vehicles(vehicles).filter(|(_, other)| *other == yes).map(|(station, _)| station);
        let squared: f64 = same().map(|station| station.rmse * station.rmse).sum();
        let predicted = same().next().map_or(0.0, |station| station.predicted);
        ErrorAt { measured: (squared / (same().count().max(1) as f64)).sqrt(), predicted }
    }

    /// The median over the stations that have vehicles of error over vehicles.
    pub fn relative_error(&self, vehicles: &[u64]) -> f64 {
        let some = self.with_vehicles(vehicles).filter(|(_, yes)| *yes > 0);
        let mut ratios: Vec<f64> = some.map(|(station, yes)| station.rmse / yes as f64).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios.get(ratios.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
    }

    /// The station with the largest error, and its error.
    pub fn worst(&self) -> (usize, f64) {
        let numbered = self.measured.stations.iter().enumerate();
        let worst = numbered.max_by(|(_, a), (_, b)| a.rmse.total_cmp(&b.rmse));
        worst.map_or((0, f64::NAN), |(index, station)| (index, station.rmse))
    }

    /// The mean coverage over the stations that are counted in; none where there are none.
    pub fn coverage(&self, vehicles: &[u64], counted: impl Fn(&StationResult, u64) -> bool) -> Option<f64> {
        let chosen = self.with_vehicles(vehicles).filter(|(station, yes)| counted(station, *yes));
        let (sum, count) = chosen.fold((0.0, 0.0), |(sum, count), (station, _)| (sum + station.coverage, count + 1.0));
        (count > 0.0).then(|| sum / count)
    }

    fn with_vehicles<'a>(&'a self, vehicles: &'a [u64]) -> impl Iterator<Item = (&'a StationResult, u64)> {
        self.measured.stations.iter().zip(vehicles.iter().copied())
    }
}

/// The error at stations of equally many vehicles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorAt {
    /// As measured.
    pub measured: f64,
    /// As theory predicts.
    pub predicted: f64,
}

/// Who must be honest for the guarantee that a row is compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Honest {
    /// It holds against whoever sees the report itself.
    Nobody,
    /// Parties that hold different answers must not put them together.
    Holders,
    /// The other owners toss their coins as they should, and nobody sees a single report.
    Owners,
    /// One of the two aggregators adds its noise and keeps it and its shares to itself.
    OneAggregator,
    /// A party that sees every truth.
    Curator,
}

impl fmt::Display for Honest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nobody => "nobody",
            Self::Holders => "holders of answers",
            Self::Owners => "the owners",
            Self::OneAggregator => "one aggregator",
            Self::Curator => "the curator",
        })
    }
}
