//! Tasks, the keys that open their reports, and the time by which both expire.

use rusqlite::{Connection, OptionalExtension, Row, params};
use uptack_dap::{
    protocol::{self, HpkePrivateKey, TaskId},
    task::{self, AggregatorTask},
};

use super::{ChangeError, ChangeResult, SqlResult, Store, StoreError, StoreResult, TaskStore, damaged, read_u64};
use crate::{aggregator::noise_secret::NoiseSecret, error::Result};

impl Store {
    /// Stores a task with a fresh secret for its noise, or finds the one of this name if its definition is the same. Returns the
    /// stored one.
    pub(crate) async fn register_task(&self, task: AggregatorTask) -> ChangeResult<StoredTask, &'static str> {
        self.write(move |connection| register(connection, task)).await
    }

    /// All tasks that have not been removed, with their definitions as they are stored.
    pub(crate) fn tasks(&self) -> Result<Vec<StoredTask<Vec<u8>>>> {
        self.read(|connection| {
            let statement = "SELECT task, definition, noise_secret FROM tasks WHERE definition IS NOT NULL";
            let mut statement = connection.prepare(statement)?;
            Ok(statement.query_map([], read_task)?.collect::<SqlResult<_>>()?)
        })
    }

    /// The time up to which expiry had come; nothing in a new store.
    pub(crate) fn expiry_time(&self) -> Result<Option<u64>> {
        let text: Option<String> = self.read(|connection| {
            let statement = "SELECT value FROM meta WHERE key = 'expiry-clock'";
            Ok(connection.query_row(statement, [], |row| row.get(0)).optional()?)
        })?;
        Ok(text.and_then(|text| text.parse().ok()))
    }

    pub(crate) async fn set_expiry_time(&self, time: u64) -> ChangeResult<()> {
        self.write(move |connection| {
            let statement = "INSERT OR REPLACE INTO meta(key, value) VALUES ('expiry-clock', ?1)";
            connection.execute(statement, [time.to_string()])?;
            Ok(())
        })
        .await
    }

    /// All keys that open reports.
    pub(crate) fn keys(&self) -> Result<Vec<StoredKey>> {
        self.read(|connection| {
            let statement = "SELECT config, private_key, created, retired IS NULL FROM hpke_keys";
            let mut statement = connection.prepare(statement)?;
            let keys = statement.query_map([], |row| {
                Ok(StoredKey {
                    config: row.get(0)?,
                    private_key: HpkePrivateKey::new(row.get(1)?),
                    created: read_u64(row, 2)?,
                    is_current: row.get(3)?,
                })
            })?;
            Ok(keys.collect::<SqlResult<_>>()?)
        })
    }

    /// Makes a new current key and retires the one before.
    pub(crate) async fn replace_key(&self, now: u64) -> ChangeResult<()> {
        self.write(move |connection| {
            let id = free_key_id(connection)?.ok_or_else(|| StoreError::other("255 keys are in use"))?;
            connection.execute("UPDATE hpke_keys SET retired = ?1 WHERE retired IS NULL", [now as i64])?;
            let keypair = protocol::generate_keypair(id);
            connection.execute(
                "INSERT INTO hpke_keys(id, config, private_key, created) VALUES (?1, ?2, ?3, ?4)",
                params![id, keypair.config_bytes(), keypair.private_key().as_ref(), now as i64],
            )?;
            Ok(())
        })
        .await
    }

    /// Deletes keys that were retired before this time.
    pub(crate) async fn delete_keys_retired_before(&self, time: u64) -> ChangeResult<()> {
        self.write(move |connection| {
            connection.execute("DELETE FROM hpke_keys WHERE retired < ?1", [time as i64])?;
            Ok(())
        })
        .await
    }
}

/// A task as it is stored.
pub(crate) struct StoredTask<D = AggregatorTask> {
    pub(crate) number: i64,
    pub(crate) definition: D,
    pub(crate) noise_secret: NoiseSecret,
}

impl<D> StoredTask<D> {
    /// The same with another form of the definition.
    pub(crate) fn with<E>(self, definition: E) -> StoredTask<E> {
        StoredTask { number: self.number, definition, noise_secret: self.noise_secret }
    }
}

/// From the columns `task`, `definition` and `noise_secret`.
fn read_task(row: &Row<'_>) -> SqlResult<StoredTask<Vec<u8>>> {
    let noise_secret = NoiseSecret::from_bytes(row.get_ref(2)?.as_blob()?).ok_or_else(|| damaged(2, "noise_secret"))?;
    Ok(StoredTask { number: row.get(0)?, definition: row.get(1)?, noise_secret })
}

/// Gives a secret to tasks of an earlier layout, whose noise was not derived from one.
pub(super) fn give_noise_secrets(connection: &Connection) -> SqlResult<()> {
    let statement = "SELECT task FROM tasks WHERE definition IS NOT NULL AND noise_secret IS NULL";
    let tasks: Vec<i64> = connection.prepare(statement)?.query_map([], |row| row.get(0))?.collect::<SqlResult<_>>()?;
    for task in tasks {
        let secret = NoiseSecret::generate();
        let statement = "UPDATE tasks SET noise_secret = ?2 WHERE task = ?1 AND noise_secret IS NULL";
        connection.execute(statement, params![task, secret.as_bytes()])?;
    }
    Ok(())
}

/// A key under which clients seal shares to this aggregator.
pub(crate) struct StoredKey {
    pub(crate) config: Vec<u8>,
    pub(crate) private_key: HpkePrivateKey,
    pub(crate) created: u64,
    /// Not retired.
    pub(crate) is_current: bool,
}

