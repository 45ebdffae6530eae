//! The leader's jobs as they are stored.

use rusqlite::{Row, params};
use std::sync::Arc;
use uptack_dap::protocol::AggregationJobId;

use crate::aggregator::{
    state::{Shared, Task},
    store::{SqlResult, TaskRows, WriteResult, read_job_id},
};
use crate::error::Result;

/// About how much memory a job's shares may take.
const LARGEST_JOB_BYTES: usize = 2 * 1024 * 1024;

/// A range of stored reports under one name.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) id: AggregationJobId,
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl Job {
    /// A job under a fresh name.
    pub(crate) fn new(first: i64, last: i64) -> Self {
        Self { id: rand::random(), first, last }
    }

    pub(crate) fn insert(&self, rows: TaskRows<'_>, refusals: u32) -> SqlResult<()> {
        rows.run(
            "INSERT INTO leader_jobs(task, job_id, first, last, refusals) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![rows.task, self.id.as_ref(), self.first, self.last, refusals],
        )
    }

    /// Deletes the job, and says whether it was still there.
    pub(crate) fn delete(&self, rows: TaskRows<'_>) -> SqlResult<bool> {
        let statement = "DELETE FROM leader_jobs WHERE task = ?1 AND job_id = ?2";
        Ok(rows.execute(statement, params![rows.task, self.id.as_ref()])? > 0)
    }

    /// From the columns `job_id`, `first` and `last`.
    fn from_row(row: &Row<'_>) -> SqlResult<Self> {
        Ok(Self { id: read_job_id(row)?, first: row.get(1)?, last: row.get(2)? })
    }
}

/// The jobs of a task that are not settled, in the order of their reports.
pub(crate) fn open_jobs(rows: TaskRows<'_>) -> SqlResult<Vec<Job>> {
    let statement = "SELECT job_id, first, last FROM leader_jobs WHERE task = ?1 ORDER BY first";
    rows.list(statement, [rows.task], Job::from_row)
}

/// Assigns stored reports to a new job; nothing if all are assigned.
pub(crate) async fn create_job(shared: &Shared, task: &Arc<Task>) -> Result<Option<Job>> {
    let size = job_size(shared, task);
    Ok(shared.change(task, move |rows, _| assign(rows, size)).await?)
}

/// Reports in a job: as configured, but of long sums only as many as fit a core's cache, since a
/// job's shares are all in memory until the helper has answered.
fn job_size(shared: &Shared, task: &Task) -> i64 {
    let report_bytes = 32 * task.parameters().vdaf.length();
    shared.config.job_size.min(LARGEST_JOB_BYTES / report_bytes).max(1) as i64
}

fn assign(rows: TaskRows<'_>, size: i64) -> WriteResult<Option<Job>> {
    let Some(assigned) = last_assigned(rows)? else {
        return Ok(None);
    };
    let (Some(first), Some(last)) = next_range(rows, assigned, size)? else {
        return Ok(None);
    };
    let job = Job::new(first, last);
    job.insert(rows, 0)?;
    rows.execute("UPDATE tasks SET assigned = ?2 WHERE task = ?1", [rows.task, last])?;
    Ok(Some(job))
}

/// The last report that has been assigned to a job; nothing if the task has been removed.
fn last_assigned(rows: TaskRows<'_>) -> SqlResult<Option<i64>> {
    let statement = "SELECT assigned FROM tasks WHERE task = ?1 AND definition IS NOT NULL";
    rows.find(statement, [rows.task], |row| row.get(0))
}

/// The first and the last of the next reports after `after`, of which there are at most `size`.
fn next_range(rows: TaskRows<'_>, after: i64, size: i64) -> SqlResult<(Option<i64>, Option<i64>)> {
    rows.get(
        "SELECT min(report), max(report) FROM
         (SELECT report FROM reports WHERE task = ?1 AND report > ?2 ORDER BY report LIMIT ?3)",
        [rows.task, after, size],
        |row| row.try_into(),
    )
}
