//! One of several options, numbers as bins, and contributions to many counts, from the law to the estimate.

use serde_json::{Value, json};

use crate::{Folder, json, json_with, run, run_with};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn fields<'a>(value: &'a Value, wanted: &[&str]) -> &'a Value {
    for field in wanted {
        assert!(value.get(field).is_some(), "{value} lacks {field}");
    }
    value
}

#[test]
fn channel_shows_the_law_of_options_in_decimals_and_integers() {
    let choice = json(&["channel", "choice(k=4,r=1/1000) + laplace(scale=2)", "--json"]);
    assert_eq!((&choice["options"], &choice["most"]), (&json!(4), &json!(1)));
    assert_eq!((&choice["told"], &choice["other"]), (&json!(0.997), &json!(0.001)));
    let integers: Vec<u128> =
        ["told", "other", "silent"].map(|field| choice["exact"][field].as_str().unwrap().parse().unwrap()).into();
    assert_eq!(integers[0] + 3 * integers[1] + integers[2], 1 << 64);
    assert_eq!(choice["noise"], json!({"law": "discrete-laplace", "scale": "2"}));
    let several = json(&["channel", "contributions(counts=288,most=2,r=1e-5)", "--json"]);
    assert_eq!((&several["options"], &several["most"], &several["noise"]), (&json!(288), &json!(2), &json!(null)));
    for text in ["choice(k=3,f=1/3,r=1/30)", "contributions(counts=5,most=2,r=1/60) + laplace(scale=3/7)"] {
        let first = json(&["channel", text, "--json"]);
        assert_eq!(json(&["channel", first["mechanism"].as_str().unwrap(), "--json"]), first);
        let folder = Folder::new("options-channel");
        assert_eq!(json(&["channel", &folder.file("channel.json", first.to_string()), "--json"]), first);
    }
}

/// Two options and one count are a yes/no question, and everything about them is what is said about it.
#[test]
fn two_options_have_the_fields_and_numbers_of_the_yes_no_question() {
    let (two, yes_no) = ("choice(k=2,f=0.5,r=0.01)", "normal-form(f=0.5,r=0.01)");
    let [law, binary] = [two, yes_no].map(|mechanism| json(&["channel", mechanism, "--json"]));
    for field in ["answers", "cells", "determined"] {
        assert_eq!(law[field], binary[field], "{field}");
    }
    let views =
        |mechanism| json(&["privacy", mechanism, "--owners", "500", "--delta", "1e-4", "--json"])["views"].clone();
    assert_eq!(views(two), views(yes_no));
    let tally = br#"{"answers":[{"1":30,"0":220,"bottom":250}]}"#;
    let counts = br#"{"owners":500,"counts":[30,220]}"#;
    let expected = json_with(&["estimate", yes_no, "--json"], tally);
    for input in [&tally[..], &counts[..]] {
        let found = json_with(&["estimate", two, "--json"], input);
        for field in ["owners", "estimate", "sd", "interval", "by_bin"] {
            assert_eq!(found[field], expected[field], "{field}");
        }
        assert_eq!(found["options"].as_array().unwrap().len(), 2);
        assert_eq!(found["options"][0]["estimate"], expected["estimate"]);
        assert!((number(&found["options"][1]["estimate"]) + number(&expected["estimate"]) - 500.0).abs() < 1e-9);
    }
    let simulate = ["simulate", two, "--owners", "500", "--trials", "200", "--seed", "1", "--json"];
    let [with_yes, with_counts] =
        [["--yes", "50"], ["--counts", "50,450"]].map(|crowd| json(&[&simulate[..], &crowd].concat()));
    assert_eq!(with_yes, with_counts);
    assert_eq!(with_yes["bias"], with_yes["options"][0]["bias"]);
}

