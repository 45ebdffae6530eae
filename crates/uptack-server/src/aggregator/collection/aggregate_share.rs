//! The helper answers the leader: its share of a batch.

use std::sync::Arc;
use uptack_dap::{
    digest::sha256,
    protocol::{
        AggregateShare, AggregateShareReq, DapProblemType, Decode, Interval, ReportIdChecksum, TimeInterval, encode,
    },
};

use super::share;
use crate::{
    aggregator::{
        state::{Name, Shared},
        store::{Batch, ChangeResult, Overlap, Span, StoreError, TaskStore},
        tasks::Task,
    },
    base::problem::{Answer, Problem},
};

/// Hands out this helper's share of a batch, sealed to the collector, once.
pub(crate) async fn aggregate_share(shared: &Shared, task: &Arc<Task>, body: &[u8]) -> Answer<Vec<u8>> {
    let request = ShareRequest::decode(task, body)?;
    let answer = shared.change(task, move |stored, task| request.answer(stored, task)).await?;
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
    fn answer(&self, stored: TaskStore<'_>, task: &Task) -> ChangeResult<Vec<u8>, Problem> {
        match stored.overlap(self.span)? {
            Overlap::None => self.release(stored, task),
            Overlap::Partial => Err(task.problem(DapProblemType::BatchOverlap).into()),
            Overlap::Same => {
                let answer = stored.share_answer(self.span, &self.digest)?;
                Ok(answer.ok_or_else(|| task.problem(DapProblemType::BatchQueriedTooManyTimes))?)
            }
        }
    }

    fn release(&self, stored: TaskStore<'_>, task: &Task) -> ChangeResult<Vec<u8>, Problem> {
        let precision = task.parameters().time_precision;
        let (batch, _) = stored.total(&task.vdaf, self.span, precision)?;
        self.check(task, &batch).map_err(|kind| task.problem(kind))?;
        let sealed = share::seal(&task.definition, self.interval, batch.sum).map_err(StoreError::broken)?;
        let answer = encode(&AggregateShare::new(sealed));
        stored.keep_share_answer(self.span, &self.digest, &answer)?;
        stored.forget_sums(self.span)?;
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
}
