//! `uptack fleet` and `uptack enrol`: many owners in one process, and their secrets.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use serde_json::{Value, json};
use uptack::csv;
use uptack_dap::credential::OwnerSecret;
use uptack_dap::private;
use uptack_owner::attributes::Named;
use uptack_owner::check::{Accepted, Asked};
use uptack_owner::client::{Config, Outcome, Screen};
use uptack_owner::fit::{self, Misfit, MisfitReason};

use super::answer::{self, OwnerArguments, read_fleet};
use crate::arguments::separator;
use crate::failure::{Failure, Result, ResultExt};
use crate::input::{read_file, without_mark};
use crate::layout::fitted_to_terminal;
use crate::output::{Table, check_writable, grouped, print_result};
use crate::progress::say;

/// Answer the open queries of a desk as many owners in one process
///
/// Each owner has a ledger, coins and a report of its own. The CSV has a header; a column `owner` names the owners, and
/// every other column is an attribute: text, or typed as in `speed:double`, `lane:int`, `taxi:bool`.
///
/// Unlike a device, a fleet knows the attributes of all its owners: a query to which nobody could say yes, because an
/// attribute is missing everywhere or has another type than the question needs, is refused before anything is spent.
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
    /// The sign between the fields of the CSV: a comma unless given, or semicolon, tab or bar
    #[arg(long, value_name = "SIGN", value_parser = separator)]
    separator: Option<char>,
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
    let advice = Arc::new(Mutex::new(None));
    let screen = screen(Arc::clone(&advice));
    let config = |config: Config| Config { credentials, screen, ..config };
    let nobody = |questions: &[Arc<Accepted>]| Ok(vec![None; questions.len()]);
    arguments.owner.answer(&owners, config, nobody, |outcomes, _| {
        let summary = Summary::of(outcomes);
        print_result(json, &summary.json(owners.len()), || summary.describe(owners.len()))?;
        let concluded = answer::conclude(outcomes);
        match *advice.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(advice) => concluded.or_hint(advice),
            None => concluded,
        }
    })
}

/// Warns of owners whose attributes do not fit a question, and refuses a question that none fits.
fn screen(advice: Arc<Mutex<Option<&'static str>>>) -> Screen {
    Screen::new(move |accepted, owners| {
        let Asked::Device(predicates) = &accepted.asked else { return None };
        let (of_all, of_some): (Vec<_>, Vec<_>) =
            fit::misfits(predicates, owners).into_iter().partition(Misfit::is_of_all);
        for misfit in &of_some {
            let note = format!("warning: {}: {misfit}; they count as no\n", accepted.names.query);
            say(&fitted_to_terminal(&note));
        }
        let worst = of_all.first()?;
        *advice.lock().unwrap_or_else(PoisonError::into_inner) = Some(misfit_advice(&worst.reason));
        Some(format!("{worst}; nobody could say yes"))
    })
}

fn misfit_advice(reason: &MisfitReason) -> &'static str {
    match reason {
        MisfitReason::Missing { .. } => "rename the column, or ask again with a name that the owners have",
        MisfitReason::Type(_) => {
            "a column is text unless its header says otherwise, as in lane:int; a question compares texts in quotation \
             marks, as in station == \"7\", and a ballot compares numbers if it is asked with --attributes lane:int"
        }
    }
}

impl FleetArguments {
    /// The owners, each answering for the person by the column that says so.
    fn owners(&self) -> Result<Vec<Named>> {
        let fleet = read_fleet(&self.owners, self.separator)?;
        match &self.truth {
            Some(column) => fleet.answering_with(column).at(self.owners.display()),
            None => Ok(fleet.owners),
        }
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
    Ok((csv::text(owner), secret.parse()?))
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
    /// The sign between the fields of the CSV: a comma unless given, or semicolon, tab or bar
    #[arg(long, value_name = "SIGN", value_parser = separator)]
    separator: Option<char>,
    /// Write the secrets to this file: a CSV `owner,secret`, for the owners
    #[arg(long)]
    credentials: PathBuf,
    /// Write the public keys to this file, for the leader
    #[arg(long)]
    keys: PathBuf,
}

pub(crate) fn run_enrol(arguments: &EnrolArguments, json: bool) -> Result<()> {
    let owners = read_fleet(&arguments.owners, arguments.separator)?.owners;
    if arguments.credentials == arguments.keys {
        return Err(Failure::request("--credentials and --keys name the same file")
            .with_hint("the secrets are for the owners, and the public keys for the leader"));
    }
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
        secrets += &format!("{},{}\n", csv::field(name), secret.to_text());
        keys += &format!("{}\n", secret.public());
    }
    (secrets, keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack_owner::attributes::Attributes;

    /// The names are the owners' own, and the file may be opened in a spreadsheet.
    #[test]
    fn names_in_the_file_of_secrets_are_no_formulas_and_read_back() {
        let names = ["=HYPERLINK(1)", "+1 and more", "a,b", "O\"Brien", "o1", "-7"];
        let owners: Vec<Named> = names.iter().map(|name| ((*name).to_owned(), Attributes::default())).collect();
        let (secrets, _) = generate(&owners);
        for (line, name) in secrets.lines().skip(1).zip(names) {
            assert!(!line.trim_start_matches('"').starts_with(['=', '+']), "{line}");
            assert_eq!(parse_credential(line).unwrap().0, name);
        }
    }
}
