//! From truths to rows, tallies or noisy sums, and an estimate.

use serde_json::{Value, json};

use crate::{Folder, json, json_with, run, run_with};

fn truths(owners: usize, yes: usize) -> String {
    (0..owners).map(|owner| if owner % (owners / yes) == 0 { "yes\n" } else { "no\n" }).collect()
}

/// The coins are real, so the bound is wide: a miss of 7 standard deviations has probability below 1e-11.
#[test]
fn privatize_tally_estimate() {
    let folder = Folder::new("pipeline");
    let file = folder.file("truths.txt", truths(50_000, 500));
    for (mechanism, header) in [
        ("normal-form(f=0.5,r=1e-4)", "A\n"),
        ("blended(b1=0.05,b2=0.25,b3=0.25,f1=0.05,f2=0.4,ry=1e-4,rn=1e-4)", "A,B,C\n"),
        ("spread(pairs=2,f=0.5,r=1e-4)", "A,B,C,D\n"),
    ] {
        for format in ["csv", "ndjson"] {
            let rows = run(&["privatize", mechanism, &file, "--format", format]).stdout;
            assert!(format == "ndjson" || rows.starts_with(header.as_bytes()));
            let tally = run_tally(&rows);
            let estimate = json_with(&["estimate", mechanism, "--json"], &tally);
            assert_eq!(estimate["owners"], 50_000);
            let (value, sd) = (estimate["estimate"].as_f64().unwrap(), estimate["sd"].as_f64().unwrap());
            assert!((value - 500.0).abs() < 7.0 * sd, "{mechanism}: {value} ± {sd}");
        }
    }
}

