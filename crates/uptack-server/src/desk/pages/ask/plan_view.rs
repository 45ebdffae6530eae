//! A plan as people read it.

use maud::{Markup, html};
use uptack::{
    card::{Card, WholePlan},
    display::{self, Rounding, grouped},
    plan::{Solved, Trust, Unknown},
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

/// What follows the headline of a card with one question; `statement` is its guarantees in sentences.
pub(super) fn single(whole: &WholePlan, statement: &str, fields: &FormFields) -> Markup {
    let one = &whole.one;
    html! {
        p { (one.solved_words()) }
        @for sentence in one.trust_words() { p { (sentence) } }
        (plain_words(statement))
        (details_of_one(one, fields))
    }
}

/// What follows the headline of a card with several queries: the claims of all of them together, and one of them.
pub(super) fn several(whole: &WholePlan, card: &Card, fields: &FormFields) -> Markup {
    html! {
        (claims(card))
        (one_of_many(whole))
        (details_of_one(&whole.one, fields))
    }
}

fn details_of_one(one: &Solved, fields: &FormFields) -> Markup {
    html! {
        (charts(one, fields))
        (families(one))
        (honesty(one))
        (tradeoff(one))
    }
}

/// What the parts below are about if there are several queries.
fn one_of_many(whole: &WholePlan) -> Markup {
    html! {
        h3 { "One of the " (grouped(whole.queries)) " counts" }
        p { "All counts share the ε of the whole. Everything below is about one of them and its share: ε = "
            (display::claim(whole.one.plan.epsilon())) "." }
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
    let (solved, best) = (&whole.one, &whole.one.plan.best);
    html! {
        h2 { "The plan" }
        @match solved.unknown {
            Unknown::Error => {},
            Unknown::Epsilon => p.headline { "ε = " strong { (display::claim(whole.epsilon())) } },
            Unknown::Owners => p.headline { strong { (grouped(solved.plan.owners)) } " owners" },
        }
        p.headline { "± " strong { (display::nearest(best.interval95_halfwidth)) } " people at 95 %"
            @if whole.queries > 1 { ", for each count" } }
        (relative_error(solved))
        p { "Mechanism: " code { (best.mechanism) } }
    }
}

/// The error in per cent, and as a standard deviation.
fn relative_error(solved: &Solved) -> Markup {
    let best = &solved.plan.best;
    let (owners, yes) = (solved.request.owners, solved.request.yes.high);
    let of = |count: u64| display::percent(best.interval95_halfwidth / count as f64, 2, Rounding::Up);
    html! {
        p {
            "That is " (of(owners.max(1))) " of " (grouped(owners)) " owners"
            @if yes > 0 { " and " (of(yes)) " of " (grouped(yes)) " yes" }
            "; standard deviation " (display::nearest(best.sd)) "."
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
fn tradeoff(solved: &Solved) -> Markup {
    html! {
        @if !solved.plan.tradeoff.is_empty() {
            h3 { "The cost of protection that relies on nobody" }
            (scrolling_table("Linked ε against the error", &tradeoff_table(solved)))
        }
    }
}

fn tradeoff_table(solved: &Solved) -> Markup {
    html! {
        table {
            (table_head(&["linked ε at most", "sd"]))
            tbody { @for entry in &solved.plan.tradeoff {
                @let is_planned = entry.linked == solved.request.linked_epsilon;
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
