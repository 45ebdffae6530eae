//! Both aggregators in the desk's own process.

use axum::Router;
use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};
use tokio::sync::{RwLock, RwLockReadGuard};
use uptack_dap::{
    protocol::TaskId,
    signed::{PublicKey, SignedCard},
    task::{AggregatorRole, CollectorTask},
};
use url::Url;

use super::{Addresses, base_address};
use crate::{
    aggregator::{self, Admission, Aggregator, Pair, PairSecret},
    desk::{
        config::{Config, EmbeddedAddress},
        store::Store,
    },
    error::{Error, Result},
};

/// The pair while it runs; taken out when the desk stops.
pub(super) struct EmbeddedPair(RwLock<Option<Pair>>);

impl EmbeddedPair {
    pub(super) async fn add(&self, card: &SignedCard, collector: &CollectorTask) -> Result<()> {
        self.running().await?.add_card(card, collector).await
    }

    pub(super) async fn remove(&self, task: &TaskId) -> Result<()> {
        let pair = self.running().await?;
        pair.leader.remove_task(task).await?;
        pair.helper.remove_task(task).await?;
        Ok(())
    }

    pub(super) async fn remove_from(&self, role: AggregatorRole, task: &TaskId) -> Result<()> {
        self.running().await?.aggregator(role).remove_task(task).await.map(drop)
    }

    pub(super) async fn tasks(&self, role: AggregatorRole, signer: &PublicKey) -> Result<Vec<TaskId>> {
        Ok(self.running().await?.aggregator(role).tasks_of(signer))
    }

    pub(super) async fn count_reports(&self, task: &TaskId) -> Result<Option<u64>> {
        self.running().await?.leader.count_reports(task)
    }

    pub(super) async fn reload_certificates(&self) {
        if let Ok(pair) = self.running().await {
            pair.leader.reload_certificates();
            pair.helper.reload_certificates();
        }
    }

    /// Health and counters of both, below `leader` and `helper`.
    pub(super) async fn operations(&self) -> Router {
        let Ok(pair) = self.running().await else { return Router::new() };
        Router::new().nest("/leader", pair.leader.operations_routes()).nest("/helper", pair.helper.operations_routes())
    }

    pub(super) async fn shutdown(&self) {
        if let Some(pair) = self.0.write().await.take() {
            pair.shutdown().await;
        }
    }

    async fn running(&self) -> Result<RwLockReadGuard<'_, Pair>> {
        RwLockReadGuard::try_map(self.0.read().await, Option::as_ref)
            .map_err(|_| Error::unreachable("the desk is stopping"))
    }
}

/// The settings that both aggregators are started with.
pub(super) struct PairSettings<'a> {
    desk: &'a Config,
    store: &'a Store,
    admission: Admission,
    credentials: Option<PathBuf>,
}

/// An aggregator that runs, and where owners find it.
struct Started {
    aggregator: Aggregator,
    url: Url,
}

impl<'a> PairSettings<'a> {
    /// Makes the files that both need, unless they are there.
    pub(super) fn prepare(desk: &'a Config, store: &'a Store, signer: PublicKey) -> Result<Self> {
        let credentials = desk.enrolment.then(|| desk.data.join("credentials"));
        if let Some(path) = &credentials {
            make_credentials(path)?;
        }
        let admission = Admission {
            desk_keys: vec![signer],
            pair_secret: Some(PairSecret::load_or_create(&desk.data.join("pair.secret"))?),
            // Tasks that an earlier version accepted without the signature are still served. Nobody else can add one
            // here.
            allow_tasks_without_card: true,
            ..Admission::default()
        };
        Ok(Self { desk, store, admission, credentials })
    }

    /// Starts the helper, then the leader, which calls it.
    pub(super) async fn start(
        &self,
        leader: &EmbeddedAddress,
        helper: &EmbeddedAddress,
    ) -> Result<(EmbeddedPair, Addresses)> {
        let helper = self.start_one(AggregatorRole::Helper, helper, None).await?;
        let peer = self.peer_address(&helper);
        let leader = self.start_one(AggregatorRole::Leader, leader, Some(peer)).await?;
        self.keep_listen_address(AggregatorRole::Helper, &helper)?;
        self.keep_listen_address(AggregatorRole::Leader, &leader)?;
        tracing::warn!("{}", Pair::TRUST);
        let addresses = Addresses { leader: leader.url, helper: helper.url };
        let pair = Pair { leader: leader.aggregator, helper: helper.aggregator };
        Ok((EmbeddedPair(RwLock::new(Some(pair))), addresses))
    }

    async fn start_one(&self, role: AggregatorRole, place: &EmbeddedAddress, peer: Option<Url>) -> Result<Started> {
        let listen = self.store.listen_address(&listen_key(role), place.listen)?;
        let aggregator = Aggregator::start(self.aggregator_config(role, listen, peer)).await?;
        let url = owners_address(&aggregator, place, role)?;
        Ok(Started { aggregator, url })
    }

    fn keep_listen_address(&self, role: AggregatorRole, started: &Started) -> Result<()> {
        self.store.keep_listen_address(&listen_key(role), &started.aggregator.url())
    }

    /// Where the leader calls the helper. A certificate names a host, and not a port on loopback.
    fn peer_address(&self, helper: &Started) -> Url {
        if self.desk.tls.is_some() { helper.url.clone() } else { helper.aggregator.url() }
    }

    fn aggregator_config(&self, role: AggregatorRole, listen: SocketAddr, peer: Option<Url>) -> aggregator::Config {
        let desk = self.desk;
        aggregator::Config {
            listen,
            tls: desk.tls.clone(),
            allow_plaintext: desk.allow_plaintext,
            peer,
            peer_root: desk.root.clone(),
            admission: self.admission.clone(),
            credentials: self.credentials.clone(),
            allowed_origins: desk.allowed_origins.clone(),
            clock: desk.clock.clone(),
            request_timeout: desk.request_timeout,
            max_connections: desk.max_connections,
            max_connections_per_address: desk.max_connections_per_address,
            // The desk shows them next to its own.
            operations: None,
            ..aggregator::Config::new(role, desk.data.join(role.to_string()))
        }
    }
}

/// Creates an empty list of credentials, unless there is one: at first nobody is enrolled.
fn make_credentials(path: &Path) -> Result<()> {
    std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    Ok(())
}

/// The setting that keeps where an aggregator listens.
fn listen_key(role: AggregatorRole) -> String {
    format!("{role}-listen")
}

/// Where owners find an aggregator.
fn owners_address(aggregator: &Aggregator, place: &EmbeddedAddress, role: AggregatorRole) -> Result<Url> {
    if let Some(url) = &place.url {
        return base_address(url);
    }
    let url = aggregator.url();
    let listens = url.host_str().and_then(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().ok());
    if listens.is_some_and(|address| address.is_unspecified()) {
        return Err(Error::input(format!(
            "{url} is not an address that owners can reach: give the {role}'s public address"
        )));
    }
    Ok(url)
}
