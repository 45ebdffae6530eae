//! What to evaluate; following an evaluation, and stopping it.

use std::sync::atomic::{AtomicUsize, Ordering};

use uptack::{Progress, parallel};

use crate::compare::Levels;
use crate::error::Result;

/// What to evaluate, and with what effort.
#[derive(Clone, Debug)]
pub struct EvaluationSettings {
    /// The factors by which the population grows, by vehicles elsewhere.
    pub factors: Vec<u64>,
    /// How many times each question is asked.
    pub trials: u64,
    /// The seed of all coins.
    pub seed: u64,
    /// The guarantees at which methods are compared.
    pub levels: Levels,
    /// How many threads to use.
    pub threads: usize,
}

impl EvaluationSettings {
    pub(crate) fn smallest_factor(&self) -> Option<u64> {
        self.factors.iter().copied().min()
    }

    pub(crate) fn largest_factor(&self) -> Option<u64> {
        self.factors.iter().copied().max()
    }

    /// Works on all items, on as many threads as there are to be. The results are in order.
    pub(crate) fn in_parallel<I: Sync, T: Send>(
        &self,
        items: &[I],
        work: impl Fn(usize, &I) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        parallel::map(self.threads, items.len(), |index| work(index, &items[index])).into_iter().collect()
    }
}

impl Default for EvaluationSettings {
    fn default() -> Self {
        let threads = parallel::cores();
        Self { factors: vec![1, 10, 100, 1000], trials: 200, seed: 1, levels: Levels::default(), threads }
    }
}

/// What an evaluation is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Planning mechanisms for the guarantees.
    Planning,
    /// Running trials.
    Measuring,
    /// Composing the windows of a day.
    Composing,
}

/// Shared with whoever shows the progress of an evaluation, or stops it.
#[derive(Debug, Default)]
pub struct Watch {
    progress: Progress,
    stage: AtomicUsize,
    planned: AtomicUsize,
    plans: AtomicUsize,
    trials: AtomicUsize,
}

impl Watch {
    /// Asks to stop; the results so far are kept.
    pub fn stop(&self) {
        self.progress.stop();
    }

    /// The stage, how much of it is done, and how much there is to do.
    pub fn now(&self) -> (Stage, u64, u64) {
        let load = |value: &AtomicUsize| value.load(Ordering::Relaxed) as u64;
        match load(&self.stage) {
            0 => (Stage::Planning, load(&self.planned), load(&self.plans)),
            1 => (Stage::Measuring, self.progress.done(), load(&self.trials)),
            _ => (Stage::Composing, 0, 1),
        }
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    pub(crate) fn will_plan(&self, plans: usize) {
        self.plans.store(plans, Ordering::Relaxed);
    }

    pub(crate) fn planned_one(&self) {
        self.planned.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn will_measure(&self, trials: usize) {
        self.trials.store(trials, Ordering::Relaxed);
        self.stage.store(1, Ordering::Relaxed);
    }

    pub(crate) fn will_compose(&self) {
        self.stage.store(2, Ordering::Relaxed);
    }
}
