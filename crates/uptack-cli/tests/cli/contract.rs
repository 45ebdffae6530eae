//! The fields that other programs rely on.

use serde_json::{Value, json};

use crate::{Folder, json, json_with, run, run_with};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn assert_has(value: &Value, wanted: &[&str]) {
    let found = keys(value);
    assert!(wanted.iter().all(|key| found.contains(key)), "{found:?} lacks one of {wanted:?}");
}

#[test]
fn channel_shows_both_laws_in_decimals_and_integers() {
    let document = json(&["channel", "normal-form(f=0.5,r=1/4)", "--json"]);
    assert_has(&document, &["mechanism", "answers", "cells", "exact", "determined"]);
    assert_eq!(document["mechanism"], "normal-form(f=0.5,r=0.25)");
    assert_eq!(document["answers"], json!([["1", "0", "⊥"]]));
    assert_eq!(document["cells"][0], json!({"outputs": ["1"], "yes": 0.25, "no": 0.25}));
    assert_eq!(document["exact"]["bits"], 64);
    assert_eq!(document["exact"]["cells"][2]["yes"], "9223372036854775808");
    assert_eq!(document["determined"], true);
}

#[test]
fn what_is_printed_as_mechanism_yields_the_identical_integers() {
    for text in [
        "randomized-response(2/3)",
        "tuned(5%,2%,90%,80%,1%,30%)",
        "blended(b1=0,b2=1/3,b3=1/6,f1=0,f2=0.5,ry=1e-4,rn=1/9999)",
        "spread(pairs=3,f=1/3,r=1/30)",
        "custom(1=1/3:1/7, 0=1/3:5/7, bottom=1/3:1/7)",
    ] {
        let first = json(&["channel", text, "--json"]);
        let second = json(&["channel", first["mechanism"].as_str().unwrap(), "--json"]);
        assert_eq!(first, second);
        let folder = Folder::new("identical");
        let file = folder.file("channel.json", first.to_string());
        assert_eq!(json(&["channel", &file, "--json"]), first);
    }
}

#[test]
fn a_channel_given_as_integers_is_a_mechanism() {
    let document = json(&["channel", "randomized-response(1/3)", "--json"]);
    let folder = Folder::new("integers");
    let file = folder.file("custom.json", json!({"exact": document["exact"]}).to_string());
    let custom = json(&["channel", &file, "--json"]);
    assert_eq!(custom["exact"], document["exact"]);
    assert!(custom["mechanism"].as_str().unwrap().starts_with("custom("));
}

#[test]
fn tally_counts_outputs_by_answer() {
    let document = json_with(&["tally"], "A,B\n1,2\n1,1\n".as_bytes());
    assert_eq!(document, json!({"owners": 2, "answers": [{"1": 2}, {"1": 1, "2": 1}]}));
    let folder = Folder::new("tally");
    let (first, second) = (folder.file("a.csv", "⊥\n1\n"), folder.file("b.ndjson", "{\"A\":\"0\"}\n"));
    let merged = json(&["tally", &first, &second, "--json"]);
    assert_eq!(merged, json!({"owners": 3, "answers": [{"0": 1, "1": 1, "⊥": 1}]}));
}

