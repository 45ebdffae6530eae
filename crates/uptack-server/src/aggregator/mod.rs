//! A leader or a helper: DAP-09 over HTTP, state in SQLite.
//!
//! [`Aggregator::start`] runs one inside this process; [`run`] also waits for the signal to stop, which is all that a
//! command line needs.
//!
//! The parts, in the order in which they rest on one another:
//!
//! - `noise_secret`: what noise is derived from. `store/`: everything that is durable, and the only SQL. `tasks/`: definitions,
//!   admission, keys and secrets.
//! - `state`: what the parts below share. `peer`: the leader's calls to the helper.
//! - `reports`: checks and uploads. `aggregation/`: jobs at the leader and at the helper. `collection/`: batches.
//! - `maintenance`: regular work. `http`: the interface. `pair`: both roles in one process.

mod aggregation;
mod collection;
mod http;
mod maintenance;
mod noise_secret;
mod pair;
mod peer;
mod reports;
mod state;
mod store;
mod tasks;

use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinHandle};
use uptack_dap::{
    address::Origin, clock::Clock, http_client, protocol::TaskId, signed::PublicKey, task::AggregatorRole, token::Token,
};
use url::Url;

use crate::{
    base::listener::{self, Certificates, ConnectionLimits, Signals},
    error::{Error, Result},
};
pub(crate) use http::TaskList;
pub use pair::Pair;
pub(crate) use store::copy_into;
pub use store::{STATE_FILE, back_up};
pub use tasks::{
    definition::{Admission, CardDefinition, TaskDefinition},
    pair_secret::PairSecret,
};

use state::AggregatorState;
use tasks::{ServedTask, keys::Keys};

/// A token with which a desk manages the tasks of its own cards over HTTP.
#[derive(Debug, Clone)]
pub struct DeskToken {
    /// The key that signs the desk's cards.
    pub desk: PublicKey,
    /// The token.
    pub token: Token,
}

/// How an aggregator runs. [`Config::new`] gives defaults for everything but role and directory.
#[derive(Debug, Clone)]
pub struct Config {
    /// Leader or helper.
    pub role: AggregatorRole,
    /// Directory of the state; the files `tasks/*.json` in it are task definitions to serve.
    pub data: PathBuf,
    /// Address to listen on; loopback unless changed.
    pub listen: SocketAddr,
    /// Listen elsewhere than on loopback without TLS, because a proxy in front terminates TLS.
    pub allow_plaintext: bool,
    /// Certificate chain and key, in PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Leader: where the helper is reached, instead of the address in the task definition.
    pub peer: Option<Url>,
    /// Leader: a further root certificate for the helper's TLS, in a PEM file.
    pub peer_root: Option<PathBuf>,
    /// Which tasks are served, whoever adds them; none unless this is changed.
    pub admission: Admission,
    /// The token with which the operator adds, counts and removes the tasks of all desks over HTTP.
    pub admin_token: Option<Token>,
    /// Tokens with which desks do the same, each with the tasks of its own cards alone.
    pub desk_tokens: Vec<DeskToken>,
    /// Leader: a file with one enrolled owner's public key per line, for tasks whose card requires enrolment. It is
    /// read again when it changes.
    pub credentials: Option<PathBuf>,
    /// Origins of web pages that may fetch keys and, from the leader, upload reports; none unless this is changed.
    pub allowed_origins: Vec<Origin>,
    /// The time of day.
    pub clock: Clock,
    /// Reports in one aggregation job, at most.
    pub job_size: usize,
    /// Aggregation jobs of one task under way at once.
    pub jobs_at_once: usize,
    /// How often the helper may refuse a job before it is split or, if it has a single report, abandoned.
    pub job_attempts: u32,
    /// How long reports are gathered before a job is made.
    pub gather: Duration,
    /// How long a request may take to arrive, and a call to the helper to be answered.
    pub request_timeout: Duration,
    /// Connections at once.
    pub max_connections: usize,
    /// Connections at once from one address; by default a quarter of all.
    pub max_connections_per_address: Option<usize>,
    /// Where health and counters are shown, without TLS and to anyone who can reach it; nowhere if there is none.
    pub operations: Option<SocketAddr>,
    /// Size of the state file, in bytes, beyond which nothing more is taken.
    pub max_store_bytes: Option<u64>,
    /// Age at which the key for reports is replaced.
    pub key_lifetime: Option<Duration>,
}

