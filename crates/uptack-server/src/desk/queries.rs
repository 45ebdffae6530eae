//! Opening and cancelling queries.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use uptack::{
    card::{Card, CardSeries, Enrolment, Timestamp},
    privacy::WorkLimit,
};
use uptack_dap::{
    card_task,
    listing::{LARGEST_CARD, MOST_CARD_BYTES},
    task::CollectorTask,
};

use crate::{
    base::problem::Problem,
    desk::{
        collect,
        openings::{Opened, Request, Room},
        shared::Shared,
        store::{Query, State},
        tokens::{Caller, Role},
    },
    error::{Error, Result},
};

/// Longest predicate, in bytes.
pub const LONGEST_PREDICATE: usize = 1024;
/// Most cards of a series.
const LONGEST_SERIES: u64 = 1000;
/// Longest window, in seconds: ten years.
const LONGEST_WINDOW: u64 = 10 * 366 * 24 * 3600;

/// What an analyst sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Opening {
    card: Card,
    seconds: Option<u64>,
    every: Option<u64>,
    times: Option<u64>,
}

/// Opens the queries of a card: durable here first, then known to the aggregators. The same request again, by the same
/// key, is answered with the same queries.
pub(crate) async fn open(shared: &Arc<Shared>, request: Request, body: &[u8]) -> std::result::Result<Value, Problem> {
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
    let mut queries = Vec::new();
    for name in &names {
        queries.push(find(shared, name).await?);
    }
    // An aggregator that says no will not say yes later.
    if queries[0].state == State::Cancelled {
        let reason = queries[0].reason.clone().unwrap_or_default();
        return Err(Problem::http(StatusCode::BAD_GATEWAY, reason).with_member("state", State::Cancelled.name()));
    }
    answer(&queries).map_err(Problem::from)
}

/// Makes the queries of a request and puts them into the store.
async fn take_up(shared: &Arc<Shared>, request: Request, body: &[u8]) -> std::result::Result<Opened, Problem> {
    let opening: Opening = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(body))
        .map_err(|error| Problem::http(StatusCode::BAD_REQUEST, format!("The body is not a query: {error}")))?;
    let windows = opening.windows(shared.now())?;
    let card = prepare(shared, opening, windows[0].0).await?;
    let queries = windows.iter().enumerate().map(|(index, window)| make(shared, &request, &card, index, *window));
    let queries: Vec<Query> = queries.collect::<Result<_>>()?;
    let (now, room) = (shared.now(), room(shared));
    let (analyst, first, count) = (request.analyst.clone(), queries[0].signed.query.clone(), queries.len());
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
    let problem = |status, detail: &str| Problem::http(status, detail);
    match opened {
        Opened::OtherRequest => problem(
            StatusCode::UNPROCESSABLE_ENTITY,
            "This Idempotency-Key was used for another request; a new request needs a new key.",
        ),
        Opened::OtherAnalyst => {
            problem(StatusCode::CONFLICT, "Another analyst asks this very card for this window already.")
        }
        Opened::Over(state) => {
            let detail = format!("This very card was asked for this window before, and is {}.", state.name());
            Problem::http(StatusCode::CONFLICT, detail).with_member("state", state.name())
        }
        Opened::Full => {
            let Room { queries, bytes } = room(shared);
            let detail = format!(
                "There is no room: at most {queries} queries may be open or waiting at once, with cards of {bytes} \
                 bytes together. Cancel some, or ask when others are over."
            );
            Problem::http(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(60)
        }
        Opened::Queries(_) => unreachable!("queries that were opened are no refusal"),
    }
}

/// Takes a query back. Doing so twice is fine.
pub(crate) async fn cancel(shared: &Arc<Shared>, caller: &Caller, name: &str) -> std::result::Result<Value, Problem> {
    find_own(shared, caller, name).await?;
    let owned = name.to_owned();
    // Anybody can read the reason, so it names nobody.
    let reason = match caller.role {
        Role::Analyst => "cancelled by its analyst",
        Role::Admin => "cancelled by an administrator",
    };
    let cancelled = shared.store.run(move |store| store.cancel(&owned, reason)).await?;
    let state = find(shared, name).await?.state;
    if !cancelled && state != State::Cancelled {
        let detail = format!("The query is {} and can no longer be cancelled.", state.name());
        return Err(Problem::http(StatusCode::CONFLICT, detail).with_member("state", state.name()));
    }
    if cancelled {
        tracing::info!(caller = caller.name, query = name, "cancelled");
        shared.refresh().await?;
        shared.wake.notify_waiters();
    }
    Ok(json!({"query": name, "state": state.name()}))
}

