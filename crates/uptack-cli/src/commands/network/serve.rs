//! `uptack serve` and `uptack backup`: a desk, and copies of the state of a server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use uptack_dap::address::Origin;
use uptack_owner::ledger;
use uptack_server::aggregator;
use uptack_server::base::logging;
use uptack_server::desk::config::{AggregatorsConfig, EmbeddedAddress, Remote};
use uptack_server::desk::{self, Config, Desk};
use url::Url;

use super::{TlsArguments, block_on, read_token};
use crate::arguments::{address, origin, size, socket};
use crate::failure::{Failure, Result};
use crate::output::print_result;

/// The options of aggregators in this process. Where one of them is given, the parser does not ask for `--leader`, so options
/// that need it have to refuse these themselves.
const OF_THIS_PROCESS: [&str; 4] = ["leader_listen", "helper_listen", "leader_url", "helper_url"];

/// Run a desk, which opens and collects queries; both aggregators run in its process unless they run elsewhere
///
/// With both aggregators in one process, whoever runs it can see every answer, and the cards say so. Once it accepts
/// requests, it prints its address, its key and a link for signing in with a browser. It logs to stderr and shuts down
/// cleanly on Ctrl-C; on a hangup signal it rereads its certificate. Addresses stay the same from run to run.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack serve --data desk
  uptack serve --data desk --listen 127.0.0.1:8080 \\
    --leader-listen 127.0.0.1:8081 --helper-listen 127.0.0.1:8082
  uptack serve --data desk --leader https://leader.example/ \\
    --helper https://helper.example/ --leader-admin leader.token \\
    --helper-admin helper.token
  uptack serve --data desk --listen 0.0.0.0:443 --certificate chain.pem \\
    --key key.pem --leader https://leader.example/ \\
    --helper https://helper.example/")]
pub(crate) struct ServeArguments {
    /// The folder of its state, its key and its tokens
    #[arg(long)]
    data: PathBuf,
    /// Where to listen; by default as in the last run, or on a free port of this machine
    #[arg(long, value_parser = socket)]
    listen: Option<SocketAddr>,
    /// The leader's address, if it runs elsewhere
    #[arg(long, value_name = "URL", value_parser = address, requires = "helper")]
    leader: Option<Url>,
    /// The helper's address, if it runs elsewhere
    #[arg(long, value_name = "URL", value_parser = address, requires = "leader", conflicts_with_all = OF_THIS_PROCESS)]
    helper: Option<Url>,
    /// A file with the token that lets the desk ask the leader to serve its cards; without it, files are written for
    /// the leader's operator
    #[arg(long, requires = "leader", conflicts_with_all = OF_THIS_PROCESS)]
    leader_admin: Option<PathBuf>,
    /// A file with the token that lets the desk ask the helper to serve its cards
    #[arg(long, requires = "helper", conflicts_with_all = OF_THIS_PROCESS)]
    helper_admin: Option<PathBuf>,
    /// One operator runs both leader and helper; the cards then say so
    #[arg(long, requires = "leader", conflicts_with_all = OF_THIS_PROCESS)]
    one_operator: bool,
    /// Where the leader in this process listens
    #[arg(long, conflicts_with = "leader", value_parser = socket)]
    leader_listen: Option<SocketAddr>,
    /// Where the helper in this process listens
    #[arg(long, conflicts_with = "leader", value_parser = socket)]
    helper_listen: Option<SocketAddr>,
    /// The address at which owners reach the leader in this process, if it differs
    #[arg(long, value_name = "URL", value_parser = address, conflicts_with = "leader")]
    leader_url: Option<Url>,
    /// The address at which owners reach the helper in this process, if it differs
    #[arg(long, value_name = "URL", value_parser = address, conflicts_with = "leader")]
    helper_url: Option<Url>,
    /// Only enrolled owners may answer, each once: those whose keys are in DATA/credentials, or in the list of a leader
    /// elsewhere
    #[arg(long)]
    enrolment: bool,
    /// A web page that may read the cards of open queries, and upload to aggregators in this process: its scheme, host and
    /// port. May be given several times; by default none
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    allow_origin: Vec<Origin>,
    #[command(flatten)]
    tls: TlsArguments,
    /// An additional root certificate for the aggregators' TLS, as PEM
    #[arg(long)]
    root: Option<PathBuf>,
    /// Listen on other addresses than loopback without TLS, because a proxy in front provides it
    #[arg(long)]
    allow_plaintext: bool,
    /// The address that serves health and counters, without TLS and to anyone who can reach it; by default as in the last run, or on
    /// a free port of this machine
    #[arg(long, value_parser = socket)]
    operations: Option<SocketAddr>,
    /// The largest number of simultaneous connections
    #[arg(long, default_value = "4096", value_parser = size)]
    connections: usize,
    /// The largest number of simultaneous connections from one address; by default a quarter of all. Behind a proxy, all
    /// connections come from one address
    #[arg(long, value_parser = size)]
    connections_per_address: Option<usize>,
    /// The largest number of queries that are open or waiting to open at the same time
    #[arg(long, default_value = "10000", value_parser = size)]
    queries: usize,
    /// The largest number of requests with which one analyst opens queries within ten minutes
    #[arg(long, value_name = "N", default_value = "20")]
    requests_per_analyst: usize,
    /// Log in more detail
    #[arg(long)]
    verbose: bool,
}