#[test]
fn privacy_covers_everything_that_is_published_together() {
    let mechanism = "choice(k=12,r=0.0003) + laplace(scale=2)";
    let document = json(&["privacy", mechanism, "--owners", "50000", "--json"]);
    fields(&document, &["mechanism", "owners", "views", "statement"]);
    let views = fields(&document["views"], &["linked", "one_aggregator", "release"]);
    let (g, r) = (1.0 - 11.0 * 0.0003, 0.0003_f64);
    assert!((number(&views["linked"]) - (g / r).ln()).abs() < 1e-9);
    let alpha = (-0.5_f64).exp();
    let expected = ((g + 11.0 * r * alpha * alpha) / (r + (g + 10.0 * r) * alpha * alpha)).ln();
    let one = &views["one_aggregator"];
    assert!((number(&one["epsilon"]["upper"]) - expected).abs() < 1e-9 && one["delta"] == 0, "{one}");
    let release = fields(&views["release"], &["delta", "epsilon", "floor", "crowd", "certificate"]);
    assert!(number(&release["epsilon"]["upper"]) <= number(&one["epsilon"]["upper"]));
    assert!(number(&release["epsilon"]["lower"]) <= number(&release["epsilon"]["upper"]));
    let plain = json(&["privacy", "choice(k=12,r=0.0012)", "--owners", "50000", "--repeat", "3", "--json"]);
    assert_eq!(plain["views"]["one_aggregator"], Value::Null);
    fields(&plain["repeated"], &["times", "linked", "release"]);
    let at_epsilon = json(&["privacy", "choice(k=3,r=0.01)", "--owners", "900", "--epsilon", "1", "--json"]);
    fields(&at_epsilon["views"]["release"]["delta"], &["lower", "upper"]);
}

#[test]
fn plans_are_for_all_counts_together() {
    let crowd = ["--owners", "50186", "--yes", "0", "--epsilon", "1", "--json"];
    let plan = |what: &[&str]| json(&[&["plan"][..], what, &crowd].concat());
    for (options, linked, sd) in [("2221", "12", 4.02), ("2221", "8", 7.33), ("12", "9", 4.68)] {
        let found = plan(&["--options", options, "--linked-epsilon", linked]);
        fields(&found, &["mechanism", "sd", "interval95_halfwidth", "views", "tradeoff", "p", "q", "minimum_batch"]);
        fields(&found, &["solved", "noise", "gap", "alternatives"]);
        assert!(number(&found["sd"]) <= 1.005 * sd, "{found}");
        assert!(number(&found["views"]["linked"]) <= linked.parse::<f64>().unwrap());
        assert!(number(&found["views"]["one_aggregator"]["epsilon"]["upper"]) <= 1.0);
        fields(&found["tradeoff"][0], &["linked", "sd"]);
    }
    let named = plan(&["--options", "car,bus,bike", "--linked-epsilon", "8"]);
    assert!(named["mechanism"].as_str().unwrap().starts_with("choice(k=3,"));
    let series = plan(&["--counts", "288", "--most-yes", "2", "--linked-epsilon", "12"]);
    assert!(series["mechanism"].as_str().unwrap().starts_with("contributions(counts=288,most=2,"));
    assert!(number(&series["p"]) > number(&series["q"]));
    let text =
        String::from_utf8(run(&["plan", "--options", "4", "--owners", "9000", "--yes", "0", "--epsilon", "1"]).stdout);
    assert!(text.unwrap().contains("linked ε at most"));
}

