//! The examples in every `--help` do what they show.
//!
//! Time is not looked at here. `checks/help_examples` runs this with `UPTACK_EXAMPLE_TIMES` naming a file, to which the
//! seconds of every example are written, the slow ones included, and with `UPTACK_EXAMPLE_BINARY` naming the release
//! build, and looks at them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use uptack::card::{Aggregators, Card};
use uptack_dap::card_task;
use uptack_dap::collector::Collected;
use uptack_dap::release::record::Record;
use uptack_dap::signed::Signer;
use uptack_dap::task::{AggregatorRole, CollectorTask};
use uptack_server::aggregator::CardDefinition;
use uptack_server::aggregator::PairSecret;

use crate::help::commands;
use crate::{Folder, run};

/// These talk to servers, which are met in tests of their own.
const NEED_A_DESK: [&str; 12] = [
    "--desk",
    "serve",
    "aggregator",
    "demo",
    "ledger",
    "answer",
    "fleet",
    "ask",
    "result",
    "cancel",
    "queries",
    "backup",
];
/// These take seconds; an ordinary run of the tests does them with less to do, elsewhere.
const SLOW: [&str; 3] = ["evaluate", "--samples 3e7", "uptack plan"];

#[test]
fn every_example_that_needs_no_desk_works() {
    let times = std::env::var_os("UPTACK_EXAMPLE_TIMES");
    let is_due = |example: &&String| times.is_some() || !SLOW.iter().any(|slow| example.contains(slow));
    let examples: Vec<String> = commands().iter().flat_map(|command| examples(command)).collect();
    let here: Vec<&String> = examples.iter().filter(|example| !needs_a_desk(example)).collect();
    assert!(here.len() > 30, "{here:?}");
    let mut seconds = String::new();
    for example in here.into_iter().filter(is_due) {
        let stage = Stage::new();
        let started = Instant::now();
        let output = stage.run(example);
        let _ = writeln!(seconds, "{:.2}\t{example}", started.elapsed().as_secs_f64());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{example}\n{stderr}");
        assert!(!stderr.contains("error:"), "{example}\n{stderr}");
    }
    if let Some(path) = times {
        std::fs::write(path, seconds).unwrap();
    }
}

/// The binary whose examples are run.
fn binary() -> PathBuf {
    std::env::var_os("UPTACK_EXAMPLE_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_uptack").into(), PathBuf::from)
}

fn needs_a_desk(example: &str) -> bool {
    let mut words = example.split_whitespace();
    words.any(|word| NEED_A_DESK.contains(&word))
}

