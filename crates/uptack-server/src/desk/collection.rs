//! The two loops of a desk. One opens and closes queries by the clock; the other collects closed queries, and has the
//! aggregators delete the tasks of those that are over.
//!
//! Every step is written down before the next is taken, and every step may be repeated: a desk that was killed at any
//! point goes on where the store says it was.

use futures_util::{StreamExt, stream};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::Instant;
use uptack_dap::{
    collector::{Collected, Collector},
    release::record::Record,
    task::{CollectorTask, RETENTION},
};

use crate::{
    base::logging::Throttle,
    desk::{
        shared::{DeskCounter, DeskState},
        store::{Query, QueryState, Store},
    },
    error::{Error, Result},
};

/// How often both loops look for work.
const TICK: Duration = Duration::from_millis(200);
/// How long to wait before aggregators that did not answer are told of a query again.
const OPEN_AGAIN: Duration = Duration::from_secs(2);
/// How many seconds before a query opens the aggregators are told of it.
const AHEAD: u64 = 60;
/// How long one attempt at a collection waits for the aggregators.
const PATIENCE: Duration = Duration::from_secs(10);
/// Queries that are collected at once.
const AT_ONCE: usize = 8;

/// Opens and closes queries until the desk stops.
pub(crate) async fn keep_time(shared: Arc<DeskState>) {
    let mut stopping = shared.stopping.subscribe();
    let mut open_from = Instant::now();
    while !*stopping.borrow() {
        match open_and_close(&shared, open_from).await {
            Ok(true) => {}
            Ok(false) => open_from = Instant::now() + OPEN_AGAIN,
            Err(error) => log_failure(&error, "keeping time"),
        }
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            _ = stopping.changed() => {}
        }
    }
}

/// Closes and opens the queries that are due, but opens none before `open_from`; false if an opening has to be repeated.
async fn open_and_close(shared: &Arc<DeskState>, open_from: Instant) -> Result<bool> {
    close_due(shared).await?;
    let all_open = Instant::now() < open_from || open_due(shared).await?;
    shared.refresh().await?;
    Ok(all_open)
}

/// Collects and tidies up until the desk stops.
pub(crate) async fn keep_collecting(shared: Arc<DeskState>) {
    let mut stopping = shared.stopping.subscribe();
    let mut waits = Waits::default();
    while !*stopping.borrow() {
        // A collection is cut off when the desk stops, and taken up by the next run.
        tokio::select! {
            outcome = collect_and_remove(&shared, &mut waits) => if let Err(error) = outcome {
                log_failure(&error, "collecting");
            },
            _ = stopping.changed() => break,
        }
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            () = shared.wake.notified() => {}
            _ = stopping.changed() => {}
        }
    }
}

/// Logs at most once a minute: both loops run many times a second, and a full disk makes them fail every time.
fn log_failure(error: &Error, doing: &'static str) {
    static FAILURES: Throttle = Throttle::per_minute();
    if let Some(unlogged) = FAILURES.pass() {
        tracing::error!(%error, unlogged, doing, "the desk's work failed and is tried again");
    }
}

/// Asks the aggregators to serve the queries that open soon; false if one of them has to wait.
pub(crate) async fn open_due(shared: &Arc<DeskState>) -> Result<bool> {
    let now = shared.now();
    let mut all_open = true;
    for query in shared.store.run(move |store| store.opening_by(now + AHEAD)).await? {
        if query.closes <= now {
            let reason = "it could not be opened before its window was over";
            end(shared, &query, QueryState::Cancelled, reason, "never opened").await?;
        } else {
            all_open &= open(shared, &query).await?;
        }
    }
    Ok(all_open)
}