/// With r = 0 rows tell the truth, so that every step can be compared exactly.
#[test]
fn rows_name_the_options_of_their_owners() {
    let choice = "choice(k=3,r=0)";
    let rows = |arguments: &[&str], input: &str| {
        let output = run_with(&[&["privatize", "--quiet"], arguments].concat(), input.as_bytes());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(rows(&[choice], "3\n1\r\n"), "choice of 3\n3\n1\n");
    let named = rows(&[choice, "--options", "car,bus,bike"], "bike\n1\n");
    assert_eq!(named, "choice of car;bus;bike\nbike\ncar\n");
    let ndjson = rows(&[choice, "--options", "car,bus,bike", "--format", "ndjson"], "bike\n");
    assert_eq!(ndjson, "{\"choice\":\"bike\"}\n");
    let several = "contributions(counts=3,most=2,r=0)";
    assert_eq!(rows(&[several], "3;1\nnone\n2\n"), "up to 2 of 3\n1;3\n⊥\n2\n");
    assert_eq!(rows(&[several, "--format", "ndjson"], "3;1\n"), "{\"contributions\":[\"1\",\"3\"]}\n");
    let bins = rows(&["choice(k=5,r=0)", "--bins", "0,20,40"], "-3\n20\n\nNA\n99.5\n");
    let header = "choice of under 0;0 to 20;20 to 40;40 or more;no value\n";
    assert_eq!(bins, format!("{header}under 0\n20 to 40\nno value\nno value\n40 or more\n"));
    let two = rows(&["choice(k=2,r=0)", "--options", "a,b"], "b\na\n");
    assert_eq!(two, "choice of a;b\nb\na\n");
    assert_eq!(rows(&["contributions(counts=1,r=0)"], "1\nnone\n"), "up to 1 of 1\n1\n⊥\n");
    let folder = Folder::new("options-rows");
    let names = folder.file("names.txt", "red, large\n\"blue\"\n=1+1\n");
    let quoted = rows(&[choice, "--options", &names], "red, large\n3\n2\n");
    assert_eq!(quoted.lines().skip(1).collect::<Vec<_>>(), ["\"red, large\"", "'=1+1", "\"\"\"blue\"\"\""]);
    let table = folder.file("trips.csv", "owner,mode\na,bus\nb,car\n");
    assert_eq!(
        rows(&[choice, &table, "--column", "mode", "--options", "car,bus,bike"], ""),
        "choice of car;bus;bike\nbus\ncar\n"
    );
    let tally = json_with(&["tally"], quoted.as_bytes());
    assert_eq!(tally, json!({"owners": 3, "counts": [1, 1, 1], "options": ["red, large", "\"blue\"", "=1+1"]}));
}

#[test]
fn tallies_count_each_option_and_merge_files() {
    let folder = Folder::new("options-tally");
    let first = folder.file("a.csv", "choice of car;bus;bike\ncar\nbus\n⊥\ncar\n");
    let second = folder.file("b.csv", "choice of car;bus;bike\r\nbike\r\n");
    let merged = json(&["tally", &first, &second]);
    assert_eq!(merged, json!({"owners": 5, "counts": [2, 1, 1], "options": ["car", "bus", "bike"]}));
    let ndjson = b"{\"choice\":\"car\"}\n{\"choice\":\"2\"}\n";
    assert_eq!(json_with(&["tally", "--options", "car,bus"], ndjson)["counts"], json!([1, 1]));
    assert_eq!(json_with(&["tally", "--options", "4"], b"4\n1\n4\n"), json!({"owners": 3, "counts": [1, 0, 0, 2]}));
    let noisy = json(&["tally", &first, "--noise", "laplace(scale=1)", "--json"]);
    assert_eq!((noisy["owners"].as_u64(), noisy["sums"].as_array().map(Vec::len)), (Some(4), Some(3)));
    // Of two options, the first alone is published with noise; of two counts, both are.
    let sums =
        |rows: &[u8]| json_with(&["tally", "--noise", "laplace(scale=1)"], rows)["sums"].as_array().unwrap().len();
    assert_eq!((sums(b"choice of 2\n1\n"), sums(b"up to 1 of 2\n1\n")), (1, 2));
}

/// The coins are real, so the bound is wide: a miss of 7 standard deviations has probability below 1e-10 for all options.
#[test]
fn from_truths_to_estimates() {
    let folder = Folder::new("options-pipeline");
    let truths: String =
        (0..9000).map(|owner| ["car\n", "car\n", "bus\n", "walk\n"][[0, 1, 2, 0, 2, 3][owner % 6]]).collect();
    let file = folder.file("truths.txt", truths);
    let options = ["--options", "car,bus,bike,walk"];
    for (mechanism, noise) in [("choice(k=4,r=0.02)", None), ("choice(k=4,r=0.001)", Some("laplace(scale=2)"))] {
        let rows = run(&[&["privatize", mechanism, &file, "--quiet"][..], &options].concat()).stdout;
        let tally = run_with(&[&["tally"][..], &noise.map_or(vec![], |noise| vec!["--noise", noise])].concat(), &rows);
        let mechanism = noise.map_or(mechanism.to_owned(), |noise| format!("{mechanism} + {noise}"));
        let found = json_with(&["estimate", &mechanism, "--json"], &tally.stdout);
        for (option, (name, truth)) in
            [("car", 4500.0), ("bus", 3000.0), ("bike", 0.0), ("walk", 1500.0)].iter().enumerate()
        {
            let one = fields(
                &found["options"][option],
                &["name", "estimate", "sd", "interval", "simultaneous", "consistent", "share"],
            );
            assert_eq!(one["name"], *name);
            assert!((number(&one["estimate"]) - truth).abs() < 7.0 * number(&one["sd"]), "{one}");
        }
        let consistent: f64 = found["options"].as_array().unwrap().iter().map(|one| number(&one["consistent"])).sum();
        assert!((consistent - 9000.0).abs() < 1e-6);
    }
}

#[test]
fn values_and_bins_have_a_mean_and_quantiles() {
    let sums = br#"{"owners":1000,"sums":[204,707,88]}"#;
    let estimate = ["estimate", "choice(k=3,r=0.01) + laplace(scale=2)", "--json"];
    let found = json_with(&[&estimate[..], &["--values", "1,2,3", "--quantiles", "0.25,0.5"]].concat(), sums);
    let mean = fields(&found["mean"], &["estimate", "sd", "interval"]);
    assert!((number(&mean["estimate"]) - 1.88).abs() < 0.01);
    let median = fields(&found["quantiles"][1], &["q", "option", "low", "high"]);
    assert_eq!((&median["q"], &median["option"]), (&json!(0.5), &json!("2")));
    // An option without a value does not enter the mean, and options are ordered by their values.
    let some = json_with(&[&estimate[..], &["--values", "3,none,1", "--quantiles", "0"]].concat(), sums);
    assert!(number(&some["mean"]["owners"]) < 400.0);
    assert_eq!(some["quantiles"][0]["option"], "3");
    let sums = br#"{"owners":1000,"sums":[3,250,500,200,40]}"#;
    let estimate = ["estimate", "choice(k=5,r=0.001) + laplace(scale=2)", "--bins", "0,20,60", "--json"];
    let found = json_with(&[&estimate[..], &["--quantiles", "0.5"]].concat(), sums);
    assert_eq!(found["options"][4]["name"], "no value");
    assert_eq!((&found["mean"]["bin_error"], &found["quantiles"][0]["option"]), (&json!(20.0), &json!("20 to 60")));
}

#[test]
fn the_table_says_its_confidence_and_why_an_estimate_is_negative() {
    let sums = br#"{"owners":9000,"sums":[6003,2990,-4,20]}"#;
    let output =
        run_with(&["estimate", "choice(k=4,r=0.001) + laplace(scale=2)", "--options", "car,bus,bike,walk"], sums);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["car ", "█", "░", "confidence 0.95", "below 0", "consistent"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("0.95").count(), 1, "{text}");
}

#[test]
fn simulations_report_each_option_and_all_at_once() {
    let arguments = ["simulate", "choice(k=3,r=0.01) + laplace(scale=2)", "--owners", "1000", "--trials", "1000"];
    let simulate =
        |more: &[&str]| json(&[&arguments[..], &["--counts", "200,700,100", "--seed", "7", "--json"], more].concat());
    let found = simulate(&[]);
    for option in fields(&found, &["options", "simultaneous_coverage", "trials", "seed"])["options"].as_array().unwrap()
    {
        let option = fields(option, &["bias", "rmse", "predicted_sd", "coverage"]);
        // The rmse of 1000 trials is within 12 % of the truth but for a chance of 1e-6.
        assert!((number(&option["rmse"]) / number(&option["predicted_sd"]) - 1.0).abs() < 0.12, "{option}");
        assert!(number(&option["coverage"]) > 0.9);
    }
    assert_eq!(found, simulate(&[]));
    assert_eq!(simulate(&["--per-owner"])["options"].as_array().unwrap().len(), 3);
}

#[test]
fn audits_find_nothing_unless_the_sampler_is_broken() {
    let audit = |mechanism: &str, broken: &[&str]| {
        let arguments = ["audit", mechanism, "--samples", "3e5", "--seed", "1", "--json"];
        let output = run(&[&arguments[..], broken].concat());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), document)
    };
    let noisy = "choice(k=4,r=0.05) + laplace(scale=2)";
    let (code, sound) = audit(noisy, &[]);
    assert_eq!((code, &sound["verdict"]), (Some(0), &json!("consistent")), "{sound}");
    for view in ["linked", "one_aggregator", "release"] {
        fields(&sound["views"][view], &["claimed", "observed_lower", "verdict"]);
    }
    for (mechanism, control) in [
        (noisy, "doubled-option"),
        ("contributions(counts=4,most=2,r=0.05)", "reused-coin"),
        (noisy, "noise-missing-on-one"),
    ] {
        let (code, broken) = audit(mechanism, &["--broken", control]);
        assert_eq!((code, &broken["verdict"]), (Some(2), &json!("violated")), "{control}");
    }
    let (code, two) = audit("choice(k=2,r=0.1)", &[]);
    assert_eq!((code, two["views"]["answers"].as_array().map(Vec::len)), (Some(0), Some(1)));
}
