//! What the rows say, in the few numbers that somebody may hold us to.

use std::sync::Arc;

use serde::Serialize;

use crate::compare::Comparison;
use crate::evaluation::Evaluation;
use crate::measure::{LEVEL, Measured, SMALL, StationResult};
use crate::method::Kind;
use crate::row::{Honest, Row};

/// How a method's error changes as the population grows and the stations' vehicles do not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// What people call the method.
    pub label: String,
    /// Where it comes from.
    pub kind: Kind,
    /// The owners of the smallest and of the largest population.
    pub owners: [u64; 2],
    /// The measured error at the median station in each.
    pub median: [f64; 2],
    /// The measured error over all stations in each.
    pub all: [f64; 2],
}

impl Growth {
    /// By which factor the population grows.
    pub fn population(&self) -> f64 {
        self.owners[1] as f64 / self.owners[0] as f64
    }

    /// By which factor the error grows: at the median station, and over all of them.
    pub fn errors(&self) -> [f64; 2] {
        [self.median, self.all].map(|[from, to]| to / from)
    }
}

/// The best mechanism under one trust model, at equal ε of the release.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BestByTrust {
    /// Who must be honest.
    pub honest: Honest,
    /// What people call the method.
    pub label: String,
    /// In words that every command accepts, where there is a channel.
    pub mechanism: String,
    /// All owners.
    pub owners: u64,
    /// The measured error at the median station.
    pub median: f64,
    /// What theory predicts.
    pub predicted: f64,
    /// What it gives away if nobody is honest; none where that is everything.
    pub linked: Option<f64>,
}

/// The error at the median station, at equal guarantee of the release.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtRelease {
    /// What people call the method.
    pub label: String,
    /// Where it comes from.
    pub kind: Kind,
    /// All owners.
    pub owners: u64,
    /// As measured.
    pub median: f64,
    /// As theory predicts.
    pub predicted: f64,
    /// As measured over all stations.
    pub all: f64,
}

/// What the intervals hold, over all rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Intervals {
    /// The lowest coverage of a row.
    pub lowest: f64,
    /// The lowest of a row over the stations with fewer than five vehicles.
    pub lowest_small: Option<f64>,
    /// The lowest and the highest of a row over the stations whose rarest informative count expects at least 50.
    pub many: Option<[f64; 2]>,
    /// The share of all methods' trials in which the simultaneous intervals of all stations held.
    pub simultaneous: f64,
    /// How many such trials there were.
    pub trials: u64,
    /// The lowest share of a row.
    pub lowest_simultaneous: f64,
    /// The least share that a row of as many trials has by chance once in a thousand such evaluations, if its intervals
    /// hold exactly as often as they say.
    pub by_chance: f64,
}

impl Evaluation {
    /// How errors grow at equal ε of a single answer; none with one population.
    pub fn growth(&self) -> Vec<Growth> {
        let (Some(&least), Some(&most)) = (self.settings.factors.iter().min(), self.settings.factors.iter().max())
        else {
            return Vec::new();
        };
        if least == most {
            return Vec::new();
        }
        let of = |factor: u64| self.of(Comparison::Answer).filter(move |row| row.factor == factor);
        let pair = |from: &Row| {
            let to = of(most).find(|to| to.label == from.label)?;
            Some(self.growth_between(from, to))
        };
        of(least).filter_map(pair).collect()
    }

    fn growth_between(&self, from: &Row, to: &Row) -> Growth {
        let vehicles = self.vehicles();
        let both = [from, to];
        Growth {
            label: from.label.clone(),
            kind: from.kind,
            owners: both.map(|row| row.owners),
            median: both.map(|row| row.at(&vehicles, self.traffic.median()).measured),
            all: both.map(Row::rmse),
        }
    }

    /// The best mechanism under each trust model in the smallest and in the largest population; with one honest
    /// aggregator, also the best that keeps a promise if nobody is honest.
    pub fn best_by_trust(&self) -> Vec<BestByTrust> {
        let (least, most) = (self.settings.factors.iter().min(), self.settings.factors.iter().max());
        let factors = least.into_iter().chain(most.filter(|most| Some(*most) != least));
        factors.flat_map(|&factor| self.best_at(factor)).collect()
    }

