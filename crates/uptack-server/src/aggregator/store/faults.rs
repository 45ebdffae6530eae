//! A store on a disk that fills up: what was acknowledged is there, once, and the store goes on when there is room.

use std::{collections::BTreeSet, io::Write, path::Path, process::Command};

use super::{ChangeResult, Store};
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

/// Runs a child that cannot make any file longer than so many blocks of 512 bytes: the system writes what fits and refuses the
/// rest.
fn lines_of_child(folder: &Path, blocks: usize) -> Vec<String> {
    let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited]).arg(std::env::current_exe().unwrap());
    let output = command.args(["--exact", CHILD, "--nocapture"]).env(FOLDER, folder).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_disk_that_fills_up_anywhere_keeps_every_acknowledged_report_once() {
    if let Ok(folder) = std::env::var(FOLDER) {
        return tokio::task::spawn_blocking(move || live(Path::new(&folder))).await.unwrap();
    }
    let mut refused = 0;
    for blocks in [0, 65, 77, 90, 107, 121, 138, 155, 171, 190, 100_000] {
        let folder = tempfile::tempdir().unwrap();
        drop(Store::open(folder.path(), AggregatorRole::Leader, None).unwrap());
        let lines = lines_of_child(folder.path(), blocks);
        let numbers = |word: &str| -> BTreeSet<i64> {
            lines.iter().filter_map(|line| line.strip_prefix(word)?.trim().parse().ok()).collect()
        };
        let ended = lines.iter().any(|line| line == "finished" || line.starts_with("failed "));
        assert!(ended, "{blocks}: it neither hangs nor dies: {lines:?}");
        refused += usize::from(lines.iter().any(|line| line.starts_with("refused ") || line.starts_with("failed ")));
        let store = Store::open(folder.path(), AggregatorRole::Leader, None).unwrap();
        assert!(stored(&store).is_superset(&numbers("stored")), "{blocks}: {lines:?}");
        // With room again, what was refused can be sent again.
        for report in numbers("refused").difference(&stored(&store)) {
            put(&store, *report).await.unwrap();
        }
        assert!(stored(&store).is_superset(&numbers("refused")), "{blocks}");
    }
    assert!((5..11).contains(&refused), "the limits are where the store writes: {refused}");
}
