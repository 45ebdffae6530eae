//! The main findings from the rows, in a few numbers that anybody can check.

use std::sync::Arc;

use serde::Serialize;

use crate::compare::Comparison;
use crate::evaluation::Evaluation;
use crate::evaluation::{Coverages, EvaluationRow, Honest};
use crate::measure::{LEVEL, TrialResults};
use crate::method::MethodOrigin;

/// How a method's error changes if the population grows and the stations' vehicles do not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// The name of the method.
    pub label: String,
    /// Where the method comes from.
    pub kind: MethodOrigin,
    /// The owners of the smallest and of the largest population.
    pub owners: [u64; 2],
    /// The measured error at the median station in each.
    pub median: [f64; 2],
    /// The measured error over all stations in each.
    pub all: [f64; 2],
}

impl Growth {
    /// The factor by which the population grows.
    pub fn population(&self) -> f64 {
        self.owners[1] as f64 / self.owners[0] as f64
    }

    /// The factors by which the error grows, at the median station and over all stations.
    pub fn errors(&self) -> [f64; 2] {
        [self.median, self.all].map(|[from, to]| to / from)
    }
}

/// The error of a method at equal ε of the release, and who must be honest for that.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorByTrust {
    /// Who must be honest.
    pub honest: Honest,
    /// The name of the method.
    pub label: String,
    /// The mechanism in the notation that every command accepts, if there is a channel.
    pub mechanism: String,
    /// The number of owners.
    pub owners: u64,
    /// The measured error at the median station.
    pub median: f64,
    /// What theory predicts.
    pub predicted: f64,
    /// The ε that is left if nobody is honest; none if that is no guarantee at all.
    pub linked: Option<f64>,
}

/// The error at the median station, at equal guarantee of the release.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtRelease {
    /// The name of the method.
    pub label: String,
    /// Where the method comes from.
    pub kind: MethodOrigin,
    /// The number of owners.
    pub owners: u64,
    /// As measured.
    pub median: f64,
    /// As theory predicts.
    pub predicted: f64,
    /// As measured over all stations.
    pub all: f64,
}

/// How often the intervals hold the truth, over all rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Intervals {
    /// The lowest coverage of a row.
    pub lowest: f64,
    /// The lowest of a row over the stations with fewer than five vehicles.
    pub lowest_small: Option<f64>,
    /// The lowest and the highest of a row over the stations whose rarest informative count expects at least 50.
    pub many: Option<[f64; 2]>,
    /// The share of the trials of all methods in which the simultaneous intervals of all stations held.
    pub simultaneous: f64,
    /// The number of these trials.
    pub trials: u64,
    /// The lowest share of a row.
    pub lowest_simultaneous: f64,
    /// The share below which the worst row falls by chance in one of a thousand such evaluations, if its intervals hold
    /// exactly as often as they say.
    pub by_chance: f64,
}

impl Evaluation {
    /// How errors grow at equal ε of a single answer; nothing if there is only one population.
    pub fn growth(&self) -> Vec<Growth> {
        let (smallest, largest) = (self.settings.smallest_factor(), self.settings.largest_factor());
        let Some((from, to)) = smallest.zip(largest).filter(|(from, to)| from < to) else { return Vec::new() };
        let grown = |row: &EvaluationRow| self.at_factor(Comparison::Answer, to).find(|other| other.label == row.label);
        let rows = self.at_factor(Comparison::Answer, from);
        rows.filter_map(|row| Some(self.growth_between(row, grown(row)?))).collect()
    }

    fn growth_between(&self, from: &EvaluationRow, to: &EvaluationRow) -> Growth {
        let both = [from, to];
        Growth {
            label: from.label.clone(),
            kind: from.kind,
            owners: both.map(|row| row.owners),
            median: both.map(|row| self.median_error(row).measured),
            all: both.map(EvaluationRow::rmse),
        }
    }

    /// The best mechanism under each trust model in the smallest and in the largest population; with one honest
    /// aggregator, also the best one that keeps a guarantee if nobody is honest.
    pub fn best_by_trust(&self) -> Vec<ErrorByTrust> {
        self.extreme_factors().flat_map(|factor| self.best_at(factor)).map(|row| self.error_by_trust(row)).collect()
    }

    fn best_at(&self, factor: u64) -> Vec<&EvaluationRow> {
        let mut best = Vec::new();
        for honest in [Honest::Nobody, Honest::Owners, Honest::OneAggregator, Honest::Curator] {
            let first = least_predicted(self.by_trust(factor, honest));
            best.extend(first);
            if first.is_some_and(|row| honest == Honest::OneAggregator && row.claims.linked().is_none()) {
                best.extend(self.best_with_linked(factor, honest));
            }
        }
        best
    }

    /// The best mechanism under a trust model among those that keep a guarantee if nobody is honest.
    pub(crate) fn best_with_linked(&self, factor: u64, honest: Honest) -> Option<&EvaluationRow> {
        least_predicted(self.by_trust(factor, honest).filter(|row| row.claims.linked().is_some()))
    }

    fn by_trust(&self, factor: u64, honest: Honest) -> impl Iterator<Item = &EvaluationRow> {
        self.at_factor(Comparison::Trust, factor).filter(move |row| row.honest == honest)
    }

    fn error_by_trust(&self, row: &EvaluationRow) -> ErrorByTrust {
        let error = self.median_error(row);
        ErrorByTrust {
            honest: row.honest,
            label: row.label.clone(),
            mechanism: row.mechanism.clone(),
            owners: row.owners,
            median: error.measured,
            predicted: error.predicted,
            linked: row.claims.linked(),
        }
    }

