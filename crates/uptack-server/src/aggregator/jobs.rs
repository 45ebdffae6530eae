//! The leader's jobs as they are stored.

use rusqlite::{Connection, OptionalExtension, params};
use uptack_dap::protocol::AggregationJobId;

use super::shared::{Shared, Task};
use crate::{aggregator::store::StoreError, error::Result};

/// Memory that a job's shares may take, about.
const LARGEST_JOB_BYTES: usize = 2 * 1024 * 1024;

/// A range of stored reports under one name.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) id: AggregationJobId,
    pub(super) first: i64,
    pub(super) last: i64,
}

impl Job {
    /// A job under a fresh name.
    pub(super) fn new(first: i64, last: i64) -> Self {
        Self { id: rand::random(), first, last }
    }

    pub(super) fn insert(&self, connection: &Connection, task: i64, refusals: u32) -> rusqlite::Result<()> {
        connection.execute(
            "INSERT INTO leader_jobs(task, job_id, first, last, refusals) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![task, self.id.as_ref(), self.first, self.last, refusals],
        )?;
        Ok(())
    }
}

/// The jobs of a task that are not settled, in the order of their reports.
pub(super) fn open_jobs(connection: &Connection, task: i64) -> rusqlite::Result<Vec<Job>> {
    connection
        .prepare_cached("SELECT job_id, first, last FROM leader_jobs WHERE task = ?1 ORDER BY first")?
        .query_map([task], |row| {
            let id: Vec<u8> = row.get(0)?;
            Ok(Job {
                id: AggregationJobId::try_from(id.as_slice())
                    .map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, 0))?,
                first: row.get(1)?,
                last: row.get(2)?,
            })
        })?
        .collect()
}

/// Assigns stored reports to a new job; nothing if all are assigned.
pub(super) async fn create_job(shared: &Shared, task: &Task) -> Result<Option<Job>> {
    let (row, size) = (task.row, job_size(shared, task));
    Ok(shared.store.write(move |connection| take_range(connection, row, size)).await?)
}

/// Reports in a job: as configured, but of long sums only as many as fit a core's cache, since a
/// job's shares are all in memory until the helper has answered.
fn job_size(shared: &Shared, task: &Task) -> i64 {
    let report_bytes = 32 * task.definition.parameters.vdaf.length();
    shared.config.job_size.min(LARGEST_JOB_BYTES / report_bytes).max(1) as i64
}

fn take_range(connection: &Connection, task: i64, size: i64) -> std::result::Result<Option<Job>, StoreError<()>> {
    let assigned: Option<i64> = connection
        .prepare_cached("SELECT assigned FROM tasks WHERE task = ?1 AND definition IS NOT NULL")?
        .query_row([task], |row| row.get(0))
        .optional()?;
    let Some(assigned) = assigned else {
        return Ok(None);
    };
    let range: (Option<i64>, Option<i64>) = connection
        .prepare_cached(
            "SELECT min(report), max(report) FROM
             (SELECT report FROM reports WHERE task = ?1 AND report > ?2
              ORDER BY report LIMIT ?3)",
        )?
        .query_row([task, assigned, size], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(first), Some(last)) = range else {
        return Ok(None);
    };
    let job = Job::new(first, last);
    job.insert(connection, task, 0)?;
    connection.execute("UPDATE tasks SET assigned = ?2 WHERE task = ?1", [task, last])?;
    Ok(Some(job))
}