/// The signed card of a query that is no longer open, or not yet, for those who may touch it.
pub(crate) async fn card(shared: &Shared, caller: &Caller, name: &str) -> std::result::Result<String, Problem> {
    let query = find_own(shared, caller, name).await?;
    Ok(serde_json::to_string(&query.signed).expect("a signed card is strings"))
}

/// What became of a query, for anybody.
pub(crate) async fn status(shared: &Shared, name: &str) -> std::result::Result<Value, Problem> {
    let query = find(shared, name).await?;
    let mut document = json!({
        "query": query.signed.query,
        "state": query.state_at(shared.now()).name(),
        "closes": Timestamp::from_seconds(query.closes).map_err(Error::from)?,
    });
    if let Some(reason) = query.reason {
        document["reason"] = json!(reason);
    }
    Ok(document)
}

/// The record of a query, which is thereby released; the same bytes to whoever asks again.
pub(crate) async fn result(shared: &Shared, caller: &Caller, name: &str) -> std::result::Result<String, Problem> {
    let query = find_own(shared, caller, name).await?;
    let state = query.state_at(shared.now());
    let refuse = |status, detail: String| Problem::http(status, detail).with_member("state", state.name());
    let because = query.reason.clone().unwrap_or_default();
    match (state, query.record) {
        (State::Closed, Some(record)) => {
            let owned = name.to_owned();
            let released =
                shared.store.run(move |store| store.advance(&owned, &[State::Closed], State::Released, None));
            // Somebody may have cancelled it a moment ago.
            if !released.await? && find(shared, name).await?.state != State::Released {
                return Err(refuse(StatusCode::GONE, "The query was cancelled; nothing is released.".to_owned()));
            }
            tracing::info!(caller = caller.name, query = name, "released");
            Ok(record)
        }
        (State::Released, Some(record)) => Ok(record),
        (State::Opening | State::Open, _) => {
            let closes = Timestamp::from_seconds(query.closes).map_err(Error::from)?;
            Err(refuse(StatusCode::CONFLICT, format!("The query is {}; it closes at {closes}.", state.name())))
        }
        (State::Closed, None) => {
            let detail = format!("The query is closed and its batch is being collected. {because}");
            Err(refuse(StatusCode::CONFLICT, detail.trim_end().to_owned()).retry_after(1))
        }
        (State::Released | State::Withheld | State::Cancelled, _) => {
            Err(refuse(StatusCode::GONE, format!("Nothing is released: {because}.")))
        }
    }
}

impl Query {
    /// A query is closed from the moment on that its card names.
    pub(crate) fn state_at(&self, now: u64) -> State {
        if self.state == State::Open && now >= self.closes { State::Closed } else { self.state }
    }
}

async fn stored(shared: &Shared, name: &str) -> Result<Option<Query>> {
    let name = name.to_owned();
    shared.store.run(move |store| store.query(&name)).await
}

async fn find(shared: &Shared, name: &str) -> std::result::Result<Query, Problem> {
    let unknown = || Problem::http(StatusCode::NOT_FOUND, "There is no such query.");
    stored(shared, name).await?.ok_or_else(unknown)
}

/// A query that the caller may cancel and read.
pub(crate) async fn find_own(shared: &Shared, caller: &Caller, name: &str) -> std::result::Result<Query, Problem> {
    let query = find(shared, name).await?;
    if caller.may_touch(query.analyst.as_deref()) {
        return Ok(query);
    }
    Err(Problem::http(StatusCode::FORBIDDEN, "This query is another analyst's."))
}

impl Opening {
    fn windows(&self, now: u64) -> Result<Vec<(u64, u64)>> {
        let within = |name: &str, value: u64, most: u64| match value {
            value if (1..=most).contains(&value) => Ok(value),
            _ => Err(Error::input(format!("`{name}` must be from 1 to {most}"))),
        };
        match (self.seconds, self.every, self.times) {
            (Some(seconds), None, None) => {
                Ok(vec![card_task::window(now, within("seconds", seconds, LONGEST_WINDOW)?)?])
            }
            (None, Some(every), Some(times)) => {
                let every = within("every", every, LONGEST_WINDOW)?;
                let times = within("times", times, LONGEST_SERIES)?;
                let starts = (now / every + 1) * every;
                Ok((0..times).map(|number| (starts + number * every, starts + (number + 1) * every)).collect())
            }
            _ => Err(Error::input("give `seconds` for one window, or `every` and `times` for a series")),
        }
    }

