//! The helper answers the leader's aggregation jobs.

use axum::http::StatusCode;
use std::sync::Arc;
use uptack_dap::{
    crypto::sha256,
    protocol::{
        AggregationAnswer, AggregationJobId, Contribution, PrepareMessage, ProblemType, ReportError, ReportHeader,
        RequestedAggregation, RequestedReport,
    },
};

use crate::{
    aggregator::{
        reports::{check_time, open_share},
        state::{AggregatorState, ComputeError},
        store::{Additions, AnsweredJob, ChangeResult, StoreResult, TaskStore},
        tasks::ServedTask,
    },
    base::{
        bodies::ReadBody,
        problem::{Answer, Problem},
    },
};

/// Prepares the reports of a job, adds them to the sums and answers. Repeating the identical request gets the identical
/// answer and changes nothing.
pub(crate) async fn initialize(
    shared: &Arc<AggregatorState>,
    task: &Arc<ServedTask>,
    id: AggregationJobId,
    body: ReadBody,
) -> Answer<Vec<u8>> {
    let job = JobRequest { id, digest: sha256(&body) };
    let known = shared.read(task, |stored| stored.answered_job(&id))?;
    if let Some(answer) = job.repeated_answer(task, known)? {
        return Ok(answer);
    }
    let malformed = |detail| task.problem(ProblemType::InvalidMessage).with_detail(detail);
    let request = RequestedAggregation::from_bytes(&body).map_err(malformed)?;
    // The request takes about as much memory as its bytes, which stay counted until the job is done: so the memory of
    // all jobs that wait for a core is bounded, too.
    let (bytes, lease) = body.into_parts();
    drop(bytes);
    // Spawned, so that the work counts even if the leader hangs up while it waits: its next attempt then
    // finds the answer instead of starting over.
    let work = process(Arc::clone(shared), Arc::clone(task), job, request);
    let counted = async move {
        let answer = work.await;
        drop(lease);
        answer
    };
    tokio::spawn(counted).await.map_err(|_| preparation_failed())?
}

/// Prio3 has one round, so no job ever waits to be continued.
pub(crate) fn continue_job(shared: &AggregatorState, task: &ServedTask, id: &AggregationJobId) -> Problem {
    let known = shared.read(task, |stored| stored.answered_job(id));
    match known {
        Ok(Some(_)) => task.problem(ProblemType::StepMismatch),
        Ok(None) => task.problem(ProblemType::UnrecognizedAggregationJob),
        Err(error) => error.into(),
    }
}

/// Forgets the answer to a job. Its reports stay in the sums, because the leader may have counted on them.
pub(crate) async fn delete_job(shared: &AggregatorState, task: &Arc<ServedTask>, id: AggregationJobId) -> Answer<()> {
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
    fn repeated_answer(&self, task: &ServedTask, known: Option<AnsweredJob>) -> Answer<Option<Vec<u8>>> {
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

    /// Adds the prepared reports, unless the same request has been answered meanwhile.
    fn commit(
        &self,
        stored: TaskStore<'_>,
        task: &ServedTask,
        prepared: Vec<PreparedReport>,
        now: u64,
    ) -> ChangeResult<JobAnswer, Problem> {
        let known = stored.answered_job(&self.id)?;
        if let Some(answer) = self.repeated_answer(task, known)? {
            return Ok(JobAnswer { bytes: answer, outcomes: Vec::new() });
        }
        let Responses { additions, answer, outcomes } = admit_all(stored, task, prepared)?;
        stored.add_to_sums(&task.vdaf, additions)?;
        let bytes = answer.into_bytes();
        stored.keep_job_answer(&self.id, &self.digest, &bytes, now)?;
        Ok(JobAnswer { bytes, outcomes })
    }
}

fn delete_answer(stored: TaskStore<'_>, task: &ServedTask, id: &AggregationJobId) -> ChangeResult<(), Problem> {
    if !stored.forget_job_answer(id)? {
        return Err(task.problem(ProblemType::UnrecognizedAggregationJob).into());
    }
    Ok(())
}

async fn process(
    shared: Arc<AggregatorState>,
    task: Arc<ServedTask>,
    job: JobRequest,
    request: RequestedAggregation,
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
struct PreparedReport {
    header: ReportHeader,
    outcome: Result<(Contribution, PrepareMessage), ReportError>,
}

fn prepare_all(shared: &AggregatorState, task: &ServedTask, request: &RequestedAggregation) -> Vec<PreparedReport> {
    request.reports().map(|report| PreparedReport::new(shared, task, &report)).collect()
}

impl PreparedReport {
    fn new(shared: &AggregatorState, task: &ServedTask, report: &RequestedReport<'_>) -> Self {
        Self { header: report.header(), outcome: prepare(shared, task, report) }
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
    fn mark_as_seen(&self, stored: TaskStore<'_>, floor: u64) -> StoreResult<Option<ReportError>> {
        if self.header.time < floor {
            return Ok(Some(ReportError::Dropped));
        }
        if stored.is_collected(self.header.time)? {
            return Ok(Some(ReportError::BatchCollected));
        }
        let is_new = stored.mark_seen(&self.header)?;
        Ok((!is_new).then_some(ReportError::Replayed))
    }
}

fn prepare(
    shared: &AggregatorState,
    task: &ServedTask,
    report: &RequestedReport<'_>,
) -> Result<(Contribution, PrepareMessage), ReportError> {
    let header = report.header();
    check_time(shared, task, header.time)?;
    let input_share = open_share(shared, task, &report.helper_share())?;
    task.vdaf
        .helper_finish(&task.definition.verify_key, &header.id, report.public_share(), &input_share, report.message())
        .ok_or(ReportError::InvalidProof)
}

fn admit_all(
    stored: TaskStore<'_>,
    task: &ServedTask,
    reports: Vec<PreparedReport>,
) -> ChangeResult<Responses, Problem> {
    let floor = task.floor(stored)?;
    let mut responses = Responses::default();
    for report in reports {
        responses.add(task, report.admit(stored, floor)?);
    }
    Ok(responses)
}

/// A job's additions to the sums, the answer to the leader about each report, and the outcomes for the counters.
#[derive(Default)]
struct Responses {
    additions: Additions,
    answer: AggregationAnswer,
    outcomes: Vec<&'static str>,
}

impl Responses {
    fn add(&mut self, task: &ServedTask, report: PreparedReport) {
        let PreparedReport { header, outcome } = report;
        self.outcomes.push(outcome.as_ref().map_or_else(|error| reason(*error), |_| "added"));
        let message = outcome.map(|(contribution, message)| {
            let window = task.parameters().window(header.time);
            self.additions.add(&task.vdaf, window, &header.id, &contribution);
            message
        });
        self.answer.add(header.id, message);
    }
}

/// A fixed word for a counter.
pub(crate) fn reason(error: ReportError) -> &'static str {
    match error {
        ReportError::BatchCollected => "batch-collected",
        ReportError::Replayed => "replayed",
        ReportError::Dropped => "expired",
        ReportError::UnknownKey => "unknown-key",
        ReportError::Undecryptable => "undecryptable",
        ReportError::InvalidProof => "invalid-proof",
        ReportError::BatchSaturated => "batch-saturated",
        ReportError::TaskExpired => "after-end",
        ReportError::Malformed => "malformed",
        ReportError::TooEarly => "too-early",
    }
}
