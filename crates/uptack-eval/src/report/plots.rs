//! All plots of the report: the error against the population and against ε, the coverage of intervals, and single stations.

use std::ops::Range;

use uptack::display;
use uptack_chart::{Axis, Bars, Chart, Dot, Look, Map, Marker, Panel, Scale, Series};

use super::summary::{heading, listed};
use crate::compare::{CHOICE_BY_OWNERS, CHOICE_LINKED, Comparison, planned_choice};
use crate::error::Result;
use crate::evaluation::{ErrorAt, Evaluation, EvaluationRow};
use crate::findings::by_chance;
use crate::measure::{LEVEL, StationResult};
use crate::median_station::EpsilonPoint;
use crate::traffic::Coordinates;

/// A chart or a map.
pub enum Figure {
    /// Lines and points.
    Chart(Chart),
    /// Dots at their places.
    Map(Map),
    /// Bars with intervals.
    Bars(Bars),
}

impl Figure {
    /// As SVG.
    pub fn to_svg(&self) -> String {
        match self {
            Self::Chart(chart) => chart.to_svg(),
            Self::Map(map) => map.to_svg(),
            Self::Bars(bars) => bars.to_svg(),
        }
    }

    /// As PNG.
    #[cfg(feature = "png")]
    pub fn to_png(&self, width: u32) -> std::result::Result<Vec<u8>, uptack_chart::RenderError> {
        match self {
            Self::Chart(chart) => chart.to_png(width),
            Self::Map(map) => map.to_png(width),
            Self::Bars(bars) => bars.to_png(width),
        }
    }
}

impl Evaluation {
    /// All plots, each with its name.
    pub fn plots(&self) -> Result<Vec<(String, Figure)>> {
        let named = |name: String, chart: Chart| (name, Figure::Chart(chart));
        let by_population =
            |comparison: Comparison| named(format!("error-{comparison}"), self.error_against_population(comparison));
        let mut plots: Vec<(String, Figure)> = Comparison::ALL.map(by_population).into();
        plots.push(named("error-epsilon".to_owned(), self.error_against_epsilon()));
        plots.push(named("coverage".to_owned(), self.coverage_chart()));
        if let Some(row) = self.shown().first() {
            plots.extend(self.histogram(row)?.map(|bars| ("histogram".to_owned(), Figure::Bars(bars))));
        }
        plots.extend(self.scatter().map(|chart| named("scatter".to_owned(), chart)));
        plots.extend(self.difference_map().map(|map| ("map".to_owned(), Figure::Map(map))));
        Ok(plots)
    }
}

/// The errors of a method that theory predicts and that were measured.
struct ErrorCurve<'a> {
    label: &'a str,
    points: Vec<ErrorPoint>,
}

/// The two errors at one place of the horizontal axis.
#[derive(Clone, Copy)]
struct ErrorPoint {
    x: f64,
    predicted: f64,
    measured: f64,
}

impl Evaluation {
    pub(super) fn error_against_population(&self, comparison: Comparison) -> Chart {
        let points = self.of(comparison).map(|row| {
            let ErrorAt { predicted, measured } = self.median_error(row);
            (row.label.as_str(), ErrorPoint { x: row.owners as f64, predicted, measured })
        });
        let chart = Chart::new(title(comparison), Axis::new("population (owners)", Scale::Log), error_axis());
        with_curves(chart.subtitled(self.population_subtitle(comparison)), &curves(points))
    }

    fn population_subtitle(&self, comparison: Comparison) -> String {
        let level = self.level(comparison).map(|level| format!("{level}; ")).unwrap_or_default();
        let trials = self.settings.trials;
        let vehicles = self.traffic.median();
        format!("{level}stations with {vehicles} vehicles; lines: theory, points: {trials} trials per station")
    }

    pub(super) fn error_against_epsilon(&self) -> Chart {
        let points = self.curve.iter().map(|point| {
            let EpsilonPoint { epsilon: x, predicted, measured, .. } = *point;
            (point.label.as_str(), ErrorPoint { x, predicted, measured })
        });
        let chart = Chart::new("Error against ε of the release", Axis::new("ε", Scale::Log), error_axis());
        with_curves(chart.subtitled(self.epsilon_subtitle()), &curves(points))
    }

    fn epsilon_subtitle(&self) -> String {
        format!(
            "{} owners, {} vehicles, δ = {}; lines: theory, points: measured",
            display::grouped(self.traffic.total() * self.settings.factors[0]),
            self.traffic.median(),
            display::claim(self.settings.levels.release.delta)
        )
    }
}

fn title(comparison: Comparison) -> String {
    match comparison {
        Comparison::Paper => "Error against population, the paper's settings (guarantees differ)".to_owned(),
        _ => format!("Error against population {}", uncapitalized(heading(comparison))),
    }
}

fn error_axis() -> Axis {
    Axis::new("root mean squared error (vehicles)", Scale::Log)
}

