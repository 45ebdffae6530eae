//! A store on a disk that fills up or fails: what was acknowledged is there, once, and the store goes on when the disk works again.

use std::{collections::BTreeSet, io::Write, path::Path};

use super::{ChangeResult, Store};
use crate::base::faults::Fault;
use uptack_dap::task::AggregatorRole;

const FOLDER: &str = "UPTACK_TEST_FAULTY_STORE";
/// The test whose process works on a faulty disk when it is told to.
const CHILD: &str = "aggregator::store::faults::a_disk_that_fills_up_anywhere_keeps_every_acknowledged_report_once";
const ROUNDS: i64 = 6;
const AT_ONCE: i64 = 4;

async fn put(store: &Store, report: i64) -> ChangeResult<()> {
    let insert = "INSERT INTO reports(report, task, report_id, time, content) VALUES (?1, 1, ?1, 0, zeroblob(3000))";
    store
        .write(move |connection| {
            connection.execute(insert, [report])?;
            Ok(())
        })
        .await
}

fn stored(store: &Store) -> BTreeSet<i64> {
    store
        .read(|connection| {
            let mut statement = connection.prepare("SELECT report FROM reports")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .unwrap()
}

/// Stores several reports at once, again and again, and says which were acknowledged.
fn live(folder: &Path) {
    let mut pipe = std::io::stdout();
    let mut say = |line: String| writeln!(pipe, "\n{line}").unwrap();
    let store = match Store::open(folder, AggregatorRole::Leader, None) {
        Ok(store) => store,
        Err(error) => return say(format!("failed {error}")),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for round in 0..ROUNDS {
        let reports = (0..AT_ONCE).map(|number| AT_ONCE * round + number + 1);
        let answers = runtime
            .block_on(futures_util::future::join_all(reports.map(async |report| (report, put(&store, report).await))));
        for (report, answer) in answers {
            say(format!("{} {report}", if answer.is_ok() { "stored" } else { "refused" }));
        }
    }
    say("finished".to_owned());
}

/// Lives on a faulty disk and checks what is left. Returns whether the disk failed.
async fn survives(fault: Fault) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("state");
    drop(Store::open(&folder, AggregatorRole::Leader, None).unwrap());
    let lines = fault.lines_of_child(CHILD, FOLDER, &folder);
    let numbers = |word: &str| -> BTreeSet<i64> {
        lines.iter().filter_map(|line| line.strip_prefix(word)?.trim().parse().ok()).collect()
    };
    let ended = lines.iter().any(|line| line == "finished" || line.starts_with("failed "));
    assert!(ended, "{fault:?}: it neither hangs nor dies: {lines:?}");
    let store = Store::open(&folder, AggregatorRole::Leader, None).unwrap();
    assert!(stored(&store).is_superset(&numbers("stored")), "{fault:?}: {lines:?}");
    // Once the disk works again, what was refused can be sent again.
    for report in numbers("refused").difference(&stored(&store)) {
        put(&store, *report).await.unwrap();
    }
    assert!(stored(&store).is_superset(&numbers("refused")), "{fault:?}");
    lines.iter().any(|line| line.starts_with("refused ") || line.starts_with("failed "))
}

#[tokio::test]
async fn a_disk_that_fills_up_anywhere_keeps_every_acknowledged_report_once() {
    if let Ok(folder) = std::env::var(FOLDER) {
        return tokio::task::spawn_blocking(move || live(Path::new(&folder))).await.unwrap();
    }
    let mut refused = 0;
    for blocks in [0, 65, 77, 90, 107, 121, 138, 155, 171, 190, 100_000] {
        refused += usize::from(survives(Fault::Full { blocks }).await);
    }
    assert!((5..11).contains(&refused), "the limits are where the store writes: {refused}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_disk_that_fails_to_synchronize_anywhere_keeps_every_acknowledged_report_once() {
    let mut refused = 0;
    for from in (1..=9).chain([1000]) {
        refused += usize::from(survives(Fault::Sync { from }).await);
    }
    assert!((5..10).contains(&refused), "the store synchronizes before it acknowledges: {refused}");
}
