//! An analyst's own queries at a glance.

use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use uptack::card::{Card, Timestamp};

use crate::{
    base::problem::Problem,
    desk::{
        shared::Shared,
        store::{Query, State},
        tokens::{Caller, Role},
    },
    error::Result,
};

/// Queries on one page.
const PAGE: usize = 100;
/// The longest question that is shown, in characters: a page must stay within what clients read.
const LONGEST_QUESTION: usize = 500;
/// Leaders that are asked at once how far a query is.
const AT_ONCE: usize = 8;

/// Where a page begins.
#[derive(Deserialize)]
pub(crate) struct Offset {
    #[serde(default)]
    pub(crate) from: usize,
}

/// A page of the caller's queries, of an administrator's those of everybody; the latest first.
pub(crate) async fn page(shared: &Arc<Shared>, caller: &Caller, from: usize) -> std::result::Result<Value, Problem> {
    let analyst = seen_by(caller);
    let mut queries = shared
        .store
        .run(move |store| store.asked_by(analyst.as_deref(), from, PAGE + 1))
        .await
        .map_err(Problem::from)?;
    let next = (queries.len() > PAGE).then_some(from + PAGE);
    queries.truncate(PAGE);
    let entries: Vec<Result<Value>> =
        stream::iter(queries).map(|query| entry(shared, query)).buffered(AT_ONCE).collect().await;
    let entries = entries.into_iter().collect::<Result<Vec<Value>>>()?;
    Ok(json!({"queries": entries, "next": next}))
}

/// Whose queries a caller sees: its own, or an administrator everybody's.
pub(crate) fn seen_by(caller: &Caller) -> Option<String> {
    match caller.role {
        Role::Analyst => Some(caller.name.clone()),
        Role::Admin => None,
    }
}

async fn entry(shared: &Arc<Shared>, query: Query) -> Result<Value> {
    let card = Card::from_json(&query.signed.card)?;
    let question: Option<String> = card.question.map(|text| text.chars().take(LONGEST_QUESTION).collect());
    let reports = reports(shared, &query).await;
    Ok(json!({
        "query": query.signed.query,
        "question": question,
        "state": query.state_at(shared.now()).name(),
        "reports": reports,
        "minimum_batch": card.minimum_batch,
        "opens": Timestamp::from_seconds(query.opens)?,
        "closes": Timestamp::from_seconds(query.closes)?,
        "reason": query.reason,
    }))
}

/// What alone is read of a record.
#[derive(Deserialize)]
struct Counted {
    reports: u64,
}

/// How many reports arrived: in the record, or as the leader counts them as long as there is none.
pub(crate) async fn reports(shared: &Arc<Shared>, query: &Query) -> Option<u64> {
    if let Some(record) = &query.record {
        return serde_json::from_str::<Counted>(record).ok().map(|counted| counted.reports);
    }
    let task = query.tasks.as_ref().filter(|_| matches!(query.state, State::Open | State::Closed))?;
    match shared.provisioner.count_reports(&task.parameters.task_id).await {
        Ok(count) => count,
        // It is shown as unknown; what else is known of the queries does not depend on it.
        Err(error) => {
            tracing::debug!(query = query.signed.query, %error, "the leader does not count");
            None
        }
    }
}
