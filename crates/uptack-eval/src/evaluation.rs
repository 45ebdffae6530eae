//! The whole evaluation: plan, measure, compare.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use uptack::simulate::Progress;

use crate::compare::{Comparison, NORMAL_FORM, local, methods};
use crate::error::Error;
use crate::longitudinal::Longitudinal;
use crate::measure::{Measured, StationResult, measure};
use crate::method::{Claims, Curator, Kind, Law, Method};
use crate::planned::{Crowd, Plans, Wanted};
use crate::settings::Settings;
use crate::traffic::Traffic;

/// One method in one comparison with one population.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it has in common with others.
    pub comparison: Comparison,
    /// What people call it.
    pub label: String,
    /// Where it comes from.
    pub kind: Kind,
    /// In words that every command accepts, where there is a channel.
    pub mechanism: String,
    /// By how much the population has grown.
    pub factor: u64,
    /// All owners.
    pub owners: u64,
    /// What came of it.
    pub measured: Arc<Measured>,
    /// What it gives away.
    pub claims: Arc<Claims>,
    /// Bytes an owner, and whether they answer for all stations at once.
    pub bytes: (u64, bool),
    /// Coins an owner.
    pub coins: u64,
}

/// A point of the curve of error against ε.
#[derive(Clone, Debug)]
pub struct CurvePoint {
    /// What people call the method.
    pub label: String,
    /// The ε of the release.
    pub epsilon: f64,
    /// The error that theory predicts at the median station.
    pub predicted: f64,
    /// The error measured there.
    pub measured: f64,
}

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

/// Where an evaluation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Mechanisms are planned for the guarantees.
    Planning,
    /// Trials run.
    Measuring,
    /// The day of windows is composed.
    Composing,
}

/// Followed by whoever shows progress or wants to stop.
#[derive(Debug, Default)]
pub struct Watch {
    progress: Progress,
    stage: AtomicUsize,
    planned: AtomicUsize,
    plans: AtomicUsize,
    trials: AtomicUsize,
}

impl Watch {
    /// Asks to stop; what was done is kept.
    pub fn stop(&self) {
        self.progress.stop();
    }

    /// Where it is, with what is done and what there is to do.
    pub fn now(&self) -> (Stage, u64, u64) {
        let load = |value: &AtomicUsize| value.load(Ordering::Relaxed) as u64;
        match load(&self.stage) {
            0 => (Stage::Planning, load(&self.planned), load(&self.plans)),
            1 => (Stage::Measuring, self.progress.done(), load(&self.trials)),
            _ => (Stage::Composing, 0, 1),
        }
    }
}

/// A method that is in one or several comparisons.
struct Task {
    method: Method,
    mechanism: String,
    factor: u64,
    owners: u64,
    comparisons: Vec<(Comparison, String, usize)>,
}

/// What came of a task.
type Found = (Arc<Measured>, Arc<Claims>);

