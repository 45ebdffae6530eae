//! Guarantees of every view.

use serde_json::{Value, json};
use uptack::privacy::{Enclosure, Guarantee, Repeated, Target, Views};

/// The `views` of a privacy card.
pub fn views_json(views: &Views) -> Value {
    json!({
        "answers": views.answers,
        "linked": views.linked,
        "one_aggregator": views.one_aggregator.map(pure_json),
        "release": views.release.json(),
        "owners_alone": views.owners_alone.as_ref().map(Guarantee::json),
        "answers_with_release": views.answers_with_release.iter().map(Guarantee::json).collect::<Vec<_>>(),
    })
}

/// The `repeated` of a privacy card.
pub fn repeated_json(repeated: &Repeated, target: Target) -> Value {
    json!({
        "times": repeated.times,
        "answers": repeated.answers,
        "linked": repeated.linked,
        "one_aggregator": repeated.one_aggregator.map(pure_json),
        "release": target.json(repeated.release),
    })
}

/// A guarantee whose δ is 0.
fn pure_json(epsilon: Enclosure) -> Value {
    json!({"epsilon": {"lower": epsilon.lower(), "upper": epsilon.upper()}, "delta": 0})
}
