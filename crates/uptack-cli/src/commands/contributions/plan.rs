//! `uptack plan` for options and counts, and the trade-off that every plan with noise prints.

use serde_json::Value;
use uptack::plan::{PlannedContributions, SolvedContributions, Tradeoff};
use uptack_document::planned_views;

use super::privacy::views_table;
use crate::failure::Result;
use crate::layout::joined;
use crate::output::{Table, grouped, print, print_json, readable};

pub(crate) fn print_plan(solved: &SolvedContributions, document: &Value, json: bool) -> Result<()> {
    if json { print_json(document) } else { print(&describe(solved)?) }
}

fn describe(solved: &SolvedContributions) -> Result<String> {
    let best = &solved.plan.best;
    let sentences = [solved.solved_words(), Some(batch_words(solved)), solved.linked_words()];
    Ok(format!(
        "{}\n\nError of one count: {} (standard deviation), ± {} at 95 %.\n{}\n\n{}{}{}{}",
        best.mechanism,
        readable(best.sd),
        readable(best.interval95_halfwidth),
        joined(sentences.into_iter().flatten(), "\n"),
        views_table(&planned_views(solved, best)?),
        alternatives_table(solved),
        tradeoff_table(&solved.plan.tradeoff, solved.request.linked_epsilon),
        solved.tradeoff_words().map(|words| format!("\n{words}\n")).unwrap_or_default(),
    ))
}

/// What the claims are about.
fn batch_words(solved: &SolvedContributions) -> String {
    let counts = match solved.plan.best.mechanism.counts() {
        1 => "the count".to_owned(),
        counts => format!("all {} counts together", grouped(counts as u64)),
    };
    format!("Claims are for {counts}. Batches below {} are not released.", grouped(solved.plan.minimum_batch))
}

fn alternatives_table(solved: &SolvedContributions) -> String {
    let alternatives = &solved.plan.alternatives;
    if alternatives.is_empty() {
        return String::new();
    }
    let row = |choice: &PlannedContributions, is_plan| {
        [choice.mechanism.to_string(), readable(choice.sd), plan_mark(is_plan)]
    };
    let rows =
        std::iter::once(row(&solved.plan.best, true)).chain(alternatives.iter().map(|choice| row(choice, false)));
    format!("\n{}", Table::new(&["mechanism", "sd", ""]).with_rows(rows).render())
}

/// What a bound on the linked ε costs; nothing without noise.
pub(crate) fn tradeoff_table(tradeoff: &[Tradeoff], planned: Option<f64>) -> String {
    if tradeoff.is_empty() {
        return String::new();
    }
    let rows = tradeoff.iter().map(|entry| {
        let linked = entry.linked.map_or("none".to_owned(), |linked| linked.to_string());
        [linked, readable(entry.sd), plan_mark(entry.linked == planned)]
    });
    let table = Table::new(&["linked ε at most", "sd", ""]).with_rows(rows);
    format!("\nThe cost of protection that holds even if nobody is honest:\n\n{}", table.render())
}

pub(crate) fn plan_mark(is_plan: bool) -> String {
    if is_plan { "the plan".to_owned() } else { String::new() }
}
