//! Has the aggregators serve a query's task, and forget it: the embedded pair, servers elsewhere over their operator's
//! interface, or files for an operator who does it by hand.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};
use tokio::sync::RwLock;
use uptack::card::{self, Operators};
use uptack_net::{
    aggregator::{self, Aggregator},
    pair::Pair,
    task::{AggregatorRole, AggregatorTask, TaskSet},
    web,
};
use url::Url;

use crate::{
    config::{Aggregators, Config, Place, Remote},
    error::{Error, Result},
    store::Store,
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
    pub(crate) async fn start(config: &Config, store: &Store) -> Result<Self> {
        match &config.aggregators {
            Aggregators::Embedded { leader, helper } => Self::embedded(config, store, leader, helper).await,
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

    /// Has both serve a task. The same again changes nothing.
    pub(crate) async fn add(&self, set: &TaskSet) -> Result<()> {
        match &self.means {
            Means::Embedded(pair) => match pair.read().await.as_ref() {
                Some(pair) => Ok(pair.add_task(set).await?),
                None => Err(stopped()),
            },
            Means::External { leader, helper, http, folder } => {
                if leader.admin.is_none() || helper.admin.is_none() {
                    write_files(folder, set)?;
                }
                // The helper first, so that it knows what the leader speaks of.
                put(http, helper, &set.helper).await?;
                put(http, leader, &set.leader).await
            }
        }
    }

    /// Has both forget a task and its reports. Doing so twice is fine.
    pub(crate) async fn remove(&self, set: &TaskSet) -> Result<()> {
        match &self.means {
            Means::Embedded(pair) => match pair.read().await.as_ref() {
                Some(pair) => {
                    let id = &set.parameters().task_id;
                    pair.leader.remove_task(id).await?;
                    pair.helper.remove_task(id).await?;
                    Ok(())
                }
                None => Err(stopped()),
            },
            Means::External { leader, helper, http, folder } => {
                delete(http, leader, &set.leader).await?;
                delete(http, helper, &set.helper).await?;
                remove_files(folder, set)
            }
        }
    }

    pub(crate) async fn shutdown(&self) {
        if let Means::Embedded(pair) = &self.means
            && let Some(pair) = pair.write().await.take()
        {
            pair.shutdown().await;
        }
    }

    async fn embedded(config: &Config, store: &Store, leader: &Place, helper: &Place) -> Result<Self> {
        let credentials = config.enrolment.then(|| config.data.join("credentials"));
        if let Some(path) = &credentials {
            // Nobody is enrolled until somebody is written into it.
            std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        }
        let start = |role: AggregatorRole, place: &Place, peer: Option<Url>| {
            let listen = remembered(store, &format!("{role}-listen"), place.listen);
            let config = listen.map(|listen| aggregator::Config {
                listen,
                tls: config.tls.clone(),
                allow_plaintext: config.allow_plaintext,
                peer,
                peer_root: config.root.clone(),
                credentials: credentials.clone(),
                clock: config.clock.clone(),
                request_timeout: config.request_timeout,
                ..aggregator::Config::new(role, config.data.join(role.to_string()))
            });
            async move { Ok::<_, Error>(Aggregator::start(config?).await?) }
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
                http: web::client(config.root.as_deref())?,
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
        return Err(Error::input(format!("{url} is no address that an owner could call: give the {role}'s own")));
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

async fn put(http: &reqwest::Client, remote: &Remote, task: &AggregatorTask) -> Result<()> {
    let Some(token) = &remote.admin else { return Ok(()) };
    let body = serde_json::to_vec(task).expect("task definitions are plain data");
    let request = http.put(address(remote, task)?).bearer_auth(token.as_str()).body(body);
    let whose = task.role.to_string();
    let response = request.send().await.map_err(|error| web::no_answer(&whose, error))?;
    web::check(&whose, response).await?;
    Ok(())
}

async fn delete(http: &reqwest::Client, remote: &Remote, task: &AggregatorTask) -> Result<()> {
    let Some(token) = &remote.admin else { return Ok(()) };
    let whose = task.role.to_string();
    let request = http.delete(address(remote, task)?).bearer_auth(token.as_str());
    let response = request.send().await.map_err(|error| web::no_answer(&whose, error))?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let body = web::body(&whose, response).await?;
    // Removed by the same call before, whose answer did not arrive.
    if String::from_utf8_lossy(&body).contains("unrecognizedTask") {
        return Ok(());
    }
    Err(Error::unreachable(format!("the {whose} answers {} to the removal of a task", status.as_u16())))
}

fn address(remote: &Remote, task: &AggregatorTask) -> Result<Url> {
    let path = format!("uptack/tasks/{}", task.parameters.task_id);
    remote.url.join(&path).map_err(|error| Error::input(format!("{}: {error}", remote.url)))
}

/// Definitions for operators, in both forms. They are written once: a second writing would draw other keys for Janus.
fn write_files(folder: &Path, set: &TaskSet) -> Result<()> {
    let place = folder.join(set.parameters().task_id.to_string());
    if place.exists() {
        return Ok(());
    }
    let partial = place.with_extension("partial");
    set.write(&partial)?;
    set.write_for_janus(&partial)?;
    // It is the desk that collects; no operator needs its key.
    std::fs::remove_file(partial.join("collector.json"))?;
    Ok(std::fs::rename(&partial, &place)?)
}

fn remove_files(folder: &Path, set: &TaskSet) -> Result<()> {
    match std::fs::remove_dir_all(folder.join(set.parameters().task_id.to_string())) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn stopped() -> Error {
    Error::unreachable("the desk is stopping")
}
