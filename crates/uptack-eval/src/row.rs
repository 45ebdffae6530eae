//! One row of the tables.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::compare::Comparison;
use crate::measure::{Measured, SMALL, StationResult};
use crate::method::{Claims, Kind};

/// One method in one comparison with one population.
#[derive(Clone, Debug)]
pub struct Row {
    /// The comparison it belongs to.
    pub comparison: Comparison,
    /// The name of the method.
    pub label: String,
    /// Where the method comes from.
    pub kind: Kind,
    /// The mechanism in the notation that every command accepts, if there is a channel.
    pub mechanism: String,
    /// The factor by which the population has grown.
    pub factor: u64,
    /// The number of owners.
    pub owners: u64,
    /// The result of the trials.
    pub measured: Arc<Measured>,
    /// What the method gives away.
    pub claims: Arc<Claims>,
    /// Bytes per owner, and whether they answer for all stations at once.
    pub bytes: (u64, bool),
    /// Coins per owner.
    pub coins: u64,
    /// Who must be honest for the guarantee of the comparison.
    pub honest: Honest,
}

impl Row {
    /// The root of the mean squared error over all stations.
    pub fn rmse(&self) -> f64 {
        self.root_mean(|station| station.rmse)
    }

    /// What theory predicts for it.
    pub fn predicted(&self) -> f64 {
        self.root_mean(|station| station.predicted)
    }

    fn root_mean(&self, value: impl Fn(&StationResult) -> f64) -> f64 {
        let stations = &self.measured.stations;
        let squares: f64 = stations.iter().map(|station| value(station).powi(2)).sum();
        (squares / stations.len() as f64).sqrt()
    }

    /// The error over all stations that have this many vehicles.
    pub fn at(&self, vehicles: u64) -> ErrorAt {
        let stations = &self.measured.stations;
        let same: Vec<&StationResult> = stations.iter().filter(|station| station.vehicles == vehicles).collect();
        let squares: f64 = same.iter().map(|station| station.rmse * station.rmse).sum();
        let measured = (squares / same.len().max(1) as f64).sqrt();
        ErrorAt { measured, predicted: same.first().map_or(0.0, |station| station.predicted) }
    }

    /// The median of error over vehicles, over the stations that have vehicles.
    pub fn relative_error(&self) -> f64 {
        let crossed = self.measured.stations.iter().filter(|station| station.vehicles > 0);
        let mut ratios: Vec<f64> = crossed.map(|station| station.rmse / station.vehicles as f64).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios.get(ratios.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
    }

    /// The station with the largest error, and its error.
    pub fn worst(&self) -> (usize, f64) {
        let numbered = self.measured.stations.iter().enumerate();
        let worst = numbered.max_by(|(_, a), (_, b)| a.rmse.total_cmp(&b.rmse));
        worst.map_or((0, f64::NAN), |(index, station)| (index, station.rmse))
    }

    /// How often the intervals hold the truth.
    pub(crate) fn coverages(&self) -> Coverages {
        Coverages {
            all: self.coverage(|_| true),
            small: self.coverage(|station| station.vehicles < SMALL),
            many: self.coverage(|station| station.many),
        }
    }

    /// The mean coverage over the stations that are counted; none if there are none.
    fn coverage(&self, counted: impl Fn(&StationResult) -> bool) -> Option<f64> {
        let counted = self.measured.stations.iter().filter(|station| counted(station));
        let (sum, count) = counted.fold((0.0, 0.0), |(sum, count), station| (sum + station.coverage, count + 1.0));
        (count > 0.0).then(|| sum / count)
    }
}

/// The mean coverages of a row, each over some of the stations; none if there are no such stations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coverages {
    /// Over all stations.
    pub(crate) all: Option<f64>,
    /// Over the stations with fewer than [`SMALL`] vehicles.
    pub(crate) small: Option<f64>,
    /// Over the stations whose rarest informative count expects enough for the interval to be nearly exact.
    pub(crate) many: Option<f64>,
}

/// The error at stations that have the same number of vehicles.
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
    /// Nobody: it holds against anyone who sees the report itself.
    Nobody,
    /// The parties that hold different answers of an owner: they must not put them together.
    Holders,
    /// The other owners: they toss their coins as they should, and nobody sees a single report.
    Owners,
    /// One of the two aggregators: it adds its noise, and keeps the noise and its shares to itself.
    OneAggregator,
    /// The curator, who sees every truth.
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