/// One curve for each label, in the order in which the labels come.
fn curves<'a>(points: impl Iterator<Item = (&'a str, ErrorPoint)>) -> Vec<ErrorCurve<'a>> {
    let mut curves: Vec<ErrorCurve<'a>> = Vec::new();
    for (label, point) in points {
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) => curve.points.push(point),
            None => curves.push(ErrorCurve { label, points: vec![point] }),
        }
    }
    curves
}

fn with_curves(chart: Chart, curves: &[ErrorCurve<'_>]) -> Chart {
    let chart = curves.iter().flat_map(ErrorCurve::series).fold(chart, Chart::with);
    coincident(curves)
        .into_iter()
        .fold(chart, |chart, names| chart.noted(format!("One on top of the other: {} coincide.", listed(&names))))
}

impl ErrorCurve<'_> {
    /// The line of theory and the points that were measured, which have one entry in the legend together.
    fn series(&self) -> [Series; 2] {
        let predicted = self.points.iter().map(|point| (point.x, point.predicted));
        let measured = self.points.iter().map(|point| (point.x, point.measured));
        [Series::line("", predicted), Series::points(self.label, measured)]
            .map(|series| series.looking(look(self.label)))
    }

    /// Whether two curves cannot be told apart in a picture, by theory.
    fn coincides(&self, other: &Self) -> bool {
        let close =
            |(a, b): (&ErrorPoint, &ErrorPoint)| a.x == b.x && (a.predicted / b.predicted - 1.0).abs() < VISIBLE;
        self.points.len() == other.points.len() && self.points.iter().zip(&other.points).all(close)
    }
}

/// Curves that differ by less than this share of their value cannot be told apart in a picture.
const VISIBLE: f64 = 0.015;

/// Groups of curves that lie on top of each other.
fn coincident<'a>(curves: &[ErrorCurve<'a>]) -> Vec<Vec<&'a str>> {
    let mut groups: Vec<Vec<&ErrorCurve<'a>>> = Vec::new();
    for curve in curves {
        match groups.iter_mut().find(|group| group[0].coincides(curve)) {
            Some(group) => group.push(curve),
            None => groups.push(vec![curve]),
        }
    }
    let labels = |group: Vec<&ErrorCurve<'a>>| group.into_iter().map(|curve| curve.label).collect();
    groups.into_iter().filter(|group| group.len() > 1).map(labels).collect()
}

fn uncapitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

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

    fn mean_coverage(&self, row: &EvaluationRow) -> f64 {
        let shares = self.stations.iter().map(|&at| row.measured.stations[at].coverage);
        shares.sum::<f64>() / self.stations.len() as f64
    }
}

