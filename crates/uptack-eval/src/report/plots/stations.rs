//! Single stations: truth against estimate, and where the differences are.

use uptack::display;
use uptack_chart::{Axis, Chart, Dot, Map, Marker, Panel, Scale, Series};

use super::looks::look;
use crate::compare::Comparison;
use crate::evaluation::Evaluation;
use crate::measure::StationResult;
use crate::row::{Honest, Row};

/// Between ±1.96 deviations lie 95 % of normal errors.
const DEVIATIONS: f64 = 1.96;
/// Stations in a row where no places are known.
const PER_ROW: usize = 60;

impl Evaluation {
    /// Every station's first estimate against its truth: with the owners' coins, and with one aggregator's noise.
    pub(super) fn scatter(&self) -> Option<Chart> {
        let rows = self.shown();
        let ours = rows.first()?;
        let vehicles = self.vehicles();
        let largest = *vehicles.iter().max()? as f64;
        let chart = Chart::new(
            "Truth against estimate, one point a station",
            Axis::new("vehicles (truth)", Scale::Root),
            Axis::new("vehicles (estimate)", Scale::Root),
        )
        .subtitled(format!("first trial, {} owners", display::grouped(ours.owners)))
        .band(format!("± 1.96 deviations of {}", ours.label), spread(ours, &vehicles))
        .with(Series::line("estimate = truth", [(0.0, 0.0), (largest, largest)]).looking(look("")));
        let dots = |row: &Row| {
            let points = vehicles.iter().zip(&row.measured.stations);
            Series::points(&row.label, points.map(|(&truth, station)| (truth as f64, station.example)))
                .looking(look(&row.label).marked(Marker::Dot))
        };
        Some(rows.iter().fold(chart, |chart, row| chart.with(dots(row))))
    }

    /// What the first trial's estimates are off by: of the owners' coins and of one aggregator's noise, on one scale.
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

    /// Of the owners' coins, and of one aggregator's noise over a channel: the best in the smallest population.
    fn shown(&self) -> Vec<&Row> {
        let smallest = self.settings.factors.iter().min();
        let rows = |honest: Honest| {
            let rows = self.of(Comparison::Trust).filter(move |row| row.honest == honest);
            let local = rows.filter(|row| Some(&row.factor) == smallest && row.claims.linked().is_some());
            local.min_by(|a, b| a.predicted().total_cmp(&b.predicted()))
        };
        [Honest::Owners, Honest::OneAggregator].into_iter().filter_map(rows).collect()
    }

    fn differences(&self, row: &Row, placed: bool) -> Panel {
        let dots = (0..self.traffic.stations.len()).filter_map(|index| self.difference(row, index, placed)).collect();
        Panel { title: row.label.clone(), dots }
    }

    fn difference(&self, row: &Row, index: usize, placed: bool) -> Option<Dot> {
        let station = &self.traffic.stations[index];
        let (longitude, latitude) = match station.place {
            Some(place) => (place.longitude, place.latitude),
            None if placed => return None,
            // Without coordinates the stations stand in rows, in the order of the file.
            None => ((index % PER_ROW) as f64 / PER_ROW as f64, -((index / PER_ROW) as f64) / PER_ROW as f64),
        };
        let value = row.measured.stations[index].example - station.vehicles as f64;
        Some(Dot { longitude, latitude, value, suspect: station.flags.iter().any(|flag| flag.is_suspect()) })
    }
}

/// Around every truth as far as theory expects estimates.
fn spread(row: &Row, vehicles: &[u64]) -> Vec<(f64, f64, f64)> {
    let reach = |(&truth, station): (&u64, &StationResult)| {
        let (truth, reach) = (truth as f64, DEVIATIONS * station.predicted);
        (truth, truth - reach, truth + reach)
    };
    let mut band: Vec<(f64, f64, f64)> = vehicles.iter().zip(&row.measured.stations).map(reach).collect();
    band.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    band.dedup_by(|a, b| a.0 == b.0);
    band
}
