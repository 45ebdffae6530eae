//! The desk of an on-demand network.
//!
//! Analysts open queries here. The desk restates every claim of a query's card, signs it, asks two aggregators to serve
//! the one task that the card defines, and shows the card to anyone who asks. When the window is over it collects the
//! batch, once, keeps the record, and asks the aggregators to delete everything else. Below the card's minimum nothing is
//! released.
//!
//! It sees sums and no answers, as long as somebody else runs the aggregators; with the embedded pair, the operator of
//! the desk can see everything, and the cards say so.
//!
//! Analysts also have pages in a browser, which call the same functions as the interface for programs.
//!
//! [`config`] says how it runs, [`back_up`] copies a running desk's state. The record of a release, its check and the
//! analyst's client are in [`uptack_dap`], because they need no server.

mod check_queue;
mod collection;
pub mod config;
mod http;
mod listing;
mod opening;
mod pages;
mod provision;
mod queries;
mod rollback;
mod shared;
mod store;
mod stream;
mod tokens;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};
use tokio::{net::TcpListener, task::JoinHandle};
use uptack_dap::signed::{PublicKey, Signer};
use url::Url;

use crate::base::listener::{self, Certificates, Signals};

pub use config::Config;
pub use http::OPENAPI;
pub use store::{QueryState, STATE_FILE, back_up};
pub use tokens::FIRST_ANALYST;

use crate::error::Result;
use pages::Pages;
use provision::Provisioner;
use shared::DeskState;
use store::Store;

/// The setting that keeps where analysts and owners reach the desk.
const LISTEN: &str = "listen";
/// The setting that keeps where health and counters are shown.
const OPERATIONS_LISTEN: &str = "operations-listen";

/// A running desk. Dropping it stops it at once; [`Desk::shutdown`] stops it in order.
pub struct Desk {
    shared: Arc<DeskState>,
    pages: Arc<Pages>,
    address: SocketAddr,
    operations: SocketAddr,
    certificates: Option<Arc<Certificates>>,
    workers: Vec<JoinHandle<()>>,
}

impl Desk {
    /// Opens the state, takes up unfinished queries, listens.
    pub async fn start(config: Config) -> Result<Self> {
        let certificates = config.tls.as_ref().map(|(chain, key)| Certificates::read(chain, key)).transpose()?;
        let store = Store::open(&config.data)?;
        let listen = store.listen_address(LISTEN, config.listen)?;
        listener::check_exposure(listen, config.tls.is_some(), config.allow_plaintext)?;
        tokens::prepare(&config.data.join("tokens"))?;
        let signer = Signer::load_or_create(&config.data.join("signing.key"))?;
        let sockets = Sockets {
            public: listener::bind(listen).await?,
            operations: listener::bind(store.listen_address(OPERATIONS_LISTEN, config.operations)?).await?,
        };
        let provisioner = Provisioner::start(&config, &store, signer.public()).await?;
        let shared = Arc::new(DeskState::new(config, Arc::new(store), signer, provisioner));
        shared.refresh().await?;
        Self::serve(shared, sockets, certificates).await
    }

    async fn serve(shared: Arc<DeskState>, sockets: Sockets, certificates: Option<Arc<Certificates>>) -> Result<Self> {
        let (address, operations) = (sockets.public.local_addr()?, sockets.operations.local_addr()?);
        let pages = Arc::new(Pages::new(Arc::clone(&shared), address.port()));
        let workers = spawn_workers(sockets, certificates.clone(), &shared, &pages).await;
        let desk = Self { shared, pages, address, operations, certificates, workers };
        desk.keep_addresses()?;
        tracing::info!(%address, signer = %desk.signer(), version = env!("CARGO_PKG_VERSION"), "listening");
        Ok(desk)
    }

