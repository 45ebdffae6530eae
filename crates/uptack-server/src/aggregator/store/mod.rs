//! Durable state: one SQLite file per role, one thread that writes, group commit.
//!
//! Every change is a closure that runs inside a transaction on the writer's thread. The thread
//! takes all closures that are waiting, runs each in a savepoint of its own, commits once, and only
//! then answers all of them. So an answer means *durable*, and a hundred uploads cost one sync.
//! Because there is one writer, closures see each other's effects in one order, and a check made in
//! a closure still holds when its change is written.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, Transaction, TransactionBehavior};
use std::{
    convert::Infallible,
    error::Error as StdError,
    path::Path,
    sync::{
        Mutex,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
};
use tokio::sync::oneshot;
use uptack_dap::task::AggregatorRole;

use crate::{
    base::{
        lock,
        logging::Throttle,
        problem::Problem,
        sqlite::{SqlResult, read_u64},
    },
    error::{Error, Result},
};

mod batches;
mod collections;
mod jobs;
mod layout;
mod reports;
mod tasks;

pub(crate) use batches::{Additions, Batch};
pub(crate) use collections::{CollectionJob, CollectionState, Overlap};
pub(crate) use jobs::{AnsweredJob, Job};
use layout::DATABASE;
pub(crate) use layout::copy_into;
pub use layout::{STATE_FILE, back_up};
pub(crate) use reports::{ClaimedId, QueuedReport};
pub(crate) use tasks::StoredTask;

/// Changes that may wait for the writer; beyond that, callers wait in turn.
const QUEUE: usize = 4096;
/// Most changes in one commit; without a limit, the first of them could wait forever.
const LARGEST_COMMIT: usize = 1024;

/// The result of using the store.
pub(crate) type StoreResult<T> = std::result::Result<T, StoreError>;

/// Why the store failed.
#[derive(Debug)]
pub(crate) enum StoreError {
    /// The disk, or the configured size, is full.
    Full,
    /// The database failed in another way.
    Broken(Box<dyn StdError + Send + Sync>),
    /// A change failed for a reason that is not the database's.
    Other(uptack_dap::Error),
}

impl StoreError {
    pub(crate) fn broken(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Broken(cause.into())
    }

    fn other(message: &str) -> Self {
        Self::Other(uptack_dap::Error::environment(message))
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full,
            _ => Self::broken(error),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full => Self::environment("storage is full"),
            StoreError::Broken(cause) => Self::Storage(cause),
            StoreError::Other(error) => Self::Dap(error),
        }
    }
}

/// The result of a change, which by default has no refusal of its own.
pub(crate) type ChangeResult<T, E = Infallible> = std::result::Result<T, ChangeError<E>>;

/// Why nothing was changed.
#[derive(Debug)]
pub(crate) enum ChangeError<E> {
    /// The change itself said no.
    Refused(E),
    /// The store failed.
    Failed(StoreError),
}

