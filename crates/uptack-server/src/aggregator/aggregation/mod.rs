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
        state::Shared,
        store::Job,
        tasks::{Task, failures::Failures},
    },
    error::Result,
};
use leader::{Prepared, Stopped};
use refusals::Rejection;

/// Runs a task until it is removed or the aggregator stops.
pub(crate) async fn drive(shared: Arc<Shared>, task: Arc<Task>) {
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

/// When to look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// At once: something was done.
    Again,
    /// After a while: the helper refuses a job.
    Delayed,
    /// When the task is woken because there may be work.
    Idle,
}

async fn repeat_rounds(shared: &Arc<Shared>, task: &Arc<Task>) {
    let mut wait = FIRST_WAIT;
    loop {
        let progress = run_round(shared, task).await.unwrap_or_else(|error| {
            tracing::warn!(task = %task.id(), %error, "aggregation is delayed");
            Progress::Delayed
        });
        match progress {
            Progress::Again => wait = FIRST_WAIT,
            Progress::Delayed => {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
            Progress::Idle => {
                // Once there is work, gather a while, so that a job holds more than the first report of a burst.
                task.wake.notified().await;
                wait = FIRST_WAIT;
                tokio::time::sleep(shared.config.gather).await;
            }
        }
    }
}

/// Works on what there is: open jobs, new jobs, collections.
async fn run_round(shared: &Arc<Shared>, task: &Arc<Task>) -> Result<Progress> {
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
        let Some(outcome) = running.next().await else { break };
        round.note(outcome?);
    }
    let moved = collection::advance(shared, task).await?;
    Ok(round.progress(moved))
}

/// The jobs that one round is to try, the next ones last, and what became of those it tried.
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

    fn note(&mut self, outcome: Rejection) {
        match outcome {
            Rejection::Gone => self.worked = true,
            Rejection::Again => self.delayed = true,
            Rejection::Failed => self.failures += 1,
        }
    }

    fn is_delayed(&self) -> bool {
        self.delayed || self.failures > 0
    }

    fn progress(&self, moved: bool) -> Progress {
        if self.is_delayed() {
            Progress::Delayed
        } else if self.worked || moved {
            Progress::Again
        } else {
            Progress::Idle
        }
    }
}

/// An open job, else a new one, else one that failed before.
async fn next_job(shared: &Shared, task: &Arc<Task>, round: &mut Round) -> Result<Option<Job>> {
    if let Some(job) = round.next_open() {
        return Ok(Some(job));
    }
    // The round ends however fast reports come in, so that what failed has its turn again.
    let new = if round.is_delayed() { None } else { leader::create_job(shared, task).await? };
    Ok(new.or_else(|| round.failed.pop()))
}

async fn run_job(shared: &Arc<Shared>, task: &Arc<Task>, job: Job) -> Result<Rejection> {
    match leader::prepare(shared, task, job).await {
        Ok(prepared) => settle_job(shared, task, job, prepared).await,
        Err(Stopped::Delayed(error)) => Err(error),
        Err(Stopped::Rejected(reason)) => refusals::note(shared, task, job, &reason).await,
        Err(Stopped::Failed(scope, reason)) => refusals::note_failure(shared, task, job, scope, &reason).await,
    }
}

async fn settle_job(shared: &Shared, task: &Arc<Task>, job: Job, prepared: Prepared) -> Result<Rejection> {
    let early = prepared.early();
    leader::settle(shared, task, job, prepared).await?;
    task.failures.forget(&job.id);
    if early > 0 {
        tracing::info!(task = %task.id(), reports = early, "the helper's clock is behind; trying again");
        tokio::time::sleep(EARLY_WAIT).await;
        task.wake.notify_one();
    }
    Ok(Rejection::Gone)
}
