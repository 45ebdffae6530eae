//! Asking: the planner as a page, the card before it is signed, and its opening.

mod draft;
mod form;
mod plan;
mod plan_view;
mod reading;
mod whole;

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use std::time::Duration;
use uptack::card::{Card, WholePlan};
use uptack_dap::{crypto::sha256, token::Token};

use super::{
    PageResponse, Pages, Site,
    frame::{self, PageError, Tab, Visitor},
    guard::{FormFields, SubmittedForm},
    questions,
    work::Computed,
};
use crate::{
    base::http::document,
    desk::{opening, store::openings},
};
use draft::Draft;
use plan::PlanOutcome;
use reading::{FieldFault, FieldResult};
use whole::WholeWanted;

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
    Ok(pages.ask_page(&visitor, &fields).await)
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
    let panel = pages.plan_panel(&fields, SOON).await;
    Ok((panel.status(), frame::fragment(pages.plan_markup(&panel, &fields))).into_response())
}

/// One of the plan's charts.
pub(super) async fn chart(State(pages): Site, _visitor: Visitor, fields: FormFields) -> PageResponse {
    let wanted = WholeWanted::read(&fields).map_err(|fault| PageError::input(fault.words))?;
    let number: usize = fields.get("chart").parse().unwrap_or(0);
    let Computed::Done(charts) = pages.charts(wanted, LONG_PATIENCE).await else { return Err(busy()) };
    match charts.get(number) {
        Some(svg) => Ok(document("image/svg+xml", svg.clone())),
        None => Err(PageError::not_found("There is no such chart.")),
    }
}

/// The card as owners will see it, before anything is asked.
pub(super) async fn preview(
    State(pages): Site,
    visitor: Visitor,
    headers: HeaderMap,
    fields: FormFields,
) -> PageResponse {
    let (draft, card) = match pages.drafted_card(&fields).await {
        Ok(drafted) => drafted,
        Err(refusal) => return Ok(pages.refused(&visitor, &fields, refusal).await),
    };
    let opening = draft.schedule.opening_request(&card);
    let obstacles = card.asks_person().then(|| questions::PeopleAccess::of(&pages, &headers).obstacles());
    let body = html! {
        h1 { "As owners will see it" }
        p.lead { (draft.words) }
        section.panel { h2 { "The card" } (questions::describe(&pages.filled_in(card))) }
        @if let Some(obstacles) = obstacles { (obstacles) }
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
            // If it cannot be opened, the form is shown again as it was filled in.
            input type="hidden" name="asked" value=(fields.query(&reading::NAMES));
            p { "Once it is open, owners answer it and pay for it from their budgets; cancelling gives nothing back." }
            p.buttons {
                button.primary type="submit" { "Open the question" }
                a.button href=(format!("/pages/ask?{}", fields.query(&reading::NAMES))) { "Change it" }
            }
        }
    }
}

/// Opens the card that was previewed, by the function that serves programs, if the wanted error can be attained.
pub(super) async fn open(State(pages): Site, SubmittedForm { visitor, fields }: SubmittedForm) -> PageResponse {
    let asked = FormFields::parse(fields.get("asked").as_bytes());
    if let Err(refusal) = pages.check_asked(&asked).await {
        return Ok(pages.refused(&visitor, &asked, refusal).await);
    }
    let opening = fields.get("opening").as_bytes();
    let request = openings::OpeningRequest {
        analyst: visitor.caller.name.clone(),
        key: format!("page-{}", fields.get("key")),
        digest: sha256(opening),
    };
    match opening::open(&pages.shared, request, opening).await {
        Ok(opened) => Ok(questions::redirect(opened["queries"][0]["query"].as_str().unwrap_or_default())),
        Err(problem) => {
            let refusal = Refusal { status: problem.status(), fault: FieldFault::of(reading::ID, problem.words()) };
            Ok(pages.refused(&visitor, &asked, refusal).await)
        }
    }
}

/// Why a form was not accepted.
struct Refusal {
    status: StatusCode,
    fault: FieldFault,
}

impl From<FieldFault> for Refusal {
    fn from(fault: FieldFault) -> Self {
        Self { status: StatusCode::BAD_REQUEST, fault }
    }
}

impl Refusal {
    /// Not now, but perhaps in a moment.
    fn busy() -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, fault: FieldFault::of(reading::ID, BUSY) }
    }
}

impl Pages {
    async fn ask_page(&self, visitor: &Visitor, fields: &FormFields) -> Response {
        let panel = self.plan_panel(fields, PATIENCE).await;
        let view = form::View { fields, fault: panel.fault(), is_refused: false };
        frame::page("Ask", Tab::Ask, visitor, view.page(&self.plan_markup(&panel, fields)))
    }

