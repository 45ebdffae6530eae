//! Aggregation jobs that the helper refuses.
//!
//! The leader waits forever for a helper that is away. But a helper that keeps refusing a job must not hold up the rest of
//! the task; nor must one that fails a job while it answers others (see [`crate::aggregator::tasks::failures`]). Such a job is split in
//! halves, because one report that the helper cannot process must not take others with it; a job of a single report is
//! abandoned: the report is counted as dropped and deleted.
//!
//! Neither can make a release wrong. If the helper had added the reports after all and answered an error, the halves are
//! answered *replayed* and the abandoned report is missing here: either way the two sides' counts and checksums differ,
//! and the helper refuses the batch.

use std::sync::Arc;

use crate::{
    aggregator::{
        state::{Name, Shared},
        store::{ChangeResult, Job, StoreResult, TaskStore},
        tasks::{Task, failures::Scope},
    },
    base::metrics::Metrics,
    error::Result,
};

/// What a refusal leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejection {
    /// The job is tried again as it is.
    Again,
    /// The same, and nothing shows that the helper is reachable.
    Failed,
    /// The job is gone: settled by another attempt, split or abandoned.
    Gone,
}

/// Notes a job that failed at the helper; it counts as a refusal if the helper answers others.
pub(super) async fn note_failure(
    shared: &Shared,
    task: &Arc<Task>,
    job: Job,
    scope: Scope,
    reason: &str,
) -> Result<Rejection> {
    if task.failures.note_failure(job.id, scope) {
        return note(shared, task, job, reason).await;
    }
    shared.metrics.add(Name::PeerFailures, "aggregation-job", 1);
    tracing::warn!(task = %task.id(), reason, "aggregation is delayed: the helper does not answer");
    Ok(Rejection::Failed)
}

/// Notes one refusal, durably: a restart does not start the count again.
pub(super) async fn note(shared: &Shared, task: &Arc<Task>, job: Job, reason: &str) -> Result<Rejection> {
    shared.metrics.add(Name::PeerFailures, "aggregation-job", 1);
    let limit = shared.config.job_attempts.max(1);
    let outcome = shared.change(task, move |stored, task| count_or_give_up(stored, task, &job, limit)).await?;
    outcome.log(task, reason);
    outcome.count(&shared.metrics);
    if let Outcome::Counted(_) = outcome {
        return Ok(Rejection::Again);
    }
    task.failures.forget(&job.id);
    Ok(Rejection::Gone)
}

/// What became of a job that was refused.
enum Outcome {
    /// It has been refused this many times, and is tried again.
    Counted(u32),
    /// It no longer exists.
    Unknown,
    /// Its halves are jobs of their own now.
    Split,
    /// It was given up, with this many reports.
    Abandoned(u64),
}

impl Outcome {
    fn log(&self, task: &Task, reason: &str) {
        let task = task.id();
        match self {
            Self::Unknown => {}
            Self::Counted(refusals) => {
                tracing::warn!(%task, refusals, reason, "the helper refuses a job; trying again");
            }
            Self::Split => tracing::warn!(%task, reason, "the helper refuses a job; trying its halves"),
            Self::Abandoned(reports) => {
                tracing::error!(%task, reports, reason, "the helper refuses a job for good; reports are dropped");
            }
        }
    }

    fn count(&self, metrics: &Metrics<Name>) {
        match self {
            Self::Counted(_) | Self::Unknown => {}
            Self::Split => metrics.add(Name::Jobs, "split", 1),
            Self::Abandoned(reports) => {
                metrics.add(Name::Jobs, "abandoned", 1);
                metrics.add(Name::Aggregated, "abandoned", *reports);
            }
        }
    }
}

fn count_or_give_up(stored: TaskStore<'_>, task: &Task, job: &Job, limit: u32) -> ChangeResult<Outcome> {
    let Some(refusals) = stored.count_refusal(job)? else {
        return Ok(Outcome::Unknown);
    };
    if refusals < limit {
        return Ok(Outcome::Counted(refusals));
    }
    let reports = stored.reports_of(job)?;
    stored.delete_job(job)?;
    if reports.len() > 1 {
        // A half has been refused before as a part of the whole: it gets half as many attempts.
        let (middle, _) = reports[reports.len() / 2];
        split(stored, job, middle, limit / 2)?;
        return Ok(Outcome::Split);
    }
    for (_, time) in &reports {
        stored.change_pending(task.parameters().window(*time), -1)?;
    }
    stored.dequeue(job)?;
    Ok(Outcome::Abandoned(reports.len() as u64))
}

/// Makes two jobs of one: the reports before number `middle`, and the others.
fn split(stored: TaskStore<'_>, job: &Job, middle: i64, refusals: u32) -> StoreResult<()> {
    for (first, last) in [(job.first, middle - 1), (middle, job.last)] {
        stored.insert_job(&Job::new(first, last), refusals)?;
    }
    Ok(())
}
