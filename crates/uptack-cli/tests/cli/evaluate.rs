//! `uptack evaluate` on small networks made up here.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use super::{Folder, run};

/// Large enough that not every crowd is enumerated, which would take the composition of a day a minute.
fn network(folder: &Folder) -> String {
    let rows: String = (0..12).map(|index| format!("s{index},{}\n", [0, 4, 40, 3000][index % 4])).collect();
    folder.file("network.csv", format!("sensor,vehicles\n{rows}"))
}

fn evaluate<'a>(data: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["evaluate", "--data", data, "--trials", "20", "--factors", "1"], more].concat()
}

/// What one evaluation of the [`network`] printed with `--json`, and the files that it wrote.
pub(crate) struct Evaluation {
    pub(crate) document: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl Evaluation {
    /// Run once, for all tests that look at it.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Evaluation> = OnceLock::new();
        SHARED.get_or_init(|| Self::run(&Folder::new("evaluate-shared")))
    }

    fn run(folder: &Folder) -> Self {
        let (data, out) = (network(folder), folder.0.join("report"));
        let output = run(&evaluate(&data, &["--json", "--out", out.to_str().unwrap()]));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let entries = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap());
        let files = entries.map(|file| (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap()));
        Self { document: String::from_utf8(output.stdout).unwrap(), files: files.collect() }
    }

    fn bytes(&self, name: &str) -> &[u8] {
        self.files.get(name).unwrap_or_else(|| panic!("{name} was not written"))
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        std::str::from_utf8(self.bytes(name)).unwrap()
    }
}

const PLOTS: [&str; 12] = [
    "error-choice",
    "error-choice-linked",
    "error-trust",
    "error-release",
    "error-answer",
    "error-linked",
    "error-paper",
    "error-epsilon",
    "coverage",
    "histogram",
    "scatter",
    "map",
];

#[test]
fn rows_have_what_the_contract_names() {
    let document: serde_json::Value = serde_json::from_str(&Evaluation::shared().document).unwrap();
    assert_eq!(document["data"]["vehicles"], 9132);
    assert_eq!(document["complete"], true);
    let rows = document["rows"].as_array().unwrap();
    for comparison in ["choice", "choice-linked", "trust", "release", "answer", "linked", "paper"] {
        assert!(rows.iter().any(|row| row["comparison"] == comparison), "{comparison}");
    }
    let noisy: Vec<_> = rows.iter().filter(|row| row["honest"] == "one-aggregator").collect();
    assert_eq!(noisy.len(), 8, "without a channel and at linked ε = 12, 9, 7; a choice without and at 8, 9, 12");
    for row in noisy {
        assert!(row["views"]["one_aggregator"]["epsilon"]["upper"].as_f64().unwrap() <= 1.0, "{row}");
        assert_eq!(row["views"]["one_aggregator"]["delta"], 0, "{row}");
    }
    for row in rows {
        for key in
            ["mechanism", "comparison", "owners", "stations", "yes", "rmse", "relative_error", "coverage", "views"]
        {
            assert!(!row[key].is_null(), "{key} of {row}");
        }
        assert!(row["views"]["release"].is_object());
        // What is no curator is a mechanism that every command accepts.
        if row["kind"] != "curator" {
            let mechanism = row["mechanism"].as_str().unwrap();
            assert!(run(&["channel", mechanism]).status.success(), "{mechanism}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_document_whatever_is_printed() {
    let folder = Folder::new("evaluate-again");
    let (data, out) = (network(&folder), folder.0.join("report"));
    let output = run(&evaluate(&data, &["--out", out.to_str().unwrap()]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("report with all"), "{printed}");
    let again = std::fs::read_to_string(out.join("evaluation.json")).unwrap();
    assert_eq!(again, Evaluation::shared().text("evaluation.json"));
}

#[test]
fn the_report_is_complete_and_asks_nothing_of_the_network() {
    let evaluation = Evaluation::shared();
    for plot in PLOTS {
        assert!(evaluation.bytes(&format!("{plot}.svg")).starts_with(b"<svg"));
        #[cfg(feature = "png")]
        assert!(evaluation.bytes(&format!("{plot}.png")).starts_with(b"\x89PNG"));
    }
    let page = evaluation.text("index.html");
    assert_eq!(page.matches("<figure").count(), PLOTS.len());
    // The only address is the name of SVG itself.
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
    let rows = evaluation.text("rows.csv").lines().count() - 1;
    let stations = evaluation.text("stations.csv").lines().count() - 1;
    assert_eq!(stations, 12 * rows);
    let mut names = evaluation.files.keys();
    assert!(names.all(|name| !name.ends_with("unfinished")), "{:?}", evaluation.files.keys());
}

/// Interrupted in its trials, it leaves what was done: a valid document and report that say so, and nothing half written.
#[cfg(unix)]
#[test]
fn an_interrupt_leaves_a_valid_partial_report() {
    let folder = Folder::new("evaluate-interrupt");
    let data = network(&folder);
    // More trials than anybody waits for. If the machine is so slow that planning is not over, it is given more time.
    for (attempt, seconds) in [2, 5, 15, 45].into_iter().enumerate() {
        let out = folder.0.join(format!("report-{attempt}"));
        let output = interrupted(&data, &out, Duration::from_secs(seconds));
        if output.status.code().is_none() {
            continue;
        }
        let document = partial_report(&output, &out);
        let rows = document["rows"].as_array().unwrap();
        if !rows.is_empty() {
            assert!(rows.iter().all(|row| (1..4_000_000_000u64).contains(&row["trials"].as_u64().unwrap())));
            return;
        }
    }
    panic!("the trials never began");
}

/// What comes of a run that is interrupted after a while.
#[cfg(unix)]
fn interrupted(data: &str, out: &Path, after: Duration) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_uptack"))
        .args(["evaluate", "--data", data, "--trials", "4000000000", "--factors", "1", "--json", "--out"])
        .arg(out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success(), "it was over before it was interrupted");
    child.wait_with_output().unwrap()
}

/// Checks all that a stopped run leaves, and gives its document.
fn partial_report(output: &Output, out: &Path) -> serde_json::Value {
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("stopped; the results so far are kept"));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["complete"], false);
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&read("evaluation.json")).unwrap(), document);
    let rows = document["rows"].as_array().unwrap().len();
    assert_eq!(read("rows.csv").lines().count(), rows + 1);
    assert_eq!(read("stations.csv").lines().count(), 12 * rows + 1);
    let page = read("index.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</body></html>\n") && page.contains("Partial."));
    for tag in ["figure", "svg", "table", "tr", "td", "p", "h2", "div", "strong"] {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "<{tag}>");
    }
    let names = std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let unfinished: Vec<String> = names.filter(|name| name.starts_with('.')).collect();
    assert!(unfinished.is_empty(), "{unfinished:?}");
    document
}

#[test]
fn bad_data_is_refused_with_its_place_and_nothing_is_written() {
    let folder = Folder::new("evaluate-bad");
    let bad = folder.file("bad.csv", "sensor,vehicles\na,1\nb,many\n");
    let out = folder.0.join("report");
    let output = run(&evaluate(&bad, &["--out", out.to_str().unwrap()]));
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(talk.contains("bad.csv: line 3, field 2: `many` is not a whole number"), "{talk}");
    assert!(!out.exists() && output.stdout.is_empty());
    assert_eq!(run(&["evaluate", "--data", "/nowhere.csv"]).status.code(), Some(1));
    let few = folder.file("few.csv", "sensor,vehicles\na,1\nb,2\n");
    assert_eq!(run(&evaluate(&few, &[])).status.code(), Some(1));
}
