//! Durable state: one SQLite file, one connection.
//!
//! A desk writes a few times per query, so one connection behind a lock is enough; what owners poll is kept in memory.
//! Every call is one transaction and is durable when it returns.

#[cfg(test)]
mod faults;
mod layout;
pub(crate) mod openings;

use rusqlite::{Connection, OptionalExtension, Row, Rows, params};
use serde::de::IgnoredAny;
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::Semaphore;
use uptack::card::Card;
use uptack_dap::{protocol::CollectionJobId, signed::SignedCard, task::CollectorTask};
use url::Url;

use crate::{
    base::{
        lock,
        sqlite::{SqlResult, read_u64},
    },
    error::{Error, Result},
};
use layout::DATABASE;

pub use layout::{STATE_FILE, back_up};

/// Calls that run at once. There is one connection, so more would only be threads that wait for its lock.
const CALLS_AT_ONCE: usize = 4;

/// The state of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueryState {
    /// Durable here, not yet known to the aggregators.
    Opening,
    /// Known to the aggregators; answers are taken within its window.
    Open,
    /// Its window is over. It is being collected, or was collected and nobody has asked for the result yet.
    Closed,
    /// Somebody has the result.
    Released,
    /// Nothing is released, ever.
    Withheld,
    /// Somebody cancelled it, or it never reached the aggregators.
    Cancelled,
}

impl QueryState {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Opening, Self::Open, Self::Closed, Self::Released, Self::Withheld, Self::Cancelled];

    /// Its name in the store, in answers and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Released => "released",
            Self::Withheld => "withheld",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing more will happen to the query.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Released | Self::Withheld | Self::Cancelled)
    }

    /// The state at a moment of a query that closes at another one.
    fn at(self, closes: u64, now: u64) -> Self {
        if self == Self::Open && now >= closes { Self::Closed } else { self }
    }

    fn read(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name).ok_or_else(damaged)
    }
}

/// A query as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub(crate) signed: SignedCard,
    pub(crate) opens: u64,
    pub(crate) closes: u64,
    pub(crate) state: QueryState,
    pub(crate) reason: Option<String>,
    /// The collector's part of the task; gone when the aggregators no longer have the task.
    pub(crate) tasks: Option<CollectorTask>,
    /// The name of the collection job; durable before it is requested.
    pub(crate) job: Option<CollectionJobId>,
    pub(crate) record: Option<String>,
    /// Who asked; unknown for queries of versions that did not keep it.
    pub(crate) analyst: Option<String>,
}

impl Query {
    /// The name of the query, which is that of its card.
    pub(crate) fn name(&self) -> &str {
        &self.signed.query
    }

    pub(crate) fn card(&self) -> std::result::Result<Card, uptack::Error> {
        Card::from_json(&self.signed.card)
    }

    /// The state at a moment: a query counts as closed from the moment that its card names.
    pub(crate) fn state_at(&self, now: u64) -> QueryState {
        self.state.at(self.closes, now)
    }

    /// The record, once it is released.
    pub(crate) fn released_record(&self) -> Option<&str> {
        self.record.as_deref().filter(|_| self.state == QueryState::Released)
    }
}

/// When a query is open, without its card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryTimes {
    pub(crate) query: String,
    pub(crate) opens: u64,
    pub(crate) closes: u64,
}

impl QueryTimes {
    pub(crate) fn is_open(&self, now: u64) -> bool {
        (self.opens..self.closes).contains(&now)
    }

    fn read(row: &Row<'_>) -> SqlResult<Self> {
        Ok(Self { query: row.get("query")?, opens: read_u64(row, "opens")?, closes: read_u64(row, "closes")? })
    }
}

/// A query as it is searched for, without its card.
#[derive(Debug, Clone)]
pub(crate) struct AskedEntry {
    pub(crate) query: String,
    pub(crate) question: Option<String>,
    closes: u64,
    state: QueryState,
}

