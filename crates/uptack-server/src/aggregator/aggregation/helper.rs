//! The helper answers the leader: aggregation jobs.

use axum::http::StatusCode;
use std::{collections::HashSet, sync::Arc};
use uptack_dap::{
    digest::sha256,
    protocol::{
        AggregationJobId, AggregationJobInitializeReq, AggregationJobResp, Contribution, DapProblemType, Decode,
        PingPongMessage, PrepareError, PrepareInit, PrepareResp, PrepareStepResult, ReportId, TimeInterval, encode,
    },
};

use crate::{
    aggregator::{
        reports::{check_time, open_share},
        state::{ComputeError, Shared},
        store::{Additions, AnsweredJob, ChangeResult, StoreResult, TaskStore},
        tasks::Task,
    },
    base::problem::{Answer, Problem},
};

/// Prepares the reports of a job, adds them to the sums and answers; the identical request again
/// gets the identical answer, and changes nothing.
pub(crate) async fn initialize(
    shared: &Arc<Shared>,
    task: &Arc<Task>,
    id: AggregationJobId,
    body: Vec<u8>,
) -> Answer<Vec<u8>> {
    let job = JobRequest { id, digest: sha256(&body) };
    let known = shared.read(task, |stored| stored.answered_job(&id))?;
    if let Some(answer) = job.repeated_answer(task, known)? {
        return Ok(answer);
    }
    let request = decode_request(task, &body)?;
    drop(body);
    // Spawned, so that the work counts even if the leader hangs up while it waits: its next attempt then
    // finds the answer instead of starting over.
    let work = process(Arc::clone(shared), Arc::clone(task), job, request);
    tokio::spawn(work).await.map_err(|_| preparation_failed())?
}

/// Prio3 has one round, so no job ever waits to be continued.
pub(crate) fn continue_job(shared: &Shared, task: &Task, id: &AggregationJobId) -> Problem {
    let known = shared.read(task, |stored| stored.answered_job(id));
    match known {
        Ok(Some(_)) => task.problem(DapProblemType::StepMismatch),
        Ok(None) => task.problem(DapProblemType::UnrecognizedAggregationJob),
        Err(error) => error.into(),
    }
}

/// Forgets the answer to a job. What the job added stays added: it may have been counted on.
pub(crate) async fn delete_job(shared: &Shared, task: &Arc<Task>, id: AggregationJobId) -> Answer<()> {
    Ok(shared.change(task, move |stored, task| delete_answer(stored, task, &id)).await?)
}

/// Largest request a leader may send.
pub(crate) const LARGEST_REQUEST: usize = 64 * 1024 * 1024;

/// A job as the leader asks for it.
struct JobRequest {
    id: AggregationJobId,
    digest: [u8; 32],
}

impl JobRequest {
    /// The answer to the same request before; nothing if the job is new.
    fn repeated_answer(&self, task: &Task, known: Option<AnsweredJob>) -> Answer<Option<Vec<u8>>> {
        match known {
            None => Ok(None),
            Some(AnsweredJob { answer: None, .. }) => {
                Err(Problem::http(StatusCode::GONE, "The aggregation job has been deleted."))
            }
            Some(AnsweredJob { request, answer: Some(answer) }) if request == self.digest => Ok(Some(answer)),
            Some(_) => Err(Problem::conflict(format!(
                "An aggregation job of task {} has this id and another content.",
                task.id()
            ))),
        }
    }

    /// Adds what was prepared, unless the same request has been answered meanwhile.
    fn commit(
        &self,
        stored: TaskStore<'_>,
        task: &Task,
        prepared: Vec<Prepared>,
        now: u64,
    ) -> ChangeResult<JobAnswer, Problem> {
        let known = stored.answered_job(&self.id)?;
        if let Some(answer) = self.repeated_answer(task, known)? {
            return Ok(JobAnswer { bytes: answer, outcomes: Vec::new() });
        }
        let Responses { additions, prepared, outcomes } = admit_all(stored, task, prepared)?;
        stored.add_to_sums(&task.vdaf, additions)?;
        let bytes = encode(&AggregationJobResp::new(prepared));
        stored.keep_job_answer(&self.id, &self.digest, &bytes, now)?;
        Ok(JobAnswer { bytes, outcomes })
    }
}

fn delete_answer(stored: TaskStore<'_>, task: &Task, id: &AggregationJobId) -> ChangeResult<(), Problem> {
    if !stored.forget_job_answer(id)? {
        return Err(task.problem(DapProblemType::UnrecognizedAggregationJob).into());
    }
    Ok(())
}

fn decode_request(task: &Task, body: &[u8]) -> Answer<AggregationJobInitializeReq<TimeInterval>> {
    let malformed = |detail: &str| task.problem(DapProblemType::InvalidMessage).with_detail(detail);
    let request = AggregationJobInitializeReq::<TimeInterval>::get_decoded(body)
        .map_err(|_| malformed("The request does not decode."))?;
    if !request.aggregation_parameter().is_empty() {
        return Err(malformed("Prio3 has no aggregation parameter."));
    }
    if request.prepare_inits().is_empty() {
        return Err(malformed("The job has no reports."));
    }
    if has_report_twice(request.prepare_inits()) {
        return Err(malformed("The job has a report twice."));
    }
    Ok(request)
}

