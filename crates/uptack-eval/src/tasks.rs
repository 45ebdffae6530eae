//! What there is to measure: every method of every comparison and population once.

use std::collections::HashMap;
use std::sync::Arc;

use crate::compare::{Comparison, methods};
use crate::error::Error;
use crate::measure::{Measured, measure};
use crate::method::{Changes, Claims, Law, Method};
use crate::parallel::in_parallel;
use crate::planned::{Crowd, Plans};
use crate::row::{Honest, Row};
use crate::settings::Settings;
use crate::traffic::Traffic;
use crate::watch::Watch;

/// A method that is in one or several comparisons.
pub(crate) struct Task {
    method: Method,
    mechanism: String,
    factor: u64,
    owners: u64,
    uses: Vec<Use>,
}

/// Where a task's result is shown.
struct Use {
    comparison: Comparison,
    label: String,
    /// Its place among the comparison's methods.
    place: usize,
}

/// What came of a task.
pub(crate) struct Found {
    measured: Arc<Measured>,
    claims: Arc<Claims>,
}

/// All methods of all comparisons and populations; the same method of several comparisons once.
pub(crate) fn plan(traffic: &Traffic, settings: &Settings, plans: &Plans, watch: &Watch) -> Result<Vec<Task>, Error> {
    let jobs: Vec<(u64, Comparison)> =
        settings.factors.iter().flat_map(|&factor| Comparison::ALL.map(|comparison| (factor, comparison))).collect();
    watch.will_plan(jobs.len());
    let work = |index: usize| -> Result<Vec<Method>, Error> {
        let (factor, comparison) = jobs[index];
        let found = match watch.progress().stopped() {
            true => Vec::new(),
            false => methods_of(traffic, settings, plans, factor, comparison)?,
        };
        watch.planned_one();
        Ok(found)
    };
    let planned = in_parallel(settings.threads, jobs.len(), &work)?;
    let mut tasks = Tasks::default();
    for ((factor, comparison), methods) in jobs.into_iter().zip(planned) {
        for (place, method) in methods.into_iter().enumerate() {
            let owners = traffic.total() * factor;
            tasks.add(method, factor, owners, |label| Use { comparison, label, place })?;
        }
    }
    Ok(tasks.list)
}

fn methods_of(
    traffic: &Traffic,
    settings: &Settings,
    plans: &Plans,
    factor: u64,
    comparison: Comparison,
) -> Result<Vec<Method>, Error> {
    let crowd = Crowd { owners: traffic.total() * factor, yes: traffic.median() };
    methods(comparison, crowd, traffic.stations.len() as u64, &settings.levels, plans)
}

/// Tasks, found again by what they do.
#[derive(Default)]
struct Tasks {
    list: Vec<Task>,
    known: HashMap<(String, Changes, u64), usize>,
}

impl Tasks {
    fn add(&mut self, method: Method, factor: u64, owners: u64, shown: impl Fn(String) -> Use) -> Result<(), Error> {
        let mechanism = method.mechanism()?;
        // An oracle's channel says nothing of the rest of its report, so that its name counts too.
        let oracle = if matches!(method.law, Law::Oracle(_)) { method.label.as_str() } else { "" };
        let index =
            *self.known.entry((format!("{mechanism} {oracle}"), method.changes, factor)).or_insert(self.list.len());
        let shown = shown(method.label.clone());
        match self.list.get_mut(index) {
            Some(task) => task.uses.push(shown),
            None => self.list.push(Task { method, mechanism, factor, owners, uses: vec![shown] }),
        }
        Ok(())
    }
}

/// Measures every task; none where it was stopped before the first trial.
pub(crate) fn measure_all(
    tasks: &[Task],
    vehicles: &[u64],
    settings: &Settings,
    watch: &Watch,
) -> Result<Vec<Option<Found>>, Error> {
    watch.will_measure(tasks.len() * settings.trials as usize);
    let work = |index: usize| -> Result<Option<Found>, Error> {
        let task = &tasks[index];
        let coins = (settings.seed, index as u64 + 1);
        let measured = measure(&task.method, vehicles, task.owners, settings.trials, coins, watch.progress())?;
        if measured.trials == 0 {
            return Ok(None);
        }
        let claims = task.method.claims(task.owners, settings.levels.release.delta)?;
        Ok(Some(Found { measured: Arc::new(measured), claims: Arc::new(claims) }))
    };
    in_parallel(settings.threads, tasks.len(), &work)
}

/// The rows by comparison, population and place.
pub(crate) fn rows(tasks: &[Task], found: &[Option<Found>], settings: &Settings) -> Vec<Row> {
    let mut rows = Vec::new();
    for (task, found) in tasks.iter().zip(found) {
        let Some(found) = found else { continue };
        rows.extend(task.uses.iter().map(|shown| (shown.place, row(task, found, shown, settings))));
    }
    rows.sort_by_key(|(place, row)| (row.comparison, row.factor, *place));
    rows.into_iter().map(|(_, row)| row).collect()
}

fn row(task: &Task, found: &Found, shown: &Use, settings: &Settings) -> Row {
    Row {
        comparison: shown.comparison,
        label: shown.label.clone(),
        kind: task.method.kind,
        mechanism: task.mechanism.clone(),
        factor: task.factor,
        owners: task.owners,
        measured: Arc::clone(&found.measured),
        claims: Arc::clone(&found.claims),
        bytes: task.method.bytes(),
        coins: task.method.coins(),
        honest: honest(&task.method, &found.claims, shown.comparison, settings),
    }
}

/// Who must be honest for the guarantee that the comparison is about.
fn honest(method: &Method, claims: &Claims, comparison: Comparison, settings: &Settings) -> Honest {
    let level = match comparison {
        Comparison::Trust | Comparison::Release | Comparison::Ballot => settings.levels.release.epsilon,
        Comparison::Answer => settings.levels.answer,
        Comparison::Linked => settings.levels.linked,
        Comparison::Paper => 0.0,
    };
    match &method.law {
        Law::Curator(_) => Honest::Curator,
        // What the whole report keeps, every view keeps, whoever sees it.
        _ if claims.linked().is_some_and(|linked| linked <= level + 1e-9) => Honest::Nobody,
        _ if method.is_noisy() => Honest::OneAggregator,
        _ if comparison == Comparison::Answer => Honest::Holders,
        _ => Honest::Owners,
    }
}
