//! The whole network as processes: the demo, fleets, kills, aggregators elsewhere, a large ballot.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desk::{Desk, Process, key_of};
use crate::{Folder, json, run};

/// What a fleet of the tests allows: nearly everything, by a key.
fn policy(desk: &Desk) -> String {
    format!(
        "signers = [\"{}\"]\nattributes = [\"station\"]\n\
         [card]\ntrust = \"owners\"\nanswer = \"unlimited\"\nlinked = \"unlimited\"\nrelease = 4.0\nanswer-with-release = \"unlimited\"\n\
         delta = 1e-2\nhonest = 1.0\nseparate-operators = false\nenrolment = false\n\
         [lifetime]\nlinked = 1000.0\nrelease = 100.0\ndelta = 1e-1\n",
        desk.signer()
    )
}

/// Owners of whom every `stations`-th is at each station.
pub(crate) fn fleet_csv(owners: usize, stations: usize) -> String {
    let row = |index: usize| format!("owner-{index},{}\n", index % stations);
    format!("owner,station\n{}", (0..owners).map(row).collect::<String>())
}

pub(crate) struct Fleet {
    arguments: Vec<String>,
    data: PathBuf,
}

impl Fleet {
    pub(crate) fn new(desk: &Desk, csv: String, within: &str) -> Self {
        let (owners, policy) = (desk.folder.file("owners.csv", csv), desk.folder.file("policy.toml", policy(desk)));
        let data = desk.folder.0.join("fleet");
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let arguments = ["fleet".to_owned(), text(Path::new(&owners)), "--desk".to_owned(), desk.process.1.clone()];
        let more = ["--policy".to_owned(), text(Path::new(&policy)), "--data".to_owned(), text(&data)];
        let last = ["--within", within, "--json"].map(str::to_owned);
        Self { arguments: arguments.into_iter().chain(more).chain(last).collect(), data }
    }