/// Asks the aggregators to serve one query; false if that has to wait.
async fn open(shared: &Arc<DeskState>, query: &Query) -> Result<bool> {
    let Some(task) = &query.tasks else {
        return Err(Error::environment(format!("query {} has no task", query.name())));
    };
    match shared.provisioner.add(&query.signed, task).await {
        Ok(()) => note_open(shared, query, task).await.map(|()| true),
        Err(error) if error.is_refused() || error.is_input() => {
            let reason = format!("the aggregators refuse it: {error}");
            end(shared, query, QueryState::Cancelled, &reason, "never opened").await.map(|()| true)
        }
        Err(error) => {
            tracing::warn!(query = query.name(), %error, "not open yet");
            note_failure(shared, query, "add", error.to_string()).await.map(|()| false)
        }
    }
}

/// Writes down that the aggregators serve a query.
async fn note_open(shared: &Arc<DeskState>, query: &Query, task: &CollectorTask) -> Result<()> {
    let open = |store: &Store, name: &str| {
        let opened = store.advance(name, &[QueryState::Opening], QueryState::Open, None)?;
        Ok((opened, store.query(name)?.map(|query| query.state)))
    };
    match shared.store.run_for(query.name(), open).await? {
        (true, _) => tracing::info!(query = query.name(), "open"),
        // It was cancelled while the aggregators were told of it.
        (false, Some(QueryState::Cancelled)) => shared.provisioner.remove(&task.parameters.task_id).await?,
        (false, _) => {}
    }
    Ok(())
}

/// Counts a failed call to the aggregators, and writes down why the query waits.
async fn note_failure(shared: &DeskState, query: &Query, call: &'static str, reason: String) -> Result<()> {
    shared.metrics.add(DeskCounter::AggregatorFailures, call, 1);
    shared.store.run_for(query.name(), move |store, name| store.explain(name, &reason)).await
}

/// Closes queries whose window is over, and names the job that will collect each.
async fn close_due(shared: &Arc<DeskState>) -> Result<()> {
    let over = shared.now().saturating_sub(shared.config.grace.as_secs());
    for query in shared.store.run(move |store| store.closing_by(over)).await? {
        tracing::info!(query = query.name(), "closed");
        shared.store.run_for(query.name(), |store, name| store.close(name, &Collector::new_job())).await?;
        shared.wake.notify_waiters();
    }
    Ok(())
}

/// Collects closed queries and removes the tasks of those that are over, unless they have to wait after a failure.
async fn collect_and_remove(shared: &Arc<DeskState>, waits: &mut Waits) -> Result<()> {
    let closed = waits.due(shared.store.run(|store| store.uncollected()).await?);
    let collected = each(closed, |query| collect(shared, query)).await;
    let over = waits.due(shared.store.run(|store| store.removable()).await?);
    let removed = each(over, |query| remove(shared, query)).await;
    for (name, outcome) in collected.into_iter().chain(removed) {
        waits.note(name, outcome);
    }
    Ok(())
}

/// Acts on each query, a few at once, and gives the outcomes by name.
async fn each<F: Future<Output = Result<()>>>(
    queries: Vec<Query>,
    act: impl Fn(Query) -> F,
) -> Vec<(String, Result<()>)> {
    let named = |query: Query| {
        let name = query.name().to_owned();
        let acting = act(query);
        async move { (name, acting.await) }
    };
    stream::iter(queries).map(named).buffer_unordered(AT_ONCE).collect().await
}

async fn collect(shared: &Arc<DeskState>, query: Query) -> Result<()> {
    match ask_for_batch(shared, &query).await {
        Ok(batch) => keep_record(shared, &query, &batch).await,
        Err(error) if error.is_batch_too_small() => {
            end(shared, &query, QueryState::Withheld, &too_few(&query, &error), "withheld").await
        }
        Err(error) if shared.now() > query.closes.saturating_add(RETENTION) => {
            let reason = format!("the batch could not be collected in time: {error}");
            end(shared, &query, QueryState::Withheld, &reason, "withheld").await
        }
        Err(error) => {
            note_failure(shared, &query, "collect", error.to_string()).await?;
            Err(error.into())
        }
    }
}

async fn ask_for_batch(shared: &DeskState, query: &Query) -> uptack_dap::Result<Collected> {
    let (Some(task), Some(job)) = (&query.tasks, &query.job) else {
        unreachable!("a query keeps its task until it is over, and is closed together with its job");
    };
    let collector = Collector::with_root(task.clone(), shared.config.root.as_deref())?;
    let batch = task.parameters.batch(query.opens, 1)?;
    collector.collect(job, batch, PATIENCE).await
}

