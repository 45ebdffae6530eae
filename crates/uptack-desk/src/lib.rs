//! The desk of an on-demand network.
//!
//! Analysts open queries here. The desk restates every claim of a query's card, signs it, has two aggregators serve the
//! one task that the card defines, and shows the card to whoever asks. When the window is over it collects the batch,
//! once, keeps the record, and has the aggregators delete everything else. Below the card's minimum nothing comes out.
//!
//! It sees sums and no answers, as long as the aggregators are in other hands than its own; with the embedded pair,
//! whoever runs the desk can see everything, and the cards say so.
//!
//! - [`config`]: how it runs. [`record`]: what it releases; [`results`]: what follows from it. [`verification`]: the
//!   check of both by anyone. [`client`]: for analysts' programs.

pub mod client;
mod collect;
pub mod config;
pub mod error;
mod http;
mod metrics;
mod problem;
mod provision;
mod queries;
pub mod record;
pub mod results;
mod shared;
mod store;
mod stream;
mod tokens;
pub mod verification;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};
use tokio::task::JoinHandle;
use uptack_net::{
    server::{self, Limits},
    signed::{PublicKey, Signer},
};
use url::Url;

pub use config::Config;
pub use error::{Error, Result};
pub use http::OPENAPI;
pub use queries::LONGEST_PREDICATE;
pub use store::State;
pub use tokens::FIRST_ANALYST;

use provision::{Provisioner, remember, remembered};
use shared::Shared;
use store::Store;

/// A running desk. Dropping it stops it without ceremony; [`Desk::shutdown`] in order.
pub struct Desk {
    shared: Arc<Shared>,
    address: SocketAddr,
    workers: Vec<JoinHandle<()>>,
}

impl Desk {
    /// Opens the state, takes up unfinished queries, listens.
    pub async fn start(config: Config) -> Result<Self> {
        let acceptor = match &config.tls {
            Some((certificates, key)) => Some(server::tls(certificates, key)?),
            None => None,
        };
        let store = Store::open(&config.data)?;
        let listen = remembered(&store, "listen", config.listen)?;
        server::check_exposure(listen, config.tls.is_some(), config.allow_plaintext)?;
        tokens::prepare(&config.data.join("tokens"))?;
        let signer = Signer::load_or_create(&config.data.join("signing.key"))?;
        let listener = server::bind(listen).await?;
        let address = listener.local_addr()?;
        let provisioner = Provisioner::start(&config, &store).await?;
        let limits = Limits { connections: config.max_connections, patience: config.request_timeout };
        let shared = Arc::new(Shared::new(config, Arc::new(store), signer, provisioner));
        shared.refresh().await?;
        let stopping = shared.stopping.subscribe();
        let routes = http::routes(Arc::clone(&shared));
        let workers = vec![
            tokio::spawn(server::serve(listener, acceptor, routes, limits, stopping)),
            tokio::spawn(collect::keep_time(Arc::clone(&shared))),
            tokio::spawn(collect::keep_collecting(Arc::clone(&shared))),
        ];
        let desk = Self { shared, address, workers };
        remember(&desk.shared.store, "listen", &desk.url())?;
        tracing::info!(%address, signer = %desk.signer(), version = env!("CARGO_PKG_VERSION"), "listening");
        Ok(desk)
    }

    /// The address that is listened on, as a base for requests.
    pub fn url(&self) -> Url {
        let scheme = if self.shared.config.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address).parse().expect("a socket address makes a URL")
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
/// `ready` is called once, when requests are being taken.
pub async fn run(config: Config, ready: impl FnOnce(&Desk)) -> Result<()> {
    let desk = Desk::start(config).await?;
    ready(&desk);
    server::stop_signal().await?;
    desk.shutdown().await;
    Ok(())
}
