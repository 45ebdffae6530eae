//! Has the aggregators serve a query's task, and forget it: the embedded pair, servers elsewhere over their operator's
//! interface, or files for an operator who does it by hand.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};
use tokio::sync::RwLock;
use uptack::card::{self, Operators};
use uptack_dap::{
    http_client, private,
    protocol::TaskId,
    signed::{PublicKey, SignedCard},
    task::{self, AggregatorRole, CollectorTask, TaskParameters},
};
use url::Url;

use crate::{
    aggregator::{
        self, Aggregator, admission::Admission, definition::CardDefinition, pair::Pair, pair_secret::PairSecret,
    },
    desk::{
        config::{Aggregators, Config, Place, Remote},
        store::Store,
    },
    error::{Error, Result},
};

/// The two aggregators, wherever they are.
pub(crate) struct Provisioner {
    leader: Url,
    helper: Url,
    operators: Operators,
    means: Means,
}

enum Means {
    /// Taken out when the desk stops.
    Embedded(Box<RwLock<Option<Pair>>>),
    External {
        leader: Box<Remote>,
        helper: Box<Remote>,
        http: reqwest::Client,
        folder: PathBuf,
    },
}

impl Provisioner {
    /// Starts the embedded pair, or makes ready to call the servers elsewhere.
    pub(crate) async fn start(config: &Config, store: &Store, signer: PublicKey) -> Result<Self> {
        match &config.aggregators {
            Aggregators::Embedded { leader, helper } => Self::embedded(config, store, signer, leader, helper).await,
            Aggregators::External { leader, helper, one_operator } => {
                Self::external(config, leader, helper, *one_operator)
            }
        }
    }

    /// The addresses, as a card names them.
    pub(crate) fn on_card(&self) -> card::Aggregators {
        card::Aggregators { leader: self.leader.to_string(), helper: self.helper.to_string() }
    }

    pub(crate) fn leader(&self) -> &Url {
        &self.leader
    }

    pub(crate) fn helper(&self) -> &Url {
        &self.helper
    }

