//! The ledger's file: who may read it, what is in it, and how an earlier layout becomes this one.

use rusqlite::{Connection, Transaction};
use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    path::Path,
    time::Duration,
};
use uptack::card::Card;
use uptack_dap::{card_task, private, protocol::TaskId};

use super::{charge, execute, select_rows, select_text};
use crate::error::{Error, Result};

/// The file in a ledger's folder.
pub const STATE_FILE: &str = "ledger.sqlite3";
const LAYOUT: &str = "4";
/// How often a lock is tried, and the pause in between.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);

/// Locks the directory for this process, and keeps it and its files to this user alone.
pub(super) fn lock(directory: &Path) -> Result<File> {
    // A file that cannot be written is a fault of the environment, although the error is one of the network crate.
    private::prepare(directory, &directory.join(STATE_FILE)).map_err(Error::environment)?;
    let lock = private::create_file(&directory.join("lock")).map_err(Error::environment)?;
    if !is_free_soon(&lock) {
        return Err(Error::Input(format!("{} is in use by another client", directory.display())));
    }
    // An earlier version may have left them with other permissions.
    for ending in ["-wal", "-shm"] {
        let path = directory.join(format!("{STATE_FILE}{ending}"));
        if path.exists() {
            private::create_file(&path).map_err(Error::environment)?;
        }
    }
    Ok(lock)
}

/// Takes a lock, and waits a little if it is taken: a process that is just ending, or a child that is just being started, holds it
/// for a moment longer.
fn is_free_soon(lock: &File) -> bool {
    (0..TRIES).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        lock.try_lock().is_ok()
    })
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
        None => {
            transaction.execute_batch(SCHEMA)?;
            transaction.execute_batch(ADD_TOSSES)?;
        }
        Some("1") => {
            transaction.execute_batch(SET_ASIDE)?;
            transaction.execute_batch(SET_REPORTS_ASIDE)?;
            transaction.execute_batch(SCHEMA)?;
            transaction.execute_batch(TAKE_OVER_1)?;
            take_over_budgets(&transaction)?;
            transaction.execute_batch(ADD_TOSSES)?;
        }
        Some("2") => {
            transaction.execute_batch(SET_ASIDE)?;
            transaction.execute_batch(SCHEMA)?;
            transaction.execute_batch(TAKE_OVER_2)?;
            take_over_budgets(&transaction)?;
            transaction.execute_batch(ADD_TOSSES)?;
        }
        Some("3") => transaction.execute_batch(ADD_TOSSES)?,
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

