//! What an owner answered and what is left: durable before the first coin, without a truth or a cell in it.
//!
//! One SQLite file holds the ledgers of one owner or of a fleet. An entry and its charge are one transaction, made
//! before anything is tossed, so no crash leaves an answer without its price. A report is stored as the bytes
//! that will be sent, before they are sent; it and its cell are deleted when it is acknowledged, and at the latest when
//! the query closes. Deleted means overwritten, in the file and in its log.
//!
//! An owner answers each (`charge`, `number`) of [`names`](uptack_dap::card_task::names) once, whatever else is on the
//! card that asks.

mod charge;
mod layout;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Params, Row, Transaction, TransactionBehavior, params};
use std::{
    fmt,
    fs::File,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use uptack::privacy::composition::Filter;
use uptack_dap::signed::SignedCard;

pub use layout::STATE_FILE;

use crate::{
    check::{Accepted, Checker},
    error::{Error, Result},
};

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let advice = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
                "; make room on its disk, or repair it, and start again: what was charged stays charged, and nothing is sent twice"
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                "; the file is damaged, and what was spent cannot be read from it: start a new ledger with a smaller budget"
            }
            _ => "",
        };
        Self::Ledger(LedgerFailure { error, advice }.into())
    }
}

/// A failure of the file, and what to do about it.
#[derive(Debug)]
struct LedgerFailure {
    error: rusqlite::Error,
    advice: &'static str,
}

impl fmt::Display for LedgerFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.error, self.advice)
    }
}

impl std::error::Error for LedgerFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Entries whose report is ready to be sent.
const READY: &str = "FROM entries JOIN reports USING (owner, query) WHERE state = 'due' AND stale = 0";
/// Deletes the coins of series that have ended. The row stays: if the clock was wrong, and the series goes on, nobody tosses again.
const OVERWRITE_TOSSES: &str = "UPDATE tosses SET coins = x'', used = 0 WHERE ends <= ?1 AND coins <> x''";
/// Entries whose report was not made yet, or has to be sealed again.
const UNPREPARED: &str =
    "FROM entries LEFT JOIN reports USING (owner, query) WHERE state = 'due' AND ifnull(stale, 1) = 1";

/// The ledgers of one directory; no two processes have it open at once.
pub struct Ledger {
    connection: Mutex<Connection>,
    /// Everything that belongs to queries closed by this time has been deleted.
    expired_until: AtomicU64,
    _lock: File,
}

/// What became of an owner's acceptance of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChargeDecision {
    /// Charged, and to be answered.
    Charged,
    /// There was an entry already; nothing was charged.
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
    /// The word for it in the file and in output.
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
    /// When, in seconds since the epoch.
    pub upload: u64,
}

impl Due {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { owner: row.get(0)?, query: row.get(1)?, upload: moment(row, 2)? })
    }
}

/// A report that was made and not yet acknowledged. Its `Debug` form shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredReport {
    /// The cell or the ballot's outputs, in case they have to be sealed again under another key.
    pub measurement: Vec<u8>,
    /// The bytes to send.
    pub bytes: Vec<u8>,
    /// What the owner shows with them, if the card requires enrolment.
    pub credential: Option<String>,
    /// The coins of its series, if it is a report of one and was not made before.
    pub toss: Option<SeriesToss>,
}

/// The coins of one owner for a whole series, and how many of its contributions are used. They are as secret as a cell: they are
/// stored together with each report that changes them, and deleted when the series ends. The `Debug` form shows nothing of them.
#[derive(Clone, PartialEq, Eq)]
pub struct SeriesToss {
    /// The charge of the series.
    pub charge: String,
    /// The coins, as [`Toss`](uptack::contribution::Toss) writes them.
    pub coins: Vec<u8>,
    /// How many contributions are used.
    pub used: u32,
    /// When the last window of the series closes, in seconds since the epoch.
    pub ends: u64,
}

impl fmt::Debug for SeriesToss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SeriesToss(…)")
    }
}

impl fmt::Debug for StoredReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
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

impl Entry {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            owner: row.get(0)?,
            query: row.get(1)?,
            charged: moment(row, 2)?,
            closes: moment(row, 3)?,
            state: State::parse(&row.get::<_, String>(4)?),
        })
    }
}

/// How long a card that was not accepted has been known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The visit at which it was first seen; later ones have larger numbers.
    pub(crate) first: u64,
    /// At how many visits its claims were recomputed, or began to be.
    pub(crate) weighed: u64,
}

