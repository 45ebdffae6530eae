//! The error against the population and against ε.

use uptack::display;
use uptack_chart::{Axis, Chart, Scale, Series};

use super::looks::look;
use crate::compare::Comparison;
use crate::evaluation::Evaluation;
use crate::report::text::{heading, level, listed};

/// What theory predicts of a method and what was measured, at the same places.
struct Curve<'a> {
    label: &'a str,
    /// Place, prediction, measurement.
    points: Vec<(f64, f64, f64)>,
}

impl Evaluation {
    pub(super) fn error_against_population(&self, comparison: Comparison) -> Chart {
        let (vehicles, yes) = (self.vehicles(), self.traffic.median());
        let title = match comparison {
            Comparison::Paper => "Error against population, the paper's settings (guarantees differ)".to_owned(),
            _ => format!("Error against population {}", uncapitalized(heading(comparison))),
        };
        let at = level(comparison, &self.settings.levels).map_or(String::new(), |level| format!("{level}; "));
        let trials = self.settings.trials;
        let chart = Chart::new(title, Axis::new("population (owners)", Scale::Log), error_axis())
            .subtitled(format!("{at}stations with {yes} vehicles; lines: theory, points: {trials} trials a station"));
        let points = self.of(comparison).map(|row| {
            let error = row.at(&vehicles, yes);
            (row.label.as_str(), (row.owners as f64, error.predicted, error.measured))
        });
        drawn(chart, &curves(points))
    }

    pub(super) fn error_against_epsilon(&self) -> Chart {
        let chart =
            Chart::new("Error against ε of the release", Axis::new("ε", Scale::Log), error_axis()).subtitled(format!(
                "{} owners, {} vehicles, δ = {}; lines: theory, points: measured",
                display::grouped(self.traffic.total() * self.settings.factors[0]),
                self.traffic.median(),
                display::claim(self.settings.levels.release.delta)
            ));
        let points =
            self.curve.iter().map(|point| (point.label.as_str(), (point.epsilon, point.predicted, point.measured)));
        drawn(chart, &curves(points))
    }
}

fn error_axis() -> Axis {
    Axis::new("root mean squared error (vehicles)", Scale::Log)
}

/// One curve for each label, in the order in which they come.
fn curves<'a>(points: impl Iterator<Item = (&'a str, (f64, f64, f64))>) -> Vec<Curve<'a>> {
    let mut curves: Vec<Curve<'a>> = Vec::new();
    for (label, point) in points {
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { label, points: vec![point] }),
        }
    }
    curves
}

/// The line of theory carries the name in the legend together with the marker of what was measured.
fn drawn(chart: Chart, curves: &[Curve<'_>]) -> Chart {
    let chart = curves.iter().fold(chart, |chart, curve| {
        let look = look(curve.label);
        let theory = curve.points.iter().map(|&(x, predicted, _)| (x, predicted));
        let measured = curve.points.iter().map(|&(x, _, measured)| (x, measured));
        chart.with(Series::line("", theory).looking(look)).with(Series::points(curve.label, measured).looking(look))
    });
    coincident(curves)
        .into_iter()
        .fold(chart, |chart, names| chart.noted(format!("One on top of the other: {} coincide.", listed(&names))))
}

/// Curves that differ by less than this share of their value cannot be told apart in a picture.
const TELLS: f64 = 0.015;

/// Groups of curves that lie on top of each other, by theory.
fn coincident<'a>(curves: &[Curve<'a>]) -> Vec<Vec<&'a str>> {
    let mut groups: Vec<(&Curve<'a>, Vec<&'a str>)> = Vec::new();
    for curve in curves {
        match groups.iter_mut().find(|(first, _)| same(first, curve)) {
            Some((_, names)) => names.push(curve.label),
            None => groups.push((curve, vec![curve.label])),
        }
    }
    groups.into_iter().map(|(_, names)| names).filter(|names| names.len() > 1).collect()
}

fn same(one: &Curve<'_>, other: &Curve<'_>) -> bool {
    let close = |(a, b): (&(f64, f64, f64), &(f64, f64, f64))| a.0 == b.0 && (a.1 / b.1 - 1.0).abs() < TELLS;
    one.points.len() == other.points.len() && one.points.iter().zip(&other.points).all(close)
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
        let points = points.into_iter().flat_map(|(label, y)| [(label, (1.0, y, y)), (label, (2.0, y, y))]);
        let curves = curves(points);
        assert_eq!(coincident(&curves), [["A", "B", "D"]]);
        let axis = || Axis::new("", Scale::Log);
        let chart = drawn(Chart::new("", axis(), axis()), &curves);
        assert_eq!(chart.notes, ["One on top of the other: A, B and D coincide."]);
    }
}
