//! The state that all parts of a running aggregator share: store, keys, tasks, counters, and the clock for expiry.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::{Semaphore, watch};
use uptack_dap::{
    protocol::{ProblemType, TaskId},
    task::{self, AggregatorTask},
};
use url::Url;

use crate::{
    aggregator::{
        Config,
        store::{ChangeResult, Store, StoreResult, StoredTask, TaskStore},
        tasks::{ServedTask, definition::TaskDefinition, enrolment::Enrolled, failures::Failures, keys::Keys},
    },
    base::{
        bodies::BodyBudget,
        brake::GuessBrake,
        lock,
        metrics::{CounterName, Description, Metrics},
        problem::{Answer, Problem},
        read, write,
    },
    error::{Error, Result},
};

pub(crate) struct AggregatorState {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) metrics: Metrics<AggregatorCounter>,
    /// The bodies of requests under way.
    pub(crate) bodies: Arc<BodyBudget>,
    pub(crate) brake: GuessBrake,
    pub(crate) peer: reqwest::Client,
    /// One permit per core, for the cryptography of all jobs together.
    pub(crate) cores: Arc<Semaphore>,
    /// Becomes true once, when the aggregator is to stop.
    pub(crate) stopping: watch::Sender<bool>,
    pub(crate) enrolled: Enrolled,
    pub(crate) expiry: ExpiryClock,
    keys: RwLock<Arc<Keys>>,
    tasks: RwLock<HashMap<TaskId, Arc<ServedTask>>>,
    /// Requests that each helper has answered successfully.
    helper_answers: Mutex<HashMap<Url, Arc<AtomicU64>>>,
}

/// Why [`AggregatorState::compute`] returned nothing.
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

