//! Asks the aggregators to serve a query's task, and later to forget it: the embedded pair directly, servers elsewhere
//! over their operator's interface, or an operator who does it by hand with files.

mod embedded;
mod external;

use uptack::card::{self, Operators};
use uptack_dap::{
    http_client,
    protocol::{AggregatorRole, TaskId},
    signed::{PublicKey, SignedCard},
    task::CollectorTask,
};
use url::Url;

use crate::{
    desk::{
        config::{AggregatorsConfig, Config},
        store::Store,
    },
    error::{Error, Result},
};
use embedded::{EmbeddedPair, PairSettings};
use external::RemoteServers;

/// The two aggregators, wherever they are.
pub(crate) struct Provisioner {
    addresses: Addresses,
    operators: Operators,
    /// Who signs the cards.
    signer: PublicKey,
    means: Means,
}

/// Where owners reach the aggregators.
struct Addresses {
    leader: Url,
    helper: Url,
}

enum Means {
    Embedded(Box<EmbeddedPair>),
    External(Box<RemoteServers>),
}

impl Provisioner {
    /// Starts the embedded pair, or makes ready to call the servers elsewhere.
    pub(crate) async fn start(config: &Config, store: &Store, signer: PublicKey) -> Result<Self> {
        match &config.aggregators {
            AggregatorsConfig::Embedded { leader, helper } => {
                let settings = PairSettings::prepare(config, store, signer)?;
                let (pair, addresses) = settings.start(leader, helper).await?;
                Ok(Self { addresses, operators: Operators::One, signer, means: Means::Embedded(Box::new(pair)) })
            }
            AggregatorsConfig::External { leader, helper, one_operator } => {
                let (servers, addresses) = RemoteServers::new(config, leader, helper)?;
                let operators = if *one_operator { Operators::One } else { Operators::Two };
                Ok(Self { addresses, operators, signer, means: Means::External(Box::new(servers)) })
            }
        }
    }

    /// The addresses, as a card names them.
    pub(crate) fn on_card(&self) -> card::Aggregators {
        card::Aggregators { leader: self.leader().to_string(), helper: self.helper().to_string() }
    }

    pub(crate) fn leader(&self) -> &Url {
        &self.addresses.leader
    }

    pub(crate) fn helper(&self) -> &Url {
        &self.addresses.helper
    }

    pub(crate) fn operators(&self) -> Operators {
        self.operators
    }

    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self.means, Means::Embedded(_))
    }

    /// Asks both to serve the task of a card. Asking twice changes nothing.
    ///
    /// Both get the signed card and the collector's public key; the leader also gets the hash of the collector's token.
    /// They compute the rest of the task themselves, and share their own secrets with each other alone.
    pub(crate) async fn add(&self, card: &SignedCard, collector: &CollectorTask) -> Result<()> {
        match &self.means {
            Means::Embedded(pair) => pair.add(card, collector).await,
            Means::External(servers) => servers.add(card, collector).await,
        }
    }

    /// Asks both to forget a task and its reports. Asking twice changes nothing.
    pub(crate) async fn remove(&self, task: &TaskId) -> Result<()> {
        match &self.means {
            Means::Embedded(pair) => pair.remove(task).await,
            Means::External(servers) => servers.remove(task).await,
        }
    }

    /// Asks one of them to forget a task.
    pub(crate) async fn remove_from(&self, role: AggregatorRole, task: &TaskId) -> Result<()> {
        match &self.means {
            Means::Embedded(pair) => pair.remove_from(role, task).await,
            Means::External(servers) => servers.server(role).delete(task).await,
        }
    }

    /// The tasks of this desk's cards that one of them serves; `None` if it does not say.
    pub(crate) async fn tasks(&self, role: AggregatorRole) -> Result<Option<Vec<TaskId>>> {
        match &self.means {
            Means::Embedded(pair) => pair.tasks(role, &self.signer).await.map(Some),
            Means::External(servers) => servers.server(role).tasks(&self.signer).await,
        }
    }

    /// How many reports of a task the leader holds; none if it does not say.
    pub(crate) async fn count_reports(&self, task: &TaskId) -> Result<Option<u64>> {
        match &self.means {
            Means::Embedded(pair) => pair.count_reports(task).await,
            Means::External(servers) => servers.count_reports(task).await,
        }
    }

    /// Makes an embedded pair read its certificate again.
    pub(crate) async fn reload_certificates(&self) {
        if let Means::Embedded(pair) = &self.means {
            pair.reload_certificates().await;
        }
    }

    /// Health and counters of an embedded pair, below `leader` and `helper`.
    pub(crate) async fn operations(&self) -> axum::Router {
        match &self.means {
            Means::Embedded(pair) => pair.operations().await,
            Means::External(_) => axum::Router::new(),
        }
    }

    pub(crate) async fn shutdown(&self) {
        if let Means::Embedded(pair) = &self.means {
            pair.shutdown().await;
        }
    }
}

/// The address of a server as a base for the paths of its resources.
fn base_address(url: &Url) -> Result<Url> {
    if url.cannot_be_a_base() || !matches!(url.scheme(), "http" | "https") {
        return Err(Error::input(format!("`{url}` is not an http or https address")));
    }
    let mut base = url.clone();
    http_client::make_base(&mut base);
    Ok(base)
}
