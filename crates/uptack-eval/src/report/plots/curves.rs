//! The error against the population and against ε.

use uptack::display;
use uptack_chart::{Axis, Chart, Scale, Series};

use super::looks::look;
use crate::compare::Comparison;
use crate::curve::CurvePoint;
use crate::evaluation::Evaluation;
use crate::report::text::{heading, listed};
use crate::row::ErrorAt;

/// The errors of a method that theory predicts and that were measured.
struct Curve<'a> {
    label: &'a str,
    points: Vec<Errors>,
}

/// The two errors at one place of the horizontal axis.
#[derive(Clone, Copy)]
struct Errors {
    x: f64,
    predicted: f64,
    measured: f64,
}

impl Evaluation {
    pub(super) fn error_against_population(&self, comparison: Comparison) -> Chart {
        let points = self.of(comparison).map(|row| {
            let ErrorAt { predicted, measured } = self.median_error(row);
            (row.label.as_str(), Errors { x: row.owners as f64, predicted, measured })
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
            let CurvePoint { epsilon: x, predicted, measured, .. } = *point;
            (point.label.as_str(), Errors { x, predicted, measured })
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
fn curves<'a>(points: impl Iterator<Item = (&'a str, Errors)>) -> Vec<Curve<'a>> {
    let mut curves: Vec<Curve<'a>> = Vec::new();
    for (label, point) in points {
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { label, points: vec![point] }),
        }
    }
    curves
}

fn with_curves(chart: Chart, curves: &[Curve<'_>]) -> Chart {
    let chart = curves.iter().flat_map(Curve::series).fold(chart, Chart::with);
    coincident(curves)
        .into_iter()
        .fold(chart, |chart, names| chart.noted(format!("One on top of the other: {} coincide.", listed(&names))))
}

impl Curve<'_> {
    /// The line of theory and the points that were measured, which have one entry in the legend together.
    fn series(&self) -> [Series; 2] {
        let predicted = self.points.iter().map(|point| (point.x, point.predicted));
        let measured = self.points.iter().map(|point| (point.x, point.measured));
        [Series::line("", predicted), Series::points(self.label, measured)]
            .map(|series| series.looking(look(self.label)))
    }

    /// Whether two curves cannot be told apart in a picture, by theory.
    fn coincides(&self, other: &Self) -> bool {
        let close = |(a, b): (&Errors, &Errors)| a.x == b.x && (a.predicted / b.predicted - 1.0).abs() < VISIBLE;
        self.points.len() == other.points.len() && self.points.iter().zip(&other.points).all(close)
    }
}

/// Curves that differ by less than this share of their value cannot be told apart in a picture.
const VISIBLE: f64 = 0.015;

/// Groups of curves that lie on top of each other.
fn coincident<'a>(curves: &[Curve<'a>]) -> Vec<Vec<&'a str>> {
    let mut groups: Vec<Vec<&Curve<'a>>> = Vec::new();
    for curve in curves {
        match groups.iter_mut().find(|group| group[0].coincides(curve)) {
            Some(group) => group.push(curve),
            None => groups.push(vec![curve]),
        }
    }
    let labels = |group: Vec<&Curve<'a>>| group.into_iter().map(|curve| curve.label).collect();
    groups.into_iter().filter(|group| group.len() > 1).map(labels).collect()
}

fn uncapitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_on_top_of_each_other_are_named_together() {
        let points = [("A", 1.0), ("B", 1.01), ("C", 2.0), ("D", 0.995)];
        let errors = |x: f64, y: f64| Errors { x, predicted: y, measured: y };
        let points = points.into_iter().flat_map(|(label, y)| [(label, errors(1.0, y)), (label, errors(2.0, y))]);
        let curves = curves(points);
        assert_eq!(coincident(&curves), [["A", "B", "D"]]);
        let axis = || Axis::new("", Scale::Log);
        let chart = with_curves(Chart::new("", axis(), axis()), &curves);
        assert_eq!(chart.notes, ["One on top of the other: A, B and D coincide."]);
    }
}
