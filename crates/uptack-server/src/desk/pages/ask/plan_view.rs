//! A plan as people read it.

use maud::{Markup, html};
use uptack::{
    display::{self, Rounding, grouped},
    plan::{Solved, Trust, Unknown},
};

use super::{form, planning::Planned, wanted::Fault};
use crate::desk::pages::{card_view::best_guess, fields::Fields};

/// The fields that a plan follows from.
const PLANNED_FROM: &[&str] = form::NAMES.split_at(10).0;

pub(super) fn fault(fault: &Fault) -> Markup {
    html! {
        h2 { "The plan" }
        p.fault { a href=(format!("#{}", fault.field)) { (form::label(fault.field)) } ": " (fault.words) }
    }
}

/// What stands there until there is a plan; the script asks again.
pub(super) fn waiting(words: &str) -> Markup {
    html! { h2 { "The plan" } p.waiting { (words) } }
}

pub(super) fn planned(planned: &Planned, fields: &Fields) -> Markup {
    match planned {
        Planned::Impossible(words) => html! {
            h2 { "There is no such plan" }
            p.fault { (words) }
        },
        Planned::Plan { solved, statement } => plan(solved, statement, fields),
    }
}

fn plan(solved: &Solved, statement: &str, fields: &Fields) -> Markup {
    html! {
        h2 { "The plan" }
        (headline(solved))
        p { (solved.solved_words()) }
        @for sentence in solved.trust_words() { p { (sentence) } }
        details { summary { "In plain words" } @for line in statement.lines().filter(|line| !line.is_empty()) { p { (line) } } }
        (charts(solved, fields))
        (families(solved))
        (honesty(solved))
        (tradeoff(solved))
    }
}

/// The error in people and per cent, and what was solved for.
fn headline(solved: &Solved) -> Markup {
    let best = &solved.plan.best;
    let halfwidth = best.interval95_halfwidth;
    let owners = solved.request.owners;
    let yes = solved.request.yes.high;
    let percent = |share: f64| display::percent(share, 2, Rounding::Up);
    html! {
        @match solved.unknown {
            Unknown::Error => {},
            Unknown::Epsilon => p.headline { "ε = " strong { (display::claim(solved.value())) } },
            Unknown::Owners => p.headline { strong { (grouped(solved.plan.owners)) } " owners" },
        }
        p.headline { "± " strong { (display::nearest(halfwidth)) } " people at 95 %" }
        p {
            "That is " (percent(halfwidth / owners.max(1) as f64)) " of " (grouped(owners)) " owners"
            @if yes > 0 { " and " (percent(halfwidth / yes as f64)) " of " (grouped(yes)) " yes" }
            "; standard deviation " (display::nearest(best.sd)) "."
        }
        p { "Mechanism: " code { (best.mechanism) } }
    }
}

fn families(solved: &Solved) -> Markup {
    html! {
        h3 { "The best of each family" }
        div.scroll tabindex="0" role="group" aria-label="The best of each family" {
            table {
                thead { tr {
                    th scope="col" { "Mechanism" } th scope="col" { "sd" } th scope="col" { "above the least" }
                } }
                tbody { @for (choice, above) in solved.families() {
                    @let is_planned = std::ptr::eq(choice, &solved.plan.best);
                    tr.planned[is_planned] {
                        th scope="row" { code { (choice.mechanism) } @if is_planned { span.badge { "the plan" } } }
                        td.number { (display::nearest(choice.sd)) } td.number { (above) }
                    }
                } }
            }
        }
        p.help { (solved.rule_words()) }
    }
}

/// What is left if fewer are honest.
fn honesty(solved: &Solved) -> Markup {
    let plan = &solved.plan;
    html! {
        h3 { "If fewer are honest" }
        @if plan.trust == Trust::OneAggregator {
            p { "What is published rests on no other owner: with 90, 75 or 50 % of them honest ε stays "
                (display::claim(plan.epsilon())) "." }
        } @else {
            table {
                thead { tr { th scope="col" { "Honest" } th scope="col" { "ε at most" } th scope="col" { "A guess is right at most" } } }
                tbody { @for (share, epsilon) in &plan.robustness {
                    tr {
                        th scope="row" { (display::percent(share.to_f64(), 0, Rounding::Nearest)) }
                        td.number { (display::claim(*epsilon)) }
                        td.number { (best_guess(*epsilon, solved.request.release.map_or(0.0, |(_, delta)| delta.value()))) }
                    }
                } }
            }
        }
    }
}

/// What a bound costs that holds if nobody is honest.
fn tradeoff(solved: &Solved) -> Markup {
    html! {
        @if !solved.plan.tradeoff.is_empty() {
            h3 { "What protection costs that needs nobody's honesty" }
            div.scroll tabindex="0" role="group" aria-label="Linked ε against the error" {
                table {
                    thead { tr { th scope="col" { "linked ε at most" } th scope="col" { "sd" } } }
                    tbody { @for entry in &solved.plan.tradeoff {
                        @let is_planned = entry.linked == solved.request.linked_epsilon;
                        tr.planned[is_planned] {
                            th scope="row" {
                                (entry.linked.map_or("none".to_owned(), |linked| linked.to_string()))
                                @if is_planned { span.badge { "the plan" } }
                            }
                            td.number { (display::nearest(entry.sd)) }
                        }
                    } }
                }
            }
        }
    }
}

fn charts(solved: &Solved, fields: &Fields) -> Markup {
    let path = format!("/pages/ask/chart?{}", fields.query(PLANNED_FROM));
    let against = ["ε", "the number of owners", "the linked ε"];
    let drawn = if solved.plan.tradeoff.is_empty() { 2 } else { 3 };
    html! {
        @for (number, what) in against.into_iter().enumerate().take(drawn) {
            figure.chart {
                img src=(format!("{path}&chart={number}")) width="640" height="520" loading="lazy"
                    alt=(format!("Chart of the error of each family against {what}, with the plan marked"));
            }
        }
    }
}