fn run_tally(rows: &[u8]) -> Vec<u8> {
    let output = crate::run_with(&["tally"], rows);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn truths_may_be_written_in_every_way() {
    let rows =
        crate::run_with(&["privatize", "randomized-response(t=1)"], b"yes\nNO\r\n1\n0\ntrue\n FALSE \nYes").stdout;
    assert_eq!(rows, b"A\n1\n0\n1\n0\n1\n0\n1\n");
    let json = crate::run_with(&["privatize", "randomized-response(t=1)", "-", "--json"], b"yes\n").stdout;
    assert_eq!(json, b"{\"A\":\"1\"}\n");
}

#[test]
fn a_column_of_csv_is_privatized_like_truths_a_line() {
    let folder = Folder::new("column");
    // A mechanism that tells the truth shows which rows were read as a yes.
    let honest = "randomized-response(t=1)";
    let csv = "\u{feff}owner,\"road\",note\r\na,A1,\"one, \"\"two\"\"\nthree\"\r\nb,A2,\r\nc, A1 ,x\r\nd,,";
    let csv = folder.file("vehicles.csv", csv);
    let rows = |arguments: &[&str]| {
        let output = run(&[&["privatize", honest, "--quiet"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(rows(&[&csv, "--column", "road", "--yes", "A1"]), "A\n1\n0\n1\n0\n");
    let words = folder.file("words.csv", "taxi\nyes\nFALSE\n1\n");
    assert_eq!(rows(&[&words, "--column", "taxi"]), "A\n1\n0\n1\n");
    let marked = folder.file("truths.txt", "\u{feff}yes\r\nno\r\n");
    assert_eq!(rows(&[&marked]), "A\n1\n0\n");
}

#[test]
fn byte_order_marks_are_passed_over_wherever_text_is_read() {
    let folder = Folder::new("marks");
    let mechanism = "randomized-response(t=0.8)";
    let tally = folder.file("tally.json", "\u{feff}{\"answers\":[{\"1\":260,\"0\":240}]}");
    assert!(run(&["estimate", mechanism, &tally]).status.success());
    let rows = folder.file("rows.csv", "\u{feff}A\r\n1\r\n0\r\n");
    assert!(run(&["tally", &rows]).status.success());
    let channel = String::from_utf8(run(&["channel", mechanism, "--json"]).stdout).unwrap();
    assert!(run(&["channel", &folder.file("channel.json", format!("\u{feff}{channel}"))]).status.success());
    let card = folder.0.join("card.toml").to_str().unwrap().to_owned();
    assert!(
        run(&["plan", "--owners", "40", "--yes", "8", "--epsilon", "2", "--delta", "1e-2", "--out", &card])
            .status
            .success()
    );
    let text = std::fs::read_to_string(&card).unwrap();
    assert!(run(&["verify", &folder.file("marked.toml", format!("\u{feff}{text}"))]).status.success());
}

#[test]
fn what_one_row_gives_away_is_said_unless_nobody_wants_to_hear() {
    let said = |mechanism: &str, more: &[&str]| {
        let output = run_with(&[&["privatize", mechanism], more].concat(), b"yes\n");
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let high = said("randomized-response(t=0.99755)", &[]);
    assert!(high.contains("ε = 6.00") && high.contains("factor of 40") && high.contains("private write"), "{high}");
    let low = said("randomized-response(t=0.8)", &[]);
    assert!(low.contains("ε = 1.38") && !low.contains("private write"), "{low}");
    assert!(said("sampling(sy=5%,sn=5%)", &[]).contains("no guarantee"));
    assert_eq!(said("randomized-response(t=0.99755)", &["--quiet"]), "");
}

const NOISY: &str = "randomized-response(t=0.999) + laplace(scale=2)";

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn channel_and_algebra_state_the_noise_or_null() {
    let document = json(&["channel", NOISY, "--json"]);
    assert_eq!(document["noise"], json!({"law": "discrete-laplace", "scale": "2"}));
    assert_eq!(json(&["channel", "randomized-response(0.8)", "--json"])["noise"], Value::Null);
    let folder = Folder::new("noise");
    let file = folder.file("channel.json", document.to_string());
    assert_eq!(json(&["channel", &file, "--json"]), document);
    let printed = run(&["algebra", NOISY, "--print"]).stdout;
    let file = folder.file("noisy.alg", String::from_utf8(printed).unwrap());
    let compiled = json(&["algebra", &file, "--json", "--owners", "50000", "--yes", "500"]);
    assert_eq!(compiled["channel"]["noise"], document["noise"]);
    assert!(compiled["channel"]["mechanism"].as_str().unwrap().ends_with(") + laplace(scale=2)"));
    assert_eq!(compiled["channel"]["exact"], document["exact"]);
    assert!(compiled["solution"]["variance"]["noise"].as_f64().unwrap() > 0.0);
    let text = String::from_utf8(run(&["channel", NOISY]).stdout).unwrap();
    assert!(text.contains("plus laplace(scale=2) from each of the two aggregators"), "{text}");
}

#[test]
fn rows_are_summed_with_noise_and_estimated() {
    let truths = [vec!["yes"; 300], vec!["no"; 700]].concat().join("\n");
    let rows = run_with(&["privatize", NOISY], truths.as_bytes());
    assert!(stderr(&rows).contains("without noise"), "{}", stderr(&rows));
    let sums = json_with(&["tally", "--noise", "laplace(scale=2)"], &rows.stdout);
    assert_eq!(sums["owners"], 1000);
    assert!(sums.get("answers").is_none());
    // What the noise and a few flips do has a probability below 1e-15 beyond this.
    let sum = sums["sums"][0].as_i64().unwrap();
    assert!((200..400).contains(&sum), "{sum}");
    let document =
        json_with(&["estimate", NOISY, "--json", "--confidence", "0.999999999"], sums.to_string().as_bytes());
    let interval = &document["interval"];
    assert!(interval[0].as_f64().unwrap() <= 300.0 && interval[1].as_f64().unwrap() >= 300.0, "{document}");
    let part = |name: &str| document[name].as_f64().unwrap().powi(2);
    let parts = part("sampling_sd") + part("privacy_sd") + part("aggregator_sd");
    assert!((parts / part("sd") - 1.0).abs() < 1e-9);
    assert_eq!(document["by_bin"].as_array().unwrap().len(), 1);
    assert_eq!(document["equations"], Value::Null);
}

#[test]
fn an_estimate_says_where_its_error_comes_from() {
    let output = run_with(&["estimate", NOISY], br#"{"owners":50000,"sums":[-12]}"#);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("from the aggregators' noise"), "{text}");
    let plain = json_with(&["estimate", "randomized-response(0.8)", "--json"], br#"{"answers":[{"1":30,"0":70}]}"#);
    assert_eq!(plain["aggregator_sd"], 0.0);
}

#[test]
fn tallies_and_sums_are_told_apart() {
    for (mechanism, input, part) in [
        (NOISY, r#"{"answers":[{"1":30,"0":70}]}"#, "tally without noise"),
        ("randomized-response(0.999)", r#"{"owners":100,"sums":[30]}"#, "sum with noise"),
        (NOISY, r#"{"owners":100,"sums":[30,31]}"#, "2 sums"),
        (NOISY, r#"{"owners":100,"sums":[-500]}"#, "cannot be explained"),
        (NOISY, r#"{"owners":100,"sums":[]}"#, "no sums"),
    ] {
        let output = run_with(&["estimate", mechanism], input.as_bytes());
        assert_eq!(output.status.code(), Some(1), "{input}");
        assert!(stderr(&output).contains(part), "{input}: {}", stderr(&output));
    }
    let output = run_with(&["tally", "--noise", "laplace(scale=1)"], b"A,B\n1,2\n");
    assert!(
        stderr(&output).contains("several answers") || stderr(&output).contains("2 answers"),
        "{}",
        stderr(&output)
    );
    let output = run_with(&["tally", "--noise", "gauss(scale=1)"], b"A\n1\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn simulated_noise_is_reproducible_and_predicted() {
    for more in [&[][..], &["--per-owner"]] {
        let arguments =
            ["simulate", NOISY, "--owners", "1000", "--yes", "50", "--trials", "3000", "--seed", "3", "--json"];
        let arguments = [&arguments[..], more].concat();
        let (first, second) = (run(&arguments).stdout, run(&arguments).stdout);
        assert_eq!(first, second);
        let document: Value = serde_json::from_slice(&first).unwrap();
        let ratio = document["rmse"].as_f64().unwrap() / document["predicted_sd"].as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 0.06, "{document}");
        assert!(document["coverage"].as_f64().unwrap() > 0.93, "{document}");
    }
}

#[test]
fn an_audit_attacks_what_one_aggregator_hides() {
    let arguments = ["audit", NOISY, "--samples", "1e6", "--seed", "1", "--json"];
    let document = json(&arguments);
    let view = &document["views"]["one_aggregator"];
    let (claimed, observed) = (view["claimed"].as_f64().unwrap(), view["observed_lower"].as_f64().unwrap());
    assert!(observed <= claimed && observed > claimed - 0.1, "{view}");
    assert_eq!(view["verdict"], "consistent");
    assert_eq!(document["noise"]["verdict"], "consistent");
    let plain = json(&["audit", "randomized-response(0.8)", "--samples", "1e5", "--seed", "1", "--json"]);
    assert_eq!((&plain["views"]["one_aggregator"], &plain["noise"]), (&Value::Null, &Value::Null));
}
