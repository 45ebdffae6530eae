//! How a desk runs.

use std::{net::SocketAddr, path::PathBuf, time::Duration};
use uptack_dap::{address::Origin, clock::Clock, listing, token::Token};
use url::Url;

use crate::base::listener::ConnectionLimits;

/// How a desk runs. [`Config::new`] gives defaults for everything but the directory.
#[derive(Debug, Clone)]
pub struct Config {
    /// Directory of everything the desk keeps: its state, its signing key, the analysts' tokens, the embedded pair.
    pub data: PathBuf,
    /// Address to listen on. Without one, that of the last run, or at first a free port on loopback.
    pub listen: Option<SocketAddr>,
    /// Certificate chain and key, in PEM files; for the embedded pair, too.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Listen without TLS on more than loopback, because a proxy in front does TLS.
    pub allow_plaintext: bool,
    /// An additional root certificate for calls to the aggregators, in a PEM file.
    pub root: Option<PathBuf>,
    /// Who adds up the answers.
    pub aggregators: AggregatorsConfig,
    /// Only enrolled owners may answer, each once. The embedded leader reads their public keys from the file
    /// `credentials`, one per line; a leader elsewhere has a list of its own, and refuses the cards if it has none.
    pub enrolment: bool,
    /// Origins of web pages that may read the cards of open queries, and call the embedded pair; none by default.
    pub allowed_origins: Vec<Origin>,
    /// The time of day.
    pub clock: Clock,
    /// How long after a query's close the last reports may still come in before the batch is collected.
    pub grace: Duration,
    /// How long a request may take to arrive.
    pub request_timeout: Duration,
    /// Connections at once; half of them may be streams.
    pub max_connections: usize,
    /// Connections at once from one address; by default a quarter of all. Behind a proxy all come from one address.
    pub max_connections_per_address: Option<usize>,
    /// Where health and counters are shown, without TLS and to everyone who can reach it. Without one, the address of
    /// the last run, or at first a free port on loopback.
    pub operations: Option<SocketAddr>,
    /// Queries that are open or waiting to be, at once.
    pub max_queries: usize,
    /// Requests of one analyst that open queries, within ten minutes. Owners check every card that is opened.
    pub requests_per_analyst: usize,
    /// How often the aggregators' tasks are compared with the desk's, to notice a state that is an older copy.
    pub compare_every: Duration,
}

/// Who adds up the answers.
#[derive(Debug, Clone)]
pub enum AggregatorsConfig {
    /// Both in this process, below the desk's directory.
    Embedded {
        /// Where the leader listens.
        leader: EmbeddedAddress,
        /// Where the helper listens.
        helper: EmbeddedAddress,
    },
    /// Two servers elsewhere.
    External {
        /// The leader.
        leader: Remote,
        /// The helper.
        helper: Remote,
        /// One operator runs both; the cards then say so.
        one_operator: bool,
    },
}

/// Where an embedded aggregator listens. Cards name its address, so it is kept from run to run.
#[derive(Debug, Clone, Default)]
pub struct EmbeddedAddress {
    /// Where to listen. Without one, that of the last run, or at first a free port on loopback.
    pub listen: Option<SocketAddr>,
    /// The address that owners reach it by, if that differs.
    pub url: Option<Url>,
}

/// An aggregator elsewhere.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Its address.
    pub url: Url,
    /// The token that lets us add and remove tasks there. Without one, the definitions are written into files for the
    /// operator.
    pub admin: Option<Token>,
}

impl Config {
    /// Defaults: loopback, the embedded pair, two seconds of grace.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            listen: None,
            tls: None,
            allow_plaintext: false,
            root: None,
            aggregators: AggregatorsConfig::Embedded {
                leader: EmbeddedAddress::default(),
                helper: EmbeddedAddress::default(),
            },
            enrolment: false,
            allowed_origins: Vec::new(),
            clock: Clock::system(),
            grace: Duration::from_secs(2),
            request_timeout: Duration::from_secs(30),
            max_connections: 4096,
            max_connections_per_address: None,
            operations: None,
            max_queries: listing::MOST_QUERIES,
            requests_per_analyst: 20,
            compare_every: Duration::from_secs(60),
        }
    }

    /// The limits of the listeners.
    pub(crate) fn limits(&self) -> ConnectionLimits {
        ConnectionLimits::new(self.max_connections, self.max_connections_per_address, self.request_timeout)
    }
}
