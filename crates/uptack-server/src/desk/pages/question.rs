//! One question: how far it is, what came out, what its card says.

use axum::{
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use maud::{Markup, html};
use std::sync::Arc;
use uptack::{
    card::Card,
    display::{self, grouped},
};
use uptack_chart::{Axis, Bar, Bars, Chart, Look, Point, Scale, Series};

use super::{
    Page, Pages, card_view,
    fill::Fill,
    frame::{self, Tab},
    outcome::{CONFIDENCE, One, Outcome},
    picture,
    refusal::Refusal,
    visitor::Visitor,
};
use crate::{
    base::http::document,
    desk::{
        queries,
        store::{self, Query},
    },
};

/// A series of more cards is shown by its latest ones.
const LONGEST_SERIES: usize = 200;

/// All that the page shows.
struct Shown {
    query: Query,
    card: Card,
    fill: Fill,
    outcome: Option<Arc<Outcome>>,
    /// The released ones of its series.
    series: Vec<(u64, Arc<Outcome>)>,
}

pub(super) async fn show(State(pages): State<Arc<Pages>>, headers: HeaderMap, Path(name): Path<String>) -> Page {
    let visitor = pages.visitor(&headers)?;
    let query = queries::find_own(&pages.shared, &visitor.caller, &name).await?;
    let card = Card::from_json(&query.signed.card)?;
    let (fill, series) = (pages.fill(&query, &card).await, pages.series(&query, &card).await?);
    let outcome = pages.released(&query).await?;
    let shown = Shown { query, card, fill, outcome, series };
    let title = shown.card.question.clone().unwrap_or_else(|| name.clone());
    Ok(frame::page(&title, Tab::Questions, &visitor, shown.page(&pages, &visitor)))
}

/// Releases the result: what was collected is shown from then on, and can no longer be cancelled.
pub(super) async fn release(
    State(pages): State<Arc<Pages>>,
    headers: HeaderMap,
    Path(name): Path<String>,
    body: Body,
) -> Page {
    let (visitor, _) = pages.form(&headers, body).await?;
    queries::result(&pages.shared, &visitor.caller, &name).await?;
    Ok(Redirect::to(&path(&name)).into_response())
}

pub(super) async fn cancel(
    State(pages): State<Arc<Pages>>,
    headers: HeaderMap,
    Path(name): Path<String>,
    body: Body,
) -> Page {
    let (visitor, _) = pages.form(&headers, body).await?;
    queries::cancel(&pages.shared, &visitor.caller, &name).await?;
    Ok(Redirect::to(&path(&name)).into_response())
}

/// The record with its estimates, as `uptack result --out` writes it.
pub(super) async fn record(State(pages): State<Arc<Pages>>, headers: HeaderMap, Path(name): Path<String>) -> Page {
    let outcome = pages.own_outcome(&headers, &name).await?;
    let text = serde_json::to_string(&outcome.record).expect("a record is plain data");
    Ok(download("record.json", "application/json", format!("{text}\n")))
}

pub(super) async fn estimates(State(pages): State<Arc<Pages>>, headers: HeaderMap, Path(name): Path<String>) -> Page {
    let outcome = pages.own_outcome(&headers, &name).await?;
    Ok(download("estimates.csv", "text/csv; charset=utf-8", outcome.csv()))
}

pub(super) async fn card(State(pages): State<Arc<Pages>>, headers: HeaderMap, Path(name): Path<String>) -> Page {
    let visitor = pages.visitor(&headers)?;
    let text = queries::card(&pages.shared, &visitor.caller, &name).await?;
    Ok(download("card.json", "application/json", format!("{text}\n")))
}

fn download(name: &str, media_type: &'static str, text: String) -> Response {
    let saved = format!("attachment; filename=\"{name}\"");
    ([(header::CONTENT_DISPOSITION, saved)], document(media_type, text)).into_response()
}

pub(super) fn path(name: &str) -> String {
    format!("/pages/questions/{name}")
}

impl Pages {
    async fn own_outcome(&self, headers: &HeaderMap, name: &str) -> Result<Arc<Outcome>, Refusal> {
        let visitor = self.visitor(headers)?;
        let query = queries::find_own(&self.shared, &visitor.caller, name).await?;
        let words = "Nothing was released of this question.";
        self.released(&query).await?.ok_or_else(|| Refusal::page(StatusCode::CONFLICT, words))
    }

    async fn released(&self, query: &Query) -> Result<Option<Arc<Outcome>>, Refusal> {
        match (&query.record, query.state) {
            (Some(record), store::State::Released) => Ok(Some(self.outcome(&query.signed.query, record).await?)),
            _ => Ok(None),
        }
    }

    /// The outcomes of a card's series, by number, as far as they are released.
    async fn series(&self, query: &Query, card: &Card) -> Result<Vec<(u64, Arc<Outcome>)>, Refusal> {
        if card.series.is_none() {
            return Ok(Vec::new());
        }
        let asked = query.clone();
        let alike = self.shared.store.run(move |store| store.series_like(&asked)).await?;
        let mut outcomes = Vec::new();
        for other in alike.iter().rev().take(LONGEST_SERIES).rev() {
            let of_series =
                Card::from_json(&other.signed.card).is_ok_and(|other| other.without_number() == card.without_number());
            if let Some(outcome) = self.released(other).await?.filter(|_| of_series) {
                let number = outcome.card.series.as_ref().and_then(|series| series.number).unwrap_or(1);
                outcomes.push((number, outcome));
            }
        }
        Ok(outcomes)
    }
}

impl Shown {
    fn page(&self, pages: &Pages, visitor: &Visitor) -> Markup {
        let name = &self.query.signed.query;
        let words = self.card.question.as_deref().unwrap_or("(without words)");
        html! {
            div.heading { h1 { (words) } (self.fill.holder("state", &self.fill.badge())) }
            p.help { "Query " code.long { (name) } }
            section.panel.progress aria-label="Progress" data-live=[self.live_path()] {
                (self.fill.holder("fill", &self.fill.bar()))
                (self.fill.holder("clock", &self.fill.clock(pages.shared.now())))
                @if let Some(reason) = &self.query.reason { p.fault { (reason) } }
                (self.release_form(visitor))
            }
            @if self.card.asks_person() && self.live_path().is_some() { (self.how_people_answer(pages)) }
            @if let Some(outcome) = &self.outcome { (result(outcome)) (self.downloads(pages)) }
            @if self.series.len() > 1 { (series_chart(&self.series)) }
            section.panel { h2 { "The card" } (card_view::card(&self.card))
                p { a href=(format!("{}/card", path(name))) { "Download the signed card" } } }
            (self.cancel_form(visitor))
        }
    }

    /// What people need to answer. The address of this desk is not in it: it may be another one for them.
    fn how_people_answer(&self, pages: &Pages) -> Markup {
        let (name, key) = (&self.query.signed.query, pages.shared.signer.public());
        html! {
            section.panel {
                h2 { "How people answer" }
                p { "In a browser, by a link to a page that this desk does not serve:" }
                pre tabindex="0" { code { "PAGE/#desk=DESK&key=" (key) "&query=" (name) } }
                p { "In a terminal:" }
                pre tabindex="0" { code { "uptack answer --desk DESK --policy policy.toml --data FOLDER --query " (name) } }
            }
        }
    }

    fn live_path(&self) -> Option<String> {
        let live = matches!(self.fill.state, store::State::Opening | store::State::Open | store::State::Closed);
        live.then(|| format!("{}/live", path(&self.query.signed.query)))
    }

    fn release_form(&self, visitor: &Visitor) -> Markup {
        let ready = self.fill.state == store::State::Closed && self.fill.is_collected;
        html! {
            @if ready {
                form method="post" action=(format!("{}/release", path(&self.query.signed.query))) {
                    (frame::form_token(visitor))
                    button.primary type="submit" { "Release the result" }
                    span.help { " It is kept until you do; afterwards the question cannot be cancelled." }
                }
            }
        }
    }

    fn cancel_form(&self, visitor: &Visitor) -> Markup {
        let may = matches!(self.fill.state, store::State::Opening | store::State::Open | store::State::Closed);
        html! {
            @if may {
                details.panel.danger {
                    summary { "Cancel this question" }
                    p { "Nothing will be released, and the aggregators delete what they have. Owners who answered have paid \
                         for it all the same." }
                    form method="post" action=(format!("{}/cancel", path(&self.query.signed.query))) {
                        (frame::form_token(visitor))
                        button.danger type="submit" { "Cancel it for good" }
                    }
                }
            }
        }
    }

    fn downloads(&self, pages: &Pages) -> Markup {
        let path = path(&self.query.signed.query);
        html! {
            section.panel {
                h2 { "Keep and check it" }
                p.buttons {
                    a.button href=(format!("{path}/record")) { "Record (JSON)" }
                    a.button href=(format!("{path}/estimates")) { "Estimates (CSV)" }
                    a.button href=(format!("{path}/card")) { "Signed card (JSON)" }
                }
                p { "Anybody who has the record can compute all of it again, without this desk:" }
                pre tabindex="0" { code { "uptack verify record.json --desk-key " (pages.shared.signer.public()) } }
            }
        }
    }
}

fn result(outcome: &Outcome) -> Markup {
    html! {
        section.panel.result {
            h2 { "The result" }
            @match outcome.questions.as_slice() {
                [one] if one.name.is_none() => (single(one)),
                questions => (ballot(questions)),
            }
        }
    }
}

fn single(one: &One) -> Markup {
    let [low, high] = display::interval(one.low, one.high);
    html! {
        p.headline { strong { (display::nearest(one.estimate)) } " of " (grouped(one.parts.owners)) " hold yes" }
        p { "Between " (low) " and " (high) " with confidence " (100.0 * CONFIDENCE) " %; standard deviation "
            (display::nearest(one.sd)) "." }
        (picture::interval(one.low, one.estimate, one.high))
        (error_parts(one))
    }
}

/// Where the error comes from; the squares of the parts add up.
fn error_parts(one: &One) -> Markup {
    let parts = [
        ("sampling: which owners happened to speak", one.parts.sampling_sd),
        ("the owners' coins", one.parts.privacy_sd),
        ("the aggregators' noise", one.parts.aggregator_sd),
    ];
    let variance: f64 = parts.iter().map(|(_, sd)| sd * sd).sum();
    html! {
        h3 { "Where the error comes from" }
        table.parts {
            thead { tr { th scope="col" { "Part" } th scope="col" { "sd" } th scope="col" { "share of the variance" } } }
            tbody {
                @for (name, sd) in parts {
                    @let share = if variance > 0.0 { sd * sd / variance } else { 0.0 };
                    tr {
                        th scope="row" { (name) } td.number { (display::nearest(sd)) }
                        td.number { (display::percent(share, 1, display::Rounding::Nearest)) }
                    }
                }
            }
        }
        p.help { "Squares of standard deviations add up: to that of " (display::nearest(one.sd)) "." }
    }
}

fn ballot(questions: &[One]) -> Markup {
    let mut sorted: Vec<&One> = questions.iter().collect();
    sorted.sort_by(|one, other| other.estimate.total_cmp(&one.estimate));
    let name = |one: &One| one.name.clone().unwrap_or_default();
    let bars = sorted.iter().map(|one| Bar { name: name(one), value: one.estimate, low: one.low, high: one.high });
    let note = format!("All intervals together hold the truth with confidence {} %.", 100.0 * CONFIDENCE);
    let picture = Bars { title: "How many hold yes".to_owned(), subtitle: note, bars: bars.collect() };
    html! {
        figure.chart { (maud::PreEscaped(picture.to_svg())) }
        details {
            summary { "As a table" }
            div.scroll tabindex="0" role="group" aria-label="Estimates" {
                table {
                    thead { tr {
                        th scope="col" { "Question" } th scope="col" { "Estimate" } th scope="col" { "sd" }
                        th scope="col" { "From" } th scope="col" { "To" }
                    } }
                    tbody { @for one in &sorted {
                        @let [low, high] = display::interval(one.low, one.high);
                        tr {
                            th scope="row" { (name(one)) } td.number { (display::nearest(one.estimate)) }
                            td.number { (display::nearest(one.sd)) } td.number { (low) } td.number { (high) }
                        }
                    } }
                }
            }
        }
    }
}

/// Each question of a series as a line with a band.
fn series_chart(series: &[(u64, Arc<Outcome>)]) -> Markup {
    let names: Vec<Option<String>> = series[0].1.questions.iter().map(|one| one.name.clone()).collect();
    let chart = Chart::new(
        "The series",
        Axis::new("number in the series", Scale::Linear),
        Axis::new("hold yes", Scale::Linear),
    );
    // More lines than colours with a shape of their own are a table's business.
    let drawn = names.iter().take(8).enumerate().fold(chart, |chart, (index, name)| {
        let of = |outcome: &Outcome| outcome.questions.get(index).map(|one| (one.estimate, one.low, one.high));
        let points: Vec<(f64, (f64, f64, f64))> =
            series.iter().filter_map(|(number, outcome)| Some((*number as f64, of(outcome)?))).collect();
        let line = Series {
            points: points
                .iter()
                .map(|(x, (y, low, high))| Point { x: *x, y: *y, interval: Some((*low, *high)) })
                .collect(),
            ..Series::both(name.clone().unwrap_or_else(|| "estimate".to_owned()), [])
        };
        let chart = chart.with(line.looking(Look::numbered(index)));
        if names.len() > 1 {
            return chart;
        }
        let band = points.iter().map(|(x, (_, low, high))| (*x, *low, *high)).collect();
        chart.band(format!("interval, {} %", 100.0 * CONFIDENCE), band)
    });
    html! { section.panel { h2 { "The series so far" } (picture::chart(&drawn)) } }
}
