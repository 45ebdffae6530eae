//! The helper gives the leader its share of a batch.

use std::sync::Arc;
use uptack_dap::{
    crypto::sha256,
    protocol::{AggregateShareAnswer, AggregateShareRequest, ProblemType},
};

use super::{check_interval, share};
use crate::{
    aggregator::{
        state::{AggregatorCounter, AggregatorState},
        store::{Batch, ChangeResult, Overlap, StoreError, TaskStore},
        tasks::ServedTask,
    },
    base::problem::{Answer, Problem},
};

/// Releases this helper's share of a batch once, sealed to the collector.
pub(crate) async fn aggregate_share(shared: &AggregatorState, task: &Arc<ServedTask>, body: &[u8]) -> Answer<Vec<u8>> {
    let request = ShareRequest::decode(task, body)?;
    let answer = shared.change(task, move |stored, task| request.answer(stored, task)).await?;
    shared.metrics.add(AggregatorCounter::Collections, "finished", 1);
    Ok(answer)
}

/// The batch that the leader asks for, as the leader counted it, and the digest of the request.
struct ShareRequest {
    request: AggregateShareRequest,
    digest: [u8; 32],
}

impl ShareRequest {
    fn decode(task: &ServedTask, body: &[u8]) -> Answer<Self> {
        let request = AggregateShareRequest::from_bytes(body);
        let request = request.ok_or_else(|| task.problem(ProblemType::InvalidMessage))?;
        check_interval(task, request.interval)?;
        Ok(Self { request, digest: sha256(body) })
    }

    /// The share. A repeated request gets the answer that the first one got.
    fn answer(&self, stored: TaskStore<'_>, task: &ServedTask) -> ChangeResult<Vec<u8>, Problem> {
        match stored.overlap(self.request.interval)? {
            Overlap::None => self.release(stored, task),
            Overlap::Partial => Err(task.problem(ProblemType::BatchOverlap).into()),
            Overlap::Same => {
                let answer = stored.share_answer(self.request.interval, &self.digest)?;
                Ok(answer.ok_or_else(|| task.problem(ProblemType::BatchQueriedTooManyTimes))?)
            }
        }
    }

    fn release(&self, stored: TaskStore<'_>, task: &ServedTask) -> ChangeResult<Vec<u8>, Problem> {
        let precision = task.parameters().time_precision;
        let (batch, _) = stored.total(&task.vdaf, self.request.interval, precision)?;
        self.check(task, &batch).map_err(|kind| task.problem(kind))?;
        let sealed = share::seal(task, self.request.interval, batch).map_err(StoreError::Other)?;
        let answer = AggregateShareAnswer(sealed).into_bytes();
        stored.keep_share_answer(self.request.interval, &self.digest, &answer)?;
        stored.forget_sums(self.request.interval)?;
        Ok(answer)
    }

    fn check(&self, task: &ServedTask, batch: &Batch) -> Result<(), ProblemType> {
        if batch.reports < task.parameters().min_batch_size {
            return Err(ProblemType::InvalidBatchSize);
        }
        if batch.reports != self.request.reports || batch.checksum != self.request.checksum {
            return Err(ProblemType::BatchMismatch);
        }
        Ok(())
    }
}
