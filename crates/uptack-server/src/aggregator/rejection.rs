//! Aggregation jobs that the helper refuses.
//!
//! A helper that is away is waited for without end. One that answers and says no to a job, again and again, must not
//! hold up everything else of the task; nor must one that fails a job while it answers others (see [`super::failures`]).
//! Such a job is split in halves, so that one report that the helper cannot stomach
//! does not take others with it; a job of a single report is abandoned: the report is counted as dropped and deleted.
//!
//! Neither can make a release wrong. If the helper had added the reports after all and answered an error, the halves are
//! answered *replayed* and the abandoned report is missing here: either way the two sides' counts and checksums differ,
//! and the helper refuses the batch.

use rusqlite::{Connection, params};

use super::{
    batches,
    failures::Scope,
    jobs::Job,
    metrics::Name,
    shared::{Shared, Task},
};
use crate::{aggregator::store::StoreError, error::Result};

/// What a refusal comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejection {
    /// The job is tried again as it is.
    Again,
    /// The same, and nothing says that the helper is there.
    Failed,
    /// The job is gone: settled by another attempt, split or abandoned.
    Gone,
}

/// Takes note of a job that failed at the helper: as of a refusal, if the helper is there for others.
pub(super) async fn note_failure(
    shared: &Shared,
    task: &Task,
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

/// Takes note of one refusal, durably, so that a restart does not begin anew.
pub(super) async fn note(shared: &Shared, task: &Task, job: Job, reason: &str) -> Result<Rejection> {
    shared.metrics.add(Name::PeerFailures, "aggregation-job", 1);
    let (row, precision) = (task.row, task.definition.parameters.time_precision);
    let limit = shared.config.job_attempts.max(1);
    let change = move |connection: &Connection| count(connection, row, precision, &job, limit);
    let outcome = shared.store.write(change).await?;
    match outcome {
        Outcome::Counted(refusals) => {
            tracing::warn!(task = %task.id(), refusals, reason, "the helper refuses a job; trying again");
            return Ok(Rejection::Again);
        }
        Outcome::Unknown => {}
        Outcome::Split => {
            tracing::warn!(task = %task.id(), reason, "the helper refuses a job; trying its halves");
            shared.metrics.add(Name::Jobs, "split", 1);
        }
        Outcome::Abandoned(reports) => {
            tracing::error!(task = %task.id(), reports, reason, "the helper refuses a job for good; reports are dropped");
            shared.metrics.add(Name::Jobs, "abandoned", 1);
            shared.metrics.add(Name::Aggregated, "abandoned", reports);
        }
    }
    task.failures.forget(&job.id);
    Ok(Rejection::Gone)
}

enum Outcome {
    Counted(u32),
    Unknown,
    Split,
    Abandoned(u64),
}

fn count(
    connection: &Connection,
    task: i64,
    precision: u64,
    job: &Job,
    limit: u32,
) -> std::result::Result<Outcome, StoreError<()>> {
    let mut statement = connection.prepare_cached(
        "UPDATE leader_jobs SET refusals = refusals + 1 WHERE task = ?1 AND job_id = ?2 RETURNING refusals",
    )?;
    let mut rows = statement.query(params![task, job.id.as_ref()])?;
    let Some(refusals) = rows.next()?.map(|row| row.get::<_, u32>(0)).transpose()? else {
        return Ok(Outcome::Unknown);
    };
    drop(rows);
    if refusals < limit {
        return Ok(Outcome::Counted(refusals));
    }
    let reports = reports(connection, task, job)?;
    connection.execute("DELETE FROM leader_jobs WHERE task = ?1 AND job_id = ?2", params![task, job.id.as_ref()])?;
    if let [_, _, ..] = reports.as_slice() {
        // A half has been refused before as a part of the whole: it gets half as many attempts.
        split(connection, task, job, &reports, limit / 2)?;
        return Ok(Outcome::Split);
    }
    for (number, time) in &reports {
        batches::change_pending(connection, task, time - time % precision, -1)?;
        connection.execute("DELETE FROM reports WHERE report = ?1", [number])?;
    }
    Ok(Outcome::Abandoned(reports.len() as u64))
}

/// The numbers and times of a job's reports.
fn reports(connection: &Connection, task: i64, job: &Job) -> rusqlite::Result<Vec<(i64, u64)>> {
    connection
        .prepare_cached(
            "SELECT report, time FROM reports WHERE task = ?1 AND report BETWEEN ?2 AND ?3 ORDER BY report",
        )?
        .query_map([task, job.first, job.last], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?
        .collect()
}

fn split(connection: &Connection, task: i64, job: &Job, reports: &[(i64, u64)], refusals: u32) -> rusqlite::Result<()> {
    let middle = reports[reports.len() / 2].0;
    for (first, last) in [(job.first, middle - 1), (middle, job.last)] {
        Job::new(first, last).insert(connection, task, refusals)?;
    }
    Ok(())
}
