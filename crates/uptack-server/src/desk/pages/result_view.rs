//! A result as people read it: of one question, of a ballot, of a series.

use maud::{Markup, PreEscaped, html};
use std::sync::Arc;
use uptack::display::{self, Rounding, grouped};
use uptack_chart::{Axis, Bar, Bars, Chart, Look, Point, Scale, Series};

use super::{
    outcome::{CONFIDENCE, One, Outcome},
    picture, table,
};

/// Lines in the chart of a series. More would share colours and shapes; a table is better for them.
const MOST_LINES: usize = 8;

pub(super) fn result(outcome: &Outcome) -> Markup {
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
    let [low, high] = one.interval_words();
    html! {
        p.headline { strong { (display::nearest(one.estimate)) } " of " (grouped(one.parts.owners)) " would say yes" }
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
            (table::head(&["Part", "sd", "share of the variance"]))
            tbody { @for (name, sd) in parts { (error_part(name, sd, variance)) } }
        }
        p.help { "Squares of standard deviations add up: to that of " (display::nearest(one.sd)) "." }
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
fn ballot(questions: &[One]) -> Markup {
    let mut sorted: Vec<&One> = questions.iter().collect();
    sorted.sort_by(|one, other| other.estimate.total_cmp(&one.estimate));
    html! {
        figure.chart { (PreEscaped(ballot_bars(&sorted).to_svg())) }
        details { summary { "As a table" } (table::scrolling("Estimates", &ballot_table(&sorted))) }
    }
}

fn ballot_bars(questions: &[&One]) -> Bars {
    let bar = |one: &&One| Bar { name: one.label(), value: one.estimate, low: one.low, high: one.high };
    Bars {
        title: "How many would say yes".to_owned(),
        subtitle: format!("All intervals together hold the truth with confidence {} %.", 100.0 * CONFIDENCE),
        bars: questions.iter().map(bar).collect(),
    }
}

fn ballot_table(questions: &[&One]) -> Markup {
    html! {
        table {
            (table::head(&["Question", "Estimate", "sd", "From", "To"]))
            tbody { @for one in questions { (ballot_row(one)) } }
        }
    }
}

fn ballot_row(one: &One) -> Markup {
    let [low, high] = one.interval_words();
    html! {
        tr {
            th scope="row" { (one.label()) } td.number { (display::nearest(one.estimate)) }
            td.number { (display::nearest(one.sd)) } td.number { (low) } td.number { (high) }
        }
    }
}

/// The outcomes of a series, by number.
pub(super) fn series(outcomes: &[(u64, Arc<Outcome>)]) -> Markup {
    html! { section.panel { h2 { "The series so far" } (picture::chart(&series_chart(outcomes))) } }
}

/// Each question of a series as a line; a single one with a band.
fn series_chart(outcomes: &[(u64, Arc<Outcome>)]) -> Chart {
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

fn intervals(points: &[(f64, &One)]) -> Vec<(f64, f64, f64)> {
    points.iter().map(|(number, one)| (*number, one.low, one.high)).collect()
}

/// What is known of one question, by the number in the series.
fn question_points(outcomes: &[(u64, Arc<Outcome>)], index: usize) -> Vec<(f64, &One)> {
    let known = outcomes.iter().filter_map(|(number, outcome)| Some((*number as f64, outcome.questions.get(index)?)));
    known.collect()
}

fn series_line(name: &str, points: &[(f64, &One)]) -> Series {
    let point =
        |(number, one): &(f64, &One)| Point { x: *number, y: one.estimate, interval: Some((one.low, one.high)) };
    Series { points: points.iter().map(point).collect(), ..Series::both(name, []) }
}
