//! Single stations: truth against estimate, and where the differences are.

use uptack::display;
use uptack_chart::{Axis, Chart, Dot, Map, Marker, Panel, Scale, Series};

use super::looks::look;
use crate::compare::Comparison;
use crate::evaluation::Evaluation;
use crate::method::Kind;
use crate::row::Row;

/// Between ±1.96 deviations lie 95 % of normal errors.
const DEVIATIONS: f64 = 1.96;
/// Stations in a row where no places are known.
const PER_ROW: usize = 60;

impl Evaluation {
    /// Every station's first estimate of the best planned method against its truth.
    pub(super) fn scatter(&self) -> Option<Chart> {
        let row = self.of(Comparison::Release).next()?;
        let (vehicles, stations) = (self.vehicles(), &row.measured.stations);
        let mut band: Vec<(f64, f64, f64)> = Vec::new();
        for (&truth, station) in vehicles.iter().zip(stations) {
            let (truth, reach) = (truth as f64, DEVIATIONS * station.predicted);
            band.push((truth, truth - reach, truth + reach));
        }
        band.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        band.dedup_by(|a, b| a.0 == b.0);
        let largest = band.last()?.0;
        let points = vehicles.iter().zip(stations).map(|(&truth, station)| (truth as f64, station.example));
        Some(
            Chart::new(
                "Truth against estimate, one point a station",
                Axis::new("vehicles (truth)", Scale::Root),
                Axis::new("vehicles (estimate)", Scale::Root),
            )
            .subtitled(format!("first trial, {} owners", display::grouped(row.owners)))
            .band("truth ± 1.96 standard deviations, by theory", band)
            .with(Series::line("estimate = truth", [(0.0, 0.0), (largest, largest)]).looking(look("")))
            .with(Series::points(&row.label, points).looking(look(&row.label).marked(Marker::Dot))),
        )
    }

    /// What the first trial's estimates are off by: of the best planned method and of the best curator, on one scale.
    pub(super) fn difference_map(&self) -> Option<Map> {
        let ours = self.of(Comparison::Release).next()?;
        let curator = self.of(Comparison::Release).filter(|row| row.kind == Kind::Curator && row.factor == ours.factor);
        let curator = curator.min_by(|a, b| a.predicted().total_cmp(&b.predicted()));
        let placed = self.traffic.stations.iter().any(|station| station.place.is_some());
        let order = if placed { "by place" } else { "no places given: in the order of the file" };
        Some(Map {
            title: "Where the estimates are off: estimate − truth".to_owned(),
            subtitle: format!("first trial, {} owners; {order}", display::grouped(ours.owners)),
            unit: "vehicles too many".to_owned(),
            panels: [Some(ours), curator].into_iter().flatten().map(|row| self.differences(row, placed)).collect(),
        })
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
