//! Wrong uses of every command and what is said to them; every fault of the input is exit 1, names its place, and writes
//! nothing.
//!
//! The snapshot `wrong_uses.txt` is the list of cases, too: a line that begins with `$ ` is run in a folder with the files
//! below, and what follows it is the exit code and all of stderr. To add a case, add its line; to accept the new answers,
//! run the test with `UPTACK_WRITE_SNAPSHOT=1` and read the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use uptack::card::{Card, CardLaw};
use uptack::plan::{Prior, Request, plan};
use uptack::privacy::{Delta, Epsilon};
use uptack_dap::signed::Signer;

use crate::{Folder, run, run_with};

/// The files that the cases use, beside those that [`stage`] makes.
const FILES: [(&str, &str); 56] = [
    ("rows.csv", "1\n0\n1\n"),
    ("two.csv", "1,2\n2,1\n"),
    ("ragged.csv", "1,2\n1\n"),
    ("empty-line.csv", "1\n\n0\n"),
    ("words.csv", "1\nmaybe\n"),
    ("rows.ndjson", "{\"A\":\"1\"}\n{\"B\":\"1\"}\n"),
    ("empty", ""),
    ("truths.txt", "yes\nno\n"),
    ("perhaps.txt", "yes\nperhaps\n"),
    ("empty-line.txt", "yes\n\nno\n"),
    ("vehicles.csv", "owner,road,speed:double\na,A1,50.5\nb,\"A2, north\",0\n"),
    ("ragged-vehicles.csv", "owner,road\na,A1\nb\n"),
    ("unclosed.csv", "owner,road\na,\"A1\n"),
    ("untyped.csv", "owner,speed:float\na,1\n"),
    ("twice.csv", "owner,road\na,A1\na,A2\n"),
    ("tally.json", "{\"answers\":[{\"1\":260,\"0\":240}]}"),
    ("other-tally.json", "{\"answers\":[{\"1\":260,\"0\":240},{\"1\":250,\"0\":250}]}"),
    ("strange-tally.json", "{\"answers\":[{\"7\":260}]}"),
    ("half.json", "{\"answers\":[{\"1\":26"),
    ("not-a-mechanism.json", "{\"name\":\"normal-form\"}"),
    ("half.toml", "version = \"1\"\nmechanism = "),
    ("not-a-card.toml", "name = \"normal-form\"\n"),
    ("unbalanced.alg", "YES = 0.5 \"Yes\"\nNO = 0.6 \"Yes\" + 0.6 \"No\"\n"),
    ("nonsense.alg", "this is not algebra\n"),
    ("me.json", "{\"road\": \"A1\"}"),
    ("list.json", "[1, 2]"),
    ("nested.json", "{\"road\": {\"name\": \"A1\"}}"),
    ("token", "an-analysts-token\n"),
    ("two-lines", "a token\nof two lines\n"),
    ("not.pem", "this is not a certificate\n"),
    ("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
    ("policy-half.toml", "attributes = [\"road\"]\n[card]\nanswer = 1.0\n"),
    ("values.txt", "\n\n"),
    ("secrets.csv", "owner,secret\na;not-a-secret\n"),
    ("semicolons.csv", "owner;road;speed:double\na;A1;50,5\n"),
    ("tabs.csv", "owner\troad\na\tA1\n"),
    ("header.csv", "owner,road\n"),
    ("same-columns.csv", "owner,road,road\na,A1,A2\n"),
    ("taxis.csv", "owner,taxi:bool\na,yes\n"),
    ("quoted-token", "\"an-analysts-token\"\n"),
    ("bearer-token", "Bearer an-analysts-token\n"),
    ("modes.txt", "car\nbas\n"),
    ("two-modes.txt", "car;bus\n"),
    ("many-modes.txt", "car;bus\ncar;bus;bike\n"),
    ("speeds.txt", "17\nfast\n"),
    ("modes.csv", "choice of car;bus;bike\ncar\nbas\n"),
    ("other-modes.csv", "choice of car;bus;train\ncar\n"),
    ("fewer-modes.csv", "choice of car;bus\ncar\n"),
    ("good-modes.csv", "choice of car;bus;bike\ncar\n"),
    ("same-modes.csv", "choice of car;car\ncar\n"),
    ("modes.ndjson", "{\"choice\":\"car\"}\n"),
    ("counts.json", "{\"owners\":1000,\"counts\":[260,740,0]}"),
    ("sums.json", "{\"owners\":1000,\"sums\":[260,741,2]}"),
    ("large-counts.json", "{\"owners\":1000,\"counts\":[1260,740,0]}"),
    ("named-counts.json", "{\"owners\":1000,\"counts\":[260,740,0],\"options\":[\"car\",\"bus\",\"bike\"]}"),
    ("names.txt", "car\n\nbike\n"),
];

fn stage() -> Folder {
    let folder = Folder::new("wrong-uses");
    for (name, text) in FILES {
        folder.file(name, text);
    }
    folder.file("binary", [0xff, 0xfe, 0x00]);
    std::fs::create_dir_all(folder.0.join("folder")).unwrap();
    let card = planned();
    folder.file("card.json", card.canonical());
    // A claim that is better than the truth.
    let mut boastful = card.clone();
    boastful.claims.release = "0.5".parse().unwrap();
    folder.file("boastful.json", boastful.canonical());
    let mut changed = card;
    let CardLaw::Cells { cells, .. } = &mut changed.channel.law else { panic!("a yes/no question") };
    cells.swap(0, 1);
    folder.file("changed.json", changed.canonical());
    let policy = format!(
        "signers = [\"{}\"]\nattributes = [\"road\"]\n\
         [card]\nanswer = 8.0\nlinked = 8.0\nrelease = 1.0\nanswer-with-release = 8.0\ndelta = 1e-6\nhonest = 1.0\n\
         separate-operators = false\nenrolment = false\n[lifetime]\nlinked = 100.0\nrelease = 10.0\ndelta = 1e-5\n",
        Signer::generate().public()
    );
    folder.file("policy-negative.toml", policy.replace("release = 1.0", "release = -1"));
    folder.file("policy-unknown.toml", policy.replace("honest = 1.0", "honest = 1.0\nhonset = 1.0"));
    folder.file("policy-unsigned.toml", policy.replacen("signers = [", "signers = [] # ", 1));
    folder.file("policy.toml", policy);
    folder
}

fn planned() -> Card {
    let mut request = Request::new(40, Prior::at(8));
    request.release = Some((Epsilon::new(2.0).unwrap(), Delta::new(1e-2).unwrap()));
    Card::new(&request, &plan(&request).unwrap())
}

/// The arguments of a line: blanks part them, except in quotation marks of either kind.
fn arguments(line: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut current: Option<String> = None;
    let mut mark = None;
    for sign in line.chars() {
        match (mark, sign) {
            (Some(open), sign) if sign == open => mark = None,
            (None, '\'' | '"') => {
                mark = Some(sign);
                current.get_or_insert_default();
            }
            (None, ' ') => arguments.extend(current.take()),
            (_, sign) => current.get_or_insert_default().push(sign),
        }
    }
    arguments.into_iter().chain(current).collect()
}

/// What is said to a case: the exit code, then stderr.
fn answer(folder: &Path, line: &str) -> String {
    let (line, input) = line.split_once(" < ").unwrap_or((line, "empty"));
    let output = Command::new(env!("CARGO_BIN_EXE_uptack"))
        .args(arguments(line))
        .current_dir(folder)
        .env_remove("COLUMNS")
        .stdin(std::fs::File::open(folder.join(input)).unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(output.stdout.is_empty(), "{line} writes {}", String::from_utf8_lossy(&output.stdout));
    let code = output.status.code().unwrap_or_else(|| panic!("{line} was killed"));
    format!("{code}\n{}", String::from_utf8_lossy(&output.stderr).trim_end())
}

/// All cases, on all cores.
fn answers(folder: &Path, lines: &[&str]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let said = Mutex::new(vec![String::new(); lines.len()]);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(line) = lines.get(index) else { return };
            let text = answer(folder, line);
            said.lock().unwrap()[index] = text;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    said.into_inner().unwrap()
}

fn snapshot() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/wrong_uses.txt")
}

#[test]
fn every_wrong_use_is_answered_as_the_snapshot_says() {
    let folder = stage();
    let expected = std::fs::read_to_string(snapshot()).unwrap();
    let lines: Vec<&str> = expected.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let said = answers(&folder.0, &lines);
    let blocks: Vec<String> = lines.iter().zip(&said).map(|(line, said)| format!("$ {line}\n{said}\n")).collect();
    let now = blocks.join("\n");
    if std::env::var_os("UPTACK_WRITE_SNAPSHOT").is_some() {
        std::fs::write(snapshot(), &now).unwrap();
        return;
    }
    for (block, before) in blocks.iter().zip(expected.split("\n$ ")) {
        let before = format!("$ {}\n", before.trim_start_matches("$ ").trim_end());
        assert_eq!(*block, before, "UPTACK_WRITE_SNAPSHOT=1 takes over what is said now");
    }
    assert_eq!(now, expected);
}

/// What was said to one wrong use.
struct Case<'a> {
    line: &'a str,
    code: &'a str,
    said: Vec<&'a str>,
}

