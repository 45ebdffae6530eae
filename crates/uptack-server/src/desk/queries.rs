//! What analysts do with queries that were opened: listing, reading, releasing, cancelling.

use axum::http::StatusCode;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use uptack::card::Timestamp;

use crate::{
    base::problem::{Answer, Problem},
    desk::{
        shared::DeskState,
        store::{Query, QueryState, Store},
        tokens::{Role, TokenHolder},
    },
    error::{Error, Result},
};

/// Cancels a query. Doing so twice changes nothing.
pub(crate) async fn cancel(shared: &Arc<DeskState>, caller: &TokenHolder, name: &str) -> Answer<Value> {
    find_own(shared, caller, name).await?;
    let reason = cancel_reason(caller.role);
    let cancelled = shared.store.run_for(name, move |store, name| store.cancel(name, reason)).await?;
    let state = find(shared, name).await?.state;
    if !cancelled && state != QueryState::Cancelled {
        let detail = format!("The query is {} and can no longer be cancelled.", state.name());
        return Err(problem_in(state, StatusCode::CONFLICT, detail));
    }
    if cancelled {
        tracing::info!(caller = caller.name, query = name, "cancelled");
        shared.refresh().await?;
        shared.wake.notify_waiters();
    }
    Ok(json!({"query": name, "state": state.name()}))
}

/// Anybody can read the reason, so it names nobody.
fn cancel_reason(role: Role) -> &'static str {
    match role {
        Role::Analyst => "cancelled by its analyst",
        Role::Admin => "cancelled by an administrator",
    }
}

/// The signed card of a query that is no longer open, or not yet, for callers who may read it.
pub(crate) async fn card(shared: &DeskState, caller: &TokenHolder, name: &str) -> Answer<String> {
    let query = find_own(shared, caller, name).await?;
    Ok(serde_json::to_string(&query.signed).expect("a signed card is strings"))
}

/// The state of a query, for anybody.
pub(crate) async fn status(shared: &DeskState, name: &str) -> Answer<Value> {
    let query = find(shared, name).await?;
    let mut document = json!({
        "query": query.name(),
        "state": query.state_at(shared.now()).name(),
        "closes": Timestamp::from_seconds(query.closes).map_err(Error::from)?,
    });
    if let Some(reason) = query.reason {
        document["reason"] = json!(reason);
    }
    Ok(document)
}

/// The record of a query, which is thereby released; the same bytes each time it is asked for.
pub(crate) async fn result(shared: &DeskState, caller: &TokenHolder, name: &str) -> Answer<String> {
    let query = find_own(shared, caller, name).await?;
    let state = query.state_at(shared.now());
    match (state, &query.record) {
        (QueryState::Closed, Some(record)) => {
            release(shared, name).await?;
            tracing::info!(caller = caller.name, query = name, "released");
            Ok(record.clone())
        }
        (QueryState::Released, Some(record)) => Ok(record.clone()),
        _ => Err(no_record(&query, state)?),
    }
}

async fn release(shared: &DeskState, name: &str) -> Answer<()> {
    let advance = |store: &Store, name: &str| store.advance(name, &[QueryState::Closed], QueryState::Released, None);
    if shared.store.run_for(name, advance).await? {
        return Ok(());
    }
    // Somebody else released it a moment ago, or cancelled it.
    match find(shared, name).await?.state {
        QueryState::Released => Ok(()),
        _ => Err(problem_in(QueryState::Closed, StatusCode::GONE, "The query was cancelled; nothing is released.")),
    }
}

/// Why a query has no record to give out.
fn no_record(query: &Query, state: QueryState) -> Result<Problem> {
    let reason = query.reason.as_deref().unwrap_or_default();
    Ok(match state {
        QueryState::Opening | QueryState::Open => {
            let closes = Timestamp::from_seconds(query.closes)?;
            let detail = format!("The query is {}; it closes at {closes}.", state.name());
            problem_in(state, StatusCode::CONFLICT, detail)
        }
        QueryState::Closed => {
            let detail = format!("The query is closed and its batch is being collected. {reason}");
            problem_in(state, StatusCode::CONFLICT, detail.trim_end()).retry_after(1)
        }
        QueryState::Released | QueryState::Withheld | QueryState::Cancelled => {
            problem_in(state, StatusCode::GONE, format!("Nothing is released: {reason}."))
        }
    })
}

