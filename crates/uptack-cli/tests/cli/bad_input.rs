//! Every fault of the input is exit 1, names its place, and writes nothing.

use crate::{Folder, run, run_with};

/// Checks a refusal: exit 1, nothing on stdout, `message` on stderr.
fn refused(arguments: &[&str], input: &[u8], message: &str) {
    let output = run_with(arguments, input);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
    assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

#[test]
fn mechanisms() {
    for (mechanism, message) in [
        ("custom(1=0.5:0.2, 0=0.5:0.7)", "law(no) over the cells 1, 0 sums to 0.9, 0.1 too little"),
        ("normal-form(f=1.5,r=0)", "normal-form: f: 1.5 is not between 0 and 1"),
        ("normal-form(f=-1%,r=0)", "normal-form: f: -0.01 is not between 0 and 1"),
        ("blendet(1)", "unknown mechanism `blendet`"),
        ("no-such-file.json", "neither a mechanism nor a file"),
        ("normal-form(g=1,r=0)", "unknown key `g`"),
    ] {
        refused(&["channel", mechanism], b"", message);
    }
}

#[test]
fn rows() {
    for (input, message) in [
        ("", "standard input: there are no rows"),
        ("1,2\n1\n", "standard input: line 2: 1 outputs where the first row has 2"),
        ("1\nmaybe\n", "standard input: line 2: answer A: `maybe` is not an output"),
    ] {
        refused(&["tally"], input.as_bytes(), message);
    }
    let folder = Folder::new("rows");
    let (good, bad) = (folder.file("good.csv", "1\n"), folder.file("bad.csv", "1\n\n1\n"));
    refused(&["tally", &good, &bad], b"", "bad.csv: line 2: an empty row");
    refused(&["tally", "missing.csv"], b"", "missing.csv: ");
    let two = folder.file("two.csv", "1,1\n");
    refused(&["tally", &good, &two], b"", "two.csv: a tally of 2 answers cannot be added to one of 1");
}

#[test]
fn truths_are_named_by_line_and_never_shown() {
    let folder = Folder::new("truths");
    for (truths, message) in
        [("yes\nperhaps-secret\n", "line 2: not a truth"), ("yes\n\nno\n", "line 2: an empty line")]
    {
        let file = folder.file("truths.txt", truths);
        // A file is checked before the first row is written.
        refused(&["privatize", "randomized-response(0.8)", &file], b"", message);
        let stderr = run(&["privatize", "randomized-response(0.8)", &file]).stderr;
        assert!(!String::from_utf8(stderr).unwrap().contains("secret"));
    }
    let empty = folder.file("empty.txt", "");
    refused(&["privatize", "randomized-response(0.8)", &empty], b"", "there are no truths");
    let long = folder.file("long.txt", "y".repeat(1_000_000));
    refused(&["privatize", "randomized-response(0.8)", &long], b"", "line 1: too long");
    refused(&["privatize", "randomized-response(0.8)", "missing.txt"], b"", "missing.txt: ");
}

#[test]
fn tallies() {
    let estimate = ["estimate", "sampling(0.5,0.5)"];
    for (tally, message) in [
        ("", "standard input: empty"),
        ("x", "standard input: not a tally"),
        (r#"{"answers":[{"1":5},{"1":5}]}"#, "the tally has 2 answers, the mechanism asks for 1"),
        (r#"{"answers":[{"2":5}]}"#, "answer A counts the output 2, which the mechanism does not have"),
        (r#"{"answers":[{"1":0}]}"#, "the tally counts no owners"),
        (r#"{"answers":[{"1":9223372036854775808,"0":1}]}"#, "over 2^63"),
        (r#"{"answers":[{"1":99999999999999999999}]}"#, "not a tally"),
    ] {
        refused(&estimate, tally.as_bytes(), message);
    }
    let two = ["estimate", "cancelling(0.3,0.3,0.3,0.1)"];
    refused(&two, br#"{"answers":[{"1":5},{"1":4}]}"#, "answer A counts 5 owners and answer B counts 4");
    refused(&two, br#"{"answers":[{"1":1,"3":4},{"1":5}]}"#, "the answers contradict each other");
    refused(&["estimate", "randomized-response(0.5)"], br#"{"answers":[{"1":5}]}"#, "do not depend on the truth");
}

#[test]
fn crowds() {
    let simulate = |owners, yes, trials| {
        ["simulate", "randomized-response(0.8)", "--owners", owners, "--yes", yes, "--trials", trials, "--seed", "1"]
    };
    refused(&simulate("10", "11", "5"), b"", "11 yes-owners are more than the 10 owners");
    refused(&simulate("10", "1", "0"), b"", "there are no trials");
    let zero = run(&simulate("0", "0", "5"));
    assert_eq!(zero.status.code(), Some(1));
    assert!(String::from_utf8(zero.stderr).unwrap().contains("there are no owners"));
}

/// Usage errors are clap's, and exit with 1 like every other fault of the request.
#[test]
fn usage() {
    for arguments in [
        &["no-such-command"][..],
        &["simulate", "randomized-response(0.8)"],
        &["simulate", "randomized-response(0.8)", "--owners", "many", "--yes", "1", "--trials", "1"],
        &["estimate", "randomized-response(0.8)", "--confidence", "1"],
        &["estimate", "randomized-response(0.8)", "--interval", "guess"],
        &["man", "nothing"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

/// A query's name is 43 signs of base64url, of which the first may be a hyphen.
#[test]
fn a_query_may_begin_with_a_hyphen() {
    for query in ["-GRDm0p06vWDyrAZC", "--RDm0p06vWDyrAZC", "-hRDm0p06vWDyrAZC"] {
        for command in ["cancel", "result"] {
            let desk = ["--desk", "http://127.0.0.1:9/", "--token", "/no/such/token"];
            let output = run(&[&[command, query], desk.as_slice()].concat());
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(text.contains("/no/such/token"), "{command} {query}: {text}");
        }
    }
}
