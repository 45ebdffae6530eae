//! Results: the numbers that `uptack result` makes from a record, of one question, of a ballot and of a series.

use maud::{Markup, PreEscaped, html};
use std::{sync::Arc, time::Duration};
use uptack::{
    card::Card,
    display::{self, Rounding, grouped},
    estimate::{Confidence, Estimate, Estimator, IntervalKind},
};
use uptack_chart::{Axis, Bar, Bars, Chart, Look, Point, Scale, Series};
use uptack_dap::release::{record::Record, results::Estimated};

use crate::{
    desk::pages::{
        Pages,
        frame::{PageError, PageResult, scrolling_table, table_head},
        work::{Computations, Computed},
    },
    error::{Error, Result},
};

/// The confidence of intervals; for a ballot, of all of them together.
pub(super) const CONFIDENCE: f64 = 0.95;
/// How long a page waits for its estimates.
const PATIENCE: Duration = Duration::from_secs(20);

/// Estimated records by the name of their query: a record never changes.
#[derive(Default)]
pub(in crate::desk::pages) struct EstimatedRecords(Computations<std::result::Result<Arc<EstimatedRecord>, String>>);

/// A record with its estimates.
pub(super) struct EstimatedRecord {
    /// The record with its estimates, as `uptack verify` takes it.
    pub(super) record: Record,
    pub(super) card: Card,
    pub(super) questions: Vec<QuestionEstimate>,
}

/// The estimate of one question.
pub(super) struct QuestionEstimate {
    pub(super) name: Option<String>,
    pub(super) estimate: f64,
    pub(super) sd: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The estimate with the parts of its error.
    pub(super) parts: Estimate,
}

impl Pages {
    pub(super) async fn outcome(&self, query: &str, record: &str) -> PageResult<Arc<EstimatedRecord>> {
        let text = record.to_owned();
        let compute = move || EstimatedRecord::of(&text).map(Arc::new).map_err(|error| error.to_string());
        match self.work.find(&self.outcomes.0, query, PATIENCE, compute).await {
            Computed::Done(outcome) => outcome.as_ref().clone().map_err(|words| Error::environment(words).into()),
            Computed::Later | Computed::Busy => {
                Err(PageError::busy("The estimates are being made. Load the page again."))
            }
        }
    }
}

impl EstimatedRecord {
    fn of(text: &str) -> Result<Self> {
        let (record, opened) = Record::read(text)?;
        let channel = opened.card.checked_channel()?;
        let results = record.estimated(&channel, Confidence::new(CONFIDENCE)?, IntervalKind::Auto)?;
        let estimates = record_estimates(&record, &Estimator::new(&channel)?)?;
        let stated = results.estimates.iter().zip(estimates);
        let questions = stated.map(|(stated, parts)| QuestionEstimate::read(stated, parts)).collect::<Result<_>>()?;
        Ok(Self { record: Record { results: Some(results), ..record }, card: opened.card, questions })
    }

    /// The estimates, one line per question.
    pub(super) fn csv(&self) -> String {
        let lines: String = self.questions.iter().map(QuestionEstimate::csv_line).collect();
        format!("question,owners,estimate,sd,low,high,confidence\n{lines}")
    }

    /// The number of the card in its series.
    pub(super) fn number(&self) -> u64 {
        self.card.series.as_ref().and_then(|series| series.number).unwrap_or(1)
    }
}

/// The estimate of each question, with the parts of its error.
fn record_estimates(record: &Record, estimator: &Estimator) -> Result<Vec<Estimate>> {
    let observed = record.observed(estimator)?;
    Ok(observed.iter().map(|one| estimator.estimate_observed(&one.observation)).collect())
}

impl QuestionEstimate {
    /// The name of the question; empty if it is the only one.
    pub(super) fn label(&self) -> String {
        self.name.clone().unwrap_or_default()
    }

    /// The ends of the interval, for people.
    pub(super) fn interval_words(&self) -> [String; 2] {
        display::interval(self.low, self.high)
    }

