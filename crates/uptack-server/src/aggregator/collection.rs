//! The leader answers the collector.
//!
//! A collection job *waits* until its batch has the minimum in sums, then *drains*: from that
//! moment the batch takes no new report, what is stored of it is aggregated, the leader's share is
//! made and stored, the helper is asked for its share, and the job is *finished*. A batch is drained
//! for one job only, ever.

use axum::http::StatusCode;
use rusqlite::{Connection, OptionalExtension, params};
use std::sync::Arc;
use uptack_dap::protocol::{
    AggregateShare, AggregateShareReq, BatchSelector, Collection, CollectionJobId, CollectionReq, DapProblemType,
    Decode, Duration, HpkeCiphertext, Interval, PartialBatchSelector, Time, TimeInterval, encode,
};

use super::{
    batches::{self, Batch, Overlap, Span},
    job_state::JobState,
    metrics::Name,
    peer::{self, PeerError},
    share,
    shared::{Shared, Task},
};
use crate::{
    aggregator::store::StoreError,
    base::problem::Problem,
    error::{Error, Result},
};

/// Creates a collection job; the identical request again is taken as done.
pub(crate) async fn create(
    shared: &Shared,
    task: &Arc<Task>,
    id: CollectionJobId,
    body: &[u8],
) -> std::result::Result<(), Problem> {
    let request =
        CollectionReq::<TimeInterval>::get_decoded(body).map_err(|_| task.problem(DapProblemType::InvalidMessage))?;
    if !request.aggregation_parameter().is_empty() {
        return Err(task.problem(DapProblemType::InvalidMessage));
    }
    let precision = task.definition.parameters.time_precision;
    let span = Span::aligned(request.query().batch_interval(), precision)
        .ok_or_else(|| task.problem(DapProblemType::BatchInvalid))?;
    let owned = Arc::clone(task);
    shared.store.write(move |connection| insert(connection, &owned, &id, span)).await?;
    task.wake.notify_one();
    Ok(())
}

/// The result, or nothing while it is being made.
pub(crate) async fn poll(
    shared: &Shared,
    task: &Arc<Task>,
    id: CollectionJobId,
) -> std::result::Result<Option<Vec<u8>>, Problem> {
    let job = shared.store.read(|connection| find(connection, task.row, &id))?;
    let job = job.ok_or_else(unknown)?;
    match job.state {
        JobState::Finished => Ok(job.detail),
        JobState::Failed => Err(failure(task, job.detail.as_deref())),
        JobState::Deleted => Err(unknown()),
        JobState::Waiting => {
            let owned = Arc::clone(task);
            let given_up = shared.store.write(move |connection| give_up(connection, &owned, &id)).await?;
            given_up.map_or(Ok(None), |reports| Err(too_small(task, reports)))
        }
        JobState::Draining => Ok(None),
    }
}

/// Forgets a job. A batch that was being released stays released: it is not given out again.
pub(crate) async fn delete(shared: &Shared, task: &Task, id: CollectionJobId) -> std::result::Result<(), Problem> {
    let row = task.row;
    shared
        .store
        .write(move |connection| {
            let Some(job) = find(connection, row, &id)? else {
                return Err(StoreError::Refused(unknown()));
            };
            if job.state == JobState::Waiting {
                connection.execute(
                    "DELETE FROM collection_jobs WHERE task = ?1 AND job_id = ?2",
                    params![row, id.as_ref()],
                )?;
            } else {
                set_state(connection, row, &id, JobState::Deleted, None)?;
            }
            Ok(())
        })
        .await
        .map_err(Problem::from)
}

/// Moves every job of the task as far as it goes now. Says whether any moved.
pub(crate) async fn advance(shared: &Shared, task: &Arc<Task>) -> Result<bool> {
    let row = task.row;
    let jobs: Vec<(CollectionJobId, Span, bool)> = shared.store.read(|connection| unfinished(connection, row))?;
    let mut moved = false;
    for (id, span, draining) in jobs {
        moved |= if draining {
            release(shared, task, id, span).await?
        } else {
            let task = Arc::clone(task);
            shared.store.write(move |connection| begin(connection, &task, &id, span)).await?
        };
    }
    Ok(moved)
}

/// Ends a waiting job whose batch turned out too small: an error is an answer, and a job that has
/// been answered must not take the batch from a later one. Says how many reports it has then.
fn give_up(
    connection: &Connection,
    task: &Task,
    id: &CollectionJobId,
) -> std::result::Result<Option<u64>, StoreError<Problem>> {
    let waiting = find(connection, task.row, id)?.filter(|job| job.state == JobState::Waiting);
    let Some(job) = waiting else {
        return Ok(None);
    };
    let pending = batches::pending(connection, task.row, job.span)?;
    let sums = batches::count(connection, task.row, job.span)?;
    if pending > 0 || sums >= task.definition.parameters.min_batch_size {
        return Ok(None);
    }
    connection
        .execute("DELETE FROM collection_jobs WHERE task = ?1 AND job_id = ?2", params![task.row, id.as_ref()])?;
    Ok(Some(sums))
}

