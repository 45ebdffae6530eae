//! Somebody who gets hold of the device's disk after a report was acknowledged, and searches it for the answer.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
};
use uptack_dap::signed::Signer;
use uptack_owner::ledger::{ChargeDecision, Due, Ledger, SeriesToss, State, StoredReport};

use crate::world::*;

/// Whether any file of a folder holds these bytes.
fn holds(folder: &Path, bytes: &[u8]) -> bool {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    files.into_iter().any(|file| file.windows(bytes.len()).any(|window| window == bytes))
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_acknowledgement_neither_cell_nor_bytes_are_in_any_file() {
    let world = World::start().await;
    let mut card = card(&world.signer, 40);
    with_mechanism(&mut card, "randomized-response(t=0.6)");
    let names: Vec<String> = (0..64).map(|name| name.to_string()).collect();
    with_ballot(&mut card, &names.iter().map(String::as_str).collect::<Vec<_>>(), 1);
    let (signed, _) = world.serve(card).await;
    let text = policy_text(&world.signer).replace("20.0", "\"unlimited\"").replace("4.0", "\"unlimited\"");
    let policy = uptack_owner::policy::Policy::from_toml(&text).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let owners: Vec<String> = (0..20).map(|owner| owner.to_string()).collect();
    let device = client(directory.path(), policy.clone());
    let outcomes =
        device.consider(&owners.iter().map(String::as_str).collect::<Vec<_>>(), std::slice::from_ref(&signed)).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.reason.is_none()), "{:?}", outcomes[0]);
    device.prepare(&BTreeMap::new()).await.unwrap();
    let stored: Vec<StoredReport> = owners
        .iter()
        .map(|owner| Due { owner: owner.clone(), query: signed.query.clone(), upload: 0 })
        .map(|due| device.ledger().report(&due).unwrap().unwrap())
        .collect();
    // Coins of 64 questions are found by chance nowhere else.
    let traces: Vec<&[u8]> = stored
        .iter()
        .flat_map(|report| [&report.measurement[..], &report.bytes[..64], &report.bytes[report.bytes.len() - 64..]])
        .collect();
    assert!(traces.iter().any(|trace| holds(directory.path(), trace)), "the search finds what is there");
    assert_eq!(device.upload(&BTreeMap::new()).await.unwrap(), 20);
    assert!(!traces.iter().any(|trace| holds(directory.path(), trace)), "at once");
    drop(device);
    assert!(!traces.iter().any(|trace| holds(directory.path(), trace)), "after a normal end");
    drop(client(directory.path(), policy));
    assert!(!traces.iter().any(|trace| holds(directory.path(), trace)), "after the next start");
}

/// What a series' coins tell is as secret as a cell, and they stay for longer.
#[tokio::test(flavor = "multi_thread")]
async fn the_coins_of_a_series_are_in_no_file_after_it_has_ended() {
    let signer = Signer::generate();
    let signed = signer.sign(&card(&signer, 40)).unwrap();
    let checker = checker(policy(&signer));
    let accepted = checker.check_card(&signed).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(directory.path()).unwrap();
    let (coins, ends) = (b"THE-COINS-OF-A-SERIES".repeat(20), now() + 86_400);
    let due = Due { owner: "vehicle".to_owned(), query: signed.query.clone(), upload: now() };
    ledger.accept(&signed, &accepted, &[("vehicle", due.upload)], &checker, now()).unwrap();
    let toss = SeriesToss { charge: "series".to_owned(), coins: coins.clone(), used: 1, ends };
    let report = StoredReport { measurement: vec![1], bytes: vec![2; 64], credential: None, toss: Some(toss.clone()) };
    ledger.store(&[(due.clone(), report)]).unwrap();
    ledger.settle(&[(due, State::Sent)]).unwrap();
    assert!(holds(directory.path(), &coins), "the search finds what is there");
    ledger.expire(ends - 1).unwrap();
    assert_eq!(ledger.toss("vehicle", "series").unwrap(), Some(toss));
    ledger.expire(ends).unwrap();
    let left = ledger.toss("vehicle", "series").unwrap().unwrap();
    assert_eq!((left.coins, left.used), (Vec::new(), 0));
    assert!(!holds(directory.path(), &coins), "at once");
    drop(ledger);
    assert!(!holds(directory.path(), &coins), "after a normal end");
}

const OWNERS: usize = 150;
const CELL: &[u8] = b"THE-CELL-OF-AN-OWNER";
const BYTES: &[u8] = b"THE-SEALED-BYTES-OF-AN-OWNER";

/// What a child process does before it is killed.
#[derive(Clone, Copy)]
enum Life {
    /// Stores reports.
    Stored,
    /// Stores them and notes that they were acknowledged.
    Settled,
    /// Deletes them as an earlier version did, so that the log still holds them.
    Deleted,
}

const FOLDER: &str = "UPTACK_TEST_LEDGER";
const LIFE: &str = "UPTACK_TEST_LIFE";
/// The test whose process lives such a life when it is told to.
const CHILD: &str = "dishonest_reader::a_process_killed_after_the_acknowledgement_leaves_nothing";

