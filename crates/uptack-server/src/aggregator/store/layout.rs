//! The files of an aggregator: the layout of its database, and consistent copies of all of them.

use std::path::Path;
use uptack_dap::private;

use crate::{
    base::{backup, sqlite::Database},
    error::Result,
};

/// The file of an aggregator's state, in its folder.
pub const STATE_FILE: &str = "state.sqlite3";

/// Copies a running aggregator's state and its task files into a new folder, with which another aggregator can be
/// started. `SECURITY.md` says what restoring a copy breaks.
pub fn back_up(data: &Path, out: &Path) -> Result<()> {
    backup::make_folder(out, |folder| copy_into(data, folder))
}

/// Copies them into a folder that may be part of another backup.
pub(crate) fn copy_into(data: &Path, folder: &Path) -> Result<()> {
    private::create_folder(folder)?;
    backup::copy_database(&data.join(STATE_FILE), &folder.join(STATE_FILE))?;
    backup::copy_files(&data.join("tasks"), &folder.join("tasks"))
}

pub(super) const DATABASE: Database = Database { file: STATE_FILE, user: "aggregator", steps: STEPS };

const STEPS: &[&str] = &[
    TABLES,
    // 2: how often the helper refused a job. Since then, tasks of cards are kept with the card's signature; those from
    // before have none, and are served only where tasks without a card are.
    "ALTER TABLE leader_jobs ADD COLUMN refusals INTEGER NOT NULL DEFAULT 0;",
    // 3: what the noise of a task is derived from. Tasks from before get theirs when the file is opened.
    "ALTER TABLE tasks ADD COLUMN noise_secret BLOB;",
];

/// `docs/DATA_MODEL.md` says what each table means and which states its rows go through.
const TABLES: &str = "
CREATE TABLE tasks(
    task INTEGER PRIMARY KEY,
    task_id BLOB NOT NULL UNIQUE,
    definition BLOB,
    floor INTEGER NOT NULL DEFAULT 0,
    assigned INTEGER NOT NULL DEFAULT 0);
CREATE TABLE hpke_keys(
    id INTEGER PRIMARY KEY,
    config BLOB NOT NULL,
    private_key BLOB NOT NULL,
    created INTEGER NOT NULL,
    retired INTEGER);
CREATE TABLE report_ids(
    task INTEGER NOT NULL,
    report_id BLOB NOT NULL,
    time INTEGER NOT NULL,
    digest BLOB,
    PRIMARY KEY(task, report_id)) WITHOUT ROWID;
CREATE TABLE enrolled(
    task INTEGER NOT NULL,
    credential BLOB NOT NULL,
    report_id BLOB NOT NULL,
    PRIMARY KEY(task, credential)) WITHOUT ROWID;
CREATE TABLE reports(
    report INTEGER PRIMARY KEY AUTOINCREMENT,
    task INTEGER NOT NULL,
    report_id BLOB NOT NULL,
    time INTEGER NOT NULL,
    content BLOB NOT NULL);
CREATE INDEX reports_of_task ON reports(task, report);
CREATE TABLE pending(
    task INTEGER NOT NULL,
    start INTEGER NOT NULL,
    reports INTEGER NOT NULL,
    PRIMARY KEY(task, start)) WITHOUT ROWID;
CREATE TABLE leader_jobs(
    task INTEGER NOT NULL,
    job_id BLOB NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY(task, job_id)) WITHOUT ROWID;
CREATE TABLE helper_jobs(
    task INTEGER NOT NULL,
    job_id BLOB NOT NULL,
    request BLOB NOT NULL,
    response BLOB,
    created INTEGER NOT NULL,
    PRIMARY KEY(task, job_id)) WITHOUT ROWID;
CREATE TABLE batches(
    task INTEGER NOT NULL,
    start INTEGER NOT NULL,
    reports INTEGER NOT NULL,
    checksum BLOB NOT NULL,
    share BLOB NOT NULL,
    PRIMARY KEY(task, start)) WITHOUT ROWID;
CREATE TABLE collected(
    task INTEGER NOT NULL,
    start INTEGER NOT NULL,
    finish INTEGER NOT NULL,
    request BLOB,
    response BLOB,
    PRIMARY KEY(task, start, finish)) WITHOUT ROWID;
