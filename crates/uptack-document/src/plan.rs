//! A plan.

use serde_json::{Value, json};
use uptack::plan::{Choice, Rule, Solved, Trust, Unknown};

use crate::views::views_json;

fn solved_name(unknown: Unknown) -> &'static str {
    match unknown {
        Unknown::Error => "error",
        Unknown::Epsilon => "epsilon",
        Unknown::Owners => "owners",
    }
}

/// A plan, its alternatives and what was solved for.
pub fn plan_json(solved: &Solved) -> Value {
    let mut document = choice_json(&solved.plan.best, solved.plan.minimum_batch);
    let alternative = |choice: &Choice| choice_json(choice, solved.plan.minimum_batch);
    document["alternatives"] = solved.plan.alternatives.iter().map(alternative).collect();
    document["solved"] = json!({"name": solved_name(solved.unknown), "value": solved.value()});
    document["owners"] = json!(solved.plan.owners);
    document["claim_owners"] = json!(solved.plan.claim_owners);
    let degraded = solved.plan.robustness.iter();
    document["robustness"] =
        degraded.map(|(honest, epsilon)| json!({"honest": honest.to_f64(), "epsilon": epsilon})).collect();
    document["accounting_calls"] = json!(solved.plan.calls);
    document["gap"] = json!(solved.plan.gap);
    let bounds = solved.plan.tradeoff.iter();
    document["tradeoff"] = bounds.map(|entry| json!({"linked": entry.linked, "sd": entry.sd})).collect();
    document["trust"] = json!(match solved.plan.trust {
        Trust::OneAggregator => "one-aggregator",
        Trust::Owners => "owners",
    });
    document["rule"] = json!(match solved.plan.rule {
        Rule::Best => "best",
        Rule::Simplest(_) => "simplest",
    });
    document
}

fn choice_json(choice: &Choice, minimum_batch: u64) -> Value {
    json!({
        "mechanism": choice.mechanism,
        "noise": choice.channel.noise(),
        "sd": choice.sd,
        "interval95_halfwidth": choice.interval95_halfwidth,
        "views": views_json(&choice.views),
        "minimum_batch": minimum_batch,
    })
}