    pub(crate) fn operators(&self) -> Operators {
        self.operators
    }

    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self.means, Means::Embedded(_))
    }

    /// Has both serve the task of a card. The same again changes nothing.
    ///
    /// Each gets the signed card, the collector's public key and, the leader, the hash of the collector's token. What
    /// else the task consists of they compute, and their own secrets they share with each other alone.
    pub(crate) async fn add(&self, card: &SignedCard, collector: &CollectorTask) -> Result<()> {
        match &self.means {
            Means::Embedded(pair) => match pair.read().await.as_ref() {
                Some(pair) => Ok(pair.add_card(card, collector).await?),
                None => Err(stopped()),
            },
            Means::External { leader, helper, http, folder } => {
                let define = |role| CardDefinition::new(role, card.clone(), collector);
                let (to_helper, to_leader) = (define(AggregatorRole::Helper), define(AggregatorRole::Leader));
                if leader.admin.is_none() || helper.admin.is_none() {
                    write_files(folder, &[&to_leader, &to_helper], &collector.parameters)?;
                }
                // The helper first, so that it knows what the leader speaks of.
                put(http, helper, &to_helper).await?;
                put(http, leader, &to_leader).await
            }
        }
    }

    /// Has both forget a task and its reports. Doing so twice is fine.
    pub(crate) async fn remove(&self, task: &TaskId) -> Result<()> {
        match &self.means {
            Means::Embedded(pair) => match pair.read().await.as_ref() {
                Some(pair) => {
                    pair.leader.remove_task(task).await?;
                    pair.helper.remove_task(task).await?;
                    Ok(())
                }
                None => Err(stopped()),
            },
            Means::External { leader, helper, http, folder } => {
                delete(http, leader, AggregatorRole::Leader, task).await?;
                delete(http, helper, AggregatorRole::Helper, task).await?;
                remove_files(folder, task)
            }
        }
    }

    /// How many reports of a task the leader holds; none where it does not say.
    pub(crate) async fn count_reports(&self, task: &TaskId) -> Result<Option<u64>> {
        match &self.means {
            Means::Embedded(pair) => match pair.read().await.as_ref() {
                Some(pair) => pair.leader.count_reports(task),
                None => Err(stopped()),
            },
            Means::External { leader, http, .. } => count(http, leader, task).await,
        }
    }

    /// Has an embedded pair read its certificate again.
    pub(crate) async fn reload_certificates(&self) {
        if let Means::Embedded(pair) = &self.means
            && let Some(pair) = pair.read().await.as_ref()
        {
            pair.leader.reload_certificates();
            pair.helper.reload_certificates();
        }
    }

    /// Health and counters of an embedded pair, below `leader` and `helper`.
    pub(crate) async fn operations(&self) -> axum::Router {
        let routes = axum::Router::new();
        match &self.means {
            Means::Embedded(pair) => match pair.read().await.as_ref() {
                Some(pair) => routes
                    .nest("/leader", pair.leader.operations_routes())
                    .nest("/helper", pair.helper.operations_routes()),
                None => routes,
            },
            Means::External { .. } => routes,
        }
    }

    pub(crate) async fn shutdown(&self) {
        if let Means::Embedded(pair) = &self.means
            && let Some(pair) = pair.write().await.take()
        {
            pair.shutdown().await;
        }
    }

    async fn embedded(
        config: &Config,
        store: &Store,
        signer: PublicKey,
        leader: &Place,
        helper: &Place,
    ) -> Result<Self> {
        let credentials = config.enrolment.then(|| config.data.join("credentials"));
        if let Some(path) = &credentials {
            // Nobody is enrolled until somebody is written into it.
            std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        }
        let admission = Admission {
            desk_keys: vec![signer],
            pair_secret: Some(PairSecret::load_or_create(&config.data.join("pair.secret"))?),
            // Tasks that an earlier version took without the signature run on. Nobody else can add one here.
            allow_tasks_without_card: true,
            ..Admission::default()
        };
        let start = |role: AggregatorRole, place: &Place, peer: Option<Url>| {
            let listen = remembered(store, &format!("{role}-listen"), place.listen);
            let config = listen.map(|listen| aggregator::Config {
                listen,
                tls: config.tls.clone(),
                allow_plaintext: config.allow_plaintext,
                peer,
                peer_root: config.root.clone(),
                admission: admission.clone(),
                credentials: credentials.clone(),
                allowed_origins: config.allowed_origins.clone(),
                clock: config.clock.clone(),
                request_timeout: config.request_timeout,
                max_connections: config.max_connections,
                max_connections_per_address: config.max_connections_per_address,
                // The desk shows them beside its own.
                operations: None,
                ..aggregator::Config::new(role, config.data.join(role.to_string()))
            });
            async move { Aggregator::start(config?).await }
        };
        let helper_place = start(AggregatorRole::Helper, helper, None).await?;
        let helper_url = owners_address(&helper_place, helper, "helper")?;
        // With TLS a name is on the certificate, not a port on loopback.
        let peer = if config.tls.is_some() { helper_url.clone() } else { helper_place.url() };
        let leader_place = start(AggregatorRole::Leader, leader, Some(peer)).await?;
        let leader_url = owners_address(&leader_place, leader, "leader")?;
        remember(store, "helper-listen", &helper_place.url())?;
        remember(store, "leader-listen", &leader_place.url())?;
        tracing::warn!("{}", Pair::TRUST);
        let pair = Pair { leader: leader_place, helper: helper_place };
        Ok(Self {
            leader: leader_url,
            helper: helper_url,
            operators: Operators::One,
            means: Means::Embedded(Box::new(RwLock::new(Some(pair)))),
        })
    }

    fn external(config: &Config, leader: &Remote, helper: &Remote, one_operator: bool) -> Result<Self> {
        let remote = |remote: &Remote| Ok::<_, Error>(Remote { url: directory(&remote.url)?, ..remote.clone() });
        let (leader, helper) = (remote(leader)?, remote(helper)?);
        if leader.url == helper.url {
            return Err(Error::input("leader and helper are the same server"));
        }
        Ok(Self {
            leader: leader.url.clone(),
            helper: helper.url.clone(),
            operators: if one_operator { Operators::One } else { Operators::Two },
            means: Means::External {
                leader: Box::new(leader),
                helper: Box::new(helper),
                http: http_client::client(config.root.as_deref())?,
                folder: config.data.join("provision"),
            },
        })
    }
}

