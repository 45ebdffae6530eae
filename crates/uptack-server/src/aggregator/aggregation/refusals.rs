//! Aggregation jobs that the helper refuses.
//!
//! The leader waits forever for a helper that is away. But a helper that keeps refusing a job must not hold up the rest of
//! the task; nor must one that fails a job while it answers others (see `tasks/failures.rs`). Such a job is split in
//! halves, because one report that the helper cannot process must not take others with it; a job of a single report is
//! abandoned: the report is counted as dropped and deleted.
//!
//! Neither can make a release wrong. If the helper had added the reports after all and answered an error, the halves are
//! answered *replayed* and the abandoned report is missing here: either way the two sides' counts and checksums differ,
//! and the helper refuses the batch.

use std::sync::Arc;

use crate::{
    aggregator::{
        state::{AggregatorCounter, AggregatorState},
        store::{ChangeResult, Job, StoreResult, TaskStore},
        tasks::{ServedTask, failures::Scope},
    },
    base::metrics::Metrics,
    error::Result,
};

/// How an attempt at a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobAttempt {
    /// The helper refused it; the job is tried again as it is.
    Refused,
    /// It is tried again as well, but nothing shows that the helper is reachable.
    Failed,
    /// The job no longer exists: it was settled, split or abandoned.
    Done,
}

/// Notes a job that failed at the helper; it counts as a refusal if the helper answers others.
pub(super) async fn note_failure(
    shared: &AggregatorState,
    task: &Arc<ServedTask>,
    job: Job,
    scope: Scope,
    reason: &str,
) -> Result<JobAttempt> {
    if task.failures.note_failure(job.id, scope) {
        return note(shared, task, job, reason).await;
    }
    shared.metrics.add(AggregatorCounter::PeerFailures, "aggregation-job", 1);
    tracing::warn!(task = %task.id(), reason, "aggregation is delayed: the helper does not answer");
    Ok(JobAttempt::Failed)
}

/// Notes one refusal, durably: a restart does not start the count again.
pub(super) async fn note(
    shared: &AggregatorState,
    task: &Arc<ServedTask>,
    job: Job,
    reason: &str,
) -> Result<JobAttempt> {
    shared.metrics.add(AggregatorCounter::PeerFailures, "aggregation-job", 1);
    let limit = shared.config.job_attempts.max(1);
    let refused = shared.change(task, move |stored, task| count_or_give_up(stored, task, &job, limit)).await?;
    refused.log(task, reason);
    refused.count(&shared.metrics);
    if let RefusedJob::Counted(_) = refused {
        return Ok(JobAttempt::Refused);
    }
    task.failures.forget(&job.id);
    Ok(JobAttempt::Done)
}

/// A job after one more refusal.
enum RefusedJob {
    /// It has been refused this many times, and is tried again.
    Counted(u32),
    /// It no longer exists.
    Unknown,
    /// Its halves are jobs of their own now.
    Split,
    /// It was given up, with this many reports.
    Abandoned(u64),
}

impl RefusedJob {
    fn log(&self, task: &ServedTask, reason: &str) {
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

    fn count(&self, metrics: &Metrics<AggregatorCounter>) {
        match self {
            Self::Counted(_) | Self::Unknown => {}
            Self::Split => metrics.add(AggregatorCounter::Jobs, "split", 1),
            Self::Abandoned(reports) => {
                metrics.add(AggregatorCounter::Jobs, "abandoned", 1);
                metrics.add(AggregatorCounter::Aggregated, "abandoned", *reports);
            }
        }
    }
}

fn count_or_give_up(stored: TaskStore<'_>, task: &ServedTask, job: &Job, limit: u32) -> ChangeResult<RefusedJob> {
    let Some(refusals) = stored.count_refusal(job)? else {
        return Ok(RefusedJob::Unknown);
    };
    if refusals < limit {
        return Ok(RefusedJob::Counted(refusals));
    }
    let reports = stored.reports_of(job)?;
    stored.delete_job(job)?;
    if reports.len() > 1 {
        // A half has been refused before as a part of the whole: it gets half as many attempts.
        let (middle, _) = reports[reports.len() / 2];
        split(stored, job, middle, limit / 2)?;
        return Ok(RefusedJob::Split);
    }
    for (_, time) in &reports {
        stored.change_pending(task.parameters().window(*time), -1)?;
    }
    stored.dequeue(job)?;
    Ok(RefusedJob::Abandoned(reports.len() as u64))
}

/// Makes two jobs of one: the reports before number `middle`, and the others.
fn split(stored: TaskStore<'_>, job: &Job, middle: i64, refusals: u32) -> StoreResult<()> {
    for (first, last) in [(job.first, middle - 1), (middle, job.last)] {
        stored.insert_job(&Job::new(first, last), refusals)?;
    }
    Ok(())
}
