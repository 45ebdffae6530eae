//! Opening queries: what an analyst sends, the signed queries that follow from it, and the answer.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use uptack::{
    card::{Card, CardQuestion, CardSeries, Enrolment, Timestamp},
    privacy::WorkLimit,
};
use uptack_dap::{
    card_task,
    listing::{LARGEST_CARD, MOST_CARD_BYTES},
    task::CollectorTask,
};
use uptack_owner::predicate::Predicate;

use crate::{
    base::problem::{Answer, Problem},
    desk::{
        collection,
        config::Config,
        queries::{find_all, problem_in},
        shared::DeskState,
        store::{
            Query, QueryState,
            openings::{OpeningOutcome, OpeningRequest, QUOTA_PERIOD, Room},
        },
    },
    error::{Error, Result},
};

/// Most cards of a series.
pub(crate) const LONGEST_SERIES: u64 = 1000;
/// Longest window, in seconds: ten years.
pub(crate) const LONGEST_WINDOW: u64 = 10 * 366 * 24 * 3600;

/// Opens the queries of a card: durable here first, then known to the aggregators. The same request again, by the same
/// key, is answered with the same queries.
pub(crate) async fn open(shared: &Arc<DeskState>, request: OpeningRequest, body: &[u8]) -> Answer<Value> {
    let again = request.clone();
    let opened = match shared.store.run(move |store| store.opened(&again)).await? {
        Some(before) => before,
        None => take_up(shared, request, body).await?,
    };
    let names = match opened {
        OpeningOutcome::Queries(names) => names,
        refused => return Err(refusal(shared, &refused)),
    };
    collection::open_due(shared).await?;
    shared.refresh().await?;
    let queries = find_all(shared, &names).await?;
    check_accepted(&queries[0])?;
    Ok(opened_document(&queries)?)
}

/// Makes the queries of a request and puts them into the store.
async fn take_up(shared: &Arc<DeskState>, request: OpeningRequest, body: &[u8]) -> Answer<OpeningOutcome> {
    let opening = Opening::parse(body)?;
    check_quota(shared, &request.analyst).await?;
    let queries = sign_all(shared, opening, &request.analyst).await?;
    let (analyst, first, count) = (request.analyst.clone(), queries[0].name().to_owned(), queries.len());
    let (now, room) = (shared.now(), room_for_queries(shared));
    let opened = shared.store.run(move |store| store.open_queries(&request, &queries, room, now)).await?;
    if matches!(&opened, OpeningOutcome::Queries(names) if names[0] == first) {
        tracing::info!(analyst, query = first, queries = count, "asked");
    }
    Ok(opened)
}

/// Refuses an analyst who has asked too much, before anything is computed for it.
async fn check_quota(shared: &Arc<DeskState>, analyst: &str) -> Answer<()> {
    let (analyst, room, now) = (analyst.to_owned(), room_for_queries(shared), shared.now());
    match shared.store.run(move |store| store.quota_wait(&analyst, room, now)).await? {
        None => Ok(()),
        Some(seconds) => Err(refusal(shared, &OpeningOutcome::TooMany(seconds))),
    }
}

fn room_for_queries(shared: &DeskState) -> Room {
    let Config { max_queries, requests_per_analyst, .. } = shared.config;
    Room { queries: max_queries as u64, bytes: MOST_CARD_BYTES, requests: requests_per_analyst as u64 }
}

fn refusal(shared: &DeskState, opened: &OpeningOutcome) -> Problem {
    match opened {
        OpeningOutcome::OtherRequest => Problem::http(
            StatusCode::UNPROCESSABLE_ENTITY,
            "This Idempotency-Key was used for another request; a new request needs a new key.",
        ),
        OpeningOutcome::OtherAnalyst => {
            Problem::conflict("Another analyst is already asking this card for this window.")
        }
        OpeningOutcome::Over(state) => {
            let detail = format!("This card was already asked for this window, and is {}.", state.name());
            problem_in(*state, StatusCode::CONFLICT, detail)
        }
        OpeningOutcome::Full => full(room_for_queries(shared)),
        OpeningOutcome::TooMany(seconds) => too_many(room_for_queries(shared), *seconds),
        OpeningOutcome::Queries(_) => unreachable!("opened queries are not a refusal"),
    }
}

