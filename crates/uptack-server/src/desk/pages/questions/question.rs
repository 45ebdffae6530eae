//! The page of one question: its progress, its result and its card.

use axum::{
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use maud::{Markup, html};
use std::sync::Arc;
use uptack::card::Card;
use uptack_dap::signed::PublicKey;

use super::{
    card,
    people::PeopleAccess,
    progress::{LivePart, QuestionProgress},
    results::{self, EstimatedRecord},
};
use crate::{
    base::http::document,
    desk::{
        pages::{
            PageResponse, Pages, Site,
            frame::{self, PageError, PageResult, Tab, Visitor},
            guard::SubmittedForm,
        },
        queries,
        store::{self, Query},
    },
};

/// A question that was asked.
pub(super) struct AskedQuestion {
    pub(super) query: Query,
    pub(super) card: Card,
    pub(super) fill: QuestionProgress,
    /// The result, if it is released.
    pub(super) outcome: Option<Arc<EstimatedRecord>>,
}

impl AskedQuestion {
    pub(super) fn words(&self) -> &str {
        self.card.question.as_deref().unwrap_or("(without words)")
    }

    pub(super) fn path(&self) -> String {
        path(self.query.name())
    }

    pub(super) fn is_over(&self) -> bool {
        self.fill.state.is_over()
    }
}

/// Where the page of a question is.
fn path(name: &str) -> String {
    format!("/pages/questions/{name}")
}

/// Redirects to the page of a question.
pub(in crate::desk::pages) fn redirect(name: &str) -> Response {
    Redirect::to(&path(name)).into_response()
}

impl Pages {
    pub(super) async fn asked(&self, query: Query, card: Card, outcome: Option<Arc<EstimatedRecord>>) -> AskedQuestion {
        let fill = self.fill(&query, &card).await;
        AskedQuestion { query, card, fill, outcome }
    }

    /// The outcome of a query, if it is released.
    pub(super) async fn released(&self, query: &Query) -> PageResult<Option<Arc<EstimatedRecord>>> {
        let Some(record) = query.released_record() else { return Ok(None) };
        self.outcome(query.name(), record).await.map(Some)
    }
}

/// Of a longer series only the latest cards are shown.
const LONGEST_SERIES: usize = 200;

/// The name of a question, in the path.
type QueryName = Path<String>;

/// All that the page shows.
struct QuestionPage {
    asked: AskedQuestion,
    /// The released results of its series, by number.
    series: Vec<(u64, Arc<EstimatedRecord>)>,
    /// The key of this desk.
    signer: PublicKey,
    /// How people reach it.
    people: PeopleAccess,
}

pub(super) async fn show(
    State(pages): Site,
    Path(name): QueryName,
    visitor: Visitor,
    headers: HeaderMap,
) -> PageResponse {
    let query = queries::find_own(&pages.shared, &visitor.caller, &name).await?;
    let card = query.card()?;
    let title = card.question.clone().unwrap_or(name);
    let series = pages.series(&query, &card).await?;
    let outcome = pages.released(&query).await?;
    let asked = pages.asked(query, card, outcome).await;
    let people = PeopleAccess::of(&pages, &headers);
    let shown = QuestionPage { asked, series, signer: pages.shared.signer.public(), people };
    Ok(frame::page(&title, Tab::Questions, &visitor, shown.page(&visitor)))
}

/// Releases the result: from then on it is shown, and the question can no longer be cancelled.
pub(super) async fn release(State(pages): Site, Path(name): QueryName, form: SubmittedForm) -> PageResponse {
    queries::result(&pages.shared, &form.visitor.caller, &name).await?;
    Ok(redirect(&name))
}

pub(super) async fn cancel(State(pages): Site, Path(name): QueryName, form: SubmittedForm) -> PageResponse {
    queries::cancel(&pages.shared, &form.visitor.caller, &name).await?;
    Ok(redirect(&name))
}

/// The record with its estimates, as `uptack result --out` writes it.
pub(super) async fn record(State(pages): Site, Path(name): QueryName, visitor: Visitor) -> PageResponse {
    let outcome = pages.own_outcome(&visitor, &name).await?;
    let text = serde_json::to_string(&outcome.record).expect("a record is plain data");
    Ok(download("record.json", "application/json", format!("{text}\n")))
}

pub(super) async fn estimates(State(pages): Site, Path(name): QueryName, visitor: Visitor) -> PageResponse {
    let outcome = pages.own_outcome(&visitor, &name).await?;
    Ok(download("estimates.csv", "text/csv; charset=utf-8", outcome.csv()))
}

pub(super) async fn card(State(pages): Site, Path(name): QueryName, visitor: Visitor) -> PageResponse {
    let text = queries::card(&pages.shared, &visitor.caller, &name).await?;
    Ok(download("card.json", "application/json", format!("{text}\n")))
}

fn download(name: &str, media_type: &'static str, text: String) -> Response {
    let saved = format!("attachment; filename=\"{name}\"");
    ([(header::CONTENT_DISPOSITION, saved)], document(media_type, text)).into_response()
}

impl Pages {
    async fn own_outcome(&self, visitor: &Visitor, name: &str) -> PageResult<Arc<EstimatedRecord>> {
        let query = queries::find_own(&self.shared, &visitor.caller, name).await?;
        let words = "Nothing was released of this question.";
        self.released(&query).await?.ok_or_else(|| PageError::page(StatusCode::CONFLICT, words))
    }

    /// The released outcomes of a card's series, by number.
    async fn series(&self, query: &Query, card: &Card) -> PageResult<Vec<(u64, Arc<EstimatedRecord>)>> {
        if card.series.is_none() {
            return Ok(Vec::new());
        }
        let asked = query.clone();
        let similar = self.shared.store.run(move |store| store.series_like(&asked)).await?;
        let mut outcomes = Vec::new();
        for other in &similar[similar.len().saturating_sub(LONGEST_SERIES)..] {
            if let Some(outcome) = self.released(other).await?
                && is_same_series(other, card)
            {
                outcomes.push((outcome.number(), outcome));
            }
        }
        Ok(outcomes)
    }
}

fn is_same_series(query: &Query, card: &Card) -> bool {
    query.card().is_ok_and(|other| other.without_number() == card.without_number())
}

impl QuestionPage {
    fn page(&self, visitor: &Visitor) -> Markup {
        let AskedQuestion { query, card, outcome, .. } = &self.asked;
        html! {
            div.heading { h1 { (self.asked.words()) } (self.asked.fill.holder(LivePart::State)) }
            p.help { "Query " code.long { (query.name()) } }
            (self.progress(visitor))
            @if card.asks_person() && !self.asked.is_over() { (self.people.how_to_answer(card, query.name())) }
            @if let Some(outcome) = outcome { (results::result(outcome)) (self.downloads()) }
            @if self.series.len() > 1 { (results::series(&self.series)) }
            (self.card())
            (self.cancel_form(visitor))
        }
    }

    fn card(&self) -> Markup {
        html! {
            section.panel {
                h2 { "The card" }
                (card::describe(&self.asked.card))
                p { a href=(self.path("card")) { "Download the signed card" } }
            }
        }
    }

    fn progress(&self, visitor: &Visitor) -> Markup {
        let AskedQuestion { query, fill, .. } = &self.asked;
        let live = (!self.asked.is_over()).then(|| self.path("live"));
        html! {
            section.panel.progress aria-label="Progress" data-live=[live] {
                (fill.holder(LivePart::Fill))
                (fill.holder(LivePart::Clock))
                @if let Some(reason) = &query.reason { p.fault { (reason) } }
                (self.release_form(visitor))
            }
        }
    }

    fn release_form(&self, visitor: &Visitor) -> Markup {
        let is_ready = self.asked.fill.state == store::QueryState::Closed && self.asked.fill.is_collected;
        html! {
            @if is_ready {
                form method="post" action=(self.path("release")) {
                    (frame::form_token(visitor))
                    button.primary type="submit" { "Release the result" }
                    span.help { " It is kept until you do; afterwards the question cannot be cancelled." }
                }
            }
        }
    }

    fn cancel_form(&self, visitor: &Visitor) -> Markup {
        html! {
            @if !self.asked.is_over() {
                details.panel.danger {
                    summary { "Cancel this question" }
                    p { "Nothing will be released, and the aggregators delete what they have. Answers already given \
                         still count against their owners' budgets." }
                    form method="post" action=(self.path("cancel")) {
                        (frame::form_token(visitor))
                        button.danger type="submit" { "Cancel it for good" }
                    }
                }
            }
        }
    }

    fn downloads(&self) -> Markup {
        html! {
            section.panel {
                h2 { "Keep and check it" }
                p.buttons {
                    a.button href=(self.path("record")) { "Record (JSON)" }
                    a.button href=(self.path("estimates")) { "Estimates (CSV)" }
                    a.button href=(self.path("card")) { "Signed card (JSON)" }
                }
                p { "Anybody who has the record can recompute all of it without this desk:" }
                pre tabindex="0" { code { "uptack verify record.json --desk-key " (self.signer) } }
            }
        }
    }

    /// The path of something that belongs to the question.
    fn path(&self, part: &str) -> String {
        format!("{}/{part}", self.asked.path())
    }
}