impl TaskStore<'_> {
    /// The time below which the task takes no more reports; nothing if the task has been removed.
    pub(crate) fn floor(self) -> StoreResult<Option<u64>> {
        let statement = "SELECT floor FROM tasks WHERE task = ?1 AND definition IS NOT NULL";
        self.find(statement, [self.task], |row| read_u64(row, 0))
    }

    /// Deletes everything that is kept of the task. Its name stays taken: its reports cannot come back.
    pub(crate) fn remove(self) -> StoreResult<()> {
        for table in TABLES_OF_A_TASK {
            self.run(&format!("DELETE FROM {table} WHERE task = ?1"), [self.task])?;
        }
        self.run("UPDATE tasks SET definition = NULL, noise_secret = NULL WHERE task = ?1", [self.task])
    }

    /// Takes no more reports from before `floor`, and deletes what recognized them, with the jobs and sums of their
    /// windows. Stored reports and open jobs are not touched; they end with the helper's refusal.
    ///
    /// The floor rises first: reports that were forgotten can then never be taken again, even if the clock is set back.
    pub(crate) fn forget_before(self, floor: u64, time_precision: u64) -> StoreResult<()> {
        let last_window = floor.saturating_sub(time_precision);
        let (floor, last_window) = ([self.task, floor as i64], [self.task, last_window as i64]);
        self.run("UPDATE tasks SET floor = max(floor, ?2) WHERE task = ?1", floor)?;
        self.run("DELETE FROM report_ids WHERE task = ?1 AND time < ?2", floor)?;
        self.run("DELETE FROM helper_jobs WHERE task = ?1 AND created < ?2", last_window)?;
        self.run("DELETE FROM pending WHERE task = ?1 AND start <= ?2 AND reports = 0", last_window)?;
        self.run(
            "DELETE FROM batches WHERE task = ?1 AND start <= ?2 AND NOT EXISTS
             (SELECT 1 FROM collection_jobs
              WHERE task = ?1 AND state IN ('waiting', 'draining')
              AND batches.start >= collection_jobs.start AND batches.start < finish)",
            last_window,
        )
    }
}

const TABLES_OF_A_TASK: [&str; 9] = [
    "enrolled",
    "report_ids",
    "reports",
    "pending",
    "leader_jobs",
    "helper_jobs",
    "batches",
    "collected",
    "collection_jobs",
];

fn register(connection: &Connection, task: AggregatorTask) -> ChangeResult<StoredTask, &'static str> {
    let id = &task.parameters.task_id;
    if let Some(known) = find_task(connection, id)? {
        return match task::parse_aggregator_task(&known.definition) {
            Ok(stored) if is_same(&stored, &task) => Ok(known.with(stored)),
            _ => Err(ChangeError::Refused("a task of this name is already served with another definition")),
        };
    }
    if is_known(connection, id)? {
        return Err(ChangeError::Refused("a task of this name was removed; names are not used twice"));
    }
    Ok(insert_task(connection, task)?)
}

/// The task of this name, unless it has been removed.
fn find_task(connection: &Connection, id: &TaskId) -> SqlResult<Option<StoredTask<Vec<u8>>>> {
    let statement = "SELECT task, definition, noise_secret FROM tasks WHERE task_id = ?1 AND definition IS NOT NULL";
    connection.query_row(statement, [id.as_ref()], read_task).optional()
}

/// Whether there is, or was, a task of this name.
fn is_known(connection: &Connection, id: &TaskId) -> SqlResult<bool> {
    connection.prepare("SELECT 1 FROM tasks WHERE task_id = ?1")?.exists([id.as_ref()])
}

fn insert_task(connection: &Connection, definition: AggregatorTask) -> SqlResult<StoredTask> {
    let (id, noise_secret) = (definition.parameters.task_id, NoiseSecret::generate());
    connection.execute(
        "INSERT INTO tasks(task_id, definition, noise_secret) VALUES (?1, ?2, ?3)",
        params![id.as_ref(), to_json(&definition), noise_secret.as_bytes()],
    )?;
    Ok(StoredTask { number: connection.last_insert_rowid(), definition, noise_secret })
}

fn to_json(task: &AggregatorTask) -> Vec<u8> {
    serde_json::to_vec(task).expect("task definitions are plain data")
}

/// Whether two tasks have the same definition. Keys and tokens derived from the pair's secret are not compared: a task
/// keeps its first ones when the secret is replaced.
fn is_same(stored: &AggregatorTask, asked: &AggregatorTask) -> bool {
    to_json(&without_derived(stored)) == to_json(&without_derived(asked))
}

fn without_derived(task: &AggregatorTask) -> AggregatorTask {
    let mut task = task.clone();
    if task.card_signature.is_some() {
        task.verify_key = Default::default();
        (task.aggregator_token, task.aggregator_token_hash) = (None, None);
    }
    task
}

/// The first free id after the newest, so that an id is used again as late as possible.
fn free_key_id(connection: &Connection) -> SqlResult<Option<u8>> {
    let mut statement = connection.prepare("SELECT id FROM hpke_keys ORDER BY created, id")?;
    let used: Vec<u8> = statement.query_map([], |row| row.get(0))?.collect::<SqlResult<_>>()?;
    let newest = used.last().copied().unwrap_or(0);
    let mut following = (1..=u8::MAX).map(|step| newest.wrapping_add(step));
    Ok(following.find(|id| !used.contains(id)))
}
