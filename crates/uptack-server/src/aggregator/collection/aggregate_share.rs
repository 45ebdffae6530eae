//! The helper answers the leader: its share of a batch.

use rusqlite::params;
use std::sync::Arc;
use uptack_dap::{
    digest::sha256,
    protocol::{
        AggregateShare, AggregateShareReq, DapProblemType, Decode, Interval, ReportIdChecksum, TimeInterval, encode,
    },
};

use crate::aggregator::{
    collection::share,
    metrics::Name,
    state::{Shared, Task},
    store::batches::{Batch, Overlap, Span},
};
use crate::{
    aggregator::store::{SqlResult, StoreError, TaskRows, WriteResult},
    base::problem::{Answer, Problem},
};

/// Hands out this helper's share of a batch, sealed to the collector, once.
pub(crate) async fn aggregate_share(shared: &Shared, task: &Arc<Task>, body: &[u8]) -> Answer<Vec<u8>> {
    let request = ShareRequest::decode(task, body)?;
    let answer = shared.change(task, move |rows, task| request.answer(rows, task)).await?;
    shared.metrics.add(Name::Collections, "finished", 1);
    Ok(answer)
}

/// The batch that the leader asks for, as the leader counted it, and the digest of the request.
struct ShareRequest {
    interval: Interval,
    span: Span,
    reports: u64,
    checksum: ReportIdChecksum,
    digest: [u8; 32],
}

impl ShareRequest {
    fn decode(task: &Task, body: &[u8]) -> Answer<Self> {
        let request = AggregateShareReq::<TimeInterval>::get_decoded(body)
            .map_err(|_| task.problem(DapProblemType::InvalidMessage))?;
        if !request.aggregation_parameter().is_empty() {
            return Err(task.problem(DapProblemType::InvalidMessage));
        }
        let interval = *request.batch_selector().batch_interval();
        let span = Span::aligned(&interval, task.parameters().time_precision)
            .ok_or_else(|| task.problem(DapProblemType::BatchInvalid))?;
        let (reports, checksum) = (request.report_count(), *request.checksum());
        Ok(Self { interval, span, reports, checksum, digest: sha256(body) })
    }

    /// The share; a repeated request gets the answer that it got before.
    fn answer(&self, rows: TaskRows<'_>, task: &Task) -> WriteResult<Vec<u8>, Problem> {
        match rows.overlap(self.span)? {
            Overlap::None => self.release(rows, task),
            Overlap::Partial => Err(task.problem(DapProblemType::BatchOverlap).into()),
            Overlap::Same => {
                let answer = self.earlier_answer(rows)?;
                Ok(answer.ok_or_else(|| task.problem(DapProblemType::BatchQueriedTooManyTimes))?)
            }
        }
    }

    fn release(&self, rows: TaskRows<'_>, task: &Task) -> WriteResult<Vec<u8>, Problem> {
        let precision = task.parameters().time_precision;
        let (batch, _) = rows.total(&task.vdaf, self.span, precision)?;
        self.check(task, &batch).map_err(|kind| task.problem(kind))?;
        let sealed = share::seal(&task.definition, self.interval, batch.sum).map_err(StoreError::broken)?;
        let answer = encode(&AggregateShare::new(sealed));
        self.keep_answer(rows, &answer)?;
        rows.forget_sums(self.span)?;
        Ok(answer)
    }

    fn check(&self, task: &Task, batch: &Batch) -> Result<(), DapProblemType> {
        if batch.reports < task.parameters().min_batch_size {
            return Err(DapProblemType::InvalidBatchSize);
        }
        if batch.reports != self.reports || batch.checksum != self.checksum {
            return Err(DapProblemType::BatchMismatch);
        }
        Ok(())
    }

    fn keep_answer(&self, rows: TaskRows<'_>, answer: &[u8]) -> SqlResult<()> {
        let [task, start, finish] = rows.within(self.span);
        let statement = "INSERT INTO collected VALUES (?1, ?2, ?3, ?4, ?5)";
        rows.run(statement, params![task, start, finish, self.digest, answer])
    }

    fn earlier_answer(&self, rows: TaskRows<'_>) -> SqlResult<Option<Vec<u8>>> {
        let [task, start, finish] = rows.within(self.span);
        let statement = "SELECT response FROM collected
                         WHERE task = ?1 AND start = ?2 AND finish = ?3 AND request = ?4";
        rows.find(statement, params![task, start, finish, self.digest], |row| row.get(0))
    }
}
