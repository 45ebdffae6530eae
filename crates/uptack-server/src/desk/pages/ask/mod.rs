//! Asking: the planner as a page, the card before it is signed, and its opening.

mod draft;
mod form;
mod plan_view;
mod planning;
mod wanted;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Redirect},
};
use maud::{Markup, html};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use uptack_dap::{digest::sha256, token::Token};

use super::{
    Page, Pages, card_view,
    fields::Fields,
    frame::{self, Tab},
    question,
    refusal::Refusal,
    visitor::Visitor,
    work::Found,
};
use crate::{
    base::http::document,
    desk::{openings, queries},
};
use draft::Draft;
use wanted::Wanted;

pub(super) use planning::Plans;

/// How long the script waits for a plan before it asks again.
const SOON: Duration = Duration::from_millis(800);
/// How long a page does.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a picture or a card does.
const LONG_PATIENCE: Duration = Duration::from_secs(60);

/// The form with the plan of what is in it.
pub(super) async fn show(State(pages): State<Arc<Pages>>, headers: HeaderMap, uri: Uri) -> Page {
    let visitor = pages.visitor(&headers)?;
    let fields = match Fields::of_query(&uri) {
        fields if fields.is_empty() => form::usual(),
        fields => fields,
    };
    let (_, plan) = pages.plan_panel(&fields, PATIENCE).await;
    Ok(frame::page("Ask", Tab::Ask, &visitor, form::page(&fields, None, &plan)))
}

/// The plan alone, for the script.
pub(super) async fn fragment(State(pages): State<Arc<Pages>>, headers: HeaderMap, uri: Uri) -> Page {
    if pages.visitor(&headers).is_err() {
        return Err(Refusal::page(StatusCode::UNAUTHORIZED, "Sign in to plan."));
    }
    let (status, plan) = pages.plan_panel(&Fields::of_query(&uri), SOON).await;
    Ok((status, frame::fragment(plan)).into_response())
}

/// One of the plan's charts.
pub(super) async fn chart(State(pages): State<Arc<Pages>>, headers: HeaderMap, uri: Uri) -> Page {
    pages.visitor(&headers)?;
    let fields = Fields::of_query(&uri);
    let wanted = Wanted::read(&fields).map_err(|fault| Refusal::input(fault.words))?;
    let number: usize = fields.get("chart").parse().unwrap_or(0);
    match pages.charts(wanted, LONG_PATIENCE).await {
        Found::Done(charts) => match charts.get(number) {
            Some(svg) => Ok(document("image/svg+xml", svg.clone())),
            None => Err(Refusal::page(StatusCode::NOT_FOUND, "There is no such chart.")),
        },
        Found::Later | Found::Busy => Err(busy()),
    }
}

/// The card as owners will see it, before anything is asked.
pub(super) async fn preview(State(pages): State<Arc<Pages>>, headers: HeaderMap, uri: Uri) -> Page {
    let visitor = pages.visitor(&headers)?;
    let fields = Fields::of_query(&uri);
    let draft = match Wanted::read(&fields).and_then(|wanted| Draft::read(&fields, wanted)) {
        Ok(draft) => draft,
        Err(fault) => {
            let (_, plan) = pages.plan_panel(&fields, PATIENCE).await;
            return Ok(frame::page("Ask", Tab::Ask, &visitor, form::page(&fields, Some(&fault), &plan)));
        }
    };
    let (words, schedule) = (draft.words.clone(), draft.schedule());
    let Some(made) = pages.work.once(move || draft.card().map_err(|error| error_words(&error))).await else {
        return Err(busy());
    };
    let card = made.as_ref().clone().map_err(Refusal::input)?;
    let mut seen = card.clone();
    queries::fill_in(&pages.shared, &mut seen);
    let mut opening = json!({"card": card});
    for (name, value) in schedule {
        opening[name] = json!(value);
    }
    let body = html! {
        h1 { "As owners will see it" }
        p.lead { (words) }
        section.panel { h2 { "The card" } (card_view::card(&seen)) }
        (open_form(&visitor, &fields, &opening.to_string()))
    };
    Ok(frame::page("Preview", Tab::Ask, &visitor, body))
}

fn open_form(visitor: &Visitor, fields: &Fields, opening: &str) -> Markup {
    html! {
        form.panel method="post" action="/pages/ask/open" {
            (frame::form_token(visitor))
            // Sent twice, the question is opened once.
            input type="hidden" name="key" value=(Token::generate().as_str());
            input type="hidden" name="opening" value=(opening);
            p { "Once it is open, owners answer it and pay for it from their budgets; cancelling gives nothing back." }
            p.buttons {
                button.primary type="submit" { "Open the question" }
                a.button href=(format!("/pages/ask?{}", fields.query(&form::NAMES))) { "Change it" }
            }
        }
    }
}

/// Opens what was shown, by the function that serves programs.
pub(super) async fn open(State(pages): State<Arc<Pages>>, headers: HeaderMap, body: Body) -> Page {
    let (visitor, fields) = pages.form(&headers, body).await?;
    let opening = fields.get("opening").as_bytes();
    let request = openings::Request {
        analyst: visitor.caller.name,
        key: format!("page-{}", fields.get("key")),
        digest: sha256(opening),
    };
    let opened = queries::open(&pages.shared, request, opening).await?;
    let first = opened["queries"][0]["query"].as_str().unwrap_or_default().to_owned();
    Ok(Redirect::to(&question::path(&first)).into_response())
}

impl Pages {
    /// The plan of a form as it is, or what is missing for one.
    async fn plan_panel(&self, fields: &Fields, patience: Duration) -> (StatusCode, Markup) {
        let wanted = match Wanted::read(fields) {
            Ok(wanted) => wanted,
            Err(fault) => return (StatusCode::OK, plan_view::fault(&fault)),
        };
        match self.plan(wanted, patience).await {
            Found::Done(planned) => (StatusCode::OK, plan_view::planned(&planned, fields)),
            Found::Later => (StatusCode::ACCEPTED, plan_view::waiting("This plan takes longer; it goes on.")),
            Found::Busy => {
                (StatusCode::ACCEPTED, plan_view::waiting("Others are planning; this one waits for its turn."))
            }
        }
    }
}

fn busy() -> Refusal {
    let words = "Too much is being computed at once. Try again in a moment, or plan with `uptack plan`.";
    Refusal::page(StatusCode::SERVICE_UNAVAILABLE, words)
}

/// An error with what would help.
fn error_words(error: &uptack::Error) -> String {
    error.hint().map_or(error.to_string(), |hint| format!("{error}. {hint}"))
}