    pub(crate) fn run(&self) -> Value {
        json(&self.arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// What it says, whatever comes of it.
    pub(crate) fn output(&self) -> Output {
        self.output_with(&[])
    }

    pub(crate) fn output_with(&self, more: &[&str]) -> Output {
        run(&self.arguments.iter().map(String::as_str).chain(more.iter().copied()).collect::<Vec<_>>())
    }

    fn start(&self) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_uptack"));
        command.args(&self.arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Where the fleet keeps its ledger.
    pub(crate) fn data(&self) -> &str {
        self.data.to_str().unwrap()
    }

    /// Entries and the share of the linked budget that is spent, of all owners.
    pub(crate) fn ledger(&self) -> Value {
        json(&["ledger", "--data", self.data(), "--json"])
    }

    /// How many entries the ledger's file has, read while a client has it open.
    fn entries_on_disk(&self) -> i64 {
        let count = rusqlite::Connection::open_with_flags(
            self.data.join("ledger.sqlite3"),
            rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
        )
        .and_then(|connection| connection.query_row("SELECT count(*) FROM entries", [], |row| row.get(0)));
        count.unwrap_or(0)
    }
}

/// Whether all owners have answered one query, now or before.
pub(crate) fn all_answered(outcome: &Value, query: &Value, owners: usize) {
    let rows = outcome["outcomes"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["query"] == *query && row["status"] == "answered"), "{outcome}");
    assert_eq!(rows.iter().map(|row| row["owners"].as_u64().unwrap()).sum::<u64>(), owners as u64, "{outcome}");
}

fn plan(owners: &str, minimum: &str) -> Vec<String> {
    let fixed = ["--yes", "0..10", "--epsilon", "2", "--delta", "1e-3", "--owners", owners, "--minimum-batch", minimum];
    let fixed = [&fixed[..], &["--noise", "none", "--anyway"]].concat();
    fixed.into_iter().map(str::to_owned).collect()
}

pub(crate) fn ask(desk: &Desk, owners: &str, minimum: &str, more: &[&str]) -> Value {
    let plan = plan(owners, minimum);
    let plan: Vec<&str> = plan.iter().map(String::as_str).collect();
    desk.json(&["ask", "--question", "Where are you?"], &[&plan[..], more].concat())
}

pub(crate) const AT_SEVEN: [&str; 2] = ["--where", "station == \"7\""];

/// Every count would be about zero, and every owner would have paid for it.
#[test]
fn a_fleet_whose_attributes_do_not_fit_refuses_and_spends_nothing() {
    let desk = Desk::new("network-misfit", &[]);
    ask(&desk, "60", "40", &["--where", "station == 7", "--closes", "1h"]);
    for (csv, words) in [
        (fleet_csv(60, 10), "for 60 of 60 owners, the predicate mixes up types: it compares `station` (text)"),
        (
            fleet_csv(60, 10).replacen("station", "Station", 1),
            "60 of 60 owners have no `station`, but there is `Station`",
        ),
        (fleet_csv(60, 10).replace(',', ";"), "is the separator a semicolon?"),
        (fleet_csv(60, 10).replacen("owner", "vehicle", 1), "no column is called `owner`, so the owners are named by"),
    ] {
        let fleet = Fleet::new(&desk, csv, "1s");
        let output = fleet.output();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && told.contains(words) && told.contains("hint: "), "{told}");
        assert_eq!(fleet.entries_on_disk(), 0);
    }
}

#[test]
fn the_demo_counts_its_vehicles() {
    let shown = json(&["demo", "--vehicles", "400", "--closes", "8s", "--json"]);
    let number = |name: &str| shown[name].as_f64().unwrap();
    assert_eq!(number("reports"), 400.0);
    let (low, high) = (shown["interval"][0].as_f64().unwrap(), shown["interval"][1].as_f64().unwrap());
    // The demo itself fails if the truth is far outside. The interval is that of the pages, at the same confidence.
    assert!(low <= number("estimate").max(0.0) && number("estimate") <= high, "{shown}");
    assert_eq!(number("confidence"), 0.95);
    assert!(number("truth") > 0.0 && number("seconds") > 0.0 && number("estimate").is_finite());
    assert_eq!(shown["card"]["operators"], "one");
}

/// The README shows a demo of 3 000 vehicles; but for its numbers, another one looks the same.
#[test]
fn the_demo_tells_what_the_readme_shows() {
    let output = run(&["demo", "--vehicles", "400", "--closes", "8s"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8([output.stderr, output.stdout].concat()).unwrap();
    let readme = include_str!("../../../../README.md");
    let shown = readme.split_once("$ cargo run --release -- demo\n").unwrap().1.split_once("…\n```").unwrap().0;
    let mut lines = printed.lines();
    for line in shown.lines().filter(|line| !line.contains(['├', '↑'])) {
        assert!(lines.any(|printed| without_numbers(printed) == without_numbers(line)), "`{line}` in\n{printed}");
    }
}

/// The words of a line, whatever its numbers.
fn without_numbers(line: &str) -> String {
    let is_word = |word: &&str| !word.starts_with(|first: char| first.is_ascii_digit());
    let words = line.split(|c: char| c.is_whitespace() || "(=:),".contains(c)).filter(|word| !word.is_empty());
    words.filter(is_word).collect::<Vec<_>>().join(" ")
}

#[test]
fn kills_of_the_client_and_of_everything_at_once_answer_once() {
    let desk = Desk::new("network-kills", &[]);
    let asked = ask(&desk, "60", "40", &[&AT_SEVEN[..], &["--closes", "25s"]].concat());
    let fleet = Fleet::new(&desk, fleet_csv(60, 12), "10s");

    // Killed with every entry made and few reports sent.
    let mut child = fleet.start();
    let end = Instant::now() + Duration::from_secs(60);
    while fleet.entries_on_disk() < 60 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let charged = fleet.ledger();
    assert_eq!(charged["entries"].as_array().unwrap().len(), 60);

    // Started again, and everything is killed at once.
    let mut child = fleet.start();
    std::thread::sleep(Duration::from_secs(2));
    child.kill().unwrap();
    let desk = desk.kill_and_restart();
    child.wait().unwrap();

    all_answered(&fleet.run(), &asked["query"], 60);
    let settled = fleet.ledger();
    assert_eq!(settled["budgets"], charged["budgets"], "no entry is lost, and none is charged twice");
    let query = asked["query"].as_str().unwrap();
    let result = desk.json(&["result", query], &["--wait"]);
    assert_eq!(result["reports"], 60);
}

#[test]
fn a_query_goes_through_two_aggregators_elsewhere() {
    let folder = Folder::new("network-elsewhere");
    let path = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    let tokens: Vec<String> = ["leader", "helper"]
        .iter()
        .map(|role| folder.file(&format!("{role}.token"), format!("token-of-the-{role}-of-this-test")))
        .collect();
    let (key, secret) = (key_of("network-elsewhere-desk"), path("pair.secret"));
    assert!(run(&["pair-secret", &secret]).status.success());
    let start = |role: &str, token: &str, more: &[&str]| {
        let data = path(role);
        let fixed = ["aggregator", "--role", role, "--data", &data, "--admin-token", token];
        let fixed = [&fixed[..], &["--pair-secret", &secret, "--desk-key", &key]].concat();
        Process::start(&[&fixed[..], more].concat())
    };
    let helper = start("helper", &tokens[1], &[]);
    let leader = start("leader", &tokens[0], &["--peer", &helper.1]);
    let more =
        ["--leader", &leader.1, "--helper", &helper.1, "--leader-admin", &tokens[0], "--helper-admin", &tokens[1]];
    let desk = Desk::new("network-elsewhere-desk", &more);
    let asked = ask(&desk, "60", "40", &[&AT_SEVEN[..], &["--closes", "12s"]].concat());
    assert_eq!(asked["card"]["operators"], "two");
    let fleet = Fleet::new(&desk, fleet_csv(60, 12), "2s");
    all_answered(&fleet.run(), &asked["query"], 60);
    let result = desk.json(&["result", asked["query"].as_str().unwrap()], &["--wait"]);
    assert_eq!(result["reports"], 60);
    let holds = result["trust"][0]["holds"].as_str().unwrap();
    assert!(holds.contains("one of the two aggregators"), "{holds}");

    // One owner by itself: refused by its own policy, with the reason.
    let own = folder.file("own.toml", policy(&desk).replace("release = 4.0", "release = 0.01"));
    let me = folder.file("me.json", r#"{"station": "7"}"#);
    let second = ask(&desk, "60", "40", &[&AT_SEVEN[..], &["--closes", "12s"]].concat());
    let ledger = path("own-ledger");
    let told = json(&[
        "answer",
        "--desk",
        &desk.process.1,
        "--policy",
        &own,
        "--data",
        &ledger,
        "--attributes",
        &me,
        "--json",
    ]);
    assert_eq!((&told[0]["query"], &told[0]["status"]), (&second["query"], &json!("refused")));
    assert!(told[0]["reason"].as_str().unwrap().contains("the release"));
}

#[test]
fn only_enrolled_owners_are_counted() {
    let desk = Desk::new("network-enrolment", &["--enrolment"]);
    let fleet = Fleet::new(&desk, fleet_csv(60, 12), "2s");
    let enrolled = desk.folder.file("enrolled.csv", fleet_csv(50, 12));
    let credentials = desk.folder.0.join("credentials.csv").to_str().unwrap().to_owned();
    let keys = desk.folder.0.join("desk").join("credentials").to_str().unwrap().to_owned();
    assert_eq!(json(&["enrol", &enrolled, "--credentials", &credentials, "--keys", &keys, "--json"])["owners"], 50);
    let asked = ask(&desk, "60", "40", &[&AT_SEVEN[..], &["--closes", "12s"]].concat());
    assert_eq!(asked["card"]["enrolment"], "required");
    // The leader looks at the list once a second.
    std::thread::sleep(Duration::from_secs(2));
    let mut arguments: Vec<&str> = fleet.arguments.iter().map(String::as_str).collect();
    arguments.extend(["--credentials", &credentials]);
    let outcome = json(&arguments);
    let counted = |status: &str| {
        let rows = outcome["outcomes"].as_array().unwrap().iter();
        rows.filter(|row| row["status"] == status).map(|row| row["owners"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((counted("answered"), counted("failed")), (50, 10), "{outcome}");
    assert_eq!(desk.json(&["result", asked["query"].as_str().unwrap()], &["--wait"])["reports"], 50);
}

#[test]
fn a_ballot_over_a_hundred_stations() {
    let desk = Desk::new("network-ballot", &[]);
    let stations: String = (0..100).map(|station| format!("{station}\n")).collect();
    let values = desk.folder.file("stations.txt", stations);
    let owners = 2500;
    let plan = ["--owners", "2500", "--minimum-batch", "2250", "--yes", "0..50", "--epsilon", "3", "--delta", "1e-4"];
    let plan = [&plan[..], &["--noise", "none"]].concat();
    // Long enough for one process to make the reports of all owners before the first is sent.
    let each = ["--each", "station", "--values", &values, "--closes", "120s"];
    let asked = desk.json(&["ask", "--question", "Where are you?"], &[&plan[..], &each].concat());
    assert_eq!(asked["card"]["ballot"]["queries"].as_array().unwrap().len(), 100);
    let whole: f64 = asked["card"]["claims"]["whole"]["release"].as_str().unwrap().parse().unwrap();
    assert!(whole <= 3.0);
    let fleet = Fleet::new(&desk, fleet_csv(owners, 125), "5s");
    all_answered(&fleet.run(), &asked["query"], owners);
    let query = asked["query"].as_str().unwrap();
    let result = desk.json(&["result", query], &["--wait", "--confidence", "99.99%"]);
    let estimates = result["estimates"].as_array().unwrap();
    assert_eq!((estimates.len(), result["reports"].as_u64()), (100, Some(owners as u64)));
    for estimate in estimates {
        let (low, high) = (estimate["interval"][0].as_f64().unwrap(), estimate["interval"][1].as_f64().unwrap());
        // Twenty of 2500 are at each of 125 stations, of which a hundred are asked about.
        assert!(low <= 20.0 && 20.0 <= high, "{estimate}");
    }
}