/// The address to listen on: the one asked for, that of the last run, or a free port on loopback.
pub(crate) fn remembered(store: &Store, key: &str, wanted: Option<SocketAddr>) -> Result<SocketAddr> {
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let last = store.setting(key)?.and_then(|text| text.parse().ok());
    Ok(wanted.or(last).unwrap_or(free))
}

/// Keeps the address that is listened on for the next run.
pub(crate) fn remember(store: &Store, key: &str, url: &Url) -> Result<()> {
    let address = url.socket_addrs(|| None)?.first().map(ToString::to_string);
    address.map_or(Ok(()), |address| store.set_setting(key, &address))
}

/// Where owners find an embedded aggregator.
fn owners_address(aggregator: &Aggregator, place: &Place, role: &str) -> Result<Url> {
    if let Some(url) = &place.url {
        return directory(url);
    }
    let url = aggregator.url();
    let everywhere = url.host_str().and_then(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().ok());
    if everywhere.is_some_and(|address| address.is_unspecified()) {
        return Err(Error::input(format!(
            "{url} is not an address that owners can reach: give the {role}'s public address"
        )));
    }
    Ok(url)
}

/// The form of an address below which its resources lie.
fn directory(url: &Url) -> Result<Url> {
    if url.cannot_be_a_base() || !matches!(url.scheme(), "http" | "https") {
        return Err(Error::input(format!("`{url}` is not an http or https address")));
    }
    let mut url = url.clone();
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

async fn put(http: &reqwest::Client, remote: &Remote, definition: &CardDefinition) -> Result<()> {
    let Some(token) = &remote.admin else { return Ok(()) };
    let body = serde_json::to_vec(definition).expect("task definitions are plain data");
    let request = http.put(address(remote, &definition.card.query)?).bearer_auth(token.as_str()).body(body);
    let whose = definition.role.to_string();
    let response = request.send().await.map_err(|error| http_client::no_answer(&whose, error))?;
    http_client::check(&whose, response).await?;
    Ok(())
}

async fn delete(http: &reqwest::Client, remote: &Remote, role: AggregatorRole, task: &TaskId) -> Result<()> {
    let Some(token) = &remote.admin else { return Ok(()) };
    let whose = role.to_string();
    let request = http.delete(address(remote, &task.to_string())?).bearer_auth(token.as_str());
    let response = request.send().await.map_err(|error| http_client::no_answer(&whose, error))?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let body = http_client::body(&whose, response).await?;
    // Removed by the same call before, whose answer did not arrive.
    if String::from_utf8_lossy(&body).contains("unrecognizedTask") {
        return Ok(());
    }
    Err(Error::unreachable(format!("the {whose} answers {} to the removal of a task", status.as_u16())))
}

/// What the leader's operator lets the desk see of a task.
async fn count(http: &reqwest::Client, leader: &Remote, task: &TaskId) -> Result<Option<u64>> {
    let Some(token) = &leader.admin else { return Ok(None) };
    let request = http.get(address(leader, &task.to_string())?).bearer_auth(token.as_str());
    let response = request.send().await.map_err(|error| http_client::no_answer("leader", error))?;
    let body = http_client::body("leader", http_client::check("leader", response).await?).await?;
    let document: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    Ok(document["reports"].as_u64())
}

fn address(remote: &Remote, task: &str) -> Result<Url> {
    let path = format!("uptack/tasks/{task}");
    remote.url.join(&path).map_err(|error| Error::input(format!("{}: {error}", remote.url)))
}

/// Definitions for operators who add tasks by hand. Nothing in them is secret.
fn write_files(folder: &Path, definitions: &[&CardDefinition], parameters: &TaskParameters) -> Result<()> {
    let place = folder.join(parameters.task_id.to_string());
    if place.exists() {
        return Ok(());
    }
    let partial = place.with_extension("partial");
    private::create_folder(&partial)?;
    for definition in definitions {
        task::write(&partial.join(format!("{}.json", definition.role)), definition)?;
    }
    task::write(&partial.join("client.json"), parameters)?;
    Ok(std::fs::rename(&partial, &place)?)
}

fn remove_files(folder: &Path, task: &TaskId) -> Result<()> {
    match std::fs::remove_dir_all(folder.join(task.to_string())) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn stopped() -> Error {
    Error::unreachable("the desk is stopping")
}