/// How much of an owner's budget for one view is spent.
#[derive(Debug, Clone, PartialEq)]
pub struct Spent {
    /// Whose.
    pub owner: String,
    /// `linked`, `one_aggregator` or `release`.
    pub view: String,
    /// Whose cards, if the policy gives each signer a share; `None` for those of all signers.
    pub signer: Option<String>,
    /// The budget's ε.
    pub epsilon: f64,
    /// The budget's δ.
    pub delta: f64,
    /// The share of it that is spent.
    pub fraction: f64,
    /// How many queries were permitted.
    pub queries: u64,
}

impl Spent {
    fn new(owner: String, view: String, signer: String, filter: &Filter) -> Self {
        Self {
            owner,
            view,
            signer: Some(signer).filter(|signer| !signer.is_empty()),
            epsilon: filter.epsilon(),
            delta: filter.delta(),
            fraction: filter.fraction_spent(),
            queries: filter.queries(),
        }
    }
}

impl Ledger {
    /// Opens or creates [`STATE_FILE`] in `directory`, accessible to this user alone.
    pub fn open(directory: &Path) -> Result<Self> {
        let lock = layout::lock(directory)?;
        let connection = layout::open(&directory.join(STATE_FILE))?;
        Ok(Self { connection: Mutex::new(connection), expired_until: AtomicU64::new(0), _lock: lock })
    }

    /// Charges each owner and notes when its report will be sent, all in one durable step.
    ///
    /// `uploads` names the owners and the moments, which were drawn before any truth was looked at. `checker` has the budgets, and
    /// prices what was answered while there was none.
    pub fn accept(
        &self,
        signed: &SignedCard,
        accepted: &Accepted,
        uploads: &[(&str, u64)],
        checker: &Checker,
        now: u64,
    ) -> Result<Vec<ChargeDecision>> {
        self.change(|transaction| {
            store_card(transaction, signed, accepted.window.1)?;
            let accept =
                |(owner, upload): &(&str, u64)| charge::accept(transaction, accepted, owner, *upload, checker, now);
            uploads.iter().map(accept).collect()
        })
    }

    /// Ready reports whose moment has come, the earliest first.
    pub fn due(&self, now: u64, most: usize) -> Result<Vec<Due>> {
        self.select(&format!("{READY} AND upload <= ?1 ORDER BY upload, owner, query LIMIT ?2"), now, most)
    }

    /// Entries whose report has to be made or sealed again.
    pub fn unprepared(&self, now: u64, most: usize) -> Result<Vec<Due>> {
        self.select(&format!("{UNPREPARED} AND prepare <= ?1 ORDER BY charged, owner, query LIMIT ?2"), now, most)
    }

    /// The moment of the next ready report.
    pub fn next_due(&self) -> Result<Option<u64>> {
        self.earliest(&format!("SELECT min(upload) {READY}"))
    }

    /// When the next report can be made.
    pub fn next_unprepared(&self) -> Result<Option<u64>> {
        self.earliest(&format!("SELECT min(prepare) {UNPREPARED}"))
    }

    fn select(&self, rest: &str, now: u64, most: usize) -> Result<Vec<Due>> {
        let query = format!("SELECT owner, query, upload {rest}");
        select_rows(&self.lock(), &query, [now as i64, most as i64], Due::from_row)
    }

    fn earliest(&self, query: &str) -> Result<Option<u64>> {
        let next: Option<i64> = self.lock().query_row(query, [], |row| row.get(0))?;
        Ok(next.map(|moment| moment as u64))
    }

    /// How many owners have an entry for a query.
    pub fn entries_of(&self, query: &str) -> Result<usize> {
        let count = "SELECT count(*) FROM entries WHERE query = ?1";
        Ok(self.lock().query_row(count, [query], |row| row.get::<_, i64>(0))? as usize)
    }

    /// Where an owner's entry for a query stands.
    pub fn state(&self, owner: &str, query: &str) -> Result<Option<State>> {
        charge::state_of(&self.lock(), owner, query)
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
        let mut statement = connection
            .prepare_cached("SELECT measurement, bytes, credential FROM reports WHERE owner = ?1 AND query = ?2")?;
        let found = statement.query_row([&due.owner, &due.query], |row| {
            Ok(StoredReport { measurement: row.get(0)?, bytes: row.get(1)?, credential: row.get(2)?, toss: None })
        });
        Ok(found.optional()?)
    }

    /// The coins of an owner for a series of which a report was made before; they are empty if the series has ended.
    pub fn toss(&self, owner: &str, charge: &str) -> Result<Option<SeriesToss>> {
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached("SELECT coins, used, ends FROM tosses WHERE owner = ?1 AND charge = ?2")?;
        let found = statement.query_row([owner, charge], |row| {
            let (coins, used, ends) = (row.get(0)?, row.get(1)?, moment(row, 2)?);
            Ok(SeriesToss { charge: charge.to_owned(), coins, used, ends })
        });
        Ok(found.optional()?)
    }

