//! The chart of a plan, whose points are computed on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use uptack::plan::{Plan, Request, errors_by_family};
use uptack::simulate::Progress;
use uptack_chart::{Errors, PlanCharts, Sheet};

/// The charts around what was planned.
///
/// `progress` counts the points, of which there are [`sheet_points`]; if it is stopped, the remaining ones are left out.
pub fn plan_sheet(request: &Request, plan: &Plan, progress: &Progress) -> Sheet {
    let charts = PlanCharts::around(request, plan);
    let title = "The error of each family of mechanisms".to_owned();
    Sheet { title, charts: charts.draw(&sketches(&charts.requests(), progress)) }
}

/// How many points a plan's charts have, each of which is a small plan.
pub fn sheet_points(request: &Request, plan: &Plan) -> u64 {
    PlanCharts::around(request, plan).requests().len() as u64
}

/// The errors at every point, computed on all cores; none where no family meets the constraints.
fn sketches(requests: &[&Request], progress: &Progress) -> Vec<Errors> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![Errors::new(); requests.len()]);
    let worker = || {
        while !progress.stopped() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(request) = requests.get(index) else { return };
            let errors = errors_by_family(request).unwrap_or_default();
            found.lock().expect("no worker panics with the lock")[index] = errors;
            progress.advance();
        }
    };
    on_all_cores(requests.len(), worker);
    found.into_inner().expect("no worker panics with the lock")
}

/// Runs the worker on every core, but not more often than there is work.
fn on_all_cores(most: usize, worker: impl Fn() + Sync) {
    let cores = thread::available_parallelism().map_or(1, usize::from).min(most);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(&worker);
        }
    });
}