impl<E> From<StoreError> for ChangeError<E> {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl<E> From<rusqlite::Error> for ChangeError<E> {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl<E> ChangeError<E> {
    /// As an error, with the change's own refusal in the caller's words.
    pub(crate) fn into_error(self, refused: impl FnOnce(E) -> Error) -> Error {
        match self {
            Self::Refused(reason) => refused(reason),
            Self::Failed(failure) => failure.into(),
        }
    }
}

impl From<ChangeError<Infallible>> for Error {
    fn from(error: ChangeError<Infallible>) -> Self {
        error.into_error(|never| match never {})
    }
}

impl From<Problem> for ChangeError<Problem> {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

impl From<ChangeError<Problem>> for Problem {
    fn from(error: ChangeError<Problem>) -> Self {
        match error {
            ChangeError::Refused(problem) => problem,
            ChangeError::Failed(StoreError::Full) => storage_full(),
            ChangeError::Failed(failure) => Error::from(failure).into(),
        }
    }
}

fn storage_full() -> Problem {
    // Every upload meets a full disk; one line per minute says so.
    static FULL: Throttle = Throttle::per_minute();
    if let Some(unlogged) = FULL.pass() {
        tracing::error!(unlogged, "storage is full; refusing changes until there is room");
    }
    Problem::busy("The server's storage is full; nothing was stored.", 30)
}

/// A handle to the file.
pub(crate) struct Store {
    writer: Mutex<Option<SyncSender<QueuedChange>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    reader: Mutex<Connection>,
    /// Held for as long as the store is open: a second process on the same files would drive the
    /// same jobs.
    _lock: std::fs::File,
}

type QueuedChange = Box<dyn Change>;

impl Store {
    /// Opens or creates the file `state.sqlite3` below `directory`.
    ///
    /// `limit` bounds the file's size in bytes: beyond it, changes are refused as on a full disk,
    /// before the disk is full.
    pub(crate) fn open(directory: &Path, role: AggregatorRole, limit: Option<u64>) -> Result<Self> {
        let lock = DATABASE.lock(directory)?;
        let mut connection = DATABASE.connect(directory)?;
        if let Some(bytes) = limit {
            limit_size(&connection, bytes)?;
        }
        DATABASE.migrate(&mut connection, directory)?;
        claim(&connection, role, directory)?;
        tasks::give_noise_secrets(&connection)?;
        let reader = DATABASE.connect(directory)?;
        let (writer, thread) = spawn_writer(connection)?;
        Ok(Self {
            writer: Mutex::new(Some(writer)),
            thread: Mutex::new(Some(thread)),
            reader: Mutex::new(reader),
            _lock: lock,
        })
    }

    /// Reads from the store of a task, alongside the writer. Call it where blocking is allowed, or for single rows.
    pub(crate) fn read_task<T>(&self, task: i64, query: impl FnOnce(TaskStore<'_>) -> StoreResult<T>) -> Result<T> {
        self.read(|connection| query(TaskStore { connection, task }))
    }

    /// Changes the store of a task, and waits until the change is durable.
    pub(crate) async fn change_task<T, E, F>(&self, task: i64, change: F) -> ChangeResult<T, E>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(TaskStore<'_>) -> ChangeResult<T, E> + Send + 'static,
    {
        self.write(move |connection| change(TaskStore { connection, task })).await
    }

    /// Whether the store answers.
    pub(crate) fn check(&self) -> Result<()> {
        self.read(|connection| Ok(connection.query_row("SELECT 1 FROM meta", [], |_| Ok(()))?))
    }

    /// Runs a change and waits until it is durable.
    async fn write<T, E, F>(&self, change: F) -> ChangeResult<T, E>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(&Connection) -> ChangeResult<T, E> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.enqueue(Box::new(Pending { change: Some(change), outcome: None, reply })).await;
        answer.await.unwrap_or_else(|_| Err(StoreError::broken("the store is closed").into()))
    }

    /// Hands a change to the writer. If the store is closed, the change is dropped, and its reply with it.
    async fn enqueue(&self, change: QueuedChange) {
        let writer = lock(&self.writer).clone();
        let Some(writer) = writer else { return };
        if let Err(TrySendError::Full(change)) = writer.try_send(change) {
            // Rare: thousands of changes are waiting. Block a thread of the blocking pool, not the server.
            let _ = tokio::task::spawn_blocking(move || writer.send(change)).await;
        }
    }

    fn read<T>(&self, query: impl FnOnce(&Connection) -> StoreResult<T>) -> Result<T> {
        Ok(query(&lock(&self.reader))?)
    }

    /// Lets the waiting changes finish and closes the file.
    pub(crate) fn close(&self) {
        drop(lock(&self.writer).take());
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

/// The stored data of one task, within one change or one read.
///
/// Its methods are in the files of this folder: tasks, reports, jobs, batches and collections.
#[derive(Clone, Copy)]
pub(crate) struct TaskStore<'a> {
    connection: &'a Connection,
    task: i64,
}

impl<'a> TaskStore<'a> {
    fn prepare(self, statement: &str) -> SqlResult<CachedStatement<'a>> {
        self.connection.prepare_cached(statement)
    }

    /// Reads the one row that a statement always finds.
    fn get<T>(
        self,
        statement: &str,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
    ) -> StoreResult<T> {
        Ok(self.prepare(statement)?.query_row(parameters, read)?)
    }

    /// Reads the first row that a statement finds, if there is one.
    fn find<T>(
        self,
        statement: &str,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
    ) -> StoreResult<Option<T>> {
        Ok(self.prepare(statement)?.query_row(parameters, read).optional()?)
    }

    /// Reads all rows that a statement finds.
    fn list<T>(
        self,
        statement: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> StoreResult<Vec<T>> {
        Ok(self.prepare(statement)?.query_map(parameters, read)?.collect::<SqlResult<_>>()?)
    }

    /// Runs a statement, and says how many rows it changed.
    fn execute(self, statement: &str, parameters: impl Params) -> StoreResult<usize> {
        Ok(self.prepare(statement)?.execute(parameters)?)
    }

    /// Runs a statement.
    fn run(self, statement: &str, parameters: impl Params) -> StoreResult<()> {
        self.execute(statement, parameters).map(drop)
    }
}

/// A stored value that does not decode.
fn damaged(column: usize, name: &str) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, name.to_owned(), rusqlite::types::Type::Blob)
}

/// The job's id in the first column of a row.
fn read_job_id<T: for<'a> TryFrom<&'a [u8]>>(row: &Row<'_>) -> SqlResult<T> {
    T::try_from(row.get_ref(0)?.as_blob()?).map_err(|_| damaged(0, "job_id"))
}

/// A change as the writer sees it: it runs in the open transaction, and is answered after the commit.
trait Change: Send {
    /// Runs the change, and says whether its effects are to be kept.
    fn run(&mut self, connection: &Connection) -> bool;
    fn answer(self: Box<Self>, committed: &SqlResult<()>);
}

struct Pending<T, E, F> {
    change: Option<F>,
    /// Nothing until the change has run.
    outcome: Option<ChangeResult<T, E>>,
    reply: oneshot::Sender<ChangeResult<T, E>>,
}

impl<T, E, F> Change for Pending<T, E, F>
where
    T: Send,
    E: Send,
    F: FnOnce(&Connection) -> ChangeResult<T, E> + Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        let change = self.change.take().expect("a change runs once");
        // A panic in one change must not take the others, or the writer, with it.
        let run = std::panic::AssertUnwindSafe(|| change(connection));
        let outcome =
            std::panic::catch_unwind(run).unwrap_or_else(|_| Err(StoreError::other("a change panicked").into()));
        let kept = outcome.is_ok();
        self.outcome = Some(outcome);
        kept
    }