impl AggregatorState {
    pub(crate) async fn open(config: Config, peer: reqwest::Client) -> Result<Self> {
        let store = Store::open(&config.data, config.role, config.max_store_bytes)?;
        let enrolled = Enrolled::read(config.credentials.as_deref())?;
        let expiry = ExpiryClock::load(&store, config.clock.now())?;
        let keys = Keys::load(&store, expiry.now()).await?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            bodies: BodyBudget::new(config.limits()),
            brake: GuessBrake::default(),
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

    pub(crate) fn task(&self, id: &TaskId) -> Answer<Arc<ServedTask>> {
        let task = read(&self.tasks).get(id).cloned();
        task.ok_or_else(|| Problem::dap(ProblemType::UnrecognizedTask, id))
    }

    pub(crate) fn tasks(&self) -> Vec<Arc<ServedTask>> {
        read(&self.tasks).values().cloned().collect()
    }

    /// How many reports of a task are held.
    pub(crate) fn count_reports(&self, task: &ServedTask) -> Result<u64> {
        self.read(task, |stored| stored.held_reports())
    }

    /// Reads from the store of a task.
    pub(crate) fn read<T>(&self, task: &ServedTask, query: impl FnOnce(TaskStore<'_>) -> StoreResult<T>) -> Result<T> {
        self.store.read_task(task.number, query)
    }

    /// Changes the store of a task, and waits until the change is durable.
    pub(crate) async fn change<T, E, F>(&self, task: &Arc<ServedTask>, change: F) -> ChangeResult<T, E>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(TaskStore<'_>, &ServedTask) -> ChangeResult<T, E> + Send + 'static,
    {
        let task = Arc::clone(task);
        self.store.change_task(task.number, move |stored| change(stored, &task)).await
    }

    /// Runs cryptography on a thread where it may take its time, with one permit per core.
    pub(crate) async fn compute<T, F>(
        self: &Arc<Self>,
        task: &Arc<ServedTask>,
        work: F,
    ) -> std::result::Result<T, ComputeError>
    where
        T: Send + 'static,
        F: FnOnce(&Self, &ServedTask) -> T + Send + 'static,
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
            self.metrics.add(AggregatorCounter::Aggregated, outcome, 1);
        }
        self.metrics.add(AggregatorCounter::Jobs, "finished", 1);
    }

    /// Takes up the tasks of an earlier run. One that the operator's conditions no longer admit is not served; its
    /// data stays until it is admitted again or removed.
    pub(crate) fn load_tasks(&self) -> Result<Vec<Arc<ServedTask>>> {
        let mut served = Vec::new();
        for stored in self.store.tasks()? {
            match self.admit_again(&stored.definition) {
                Ok(task) => served.push(self.serve(stored.with(task))?),
                Err(error) => tracing::error!(row = stored.number, %error, "a task is no longer served"),
            }
        }
        Ok(served)
    }

    /// Registers a task durably. Returns nothing if it is already served.
    pub(crate) async fn add_task(&self, definition: &TaskDefinition) -> Result<Option<Arc<ServedTask>>> {
        self.check_role(definition)?;
        let task = self.config.admission.resolve(definition)?;
        self.enrolled.check(&task)?;
        let id = task.parameters.task_id;
        let registered = self.store.register_task(task).await;
        let refused = |text: &str| Error::input(format!("task {id}: {text}"));
        let stored = registered.map_err(|error| error.into_error(refused))?;
        if self.task(&id).is_ok() {
            return Ok(None);
        }
        self.serve(stored).map(Some)
    }

    /// Stops serving a task and deletes its data; says whether it was served.
    pub(crate) async fn remove_task(&self, id: &TaskId) -> Result<bool> {
        let removed = write(&self.tasks).remove(id);
        let Some(task) = removed else {
            return Ok(false);
        };
        task.removed.send_replace(true);
        task.wake.notify_one();
        let deleted = self.change::<_, Infallible, _>(&task, |stored, _| Ok(stored.remove()?)).await;
        deleted.map_err(|_| Error::environment("the task could not be deleted from the store"))?;
        Ok(true)
    }

    fn check_role(&self, definition: &TaskDefinition) -> Result<()> {
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

    fn serve(&self, stored: StoredTask) -> Result<Arc<ServedTask>> {
        let failures = Failures::new(self.helper_answers(&stored.definition.parameters.helper));
        let task = Arc::new(ServedTask::new(stored, failures)?);
        write(&self.tasks).insert(*task.id(), Arc::clone(&task));
        Ok(task)
    }

    fn helper_answers(&self, helper: &Url) -> Arc<AtomicU64> {
        Arc::clone(lock(&self.helper_answers).entry(helper.clone()).or_default())
    }
}

/// The counters of an aggregator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AggregatorCounter {
    /// Requests answered, by outcome.
    Requests,
    /// Reports taken, by whether they were new.
    Uploads,
    /// Reports that left the store with an aggregation job, by outcome.
    Aggregated,
    /// Aggregation jobs completed.
    Jobs,
    /// Calls to the helper that failed and are repeated.
    PeerFailures,
    /// Batches released to the collector.
    Collections,
}

impl CounterName for AggregatorCounter {
    fn describe(self) -> Description {
        match self {
            Self::Requests => Description::new("uptack_requests_total", "outcome", "Requests answered, by outcome."),
            Self::Uploads => Description::new("uptack_uploads_total", "kind", "Reports taken."),
            Self::Aggregated => Description::new(
                "uptack_reports_aggregated_total",
                "outcome",
                "Reports that left the store through aggregation, by outcome.",
            ),
            Self::Jobs => Description::new("uptack_aggregation_jobs_total", "outcome", "Aggregation jobs completed."),
            Self::PeerFailures => Description::new(
                "uptack_peer_failures_total",
                "call",
                "Calls to the helper that failed and are repeated.",
            ),
            Self::Collections => Description::new("uptack_collections_total", "outcome", "Collection jobs that ended."),
        }
    }
}

/// How far the time moves ahead with one cleaning, in seconds. Larger steps leave less time to notice a wrong clock;
/// smaller ones keep expired data longer after a pause.
const LARGEST_STEP: u64 = 3600;

/// The time by which reports and keys expire.
///
/// It follows the clock, but moves ahead by at most an hour with each cleaning, of which there is one per minute. Expired
/// data is deleted for good: a clock that jumps ahead by years, and is corrected an hour later, would otherwise
/// delete the ids that recognize repeated reports, and close running tasks forever. After a real pause, such as a machine that
/// was off for a month, expiry catches up within a day. A clock that is set back takes the expiry time with it.
///
/// Durable, so that a restart does not get around it.
pub(crate) struct ExpiryClock(AtomicU64);

impl ExpiryClock {
    /// Continues where the last run ended; a new store begins at `now`.
    pub(crate) fn load(store: &Store, now: u64) -> Result<Self> {
        let known = store.expiry_time()?.unwrap_or(now);
        Ok(Self(AtomicU64::new(now.min(known))))
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Moves towards `now`, and returns the time that it reached.
    pub(crate) async fn advance(&self, store: &Store, now: u64) -> Result<u64> {
        let next = now.min(self.now().saturating_add(LARGEST_STEP));
        store.set_expiry_time(next).await?;
        self.0.store(next, Ordering::SeqCst);
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack_dap::task::AggregatorRole;

    #[tokio::test]
    async fn time_moves_ahead_in_steps_and_back_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), AggregatorRole::Leader, None).unwrap();
        let clock = ExpiryClock::load(&store, 1_000_000).unwrap();
        assert_eq!(clock.advance(&store, 1_000_060).await.unwrap(), 1_000_060);
        assert_eq!(clock.advance(&store, 4_000_000_000).await.unwrap(), 1_003_660);
        // A restart does not help a wrong clock.
        let again = ExpiryClock::load(&store, 4_000_000_000).unwrap();
        assert_eq!(again.now(), 1_003_660);
        assert_eq!(again.advance(&store, 1_000_200).await.unwrap(), 1_000_200);
    }
}
