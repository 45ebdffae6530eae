//! Opening a server's file: for one process and one user only, durable, and in the layout of this version.
//!
//! A file contains the number of its layout. A newer program brings an older file up to date, all steps in one
//! transaction: a program that dies in between leaves the file as it was. An older program refuses a newer file.

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, RowIndex, Transaction, TransactionBehavior};
use std::{fs::File, path::Path, time::Duration};
use uptack_dap::private;

use crate::error::{Error, Result};

/// The result of a statement.
pub(crate) type SqlResult<T> = rusqlite::Result<T>;

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Storage(error.into())
    }
}

/// A number that is stored as one of SQLite's signed integers.
pub(crate) fn read_u64(row: &Row<'_>, column: impl RowIndex) -> SqlResult<u64> {
    Ok(row.get::<_, i64>(column)? as u64)
}

/// A server's file in its folder.
pub(crate) struct Database {
    /// The name of the file.
    pub(crate) file: &'static str,
    /// What uses it, in messages.
    pub(crate) user: &'static str,
    /// The steps from each layout to the next; the first makes the tables of a new file. A released step is never
    /// changed: there are files that it made.
    pub(crate) steps: &'static [&'static str],
}

impl Database {
    /// Takes the folder for this process; the lock ends with the process, however that ends.
    pub(crate) fn lock(&self, folder: &Path) -> Result<File> {
        private::prepare(folder, &folder.join(self.file))?;
        let lock = private::create_file(&folder.join("lock"))?;
        lock.try_lock()
            .map_err(|_| Error::input(format!("{} is in use by another {}", folder.display(), self.user)))?;
        Ok(lock)
    }

    /// Opens the file, which taking the lock has created.
    pub(crate) fn connect(&self, folder: &Path) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let path = folder.join(self.file);
        let connection = Connection::open_with_flags(&path, flags)
            .map_err(|error| Error::environment(format!("{}: {error}", path.display())))?;
        configure(&connection)?;
        Ok(connection)
    }

    /// Makes the tables, or brings those of an earlier version up to date.
    pub(crate) fn migrate(&self, connection: &mut Connection, folder: &Path) -> Result<()> {
        let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
        transaction.execute_batch(
            "CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        )?;
        let (found, newest) = (self.layout(&transaction, folder)?, self.steps.len());
        for step in &self.steps[found..] {
            transaction.execute_batch(step)?;
        }
        let statement = "INSERT OR REPLACE INTO meta(key, value) VALUES ('layout', ?1)";
        transaction.execute(statement, [newest.to_string()])?;
        transaction.commit()?;
        if (1..newest).contains(&found) {
            tracing::info!(from = found, to = newest, "the state file was brought up to date");
        }
        Ok(())
    }

    /// The number of steps that the file has gone through.
    fn layout(&self, connection: &Connection, folder: &Path) -> Result<usize> {
        let Some(text) = stated_layout(connection)? else { return Ok(0) };
        match text.parse() {
            Ok(layout) if layout <= self.steps.len() => Ok(layout),
            _ => Err(Error::input(format!(
                "{} was written by a later version (layout {text}; this one knows layouts up to {})",
                folder.display(),
                self.steps.len()
            ))),
        }
    }
}

fn configure(connection: &Connection) -> SqlResult<()> {
    // A backup may read at the same time.
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = FAST;")
}

