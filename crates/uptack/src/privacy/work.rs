//! A limit on how much a certificate may cost (`docs/accounting.md`, "Work").

use std::cell::Cell;
use std::sync::Arc;

use crate::progress::Progress;

/// How many elementary steps (about ten nanoseconds each) a computation may take before it settles for a sound but wider
/// answer. A client that checks a stranger's claim sets it low and refuses what does not close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkLimit {
    steps: u64,
    /// Whether large crowds may cost more.
    grows: bool,
}

impl WorkLimit {
    /// At most `steps` elementary steps. The least work that gives a bound below the local ε is always done, unless `steps` is
    /// zero.
    pub fn steps(steps: u64) -> Self {
        Self { steps, grows: false }
    }

    /// The same limit times `factor`.
    #[must_use]
    pub fn times(self, factor: u64) -> Self {
        Self { steps: self.steps.saturating_mul(factor), ..self }
    }

    /// The same limit for crowds of every size.
    pub(crate) fn whatever_the_crowd(self) -> Self {
        Self { grows: false, ..self }
    }

    /// The part of the limit that one more computation may take after some that took `spent` steps: a quarter of what is left, and
    /// always a little.
    pub(crate) fn after(self, spent: u64) -> Self {
        let left = self.steps.saturating_sub(spent);
        Self { steps: (left / 4).max(self.steps / 64), ..self }
    }

    /// How many times the default it is, rounded down, and at least once.
    pub(crate) fn multiple(self) -> u64 {
        (self.steps / Self::default().steps).max(1)
    }

    /// A quarter of the limit.
    pub(crate) fn quarter(self) -> Self {
        Self { steps: self.steps / 4, ..self }
    }

    /// The steps that one view of `owners` owners may take.
    pub fn for_owners(self, owners: u64) -> u64 {
        let factor = match owners {
            _ if !self.grows => 1,
            ..=1_000_000 => 1,
            1_000_001..=10_000_000 => LARGE_CROWD_FACTOR,
            _ => 2 * LARGE_CROWD_FACTOR,
        };
        self.steps.saturating_mul(factor)
    }
}

/// Above a million owners a view may take this many times as much, above ten million twice that, because a single crowd costs
/// more there.
const LARGE_CROWD_FACTOR: u64 = 4;

/// About a second for each view, and a few seconds above a million owners, where a crowd costs more.
impl Default for WorkLimit {
    fn default() -> Self {
        Self { steps: 120_000_000, grows: true }
    }
}

/// The steps taken so far.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    spent: Cell<u64>,
    pub(super) limit: u64,
    /// Where the steps are reported as they are taken.
    progress: Option<Arc<Progress>>,
    allowance: Cell<Allowance>,
}

/// The present allowance: the number of steps taken when it was granted, and the number at which it is used up.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    start: u64,
    end: u64,
}

impl Allowance {
    /// The share that is used once `spent` steps are taken; one if there was nothing to use.
    fn used(self, spent: u64) -> f64 {
        if self.end <= self.start { 1.0 } else { (spent - self.start) as f64 / (self.end - self.start) as f64 }
    }
}

impl WorkBudget {
    pub(crate) fn within(limit: WorkLimit, owners: u64) -> Self {
        let limit = limit.for_owners(owners);
        Self { spent: Cell::new(0), limit, progress: None, allowance: Cell::new(Allowance { start: 0, end: limit }) }
    }

    /// A count without a limit, for work on another thread.
    pub(crate) fn unlimited() -> Self {
        Self::within(WorkLimit::steps(u64::MAX), 1)
    }

    /// The same, watched.
    pub(crate) fn watched(self, progress: Option<Arc<Progress>>) -> Self {
        Self { progress, ..self }
    }

    /// The steps taken so far.
    pub(crate) fn spent(&self) -> u64 {
        self.spent.get()
    }

    pub(crate) fn spend(&self, steps: u64) {
        self.spent.set(self.spent.get().saturating_add(steps));
        if let Some(progress) = &self.progress {
            progress.advance_by(steps);
        }
    }

    /// Allows a share of the remaining steps; [`WorkBudget::exhausted`] then refers to that allowance.
    pub(crate) fn allow(&self, share: f64) {
        let spent = self.spent.get();
        let left = self.limit.saturating_sub(spent);
        self.allowance.set(Allowance { start: spent, end: spent + (left as f64 * share) as u64 });
    }

    /// The share of the allowance that is spent; at least one if nothing is left.
    pub(crate) fn used(&self) -> f64 {
        if self.stopped() { 1.0 } else { self.allowance.get().used(self.spent.get()) }
    }

    /// Whether twice the limit is spent: from then on only the least work that gives an answer is done.
    pub(crate) fn overdrawn(&self) -> bool {
        self.stopped() || self.spent.get() / 2 >= self.limit
    }

    /// Whether the watcher asked to stop: any sound answer will do.
    fn stopped(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| progress.stopped())
    }

    pub(crate) fn exhausted(&self) -> bool {
        self.used() >= 1.0
    }
}
