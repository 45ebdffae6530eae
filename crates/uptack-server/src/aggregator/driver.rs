//! The leader drives aggregation: one loop a task.
//!
//! A job is a range of stored reports, fixed durably before the helper hears of it. Everything the
//! leader sends for it is computed from the stored reports alone, so that after a crash the same
//! job makes the same request; the helper answers a repeated request as it did the first time. The
//! leader then adds its contributions, deletes the reports and the job in one change. Whatever dies
//! between two steps, the job is taken up again and counts once. What becomes of a job that the helper
//! refuses is told in [`rejection`].

use futures_util::{StreamExt, stream::FuturesUnordered};
use rusqlite::{Connection, OptionalExtension, params};
use std::{collections::HashMap, sync::Arc, time::Duration};
use uptack_dap::protocol::{
    AggregationJobInitializeReq, AggregationJobResp, Decode, LeaderState, PartialBatchSelector, PrepareError,
    PrepareInit, PrepareResp, PrepareStepResult, ReportId, ReportMetadata, ReportShare, Time, TimeInterval, encode,
};

use super::{
    batches::{self, Additions},
    collection,
    failures::Scope,
    helper::reason,
    jobs::{Job, create_job, open_jobs},
    metrics::Name,
    peer::{self, PeerError},
    rejection::{self, Rejection},
    shared::{Shared, Task},
    upload::StoredReport,
};
use crate::{
    aggregator::store::StoreError,
    error::{Error, Result},
};