fn cases(snapshot: &str) -> Vec<Case<'_>> {
    let blocks = snapshot.split("\n$ ").map(|block| block.trim_start_matches("$ ").lines());
    blocks
        .map(|mut lines| {
            let (line, code) = (lines.next().unwrap(), lines.next().unwrap());
            Case { line, code, said: lines.collect() }
        })
        .collect()
}

#[test]
fn the_snapshot_is_about_every_command() {
    let text = std::fs::read_to_string(snapshot()).unwrap();
    let cases = cases(&text);
    let lines: BTreeSet<&str> = cases.iter().map(|case| case.line).collect();
    assert!(lines.len() >= 150, "{} cases", lines.len());
    assert_eq!(lines.len(), cases.len(), "a case appears twice");
    let commands: BTreeSet<&str> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    let listed = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap().lines();
    // Their first line is indented by two blanks, what continues it by more.
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        assert!(commands.contains(name), "no wrong use of `{name}`");
    }
}

#[test]
fn no_wrong_use_succeeds_and_none_is_answered_with_a_panic_or_in_a_librarys_words() {
    let text = std::fs::read_to_string(snapshot()).unwrap();
    let raw = [
        "panicked",
        "RUST_BACKTRACE",
        "unwrap",
        "os error",
        "error sending request",
        "<input>",
        "Syntax error",
        "invalid float literal",
        "invalid digit",
        "invalid socket address",
        "no reason given",
    ];
    for case in cases(&text) {
        let whole = case.said.join("\n");
        assert!(matches!(case.code, "1" | "2"), "{}: {}", case.line, case.code);
        assert!(whole.starts_with("error: "), "{}: {whole}", case.line);
        for words in raw {
            assert!(!whole.contains(words), "{}: {whole}", case.line);
        }
    }
}

