//! A plan as people read it.

use maud::{Markup, html};
use uptack::{
    card::{Card, WholePlan},
    display::{self, Rounding, grouped},
    plan::{AnySolved, Solved, SolvedContributions, Tradeoff, Trust, Unknown},
};

use super::{
    form,
    reading::{self, FieldFault},
};
use crate::desk::pages::{
    frame::{scrolling_table, table_head},
    guard::FormFields,
    questions::{best_guess, claims},
};

/// The field that keeps the form from being planned. The script marks it by its name.
pub(super) fn fault(fault: &FieldFault) -> Markup {
    html! {
        h2 { "The plan" }
        p.fault #plan-fault data-field=(fault.field) { (form::fault_words(fault)) }
    }
}

/// A placeholder until there is a plan; the script asks again.
pub(super) fn waiting(words: &str) -> Markup {
    html! { h2 { "The plan" } p.waiting { (words) } }
}

pub(super) fn impossible(fault: &FieldFault) -> Markup {
    html! {
        h2 { "There is no such plan" }
        p.fault #plan-fault data-field=(fault.field) { (fault.words) }
    }
}

/// What follows the headline; `statement` is the guarantees of a single question in sentences.
pub(super) fn details(whole: &WholePlan, statement: Option<&str>, card: &Card, fields: &FormFields) -> Markup {
    match (&whole.solved, statement) {
        (AnySolved::YesNo(one), Some(statement)) => single(one, statement, fields),
        (AnySolved::YesNo(one), None) => several(one, whole.queries, card, fields),
        (AnySolved::Contributions(all), _) => contributions(all, card),
    }
}

/// A card with one question.
fn single(one: &Solved, statement: &str, fields: &FormFields) -> Markup {
    html! {
        p { (one.solved_words()) }
        @for sentence in one.trust_words() { p { (sentence) } }
        (plain_words(statement))
        (details_of_one(one, fields))
    }
}

/// A card with several independent queries: the claims of all of them together, and one of them.
fn several(one: &Solved, queries: u64, card: &Card, fields: &FormFields) -> Markup {
    html! {
        (claims(card))
        (one_of_many(one, queries))
        (details_of_one(one, fields))
    }
}

/// A card with contributions to everything that it asks.
fn contributions(all: &SolvedContributions, card: &Card) -> Markup {
    let mechanism = &all.plan.best.mechanism;
    html! {
        @if let Some(words) = all.solved_words() { p { (words) } }
        p { "Each owner adds to at most " (grouped(u64::from(mechanism.most()))) " of the "
            (grouped(mechanism.counts() as u64)) " counts, and every claim is for all of them together." }
        @if let Some(words) = card.contribution_words() { p { "Note: " (words) "." } }
        @for words in all.linked_words().into_iter().chain(all.tradeoff_words()) { p { (words) } }
        (claims(card))
        (tradeoff(&all.plan.tradeoff, all.request.linked_epsilon))
    }
}

fn details_of_one(one: &Solved, fields: &FormFields) -> Markup {
    html! {
        (charts(one, fields))
        (families(one))
        (honesty(one))
        (tradeoff(&one.plan.tradeoff, one.request.linked_epsilon))
    }
}

/// What the parts below are about if there are several queries.
fn one_of_many(one: &Solved, queries: u64) -> Markup {
    html! {
        h3 { "One of the " (grouped(queries)) " counts" }
        p { "All counts share the ε of the whole. Everything below is about one of them and its share: ε = "
            (display::claim(one.plan.epsilon())) "." }
    }
}

fn plain_words(statement: &str) -> Markup {
    html! {
        details {
            summary { "In plain words" }
            @for line in statement.lines().filter(|line| !line.is_empty()) { p { (line) } }
        }
    }
}

/// The quantity that was solved for, the error, and the mechanism.
pub(super) fn headline(whole: &WholePlan) -> Markup {
    let error = PlannedError::of(whole);
    html! {
        h2 { "The plan" }
        @match error.unknown {
            Unknown::Error => {},
            Unknown::Epsilon => p.headline { "ε = " strong { (display::claim(whole.epsilon())) } },
            Unknown::Owners => p.headline { strong { (grouped(error.owners)) } " owners" },
        }
        p.headline { "± " strong { (display::nearest(error.half_width)) } " people at 95 %"
            @if error.is_one_of_many { ", for each count" } }
        (error.in_per_cent())
        p { "Mechanism: " code { (whole.card.mechanism) } }
    }
}

/// The error of a plan, whatever it is a plan of.
struct PlannedError {
    unknown: Unknown,
    owners: u64,
    yes: u64,
    sd: f64,
    half_width: f64,
    is_one_of_many: bool,
}

