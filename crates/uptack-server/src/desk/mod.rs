//! The desk of an on-demand network.
//!
//! Analysts open queries here. The desk restates every claim of a query's card, signs it, has two aggregators serve the
//! one task that the card defines, and shows the card to whoever asks. When the window is over it collects the batch,
//! once, keeps the record, and has the aggregators delete everything else. Below the card's minimum nothing comes out.
//!
//! It sees sums and no answers, as long as the aggregators are in other hands than its own; with the embedded pair,
//! whoever runs the desk can see everything, and the cards say so.
//!
//! Analysts have pages in a browser, too; they do what the interface for programs does, by the same functions.
//!
//! - [`config`]: how it runs. [`backup`]: copies of a running desk's state. The record of a release, its check and the
//!   analyst's client are in [`uptack_dap`], because they need no server.

pub mod backup;
mod collect;
pub mod config;
mod http;
mod layout;
mod listing;
mod metrics;
mod openings;
mod overview;
mod pages;
mod provision;
mod queries;
mod shared;
mod store;
mod stream;
mod tokens;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};
use tokio::task::JoinHandle;
use uptack_dap::signed::{PublicKey, Signer};
use url::Url;

use crate::base::listener::{self, Certificates, Signals};

pub use config::Config;
pub use http::OPENAPI;
pub use queries::LONGEST_PREDICATE;
pub use store::State;
pub use tokens::FIRST_ANALYST;

use crate::error::Result;
use pages::Pages;
use provision::{Provisioner, remember, remembered};
use shared::Shared;
use store::Store;

/// A running desk. Dropping it stops it at once; [`Desk::shutdown`] stops it in order.
pub struct Desk {
    shared: Arc<Shared>,
    pages: Arc<Pages>,
    address: SocketAddr,
    operations: SocketAddr,
    certificates: Option<Arc<Certificates>>,
    workers: Vec<JoinHandle<()>>,
}

impl Desk {
    /// Opens the state, takes up unfinished queries, listens.
    pub async fn start(config: Config) -> Result<Self> {
        let certificates = match &config.tls {
            Some((chain, key)) => Some(Certificates::read(chain, key)?),
            None => None,
        };
        let store = Store::open(&config.data)?;
        let listen = remembered(&store, "listen", config.listen)?;
        listener::check_exposure(listen, config.tls.is_some(), config.allow_plaintext)?;
        tokens::prepare(&config.data.join("tokens"))?;
        let signer = Signer::load_or_create(&config.data.join("signing.key"))?;
        let listener = listener::bind(listen).await?;
        let operators = listener::bind(remembered(&store, "operations-listen", config.operations)?).await?;
        let (address, operations) = (listener.local_addr()?, operators.local_addr()?);
        let provisioner = Provisioner::start(&config, &store, signer.public()).await?;
        let limits = config.limits();
        let shared = Arc::new(Shared::new(config, Arc::new(store), signer, provisioner));
        shared.refresh().await?;
        let stopping = || shared.stopping.subscribe();
        let pages = Arc::new(Pages::new(Arc::clone(&shared), address.port()));
        let routes = http::routes(Arc::clone(&shared), pages::routes(Arc::clone(&pages)));
        let for_operators = http::operations(&shared).await;
        let workers = vec![
            tokio::spawn(listener::serve(listener, certificates.clone(), routes, limits, stopping())),
            tokio::spawn(listener::serve(operators, None, for_operators, limits, stopping())),
            tokio::spawn(collect::keep_time(Arc::clone(&shared))),
            tokio::spawn(collect::keep_collecting(Arc::clone(&shared))),
            tokio::spawn(stream::keep_alive(Arc::clone(&shared))),
        ];
        let desk = Self { shared, pages, address, operations, certificates, workers };
        remember(&desk.shared.store, "listen", &desk.url())?;
        remember(&desk.shared.store, "operations-listen", &desk.operations_url())?;
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

    /// Reads the certificate again, here and at an embedded pair; if there is a fault in it, the one before stays in use.
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

    /// A link that signs a browser in as the first analyst, once and within an hour; none if that analyst's token was taken
    /// away. Whoever has it can do what that analyst can: show it to that analyst alone.
    pub fn sign_in_link(&self) -> Result<Option<Url>> {
        let Some(token) = tokens::hash_of(&self.shared.tokens(), FIRST_ANALYST)? else { return Ok(None) };
        let path = self.pages.one_time_link(token);
        Ok(Some(self.url().join(&path).expect("a path below the address")))
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
/// `ready` is called once, when requests are being taken. A hangup signal has the certificate read again.
pub async fn run(config: Config, ready: impl FnOnce(&Desk)) -> Result<()> {
    // First of all, or a signal that comes before would end the process at once.
    let signals = Signals::install()?;
    let desk = Desk::start(config).await?;
    ready(&desk);
    signals.wait(async || desk.reload_certificates().await).await?;
    desk.shutdown().await;
    Ok(())
}
