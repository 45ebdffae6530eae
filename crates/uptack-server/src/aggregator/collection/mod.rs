//! The leader answers the collector.
//!
//! A collection job *waits* until the sums of its batch hold the minimum number of reports, then *drains*: from that
//! moment the batch takes no new reports, those already stored are aggregated, the leader's share is made and stored, the
//! helper is asked for its share, and the job is *finished*. A batch is only ever drained for one job.

pub(crate) mod aggregate_share;
mod share;

use std::sync::Arc;
use uptack_dap::protocol::{
    AggregateShareAnswer, AggregateShareRequest, BatchInterval, CollectionAnswer, CollectionJobId, CollectionRequest,
    Endpoint, ProblemType, SealedShare,
};

use crate::{
    aggregator::{
        peer::{Call, PeerError},
        state::{AggregatorCounter, AggregatorState},
        store::{Batch, ChangeResult, CollectionJob, CollectionState, Overlap, StoreError, TaskStore},
        tasks::ServedTask,
    },
    base::problem::{Answer, Problem},
    error::{Error, Result},
};

/// Creates a collection job. Repeating the identical request changes nothing.
pub(crate) async fn create(
    shared: &AggregatorState,
    task: &Arc<ServedTask>,
    id: CollectionJobId,
    body: &[u8],
) -> Answer<()> {
    let interval = decode_request(task, body)?;
    shared.change(task, move |stored, task| insert(stored, task, &id, interval)).await?;
    task.wake.notify_one();
    Ok(())
}

/// The result, or nothing while it is being made.
pub(crate) async fn poll(
    shared: &AggregatorState,
    task: &Arc<ServedTask>,
    id: CollectionJobId,
) -> Answer<Option<Vec<u8>>> {
    let job = shared.read(task, |stored| stored.collection_job(&id))?;
    let job = job.ok_or_else(unknown)?;
    match job.state {
        CollectionState::Finished => Ok(job.detail),
        CollectionState::Failed => Err(failure(task, job.detail.as_deref())),
        CollectionState::Deleted => Err(unknown()),
        CollectionState::Waiting => {
            let given_up = shared.change(task, move |stored, task| give_up(stored, task, &id)).await?;
            given_up.map_or(Ok(None), |reports| Err(too_small(task, reports)))
        }
        CollectionState::Draining => Ok(None),
    }
}

/// Forgets a job. A batch that was being released stays taken: it is not released again.
pub(crate) async fn delete(shared: &AggregatorState, task: &Arc<ServedTask>, id: CollectionJobId) -> Answer<()> {
    Ok(shared.change(task, move |stored, _| forget(stored, &id)).await?)
}

/// Advances every job of the task as far as possible, and says whether any advanced.
pub(crate) async fn advance(shared: &AggregatorState, task: &Arc<ServedTask>) -> Result<bool> {
    let jobs = shared.read(task, |stored| stored.unfinished_collections())?;
    let mut moved = false;
    for CollectionJob { id, interval, state, .. } in jobs {
        moved |= match state {
            CollectionState::Draining => release(shared, task, id, interval).await?,
            _ => shared.change(task, move |stored, task| begin(stored, task, &id, interval)).await?,
        };
    }
    Ok(moved)
}

fn decode_request(task: &ServedTask, body: &[u8]) -> Answer<BatchInterval> {
    let request = CollectionRequest::from_bytes(body).ok_or_else(|| task.problem(ProblemType::InvalidMessage))?;
    check_interval(task, request.interval)?;
    Ok(request.interval)
}

/// Refuses an interval that does not consist of whole windows, or whose end the store cannot represent.
fn check_interval(task: &ServedTask, interval: BatchInterval) -> Answer<()> {
    let is_storable = i64::try_from(interval.finish()).is_ok();
    if is_storable && interval.has_whole_windows(task.parameters().time_precision) {
        return Ok(());
    }
    Err(task.problem(ProblemType::BatchInvalid))
}

fn insert(
    stored: TaskStore<'_>,
    task: &ServedTask,
    id: &CollectionJobId,
    interval: BatchInterval,
) -> ChangeResult<(), Problem> {
    if let Some(known) = stored.collection_job(id)? {
        let repeated = known.interval == interval && known.state != CollectionState::Deleted;
        return if repeated { Ok(()) } else { Err(other_job().into()) };
    }
    check_available(stored, task, interval)?;
    stored.insert_collection(id, interval)?;
    Ok(())
}

