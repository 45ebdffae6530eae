//! From truths to an estimate, through the real pipes.

use crate::{Folder, json_with, run};

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
