//! What all parts of a running aggregator share.

use rusqlite::{OptionalExtension, params};
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};
use tokio::sync::{Notify, Semaphore, watch};

use super::{
    Config,
    enrolment::{self, Enrolled},
    keys::Keys,
    metrics::Metrics,
    problem::Problem,
};
use crate::{
    dap::{DapProblemType, TaskId, Vdaf},
    error::{Error, Result},
    store::{Store, StoreError},
    task::{self, AggregatorTask},
};

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) metrics: Metrics,
    pub(crate) peer: reqwest::Client,
    /// One permit a core: cryptography of all jobs together.
    pub(crate) cores: Arc<Semaphore>,
    /// Becomes true once, when the aggregator is to stop.
    pub(crate) stopping: watch::Sender<bool>,
    pub(crate) enrolled: Enrolled,
    keys: RwLock<Arc<Keys>>,
    tasks: RwLock<HashMap<TaskId, Arc<Task>>>,
}

/// A task that is being served.
pub(crate) struct Task {
    /// Its number in the store.
    pub(crate) row: i64,
    pub(crate) definition: AggregatorTask,
    /// Whether its card wants a credential with every report.
    pub(crate) needs_credential: bool,
    pub(crate) vdaf: Vdaf,
    /// Tells the task's driver that there may be work.
    pub(crate) wake: Notify,
    /// Becomes true once, when the task is removed.
    pub(crate) removed: watch::Sender<bool>,
}

impl Task {
    pub(crate) fn id(&self) -> &TaskId {
        &self.definition.parameters.task_id
    }

    pub(crate) fn problem(&self, kind: DapProblemType) -> Problem {
        Problem::dap(kind, self.id())
    }

    /// Whether reports of this time are too old to be accepted at `now`.
    pub(crate) fn is_expired(&self, time: u64, now: u64) -> bool {
        self.definition.parameters.report_expiry_age.is_some_and(|age| time.saturating_add(age) < now)
    }

    pub(crate) fn is_too_early(&self, time: u64, now: u64) -> bool {
        time > now.saturating_add(self.definition.parameters.tolerable_clock_skew)
    }

    pub(crate) fn is_after_end(&self, time: u64) -> bool {
        self.definition.parameters.task_expiration.is_some_and(|end| time > end)
    }
}

impl Shared {
    pub(crate) async fn open(config: Config, peer: reqwest::Client) -> Result<Self> {
        let store = Store::open(&config.data, config.role, config.max_store_bytes)?;
        let enrolled = Enrolled::read(config.credentials.as_deref())?;
        let keys = Keys::load(&store, config.clock.now()).await?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            config,
            store,
            metrics: Metrics::default(),
            peer,
            cores: Arc::new(Semaphore::new(cores)),
            stopping: watch::Sender::new(false),
            enrolled,
            keys: RwLock::new(Arc::new(keys)),
            tasks: RwLock::new(HashMap::new()),
        })
    }

    pub(crate) fn now(&self) -> u64 {
        self.config.clock.now()
    }

    pub(crate) fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_keys(&self, keys: Keys) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }

    pub(crate) fn task(&self, id: &TaskId) -> std::result::Result<Arc<Task>, Problem> {
        self.tasks
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(id)
            .cloned()
            .ok_or_else(|| Problem::dap(DapProblemType::UnrecognizedTask, id))
    }

    pub(crate) fn tasks(&self) -> Vec<Arc<Task>> {
        self.tasks.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Takes up the tasks of an earlier run.
    pub(crate) fn load_tasks(&self) -> Result<Vec<Arc<Task>>> {
        let rows: Vec<(i64, Vec<u8>)> = self.store.read(|connection| {
            connection
                .prepare("SELECT task, definition FROM tasks WHERE definition IS NOT NULL")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })?;
        rows.into_iter().map(|(row, text)| self.serve(row, task::parse_aggregator_task(&text)?)).collect()
    }

    /// Registers a task durably. Gives nothing back if it is already served.
    pub(crate) async fn add_task(&self, definition: AggregatorTask) -> Result<Option<Arc<Task>>> {
        definition.validate()?;
        if definition.role != self.config.role {
            return Err(Error::input(format!(
                "this is a {}; the task definition is for a {}",
                self.config.role, definition.role
            )));
        }
        self.enrolled.check(&definition)?;
        let id = definition.parameters.task_id;
        let text = serde_json::to_vec(&definition).expect("task definitions are plain data");
        let row =
            self.store.write(move |connection| register(connection, &id, &text)).await.map_err(
                |error| match error {
                    StoreError::Refused(text) => Error::input(format!("task {id}: {text}")),
                    StoreError::Full => Error::environment("storage is full"),
                    StoreError::Broken(text) => Error::environment(text),
                },
            )?;
        if self.task(&id).is_ok() {
            return Ok(None);
        }
        self.serve(row, definition).map(Some)
    }

    /// Deletes all that is kept of a task. Its name stays taken: its reports cannot come back.
    pub(crate) async fn remove_task(&self, id: &TaskId) -> Result<bool> {
        let Ok(task) = self.task(id) else {
            return Ok(false);
        };
        self.tasks.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        task.removed.send_replace(true);
        task.wake.notify_one();
        let row = task.row;
        self.store
            .write(move |connection| -> std::result::Result<(), StoreError<()>> {
                for table in TABLES_OF_A_TASK {
                    connection.execute(&format!("DELETE FROM {table} WHERE task = ?1"), [row])?;
                }
                connection.execute("UPDATE tasks SET definition = NULL WHERE task = ?1", [row])?;
                Ok(())
            })
            .await
            .map_err(|_| Error::environment("the task could not be deleted from the store"))?;
        Ok(true)
    }

    fn serve(&self, row: i64, definition: AggregatorTask) -> Result<Arc<Task>> {
        let task = Arc::new(Task {
            row,
            needs_credential: enrolment::is_required(&definition),
            vdaf: Vdaf::new(&definition.parameters.vdaf)?,
            definition,
            wake: Notify::new(),
            removed: watch::Sender::new(false),
        });
        self.tasks.write().unwrap_or_else(PoisonError::into_inner).insert(*task.id(), Arc::clone(&task));
        Ok(task)
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

fn register(
    connection: &rusqlite::Connection,
    id: &TaskId,
    text: &[u8],
) -> std::result::Result<i64, StoreError<&'static str>> {
    let known: Option<(i64, Option<Vec<u8>>)> = connection
        .query_row("SELECT task, definition FROM tasks WHERE task_id = ?1", [id.as_ref()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    match known {
        Some((row, Some(stored))) if stored == text => Ok(row),
        Some((_, Some(_))) => Err(StoreError::Refused("a task of this name is already served with another definition")),
        Some((_, None)) => Err(StoreError::Refused("a task of this name was removed; names are not used twice")),
        None => {
            connection.execute("INSERT INTO tasks(task_id, definition) VALUES (?1, ?2)", params![id.as_ref(), text])?;
            Ok(connection.last_insert_rowid())
        }
    }
}