    /// Stores reports before they are sent, with the moments at which they will be sent.
    pub fn store(&self, reports: &[(Due, StoredReport)]) -> Result<()> {
        self.change(|transaction| {
            for (due, report) in reports {
                store_report(transaction, due, report)?;
            }
            Ok(())
        })
    }

    /// Ends entries: their cells and bytes are deleted and overwritten, their charges stay.
    pub fn settle(&self, ended: &[(Due, State)]) -> Result<()> {
        if ended.is_empty() {
            return Ok(());
        }
        self.change(|transaction| ended.iter().try_for_each(|(due, state)| end(transaction, due, *state)))?;
        layout::empty_log(&self.lock())
    }

    /// Puts off reports that could not be sent.
    pub fn postpone(&self, later: &[(Due, u64)]) -> Result<()> {
        self.update("UPDATE entries SET upload = ?3 WHERE owner = ?1 AND query = ?2", later)
    }

    /// Puts off making reports whose keys could not be fetched.
    pub fn postpone_preparing(&self, later: &[(Due, u64)]) -> Result<()> {
        self.update("UPDATE entries SET prepare = ?3 WHERE owner = ?1 AND query = ?2", later)
    }

    /// Notes that reports have to be sealed again under another key, and when they will be sent.
    pub fn outdate(&self, outdated: &[(Due, u64)]) -> Result<()> {
        self.postpone(outdated)?;
        self.update("UPDATE reports SET stale = 1 WHERE owner = ?1 AND query = ?2 AND ?3 > 0", outdated)
    }

    /// Moves the moments of ready reports that have passed by whole multiples of `step`, until none has.
    ///
    /// The time at which such a report arrives tells in which multiple of `step` it was made, and nothing finer.
    pub fn realign(&self, now: u64, step: u64) -> Result<()> {
        let shift = "UPDATE entries SET upload = upload + ((?1 - upload) / ?2 + 1) * ?2 WHERE state = 'due' \
                     AND upload <= ?1 AND (owner, query) IN (SELECT owner, query FROM reports WHERE stale = 0)";
        self.change(|transaction| Ok(transaction.execute(shift, params![now as i64, step as i64]).map(drop)?))
    }

    /// Deletes what belongs to queries that have closed; returns how many reports were not acknowledged in time.
    pub fn expire(&self, now: u64) -> Result<usize> {
        if !self.has_closed_since_expiry(now)? {
            return Ok(0);
        }
        let (deleted, expired) = self.change(|transaction| delete_closed(transaction, now))?;
        if deleted > 0 {
            layout::empty_log(&self.lock())?;
        }
        self.expired_until.store(now, Ordering::Relaxed);
        Ok(expired)
    }

    /// Whether a query may have closed since [`expire`](Self::expire) last looked at every report.
    fn has_closed_since_expiry(&self, now: u64) -> Result<bool> {
        let before = self.expired_until.load(Ordering::Relaxed);
        // If the clock was set back, or nothing was looked at yet, there is nothing to rely on.
        if !(1..=now).contains(&before) {
            return Ok(true);
        }
        // The last card of a series may never have been answered.
        let closed = "SELECT 1 FROM cards WHERE closes > ?1 AND closes <= ?2
             UNION ALL SELECT 1 FROM tosses WHERE ends > ?1 AND ends <= ?2";
        Ok(self.lock().prepare_cached(closed)?.exists([before as i64, now as i64])?)
    }