#[test]
fn estimate_has_every_field() {
    let tally = br#"{"answers":[{"1":260,"0":24740,"bottom":25000}]}"#;
    let document = json_with(&["estimate", "normal-form(f=0.5,r=1e-4)", "--json"], tally);
    let fields =
        ["owners", "estimate", "sd", "interval", "confidence", "sampling_sd", "privacy_sd", "by_bin", "equations"];
    assert_has(&document, &fields);
    assert_eq!(document["owners"], 50_000);
    assert_eq!(document["confidence"], 0.95);
    assert_has(&document["by_bin"][0], &["answer", "output", "estimate", "sd"]);
    assert_eq!(
        document["by_bin"][2],
        json!({"answer": "A", "output": "⊥", "estimate": null, "sd": null,
        "sigma": document["by_bin"][2]["sigma"], "bounds": null})
    );
    assert_has(&document["equations"], &["rank", "kept", "dropped"]);
    let (low, high) = (document["interval"][0].as_f64().unwrap(), document["interval"][1].as_f64().unwrap());
    let estimate = document["estimate"].as_f64().unwrap();
    assert!(low < estimate && estimate < high);
    // An output that the tally does not mention counts 0.
    let short = json_with(&["estimate", "sampling(0.5,0.5)", "--json", "-"], br#"{"answers":[{"bottom":50}]}"#);
    assert_eq!(short["interval"][0], 0.0);
    assert_eq!(short["by_bin"][0]["estimate"], 0.0);
}

#[test]
fn estimate_shows_the_papers_differences_and_its_backward_chain() {
    let mechanism = "blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=0,rn=0)";
    let tally = br#"{"answers":[{"1":500,"2":250,"3":250},{"1":0,"2":250,"3":750},{"1":0,"2":730,"3":270}]}"#;
    let document = json_with(&["estimate", mechanism, "--json"], tally);
    assert_eq!(document["backward"]["moved_on"]["value"], 480.0);
    assert_eq!(document["backward"]["left"]["estimate"], 40.0);
    assert_eq!(document["differences"].as_array().unwrap().len(), 9);
    assert_eq!(document["equations"], Value::Null);
}

#[test]
fn the_system_with_signs_keeps_and_drops() {
    let tally = br#"{"answers":[{"1":30,"bottom":70}]}"#;
    let document = json_with(&["estimate", "noisy-sampling(sy=0.5,sn=0.25)", "--json"], tally);
    assert_eq!(document["equations"]["kept"][0]["yes"], 20.0);
    assert_eq!(document["equations"]["kept"][0]["signs"], json!(["+", "+"]));
    assert_eq!(document["equations"]["dropped"][0]["reason"], "one equation for two unknowns");
    let tally = br#"{"answers":[{"1":20,"bottom":80}]}"#;
    let document = json_with(&["estimate", "noisy-sampling(sy=0.5,sn=0.25)", "--json"], tally);
    assert_eq!(document["equations"]["kept"], json!([]));
    assert_eq!(document["equations"]["dropped"][0]["reason"], "YES is negative");
}

#[test]
fn simulate_is_reproducible_to_the_byte() {
    let arguments =
        ["simulate", "randomized-response(0.8)", "--owners", "1e4", "--yes", "100", "--trials", "500", "--json"];
    let seeded = |seed: &str| run(&[&arguments[..], &["--seed", seed]].concat()).stdout;
    assert_eq!(seeded("7"), seeded("7"));
    assert_ne!(seeded("7"), seeded("8"));
    let document: Value = serde_json::from_slice(&seeded("7")).unwrap();
    assert_has(&document, &["mean", "bias", "rmse", "predicted_sd", "coverage", "trials", "seed"]);
    assert_eq!((&document["trials"], &document["seed"]), (&json!(500), &json!(7)));
    // Without a seed a new one is drawn and told.
    let first: Value = serde_json::from_slice(&run(&arguments).stdout).unwrap();
    let again = run(&[&arguments[..], &["--seed", &first["seed"].to_string()]].concat());
    assert_eq!(serde_json::from_slice::<Value>(&again.stdout).unwrap(), first);
}

#[test]
fn a_reader_who_leaves_early_is_no_error() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_uptack"))
        .args(["privatize", "randomized-response(0.8)", "--quiet"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    use std::io::Write as _;
    let _ = child.stdin.take().unwrap().write_all("yes\n".repeat(100_000).as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn tables_are_for_people() {
    let text = String::from_utf8(run(&["channel", "cancelling(0.3,0.3,0.3,0.1)"]).stdout).unwrap();
    assert_eq!(
        text,
        "cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)\n\n\
         AB  yes   no     ratio\n\
         11  0.3  0.3         1\n\
         22  0.3  0.3         1\n\
         33  0.3  0.3         1\n\
         13  0.1    0  yes only\n\
         23    0  0.1   no only\n\n\
         2 answers per owner, drawn with one coin; the tallies determine the count of every cell.\n"
    );
    let tally = br#"{"answers":[{"1":7,"0":93}]}"#;
    let text = String::from_utf8(run_with(&["estimate", "randomized-response(1)"], tally).stdout).unwrap();
    assert!(text.contains("7 of 100 owners would say yes"), "{text}");
}