    fn answer(self: Box<Self>, committed: &SqlResult<()>) {
        let outcome = self.outcome.unwrap_or_else(|| Err(StoreError::broken("the change did not run").into()));
        let outcome = match (outcome, committed.as_ref().map_err(failure_of)) {
            (Ok(_) | Err(ChangeError::Failed(_)), Err(StoreError::Full)) => Err(StoreError::Full.into()),
            (Ok(_), Err(failure)) => Err(failure.into()),
            (outcome, _) => outcome,
        };
        // The caller may have gone; the change stays.
        let _ = self.reply.send(outcome);
    }
}

/// A failed commit fails every change in it, and SQLite's error cannot be copied.
fn failure_of(error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => StoreError::Full,
        _ => StoreError::broken(error.to_string()),
    }
}

/// Starts the thread that writes; it ends when the sender is dropped.
fn spawn_writer(connection: Connection) -> Result<(SyncSender<QueuedChange>, JoinHandle<()>)> {
    let (sender, receiver) = sync_channel(QUEUE);
    let thread = std::thread::Builder::new()
        .name("uptack-store".to_owned())
        .spawn(move || write_until_closed(connection, &receiver))?;
    Ok((sender, thread))
}

fn write_until_closed(mut connection: Connection, changes: &Receiver<QueuedChange>) {
    while let Ok(first) = changes.recv() {
        let mut group = vec![first];
        group.extend(changes.try_iter().take(LARGEST_COMMIT - 1));
        let committed = commit(&mut connection, &mut group);
        for change in group {
            change.answer(&committed);
        }
    }
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}

/// Runs a group of changes in one transaction. After a failure, the remaining ones do not run.
fn commit(connection: &mut Connection, group: &mut [QueuedChange]) -> SqlResult<()> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    for change in group {
        run_in_savepoint(&transaction, change.as_mut())?;
    }
    transaction.commit()
}

