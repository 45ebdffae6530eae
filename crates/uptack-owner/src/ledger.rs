//! What an owner answered and what is left: durable before the first coin, without a truth or a cell in it.
//!
//! One SQLite file holds the ledgers of one owner or of a fleet. An entry and its charge are one transaction, made
//! before anything is tossed, so that no crash leaves an answer without its price. A report is stored as the bytes
//! that will be sent, before they are sent; it and its cell are deleted when it is acknowledged, and at close at the
//! latest.

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};
use uptack::privacy::composition::{Charge, Filter};
use uptack_net::signed::SignedCard;

use crate::{
    check::{Accepted, Price},
    error::{Error, Result},
    policy::{LifetimeLimits, Limit},
};

/// The ledgers of one directory; no two processes have it open at once.
pub struct Ledger {
    connection: Mutex<Connection>,
    _lock: File,
}

/// What became of an owner's acceptance of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acceptance {
    /// Charged, and to be answered.
    Charged,
    /// There has been an entry before; nothing was charged.
    Known(State),
    /// The budget does not cover it; nothing was charged.
    Refused(String),
}

/// Where an entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Charged; the report is still to be sent.
    Due,
    /// Acknowledged by the leader.
    Sent,
    /// Refused by the leader for good. The budget stays spent.
    Lost,
    /// The query closed before the report was acknowledged. The budget stays spent.
    Expired,
}

impl State {
    /// The word in the file and in output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Sent => "sent",
            Self::Lost => "lost",
            Self::Expired => "expired",
        }
    }

    fn parse(word: &str) -> Self {
        [Self::Sent, Self::Lost, Self::Expired].into_iter().find(|state| state.word() == word).unwrap_or(Self::Due)
    }
}

/// A report that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Whose.
    pub owner: String,
    /// For which query.
    pub query: String,
}

/// A report that was made and not yet acknowledged. Its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredReport {
    /// The cell or the ballot's outputs, for sealing them again under another key.
    pub measurement: Vec<u8>,
    /// The bytes to send.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for StoredReport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("StoredReport(…)")
    }
}

/// One line of an owner's ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Whose.
    pub owner: String,
    /// The query.
    pub query: String,
    /// When it was charged, in seconds since the epoch.
    pub charged: u64,
    /// When the query closes.
    pub closes: u64,
    /// Where it stands.
    pub state: State,
}

/// What is spent of an owner's budget for one view.
#[derive(Debug, Clone, PartialEq)]
pub struct Spent {
    /// Whose.
    pub owner: String,
    /// `linked` or `release`.
    pub view: String,
    /// The budget's ε.
    pub epsilon: f64,
    /// The budget's δ.
    pub delta: f64,
    /// The share of it that is spent.
    pub fraction: f64,
    /// Queries that were permitted.
    pub queries: u64,
}

