//! An evaluation as data: one JSON document, and rows and stations as comma-separated values.

use std::fmt::Write as _;

use serde_json::{Value, json};
use uptack::csv;

use crate::evaluation::Evaluation;
use crate::evaluation::{Coverages, EvaluationRow};
use crate::measure::StationResult;
use crate::median_station::EpsilonPoint;
use crate::median_station::{Composed, Longitudinal, Memoized};
use crate::series::DailySeries;
use crate::traffic::{Flag, Station, Traffic};

impl Evaluation {
    /// The evaluation as one JSON document.
    pub fn json(&self) -> Value {
        json!({
            "data": data(&self.traffic),
            "seed": self.settings.seed,
            "trials": self.settings.trials,
            "complete": self.complete,
            "findings": {
                "choice": self.choice_errors(), "trust": self.best_by_trust(), "growth": self.growth(), "release": self.at_release(),
                "intervals": self.intervals(),
            },
            "rows": self.rows.iter().map(|row| self.row_json(row)).collect::<Vec<_>>(),
            "error_against_epsilon": self.curve.iter().map(curve_point).collect::<Vec<_>>(),
            "longitudinal": self.longitudinal.as_ref().map(longitudinal),
        })
    }

    fn row_json(&self, row: &EvaluationRow) -> Value {
        let median = self.median_error(row);
        let coverage = row.coverages();
        json!({
            "mechanism": row.mechanism,
            "label": row.label,
            "kind": row.kind,
            "honest": row.honest,
            "comparison": row.comparison,
            "factor": row.factor,
            "owners": row.owners,
            "stations": self.traffic.stations.len(),
            "yes": self.traffic.median(),
            "trials": row.measured.trials,
            "rmse": row.rmse(),
            "predicted": row.predicted(),
            "median_station": {"rmse": median.measured, "predicted": median.predicted},
            "relative_error": finite(row.relative_error()),
            "worst": self.worst(row),
            "coverage": coverage.all,
            "coverage_small": coverage.small,
            "coverage_many": coverage.many,
            "simultaneous": row.measured.simultaneous,
            "ranks": row.measured.ranks,
            "bytes": row.bytes.0,
            "answers_all_stations": row.bytes.1,
            "coins": row.coins,
            "views": row.claims.json(),
        })
    }

    fn worst(&self, row: &EvaluationRow) -> Value {
        let (worst, rmse) = row.worst();
        let station = &self.traffic.stations[worst];
        json!({"station": station.name, "vehicles": station.vehicles, "rmse": rmse, "flags": station.flags})
    }
}

fn data(traffic: &Traffic) -> Value {
    let flagged = |flag: Flag| traffic.stations.iter().filter(|station| station.flags.contains(&flag)).count();
    json!({
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
    })
}

fn curve_point(point: &EpsilonPoint) -> Value {
    json!({"label": point.label, "epsilon": point.epsilon, "predicted": point.predicted, "rmse": point.measured})
}

fn longitudinal(day: &Longitudinal) -> Value {
    json!({
        "delta": day.delta,
        "composed": day.composed.iter().map(composed).collect::<Vec<_>>(),
        "memoized": day.memoized.iter().map(memoized).collect::<Vec<_>>(),
        "series": day.series.iter().map(series).collect::<Vec<_>>(),
    })
}

fn series(row: &DailySeries) -> Value {
    json!({
        "label": row.label, "mechanism": row.mechanism, "most": row.most, "linked": row.linked, "delta": row.delta,
        "predicted": row.predicted, "rmse": row.measured,
    })
}

fn composed(part: &Composed) -> Value {
    json!({
        "label": part.label, "mechanism": part.mechanism, "windows": part.windows,
        "epsilon": part.release.map(|(lower, upper)| json!({"lower": lower, "upper": upper})),
        "linked": part.linked, "window_error": part.error,
    })
}

fn memoized(part: &Memoized) -> Value {
    json!({
        "label": part.label, "mechanism": part.mechanism, "window_error": part.window,
        "day_error_fresh": part.fresh, "day_error_memoized": part.memoized,
        "linked_fresh": part.fresh_linked, "linked_memoized": part.memoized_linked,
    })
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

const ROW_HEADER: &str = "row,comparison,label,mechanism,factor,owners,stations,yes,trials,rmse,predicted,median_rmse,\
relative_error,worst_station,worst_rmse,coverage,coverage_small,coverage_many,simultaneous,ranks,bytes,coins,honest,\
one_aggregator_epsilon,answer_epsilon,linked_epsilon,release_epsilon\n";

impl Evaluation {
    /// One line for each row.
    pub(super) fn rows_csv(&self) -> String {
        let mut text = String::from(ROW_HEADER);
        for (number, row) in self.rows.iter().enumerate() {
            let mut cells = vec![number.to_string()];
            cells.extend(self.description(row));
            cells.extend(self.errors(row));
            cells.extend(coverages(row));
            cells.extend(ranks_and_costs(row));
            cells.extend(guarantees(row));
            let _ = writeln!(text, "{}", cells.join(","));
        }
        text
    }

    fn description(&self, row: &EvaluationRow) -> [String; 8] {
        [
            row.comparison.to_string(),
            csv::field(&row.label),
            csv::field(&row.mechanism),
            row.factor.to_string(),
            row.owners.to_string(),
            self.traffic.stations.len().to_string(),
            self.traffic.median().to_string(),
            row.measured.trials.to_string(),
        ]
    }

    fn errors(&self, row: &EvaluationRow) -> [String; 6] {
        let (worst, worst_rmse) = row.worst();
        [
            row.rmse().to_string(),
            row.predicted().to_string(),
            self.median_error(row).measured.to_string(),
            row.relative_error().to_string(),
            csv::field(&self.traffic.stations[worst].name),
            worst_rmse.to_string(),
        ]
    }

    /// Every station of every row; `row` is the number in `rows.csv`.
    pub(super) fn stations_csv(&self) -> String {
        let mut text = String::from("row,station,vehicles,flags,bias,rmse,predicted,coverage\n");
        for (number, row) in self.rows.iter().enumerate() {
            for (station, result) in self.traffic.stations.iter().zip(&row.measured.stations) {
                let _ = writeln!(text, "{number},{},{}", described(station), numbers(result));
            }
        }
        text
    }
}

fn coverages(row: &EvaluationRow) -> [String; 4] {
    let Coverages { all, small, many } = row.coverages();
    [optional(all), optional(small), optional(many), row.measured.simultaneous.to_string()]
}

fn ranks_and_costs(row: &EvaluationRow) -> [String; 3] {
    [row.measured.ranks.to_string(), row.bytes.0.to_string(), row.coins.to_string()]
}

fn guarantees(row: &EvaluationRow) -> [String; 5] {
    let claims = &row.claims;
    let [one, answer, linked, release] =
        [claims.one_aggregator(), claims.answer(), claims.linked(), claims.release()].map(optional);
    [row.honest.to_string(), one, answer, linked, release]
}

fn described(station: &Station) -> String {
    let flags: Vec<String> = station.flags.iter().map(Flag::to_string).collect();
    format!("{},{},{}", csv::field(&station.name), station.vehicles, flags.join(" "))
}

fn numbers(result: &StationResult) -> String {
    [result.bias, result.rmse, result.predicted, result.coverage].map(|value| value.to_string()).join(",")
}

fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