/// Runs a task until it is removed or the aggregator stops.
pub(crate) async fn drive(shared: Arc<Shared>, task: Arc<Task>) {
    let mut stopping = shared.stopping.subscribe();
    let mut removed = task.removed.subscribe();
    let work = async {
        let mut wait = FIRST_WAIT;
        loop {
            match round(&shared, &task).await {
                Ok(Progress::Again) => wait = FIRST_WAIT,
                Ok(Progress::Delayed) => {
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                Ok(Progress::Idle) => {
                    // Nothing to do until somebody says otherwise. Then gather a while, so that a
                    // job holds more than the first report of a burst.
                    task.wake.notified().await;
                    wait = FIRST_WAIT;
                    tokio::time::sleep(shared.config.gather).await;
                }
                Err(error) => {
                    tracing::warn!(task = %task.id(), %error, "aggregation is delayed");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
    };
    tokio::select! {
        () = work => {}
        _ = stopping.wait_for(|stop| *stop) => {}
        _ = removed.wait_for(|gone| *gone) => {}
    }
}

/// After a failure the driver waits so long, then twice as long each time.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// A report for which the helper's clock is behind is tried again after so long.
const EARLY_WAIT: Duration = Duration::from_secs(1);

/// When to look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// At once: something was done.
    Again,
    /// After a while: the helper refuses a job.
    Delayed,
    /// When somebody says that there is work.
    Idle,
}

/// Takes up what is there: open jobs, new jobs, collections.
async fn round(shared: &Arc<Shared>, task: &Arc<Task>) -> Result<Progress> {
    let row = task.row;
    let open: Vec<Job> = shared.store.read(|connection| open_jobs(connection, row))?;
    // Jobs that failed take turns with others, the longest ago first: neither keep the others from being tried.
    let (mut fresh, mut failed): (Vec<Job>, Vec<Job>) =
        open.into_iter().rev().partition(|job| task.failures.last_failure(&job.id).is_none());
    failed.sort_by_key(|job| std::cmp::Reverse(task.failures.last_failure(&job.id)));
    let at_once = shared.config.jobs_at_once;
    let mut running = FuturesUnordered::new();
    let (mut worked, mut delayed, mut failures, mut started) = (false, false, 0, 0);
    loop {
        // Where everything fails, the helper is away, and a few jobs are enough to find out whether it is back.
        while running.len() < at_once && (worked || failures < at_once) {
            let turn = if started % 2 == 1 { failed.pop() } else { None };
            let job = match turn.or_else(|| fresh.pop()) {
                Some(job) => Some(job),
                // The round ends however fast reports come in, so that what failed has its turn again.
                None if delayed || failures > 0 => failed.pop(),
                None => create_job(shared, task).await?.or_else(|| failed.pop()),
            };
            let Some(job) = job else { break };
            running.push(run_job(shared, task, job));
            started += 1;
        }
        match running.next().await {
            Some(outcome) => match outcome? {
                Rejection::Gone => worked = true,
                Rejection::Again => delayed = true,
                Rejection::Failed => failures += 1,
            },
            None => break,
        }
    }
    delayed |= failures > 0;
    let moved = collection::advance(shared, task).await?;
    Ok(match (delayed, worked || moved) {
        (true, _) => Progress::Delayed,
        (false, true) => Progress::Again,
        (false, false) => Progress::Idle,
    })
}

async fn run_job(shared: &Arc<Shared>, task: &Arc<Task>, job: Job) -> Result<Rejection> {
    let finished = match work_out(shared, task, job).await {
        Ok(finished) => finished,
        Err(Stopped::Delayed(error)) => return Err(error),
        Err(Stopped::Rejected(reason)) => return rejection::note(shared, task, job, &reason).await,
        Err(Stopped::Failed(scope, reason)) => return rejection::note_failure(shared, task, job, scope, &reason).await,
    };
    let early = finished.early.len();
    settle_job(shared, task, job, finished).await?;
    task.failures.forget(&job.id);
    if early > 0 {
        tracing::info!(task = %task.id(), reports = early, "the helper's clock is behind; trying again");
        tokio::time::sleep(EARLY_WAIT).await;
        task.wake.notify_one();
    }
    Ok(Rejection::Gone)
}

/// Why a job got no further.
#[derive(Debug)]
enum Stopped {
    /// Something here is broken or full; the job waits.
    Delayed(Error),
    /// The helper is away, or fails.
    Failed(Scope, String),
    /// The helper answered, and not with what was asked for.
    Rejected(String),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Delayed(error)
    }
}

/// What a job comes to, with the helper's part; nothing is changed yet on this side.
async fn work_out(shared: &Arc<Shared>, task: &Arc<Task>, job: Job) -> std::result::Result<Finished, Stopped> {
    let started = blocking(shared, task, move |shared, task| start(shared, task, job)).await??;
    let Started { reports, request } = started;
    let answer = match request {
        Some(request) => Some(send(shared, task, &job, request).await?),
        None => None,
    };
    blocking(shared, task, move |_, task| finish(task, reports, answer.as_deref())).await?
}

/// Settles a job, and says whether that was still to be done.
async fn settle_job(shared: &Shared, task: &Arc<Task>, job: Job, finished: Finished) -> Result<bool> {
    let outcomes = finished.outcomes.clone();
    let owned = Arc::clone(task);
    let settled = shared.store.write(move |connection| settle(connection, &owned, &job, finished)).await?;
    if settled {
        for outcome in outcomes {
            shared.metrics.add(Name::Aggregated, outcome, 1);
        }
        shared.metrics.add(Name::Jobs, "finished", 1);
    }
    Ok(settled)
}

/// A job's reports and its request, if any of them is fit to be sent.
struct Started {
    reports: Vec<Waiting>,
    request: Option<Vec<u8>>,
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

fn start(shared: &Shared, task: &Task, job: Job) -> Result<Started> {
    let (mut reports, mut inits) = (Vec::new(), Vec::new());
    let mut last = job.first - 1;
    // One by one, so that each is still in the cache when it is worked on, and other readers get
    // their turn. If the job is settled meanwhile by an earlier attempt, what is left of it makes
    // another request than before, which the helper refuses.
    while let Some((number, report)) = shared.store.read(|connection| load(connection, task.row, last, job.last))? {
        last = number;
        let report = report.ok_or_else(|| Error::environment("a stored report is damaged"))?;
        let started =
            task.vdaf.leader_start(&task.definition.verify_key, &report.id, &report.public_share, &report.leader_share);
        let StoredReport { id, time, public_share, helper_share, .. } = report;
        let state = started.map(|(state, message)| {
            let metadata = ReportMetadata::new(id, Time::from_seconds_since_epoch(time));
            inits.push(PrepareInit::new(ReportShare::new(metadata, public_share, helper_share), message));
            state
        });
        reports.push(Waiting { number, id, time, state });
    }
    let request = (!inits.is_empty()).then(|| {
        encode(&AggregationJobInitializeReq::new(Vec::new(), PartialBatchSelector::new_time_interval(), inits))
    });
    Ok(Started { reports, request })
}

/// The first report of the task after one number and up to another, with its own.
fn load(
    connection: &Connection,
    task: i64,
    after: i64,
    last: i64,
) -> rusqlite::Result<Option<(i64, Option<StoredReport>)>> {
    connection
        .prepare_cached(
            "SELECT report, report_id, time, content FROM reports
             WHERE task = ?1 AND report > ?2 AND report <= ?3 ORDER BY report LIMIT 1",
        )?
        .query_row([task, after, last], |row| {
            let (id, content) = (row.get_ref(1)?.as_blob()?, row.get_ref(3)?.as_blob()?);
            Ok((row.get(0)?, StoredReport::from_row(id, row.get(2)?, content)))
        })
        .optional()
}

/// Repeats the request until the helper answers: it has been told of the job, or may have been.
async fn send(shared: &Shared, task: &Task, job: &Job, request: Vec<u8>) -> std::result::Result<Vec<u8>, Stopped> {
    let media_types = (AggregationJobInitializeReq::<TimeInterval>::MEDIA_TYPE, AggregationJobResp::MEDIA_TYPE);
    let path = format!("aggregation_jobs/{}", job.id);
    let answer = peer::call(shared, task, reqwest::Method::PUT, &path, media_types, request).await;
    answer.map_err(|error| match error {
        PeerError::Refused(kind) => Stopped::Rejected(kind.description().to_owned()),
        PeerError::Rejected(text) => Stopped::Rejected(text),
        PeerError::Passing(scope, text) => Stopped::Failed(scope, text),
    })
}

/// What a job comes to.
struct Finished {
    additions: Additions,
    /// How many reports of each window are done with.
    done: HashMap<u64, i64>,
    /// The numbers of reports to be tried again.
    early: Vec<i64>,
    outcomes: Vec<&'static str>,
}

fn finish(task: &Task, reports: Vec<Waiting>, answer: Option<&[u8]>) -> std::result::Result<Finished, Stopped> {
    let other_reports = || Stopped::Rejected("its answer is for other reports".to_owned());
    let answer = answer
        .map(AggregationJobResp::get_decoded)
        .transpose()
        .map_err(|_| Stopped::Rejected("its answer does not decode".to_owned()))?;
    let mut responses = answer.as_ref().map_or(&[][..], AggregationJobResp::prepare_resps).iter();
    let mut finished =
        Finished { additions: Additions::default(), done: HashMap::new(), early: Vec::new(), outcomes: Vec::new() };
    for report in reports {
        let window = task.definition.parameters.window(report.time);
        let Some(state) = report.state else {
            finished.outcomes.push("invalid-share");
            *finished.done.entry(window).or_default() += 1;
            continue;
        };
        let response =
            responses.next().filter(|response| *response.report_id() == report.id).ok_or_else(other_reports)?;
        finish_report(task, report.number, state, response, window, &mut finished);
    }
    if responses.next().is_some() {
        return Err(other_reports());
    }
    Ok(finished)
}

fn finish_report(
    task: &Task,
    number: i64,
    state: LeaderState,
    response: &PrepareResp,
    window: u64,
    finished: &mut Finished,
) {
    let outcome = match response.result() {
        PrepareStepResult::Continue { message } => match task.vdaf.leader_finish(state, message) {
            Some(contribution) => {
                finished.additions.add(&task.vdaf, window, response.report_id(), &contribution);
                "added"
            }
            None => "helper-misbehaved",
        },
        PrepareStepResult::Finished => "helper-misbehaved",
        PrepareStepResult::Reject(PrepareError::ReportTooEarly) => {
            finished.early.push(number);
            return;
        }
        PrepareStepResult::Reject(error) => reason(error),
    };
    finished.outcomes.push(outcome);
    *finished.done.entry(window).or_default() += 1;
}

/// Adds, deletes, and puts back what came too early, all at once; nothing if the job is gone.
fn settle(
    connection: &Connection,
    task: &Task,
    job: &Job,
    finished: Finished,
) -> std::result::Result<bool, StoreError<()>> {
    let removed = connection
        .execute("DELETE FROM leader_jobs WHERE task = ?1 AND job_id = ?2", params![task.row, job.id.as_ref()])?;
    if removed == 0 {
        return Ok(false);
    }
    for number in finished.early {
        StoredReport::enqueue_again(connection, number)?;
    }
    connection.execute(
        "DELETE FROM reports WHERE task = ?1 AND report BETWEEN ?2 AND ?3",
        params![task.row, job.first, job.last],
    )?;
    for (window, reports) in finished.done {
        batches::change_pending(connection, task.row, window, -reports)?;
    }
    finished.additions.store(connection, &task.vdaf, task.row)?;
    Ok(true)
}

/// Runs cryptography on a thread where it may take its time, with one permit for a core.
async fn blocking<T, F>(shared: &Arc<Shared>, task: &Arc<Task>, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce(&Shared, &Task) -> T + Send + 'static,
{
    let permit = Arc::clone(&shared.cores)
        .acquire_owned()
        .await
        .map_err(|_| Error::environment("the aggregator is stopping"))?;
    let (shared, task) = (Arc::clone(shared), Arc::clone(task));
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work(&shared, &task)
    })
    .await
    .map_err(|_| Error::environment("a worker panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregator::pair::Pair;
    use uptack_dap::{
        client::Client,
        collector::Collector,
        protocol::{Measurement, VdafKind},
        task::{AggregatorRole, TaskSet},
    };

    /// A driver that failed in one job drops the others, and may start one again whose settling is
    /// still under way. Both attempts then settle it, and only one may count.
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
        let first = work_out(shared, &task, job).await.unwrap();
        let second = work_out(shared, &task, job).await.unwrap();
        assert!(settle_job(shared, &task, job, first).await.unwrap());
        assert!(!settle_job(shared, &task, job, second).await.unwrap());

        let pending = shared.store.read(|connection| {
            connection.query_row("SELECT sum(reports) FROM pending", [], |row| row.get::<_, i64>(0))
        });
        assert_eq!(pending.unwrap(), 0);
        let collector = Collector::new(set.collector.clone()).unwrap();
        let (id, batch) = (Collector::new_job(), parameters.batch(now, 1).unwrap());
        collector.request(&id, batch).await.unwrap();
        while collection::advance(shared, &task).await.unwrap() {}
        assert_eq!(collector.collect(&id, batch, patience).await.unwrap().counts, [1, 2, 0]);
    }
}
