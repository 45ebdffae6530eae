//! `uptack ledger`

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use uptack::card::Timestamp;
use uptack::display::{self, Rounding};
use uptack_owner::ledger::{Entry, Ledger, Spent};

use crate::failure::Failure;
use crate::output::{Table, print, print_json};

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

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    if !arguments.data.join("ledger.sqlite3").exists() {
        return Err(Failure::request(format!("{}: no ledger is there", arguments.data.display()))
            .with_hint("`uptack answer --data` makes one"));
    }
    let ledger = Ledger::open(&arguments.data)?;
    let is_shown = |owner: &str| arguments.owner.as_deref().is_none_or(|name| name == owner);
    let entries: Vec<Entry> = ledger.entries()?.into_iter().filter(|entry| is_shown(&entry.owner)).collect();
    let spent: Vec<Spent> = ledger.spent()?.into_iter().filter(|spent| is_shown(&spent.owner)).collect();
    if json {
        return print_json(&json!({
            "entries": entries.iter().map(entry_json).collect::<Vec<_>>(),
            "budgets": spent.iter().map(spent_json).collect::<Vec<_>>(),
        }));
    }
    print(&describe(&entries, &spent))
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
    let mut answered = Table::new(&["query", "owner", "charged", "state"]);
    for entry in entries {
        let cells = [&entry.query, &entry.owner, &moment(entry.charged), entry.state.word()].map(str::to_owned);
        answered.row(cells);
    }
    let mut budgets = Table::new(&["budget", "owner", "ε", "δ", "spent", "queries"]);
    for spent in spent {
        budgets.row([
            spent.view.clone(),
            spent.owner.clone(),
            display::claim(spent.epsilon),
            display::claim(spent.delta),
            display::percent(spent.fraction, 1, Rounding::Up),
            spent.queries.to_string(),
        ]);
    }
    format!("{}\n{}", answered.render(), budgets.render())
}
