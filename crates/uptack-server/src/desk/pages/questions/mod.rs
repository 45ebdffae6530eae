//! Questions that were asked: the list of one's own, and below it the page of each.

mod card;
mod live;
mod progress;
mod question;
mod results;

use axum::{
    Router,
    extract::State,
    routing::{get, post},
};
use maud::{Markup, html};
use std::sync::Arc;
use uptack::card::{Card, CardQuestion};
use uptack::display;

use super::{
    HOME, PageResponse, Pages, Site,
    frame::{self, Tab, Visitor},
    guard::FormFields,
};
use crate::{
    desk::{
        queries,
        store::{self, Query, Store},
    },
    error::Result,
};
use progress::LivePart;
use question::AskedQuestion;
use results::{EstimatedRecord, QuestionEstimate, interval_picture};

pub(super) use self::{
    card::{best_guess, describe},
    progress::ReportCounts,
    question::redirect,
    results::EstimatedRecords,
};

/// The pages of questions.
pub(super) fn routes() -> Router<Arc<Pages>> {
    Router::new()
        .route(HOME, get(show))
        .route("/pages/live", get(live::questions))
        .route("/pages/questions/{query}", get(question::show))
        .route("/pages/questions/{query}/live", get(live::question))
        .route("/pages/questions/{query}/release", post(question::release))
        .route("/pages/questions/{query}/cancel", post(question::cancel))
        .route("/pages/questions/{query}/record", get(question::record))
        .route("/pages/questions/{query}/card", get(question::card))
        .route("/pages/questions/{query}/estimates", get(question::estimates))
}

/// Questions on one page.
const PAGE: usize = 50;
/// Questions that are searched, the latest first.
const SEARCHED: usize = 2000;

async fn show(State(pages): Site, visitor: Visitor, fields: FormFields) -> PageResponse {
    let from: usize = fields.get("from").parse().unwrap_or(0);
    let found = pages.search(&visitor, &fields).await?;
    let next = (found.questions.len() > from + PAGE).then_some(from + PAGE);
    let rows = pages.rows(found.questions.into_iter().skip(from).take(PAGE)).await;
    let body = html! { div data-live=(live_path(&rows, found.asked)) { (list(&fields, &rows, next)) } };
    Ok(frame::page("Questions", Tab::Questions, &visitor, body))
}

/// Where changes of the questions that are shown, and new questions, are announced.
fn live_path(rows: &[AskedQuestion], asked: u64) -> String {
    let live: Vec<&str> = rows.iter().filter(|row| !row.is_over()).map(|row| row.query.name()).collect();
    format!("/pages/live?names={}&asked={asked}", live.join(","))
}

/// The questions that the search form asks for.
struct QuestionFilter {
    /// Whose questions; everybody's for an administrator.
    analyst: Option<String>,
    state: String,
    /// In lower case.
    words: String,
    now: u64,
}

/// The questions that match, the latest first, and how many there are in all.
struct MatchingQuestions {
    questions: Vec<(Query, Card)>,
    asked: u64,
}

impl QuestionFilter {
    fn run(&self, store: &Store) -> Result<MatchingQuestions> {
        let asked = store.number_asked(self.analyst.as_deref())?;
        let all = store.asked_by(self.analyst.as_deref(), 0, SEARCHED)?;
        let in_state = all.into_iter().filter(|query| self.has_state(query));
        let with_card = in_state.filter_map(|query| query.card().ok().map(|card| (query, card)));
        let questions = with_card.filter(|(query, card)| self.has_words(query, card)).collect();
        Ok(MatchingQuestions { questions, asked })
    }

    fn has_state(&self, query: &Query) -> bool {
        self.state.is_empty() || query.state_at(self.now).name() == self.state
    }

    fn has_words(&self, query: &Query, card: &Card) -> bool {
        let contains = |text: &str| text.to_lowercase().contains(&self.words);
        self.words.is_empty() || contains(query.name()) || card.question.as_deref().is_some_and(contains)
    }
}

