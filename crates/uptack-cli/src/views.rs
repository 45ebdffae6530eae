//! Guarantees of every view, as JSON and as a table.

use serde_json::{Value, json};
use uptack::answer_name;
use uptack::display::lower_end;
use uptack::privacy::{Guarantee, Repeated, Target, Views};

use crate::output::{Table, grouped, readable_up};

/// The `views` of a privacy card.
pub(crate) fn views_json(views: &Views) -> Value {
    json!({
        "answers": views.answers,
        "linked": views.linked,
        "release": views.release.json(),
        "answers_with_release": views.answers_with_release.iter().map(Guarantee::json).collect::<Vec<_>>(),
    })
}

/// The `repeated` of a privacy card.
pub(crate) fn repeated_json(repeated: &Repeated, target: Target) -> Value {
    json!({
        "times": repeated.times,
        "answers": repeated.answers,
        "linked": repeated.linked,
        "release": target.json(repeated.release),
    })
}

/// All views as a table; ε and δ are the upper ends, which are what is claimed.
pub(crate) fn views_table(views: &Views) -> String {
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
