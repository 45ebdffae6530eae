//! `uptack fleet`

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use uptack_dap::credential::OwnerSecret;
use uptack_owner::attributes::Named;
use uptack_owner::check::Accepted;
use uptack_owner::client::{Config, Outcome};

use crate::failure::{Failure, Result, ResultExt};
use crate::input::{read_file, without_mark};
use crate::output::{Table, grouped, print_result};
use crate::owner::{self, OwnerArguments, read_fleet};

/// Answer the open queries of a desk as many owners in one process
///
/// Each owner has a ledger, coins and a report of its own. The CSV has a header; a column `owner` names the owners, and
/// every other column is an attribute: text, or typed as in `speed:double`, `lane:int`, `taxi:bool`.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack fleet vehicles.csv --desk http://127.0.0.1:8470/ \\
    --policy policy.toml --data fleet
  uptack fleet vehicles.csv --desk http://127.0.0.1:8470/ \\
    --policy policy.toml --data fleet --within 10s --json

Exits with 1 if all owners refuse, and with 2 if no report arrives.")]
pub(crate) struct Arguments {
    /// The owners and their attributes
    owners: PathBuf,
    #[command(flatten)]
    owner: OwnerArguments,
    /// A CSV `owner,secret` as `uptack enrol` writes it, where enrolment is required
    #[arg(long)]
    credentials: Option<PathBuf>,
    /// The column, of type bool, that says what each owner answers where a card asks the person
    #[arg(long, value_name = "COLUMN")]
    truth: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    let owners = arguments.owners()?;
    let credentials = arguments.credentials.as_deref().map(read_credentials).transpose()?.unwrap_or_default();
    let config = |config: Config| Config { credentials, ..config };
    let nobody = |questions: &[Arc<Accepted>]| Ok(vec![None; questions.len()]);
    arguments.owner.answer(&owners, config, nobody, |outcomes| {
        let summary = Summary::of(outcomes);
        print_result(json, &summary.json(owners.len()), || summary.describe(owners.len()))?;
        owner::conclude(outcomes)
    })
}

impl Arguments {
    /// The owners, each answering for the person by the column that says so.
    fn owners(&self) -> Result<Vec<Named>> {
        let owners = read_fleet(&self.owners)?;
        let Some(column) = &self.truth else { return Ok(owners) };
        Ok(owners.into_iter().map(|(name, known)| (name, known.speaking_by(column))).collect())
    }
}

fn read_credentials(path: &Path) -> Result<HashMap<String, OwnerSecret>> {
    let text = without_mark(read_file(path)?);
    let lines = text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| parse_credential(line).at(format!("{}: line {}", path.display(), index + 1))).collect()
}

/// One line `owner,secret`.
fn parse_credential(line: &str) -> Result<(String, OwnerSecret)> {
    let (owner, secret) = line.trim().rsplit_once(',').ok_or_else(|| {
        Failure::request("not `owner,secret`").with_hint("`uptack enrol --credentials` writes such a file")
    })?;
    Ok((owner.to_owned(), secret.parse()?))
}

/// How many owners did what, by query and reason.
struct Summary(BTreeMap<(String, &'static str, Option<String>), u64>);

impl Summary {
    fn of(outcomes: &[Outcome]) -> Self {
        let mut counts = BTreeMap::new();
        for outcome in outcomes {
            let key = (outcome.query.clone(), outcome.status.word(), outcome.reason.clone());
            *counts.entry(key).or_insert(0) += 1;
        }
        Self(counts)
    }

    fn json(&self, owners: usize) -> Value {
        let rows = self.0.iter().map(|((query, status, reason), count)| {
            json!({"query": query, "status": status, "reason": reason, "owners": count})
        });
        json!({"owners": owners, "outcomes": rows.collect::<Vec<_>>()})
    }

    fn describe(&self, owners: usize) -> String {
        if self.0.is_empty() {
            return format!("The desk has no open query for the {} owners.\n", grouped(owners as u64));
        }
        let rows = self.0.iter().map(|((query, status, reason), count)| {
            [query.clone(), (*status).to_owned(), grouped(*count), reason.clone().unwrap_or_default()]
        });
        Table::new(&["query", "status", "owners", "reason"]).with_rows(rows).render()
    }
}
