//! The leader answers the collector.
//!
//! A collection job *waits* until the sums of its batch hold the minimum number of reports, then *drains*: from that
//! moment the batch takes no new report, what is stored of it is aggregated, the leader's share is
//! made and stored, the helper is asked for its share, and the job is *finished*. A batch is drained
//! for one job only, ever.

pub(crate) mod aggregate_share;
mod share;

use std::sync::Arc;
use uptack_dap::protocol::{
    AggregateShare, AggregateShareReq, BatchSelector, Collection, CollectionJobId, CollectionReq, DapProblemType,
    Decode, HpkeCiphertext, PartialBatchSelector, TimeInterval, encode,
};

use crate::{
    aggregator::{
        peer::{Call, PeerError},
        state::{Name, Shared},
        store::{Batch, ChangeResult, CollectionJob, CollectionState, Overlap, Span, StoreError, TaskStore},
        tasks::Task,
    },
    base::problem::{Answer, Problem},
    error::{Error, Result},
};

/// Creates a collection job; the identical request again changes nothing.
pub(crate) async fn create(shared: &Shared, task: &Arc<Task>, id: CollectionJobId, body: &[u8]) -> Answer<()> {
    let span = decode_request(task, body)?;
    shared.change(task, move |stored, task| insert(stored, task, &id, span)).await?;
    task.wake.notify_one();
    Ok(())
}

