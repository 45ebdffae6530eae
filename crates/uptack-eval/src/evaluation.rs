//! The whole evaluation: plan, measure, compare.

use uptack::simulate::Progress;

use crate::compare::Comparison;
use crate::curve::{CurvePoint, error_against_epsilon};
use crate::error::Error;
use crate::longitudinal::Longitudinal;
use crate::planned::Plans;
use crate::row::Row;
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
    /// One row a method, comparison and population.
    pub rows: Vec<Row>,
    /// Error against ε at the median station.
    pub curve: Vec<CurvePoint>,
    /// One day of windows.
    pub longitudinal: Option<Longitudinal>,
    /// Whether all of it was done.
    pub complete: bool,
}

impl Evaluation {
    /// Runs everything; stopped early, it has the rows that were begun.
    pub fn run(traffic: Traffic, settings: Settings, watch: &Watch) -> Result<Self, Error> {
        check(&traffic, &settings)?;
        let plans = Plans::default();
        let tasks = tasks::plan(&traffic, &settings, &plans, watch)?;
        let found = tasks::measure_all(&tasks, &traffic.vehicles(), &settings, watch)?;
        let rows = tasks::rows(&tasks, &found, &settings);
        watch.will_compose();
        let (curve, longitudinal) = curve_and_day(&traffic, &settings, &plans, watch.progress())?;
        // The day comes last and is left out by whoever is stopped.
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
}

/// What does not depend on the rows, on two threads.
fn curve_and_day(
    traffic: &Traffic,
    settings: &Settings,
    plans: &Plans,
    progress: &Progress,
) -> Result<(Vec<CurvePoint>, Option<Longitudinal>), Error> {
    std::thread::scope(|scope| {
        let curve = scope.spawn(|| error_against_epsilon(traffic, settings, plans, progress));
        let day = Longitudinal::of(traffic, settings, plans, progress);
        Ok((curve.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?, day?))
    })
}

fn check(traffic: &Traffic, settings: &Settings) -> Result<(), Error> {
    if settings.trials == 0 || settings.trials > u64::from(u32::MAX) {
        return Err(Error::new(format!("{} trials cannot be run", settings.trials)));
    }
    if traffic.stations.len() < 2 || traffic.total() < 100 {
        let (stations, total) = (traffic.stations.len(), traffic.total());
        return Err(Error::new(format!("{total} vehicles at {stations} stations are too few to hide among"))
            .with_hint("give at least two stations and 100 vehicles"));
    }
    let largest = settings.factors.iter().max().and_then(|factor| traffic.total().checked_mul(*factor));
    match largest {
        Some(owners) if owners <= uptack::privacy::MOST_OWNERS => Ok(()),
        _ => Err(Error::new(format!("a population of more than {}", uptack::privacy::MOST_OWNERS))
            .with_hint("give smaller factors or fewer vehicles")),
    }
}
