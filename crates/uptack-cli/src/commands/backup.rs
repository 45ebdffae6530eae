//! `uptack backup`

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use uptack_server::{aggregator, desk};

use crate::failure::{Failure, Result};
use crate::output::print_result;

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

pub(crate) fn run(Arguments { data, out }: &Arguments, json: bool) -> Result<()> {
    let kind = copy(data, out)?;
    let document = json!({"kind": kind, "out": out});
    print_result(json, &document, || format!("the {kind}'s state is copied to {}\n", out.display()))
}

/// Copies the state and returns whose it is.
fn copy(data: &Path, out: &Path) -> Result<&'static str> {
    if data.join(desk::STATE_FILE).exists() {
        desk::back_up(data, out)?;
        return Ok("desk");
    }
    if data.join(aggregator::backup::STATE).exists() {
        aggregator::backup::copy(data, out)?;
        return Ok("aggregator");
    }
    Err(not_copied(data))
}

/// Why a folder with neither state is not copied.
fn not_copied(data: &Path) -> Failure {
    let place = data.display();
    if data.join("ledger.sqlite3").exists() {
        return Failure::request(format!(
            "{place} is an owner's ledger: restored from a copy it would have forgotten what was spent, and the owner \
             could answer a query twice with fresh coins"
        ))
        .with_hint("a lost ledger is replaced by a new one with a smaller budget");
    }
    Failure::request(format!("{place}: there is no state of a desk or an aggregator in it"))
        .with_hint("name the folder that the server was given with --data")
}