impl PlannedError {
    fn of(whole: &WholePlan) -> Self {
        let (unknown, request, sd, half_width) = match &whole.solved {
            AnySolved::YesNo(one) => (one.unknown, &one.request, one.plan.best.sd, one.plan.best.interval95_halfwidth),
            AnySolved::Contributions(all) => {
                (all.unknown, &all.request, all.plan.best.sd, all.plan.best.interval95_halfwidth)
            }
        };
        let is_one_of_many = whole.queries > 1 || matches!(whole.solved, AnySolved::Contributions(_));
        Self { unknown, owners: request.owners, yes: request.yes.high, sd, half_width, is_one_of_many }
    }

    /// The error in per cent, and as a standard deviation.
    fn in_per_cent(&self) -> Markup {
        let (owners, yes) = (self.owners, self.yes);
        let of = |count: u64| display::percent(self.half_width / count as f64, 2, Rounding::Up);
        html! {
            p {
                "That is " (of(owners.max(1))) " of " (grouped(owners)) " owners"
                @if yes > 0 { " and " (of(yes)) " of " (grouped(yes)) " yes" }
                "; standard deviation " (display::nearest(self.sd)) "."
            }
        }
    }
}

fn families(solved: &Solved) -> Markup {
    html! {
        h3 { "The best of each family" }
        (scrolling_table("The best of each family", &families_table(solved)))
        p.help { (solved.rule_words()) }
    }
}

fn families_table(solved: &Solved) -> Markup {
    html! {
        table {
            (table_head(&["Mechanism", "sd", "above the least"]))
            tbody { @for (choice, above) in solved.families() {
                @let is_planned = std::ptr::eq(choice, &solved.plan.best);
                tr.planned[is_planned] {
                    th scope="row" { code { (choice.mechanism) } (badge(is_planned)) }
                    td.number { (display::nearest(choice.sd)) } td.number { (above) }
                }
            } }
        }
    }
}

/// Marks the row of the plan.
fn badge(is_planned: bool) -> Markup {
    html! { @if is_planned { span.badge { "the plan" } } }
}

/// The guarantee if fewer owners are honest.
fn honesty(solved: &Solved) -> Markup {
    html! {
        h3 { "If fewer are honest" }
        @if solved.plan.trust == Trust::OneAggregator {
            p { "The published count relies on no other owner: if 90, 75 or 50 % of them are honest, ε is still "
                (display::claim(solved.plan.epsilon())) "." }
        } @else {
            (robustness_table(solved))
        }
    }
}

fn robustness_table(solved: &Solved) -> Markup {
    let delta = solved.request.release.map_or(0.0, |(_, delta)| delta.value());
    html! {
        table {
            (table_head(&["Honest", "ε at most", "A guess is right at most"]))
            tbody { @for (share, epsilon) in &solved.plan.robustness {
                tr {
                    th scope="row" { (display::percent(share.to_f64(), 0, Rounding::Nearest)) }
                    td.number { (display::claim(*epsilon)) } td.number { (best_guess(*epsilon, delta)) }
                }
            } }
        }
    }
}

/// The cost of a bound that holds even if nobody is honest.
fn tradeoff(tradeoff: &[Tradeoff], planned: Option<f64>) -> Markup {
    html! {
        @if !tradeoff.is_empty() {
            h3 { "The cost of protection that relies on nobody" }
            (scrolling_table("Linked ε against the error", &tradeoff_table(tradeoff, planned)))
        }
    }
}

fn tradeoff_table(tradeoff: &[Tradeoff], planned: Option<f64>) -> Markup {
    html! {
        table {
            (table_head(&["linked ε at most", "sd"]))
            tbody { @for entry in tradeoff {
                @let is_planned = entry.linked == planned;
                tr.planned[is_planned] {
                    th scope="row" { (bound_words(entry.linked)) (badge(is_planned)) }
                    td.number { (display::nearest(entry.sd)) }
                }
            } }
        }
    }
}

fn bound_words(linked: Option<f64>) -> String {
    linked.map_or("none".to_owned(), |linked| linked.to_string())
}

fn charts(solved: &Solved, fields: &FormFields) -> Markup {
    let path = format!("/pages/ask/chart?{}", fields.query(reading::PLANNED_FROM));
    let against = ["ε", "the number of owners", "the linked ε"];
    let drawn = if solved.plan.tradeoff.is_empty() { 2 } else { 3 };
    html! {
        @for (number, what) in against.into_iter().enumerate().take(drawn) {
            figure.chart {
                img src=(format!("{path}&chart={number}")) width="500" height="520" loading="lazy"
                    alt=(format!("Chart of the error of each family against {what}, with the plan marked"));
            }
        }
    }
}
