//! Faults of the disk: no room, writes that stop half-way, a log that ends anywhere. Nothing that was acknowledged is lost or
//! counted twice, and a budget that was spent stays spent.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};
use uptack_dap::signed::{SignedCard, Signer};
use uptack_owner::{
    check::Checker,
    ledger::{ChargeDecision, Due, Ledger, Spent, State, StoredReport},
    policy::Policy,
};

use crate::world::*;

/// A policy that keeps a budget for the linked answers alone, whose charges cost no time.
fn linked_only(signer: &Signer) -> Policy {
    let text = policy_text(signer);
    let limited = text.rfind("release = 20.0").unwrap();
    Policy::from_toml(&format!("{}release = \"unlimited\"{}", &text[..limited], &text[limited + 14..])).unwrap()
}

fn signed(signer: &Signer, number: usize) -> SignedCard {
    let mut card = card(signer, 40);
    card.question = Some(format!("Question {number}?"));
    signer.sign(&card).unwrap()
}

fn accept(ledger: &Ledger, checker: &Checker, signed: &SignedCard) -> uptack_owner::Result<()> {
    let accepted = checker.check_card(signed).unwrap();
    let decided = ledger.accept(signed, &accepted, &[("self", now() + 10)], checker, now())?;
    assert_eq!(decided, [ChargeDecision::Charged]);
    Ok(())
}

fn due(query: &str) -> Due {
    Due { owner: "self".to_owned(), query: query.to_owned(), upload: now() + 10 }
}

/// How many queries the budget counts; none if it was not begun.
fn counted(spent: &[Spent]) -> usize {
    spent.iter().find(|spent| spent.view == "linked").map_or(0, |spent| spent.queries as usize)
}

fn is_sound(folder: &Path) -> bool {
    let file = open_raw(&folder.join("ledger.sqlite3"));
    file.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap() == "ok"
}

const FOLDER: &str = "UPTACK_TEST_FAULTY_LEDGER";
/// The test whose process works on a faulty disk when it is told to.
const CHILD: &str = "faults::a_disk_that_fills_up_anywhere_loses_nothing_acknowledged_and_returns_no_budget";
const CARDS: usize = 3;

/// Answers cards and says what was acknowledged, until the disk fails.
fn live(folder: &Path) {
    let mut pipe = std::io::stdout();
    let mut say = |line: String| writeln!(pipe, "\n{line}").unwrap();
    let signer = Signer::generate();
    let checker = Checker::new(linked_only(&signer));
    let mut work = || -> uptack_owner::Result<()> {
        let ledger = Ledger::open(folder)?;
        for number in 0..CARDS {
            let signed = signed(&signer, number);
            accept(&ledger, &checker, &signed)?;
            say(format!("charged {}", signed.query));
            let report =
                StoredReport { measurement: vec![1; 8], bytes: vec![number as u8; 3000], credential: None, toss: None };
            ledger.store(&[(due(&signed.query), report)])?;
            say(format!("stored {}", signed.query));
            if number == 0 {
                ledger.settle(&[(due(&signed.query), State::Sent)])?;
                say(format!("settled {}", signed.query));
            }
        }
        Ok(())
    };
    match work() {
        Ok(()) => say("finished".to_owned()),
        Err(error) => say(format!("failed {error}")),
    }
}

/// What is wrong with the disk of a child.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// No file can be longer than so many blocks of 512 bytes. The system writes what fits and refuses the rest, as a disk that is
    /// full does.
    Full { blocks: usize },
    /// From this call on, data is written and synchronizing it fails.
    Sync { from: usize },
}

