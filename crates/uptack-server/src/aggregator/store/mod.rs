//! Durable state: one SQLite file per role, one thread that writes, group commit.
//!
//! Every change is a closure that runs inside a transaction on the writer's thread. The thread
//! takes all closures that are waiting, runs each in a savepoint of its own, commits once, and only
//! then answers all of them. So an answer means *durable*, and a hundred uploads cost one sync.
//! Because there is one writer, closures see each other's effects in one order, and a check made in
//! a closure still holds when its change is written.

use rusqlite::{Connection, Row, Transaction, TransactionBehavior};
use std::{
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
    base::locks::lock,
    error::{Error, Result},
};

pub(crate) mod batches;
pub(crate) mod collection_jobs;
pub(crate) mod job_state;
pub(crate) mod jobs;
mod layout;
mod task_rows;
pub(crate) mod tasks;

pub(crate) use crate::base::sqlite::{SqlResult, read_u64};
use layout::DATABASE;
pub(crate) use task_rows::TaskRows;

/// Changes that may wait for the writer; beyond that, callers wait in turn.
const QUEUE: usize = 4096;
/// Most changes in one commit; without a limit, the first of them could wait forever.
const LARGEST_COMMIT: usize = 1024;

/// What a change gives back. By default it has no refusal of its own.
pub(crate) type WriteResult<T, E = ()> = std::result::Result<T, StoreError<E>>;

/// Failure of a change: its own refusal, or the storage's.
#[derive(Debug)]
pub(crate) enum StoreError<E> {
    /// The closure said no; nothing was changed.
    Refused(E),
    /// The disk, or the configured size, is full; nothing was changed.
    Full,
    /// Anything else that SQLite reports; nothing was changed.
    Broken(String),
}

impl<E> From<&rusqlite::Error> for StoreError<E> {
    fn from(error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full,
            _ => Self::Broken(error.to_string()),
        }
    }
}

impl<E> From<rusqlite::Error> for StoreError<E> {
    fn from(error: rusqlite::Error) -> Self {
        Self::from(&error)
    }
}

impl<E> StoreError<E> {
    /// A failure that is not the change's own refusal, in words.
    pub(crate) fn broken(reason: impl ToString) -> Self {
        Self::Broken(reason.to_string())
    }

    /// As an error, with the closure's own refusal in the caller's words.
    pub(crate) fn into_error(self, refused: impl FnOnce(E) -> Error) -> Error {
        match self {
            Self::Refused(reason) => refused(reason),
            Self::Full => Error::environment("storage is full"),
            Self::Broken(text) => Error::environment(text),
        }
    }
}

impl From<StoreError<()>> for Error {
    fn from(error: StoreError<()>) -> Self {
        error.into_error(|()| Self::environment("the change was refused"))
    }
}

/// A stored value that does not decode.
pub(crate) fn damaged(column: usize, name: &str) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, name.to_owned(), rusqlite::types::Type::Blob)
}

/// The job's id in the first column of a row.
pub(crate) fn read_job_id<T: for<'a> TryFrom<&'a [u8]>>(row: &Row<'_>) -> SqlResult<T> {
    T::try_from(row.get_ref(0)?.as_blob()?).map_err(|_| damaged(0, "job_id"))
}

/// A handle to the file.
pub(crate) struct Store {
    writer: Mutex<Option<SyncSender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    reader: Mutex<Connection>,
    /// Held for as long as the store is open: a second process on the same files would drive the
    /// same jobs.
    _lock: std::fs::File,
}

