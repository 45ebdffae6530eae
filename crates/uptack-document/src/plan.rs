//! A plan.

use serde_json::{Value, json};
use uptack::plan::{Choice, Plan, Rule, Solved, Trust, Unknown};

use crate::views::views_json;

/// A plan, its alternatives and what was solved for.
pub fn plan_json(solved: &Solved) -> Value {
    let plan = &solved.plan;
    let mut document = choice_json(&plan.best, plan.minimum_batch);
    document["alternatives"] = alternatives_json(plan);
    document["solved"] = json!({"name": unknown_name(solved.unknown), "value": solved.value()});
    document["owners"] = json!(plan.owners);
    document["claim_owners"] = json!(plan.claim_owners);
    document["robustness"] = robustness_json(plan);
    document["accounting_calls"] = json!(plan.calls);
    document["gap"] = json!(plan.gap);
    document["tradeoff"] = tradeoff_json(plan);
    document["trust"] = json!(trust_name(plan.trust));
    document["rule"] = json!(rule_name(plan.rule));
    document
}

fn alternatives_json(plan: &Plan) -> Value {
    plan.alternatives.iter().map(|choice| choice_json(choice, plan.minimum_batch)).collect()
}

fn robustness_json(plan: &Plan) -> Value {
    let degraded = plan.robustness.iter();
    degraded.map(|(honest, epsilon)| json!({"honest": honest.to_f64(), "epsilon": epsilon})).collect()
}

fn tradeoff_json(plan: &Plan) -> Value {
    plan.tradeoff.iter().map(|entry| json!({"linked": entry.linked, "sd": entry.sd})).collect()
}

fn unknown_name(unknown: Unknown) -> &'static str {
    match unknown {
        Unknown::Error => "error",
        Unknown::Epsilon => "epsilon",
        Unknown::Owners => "owners",
    }
}

fn trust_name(trust: Trust) -> &'static str {
    match trust {
        Trust::OneAggregator => "one-aggregator",
        Trust::Owners => "owners",
    }
}

fn rule_name(rule: Rule) -> &'static str {
    match rule {
        Rule::Best => "best",
        Rule::Simplest(_) => "simplest",
    }
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