    fn csv_line(&self) -> String {
        let Self { estimate, sd, low, high, .. } = self;
        let (name, owners) = (self.label().replace('"', "\"\""), self.parts.owners);
        format!("\"{name}\",{owners},{estimate},{sd},{low},{high},{CONFIDENCE}\n")
    }

    /// The numbers as the record states them.
    fn read(stated: &Estimated, parts: Estimate) -> Result<Self> {
        let [low, high] = &stated.interval;
        Ok(Self {
            name: stated.name.clone(),
            estimate: number(&stated.estimate)?,
            sd: number(&stated.sd)?,
            low: number(low)?,
            high: number(high)?,
            parts,
        })
    }
}

fn number(text: &str) -> Result<f64> {
    text.parse().map_err(|_| Error::environment("an estimate is not a number"))
}

/// Lines in the chart of a series. More would share colours and shapes; a table is better for them.
const MOST_LINES: usize = 8;

pub(super) fn result(outcome: &EstimatedRecord) -> Markup {
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

fn single(one: &QuestionEstimate) -> Markup {
    let [low, high] = one.interval_words();
    html! {
        p.headline { strong { (display::nearest(one.estimate)) } " of " (grouped(one.parts.owners)) " would say yes" }
        p { "Between " (low) " and " (high) " with confidence " (100.0 * CONFIDENCE) " %; standard deviation "
            (display::nearest(one.sd)) "." }
        (interval_picture(one.low, one.estimate, one.high))
        (error_parts(one))
    }
}

/// Where the error comes from; the squares of the parts add up.
fn error_parts(one: &QuestionEstimate) -> Markup {
    let parts = [
        ("sampling: which owners happened to speak", one.parts.sampling_sd),
        ("the owners' coins", one.parts.privacy_sd),
        ("the aggregators' noise", one.parts.aggregator_sd),
    ];
    let variance: f64 = parts.iter().map(|(_, sd)| sd * sd).sum();
    html! {
        h3 { "Where the error comes from" }
        table.parts {
            (table_head(&["Part", "sd", "share of the variance"]))
            tbody { @for (name, sd) in parts { (error_part(name, sd, variance)) } }
        }
        p.help { "The squares of these standard deviations add up to the square of " (display::nearest(one.sd)) "." }
    }
}

fn error_part(name: &str, sd: f64, variance: f64) -> Markup {
    let share = if variance > 0.0 { sd * sd / variance } else { 0.0 };
    html! {
        tr {
            th scope="row" { (name) } td.number { (display::nearest(sd)) }
            td.number { (display::percent(share, 1, Rounding::Nearest)) }
        }
    }
}

/// All questions of a ballot, the largest estimate first.
fn ballot(questions: &[QuestionEstimate]) -> Markup {
    let mut sorted: Vec<&QuestionEstimate> = questions.iter().collect();
    sorted.sort_by(|one, other| other.estimate.total_cmp(&one.estimate));
    html! {
        figure.chart { (PreEscaped(ballot_bars(&sorted).to_svg())) }
        details { summary { "As a table" } (scrolling_table("Estimates", &ballot_table(&sorted))) }
    }
}

fn ballot_bars(questions: &[&QuestionEstimate]) -> Bars {
    let bar = |one: &&QuestionEstimate| Bar { name: one.label(), value: one.estimate, low: one.low, high: one.high };
    Bars {
        title: "How many would say yes".to_owned(),
        subtitle: format!("All intervals together hold the truth with confidence {} %.", 100.0 * CONFIDENCE),
        bars: questions.iter().map(bar).collect(),
    }
}

fn ballot_table(questions: &[&QuestionEstimate]) -> Markup {
    html! {
        table {
            (table_head(&["Question", "Estimate", "sd", "From", "To"]))
            tbody { @for one in questions { (ballot_row(one)) } }
        }
    }
}

fn ballot_row(one: &QuestionEstimate) -> Markup {
    let [low, high] = one.interval_words();
    html! {
        tr {
            th scope="row" { (one.label()) } td.number { (display::nearest(one.estimate)) }
            td.number { (display::nearest(one.sd)) } td.number { (low) } td.number { (high) }
        }
    }
}

/// The outcomes of a series, by number.
pub(super) fn series(outcomes: &[(u64, Arc<EstimatedRecord>)]) -> Markup {
    html! { section.panel { h2 { "The series so far" } (figure(&series_chart(outcomes))) } }
}

/// Each question of a series as a line; a single one with a band.
fn series_chart(outcomes: &[(u64, Arc<EstimatedRecord>)]) -> Chart {
    let (x, y) = (Axis::new("number in the series", Scale::Linear), Axis::new("would say yes", Scale::Linear));
    let questions = &outcomes[0].1.questions;
    let mut chart = Chart::new("The series", x, y);
    for (index, question) in questions.iter().enumerate().take(MOST_LINES) {
        let name = question.name.as_deref().unwrap_or("estimate");
        let points = question_points(outcomes, index);
        chart = chart.with(series_line(name, &points).looking(Look::numbered(index)));
        if questions.len() == 1 {
            chart = chart.band(format!("interval, {} %", 100.0 * CONFIDENCE), intervals(&points));
        }
    }
    chart
}

fn intervals(points: &[(f64, &QuestionEstimate)]) -> Vec<(f64, f64, f64)> {
    points.iter().map(|(number, one)| (*number, one.low, one.high)).collect()
}

/// The estimates of one question, by the number in the series.
fn question_points(outcomes: &[(u64, Arc<EstimatedRecord>)], index: usize) -> Vec<(f64, &QuestionEstimate)> {
    let known = outcomes.iter().filter_map(|(number, outcome)| Some((*number as f64, outcome.questions.get(index)?)));
    known.collect()
}

fn series_line(name: &str, points: &[(f64, &QuestionEstimate)]) -> Series {
    let point = |(number, one): &(f64, &QuestionEstimate)| Point {
        x: *number,
        y: one.estimate,
        interval: Some((one.low, one.high)),
    };
    Series { points: points.iter().map(point).collect(), ..Series::both(name, []) }
}

/// An interval with its estimate, on a line that begins at zero; in words for those who do not see it.
pub(super) fn interval_picture(low: f64, estimate: f64, high: f64) -> Markup {
    let line = IntervalScale::around(low, high);
    let [from, to] = display::interval(low, high);
    let words = format!("Interval from {from} to {to}, estimate {}", display::nearest(estimate));
    html! {
        svg.interval viewBox="0 0 200 20" role="img" aria-label=(words) {
            line.axis x1="4" y1="10" x2="196" y2="10" {}
            (line.mark("axis", 0.0, 6, 14))
            line.range x1=(line.place(low)) y1="10" x2=(line.place(high)) y2="10" {}
            (line.mark("end", low, 5, 15))
            (line.mark("end", high, 5, 15))
            circle.estimate cx=(line.place(estimate)) cy="10" r="4.5" {}
        }
    }
}

/// The values that a picture shows, from left to right.
struct IntervalScale {
    first: f64,
    last: f64,
}

impl IntervalScale {
    /// Zero and the interval, with some space to its right.
    fn around(low: f64, high: f64) -> Self {
        let first = low.min(0.0);
        Self { first, last: (high + 0.12 * (high - first)).max(first + 1.0) }
    }

    /// Where a value is, in units of the picture.
    fn place(&self, value: f64) -> String {
        format!("{:.1}", 4.0 + 192.0 * ((value - self.first) / (self.last - self.first)).clamp(0.0, 1.0))
    }

    /// A vertical stroke at a value.
    fn mark(&self, class: &str, value: f64, top: u32, bottom: u32) -> Markup {
        let x = self.place(value);
        html! { line class=(class) x1=(x) y1=(top) x2=(x) y2=(bottom) {} }
    }
}

/// A chart within the page.
fn figure(chart: &Chart) -> Markup {
    html! { figure.chart { (PreEscaped(chart.to_svg())) } }
}
