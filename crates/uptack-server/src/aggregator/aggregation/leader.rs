//! One aggregation job of the leader: what it sends to the helper, what it makes of the answer, how the job is settled.

use std::{collections::HashMap, slice, sync::Arc};
use uptack_dap::protocol::{
    AggregationJobInitializeReq, AggregationJobResp, Contribution, Decode, LeaderState, PartialBatchSelector,
    PrepareError, PrepareInit, PrepareResp, PrepareStepResult, ReportId, ReportMetadata, ReportShare, Time,
    TimeInterval, encode,
};

use super::helper::reason;
use crate::{
    aggregator::{
        peer::{Call, PeerError},
        state::{ComputeError, Shared},
        store::{Additions, ChangeResult, Job, QueuedReport, TaskStore},
        tasks::{Task, failures::Scope},
    },
    error::{Error, Result},
};

/// About how much memory a job's shares may take.
const LARGEST_JOB_BYTES: usize = 2 * 1024 * 1024;

/// Assigns queued reports to a new job; nothing if all are assigned.
pub(super) async fn create_job(shared: &Shared, task: &Arc<Task>) -> Result<Option<Job>> {
    let size = job_size(shared, task);
    let created: ChangeResult<_> = shared.change(task, move |stored, _| Ok(stored.create_job(size)?)).await;
    Ok(created?)
}

/// Reports in a job: as configured, but of long sums only as many as fit a core's cache, since a
/// job's shares are all in memory until the helper has answered.
fn job_size(shared: &Shared, task: &Task) -> usize {
    let report_bytes = 32 * task.parameters().vdaf.length();
    shared.config.job_size.min(LARGEST_JOB_BYTES / report_bytes).max(1)
}

/// Why a job got no further.
#[derive(Debug)]
pub(super) enum Stopped {
    /// Something here is broken or full; the job waits.
    Delayed(Error),
    /// The helper is away, or fails.
    Failed(Scope, String),
    /// The helper answered, and not with what was asked for.
    Rejected(String),
}

/// What a step of a job gives back.
type Step<T> = std::result::Result<T, Stopped>;

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Delayed(error)
    }
}

impl From<ComputeError> for Stopped {
    fn from(error: ComputeError) -> Self {
        Self::Delayed(error.into())
    }
}

impl From<PeerError> for Stopped {
    fn from(error: PeerError) -> Self {
        match error {
            PeerError::Refused(kind) => Self::Rejected(kind.description().to_owned()),
            PeerError::Rejected(text) => Self::Rejected(text),
            PeerError::Passing(scope, text) => Self::Failed(scope, text),
        }
    }
}

/// Prepares a job's reports together with the helper; nothing is changed yet on this side.
pub(super) async fn prepare(shared: &Arc<Shared>, task: &Arc<Task>, job: Job) -> Step<Prepared> {
    let (reports, request) = shared.compute(task, move |shared, task| start(shared, task, job)).await??;
    let answer = match request {
        Some(request) => Some(initialize_call(&job, request).send(shared, task).await?),
        None => None,
    };
    shared.compute(task, move |_, task| finish(task, reports, answer.as_deref())).await?
}

/// Settles a job; false if another attempt has settled it.
pub(super) async fn settle(shared: &Shared, task: &Arc<Task>, job: Job, prepared: Prepared) -> Result<bool> {
    let outcomes = prepared.outcomes.clone();
    let settled = shared.change(task, move |stored, task| prepared.store(stored, task, &job)).await?;
    if settled {
        shared.count_job(outcomes);
    }
    Ok(settled)
}

/// What the leader remembers of a report while the helper works. The report's content stays in the
/// store: a job's worth of long shares would crowd out everything else in a core's cache.
struct Waiting {
    number: i64,
    id: ReportId,
    time: u64,
    /// Nothing if the leader's share is invalid.
    state: Option<LeaderState>,
}