fn run_in_savepoint(transaction: &Transaction<'_>, change: &mut dyn Change) -> SqlResult<()> {
    let execute = |statement: &str| transaction.prepare_cached(statement)?.execute([]);
    execute("SAVEPOINT change")?;
    let kept = change.run(transaction);
    // A full disk may already have rolled everything back.
    if transaction.is_autocommit() {
        let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        return Err(rusqlite::Error::SqliteFailure(full, None));
    }
    if !kept {
        execute("ROLLBACK TO change")?;
    }
    execute("RELEASE change")?;
    Ok(())
}

/// Limits the size of the file; the limit is at least 64 pages.
fn limit_size(connection: &Connection, bytes: u64) -> SqlResult<()> {
    let page: u64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let pages = (bytes / page).clamp(64, i64::MAX as u64);
    connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
}

/// A directory belongs to one role for good.
fn claim(connection: &Connection, role: AggregatorRole, directory: &Path) -> Result<()> {
    connection.execute("INSERT OR IGNORE INTO meta(key, value) VALUES ('role', ?1)", [role.to_string()])?;
    let owner: String = connection.query_row("SELECT value FROM meta WHERE key = 'role'", [], |row| row.get(0))?;
    if owner != role.to_string() {
        return Err(Error::input(format!(
            "{} belongs to a {owner}, not to a {role}; give each role a directory of its own",
            directory.display()
        )));
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod faults;

#[cfg(test)]
mod tests {
    use super::*;

    type Refusable = ChangeResult<(), ()>;

    fn put(key: &'static str) -> impl FnOnce(&Connection) -> Refusable {
        move |connection| {
            connection.execute("INSERT INTO meta(key, value) VALUES (?1, '')", [key])?;
            Ok(())
        }
    }

    fn keys(store: &Store) -> i64 {
        store.read(|connection| Ok(connection.query_row("SELECT count(*) FROM meta", [], |row| row.get(0))?)).unwrap()
    }

    #[tokio::test]
    async fn a_refused_change_leaves_nothing_and_harms_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), AggregatorRole::Leader, None).unwrap();
        let before = keys(&store);
        let refused = store.write(|connection| -> Refusable {
            put("half")(connection)?;
            Err(ChangeError::Refused(()))
        });
        let panicking = store.write(|connection| -> Refusable {
            put("other half")(connection)?;
            panic!("deliberate")
        });
        let (good, refused, panicking) = tokio::join!(store.write(put("whole")), refused, panicking);
        good.unwrap();
        assert!(matches!(refused, Err(ChangeError::Refused(()))));
        assert!(matches!(panicking, Err(ChangeError::Failed(StoreError::Other(_)))));
        assert_eq!(keys(&store), before + 1);
    }

    #[tokio::test]
    async fn a_full_store_refuses_and_recovers() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), AggregatorRole::Leader, Some(64 * 4096)).unwrap();
        let fill = |number: i64| {
            store.write(move |connection| -> Refusable {
                connection.execute(
                    "INSERT INTO reports(report, task, report_id, time, content)
                     VALUES (?1, 1, x'', 0, zeroblob(20000))",
                    [number],
                )?;
                Ok(())
            })
        };
        let mut stored = 0;
        let failure = loop {
            match fill(stored + 1).await {
                Ok(()) => stored += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(failure, ChangeError::Failed(StoreError::Full)), "{failure:?}");
        assert!(stored > 3);
        let deleted = store
            .write(|connection| -> ChangeResult<usize> {
                Ok(connection.execute("DELETE FROM reports WHERE report <= 2", [])?)
            })
            .await;
        assert_eq!(deleted.unwrap(), 2);
        fill(stored + 1).await.unwrap();
    }

    #[test]
    fn a_directory_belongs_to_one_role() {
        let directory = tempfile::tempdir().unwrap();
        drop(Store::open(directory.path(), AggregatorRole::Leader, None).unwrap());
        let error = Store::open(directory.path(), AggregatorRole::Helper, None).err().unwrap();
        assert!(error.is_input() && error.to_string().contains("leader"));
    }
}
