//! Rows and stations as comma-separated values.

use std::fmt::Write as _;

use crate::evaluation::Evaluation;
use crate::measure::SMALL;
use crate::row::Row;
use crate::traffic::Flag;

const ROW_HEADER: &str = "row,comparison,label,mechanism,factor,owners,stations,yes,trials,rmse,predicted,median_rmse,\
relative_error,worst_station,worst_rmse,coverage,coverage_small,coverage_many,simultaneous,ranks,bytes,coins,honest,\
one_aggregator_epsilon,answer_epsilon,linked_epsilon,release_epsilon\n";

impl Evaluation {
    /// A line for each row.
    pub(super) fn rows_csv(&self) -> String {
        let mut text = String::from(ROW_HEADER);
        for (number, row) in self.rows.iter().enumerate() {
            let cells =
                [number.to_string()].into_iter().chain(self.what(row)).chain(self.found(row)).chain(given_away(row));
            let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join(","));
        }
        text
    }

    fn what(&self, row: &Row) -> [String; 8] {
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

    fn found(&self, row: &Row) -> [String; 13] {
        let vehicles = self.vehicles();
        let (worst, worst_rmse) = row.worst();
        [
            row.rmse().to_string(),
            row.predicted().to_string(),
            row.at(&vehicles, self.traffic.median()).measured.to_string(),
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
        ]
    }

    /// Every station of every row; `row` is the number in `rows.csv`.
    pub(super) fn stations_csv(&self) -> String {
        let mut text = String::from("row,station,vehicles,flags,bias,rmse,predicted,coverage\n");
        for (number, row) in self.rows.iter().enumerate() {
            for (station, result) in self.traffic.stations.iter().zip(&row.measured.stations) {
                let flags: Vec<String> = station.flags.iter().map(Flag::to_string).collect();
                let (name, flags) = (quoted(&station.name), flags.join(" "));
                let _ = write!(text, "{number},{name},{},{flags},", station.vehicles);
                let numbers = [result.bias, result.rmse, result.predicted, result.coverage];
                let _ = writeln!(text, "{}", numbers.map(|value| value.to_string()).join(","));
            }
        }
        text
    }
}

fn given_away(row: &Row) -> [String; 5] {
    let claims = &row.claims;
    let [one, answer, linked, release] =
        [claims.one_aggregator(), claims.answer(), claims.linked(), claims.release()].map(optional);
    [row.honest.to_string(), one, answer, linked, release]
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
