//! `uptack fleet` and `uptack enrol`: many owners in one process, and their secrets.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use uptack_dap::credential::OwnerSecret;
use uptack_dap::private;
use uptack_owner::attributes::Named;
use uptack_owner::check::Accepted;
use uptack_owner::client::{Config, Outcome};

use super::answer::{self, OwnerArguments, read_fleet};
use crate::failure::{Failure, Result, ResultExt};
use crate::input::{read_file, without_mark};
use crate::output::{Table, check_writable, grouped, print_result};

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
pub(crate) struct FleetArguments {
    /// The owners and their attributes
    owners: PathBuf,
    #[command(flatten)]
    owner: OwnerArguments,
    /// A CSV `owner,secret` as `uptack enrol` writes it, if enrolment is required
    #[arg(long)]
    credentials: Option<PathBuf>,
    /// The column, of type bool, with each owner's answer if a card asks the person
    #[arg(long, value_name = "COLUMN")]
    truth: Option<String>,
}

pub(crate) fn run_fleet(arguments: &FleetArguments, json: bool) -> Result<()> {
    let owners = arguments.owners()?;
    let credentials = arguments.credentials.as_deref().map(read_credentials).transpose()?.unwrap_or_default();
    let config = |config: Config| Config { credentials, ..config };
    let nobody = |questions: &[Arc<Accepted>]| Ok(vec![None; questions.len()]);
    arguments.owner.answer(&owners, config, nobody, |outcomes| {
        let summary = Summary::of(outcomes);
        print_result(json, &summary.json(owners.len()), || summary.describe(owners.len()))?;
        answer::conclude(outcomes)
    })
}

impl FleetArguments {
    /// The owners, each answering for the person by the column that says so.
    fn owners(&self) -> Result<Vec<Named>> {
        let owners = read_fleet(&self.owners)?;
        let Some(column) = &self.truth else { return Ok(owners) };
        Ok(owners.into_iter().map(|(name, known)| (name, known.answering_with(column))).collect())
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

/// Make a secret for every owner, so that nobody can invent owners
///
/// Each owner gets its own secret and shows it to nobody: it signs each report for one task. The leader gets the public
/// keys, as DATA/credentials of `uptack serve --enrolment` or as `uptack aggregator --credentials`.
#[derive(Args)]
#[command(after_help = "Example:
  uptack enrol vehicles.csv --credentials credentials.csv \\
    --keys desk/credentials")]
pub(crate) struct EnrolArguments {
    /// A CSV with a column `owner`
    owners: PathBuf,
    /// Write the secrets to this file: a CSV `owner,secret`, for the owners
    #[arg(long)]
    credentials: PathBuf,
    /// Write the public keys to this file, for the leader
    #[arg(long)]
    keys: PathBuf,
}

pub(crate) fn run_enrol(arguments: &EnrolArguments, json: bool) -> Result<()> {
    let owners = read_fleet(&arguments.owners)?;
    check_writable(&arguments.credentials)?;
    check_writable(&arguments.keys)?;
    let (secrets, keys) = generate(&owners);
    private::write_secret(&arguments.credentials, &secrets)?;
    private::write_secret(&arguments.keys, &keys)?;
    let made = owners.len();
    print_result(json, &json!({"owners": made}), || format!("{made} owners were enrolled.\n"))
}

/// The files of the secrets and of the public keys.
fn generate(owners: &[Named]) -> (String, String) {
    let (mut secrets, mut keys) = ("owner,secret\n".to_owned(), String::new());
    for (name, _) in owners {
        let secret = OwnerSecret::generate();
        secrets += &format!("{name},{}\n", secret.to_text());
        keys += &format!("{}\n", secret.public());
    }
    (secrets, keys)
}
