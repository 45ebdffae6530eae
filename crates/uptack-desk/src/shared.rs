//! What all parts of a running desk share.

use std::{path::PathBuf, sync::Arc};
use tokio::sync::{Notify, Semaphore, watch};
use uptack_net::signed::Signer;

use crate::{
    config::Config,
    error::Result,
    metrics::Metrics,
    provision::Provisioner,
    store::{State, Store},
};

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) store: Arc<Store>,
    pub(crate) signer: Signer,
    pub(crate) provisioner: Provisioner,
    pub(crate) metrics: Metrics,
    /// Checking a card's claims is heavy: one at a time.
    pub(crate) checking: Semaphore,
    /// Places for streams.
    pub(crate) streams: Arc<Semaphore>,
    /// What owners see.
    pub(crate) listing: watch::Sender<Arc<Vec<Listed>>>,
    /// Tells both loops that there may be work.
    pub(crate) wake: Notify,
    /// Becomes true once, when the desk is to stop.
    pub(crate) stopping: watch::Sender<bool>,
}

/// A query that the aggregators know, as owners get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) query: String,
    pub(crate) opens: u64,
    pub(crate) closes: u64,
    /// The signed card as JSON; the same bytes for every owner.
    pub(crate) text: String,
}

impl Listed {
    pub(crate) fn is_open(&self, now: u64) -> bool {
        (self.opens..self.closes).contains(&now)
    }
}

impl Shared {
    pub(crate) fn new(config: Config, store: Arc<Store>, signer: Signer, provisioner: Provisioner) -> Self {
        let streams = (config.max_connections / 2).max(1);
        Self {
            config,
            store,
            signer,
            provisioner,
            metrics: Metrics::default(),
            checking: Semaphore::new(1),
            streams: Arc::new(Semaphore::new(streams)),
            listing: watch::Sender::new(Arc::default()),
            wake: Notify::new(),
            stopping: watch::Sender::new(false),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.config.clock.now()
    }

    pub(crate) fn tokens(&self) -> PathBuf {
        self.config.data.join("tokens")
    }

    /// Brings what owners see up to date with the store.
    pub(crate) async fn refresh(&self) -> Result<()> {
        let open = self.store.run(|store| store.queries(State::Open)).await?;
        let listed = |query: crate::store::Query| Listed {
            text: serde_json::to_string(&query.signed).expect("a signed card is strings"),
            query: query.signed.query,
            opens: query.opens,
            closes: query.closes,
        };
        let listing: Vec<Listed> = open.into_iter().map(listed).collect();
        self.listing.send_if_modified(|known| {
            let changed = **known != listing;
            if changed {
                *known = Arc::new(listing);
            }
            changed
        });
        Ok(())
    }
}
