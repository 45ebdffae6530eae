//! `uptack task`

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;
use uptack_net::dap::VdafKind;
use uptack_net::task::{Software, TaskParameters, TaskSet};
use url::Url;

use crate::arguments::{count, seconds};
use crate::failure::Failure;
use crate::mechanism;
use crate::output::{print, print_json};

/// Write the definitions of a DAP task: one file for each party
///
/// Give each file to its party alone: leader and helper hold keys, the collector's opens the result. The client's holds
/// nothing secret.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack task 'normal-form(f=0.5,r=1e-4)' --leader http://127.0.0.1:9001/ --helper http://127.0.0.1:9002/ \\
    --window 5m --minimum-batch 1000 --out task
  uptack task card.toml --leader https://leader.example/ --helper https://helper.example/ --window 1h --out task
  uptack task card.toml --leader https://leader.example/ --helper https://helper.example/ --window 1h --out task \\
    --for janus")]
pub(crate) struct Arguments {
    /// name(key=value, …), a query card, or a file that `uptack channel --json` wrote
    mechanism: String,
    /// The leader's address
    #[arg(long)]
    leader: Url,
    /// The helper's address
    #[arg(long)]
    helper: Url,
    /// How long a batch's window is, such as 300s, 5m or 1h
    #[arg(long, value_parser = seconds)]
    window: u64,
    /// Below this many reports nothing is released; a card has its own
    #[arg(long, value_parser = count)]
    minimum_batch: Option<u64>,
    /// A ballot of so many queries in one report, in place of one query
    #[arg(long)]
    ballot: Option<usize>,
    /// The folder for the files
    #[arg(long)]
    out: PathBuf,
    /// Whose aggregators the files are for
    #[arg(long = "for", value_enum, default_value = "uptack")]
    pair: Pair,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pair {
    /// `uptack aggregator` for both, as JSON
    Uptack,
    /// Janus 0.7 for both, as YAML for its `provision-tasks`
    Janus,
    /// Janus for the leader, `uptack aggregator` for the helper
    JanusLeader,
    /// Janus for the helper, `uptack aggregator` for the leader
    JanusHelper,
}

impl Pair {
    fn software(self) -> [Software; 2] {
        match self {
            Self::Uptack => [Software::Uptack; 2],
            Self::Janus => [Software::Janus; 2],
            Self::JanusLeader => [Software::Janus, Software::Uptack],
            Self::JanusHelper => [Software::Uptack, Software::Janus],
        }
    }
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let named = mechanism::read(&arguments.mechanism)?;
    let card_batch = named.card.as_ref().map(|card| card.smallest_batch()).transpose()?;
    let minimum_batch = arguments.minimum_batch.or(card_batch).ok_or_else(|| {
        Failure::request("what is the smallest batch that may be released?").with_hint("give --minimum-batch")
    })?;
    if card_batch.is_some_and(|card_batch| minimum_batch < card_batch) {
        return Err(Failure::request(format!("the card's claims hold from {} reports on", card_batch.unwrap_or(0)))
            .with_hint("give a minimum batch that is no smaller, or leave it out"));
    }
    let vdaf = match arguments.ballot {
        None => VdafKind::for_channel(&named.channel),
        Some(queries) => uptack_net::ballot::kind(queries),
    };
    let (leader, helper) = (arguments.leader.clone(), arguments.helper.clone());
    let set = TaskSet::generate(TaskParameters::new(leader, helper, vdaf, arguments.window, minimum_batch))?;
    refuse_existing(&arguments.out)?;
    let [leader, helper] = set.write_for(&arguments.out, arguments.pair.software())?;
    let files = [leader, helper, "collector.json", "client.json"];
    let task = set.parameters().task_id.to_string();
    if json {
        return print_json(&json!({"task": task, "folder": arguments.out, "files": files}));
    }
    print(&format!("task {task}\n{} in {}\n", files.join(", "), arguments.out.display()))
}

/// Keys of a task that is in use must not be lost to a second call.
fn refuse_existing(folder: &Path) -> Result<(), Failure> {
    let taken = ["collector.json", "leader.json", "leader.yaml"].iter().find(|name| folder.join(name).exists());
    taken.map_or(Ok(()), |name| {
        Err(Failure::request(format!("{}: there is a task already", folder.join(name).display()))
            .with_hint("give another folder; its keys would be lost"))
    })
}
