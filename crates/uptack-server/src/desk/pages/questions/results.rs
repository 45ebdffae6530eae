//! Results: the numbers that `uptack result` makes from a record, of one question, of a ballot and of a series.

use maud::{Markup, PreEscaped, html};
use std::{sync::Arc, time::Duration};
use uptack::{
    Output,
    card::{Card, Timestamp},
    csv,
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
const CONFIDENCE: f64 = Confidence::USUAL;
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

    /// The estimates, one line per question of a ballot, each with what was asked and when.
    pub(super) fn csv(&self) -> String {
        let asked = self.asked_csv();
        let lines: String = self.questions.iter().map(|one| format!("{asked},{}", one.csv_line())).collect();
        format!("question,opens,closes,name,owners,estimate,sd,low,high,confidence\n{lines}")
    }

    /// The question in words, and when answers were taken.
    fn asked_csv(&self) -> String {
        let moment = |moment: Option<Timestamp>| moment.map(|moment| moment.to_string()).unwrap_or_default();
        let Card { question, opens, closes, .. } = &self.card;
        format!("{},{},{}", csv::field(question.as_deref().unwrap_or_default()), moment(*opens), moment(*closes))
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
        let (name, owners) = (csv::field(&self.label()), self.parts.owners);
        format!("{name},{owners},{estimate},{sd},{low},{high},{CONFIDENCE}\n")
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
                [one] if one.name.is_none() => (single(one, &outcome.card)),
                questions => (ballot(questions)),
            }
            @if let Some(words) = outcome.card.contribution_words() { p.help { "Note: " (words) "." } }
        }
    }
}

fn single(one: &QuestionEstimate, card: &Card) -> Markup {
    let [low, high] = one.interval_words();
    html! {
        p.headline { strong { (display::nearest(one.estimate)) } " of " (grouped(one.parts.owners)) " would say yes" }
        p { "Between " (low) " and " (high) " with confidence " (percent_confidence()) " %; standard deviation "
            (display::nearest(one.sd)) "." }
        (IntervalAxis::up_to(one.high.max(one.estimate)).picture(one.low, one.estimate, one.high))
        (error_parts(one, card))
    }
}

/// Where the error comes from; the squares of the parts add up. A part that adds nothing is left out.
fn error_parts(one: &QuestionEstimate, card: &Card) -> Markup {
    let parts = [
        (sampling_words(card), one.parts.sampling_sd),
        ("the owners' coins", one.parts.privacy_sd),
        ("the aggregators' noise", one.parts.aggregator_sd),
    ];
    let parts: Vec<(&str, f64)> = parts.into_iter().filter(|(_, sd)| *sd > 0.0).collect();
    let variance: f64 = parts.iter().map(|(_, sd)| sd * sd).sum();
    html! {
        h3 { "Where the error comes from" }
        table.parts {
            (table_head(&["Part", "sd", "share of the variance"]))
            tbody { @for (name, sd) in &parts { (error_part(name, *sd, variance)) } }
        }
        p.help { "The squares of these standard deviations add up to the square of " (display::nearest(one.sd)) "." }
    }
}

/// The part that would be left if everybody whose answer did not depend on the truth were known. Where nobody is silent, these are
/// not the silent ones.
fn sampling_words(card: &Card) -> &'static str {
    let channel = card.mechanism.count_channel();
    let can_be_silent = channel.cells().iter().any(|cell| cell.outputs().contains(&Output::BOTTOM));
    if can_be_silent {
        "sampling: which owners happened to speak"
    } else {
        "sampling: whose answers happened to depend on the truth"
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
        subtitle: format!("All intervals together hold the truth with confidence {} %.", percent_confidence()),
        bars: questions.iter().map(bar).collect(),
        ..Bars::default()
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
            chart = chart.band(format!("interval, {} %", percent_confidence()), intervals(&points));
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

/// The confidence of intervals, in per cent.
pub(super) fn percent_confidence() -> f64 {
    100.0 * CONFIDENCE
}

/// An axis from zero to a round number, on which intervals are drawn. Those that are to be compared have the same one.
pub(super) struct IntervalAxis {
    end: f64,
}

impl IntervalAxis {
    /// The shortest axis that reaches this value.
    pub(super) fn up_to(value: f64) -> Self {
        let value = value.max(1.0);
        let power = 10f64.powf(value.log10().floor());
        let step = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].into_iter().find(|step| step * power >= value);
        Self { end: (step.unwrap_or(10.0) * power).ceil() }
    }

    /// The number at its end.
    pub(super) fn end_words(&self) -> String {
        grouped(self.end as u64)
    }

    /// An interval with its estimate; in words for those who do not see it.
    pub(super) fn picture(&self, low: f64, estimate: f64, high: f64) -> Markup {
        let [from, to] = display::interval(low, high);
        let words = format!("Interval from {from} to {to}, estimate {}", display::nearest(estimate));
        html! {
            svg.interval viewBox="0 0 200 20" role="img" aria-label=(words) {
                line.axis x1="4" y1="10" x2="196" y2="10" {}
                (self.mark("axis", 0.0, 5, 15))
                (self.mark("axis", self.end, 5, 15))
                line.range x1=(self.place(low)) y1="10" x2=(self.place(high)) y2="10" {}
                (self.mark("end", low, 5, 15))
                (self.mark("end", high, 5, 15))
                circle.estimate cx=(self.place(estimate)) cy="10" r="4.5" {}
            }
            p.axis-ends aria-hidden="true" { span { "0" } span { (self.end_words()) } }
        }
    }

    /// Where a value is, in units of the picture.
    fn place(&self, value: f64) -> String {
        format!("{:.1}", 4.0 + 192.0 * (value / self.end).clamp(0.0, 1.0))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers_and_equal_axes_show_differences() {
        let ends = [0.2, 1.0, 7.0, 280.0, 687.0, 999.5, 1001.0].map(|value| IntervalAxis::up_to(value).end_words());
        assert_eq!(ends, ["1", "1", "8", "300", "800", "1 000", "1 500"]);
        let axis = IntervalAxis::up_to(740.0);
        let place = |value: f64| axis.place(value).parse::<f64>().unwrap();
        assert_eq!([place(0.0), place(-3.0), place(800.0)], [4.0, 4.0, 196.0]);
        // 280 and 687 are as far apart as they are.
        assert!((place(687.0) / place(280.0) - 687.0 / 280.0).abs() < 0.1);
    }

    #[test]
    fn only_where_owners_can_be_silent_is_anybody_said_to_have_spoken() {
        let words = |mechanism: &str| {
            let request = uptack::plan::Request::new(50, uptack::plan::Prior::at(5));
            let release = (uptack::privacy::Epsilon::new(1.0).unwrap(), uptack::privacy::Delta::new(1e-4).unwrap());
            let plan =
                uptack::plan::plan(&uptack::plan::Request { release: Some(release), ..request.clone() }).unwrap();
            sampling_words(&Card { mechanism: mechanism.parse().unwrap(), ..Card::new(&request, &plan) })
        };
        assert!(words("sampling(0.5,0.5)").contains("speak"));
        assert!(!words("randomized-response(t=0.8)").contains("speak"));
        assert!(!words("randomized-response(t=0.8) + laplace(scale=2)").contains("speak"));
    }
}