    /// Notes cards, given with the time at which they close, as seen now unless they were seen before; forgets those that have
    /// closed. Returns what is known of each.
    pub(crate) fn see<'a>(&self, cards: impl Iterator<Item = (&'a str, u64)>, now: u64) -> Result<Vec<Seen>> {
        self.change(|transaction| {
            execute(transaction, "DELETE FROM seen WHERE closes <= ?1", [now as i64])?;
            let visit = transaction.query_row("SELECT ifnull(max(first), 0) + 1 FROM seen", [], |row| row.get(0))?;
            cards.map(|(query, closes)| see_card(transaction, query, closes, visit)).collect()
        })
    }

    /// Notes that a card's claims are being recomputed.
    pub(crate) fn note_weighed(&self, query: &str) -> Result<()> {
        let note = "UPDATE seen SET weighed = weighed + 1 WHERE query = ?1";
        self.change(|transaction| execute(transaction, note, [query]))
    }

    /// The entries, the newest first.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let newest_first = "SELECT owner, query, charged, closes, state FROM entries JOIN cards USING (query)
             ORDER BY charged DESC, owner, query";
        select_rows(&self.lock(), newest_first, [], Entry::from_row)
    }

    /// The budget spent, per owner and view.
    pub fn spent(&self) -> Result<Vec<Spent>> {
        let connection = self.lock();
        let all = "SELECT owner, view, signer, filter FROM budgets ORDER BY owner, view, signer";
        let mut statement = connection.prepare(all)?;
        let rows =
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, String>(3)?)))?;
        rows.map(|row| {
            let (owner, view, signer, text) = row?;
            Ok(Spent::new(owner, view, signer, &charge::read_filter(&text)?))
        })
        .collect()
    }

    /// Runs a statement for each entry, with a moment as its third value.
    fn update(&self, statement: &str, entries: &[(Due, u64)]) -> Result<()> {
        self.change(|transaction| {
            for (due, moment) in entries {
                execute(transaction, statement, params![due.owner, due.query, *moment as i64])?;
            }
            Ok(())
        })
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

/// Runs a statement, which is prepared once.
fn execute(connection: &Connection, statement: &str, values: impl Params) -> Result<()> {
    connection.prepare_cached(statement)?.execute(values)?;
    Ok(())
}

/// The text that a query selects, if there is a row.
fn select_text(connection: &Connection, query: &str, values: impl Params) -> Result<Option<String>> {
    Ok(connection.prepare_cached(query)?.query_row(values, |row| row.get(0)).optional()?)
}

/// All rows that a query selects, by a statement that is prepared once.
fn select_rows<T>(
    connection: &Connection,
    query: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(query)?;
    let rows = statement.query_map(values, read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// A moment in a row; SQLite's integers are signed.
fn moment(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)? as u64)
}

fn store_card(transaction: &Transaction<'_>, signed: &SignedCard, closes: u64) -> Result<()> {
    let card = params![signed.query, signed.card, signed.signature, closes as i64];
    execute(transaction, "INSERT OR IGNORE INTO cards VALUES (?1, ?2, ?3, ?4)", card)
}

fn see_card(transaction: &Transaction<'_>, query: &str, closes: u64, visit: i64) -> Result<Seen> {
    let new = params![query, visit, closes as i64];
    execute(transaction, "INSERT OR IGNORE INTO seen VALUES (?1, ?2, 0, ?3)", new)?;
    let mut statement = transaction.prepare_cached("SELECT first, weighed FROM seen WHERE query = ?1")?;
    Ok(statement.query_row([query], |row| Ok(Seen { first: moment(row, 0)?, weighed: moment(row, 1)? }))?)
}

fn store_report(transaction: &Transaction<'_>, due: &Due, report: &StoredReport) -> Result<()> {
    let stored = params![due.owner, due.query, report.measurement, report.bytes, report.credential];
    execute(transaction, "INSERT OR REPLACE INTO reports VALUES (?1, ?2, ?3, ?4, ?5, 0)", stored)?;
    if let Some(toss) = &report.toss {
        let tossed = params![due.owner, toss.charge, toss.coins, toss.used, toss.ends as i64];
        execute(transaction, "INSERT OR REPLACE INTO tosses VALUES (?1, ?2, ?3, ?4, ?5)", tossed)?;
    }
    let moment = params![due.owner, due.query, due.upload as i64];
    execute(transaction, "UPDATE entries SET upload = ?3 WHERE owner = ?1 AND query = ?2", moment)
}

/// Ends an entry and deletes its report.
fn end(transaction: &Transaction<'_>, due: &Due, state: State) -> Result<()> {
    let ended = params![due.owner, due.query, state.word()];
    execute(transaction, "UPDATE entries SET state = ?3 WHERE owner = ?1 AND query = ?2", ended)?;
    execute(transaction, "DELETE FROM reports WHERE owner = ?1 AND query = ?2", [&due.owner, &due.query])
}

/// Deletes the reports of closed queries and ends their entries; returns how many of each there were.
fn delete_closed(transaction: &Transaction<'_>, now: u64) -> Result<(usize, usize)> {
    let late = "query IN (SELECT query FROM cards WHERE closes <= ?1)";
    let delete = format!("DELETE FROM reports WHERE {late}");
    let update = format!("UPDATE entries SET state = 'expired' WHERE state = 'due' AND {late}");
    let deleted = transaction.execute(&delete, [now as i64])? + transaction.execute(OVERWRITE_TOSSES, [now as i64])?;
    Ok((deleted, transaction.execute(&update, [now as i64])?))
}
