//! `uptack aggregator`, `uptack task` and `uptack pair-secret`: for those who run an aggregator.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;
use uptack::Channel;
use uptack::card::Card;
use uptack_dap::address::Origin;
use uptack_dap::protocol::VdafKind;
use uptack_dap::signed::PublicKey;
use uptack_dap::task::{AggregatorRole, AggregatorTask, Software, TaskParameters, TaskSet};
use uptack_dap::{ballot, private};
use uptack_server::aggregator::{self, Admission, Aggregator, Config, DeskToken, PairSecret, TaskDefinition};
use uptack_server::base::logging;
use url::Url;

use super::{AdmissionArguments, TlsArguments, block_on, read_token};
use crate::arguments::{address, count, origin, seconds, size, socket};
use crate::failure::{Failure, Result, ResultExt};
use crate::input::{LoadedMechanism, read_mechanism};
use crate::output::print_result;

/// Run one of the two aggregators of the private write (DAP-09)
///
/// It serves tasks whose cards were signed by a desk whose key you pin, and computes every parameter of a task from its
/// card: nobody who adds tasks, not even a desk with the admin token, can lower a minimum batch. Tasks arrive over HTTP
/// with the admin token or a desk's own, or from DATA/tasks/*.json. It prints its address once it accepts requests, logs to stderr, and
/// shuts down cleanly on Ctrl-C; on a hangup signal it rereads its certificate.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack aggregator --role helper --data helper-state --listen 127.0.0.1:9002 \\
    --desk-key ed25519:… --pair-secret pair.secret --admin-token admin.token
  uptack aggregator --role leader --data state --listen 0.0.0.0:443 \\
    --certificate chain.pem --key key.pem --desk-key ed25519:… \\
    --pair-secret pair.secret --smallest-batch 1000
  uptack aggregator --role helper --data helper-state --allow-tasks-without-card")]