fn full(Room { queries, bytes, .. }: Room) -> Problem {
    let detail = format!(
        "There is no room: at most {queries} queries may be open or waiting at once, with cards of {bytes} bytes \
         together. Cancel some, or ask when others are over."
    );
    Problem::busy(&detail, 60)
}

/// Owners check every card that is opened, so nobody may open any number of them.
fn too_many(room: Room, seconds: u64) -> Problem {
    let (requests, minutes) = (room.requests, QUOTA_PERIOD / 60);
    let detail = format!(
        "You have asked {requests} times within {minutes} minutes, which is as often as one analyst may; ask again in {seconds} \
         seconds. Questions that belong together can be asked as one ballot or series."
    );
    Problem::http(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(u32::try_from(seconds).unwrap_or(u32::MAX))
}

/// Refuses a query that an aggregator has refused: it will not be accepted later.
fn check_accepted(query: &Query) -> Answer<()> {
    if query.state != QueryState::Cancelled {
        return Ok(());
    }
    Err(problem_in(QueryState::Cancelled, StatusCode::BAD_GATEWAY, query.reason.clone().unwrap_or_default()))
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

/// The body of a request to open queries.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Opening {
    card: Card,
    seconds: Option<u64>,
    every: Option<u64>,
    times: Option<u64>,
}

/// When answers are taken, in seconds: from the first moment to just before the second.
type Window = (u64, u64);

impl Opening {
    pub(crate) fn parse(body: &[u8]) -> Answer<Self> {
        serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(body))
            .map_err(|error| Problem::bad_request(format!("The body is not a query: {error}")))
    }

    /// The window of each query.
    fn windows(&self, now: u64) -> Result<Vec<Window>> {
        match (self.seconds, self.every, self.times) {
            (Some(seconds), None, None) => {
                let seconds = within("seconds", seconds, LONGEST_WINDOW)?;
                Ok(vec![card_task::window(now, seconds)?])
            }
            (None, Some(every), Some(times)) => {
                let every = within("every", every, LONGEST_WINDOW)?;
                let times = within("times", times, LONGEST_SERIES)?;
                Ok(series_windows(now, every, times))
            }
            _ => Err(Error::input("give `seconds` for one window, or `every` and `times` for a series")),
        }
    }

    /// The series that starts at a moment, if it is one.
    fn series(&self, starts: u64) -> Result<Option<CardSeries>> {
        let Some((every, times)) = self.every.zip(self.times) else { return Ok(None) };
        Ok(Some(CardSeries { times, number: Some(1), starts: Timestamp::from_seconds(starts)?, every }))
    }
}

fn within(name: &str, value: u64, most: u64) -> Result<u64> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(Error::input(format!("`{name}` must be from 1 to {most}")))
}

/// Windows one after the other, from the next multiple of their length on.
fn series_windows(now: u64, every: u64, times: u64) -> Vec<Window> {
    let first = now / every + 1;
    (first..first + times).map(|number| (number * every, (number + 1) * every)).collect()
}

/// Signs the cards of the series, or the only one, with the claims that hold for all of it.
pub(crate) async fn sign_all(shared: &DeskState, opening: Opening, analyst: &str) -> Answer<Vec<Query>> {
    let windows = opening.windows(shared.now())?;
    let card = prepare(shared, opening, windows[0].0, analyst).await?;
    let signed = windows.into_iter().zip(1..).map(|(window, number)| {
        let card = scheduled(card.clone(), number, window)?;
        sign(shared, &card, window, analyst)
    });
    Ok(signed.collect::<Result<_>>()?)
}

/// Fills in the parts that all cards of the series share, and states the claims that then hold.
async fn prepare(shared: &DeskState, opening: Opening, starts: u64, analyst: &str) -> Answer<Card> {
    check_not_filled_in(&opening.card)?;
    check_asked(&opening.card)?;
    let series = opening.series(starts)?;
    let mut card = Card { series, ..opening.card };
    fill_in(shared, &mut card);
    check_size(&card)?;
    state_claims(shared, card, analyst).await
}