/// Runs a child on a faulty disk.
fn lines_of_child(folder: &Path, fault: Fault) -> Vec<String> {
    let mut command = Command::new("sh");
    let limit = match fault {
        Fault::Full { blocks } => format!("trap '' XFSZ; ulimit -f {blocks}; "),
        Fault::Sync { from } => {
            command.env("LD_PRELOAD", failing_sync()).env("UPTACK_TEST_SYNC_FAILS_FROM", from.to_string());
            String::new()
        }
    };
    let output = command
        .args(["-c", &format!("{limit}exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", CHILD, "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The library that makes synchronizing fail, compiled by the compiler that SQLite needs, too.
fn failing_sync() -> &'static Path {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("failing_sync.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../checks/faults/failing_sync.c");
        let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status().unwrap();
        assert!(compiled.success());
        library
    });
    &LIBRARY
}

/// Lives on a faulty disk and checks what is left. Returns whether the disk failed.
fn survives(fault: Fault) -> bool {
    let folder = tempfile::tempdir().unwrap();
    drop(Ledger::open(folder.path()).unwrap());
    let lines = lines_of_child(folder.path(), fault);
    let said = |word: &str| -> Vec<&str> { lines.iter().filter_map(|line| line.strip_prefix(word)).collect() };
    let (charged, stored, settled) = (said("charged "), said("stored "), said("settled "));
    let failed = said("failed ").first().copied();
    match failed {
        Some(error) => assert!(error.contains("ledger: ") && error.contains("make room"), "{fault:?}: {error}"),
        None => assert!(lines.iter().any(|line| line == "finished"), "{fault:?}: {lines:?}"),
    }
    assert!(is_sound(folder.path()), "{fault:?}");
    let ledger = Ledger::open(folder.path()).unwrap();
    let entries = ledger.entries().unwrap();
    assert_eq!(counted(&ledger.spent().unwrap()), entries.len(), "{fault:?}: an answer and its price go together");
    let state = |query: &str| ledger.state("self", query).unwrap();
    assert!(charged.iter().all(|query| state(query).is_some()), "{fault:?}: {lines:?}");
    assert!(entries.len() <= charged.len() + 1, "{fault:?}: at most the one that failed was charged as well");
    assert!(settled.iter().all(|query| state(query) == Some(State::Sent)), "{fault:?}");
    for query in stored.iter().filter(|query| state(query) == Some(State::Due)) {
        assert!(
            ledger.report(&due(query)).unwrap().is_some(),
            "{fault:?}: a stored report is sent again, never made anew"
        );
    }
    // Once the disk works again, the ledger goes on.
    let signer = Signer::generate();
    accept(&ledger, &checker(linked_only(&signer)), &signed(&signer, 9)).unwrap();
    assert_eq!(counted(&ledger.spent().unwrap()), entries.len() + 1);
    failed.is_some()
}

#[cfg(unix)]
#[test]
fn a_disk_that_fills_up_anywhere_loses_nothing_acknowledged_and_returns_no_budget() {
    if let Ok(folder) = std::env::var(FOLDER) {
        return live(Path::new(&folder));
    }
    let limits = [0, 3, 65, 70, 83, 101, 120, 140, 163, 185, 210, 100_000];
    let failed = limits.into_iter().filter(|&blocks| survives(Fault::Full { blocks })).count();
    assert!((5..12).contains(&failed), "the limits are where the ledger writes: {failed}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fails_to_synchronize_anywhere_loses_nothing_acknowledged_and_returns_no_budget() {
    let failed = (1..=14).chain([1000]).filter(|&from| survives(Fault::Sync { from })).count();
    assert!((5..15).contains(&failed), "the ledger synchronizes before it acknowledges: {failed}");
}

/// Copies a ledger whose log ends after so many bytes, as after a loss of power, possibly in garbage.
fn torn_copy(file: &[u8], log: &[u8], length: usize, garbage: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ledger.sqlite3"), file).unwrap();
    let mut torn = log[..length].to_vec();
    let from = torn.len().saturating_sub(garbage);
    torn[from..].iter_mut().for_each(|byte| *byte ^= 0x5a);
    std::fs::write(folder.path().join("ledger.sqlite3-wal"), torn).unwrap();
    folder
}

#[test]
fn a_log_that_is_torn_anywhere_has_a_charge_and_its_entry_or_neither() {
    let signer = Signer::generate();
    let checker = checker(linked_only(&signer));
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path()).unwrap();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    accept(&ledger, &checker, &signed(&signer, 0)).unwrap();
    let acknowledged = read("ledger.sqlite3-wal").len();
    accept(&ledger, &checker, &signed(&signer, 1)).unwrap();
    let (file, log) = (read("ledger.sqlite3"), read("ledger.sqlite3-wal"));
    assert!(log.len() > acknowledged);
    let mut found = [0, 0];
    for length in (acknowledged..=log.len()).step_by(611).chain([log.len()]) {
        for garbage in [0, length - acknowledged] {
            let copy = torn_copy(&file, &log, length, garbage.min(700));
            let torn = Ledger::open(copy.path()).unwrap();
            let entries = torn.entries().unwrap().len();
            assert!((1..=2).contains(&entries), "{length}: {entries}");
            assert_eq!(counted(&torn.spent().unwrap()), entries, "{length}: {garbage}");
            found[entries - 1] += 1;
            drop(torn);
            assert!(is_sound(copy.path()), "{length}");
        }
    }
    assert!(found[0] > 2 && found[1] > 0, "{found:?}");
}
