//! An analyst's own queries at a glance.

use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use uptack::card::Timestamp;

use crate::{
    base::problem::Answer,
    desk::{
        shared::Shared,
        store::{Query, State},
        tokens::{Caller, Role},
    },
    error::Result,
};

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
pub(crate) async fn page(shared: &Arc<Shared>, caller: &Caller, from: usize) -> Answer<Value> {
    let analyst = seen_by(caller);
    let mut queries = shared.store.run(move |store| store.asked_by(analyst.as_deref(), from, PAGE + 1)).await?;
    let next = (queries.len() > PAGE).then_some(from + PAGE);
    queries.truncate(PAGE);
    Ok(json!({"queries": entries(shared, queries).await?, "next": next}))
}

/// Whose queries a caller sees: its own, or an administrator everybody's.
pub(crate) fn seen_by(caller: &Caller) -> Option<String> {
    match caller.role {
        Role::Analyst => Some(caller.name.clone()),
        Role::Admin => None,
    }
}

async fn entries(shared: &Arc<Shared>, queries: Vec<Query>) -> Result<Vec<Value>> {
    let entries = stream::iter(queries).map(|query| entry(shared, query)).buffered(AT_ONCE);
    entries.collect::<Vec<Result<Value>>>().await.into_iter().collect()
}

async fn entry(shared: &Arc<Shared>, query: Query) -> Result<Value> {
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
pub(crate) async fn reports(shared: &Arc<Shared>, query: &Query) -> Option<u64> {
    if let Some(record) = &query.record {
        return serde_json::from_str::<Counted>(record).ok().map(|counted| counted.reports);
    }
    let task = query.tasks.as_ref().filter(|_| matches!(query.state, State::Open | State::Closed))?;
    let counted = shared.provisioner.count_reports(&task.parameters.task_id).await;
    // The number is shown as unknown; nothing else on the page depends on it.
    counted.inspect_err(|error| tracing::debug!(query = query.name(), %error, "the leader does not count")).ok()?
}
