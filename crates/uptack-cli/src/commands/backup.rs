//! `uptack backup`

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use uptack_server::{aggregator, desk};

use crate::failure::Failure;
use crate::output::{print, print_json};

/// Copy the state of a desk or an aggregator, even while it runs
///
/// The copy is consistent, checked, and for your account alone: it holds keys and tokens. A server is started with it by
/// naming it as --data. What a restored server has forgotten, and what that breaks, is in SECURITY.md. An owner's ledger
/// is not copied: restored, it would have forgotten what was spent.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack backup desk desk-backup
  uptack backup leader-state leader-backup")]
pub(crate) struct Arguments {
    /// The folder of the state, as given to `uptack serve` or `uptack aggregator` with --data
    data: PathBuf,
    /// The folder to make; it must not exist
    out: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let Arguments { data, out } = arguments;
    let kind = if data.join(desk::backup::STATE).exists() {
        desk::backup::copy(data, out)?;
        "desk"
    } else if data.join(aggregator::backup::STATE).exists() {
        aggregator::backup::copy(data, out)?;
        "aggregator"
    } else if data.join("ledger.sqlite3").exists() {
        let message = format!(
            "{} is an owner's ledger: restored from a copy it would have forgotten what was spent, and the owner could \
             answer a query twice with fresh coins",
            data.display()
        );
        return Err(Failure::request(message).with_hint("a lost ledger is replaced by a new one with a smaller budget"));
    } else {
        let message = format!("{}: there is no state of a desk or an aggregator in it", data.display());
        return Err(Failure::request(message).with_hint("name the folder that the server was given with --data"));
    };
    if json {
        return print_json(&json!({"kind": kind, "out": out}));
    }
    print(&format!("the {kind}'s state is copied to {}\n", out.display()))
}
