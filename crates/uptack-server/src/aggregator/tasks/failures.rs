//! Aggregation jobs that fail at a helper that is reachable.
//!
//! The leader waits forever for a helper that is away or broken, at no cost. But a helper that always fails one job
//! while it answers other requests holds up the collection of the task, whether it does so on purpose or not. So a
//! failure counts as a refusal if the helper has answered something else successfully since the job's previous failure: a
//! request of any task, or, where the helper says that it does not know the task, a request of the same task.
//!
//! This is kept in memory. After a restart, the first failure of each job does not count again.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use uptack_dap::protocol::AggregationJobId;

use crate::base::lock;

/// How far a failure that may be temporary reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The helper as a whole, as far as the leader can tell.
    Helper,
    /// The task: the helper may know other tasks but not this one yet.
    Task,
}

/// A task's memory of its helper's answers and failures.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    /// Requests answered successfully: of all tasks with the same helper, and of this task.
    helper_answers: Arc<AtomicU64>,
    task_answers: AtomicU64,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    failures: u64,
    jobs: HashMap<AggregationJobId, LastFailure>,
}

/// How much had been answered when a job failed, and the number of the failure.
#[derive(Debug, Clone, Copy)]
struct LastFailure {
    number: u64,
    helper_answers: u64,
    task_answers: u64,
}

impl LastFailure {
    fn answers(&self, scope: Scope) -> u64 {
        match scope {
            Scope::Helper => self.helper_answers,
            Scope::Task => self.task_answers,
        }
    }
}

impl Failures {
    /// For a task of a helper whose answers are counted in `helper_answers`.
    pub(crate) fn new(helper_answers: Arc<AtomicU64>) -> Self {
        Self { helper_answers, ..Self::default() }
    }

    /// Notes a successful answer.
    pub(crate) fn note_answer(&self) {
        self.helper_answers.fetch_add(1, Ordering::SeqCst);
        self.task_answers.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes a failure, and says whether it counts as a refusal.
    pub(crate) fn note_failure(&self, job: AggregationJobId, scope: Scope) -> bool {
        let mut log = lock(&self.log);
        log.failures += 1;
        let failure = LastFailure {
            number: log.failures,
            helper_answers: self.helper_answers.load(Ordering::SeqCst),
            task_answers: self.task_answers.load(Ordering::SeqCst),
        };
        log.jobs.insert(job, failure).is_some_and(|previous| failure.answers(scope) > previous.answers(scope))
    }

    /// Forgets a job that no longer exists.
    pub(crate) fn forget(&self, job: &AggregationJobId) {
        lock(&self.log).jobs.remove(job);
    }

    /// When the job last failed, as a number that grows with every failure; nothing if it has not failed.
    pub(crate) fn last_failure(&self, job: &AggregationJobId) -> Option<u64> {
        lock(&self.log).jobs.get(job).map(|failure| failure.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_count_only_if_something_else_was_answered_since() {
        let helper_answers = Arc::<AtomicU64>::default();
        let (task, other) = (Failures::new(Arc::clone(&helper_answers)), Failures::new(helper_answers));
        let [one, two]: [AggregationJobId; 2] = [rand::random(), rand::random()];
        for _ in 0..100 {
            assert!(!task.note_failure(one, Scope::Helper), "a helper that is away costs nothing");
            assert!(!task.note_failure(two, Scope::Task));
        }
        other.note_answer();
        assert!(task.note_failure(one, Scope::Helper));
        assert!(!task.note_failure(one, Scope::Helper), "each answer counts once");
        assert!(!task.note_failure(two, Scope::Task), "another task may be known where this one is not");
        task.note_answer();
        assert!(task.note_failure(two, Scope::Task));
        assert!(task.last_failure(&one) < task.last_failure(&two));
        task.note_answer();
        task.forget(&two);
        assert!(!task.note_failure(two, Scope::Task), "a first failure");
    }
}
