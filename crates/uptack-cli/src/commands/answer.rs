//! `uptack answer`

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use uptack_dap::credential::OwnerSecret;
use uptack_owner::attributes::Attributes;
use uptack_owner::client::{Outcome, Status};

use crate::failure::Failure;
use crate::output::{Table, print, print_json, read_small_file};
use crate::owner::OwnerArguments;

/// Answer the open queries of a desk as one owner
///
/// Every card is verified here before a coin is tossed: its signature, each of its claims, and the policy's limits.
/// Whoever accepts sends exactly one report of a fixed size, whatever the truth.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack answer --desk http://127.0.0.1:8470/ --policy policy.toml \\
    --data ledger --attributes me.json
  uptack answer --desk https://desk.example/ --policy policy.toml \\
    --data ledger --attributes me.json --every 5m")]
pub(crate) struct Arguments {
    #[command(flatten)]
    owner: OwnerArguments,
    /// What the owner knows of itself: a JSON object, read here and sent nowhere
    #[arg(long)]
    attributes: PathBuf,
    /// A file with the owner's secret as `uptack enrol` writes it, where enrolment is required
    #[arg(long)]
    credential: Option<PathBuf>,
}

/// The name of the one owner in its own ledger.
const SELF: &str = "self";

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let text = read_small_file(&arguments.attributes)?;
    let attributes =
        Attributes::from_json(&text).map_err(|error| Failure::from(error).at(arguments.attributes.display()))?;
    let mut credentials = HashMap::new();
    if let Some(path) = &arguments.credential {
        let text = read_small_file(path)?;
        let secret = text.trim().parse::<OwnerSecret>().map_err(|error| Failure::from(error).at(path.display()))?;
        credentials.insert(SELF.to_owned(), secret);
    }
    let owners = [(SELF.to_owned(), attributes)];
    arguments.owner.answer(&owners, credentials, |outcomes| {
        if json {
            print_json(&outcomes.iter().map(outcome_json).collect::<Vec<_>>())?;
        } else {
            print(&describe(outcomes))?;
        }
        // An owner that refuses does as it is told; that a report is lost is a failure.
        let lost = outcomes.iter().filter(|outcome| outcome.status == Status::Failed).count();
        if lost == 0 {
            return Ok(());
        }
        Err(Failure::environment(format!("{lost} of the reports did not arrive; what they cost stays spent")))
    })
}

fn outcome_json(outcome: &Outcome) -> Value {
    json!({"query": outcome.query, "status": outcome.status.word(), "reason": outcome.reason})
}

fn describe(outcomes: &[Outcome]) -> String {
    if outcomes.is_empty() {
        return "The desk has no open query.\n".to_owned();
    }
    let mut table = Table::new(&["query", "status", "reason"]);
    for outcome in outcomes {
        let reason = outcome.reason.clone().unwrap_or_default();
        table.row([outcome.query.clone(), outcome.status.word().to_owned(), reason]);
    }
    table.render()
}
