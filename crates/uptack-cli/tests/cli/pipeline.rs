//! From truths to an estimate, through the real pipes.

use crate::{Folder, json_with, run, run_with};

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
