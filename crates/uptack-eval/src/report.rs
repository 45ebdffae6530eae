//! The report: tables, plots, and one page that needs nothing else.

use std::fmt::Write as _;

use serde_json::{Value, json};
use uptack::display;
use uptack_chart::{Axis, Chart, Dot, Look, Map, Panel, Scale, Series};

use crate::compare::Comparison;
use crate::error::Error;
use crate::evaluation::{Evaluation, Row};
use crate::measure::{LEVEL, SMALL};
use crate::traffic::Flag;

/// A file of the report.
pub struct File {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// A plot under its name.
pub enum Plot {
    /// Lines and points.
    Chart(Chart),
    /// Places.
    Map(Map),
}

impl Plot {
    /// As SVG.
    pub fn to_svg(&self) -> String {
        match self {
            Self::Chart(chart) => chart.to_svg(),
            Self::Map(map) => map.to_svg(),
        }
    }

    /// As PNG.
    #[cfg(feature = "png")]
    pub fn to_png(&self, width: u32) -> Result<Vec<u8>, uptack_chart::RenderError> {
        match self {
            Self::Chart(chart) => chart.to_png(width),
            Self::Map(map) => map.to_png(width),
        }
    }
}

#[cfg(feature = "png")]
const PNG_WIDTH: u32 = 1280;

impl Evaluation {
    /// All files of the report. With the feature `png` each plot is there twice, as SVG and as PNG.
    pub fn files(&self) -> Result<Vec<File>, Error> {
        let plots = self.plots();
        let mut files = vec![
            File { name: "index.html".to_owned(), bytes: self.html(&plots).into_bytes() },
            File { name: "rows.csv".to_owned(), bytes: self.rows_csv().into_bytes() },
            File { name: "stations.csv".to_owned(), bytes: self.stations_csv().into_bytes() },
            File { name: "evaluation.json".to_owned(), bytes: format!("{:#}\n", self.json()).into_bytes() },
        ];
        for (name, plot) in &plots {
            files.push(File { name: format!("{name}.svg"), bytes: plot.to_svg().into_bytes() });
            #[cfg(feature = "png")]
            files.push(File { name: format!("{name}.png"), bytes: plot.to_png(PNG_WIDTH)? });
        }
        Ok(files)
    }

    /// One JSON document.
    pub fn json(&self) -> Value {
        let traffic = &self.traffic;
        let flagged = |flag: Flag| traffic.stations.iter().filter(|station| station.flags.contains(&flag)).count();
        json!({
            "data": {
                "origin": traffic.origin,
                "stations": traffic.stations.len(),
                "silent_stations": traffic.silent,
                "vehicles": traffic.total(),
                "median": traffic.median(),
                "flags": {
                    "imputed": flagged(Flag::Imputed), "partly-observed": flagged(Flag::PartlyObserved),
                    "outage": flagged(Flag::Outage), "never-quiet": flagged(Flag::NeverQuiet),
                    "outlier": flagged(Flag::Outlier),
                },
            },
            "seed": self.settings.seed,
            "trials": self.settings.trials,
            "complete": self.complete,
            "findings": {"growth": self.growth(), "release": self.at_release(), "intervals": self.intervals()},
            "rows": self.rows.iter().map(|row| self.row_json(row)).collect::<Vec<_>>(),
            "error_against_epsilon": self.curve.iter().map(|point| json!({
                "label": point.label, "epsilon": point.epsilon, "predicted": point.predicted, "rmse": point.measured,
            })).collect::<Vec<_>>(),
            "longitudinal": self.longitudinal_json(),
        })
    }

    fn row_json(&self, row: &Row) -> Value {
        let vehicles = self.vehicles();
        let (worst, worst_rmse) = row.worst();
        let station = &self.traffic.stations[worst];
        let (median_rmse, median_predicted) = row.at(&vehicles, self.traffic.median());
        json!({
            "mechanism": row.mechanism,
            "label": row.label,
            "kind": row.kind,
            "comparison": row.comparison,
            "factor": row.factor,
            "owners": row.owners,
            "stations": vehicles.len(),
            "yes": self.traffic.median(),
            "trials": row.measured.trials,
            "rmse": row.rmse(),
            "predicted": row.predicted(),
            "median_station": {"rmse": median_rmse, "predicted": median_predicted},
            "relative_error": finite(row.relative_error(&vehicles)),
            "worst": {"station": station.name, "vehicles": station.vehicles, "rmse": worst_rmse,
                "flags": station.flags},
            "coverage": row.coverage(&vehicles, |_, _| true),
            "coverage_small": row.coverage(&vehicles, |_, yes| yes < SMALL),
            "coverage_many": row.coverage(&vehicles, |station, _| station.many),
            "simultaneous": row.measured.simultaneous,
            "ranks": row.measured.ranks,
            "bytes": row.bytes.0,
            "answers_all_stations": row.bytes.1,
            "coins": row.coins,
            "views": row.claims.json(),
        })
    }

