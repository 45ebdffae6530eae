//! `uptack ledger`

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use uptack::card::Timestamp;
use uptack::display::{self, Rounding};
use uptack_owner::ledger::{Entry, Ledger, Spent};

use crate::failure::{Failure, Result};
use crate::output::{Table, print_result};

/// Show what an owner answered, and what is left of the budget
///
/// The ledger holds neither truths nor answers.
#[derive(Args)]
#[command(after_help = "Example:
  uptack ledger --data ledger")]
pub(crate) struct Arguments {
    /// The folder of the ledger
    #[arg(long)]
    data: PathBuf,
    /// Only this owner of a fleet
    #[arg(long)]
    owner: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    let ledger = open(&arguments.data)?;
    let (mut entries, mut spent) = (ledger.entries()?, ledger.spent()?);
    if let Some(owner) = &arguments.owner {
        entries.retain(|entry| entry.owner == *owner);
        spent.retain(|spent| spent.owner == *owner);
    }
    print_result(json, &document(&entries, &spent), || describe(&entries, &spent))
}

/// Opens a ledger that exists.
fn open(folder: &Path) -> Result<Ledger> {
    if !folder.join("ledger.sqlite3").exists() {
        return Err(Failure::request(format!("{}: no ledger is there", folder.display()))
            .with_hint("`uptack answer --data` makes one"));
    }
    Ok(Ledger::open(folder)?)
}

fn document(entries: &[Entry], spent: &[Spent]) -> Value {
    json!({
        "entries": entries.iter().map(entry_json).collect::<Vec<_>>(),
        "budgets": spent.iter().map(spent_json).collect::<Vec<_>>(),
    })
}

fn moment(seconds: u64) -> String {
    Timestamp::from_seconds(seconds).map_or_else(|_| seconds.to_string(), |moment| moment.to_string())
}

fn entry_json(entry: &Entry) -> Value {
    json!({
        "owner": entry.owner,
        "query": entry.query,
        "charged": moment(entry.charged),
        "closes": moment(entry.closes),
        "state": entry.state.word(),
    })
}

fn spent_json(spent: &Spent) -> Value {
    json!({
        "owner": spent.owner,
        "view": spent.view,
        "epsilon": spent.epsilon,
        "delta": spent.delta,
        "spent": spent.fraction,
        "queries": spent.queries,
    })
}

fn describe(entries: &[Entry], spent: &[Spent]) -> String {
    let answered = Table::new(&["query", "owner", "charged", "state"]).with_rows(entries.iter().map(entry_row));
    let budgets = Table::new(&["budget", "owner", "ε", "δ", "spent", "queries"]).with_rows(spent.iter().map(spent_row));
    format!("{}\n{}", answered.render(), budgets.render())
}

fn entry_row(entry: &Entry) -> [String; 4] {
    [&entry.query, &entry.owner, &moment(entry.charged), entry.state.word()].map(str::to_owned)
}

fn spent_row(spent: &Spent) -> [String; 6] {
    [
        spent.view.clone(),
        spent.owner.clone(),
        display::claim(spent.epsilon),
        display::claim(spent.delta),
        display::percent(spent.fraction, 1, Rounding::Up),
        spent.queries.to_string(),
    ]
}
