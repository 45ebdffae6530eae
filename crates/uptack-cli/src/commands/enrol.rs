//! `uptack enrol`

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use uptack_net::token::Token;
use uptack_owner::attributes;

use crate::failure::Failure;
use crate::output::{print, print_json};

/// Make a credential for every owner, so that nobody can invent owners
///
/// The hashes go into DATA/credentials of `uptack serve --enrolment`, to each owner goes its own credential.
#[derive(Args)]
#[command(after_help = "Example:
  uptack enrol vehicles.csv --credentials credentials.csv --hashes desk/credentials")]
pub(crate) struct Arguments {
    /// A CSV with a column `owner`
    owners: PathBuf,
    /// Where the credentials go: a CSV `owner,credential`, for the owners
    #[arg(long)]
    credentials: PathBuf,
    /// Where their hashes go, for the leader
    #[arg(long)]
    hashes: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let text =
        std::fs::read_to_string(&arguments.owners).map_err(|error| Failure::reading(&arguments.owners, &error))?;
    let owners =
        attributes::fleet_from_csv(&text).map_err(|error| Failure::from(error).at(arguments.owners.display()))?;
    let (mut credentials, mut hashes) = ("owner,credential\n".to_owned(), String::new());
    for (name, _) in &owners {
        let token = Token::generate();
        credentials.push_str(&format!("{name},{}\n", token.as_str()));
        hashes.push_str(&format!("{}\n", token.hash().to_text()));
    }
    uptack_net::task::write_secret(&arguments.credentials, &credentials)?;
    uptack_net::task::write_secret(&arguments.hashes, &hashes)?;
    let made = owners.len();
    if json { print_json(&json!({"owners": made})) } else { print(&format!("{made} credentials were made.\n")) }
}
