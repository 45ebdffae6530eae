//! The work of an evaluation: every method of every comparison and population, once.

use std::collections::HashMap;
use std::sync::Arc;

use uptack::simulate::Progress;

use crate::compare::{Comparison, methods};
use crate::error::Result;
use crate::measure::{Measured, measure};
use crate::method::{Changes, Claims, Law, Method};
use crate::parallel::in_parallel;
use crate::planned::{Crowd, Plans};
use crate::row::{Honest, Row};
use crate::settings::Settings;
use crate::traffic::Traffic;
use crate::watch::Watch;

/// A method in one population, for one or several comparisons.
pub(crate) struct Task {
    method: Method,
    mechanism: String,
    population: Population,
    uses: Vec<Use>,
}

/// How many times as large as the traffic a population is, and how many owners it has.
#[derive(Clone, Copy)]
struct Population {
    factor: u64,
    owners: u64,
}

/// A comparison that shows the result of a task.
struct Use {
    comparison: Comparison,
    label: String,
    /// Its place among the comparison's methods.
    place: usize,
}

/// The result of a task.
pub(crate) struct Found {
    measured: Arc<Measured>,
    claims: Arc<Claims>,
}

/// All methods of all comparisons and populations. A method that is in several comparisons is one task.
pub(crate) fn plan(traffic: &Traffic, settings: &Settings, plans: &Plans, watch: &Watch) -> Result<Vec<Task>> {
    let jobs = jobs(&settings.factors);
    watch.will_plan(jobs.len());
    let stations = traffic.stations.len() as u64;
    let planned = in_parallel(settings.threads, &jobs, |_, &(factor, comparison)| {
        let crowd = Crowd::at_median(traffic, factor);
        let stopped = watch.progress().stopped();
        let planned = if stopped { Vec::new() } else { methods(comparison, crowd, stations, &settings.levels, plans)? };
        watch.planned_one();
        Ok(planned)
    })?;
    Tasks::merged(jobs.into_iter().zip(planned), traffic.total())
}

/// A factor by which the population grows, and a comparison.
type Job = (u64, Comparison);

fn jobs(factors: &[u64]) -> Vec<Job> {
    factors.iter().flat_map(|&factor| Comparison::ALL.map(|comparison| (factor, comparison))).collect()
}

/// Tasks, which are found again by what they do.
#[derive(Default)]
struct Tasks {
    list: Vec<Task>,
    known: HashMap<(String, Changes, u64), usize>,
}

impl Tasks {
    /// The tasks of all jobs' methods in a population that starts with `owners` owners.
    fn merged(planned: impl Iterator<Item = (Job, Vec<Method>)>, owners: u64) -> Result<Vec<Task>> {
        let mut tasks = Self::default();
        for ((factor, comparison), methods) in planned {
            tasks.add_all(methods, Population { factor, owners: owners * factor }, comparison)?;
        }
        Ok(tasks.list)
    }

    fn add_all(&mut self, methods: Vec<Method>, population: Population, comparison: Comparison) -> Result<()> {
        for (place, method) in methods.into_iter().enumerate() {
            let label = method.label.clone();
            self.add(method, population, Use { comparison, label, place })?;
        }
        Ok(())
    }

    fn add(&mut self, method: Method, population: Population, shown: Use) -> Result<()> {
        let mechanism = method.mechanism()?;
        let key = (identity(&method, &mechanism), method.changes, population.factor);
        let index = *self.known.entry(key).or_insert(self.list.len());
        match self.list.get_mut(index) {
            Some(task) => task.uses.push(shown),
            None => self.list.push(Task { method, mechanism, population, uses: vec![shown] }),
        }
        Ok(())
    }
}

/// What a method does. The channel of an oracle does not determine the rest of its report, so its name counts, too.
fn identity(method: &Method, mechanism: &str) -> String {
    let oracle = if matches!(method.law, Law::Oracle(_)) { method.label.as_str() } else { "" };
    format!("{mechanism} {oracle}")
}

/// Measures every task; a result is none if it was stopped before the first trial.
pub(crate) fn measure_all(
    tasks: &[Task],
    vehicles: &[u64],
    settings: &Settings,
    watch: &Watch,
) -> Result<Vec<Option<Found>>> {
    watch.will_measure(tasks.len() * settings.trials as usize);
    in_parallel(settings.threads, tasks, |index, task| {
        task.measure(index as u64 + 1, vehicles, settings, watch.progress())
    })
}

/// The rows by comparison, population and place.
pub(crate) fn rows(tasks: &[Task], found: &[Option<Found>], settings: &Settings) -> Vec<Row> {
    let mut rows = Vec::new();
    for (task, found) in tasks.iter().zip(found) {
        let Some(found) = found else { continue };
        rows.extend(task.uses.iter().map(|shown| (shown.place, task.row(found, shown, settings))));
    }
    rows.sort_by_key(|(place, row)| (row.comparison, row.factor, *place));
    rows.into_iter().map(|(_, row)| row).collect()
}

impl Task {
    fn measure(
        &self,
        stream: u64,
        vehicles: &[u64],
        settings: &Settings,
        progress: &Progress,
    ) -> Result<Option<Found>> {
        let (owners, coins) = (self.population.owners, (settings.seed, stream));
        let measured = measure(&self.method, vehicles, owners, settings.trials, coins, progress)?;
        if measured.trials == 0 {
            return Ok(None);
        }
        let claims = self.method.claims(owners, settings.levels.release.delta)?;
        Ok(Some(Found { measured: Arc::new(measured), claims: Arc::new(claims) }))
    }

    fn row(&self, found: &Found, shown: &Use, settings: &Settings) -> Row {
        let level = settings.levels.epsilon(shown.comparison).unwrap_or(0.0);
        Row {
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
fn honest(method: &Method, claims: &Claims, comparison: Comparison, epsilon: f64) -> Honest {
    match &method.law {
        Law::Curator(_) => Honest::Curator,
        // A guarantee of the whole report holds in every view.
        _ if claims.linked().is_some_and(|linked| linked <= epsilon + 1e-9) => Honest::Nobody,
        _ if method.is_noisy() => Honest::OneAggregator,
        _ if comparison == Comparison::Answer => Honest::Holders,
        _ => Honest::Owners,
    }
}