impl Pages {
    async fn search(&self, visitor: &Visitor, fields: &FormFields) -> Result<MatchingQuestions> {
        let search = QuestionFilter {
            analyst: queries::seen_by(&visitor.caller),
            state: fields.get("state").to_owned(),
            words: fields.get("words").to_lowercase(),
            now: self.shared.now(),
        };
        self.shared.store.run(move |store| search.run(store)).await
    }

    async fn rows(&self, questions: impl Iterator<Item = (Query, Card)>) -> Vec<AskedQuestion> {
        let mut rows = Vec::new();
        for (query, card) in questions {
            // If estimation fails, the row has no estimate; the question's own page says why.
            let outcome = self.released(&query).await.ok().flatten();
            rows.push(self.asked(query, card, outcome).await);
        }
        rows
    }
}

fn list(fields: &FormFields, rows: &[AskedQuestion], next: Option<usize>) -> Markup {
    html! {
        div.heading { h1 { "Questions" } a.button.primary href="/pages/ask" { "Ask a question" } }
        (search_form(fields))
        @if rows.is_empty() {
            (empty_list(fields))
        } @else {
            ul.questions { @for asked in rows { li { (row(asked)) } } }
        }
        @if let Some(next) = next {
            p { a.button href=(format!("{HOME}?{}&from={next}", fields.query(&["state", "words"]))) { "Earlier questions" } }
        }
    }
}

fn empty_list(fields: &FormFields) -> Markup {
    html! {
        @if fields.is_empty() {
            p.empty { "Nothing has been asked yet. " a href="/pages/ask" { "Plan a question" } " and see its error before it is asked." }
        } @else {
            p.empty { "No question matches. " a href=(HOME) { "Show all" } }
        }
    }
}

fn search_form(fields: &FormFields) -> Markup {
    html! {
        form.search method="get" action=(HOME) role="search" {
            div.field {
                label for="words" { "Search" }
                input #words type="search" name="words" value=(fields.get("words"));
            }
            div.field {
                label for="state" { "State" }
                (state_choice(fields.get("state")))
            }
            button type="submit" { "Show" }
        }
    }
}

fn state_choice(chosen: &str) -> Markup {
    html! {
        select #state name="state" {
            option value="" { "any" }
            @for state in store::QueryState::ALL {
                option value=(state.name()) selected[chosen == state.name()] { (state.name()) }
            }
        }
    }
}

fn row(asked: &AskedQuestion) -> Markup {
    html! {
        article.row.panel {
            div.what {
                h2 { a href=(asked.path()) { (asked.words()) } }
                p.help {
                    (asked.fill.holder(LivePart::State))
                    (asked.fill.holder(LivePart::Clock))
                    (kind(&asked.card))
                }
            }
            div.how-far { (how_far(asked)) }
        }
    }
}

/// The estimate, or the reports so far.
fn how_far(asked: &AskedQuestion) -> Markup {
    match &asked.outcome {
        Some(outcome) => estimate(outcome),
        None => asked.fill.holder(LivePart::Fill),
    }
}

/// Whether a question is part of a series, or a ballot.
fn kind(card: &Card) -> Markup {
    html! {
        @if let Some(series) = &card.series {
            span { "series " (series.number.unwrap_or(1)) " of " (series.times) }
        }
        @if let CardQuestion::Ballot(ballot) = card.asked() { span { "ballot of " (ballot.queries.len()) } }
    }
}

/// The estimate of one question, or the largest of a ballot.
fn estimate(outcome: &EstimatedRecord) -> Markup {
    let largest = outcome.questions.iter().max_by(|one, other| one.estimate.total_cmp(&other.estimate));
    html! {
        @if let Some(one) = largest {
            p.estimate {
                @if let Some(name) = &one.name { span.help { "most: " (name) " " } }
                (estimate_words(one))
            }
            (interval_picture(one.low, one.estimate, one.high))
        }
    }
}

fn estimate_words(one: &QuestionEstimate) -> Markup {
    let [low, high] = one.interval_words();
    html! { strong { (display::nearest(one.estimate)) } span.help { " " (low) " to " (high) } }
}
