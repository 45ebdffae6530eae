//! The whole evaluation: plan, measure, compare.

use uptack::privacy::MOST_OWNERS;
use uptack::simulate::Progress;

use crate::compare::Comparison;
use crate::curve::{CurvePoint, error_against_epsilon};
use crate::error::{Error, Result};
use crate::longitudinal::Longitudinal;
use crate::parallel::joined;
use crate::planned::Plans;
use crate::row::{ErrorAt, Row};
use crate::settings::Settings;
use crate::tasks;
use crate::traffic::Traffic;
use crate::watch::Watch;

/// Everything that was found.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The truth.
    pub traffic: Traffic,
    /// What was asked for.
    pub settings: Settings,
    /// One row for each method, comparison and population.
    pub rows: Vec<Row>,
    /// Error against ε at the median station.
    pub curve: Vec<CurvePoint>,
    /// One day of windows.
    pub longitudinal: Option<Longitudinal>,
    /// Whether the evaluation was finished.
    pub complete: bool,
}

impl Evaluation {
    /// Runs everything. If stopped early, the result has the rows that were begun.
    pub fn run(traffic: Traffic, settings: Settings, watch: &Watch) -> Result<Self> {
        check(&traffic, &settings)?;
        let plans = Plans::default();
        let tasks = tasks::plan(&traffic, &settings, &plans, watch)?;
        let found = tasks::measure_all(&tasks, &traffic.vehicles(), &settings, watch)?;
        let rows = tasks::rows(&tasks, &found, &settings);
        watch.will_compose();
        let (curve, longitudinal) = curve_and_day(&traffic, &settings, &plans, watch.progress())?;
        // The day comes last, and is left out if the evaluation is stopped.
        let complete = longitudinal.is_some();
        Ok(Self { traffic, settings, rows, curve, longitudinal, complete })
    }

    /// The vehicles of every station.
    pub fn vehicles(&self) -> Vec<u64> {
        self.traffic.vehicles()
    }

    /// The rows of one comparison.
    pub fn of(&self, comparison: Comparison) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.comparison == comparison)
    }

    /// The rows of one comparison and population.
    pub(crate) fn at_factor(&self, comparison: Comparison, factor: u64) -> impl Iterator<Item = &Row> {
        self.of(comparison).filter(move |row| row.factor == factor)
    }

    /// The error of a row at the median station.
    pub(crate) fn median_error(&self, row: &Row) -> ErrorAt {
        row.at(self.traffic.median())
    }
}

/// What does not depend on the rows, on two threads.
fn curve_and_day(
    traffic: &Traffic,
    settings: &Settings,
    plans: &Plans,
    progress: &Progress,
) -> Result<(Vec<CurvePoint>, Option<Longitudinal>)> {
    std::thread::scope(|scope| {
        let curve = scope.spawn(|| error_against_epsilon(traffic, settings, plans, progress));
        let day = Longitudinal::of(traffic, settings, plans, progress);
        Ok((joined(curve)?, day?))
    })
}

fn check(traffic: &Traffic, settings: &Settings) -> Result<()> {
    if settings.trials == 0 || settings.trials > u64::from(u32::MAX) {
        return Err(Error::new(format!("{} trials cannot be run", settings.trials)));
    }
    check_crowd(traffic)?;
    check_population(traffic, settings)
}

fn check_crowd(traffic: &Traffic) -> Result<()> {
    let (stations, total) = (traffic.stations.len(), traffic.total());
    if stations >= 2 && total >= 100 {
        return Ok(());
    }
    Err(Error::new(format!("{total} vehicles at {stations} stations are too few to hide among"))
        .with_hint("give at least two stations and 100 vehicles"))
}

fn check_population(traffic: &Traffic, settings: &Settings) -> Result<()> {
    let largest = settings.largest_factor().and_then(|factor| traffic.total().checked_mul(factor));
    match largest {
        Some(owners) if owners <= MOST_OWNERS => Ok(()),
        _ => Err(Error::new(format!("a population of more than {MOST_OWNERS}"))
            .with_hint("give smaller factors or fewer vehicles")),
    }
}