/// Refuses a batch that can no longer be collected, or has too few reports even with those still pending.
fn check_available(stored: TaskStore<'_>, task: &ServedTask, interval: BatchInterval) -> ChangeResult<(), Problem> {
    if let Some(kind) = taken(stored.overlap(interval)?) {
        return Err(task.problem(kind).into());
    }
    let reports = stored.summed_reports(interval)? + stored.pending_reports(interval)?;
    if reports < task.parameters().min_batch_size {
        return Err(too_small(task, reports).into());
    }
    Ok(())
}

fn taken(overlap: Overlap) -> Option<ProblemType> {
    match overlap {
        Overlap::None => None,
        Overlap::Same => Some(ProblemType::BatchQueriedTooManyTimes),
        Overlap::Partial => Some(ProblemType::BatchOverlap),
    }
}

fn other_job() -> Problem {
    Problem::conflict("Another collection job has, or had, this id.")
}

/// There are too few reports, and this many. The number of owners is public, so the collector may learn it.
fn too_small(task: &ServedTask, reports: u64) -> Problem {
    task.problem(ProblemType::InvalidBatchSize).with_member("reports", reports.to_string())
}

fn unknown() -> Problem {
    Problem::not_found("There is no such collection job.")
}

fn failure(task: &ServedTask, detail: Option<&[u8]>) -> Problem {
    let kind = detail
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .and_then(ProblemType::from_uri)
        .unwrap_or(ProblemType::BatchInvalid);
    task.problem(kind)
}

/// Ends a waiting job whose batch turned out too small: an error is an answer, and a job that has
/// been answered must not take the batch from a later one. Returns how many reports the batch then has.
fn give_up(stored: TaskStore<'_>, task: &ServedTask, id: &CollectionJobId) -> ChangeResult<Option<u64>, Problem> {
    let Some(job) = stored.collection_job_in(id, CollectionState::Waiting)? else {
        return Ok(None);
    };
    let pending = stored.pending_reports(job.interval)?;
    let sums = stored.summed_reports(job.interval)?;
    if pending > 0 || sums >= task.parameters().min_batch_size {
        return Ok(None);
    }
    stored.delete_collection(&job)?;
    Ok(Some(sums))
}

fn forget(stored: TaskStore<'_>, id: &CollectionJobId) -> ChangeResult<(), Problem> {
    let job = stored.collection_job(id)?.ok_or_else(unknown)?;
    if job.state == CollectionState::Waiting {
        stored.delete_collection(&job)?;
    } else {
        stored.set_collection_state(&job, CollectionState::Deleted, None)?;
    }
    Ok(())
}

/// Closes the batch for one waiting job, if it has enough reports.
fn begin(
    stored: TaskStore<'_>,
    task: &ServedTask,
    id: &CollectionJobId,
    interval: BatchInterval,
) -> ChangeResult<bool> {
    let Some(job) = stored.collection_job_in(id, CollectionState::Waiting)? else {
        return Ok(false);
    };
    if let Some(kind) = taken(stored.overlap(interval)?) {
        let uri = kind.uri().as_bytes();
        stored.set_collection_state(&job, CollectionState::Failed, Some(uri))?;
        return Ok(true);
    }
    if stored.summed_reports(interval)? < task.parameters().min_batch_size {
        return Ok(false);
    }
    stored.close(interval)?;
    stored.set_collection_state(&job, CollectionState::Draining, None)?;
    Ok(true)
}

/// Asks the helper for its share once no report of the batch is pending, and finishes the job.
async fn release(
    shared: &AggregatorState,
    task: &Arc<ServedTask>,
    id: CollectionJobId,
    interval: BatchInterval,
) -> Result<bool> {
    // While something is pending the driver is still aggregating it, and comes back here.
    if shared.read(task, |stored| stored.pending_reports(interval))? > 0 {
        return Ok(false);
    }
    let Some(drained) = shared.change(task, move |stored, task| drain(stored, task, interval)).await? else {
        return Ok(false);
    };
    let ending = ask_helper(shared, task, drained).await?;
    let state = ending.state;
    shared.change(task, move |stored, _| ending.store(stored, &id, interval)).await?;
    shared.metrics.add(AggregatorCounter::Collections, state.word(), 1);
    Ok(true)
}

