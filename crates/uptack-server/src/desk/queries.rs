//! What analysts do with queries: opening, cancelling, reading what became of them.

use axum::http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;
use uptack::card::Timestamp;
use uptack_dap::listing::MOST_CARD_BYTES;

use crate::{
    base::problem::{Answer, Problem},
    desk::{
        collect,
        new_queries::{self, Opening},
        openings::{Opened, Request, Room},
        shared::Shared,
        store::{Query, State, Store},
        tokens::{Caller, Role},
    },
    error::{Error, Result},
};

/// Opens the queries of a card: durable here first, then known to the aggregators. The same request again, by the same
/// key, is answered with the same queries.
pub(crate) async fn open(shared: &Arc<Shared>, request: Request, body: &[u8]) -> Answer<Value> {
    let again = request.clone();
    let opened = match shared.store.run(move |store| store.opened(&again)).await? {
        Some(before) => before,
        None => take_up(shared, request, body).await?,
    };
    let names = match opened {
        Opened::Queries(names) => names,
        refused => return Err(refusal(shared, &refused)),
    };
    collect::open_due(shared).await?;
    shared.refresh().await?;
    let queries = find_all(shared, &names).await?;
    check_accepted(&queries[0])?;
    Ok(opened_document(&queries)?)
}

/// Makes the queries of a request and puts them into the store.
async fn take_up(shared: &Arc<Shared>, request: Request, body: &[u8]) -> Answer<Opened> {
    let opening = Opening::parse(body)?;
    let queries = new_queries::sign_all(shared, opening, &request.analyst).await?;
    let (analyst, first, count) = (request.analyst.clone(), queries[0].name().to_owned(), queries.len());
    let (now, room) = (shared.now(), room(shared));
    let opened = shared.store.run(move |store| store.open_queries(&request, &queries, room, now)).await?;
    if matches!(&opened, Opened::Queries(names) if names[0] == first) {
        tracing::info!(analyst, query = first, queries = count, "asked");
    }
    Ok(opened)
}

fn room(shared: &Shared) -> Room {
    Room { queries: shared.config.max_queries as u64, bytes: MOST_CARD_BYTES }
}

fn refusal(shared: &Shared, opened: &Opened) -> Problem {
    match opened {
        Opened::OtherRequest => Problem::http(
            StatusCode::UNPROCESSABLE_ENTITY,
            "This Idempotency-Key was used for another request; a new request needs a new key.",
        ),
        Opened::OtherAnalyst => Problem::conflict("Another analyst asks this very card for this window already."),
        Opened::Over(state) => {
            let detail = format!("This very card was asked for this window before, and is {}.", state.name());
            problem_in(*state, StatusCode::CONFLICT, detail)
        }
        Opened::Full => full(room(shared)),
        Opened::Queries(_) => unreachable!("queries that were opened are no refusal"),
    }
}

fn full(Room { queries, bytes }: Room) -> Problem {
    let detail = format!(
        "There is no room: at most {queries} queries may be open or waiting at once, with cards of {bytes} bytes \
         together. Cancel some, or ask when others are over."
    );
    Problem::busy(&detail, 60)
}

/// A refusal that names the query's state in a member of its own.
fn problem_in(state: State, status: StatusCode, detail: impl Into<String>) -> Problem {
    Problem::http(status, detail).with_member("state", state.name())
}

/// Refuses a query that an aggregator has refused: it will not be accepted later.
fn check_accepted(query: &Query) -> Answer<()> {
    if query.state != State::Cancelled {
        return Ok(());
    }
    Err(problem_in(State::Cancelled, StatusCode::BAD_GATEWAY, query.reason.clone().unwrap_or_default()))
}

/// The answer to a request that opened queries.
fn opened_document(queries: &[Query]) -> Result<Value> {
    let entries = queries.iter().map(opened_entry).collect::<Result<Vec<Value>>>()?;
    let card: Value = serde_json::from_str(&queries[0].signed.card).expect("a card is JSON");
    Ok(json!({"queries": entries, "card": card}))
}

