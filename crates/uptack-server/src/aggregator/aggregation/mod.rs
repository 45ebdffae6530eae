//! The leader drives aggregation: one loop per task.
//!
//! A job is a range of stored reports, fixed durably before the helper hears of it. Everything the
//! leader sends for it is computed from the stored reports alone, so that after a crash the same
//! job makes the same request; the helper answers a repeated request as it did the first time. The
//! leader then adds its contributions and deletes the reports and the job in one change. Whatever dies
//! between two steps, the job is taken up again and counts once. [`leader`] takes one job through these steps;
//! [`refusals`] decides what becomes of a job that the helper refuses.

pub(crate) mod helper;
mod leader;
mod refusals;

use futures_util::{StreamExt, stream::FuturesUnordered};
use std::{cmp::Reverse, sync::Arc, time::Duration};

use crate::{
    aggregator::{
        collection,
        state::AggregatorState,
        store::Job,
        tasks::{ServedTask, failures::Failures},
    },
    error::Result,
};
use leader::{JobError, PreparedJob};
use refusals::JobAttempt;

/// Runs a task until it is removed or the aggregator stops.
pub(crate) async fn drive(shared: Arc<AggregatorState>, task: Arc<ServedTask>) {
    let mut stopping = shared.stopping.subscribe();
    let mut removed = task.removed.subscribe();
    tokio::select! {
        () = repeat_rounds(&shared, &task) => {}
        _ = stopping.wait_for(|stop| *stop) => {}
        _ = removed.wait_for(|gone| *gone) => {}
    }
}

/// The wait after a failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The wait before a report that is too early by the helper's clock is tried again.
const EARLY_WAIT: Duration = Duration::from_secs(1);

/// When the next round begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextRound {
    /// At once, because this round made progress.
    AtOnce,
    /// After a pause, because a job was refused or failed.
    Delayed,
    /// When the task is woken because there may be work.
    WhenWoken,
}

async fn repeat_rounds(shared: &Arc<AggregatorState>, task: &Arc<ServedTask>) {
    let mut wait = FIRST_WAIT;
    loop {
        let next = run_round(shared, task).await.unwrap_or_else(|error| {
            tracing::warn!(task = %task.id(), %error, "aggregation is delayed");
            NextRound::Delayed
        });
        match next {
            NextRound::AtOnce => wait = FIRST_WAIT,
            NextRound::Delayed => {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
            NextRound::WhenWoken => {
                // Once there is work, gather a while, so that a job holds more than the first report of a burst.
                task.wake.notified().await;
                wait = FIRST_WAIT;
                tokio::time::sleep(shared.config.gather).await;
            }
        }
    }
}

/// Works on all open jobs, new jobs and collections.
async fn run_round(shared: &Arc<AggregatorState>, task: &Arc<ServedTask>) -> Result<NextRound> {
    let open = shared.read(task, |stored| stored.open_jobs())?;
    let mut round = Round::new(open, &task.failures);
    let at_once = shared.config.jobs_at_once;
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < at_once && round.may_start(at_once) {
            let Some(job) = next_job(shared, task, &mut round).await? else { break };
            running.push(run_job(shared, task, job));
            round.started += 1;
        }
        let Some(attempt) = running.next().await else { break };
        round.note(attempt?);
    }
    let moved = collection::advance(shared, task).await?;
    Ok(round.next_round(moved))
}

/// The jobs that one round is to try, in reverse order, and how its attempts went.
struct Round {
    fresh: Vec<Job>,
    /// Jobs that failed before.
    failed: Vec<Job>,
    started: usize,
    worked: bool,
    delayed: bool,
    failures: usize,
}

impl Round {
    /// Jobs that failed are tried in the order of their last failures, the longest ago first.
    fn new(open: Vec<Job>, failures: &Failures) -> Self {
        let last_failure = |job: &Job| failures.last_failure(&job.id);
        let (fresh, mut failed): (Vec<Job>, Vec<Job>) =
            open.into_iter().rev().partition(|job| last_failure(job).is_none());
        failed.sort_by_key(|job| Reverse(last_failure(job)));
        Self { fresh, failed, started: 0, worked: false, delayed: false, failures: 0 }
    }

    /// If everything fails, the helper is away, and a few jobs are enough to find out whether it is back.
    fn may_start(&self, at_once: usize) -> bool {
        self.worked || self.failures < at_once
    }

    /// The next open job. Jobs that failed take turns with others: neither kind keeps the others from being tried.
    fn next_open(&mut self) -> Option<Job> {
        let turn = if self.started % 2 == 1 { self.failed.pop() } else { None };
        turn.or_else(|| self.fresh.pop())
    }

    fn note(&mut self, attempt: JobAttempt) {
        match attempt {
            JobAttempt::Done => self.worked = true,
            JobAttempt::Refused => self.delayed = true,
            JobAttempt::Failed => self.failures += 1,
        }
    }

    fn is_delayed(&self) -> bool {
        self.delayed || self.failures > 0
    }

    fn next_round(&self, moved: bool) -> NextRound {
        if self.is_delayed() {
            NextRound::Delayed
        } else if self.worked || moved {
            NextRound::AtOnce
        } else {
            NextRound::WhenWoken
        }
    }
}

/// An open job, else a new one, else one that failed before.
async fn next_job(shared: &AggregatorState, task: &Arc<ServedTask>, round: &mut Round) -> Result<Option<Job>> {
    if let Some(job) = round.next_open() {
        return Ok(Some(job));
    }
    // The round ends however fast reports come in, so that failed jobs get another turn.
    let new = if round.is_delayed() { None } else { leader::create_job(shared, task).await? };
    Ok(new.or_else(|| round.failed.pop()))
}

async fn run_job(shared: &Arc<AggregatorState>, task: &Arc<ServedTask>, job: Job) -> Result<JobAttempt> {
    match leader::prepare(shared, task, job).await {
        Ok(prepared) => settle_job(shared, task, job, prepared).await,
        Err(JobError::Delayed(error)) => Err(error),
        Err(JobError::Rejected(reason)) => refusals::note(shared, task, job, &reason).await,
        Err(JobError::Failed(scope, reason)) => refusals::note_failure(shared, task, job, scope, &reason).await,
    }
}

async fn settle_job(
    shared: &AggregatorState,
    task: &Arc<ServedTask>,
    job: Job,
    prepared: PreparedJob,
) -> Result<JobAttempt> {
    let early = prepared.early();
    leader::settle(shared, task, job, prepared).await?;
    task.failures.forget(&job.id);
    if early > 0 {
        tracing::info!(task = %task.id(), reports = early, "the helper's clock is behind; trying again");
        tokio::time::sleep(EARLY_WAIT).await;
        task.wake.notify_one();
    }
    Ok(JobAttempt::Done)
}