/// A hint is filler if it helps with no error in particular: it sends readers to the help or to the documentation, says the
/// error again, or stands below errors that have nothing to do with each other.
#[test]
fn no_hint_is_filler() {
    let text = std::fs::read_to_string(snapshot()).unwrap();
    let mut errors_by_hint: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for case in cases(&text) {
        let error = case.said[0].trim_start_matches("error: ");
        let hints: Vec<&str> = case.said.iter().filter_map(|line| line.strip_prefix("hint: ")).collect();
        assert!(hints.len() <= 1, "{}: {hints:?}", case.line);
        for hint in hints {
            for filler in ["--help", "uptack help", "documentation", "see the", "check the path", "try again"] {
                assert!(!hint.contains(filler), "{}: {hint}", case.line);
            }
            assert!(!error.contains(hint), "{}: {hint}", case.line);
            errors_by_hint.entry(hint).or_default().insert(without_particulars(error));
        }
    }
    for (hint, errors) in errors_by_hint {
        assert!(errors.len() <= 4, "`{hint}` stands below {} kinds of errors: {errors:#?}", errors.len());
    }
}

/// An error without the names and numbers of its case.
fn without_particulars(error: &str) -> String {
    let mut parts = error.split('`');
    let unquoted: String = parts.by_ref().step_by(2).collect();
    let (_, words) = unquoted.split_once(": ").unwrap_or(("", &unquoted));
    words.chars().filter(|sign| !sign.is_ascii_digit()).collect()
}

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
