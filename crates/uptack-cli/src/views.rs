//! Guarantees of every view as a table.

use std::iter;

use uptack::answer_name;
use uptack::display::lower_end;
use uptack::privacy::{Enclosure, Guarantee, Target, View, Views};

use crate::output::{Table, grouped, readable_up};

/// All views as a table; ε and δ are upper ends, because those are what is claimed.
pub(crate) fn views_table(views: &Views) -> String {
    match views.one_aggregator {
        Some(epsilon) => views_by_trust(views, epsilon),
        None => plain_views(views),
    }
}

fn plain_views(views: &Views) -> String {
    let mut table = Table::new(&["view", "ε", "δ", "worst crowd", "certificate"]);
    for (answer, &epsilon) in views.answers.iter().enumerate() {
        table.row(pure_row(format!("answer {}", answer_name(answer)), epsilon));
    }
    table.row(pure_row("linked".to_owned(), views.linked));
    let claims = iter::once(&views.release).chain(&views.answers_with_release);
    table.with_rows(claims.map(guarantee_row)).render()
}

/// The same for mechanisms with aggregators' noise: each view with the parties that must be honest for it.
fn views_by_trust(views: &Views, one_aggregator: Enclosure) -> String {
    let mut table = Table::new(&["view", "holds if these are honest", "ε", "δ", "worst crowd", "certificate"]);
    let [epsilon, delta] = pure_cells(views.linked);
    table.row(["linked", "nobody", &epsilon, &delta]);
    let epsilon = readable_up(one_aggregator.upper());
    table.row(["one aggregator", "one aggregator", &epsilon, "0", "any", "exact"]);
    let claims = iter::once(&views.release).chain(&views.owners_alone).chain(&views.answers_with_release);
    table.with_rows(claims.map(|claim| trusting_row(claim, views.release.owners()))).render()
}

/// A row of [`guarantee_row`] with the parties that must be honest, after the view.
fn trusting_row(claim: &Guarantee, owners: u64) -> [String; 6] {
    let [view, epsilon, delta, crowd, certificate] = guarantee_row(claim);
    [view, honest_parties(claim.view(), owners), epsilon, delta, crowd, certificate]
}

fn pure_row(view: String, epsilon: Option<f64>) -> [String; 3] {
    let [epsilon, delta] = pure_cells(epsilon);
    [view, epsilon, delta]
}

/// ε and δ of a guarantee whose δ is 0; without a guarantee there is no δ either.
fn pure_cells(epsilon: Option<f64>) -> [String; 2] {
    let delta = if epsilon.is_some() { "0" } else { "" };
    [readable_up(epsilon), delta.to_owned()]
}

fn honest_parties(view: View, owners: u64) -> String {
    let owners = format!("{} owners", grouped(owners));
    match view {
        View::Release => format!("one aggregator and {owners}"),
        View::OwnersAlone => owners,
        View::AnswerWithRelease(_) => "nobody".to_owned(),
    }
}

fn guarantee_row(claim: &Guarantee) -> [String; 5] {
    let [epsilon, delta] = epsilon_and_delta(claim);
    [claim.view().to_string(), epsilon, delta, format!("{} yes", grouped(claim.crowd())), certificate(claim)]
}

fn epsilon_and_delta(claim: &Guarantee) -> [String; 2] {
    let upper = claim.value().map(|ends| ends.upper());
    match (claim.target(), upper) {
        (Target::Delta(delta), Some(_)) => [readable_up(upper), readable_up(delta.value())],
        (Target::Delta(_), None) => [readable_up(upper), format!("≥ {}", lower_end(claim.floor()))],
        (Target::Epsilon(epsilon), _) => [readable_up(epsilon.value()), readable_up(upper)],
    }
}

fn certificate(claim: &Guarantee) -> String {
    let certificate = claim.certificate();
    if claim.value().is_none() {
        "exact".to_owned()
    } else if certificate.closed() {
        "closed".to_owned()
    } else {
        format!("open, gap {}", readable_up(certificate.gap()))
    }
}