/// Starts to prepare a job's reports, and encodes the request to the helper if any of them is fit to be sent.
fn start(shared: &Shared, task: &Task, job: Job) -> Result<(Vec<Waiting>, Option<Vec<u8>>)> {
    let (mut reports, mut inits) = (Vec::new(), Vec::new());
    let mut last = job.first - 1;
    // One by one, so that each is still in the cache when it is worked on, and other readers get
    // their turn. If the job is settled meanwhile by an earlier attempt, what is left of it makes
    // another request than before, which the helper refuses.
    while let Some((number, report)) = shared.read(task, |stored| stored.next_report(last, job.last))? {
        last = number;
        let report = report.ok_or_else(|| Error::environment("a stored report is damaged"))?;
        let (id, time) = (report.id, report.time);
        let (state, init) = start_report(task, report).unzip();
        reports.push(Waiting { number, id, time, state });
        inits.extend(init);
    }
    Ok((reports, encode_request(inits)))
}

/// The leader's state for a report, and what the helper gets of it; nothing if the leader's share is invalid.
fn start_report(task: &Task, report: QueuedReport) -> Option<(LeaderState, PrepareInit)> {
    let QueuedReport { id, time, public_share, leader_share, helper_share } = report;
    let (state, message) = task.vdaf.leader_start(&task.definition.verify_key, &id, &public_share, &leader_share)?;
    let metadata = ReportMetadata::new(id, Time::from_seconds_since_epoch(time));
    Some((state, PrepareInit::new(ReportShare::new(metadata, public_share, helper_share), message)))
}

fn encode_request(inits: Vec<PrepareInit>) -> Option<Vec<u8>> {
    if inits.is_empty() {
        return None;
    }
    let selector = PartialBatchSelector::new_time_interval();
    Some(encode(&AggregationJobInitializeReq::new(Vec::new(), selector, inits)))
}

/// May be sent again after any failure: the helper has been told of the job, or may have been.
fn initialize_call(job: &Job, body: Vec<u8>) -> Call {
    Call {
        method: reqwest::Method::PUT,
        path: format!("aggregation_jobs/{}", job.id),
        media_type: AggregationJobInitializeReq::<TimeInterval>::MEDIA_TYPE,
        body,
        answer_type: AggregationJobResp::MEDIA_TYPE,
    }
}

/// The outcome of a job's reports.
#[derive(Default)]
pub(super) struct Prepared {
    additions: Additions,
    /// How many reports of each window are done with.
    done: HashMap<u64, i64>,
    /// The numbers of reports to be tried again.
    early: Vec<i64>,
    outcomes: Vec<&'static str>,
}

impl Prepared {
    /// How many reports are to be tried again, because the helper's clock is behind.
    pub(super) fn early(&self) -> usize {
        self.early.len()
    }

    /// Adds the contribution of a report; if there is none, counts why.
    fn add(
        &mut self,
        task: &Task,
        id: &ReportId,
        time: u64,
        contribution: std::result::Result<Contribution, &'static str>,
    ) {
        let window = task.parameters().window(time);
        let outcome = match contribution {
            Ok(contribution) => {
                self.additions.add(&task.vdaf, window, id, &contribution);
                "added"
            }
            Err(reason) => reason,
        };
        self.outcomes.push(outcome);
        *self.done.entry(window).or_default() += 1;
    }

    /// Adds, deletes, and puts back what came too early, all at once; nothing if the job is gone.
    fn store(self, stored: TaskStore<'_>, task: &Task, job: &Job) -> ChangeResult<bool> {
        if !stored.delete_job(job)? {
            return Ok(false);
        }
        for number in self.early {
            stored.enqueue_again(number)?;
        }
        stored.dequeue(job)?;
        for (window, reports) in self.done {
            stored.change_pending(window, -reports)?;
        }
        stored.add_to_sums(&task.vdaf, self.additions)?;
        Ok(true)
    }
}

