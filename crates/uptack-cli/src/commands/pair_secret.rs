//! `uptack pair-secret`

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use uptack_server::aggregator::PairSecret;

use crate::failure::{Result, ResultExt};
use crate::output::print_result;

/// Draw the secret that the two aggregators of a pair share
///
/// One operator draws it and gives a copy to the other over a channel that nobody else reads. Both start their
/// aggregators with it; the keys of every task are derived from it, and no desk ever holds them.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack pair-secret pair.secret
  uptack aggregator --role leader --data leader-state \\
    --pair-secret pair.secret --desk-key ed25519:…")]
pub(crate) struct Arguments {
    /// The file to write, which must not be there yet
    file: PathBuf,
}

pub(crate) fn run(Arguments { file }: &Arguments, json: bool) -> Result<()> {
    PairSecret::create(file).with_hint("give another file; tasks may depend on the one that is there")?;
    print_result(json, &json!({"file": file}), || format!("{}\n", file.display()))
}