/// Refuses a card with something that the desk fills in.
fn check_not_filled_in(card: &Card) -> Result<()> {
    let filled_in = [
        ("opens", card.opens.is_some()),
        ("closes", card.closes.is_some()),
        ("signer", card.signer.is_some()),
        ("aggregators", card.aggregators.is_some()),
        ("operators", card.operators.is_some()),
        ("enrolment", card.enrolment.is_some()),
        ("series", card.series.is_some()),
    ];
    match filled_in.iter().find(|(_, is_present)| *is_present) {
        Some((name, _)) => Err(Error::input(format!("card: the desk fills in `{name}`; leave it out"))),
        None => Ok(()),
    }
}

/// Refuses a question that the desk would not open, whatever its predicates are: those are checked with the claims.
pub(crate) fn check_asked(card: &Card) -> Result<()> {
    check_question(card)?;
    check_size(card)
}

/// Refuses a card that gives neither devices nor people something to answer.
fn check_question(card: &Card) -> Result<()> {
    let CardQuestion::Person(question) = card.asked() else { return Ok(()) };
    let has_question = question.is_some_and(|question| !question.trim().is_empty());
    if !has_question || !card.attributes.is_empty() {
        return Err(Error::input(
            "card: there is no predicate for owners to evaluate; a card that asks people has a question in words and \
             reads no attributes",
        ));
    }
    Ok(())
}

/// Refuses predicates that owners would refuse, so that nothing is opened that nobody answers.
fn check_predicates(card: &Card) -> Result<()> {
    card.asked().predicates().into_iter().zip(1..).try_for_each(|(text, number)| readable(text, number))
}

fn readable(text: &str, number: usize) -> Result<()> {
    let parsed = Predicate::parse(text);
    parsed.map(drop).map_err(|error| Error::input(format!("card: predicate {number}: {error}")))
}

fn check_size(card: &Card) -> Result<()> {
    let size = card.canonical().len();
    if size > LARGEST_CARD {
        return Err(Error::input(format!("card: its {size} bytes are more than the {LARGEST_CARD} that are allowed")));
    }
    Ok(())
}

/// Writes the desk's own fields onto a card.
pub(crate) fn fill_in(shared: &DeskState, card: &mut Card) {
    card.aggregators = Some(shared.provisioner.on_card());
    card.operators = Some(shared.provisioner.operators());
    card.enrolment = Some(if shared.config.enrolment { Enrolment::Required } else { Enrolment::None });
    card.signer = Some(shared.signer.public().to_string());
}

/// Checks the predicates of a card and states the claims that hold for it, one card at a time.
async fn state_claims(shared: &DeskState, mut card: Card, analyst: &str) -> Answer<Card> {
    let stated = move || {
        check_predicates(&card)?;
        card.state_claims(card.delta(), WorkLimit::default())?;
        Ok::<Card, Error>(card)
    };
    Ok(shared.checks.run(analyst, stated).await??)
}

/// A card of the series, with its number and its window.
fn scheduled(mut card: Card, number: u64, (opens, closes): Window) -> Result<Card> {
    card.opens = Some(Timestamp::from_seconds(opens)?);
    card.closes = Some(Timestamp::from_seconds(closes)?);
    if let Some(series) = &mut card.series {
        series.number = Some(number);
    }
    Ok(card)
}

/// The query of a card that is complete.
fn sign(shared: &DeskState, card: &Card, (opens, closes): Window, analyst: &str) -> Result<Query> {
    let signed = shared.signer.sign(card)?;
    let tasks = CollectorTask::generate(card_task::parameters(card)?);
    Ok(Query {
        signed,
        opens,
        closes,
        state: QueryState::Opening,
        reason: None,
        tasks: Some(tasks),
        job: None,
        record: None,
        analyst: Some(analyst.to_owned()),
    })
}