impl ServeArguments {
    fn config(&self) -> Result<Config> {
        Ok(Config {
            listen: self.listen,
            tls: self.tls.files(),
            allow_plaintext: self.allow_plaintext,
            root: self.root.clone(),
            aggregators: self.aggregators()?,
            enrolment: self.enrolment,
            allowed_origins: self.allow_origin.clone(),
            operations: self.operations,
            max_connections: self.connections,
            max_connections_per_address: self.connections_per_address,
            max_queries: self.queries,
            requests_per_analyst: self.requests_per_analyst,
            ..Config::new(&self.data)
        })
    }

    /// The addresses to listen on, as far as they were given.
    fn listening(&self) -> impl Iterator<Item = SocketAddr> {
        [self.listen, self.leader_listen, self.helper_listen].into_iter().flatten()
    }

    fn aggregators(&self) -> Result<AggregatorsConfig> {
        let (Some(leader), Some(helper)) = (&self.leader, &self.helper) else {
            return Ok(self.embedded_aggregators());
        };
        Ok(AggregatorsConfig::External {
            leader: remote(leader, self.leader_admin.as_deref())?,
            helper: remote(helper, self.helper_admin.as_deref())?,
            one_operator: self.one_operator,
        })
    }

    fn embedded_aggregators(&self) -> AggregatorsConfig {
        AggregatorsConfig::Embedded {
            leader: EmbeddedAddress { listen: self.leader_listen, url: self.leader_url.clone() },
            helper: EmbeddedAddress { listen: self.helper_listen, url: self.helper_url.clone() },
        }
    }
}

fn remote(url: &Url, admin: Option<&Path>) -> Result<Remote> {
    Ok(Remote { url: url.clone(), admin: admin.map(read_token).transpose()? })
}

pub(crate) fn run_serve(arguments: &ServeArguments, json: bool) -> Result<()> {
    arguments.tls.check_exposure(arguments.listening(), arguments.allow_plaintext)?;
    let config = arguments.config()?;
    logging::init_verbose(arguments.verbose);
    block_on(desk::run(config, |desk| {
        // Perhaps nobody reads the address; the server runs all the same.
        let sign_in = desk.sign_in_link().ok().flatten();
        let _ = print_result(json, &document(desk, sign_in.as_ref()), || describe(desk, sign_in.as_ref()));
    }))
}

/// `sign_in` is a link for the first analyst's browser; without it, the token is needed to sign in.
fn document(desk: &Desk, sign_in: Option<&Url>) -> Value {
    json!({
        "address": desk.url(),
        "signer": desk.signer().to_string(),
        "leader": desk.leader_url(),
        "helper": desk.helper_url(),
        "token": desk.first_token(),
        "operations": desk.operations_url(),
        "sign_in": sign_in,
    })
}

fn describe(desk: &Desk, sign_in: Option<&Url>) -> String {
    let sign_in = sign_in.map(|link| format!("sign in once, within an hour: {link}\n")).unwrap_or_default();
    format!(
        "listening on {}\nsigning with {}\nleader {}, helper {}\nhealth and counters on {}\n{sign_in}",
        desk.url(),
        desk.signer(),
        desk.leader_url(),
        desk.helper_url(),
        desk.operations_url()
    )
}

/// Copy the state of a desk or an aggregator, even while it runs
///
/// The copy is consistent, checked, and readable by your account only: it holds keys and tokens. To start a server from
/// it, name it as --data. SECURITY.md says what a restored server has forgotten, and what that breaks. An owner's ledger
/// is not copied: a restored one would have forgotten what was spent.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack backup desk desk-backup
  uptack backup leader-state leader-backup")]
pub(crate) struct BackupArguments {
    /// The folder of the state, as given to `uptack serve` or `uptack aggregator` with --data
    data: PathBuf,
    /// The folder to create; it must not exist yet
    out: PathBuf,
}

pub(crate) fn run_backup(BackupArguments { data, out }: &BackupArguments, json: bool) -> Result<()> {
    let kind = copy(data, out)?;
    let document = json!({"kind": kind, "out": out});
    print_result(json, &document, || format!("the {kind}'s state is copied to {}\n", out.display()))
}

/// Copies the state and returns whose it is.
fn copy(data: &Path, out: &Path) -> Result<&'static str> {
    if data.join(desk::STATE_FILE).exists() {
        desk::back_up(data, out)?;
        return Ok("desk");
    }
    if data.join(aggregator::STATE_FILE).exists() {
        aggregator::back_up(data, out)?;
        return Ok("aggregator");
    }
    Err(not_copied(data))
}

/// Why a folder with neither state is not copied.
fn not_copied(data: &Path) -> Failure {
    let place = data.display();
    if data.join(ledger::STATE_FILE).exists() {
        return Failure::request(format!(
            "{place} is an owner's ledger: restored from a copy it would have forgotten what was spent, and the owner \
             could answer a query twice with fresh coins"
        ))
        .with_hint("a lost ledger is replaced by a new one with a smaller budget");
    }
    Failure::request(format!("{place}: it holds no state of a desk or an aggregator"))
        .with_hint("name the folder that the server was given with --data")
}