impl AskedEntry {
    /// The state at a moment.
    pub(crate) fn state_at(&self, now: u64) -> QueryState {
        self.state.at(self.closes, now)
    }

    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            query: row.get("query")?,
            question: row.get("question")?,
            closes: read_u64(row, "closes")?,
            state: QueryState::read(&row.get::<_, String>("state")?)?,
        })
    }
}

pub(crate) struct Store {
    connection: Mutex<Connection>,
    /// Calls that run.
    turns: Arc<Semaphore>,
    /// How often queries were changed since the store was opened.
    changes: AtomicU64,
    /// Held for as long as the store is open: a second desk would drive the same queries.
    _lock: std::fs::File,
}

impl Store {
    /// Opens or creates the file `desk.sqlite3` below `directory`.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let lock = DATABASE.lock(directory)?;
        let mut connection = DATABASE.connect(directory)?;
        DATABASE.migrate(&mut connection, directory)?;
        let turns = Arc::new(Semaphore::new(CALLS_AT_ONCE));
        Ok(Self { connection: Mutex::new(connection), turns, changes: AtomicU64::new(0), _lock: lock })
    }

    /// Runs a call where it may block, when it is its turn. A caller that hangs up before that leaves nothing behind.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let store = Arc::clone(self);
        let turn = Arc::clone(&self.turns).acquire_owned().await.expect("the semaphore is never closed");
        let call = move || {
            let _turn = turn;
            call(&store)
        };
        let outcome = tokio::task::spawn_blocking(call).await;
        outcome.unwrap_or_else(|_| Err(Error::environment("storage: a call failed")))
    }

    /// Runs a call about one query where it may block.
    pub(crate) async fn run_for<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        call: impl FnOnce(&Self, &str) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let name = name.to_owned();
        self.run(move |store| call(store, &name)).await
    }

    pub(crate) fn setting(&self, key: &str) -> Result<Option<String>> {
        let statement = "SELECT value FROM meta WHERE key = ?1";
        Ok(self.lock().query_row(statement, [key], |row| row.get(0)).optional()?)
    }

    pub(crate) fn set_setting(&self, key: &str, value: &str) -> Result<()> {
        self.lock().execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?1, ?2)", [key, value])?;
        Ok(())
    }

    /// The address to listen on: the one asked for, that of the last run, or a free port on loopback.
    pub(crate) fn listen_address(&self, key: &str, wanted: Option<SocketAddr>) -> Result<SocketAddr> {
        let last = self.setting(key)?.and_then(|text| text.parse().ok());
        let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(wanted.or(last).unwrap_or(free_port))
    }

    /// Keeps the address that is listened on for the next run.
    pub(crate) fn keep_listen_address(&self, key: &str, url: &Url) -> Result<()> {
        url.socket_addrs(|| None)?.first().map_or(Ok(()), |address| self.set_setting(key, &address.to_string()))
    }

    /// Grows with every change of a query; as long as it stays the same, so do the queries.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Marks every copy of something in the store as out of date.
    fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn query(&self, name: &str) -> Result<Option<Query>> {
        find(&self.lock(), name)
    }

    /// When each query that the aggregators know is open.
    pub(crate) fn open_windows(&self) -> Result<Vec<QueryTimes>> {
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached("SELECT query, opens, closes FROM queries WHERE state = 'open'")?;
        let times = statement.query_map([], QueryTimes::read)?;
        Ok(times.collect::<SqlResult<_>>()?)
    }

    /// The signed cards of queries, as far as they are known.
    pub(crate) fn signed_cards(&self, names: &[String]) -> Result<Vec<SignedCard>> {
        let connection = self.lock();
        let found = names.iter().map(|name| Ok(find(&connection, name)?.map(|query| query.signed)));
        found.filter_map(Result::transpose).collect()
    }

    /// Queries that wait to be opened, of those that open by `moment`.
    pub(crate) fn opening_by(&self, moment: u64) -> Result<Vec<Query>> {
        self.select("state = 'opening' AND opens <= ?1", [bounded(moment)])
    }

    /// Queries that are open in the store and close by `moment`.
    pub(crate) fn closing_by(&self, moment: u64) -> Result<Vec<Query>> {
        self.select("state = 'open' AND closes <= ?1", [bounded(moment)])
    }

    /// Queries whose batch is still to be collected.
    pub(crate) fn uncollected(&self) -> Result<Vec<Query>> {
        self.select("state = 'closed' AND record IS NULL", [])
    }

    /// Queries that are over and whose tasks the aggregators may still have.
    pub(crate) fn removable(&self) -> Result<Vec<Query>> {
        self.select(
            "tasks IS NOT NULL AND (state IN ('released', 'withheld', 'cancelled')
             OR state = 'closed' AND record IS NOT NULL)",
            [],
        )
    }

    /// At most `most` queries of an analyst, or of everybody, without the first `from`; those that close last come
    /// first.
    pub(crate) fn asked_by(&self, analyst: Option<&str>, from: usize, most: usize) -> Result<Vec<Query>> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(&format!(
            "{COLUMNS} WHERE ?1 IS NULL OR analyst = ?1 ORDER BY closes DESC, query LIMIT ?3 OFFSET ?2"
        ))?;
        read_all(statement.query(params![analyst, from as i64, most as i64])?)
    }

    /// The names of those of the latest `searched` queries of an analyst, or of everybody, that `matches`: at most `most` of
    /// them, without the first `from`. However many are searched, no more than the question of one card is in memory.
    pub(crate) fn find_asked(
        &self,
        analyst: Option<&str>,
        searched: usize,
        (from, most): (usize, usize),
        mut matches: impl FnMut(&AskedEntry) -> bool,
    ) -> Result<Vec<String>> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT query, closes, state, json_extract(card, '$.question') AS question FROM queries
             WHERE ?1 IS NULL OR analyst = ?1 ORDER BY closes DESC, query LIMIT ?2",
        )?;
        let mut rows = statement.query(params![analyst, searched as i64])?;
        let (mut found, mut skipped) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let entry = AskedEntry::read(row)?;
            if !matches(&entry) {
                continue;
            }
            if skipped < from {
                skipped += 1;
                continue;
            }
            found.push(entry.query);
            if found.len() == most {
                break;
            }
        }
        Ok(found)
    }

    /// How many queries an analyst has asked, or all analysts.
    pub(crate) fn number_asked(&self, analyst: Option<&str>) -> Result<u64> {
        count(&self.lock(), "?1 IS NULL OR analyst = ?1", [analyst])
    }

    /// The queries that may belong to a card's series: same analyst, same start, same spacing. In the order in which
    /// they close.
    pub(crate) fn series_like(&self, query: &Query) -> Result<Vec<Query>> {
        self.select(
            "analyst IS (SELECT analyst FROM queries WHERE query = ?1)
             AND json_extract(card, '$.series.starts') = (SELECT json_extract(card, '$.series.starts') FROM queries WHERE query = ?1)
             AND json_extract(card, '$.series.every') = (SELECT json_extract(card, '$.series.every') FROM queries WHERE query = ?1)",
            [&query.signed.query],
        )
    }

    /// How many queries are in each state.
    pub(crate) fn census(&self) -> Result<Vec<(QueryState, u64)>> {
        let connection = self.lock();
        QueryState::ALL
            .into_iter()
            .map(|state| Ok((state, count(&connection, "state = ?1", [state.name()])?)))
            .collect()
    }

    /// Moves a query to another state if it is in one of those given; says whether it was.
    pub(crate) fn advance(
        &self,
        name: &str,
        from: &[QueryState],
        to: QueryState,
        reason: Option<&str>,
    ) -> Result<bool> {
        let connection = self.lock();
        for state in from {
            let changed = connection.execute(
                "UPDATE queries SET state = ?3, reason = ?4 WHERE query = ?1 AND state = ?2",
                params![name, state.name(), to.name(), reason],
            )?;
            if changed > 0 {
                self.note_change();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Closes a query and names the job that will collect it.
    pub(crate) fn close(&self, name: &str, job: &CollectionJobId) -> Result<()> {
        self.lock().execute(
            "UPDATE queries SET state = 'closed', job = ?2 WHERE query = ?1 AND state = 'open'",
            params![name, job.as_ref()],
        )?;
        self.note_change();
        Ok(())
    }

    /// Stores the record of a collected query; false if the query was cancelled in the meantime.
    pub(crate) fn collected(&self, name: &str, record: &str) -> Result<bool> {
        let changed = self.lock().execute(
            "UPDATE queries SET record = ?2, reason = NULL
             WHERE query = ?1 AND state = 'closed' AND record IS NULL",
            [name, record],
        )?;
        self.note_change();
        Ok(changed > 0)
    }

    /// Cancels a query and forgets its record; false if the query is over.
    pub(crate) fn cancel(&self, name: &str, reason: &str) -> Result<bool> {
        let changed = self.lock().execute(
            "UPDATE queries SET state = 'cancelled', reason = ?2, record = NULL
             WHERE query = ?1 AND state IN ('opening', 'open', 'closed')",
            [name, reason],
        )?;
        self.note_change();
        Ok(changed > 0)
    }

    /// Notes why a query waits.
    pub(crate) fn explain(&self, name: &str, reason: &str) -> Result<()> {
        let statement = "UPDATE queries SET reason = ?2 WHERE query = ?1 AND state IN ('opening', 'closed')";
        self.lock().execute(statement, [name, reason])?;
        Ok(())
    }

    /// Forgets a query's task: the aggregators no longer have it, so its secrets are of no use.
    pub(crate) fn forget_tasks(&self, name: &str) -> Result<()> {
        self.lock().execute("UPDATE queries SET tasks = NULL WHERE query = ?1", [name])?;
        Ok(())
    }

    fn select(&self, condition: &str, values: impl rusqlite::Params) -> Result<Vec<Query>> {
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached(&format!("{COLUMNS} WHERE {condition} ORDER BY closes, query"))?;
        read_all(statement.query(values)?)
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        lock(&self.connection)
    }
}

const COLUMNS: &str =
    "SELECT query, card, signature, opens, closes, state, reason, tasks, job, record, analyst FROM queries";

/// A moment as SQLite holds it.
fn bounded(moment: u64) -> i64 {
    i64::try_from(moment).unwrap_or(i64::MAX)
}

fn find(connection: &Connection, name: &str) -> Result<Option<Query>> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE query = ?1"))?;
    Ok(read_all(statement.query([name])?)?.pop())
}

fn insert(connection: &Connection, query: &Query) -> Result<()> {
    let tasks = query.tasks.as_ref().map(|task| serde_json::to_string(task).expect("a task is plain data"));
    let SignedCard { query: name, card, signature } = &query.signed;
    connection.execute(
        "INSERT INTO queries(query, card, signature, opens, closes, state, tasks, analyst)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            name,
            card,
            signature,
            query.opens as i64,
            query.closes as i64,
            query.state.name(),
            tasks,
            query.analyst
        ],
    )?;
    Ok(())
}

