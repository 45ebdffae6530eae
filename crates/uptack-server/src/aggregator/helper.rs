//! The helper answers the leader: aggregation jobs and aggregate shares.

use axum::http::StatusCode;
use rusqlite::{Connection, OptionalExtension, params};
use std::{collections::HashSet, sync::Arc};
use uptack_dap::{
    digest::sha256,
    protocol::{
        self, AggregateShare, AggregateShareReq, AggregationJobId, AggregationJobInitializeReq, AggregationJobResp,
        Contribution, DapProblemType, Decode, OpenError, PingPongMessage, PrepareError, PrepareInit, PrepareResp,
        PrepareStepResult, ReportId, Role, TimeInterval, encode,
    },
};

use super::{
    batches::{self, Additions, Overlap, Span},
    metrics::Name,
    share,
    shared::{Shared, Task},
    upload::floor,
};
use crate::{aggregator::store::StoreError, base::problem::Problem};

/// Prepares the reports of a job, adds them to the sums and answers; the identical request again
/// gets the identical answer, and changes nothing.
pub(crate) async fn initialize(
    shared: &Arc<Shared>,
    task: &Arc<Task>,
    id: AggregationJobId,
    body: Vec<u8>,
) -> Result<Vec<u8>, Problem> {
    let digest = sha256(&body);
    let row = task.row;
    let known = shared.store.read(|connection| job(connection, row, &id))?;
    if let Some(answer) = repeated(task, known, &digest)? {
        return Ok(answer);
    }
    let request = decode_request(task, &body)?;
    drop(body);
    // By itself, so that the work counts even if the leader hangs up while it waits: its next
    // attempt then finds the answer instead of starting over.
    let work = process(Arc::clone(shared), Arc::clone(task), id, digest, request);
    tokio::spawn(work).await.map_err(|_| Problem::http(StatusCode::INTERNAL_SERVER_ERROR, "preparation failed"))?
}

async fn process(
    shared: Arc<Shared>,
    task: Arc<Task>,
    id: AggregationJobId,
    digest: [u8; 32],
    request: AggregationJobInitializeReq<TimeInterval>,
) -> Result<Vec<u8>, Problem> {
    let permit =
        Arc::clone(&shared.cores).acquire_owned().await.map_err(|_| Problem::busy("The server is stopping.", 5))?;
    let prepared = {
        let (shared, task) = (Arc::clone(&shared), Arc::clone(&task));
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            prepare_all(&shared, &task, &request)
        })
        .await
        .map_err(|_| Problem::http(StatusCode::INTERNAL_SERVER_ERROR, "preparation failed"))?
    };
    let now = shared.expiry.now();
    let (answer, outcomes) =
        shared.store.write(move |connection| commit(connection, &task, &id, &digest, prepared, now)).await?;
    for outcome in outcomes {
        shared.metrics.add(Name::Aggregated, outcome, 1);
    }
    shared.metrics.add(Name::Jobs, "finished", 1);
    Ok(answer)
}

/// Prio3 has one round, so that no job is ever waiting to be continued.
pub(crate) fn continue_job(shared: &Shared, task: &Task, id: &AggregationJobId) -> Problem {
    let known = shared.store.read(|connection| job(connection, task.row, id));
    match known {
        Ok(Some(_)) => task.problem(DapProblemType::StepMismatch),
        Ok(None) => task.problem(DapProblemType::UnrecognizedAggregationJob),
        Err(error) => error.into(),
    }
}

/// Forgets the answer to a job. What the job added stays added: it may have been counted on.
pub(crate) async fn delete_job(shared: &Shared, task: &Arc<Task>, id: AggregationJobId) -> Result<(), Problem> {
    let task = Arc::clone(task);
    shared
        .store
        .write(move |connection| {
            let known = connection.execute(
                "UPDATE helper_jobs SET response = NULL WHERE task = ?1 AND job_id = ?2",
                params![task.row, id.as_ref()],
            )?;
            if known == 0 {
                let problem = task.problem(DapProblemType::UnrecognizedAggregationJob);
                return Err(StoreError::Refused(problem));
            }
            Ok(())
        })
        .await
        .map_err(Problem::from)
}

/// Hands out this helper's share of a batch, sealed to the collector, once.
pub(crate) async fn aggregate_share(shared: &Shared, task: &Arc<Task>, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let request = AggregateShareReq::<TimeInterval>::get_decoded(body)
        .map_err(|_| task.problem(DapProblemType::InvalidMessage))?;
    if !request.aggregation_parameter().is_empty() {
        return Err(task.problem(DapProblemType::InvalidMessage));
    }
    let digest = sha256(body);
    let task = Arc::clone(task);
    let answer = shared.store.write(move |connection| release(connection, &task, &request, &digest)).await?;
    shared.metrics.add(Name::Collections, "finished", 1);
    Ok(answer)
}