/// Too few reports, and how many. The number of owners is public, so that the collector may hear it.
fn too_small(task: &Task, reports: u64) -> Problem {
    task.problem(DapProblemType::InvalidBatchSize).with_member("reports", reports.to_string())
}

struct Job {
    span: Span,
    state: JobState,
    detail: Option<Vec<u8>>,
}

fn unknown() -> Problem {
    Problem::http(StatusCode::NOT_FOUND, "There is no such collection job.")
}

fn failure(task: &Task, detail: Option<&[u8]>) -> Problem {
    let kind = detail
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .and_then(|uri| uri.parse().ok())
        .unwrap_or(DapProblemType::BatchInvalid);
    task.problem(kind)
}

fn find(connection: &Connection, task: i64, id: &CollectionJobId) -> rusqlite::Result<Option<Job>> {
    connection
        .prepare_cached(
            "SELECT start, finish, state, detail FROM collection_jobs
             WHERE task = ?1 AND job_id = ?2",
        )?
        .query_row(params![task, id.as_ref()], |row| {
            Ok(Job {
                span: Span { start: row.get::<_, i64>(0)? as u64, finish: row.get::<_, i64>(1)? as u64 },
                state: row.get(2)?,
                detail: row.get(3)?,
            })
        })
        .optional()
}

fn unfinished(connection: &Connection, task: i64) -> rusqlite::Result<Vec<(CollectionJobId, Span, bool)>> {
    connection
        .prepare_cached(
            "SELECT job_id, start, finish, state FROM collection_jobs
             WHERE task = ?1 AND state IN ('waiting', 'draining') ORDER BY state, start",
        )?
        .query_map([task], |row| {
            let id: Vec<u8> = row.get(0)?;
            let span = Span { start: row.get::<_, i64>(1)? as u64, finish: row.get::<_, i64>(2)? as u64 };
            let id =
                CollectionJobId::try_from(id.as_slice()).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, 0))?;
            Ok((id, span, row.get::<_, JobState>(3)? == JobState::Draining))
        })?
        .collect()
}

fn insert(
    connection: &Connection,
    task: &Task,
    id: &CollectionJobId,
    span: Span,
) -> std::result::Result<(), StoreError<Problem>> {
    if let Some(known) = find(connection, task.row, id)? {
        return if known.span == span && known.state != JobState::Deleted {
            Ok(())
        } else {
            Err(StoreError::Refused(Problem::http(
                StatusCode::CONFLICT,
                "Another collection job has, or had, this id.",
            )))
        };
    }
    if let Some(kind) = taken(batches::overlap(connection, task.row, span)?) {
        return Err(StoreError::Refused(task.problem(kind)));
    }
    let reports = batches::count(connection, task.row, span)? + batches::pending(connection, task.row, span)?;
    if reports < task.definition.parameters.min_batch_size {
        return Err(StoreError::Refused(too_small(task, reports)));
    }
    connection.execute(
        "INSERT INTO collection_jobs VALUES (?1, ?2, ?3, ?4, ?5, NULL)",
        params![task.row, id.as_ref(), span.start as i64, span.finish as i64, JobState::Waiting],
    )?;
    Ok(())
}

fn taken(overlap: Overlap) -> Option<DapProblemType> {
    match overlap {
        Overlap::None => None,
        Overlap::Same => Some(DapProblemType::BatchQueriedTooManyTimes),
        Overlap::Partial => Some(DapProblemType::BatchOverlap),
    }
}

/// Closes the batch for one waiting job, if there is enough in it.
fn begin(
    connection: &Connection,
    task: &Task,
    id: &CollectionJobId,
    span: Span,
) -> std::result::Result<bool, StoreError<()>> {
    if find(connection, task.row, id)?.is_none_or(|job| job.state != JobState::Waiting) {
        return Ok(false);
    }
    if let Some(kind) = taken(batches::overlap(connection, task.row, span)?) {
        let uri = kind.type_uri().as_bytes();
        set_state(connection, task.row, id, JobState::Failed, Some(uri))?;
        return Ok(true);
    }
    if batches::count(connection, task.row, span)? < task.definition.parameters.min_batch_size {
        return Ok(false);
    }
    connection.execute(
        "INSERT INTO collected VALUES (?1, ?2, ?3, NULL, NULL)",
        params![task.row, span.start as i64, span.finish as i64],
    )?;
    set_state(connection, task.row, id, JobState::Draining, None)?;
    Ok(true)
}

