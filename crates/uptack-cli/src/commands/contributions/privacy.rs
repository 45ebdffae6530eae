//! `uptack privacy` of a mechanism with options.

use uptack::contribution::Contributions;
use uptack::display::lower_end;
use uptack::privacy::contributions::{ContributionViews, statement};
use uptack::privacy::{Guarantee, Target, WorkLimit};
use uptack_document::contribution_privacy_json;

use crate::failure::Result;
use crate::layout;
use crate::output::{Table, grouped, print_result, readable_up};

/// Longer lines of running text are hard to read.
const LONGEST_LINE: usize = 100;

pub(crate) fn run_privacy(
    asked: &Contributions,
    owners: u64,
    target: Target,
    (repeat, limit): (Option<u64>, WorkLimit),
    json: bool,
) -> Result<()> {
    let views = ContributionViews::of(asked, owners, target, limit)?;
    let repeated = repeat.map(|times| views.repeated(times)).transpose()?;
    let words = statement(&views, repeated.as_ref())?;
    let document = contribution_privacy_json(&views, repeated.as_ref(), &words);
    print_result(json, &document, || describe(&views, &words))
}

fn describe(views: &ContributionViews, statement: &str) -> String {
    let (asked, owners) = (views.contributions(), grouped(views.release.owners()));
    let statement = layout::fitted(statement, layout::width().min(LONGEST_LINE));
    format!("{asked}, {owners} honest owners\n\n{}\n{statement}\n", views_table(views))
}

/// Every view with the parties that must be honest for it; ε and δ are upper ends, because those are the claims.
pub(super) fn views_table(views: &ContributionViews) -> String {
    let mut table = Table::new(&["view", "holds if these are honest", "ε", "δ", "certificate"]);
    let delta = if views.linked.is_some() { "0" } else { "" };
    table.row(["linked", "nobody", &readable_up(views.linked), delta, "exact"]);
    if let Some(epsilon) = views.one_aggregator {
        // The ends of an exact claim are at most one decimal apart.
        let is_exact = epsilon.upper() - epsilon.lower() < 2e-12;
        let certificate = if is_exact { "exact" } else { "upper bound" };
        table.row(["one aggregator", "one aggregator", &readable_up(epsilon.upper()), "0", certificate]);
    }
    let owners = format!("{} owners", grouped(views.release.owners()));
    let release = if views.one_aggregator.is_some() { format!("one aggregator and {owners}") } else { owners.clone() };
    table.row(guarantee_row("release", release, &views.release));
    if let Some(alone) = &views.owners_alone {
        table.row(guarantee_row("owners alone", owners, alone));
    }
    table.render()
}

fn guarantee_row(view: &str, honest: String, claim: &Guarantee) -> [String; 5] {
    let upper = claim.value().map(|ends| ends.upper());
    let [epsilon, delta] = match (claim.target(), upper) {
        (Target::Delta(delta), Some(_)) => [readable_up(upper), readable_up(delta.value())],
        (Target::Delta(_), None) => [readable_up(upper), format!("≥ {}", lower_end(claim.floor()))],
        (Target::Epsilon(epsilon), _) => [readable_up(epsilon.value()), readable_up(upper)],
    };
    [view.to_owned(), honest, epsilon, delta, certificate(claim)]
}

fn certificate(claim: &Guarantee) -> String {
    let certificate = claim.certificate();
    match claim.value() {
        None => "exact".to_owned(),
        Some(_) if certificate.closed() => "closed".to_owned(),
        Some(_) => format!("open, gap {}", readable_up(certificate.gap())),
    }
}
