//! A plan.

use serde_json::{Value, json};
use uptack::plan::{Choice, Plan, Request, Rule, Trust};

use crate::views::views_json;

/// A plan, what was asked for in the end, and what was solved for.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The request with what was solved for in it.
    pub request: Request,
    /// The plan.
    pub plan: Plan,
    /// The name of what was solved for, and its value.
    pub solved: (&'static str, f64),
}

impl Outcome {
    /// One JSON document.
    pub fn json(&self) -> Value {
        let mut document = choice_json(&self.plan.best, self.plan.minimum_batch);
        let alternative = |choice: &Choice| choice_json(choice, self.plan.minimum_batch);
        document["alternatives"] = self.plan.alternatives.iter().map(alternative).collect();
        document["solved"] = json!({"name": self.solved.0, "value": self.solved.1});
        document["owners"] = json!(self.plan.owners);
        document["claim_owners"] = json!(self.plan.claim_owners);
        let degraded = self.plan.robustness.iter();
        document["robustness"] =
            degraded.map(|(honest, epsilon)| json!({"honest": honest.to_f64(), "epsilon": epsilon})).collect();
        document["accounting_calls"] = json!(self.plan.calls);
        document["gap"] = json!(self.plan.gap);
        let bounds = self.plan.tradeoff.iter();
        document["tradeoff"] = bounds.map(|entry| json!({"linked": entry.linked, "sd": entry.sd})).collect();
        document["trust"] = json!(match self.plan.trust {
            Trust::OneAggregator => "one-aggregator",
            Trust::Owners => "owners",
        });
        document["rule"] = json!(match self.plan.rule {
            Rule::Best => "best",
            Rule::Simplest(_) => "simplest",
        });
        document
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