/// A batch that is complete, and the leader's share of it.
struct Drained {
    batch: Batch,
    covered: Span,
    share: HpkeCiphertext,
}

/// Makes the leader's share of a batch of which nothing is pending any more, or finds the one that was made before.
///
/// Made and stored in one change: what a collector can ever see is this share, with the noise that was drawn for it.
fn drain(connection: &Connection, task: &Task, span: Span) -> std::result::Result<Option<Drained>, StoreError<()>> {
    if batches::pending(connection, task.row, span)? > 0 {
        return Ok(None);
    }
    let precision = task.definition.parameters.time_precision;
    let (batch, covered) = batches::total(connection, &task.vdaf, task.row, span, precision)?;
    let broken = |error: &dyn std::fmt::Display| StoreError::Broken(error.to_string());
    let share = match batches::sealed_share(connection, task.row, span)? {
        Some(bytes) => HpkeCiphertext::get_decoded(&bytes).map_err(|error| broken(&error))?,
        None => {
            let interval = interval(span).map_err(|error| broken(&error))?;
            let share = share::seal(&task.definition, interval, batch.sum.clone()).map_err(|error| broken(&error))?;
            batches::keep_sealed_share(connection, task.row, span, Some(&encode(&share)))?;
            share
        }
    };
    Ok(Some(Drained { batch, covered, share }))
}

/// Asks the helper for its share once nothing of the batch is pending, and finishes the job.
async fn release(shared: &Shared, task: &Arc<Task>, id: CollectionJobId, span: Span) -> Result<bool> {
    let row = task.row;
    // The driver is still at it, and comes back here.
    if shared.store.read(|connection| batches::pending(connection, row, span))? > 0 {
        return Ok(false);
    }
    let owned = Arc::clone(task);
    let drained = shared.store.write(move |connection| drain(connection, &owned, span)).await?;
    let Some(Drained { batch, covered, share: leader }) = drained else {
        return Ok(false);
    };
    let interval = interval(span)?;
    let request = encode(&AggregateShareReq::new(
        BatchSelector::new_time_interval(interval),
        Vec::new(),
        batch.reports,
        batch.checksum,
    ));
    let media_types = (AggregateShareReq::<TimeInterval>::MEDIA_TYPE, AggregateShare::MEDIA_TYPE);
    let answer = peer::call(shared, task, reqwest::Method::POST, "aggregate_shares", media_types, request).await;
    let (state, detail) = match answer {
        Ok(answer) => {
            let helper = AggregateShare::get_decoded(&answer)
                .map_err(|_| Error::unreachable("the helper's share does not decode"))?;
            let result = Collection::<TimeInterval>::new(
                PartialBatchSelector::new_time_interval(),
                batch.reports,
                self::interval(covered)?,
                leader,
                helper.encrypted_aggregate_share().clone(),
            );
            (JobState::Finished, encode(&result))
        }
        Err(PeerError::Refused(kind)) => {
            tracing::error!(task = %task.id(), reason = kind.description(), "the helper refuses a batch");
            (JobState::Failed, kind.type_uri().as_bytes().to_vec())
        }
        Err(PeerError::Rejected(text) | PeerError::Passing(_, text)) => {
            shared.metrics.add(Name::PeerFailures, "aggregate-share", 1);
            return Err(Error::unreachable(format!("no share from the helper: {text}")));
        }
    };
    shared.store.write(move |connection| conclude(connection, row, &id, span, state, &detail)).await?;
    shared.metrics.add(Name::Collections, state.word(), 1);
    Ok(true)
}

fn conclude(
    connection: &Connection,
    task: i64,
    id: &CollectionJobId,
    span: Span,
    state: JobState,
    detail: &[u8],
) -> std::result::Result<(), StoreError<()>> {
    if find(connection, task, id)?.is_some_and(|job| job.state == JobState::Draining) {
        set_state(connection, task, id, state, Some(detail))?;
    }
    // The result holds the share from now on, or nobody gets it.
    batches::keep_sealed_share(connection, task, span, None)?;
    if state == JobState::Finished {
        batches::forget(connection, task, span)?;
    }
    Ok(())
}

fn set_state(
    connection: &Connection,
    task: i64,
    id: &CollectionJobId,
    state: JobState,
    detail: Option<&[u8]>,
) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE collection_jobs SET state = ?3, detail = ?4 WHERE task = ?1 AND job_id = ?2",
        params![task, id.as_ref(), state, detail],
    )?;
    Ok(())
}

fn interval(span: Span) -> Result<Interval> {
    Interval::new(Time::from_seconds_since_epoch(span.start), Duration::from_seconds(span.finish - span.start))
        .map_err(|_| Error::environment("an interval does not fit"))
}