    /// The address that is listened on, as a base for requests.
    pub fn url(&self) -> Url {
        let scheme = if self.shared.config.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address).parse().expect("a socket address makes a URL")
    }

    /// Where health and counters are shown, as a base for requests; those of an embedded pair below `leader/` and
    /// `helper/`.
    pub fn operations_url(&self) -> Url {
        format!("http://{}/", self.operations).parse().expect("a socket address makes a URL")
    }

    /// Reads the certificate again, here and for an embedded pair; if it is faulty, the previous one stays in use.
    pub async fn reload_certificates(&self) {
        match &self.certificates {
            Some(certificates) => certificates.reload_or_log(),
            None => tracing::info!("there is no certificate to read again"),
        }
        self.shared.provisioner.reload_certificates().await;
    }

    /// The key that signs the cards, which owners pin.
    pub fn signer(&self) -> PublicKey {
        self.shared.signer.public()
    }

    /// The leader's address, as cards name it.
    pub fn leader_url(&self) -> &Url {
        self.shared.provisioner.leader()
    }

    /// The helper's address, as cards name it.
    pub fn helper_url(&self) -> &Url {
        self.shared.provisioner.helper()
    }

    /// Whether both aggregators run in this process.
    pub fn is_embedded(&self) -> bool {
        self.shared.provisioner.is_embedded()
    }

    /// The file with the token of the first analyst.
    pub fn first_token(&self) -> PathBuf {
        self.shared.tokens().join(FIRST_ANALYST)
    }

    /// A link that signs a browser in as the first analyst, once and within an hour; none if that analyst's token was
    /// removed. It grants everything that the analyst may do: show it to nobody else.
    pub fn sign_in_link(&self) -> Result<Option<Url>> {
        let Some(token) = tokens::hash_of(&self.shared.tokens(), FIRST_ANALYST)? else { return Ok(None) };
        let path = self.pages.one_time_link(token);
        Ok(Some(self.url().join(&path).expect("a path below the address")))
    }

    /// Keeps the addresses for the next run.
    fn keep_addresses(&self) -> Result<()> {
        let store = &self.shared.store;
        store.keep_listen_address(LISTEN, &self.url())?;
        store.keep_listen_address(OPERATIONS_LISTEN, &self.operations_url())
    }

    /// Stops listening, finishes the answers under way, closes the state.
    pub async fn shutdown(mut self) {
        self.shared.stopping.send_replace(true);
        for worker in std::mem::take(&mut self.workers) {
            let _ = worker.await;
        }
        self.shared.provisioner.shutdown().await;
        tracing::info!("stopped");
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.shared.stopping.send_replace(true);
        for worker in &self.workers {
            worker.abort();
        }
    }
}

/// Runs a desk until the process is asked to stop (interrupt or termination signal).
///
/// `ready` is called once, when the desk accepts requests. On a hangup signal the certificate is read again.
pub async fn run(config: Config, ready: impl FnOnce(&Desk)) -> Result<()> {
    // Before anything else: a signal that comes earlier would end the process at once.
    let signals = Signals::install()?;
    let desk = Desk::start(config).await?;
    ready(&desk);
    signals.wait(async || desk.reload_certificates().await).await?;
    desk.shutdown().await;
    Ok(())
}

/// Where a desk listens.
struct Sockets {
    public: TcpListener,
    operations: TcpListener,
}

/// Spawns the listeners and the loops of a desk.
async fn spawn_workers(
    sockets: Sockets,
    certificates: Option<Arc<Certificates>>,
    shared: &Arc<DeskState>,
    pages: &Arc<Pages>,
) -> Vec<JoinHandle<()>> {
    let routes = http::routes(Arc::clone(shared), pages::routes(Arc::clone(pages)));
    let operations = http::operations(shared).await;
    let limits = shared.config.limits();
    let stopping = || shared.stopping.subscribe();
    vec![
        tokio::spawn(listener::serve(sockets.public, certificates, routes, limits, stopping())),
        tokio::spawn(listener::serve(sockets.operations, None, operations, limits, stopping())),
        tokio::spawn(collection::keep_time(Arc::clone(shared))),
        tokio::spawn(collection::keep_collecting(Arc::clone(shared))),
        tokio::spawn(rollback::keep_watch(Arc::clone(shared))),
        tokio::spawn(stream::keep_alive(Arc::clone(shared))),
    ]
}
