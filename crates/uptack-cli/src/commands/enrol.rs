//! `uptack enrol`

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use uptack_dap::credential::OwnerSecret;
use uptack_owner::attributes;

use crate::failure::Failure;
use crate::output::{check_writable, print, print_json};

/// Make a secret for every owner, so that nobody can invent owners
///
/// Each owner gets its own secret and shows it to nobody: it signs each report for one task. The leader gets the public
/// keys, as DATA/credentials of `uptack serve --enrolment` or as `uptack aggregator --credentials`.
#[derive(Args)]
#[command(after_help = "Example:
  uptack enrol vehicles.csv --credentials credentials.csv \\
    --keys desk/credentials")]
pub(crate) struct Arguments {
    /// A CSV with a column `owner`
    owners: PathBuf,
    /// Where the secrets go: a CSV `owner,secret`, for the owners
    #[arg(long)]
    credentials: PathBuf,
    /// Where the public keys go, for the leader
    #[arg(long)]
    keys: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let text =
        std::fs::read_to_string(&arguments.owners).map_err(|error| Failure::reading(&arguments.owners, &error))?;
    let owners =
        attributes::fleet_from_csv(&text).map_err(|error| Failure::from(error).at(arguments.owners.display()))?;
    [&arguments.credentials, &arguments.keys].into_iter().try_for_each(|path| check_writable(path))?;
    let (mut secrets, mut keys) = ("owner,secret\n".to_owned(), String::new());
    for (name, _) in &owners {
        let secret = OwnerSecret::generate();
        secrets.push_str(&format!("{name},{}\n", secret.to_text()));
        keys.push_str(&format!("{}\n", secret.public()));
    }
    uptack_dap::private::write_secret(&arguments.credentials, &secrets)?;
    uptack_dap::private::write_secret(&arguments.keys, &keys)?;
    let made = owners.len();
    if json { print_json(&json!({"owners": made})) } else { print(&format!("{made} owners were enrolled.\n")) }
}
