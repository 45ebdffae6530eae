//! The ledger's file: who may read it, what is in it, and how an earlier layout becomes this one.

use rusqlite::Connection;
use std::{fs::File, path::Path};
use uptack_dap::private;

use crate::error::{Error, Result};

/// The file in a ledger's folder.
pub const STATE_FILE: &str = "ledger.sqlite3";
const LAYOUT: &str = "2";

/// Locks the directory for this process, and keeps it and its files to this user alone.
pub(super) fn lock(directory: &Path) -> Result<File> {
    // A file that cannot be written is a fault of the environment, although the error is one of the network crate.
    private::prepare(directory, &directory.join(STATE_FILE)).map_err(Error::environment)?;
    let lock = private::create_file(&directory.join("lock")).map_err(Error::environment)?;
    lock.try_lock().map_err(|_| Error::Input(format!("{} is in use by another client", directory.display())))?;
    // An earlier version may have left them with other permissions.
    for ending in ["-wal", "-shm"] {
        let path = directory.join(format!("{STATE_FILE}{ending}"));
        if path.exists() {
            private::create_file(&path).map_err(Error::environment)?;
        }
    }
    Ok(lock)
}

/// Opens the file, brings it to this layout, and empties the log that a killed process may have left.
pub(super) fn open(path: &Path) -> Result<Connection> {
    let mut connection = Connection::open(path)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    // Deleted cells are overwritten, not merely forgotten.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;")?;
    connection.set_prepared_statement_cache_capacity(32);
    migrate(&mut connection, path)?;
    empty_log(&connection)?;
    Ok(connection)
}

/// Writes the log back and truncates it: until then it holds deleted data.
pub(super) fn empty_log(connection: &Connection) -> Result<()> {
    let busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy == 0 {
        return Ok(());
    }
    Err(Error::environment("ledger: another program is reading the file, so that deleted data cannot be overwritten"))
}

/// Brings any earlier layout to this one, in one transaction: if it is interrupted, nothing is lost or half written.
fn migrate(connection: &mut Connection, path: &Path) -> Result<()> {
    let transaction = connection.transaction()?;
    transaction
        .execute_batch("CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")?;
    let layout: Option<String> =
        transaction.query_row("SELECT max(value) FROM meta WHERE key = 'layout'", [], |row| row.get(0))?;
    match layout.as_deref() {
        None => transaction.execute_batch(SCHEMA)?,
        Some("1") => {
            transaction.execute_batch(SET_ASIDE)?;
            transaction.execute_batch(SCHEMA)?;
            transaction.execute_batch(TAKE_OVER)?;
        }
        Some(LAYOUT) => {}
        Some(other) => {
            return Err(Error::Input(format!(
                "{} has the layout {other} of a later version; this one knows layouts up to {LAYOUT}",
                path.display()
            )));
        }
    }
    Ok(transaction.commit()?)
}

/// An entry is one answer: to a query, and to one number of what was charged. For an owner, both are unique.
const SCHEMA: &str = "
INSERT OR REPLACE INTO meta VALUES ('layout', '2');
CREATE TABLE IF NOT EXISTS cards(
    query TEXT PRIMARY KEY, card TEXT NOT NULL, signature TEXT NOT NULL, closes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE entries(
    owner TEXT NOT NULL, query TEXT NOT NULL, charge TEXT NOT NULL, number INTEGER NOT NULL,
    charged INTEGER NOT NULL, upload INTEGER NOT NULL, prepare INTEGER NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY(owner, query), UNIQUE(owner, charge, number)) WITHOUT ROWID;
CREATE INDEX entries_by_moment ON entries(state, upload);
CREATE TABLE reports(
    owner TEXT NOT NULL, query TEXT NOT NULL, measurement BLOB NOT NULL, bytes BLOB NOT NULL, credential TEXT,
    stale INTEGER NOT NULL, PRIMARY KEY(owner, query)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS budgets(
    owner TEXT NOT NULL, view TEXT NOT NULL, filter TEXT NOT NULL, PRIMARY KEY(owner, view)) WITHOUT ROWID;
";

/// The tables of layout 1 that changed.
const SET_ASIDE: &str = "
DROP INDEX IF EXISTS entries_by_moment;
ALTER TABLE entries RENAME TO entries_1;
ALTER TABLE reports RENAME TO reports_1;
";

/// Layout 1 named a series without the length of its windows, so its names mean nothing now: an entry is taken over as a
/// single answer, and a series that goes on is charged again. What was spent stays spent. Reports of enrolled owners are
/// sealed again, because layout 1 kept no credential with them.
const TAKE_OVER: &str = "
INSERT INTO entries SELECT owner, query, query, 1, charged, upload, 0, state FROM entries_1;
INSERT INTO reports SELECT owner, query, measurement, bytes, NULL,
    instr(card, '\"enrolment\":\"required\"') > 0 FROM reports_1 JOIN cards USING (query);
DROP TABLE entries_1;
DROP TABLE reports_1;
DROP TABLE IF EXISTS series;
";