    /// The form as it was filled in, with what is wrong with it.
    async fn refused(&self, visitor: &Visitor, fields: &FormFields, Refusal { status, fault }: Refusal) -> Response {
        let panel = self.plan_panel(fields, PATIENCE).await;
        let view = form::View { fields, fault: Some(&fault), is_refused: true };
        (status, frame::page("Ask", Tab::Ask, visitor, view.page(&self.plan_markup(&panel, fields)))).into_response()
    }

    /// The draft in the form, and its card.
    async fn drafted_card(&self, fields: &FormFields) -> Result<(Draft, Card), Refusal> {
        let draft = Draft::read(fields)?;
        let planned = self.plan(draft.wanted.clone(), LONG_PATIENCE).await;
        let Computed::Done(planned) = planned else { return Err(Refusal::busy()) };
        let card = draft.card(accepted(&planned, fields)?)?;
        Ok((draft, card))
    }

    /// Refuses what the preview of these fields refuses, in the same words.
    async fn check_asked(&self, fields: &FormFields) -> Result<(), Refusal> {
        if fields.is_empty() {
            return Ok(());
        }
        let wanted = WholeWanted::read(fields)?;
        let Computed::Done(planned) = self.plan(wanted, LONG_PATIENCE).await else { return Err(Refusal::busy()) };
        accepted(&planned, fields)?;
        Ok(())
    }

    /// A card with what the desk writes onto it.
    fn filled_in(&self, mut card: Card) -> Card {
        opening::fill_in(&self.shared, &mut card);
        card
    }

    fn plan_markup(&self, panel: &PlanPanel, fields: &FormFields) -> Markup {
        let planned = match panel {
            PlanPanel::Faulty(fault) => return plan_view::fault(fault),
            PlanPanel::Asked(Computed::Done(planned)) => planned,
            PlanPanel::Asked(Computed::Later) => {
                return plan_view::waiting("This plan takes longer than most; it is still being computed.");
            }
            PlanPanel::Asked(Computed::Busy) => {
                return plan_view::waiting("Others are planning; this one waits for its turn.");
            }
        };
        match planned.as_ref() {
            PlanOutcome::Impossible(fault) => plan_view::impossible(fault),
            PlanOutcome::Plan { whole, statement, imprecision } => html! {
                (plan_view::headline(whole))
                @if let Some(words) = imprecision { p.fault { (words) "." } }
                (plan_view::details(whole, statement.as_deref(), &self.filled_in(whole.card.clone()), fields))
            },
        }
    }

    /// The plan that follows from the form as it is, or the first field that is at fault.
    async fn plan_panel(&self, fields: &FormFields, patience: Duration) -> PlanPanel {
        let wanted: FieldResult<WholeWanted> = WholeWanted::read(fields);
        match wanted {
            Ok(wanted) => PlanPanel::Asked(self.plan(wanted, patience).await),
            Err(fault) => PlanPanel::Faulty(fault),
        }
    }
}

/// The plan, if the question may be asked: one whose result would say next to nothing only if that is wanted.
fn accepted<'a>(planned: &'a PlanOutcome, fields: &FormFields) -> FieldResult<&'a WholePlan> {
    match planned {
        PlanOutcome::Impossible(fault) => Err(fault.clone()),
        PlanOutcome::Plan { imprecision: Some(words), .. } if fields.given("anyway").is_none() => {
            Err(FieldFault::of("anyway", words))
        }
        PlanOutcome::Plan { whole, .. } => Ok(whole),
    }
}

/// The plan beside the form.
enum PlanPanel {
    Asked(Computed<PlanOutcome>),
    Faulty(FieldFault),
}

impl PlanPanel {
    /// Tells the script to ask again if there is no plan yet.
    fn status(&self) -> StatusCode {
        match self {
            Self::Asked(Computed::Later | Computed::Busy) => StatusCode::ACCEPTED,
            _ => StatusCode::OK,
        }
    }

    /// The field that is at fault.
    fn fault(&self) -> Option<&FieldFault> {
        match self {
            Self::Faulty(fault) => Some(fault),
            Self::Asked(Computed::Done(planned)) => match planned.as_ref() {
                PlanOutcome::Impossible(fault) => Some(fault),
                PlanOutcome::Plan { .. } => None,
            },
            Self::Asked(_) => None,
        }
    }
}

const BUSY: &str = "too much is being computed at once. Try again in a moment, or plan with `uptack plan`.";

fn busy() -> PageError {
    PageError::busy(BUSY)
}
