//! Plans with noise that the aggregators add, as users meet them.

use std::fs;

use serde_json::Value;

use crate::{Folder, json, run};

const CROWD: [&str; 6] = ["--owners", "50000", "--yes", "500", "--epsilon", "1"];

fn plan(more: &[&str]) -> Value {
    json(&[&["plan"], &CROWD[..], more, &["--json"]].concat())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn refusal(more: &[&str]) -> String {
    let output = run(&[&["plan"], &CROWD[..], more].concat());
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_plan_states_its_noise_and_what_the_linked_bound_costs() {
    let nine = plan(&["--noise", "aggregators", "--linked-epsilon", "9"]);
    assert!((number(&nine["sd"]) / 3.139 - 1.0).abs() < 0.01, "{}", nine["sd"]);
    assert!(number(&nine["views"]["linked"]) <= 9.0);
    assert_eq!(
        (nine["noise"]["law"].as_str(), nine["trust"].as_str()),
        (Some("discrete-laplace"), Some("one-aggregator"))
    );
    assert!(nine["noise"]["scale"].is_string() && number(&nine["gap"]) < 0.004);
    let tradeoff = nine["tradeoff"].as_array().unwrap();
    assert_eq!(tradeoff[0]["linked"], Value::Null);
    assert!((number(&tradeoff[0]["sd"]) / 1.919 - 1.0).abs() < 0.01);
    assert!(tradeoff.iter().any(|entry| entry["linked"] == 9.0 && entry["sd"] == nine["sd"]));
    let none = plan(&["--noise", "aggregators", "--linked-epsilon", "none"]);
    assert_eq!(none["mechanism"], "randomized-response(t=1) + laplace(scale=1)");
    assert_eq!(none["views"]["linked"], Value::Null);
}

/// Nothing is planned without a finite linked ε unless somebody says so.
#[test]
fn the_usual_bound_on_the_linked_epsilon_is_that_of_the_guides_policies() {
    for more in [&["--noise", "aggregators"][..], &["--trust", "one-aggregator"]] {
        let usual = plan(more);
        let linked = number(&usual["views"]["linked"]);
        assert!(linked <= uptack::plan::USUAL_LINKED_EPSILON && linked > 7.9, "{linked}");
        assert_eq!(usual["noise"]["law"], "discrete-laplace");
    }
    for guide in ["tutorial.md", "deployment.md"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(guide);
        let text = fs::read_to_string(path).unwrap();
        let card = text.split("[card]").nth(1).unwrap();
        assert!(card.contains(&format!("linked = {:.1}", uptack::plan::USUAL_LINKED_EPSILON)), "{guide}");
    }
}

#[test]
fn without_the_flags_nothing_changes() {
    let small = ["plan", "--owners", "2000", "--yes", "20", "--epsilon", "1", "--delta", "1e-6", "--json"];
    let before = json(&small);
    assert_eq!((&before["noise"], before["trust"].as_str()), (&Value::Null, Some("owners")));
    assert_eq!(before["tradeoff"], serde_json::json!([]));
    let same = json(&[&small[..], &["--noise", "none", "--trust", "owners", "--linked-epsilon", "none"]].concat());
    assert_eq!(before, same);
}

#[test]
fn what_cannot_be_planned_is_explained() {
    for (more, words) in [
        (&["--noise", "none", "--trust", "one-aggregator"][..], "hides nobody"),
        (&["--noise", "aggregators", "--form", "several"], "several answers"),
        (&["--noise", "aggregators", "--mechanism", "blended"], "several answers"),
        (&["--noise", "aggregators", "--error", "1"], "linked-epsilon binds"),
        (&["--noise", "aggregators", "--linked-epsilon", "many"], "a number, or none"),
    ] {
        let text = refusal(more);
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn epsilon_is_solved_for_and_owners_do_not_help() {
    let crowd = ["plan", "--owners", "50000", "--yes", "500", "--noise", "aggregators", "--error", "6", "--json"];
    let solved = json(&crowd);
    assert_eq!(solved["solved"]["name"], "epsilon");
    assert!(number(&solved["sd"]) <= 6.0 && number(&solved["solved"]["value"]) < 0.6, "{}", solved["solved"]);
    let text = String::from_utf8(
        run(&["plan", "--yes", "500", "--epsilon", "1", "--error", "6", "--noise", "aggregators"]).stdout,
    );
    assert!(text.unwrap().contains("more of them only add to it"));
}

#[test]
fn the_chart_has_the_tradeoff() {
    let folder = Folder::new("plan-noise-chart");
    let path = folder.0.join("noise.svg");
    plan(&["--noise", "aggregators", "--chart", path.to_str().unwrap()]);
    let svg = fs::read_to_string(path).unwrap();
    assert!(svg.contains("Error against the linked ε") && svg.contains("one honest aggregator"));
}