/// The result, or nothing while it is being made.
pub(crate) async fn poll(shared: &Shared, task: &Arc<Task>, id: CollectionJobId) -> Answer<Option<Vec<u8>>> {
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

/// Forgets a job. A batch that was being released stays released: it is not handed out again.
pub(crate) async fn delete(shared: &Shared, task: &Arc<Task>, id: CollectionJobId) -> Answer<()> {
    Ok(shared.change(task, move |stored, _| forget(stored, &id)).await?)
}

/// Moves every job of the task as far as it goes now. Says whether any moved.
pub(crate) async fn advance(shared: &Shared, task: &Arc<Task>) -> Result<bool> {
    let jobs = shared.read(task, |stored| stored.unfinished_collections())?;
    let mut moved = false;
    for CollectionJob { id, span, state, .. } in jobs {
        moved |= match state {
            CollectionState::Draining => release(shared, task, id, span).await?,
            _ => shared.change(task, move |stored, task| begin(stored, task, &id, span)).await?,
        };
    }
    Ok(moved)
}

fn decode_request(task: &Task, body: &[u8]) -> Answer<Span> {
    let request =
        CollectionReq::<TimeInterval>::get_decoded(body).map_err(|_| task.problem(DapProblemType::InvalidMessage))?;
    if !request.aggregation_parameter().is_empty() {
        return Err(task.problem(DapProblemType::InvalidMessage));
    }
    Span::aligned(request.query().batch_interval(), task.parameters().time_precision)
        .ok_or_else(|| task.problem(DapProblemType::BatchInvalid))
}

fn insert(stored: TaskStore<'_>, task: &Task, id: &CollectionJobId, span: Span) -> ChangeResult<(), Problem> {
    if let Some(known) = stored.collection_job(id)? {
        let repeated = known.span == span && known.state != CollectionState::Deleted;
        return if repeated { Ok(()) } else { Err(other_job().into()) };
    }
    check_available(stored, task, span)?;
    stored.insert_collection(id, span)?;
    Ok(())
}

/// Refuses a batch that can no longer be collected, or has too few reports even with those still pending.
fn check_available(stored: TaskStore<'_>, task: &Task, span: Span) -> ChangeResult<(), Problem> {
    if let Some(kind) = taken(stored.overlap(span)?) {
        return Err(task.problem(kind).into());
    }
    let reports = stored.summed_reports(span)? + stored.pending_reports(span)?;
    if reports < task.parameters().min_batch_size {
        return Err(too_small(task, reports).into());
    }
    Ok(())
}

fn taken(overlap: Overlap) -> Option<DapProblemType> {
    match overlap {
        Overlap::None => None,
        Overlap::Same => Some(DapProblemType::BatchQueriedTooManyTimes),
        Overlap::Partial => Some(DapProblemType::BatchOverlap),
    }
}

fn other_job() -> Problem {
    Problem::conflict("Another collection job has, or had, this id.")
}

/// Too few reports, and how many. The number of owners is public, so the collector may learn it.
fn too_small(task: &Task, reports: u64) -> Problem {
    task.problem(DapProblemType::InvalidBatchSize).with_member("reports", reports.to_string())
}

fn unknown() -> Problem {
    Problem::not_found("There is no such collection job.")
}

fn failure(task: &Task, detail: Option<&[u8]>) -> Problem {
    let kind = detail
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .and_then(|uri| uri.parse().ok())
        .unwrap_or(DapProblemType::BatchInvalid);
    task.problem(kind)
}

/// Ends a waiting job whose batch turned out too small: an error is an answer, and a job that has
/// been answered must not take the batch from a later one. Says how many reports the batch has then.
fn give_up(stored: TaskStore<'_>, task: &Task, id: &CollectionJobId) -> ChangeResult<Option<u64>, Problem> {
    let Some(job) = stored.collection_job_in(id, CollectionState::Waiting)? else {
        return Ok(None);
    };
    let pending = stored.pending_reports(job.span)?;
    let sums = stored.summed_reports(job.span)?;
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

/// Closes the batch for one waiting job, if there is enough in it.
fn begin(stored: TaskStore<'_>, task: &Task, id: &CollectionJobId, span: Span) -> ChangeResult<bool> {
    let Some(job) = stored.collection_job_in(id, CollectionState::Waiting)? else {
        return Ok(false);
    };
    if let Some(kind) = taken(stored.overlap(span)?) {
        let uri = kind.type_uri().as_bytes();
        stored.set_collection_state(&job, CollectionState::Failed, Some(uri))?;
        return Ok(true);
    }
    if stored.summed_reports(span)? < task.parameters().min_batch_size {
        return Ok(false);
    }
    stored.close(span)?;
    stored.set_collection_state(&job, CollectionState::Draining, None)?;
    Ok(true)
}

/// Asks the helper for its share once nothing of the batch is pending, and finishes the job.
async fn release(shared: &Shared, task: &Arc<Task>, id: CollectionJobId, span: Span) -> Result<bool> {
    // While something is pending the driver is still aggregating it, and comes back here.
    if shared.read(task, |stored| stored.pending_reports(span))? > 0 {
        return Ok(false);
    }
    let Some(drained) = shared.change(task, move |stored, task| drain(stored, task, span)).await? else {
        return Ok(false);
    };
    let ending = ask_helper(shared, task, drained).await?;
    let state = ending.state;
    shared.change(task, move |stored, _| ending.store(stored, &id, span)).await?;
    shared.metrics.add(Name::Collections, state.word(), 1);
    Ok(true)
}

/// Asks the helper for its share, which decides how the job ends.
async fn ask_helper(shared: &Shared, task: &Task, drained: Drained) -> Result<Ending> {
    match drained.share_request()?.send(shared, task).await {
        Ok(answer) => Ok(Ending { state: CollectionState::Finished, detail: drained.result(&answer)? }),
        Err(PeerError::Refused(kind)) => {
            tracing::error!(task = %task.id(), reason = kind.description(), "the helper refuses a batch");
            Ok(Ending { state: CollectionState::Failed, detail: kind.type_uri().as_bytes().to_vec() })
        }
        Err(PeerError::Rejected(text) | PeerError::Passing(_, text)) => {
            shared.metrics.add(Name::PeerFailures, "aggregate-share", 1);
            Err(Error::unreachable(format!("no share from the helper: {text}")))
        }
    }
}

/// A batch that is complete, and the leader's share of it.
struct Drained {
    span: Span,
    batch: Batch,
    covered: Span,
    leader_share: HpkeCiphertext,
}

impl Drained {
    /// The call for the helper's share of the batch.
    fn share_request(&self) -> Result<Call> {
        let selector = BatchSelector::new_time_interval(self.span.interval()?);
        let request = AggregateShareReq::new(selector, Vec::new(), self.batch.reports, self.batch.checksum);
        Ok(Call {
            method: reqwest::Method::POST,
            path: "aggregate_shares".to_owned(),
            media_type: AggregateShareReq::<TimeInterval>::MEDIA_TYPE,
            body: encode(&request),
            answer_type: AggregateShare::MEDIA_TYPE,
        })
    }

    /// What the collector gets, with the helper's share.
    fn result(self, answer: &[u8]) -> Result<Vec<u8>> {
        let helper = AggregateShare::get_decoded(answer)
            .map_err(|_| Error::unreachable("the helper's share does not decode"))?;
        Ok(encode(&Collection::<TimeInterval>::new(
            PartialBatchSelector::new_time_interval(),
            self.batch.reports,
            self.covered.interval()?,
            self.leader_share,
            helper.encrypted_aggregate_share().clone(),
        )))
    }
}

/// Makes the leader's share of a batch once nothing of it is pending, or finds the one that was made before.
fn drain(stored: TaskStore<'_>, task: &Task, span: Span) -> ChangeResult<Option<Drained>> {
    if stored.pending_reports(span)? > 0 {
        return Ok(None);
    }
    let precision = task.parameters().time_precision;
    let (batch, covered) = stored.total(&task.vdaf, span, precision)?;
    let leader_share = match stored.sealed_share(span)? {
        Some(bytes) => HpkeCiphertext::get_decoded(&bytes).map_err(StoreError::broken)?,
        None => seal_share(stored, task, span, &batch)?,
    };
    Ok(Some(Drained { span, batch, covered, leader_share }))
}

/// Made and stored in one change: all that a collector can ever see is this share, with the noise drawn for it.
fn seal_share(stored: TaskStore<'_>, task: &Task, span: Span, batch: &Batch) -> ChangeResult<HpkeCiphertext> {
    let interval = span.interval().map_err(StoreError::broken)?;
    let share = share::seal(&task.definition, interval, batch.sum.clone()).map_err(StoreError::broken)?;
    stored.keep_sealed_share(span, Some(&encode(&share)))?;
    Ok(share)
}

/// How a draining job ends: finished, with its result, or failed, with the type of the problem.
struct Ending {
    state: CollectionState,
    detail: Vec<u8>,
}

impl Ending {
    fn store(&self, stored: TaskStore<'_>, id: &CollectionJobId, span: Span) -> ChangeResult<()> {
        if let Some(job) = stored.collection_job_in(id, CollectionState::Draining)? {
            stored.set_collection_state(&job, self.state, Some(&self.detail))?;
        }
        // From now on the result holds the share, or nobody gets it.
        stored.keep_sealed_share(span, None)?;
        if self.state == CollectionState::Finished {
            stored.forget_sums(span)?;
        }
        Ok(())
    }
}
