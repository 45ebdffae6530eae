//! Consistent copies of a running desk's state. What restoring one breaks is told in `SECURITY.md`.

use std::path::Path;
use uptack_dap::task::AggregatorRole;

use crate::{aggregator, base::backup, error::Result};

/// The file of a desk's state, in its folder.
pub const STATE: &str = "desk.sqlite3";
/// Files that a desk keeps beside it.
const FILES: [&str; 3] = ["signing.key", "pair.secret", "credentials"];

/// Copies a desk's state, keys and tokens, and those of an embedded pair, into a new folder: one that another desk can be
/// started with.
pub fn copy(data: &Path, out: &Path) -> Result<()> {
    backup::make_folder(out, |folder| {
        // The desk first: aggregators that know of more than the desk are harmless, and fewer would lose reports.
        backup::copy_database(&data.join(STATE), &folder.join(STATE))?;
        for name in FILES {
            backup::copy_file(&data.join(name), &folder.join(name))?;
        }
        backup::copy_files(&data.join("tokens"), &folder.join("tokens"))?;
        for role in [AggregatorRole::Leader, AggregatorRole::Helper] {
            let part = data.join(role.to_string());
            if part.join(aggregator::backup::STATE).exists() {
                aggregator::backup::copy_into(&part, &folder.join(role.to_string()))?;
            }
        }
        Ok(())
    })
}
