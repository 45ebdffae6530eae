//! A leader or a helper: DAP-09 over HTTP, state in SQLite.
//!
//! [`Aggregator::start`] runs one inside this process; [`run`] is that plus waiting for the signal
//! to stop, which is all that a command line needs.

pub mod admission;
pub mod backup;
mod batches;
mod collection;
pub mod definition;
mod driver;
mod enrolment;
mod expiry;
mod failures;
mod helper;
mod http;
mod job_state;
mod jobs;
mod keys;
mod maintenance;
mod metrics;
pub mod pair;
pub mod pair_secret;
mod peer;
mod problem;
mod rejection;
mod share;
mod shared;
mod store;
mod upload;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tokio::task::JoinHandle;
use uptack_dap::{clock::Clock, http_client, origin::Origin, protocol::TaskId, task::AggregatorRole, token::Token};
use url::Url;

use crate::{
    aggregator::{admission::Admission, definition::Definition},
    base::listener::{self, Certificates, Limits, Signals},
    error::Result,
};
use keys::Keys;
use shared::{Shared, Task};

/// How an aggregator runs. [`Config::new`] gives defaults for everything but role and directory.
#[derive(Debug, Clone)]
pub struct Config {
    /// Leader or helper.
    pub role: AggregatorRole,
    /// Directory of the state; below it, `tasks/*.json` are task definitions to serve.
    pub data: PathBuf,
    /// Address to listen on; loopback unless changed.
    pub listen: SocketAddr,
    /// Listen elsewhere than on loopback without TLS, because something in front does TLS.
    pub allow_plaintext: bool,
    /// Certificate chain and key, in PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Leader: where the helper is reached, in place of the address in the task definition.
    pub peer: Option<Url>,
    /// Leader: a further root certificate for the helper's TLS, in a PEM file.
    pub peer_root: Option<PathBuf>,
    /// Which tasks are served, whoever adds them; none, unless this is changed.
    pub admission: Admission,
    /// Lets an operator, or a desk that the operator gives it to, add and remove tasks over HTTP with this token.
    pub admin_token: Option<Token>,
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
    /// How often the helper may refuse a job before the job is split or, with a single report, abandoned.
    pub job_attempts: u32,
    /// How long to gather reports before a job is made.
    pub gather: Duration,
    /// How long a request may take to arrive, and a call to the helper to be answered.
    pub request_timeout: Duration,
    /// Connections at once.
    pub max_connections: usize,
    /// Connections at once from one address; by default a quarter of all.
    pub max_connections_per_address: Option<usize>,
    /// Where health and counters are shown, without TLS and to whoever can reach it. Without one, nowhere.
    pub operations: Option<SocketAddr>,
    /// Size of the state file beyond which nothing more is taken.
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
}

/// A running aggregator. Dropping it stops it at once; [`Aggregator::shutdown`] stops it in order.
pub struct Aggregator {
    shared: Arc<Shared>,
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
        let certificates = match &config.tls {
            Some((chain, key)) => Some(Certificates::read(chain, key)?),
            None => None,
        };
        if config.admission.admits_nothing() {
            tracing::warn!(
                "no task is served: pin the key of a desk and give the pair's secret, or allow tasks without a card"
            );
        }
        let client = http_client::client_with_patience(config.peer_root.as_deref(), config.request_timeout)?;
        let listener = listener::bind(config.listen).await?;
        let address = listener.local_addr()?;
        let limits = Limits::new(config.max_connections, config.max_connections_per_address, config.request_timeout);
        let operations = match config.operations {
            Some(address) => Some(listener::bind(address).await?),
            None => None,
        };
        let shared = Arc::new(Shared::open(config, client).await?);
        for task in shared.load_tasks()? {
            spawn_driver(&shared, task);
        }
        maintenance::load_files(&shared, &mut std::collections::HashMap::new()).await;
        let routes = http::routes(Arc::clone(&shared));
        let stopping = || shared.stopping.subscribe();
        let mut workers = vec![
            tokio::spawn(listener::serve(listener, certificates.clone(), routes, limits, stopping())),
            tokio::spawn(maintenance::run(Arc::clone(&shared))),
        ];
        let mut operations_address = None;
        if let Some(listener) = operations {
            operations_address = Some(listener.local_addr()?);
            let routes = http::operations(Arc::clone(&shared));
            workers.push(tokio::spawn(listener::serve(listener, None, routes, limits, stopping())));
        }
        tracing::info!(role = %shared.config.role, %address, version = env!("CARGO_PKG_VERSION"), "listening");
        Ok(Self { shared, address, operations: operations_address, certificates, workers })
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

    /// Reads the certificate again; if there is a fault in it, the one before stays in use.
    pub fn reload_certificates(&self) {
        if let Some(certificates) = &self.certificates {
            certificates.reload_or_log();
        }
    }

    /// Serves a task from now on, durably, if the operator's [conditions](Admission) admit it. The identical
    /// definition again changes nothing.
    pub async fn add_task(&self, definition: impl Into<Definition>) -> Result<()> {
        add_task(&self.shared, definition.into()).await
    }

    /// Stops serving a task and deletes all that is kept of it; says whether it was served.
    pub async fn remove_task(&self, id: &TaskId) -> Result<bool> {
        self.shared.remove_task(id).await
    }

    /// How many reports of a task are held; none if the task is not served.
    pub fn count_reports(&self, id: &TaskId) -> Result<Option<u64>> {
        self.shared.task(id).ok().map(|task| self.shared.count_reports(&task)).transpose()
    }

    /// Makes a new key for reports. The one before still opens what is on its way.
    pub async fn rotate_key(&self) -> Result<()> {
        let keys = Keys::rotate(&self.shared.store, self.shared.expiry.now()).await?;
        self.shared.set_keys(keys);
        Ok(())
    }

    /// Deletes expired data and keys now instead of within the minute. One call moves the time by which they expire
    /// by at most an hour, as one minute would.
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

/// Runs an aggregator until the process is asked to stop (interrupt or termination signal).
///
/// `ready` is called once, when requests are being taken. A hangup signal has the certificate read again.
pub async fn run(config: Config, ready: impl FnOnce(&Aggregator)) -> Result<()> {
    // First of all, or a signal that comes before would end the process at once.
    let signals = Signals::install()?;
    let aggregator = Aggregator::start(config).await?;
    ready(&aggregator);
    signals.wait(async || aggregator.reload_certificates()).await?;
    aggregator.shutdown().await;
    Ok(())
}

/// Registers a task and starts its driver where the role has one.
pub(crate) async fn add_task(shared: &Arc<Shared>, definition: Definition) -> Result<()> {
    if let Some(task) = shared.add_task(&definition).await? {
        tracing::info!(task = %task.id(), "serving");
        spawn_driver(shared, task);
    }
    Ok(())
}

/// Reads a report as the leader stores it, for fuzzing.
pub(crate) fn decode_stored_report(content: &[u8]) {
    let _ = upload::StoredReport::from_row(&[0; 16], 0, content);
}

fn spawn_driver(shared: &Arc<Shared>, task: Arc<Task>) {
    if shared.config.role == AggregatorRole::Leader {
        // It ends by itself when the task is removed or the aggregator stops.
        tokio::spawn(driver::drive(Arc::clone(shared), task));
    }
}
