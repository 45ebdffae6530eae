//! One aggregation job of the leader: the request to the helper, the helper's answer, and how the job is settled.

use std::{collections::HashMap, sync::Arc};
use uptack_dap::protocol::{
    AggregationRequest, Contribution, Endpoint, HelperAnswer, HelperResult, LeaderState, ReportError, ReportHeader,
    ReportId,
};

use super::helper::reason;
use crate::{
    aggregator::{
        peer::{Call, PeerError},
        state::{AggregatorState, ComputeError},
        store::{Additions, ChangeResult, Job, QueuedReport, TaskStore},
        tasks::{ServedTask, failures::Scope},
    },
    error::{Error, Result},
};

/// About how much memory a job's shares may take.
const LARGEST_JOB_BYTES: usize = 2 * 1024 * 1024;

/// Assigns queued reports to a new job; nothing if all are assigned.
pub(super) async fn create_job(shared: &AggregatorState, task: &Arc<ServedTask>) -> Result<Option<Job>> {
    let size = job_size(shared, task);
    let created: ChangeResult<_> = shared.change(task, move |stored, _| Ok(stored.create_job(size)?)).await;
    Ok(created?)
}

/// Reports in a job: as configured, but of long sums only as many as fit a core's cache, since a
/// job's shares are all in memory until the helper has answered.
fn job_size(shared: &AggregatorState, task: &ServedTask) -> usize {
    let report_bytes = 32 * task.parameters().vdaf.length();
    shared.config.job_size.min(LARGEST_JOB_BYTES / report_bytes).max(1)
}

/// Why an attempt at a job stopped.
#[derive(Debug)]
pub(super) enum JobError {
    /// Something here is broken or full; the job waits.
    Delayed(Error),
    /// The helper is away, or fails.
    Failed(Scope, String),
    /// The helper refused, or its answer does not fit the request.
    Rejected(String),
}

type JobResult<T> = std::result::Result<T, JobError>;

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        Self::Delayed(error)
    }
}

impl From<ComputeError> for JobError {
    fn from(error: ComputeError) -> Self {
        Self::Delayed(error.into())
    }
}

impl From<PeerError> for JobError {
    fn from(error: PeerError) -> Self {
        match error {
            PeerError::Refused(kind) => Self::Rejected(kind.title().to_owned()),
            PeerError::Rejected(text) => Self::Rejected(text),
            PeerError::Passing(scope, text) => Self::Failed(scope, text),
        }
    }
}

/// Prepares a job's reports together with the helper; nothing is changed yet on this side.
pub(super) async fn prepare(shared: &Arc<AggregatorState>, task: &Arc<ServedTask>, job: Job) -> JobResult<PreparedJob> {
    let (reports, request) = shared.compute(task, move |shared, task| start(shared, task, job)).await??;
    let answer = match request {
        Some(request) => Some(start_call(task, &job, request).send(shared, task).await?),
        None => None,
    };
    shared.compute(task, move |_, task| finish(task, reports, answer.as_deref())).await?
}

/// Settles a job; false if another attempt has settled it.
pub(super) async fn settle(
    shared: &AggregatorState,
    task: &Arc<ServedTask>,
    job: Job,
    prepared: PreparedJob,
) -> Result<bool> {
    let outcomes = prepared.outcomes.clone();
    let settled = shared.change(task, move |stored, task| prepared.store(stored, task, &job)).await?;
    if settled {
        shared.count_job(outcomes);
    }
    Ok(settled)
}

/// The leader's memory of a report while the helper works. The report's content stays in the
/// store: a job's worth of long shares would crowd out everything else in a core's cache.
struct Waiting {
    number: i64,
    header: ReportHeader,
    /// Nothing if the leader's share is invalid.
    state: Option<LeaderState>,
}

/// Starts to prepare a job's reports, and encodes the request to the helper if any of them is fit to be sent.
fn start(shared: &AggregatorState, task: &ServedTask, job: Job) -> Result<(Vec<Waiting>, Option<Vec<u8>>)> {
    let (mut reports, mut request) = (Vec::new(), AggregationRequest::default());
    let mut last = job.first - 1;
    // One by one, so that each is still in the cache when it is worked on, and other readers get
    // their turn. If an earlier attempt settles the job meanwhile, the remaining reports make
    // a different request than before, which the helper refuses.
    while let Some((number, report)) = shared.read(task, |stored| stored.next_report(last, job.last))? {
        last = number;
        let report = report.ok_or_else(|| Error::environment("a stored report is damaged"))?;
        let header = report.header;
        reports.push(Waiting { number, header, state: start_report(task, report, &mut request) });
    }
    Ok((reports, request.into_bytes()))
}