impl Ledger {
    /// Opens or creates `ledger.sqlite3` below `directory`.
    pub fn open(directory: &Path) -> Result<Self> {
        let at = |error: std::io::Error| Error::Environment(format!("{}: {error}", directory.display()));
        std::fs::create_dir_all(directory).map_err(at)?;
        let lock = File::create(directory.join("lock")).map_err(at)?;
        lock.try_lock().map_err(|_| Error::Input(format!("{} is in use by another client", directory.display())))?;
        let path: PathBuf = directory.join("ledger.sqlite3");
        let connection = Connection::open(&path)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(at)?;
        }
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        // Deleted cells are overwritten, not merely forgotten.
        connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;")?;
        connection.set_prepared_statement_cache_capacity(32);
        connection.execute_batch(SCHEMA)?;
        let layout: String =
            connection.query_row("SELECT value FROM meta WHERE key = 'layout'", [], |row| row.get(0))?;
        if layout != "1" {
            return Err(Error::Input(format!("{} was written by another version", path.display())));
        }
        Ok(Self { connection: Mutex::new(connection), _lock: lock })
    }

    /// Charges each owner and notes when its report will be sent, all in one durable step.
    ///
    /// `uploads` names the owners and the moments, which were drawn before any truth was looked at.
    pub fn accept(
        &self,
        signed: &SignedCard,
        accepted: &Accepted,
        uploads: &[(&str, u64)],
        lifetime: &LifetimeLimits,
        now: u64,
    ) -> Result<Vec<Acceptance>> {
        self.change(|transaction| {
            transaction.prepare_cached("INSERT OR IGNORE INTO cards VALUES (?1, ?2, ?3, ?4)")?.execute(params![
                signed.query,
                signed.card,
                signed.signature,
                accepted.window.1 as i64
            ])?;
            let one = |(owner, upload): &(&str, u64)| {
                accept_one(transaction, accepted, &signed.query, owner, *upload, lifetime, now)
            };
            uploads.iter().map(one).collect()
        })
    }

    /// Reports whose moment has come, the earliest first.
    pub fn due(&self, now: u64, most: usize) -> Result<Vec<Due>> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT owner, query FROM entries WHERE state = 'due' AND upload <= ?1 ORDER BY upload LIMIT ?2",
        )?;
        let rows = statement
            .query_map(params![now as i64, most as i64], |row| Ok(Due { owner: row.get(0)?, query: row.get(1)? }))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The moment of the next report that is to be sent.
    pub fn next_due(&self) -> Result<Option<u64>> {
        let query = "SELECT min(upload) FROM entries WHERE state = 'due'";
        let next: Option<i64> = self.lock().query_row(query, [], |row| row.get(0))?;
        Ok(next.map(|moment| moment as u64))
    }

    /// The card of a query that has an entry.
    pub fn card(&self, query: &str) -> Result<Option<SignedCard>> {
        let found = self.lock().query_row("SELECT card, signature FROM cards WHERE query = ?1", [query], |row| {
            Ok(SignedCard { query: query.to_owned(), card: row.get(0)?, signature: row.get(1)? })
        });
        Ok(found.optional()?)
    }

    /// A report that was made before.
    pub fn report(&self, due: &Due) -> Result<Option<StoredReport>> {
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached("SELECT measurement, bytes FROM reports WHERE owner = ?1 AND query = ?2")?;
        let found = statement.query_row([&due.owner, &due.query], |row| {
            Ok(StoredReport { measurement: row.get(0)?, bytes: row.get(1)? })
        });
        Ok(found.optional()?)
    }

    /// Stores reports before they are sent.
    pub fn store(&self, reports: &[(Due, StoredReport)]) -> Result<()> {
        self.change(|transaction| {
            for (due, report) in reports {
                transaction
                    .prepare_cached("INSERT OR REPLACE INTO reports VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![due.owner, due.query, report.measurement, report.bytes])?;
            }
            Ok(())
        })
    }

    /// Ends entries: their cells and bytes are deleted, their charges stay.
    pub fn settle(&self, ended: &[(Due, State)]) -> Result<()> {
        self.change(|transaction| {
            for (due, state) in ended {
                let key = params![due.owner, due.query, state.word()];
                transaction
                    .prepare_cached("UPDATE entries SET state = ?3 WHERE owner = ?1 AND query = ?2")?
                    .execute(key)?;
                transaction
                    .prepare_cached("DELETE FROM reports WHERE owner = ?1 AND query = ?2")?
                    .execute([&due.owner, &due.query])?;
            }
            Ok(())
        })
    }

    /// Puts off reports that could not be sent.
    pub fn postpone(&self, later: &[(Due, u64)]) -> Result<()> {
        self.change(|transaction| {
            for (due, moment) in later {
                transaction
                    .prepare_cached("UPDATE entries SET upload = ?3 WHERE owner = ?1 AND query = ?2")?
                    .execute(params![due.owner, due.query, *moment as i64])?;
            }
            Ok(())
        })
    }

    /// Deletes what belongs to queries that have closed; says how many reports were not acknowledged in time.
    pub fn expire(&self, now: u64) -> Result<usize> {
        let expired = self.change(|transaction| {
            let late = "query IN (SELECT query FROM cards WHERE closes <= ?1)";
            transaction.execute(&format!("DELETE FROM reports WHERE {late}"), [now as i64])?;
            let update = format!("UPDATE entries SET state = 'expired' WHERE state = 'due' AND {late}");
            Ok(transaction.execute(&update, [now as i64])?)
        })?;
        // The log beside the file holds what was deleted until it is written back.
        self.lock().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(expired)
    }

    /// The entries, the newest first.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let connection = self.lock();
        let mut statement = connection.prepare(
            "SELECT owner, query, charged, closes, state FROM entries JOIN cards USING (query)
             ORDER BY charged DESC, owner, query",
        )?;
        let rows = statement.query_map([], |row| {
            Ok(Entry {
                owner: row.get(0)?,
                query: row.get(1)?,
                charged: row.get::<_, i64>(2)? as u64,
                closes: row.get::<_, i64>(3)? as u64,
                state: State::parse(&row.get::<_, String>(4)?),
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// What is spent, per owner and view.
    pub fn spent(&self) -> Result<Vec<Spent>> {
        let connection = self.lock();
        let mut statement = connection.prepare("SELECT owner, view, filter FROM budgets ORDER BY owner, view")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?)))?;
        rows.map(|row| {
            let (owner, view, text) = row?;
            let filter = read_filter(&text)?;
            let (epsilon, delta) = (filter.epsilon(), filter.delta());
            let (fraction, queries) = (filter.fraction_spent(), filter.queries());
            Ok(Spent { owner, view, epsilon, delta, fraction, queries })
        })
        .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut connection = self.lock();
        let transaction = Transaction::new(&mut connection, TransactionBehavior::Immediate)?;
        let changed = change(&transaction)?;
        transaction.commit()?;
        Ok(changed)
    }
}

fn accept_one(
    transaction: &Transaction<'_>,
    accepted: &Accepted,
    query: &str,
    owner: &str,
    upload: u64,
    lifetime: &LifetimeLimits,
    now: u64,
) -> Result<Acceptance> {
    let known = transaction
        .prepare_cached("SELECT state FROM entries WHERE owner = ?1 AND query = ?2")?
        .query_row([owner, query], |row| row.get::<_, String>(0))
        .optional()?;
    if let Some(state) = known {
        return Ok(Acceptance::Known(State::parse(&state)));
    }
    let series = accepted.series.map(|series| series.to_string());
    if !is_paid(transaction, owner, series.as_deref())? {
        if let Err(reason) = charge(transaction, owner, &accepted.price, lifetime)? {
            return Ok(Acceptance::Refused(reason));
        }
        if let Some(series) = series {
            transaction.prepare_cached("INSERT INTO series VALUES (?1, ?2)")?.execute([owner, &series])?;
        }
    }
    transaction.prepare_cached("INSERT INTO entries VALUES (?1, ?2, ?3, ?4, 'due')")?.execute(params![
        owner,
        query,
        now as i64,
        upload as i64
    ])?;
    Ok(Acceptance::Charged)
}

/// Whether the owner has paid for the whole series already.
fn is_paid(transaction: &Transaction<'_>, owner: &str, series: Option<&str>) -> Result<bool> {
    let Some(series) = series else { return Ok(false) };
    let mut statement = transaction.prepare_cached("SELECT 1 FROM series WHERE owner = ?1 AND series = ?2")?;
    Ok(statement.exists([owner, series])?)
}

/// Charges all views or none; the reason if a budget does not cover it.
fn charge(
    transaction: &Transaction<'_>,
    owner: &str,
    price: &Price,
    lifetime: &LifetimeLimits,
) -> Result<std::result::Result<(), String>> {
    let mut changed = Vec::new();
    for (view, limit, cost) in
        [("linked", lifetime.linked, &price.linked), ("release", lifetime.release, &price.release)]
    {
        let (Limit::AtMost(epsilon), Some(cost)) = (limit, cost) else { continue };
        let mut filter = budget(transaction, owner, view, epsilon, lifetime.delta)?;
        if let Err(refusal) = spend(&mut filter, cost) {
            return Ok(Err(format!("the lifetime budget of the view `{view}`: {refusal}")));
        }
        changed.push((view, filter));
    }
    for (view, filter) in changed {
        let text = serde_json::to_string(&filter).map_err(|error| Error::Environment(error.to_string()))?;
        transaction
            .prepare_cached("INSERT OR REPLACE INTO budgets VALUES (?1, ?2, ?3)")?
            .execute([owner, view, &text])?;
    }
    Ok(Ok(()))
}

fn spend(filter: &mut Filter, cost: &Charge) -> std::result::Result<(), String> {
    // The receipt's permission is the entry, which is written in the same transaction.
    filter.try_spend(cost).map(drop).map_err(|refusal| refusal.to_string())
}

/// The owner's budget for a view, begun if there is none.
fn budget(transaction: &Transaction<'_>, owner: &str, view: &str, epsilon: f64, delta: f64) -> Result<Filter> {
    let stored = transaction
        .prepare_cached("SELECT filter FROM budgets WHERE owner = ?1 AND view = ?2")?
        .query_row([owner, view], |row| row.get::<_, String>(0))
        .optional()?;
    let Some(text) = stored else {
        return Filter::new(epsilon, delta).map_err(|error| Error::Input(format!("policy: {error}")));
    };
    let filter = read_filter(&text)?;
    if (filter.epsilon(), filter.delta()) != (epsilon, delta) {
        return Err(Error::Input(format!(
            "the ledger's budget for the view `{view}` was begun as ({}, {}) and cannot become ({epsilon}, {delta}): \
             what is spent of the one says nothing about the other",
            filter.epsilon(),
            filter.delta()
        )));
    }
    Ok(filter)
}

fn read_filter(text: &str) -> Result<Filter> {
    serde_json::from_str(text).map_err(|error| Error::Environment(format!("ledger: {error}")))
}

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO meta VALUES ('layout', '1');
CREATE TABLE IF NOT EXISTS cards(
    query TEXT PRIMARY KEY, card TEXT NOT NULL, signature TEXT NOT NULL, closes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries(
    owner TEXT NOT NULL, query TEXT NOT NULL, charged INTEGER NOT NULL, upload INTEGER NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY(owner, query)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS entries_by_moment ON entries(state, upload);
CREATE TABLE IF NOT EXISTS reports(
    owner TEXT NOT NULL, query TEXT NOT NULL, measurement BLOB NOT NULL, bytes BLOB NOT NULL,
    PRIMARY KEY(owner, query)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS budgets(
    owner TEXT NOT NULL, view TEXT NOT NULL, filter TEXT NOT NULL, PRIMARY KEY(owner, view)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS series(
    owner TEXT NOT NULL, series TEXT NOT NULL, PRIMARY KEY(owner, series)) WITHOUT ROWID;
";