fn opened_entry(query: &Query) -> Result<Value> {
    let opens = Timestamp::from_seconds(query.opens)?;
    let closes = Timestamp::from_seconds(query.closes)?;
    Ok(json!({"query": query.name(), "opens": opens, "closes": closes}))
}

/// Cancels a query. Doing so twice changes nothing.
pub(crate) async fn cancel(shared: &Arc<Shared>, caller: &Caller, name: &str) -> Answer<Value> {
    find_own(shared, caller, name).await?;
    let reason = cancel_reason(caller.role);
    let cancelled = shared.store.run_for(name, move |store, name| store.cancel(name, reason)).await?;
    let state = find(shared, name).await?.state;
    if !cancelled && state != State::Cancelled {
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
pub(crate) async fn card(shared: &Shared, caller: &Caller, name: &str) -> Answer<String> {
    let query = find_own(shared, caller, name).await?;
    Ok(serde_json::to_string(&query.signed).expect("a signed card is strings"))
}

/// What became of a query, for anybody.
pub(crate) async fn status(shared: &Shared, name: &str) -> Answer<Value> {
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
pub(crate) async fn result(shared: &Shared, caller: &Caller, name: &str) -> Answer<String> {
    let query = find_own(shared, caller, name).await?;
    let state = query.state_at(shared.now());
    match (state, &query.record) {
        (State::Closed, Some(record)) => {
            release(shared, name).await?;
            tracing::info!(caller = caller.name, query = name, "released");
            Ok(record.clone())
        }
        (State::Released, Some(record)) => Ok(record.clone()),
        _ => Err(no_record(&query, state)?),
    }
}

async fn release(shared: &Shared, name: &str) -> Answer<()> {
    let advance = |store: &Store, name: &str| store.advance(name, &[State::Closed], State::Released, None);
    if shared.store.run_for(name, advance).await? {
        return Ok(());
    }
    // Somebody else released it a moment ago, or cancelled it.
    match find(shared, name).await?.state {
        State::Released => Ok(()),
        _ => Err(problem_in(State::Closed, StatusCode::GONE, "The query was cancelled; nothing is released.")),
    }
}

/// Why a query has no record to give out.
fn no_record(query: &Query, state: State) -> Result<Problem> {
    let reason = query.reason.as_deref().unwrap_or_default();
    Ok(match state {
        State::Opening | State::Open => {
            let closes = Timestamp::from_seconds(query.closes)?;
            let detail = format!("The query is {}; it closes at {closes}.", state.name());
            problem_in(state, StatusCode::CONFLICT, detail)
        }
        State::Closed => {
            let detail = format!("The query is closed and its batch is being collected. {reason}");
            problem_in(state, StatusCode::CONFLICT, detail.trim_end()).retry_after(1)
        }
        State::Released | State::Withheld | State::Cancelled => {
            problem_in(state, StatusCode::GONE, format!("Nothing is released: {reason}."))
        }
    })
}

async fn find(shared: &Shared, name: &str) -> Answer<Query> {
    let found = shared.store.run_for(name, Store::query).await?;
    found.ok_or_else(|| Problem::not_found("There is no such query."))
}

async fn find_all(shared: &Shared, names: &[String]) -> Answer<Vec<Query>> {
    let mut queries = Vec::new();
    for name in names {
        queries.push(find(shared, name).await?);
    }
    Ok(queries)
}

/// A query that the caller may cancel and read.
pub(crate) async fn find_own(shared: &Shared, caller: &Caller, name: &str) -> Answer<Query> {
    let query = find(shared, name).await?;
    if caller.may_touch(query.analyst.as_deref()) {
        return Ok(query);
    }
    Err(Problem::forbidden("This query is another analyst's."))
}
