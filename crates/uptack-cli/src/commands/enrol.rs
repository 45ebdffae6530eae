//! `uptack enrol`

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use uptack_dap::credential::OwnerSecret;
use uptack_dap::private;
use uptack_owner::attributes::Named;

use crate::failure::Result;
use crate::output::{check_writable, print_result};
use crate::owner::read_fleet;

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

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
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
