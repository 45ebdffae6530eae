//! An evaluation as one JSON document.

use serde_json::{Value, json};

use crate::curve::CurvePoint;
use crate::evaluation::Evaluation;
use crate::longitudinal::{Composed, Longitudinal, Memoized};
use crate::row::Row;
use crate::traffic::{Flag, Traffic};

impl Evaluation {
    /// The evaluation as one JSON document.
    pub fn json(&self) -> Value {
        json!({
            "data": data(&self.traffic),
            "seed": self.settings.seed,
            "trials": self.settings.trials,
            "complete": self.complete,
            "findings": {
                "trust": self.best_by_trust(), "growth": self.growth(), "release": self.at_release(),
                "intervals": self.intervals(),
            },
            "rows": self.rows.iter().map(|row| self.row_json(row)).collect::<Vec<_>>(),
            "error_against_epsilon": self.curve.iter().map(curve_point).collect::<Vec<_>>(),
            "longitudinal": self.longitudinal.as_ref().map(longitudinal),
        })
    }

    fn row_json(&self, row: &Row) -> Value {
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

    fn worst(&self, row: &Row) -> Value {
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

fn curve_point(point: &CurvePoint) -> Value {
    json!({"label": point.label, "epsilon": point.epsilon, "predicted": point.predicted, "rmse": point.measured})
}

fn longitudinal(day: &Longitudinal) -> Value {
    json!({
        "delta": day.delta,
        "composed": day.composed.iter().map(composed).collect::<Vec<_>>(),
        "memoized": day.memoized.iter().map(memoized).collect::<Vec<_>>(),
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
