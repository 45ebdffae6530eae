//! A plan as JSON, and its charts, whose points are computed on all cores.

use serde_json::{Value, json};
use uptack::plan::{
    AnySolved, Plan, PlannedContributions, PlannedMechanism, Request, SelectionRule, Solved, SolvedContributions,
    Tradeoff, Trust, USUAL_DELTA, Unknown, errors_by_family,
};
use uptack::privacy::contributions::ContributionViews;
use uptack::privacy::{Delta, Target, WorkLimit};
use uptack::{Error, Progress, parallel};
use uptack_chart::{Chart, Errors, PlanCharts, Sheet};

use crate::options::contribution_views_json;
use crate::privacy::views_json;

/// A plan of whatever was asked. A plan of options or counts also has the law of one count: `p` and `q`.
pub fn any_plan_json(solved: &AnySolved) -> Result<Value, Error> {
    match solved {
        AnySolved::YesNo(solved) => {
            let mut document = plan_json(solved);
            let bit = solved.plan.best.channel.summed_bit();
            document["p"] = json!(bit.as_ref().map(|bit| bit.yes.to_f64()));
            document["q"] = json!(bit.as_ref().map(|bit| bit.no.to_f64()));
            Ok(document)
        }
        AnySolved::Contributions(solved) => contribution_plan_json(solved),
    }
}

fn contribution_plan_json(solved: &SolvedContributions) -> Result<Value, Error> {
    let plan = &solved.plan;
    let mut document = contribution_choice_json(solved, &plan.best)?;
    let alternatives = plan.alternatives.iter().map(|choice| contribution_choice_json(solved, choice));
    document["alternatives"] = Value::Array(alternatives.collect::<Result<_, _>>()?);
    document["solved"] = json!({"name": unknown_name(solved.unknown), "value": solved.value()});
    document["owners"] = json!(plan.owners);
    document["claim_owners"] = json!(plan.claim_owners);
    document["gap"] = json!(plan.gap);
    document["tradeoff"] = tradeoff_json(&plan.tradeoff);
    document["trust"] = json!(trust_name(plan.trust));
    Ok(document)
}

fn contribution_choice_json(solved: &SolvedContributions, choice: &PlannedContributions) -> Result<Value, Error> {
    let law = choice.count_law();
    Ok(json!({
        "mechanism": choice.mechanism.to_string(),
        "options": choice.mechanism.options(),
        "most": choice.mechanism.most(),
        "sd": choice.sd,
        "interval95_halfwidth": choice.interval95_halfwidth,
        "p": law.yes.to_f64(),
        "q": law.no.to_f64(),
        "noise": choice.mechanism.noise(),
        "views": contribution_views_json(&planned_views(solved, choice)?),
        "minimum_batch": solved.plan.minimum_batch,
    }))
}

/// Every view of planned contributions, for the owners whom the plan's claims count on.
pub fn planned_views(solved: &SolvedContributions, choice: &PlannedContributions) -> Result<ContributionViews, Error> {
    let delta = solved.request.release.map_or_else(|| Delta::new(USUAL_DELTA), |(_, delta)| Ok(delta))?;
    let owners = solved.plan.claim_owners;
    ContributionViews::of(&choice.mechanism, owners, Target::Delta(delta), WorkLimit::default())
}

/// A plan, its alternatives and the quantity that was solved for.
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
    document["tradeoff"] = tradeoff_json(&plan.tradeoff);
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

fn tradeoff_json(tradeoff: &[Tradeoff]) -> Value {
    tradeoff.iter().map(|entry| json!({"linked": entry.linked, "sd": entry.sd})).collect()
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

fn rule_name(rule: SelectionRule) -> &'static str {
    match rule {
        SelectionRule::Best => "best",
        SelectionRule::Simplest(_) => "simplest",
    }
}

fn choice_json(choice: &PlannedMechanism, minimum_batch: u64) -> Value {
    json!({
        "mechanism": choice.mechanism,
        "noise": choice.channel.noise(),
        "sd": choice.sd,
        "interval95_halfwidth": choice.interval95_halfwidth,
        "views": views_json(&choice.views),
        "minimum_batch": minimum_batch,
    })
}

/// The charts around a plan.
///
/// `progress` counts the points, of which there are [`sheet_points`]; if it is stopped, the remaining ones are left out.
pub fn plan_sheet(request: &Request, plan: &Plan, progress: &Progress) -> Sheet {
    let cores = parallel::cores();
    let title = "The error of each family of mechanisms".to_owned();
    Sheet { title, charts: plan_charts(request, plan, cores, progress) }
}

/// The charts of [`plan_sheet`] one by one, computed on this many threads: against ε, against the owners and, with noise,
/// against the linked ε.
pub fn plan_charts(request: &Request, plan: &Plan, threads: usize, progress: &Progress) -> Vec<Chart> {
    let charts = PlanCharts::around(request, plan);
    charts.draw(&sketches(&charts.requests(), threads, progress))
}

/// How many points a plan's charts have, each of which is a small plan.
pub fn sheet_points(request: &Request, plan: &Plan) -> u64 {
    PlanCharts::around(request, plan).requests().len() as u64
}

/// The errors at every point; none where no family meets the constraints.
fn sketches(requests: &[&Request], threads: usize, progress: &Progress) -> Vec<Errors> {
    let errors = |index: usize| {
        if progress.stopped() {
            return Errors::new();
        }
        let errors = errors_by_family(requests[index]).unwrap_or_default();
        progress.advance();
        errors
    };
    parallel::map(threads, requests.len(), errors)
}