/// Adds a report to the request, and returns the leader's state for it; nothing if the leader's share is invalid.
fn start_report(task: &ServedTask, report: QueuedReport, request: &mut AggregationRequest) -> Option<LeaderState> {
    let QueuedReport { header, public_share, leader_share, helper_share } = report;
    let key = &task.definition.verify_key;
    let (state, message) = task.vdaf.leader_start(key, &header.id, &public_share, &leader_share)?;
    request.add(header, public_share, helper_share, message);
    Some(state)
}

/// May be sent again after any failure: the helper has been told of the job, or may have been.
fn start_call(task: &ServedTask, job: &Job, body: Vec<u8>) -> Call {
    let endpoint = Endpoint::START_AGGREGATION;
    Call { path: endpoint.of_job(task.id(), &job.id), endpoint, body }
}

/// The outcome of a job's reports.
#[derive(Default)]
pub(super) struct PreparedJob {
    additions: Additions,
    /// How many reports of each window are done with.
    done: HashMap<u64, i64>,
    /// The numbers of reports to be tried again.
    early: Vec<i64>,
    outcomes: Vec<&'static str>,
}

impl PreparedJob {
    /// How many reports are to be tried again, because the helper's clock is behind.
    pub(super) fn early(&self) -> usize {
        self.early.len()
    }

    /// Adds the contribution of a report; if there is none, counts why.
    fn add(
        &mut self,
        task: &ServedTask,
        report: &ReportHeader,
        contribution: std::result::Result<Contribution, &'static str>,
    ) {
        let window = task.parameters().window(report.time);
        let outcome = match contribution {
            Ok(contribution) => {
                self.additions.add(&task.vdaf, window, &report.id, &contribution);
                "added"
            }
            Err(reason) => reason,
        };
        self.outcomes.push(outcome);
        *self.done.entry(window).or_default() += 1;
    }

    /// Adds the contributions, deletes the reports and requeues those that came too early; false if the job is gone.
    fn store(self, stored: TaskStore<'_>, task: &ServedTask, job: &Job) -> ChangeResult<bool> {
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

fn finish(task: &ServedTask, reports: Vec<Waiting>, answer: Option<&[u8]>) -> JobResult<PreparedJob> {
    let answer = answer.map_or_else(|| Some(HelperAnswer::empty()), HelperAnswer::from_bytes);
    let answer = answer.ok_or_else(|| JobError::Rejected("its answer does not decode".to_owned()))?;
    // The helper's results are in the order of the reports that it was sent.
    let mut results = answer.results();
    let mut prepared = PreparedJob::default();
    for Waiting { number, header, state } in reports {
        let Some(state) = state else {
            prepared.add(task, &header, Err("invalid-share"));
            continue;
        };
        match result_for(&header.id, results.next())? {
            HelperResult::Rejected(ReportError::TooEarly) => prepared.early.push(number),
            result => prepared.add(task, &header, finish_report(task, state, result)),
        }
    }
    if results.next().is_some() {
        return Err(other_reports());
    }
    Ok(prepared)
}

fn result_for<'a>(id: &ReportId, result: Option<(&ReportId, HelperResult<'a>)>) -> JobResult<HelperResult<'a>> {
    result.filter(|(other, _)| *other == id).map(|(_, result)| result).ok_or_else(other_reports)
}

fn other_reports() -> JobError {
    JobError::Rejected("its answer is for other reports".to_owned())
}

/// The leader's contribution of a report, or a fixed word that says why there is none.
fn finish_report(
    task: &ServedTask,
    state: LeaderState,
    result: HelperResult<'_>,
) -> std::result::Result<Contribution, &'static str> {
    match result {
        HelperResult::Counted(message) => task.vdaf.leader_finish(state, message).ok_or("helper-misbehaved"),
        HelperResult::Finished => Err("helper-misbehaved"),
        HelperResult::Rejected(error) => Err(reason(error)),
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