/// Asks the helper for its share, which decides how the job ends.
async fn ask_helper(shared: &AggregatorState, task: &ServedTask, drained: Drained) -> Result<Ending> {
    match drained.share_call(task).send(shared, task).await {
        Ok(answer) => Ok(Ending { state: CollectionState::Finished, detail: drained.result(&answer)? }),
        Err(PeerError::Refused(kind)) => {
            tracing::error!(task = %task.id(), reason = kind.title(), "the helper refuses a batch");
            Ok(Ending { state: CollectionState::Failed, detail: kind.uri().as_bytes().to_vec() })
        }
        Err(PeerError::Rejected(text) | PeerError::Passing(_, text)) => {
            shared.metrics.add(AggregatorCounter::PeerFailures, "aggregate-share", 1);
            Err(Error::unreachable(format!("no share from the helper: {text}")))
        }
    }
}

/// A batch that is complete, and the leader's share of it.
struct Drained {
    interval: BatchInterval,
    batch: Batch,
    covered: BatchInterval,
    leader_share: SealedShare,
}

impl Drained {
    /// The call for the helper's share of the batch.
    fn share_call(&self, task: &ServedTask) -> Call {
        let Batch { reports, checksum, .. } = self.batch;
        let request = AggregateShareRequest { interval: self.interval, reports, checksum };
        let endpoint = Endpoint::AGGREGATE_SHARE;
        Call { path: endpoint.of_task(task.id()), endpoint, body: request.to_bytes() }
    }

    /// The answer for the collector, from both shares.
    fn result(self, answer: &[u8]) -> Result<Vec<u8>> {
        let AggregateShareAnswer(helper_share) = AggregateShareAnswer::from_bytes(answer)
            .ok_or_else(|| Error::unreachable("the helper's share does not decode"))?;
        let (reports, interval, leader_share) = (self.batch.reports, self.covered, self.leader_share);
        Ok(CollectionAnswer { reports, interval, leader_share, helper_share }.into_bytes())
    }
}

/// Makes the leader's share of a batch once none of its reports is pending, or finds the share that was made before.
fn drain(stored: TaskStore<'_>, task: &ServedTask, interval: BatchInterval) -> ChangeResult<Option<Drained>> {
    if stored.pending_reports(interval)? > 0 {
        return Ok(None);
    }
    let precision = task.parameters().time_precision;
    let (batch, covered) = stored.total(&task.vdaf, interval, precision)?;
    let leader_share = match stored.sealed_share(interval)? {
        Some(bytes) => {
            SealedShare::from_bytes(&bytes).ok_or_else(|| StoreError::broken("a sealed share is damaged"))?
        }
        None => seal_share(stored, task, interval, &batch)?,
    };
    Ok(Some(Drained { interval, batch, covered, leader_share }))
}

/// Seals and stores the share in one change, so that a job that is taken up again goes on with the same bytes.
fn seal_share(
    stored: TaskStore<'_>,
    task: &ServedTask,
    interval: BatchInterval,
    batch: &Batch,
) -> ChangeResult<SealedShare> {
    let share = share::seal(task, interval, batch.clone()).map_err(StoreError::Other)?;
    stored.keep_sealed_share(interval, Some(&share.to_bytes()))?;
    Ok(share)
}

/// How a draining job ends: finished, with its result, or failed, with the type of the problem.
struct Ending {
    state: CollectionState,
    detail: Vec<u8>,
}

impl Ending {
    fn store(&self, stored: TaskStore<'_>, id: &CollectionJobId, interval: BatchInterval) -> ChangeResult<()> {
        if let Some(job) = stored.collection_job_in(id, CollectionState::Draining)? {
            stored.set_collection_state(&job, self.state, Some(&self.detail))?;
        }
        // From now on the result holds the share, or nobody gets it.
        stored.keep_sealed_share(interval, None)?;
        if self.state == CollectionState::Finished {
            stored.forget_sums(interval)?;
        }
        Ok(())
    }
}
