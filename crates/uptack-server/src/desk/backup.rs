//! Consistent copies of a running desk's state. `SECURITY.md` says what restoring one breaks.

use std::path::Path;
use uptack_dap::task::AggregatorRole;

use crate::{aggregator, base::backup, error::Result};

/// The file of a desk's state, in its folder.
pub const STATE: &str = "desk.sqlite3";
/// Files that a desk keeps next to it.
const FILES: [&str; 3] = ["signing.key", "pair.secret", "credentials"];

/// Copies a desk's state, keys and tokens, and those of an embedded pair, into a new folder that another desk can be
/// started with.
pub fn copy(data: &Path, out: &Path) -> Result<()> {
    backup::make_folder(out, |folder| {
        // The desk first: aggregators that know more tasks than the desk do no harm; with fewer, reports would be lost.
        backup::copy_database(&data.join(STATE), &folder.join(STATE))?;
        for name in FILES {
            backup::copy_file(&data.join(name), &folder.join(name))?;
        }
        backup::copy_files(&data.join("tokens"), &folder.join("tokens"))?;
        copy_pair(data, folder)
    })
}

/// Copies the state of an embedded pair, if there is one.
fn copy_pair(data: &Path, folder: &Path) -> Result<()> {
    for role in [AggregatorRole::Leader, AggregatorRole::Helper] {
        let part = data.join(role.to_string());
        if part.join(aggregator::backup::STATE).exists() {
            aggregator::backup::copy_into(&part, &folder.join(role.to_string()))?;
        }
    }
    Ok(())
}
