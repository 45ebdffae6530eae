//! `uptack algebra`, and algebra files as mechanisms.

use serde_json::{Value, json};

use crate::{Folder, json, run};

fn example(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn text(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const SAME: [(&str, &str); 4] = [
    ("plausible-deniability.alg", "blended(b1=0.05,b2=0.25,b3=0.25,f1=0.05,f2=0.4,ry=1e-4,rn=1e-4)"),
    ("cancelling.alg", "cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)"),
    ("first-attempt.alg", "paired(b=0.5,sy=0.2,sn=0.05)"),
    ("sampling.alg", "sampling(5%,2%)"),
];

#[test]
fn an_example_is_the_channel_of_the_same_numbers() {
    for (file, mechanism) in SAME {
        let document = json(&["algebra", &example(file), "--json"]);
        let channel = json(&["channel", mechanism, "--json"]);
        assert_eq!(document["channel"], channel, "{file}");
        assert_eq!(document["determined"], channel["determined"]);
        // And as a mechanism of any command.
        assert_eq!(json(&["channel", &example(file), "--json"]), channel, "{file}");
    }
    // The same integers where the family is told from other numbers.
    for (file, mechanism) in [
        ("deniable-sampling.alg", "deniable-sampling(sy=0.5,sn=0.2,p1=0.5,p2=0.3)"),
        ("tuned.alg", "tuned(sy1=0.05,sy2=0.02,p1=0.9,p2=0.8,sn=0.01,p3=0.3)"),
        ("third-output.alg", "custom(11=0.2:0.4, 12=0.4:0, 22=0.35:0.55, 33=0.05:0.05)"),
    ] {
        let document = json(&["algebra", &example(file), "--json"]);
        let channel = json(&["channel", mechanism, "--json"]);
        assert_eq!(document["channel"]["exact"], channel["exact"], "{file}");
        let again = json(&["channel", document["channel"]["mechanism"].as_str().unwrap(), "--json"]);
        assert_eq!(document["channel"], again, "{file}");
    }
}

/// Without its residual, whoever is moved on to output 2 has said no.
#[test]
fn plausible_deniability_read_literally_compiles_with_a_warning_that_a_lone_no_owner_shows() {
    let folder = Folder::new("algebra-literal");
    let text = std::fs::read_to_string(example("plausible-deniability.alg")).unwrap();
    let literal = folder.file("literal.alg", text.replace("let ry = 0.0001", "let ry = 0"));
    let output = run(&["algebra", &literal, "--json"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(
        said.starts_with("warning: only no-owners write 132: ") && said.contains("a lone no-owner shows"),
        "{said}"
    );
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["lone_owners"], json!([{"truth": "no", "probability": 0.3999, "cells": ["132"]}]));
    // With it on both sides nobody shows.
    let output = run(&["algebra", &example("plausible-deniability.alg"), "--json"]);
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn the_solution_is_a_combination_of_bins_with_its_variance() {
    let file = example("plausible-deniability.alg");
    let document = json(&["algebra", &file, "--owners", "50_000", "--yes", "500", "--json"]);
    let solution = &document["solution"];
    assert_eq!(solution["combination"], "C3 - A3");
    assert_eq!(
        solution["bins"],
        json!([{"answer": "A", "output": "3", "weight": -1}, {"answer": "C", "output": "3", "weight": 1}])
    );
    assert_eq!(solution["chain"][0], json!({"combination": "B3 - C3", "holds": "YES_f21 + NO_f21", "weight": -1}));
    assert_eq!(solution["noise_from_no"], true);
    let (own, other) = (0.3999_f64, 0.0001_f64);
    let sd = (500.0 * own * (1.0 - own) + 49_500.0 * other * (1.0 - other)).sqrt() / (own - other);
    assert!((solution["crowd"]["sd"].as_f64().unwrap() - sd).abs() < 1e-9);
    assert!(document["nested"].as_array().unwrap().contains(&json!({"term": "NO_f21", "in": "NO_f2"})));
    let cancelling = json(&["algebra", &example("cancelling.alg"), "--json"]);
    assert_eq!(cancelling["solution"]["noise_from_no"], false);
    assert_eq!(cancelling["solution"]["crowd"], Value::Null);
}

#[test]
fn people_read_the_chain() {
    let shown = text(&["algebra", &example("plausible-deniability.alg")]);
    let backwards = shown.split_once("Working backwards:\n").unwrap().1;
    assert_eq!(
        backwards,
        "  B3 - C3 = YES_f21 + NO_f21  (subtract)\n\
         \x20 B3 - A3 = YES_f2 + NO_f2  (add)\n\
         \x20 C3 - A3 = YES_f2 - YES_f21 + NO_f2 - NO_f21\n\
         \x20 C3 - A3 = 0.3999 YES + 0.0001 NO\n\
         \x20 YES = (C3 - A3 - 0.0001 TOTAL) / 0.3998\n\n\
         Variance 1.50138 YES + 0.000625563 NO. Noise from NO remains.\n"
    );
    // The guide shows the same.
    let guide = include_str!("../../../../docs/algebra.md");
    assert!(guide.contains(backwards), "docs/algebra.md shows another chain");
    assert!(text(&["algebra", "randomized-response(0.5)"]).contains("YES cannot be solved for"));
}

#[test]
fn a_channel_printed_as_algebra_is_the_same_mechanism() {
    let folder = Folder::new("algebra-print");
    for mechanism in [
        "blended(b1=0.05,b2=0.25,b3=0.25,f1=0.05,f2=0.4,ry=1e-4,rn=1e-4)",
        "spread(pairs=2,f=1/3,r=1/30)",
        "custom(1=1/3:1/7, 0=1/3:5/7, bottom=1/3:1/7)",
    ] {
        let channel = json(&["channel", mechanism, "--json"]);
        let file = folder.file("printed.alg", text(&["algebra", mechanism, "--print"]));
        assert_eq!(json(&["channel", &file, "--json"])["exact"], channel["exact"], "{mechanism}");
        let written = folder.file("channel.json", channel.to_string());
        assert_eq!(text(&["algebra", &written, "--print"]), text(&["algebra", mechanism, "--print"]));
        assert_eq!(json(&["algebra", &file, "--json"])["channel"]["exact"], channel["exact"]);
    }
}

#[test]
fn an_algebra_file_goes_the_whole_way() {
    let file = example("first-attempt.alg");
    let run = ["simulate", &file, "--owners", "1000", "--yes", "300", "--trials", "200", "--seed", "7", "--json"];
    let family = ["simulate", "paired(b=0.5,sy=0.2,sn=0.05)", "--owners", "1000", "--yes", "300", "--trials", "200"];
    let family = json(&[&family[..], &["--seed", "7", "--json"]].concat());
    assert_eq!(json(&run), family);
    let tally = br#"{"answers":[{"1":60,"2":40},{"1":20,"2":80}]}"#;
    let estimate = crate::json_with(&["estimate", &file, "--json"], tally);
    assert_eq!(estimate["mechanism"], "paired(b=0.5,sy=0.2,sn=0.05)");
}

#[test]
fn errors_name_file_line_and_term_in_every_command() {
    let folder = Folder::new("algebra-bad");
    let file = folder.file("bad.alg", "let TOTAL_1 = 0.9 * TOTAL\nA1 = TOTAL_1\n");
    let expected = format!(
        "error: {file}: line 1: the terms of YES sum to 0.9: 0.1 of YES is in no output\n\
         \x20   |\n  1 | let TOTAL_1 = 0.9 * TOTAL\n\x20   |     ^^^^^^^\n\
         hint: the terms that are part of no other must make up all of each population; thirds are written 1/3\n"
    );
    for command in ["algebra", "channel", "privatize", "estimate"] {
        let output = run(&[command, &file]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert!(output.stdout.is_empty(), "{command}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), expected, "{command}");
    }
    for (arguments, message) in [
        (&["algebra", "missing.alg"][..], "missing.alg: there is no such file"),
        (&["algebra", &example("cancelling.alg"), "--owners", "5", "--yes", "6"], "6 yes-owners are more than"),
        (&["algebra", "paired(b=2,sy=0,sn=0)"], "b: 2 is not between 0 and 1"),
    ] {
        let output = run(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
    // The guide shows an error as it is printed.
    let guide = include_str!("../../../../docs/algebra.md");
    let block = guide.split_once("```alg-error\n").unwrap().1.split_once("```").unwrap();
    let shown = block.1.split_once("```text\n").unwrap().1.split_once("```").unwrap().0;
    let file = folder.file("example.alg", block.0);
    let stderr = String::from_utf8(run(&["algebra", &file]).stderr).unwrap();
    assert_eq!(stderr.replace(&file, "example.alg"), shown);
}
