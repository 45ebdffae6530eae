//! Single stations: truth against estimate, and where the differences are.

use uptack::display;
use uptack_chart::{Axis, Chart, Dot, Map, Marker, Panel, Scale, Series};

use super::looks::look;
use crate::evaluation::Evaluation;
use crate::measure::StationResult;
use crate::row::{Honest, Row};
use crate::traffic::Place;

/// 95 % of normal errors are within ±1.96 standard deviations.
const DEVIATIONS: f64 = 1.96;
/// Stations per row if no places are known.
const PER_ROW: usize = 60;

impl Evaluation {
    /// Every station's first estimate against its truth: with the owners' coins, and with one aggregator's noise.
    pub(super) fn scatter(&self) -> Option<Chart> {
        let rows = self.shown();
        let first = rows.first()?;
        let largest = *self.vehicles().iter().max()? as f64;
        let diagonal = Series::line("estimate = truth", [(0.0, 0.0), (largest, largest)]);
        let chart = scatter_axes()
            .subtitled(format!("first trial, {} owners", display::grouped(first.owners)))
            .band(format!("± 1.96 deviations of {}", first.label), spread(first))
            .with(diagonal.looking(look("")));
        Some(rows.into_iter().map(first_estimates).fold(chart, Chart::with))
    }

    /// The errors of the first trial's estimates: with the owners' coins and with one aggregator's noise, on one scale.
    pub(super) fn difference_map(&self) -> Option<Map> {
        let rows = self.shown();
        let owners = rows.first()?.owners;
        let placed = self.traffic.stations.iter().any(|station| station.place.is_some());
        let order = if placed { "by place" } else { "no places given: in the order of the file" };
        Some(Map {
            title: "Where the estimates are off: estimate − truth".to_owned(),
            subtitle: format!("first trial, {} owners; {order}", display::grouped(owners)),
            unit: "vehicles".to_owned(),
            panels: rows.into_iter().map(|row| self.differences(row, placed)).collect(),
        })
    }

    /// The best rows of the smallest population with the owners' coins, and with one aggregator's noise over a channel.
    fn shown(&self) -> Vec<&Row> {
        let Some(smallest) = self.settings.smallest_factor() else { return Vec::new() };
        let best = |honest| self.best_with_linked(smallest, honest);
        [Honest::Owners, Honest::OneAggregator].into_iter().filter_map(best).collect()
    }

    fn differences(&self, row: &Row, placed: bool) -> Panel {
        let dots = (0..self.traffic.stations.len()).filter_map(|index| self.difference(row, index, placed)).collect();
        Panel { title: row.label.clone(), dots }
    }

    /// The dot of a station; none if others have a place and it has not.
    fn difference(&self, row: &Row, index: usize, placed: bool) -> Option<Dot> {
        let station = &self.traffic.stations[index];
        let Place { longitude, latitude } = if placed { station.place? } else { place_in_rows(index) };
        let value = row.measured.stations[index].example - station.vehicles as f64;
        Some(Dot { longitude, latitude, value, suspect: station.is_suspect() })
    }
}

/// Without coordinates the stations stand in rows, in the order of the file.
fn place_in_rows(index: usize) -> Place {
    let (row, column) = (index / PER_ROW, index % PER_ROW);
    Place { longitude: column as f64 / PER_ROW as f64, latitude: -(row as f64) / PER_ROW as f64 }
}

fn scatter_axes() -> Chart {
    Chart::new(
        "Truth against estimate, one point per station",
        Axis::new("vehicles (truth)", Scale::Root),
        Axis::new("vehicles (estimate)", Scale::Root),
    )
}

fn first_estimates(row: &Row) -> Series {
    let points = row.measured.stations.iter().map(|station| (station.vehicles as f64, station.example));
    Series::points(&row.label, points).looking(look(&row.label).marked(Marker::Dot))
}

/// For every truth, the range in which theory expects estimates.
fn spread(row: &Row) -> Vec<(f64, f64, f64)> {
    let range = |station: &StationResult| {
        let (truth, reach) = (station.vehicles as f64, DEVIATIONS * station.predicted);
        (truth, truth - reach, truth + reach)
    };
    let mut band: Vec<(f64, f64, f64)> = row.measured.stations.iter().map(range).collect();
    band.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    band.dedup_by(|a, b| a.0 == b.0);
    band
}