/// The layout as the file states it; none if the file is new.
fn stated_layout(connection: &Connection) -> SqlResult<Option<String>> {
    let statement = "SELECT value FROM meta WHERE key = 'layout'";
    connection.query_row(statement, [], |row| row.get(0)).optional()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE: Database = Database {
        file: "test.sqlite3",
        user: "test",
        steps: &["CREATE TABLE first(a)", "CREATE TABLE second(b); ALTER TABLE first ADD COLUMN c"],
    };

    fn open(folder: &Path, database: &Database) -> Result<Vec<String>> {
        let _lock = database.lock(folder)?;
        let mut connection = database.connect(folder)?;
        database.migrate(&mut connection, folder)?;
        Ok(tables(&connection))
    }

    fn tables(connection: &Connection) -> Vec<String> {
        let mut statement = connection.prepare("SELECT sql FROM sqlite_schema ORDER BY name").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(|text| text.unwrap()).collect()
    }

    #[test]
    fn an_older_file_is_brought_up_to_date_and_a_newer_one_left_alone() {
        let [fresh, old] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let older = Database { steps: &DATABASE.steps[..1], ..DATABASE };
        open(old.path(), &older).unwrap();
        assert_eq!(open(old.path(), &DATABASE).unwrap(), open(fresh.path(), &DATABASE).unwrap());
        let before = open(old.path(), &DATABASE).unwrap();
        let error = open(old.path(), &older).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("later version (layout 2"), "{error}");
        assert_eq!(open(old.path(), &DATABASE).unwrap(), before);
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let broken =
            Database { steps: &["CREATE TABLE first(a)", "CREATE TABLE second(b); CREATE TABLE first(a)"], ..DATABASE };
        assert!(open(folder.path(), &broken).unwrap_err().is_environment());
        assert!(tables(&DATABASE.connect(folder.path()).unwrap()).is_empty());
    }

    #[test]
    fn a_folder_is_for_one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let _held = DATABASE.lock(folder.path()).unwrap();
        let error = DATABASE.lock(folder.path()).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("in use by another test"), "{error}");
    }

    /// As after a loss of power, on a disk that keeps what it has acknowledged: the log ends anywhere in the last transaction, or in
    /// garbage. Desk and aggregators keep records, reports and sums in such files.
    #[test]
    fn a_log_that_is_torn_anywhere_has_whole_transactions() {
        let folder = tempfile::tempdir().unwrap();
        open(folder.path(), &DATABASE).unwrap();
        let mut connection = DATABASE.connect(folder.path()).unwrap();
        let read = |ending: &str| std::fs::read(folder.path().join(format!("{}{ending}", DATABASE.file))).unwrap();
        let mut put = |number: i64| {
            let transaction = connection.transaction().unwrap();
            transaction.execute("INSERT INTO first VALUES (?1, zeroblob(9000))", [number]).unwrap();
            transaction.execute("INSERT INTO second VALUES (?1)", [number]).unwrap();
            transaction.commit().unwrap();
            read("-wal").len()
        };
        let (acknowledged, end) = (put(1), put(2));
        let (file, log) = (read(""), read("-wal"));
        let mut found = [0, 0];
        for length in (acknowledged..end).step_by(401).chain([end]) {
            for garbage in [0, (length - acknowledged).min(500)] {
                let (first, second) = rows_of_torn(&file, &log[..length], garbage);
                assert_eq!(first, second, "{length}: {garbage}");
                found[first - 1] += 1;
            }
        }
        assert!(found[0] > 2 && found[1] > 0, "{found:?}");
    }

    /// How many rows each table has in a copy whose log ends like this, with so many wrong bytes.
    fn rows_of_torn(file: &[u8], log: &[u8], garbage: usize) -> (usize, usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut torn = log.to_vec();
        let from = torn.len() - garbage;
        torn[from..].iter_mut().for_each(|byte| *byte ^= 0x5a);
        std::fs::write(folder.path().join(DATABASE.file), file).unwrap();
        std::fs::write(folder.path().join(format!("{}-wal", DATABASE.file)), torn).unwrap();
        open(folder.path(), &DATABASE).unwrap();
        let connection = DATABASE.connect(folder.path()).unwrap();
        let rows = |table: &str| {
            let count = format!("SELECT count(*) FROM {table}");
            connection.query_row(&count, [], |row| row.get::<_, i64>(0)).unwrap() as usize
        };
        (rows("first"), rows("second"))
    }
}