impl Evaluation {
    /// Runs everything; stopped early, it has the rows that were begun.
    pub fn run(traffic: Traffic, settings: Settings, watch: &Watch) -> Result<Self, Error> {
        let vehicles = traffic.vehicles();
        check(&traffic, &settings)?;
        let plans = Plans::default();
        let tasks = plan(&traffic, &settings, &plans, watch)?;
        watch.trials.store(tasks.len() * settings.trials as usize, Ordering::Relaxed);
        watch.stage.store(1, Ordering::Relaxed);
        let work = |index: usize| -> Result<Option<Found>, Error> {
            let task = &tasks[index];
            let coins = (settings.seed, index as u64 + 1);
            let measured = measure(&task.method, &vehicles, task.owners, settings.trials, coins, &watch.progress)?;
            if measured.trials == 0 {
                return Ok(None);
            }
            let claims = task.method.claims(task.owners, settings.levels.release.delta)?;
            Ok(Some((Arc::new(measured), Arc::new(claims))))
        };
        let found = in_parallel(settings.threads, tasks.len(), &work)?;
        let rows = rows(&tasks, &found)?;
        let mut evaluation = Self { traffic, settings, rows, curve: Vec::new(), longitudinal: None, complete: false };
        watch.stage.store(2, Ordering::Relaxed);
        let (curve, day) = std::thread::scope(|scope| {
            let curve = scope.spawn(|| evaluation.error_against_epsilon(&plans, &watch.progress));
            let day = Longitudinal::of(&evaluation.traffic, &evaluation.settings, &plans, &watch.progress);
            (curve.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), day)
        });
        (evaluation.curve, evaluation.longitudinal) = (curve?, day?);
        // The day comes last and is left out by whoever is stopped.
        evaluation.complete = evaluation.longitudinal.is_some();
        Ok(evaluation)
    }

    /// The vehicles of every station.
    pub fn vehicles(&self) -> Vec<u64> {
        self.traffic.vehicles()
    }

    /// The rows of one comparison.
    pub fn of(&self, comparison: Comparison) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.comparison == comparison)
    }

    fn error_against_epsilon(&self, plans: &Plans, progress: &Progress) -> Result<Vec<CurvePoint>, Error> {
        let (owners, yes) = (self.traffic.total() * self.settings.factors[0], self.traffic.median());
        let stations = self.traffic.stations.len() as u64;
        let epsilons = [0.25, 0.5, 1.0, 2.0, 4.0];
        let point = |index: usize| -> Result<Vec<CurvePoint>, Error> {
            if progress.stopped() {
                return Ok(Vec::new());
            }
            let wanted = Wanted { epsilon: epsilons[index], delta: self.settings.levels.release.delta };
            let planned = plans.normal_form(Crowd { owners, yes }, wanted)?;
            let mut methods = vec![Method::family(NORMAL_FORM, planned)];
            methods.extend(local(wanted.epsilon, stations)?);
            methods.push(Method::curator(Curator::gaussian(wanted.epsilon, wanted.delta)?));
            methods.push(Method::curator(Curator::laplace(wanted.epsilon)?));
            let mut points = Vec::new();
            for (number, method) in methods.into_iter().enumerate() {
                let coins = (self.settings.seed, 1_000_000 + 100 * index as u64 + number as u64);
                let one = measure(&method, &[yes], owners, CURVE_TRIALS, coins, &Progress::default())?.stations[0];
                let label = method.label;
                points.push(CurvePoint {
                    label,
                    epsilon: wanted.epsilon,
                    predicted: one.predicted,
                    measured: one.rmse,
                });
            }
            Ok(points)
        };
        Ok(in_parallel(self.settings.threads, epsilons.len(), &point)?.into_iter().flatten().collect())
    }
}

/// Trials a point of the curve: the error is known to 0.7 % two times out of three, that of Laplace's long tails less exactly.
const CURVE_TRIALS: u64 = 10_000;

impl Row {
    /// The root of the mean squared error over all stations.
    pub fn rmse(&self) -> f64 {
        self.root_mean(|station| station.rmse)
    }

    /// What theory says it is.
    pub fn predicted(&self) -> f64 {
        self.root_mean(|station| station.predicted)
    }

    fn root_mean(&self, value: impl Fn(&StationResult) -> f64) -> f64 {
        let stations = &self.measured.stations;
        (stations.iter().map(|station| value(station).powi(2)).sum::<f64>() / stations.len() as f64).sqrt()
    }

    /// The error of the median station: of all that have its number of vehicles, taken together.
    pub fn at(&self, vehicles: &[u64], yes: u64) -> (f64, f64) {
        let same = self.measured.stations.iter().zip(vehicles).filter(|(_, other)| **other == yes);
        let (mut count, mut squared, mut predicted) = (0.0, 0.0, 0.0);
        for (station, _) in same {
            count += 1.0;
            squared += station.rmse * station.rmse;
            predicted = station.predicted;
        }
        ((squared / f64::max(count, 1.0)).sqrt(), predicted)
    }