impl Config {
    /// Defaults: loopback, a free port, jobs of 256 reports, a new key every 30 days.
    pub fn new(role: AggregatorRole, data: impl Into<PathBuf>) -> Self {
        Self {
            role,
            data: data.into(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            allow_plaintext: false,
            tls: None,
            peer: None,
            peer_root: None,
            admission: Admission::default(),
            admin_token: None,
            desk_tokens: Vec::new(),
            credentials: None,
            allowed_origins: Vec::new(),
            clock: Clock::system(),
            job_size: 256,
            jobs_at_once: 4,
            job_attempts: 10,
            gather: Duration::from_millis(200),
            request_timeout: Duration::from_secs(30),
            max_connections: 1024,
            max_connections_per_address: None,
            operations: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            max_store_bytes: None,
            key_lifetime: Some(Duration::from_secs(30 * 24 * 3600)),
        }
    }

    fn read_certificates(&self) -> Result<Option<Arc<Certificates>>> {
        self.tls.as_ref().map(|(chain, key)| Certificates::read(chain, key)).transpose()
    }

    /// Refuses tokens that could be guessed.
    fn check_tokens(&self) -> Result<()> {
        let named = |what: String, error: uptack_dap::Error| Error::input(format!("{what}: {error}"));
        if let Some(token) = &self.admin_token {
            token.check_length().map_err(|error| named("the admin token".to_owned(), error))?;
            if self.admission.desk_keys.len() > 1 {
                tracing::warn!("the admin token manages the tasks of all desks: give each desk a token of its own");
            }
        }
        for DeskToken { desk, token } in &self.desk_tokens {
            token.check_length().map_err(|error| named(format!("the token of the desk {desk}"), error))?;
        }
        Ok(())
    }

    fn warn_if_nothing_is_admitted(&self) {
        if self.admission.admits_nothing() {
            tracing::warn!(
                "no task is served: pin the key of a desk and give the pair's secret, or allow tasks without a card"
            );
        }
    }

    fn limits(&self) -> ConnectionLimits {
        ConnectionLimits::new(self.max_connections, self.max_connections_per_address, self.request_timeout)
    }
}

/// A running aggregator. Dropping it stops it at once; [`Aggregator::shutdown`] stops it in order.
pub struct Aggregator {
    shared: Arc<AggregatorState>,
    address: SocketAddr,
    operations: Option<SocketAddr>,
    certificates: Option<Arc<Certificates>>,
    workers: Vec<JoinHandle<()>>,
}

impl Aggregator {
    /// Opens the state, takes up unfinished work, listens.
    pub async fn start(mut config: Config) -> Result<Self> {
        if let Some(peer) = &mut config.peer {
            http_client::make_base(peer);
        }
        listener::check_exposure(config.listen, config.tls.is_some(), config.allow_plaintext)?;
        config.check_tokens()?;
        let certificates = config.read_certificates()?;
        config.warn_if_nothing_is_admitted();
        let client = http_client::client_with_patience(config.peer_root.as_deref(), config.request_timeout)?;
        let listeners = Listeners::bind(&config).await?;
        let shared = Arc::new(AggregatorState::open(config, client).await?);
        serve_known_tasks(&shared).await?;
        let (address, operations) = listeners.addresses()?;
        let mut workers = listeners.serve(&shared, certificates.clone());
        workers.push(tokio::spawn(maintenance::run(Arc::clone(&shared))));
        tracing::info!(role = %shared.config.role, %address, version = env!("CARGO_PKG_VERSION"), "listening");
        Ok(Self { shared, address, operations, certificates, workers })
    }

    /// The address that is listened on, as a base for requests.
    pub fn url(&self) -> Url {
        let scheme = if self.shared.config.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address).parse().expect("a socket address makes a URL")
    }

    /// Where health and counters are shown, as a base for requests.
    pub fn operations_url(&self) -> Option<Url> {
        self.operations.map(|address| format!("http://{address}/").parse().expect("a socket address makes a URL"))
    }

    /// Health and counters as routes, for a listener that shows those of several servers.
    pub fn operations_routes(&self) -> axum::Router {
        http::operations(Arc::clone(&self.shared))
    }

    /// Reads the certificate again; if it is not valid, the previous one stays in use.
    pub fn reload_certificates(&self) {
        if let Some(certificates) = &self.certificates {
            certificates.reload_or_log();
        }
    }

    /// Serves a task from now on, durably, if the operator's [conditions](Admission) admit it. Adding the identical
    /// definition again changes nothing.
    pub async fn add_task(&self, definition: impl Into<TaskDefinition>) -> Result<()> {
        add_task(&self.shared, definition.into()).await
    }

    /// Stops serving a task and deletes all that is kept of it; says whether it was served.
    pub async fn remove_task(&self, id: &TaskId) -> Result<bool> {
        self.shared.remove_task(id).await
    }

