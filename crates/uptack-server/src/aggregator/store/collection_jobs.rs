//! Collection jobs as they are stored.

use rusqlite::{Row, params};
use uptack_dap::protocol::CollectionJobId;

use crate::aggregator::{
    store::batches::Span,
    store::job_state::JobState,
    store::{SqlResult, TaskRows, read_job_id},
};

pub(crate) struct CollectionJob {
    pub(crate) id: CollectionJobId,
    pub(crate) span: Span,
    pub(crate) state: JobState,
    /// The result of a finished job, the problem type of a failed one.
    pub(crate) detail: Option<Vec<u8>>,
}

impl CollectionJob {
    pub(crate) fn find(rows: TaskRows<'_>, id: &CollectionJobId) -> SqlResult<Option<Self>> {
        let statement = "SELECT job_id, start, finish, state, detail FROM collection_jobs
                         WHERE task = ?1 AND job_id = ?2";
        rows.find(statement, params![rows.task, id.as_ref()], Self::from_row)
    }

    /// The job, if it is in this state.
    pub(crate) fn find_in(rows: TaskRows<'_>, id: &CollectionJobId, state: JobState) -> SqlResult<Option<Self>> {
        Ok(Self::find(rows, id)?.filter(|job| job.state == state))
    }

    /// The jobs of a task that have no result yet: those that drain before those that wait.
    pub(crate) fn unfinished(rows: TaskRows<'_>) -> SqlResult<Vec<Self>> {
        let statement = "SELECT job_id, start, finish, state, detail FROM collection_jobs
                         WHERE task = ?1 AND state IN ('waiting', 'draining') ORDER BY state, start";
        rows.list(statement, [rows.task], Self::from_row)
    }

    pub(crate) fn insert_waiting(rows: TaskRows<'_>, id: &CollectionJobId, span: Span) -> SqlResult<()> {
        let [task, start, finish] = rows.within(span);
        rows.run(
            "INSERT INTO collection_jobs VALUES (?1, ?2, ?3, ?4, ?5, NULL)",
            params![task, id.as_ref(), start, finish, JobState::Waiting],
        )
    }

    pub(crate) fn set_state(&self, rows: TaskRows<'_>, state: JobState, detail: Option<&[u8]>) -> SqlResult<()> {
        rows.run(
            "UPDATE collection_jobs SET state = ?3, detail = ?4 WHERE task = ?1 AND job_id = ?2",
            params![rows.task, self.id.as_ref(), state, detail],
        )
    }

    pub(crate) fn delete(&self, rows: TaskRows<'_>) -> SqlResult<()> {
        let statement = "DELETE FROM collection_jobs WHERE task = ?1 AND job_id = ?2";
        rows.run(statement, params![rows.task, self.id.as_ref()])
    }

    /// From the columns `job_id`, `start`, `finish`, `state` and `detail`.
    fn from_row(row: &Row<'_>) -> SqlResult<Self> {
        Ok(Self { id: read_job_id(row)?, span: Span::from_row(row)?, state: row.get(3)?, detail: row.get(4)? })
    }
}
