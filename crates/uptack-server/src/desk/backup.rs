//! Consistent copies of a running desk's state. What restoring one breaks is told in `SECURITY.md`.

use std::path::Path;
use uptack_dap::task::AggregatorRole;

use crate::{base::backup, error::Result};

/// The file of a desk's state, in its folder.
pub const DESK_STATE: &str = "desk.sqlite3";
/// Files that a desk keeps beside it.
const FILES: [&str; 3] = ["signing.key", "pair.secret", "credentials"];

/// Copies a desk's state, keys and tokens, and those of an embedded pair, into a new folder: one that another desk can be
/// started with.
pub fn copy_desk(data: &Path, out: &Path) -> Result<()> {
    backup::make_folder(out, |folder| {
        // The desk first: aggregators that know of more than the desk are harmless, and fewer would lose reports.
        backup::copy_database(&data.join(DESK_STATE), &folder.join(DESK_STATE))?;
        for name in FILES {
            backup::copy_file(&data.join(name), &folder.join(name))?;
        }
        backup::copy_files(&data.join("tokens"), &folder.join("tokens"))?;
        for role in [AggregatorRole::Leader, AggregatorRole::Helper] {
            let part = data.join(role.to_string());
            if part.join(backup::AGGREGATOR_STATE).exists() {
                backup::copy_aggregator(&part, &folder.join(role.to_string()))?;
            }
        }
        Ok(())
    })
}

/// Copies an aggregator's state into a new folder.
pub fn copy_aggregator(data: &Path, out: &Path) -> Result<()> {
    backup::make_folder(out, |folder| Ok(backup::copy_aggregator(data, folder)?))
}
