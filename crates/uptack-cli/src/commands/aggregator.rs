//! `uptack aggregator`

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;
use uptack_dap::origin::Origin;
use uptack_dap::task::AggregatorRole;
use uptack_server::aggregator::Admission;
use uptack_server::aggregator::{self, Aggregator, Config};
use uptack_server::base::logging;
use url::Url;

use crate::admission::AdmissionArguments;
use crate::arguments::{address, origin};
use crate::desk::read_token;
use crate::failure::Result;
use crate::output::print_result;
use crate::runtime::block_on;
use crate::tls_arguments::TlsArguments;

/// Run one of the two aggregators of the private write (DAP-09)
///
/// It serves the tasks of cards that a desk whose key you pin has signed, and computes every parameter of a task from
/// its card: nobody who adds tasks, a desk with the admin token included, can lower a minimum batch. Tasks come over
/// HTTP with the admin token, or from DATA/tasks/*.json. It prints its address once it takes requests, logs to stderr,
/// and ends in order on Ctrl-C; a hangup signal has it read its certificate again.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack aggregator --role helper --data helper-state --listen 127.0.0.1:9002 \\
    --desk-key ed25519:… --pair-secret pair.secret --admin-token admin.token
  uptack aggregator --role leader --data state --listen 0.0.0.0:443 \\
    --certificate chain.pem --key key.pem --desk-key ed25519:… \\
    --pair-secret pair.secret --smallest-batch 1000
  uptack aggregator --role helper --data helper-state --allow-tasks-without-card")]
pub(crate) struct Arguments {
    /// Which of the two
    #[arg(long, value_enum)]
    role: RoleArgument,
    /// The folder of its state
    #[arg(long)]
    data: PathBuf,
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where the leader reaches the helper, in place of the address in its tasks
    #[arg(long, value_name = "URL", value_parser = address)]
    peer: Option<Url>,
    /// A further root certificate for the helper's TLS, as PEM
    #[arg(long)]
    peer_root: Option<PathBuf>,
    /// A web page that may fetch keys and, from a leader, upload reports: its scheme, host and port. May be given several
    /// times; by default none
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    allow_origin: Vec<Origin>,
    #[command(flatten)]
    tls: TlsArguments,
    /// Listen elsewhere than on loopback without TLS, because something in front does it
    #[arg(long)]
    allow_plaintext: bool,
    #[command(flatten)]
    admission: AdmissionArguments,
    /// Serve DAP tasks that no signed card defines, too; whoever may add tasks then decides their minimum batch
    #[arg(long)]
    allow_tasks_without_card: bool,
    /// A file with the token that lets you, or a desk that you give it to, add and remove tasks over HTTP
    #[arg(long)]
    admin_token: Option<PathBuf>,
    /// Leader: the public keys of the enrolled owners, one per line, for cards that require enrolment
    #[arg(long)]
    credentials: Option<PathBuf>,
    /// Take no more reports while the state is larger than this many MiB
    #[arg(long)]
    max_store: Option<u64>,
    /// Where health and counters are shown, without TLS and to whoever can reach it
    #[arg(long, default_value = "127.0.0.1:0")]
    operations: SocketAddr,
    /// Connections at once
    #[arg(long, default_value = "1024")]
    connections: usize,
    /// Connections at once from one address; by default a quarter of all. Behind a proxy all come from one
    #[arg(long)]
    connections_per_address: Option<usize>,
    /// Log in more detail
    #[arg(long)]
    verbose: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleArgument {
    /// Takes reports, drives the aggregation, answers the collector
    Leader,
    /// Holds the other half of every report
    Helper,
}

impl From<RoleArgument> for AggregatorRole {
    fn from(argument: RoleArgument) -> Self {
        match argument {
            RoleArgument::Leader => Self::Leader,
            RoleArgument::Helper => Self::Helper,
        }
    }
}

impl Arguments {
    fn config(&self) -> Result<Config> {
        Ok(Config {
            admin_token: self.admin_token.as_deref().map(read_token).transpose()?,
            admission: self.admission()?,
            listen: self.listen,
            peer: self.peer.clone(),
            peer_root: self.peer_root.clone(),
            tls: self.tls.files(),
            allow_plaintext: self.allow_plaintext,
            credentials: self.credentials.clone(),
            allowed_origins: self.allow_origin.clone(),
            operations: Some(self.operations),
            max_connections: self.connections,
            max_connections_per_address: self.connections_per_address,
            max_store_bytes: self.max_store.map(|mebibytes| mebibytes.saturating_mul(1 << 20)),
            ..Config::new(self.role.into(), &self.data)
        })
    }

    fn admission(&self) -> Result<Admission> {
        Ok(Admission { allow_tasks_without_card: self.allow_tasks_without_card, ..self.admission.read()? })
    }
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    arguments.tls.check_exposure([arguments.listen], arguments.allow_plaintext)?;
    let config = arguments.config()?;
    let role = config.role;
    logging::init_verbose(arguments.verbose);
    block_on(aggregator::run(config, |aggregator| {
        // Perhaps nobody reads the address; the server runs all the same.
        let _ = announce(aggregator, role, json);
    }))
}

fn announce(aggregator: &Aggregator, role: AggregatorRole, json: bool) -> Result<()> {
    let (address, operations) = (aggregator.url(), aggregator.operations_url());
    let document = json!({"role": role.to_string(), "address": address, "operations": operations});
    print_result(json, &document, || {
        let counters = operations.map(|url| format!("health and counters on {url}\n")).unwrap_or_default();
        format!("{address}\n{counters}")
    })
}
