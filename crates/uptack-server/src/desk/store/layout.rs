//! The files of a desk: the layout of its database, and consistent copies of all of them.

use std::path::Path;
use uptack_dap::task::AggregatorRole;

use crate::{
    aggregator,
    base::{backup, sqlite::Database},
    error::Result,
};

/// The file of a desk's state, in its folder.
pub const STATE_FILE: &str = "desk.sqlite3";
/// Files that a desk keeps next to it.
const FILES: [&str; 3] = ["signing.key", "pair.secret", "credentials"];

/// Copies a desk's state, keys and tokens, and those of an embedded pair, into a new folder that another desk can be
/// started with.
pub fn back_up(data: &Path, out: &Path) -> Result<()> {
    backup::make_folder(out, |folder| {
        // The desk first: aggregators that know more tasks than the desk do no harm; with fewer, reports would be lost.
        backup::copy_database(&data.join(STATE_FILE), &folder.join(STATE_FILE))?;
        for name in FILES {
            backup::copy_file(&data.join(name), &folder.join(name))?;
        }
        backup::copy_files(&data.join("tokens"), &folder.join("tokens"))?;
        copy_pair(data, folder)
    })
}

/// Copies the state of an embedded pair, if there is one.
fn copy_pair(data: &Path, folder: &Path) -> Result<()> {
    for role in [AggregatorRole::Leader, AggregatorRole::Helper] {
        let part = data.join(role.to_string());
        if part.join(aggregator::STATE_FILE).exists() {
            aggregator::copy_into(&part, &folder.join(role.to_string()))?;
        }
    }
    Ok(())
}

pub(crate) const DATABASE: Database = Database { file: STATE_FILE, user: "desk", steps: STEPS };

const STEPS: &[&str] = &[
    "CREATE TABLE queries(
        query TEXT PRIMARY KEY,
        card TEXT NOT NULL,
        signature TEXT NOT NULL,
        opens INTEGER NOT NULL,
        closes INTEGER NOT NULL,
        state TEXT NOT NULL,
        reason TEXT,
        tasks TEXT,
        job BLOB,
        record TEXT);
    CREATE INDEX queries_by_state ON queries(state, closes);
    CREATE INDEX queries_with_tasks ON queries(state) WHERE tasks IS NOT NULL;",
    // Nobody knows who asked the earlier queries: only administrators may touch them.
    "ALTER TABLE queries ADD COLUMN analyst TEXT;
    CREATE TABLE openings(
        analyst TEXT NOT NULL,
        key TEXT NOT NULL,
        digest BLOB NOT NULL,
        created INTEGER NOT NULL,
        queries TEXT NOT NULL,
        PRIMARY KEY(analyst, key)) WITHOUT ROWID;",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desk::store::{QueryState, Store};
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    use rusqlite::Connection;

    /// The tables of a desk with version 1 of the layout.
    const CONTENT_1: &str = "
        CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        INSERT INTO meta(key, value) VALUES ('layout', '1'), ('listen', '127.0.0.1:8470');
        INSERT INTO queries VALUES
            ('old', '{}', 'sig', 5, 10, 'released', NULL, NULL, x'000102030405060708090a0b0c0d0e0f', 'the record');
    ";

    fn file(directory: &Path) -> Connection {
        Connection::open(directory.join("desk.sqlite3")).unwrap()
    }

    fn at_first_layout(directory: &Path) -> Connection {
        let connection = file(directory);
        connection.execute_batch(STEPS[0]).unwrap();
        connection.execute_batch(CONTENT_1).unwrap();
        connection
    }

    /// Databases that these steps made are in use: a step is never changed, another one is added.
    #[test]
    fn released_steps_stay_what_they_were() {
        let digest = uptack_dap::crypto::sha256(STEPS[..2].concat().as_bytes());
        assert_eq!(URL_SAFE_NO_PAD.encode(digest), "q6_RF1uMvQIKid4Myl67W0lEU9qLSvRiYABzyXnCxqc");
    }

    /// Every table and index as SQLite describes it.
    fn shape(directory: &Path) -> Vec<(String, Vec<String>)> {
        let connection = file(directory);
        let mut statement = connection.prepare("SELECT name FROM sqlite_schema ORDER BY name").unwrap();
        let names: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(|text| text.unwrap()).collect();
        let columns = |name: &String| {
            let mut statement = connection.prepare("SELECT name || ' ' || type FROM pragma_table_info(?1)").unwrap();
            statement.query_map([name], |row| row.get(0)).unwrap().map(|text| text.unwrap()).collect()
        };
        names.iter().map(|name| (name.clone(), columns(name))).collect()
    }

    #[test]
    fn a_store_of_the_previous_layout_is_taken_over_with_all_that_is_in_it() {
        let directory = tempfile::tempdir().unwrap();
        at_first_layout(directory.path());
        let store = Store::open(directory.path()).unwrap();
        let old = store.query("old").unwrap().unwrap();
        assert_eq!((old.state, old.record.as_deref(), old.analyst), (QueryState::Released, Some("the record"), None));
        assert_eq!((old.opens, old.closes, old.job.is_some()), (5, 10, true));
        assert_eq!(store.setting("listen").unwrap().as_deref(), Some("127.0.0.1:8470"));
        drop(store);
        let fresh = tempfile::tempdir().unwrap();
        drop(Store::open(fresh.path()).unwrap());
        assert_eq!(shape(directory.path()), shape(fresh.path()));
        // Taken over once; a second start finds nothing to do.
        assert!(Store::open(directory.path()).unwrap().query("old").unwrap().is_some());
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let connection = at_first_layout(directory.path());
        // Makes the second step fail half way through.
        connection.execute_batch("CREATE TABLE openings(mine)").unwrap();
        drop(connection);
        let before = shape(directory.path());
        assert!(Store::open(directory.path()).err().unwrap().is_environment());
        assert_eq!(shape(directory.path()), before);
    }

    #[test]
    fn a_store_of_a_later_version_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        for layout in ["99", "a"] {
            store.set_setting("layout", layout).unwrap();
            let error = DATABASE.migrate(&mut file(directory.path()), directory.path()).unwrap_err();
            assert!(error.is_input() && error.to_string().contains("later version"), "{error}");
        }
    }
}