pub(crate) struct AggregatorArguments {
    /// Which of the two to run
    #[arg(long, value_enum)]
    role: RoleArgument,
    /// The folder of its state
    #[arg(long)]
    data: PathBuf,
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0", value_parser = socket)]
    listen: SocketAddr,
    /// Where the leader reaches the helper, in place of the address in its tasks
    #[arg(long, value_name = "URL", value_parser = address)]
    peer: Option<Url>,
    /// An additional root certificate for the helper's TLS, as PEM
    #[arg(long)]
    peer_root: Option<PathBuf>,
    /// A web page that may fetch keys and, from a leader, upload reports: its scheme, host and port. May be given several
    /// times; by default none
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    allow_origin: Vec<Origin>,
    #[command(flatten)]
    tls: TlsArguments,
    /// Listen on other addresses than loopback without TLS, because a proxy in front provides it
    #[arg(long)]
    allow_plaintext: bool,
    #[command(flatten)]
    admission: AdmissionArguments,
    /// Also serve DAP tasks that no signed card defines; whoever may add tasks then decides their minimum batch
    #[arg(long)]
    allow_tasks_without_card: bool,
    /// A file with the token that lets you add and remove the tasks of all desks over HTTP
    #[arg(long)]
    admin_token: Option<PathBuf>,
    /// The key of a desk, and a file with the token that lets this desk add and remove the tasks of its own cards; may be given
    /// several times
    #[arg(long, value_name = "KEY=FILE", value_parser = desk_token)]
    desk_token: Vec<(PublicKey, PathBuf)>,
    /// Leader: the public keys of the enrolled owners, one per line, for cards that require enrolment
    #[arg(long)]
    credentials: Option<PathBuf>,
    /// Accept no more reports while the state is larger than this many MiB
    #[arg(long, value_parser = count)]
    max_store: Option<u64>,
    /// The address that serves health and counters, without TLS and to anyone who can reach it
    #[arg(long, default_value = "127.0.0.1:0", value_parser = socket)]
    operations: SocketAddr,
    /// The largest number of simultaneous connections
    #[arg(long, default_value = "1024", value_parser = size)]
    connections: usize,
    /// The largest number of simultaneous connections from one address; by default a quarter of all. Behind a proxy, all
    /// connections come from one address
    #[arg(long, value_parser = size)]
    connections_per_address: Option<usize>,
    /// Log in more detail
    #[arg(long)]
    verbose: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleArgument {
    /// Receives reports, drives the aggregation, answers the collector
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

/// Parses `KEY=FILE`.
fn desk_token(text: &str) -> std::result::Result<(PublicKey, PathBuf), String> {
    let (key, file) =
        text.split_once('=').ok_or("a desk's key and the file of its token, as KEY=FILE, are expected")?;
    let key = key.parse::<PublicKey>().map_err(|error| error.to_string())?;
    Ok((key, PathBuf::from(file)))
}

impl AggregatorArguments {
    fn config(&self) -> Result<Config> {
        Ok(Config {
            admin_token: self.admin_token.as_deref().map(read_token).transpose()?,
            desk_tokens: self.desk_tokens()?,
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

    fn desk_tokens(&self) -> Result<Vec<DeskToken>> {
        let read = |(desk, file): &(PublicKey, PathBuf)| Ok(DeskToken { desk: *desk, token: read_token(file)? });
        self.desk_token.iter().map(read).collect()
    }

    fn admission(&self) -> Result<Admission> {
        Ok(Admission { allow_tasks_without_card: self.allow_tasks_without_card, ..self.admission.read()? })
    }
}

pub(crate) fn run_aggregator(arguments: &AggregatorArguments, json: bool) -> Result<()> {
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

/// Write the definitions of a DAP task: for Janus from a desk's definition, or one file for each party of a new task
///
/// With --pair-secret, MECHANISM is a definition that a desk wrote for an operator (`provision/QUERY/leader.json`). The
/// card in it is checked as `uptack aggregator` would check it, the task's keys are derived from the secret that you
/// share with the other operator, and the file for your own Janus is written.
///
/// Without it, a new task without a card is made, which `uptack aggregator` serves only with --allow-tasks-without-card.
/// Give each file only to its party: the leader's and the helper's hold keys, and the collector's opens the result. The
/// client's holds nothing secret. A MECHANISM with `+ laplace(scale=T)` has both aggregators add that noise to every
/// batch; the files for Janus say so in its own format.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack task provision/QUERY/helper.json --for janus --out task \\
    --pair-secret pair.secret --desk-key ed25519:…
  uptack task 'normal-form(f=0.5,r=1e-4)' --leader http://127.0.0.1:9001/ \\
    --helper http://127.0.0.1:9002/ --window 5m --minimum-batch 1000 \\
    --out task
  uptack task card.toml --leader https://leader.example/ \\
    --helper https://helper.example/ --window 1h --out task
  uptack task card.toml --leader https://leader.example/ \\
    --helper https://helper.example/ --window 1h --out task --for janus
  uptack task 'randomized-response(t=0.999) + laplace(scale=1)' \\
    --leader https://leader.example/ --helper https://helper.example/ \\
    --window 1h --minimum-batch 1000 --out task --for janus-helper")]
pub(crate) struct TaskArguments {
    /// name(key=value, …), a query card, or a file that `uptack channel --json` wrote; or a desk's definition
    mechanism: String,
    #[command(flatten)]
    admission: AdmissionArguments,
    /// The leader's address
    #[arg(long, value_name = "URL", value_parser = address, conflicts_with_all = ["pair_secret", "desk_key", "smallest_batch"], required_unless_present = "pair_secret")]
    leader: Option<Url>,
    /// The helper's address
    #[arg(long, value_name = "URL", value_parser = address, conflicts_with = "pair_secret", required_unless_present = "pair_secret")]
    helper: Option<Url>,
    /// The length of a batch's time window, such as 300s, 5m or 1h
    #[arg(long, value_parser = seconds, conflicts_with = "pair_secret", required_unless_present = "pair_secret")]
    window: Option<u64>,
    /// Release nothing below this many reports; by default the card's minimum batch
    #[arg(long, value_parser = count, conflicts_with = "pair_secret")]
    minimum_batch: Option<u64>,
    /// A ballot of this many questions in one report, instead of one question
    #[arg(long, conflicts_with = "pair_secret", value_parser = size)]
    ballot: Option<usize>,
    /// The folder for the files
    #[arg(long)]
    out: PathBuf,
    /// Which aggregators the files are for
    #[arg(long = "for", value_enum, default_value = "uptack")]
    pair: PairSoftware,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PairSoftware {
    /// `uptack aggregator` for both, as JSON
    Uptack,
    /// Janus 0.7 for both, as YAML for its `provision-tasks`
    Janus,
    /// Janus for the leader, `uptack aggregator` for the helper
    JanusLeader,
    /// Janus for the helper, `uptack aggregator` for the leader
    JanusHelper,
}

impl PairSoftware {
    fn software(self) -> [Software; 2] {
        match self {
            Self::Uptack => [Software::Uptack; 2],
            Self::Janus => [Software::Janus; 2],
            Self::JanusLeader => [Software::Janus, Software::Uptack],
            Self::JanusHelper => [Software::Uptack, Software::Janus],
        }
    }

    /// The software of one role, the file for its Janus and the number of its HPKE key.
    fn part(self, role: AggregatorRole) -> (Software, &'static str, u8) {
        let [leader, helper] = self.software();
        match role {
            AggregatorRole::Leader => (leader, "leader.yaml", 1),
            AggregatorRole::Helper => (helper, "helper.yaml", 2),
        }
    }
}

pub(crate) fn run_task(arguments: &TaskArguments, json: bool) -> Result<()> {
    let (task, files) =
        if arguments.admission.has_pair_secret() { from_definition(arguments)? } else { from_mechanism(arguments)? };
    let folder = &arguments.out;
    let document = json!({"task": task, "folder": folder, "files": files});
    print_result(json, &document, || format!("task {task}\n{} in {}\n", files.join(", "), folder.display()))
}

/// The task's name and the files that were written.
type WrittenTask = (String, Vec<&'static str>);

/// Turns a definition that a desk wrote into the file for this operator's Janus.
fn from_definition(arguments: &TaskArguments) -> Result<WrittenTask> {
    let task = arguments.resolved()?;
    let (software, name, key) = arguments.pair.part(task.role);
    if software != Software::Janus {
        return Err(Failure::request(format!("there is nothing to write for an Uptack {}", task.role))
            .with_hint("put the desk's file into DATA/tasks of `uptack aggregator`, or give --for janus"));
    }
    refuse_existing(&arguments.out)?;
    private::create_folder(&arguments.out)?;
    uptack_dap::task::write_for_janus(&arguments.out.join(name), &task, key)?;
    Ok((task.parameters.task_id.to_string(), vec![name]))
}

/// Makes a task that belongs to no card, with secrets drawn here.
fn from_mechanism(arguments: &TaskArguments) -> Result<WrittenTask> {
    let named = read_mechanism(&arguments.mechanism)?;
    let set = TaskSet::generate(arguments.parameters(&named)?)?;
    refuse_existing(&arguments.out)?;
    let [leader, helper] = set.write_for(&arguments.out, arguments.pair.software())?;
    let files = vec![leader, helper, "collector.json", "client.json"];
    Ok((set.parameters().task_id.to_string(), files))
}

impl TaskArguments {
    /// The task of a definition, checked as an aggregator would check it.
    fn resolved(&self) -> Result<AggregatorTask> {
        let admission = self.admission.read()?;
        TaskDefinition::read(Path::new(&self.mechanism)).and_then(|definition| admission.resolve(&definition)).with_hint(
            "with --pair-secret, give the file that the desk wrote for your role, and the desk's key with --desk-key",
        )
    }

    fn parameters(&self, named: &LoadedMechanism) -> Result<TaskParameters> {
        let (Some(leader), Some(helper), Some(window)) = (self.leader.clone(), self.helper.clone(), self.window) else {
            unreachable!("clap requires all three without a pair secret");
        };
        let minimum_batch = self.minimum_batch(named.card.as_ref())?;
        let mut parameters = TaskParameters::new(leader, helper, self.vdaf(&named.channel), window, minimum_batch);
        parameters.noise = named.channel.noise().copied();
        Ok(parameters)
    }

    /// The smallest batch that may be released: at least the card's, because its claims are made for that.
    fn minimum_batch(&self, card: Option<&Card>) -> Result<u64> {
        match (self.minimum_batch, card.map(|card| card.minimum_batch)) {
            (Some(asked), Some(claimed)) if asked < claimed => {
                Err(Failure::request(format!("the card's claims hold only for {claimed} reports or more"))
                    .with_hint("give a minimum batch that is no smaller, or leave it out"))
            }
            (Some(minimum), _) | (None, Some(minimum)) => Ok(minimum),
            (None, None) => {
                Err(Failure::request("what is the smallest batch that may be released?")
                    .with_hint("give --minimum-batch"))
            }
        }
    }

    fn vdaf(&self, channel: &Channel) -> VdafKind {
        match (self.ballot, channel.noise()) {
            (None, _) => VdafKind::for_channel(channel),
            (Some(queries), None) => ballot::kind(queries),
            (Some(queries), Some(_)) => ballot::noisy_kind(queries),
        }
    }
}

/// The keys of a task that is in use must not be overwritten.
fn refuse_existing(folder: &Path) -> Result<()> {
    let taken =
        ["collector.json", "leader.json", "leader.yaml", "helper.yaml"].iter().find(|name| folder.join(name).exists());
    taken.map_or(Ok(()), |name| {
        Err(Failure::request(format!("{}: a task already exists here", folder.join(name).display()))
            .with_hint("give another folder; the keys of the existing task would be lost"))
    })
}

/// Draw the secret that the two aggregators of a pair share
///
/// One operator draws it and gives a copy to the other over a channel that nobody else can read. Both start their
/// aggregators with it; the keys of every task are derived from it, and no desk ever holds them.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack pair-secret pair.secret
  uptack aggregator --role leader --data leader-state \\
    --pair-secret pair.secret --desk-key ed25519:…")]
pub(crate) struct PairSecretArguments {
    /// The file to write; it must not exist yet
    file: PathBuf,
}

pub(crate) fn run_pair_secret(PairSecretArguments { file }: &PairSecretArguments, json: bool) -> Result<()> {
    PairSecret::create(file).with_hint("give another file; tasks may depend on the existing one")?;
    print_result(json, &json!({"file": file}), || format!("{}\n", file.display()))
}