type Job = Box<dyn Change>;

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
        let reader = DATABASE.connect(directory)?;
        let (writer, thread) = spawn_writer(connection)?;
        Ok(Self {
            writer: Mutex::new(Some(writer)),
            thread: Mutex::new(Some(thread)),
            reader: Mutex::new(reader),
            _lock: lock,
        })
    }

    /// Runs a change and waits until it is durable.
    pub(crate) async fn write<T, E, F>(&self, change: F) -> WriteResult<T, E>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(&Connection) -> WriteResult<T, E> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.enqueue(Box::new(Pending { change: Some(change), outcome: None, reply })).await;
        answer.await.unwrap_or_else(|_| Err(StoreError::broken("the store is closed")))
    }

    /// Hands a change to the writer. If the store is closed, the change is dropped, and its reply with it.
    async fn enqueue(&self, job: Job) {
        let writer = lock(&self.writer).clone();
        let Some(writer) = writer else { return };
        if let Err(TrySendError::Full(job)) = writer.try_send(job) {
            // Rare: thousands of changes are waiting. Block a thread of the blocking pool, not the server.
            let _ = tokio::task::spawn_blocking(move || writer.send(job)).await;
        }
    }

    /// Reads alongside the writer. Call it where blocking is allowed, or for single rows.
    pub(crate) fn read<T>(&self, query: impl FnOnce(&Connection) -> SqlResult<T>) -> Result<T> {
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

/// What the writer does with a change: run it in the open transaction, answer after the commit.
trait Change: Send {
    /// Runs the change, and says whether its effects are to be kept.
    fn run(&mut self, connection: &Connection) -> bool;
    fn answer(self: Box<Self>, committed: &SqlResult<()>);
}

struct Pending<T, E, F> {
    change: Option<F>,
    /// Nothing until the change has run.
    outcome: Option<WriteResult<T, E>>,
    reply: oneshot::Sender<WriteResult<T, E>>,
}

impl<T, E, F> Change for Pending<T, E, F>
where
    T: Send,
    E: Send,
    F: FnOnce(&Connection) -> WriteResult<T, E> + Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        let change = self.change.take().expect("a change runs once");
        // A panic in one change must not take the others, or the writer, with it.
        let run = std::panic::AssertUnwindSafe(|| change(connection));
        let outcome = std::panic::catch_unwind(run).unwrap_or_else(|_| Err(StoreError::broken("a change panicked")));
        let kept = outcome.is_ok();
        self.outcome = Some(outcome);
        kept
    }

    fn answer(self: Box<Self>, committed: &SqlResult<()>) {
        let outcome = self.outcome.unwrap_or_else(|| Err(StoreError::broken("the change did not run")));
        let outcome = match (outcome, committed.as_ref().map_err(StoreError::from)) {
            (Ok(_) | Err(StoreError::Broken(_)), Err(StoreError::Full)) => Err(StoreError::Full),
            (Ok(_), Err(failure)) => Err(failure),
            (outcome, _) => outcome,
        };
        // The caller may have gone; the change stays.
        let _ = self.reply.send(outcome);
    }
}

/// Starts the thread that writes; it ends when the sender is dropped.
fn spawn_writer(connection: Connection) -> Result<(SyncSender<Job>, JoinHandle<()>)> {
    let (sender, receiver) = sync_channel(QUEUE);
    let thread = std::thread::Builder::new()
        .name("uptack-store".to_owned())
        .spawn(move || write_until_closed(connection, &receiver))?;
    Ok((sender, thread))
}

fn write_until_closed(mut connection: Connection, jobs: &Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        group.extend(jobs.try_iter().take(LARGEST_COMMIT - 1));
        let committed = commit(&mut connection, &mut group);
        for job in group {
            job.answer(&committed);
        }
    }
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}

/// Runs a group of changes in one transaction. After a failure, the remaining ones do not run.
fn commit(connection: &mut Connection, group: &mut [Job]) -> SqlResult<()> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    for job in group {
        run_in_savepoint(&transaction, job.as_mut())?;
    }
    transaction.commit()
}

fn run_in_savepoint(transaction: &Transaction<'_>, job: &mut dyn Change) -> SqlResult<()> {
    let execute = |statement: &str| transaction.prepare_cached(statement)?.execute([]);
    execute("SAVEPOINT change")?;
    let kept = job.run(transaction);
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

#[cfg(test)]
mod tests {
    use super::*;

    type Outcome = WriteResult<()>;

    fn put(key: &'static str) -> impl FnOnce(&Connection) -> Outcome {
        move |connection| {
            connection.execute("INSERT INTO meta(key, value) VALUES (?1, '')", [key])?;
            Ok(())
        }
    }

    fn keys(store: &Store) -> i64 {
        store.read(|connection| connection.query_row("SELECT count(*) FROM meta", [], |row| row.get(0))).unwrap()
    }

    #[tokio::test]
    async fn a_refused_change_leaves_nothing_and_harms_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), AggregatorRole::Leader, None).unwrap();
        let before = keys(&store);
        let refused = store.write(|connection| -> Outcome {
            put("half")(connection)?;
            Err(StoreError::Refused(()))
        });
        let panicking = store.write(|connection| -> Outcome {
            put("other half")(connection)?;
            panic!("deliberate")
        });
        let (good, refused, panicking) = tokio::join!(store.write(put("whole")), refused, panicking);
        good.unwrap();
        assert!(matches!(refused, Err(StoreError::Refused(()))));
        assert!(matches!(panicking, Err(StoreError::Broken(_))));
        assert_eq!(keys(&store), before + 1);
    }

    #[tokio::test]
    async fn a_full_store_refuses_and_recovers() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), AggregatorRole::Leader, Some(64 * 4096)).unwrap();
        let fill = |number: i64| {
            store.write(move |connection| -> Outcome {
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
        assert!(matches!(failure, StoreError::Full), "{failure:?}");
        assert!(stored > 3);
        let deleted = store
            .write(|connection| -> WriteResult<usize> {
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