    /// The tasks of one desk's cards that are served.
    pub fn tasks_of(&self, desk: &PublicKey) -> Vec<TaskId> {
        let own = |task: &Arc<ServedTask>| task.signer.as_ref() == Some(desk);
        self.shared.tasks().iter().filter(|task| own(task)).map(|task| *task.id()).collect()
    }

    /// How many reports of a task are held; none if the task is not served.
    pub fn count_reports(&self, id: &TaskId) -> Result<Option<u64>> {
        self.shared.task(id).ok().map(|task| self.shared.count_reports(&task)).transpose()
    }

    /// Makes a new key for reports. The previous one still opens reports that are on their way.
    pub async fn rotate_key(&self) -> Result<()> {
        let keys = Keys::rotate(&self.shared.store, self.shared.expiry.now()).await?;
        self.shared.set_keys(keys);
        Ok(())
    }

    /// Deletes expired data and keys now instead of within the minute. One call moves the time by which they expire
    /// ahead by at most an hour, as a minute would.
    pub async fn clean(&self) -> Result<()> {
        maintenance::clean(&self.shared).await
    }

    /// Stops listening, finishes the answers under way, closes the state.
    pub async fn shutdown(mut self) {
        self.shared.stopping.send_replace(true);
        for worker in std::mem::take(&mut self.workers) {
            let _ = worker.await;
        }
        self.shared.store.close();
        tracing::info!(role = %self.shared.config.role, "stopped");
    }
}

impl Drop for Aggregator {
    fn drop(&mut self) {
        self.shared.stopping.send_replace(true);
        for worker in &self.workers {
            worker.abort();
        }
    }
}

/// The listener for requests, and the one for operators.
struct Listeners {
    requests: TcpListener,
    operations: Option<TcpListener>,
}

impl Listeners {
    async fn bind(config: &Config) -> Result<Self> {
        let requests = listener::bind(config.listen).await?;
        let operations = match config.operations {
            Some(address) => Some(listener::bind(address).await?),
            None => None,
        };
        Ok(Self { requests, operations })
    }

    fn addresses(&self) -> Result<(SocketAddr, Option<SocketAddr>)> {
        let operations = self.operations.as_ref().map(TcpListener::local_addr).transpose()?;
        Ok((self.requests.local_addr()?, operations))
    }

    fn serve(self, shared: &Arc<AggregatorState>, certificates: Option<Arc<Certificates>>) -> Vec<JoinHandle<()>> {
        let limits = shared.config.limits();
        let serve = |listener, certificates, routes| {
            let stopping = shared.stopping.subscribe();
            tokio::spawn(listener::serve(listener, certificates, routes, limits, stopping))
        };
        let mut workers = vec![serve(self.requests, certificates, http::routes(Arc::clone(shared)))];
        workers.extend(self.operations.map(|listener| serve(listener, None, http::operations(Arc::clone(shared)))));
        workers
    }
}

/// Runs an aggregator until the process is asked to stop (interrupt or termination signal).
///
/// `ready` is called once, when requests are being taken. On a hangup signal the certificate is read again.
pub async fn run(config: Config, ready: impl FnOnce(&Aggregator)) -> Result<()> {
    // First of all: a signal that came earlier would end the process at once.
    let signals = Signals::install()?;
    let aggregator = Aggregator::start(config).await?;
    ready(&aggregator);
    signals.wait(async || aggregator.reload_certificates()).await?;
    aggregator.shutdown().await;
    Ok(())
}

/// Serves the tasks of an earlier run, and those in the directory of task files.
async fn serve_known_tasks(shared: &Arc<AggregatorState>) -> Result<()> {
    for task in shared.load_tasks()? {
        spawn_driver(shared, task);
    }
    maintenance::load_files(shared, &mut HashMap::new()).await;
    Ok(())
}

/// Registers a task and, on a leader, starts its driver.
pub(crate) async fn add_task(shared: &Arc<AggregatorState>, definition: TaskDefinition) -> Result<()> {
    if let Some(task) = shared.add_task(&definition).await? {
        tracing::info!(task = %task.id(), "serving");
        spawn_driver(shared, task);
    }
    Ok(())
}

/// Reads a report as the leader stores it. Only for fuzzing, and not part of the interface.
#[doc(hidden)]
pub fn decode_stored_report(content: &[u8]) {
    let _ = store::QueuedReport::decode(&[0; 16], 0, content);
}

fn spawn_driver(shared: &Arc<AggregatorState>, task: Arc<ServedTask>) {
    if shared.config.role == AggregatorRole::Leader {
        // It ends by itself when the task is removed or the aggregator stops.
        tokio::spawn(aggregation::drive(Arc::clone(shared), task));
    }
}
