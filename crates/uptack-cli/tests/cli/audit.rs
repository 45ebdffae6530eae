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

/// The coins are real, so the confidence is high: a sound sampler fails with probability at most 1e-9.
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

/// What is broken on purpose is not in a build for use; the gate asks its release, too.
#[cfg(not(debug_assertions))]
#[test]
fn broken_controls_are_not_built_in() {
    let output = run(&["audit", "randomized-response(0.8)", "--broken", "reused-coin"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--broken"));
    assert!(!String::from_utf8_lossy(&run(&["audit", "--help"]).stdout).contains("--broken"));
}

#[cfg(debug_assertions)]
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

/// Randomized response that keeps the truth so often, of a hundred times, as an AWK program.
fn response(seed: u32, keep: &str) -> String {
    format!("BEGIN {{srand({seed})}} {{print (rand() < {keep}) ? $1 : 1 - $1}}")
}

fn audit_awk(epsilon: f64, samples: &str, program: &str) -> Value {
    let epsilon = epsilon.to_string();
    let options = ["audit", "--json", "--confidence", "0.95", "--claimed-epsilon", &epsilon, "--samples", samples];
    let output = run(&[&options[..], &["--", "awk", program]].concat());
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["verdict"] == "violated", output.status.code() == Some(2));
    document
}

#[test]
fn ten_correct_commands_are_not_accused() {
    for (seed, keep) in (1..).zip(["0.5", "0.55", "0.6", "0.65", "0.7", "0.75", "0.8", "0.85", "0.9", "0.95"]) {
        let share: f64 = keep.parse().unwrap();
        let document = audit_awk((share / (1.0 - share)).ln(), "4e4", &response(seed, keep));
        assert_eq!(document["verdict"], "consistent", "{document}");
    }
}

#[test]
fn a_command_that_is_off_by_one_is_found() {
    let document = audit_awk(3f64.ln(), "4e5", &response(1, "0.76"));
    assert_eq!(document["views"]["output"]["verdict"], "violated", "{document}");
    assert_eq!(document["claimed"]["delta"], 0.0);
}

/// Without a claim the audit says what is proved, in the views that every audit has.
#[test]
fn a_command_of_which_nothing_is_claimed_is_measured() {
    let output = run(&["audit", "--json", "--samples", "4e4", "--", "awk", &response(2, "0.9")]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["claimed"]["epsilon"], &document["verdict"]), (&Value::Null, &"consistent".into()));
    let linked = &document["views"]["linked"];
    assert_eq!((&document["views"]["answers"][0], &document["views"]["release"]), (linked, &Value::Null));
    let proved = linked["observed_lower"].as_f64().unwrap();
    assert!(proved > 1.9 && proved < 9f64.ln(), "{document}");
}

#[test]
fn a_command_that_leaks_by_length_is_found() {
    let program = "{n++; printf($1 ? \"%09dx\\n\" : \"%08dx\\n\", n)}";
    let document = audit_awk(1.0, "2e4", program);
    assert_eq!(document["views"]["length"]["verdict"], "violated", "{document}");
    assert_eq!(document["views"]["output"]["verdict"], "consistent", "{document}");
    assert_eq!(document["views"]["size"], Value::Null);
}

#[test]
fn commands_that_say_too_much_or_too_little_are_refused() {
    for (program, part) in [
        ("NR < 10", "9 lines"),
        ("{print; print}", "more lines"),
        ("END {exit 3}{print}", "failed"),
        ("BEGIN {for (i = 0; i < 70000; i++) printf(\"x\")}", "65536 bytes"),
    ] {
        let options = ["audit", "--claimed-epsilon", "1", "--samples", "2000", "--", "awk", program];
        let output = run(&options);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{program}: {told}");
        assert!(told.contains(part) && output.stdout.is_empty(), "{program}: {told}");
    }
    for (arguments, part) in [
        (&["audit", "--claimed-epsilon", "1", "--", "/no/such/program"][..], "no such program"),
        (&["audit", "--claimed-epsilon", "1"][..], "COMMAND"),
        (&["audit", "--claimed-epsilon=-1", "--", "awk", "{print}"][..], "epsilon"),
        (&["audit", "--claimed-epsilon", "1", "--samples", "10", "--", "awk", "{print}"][..], "samples"),
        (
            &["audit", "randomized-response(0.8)", "--claimed-epsilon", "1", "--", "awk", "{print}"][..],
            "cannot be used",
        ),
    ] {
        let output = run(arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && told.contains(part), "{arguments:?}: {told}");
    }
}
