//! The list of one's questions.

use axum::{
    extract::State,
    http::{HeaderMap, Uri},
};
use maud::{Markup, html};
use std::sync::Arc;
use uptack::{card::Card, display};

use super::{
    HOME, Page, Pages,
    fields::Fields,
    fill::Fill,
    frame::{self, Tab},
    outcome::Outcome,
    picture,
    visitor::Visitor,
};
use crate::{
    desk::{
        overview,
        store::{self, Query},
    },
    error::Result,
};

/// Questions on one page.
const PAGE: usize = 50;
/// Questions that are searched, the latest first.
const SEARCHED: usize = 2000;

/// A question of the list.
struct Row {
    query: Query,
    card: Card,
    fill: Fill,
    outcome: Option<Arc<Outcome>>,
}

pub(super) async fn show(State(pages): State<Arc<Pages>>, headers: HeaderMap, uri: Uri) -> Page {
    let visitor = pages.visitor(&headers)?;
    let fields = Fields::of_query(&uri);
    let from: usize = fields.get("from").parse().unwrap_or(0);
    let Found { questions: found, asked } = pages.search(&visitor, &fields).await?;
    let next = (found.len() > from + PAGE).then_some(from + PAGE);
    let mut rows = Vec::new();
    for (query, card) in found.into_iter().skip(from).take(PAGE) {
        rows.push(pages.row(query, card).await);
    }
    let content = list(&fields, &rows, next, pages.shared.now());
    let body = html! { div data-live=(live_path(&rows, asked)) { (content) } };
    Ok(frame::page("Questions", Tab::Questions, &visitor, body))
}

/// What a search found, the latest first, and how many questions there are in all.
struct Found {
    questions: Vec<(Query, Card)>,
    asked: u64,
}

/// Where changes of the questions that are shown, and new questions, are told.
fn live_path(rows: &[Row], asked: u64) -> String {
    let live: Vec<&str> = rows.iter().filter(|row| row.is_live()).map(|row| row.query.signed.query.as_str()).collect();
    format!("/pages/live?names={}&asked={asked}", live.join(","))
}

impl Pages {
    /// The questions that the form asks for, the latest first.
    async fn search(&self, visitor: &Visitor, fields: &Fields) -> Result<Found> {
        let analyst = overview::seen_by(&visitor.caller);
        let (state, words) = (fields.get("state").to_owned(), fields.get("words").to_lowercase());
        let now = self.shared.now();
        let select = move |store: &store::Store| {
            let asked = store.number_asked(analyst.as_deref())?;
            let all = store.asked_by(analyst.as_deref(), 0, SEARCHED)?;
            let found = all.into_iter().filter(|query| state.is_empty() || query.state_at(now).name() == state);
            let read = found.filter_map(|query| Some((Card::from_json(&query.signed.card).ok()?, query)));
            let matching = read.filter(|(card, query)| {
                words.is_empty()
                    || query.signed.query.to_lowercase().contains(&words)
                    || card.question.as_ref().is_some_and(|question| question.to_lowercase().contains(&words))
            });
            Ok(Found { questions: matching.map(|(card, query)| (query, card)).collect(), asked })
        };
        self.shared.store.run(select).await
    }

    async fn row(&self, query: Query, card: Card) -> Row {
        let fill = self.fill(&query, &card).await;
        let outcome = match (&query.record, query.state) {
            // What cannot be estimated is shown without an estimate; its own page says why.
            (Some(record), store::State::Released) => self.outcome(&query.signed.query, record).await.ok(),
            _ => None,
        };
        Row { query, card, fill, outcome }
    }
}

fn list(fields: &Fields, rows: &[Row], next: Option<usize>, now: u64) -> Markup {
    html! {
        div.heading { h1 { "Questions" } a.button.primary href="/pages/ask" { "Ask a question" } }
        (search_form(fields))
        @if rows.is_empty() {
            @if fields.is_empty() {
                p.empty { "Nothing was asked yet. " a href="/pages/ask" { "Plan a question" } " and see its error before it is asked." }
            } @else {
                p.empty { "No question is like that. " a href=(HOME) { "Show all" } }
            }
        } @else {
            ul.questions { @for row in rows { li { (row.markup(now)) } } }
        }
        @if let Some(next) = next {
            p { a.button href=(format!("{HOME}?{}&from={next}", fields.query(&["state", "words"]))) { "Earlier questions" } }
        }
    }
}

fn search_form(fields: &Fields) -> Markup {
    html! {
        form.search method="get" action=(HOME) role="search" {
            div.field {
                label for="words" { "Search" }
                input #words type="search" name="words" value=(fields.get("words"));
            }
            div.field {
                label for="state" { "State" }
                select #state name="state" {
                    option value="" { "any" }
                    @for state in store::State::ALL {
                        option value=(state.name()) selected[fields.get("state") == state.name()] { (state.name()) }
                    }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

impl Row {
    fn is_live(&self) -> bool {
        matches!(self.fill.state, store::State::Opening | store::State::Open | store::State::Closed)
    }

    fn markup(&self, now: u64) -> Markup {
        let words = self.card.question.as_deref().unwrap_or("(without words)");
        html! {
            article.row.panel {
                div.what {
                    h2 { a href=(format!("/pages/questions/{}", self.query.signed.query)) { (words) } }
                    p.help {
                        (self.fill.holder("state", &self.fill.badge()))
                        (self.fill.holder("clock", &self.fill.clock(now)))
                        @if let Some(series) = &self.card.series {
                            span { "series " (series.number.unwrap_or(1)) " of " (series.times) }
                        }
                        @if let Some(ballot) = &self.card.ballot { span { "ballot of " (ballot.queries.len()) } }
                    }
                }
                div.how-far {
                    @if let Some(outcome) = &self.outcome { (estimate(outcome)) }
                    @else { (self.fill.holder("fill", &self.fill.bar())) }
                }
            }
        }
    }
}

/// The estimate of one question, or the largest of a ballot.
fn estimate(outcome: &Outcome) -> Markup {
    let largest = outcome.questions.iter().max_by(|one, other| one.estimate.total_cmp(&other.estimate));
    html! {
        @if let Some(one) = largest {
            @let [low, high] = display::interval(one.low, one.high);
            p.estimate {
                @if let Some(name) = &one.name { span.help { "most: " (name) " " } }
                strong { (display::nearest(one.estimate)) } span.help { " " (low) " to " (high) }
            }
            (picture::interval(one.low, one.estimate, one.high))
        }
    }
}
