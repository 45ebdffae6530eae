//! What all parts of a running aggregator share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, RwLock, atomic::AtomicU64},
};
use tokio::sync::{Notify, Semaphore, watch};
use uptack_dap::{
    protocol::{DapProblemType, TaskId, Vdaf},
    task::{self, AggregatorTask, TaskParameters},
};
use url::Url;

use crate::aggregator::{
    Config,
    expiry::ExpiryClock,
    metrics::Name,
    problem,
    store::tasks,
    tasks::enrolment::{self, Enrolled},
    tasks::failures::Failures,
    tasks::keys::Keys,
};
use crate::{
    aggregator::{
        store::{SqlResult, Store, TaskRows, WriteResult},
        tasks::definition::Definition,
    },
    base::{
        locks::{lock, read, write},
        metrics::Metrics,
        problem::{Answer, Problem},
    },
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
    /// Whether its card requires a credential with every report.
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
    fn new(row: i64, definition: AggregatorTask, failures: Failures) -> Result<Self> {
        Ok(Self {
            row,
            needs_credential: enrolment::is_required(&definition),
            vdaf: Vdaf::new(&definition.parameters.vdaf)?,
            definition,
            wake: Notify::new(),
            removed: watch::Sender::new(false),
            failures,
        })
    }

    pub(crate) fn id(&self) -> &TaskId {
        &self.definition.parameters.task_id
    }

    pub(crate) fn parameters(&self) -> &TaskParameters {
        &self.definition.parameters
    }

    pub(crate) fn problem(&self, kind: DapProblemType) -> Problem {
        problem::dap(kind, self.id())
    }

    /// The time below which no more reports are taken; refused if the task has been removed.
    pub(crate) fn floor(&self, rows: TaskRows<'_>) -> WriteResult<u64, Problem> {
        let floor = tasks::floor(rows)?;
        Ok(floor.ok_or_else(|| self.problem(DapProblemType::UnrecognizedTask))?)
    }
}

/// Why [`Shared::compute`] returned nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComputeError {
    Stopping,
    Panicked,
}

impl From<ComputeError> for Error {
    fn from(error: ComputeError) -> Self {
        Self::environment(match error {
            ComputeError::Stopping => "the aggregator is stopping",
            ComputeError::Panicked => "a worker panicked",
        })
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
        Arc::clone(&read(&self.keys))
    }

    pub(crate) fn set_keys(&self, keys: Keys) {
        *write(&self.keys) = Arc::new(keys);
    }

    pub(crate) fn task(&self, id: &TaskId) -> Answer<Arc<Task>> {
        let task = read(&self.tasks).get(id).cloned();
        task.ok_or_else(|| problem::dap(DapProblemType::UnrecognizedTask, id))
    }

    pub(crate) fn tasks(&self) -> Vec<Arc<Task>> {
        read(&self.tasks).values().cloned().collect()
    }

    /// How many reports of a task are held.
    pub(crate) fn count_reports(&self, task: &Task) -> Result<u64> {
        self.read(task, |rows| rows.held_reports())
    }

    /// Reads what is stored of a task.
    pub(crate) fn read<T>(&self, task: &Task, query: impl FnOnce(TaskRows<'_>) -> SqlResult<T>) -> Result<T> {
        self.store.read(|connection| query(TaskRows::new(connection, task.row)))
    }

    /// Runs a change of what is stored of a task, and waits until it is durable.
    pub(crate) async fn change<T, E, F>(&self, task: &Arc<Task>, change: F) -> WriteResult<T, E>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(TaskRows<'_>, &Task) -> WriteResult<T, E> + Send + 'static,
    {
        let task = Arc::clone(task);
        self.store.write(move |connection| change(TaskRows::new(connection, task.row), &task)).await
    }

    /// Runs cryptography on a thread where it may take its time, with one permit per core.
    pub(crate) async fn compute<T, F>(
        self: &Arc<Self>,
        task: &Arc<Task>,
        work: F,
    ) -> std::result::Result<T, ComputeError>
    where
        T: Send + 'static,
        F: FnOnce(&Self, &Task) -> T + Send + 'static,
    {
        let permit = Arc::clone(&self.cores).acquire_owned().await.map_err(|_| ComputeError::Stopping)?;
        let (shared, task) = (Arc::clone(self), Arc::clone(task));
        let worker = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&shared, &task)
        });
        worker.await.map_err(|_| ComputeError::Panicked)
    }

    /// Counts an aggregation job that is done, and its reports by their outcomes.
    pub(crate) fn count_job(&self, outcomes: Vec<&'static str>) {
        for outcome in outcomes {
            self.metrics.add(Name::Aggregated, outcome, 1);
        }
        self.metrics.add(Name::Jobs, "finished", 1);
    }

    /// Takes up the tasks of an earlier run. One that the operator's conditions no longer admit is not served; what is
    /// kept of it stays until it is admitted again or removed.
    pub(crate) fn load_tasks(&self) -> Result<Vec<Arc<Task>>> {
        let mut served = Vec::new();
        for (row, text) in self.store.read(tasks::definitions)? {
            match self.admit_again(&text) {
                Ok(task) => served.push(self.serve(row, task)?),
                Err(error) => tracing::error!(row, %error, "a task is no longer served"),
            }
        }
        Ok(served)
    }

    /// Registers a task durably. Returns nothing if it is already served.
    pub(crate) async fn add_task(&self, definition: &Definition) -> Result<Option<Arc<Task>>> {
        self.check_role(definition)?;
        let task = self.config.admission.resolve(definition)?;
        self.enrolled.check(&task)?;
        let id = task.parameters.task_id;
        let registered = self.store.write(move |connection| tasks::register(connection, &task)).await;
        let refused = |text: &str| Error::input(format!("task {id}: {text}"));
        let (row, task) = registered.map_err(|error| error.into_error(refused))?;
        if self.task(&id).is_ok() {
            return Ok(None);
        }
        self.serve(row, task).map(Some)
    }

    /// Stops serving a task and deletes all that is kept of it; says whether it was served.
    pub(crate) async fn remove_task(&self, id: &TaskId) -> Result<bool> {
        let removed = write(&self.tasks).remove(id);
        let Some(task) = removed else {
            return Ok(false);
        };
        task.removed.send_replace(true);
        task.wake.notify_one();
        let deleted = self.change(&task, |rows, _| tasks::remove(rows)).await;
        deleted.map_err(|_| Error::environment("the task could not be deleted from the store"))?;
        Ok(true)
    }

    fn check_role(&self, definition: &Definition) -> Result<()> {
        let own = self.config.role;
        let asked = definition.role();
        if own != asked {
            return Err(Error::input(format!("this is a {own}; the task definition is for a {asked}")));
        }
        Ok(())
    }

    /// A stored task, if the operator's conditions still admit it.
    fn admit_again(&self, text: &[u8]) -> Result<AggregatorTask> {
        let task = task::parse_aggregator_task(text)?;
        self.config.admission.check_again(&task)?;
        Ok(task)
    }

    fn serve(&self, row: i64, definition: AggregatorTask) -> Result<Arc<Task>> {
        let failures = Failures::new(self.helper_answers(&definition.parameters.helper));
        let task = Arc::new(Task::new(row, definition, failures)?);
        write(&self.tasks).insert(*task.id(), Arc::clone(&task));
        Ok(task)
    }

    fn helper_answers(&self, helper: &Url) -> Arc<AtomicU64> {
        Arc::clone(lock(&self.helper_answers).entry(helper.clone()).or_default())
    }
}