fn count(connection: &Connection, condition: &str, values: impl rusqlite::Params) -> Result<u64> {
    let mut statement = connection.prepare_cached(&format!("SELECT count(*) FROM queries WHERE {condition}"))?;
    Ok(statement.query_row(values, |row| read_u64(row, 0))?)
}

fn read_all(mut rows: Rows<'_>) -> Result<Vec<Query>> {
    let mut queries = Vec::new();
    while let Some(row) = rows.next()? {
        queries.push(read(row)?);
    }
    Ok(queries)
}

fn read(row: &Row<'_>) -> Result<Query> {
    let (state, tasks): (String, Option<String>) = (row.get("state")?, row.get("tasks")?);
    let job: Option<Vec<u8>> = row.get("job")?;
    Ok(Query {
        signed: SignedCard { query: row.get("query")?, card: row.get("card")?, signature: row.get("signature")? },
        opens: read_u64(row, "opens")?,
        closes: read_u64(row, "closes")?,
        state: QueryState::read(&state)?,
        reason: row.get("reason")?,
        tasks: tasks.as_deref().map(read_task).transpose()?,
        job: job.as_deref().map(read_job).transpose()?,
        record: row.get("record")?,
        analyst: row.get("analyst")?,
    })
}

fn read_job(bytes: &[u8]) -> Result<CollectionJobId> {
    CollectionJobId::try_from(bytes).map_err(|_| damaged())
}

