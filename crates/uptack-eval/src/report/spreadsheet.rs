//! Rows and stations as comma-separated values.

use std::fmt::Write as _;

use crate::evaluation::Evaluation;
use crate::measure::StationResult;
use crate::row::{Coverages, Row};
use crate::traffic::{Flag, Station};

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

    fn description(&self, row: &Row) -> [String; 8] {
        [
            row.comparison.to_string(),
            quoted(&row.label),
            quoted(&row.mechanism),
            row.factor.to_string(),
            row.owners.to_string(),
            self.traffic.stations.len().to_string(),
            self.traffic.median().to_string(),
            row.measured.trials.to_string(),
        ]
    }

    fn errors(&self, row: &Row) -> [String; 6] {
        let (worst, worst_rmse) = row.worst();
        [
            row.rmse().to_string(),
            row.predicted().to_string(),
            self.median_error(row).measured.to_string(),
            row.relative_error().to_string(),
            quoted(&self.traffic.stations[worst].name),
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

fn coverages(row: &Row) -> [String; 4] {
    let Coverages { all, small, many } = row.coverages();
    [optional(all), optional(small), optional(many), row.measured.simultaneous.to_string()]
}

fn ranks_and_costs(row: &Row) -> [String; 3] {
    [row.measured.ranks.to_string(), row.bytes.0.to_string(), row.coins.to_string()]
}

fn guarantees(row: &Row) -> [String; 5] {
    let claims = &row.claims;
    let [one, answer, linked, release] =
        [claims.one_aggregator(), claims.answer(), claims.linked(), claims.release()].map(optional);
    [row.honest.to_string(), one, answer, linked, release]
}

fn described(station: &Station) -> String {
    let flags: Vec<String> = station.flags.iter().map(Flag::to_string).collect();
    format!("{},{},{}", quoted(&station.name), station.vehicles, flags.join(" "))
}

fn numbers(result: &StationResult) -> String {
    [result.bias, result.rmse, result.predicted, result.coverage].map(|value| value.to_string()).join(",")
}

fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn quoted(text: &str) -> String {
    // A spreadsheet takes text that starts with one of these as a formula.
    let formula = text.starts_with(['=', '+', '-', '@']);
    if text.contains([',', '"', '\n']) || formula {
        return format!("\"{}{}\"", if formula { "'" } else { "" }, text.replace('"', "\"\""));
    }
    text.to_owned()
}
