//! A desk as a process, asked and read by the command line.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use uptack::card::Card;
use uptack_dap::ballot;
use uptack_dap::card_task;
use uptack_dap::client::Client;
use uptack_dap::protocol::Measurement;

use crate::{Folder, json, run};

const PATIENCE: Duration = Duration::from_secs(60);
/// Long enough to upload within and to be killed within, short enough to wait for.
const CLOSES: &str = "15s";

/// A server as a process, killed at the end.
pub(crate) struct Process(Child, pub(crate) String);

impl Process {
    /// Starts a server and reads its address from the end of its first line.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_uptack"));
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().to_owned();
        assert!(address.starts_with("http://127.0.0.1:"), "{arguments:?} printed `{line}`");
        Self(child, address)
    }

    /// Starts a server with `--json` and reads the document that it prints.
    pub(crate) fn start_json(arguments: &[&str]) -> (Self, Value) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_uptack"));
        command.args(arguments).arg("--json").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = serde_json::Deserializer::from_reader(child.stdout.take().unwrap());
        let document: Value = output.into_iter().next().unwrap().unwrap();
        let address = document["address"].as_str().unwrap().to_owned();
        (Self(child, address), document)
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// SIGKILL: no handler runs, nothing is flushed.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) struct Desk {
    pub(crate) folder: Folder,
    pub(crate) process: Process,
}

impl Desk {
    pub(crate) fn new(name: &str, more: &[&str]) -> Self {
        let folder = Folder::new(name);
        let data = folder.0.join("desk");
        let process = Process::start(&[&["serve", "--data", data.to_str().unwrap()], more].concat());
        Self { folder, process }
    }

    fn data(&self) -> PathBuf {
        self.folder.0.join("desk")
    }

    /// `kill -9`, and a new start on the same folder.
    pub(crate) fn kill_and_restart(self) -> Self {
        let address = self.process.1.clone();
        let data = self.folder.0.join("desk");
        self.process.kill();
        let process = Process::start(&["serve", "--data", data.to_str().unwrap()]);
        assert_eq!(process.1, address, "addresses stay");
        Self { folder: self.folder, process }
    }

    fn with_access(&self, command: &[&str], more: &[&str]) -> Vec<String> {
        let token = self.data().join("tokens").join("analyst");
        let access = ["--desk", &self.process.1, "--token", token.to_str().unwrap()];
        [command, &access, more].concat().into_iter().map(str::to_owned).collect()
    }