/// Largest request a leader may send.
pub(crate) const LARGEST_REQUEST: usize = 64 * 1024 * 1024;

/// A job's request digest, and the answer unless it was deleted.
type StoredJob = (Vec<u8>, Option<Vec<u8>>);

struct Prepared {
    id: ReportId,
    time: u64,
    outcome: Result<(Contribution, PingPongMessage), PrepareError>,
}

fn job(connection: &Connection, task: i64, id: &AggregationJobId) -> rusqlite::Result<Option<StoredJob>> {
    connection
        .prepare_cached("SELECT request, response FROM helper_jobs WHERE task = ?1 AND job_id = ?2")?
        .query_row(params![task, id.as_ref()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

fn repeated(task: &Task, known: Option<StoredJob>, digest: &[u8; 32]) -> Result<Option<Vec<u8>>, Problem> {
    match known {
        None => Ok(None),
        Some((_, None)) => Err(Problem::http(StatusCode::GONE, "The aggregation job has been deleted.")),
        Some((request, Some(answer))) if request == digest => Ok(Some(answer)),
        Some(_) => Err(Problem::http(
            StatusCode::CONFLICT,
            format!("An aggregation job of task {} has this id and another content.", task.id()),
        )),
    }
}

fn decode_request(task: &Task, body: &[u8]) -> Result<AggregationJobInitializeReq<TimeInterval>, Problem> {
    let malformed = |detail: &str| task.problem(DapProblemType::InvalidMessage).with_detail(detail);
    let request = AggregationJobInitializeReq::<TimeInterval>::get_decoded(body)
        .map_err(|_| malformed("The request does not decode."))?;
    if !request.aggregation_parameter().is_empty() {
        return Err(malformed("Prio3 has no aggregation parameter."));
    }
    if request.prepare_inits().is_empty() {
        return Err(malformed("The job has no reports."));
    }
    let mut seen = HashSet::new();
    let doubled = request.prepare_inits().iter().any(|init| !seen.insert(*init.report_share().metadata().id()));
    if doubled {
        return Err(malformed("The job has a report twice."));
    }
    Ok(request)
}

fn prepare_all(shared: &Shared, task: &Task, request: &AggregationJobInitializeReq<TimeInterval>) -> Vec<Prepared> {
    request
        .prepare_inits()
        .iter()
        .map(|init| {
            let metadata = init.report_share().metadata();
            Prepared {
                id: *metadata.id(),
                time: metadata.time().as_seconds_since_epoch(),
                outcome: prepare(shared, task, init),
            }
        })
        .collect()
}

fn prepare(shared: &Shared, task: &Task, init: &PrepareInit) -> Result<(Contribution, PingPongMessage), PrepareError> {
    let share = init.report_share();
    let time = share.metadata().time().as_seconds_since_epoch();
    if task.is_too_early(time, shared.now()) {
        return Err(PrepareError::ReportTooEarly);
    }
    if task.is_after_end(time) {
        return Err(PrepareError::TaskExpired);
    }
    if task.is_expired(time, shared.expiry.now()) {
        return Err(PrepareError::ReportDropped);
    }
    let ciphertext = share.encrypted_input_share();
    let keys = shared.keys();
    let keypair = keys.find(ciphertext.config_id()).ok_or(PrepareError::HpkeUnknownConfigId)?;
    let input_share = protocol::open_input_share(
        keypair,
        Role::Helper,
        task.id(),
        share.metadata(),
        share.public_share(),
        ciphertext,
    )
    .map_err(|error| match error {
        OpenError::Decrypt => PrepareError::HpkeDecryptError,
        OpenError::Message => PrepareError::InvalidMessage,
    })?;
    task.vdaf
        .helper_finish(
            &task.definition.verify_key,
            share.metadata().id(),
            share.public_share(),
            &input_share,
            init.message(),
        )
        .ok_or(PrepareError::VdafPrepError)
}

/// Adds what was prepared, unless the job has come in by another way meanwhile.
fn commit(
    connection: &Connection,
    task: &Task,
    id: &AggregationJobId,
    digest: &[u8; 32],
    prepared: Vec<Prepared>,
    now: u64,
) -> Result<(Vec<u8>, Vec<&'static str>), StoreError<Problem>> {
    let known = job(connection, task.row, id)?;
    if let Some(answer) = repeated(task, known, digest).map_err(StoreError::Refused)? {
        return Ok((answer, Vec::new()));
    }
    let Some(floor) = floor(connection, task.row)? else {
        let problem = task.problem(DapProblemType::UnrecognizedTask);
        return Err(StoreError::Refused(problem));
    };
    let mut additions = Additions::default();
    let mut responses = Vec::with_capacity(prepared.len());
    let mut outcomes = Vec::with_capacity(prepared.len());
    for report in prepared {
        let late = admit(connection, task, &report, floor)?;
        let outcome = match (report.outcome, late) {
            (Ok(_), Some(error)) | (Err(error), _) => Err(error),
            (Ok(done), None) => Ok(done),
        };
        outcomes.push(outcome.as_ref().map_or_else(reason, |_| "added"));
        let result = match outcome {
            Ok((contribution, message)) => {
                let window = task.definition.parameters.window(report.time);
                additions.add(&task.vdaf, window, &report.id, &contribution);
                PrepareStepResult::Continue { message }
            }
            Err(error) => PrepareStepResult::Reject(error),
        };
        responses.push(PrepareResp::new(report.id, result));
    }
    additions.store(connection, &task.vdaf, task.row)?;
    let answer = encode(&AggregationJobResp::new(responses));
    connection.prepare_cached("INSERT INTO helper_jobs VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
        task.row,
        id.as_ref(),
        digest,
        answer,
        now as i64
    ])?;
    Ok((answer, outcomes))
}

/// Marks a prepared report as seen, or says why it comes too late.
fn admit(
    connection: &Connection,
    task: &Task,
    report: &Prepared,
    floor: u64,
) -> rusqlite::Result<Option<PrepareError>> {
    if report.outcome.is_err() {
        return Ok(None);
    }
    if report.time < floor {
        return Ok(Some(PrepareError::ReportDropped));
    }
    if batches::is_collected(connection, task.row, report.time)? {
        return Ok(Some(PrepareError::BatchCollected));
    }
    let added = connection
        .prepare_cached("INSERT OR IGNORE INTO report_ids VALUES (?1, ?2, ?3, NULL)")?
        .execute(params![task.row, report.id.as_ref(), report.time as i64])?;
    Ok((added == 0).then_some(PrepareError::ReportReplayed))
}

fn release(
    connection: &Connection,
    task: &Task,
    request: &AggregateShareReq<TimeInterval>,
    digest: &[u8; 32],
) -> Result<Vec<u8>, StoreError<Problem>> {
    let refuse = |kind| Err(StoreError::Refused(task.problem(kind)));
    let parameters = &task.definition.parameters;
    let interval = *request.batch_selector().batch_interval();
    let Some(span) = Span::aligned(&interval, parameters.time_precision) else {
        return refuse(DapProblemType::BatchInvalid);
    };
    match batches::overlap(connection, task.row, span)? {
        Overlap::None => {}
        Overlap::Partial => return refuse(DapProblemType::BatchOverlap),
        Overlap::Same => {
            let answer = earlier_answer(connection, task.row, span, digest)?;
            return answer.map_or_else(|| refuse(DapProblemType::BatchQueriedTooManyTimes), Ok);
        }
    }
    let (batch, _) = batches::total(connection, &task.vdaf, task.row, span, parameters.time_precision)?;
    if batch.reports < parameters.min_batch_size {
        return refuse(DapProblemType::InvalidBatchSize);
    }
    if batch.reports != request.report_count() || batch.checksum != *request.checksum() {
        return refuse(DapProblemType::BatchMismatch);
    }
    let sealed =
        share::seal(&task.definition, interval, batch.sum).map_err(|error| StoreError::Broken(error.to_string()))?;
    let answer = encode(&AggregateShare::new(sealed));
    connection.execute(
        "INSERT INTO collected VALUES (?1, ?2, ?3, ?4, ?5)",
        params![task.row, span.start as i64, span.finish as i64, digest, answer],
    )?;
    batches::forget(connection, task.row, span)?;
    Ok(answer)
}

fn earlier_answer(
    connection: &Connection,
    task: i64,
    span: Span,
    digest: &[u8; 32],
) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .query_row(
            "SELECT response FROM collected
             WHERE task = ?1 AND start = ?2 AND finish = ?3 AND request = ?4",
            params![task, span.start as i64, span.finish as i64, digest],
            |row| row.get(0),
        )
        .optional()
}

/// A fixed word for a counter.
pub(crate) fn reason(error: &PrepareError) -> &'static str {
    match error {
        PrepareError::BatchCollected => "batch-collected",
        PrepareError::ReportReplayed => "replayed",
        PrepareError::ReportDropped => "expired",
        PrepareError::HpkeUnknownConfigId => "unknown-key",
        PrepareError::HpkeDecryptError => "undecryptable",
        PrepareError::VdafPrepError => "invalid-proof",
        PrepareError::BatchSaturated => "batch-saturated",
        PrepareError::TaskExpired => "after-end",
        PrepareError::InvalidMessage => "malformed",
        PrepareError::ReportTooEarly => "too-early",
    }
}
