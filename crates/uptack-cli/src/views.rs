//! Guarantees of every view as a table.

use uptack::answer_name;
use uptack::display::lower_end;
use uptack::privacy::{Enclosure, Guarantee, Target, View, Views};

use crate::output::{Table, grouped, readable_up};

/// All views as a table; ε and δ are the upper ends, which are what is claimed.
pub(crate) fn views_table(views: &Views) -> String {
    match views.one_aggregator {
        Some(epsilon) => views_by_trust(views, epsilon),
        None => plain_views(views),
    }
}

fn plain_views(views: &Views) -> String {
    let mut table = Table::new(&["view", "ε", "δ", "worst crowd", "certificate"]);
    for (answer, &epsilon) in views.answers.iter().enumerate() {
        let delta = if epsilon.is_some() { "0" } else { "" };
        table.row([format!("answer {}", answer_name(answer)), readable_up(epsilon), delta.to_owned()]);
    }
    let delta = if views.linked.is_some() { "0" } else { "" };
    table.row(["linked".to_owned(), readable_up(views.linked), delta.to_owned()]);
    for claim in std::iter::once(&views.release).chain(&views.answers_with_release) {
        table.row(guarantee_row(claim));
    }
    table.render()
}

/// The same where aggregators add noise: each view with who must be honest for it.
fn views_by_trust(views: &Views, one_aggregator: Enclosure) -> String {
    let owners = format!("{} owners", grouped(views.release.owners()));
    let mut table = Table::new(&["view", "holds if these are honest", "ε", "δ", "worst crowd", "certificate"]);
    let delta = if views.linked.is_some() { "0" } else { "" };
    table.row(["linked".to_owned(), "nobody".to_owned(), readable_up(views.linked), delta.to_owned()]);
    let (epsilon, name) = (readable_up(one_aggregator.upper()), "one aggregator".to_owned());
    table.row([name.clone(), name, epsilon, "0".to_owned(), "any".to_owned(), "exact".to_owned()]);
    for claim in std::iter::once(&views.release).chain(&views.owners_alone).chain(&views.answers_with_release) {
        let honest = match claim.view() {
            View::Release => format!("one aggregator and {owners}"),
            View::OwnersAlone => owners.clone(),
            View::AnswerWithRelease(_) => "nobody".to_owned(),
        };
        let [view, rest @ ..] = guarantee_row(claim);
        table.row([view, honest].into_iter().chain(rest));
    }
    table.render()
}

fn guarantee_row(claim: &Guarantee) -> [String; 5] {
    let upper = claim.value().map(|ends| ends.upper());
    let (epsilon, delta) = match claim.target() {
        Target::Delta(delta) => {
            let floor = || format!("≥ {}", lower_end(claim.floor()));
            (readable_up(upper), upper.map_or_else(floor, |_| readable_up(delta.value())))
        }
        Target::Epsilon(epsilon) => (readable_up(epsilon.value()), readable_up(upper)),
    };
    let certificate = match (upper, claim.certificate().closed()) {
        (None, _) => "exact".to_owned(),
        (_, true) => "closed".to_owned(),
        (_, false) => format!("open, gap {}", readable_up(claim.certificate().gap())),
    };
    [claim.view().to_string(), epsilon, delta, format!("{} yes", grouped(claim.crowd())), certificate]
}