    fn longitudinal_json(&self) -> Value {
        let Some(day) = &self.longitudinal else { return Value::Null };
        json!({
            "delta": day.delta,
            "composed": day.composed.iter().map(|part| json!({
                "label": part.label, "mechanism": part.mechanism, "windows": part.windows,
                "epsilon": part.release.map(|(lower, upper)| json!({"lower": lower, "upper": upper})),
                "linked": part.linked, "window_error": part.error,
            })).collect::<Vec<_>>(),
            "memoized": day.memoized.iter().map(|part| json!({
                "label": part.label, "mechanism": part.mechanism, "window_error": part.window,
                "day_error_fresh": part.fresh, "day_error_memoized": part.memoized,
                "linked_fresh": part.fresh_linked, "linked_memoized": part.memoized_linked,
            })).collect::<Vec<_>>(),
        })
    }

    fn rows_csv(&self) -> String {
        let mut text = String::from(
            "row,comparison,label,mechanism,factor,owners,stations,yes,trials,rmse,predicted,median_rmse,relative_error,\
             worst_station,worst_rmse,coverage,coverage_small,coverage_many,simultaneous,ranks,bytes,coins,\
             answer_epsilon,linked_epsilon,release_epsilon\n",
        );
        let vehicles = self.vehicles();
        for (number, row) in self.rows.iter().enumerate() {
            let (worst, worst_rmse) = row.worst();
            let cells = [
                number.to_string(),
                row.comparison.to_string(),
                quoted(&row.label),
                quoted(&row.mechanism),
                row.factor.to_string(),
                row.owners.to_string(),
                vehicles.len().to_string(),
                self.traffic.median().to_string(),
                row.measured.trials.to_string(),
                row.rmse().to_string(),
                row.predicted().to_string(),
                row.at(&vehicles, self.traffic.median()).0.to_string(),
                row.relative_error(&vehicles).to_string(),
                quoted(&self.traffic.stations[worst].name),
                worst_rmse.to_string(),
                optional(row.coverage(&vehicles, |_, _| true)),
                optional(row.coverage(&vehicles, |_, yes| yes < SMALL)),
                optional(row.coverage(&vehicles, |station, _| station.many)),
                row.measured.simultaneous.to_string(),
                row.measured.ranks.to_string(),
                row.bytes.0.to_string(),
                row.coins.to_string(),
                optional(row.claims.answer()),
                optional(row.claims.linked()),
                optional(row.claims.release()),
            ];
            let _ = writeln!(text, "{}", cells.join(","));
        }
        text
    }

    /// Every station of every row; `row` is the number in `rows.csv`.
    fn stations_csv(&self) -> String {
        let mut text = String::from("row,station,vehicles,flags,bias,rmse,predicted,coverage\n");
        for (number, row) in self.rows.iter().enumerate() {
            for (station, result) in self.traffic.stations.iter().zip(&row.measured.stations) {
                let flags: Vec<String> = station.flags.iter().map(Flag::to_string).collect();
                let _ = writeln!(
                    text,
                    "{number},{},{},{},{},{},{},{}",
                    quoted(&station.name),
                    station.vehicles,
                    flags.join(" "),
                    result.bias,
                    result.rmse,
                    result.predicted,
                    result.coverage
                );
            }
        }
        text
    }

    /// All plots under their names.
    pub fn plots(&self) -> Vec<(&'static str, Plot)> {
        let mut plots = vec![
            ("error-release", Plot::Chart(self.error_against_population(Comparison::Release))),
            ("error-answer", Plot::Chart(self.error_against_population(Comparison::Answer))),
            ("error-linked", Plot::Chart(self.error_against_population(Comparison::Linked))),
            ("error-paper", Plot::Chart(self.error_against_population(Comparison::Paper))),
            ("error-epsilon", Plot::Chart(self.epsilon_chart())),
            ("coverage", Plot::Chart(self.coverage_chart())),
        ];
        plots.extend(self.map().map(|map| ("map", Plot::Map(map))));
        plots
    }

    fn error_against_population(&self, comparison: Comparison) -> Chart {
        let (vehicles, yes) = (self.vehicles(), self.traffic.median());
        let title = match comparison {
            Comparison::Paper => "Error against population, the paper's settings (guarantees differ)".to_owned(),
            Comparison::Release => "Error against population at equal release guarantee".to_owned(),
            Comparison::Answer => "Error against population at equal ε of a single answer".to_owned(),
            Comparison::Linked => "Error against population at equal ε of the whole report".to_owned(),
        };
        let levels = &self.settings.levels;
        let at = match comparison {
            Comparison::Paper => String::new(),
            Comparison::Release => {
                let (epsilon, delta) = (levels.release.epsilon, levels.release.delta);
                format!("ε = {}, δ = {}; ", display::claim(epsilon), display::claim(delta))
            }
            Comparison::Answer => format!("ε = {}; ", display::claim(levels.answer)),
            Comparison::Linked => format!("ε = {}; ", display::claim(levels.linked)),
        };
        let trials = self.settings.trials;
        let mut chart = Chart::new(
            title,
            Axis::new("population (owners)", Scale::Log),
            Axis::new("root mean squared error (vehicles)", Scale::Log),
        )
        .subtitled(format!("{at}stations with {yes} vehicles; lines: theory, points: {trials} trials a station"));
        let mut labels: Vec<&str> = Vec::new();
        for row in self.of(comparison) {
            if !labels.contains(&row.label.as_str()) {
                labels.push(&row.label);
            }
        }
        for (index, label) in labels.into_iter().enumerate() {
            let rows: Vec<&Row> = self.of(comparison).filter(|row| row.label == label).collect();
            let look = Look::numbered(index);
            let theory = rows.iter().map(|row| (row.owners as f64, row.at(&vehicles, yes).1));
            let measured = rows.iter().map(|row| (row.owners as f64, row.at(&vehicles, yes).0));
            let mut both = Series::both(label, measured).looking(look);
            both.draw = uptack_chart::Draw::Points;
            // The line of theory carries the name in the legend together with the marker of what was measured.
            chart = chart.with(Series::line("", theory).looking(look)).with(both);
        }
        chart
    }

