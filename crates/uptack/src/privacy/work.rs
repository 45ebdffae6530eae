//! A limit on how much a certificate may cost.

use std::cell::Cell;

/// How many elementary steps (about ten nanoseconds each) a computation may take before it settles for a sound but wider
/// answer. A client that checks a stranger's claim sets it low and refuses what does not close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkLimit(u64);

impl WorkLimit {
    /// At most `steps` elementary steps; what is needed for any sound answer at all is always taken.
    pub fn steps(steps: u64) -> Self {
        Self(steps)
    }
}

impl Default for WorkLimit {
    fn default() -> Self {
        Self(300_000_000)
    }
}

/// The steps taken so far.
#[derive(Debug)]
pub(crate) struct Work {
    spent: Cell<u64>,
    limit: u64,
}

impl Work {
    pub(crate) fn within(limit: WorkLimit) -> Self {
        Self { spent: Cell::new(0), limit: limit.0 }
    }

    pub(crate) fn spend(&self, steps: u64) {
        self.spent.set(self.spent.get().saturating_add(steps));
    }

    /// Whether one step of the search may cost this much. Having to refuse is itself charged for, so that a search that
    /// meets nothing but such steps comes to its end.
    pub(crate) fn affords(&self, steps: u64) -> bool {
        let affordable = steps <= self.limit / 10;
        if !affordable {
            self.spend(self.limit / 8);
        }
        affordable
    }

    pub(crate) fn exhausted(&self) -> bool {
        self.left() == 0
    }

    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent.get())
    }
}
