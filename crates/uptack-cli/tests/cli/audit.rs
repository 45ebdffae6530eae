//! The auditor, from outside.

use serde_json::Value;

use crate::{json, run};

const SEEDED: [&str; 4] = ["--samples", "1e6", "--seed", "1"];

#[test]
fn every_field_and_a_verdict() {
    let arguments = [&["audit", "paired(b=0.5,sy=0.2,sn=0.05)", "--json"], &SEEDED[..]].concat();
    let document = json(&arguments);
    assert_eq!(document["verdict"], "consistent");
    assert_eq!(document["views"]["answers"].as_array().unwrap().len(), 2);
    let views = [&document["views"]["answers"][0], &document["views"]["linked"], &document["views"]["release"]];
    for view in views.into_iter().chain([&document["coins"]["length"], &document["coins"]["neighbour"]]) {
        let (claimed, observed) = (view["claimed"].as_f64().unwrap(), view["observed_lower"].as_f64().unwrap());
        assert!(observed <= claimed && observed >= 0.0);
        assert_eq!(view["verdict"], "consistent");
        assert!(view.get("event").is_some());
    }
    let event = &document["views"]["linked"]["event"];
    assert_eq!(event["speaks_for"], "yes");
    assert_eq!(event["description"], "the cell is 12 (single and batch)");
    assert!(event["yes"]["hits"].as_u64().unwrap() > event["no"]["hits"].as_u64().unwrap());
    assert!(document["samples"].as_u64().unwrap() <= 1_000_000);
    assert_eq!(run(&arguments).stdout, run(&arguments).stdout);
}

#[test]
fn no_claim_is_null_and_always_consistent() {
    let document = json(&[&["audit", "sampling(0.05,0.05)", "--json"], &SEEDED[..]].concat());
    assert_eq!(document["views"]["linked"]["claimed"], Value::Null);
    assert!(document["views"]["linked"]["observed_lower"].as_f64().unwrap() > 5.0);
    assert_eq!(document["verdict"], "consistent");
}

/// The coins are real, so the confidence is high: a sound sampler is accused with probability 1e-9 at most.
#[test]
fn the_systems_coins_are_the_default() {
    let arguments = ["audit", "normal-form(f=0.5,r=0.05)", "--samples", "2e5", "--confidence", "0.999999999"];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("answer A") && text.ends_with("consistent\n"), "{text}");
}

#[test]
fn impossible_audits_are_refused() {
    for (more, part) in [
        (["--samples", "100"], "too few"),
        (["--owners", "0"], "owners"),
        (["--owners", "1e7"], "too few"),
        (["--delta", "0"], "delta"),
        (["--delta", "2"], "delta"),
        (["--confidence", "1"], "confidence"),
        (["--seed", "x"], "whole number"),
    ] {
        let output = run(&[&["audit", "randomized-response(0.8)", "--json"], &more[..]].concat());
        assert_eq!(output.status.code(), Some(1), "{more:?}");
        assert!(output.stdout.is_empty());
        assert!(String::from_utf8_lossy(&output.stderr).contains(part), "{more:?}");
    }
}

/// What is broken on purpose is not in a build for use.
#[cfg(not(feature = "broken-controls"))]
#[test]
fn broken_controls_are_not_built_in() {
    let output = run(&["audit", "randomized-response(0.8)", "--broken", "reused-coin"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--broken"));
    assert!(!String::from_utf8_lossy(&run(&["audit", "--help"]).stdout).contains("--broken"));
}

#[cfg(feature = "broken-controls")]
#[test]
fn broken_controls_are_caught_and_exit_with_two() {
    for control in
        ["last-output-unprotected", "biased-threshold", "reused-coin", "truth-dependent-length", "wrong-branch"]
    {
        let output = run(&["audit", "randomized-response(0.8)", "--seed", "1", "--json", "--broken", control]);
        assert_eq!(output.status.code(), Some(2), "{control}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["verdict"], "violated", "{control}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("contradicts"), "{control}");
    }
    assert_eq!(run(&["audit", "randomized-response(0.8)", "--broken", "sound"]).status.code(), Some(1));
}