fn reports(query: &str) -> Vec<(Due, StoredReport)> {
    let report = |owner: usize| {
        let due = Due { owner: format!("owner {owner}"), query: query.to_owned(), upload: now() };
        // Of different sizes, so that pages are split and joined.
        let bytes = BYTES.repeat(10 + owner * 7 % 90);
        (due, StoredReport { measurement: CELL.repeat(1 + owner % 5), bytes, credential: None, toss: None })
    };
    (0..OWNERS).map(report).collect()
}

/// What the process does that the tests below start and kill.
fn live(folder: &Path, life: &str) {
    let signer = Signer::generate();
    let signed = signer.sign(&card(&signer, 40)).unwrap();
    let policy = policy(&signer);
    let checker = checker(policy);
    let accepted = checker.check_card(&signed).unwrap();
    let ledger = Ledger::open(folder).unwrap();
    let reports = reports(&signed.query);
    let moments: Vec<(&str, u64)> = reports.iter().map(|(due, _)| (due.owner.as_str(), due.upload)).collect();
    let accepted = ledger.accept(&signed, &accepted, &moments, &checker, now()).unwrap();
    assert!(accepted.iter().all(|acceptance| *acceptance == ChargeDecision::Charged));
    ledger.store(&reports).unwrap();
    let mut raw = None;
    match life {
        "settled" => {
            let (one, two): (Vec<_>, Vec<_>) =
                reports.iter().partition(|(due, _)| due.owner.ends_with(['1', '4', '7']));
            for half in [one, two] {
                ledger
                    .settle(&half.into_iter().map(|(due, _)| (due.clone(), State::Sent)).collect::<Vec<_>>())
                    .unwrap();
            }
        }
        "deleted" => {
            let file = rusqlite::Connection::open(folder.join("ledger.sqlite3")).unwrap();
            file.execute_batch("PRAGMA secure_delete = ON; DELETE FROM reports; UPDATE entries SET state = 'sent'")
                .unwrap();
            raw = Some(file);
        }
        _ => {}
    }
    let mut pipe = std::io::stdout();
    writeln!(pipe, "\nquery {}", signed.query).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(600));
    drop((raw, ledger));
}

/// Runs a child in a folder until it has done its work, kills it there and then, and says which query it answered.
fn live_and_die(folder: &Path, life: Life) -> String {
    let life = match life {
        Life::Stored => "stored",
        Life::Settled => "settled",
        Life::Deleted => "deleted",
    };
    let mut child: Child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", CHILD])
        .env(FOLDER, folder)
        .env(LIFE, life)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let query = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("query ").map(str::to_owned));
    child.kill().unwrap();
    child.wait().unwrap();
    query.expect("the child says what it answered")
}

#[test]
fn a_process_killed_after_the_acknowledgement_leaves_nothing() {
    if let (Ok(folder), Ok(life)) = (std::env::var(FOLDER), std::env::var(LIFE)) {
        return live(Path::new(&folder), &life);
    }
    let folder = tempfile::tempdir().unwrap();
    live_and_die(folder.path(), Life::Settled);
    assert!(!holds(folder.path(), CELL) && !holds(folder.path(), BYTES));
    let ledger = Ledger::open(folder.path()).unwrap();
    assert!(ledger.entries().unwrap().iter().all(|entry| entry.state == State::Sent));
    assert_eq!(ledger.entries().unwrap().len(), OWNERS);
}

#[test]
fn what_a_killed_process_left_is_gone_once_it_is_settled_or_expired() {
    for is_settled in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let query = live_and_die(folder.path(), Life::Stored);
        assert!(holds(folder.path(), CELL) && holds(folder.path(), BYTES), "the search finds what is there");
        let ledger = Ledger::open(folder.path()).unwrap();
        if is_settled {
            let ended: Vec<_> = reports(&query).into_iter().map(|(due, _)| (due, State::Sent)).collect();
            ledger.settle(&ended).unwrap();
        } else {
            assert_eq!(ledger.expire(now() + 1_000_000).unwrap(), OWNERS);
        }
        assert!(!holds(folder.path(), CELL) && !holds(folder.path(), BYTES));
    }
}

#[test]
fn a_log_that_an_earlier_version_left_is_emptied_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    live_and_die(folder.path(), Life::Deleted);
    assert!(holds(folder.path(), CELL), "the log holds what was deleted");
    let ledger = Ledger::open(folder.path()).unwrap();
    assert!(!holds(folder.path(), CELL) && !holds(folder.path(), BYTES));
    assert_eq!(ledger.entries().unwrap().len(), OWNERS);
}

#[cfg(unix)]
#[test]
fn folder_and_files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("ledger");
    for _ in 0..2 {
        let ledger = Ledger::open(&folder).unwrap();
        ledger.postpone(&[(Due { owner: "a".into(), query: "b".into(), upload: 0 }, 1)]).unwrap();
        let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() >= 4, "file, log, index of the log and lock: {files:?}");
        assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
        assert_eq!(mode(&folder), 0o700);
        drop(ledger);
        // As an earlier version left them.
        set(&folder, 0o755);
        set(&folder.join("lock"), 0o644);
    }
    // A folder with other things in it is not ours to close.
    let shared = outer.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    set(&shared, 0o755);
    drop(Ledger::open(&shared).unwrap());
    assert_eq!(mode(&shared), 0o755);
}
