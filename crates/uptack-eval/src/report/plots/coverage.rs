//! How often intervals hold the truth, by the number of vehicles at a station.

use uptack_chart::{Axis, Chart, Draw, Scale, Series};

use super::looks::look;
use crate::compare::Comparison;
use crate::evaluation::Evaluation;
use crate::findings::by_chance;
use crate::measure::LEVEL;
use crate::row::Row;

/// The least number of vehicles of each group of stations.
const GROUPS: [u64; 13] = [0, 1, 2, 3, 4, 5, 7, 10, 15, 25, 50, 100, 200];
/// Shares fall outside of the band once in a hundred times, on either side once in two hundred.
const OUTSIDE: f64 = 0.005;

/// Stations of about equally many vehicles.
struct Group {
    stations: Vec<usize>,
    /// Their mean number of vehicles.
    vehicles: f64,
}

impl Evaluation {
    pub(super) fn coverage_chart(&self) -> Chart {
        let groups = groups(&self.vehicles());
        let smallest = self.settings.factors.iter().min();
        let rows: Vec<&Row> = self.of(Comparison::Trust).filter(|row| Some(&row.factor) == smallest).collect();
        let trials = rows.iter().map(|row| row.measured.trials).min().unwrap_or(1);
        let chart = Chart::new(
            "Coverage of the 95 % intervals by the size of a station",
            Axis::new("vehicles at the station", Scale::Root),
            Axis::new("share of intervals that hold the truth", Scale::Linear),
        )
        .subtitled(format!(
            "at equal ε of the release, smallest population, {trials} trials a station; stations of about \
             equally many vehicles together"
        ))
        .level(LEVEL, "95 %")
        .band("99 % of exact intervals' shares", band(&groups, trials));
        rows.into_iter().fold(chart, |chart, row| chart.with(curve(row, &groups)))
    }
}

fn groups(vehicles: &[u64]) -> Vec<Group> {
    let ends = GROUPS.iter().skip(1).copied().chain([u64::MAX]);
    let group = |(from, to): (u64, u64)| {
        let stations: Vec<usize> = (0..vehicles.len()).filter(|&at| (from..to).contains(&vehicles[at])).collect();
        let sum: u64 = stations.iter().map(|&at| vehicles[at]).sum();
        let mean = sum as f64 / stations.len() as f64;
        (!stations.is_empty()).then_some(Group { stations, vehicles: mean })
    };
    GROUPS.into_iter().zip(ends).filter_map(group).collect()
}

fn band(groups: &[Group], trials: u64) -> Vec<(f64, f64, f64)> {
    let ends = |group: &Group| {
        let (low, high) = by_chance(trials * group.stations.len() as u64, LEVEL, OUTSIDE);
        (group.vehicles, low, high)
    };
    groups.iter().map(ends).collect()
}

fn curve(row: &Row, groups: &[Group]) -> Series {
    let point = |group: &Group| {
        let shares = group.stations.iter().map(|&at| row.measured.stations[at].coverage);
        (group.vehicles, shares.sum::<f64>() / group.stations.len() as f64)
    };
    let series = Series::points(&row.label, groups.iter().map(point)).looking(look(&row.label));
    Series { draw: Draw::Both, ..series }
}