fn help(arguments: &[&str]) -> String {
    // Wide enough that no line is broken.
    let output = Command::new(binary()).args(arguments).env("COLUMNS", "1000").output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The indented lines below `Examples:`; one that ends in a backslash goes on.
fn examples(command: &str) -> Vec<String> {
    let help = help(&[command, "--help"]);
    let Some(rest) = help.split("Examples:\n").nth(1).or_else(|| help.split("Example:\n").nth(1)) else {
        return Vec::new();
    };
    let text = rest.replace("\\\n", " ");
    text.lines().take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
}

/// A folder with the files that examples mention.
struct Stage {
    folder: Folder,
    signer: Signer,
}

impl Stage {
    fn new() -> Self {
        let stage = Self { folder: Folder::new("examples"), signer: Signer::generate() };
        let stations: String = (0..12).map(|index| format!("s{index},{}\n", [0, 4, 40, 3000][index % 4])).collect();
        for (name, text) in [
            ("truths.txt", ["yes\n".repeat(30), "no\n".repeat(170)].concat()),
            ("rows.csv", ["A\n".to_owned(), "1\n".repeat(60), "0\n".repeat(140)].concat()),
            ("monday.csv", "A\n1\n0\n".to_owned()),
            ("tuesday.csv", "A\n0\n0\n".to_owned()),
            ("tally.json", r#"{"answers":[{"1":260,"0":24740,"bottom":25000}]}"#.to_owned()),
            ("snapshot.csv", format!("sensor,vehicles\n{stations}")),
            ("vehicles.csv", "owner,station\nv1,7\nv2,8\n".to_owned()),
            ("d12_text_station_5min_2019_10_08.txt.gz", clearinghouse()),
            ("d12_text_meta.txt", metadata()),
        ] {
            stage.folder.file(name, text);
        }
        for home in [".zfunc", ".local/share/bash-completion/completions", ".config/fish/completions", "desk"] {
            std::fs::create_dir_all(stage.folder.0.join(home)).unwrap();
        }
        stage.copy_algebra();
        let card = stage.write_channel_card_and_record();
        stage.write_definition(card);
        stage
    }

    fn copy_algebra(&self) {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        std::fs::create_dir_all(self.folder.0.join("examples")).unwrap();
        for entry in std::fs::read_dir(examples).unwrap().filter_map(Result::ok) {
            if entry.path().extension().is_some_and(|ending| ending == "alg") {
                std::fs::copy(entry.path(), self.folder.0.join("examples").join(entry.file_name())).unwrap();
            }
        }
    }

    fn write_channel_card_and_record(&self) -> Card {
        self.folder.file("channel.json", run(&["channel", "randomized-response(t=0.8)", "--json"]).stdout);
        let path = self.folder.0.join("card.json");
        let plan = ["plan", "--owners", "200", "--yes", "20", "--epsilon", "2", "--delta", "1e-4"];
        let toml = self.folder.0.join("card.toml");
        for path in [&path, &toml] {
            let output = run(&[&plan[..], &["--out", path.to_str().unwrap()]].concat());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let mut card = Card::from_json(&std::fs::read_to_string(path).unwrap()).unwrap();
        card.signer = Some(self.signer.public().to_string());
        card.opens = "2026-11-15T08:00:00Z".parse().ok();
        card.closes = "2026-11-15T09:00:00Z".parse().ok();
        let mut counts = vec![0; card.checked_channel().unwrap().cells().len()];
        (counts[0], counts[1]) = (50, 150);
        let batch = Collected { reports: 200, counts, sums: None, start: 0, finish: 0 };
        let record = Record::new(&self.signer.sign(&card).unwrap(), &batch, 1_800_000_000).unwrap();
        self.folder.file("record.json", serde_json::to_string(&record).unwrap());
        card
    }

    /// What a desk writes for the operators of two aggregators.
    fn write_definition(&self, mut card: Card) {
        let [leader, helper] = ["leader", "helper"].map(|name| format!("https://{name}.example/"));
        card.aggregators = Some(Aggregators { leader, helper });
        let collector = CollectorTask::generate(card_task::parameters(&card).unwrap());
        let definition = CardDefinition::new(AggregatorRole::Helper, self.signer.sign(&card).unwrap(), &collector);
        std::fs::create_dir_all(self.folder.0.join("provision/QUERY")).unwrap();
        self.folder.file("provision/QUERY/helper.json", serde_json::to_string(&definition).unwrap());
    }

    /// As a shell runs it; a pager that may not be there is replaced by one that is.
    fn run(&self, example: &str) -> Output {
        if !example.starts_with("uptack pair-secret") {
            PairSecret::create(&self.folder.0.join("pair.secret")).unwrap();
        }
        let binary = binary();
        let path = std::env::join_paths(
            std::iter::once(binary.parent().unwrap().to_owned())
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        );
        let line = example.replace("man -l -", "cat").replace("ed25519:…", &self.signer.public().to_string());
        Command::new("sh")
            .args(["-c", &line])
            .current_dir(&self.folder.0)
            .env("PATH", path.unwrap())
            .env("HOME", &self.folder.0)
            .output()
            .unwrap()
    }
}

/// A day of the clearinghouse's rows for three stations of one lane.
fn clearinghouse() -> String {
    let row = |minute: u32, station: u32| {
        let time = format!("10/08/2019 {:02}:{:02}:00", minute / 60, minute % 60);
        format!("{time},120000{station},12,5,N,ML,0.5,10,100,{0},0.05,60,10,{0},0.05,60,1\n", 400 + 100 * station)
    };
    (0..36).flat_map(|window| (1..=3).map(move |station| row(5 * window, station))).collect()
}

fn metadata() -> String {
    let header =
        "ID\tFwy\tDir\tDistrict\tCounty\tCity\tState_PM\tAbs_PM\tLatitude\tLongitude\tLength\tType\tLanes\tName\n";
    let row = |station: u32| {
        format!(
            "120000{station}\t5\tN\t12\t59\t1\t1.0\t1.0\t33.{station}\t-117.{station}\t0.5\tML\t1\tStation {station}\n"
        )
    };
    format!("{header}{}", (1..=3).map(row).collect::<String>())
}