    /// One choice among all stations in the smallest and in the largest population, by every method.
    pub fn choice_errors(&self) -> Vec<ErrorByTrust> {
        self.extreme_factors()
            .flat_map(|factor| self.at_factor(Comparison::Choice, factor))
            .map(|row| self.error_by_trust(row))
            .collect()
    }

    /// The smallest and the largest factor, or the only one.
    fn extreme_factors(&self) -> impl Iterator<Item = u64> + use<> {
        let (smallest, largest) = (self.settings.smallest_factor(), self.settings.largest_factor());
        smallest.into_iter().chain(largest.filter(|_| largest != smallest))
    }

    /// The best planned mechanism and the trusted curators, at equal guarantee of the release and in every population.
    pub fn at_release(&self) -> Vec<AtRelease> {
        let mut found = Vec::new();
        for &factor in &self.settings.factors {
            let planned = self.rows_at_release(factor, MethodOrigin::Family);
            found.extend(planned.min_by(|a, b| a.predicted.total_cmp(&b.predicted)));
            found.extend(self.rows_at_release(factor, MethodOrigin::Curator));
        }
        found
    }

    fn rows_at_release(&self, factor: u64, kind: MethodOrigin) -> impl Iterator<Item = AtRelease> {
        self.at_factor(Comparison::Release, factor)
            .filter(move |row| row.kind == kind)
            .map(|row| self.row_at_release(row))
    }

    fn row_at_release(&self, row: &EvaluationRow) -> AtRelease {
        let error = self.median_error(row);
        AtRelease {
            label: row.label.clone(),
            kind: row.kind,
            owners: row.owners,
            median: error.measured,
            predicted: error.predicted,
            all: row.rmse(),
        }
    }

    /// How often the intervals hold; none without rows.
    pub fn intervals(&self) -> Option<Intervals> {
        let rows: Vec<Coverages> = self.rows.iter().map(EvaluationRow::coverages).collect();
        let measured = self.measured_once();
        let (simultaneous, trials) = simultaneous_share(&measured);
        let fewest = measured.iter().map(|measured| measured.trials).min()?;
        Some(Intervals {
            lowest: least(rows.iter().filter_map(|row| row.all))?,
            lowest_small: least(rows.iter().filter_map(|row| row.small)),
            many: range(rows.iter().filter_map(|row| row.many)),
            simultaneous,
            trials,
            lowest_simultaneous: least(measured.iter().map(|measured| measured.simultaneous))?,
            by_chance: least_by_chance(fewest, LEVEL, RARELY / measured.len() as f64),
        })
    }

    /// The measurements of all rows; one that is in several comparisons is here once.
    fn measured_once(&self) -> Vec<&Arc<TrialResults>> {
        let mut once: Vec<&Arc<TrialResults>> = Vec::new();
        for row in &self.rows {
            if !once.iter().any(|other| Arc::ptr_eq(other, &row.measured)) {
                once.push(&row.measured);
            }
        }
        once
    }
}

/// The chance that some row of an evaluation falls below [`Intervals::by_chance`].
const RARELY: f64 = 1e-3;

fn least_predicted<'a>(rows: impl Iterator<Item = &'a EvaluationRow>) -> Option<&'a EvaluationRow> {
    rows.min_by(|a, b| a.predicted().total_cmp(&b.predicted()))
}

fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.min_by(f64::total_cmp)
}

/// The least and the largest value.
pub(crate) fn range(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    Some([*values.first()?, *values.last()?])
}

/// The share of all trials in which the simultaneous intervals of all stations held, and the number of trials.
fn simultaneous_share(measured: &[&Arc<TrialResults>]) -> (f64, u64) {
    let trials: u64 = measured.iter().map(|measured| measured.trials).sum();
    let held: f64 = measured.iter().map(|measured| measured.simultaneous * measured.trials as f64).sum();
    (held / trials as f64, trials)
}

/// The shares outside of which this many trials of this chance fall with a probability of at most `alpha` on each side.
pub fn by_chance(trials: u64, chance: f64, alpha: f64) -> (f64, f64) {
    (least_by_chance(trials, chance, alpha), 1.0 - least_by_chance(trials, 1.0 - chance, alpha))
}

/// The largest share below which this many trials of this chance fall with a probability of at most `alpha`.
pub fn least_by_chance(trials: u64, chance: f64, alpha: f64) -> f64 {
    let miss = 1.0 - chance;
    // P(misses > m), by subtracting the terms of the binomial law from 0 misses upwards.
    let (mut term, mut left) = (trials as f64 * (-miss).ln_1p(), 1.0);
    for misses in 0..=trials {
        left -= term.exp();
        if left <= alpha {
            return (trials - misses) as f64 / trials as f64;
        }
        term += ((trials - misses) as f64 * miss / ((misses + 1) as f64 * chance)).ln();
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the tails of Binomial(200, 0.05) by another program: P(X ≥ 19) = 0.0058, P(X ≥ 20) = 0.0027.
    #[test]
    fn chance_is_binomial() {
        assert_eq!(least_by_chance(200, 0.95, 0.006), 182.0 / 200.0);
        assert_eq!(least_by_chance(200, 0.95, 0.003), 181.0 / 200.0);
        assert_eq!(least_by_chance(1, 0.95, 0.04), 0.0);
        let (low, high) = by_chance(92_000, 0.95, 0.005);
        // 2.576 standard errors of 0.00072 on either side.
        assert!((low - 0.948_15).abs() < 5e-5 && (high - 0.951_85).abs() < 5e-5, "{low} {high}");
    }
}
