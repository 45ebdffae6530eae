//! A desk on a disk that fills up or fails: a record that was stored is there, whole, and no other is.

use std::{io::Write, path::Path};

use super::{Store, insert, tests::query};
use crate::{
    base::faults::Fault,
    desk::store::{Query, QueryState},
    error::Result,
};

const FOLDER: &str = "UPTACK_TEST_FAULTY_DESK";
/// The test whose process works on a faulty disk when it is told to.
const CHILD: &str = "desk::store::faults::a_disk_that_fills_up_anywhere_keeps_every_stored_record_whole";
const QUERIES: usize = 8;

fn name(number: usize) -> String {
    format!("query-{number}")
}

/// A record that takes more than one page.
fn record(number: usize) -> String {
    format!("{number},").repeat(3000)
}

/// Collects queries, and says whose records were stored.
fn live(folder: &Path) {
    let mut pipe = std::io::stdout();
    let mut say = |line: String| writeln!(pipe, "\n{line}").unwrap();
    let store = match Store::open(folder) {
        Ok(store) => store,
        Err(error) => return say(format!("failed {error}")),
    };
    for number in 0..QUERIES {
        match collect(&store, number) {
            Ok(true) => say(format!("stored {number}")),
            Ok(false) => say(format!("unknown {number}")),
            Err(error) => say(format!("failed {error}")),
        }
    }
    say("finished".to_owned());
}

fn collect(store: &Store, number: usize) -> Result<bool> {
    store.collected(&name(number), &record(number))
}

/// Lives on a faulty disk and checks what is left. Returns whether the disk failed.
fn survives(fault: Fault) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("desk");
    let store = Store::open(&folder).unwrap();
    for number in 0..QUERIES {
        insert(&store.lock(), &Query { state: QueryState::Closed, ..query(&name(number)) }).unwrap();
    }
    drop(store);
    let lines = fault.lines_of_child(CHILD, FOLDER, &folder);
    let ended = lines.iter().any(|line| line == "finished" || line.starts_with("failed "));
    assert!(ended && !lines.iter().any(|line| line.starts_with("unknown ")), "{fault:?}: {lines:?}");
    let store = Store::open(&folder).unwrap();
    for number in 0..QUERIES {
        let kept = store.query(&name(number)).unwrap().unwrap();
        assert_eq!((kept.state, kept.signed.card.as_str()), (QueryState::Closed, "{}"), "{fault:?}");
        let is_stored = lines.contains(&format!("stored {number}"));
        // One that failed may be there all the same, but whole: the desk collects it again, and keeps the first.
        assert!(kept.record.as_ref().map_or(!is_stored, |kept| *kept == record(number)), "{fault:?}: {number}");
        assert_eq!(collect(&store, number).unwrap(), kept.record.is_none(), "{fault:?}: {number}");
    }
    lines.iter().any(|line| line.starts_with("failed "))
}

#[cfg(unix)]
#[test]
fn a_disk_that_fills_up_anywhere_keeps_every_stored_record_whole() {
    if let Ok(folder) = std::env::var(FOLDER) {
        return live(Path::new(&folder));
    }
    let limits = [0, 65, 77, 90, 107, 121, 155, 190, 250, 100_000];
    let failed = limits.into_iter().filter(|&blocks| survives(Fault::Full { blocks })).count();
    assert!((5..10).contains(&failed), "the limits are where the store writes: {failed}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fails_to_synchronize_anywhere_keeps_every_stored_record_whole() {
    let failed = (1..=9).chain([1000]).filter(|&from| survives(Fault::Sync { from })).count();
    assert!((5..10).contains(&failed), "the store synchronizes before it returns: {failed}");
}