fn has_report_twice(inits: &[PrepareInit]) -> bool {
    let mut seen = HashSet::new();
    inits.iter().any(|init| !seen.insert(*init.report_share().metadata().id()))
}

async fn process(
    shared: Arc<Shared>,
    task: Arc<Task>,
    job: JobRequest,
    request: AggregationJobInitializeReq<TimeInterval>,
) -> Answer<Vec<u8>> {
    let prepared = shared.compute(&task, move |shared, task| prepare_all(shared, task, &request)).await?;
    let now = shared.expiry.now();
    let answer = shared.change(&task, move |stored, task| job.commit(stored, task, prepared, now)).await?;
    shared.count_job(answer.outcomes);
    Ok(answer.bytes)
}

impl From<ComputeError> for Problem {
    fn from(error: ComputeError) -> Self {
        match error {
            ComputeError::Stopping => Self::busy("The server is stopping.", 5),
            ComputeError::Panicked => preparation_failed(),
        }
    }
}

fn preparation_failed() -> Problem {
    Problem::http(StatusCode::INTERNAL_SERVER_ERROR, "preparation failed")
}

/// The answer to the leader, and the outcomes that are counted.
struct JobAnswer {
    bytes: Vec<u8>,
    outcomes: Vec<&'static str>,
}

/// A report, with this helper's contribution and the message that lets the leader finish; or why it is not counted.
struct Prepared {
    id: ReportId,
    time: u64,
    outcome: Result<(Contribution, PingPongMessage), PrepareError>,
}

fn prepare_all(shared: &Shared, task: &Task, request: &AggregationJobInitializeReq<TimeInterval>) -> Vec<Prepared> {
    request.prepare_inits().iter().map(|init| Prepared::new(shared, task, init)).collect()
}

impl Prepared {
    fn new(shared: &Shared, task: &Task, init: &PrepareInit) -> Self {
        let metadata = init.report_share().metadata();
        let (id, time) = (*metadata.id(), metadata.time().as_seconds_since_epoch());
        Self { id, time, outcome: prepare(shared, task, init) }
    }

    /// Marks a report that is to be counted as seen; if it comes too late, it is not counted.
    fn admit(self, stored: TaskStore<'_>, floor: u64) -> StoreResult<Self> {
        let late = match self.outcome {
            Ok(_) => self.mark_as_seen(stored, floor)?,
            Err(_) => None,
        };
        Ok(Self { outcome: late.map_or(self.outcome, Err), ..self })
    }

    /// Marks the report as seen, or says why it comes too late.
    fn mark_as_seen(&self, stored: TaskStore<'_>, floor: u64) -> StoreResult<Option<PrepareError>> {
        if self.time < floor {
            return Ok(Some(PrepareError::ReportDropped));
        }
        if stored.is_collected(self.time)? {
            return Ok(Some(PrepareError::BatchCollected));
        }
        let is_new = stored.mark_seen(&self.id, self.time)?;
        Ok((!is_new).then_some(PrepareError::ReportReplayed))
    }
}

fn prepare(shared: &Shared, task: &Task, init: &PrepareInit) -> Result<(Contribution, PingPongMessage), PrepareError> {
    let report = init.report_share();
    let (metadata, public_share) = (report.metadata(), report.public_share());
    check_time(shared, task, metadata.time().as_seconds_since_epoch())?;
    let input_share = open_share(shared, task, metadata, public_share, report.encrypted_input_share())?;
    task.vdaf
        .helper_finish(&task.definition.verify_key, metadata.id(), public_share, &input_share, init.message())
        .ok_or(PrepareError::VdafPrepError)
}

fn admit_all(stored: TaskStore<'_>, task: &Task, reports: Vec<Prepared>) -> ChangeResult<Responses, Problem> {
    let floor = task.floor(stored)?;
    let mut responses = Responses::default();
    for report in reports {
        responses.add(task, report.admit(stored, floor)?);
    }
    Ok(responses)
}

/// What a job adds to the sums, the answer to the leader about each report, and the outcomes that are counted.
#[derive(Default)]
struct Responses {
    additions: Additions,
    prepared: Vec<PrepareResp>,
    outcomes: Vec<&'static str>,
}

impl Responses {
    fn add(&mut self, task: &Task, report: Prepared) {
        self.outcomes.push(report.outcome.as_ref().map_or_else(reason, |_| "added"));
        let result = match report.outcome {
            Ok((contribution, message)) => {
                let window = task.parameters().window(report.time);
                self.additions.add(&task.vdaf, window, &report.id, &contribution);
                PrepareStepResult::Continue { message }
            }
            Err(error) => PrepareStepResult::Reject(error),
        };
        self.prepared.push(PrepareResp::new(report.id, result));
    }
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
