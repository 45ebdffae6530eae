//! The whole evaluation: plan and measure every method of every comparison and population once, and keep its rows.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use uptack::privacy::MOST_OWNERS;
use uptack::{Progress, parallel};

use crate::compare::{Comparison, methods};
use crate::error::{Error, Result};
use crate::measure::{SMALL, StationResult, TrialResults, measure};
use crate::median_station::{EpsilonPoint, Longitudinal, error_against_epsilon};
use crate::method::{ChangedCounts, Method, MethodClaims, MethodOrigin, Protocol};
use crate::planned::{Crowd, Plans};
use crate::settings::{EvaluationSettings, Watch};
use crate::traffic::Traffic;

/// The results of an evaluation.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The truth.
    pub traffic: Traffic,
    /// The settings.
    pub settings: EvaluationSettings,
    /// One row for each method, comparison and population.
    pub rows: Vec<EvaluationRow>,
    /// Error against ε at the median station.
    pub curve: Vec<EpsilonPoint>,
    /// One day of windows.
    pub longitudinal: Option<Longitudinal>,
    /// Whether the evaluation was finished.
    pub complete: bool,
}

impl Evaluation {
    /// Runs everything. If stopped early, the result has the rows that were begun.
    pub fn run(traffic: Traffic, settings: EvaluationSettings, watch: &Watch) -> Result<Self> {
        check(&traffic, &settings)?;
        let plans = Plans::default();
        let tasks = plan(&traffic, &settings, &plans, watch)?;
        let found = measure_all(&tasks, &traffic.vehicles(), &settings, watch)?;
        let rows = rows(&tasks, &found, &settings);
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
    pub fn of(&self, comparison: Comparison) -> impl Iterator<Item = &EvaluationRow> {
        self.rows.iter().filter(move |row| row.comparison == comparison)
    }

    /// The rows of one comparison and population.
    pub(crate) fn at_factor(&self, comparison: Comparison, factor: u64) -> impl Iterator<Item = &EvaluationRow> {
        self.of(comparison).filter(move |row| row.factor == factor)
    }

    /// The error of a row at the median station.
    pub(crate) fn median_error(&self, row: &EvaluationRow) -> ErrorAt {
        row.at(self.traffic.median())
    }
}

/// The results that do not depend on the rows, on two threads.
fn curve_and_day(
    traffic: &Traffic,
    settings: &EvaluationSettings,
    plans: &Plans,
    progress: &Progress,
) -> Result<(Vec<EpsilonPoint>, Option<Longitudinal>)> {
    std::thread::scope(|scope| {
        let curve = scope.spawn(|| error_against_epsilon(traffic, settings, plans, progress));
        let day = Longitudinal::of(traffic, settings, plans, progress);
        Ok((parallel::joined(curve)?, day?))
    })
}

fn check(traffic: &Traffic, settings: &EvaluationSettings) -> Result<()> {
    if settings.trials == 0 || settings.trials > u64::from(u32::MAX) {
        return Err(Error::new(format!("the number of trials ({}) is out of range", settings.trials)));
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

fn check_population(traffic: &Traffic, settings: &EvaluationSettings) -> Result<()> {
    let largest = settings.largest_factor().and_then(|factor| traffic.total().checked_mul(factor));
    match largest {
        Some(owners) if owners <= MOST_OWNERS => Ok(()),
        _ => Err(Error::new(format!("a population of more than {MOST_OWNERS}"))
            .with_hint("give smaller factors or fewer vehicles")),
    }
}

/// A method in one population, for one or several comparisons.
pub(crate) struct MethodTask {
    method: Method,
    mechanism: String,
    population: ScaledPopulation,
    uses: Vec<Appearance>,
}

/// How many times as large as the traffic a population is, and how many owners it has.
#[derive(Clone, Copy)]
struct ScaledPopulation {
    factor: u64,
    owners: u64,
}

/// A comparison that shows the result of a task.
struct Appearance {
    comparison: Comparison,
    label: String,
    /// Its place among the comparison's methods.
    place: usize,
}

/// The result of a task.
pub(crate) struct TaskResult {
    measured: Arc<TrialResults>,
    claims: Arc<MethodClaims>,
}

/// All methods of all comparisons and populations. A method that is in several comparisons is one task.
pub(crate) fn plan(
    traffic: &Traffic,
    settings: &EvaluationSettings,
    plans: &Plans,
    watch: &Watch,
) -> Result<Vec<MethodTask>> {
    let jobs = jobs(&settings.factors);
    watch.will_plan(jobs.len());
    let planned = settings.in_parallel(&jobs, |_, &(factor, comparison)| {
        let (crowd, places) = (Crowd::at_median(traffic, factor), traffic.places(factor));
        let stopped = watch.progress().stopped();
        let planned = if stopped { Vec::new() } else { methods(comparison, crowd, places, &settings.levels, plans)? };
        watch.planned_one();
        Ok(planned)
    })?;
    MethodTasks::merged(jobs.into_iter().zip(planned), traffic.total())
}

/// A factor by which the population grows, and a comparison.
type PlanningJob = (u64, Comparison);

fn jobs(factors: &[u64]) -> Vec<PlanningJob> {
    factors.iter().flat_map(|&factor| Comparison::ALL.map(|comparison| (factor, comparison))).collect()
}

/// Tasks by what they do, so that none is measured twice.
#[derive(Default)]
struct MethodTasks {
    list: Vec<MethodTask>,
    known: HashMap<(String, ChangedCounts, u64), usize>,
}

impl MethodTasks {
    /// The tasks of all jobs' methods in a population that starts with `owners` owners.
    fn merged(planned: impl Iterator<Item = (PlanningJob, Vec<Method>)>, owners: u64) -> Result<Vec<MethodTask>> {
        let mut tasks = Self::default();
        for ((factor, comparison), methods) in planned {
            tasks.add_all(methods, ScaledPopulation { factor, owners: owners * factor }, comparison)?;
        }
        Ok(tasks.list)
    }

    fn add_all(&mut self, methods: Vec<Method>, population: ScaledPopulation, comparison: Comparison) -> Result<()> {
        for (place, method) in methods.into_iter().enumerate() {
            let label = method.label.clone();
            self.add(method, population, Appearance { comparison, label, place })?;
        }
        Ok(())
    }

    fn add(&mut self, method: Method, population: ScaledPopulation, shown: Appearance) -> Result<()> {
        let mechanism = method.mechanism()?;
        let key = (identity(&method, &mechanism), method.changes, population.factor);
        let index = *self.known.entry(key).or_insert(self.list.len());
        match self.list.get_mut(index) {
            Some(task) => task.uses.push(shown),
            None => self.list.push(MethodTask { method, mechanism, population, uses: vec![shown] }),
        }
        Ok(())
    }
}

/// The identity of a method. The channel of an oracle does not determine the rest of its report, so its name counts, too.
fn identity(method: &Method, mechanism: &str) -> String {
    let oracle = if matches!(method.law, Protocol::Oracle(_)) { method.label.as_str() } else { "" };
    format!("{mechanism} {oracle}")
}

/// Of the hash FNV-1a with 32 bits, as many as a stream's number has.
const FNV_OFFSET: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// Measures every task; a result is none if it was stopped before the first trial.
pub(crate) fn measure_all(
    tasks: &[MethodTask],
    vehicles: &[u64],
    settings: &EvaluationSettings,
    watch: &Watch,
) -> Result<Vec<Option<TaskResult>>> {
    watch.will_measure(tasks.len() * settings.trials as usize);
    settings.in_parallel(tasks, |_, task| task.measure(vehicles, settings, watch.progress()))
}

/// The rows by comparison, population and place.
pub(crate) fn rows(
    tasks: &[MethodTask],
    found: &[Option<TaskResult>],
    settings: &EvaluationSettings,
) -> Vec<EvaluationRow> {
    let mut rows = Vec::new();
    for (task, found) in tasks.iter().zip(found) {
        let Some(found) = found else { continue };
        rows.extend(task.uses.iter().map(|shown| (shown.place, task.row(found, shown, settings))));
    }
    rows.sort_by_key(|(place, row)| (row.comparison, row.factor, *place));
    rows.into_iter().map(|(_, row)| row).collect()
}

impl MethodTask {
    fn measure(
        &self,
        vehicles: &[u64],
        settings: &EvaluationSettings,
        progress: &Progress,
    ) -> Result<Option<TaskResult>> {
        let (owners, coins) = (self.population.owners, (settings.seed, self.stream()));
        let measured = measure(&self.method, vehicles, owners, settings.trials, coins, progress)?;
        if measured.trials == 0 {
            return Ok(None);
        }
        let claims = self.method.claims(owners, settings.levels.release.delta)?;
        Ok(Some(TaskResult { measured: Arc::new(measured), claims: Arc::new(claims) }))
    }

    /// The number of its stream of coins. It depends on nothing but the task, so that a new method leaves the numbers of all others as
    /// they are.
    fn stream(&self) -> u64 {
        let identity = identity(&self.method, &self.mechanism);
        let text = format!("{identity} {} {}", self.method.changes.count(), self.population.factor);
        u64::from(text.bytes().fold(FNV_OFFSET, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(FNV_PRIME)))
    }

    fn row(&self, found: &TaskResult, shown: &Appearance, settings: &EvaluationSettings) -> EvaluationRow {
        let level = settings.levels.epsilon(shown.comparison).unwrap_or(0.0);
        EvaluationRow {
            comparison: shown.comparison,
            label: shown.label.clone(),
            kind: self.method.kind,
            mechanism: self.mechanism.clone(),
            factor: self.population.factor,
            owners: self.population.owners,
            measured: Arc::clone(&found.measured),
            claims: Arc::clone(&found.claims),
            bytes: self.method.bytes(),
            coins: self.method.coins(),
            honest: honest(&self.method, &found.claims, shown.comparison, level),
        }
    }
}

/// Who must be honest for the guarantee that the comparison is about, which is at this ε.
fn honest(method: &Method, claims: &MethodClaims, comparison: Comparison, epsilon: f64) -> Honest {
    match &method.law {
        Protocol::Curator(_) => Honest::Curator,
        // A guarantee of the whole report holds in every view.
        _ if claims.linked().is_some_and(|linked| linked <= epsilon + 1e-9) => Honest::Nobody,
        _ if method.is_noisy() => Honest::OneAggregator,
        _ if comparison == Comparison::Answer => Honest::Holders,
        _ => Honest::Owners,
    }
}

/// One method in one comparison with one population.
#[derive(Clone, Debug)]
pub struct EvaluationRow {
    /// The comparison it belongs to.
    pub comparison: Comparison,
    /// The name of the method.
    pub label: String,
    /// Where the method comes from.
    pub kind: MethodOrigin,
    /// The mechanism in the notation that every command accepts, if there is a channel.
    pub mechanism: String,
    /// The factor by which the population has grown.
    pub factor: u64,
    /// The number of owners.
    pub owners: u64,
    /// The result of the trials.
    pub measured: Arc<TrialResults>,
    /// What the method gives away.
    pub claims: Arc<MethodClaims>,
    /// Bytes per owner, and whether they answer for all stations at once.
    pub bytes: (u64, bool),
    /// Coins per owner.
    pub coins: u64,
    /// Who must be honest for the guarantee of the comparison.
    pub honest: Honest,
}

impl EvaluationRow {
    /// The root of the mean squared error over all stations.
    pub fn rmse(&self) -> f64 {
        self.root_mean(|station| station.rmse)
    }

    /// What theory predicts for it.
    pub fn predicted(&self) -> f64 {
        self.root_mean(|station| station.predicted)
    }

    fn root_mean(&self, value: impl Fn(&StationResult) -> f64) -> f64 {
        let stations = &self.measured.stations;
        let squares: f64 = stations.iter().map(|station| value(station).powi(2)).sum();
        (squares / stations.len() as f64).sqrt()
    }

    /// The error over all stations that have this many vehicles.
    pub fn at(&self, vehicles: u64) -> ErrorAt {
        let stations = &self.measured.stations;
        let same: Vec<&StationResult> = stations.iter().filter(|station| station.vehicles == vehicles).collect();
        let squares: f64 = same.iter().map(|station| station.rmse * station.rmse).sum();
        let measured = (squares / same.len().max(1) as f64).sqrt();
        ErrorAt { measured, predicted: same.first().map_or(0.0, |station| station.predicted) }
    }

    /// The median of error over vehicles, over the stations that have vehicles.
    pub fn relative_error(&self) -> f64 {
        let crossed = self.measured.stations.iter().filter(|station| station.vehicles > 0);
        let mut ratios: Vec<f64> = crossed.map(|station| station.rmse / station.vehicles as f64).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios.get(ratios.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
    }

    /// The station with the largest error, and its error.
    pub fn worst(&self) -> (usize, f64) {
        let numbered = self.measured.stations.iter().enumerate();
        let worst = numbered.max_by(|(_, a), (_, b)| a.rmse.total_cmp(&b.rmse));
        worst.map_or((0, f64::NAN), |(index, station)| (index, station.rmse))
    }

    /// How often the intervals hold the truth.
    pub(crate) fn coverages(&self) -> Coverages {
        Coverages {
            all: self.coverage(|_| true),
            small: self.coverage(|station| station.vehicles < SMALL),
            many: self.coverage(|station| station.many),
        }
    }

    /// The mean coverage over the stations that are counted; none if there are none.
    fn coverage(&self, counted: impl Fn(&StationResult) -> bool) -> Option<f64> {
        let counted = self.measured.stations.iter().filter(|station| counted(station));
        let (sum, count) = counted.fold((0.0, 0.0), |(sum, count), station| (sum + station.coverage, count + 1.0));
        (count > 0.0).then(|| sum / count)
    }
}

/// The mean coverages of a row, each over some of the stations; none if there are no such stations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coverages {
    /// Over all stations.
    pub(crate) all: Option<f64>,
    /// Over the stations with fewer than [`SMALL`] vehicles.
    pub(crate) small: Option<f64>,
    /// Over the stations whose rarest informative count expects enough for the interval to be nearly exact.
    pub(crate) many: Option<f64>,
}

/// The error at stations that have the same number of vehicles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorAt {
    /// As measured.
    pub measured: f64,
    /// As theory predicts.
    pub predicted: f64,
}

/// Who must be honest for the guarantee that a row is compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Honest {
    /// Nobody: it holds against anyone who sees the report itself.
    Nobody,
    /// The parties that hold different answers of an owner: they must not put them together.
    Holders,
    /// The other owners: they toss their coins as they should, and nobody sees a single report.
    Owners,
    /// One of the two aggregators: it adds its noise, and keeps the noise and its shares to itself.
    OneAggregator,
    /// The curator, who sees every truth.
    Curator,
}

impl fmt::Display for Honest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nobody => "nobody",
            Self::Holders => "holders of answers",
            Self::Owners => "the owners",
            Self::OneAggregator => "one aggregator",
            Self::Curator => "the curator",
        })
    }
}