/// Reads the collector's part of a task. Desks of the first version kept both aggregators' parts before it, with keys
/// that are theirs alone; those are skipped.
fn read_task(text: &str) -> Result<CollectorTask> {
    let parts = serde_json::from_str::<(IgnoredAny, IgnoredAny, CollectorTask)>(text).map(|parts| parts.2);
    parts.or_else(|_| serde_json::from_str(text)).map_err(|_| damaged())
}

fn damaged() -> Error {
    Error::environment("storage: a query's row is damaged")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn query(name: &str) -> Query {
        Query {
            signed: SignedCard { query: name.to_owned(), card: "{}".to_owned(), signature: String::new() },
            opens: 0,
            closes: 10,
            state: QueryState::Opening,
            reason: None,
            tasks: None,
            job: None,
            record: None,
            analyst: Some("ada".to_owned()),
        }
    }

    #[tokio::test]
    async fn calls_of_callers_who_hang_up_hold_no_threads() {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(directory.path()).unwrap());
        let all = Arc::clone(&store.turns).acquire_many_owned(CALLS_AT_ONCE as u32).await.unwrap();
        for _ in 0..40 {
            let store = Arc::clone(&store);
            let gone = tokio::spawn(async move { store.run(|_| -> Result<()> { unreachable!() }).await });
            tokio::task::yield_now().await;
            gone.abort();
            assert!(gone.await.unwrap_err().is_cancelled());
        }
        drop(all);
        assert!(store.run(|store| store.setting("nothing")).await.unwrap().is_none());
    }

    #[test]
    fn a_query_moves_only_from_where_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        for name in ["a", "b"] {
            insert(&store.lock(), &query(name)).unwrap();
        }
        assert!(!store.advance("a", &[QueryState::Open], QueryState::Closed, None).unwrap());
        assert!(store.advance("a", &[QueryState::Opening], QueryState::Open, None).unwrap());
        let job = uptack_dap::collector::Collector::new_job();
        store.close("a", &job).unwrap();
        store.close("b", &job).unwrap();
        assert_eq!(store.query("a").unwrap().unwrap().job, Some(job));
        assert_eq!(store.query("b").unwrap().unwrap().state, QueryState::Opening);
        assert!(store.collected("a", "record").unwrap());
        assert!(!store.collected("a", "another").unwrap());
        assert!(store.cancel("a", "taken back").unwrap());
        let cancelled = store.query("a").unwrap().unwrap();
        assert_eq!((cancelled.state, cancelled.record), (QueryState::Cancelled, None));
        assert!(!store.collected("a", "late").unwrap());
        assert!(store.open_windows().unwrap().is_empty());
        assert!(store.advance("b", &[QueryState::Opening], QueryState::Open, None).unwrap());
        let window = QueryTimes { query: "b".to_owned(), opens: 0, closes: 10 };
        assert_eq!(store.open_windows().unwrap(), [window]);
    }

    #[test]
    fn a_directory_has_one_desk() {
        let directory = tempfile::tempdir().unwrap();
        let _store = Store::open(directory.path()).unwrap();
        assert!(Store::open(directory.path()).err().unwrap().to_string().contains("in use"));
    }
}