async fn find(shared: &DeskState, name: &str) -> Answer<Query> {
    let found = shared.store.run_for(name, Store::query).await?;
    found.ok_or_else(|| Problem::not_found("There is no such query."))
}

pub(crate) async fn find_all(shared: &DeskState, names: &[String]) -> Answer<Vec<Query>> {
    let mut queries = Vec::new();
    for name in names {
        queries.push(find(shared, name).await?);
    }
    Ok(queries)
}

/// A query that the caller may cancel and read.
pub(crate) async fn find_own(shared: &DeskState, caller: &TokenHolder, name: &str) -> Answer<Query> {
    let query = find(shared, name).await?;
    if caller.may_touch(query.analyst.as_deref()) {
        return Ok(query);
    }
    Err(Problem::forbidden("This query is another analyst's."))
}

/// A refusal that names the query's state in a member of its own.
pub(crate) fn problem_in(state: QueryState, status: StatusCode, detail: impl Into<String>) -> Problem {
    Problem::http(status, detail).with_member("state", state.name())
}

/// Queries on one page.
const PAGE: usize = 100;
/// The longest question that is shown, in characters: clients read only pages of bounded size.
const LONGEST_QUESTION: usize = 500;
/// How many queries the leader is asked about at once.
const AT_ONCE: usize = 8;

/// Where a page begins.
#[derive(Deserialize)]
pub(crate) struct Offset {
    #[serde(default)]
    pub(crate) from: usize,
}

/// A page of the queries that the caller sees, the latest first.
pub(crate) async fn page(shared: &Arc<DeskState>, caller: &TokenHolder, from: usize) -> Answer<Value> {
    let analyst = seen_by(caller);
    let mut queries = shared.store.run(move |store| store.asked_by(analyst.as_deref(), from, PAGE + 1)).await?;
    let next = (queries.len() > PAGE).then_some(from + PAGE);
    queries.truncate(PAGE);
    Ok(json!({"queries": entries(shared, queries).await?, "next": next}))
}

/// Whose queries a caller sees: its own, or an administrator everybody's.
pub(crate) fn seen_by(caller: &TokenHolder) -> Option<String> {
    match caller.role {
        Role::Analyst => Some(caller.name.clone()),
        Role::Admin => None,
    }
}

async fn entries(shared: &Arc<DeskState>, queries: Vec<Query>) -> Result<Vec<Value>> {
    let entries = stream::iter(queries).map(|query| entry(shared, query)).buffered(AT_ONCE);
    entries.collect::<Vec<Result<Value>>>().await.into_iter().collect()
}

async fn entry(shared: &Arc<DeskState>, query: Query) -> Result<Value> {
    let card = query.card()?;
    Ok(json!({
        "query": query.name(),
        "question": card.question.as_deref().map(shortened),
        "state": query.state_at(shared.now()).name(),
        "reports": reports(shared, &query).await,
        "minimum_batch": card.minimum_batch,
        "opens": Timestamp::from_seconds(query.opens)?,
        "closes": Timestamp::from_seconds(query.closes)?,
        "reason": query.reason,
    }))
}

fn shortened(question: &str) -> String {
    question.chars().take(LONGEST_QUESTION).collect()
}

/// The part of a record that is read here.
#[derive(Deserialize)]
struct Counted {
    reports: u64,
}

/// How many reports arrived: by the record, or by the leader's count as long as there is no record.
pub(crate) async fn reports(shared: &Arc<DeskState>, query: &Query) -> Option<u64> {
    if let Some(record) = &query.record {
        return serde_json::from_str::<Counted>(record).ok().map(|counted| counted.reports);
    }
    let task = query.tasks.as_ref().filter(|_| matches!(query.state, QueryState::Open | QueryState::Closed))?;
    let counted = shared.provisioner.count_reports(&task.parameters.task_id).await;
    // The number is shown as unknown; nothing else on the page depends on it.
    counted.inspect_err(|error| tracing::debug!(query = query.name(), %error, "the leader does not count")).ok()?
}
