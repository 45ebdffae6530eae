//! The chart of a plan as a file, its points searched on all cores.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use uptack::plan::{Plan, Request, errors_by_family};
use uptack_chart::{Errors, PlanCharts, Sheet};

use crate::failure::Failure;
use crate::progress::ProgressLine;

/// The form of a picture, by the ending of its file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picture {
    Svg,
    #[cfg(feature = "png")]
    Png,
}

#[cfg(feature = "png")]
const PNG_WIDTH: u32 = 1280;
/// The endings that this build writes.
const ENDINGS: &str = if cfg!(feature = "png") { ".svg or .png" } else { ".svg" };

impl Picture {
    /// Found out before any work is done.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        match path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("svg") => Ok(Self::Svg),
            #[cfg(feature = "png")]
            Some("png") => Ok(Self::Png),
            _ => Err(Failure::request(format!("{}: a chart is written as {ENDINGS}", path.display()))
                .with_hint("name the file so that it ends in one of them")),
        }
    }

    pub(crate) fn bytes(self, sheet: &Sheet) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Svg => Ok(sheet.to_svg().into_bytes()),
            #[cfg(feature = "png")]
            Self::Png => sheet.to_png(PNG_WIDTH).map_err(|error| Failure::environment(format!("the chart: {error}"))),
        }
    }
}

/// The charts around what was planned.
pub(crate) fn draw(request: &Request, plan: &Plan) -> Result<Sheet, Failure> {
    let charts = PlanCharts::around(request, plan);
    let errors = sketches(&charts.requests());
    Ok(Sheet { title: "The error of each family of mechanisms".to_owned(), charts: charts.draw(&errors) })
}

/// The errors at every point, on all cores; where no family keeps the constraints there are none.
fn sketches(requests: &[&Request]) -> Vec<Errors> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found = Mutex::new(vec![Errors::new(); requests.len()]);
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(request) = requests.get(index) else { return };
            let errors = errors_by_family(request).unwrap_or_default();
            found.lock().expect("no worker panics with the lock")[index] = errors;
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from).min(requests.len());
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        let mut line = ProgressLine::new();
        while workers.iter().any(|worker| !worker.is_finished()) {
            line.show("points of the chart", done.load(Ordering::Relaxed) as u64, requests.len() as u64);
            thread::park_timeout(ProgressLine::PAUSE / 4);
        }
    });
    found.into_inner().expect("no worker panics with the lock")
}
