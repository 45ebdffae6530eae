//! Aggregation jobs: the leader's, which are open until they are settled, and the helper's answers.

use rusqlite::{Row, params};
use uptack_dap::protocol::AggregationJobId;

use super::{SqlResult, StoreResult, TaskStore, read_job_id};

/// A range of queued reports under one name.
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

    /// From the columns `job_id`, `first` and `last`.
    fn from_row(row: &Row<'_>) -> SqlResult<Self> {
        Ok(Self { id: read_job_id(row)?, first: row.get(1)?, last: row.get(2)? })
    }
}

/// A job that the helper has answered.
pub(crate) struct AnsweredJob {
    /// The digest of the request.
    pub(crate) request: Vec<u8>,
    /// Nothing if the leader deleted the job.
    pub(crate) answer: Option<Vec<u8>>,
}

/// The leader's jobs.
impl TaskStore<'_> {
    /// The jobs that are not settled, in the order of their reports.
    pub(crate) fn open_jobs(self) -> StoreResult<Vec<Job>> {
        let statement = "SELECT job_id, first, last FROM leader_jobs WHERE task = ?1 ORDER BY first";
        self.list(statement, [self.task], Job::from_row)
    }

    /// Assigns at most `size` reports to a new job; nothing if all are assigned or the task has been removed.
    pub(crate) fn create_job(self, size: usize) -> StoreResult<Option<Job>> {
        let Some(assigned) = self.last_assigned()? else {
            return Ok(None);
        };
        let (Some(first), Some(last)) = self.next_range(assigned, size)? else {
            return Ok(None);
        };
        let job = Job::new(first, last);
        self.insert_job(&job, 0)?;
        self.run("UPDATE tasks SET assigned = ?2 WHERE task = ?1", [self.task, last])?;
        Ok(Some(job))
    }

    pub(crate) fn insert_job(self, job: &Job, refusals: u32) -> StoreResult<()> {
        self.run(
            "INSERT INTO leader_jobs(task, job_id, first, last, refusals) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![self.task, job.id.as_ref(), job.first, job.last, refusals],
        )
    }

    /// Deletes a job, and says whether it was still there.
    pub(crate) fn delete_job(self, job: &Job) -> StoreResult<bool> {
        let statement = "DELETE FROM leader_jobs WHERE task = ?1 AND job_id = ?2";
        Ok(self.execute(statement, params![self.task, job.id.as_ref()])? > 0)
    }

    /// Counts one more refusal of a job and returns how many there are; nothing if the job no longer exists.
    pub(crate) fn count_refusal(self, job: &Job) -> StoreResult<Option<u32>> {
        self.find(
            "UPDATE leader_jobs SET refusals = refusals + 1 WHERE task = ?1 AND job_id = ?2 RETURNING refusals",
            params![self.task, job.id.as_ref()],
            |row| row.get(0),
        )
    }

    /// The last report that has been assigned to a job; nothing if the task has been removed.
    fn last_assigned(self) -> StoreResult<Option<i64>> {
        let statement = "SELECT assigned FROM tasks WHERE task = ?1 AND definition IS NOT NULL";
        self.find(statement, [self.task], |row| row.get(0))
    }

    /// The first and the last of the next reports after `after`, of which there are at most `size`.
    fn next_range(self, after: i64, size: usize) -> StoreResult<(Option<i64>, Option<i64>)> {
        self.get(
            "SELECT min(report), max(report) FROM
             (SELECT report FROM reports WHERE task = ?1 AND report > ?2 ORDER BY report LIMIT ?3)",
            [self.task, after, size as i64],
            |row| row.try_into(),
        )
    }
}

/// The helper's jobs.
impl TaskStore<'_> {
    pub(crate) fn answered_job(self, id: &AggregationJobId) -> StoreResult<Option<AnsweredJob>> {
        let statement = "SELECT request, response FROM helper_jobs WHERE task = ?1 AND job_id = ?2";
        let read = |row: &Row<'_>| Ok(AnsweredJob { request: row.get(0)?, answer: row.get(1)? });
        self.find(statement, params![self.task, id.as_ref()], read)
    }

    /// Keeps the answer to a job, with the digest of the request.
    pub(crate) fn keep_job_answer(
        self,
        id: &AggregationJobId,
        request: &[u8; 32],
        answer: &[u8],
        now: u64,
    ) -> StoreResult<()> {
        self.run(
            "INSERT INTO helper_jobs VALUES (?1, ?2, ?3, ?4, ?5)",
            params![self.task, id.as_ref(), request, answer, now as i64],
        )
    }

    /// Forgets the answer to a job; false if there is no such job.
    pub(crate) fn forget_job_answer(self, id: &AggregationJobId) -> StoreResult<bool> {
        let statement = "UPDATE helper_jobs SET response = NULL WHERE task = ?1 AND job_id = ?2";
        Ok(self.execute(statement, params![self.task, id.as_ref()])? > 0)
    }
}
