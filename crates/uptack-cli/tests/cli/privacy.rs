//! The privacy card.

use serde_json::{Value, json};

use crate::{json, run};

fn card(arguments: &[&str]) -> Value {
    json(&[&["privacy"], arguments, &["--json"]].concat())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn delta_at_an_epsilon() {
    let card = card(&["normal-form(f=0.5,r=0.00205)", "--owners", "2000", "--epsilon", "1"]);
    let release = &card["views"]["release"];
    assert_eq!(release["epsilon"], 1.0);
    let (lower, upper) = (number(&release["delta"]["lower"]), number(&release["delta"]["upper"]));
    // 8.380533839e-9 at the ends, by an independent program; the parameter is one unit in its last place smaller there.
    assert!(lower >= 8.3805e-9 && upper <= 1.05 * lower && lower < 8.5e-9, "{lower} {upper}");
    assert_eq!(release["certificate"]["closed"], true);
    assert_eq!(release["floor"], 0.0);
    assert!((number(&card["views"]["linked"]) - (0.49795f64 / 0.00205).ln()).abs() < 1e-9);
    assert_eq!(card["views"]["answers_with_release"].as_array().unwrap().len(), 1);
    assert!(card["statement"].as_str().unwrap().contains("Not protected"));
    assert_eq!(card["repeated"], Value::Null);
}

#[test]
fn the_worst_crowd_may_be_a_mixed_one() {
    let card = card(&["randomized-response(0.6)", "--owners", "3", "--epsilon", "0"]);
    let release = &card["views"]["release"];
    assert!((number(&release["delta"]["upper"]) - 0.104).abs() < 1e-9);
    assert_eq!(release["crowd"], 1);
}

#[test]
fn no_guarantee_is_null_with_its_floor() {
    for (mechanism, floor) in [
        ("sampling(sy=0.05,sn=0.04)", 0.05),
        ("cancelling(0.3,0.3,0.3,0.1)", 0.1),
        ("paired(b=0.5,sy=0.2,sn=0)", 0.4),
        ("blended(0,0.25,0.25,0,0.5,0,1e-4)", 0.4999),
        ("normal-form(f=0.5,r=0)", 0.5),
    ] {
        let card = card(&[mechanism, "--owners", "5000"]);
        let release = &card["views"]["release"];
        assert_eq!(release["epsilon"], Value::Null, "{mechanism}");
        assert_eq!(card["views"]["linked"], Value::Null, "{mechanism}");
        assert!((number(&release["floor"]) - floor).abs() < 1e-9, "{mechanism}: {release}");
        // Above the floor there is an ε.
        let above = self::card(&[mechanism, "--owners", "5000", "--delta", "0.6"]);
        assert_ne!(above["views"]["release"]["epsilon"], Value::Null, "{mechanism}");
    }
}

#[test]
fn fewer_honest_owners_are_a_smaller_crowd() {
    let all = card(&["normal-form(f=0.5,r=8.2e-5)", "--owners", "25000"]);
    let half = card(&["normal-form(f=0.5,r=8.2e-5)", "--owners", "50001", "--honest", "50%"]);
    assert_eq!(all["views"], half["views"]);
    assert_eq!(half["owners"], 25_000);
}

#[test]
fn repetitions_compose() {
    let card = card(&["normal-form(f=1,r=0.015)", "--owners", "2000", "--repeat", "10"]);
    let repeated = &card["repeated"];
    assert_eq!(repeated["times"], 10);
    assert_eq!(repeated["release"]["delta"], 1e-8);
    let (once, often) = (&card["views"]["release"]["epsilon"], &repeated["release"]["epsilon"]);
    assert!(number(&often["upper"]) > 2.0 * number(&once["upper"]));
    assert!(number(&often["upper"]) < 10.0 * number(&once["upper"]));
    assert!((number(&repeated["linked"]) / number(&card["views"]["linked"]) - 10.0).abs() < 1e-6);
    assert_eq!(repeated["answers"], json!([repeated["linked"]]));
}

#[test]
fn with_noise_each_view_says_who_must_be_honest() {
    let mechanism = "randomized-response(t=0.99) + laplace(scale=2)";
    let card = card(&[mechanism, "--owners", "3000", "--repeat", "10"]);
    let views = &card["views"];
    let upper = |claim: &Value| number(&claim["epsilon"]["upper"]);
    let one = upper(&views["one_aggregator"]);
    assert_eq!(views["one_aggregator"]["delta"], 0);
    assert!(number(&views["one_aggregator"]["epsilon"]["lower"]) <= one && one < 0.5 && one > 0.47, "{one}");
    assert!(upper(&views["release"]) <= one && upper(&views["release"]) < upper(&views["owners_alone"]));
    assert!(number(&views["linked"]) > 4.0);
    assert!((upper(&card["repeated"]["one_aggregator"]) - 10.0 * one).abs() < 1e-9);
    assert!(upper(&card["repeated"]["release"]) <= 10.0 * one);
    let table = run(&["privacy", mechanism, "--owners", "3000"]);
    let table = String::from_utf8(table.stdout).unwrap();
    for row in ["linked", "one aggregator", "release", "owners alone"] {
        assert!(table.lines().any(|line| line.trim_start().starts_with(row)), "{row}: {table}");
    }
    assert!(table.contains("one aggregator and 3 000 owners"), "{table}");
    let plain = self::card(&["randomized-response(t=0.99)", "--owners", "3000"]);
    assert_eq!((&plain["views"]["one_aggregator"], &plain["views"]["owners_alone"]), (&Value::Null, &Value::Null));
}

#[test]
fn bad_requests_are_refused() {
    for (arguments, message) in [
        (&["--owners", "0"][..], "0 owners cannot be accounted for"),
        (&["--owners", "2e9"], "2000000000 owners cannot be accounted for"),
        (&["--owners", "10", "--delta", "0"], "0 is not a valid delta"),
        (&["--owners", "10", "--epsilon=-1"], "-1 is not a valid epsilon"),
        (&["--owners", "10", "--honest", "5%"], "leaves no honest owner"),
        (&["--owners", "10", "--repeat", "0"], "must be at least 1"),
        (&["--owners", "10", "--delta", "0.1", "--epsilon", "1"], "cannot be used with"),
    ] {
        let output = run(&[&["privacy", "randomized-response(0.8)"], arguments].concat());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
}
