//! Durable state: one SQLite file per role, one thread that writes, group commit.
//!
//! Every change is a closure that runs inside a transaction on the writer's thread. The thread
//! takes all closures that are waiting, runs each in a savepoint of its own, commits once, and only
//! then answers all of them. So an answer means *durable*, and a hundred uploads cost one sync.
//! Because there is one writer, closures see each other's effects in one order, and a check made in
//! a closure still holds when its change is written.

use rusqlite::{Connection, Transaction};
use std::{
    path::Path,
    sync::{
        Mutex,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
};
use tokio::sync::oneshot;
use uptack_dap::task::AggregatorRole;

use crate::error::{Error, Result};

mod layout;

use layout::DATABASE;

/// Changes that may wait for the writer; beyond it callers wait in turn.
const QUEUE: usize = 4096;
/// Changes in one commit, so that the first of them does not wait without end.
const LARGEST_COMMIT: usize = 1024;

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

impl<E> From<rusqlite::Error> for StoreError<E> {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full,
            _ => Self::Broken(error.to_string()),
        }
    }
}

impl<E> StoreError<E> {
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
    /// `limit` bounds the file's size in bytes: beyond it changes are refused as on a full disk,
    /// before the disk is.
    pub(crate) fn open(directory: &Path, role: AggregatorRole, limit: Option<u64>) -> Result<Self> {
        let lock = DATABASE.lock(directory)?;
        let mut connection = DATABASE.connect(directory)?;
        if let Some(bytes) = limit {
            let page: u64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
            let pages = (bytes / page).clamp(64, i64::MAX as u64);
            connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
        }
        DATABASE.migrate(&mut connection, directory)?;
        claim(&connection, role, directory)?;
        let reader = DATABASE.connect(directory)?;
        let (sender, receiver) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("uptack-store".to_owned())
            .spawn(move || write_until_closed(connection, &receiver))?;
        Ok(Self {
            writer: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
            reader: Mutex::new(reader),
            _lock: lock,
        })
    }

    /// Runs a change and waits until it is durable.
    pub(crate) async fn write<T, E, F>(&self, change: F) -> std::result::Result<T, StoreError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(&Connection) -> std::result::Result<T, StoreError<E>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(Pending { change: Some(change), outcome: None, reply });
        let writer = self.lock_writer().clone();
        let Some(writer) = writer else {
            return Err(StoreError::Broken("the store is closed".to_owned()));
        };
        if let Err(std::sync::mpsc::TrySendError::Full(job)) = writer.try_send(job) {
            // Rare: thousands of changes wait. Block a thread of the blocking pool, not the server.
            let _ = tokio::task::spawn_blocking(move || writer.send(job)).await;
        }
        answer.await.unwrap_or_else(|_| Err(StoreError::Broken("the store is closed".to_owned())))
    }

    /// Reads, beside the writer. Call it where blocking is allowed, or for single rows.
    pub(crate) fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let connection = self.reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(query(&connection)?)
    }

    /// Lets the waiting changes finish and closes the file.
    pub(crate) fn close(&self) {
        drop(self.lock_writer().take());
        let thread = self.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    fn lock_writer(&self) -> std::sync::MutexGuard<'_, Option<SyncSender<Job>>> {
        self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

/// What the writer does with a change: run it in the open transaction, answer after the commit.
trait Change: Send {
    fn run(&mut self, connection: &Connection) -> bool;
    fn skip(&mut self);
    fn answer(self: Box<Self>, committed: &std::result::Result<(), CommitFailure>);
}

#[derive(Clone)]
enum CommitFailure {
    Full,
    Broken(String),
}

struct Pending<T, E, F> {
    change: Option<F>,
    outcome: Option<std::result::Result<T, StoreError<E>>>,
    reply: oneshot::Sender<std::result::Result<T, StoreError<E>>>,
}

impl<T, E, F> Change for Pending<T, E, F>
where
    T: Send,
    E: Send,
    F: FnOnce(&Connection) -> std::result::Result<T, StoreError<E>> + Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        let change = self.change.take().expect("a change runs once");
        // A panic in one change must not take the others, or the writer, with it.
        let run = std::panic::AssertUnwindSafe(|| change(connection));
        let outcome =
            std::panic::catch_unwind(run).unwrap_or_else(|_| Err(StoreError::Broken("a change panicked".to_owned())));
        let kept = outcome.is_ok();
        self.outcome = Some(outcome);
        kept
    }

    fn skip(&mut self) {
        self.outcome = Some(Err(StoreError::Broken("the change did not run".to_owned())));
    }

    fn answer(self: Box<Self>, committed: &std::result::Result<(), CommitFailure>) {
        let outcome = self.outcome.expect("a change is answered after it ran");
        let outcome = match (outcome, committed) {
            (Ok(_) | Err(StoreError::Broken(_)), Err(CommitFailure::Full)) => Err(StoreError::Full),
            (Ok(_), Err(CommitFailure::Broken(text))) => Err(StoreError::Broken(text.clone())),
            (outcome, _) => outcome,
        };
        // The caller may have gone; the change stays.
        let _ = self.reply.send(outcome);
    }
}

fn write_until_closed(mut connection: Connection, jobs: &Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        while group.len() < LARGEST_COMMIT {
            match jobs.try_recv() {
                Ok(job) => group.push(job),
                Err(_) => break,
            }
        }
        let committed = commit(&mut connection, &mut group);
        for job in group {
            job.answer(&committed);
        }
    }
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}

fn commit(connection: &mut Connection, group: &mut [Job]) -> std::result::Result<(), CommitFailure> {
    let mut ran = 0;
    let outcome = (|| -> rusqlite::Result<()> {
        let transaction = Transaction::new(connection, rusqlite::TransactionBehavior::Immediate)?;
        for job in group.iter_mut() {
            transaction.prepare_cached("SAVEPOINT change")?.execute([])?;
            let kept = job.run(&transaction);
            ran += 1;
            // A full disk may already have rolled everything back.
            if transaction.is_autocommit() {
                return Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL),
                    None,
                ));
            }
            let end = if kept { "RELEASE change" } else { "ROLLBACK TO change" };
            transaction.prepare_cached(end)?.execute([])?;
            if !kept {
                transaction.prepare_cached("RELEASE change")?.execute([])?;
            }
        }
        transaction.commit()
    })();
    for job in &mut group[ran..] {
        job.skip();
    }
    outcome.map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => CommitFailure::Full,
        _ => CommitFailure::Broken(error.to_string()),
    })
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

    type Outcome = std::result::Result<(), StoreError<()>>;

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
            .write(|connection| -> std::result::Result<usize, StoreError<()>> {
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