impl Evaluation {
    pub(super) fn coverage_chart(&self) -> Chart {
        let groups = groups(&self.vehicles());
        let smallest = self.settings.smallest_factor();
        let rows: Vec<&EvaluationRow> = self.of(Comparison::Trust).filter(|row| Some(row.factor) == smallest).collect();
        let trials = rows.iter().map(|row| row.measured.trials).min().unwrap_or(1);
        let chart =
            coverage_axes(trials).level(LEVEL, "95 %").band("99 % of exact intervals' shares", band(&groups, trials));
        rows.into_iter().fold(chart, |chart, row| chart.with(coverage_curve(row, &groups)))
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

fn coverage_curve(row: &EvaluationRow, groups: &[Group]) -> Series {
    let points = groups.iter().map(|group| (group.vehicles, group.mean_coverage(row)));
    Series::both(&row.label, points).looking(look(&row.label))
}

/// 95 % of normal errors are within ±1.96 standard deviations.
const DEVIATIONS: f64 = 1.96;
/// Stations per row if no places are known.
const PER_ROW: usize = 60;

impl Evaluation {
    /// Every station's first estimate against its truth: with one aggregator's noise, and with the owners' coins.
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

    /// The errors of the first trial's estimates: with one aggregator's noise and with the owners' coins, on one scale.
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

    /// One choice among all stations in the smallest population: with one aggregator's noise over a channel, and with the owners'
    /// coins.
    fn shown(&self) -> Vec<&EvaluationRow> {
        let Some(smallest) = self.settings.smallest_factor() else { return Vec::new() };
        let labels = [planned_choice(CHOICE_LINKED[0]), CHOICE_BY_OWNERS.to_owned()];
        let row = |label: &String| self.at_factor(Comparison::Choice, smallest).find(|row| row.label == *label);
        labels.iter().filter_map(row).collect()
    }

    fn differences(&self, row: &EvaluationRow, placed: bool) -> Panel {
        let dots = (0..self.traffic.stations.len()).filter_map(|index| self.difference(row, index, placed)).collect();
        Panel { title: row.label.clone(), dots }
    }

    /// The dot of a station; none if others have a place and it has not.
    fn difference(&self, row: &EvaluationRow, index: usize, placed: bool) -> Option<Dot> {
        let station = &self.traffic.stations[index];
        let Coordinates { longitude, latitude } = if placed { station.place? } else { place_in_rows(index) };
        let value = row.measured.stations[index].example - station.vehicles as f64;
        Some(Dot { longitude, latitude, value, suspect: station.is_suspect() })
    }
}

/// Without coordinates the stations stand in rows, in the order of the file.
fn place_in_rows(index: usize) -> Coordinates {
    let (row, column) = (index / PER_ROW, index % PER_ROW);
    Coordinates { longitude: column as f64 / PER_ROW as f64, latitude: -(row as f64) / PER_ROW as f64 }
}

fn scatter_axes() -> Chart {
    Chart::new(
        "Truth against estimate, one point per station",
        Axis::new("vehicles (truth)", Scale::Root),
        Axis::new("vehicles (estimate)", Scale::Root),
    )
}

fn first_estimates(row: &EvaluationRow) -> Series {
    let points = row.measured.stations.iter().map(|station| (station.vehicles as f64, station.example));
    Series::points(&row.label, points).looking(look(&row.label).marked(Marker::Dot))
}

/// For every truth, the range in which theory expects estimates.
fn spread(row: &EvaluationRow) -> Vec<(f64, f64, f64)> {
    let range = |station: &StationResult| {
        let (truth, reach) = (station.vehicles as f64, DEVIATIONS * station.predicted);
        (truth, truth - reach, truth + reach)
    };
    let mut band: Vec<(f64, f64, f64)> = row.measured.stations.iter().map(range).collect();
    band.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    band.dedup_by(|a, b| a.0 == b.0);
    band
}

/// The labels of each method; its place is the number of its look.
///
/// Markers repeat after 13 numbers, so no two methods of one figure are 13 places apart. A method in several settings is
/// one method, and no figure shows it twice.
const METHODS: [&[&str]; 30] = [
    &["planned normal form", "normal form, f = ½", "one normal form per station"],
    &["planned blended", "blended, f = ½", "blended"],
    &["planned spread", "spread, two pairs"],
    &["randomized response", "randomized response, truth 85 %"],
    &["generalized randomized response"],
    &["optimized local hashing"],
    &["optimized unary encoding"],
    &["basic RAPPOR"],
    &["Hadamard response"],
    &["planned, one answer"],
    &["planned, several answers"],
    &["sampling and noise"],
    &["first attempt (paired)"],
    &["sampling"],
    &["planned with noise, linked ε ≤ 9", "planned choice with noise, linked ε ≤ 9"],
    &["shuffled randomized response"],
    &[],
    &["planned with noise, linked ε ≤ 7"],
    &["sampling and deniability"],
    &["tuned mechanism"],
    &["cancelling the noise"],
    &[],
    &["curator, discrete Gaussian"],
    &["curator, discrete Laplace"],
    &["Prio with noise, no channel"],
    &["planned with noise, linked ε ≤ 12", "planned choice with noise, linked ε ≤ 12"],
    &["one question per station, with noise"],
    &[],
    &["planned choice with noise, linked ε ≤ 8"],
    &["planned choice, owners' coins"],
];

/// The number of an empty place, for anything that is not a method.
const UNKNOWN: usize = 16;

/// The look of a method by its label.
pub(super) fn look(label: &str) -> Look {
    let known = METHODS.iter().position(|labels| labels.contains(&label));
    Look::numbered(known.unwrap_or(UNKNOWN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Comparison, Levels, methods};
    use crate::planned::{Crowd, Plans};

    #[test]
    fn curves_on_top_of_each_other_are_named_together() {
        let points = [("A", 1.0), ("B", 1.01), ("C", 2.0), ("D", 0.995)];
        let errors = |x: f64, y: f64| ErrorPoint { x, predicted: y, measured: y };
        let points = points.into_iter().flat_map(|(label, y)| [(label, errors(1.0, y)), (label, errors(2.0, y))]);
        let curves = curves(points);
        assert_eq!(coincident(&curves), [["A", "B", "D"]]);
        let axis = || Axis::new("", Scale::Log);
        let chart = with_curves(Chart::new("", axis(), axis()), &curves);
        assert_eq!(chart.notes, ["One on top of the other: A, B and D coincide."]);
    }

    #[test]
    fn no_two_methods_share_a_colour_and_no_two_of_a_figure_a_marker() {
        let crowd = Crowd { owners: 5000, yes: 4 };
        for comparison in Comparison::ALL {
            let methods = methods(comparison, crowd, 50, &Levels::default(), &Plans::default()).unwrap();
            let labels: Vec<&str> = methods.iter().map(|method| method.label.as_str()).collect();
            for (index, label) in labels.iter().enumerate() {
                assert!(METHODS.iter().any(|known| known.contains(label)), "{label} has no look");
                for other in &labels[index + 1..] {
                    let (one, two) = (look(label), look(other));
                    assert!(one.colour() != two.colour() && one.marker != two.marker, "{label} and {other}");
                }
            }
        }
        let mut colours: Vec<&str> = (0..METHODS.len()).map(|number| Look::numbered(number).colour()).collect();
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), METHODS.len());
    }
}