async fn keep_record(shared: &DeskState, query: &Query, batch: &Collected) -> Result<()> {
    let record = Record::new(&query.signed, batch, shared.now())?;
    let text = serde_json::to_string(&record).expect("a record is plain data");
    if shared.store.run_for(query.name(), move |store, name| store.collected(name, &text)).await? {
        shared.metrics.add(DeskCounter::Collections, "collected", 1);
        tracing::info!(query = query.name(), reports = batch.reports, "collected");
    }
    Ok(())
}

/// Why a batch is withheld, and by how much it is too small if the leader says so.
fn too_few(query: &Query, error: &uptack_dap::Error) -> String {
    let needed = query.tasks.as_ref().map_or(0, |task| task.parameters.min_batch_size);
    let words = format!("fewer owners answered than the card's minimum batch of {needed}");
    match error.batch_reports().filter(|reports| *reports < needed) {
        Some(reports) => format!("{words}: {reports} did, {} too few", needed - reports),
        None => words,
    }
}

/// Ends a query that will have no result.
async fn end(shared: &DeskState, query: &Query, state: QueryState, reason: &str, label: &'static str) -> Result<()> {
    let (from, owned) = (query.state, reason.to_owned());
    let advance = move |store: &Store, name: &str| store.advance(name, &[from], state, Some(&owned));
    if shared.store.run_for(query.name(), advance).await? {
        shared.metrics.add(DeskCounter::Collections, label, 1);
        tracing::info!(query = query.name(), state = state.name(), reason, "ended");
        shared.wake.notify_waiters();
    }
    Ok(())
}

/// Asks the aggregators to delete the task and all its reports.
async fn remove(shared: &Arc<DeskState>, query: Query) -> Result<()> {
    if let Some(task) = &query.tasks
        && let Err(error) = shared.provisioner.remove(&task.parameters.task_id).await
    {
        shared.metrics.add(DeskCounter::AggregatorFailures, "remove", 1);
        return Err(error);
    }
    shared.store.run_for(query.name(), Store::forget_tasks).await
}

/// When to retry what failed: after one second, two, four, up to five minutes.
#[derive(Default)]
struct Waits(HashMap<String, (u32, Instant)>);

impl Waits {
    /// The queries that need not wait.
    fn due(&self, queries: Vec<Query>) -> Vec<Query> {
        queries.into_iter().filter(|query| self.is_due(query.name(), Instant::now())).collect()
    }

    /// Notes the outcome of an attempt.
    fn note(&mut self, name: String, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.forget(&name),
            Err(error) => {
                tracing::warn!(query = name, %error, "trying again later");
                self.back_off(name, Instant::now());
            }
        }
    }

    fn is_due(&self, name: &str, now: Instant) -> bool {
        self.0.get(name).is_none_or(|(_, until)| now >= *until)
    }

    fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }

    fn back_off(&mut self, name: String, now: Instant) {
        let (failures, until) = self.0.entry(name).or_insert((0, now));
        let wait = Duration::from_secs((1u64 << (*failures).min(9)).min(300));
        (*failures, *until) = (*failures + 1, now + wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_less_and_less_often() {
        let now = Instant::now();
        let mut waits = Waits::default();
        assert!(waits.is_due("a", now));
        waits.back_off("a".to_owned(), now);
        waits.back_off("a".to_owned(), now);
        assert!(!waits.is_due("a", now + Duration::from_millis(1900)) && waits.is_due("b", now));
        assert!(waits.is_due("a", now + Duration::from_millis(2100)));
        for _ in 0..40 {
            waits.back_off("a".to_owned(), now);
        }
        assert!(!waits.is_due("a", now + Duration::from_secs(299)));
        assert!(waits.is_due("a", now + Duration::from_secs(300)));
        waits.forget("a");
        assert!(waits.0.is_empty());
    }
}