fn finish(task: &Task, reports: Vec<Waiting>, answer: Option<&[u8]>) -> Step<Prepared> {
    let answer = answer.map(AggregationJobResp::get_decoded).transpose();
    let answer = answer.map_err(|_| Stopped::Rejected("its answer does not decode".to_owned()))?;
    let mut responses = Responses(answer.as_ref().map_or(&[][..], AggregationJobResp::prepare_resps).iter());
    let mut prepared = Prepared::default();
    for Waiting { number, id, time, state } in reports {
        let Some(state) = state else {
            prepared.add(task, &id, time, Err("invalid-share"));
            continue;
        };
        match responses.next_for(&id)? {
            PrepareStepResult::Reject(PrepareError::ReportTooEarly) => prepared.early.push(number),
            result => prepared.add(task, &id, time, finish_report(task, state, result)),
        }
    }
    responses.check_end()?;
    Ok(prepared)
}

/// The helper's responses, which are in the order of the reports that it was sent.
struct Responses<'a>(slice::Iter<'a, PrepareResp>);

impl<'a> Responses<'a> {
    fn next_for(&mut self, id: &ReportId) -> Step<&'a PrepareStepResult> {
        let response = self.0.next().filter(|response| response.report_id() == id);
        response.map(PrepareResp::result).ok_or_else(other_reports)
    }

    fn check_end(mut self) -> Step<()> {
        self.0.next().map_or(Ok(()), |_| Err(other_reports()))
    }
}

fn other_reports() -> Stopped {
    Stopped::Rejected("its answer is for other reports".to_owned())
}

/// The leader's contribution of a report, or a fixed word that says why there is none.
fn finish_report(
    task: &Task,
    state: LeaderState,
    result: &PrepareStepResult,
) -> std::result::Result<Contribution, &'static str> {
    match result {
        PrepareStepResult::Continue { message } => task.vdaf.leader_finish(state, message).ok_or("helper-misbehaved"),
        PrepareStepResult::Finished => Err("helper-misbehaved"),
        PrepareStepResult::Reject(error) => Err(reason(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregator::{collection, pair::Pair};
    use std::time::Duration;
    use uptack_dap::{
        client::Client,
        collector::Collector,
        protocol::{Measurement, VdafKind},
        task::{AggregatorRole, TaskSet},
    };

    /// A driver that failed in one job drops the others, and may start one of them again while it is still being
    /// settled. Both attempts then settle it, and only one may count.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_job_that_is_settled_twice_counts_once() {
        let directory = tempfile::tempdir().unwrap();
        let pair = Pair::start(directory.path(), |config| {
            // The task's own driver keeps away: this test is the driver.
            if config.role == AggregatorRole::Leader {
                config.gather = Duration::from_secs(3600);
            }
        })
        .await
        .unwrap();
        let patience = Duration::from_secs(60);
        let mut parameters = pair.parameters(VdafKind::histogram(3), 100_000_000, 1);
        parameters.report_expiry_age = None;
        let set = TaskSet::generate(parameters.clone()).unwrap();
        pair.add_task(&set).await.unwrap();
        let client = Client::new(parameters.clone()).unwrap();
        let now = pair.leader.shared.now();
        for cell in [0, 1, 1] {
            client.upload(&Measurement::Cell(cell), now, patience).await.unwrap();
        }

        let shared = &pair.leader.shared;
        let task = shared.task(&parameters.task_id).unwrap();
        let job = create_job(shared, &task).await.unwrap().unwrap();
        let first = prepare(shared, &task, job).await.unwrap();
        let second = prepare(shared, &task, job).await.unwrap();
        assert!(settle(shared, &task, job, first).await.unwrap());
        assert!(!settle(shared, &task, job, second).await.unwrap());

        assert_eq!(shared.store.pending_reports().unwrap(), 0);
        let collector = Collector::new(set.collector.clone()).unwrap();
        let (id, batch) = (Collector::new_job(), parameters.batch(now, 1).unwrap());
        collector.request(&id, batch).await.unwrap();
        while collection::advance(shared, &task).await.unwrap() {}
        assert_eq!(collector.collect(&id, batch, patience).await.unwrap().counts, [1, 2, 0]);
    }
}