    fn epsilon_chart(&self) -> Chart {
        let mut chart = Chart::new(
            "Error against ε of the release",
            Axis::new("ε", Scale::Log),
            Axis::new("root mean squared error (vehicles)", Scale::Log),
        )
        .subtitled(format!(
            "{} owners, {} vehicles, δ = {}; lines: theory, points: measured",
            self.traffic.total() * self.settings.factors[0],
            self.traffic.median(),
            display::claim(self.settings.levels.release.delta)
        ));
        let mut labels: Vec<&str> = Vec::new();
        for point in &self.curve {
            if !labels.contains(&point.label.as_str()) {
                labels.push(&point.label);
            }
        }
        for (index, label) in labels.into_iter().enumerate() {
            let look = Look::numbered(index);
            let points = || self.curve.iter().filter(move |point| point.label == label);
            chart = chart
                .with(Series::line("", points().map(|point| (point.epsilon, point.predicted))).looking(look))
                .with(Series::points(label, points().map(|point| (point.epsilon, point.measured))).looking(look));
        }
        chart
    }

    fn coverage_chart(&self) -> Chart {
        let vehicles = self.vehicles();
        let numbered = |value: fn(&Self, &Row, &[u64]) -> Option<f64>| -> Vec<(f64, f64)> {
            let rows = self.rows.iter().enumerate();
            rows.filter_map(|(index, row)| Some((index as f64, value(self, row, &vehicles)?))).collect()
        };
        let last = self.rows.len().max(2) as f64 - 0.5;
        Chart::new(
            "Coverage of the 95 % intervals, a point a row",
            Axis::new("row (in the order of rows.csv)", Scale::Linear).within(-0.5, last),
            Axis::new("share of intervals that hold the truth", Scale::Linear).within(0.92, 1.003),
        )
        .subtitled("every method, comparison and population")
        .level(LEVEL, "95 %")
        .with(Series::points("all stations", numbered(|_, row, vehicles| row.coverage(vehicles, |_, _| true))))
        .with(Series::points(
            "stations with fewer than 5 vehicles",
            numbered(|_, row, vehicles| row.coverage(vehicles, |_, yes| yes < SMALL)),
        ))
        .with(Series::points(
            "stations whose rarest informative count expects 50 or more",
            numbered(|_, row, vehicles| row.coverage(vehicles, |station, _| station.many)),
        ))
    }

    /// Truth and the first trial's estimates of the best planned method, with the population as it is.
    fn map(&self) -> Option<Map> {
        let row = self.of(Comparison::Release).next()?;
        let placed = self.traffic.stations.iter().any(|station| station.place.is_some());
        let dot = |index: usize, value: f64| {
            let station = &self.traffic.stations[index];
            let (longitude, latitude) = match station.place {
                Some(place) => (place.longitude, place.latitude),
                None if placed => return None,
                // Without coordinates the stations stand in rows, in the order of the file.
                None => ((index % 60) as f64 / 60.0, -((index / 60) as f64) / 60.0),
            };
            let suspect = station.flags.iter().any(|flag| flag.is_suspect());
            Some(Dot { longitude, latitude, value, suspect })
        };
        let dots = |value: &dyn Fn(usize) -> f64| {
            (0..self.traffic.stations.len()).filter_map(|index| dot(index, value(index))).collect()
        };
        let where_ = if placed { "by place" } else { "no places given: in the order of the file" };
        Some(Map {
            title: "Stations: the truth and one estimate".to_owned(),
            subtitle: format!("{}, {} owners; {where_}", row.label, row.owners),
            unit: "vehicles".to_owned(),
            panels: vec![
                Panel { title: "truth".to_owned(), dots: dots(&|index| self.traffic.stations[index].vehicles as f64) },
                Panel { title: "estimate".to_owned(), dots: dots(&|index| row.measured.stations[index].example) },
            ],
        })
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn optional(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn quoted(text: &str) -> String {
    // A spreadsheet takes text that starts with one of these for a formula.
    let formula = text.starts_with(['=', '+', '-', '@']);
    if text.contains([',', '"', '\n']) || formula {
        return format!("\"{}{}\"", if formula { "'" } else { "" }, text.replace('"', "\"\""));
    }
    text.to_owned()
}
