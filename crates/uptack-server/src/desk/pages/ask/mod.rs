//! Asking: the planner as a page, the card before it is signed, and its opening.

mod draft;
mod form;
mod plan;
mod plan_view;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use std::{sync::Arc, time::Duration};
use uptack::card::Card;
use uptack_dap::{crypto::sha256, token::Token};

use super::{
    PageResponse, Pages, Site,
    frame::{self, PageError, PageResult, Tab, Visitor},
    guard::{FormFields, SubmittedForm},
    questions,
    work::Computed,
};
use crate::{
    base::http::document,
    desk::{opening, store::openings},
};
use draft::Draft;
use plan::{FieldFault, PlanOutcome};

pub(super) use plan::Plans;

/// How long the script waits for a plan before it asks again.
const SOON: Duration = Duration::from_millis(800);
/// How long a page waits for a plan.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a picture waits for a plan.
const LONG_PATIENCE: Duration = Duration::from_secs(60);

/// The form with the plan that follows from it.
pub(super) async fn show(State(pages): Site, visitor: Visitor, fields: FormFields) -> PageResponse {
    let fields = if fields.is_empty() { form::usual() } else { fields };
    Ok(pages.ask_page(&visitor, &fields, None).await)
}

/// The plan alone, for the script.
pub(super) async fn fragment(
    State(pages): Site,
    visitor: Result<Visitor, PageError>,
    fields: FormFields,
) -> PageResponse {
    if visitor.is_err() {
        return Err(PageError::page(StatusCode::UNAUTHORIZED, "Sign in to plan."));
    }
    let (status, plan) = pages.plan_panel(&fields, SOON).await;
    Ok((status, frame::fragment(plan)).into_response())
}

/// One of the plan's charts.
pub(super) async fn chart(State(pages): Site, _visitor: Visitor, fields: FormFields) -> PageResponse {
    let wanted = plan::read(&fields).map_err(|fault| PageError::input(fault.words))?;
    let number: usize = fields.get("chart").parse().unwrap_or(0);
    let Computed::Done(charts) = pages.charts(wanted, LONG_PATIENCE).await else { return Err(busy()) };
    match charts.get(number) {
        Some(svg) => Ok(document("image/svg+xml", svg.clone())),
        None => Err(PageError::not_found("There is no such chart.")),
    }
}

/// The card as owners will see it, before anything is asked.
pub(super) async fn preview(State(pages): Site, visitor: Visitor, fields: FormFields) -> PageResponse {
    let draft = match Draft::read(&fields) {
        Ok(draft) => draft,
        Err(fault) => return Ok(pages.ask_page(&visitor, &fields, Some(&fault)).await),
    };
    let (words, schedule) = (draft.words.clone(), draft.schedule);
    let card = pages.drafted_card(draft).await?;
    let opening = schedule.opening_request(&card);
    let body = html! {
        h1 { "As owners will see it" }
        p.lead { (words) }
        section.panel { h2 { "The card" } (questions::describe(&pages.filled_in(card))) }
        (open_form(&visitor, &fields, &opening))
    };
    Ok(frame::page("Preview", Tab::Ask, &visitor, body))
}

fn open_form(visitor: &Visitor, fields: &FormFields, opening: &str) -> Markup {
    html! {
        form.panel method="post" action="/pages/ask/open" {
            (frame::form_token(visitor))
            // Sent twice, the question is opened once.
            input type="hidden" name="key" value=(Token::generate().as_str());
            input type="hidden" name="opening" value=(opening);
            input type="hidden" name="asked" value=(fields.query(form::PLANNED_FROM));
            p { "Once it is open, owners answer it and pay for it from their budgets; cancelling gives nothing back." }
            p.buttons {
                button.primary type="submit" { "Open the question" }
                a.button href=(format!("/pages/ask?{}", fields.query(&form::NAMES))) { "Change it" }
            }
        }
    }
}

/// Opens the card that was previewed, by the function that serves programs, if the wanted error can be attained.
pub(super) async fn open(State(pages): Site, SubmittedForm { visitor, fields }: SubmittedForm) -> PageResponse {
    pages.check_error(&FormFields::parse(fields.get("asked").as_bytes())).await?;
    let opening = fields.get("opening").as_bytes();
    let request = openings::OpeningRequest {
        analyst: visitor.caller.name,
        key: format!("page-{}", fields.get("key")),
        digest: sha256(opening),
    };
    let opened = opening::open(&pages.shared, request, opening).await?;
    let first = opened["queries"][0]["query"].as_str().unwrap_or_default();
    Ok(questions::redirect(first))
}

impl Pages {
    async fn ask_page(&self, visitor: &Visitor, fields: &FormFields, fault: Option<&FieldFault>) -> Response {
        let (_, plan) = self.plan_panel(fields, PATIENCE).await;
        frame::page("Ask", Tab::Ask, visitor, form::page(fields, fault, &plan))
    }

    async fn drafted_card(&self, draft: Draft) -> PageResult<Card> {
        let made = self.work.once(move || draft.card().map_err(error_words)).await;
        Arc::unwrap_or_clone(made.ok_or_else(busy)?).map_err(PageError::input)
    }

    /// Refuses an error that no plan of these fields can attain, in the words of the plan's panel.
    async fn check_error(&self, fields: &FormFields) -> PageResult<()> {
        if fields.given("error").is_none() {
            return Ok(());
        }
        let wanted = plan::read(fields).map_err(|fault| PageError::input(fault.words))?;
        let Computed::Done(planned) = self.plan(wanted, LONG_PATIENCE).await else { return Err(busy()) };
        match planned.as_ref() {
            PlanOutcome::Impossible(words) => Err(PageError::input(words)),
            PlanOutcome::Plan { .. } => Ok(()),
        }
    }

    /// A card with what the desk writes onto it.
    fn filled_in(&self, mut card: Card) -> Card {
        opening::fill_in(&self.shared, &mut card);
        card
    }

    /// The plan that follows from the form as it is, or the first field that is at fault.
    async fn plan_panel(&self, fields: &FormFields, patience: Duration) -> (StatusCode, Markup) {
        let wanted = match plan::read(fields) {
            Ok(wanted) => wanted,
            Err(fault) => return (StatusCode::OK, plan_view::fault(&fault)),
        };
        match self.plan(wanted, patience).await {
            Computed::Done(planned) => (StatusCode::OK, plan_view::planned(&planned, fields)),
            Computed::Later => (
                StatusCode::ACCEPTED,
                plan_view::waiting("This plan takes longer than most; it is still being computed."),
            ),
            Computed::Busy => {
                (StatusCode::ACCEPTED, plan_view::waiting("Others are planning; this one waits for its turn."))
            }
        }
    }
}

fn busy() -> PageError {
    PageError::busy("Too much is being computed at once. Try again in a moment, or plan with `uptack plan`.")
}

/// An error with its hint.
fn error_words(error: uptack::Error) -> String {
    error.hint().map_or(error.to_string(), |hint| format!("{error}. {hint}"))
}
