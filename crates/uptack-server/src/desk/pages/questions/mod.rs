//! Questions that were asked: the list of one's own, and below it the page of each.

mod card;
mod live;
mod people;
mod progress;
mod question;
mod results;
mod watched;

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
        store::{self, AskedEntry, Query, Store},
    },
    error::Result,
};
use progress::LivePart;
use question::AskedQuestion;
use results::{EstimatedRecord, IntervalAxis, QuestionEstimate, percent_confidence};

pub(super) use self::{
    card::{best_guess, claims, describe},
    live::LiveQuestions,
    people::PeopleAccess,
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
    let found = pages.search(&visitor, &fields, from).await?;
    let next = found.has_more.then_some(from + PAGE);
    let rows = pages.rows(found.questions).await;
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
    /// How many of those that match come before the page.
    from: usize,
}

/// The questions of one page that match, the latest first.
struct MatchingQuestions {
    questions: Vec<(Query, Card)>,
    /// Whether there is another page.
    has_more: bool,
    /// How many questions there are in all.
    asked: u64,
}

impl QuestionFilter {
    /// Only the cards of the page are read.
    fn run(&self, store: &Store) -> Result<MatchingQuestions> {
        let asked = store.number_asked(self.analyst.as_deref())?;
        let page = (self.from, PAGE + 1);
        let mut names = store.find_asked(self.analyst.as_deref(), SEARCHED, page, |entry| self.matches(entry))?;
        let has_more = names.len() > PAGE;
        names.truncate(PAGE);
        let mut questions = Vec::new();
        for name in &names {
            let query = store.query(name)?;
            questions.extend(query.and_then(|query| query.card().ok().map(|card| (query, card))));
        }
        Ok(MatchingQuestions { questions, has_more, asked })
    }

    fn matches(&self, entry: &AskedEntry) -> bool {
        let contains = |text: &str| text.to_lowercase().contains(&self.words);
        let has_state = self.state.is_empty() || entry.state_at(self.now).name() == self.state;
        let has_words =
            || self.words.is_empty() || contains(&entry.query) || entry.question.as_deref().is_some_and(contains);
        has_state && has_words()
    }
}

impl Pages {
    async fn search(&self, visitor: &Visitor, fields: &FormFields, from: usize) -> Result<MatchingQuestions> {
        let search = QuestionFilter {
            analyst: queries::seen_by(&visitor.caller),
            state: fields.get("state").to_owned(),
            words: fields.get("words").to_lowercase(),
            now: self.shared.now(),
            from,
        };
        self.shared.store.run(move |store| search.run(store)).await
    }

    async fn rows(&self, questions: Vec<(Query, Card)>) -> Vec<AskedQuestion> {
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
            @let axis = axis(rows);
            (axis_words(axis.as_ref()))
            ul.questions { @for asked in rows { li { (row(asked, axis.as_ref())) } } }
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

/// The axis on which all estimates of the page are drawn; none if there are none.
fn axis(rows: &[AskedQuestion]) -> Option<IntervalAxis> {
    let shown = rows.iter().filter_map(|asked| largest(asked.outcome.as_deref()?));
    shown.map(|one| one.high.max(one.estimate)).reduce(f64::max).map(IntervalAxis::up_to)
}

fn axis_words(axis: Option<&IntervalAxis>) -> Markup {
    html! {
        @if let Some(axis) = axis {
            p.help { "Intervals hold the truth with confidence " (percent_confidence()) " %, for a ballot all of its intervals \
                at once, and are drawn on one axis from 0 to " (axis.end_words()) " people. Of a ballot, the largest \
                estimate is shown." }
        }
    }
}

fn row(asked: &AskedQuestion, axis: Option<&IntervalAxis>) -> Markup {
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
            div.how-far { (how_far(asked, axis)) }
        }
    }
}