    /// What the desk fills in must not be there, and what owners evaluate must be.
    fn check(&self) -> Result<()> {
        let card = &self.card;
        let filled = [
            ("opens", card.opens.is_some()),
            ("closes", card.closes.is_some()),
            ("signer", card.signer.is_some()),
            ("aggregators", card.aggregators.is_some()),
            ("operators", card.operators.is_some()),
            ("enrolment", card.enrolment.is_some()),
            ("series", card.series.is_some()),
        ];
        if let Some((name, _)) = filled.iter().find(|(_, present)| *present) {
            return Err(Error::input(format!("card: the desk fills in `{name}`; leave it out")));
        }
        let has_question = card.question.as_ref().is_some_and(|question| !question.trim().is_empty());
        if card.asks_person() && (!has_question || !card.attributes.is_empty()) {
            return Err(Error::input(
                "card: there is no predicate for owners to evaluate; a card that asks people has a question in words and \
                 reads no attributes",
            ));
        }
        let predicates = card.predicates();
        if let Some(index) = predicates.iter().position(|text| text.is_empty() || text.len() > LONGEST_PREDICATE) {
            let number = index + 1;
            return Err(Error::input(format!(
                "card: predicate {number} is not from 1 to {LONGEST_PREDICATE} bytes long"
            )));
        }
        Ok(())
    }
}

/// Fills in what is the same on every card of the series, and states the claims that then hold.
async fn prepare(shared: &Arc<Shared>, opening: Opening, starts: u64) -> Result<Card> {
    opening.check()?;
    let mut card = opening.card;
    card.series = match opening.every.zip(opening.times) {
        Some((every, times)) => {
            Some(CardSeries { times, number: Some(1), starts: Timestamp::from_seconds(starts)?, every })
        }
        None => None,
    };
    fill_in(shared, &mut card);
    if card.canonical().len() > LARGEST_CARD {
        let size = card.canonical().len();
        return Err(Error::input(format!("card: its {size} bytes are more than the {LARGEST_CARD} that are allowed")));
    }
    let delta = card.delta();
    let _turn = shared.checking.acquire().await;
    let stated = tokio::task::spawn_blocking(move || {
        card.state_claims(delta, WorkLimit::default())?;
        Ok::<_, uptack::Error>(card)
    });
    Ok(stated.await.map_err(|_| Error::environment("the check of a card's claims failed"))??)
}

/// What the desk writes onto every card.
pub(crate) fn fill_in(shared: &Shared, card: &mut Card) {
    card.aggregators = Some(shared.provisioner.on_card());
    card.operators = Some(shared.provisioner.operators());
    card.enrolment = Some(if shared.config.enrolment { Enrolment::Required } else { Enrolment::None });
    card.signer = Some(shared.signer.public().to_string());
}

/// One query of the card's series.
fn make(shared: &Shared, request: &Request, card: &Card, index: usize, (opens, closes): (u64, u64)) -> Result<Query> {
    let mut card = card.clone();
    card.opens = Some(Timestamp::from_seconds(opens)?);
    card.closes = Some(Timestamp::from_seconds(closes)?);
    if let Some(series) = &mut card.series {
        series.number = Some(index as u64 + 1);
    }
    let signed = shared.signer.sign(&card)?;
    let tasks = CollectorTask::generate(card_task::parameters(&card)?);
    Ok(Query {
        signed,
        opens,
        closes,
        state: State::Opening,
        reason: None,
        tasks: Some(tasks),
        job: None,
        record: None,
        analyst: Some(request.analyst.clone()),
    })
}

fn answer(queries: &[Query]) -> Result<Value> {
    let entry = |query: &Query| {
        let (opens, closes) = (Timestamp::from_seconds(query.opens)?, Timestamp::from_seconds(query.closes)?);
        Ok(json!({"query": query.signed.query, "opens": opens, "closes": closes}))
    };
    let entries = queries.iter().map(entry).collect::<Result<Vec<Value>>>()?;
    let card: Value = serde_json::from_str(&queries[0].signed.card).expect("a card is JSON");
    Ok(json!({"queries": entries, "card": card}))
}