    /// The median over the stations that have vehicles of error over vehicles.
    pub fn relative_error(&self, vehicles: &[u64]) -> f64 {
        let some = self.measured.stations.iter().zip(vehicles).filter(|(_, yes)| **yes > 0);
        let mut ratios: Vec<f64> = some.map(|(station, &yes)| station.rmse / yes as f64).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios.get(ratios.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
    }

    /// The station with the largest error, and its error.
    pub fn worst(&self) -> (usize, f64) {
        let numbered = self.measured.stations.iter().enumerate();
        let worst = numbered.max_by(|(_, a), (_, b)| a.rmse.total_cmp(&b.rmse));
        worst.map_or((0, f64::NAN), |(index, station)| (index, station.rmse))
    }

    /// The mean coverage over the stations that are counted in; none where there are none.
    pub fn coverage(&self, vehicles: &[u64], counted: impl Fn(&StationResult, u64) -> bool) -> Option<f64> {
        let chosen = self.measured.stations.iter().zip(vehicles).filter(|(station, yes)| counted(station, **yes));
        let (mut sum, mut count) = (0.0, 0.0);
        for (station, _) in chosen {
            sum += station.coverage;
            count += 1.0;
        }
        (count > 0.0).then(|| sum / count)
    }
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

/// All methods of all comparisons and populations; the same method of several comparisons once.
fn plan(traffic: &Traffic, settings: &Settings, plans: &Plans, watch: &Watch) -> Result<Vec<Task>, Error> {
    let crowd = |factor: u64| Crowd { owners: traffic.total() * factor, yes: traffic.median() };
    let stations = traffic.stations.len() as u64;
    let jobs: Vec<(u64, Comparison)> =
        settings.factors.iter().flat_map(|&factor| Comparison::ALL.map(|comparison| (factor, comparison))).collect();
    watch.plans.store(jobs.len(), Ordering::Relaxed);
    let work = |index: usize| -> Result<Vec<Method>, Error> {
        let (factor, comparison) = jobs[index];
        let found = match watch.progress.stopped() {
            true => Vec::new(),
            false => methods(comparison, crowd(factor), stations, &settings.levels, plans)?,
        };
        watch.planned.fetch_add(1, Ordering::Relaxed);
        Ok(found)
    };
    let planned = in_parallel(settings.threads, jobs.len(), &work)?;
    let (mut tasks, mut known): (Vec<Task>, HashMap<(String, u64), usize>) = (Vec::new(), HashMap::new());
    for ((factor, comparison), methods) in jobs.into_iter().zip(planned) {
        for (place, method) in methods.into_iter().enumerate() {
            let mechanism = method.mechanism()?;
            // An oracle's channel says nothing of the rest of its report, so that its name counts too.
            let oracle = if matches!(method.law, Law::Oracle(_)) { method.label.as_str() } else { "" };
            let index = *known.entry((format!("{mechanism} {oracle}"), factor)).or_insert(tasks.len());
            let entry = (comparison, method.label.clone(), place);
            if index == tasks.len() {
                let owners = traffic.total() * factor;
                tasks.push(Task { method, mechanism, factor, owners, comparisons: vec![entry] });
            } else {
                tasks[index].comparisons.push(entry);
            }
        }
    }
    Ok(tasks)
}

fn rows(tasks: &[Task], found: &[Option<Found>]) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for (task, found) in tasks.iter().zip(found) {
        let Some((measured, claims)) = found else { continue };
        for (comparison, label, place) in &task.comparisons {
            let row = Row {
                comparison: *comparison,
                label: label.clone(),
                kind: task.method.kind,
                mechanism: task.mechanism.clone(),
                factor: task.factor,
                owners: task.owners,
                measured: Arc::clone(measured),
                claims: Arc::clone(claims),
                bytes: task.method.bytes(),
                coins: task.method.coins(),
            };
            rows.push(((*comparison, task.factor, *place), row));
        }
    }
    rows.sort_by_key(|((comparison, factor, place), _)| (*comparison as u8, *factor, *place));
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// Does `count` pieces of work on several threads; results are in order, whatever the number of threads.
fn in_parallel<T: Send>(
    threads: usize,
    count: usize,
    work: &(impl Fn(usize) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<T, Error>>>> = Mutex::new((0..count).map(|_| None).collect());
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            let result = work(index);
            // A poisoned lock means that another thread panicked, which the scope passes on.
            if let Ok(mut results) = results.lock() {
                results[index] = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        (0..threads.clamp(1, count.max(1))).for_each(|_| {
            scope.spawn(worker);
        });
    });
    let results = results.into_inner().map_err(|_| Error::new("a thread of the evaluation failed"))?;
    results.into_iter().map(|result| result.unwrap_or_else(|| Err(Error::new("a piece of work was lost")))).collect()
}