/// The estimate, or the reports so far.
fn how_far(asked: &AskedQuestion, axis: Option<&IntervalAxis>) -> Markup {
    match (&asked.outcome, axis) {
        (Some(outcome), Some(axis)) => estimate(outcome, axis),
        _ => asked.fill.holder(LivePart::Fill),
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
fn largest(outcome: &EstimatedRecord) -> Option<&QuestionEstimate> {
    outcome.questions.iter().max_by(|one, other| one.estimate.total_cmp(&other.estimate))
}

fn estimate(outcome: &EstimatedRecord, axis: &IntervalAxis) -> Markup {
    html! {
        @if let Some(one) = largest(outcome) {
            p.estimate {
                @if let Some(name) = &one.name { span.help { "most: " (name) " " } }
                (estimate_words(one))
            }
            (axis.picture(one.low, one.estimate, one.high))
        }
    }
}

fn estimate_words(one: &QuestionEstimate) -> Markup {
    let [low, high] = one.interval_words();
    html! { strong { (display::nearest(one.estimate)) } span.help { " " (low) " to " (high) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desk::store::openings::{OpeningRequest, Room};
    use uptack::{
        plan::{Prior, Request, plan},
        privacy::Epsilon,
    };
    use uptack_dap::signed::SignedCard;

    fn queries(number: usize) -> Vec<Query> {
        let request = Request::one_aggregator(50, Prior::at(5), Epsilon::new(1.0).unwrap()).unwrap();
        let card = Card::new(&request, &plan(&request).unwrap());
        let query = |index: usize| {
            let words = format!("Is this {}?", if index.is_multiple_of(2) { "Even" } else { "odd" });
            let card = Card { question: Some(words), ..card.clone() }.canonical();
            Query {
                signed: SignedCard { query: format!("q{index}"), card, signature: String::new() },
                opens: 1,
                closes: 1000 + index as u64,
                state: store::QueryState::Open,
                reason: None,
                tasks: None,
                job: None,
                record: None,
                analyst: Some("ann".to_owned()),
            }
        };
        (0..number).map(query).collect()
    }

    /// Whatever matches, only the cards of one page are read.
    #[test]
    fn a_search_reads_the_cards_of_one_page() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let request = OpeningRequest { analyst: "ann".to_owned(), key: "key".to_owned(), digest: [0; 32] };
        store.open_queries(&request, &queries(120), Room { queries: 1000, bytes: 1 << 30, requests: 1 }, 1).unwrap();
        let search = |words: &str, state: &str, now: u64, from: usize| {
            let (words, state) = (words.to_owned(), state.to_owned());
            let found =
                QuestionFilter { analyst: Some("ann".to_owned()), state, words, now, from }.run(&store).unwrap();
            let names: Vec<String> = found.questions.iter().map(|(query, _)| query.name().to_owned()).collect();
            (names.first().cloned().unwrap_or_default(), names.len(), found.has_more, found.asked)
        };
        assert_eq!(search("", "", 0, 0), ("q119".to_owned(), PAGE, true, 120));
        assert_eq!(search("", "", 0, 100), ("q19".to_owned(), 20, false, 120));
        assert_eq!(search("even", "", 0, 0), ("q118".to_owned(), PAGE, true, 120));
        assert_eq!(search("even", "", 0, PAGE), ("q18".to_owned(), 10, false, 120));
        assert_eq!(search("q7", "", 0, 0), ("q79".to_owned(), 11, false, 120));
        assert_eq!(search("", "closed", 1010, 0), ("q10".to_owned(), 11, false, 120));
        assert_eq!(search("nothing", "", 0, 0), (String::new(), 0, false, 120));
        let theirs = QuestionFilter { analyst: Some("bob".to_owned()), ..empty_filter() };
        assert_eq!(theirs.run(&store).unwrap().questions.len(), 0);
    }

    fn empty_filter() -> QuestionFilter {
        QuestionFilter { analyst: None, state: String::new(), words: String::new(), now: 0, from: 0 }
    }
}
