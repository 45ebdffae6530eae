//! Collection jobs, and the intervals that have been released.

use rusqlite::{
    Row, params,
    types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef},
};
use uptack_dap::protocol::{BatchInterval, CollectionJobId};

use super::{SqlResult, StoreResult, TaskStore, damaged, read_job_id, read_u64};

/// A collector's request for a batch.
pub(crate) struct CollectionJob {
    pub(crate) id: CollectionJobId,
    pub(crate) interval: BatchInterval,
    pub(crate) state: CollectionState,
    /// The result of a finished job, the problem type of a failed one.
    pub(crate) detail: Option<Vec<u8>>,
}

impl CollectionJob {
    /// From the columns `job_id`, `start`, `finish`, `state` and `detail`.
    fn from_row(row: &Row<'_>) -> SqlResult<Self> {
        Ok(Self { id: read_job_id(row)?, interval: read_interval(row)?, state: row.get(3)?, detail: row.get(4)? })
    }
}

/// Where a collection job stands; `docs/DATA_MODEL.md` says which states follow which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CollectionState {
    /// Its batch does not have enough reports yet.
    Waiting,
    /// Its batch is closed, and the reports taken before that are still being aggregated.
    Draining,
    /// Its result is ready.
    Finished,
    /// It has no result and will have none.
    Failed,
    /// The collector deleted it. Its batch stays taken.
    Deleted,
}

impl CollectionState {
    const ALL: [Self; 5] = [Self::Waiting, Self::Draining, Self::Finished, Self::Failed, Self::Deleted];

    /// The word in the file and in counters.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Draining => "draining",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Deleted => "deleted",
        }
    }
}

impl ToSql for CollectionState {
    fn to_sql(&self) -> SqlResult<ToSqlOutput<'_>> {
        Ok(self.word().into())
    }
}

impl FromSql for CollectionState {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word = value.as_str()?;
        Self::ALL.into_iter().find(|state| state.word() == word).ok_or(FromSqlError::InvalidType)
    }
}

/// From the columns `start` and `finish`.
fn read_interval(row: &Row<'_>) -> SqlResult<BatchInterval> {
    let (start, finish) = (read_u64(row, "start")?, read_u64(row, "finish")?);
    BatchInterval::new(start, finish).ok_or_else(|| damaged(1, "start"))
}

/// How an interval relates to those that were released before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlap {
    None,
    Same,
    Partial,
}

/// Collection jobs, which the leader alone has.
impl TaskStore<'_> {
    pub(crate) fn collection_job(self, id: &CollectionJobId) -> StoreResult<Option<CollectionJob>> {
        let statement = "SELECT job_id, start, finish, state, detail FROM collection_jobs
                         WHERE task = ?1 AND job_id = ?2";
        self.find(statement, params![self.task, id.as_ref()], CollectionJob::from_row)
    }

    /// The job, if it is in this state.
    pub(crate) fn collection_job_in(
        self,
        id: &CollectionJobId,
        state: CollectionState,
    ) -> StoreResult<Option<CollectionJob>> {
        Ok(self.collection_job(id)?.filter(|job| job.state == state))
    }

    /// The jobs that have no result yet: those that drain before those that wait.
    pub(crate) fn unfinished_collections(self) -> StoreResult<Vec<CollectionJob>> {
        let statement = "SELECT job_id, start, finish, state, detail FROM collection_jobs
                         WHERE task = ?1 AND state IN ('waiting', 'draining') ORDER BY state, start";
        self.list(statement, [self.task], CollectionJob::from_row)
    }

    /// Stores a new job, which waits.
    pub(crate) fn insert_collection(self, id: &CollectionJobId, interval: BatchInterval) -> StoreResult<()> {
        let [task, start, finish] = self.within(interval);
        self.run(
            "INSERT INTO collection_jobs VALUES (?1, ?2, ?3, ?4, ?5, NULL)",
            params![task, id.as_ref(), start, finish, CollectionState::Waiting],
        )
    }

    pub(crate) fn set_collection_state(
        self,
        job: &CollectionJob,
        state: CollectionState,
        detail: Option<&[u8]>,
    ) -> StoreResult<()> {
        self.run(
            "UPDATE collection_jobs SET state = ?3, detail = ?4 WHERE task = ?1 AND job_id = ?2",
            params![self.task, job.id.as_ref(), state, detail],
        )
    }

    pub(crate) fn delete_collection(self, job: &CollectionJob) -> StoreResult<()> {
        let statement = "DELETE FROM collection_jobs WHERE task = ?1 AND job_id = ?2";
        self.run(statement, params![self.task, job.id.as_ref()])
    }
}

/// Released intervals.
impl TaskStore<'_> {
    /// Whether the window that holds `time` has been released, or is about to be.
    pub(crate) fn is_collected(self, time: u64) -> StoreResult<bool> {
        let statement = "SELECT 1 FROM collected WHERE task = ?1 AND start <= ?2 AND finish > ?2 LIMIT 1";
        Ok(self.prepare(statement)?.exists([self.task, time as i64])?)
    }

    pub(crate) fn overlap(self, interval: BatchInterval) -> StoreResult<Overlap> {
        let statement = "SELECT start, finish FROM collected
                         WHERE task = ?1 AND start < ?3 AND finish > ?2 LIMIT 1";
        let other = self.find(statement, self.within(interval), read_interval)?;
        Ok(match other {
            None => Overlap::None,
            Some(other) if other == interval => Overlap::Same,
            Some(_) => Overlap::Partial,
        })
    }

    /// Leader: marks an interval as released: from now on it takes no report.
    pub(crate) fn close(self, interval: BatchInterval) -> StoreResult<()> {
        self.run("INSERT INTO collected VALUES (?1, ?2, ?3, NULL, NULL)", self.within(interval))
    }

    /// The leader's own sealed share of an interval that is being released, if it has been made.
    pub(crate) fn sealed_share(self, interval: BatchInterval) -> StoreResult<Option<Vec<u8>>> {
        let statement = "SELECT response FROM collected WHERE task = ?1 AND start = ?2 AND finish = ?3";
        self.get(statement, self.within(interval), |row| row.get(0))
    }

    /// Keeps the leader's own sealed share of an interval that is being released, or forgets it.
    pub(crate) fn keep_sealed_share(self, interval: BatchInterval, share: Option<&[u8]>) -> StoreResult<()> {
        let [task, start, finish] = self.within(interval);
        self.run(
            "UPDATE collected SET response = ?4 WHERE task = ?1 AND start = ?2 AND finish = ?3",
            params![task, start, finish, share],
        )
    }

    /// Helper: marks an interval as released, and keeps the answer with the digest of the request.
    pub(crate) fn keep_share_answer(
        self,
        interval: BatchInterval,
        request: &[u8; 32],
        answer: &[u8],
    ) -> StoreResult<()> {
        let [task, start, finish] = self.within(interval);
        let statement = "INSERT INTO collected VALUES (?1, ?2, ?3, ?4, ?5)";
        self.run(statement, params![task, start, finish, request, answer])
    }

    /// Helper: the answer to an earlier request with this digest.
    pub(crate) fn share_answer(self, interval: BatchInterval, request: &[u8; 32]) -> StoreResult<Option<Vec<u8>>> {
        let [task, start, finish] = self.within(interval);
        let statement = "SELECT response FROM collected
                         WHERE task = ?1 AND start = ?2 AND finish = ?3 AND request = ?4";
        self.find(statement, params![task, start, finish, request], |row| row.get(0))
    }
}