CREATE TABLE collection_jobs(
    task INTEGER NOT NULL,
    job_id BLOB NOT NULL,
    start INTEGER NOT NULL,
    finish INTEGER NOT NULL,
    state TEXT NOT NULL,
    detail BLOB,
    PRIMARY KEY(task, job_id)) WITHOUT ROWID;
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregator::store::Store;
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    use rusqlite::Connection;
    use uptack_dap::task::AggregatorRole;

    /// Files that were made by a step are in use, so a step is changed only by adding another.
    #[test]
    fn released_steps_stay_what_they_were() {
        let digest = uptack_dap::crypto::sha256(STEPS[..3].concat().as_bytes());
        assert_eq!(URL_SAFE_NO_PAD.encode(digest), "P2VKlANi-qpbncLu50rYGzJPOYGSxohCvRNm4HZaXlY");
    }

    fn columns(connection: &Connection) -> Vec<(String, String, String)> {
        let statement = "SELECT m.name, p.name, p.type || p.\"notnull\" || coalesce(p.dflt_value, '') || p.pk
                         FROM sqlite_master m, pragma_table_info(m.name) p
                         WHERE m.type = 'table' ORDER BY 1, 2";
        let mut statement = connection.prepare(statement).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        rows.unwrap().collect::<rusqlite::Result<_>>().unwrap()
    }

    fn at_first_layout(path: &Path) -> Connection {
        let connection = Connection::open(path).unwrap();
        connection.execute_batch("CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID").unwrap();
        connection.execute_batch(STEPS[0]).unwrap();
        connection.execute_batch("INSERT INTO meta VALUES ('role', 'leader'), ('layout', '1')").unwrap();
        connection
    }

    #[test]
    fn a_file_of_the_first_layout_becomes_one_of_this_layout_and_keeps_what_is_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let old = at_first_layout(&directory.path().join("state.sqlite3"));
        old.execute_batch(
            "INSERT INTO tasks(task_id, definition, floor, assigned) VALUES (x'01', x'02', 30, 4);
             INSERT INTO reports(task, report_id, time, content) VALUES (1, x'05', 60, x'07');
             INSERT INTO leader_jobs VALUES (1, x'08', 1, 1);",
        )
        .unwrap();
        drop(old);
        drop(Store::open(directory.path(), AggregatorRole::Leader, None).unwrap());
        let brought = Connection::open(directory.path().join("state.sqlite3")).unwrap();
        let fresh = tempfile::tempdir().unwrap();
        drop(Store::open(fresh.path(), AggregatorRole::Leader, None).unwrap());
        assert_eq!(columns(&brought), columns(&Connection::open(fresh.path().join(STATE_FILE)).unwrap()));
        let job: (i64, i64, u32) = brought
            .query_row("SELECT first, last, refusals FROM leader_jobs", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        assert_eq!(job, (1, 1, 0));
        let secret: Vec<u8> = brought.query_row("SELECT noise_secret FROM tasks", [], |row| row.get(0)).unwrap();
        assert_eq!(secret.len(), 32);
        let kept: (i64, i64, Vec<u8>) = brought
            .query_row("SELECT floor, assigned, content FROM tasks, reports", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        assert_eq!(kept, (30, 4, vec![7]));
        // And once more changes nothing.
        drop(brought);
        drop(Store::open(directory.path(), AggregatorRole::Leader, None).unwrap());
        let again = Connection::open(directory.path().join("state.sqlite3")).unwrap();
        let unchanged: Vec<u8> = again.query_row("SELECT noise_secret FROM tasks", [], |row| row.get(0)).unwrap();
        assert_eq!(unchanged, secret);
    }

    #[test]
    fn a_file_of_a_later_layout_is_refused_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.sqlite3");
        at_first_layout(&path).execute_batch("UPDATE meta SET value = '4' WHERE key = 'layout'").unwrap();
        let error = Store::open(directory.path(), AggregatorRole::Leader, None).err().unwrap();
        assert!(error.is_input() && error.to_string().contains("layout 4"), "{error}");
        let layout: String = Connection::open(&path)
            .unwrap()
            .query_row("SELECT value FROM meta WHERE key = 'layout'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(layout, "4");
    }
}
