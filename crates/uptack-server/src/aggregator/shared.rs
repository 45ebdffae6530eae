//! What all parts of a running aggregator share.

use rusqlite::{OptionalExtension, params};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, RwLock, atomic::AtomicU64},
};
use tokio::sync::{Notify, Semaphore, watch};
use uptack_dap::{
    protocol::{DapProblemType, TaskId, Vdaf},
    task::{self, AggregatorTask},
};
use url::Url;

use super::{
    Config, batches,
    enrolment::{self, Enrolled},
    expiry::ExpiryClock,
    failures::Failures,
    keys::Keys,
    metrics::Name,
    problem,
};
use crate::{
    aggregator::{
        definition::Definition,
        store::{Store, StoreError},
    },
    base::{metrics::Metrics, problem::Problem},
    error::{Error, Result},
};

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) metrics: Metrics<Name>,
    pub(crate) peer: reqwest::Client,
    /// One permit per core, for the cryptography of all jobs together.
    pub(crate) cores: Arc<Semaphore>,
    /// Becomes true once, when the aggregator is to stop.
    pub(crate) stopping: watch::Sender<bool>,
    pub(crate) enrolled: Enrolled,
    pub(crate) expiry: ExpiryClock,
    keys: RwLock<Arc<Keys>>,
    tasks: RwLock<HashMap<TaskId, Arc<Task>>>,
    /// Requests that each helper has answered successfully.
    helper_answers: Mutex<HashMap<Url, Arc<AtomicU64>>>,
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
    /// Leader: what failed at the helper, and what did not.
    pub(crate) failures: Failures,
}

impl Task {
    pub(crate) fn id(&self) -> &TaskId {
        &self.definition.parameters.task_id
    }

    pub(crate) fn problem(&self, kind: DapProblemType) -> Problem {
        problem::dap(kind, self.id())
    }

    /// Whether reports of this time are too old to be accepted, by the time of an [`ExpiryClock`].
    pub(crate) fn is_expired(&self, time: u64, expiry: u64) -> bool {
        self.definition.parameters.report_expiry_age.is_some_and(|age| time.saturating_add(age) < expiry)
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
        let expiry = ExpiryClock::load(&store, config.clock.now())?;
        let keys = Keys::load(&store, expiry.now()).await?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            config,
            store,
            metrics: Metrics::default(),
            peer,
            cores: Arc::new(Semaphore::new(cores)),
            stopping: watch::Sender::new(false),
            enrolled,
            expiry,
            keys: RwLock::new(Arc::new(keys)),
            tasks: RwLock::default(),
            helper_answers: Mutex::default(),
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
            .ok_or_else(|| problem::dap(DapProblemType::UnrecognizedTask, id))
    }

    /// How many reports of a task are held.
    pub(crate) fn count_reports(&self, task: &Task) -> Result<u64> {
        self.store.read(|connection| batches::held(connection, task.row))
    }

    pub(crate) fn tasks(&self) -> Vec<Arc<Task>> {
        self.tasks.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Takes up the tasks of an earlier run. One that the operator's conditions no longer admit is not served; what is
    /// kept of it stays until it is admitted again or removed.
    pub(crate) fn load_tasks(&self) -> Result<Vec<Arc<Task>>> {
        let rows: Vec<(i64, Vec<u8>)> = self.store.read(|connection| {
            connection
                .prepare("SELECT task, definition FROM tasks WHERE definition IS NOT NULL")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })?;
        let mut served = Vec::new();
        for (row, text) in rows {
            let admitted = task::parse_aggregator_task(&text)
                .map_err(Error::from)
                .and_then(|task| self.config.admission.check_again(&task).map(|()| task));
            match admitted {
                Ok(task) => served.push(self.serve(row, task)?),
                Err(error) => tracing::error!(row, %error, "a task is no longer served"),
            }
        }
        Ok(served)
    }

    /// Registers a task durably. Gives nothing back if it is already served.
    pub(crate) async fn add_task(&self, definition: &Definition) -> Result<Option<Arc<Task>>> {
        if definition.role() != self.config.role {
            return Err(Error::input(format!(
                "this is a {}; the task definition is for a {}",
                self.config.role,
                definition.role()
            )));
        }
        let task = self.config.admission.resolve(definition)?;
        self.enrolled.check(&task)?;
        let id = task.parameters.task_id;
        let registered = self.store.write(move |connection| register(connection, &task)).await;
        let refused = |text: &str| Error::input(format!("task {id}: {text}"));
        let (row, task) = registered.map_err(|error| error.into_error(refused))?;
        if self.task(&id).is_ok() {
            return Ok(None);
        }
        self.serve(row, task).map(Some)
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
        let helper = definition.parameters.helper.clone();
        let mut helpers = self.helper_answers.lock().unwrap_or_else(PoisonError::into_inner);
        let task = Arc::new(Task {
            row,
            failures: Failures::new(Arc::clone(helpers.entry(helper).or_default())),
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

/// Stores a task, or finds the one of the same name if it says the same. Gives back what is stored.
fn register(
    connection: &rusqlite::Connection,
    task: &AggregatorTask,
) -> std::result::Result<(i64, AggregatorTask), StoreError<&'static str>> {
    let id = &task.parameters.task_id;
    let known: Option<(i64, Option<Vec<u8>>)> = connection
        .query_row("SELECT task, definition FROM tasks WHERE task_id = ?1", [id.as_ref()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    match known {
        Some((row, Some(text))) => match task::parse_aggregator_task(&text) {
            Ok(stored) if is_same(&stored, task) => Ok((row, stored)),
            _ => Err(StoreError::Refused("a task of this name is already served with another definition")),
        },
        Some((_, None)) => Err(StoreError::Refused("a task of this name was removed; names are not used twice")),
        None => {
            let text = serde_json::to_vec(task).expect("task definitions are plain data");
            connection.execute("INSERT INTO tasks(task_id, definition) VALUES (?1, ?2)", params![id.as_ref(), text])?;
            Ok((connection.last_insert_rowid(), task.clone()))
        }
    }
}

/// Whether two tasks were asked for in the same words. What is derived from the pair's secret is not compared: a task
/// keeps the keys that it began with when the secret is replaced.
fn is_same(stored: &AggregatorTask, asked: &AggregatorTask) -> bool {
    let words = |task: &AggregatorTask| {
        let mut task = task.clone();
        if task.card_signature.is_some() {
            task.verify_key = Default::default();
            (task.aggregator_token, task.aggregator_token_hash) = (None, None);
        }
        serde_json::to_vec(&task).expect("task definitions are plain data")
    };
    words(stored) == words(asked)
}