    pub(crate) fn json(&self, command: &[&str], more: &[&str]) -> Value {
        let arguments = self.with_access(command, &[more, &["--json"]].concat());
        json(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(crate) fn run(&self, command: &[&str], more: &[&str]) -> Output {
        let arguments = self.with_access(command, more);
        run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The key that owners pin.
    pub(crate) fn signer(&self) -> String {
        uptack_dap::signed::Signer::load_or_create(&self.data().join("signing.key")).unwrap().public().to_string()
    }

    pub(crate) fn ask(&self, more: &[&str]) -> Value {
        self.json(&["ask", "--question", "Where are you?"], &[&PLAN[..], more].concat())
    }
}

/// The key that a desk of this name will sign with: aggregators that pin it are started before the desk.
pub(crate) fn key_of(name: &str) -> String {
    let data = std::env::temp_dir().join(format!("uptack-cli-{}-{name}", std::process::id())).join("desk");
    std::fs::create_dir_all(&data).unwrap();
    uptack_dap::signed::Signer::load_or_create(&data.join("signing.key")).unwrap().public().to_string()
}

/// So few owners that the estimates say hardly anything.
#[rustfmt::skip]
const PLAN: [&str; 13] = [
    "--owners", "40", "--minimum-batch", "24", "--yes", "8", "--epsilon", "1", "--delta", "1e-2", "--noise", "none", "--anyway",
];
const ONE: [&str; 4] = ["--where", "station == \"7\"", "--closes", CLOSES];

fn upload(card: &Value, measurements: &[Measurement]) {
    let card = Card::from_json(&card.to_string()).unwrap();
    let client = Client::new(card_task::parameters(&card).unwrap()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for measurement in measurements {
        runtime.block_on(client.upload(measurement, card.window().unwrap().0, PATIENCE)).unwrap();
    }
}

/// The cells that the card's mechanism draws, whichever it is: their numbers and outputs.
fn drawn(card: &Value) -> Vec<(usize, &str)> {
    let cells = card["channel"]["cells"].as_array().unwrap().iter().enumerate();
    let possible = cells.filter(|(_, cell)| cell["yes"] != "0" || cell["no"] != "0");
    possible.map(|(index, cell)| (index, cell["outputs"][0].as_str().unwrap())).collect()
}

/// So many reports of the first cell that is drawn, and so many of the last.
fn reports(card: &Value, first: usize, last: usize) -> Vec<Measurement> {
    let drawn = drawn(card);
    let report = |cell: &(usize, &str)| Measurement::Cell(cell.0);
    [vec![report(&drawn[0]); first], vec![report(&drawn[drawn.len() - 1]); last]].concat()
}

fn failure(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_query_survives_kills_and_its_record_lets_anyone_recompute() {
    let desk = Desk::new("desk-kills", &[]);
    let asked = desk.ask(&ONE);
    let query = asked["query"].as_str().unwrap();
    assert_eq!(asked["closes"], asked["card"]["closes"]);
    assert_eq!(asked["card"]["attributes"], serde_json::json!(["station"]));

    let desk = desk.kill_and_restart();
    upload(&asked["card"], &reports(&asked["card"], 6, 6));
    let (code, text) = failure(&desk.run(&["result", query], &[]));
    assert!(code == Some(1) && text.contains("closes at") && text.contains("--wait"), "{text}");
    let desk = desk.kill_and_restart();
    upload(&asked["card"], &reports(&asked["card"], 5, 10));

    let record = desk.folder.0.join("record.json");
    let result = desk.json(&["result", query], &["--wait", "--confidence", "99%", "--out", record.to_str().unwrap()]);
    assert_eq!((&result["reports"], &result["query"]), (&27.into(), &asked["query"]));
    assert_eq!(result["card"], asked["card"]);
    let desk = desk.kill_and_restart();
    let again = desk.folder.0.join("again.json");
    assert_eq!(desk.json(&["result", query], &["--confidence", "99%", "--out", again.to_str().unwrap()]), result);
    let text = std::fs::read_to_string(&record).unwrap();
    assert_eq!(std::fs::read_to_string(again).unwrap(), text);

    // From the record alone: its card to `privacy`, its tally to `estimate`.
    let kept: Value = serde_json::from_str(&text).unwrap();
    let card = desk.folder.file("card.json", kept["card"].as_str().unwrap());
    let tally = desk.folder.file("tally.json", kept["tally"].to_string());
    let estimated = json(&["estimate", &card, &tally, "--confidence", "99%", "--json"]);
    for (name, value) in estimated.as_object().unwrap() {
        assert_eq!(&result[name], value, "{name}");
    }
    // Or all at once.
    let verified = json(&["verify", record.to_str().unwrap(), "--desk-key", &desk.signer(), "--json"]);
    assert_eq!((&verified["holds"], &verified["trust"]), (&true.into(), &result["trust"]));
    let views = json(&["privacy", &card, "--json"]);
    let trust = result["trust"].as_array().unwrap();
    assert_eq!((&trust[0]["view"], &trust[0]["model"]), (&"release".into(), &"OAMC".into()));
    assert_eq!(trust[0]["epsilon"], views["views"]["release"]["epsilon"]["upper"]);
    assert_eq!((&trust[1]["epsilon"], &trust[1]["model"]), (&views["views"]["linked"], &"OC".into()));
    assert!(trust[0]["holds"].as_str().unwrap().contains("Not against the operator"));
}

#[test]
fn too_few_answers_and_a_cancelled_query_give_nothing() {
    let desk = Desk::new("desk-few", &[]);
    let few = desk.ask(&["--where", "station == \"7\"", "--closes", "5s"]);
    upload(&few["card"], &reports(&few["card"], 0, 23));
    let (code, text) = failure(&desk.run(&["result", few["query"].as_str().unwrap()], &["--wait"]));
    assert!(code == Some(1) && text.contains("minimum batch of 24: 23 did, 1 too few"), "{text}");

    let asked = desk.ask(&["--where", "station == \"8\"", "--closes", "1h"]);
    let query = asked["query"].as_str().unwrap();
    assert_eq!(desk.json(&["cancel", query], &[])["state"], "cancelled");
    let (code, text) = failure(&desk.run(&["result", query], &["--wait"]));
    assert!(code == Some(1) && text.contains("cancelled by its analyst"), "{text}");
}

#[test]
fn what_owners_would_refuse_is_not_asked() {
    let desk = Desk::new("desk-refuses", &[]);
    let ask = |more: &[&str]| failure(&desk.run(&["ask", "--question", "?"], &[&PLAN[..], more].concat()));
    for (more, words) in [
        (&["--where", "[1].exists(x, x == lane)", "--closes", "5m"][..], "refused"),
        (&["--where", "station ==", "--closes", "5m"], "refused"),
        (&["--where", "station == \"7\"", "--attributes", "speed", "--closes", "5m"], "reads `station`"),
        (&["--where", "station == 7", "--attributes", "station:text", "--closes", "5m"], "never true"),
        (&["--where", "3 + 4", "--closes", "5m"], "not a yes/no expression"),
        (&["--where", "station == \"7\"", "--closes", "2s"], "the shortest window is 5s"),
        (&["--where", "station == \"7\""], "--closes"),
        (&["--where", "station == \"7\"", "--closes", "soon"], "span of time"),
        (&["--each", "station", "--values", "a,a", "--closes", "5m"], "`a` is given twice"),
        (&["--each", "station", "--values", ",", "--closes", "5m"], "the list is empty"),
        (&["--where", "x", "--closes", "5m", "--every", "5m", "--times", "2"], "--every"),
    ] {
        let (code, text) = ask(more);
        assert!(code == Some(1) && text.contains(words), "{more:?}: {text}");
    }
    let listed = desk.folder.file("token", "no-such-token");
    let stranger = ["ask", "--question", "?", "--desk", &desk.process.1, "--token", &listed];
    let (code, text) = failure(&run(&[&stranger[..], &PLAN, &ONE].concat()));
    assert!(code == Some(1) && text.contains("401") && text.contains("DATA/tokens/analyst"), "{text}");
}

#[test]
fn a_series_keeps_within_its_guarantee_as_a_whole() {
    let desk = Desk::new("desk-series", &[]);
    let asked = desk.ask(&["--where", "station == \"7\"", "--every", "1h", "--times", "6"]);
    assert_eq!(asked["queries"].as_array().unwrap().len(), 6);
    assert_eq!(asked["queries"][0]["query"], asked["query"]);
    let claims = &asked["card"]["claims"];
    let epsilon = |value: &Value| value.as_str().unwrap().parse::<f64>().unwrap();
    let (one, whole) = (epsilon(&claims["release"]), epsilon(&claims["whole"]["release"]));
    assert_eq!(claims["whole"]["queries"], "6");
    assert!(whole <= 1.0 && whole > 0.7, "{whole} uses what is allowed");
    assert!(one > 1.0 / 6.0, "{one} is more than an equal share: the composition is better than the sum");
    // Six queries of one question: each row says which window it is.
    let table = String::from_utf8(desk.run(&["queries"], &[]).stdout).unwrap();
    let windows: Vec<&str> = table.lines().skip(1).map(|row| row.split("  ").nth(2).unwrap()).collect();
    let different = std::collections::BTreeSet::from_iter(&windows);
    assert!(different.len() == 6 && windows.iter().all(|window| window.contains(" to ")), "{table}");
}

#[test]
fn a_ballot_through_aggregators_elsewhere() {
    let folder = Folder::new("desk-elsewhere");
    let admin = folder.file("admin", "the-operators-token");
    let place = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    let (leader, helper, secret) = (place("leader"), place("helper"), place("pair.secret"));
    assert!(run(&["pair-secret", &secret]).status.success());
    assert_eq!(run(&["pair-secret", &secret]).status.code(), Some(1), "the secret of a pair is not written over");
    let key = key_of("desk-ballot");
    let common = ["--admin-token", &admin, "--pair-secret", &secret, "--desk-key", &key, "--smallest-batch", "24"];
    let helper = Process::start(&[&["aggregator", "--role", "helper", "--data", &helper], &common[..]].concat());
    let peer = ["aggregator", "--role", "leader", "--data", &leader, "--peer", &helper.1];
    let leader = Process::start(&[&peer[..], &common[..]].concat());
    let external = ["--leader", &leader.1, "--helper", &helper.1, "--leader-admin", &admin, "--helper-admin", &admin];
    let desk = Desk::new("desk-ballot", &external);
    let values = desk.folder.file("stations", "north\nsouth\neast\n");
    let card_file = desk.folder.0.join("card.toml");
    let out = card_file.to_str().unwrap();
    let asked = desk.ask(&["--each", "station", "--values", &values, "--closes", CLOSES, "--out", out]);
    let card = &asked["card"];
    assert_eq!((&card["operators"], &card["ballot"]["queries"][1]["name"]), (&"two".into(), &"south".into()));
    assert!(card["claims"]["whole"]["release"].as_str().unwrap().parse::<f64>().unwrap() <= 1.0);
    assert!(run(&["privacy", out]).status.success());

    let output = |(_, output): &(usize, &str)| match *output {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    };
    let drawn: Vec<Option<bool>> = drawn(card).iter().map(output).collect();
    let (first, second) = (drawn[0], drawn[drawn.len() - 1]);
    let north = vec![ballot::measurement(&[first, second, second]); 14];
    let others = vec![ballot::measurement(&[second; 3]); 13];
    upload(card, &[north, others].concat());
    let result = desk.json(&["result", asked["query"].as_str().unwrap()], &["--wait", "--confidence", "90%"]);
    let estimates = result["estimates"].as_array().unwrap();
    assert_eq!((result["reports"].as_u64(), result["confidence"].as_f64()), (Some(27), Some(0.9)));
    assert_eq!(
        estimates.iter().map(|entry| entry["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["north", "south", "east"]
    );
    for entry in estimates {
        let (low, high) = (entry["interval"][0].as_f64().unwrap(), entry["interval"][1].as_f64().unwrap());
        assert!(0.0 <= low && low < high && high <= 27.0 && entry["sd"].as_f64().unwrap() > 0.0, "{entry}");
    }
    assert!(estimates[0]["estimate"].as_f64() > estimates[2]["estimate"].as_f64());
    // All intervals hold at once, and the consistent estimates are possible: `most_yes` is 1.
    assert!(estimates.iter().all(|entry| entry["interval_kind"] == "exact"), "{estimates:?}");
    let consistent: Vec<f64> = estimates.iter().map(|entry| entry["consistent"].as_f64().unwrap()).collect();
    assert!(consistent.iter().all(|estimate| *estimate >= 0.0) && consistent.iter().sum::<f64>() <= 27.0 + 1e-9);
    assert!(result["trust"][0]["holds"].as_str().unwrap().contains("one of the two aggregators is honest"));
}