/// Takes over the budgets of layouts 1 and 2, which did not note what they count.
///
/// A budget that counts fewer queries than were answered missed some while its view was unlimited. It is left out, and so begins
/// again with everything that was answered.
fn take_over_budgets(transaction: &Transaction<'_>) -> Result<()> {
    let mut costs = HashMap::new();
    let budgets: Vec<(String, String, String)> =
        select_rows(transaction, "SELECT owner, view, filter FROM budgets_2", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    for (owner, view, text) in budgets {
        if charge::read_filter(&text)?.queries() >= queries_answered(transaction, &owner, &mut costs)? {
            let taken =
                "INSERT INTO budgets SELECT ?1, ?2, '', ?3, ifnull(max(place), 0) FROM entries WHERE owner = ?1";
            execute(transaction, taken, [owner, view, text])?;
        }
    }
    Ok(transaction.execute_batch("DROP TABLE budgets_2")?)
}

/// How many queries an owner was charged for, by the cards; `costs` remembers the charge and the number of each card.
fn queries_answered(
    transaction: &Transaction<'_>,
    owner: &str,
    costs: &mut HashMap<String, Option<(TaskId, u64)>>,
) -> Result<u64> {
    let answered: Vec<String> =
        select_rows(transaction, "SELECT query FROM entries WHERE owner = ?1", [owner], |row| row.get(0))?;
    let mut charges = BTreeMap::new();
    for query in answered {
        if !costs.contains_key(&query) {
            let text = select_text(transaction, "SELECT card FROM cards WHERE query = ?1", [&query])?;
            costs.insert(query.clone(), text.and_then(|text| cost_of(&text)));
        }
        // A card that cannot be read any more cannot be charged again either.
        if let Some((charge, queries)) = costs[&query] {
            charges.insert(charge.to_string(), queries);
        }
    }
    Ok(charges.values().fold(0, |sum, queries| sum.saturating_add(*queries)))
}

/// What is charged for a card, and for how many queries.
fn cost_of(text: &str) -> Option<(TaskId, u64)> {
    let card = Card::from_json(text).ok()?;
    Some((card_task::names(&card).ok()?.charge, card.counted_queries().ok()?))
}

/// An entry is one answer: to a query, and to one number of what was charged. For an owner, both are unique. Its `place` is that of
/// its charge among the owner's charges; `budgets.counted` is the place up to which a budget counts them. `seen` has the cards
/// that were not accepted at an earlier visit: since when they are known, and how often they were weighed.
const SCHEMA: &str = "
INSERT OR REPLACE INTO meta VALUES ('layout', '3');
CREATE TABLE IF NOT EXISTS cards(
    query TEXT PRIMARY KEY, card TEXT NOT NULL, signature TEXT NOT NULL, closes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE entries(
    owner TEXT NOT NULL, query TEXT NOT NULL, charge TEXT NOT NULL, number INTEGER NOT NULL,
    charged INTEGER NOT NULL, upload INTEGER NOT NULL, prepare INTEGER NOT NULL, state TEXT NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY(owner, query), UNIQUE(owner, charge, number)) WITHOUT ROWID;
CREATE INDEX entries_by_moment ON entries(state, upload);
CREATE TABLE IF NOT EXISTS reports(
    owner TEXT NOT NULL, query TEXT NOT NULL, measurement BLOB NOT NULL, bytes BLOB NOT NULL, credential TEXT,
    stale INTEGER NOT NULL, PRIMARY KEY(owner, query)) WITHOUT ROWID;
CREATE TABLE budgets(
    owner TEXT NOT NULL, view TEXT NOT NULL, signer TEXT NOT NULL, filter TEXT NOT NULL, counted INTEGER NOT NULL,
    PRIMARY KEY(owner, view, signer)) WITHOUT ROWID;
CREATE TABLE seen(
    query TEXT PRIMARY KEY, first INTEGER NOT NULL, weighed INTEGER NOT NULL, closes INTEGER NOT NULL) WITHOUT ROWID;
";

/// The coins of series, which layout 4 added.
const ADD_TOSSES: &str = "
INSERT OR REPLACE INTO meta VALUES ('layout', '4');
CREATE TABLE IF NOT EXISTS tosses(
    owner TEXT NOT NULL, charge TEXT NOT NULL, coins BLOB NOT NULL, used INTEGER NOT NULL, ends INTEGER NOT NULL,
    PRIMARY KEY(owner, charge)) WITHOUT ROWID;
";

/// The tables that layout 3 changed.
const SET_ASIDE: &str = "
DROP INDEX IF EXISTS entries_by_moment;
ALTER TABLE entries RENAME TO entries_before;
ALTER TABLE budgets RENAME TO budgets_2;
";

/// A table that layout 2 changed.
const SET_REPORTS_ASIDE: &str = "ALTER TABLE reports RENAME TO reports_1";

/// Layout 1 named a series without the length of its windows, so its names mean nothing now: an entry is taken over as a
/// single answer, and a series that goes on is charged again. What was spent stays spent. Reports of enrolled owners are
/// sealed again, because layout 1 kept no credential with them.
const TAKE_OVER_1: &str = "
INSERT INTO entries SELECT owner, query, query, 1, charged, upload, 0, state,
    row_number() OVER (PARTITION BY owner ORDER BY charged, query) FROM entries_before;
INSERT INTO reports SELECT owner, query, measurement, bytes, NULL,
    instr(card, '\"enrolment\":\"required\"') > 0 FROM reports_1 JOIN cards USING (query);
DROP TABLE entries_before;
DROP TABLE reports_1;
DROP TABLE IF EXISTS series;
";

/// Layout 2 did not number an owner's charges.
const TAKE_OVER_2: &str = "
WITH places AS (
    SELECT owner, charge, row_number() OVER (PARTITION BY owner ORDER BY min(charged), charge) AS place
    FROM entries_before GROUP BY owner, charge)
INSERT INTO entries SELECT owner, query, charge, number, charged, upload, prepare, state, place
    FROM entries_before JOIN places USING (owner, charge);
DROP TABLE entries_before;
";
