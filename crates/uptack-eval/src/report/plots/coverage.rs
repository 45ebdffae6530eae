//! How often intervals hold the truth, by the number of vehicles at a station.

use std::ops::Range;

use uptack_chart::{Axis, Chart, Scale, Series};

use super::looks::look;
use crate::compare::Comparison;
use crate::evaluation::Evaluation;
use crate::findings::by_chance;
use crate::measure::LEVEL;
use crate::row::Row;

/// The least number of vehicles of each group of stations.
const GROUPS: [u64; 13] = [0, 1, 2, 3, 4, 5, 7, 10, 15, 25, 50, 100, 200];
/// The chance that a share falls outside of the band on one side: once in two hundred, so once in a hundred on either.
const OUTSIDE: f64 = 0.005;

/// Stations with about the same number of vehicles.
struct Group {
    stations: Vec<usize>,
    /// Their mean number of vehicles.
    vehicles: f64,
}

impl Group {
    /// The stations with these numbers of vehicles; none if there are none.
    fn of(vehicles: &[u64], range: Range<u64>) -> Option<Self> {
        let stations: Vec<usize> = (0..vehicles.len()).filter(|&at| range.contains(&vehicles[at])).collect();
        let sum: u64 = stations.iter().map(|&at| vehicles[at]).sum();
        let mean = sum as f64 / stations.len() as f64;
        (!stations.is_empty()).then_some(Self { stations, vehicles: mean })
    }

    fn mean_coverage(&self, row: &Row) -> f64 {
        let shares = self.stations.iter().map(|&at| row.measured.stations[at].coverage);
        shares.sum::<f64>() / self.stations.len() as f64
    }
}

impl Evaluation {
    pub(super) fn coverage_chart(&self) -> Chart {
        let groups = groups(&self.vehicles());
        let smallest = self.settings.smallest_factor();
        let rows: Vec<&Row> = self.of(Comparison::Trust).filter(|row| Some(row.factor) == smallest).collect();
        let trials = rows.iter().map(|row| row.measured.trials).min().unwrap_or(1);
        let chart =
            coverage_axes(trials).level(LEVEL, "95 %").band("99 % of exact intervals' shares", band(&groups, trials));
        rows.into_iter().fold(chart, |chart, row| chart.with(curve(row, &groups)))
    }
}

fn coverage_axes(trials: u64) -> Chart {
    Chart::new(
        "Coverage of the 95 % intervals by the size of a station",
        Axis::new("vehicles at the station", Scale::Root),
        Axis::new("share of intervals that hold the truth", Scale::Linear),
    )
    .subtitled(format!(
        "at equal ε of the release, smallest population, {trials} trials per station; stations of about equally many \
         vehicles together"
    ))
}

fn groups(vehicles: &[u64]) -> Vec<Group> {
    let ends = GROUPS.iter().skip(1).copied().chain([u64::MAX]);
    GROUPS.into_iter().zip(ends).filter_map(|(from, to)| Group::of(vehicles, from..to)).collect()
}

/// The shares of exact intervals that are expected by chance.
fn band(groups: &[Group], trials: u64) -> Vec<(f64, f64, f64)> {
    let ends = |group: &Group| {
        let (low, high) = by_chance(trials * group.stations.len() as u64, LEVEL, OUTSIDE);
        (group.vehicles, low, high)
    };
    groups.iter().map(ends).collect()
}

fn curve(row: &Row, groups: &[Group]) -> Series {
    let points = groups.iter().map(|group| (group.vehicles, group.mean_coverage(row)));
    Series::both(&row.label, points).looking(look(&row.label))
}