    fn best_at(&self, factor: u64) -> Vec<BestByTrust> {
        let rows =
            |honest: Honest| self.of(Comparison::Trust).filter(move |row| row.factor == factor && row.honest == honest);
        let mut best = Vec::new();
        for honest in [Honest::Nobody, Honest::Owners, Honest::OneAggregator, Honest::Curator] {
            let first = least_predicted(rows(honest));
            best.extend(first);
            if first.is_some_and(|row| honest == Honest::OneAggregator && row.claims.linked().is_none()) {
                best.extend(least_predicted(rows(honest).filter(|row| row.claims.linked().is_some())));
            }
        }
        best.into_iter().map(|row| self.best(row)).collect()
    }

    fn best(&self, row: &Row) -> BestByTrust {
        let error = row.at(&self.vehicles(), self.traffic.median());
        BestByTrust {
            honest: row.honest,
            label: row.label.clone(),
            mechanism: row.mechanism.clone(),
            owners: row.owners,
            median: error.measured,
            predicted: error.predicted,
            linked: row.claims.linked(),
        }
    }

    /// The best planned mechanism and the trusted curators, at equal guarantee of the release and in every population.
    pub fn at_release(&self) -> Vec<AtRelease> {
        let mut found = Vec::new();
        for &factor in &self.settings.factors {
            let rows = || self.of(Comparison::Release).filter(move |row| row.factor == factor);
            let of = |row: &Row| self.row_at_release(row);
            let planned = rows().filter(|row| row.kind == Kind::Family).map(of);
            found.extend(planned.min_by(|a, b| a.predicted.total_cmp(&b.predicted)));
            found.extend(rows().filter(|row| row.kind == Kind::Curator).map(of));
        }
        found
    }

    fn row_at_release(&self, row: &Row) -> AtRelease {
        let error = row.at(&self.vehicles(), self.traffic.median());
        AtRelease {
            label: row.label.clone(),
            kind: row.kind,
            owners: row.owners,
            median: error.measured,
            predicted: error.predicted,
            all: row.rmse(),
        }
    }

    /// What the intervals hold; none without rows.
    pub fn intervals(&self) -> Option<Intervals> {
        let vehicles = self.vehicles();
        let coverages = |counted: fn(&StationResult, u64) -> bool| -> Vec<f64> {
            self.rows.iter().filter_map(|row| row.coverage(&vehicles, counted)).collect()
        };
        let many = coverages(|station, _| station.many);
        let once = self.measured_once();
        let trials: u64 = once.iter().map(|measured| measured.trials).sum();
        let held: f64 = once.iter().map(|measured| measured.simultaneous * measured.trials as f64).sum();
        let together: Vec<f64> = once.iter().map(|measured| measured.simultaneous).collect();
        Some(Intervals {
            lowest: least(&coverages(|_, _| true))?,
            lowest_small: least(&coverages(|_, yes| yes < SMALL)),
            many: least(&many).zip(many.iter().copied().max_by(f64::total_cmp)).map(|(low, high)| [low, high]),
            simultaneous: held / trials as f64,
            trials,
            lowest_simultaneous: least(&together)?,
            by_chance: least_by_chance(once.iter().map(|one| one.trials).min()?, LEVEL, RARELY / once.len() as f64),
        })
    }

    /// What is in several comparisons was measured once.
    fn measured_once(&self) -> Vec<&Arc<Measured>> {
        let mut once: Vec<&Arc<Measured>> = Vec::new();
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

fn least_predicted<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    rows.min_by(|a, b| a.predicted().total_cmp(&b.predicted()))
}

fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().min_by(f64::total_cmp)
}

/// The shares outside of which as many trials of this chance fall with a probability of at most `alpha` on either side.
pub fn by_chance(trials: u64, chance: f64, alpha: f64) -> (f64, f64) {
    (least_by_chance(trials, chance, alpha), 1.0 - least_by_chance(trials, 1.0 - chance, alpha))
}

/// The largest share below which as many trials of this chance fall with a probability of at most `alpha`.
pub fn least_by_chance(trials: u64, chance: f64, alpha: f64) -> f64 {
    let miss = 1.0 - chance;
    // P(misses > m) by the terms of the binomial law from none upwards.
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
