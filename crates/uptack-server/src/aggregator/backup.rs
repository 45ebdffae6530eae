//! Consistent copies of a running aggregator's state. `SECURITY.md` says what restoring one breaks.

use std::path::Path;
use uptack_dap::private;

use crate::{base::backup, error::Result};

/// The file of an aggregator's state, in its folder.
pub const STATE: &str = "state.sqlite3";

/// Copies an aggregator's state and its task files into a new folder, with which another aggregator can be started.
pub fn copy(data: &Path, out: &Path) -> Result<()> {
    backup::make_folder(out, |folder| copy_into(data, folder))
}

/// Copies them into a folder that may be part of another backup.
pub(crate) fn copy_into(data: &Path, folder: &Path) -> Result<()> {
    private::create_folder(folder)?;
    backup::copy_database(&data.join(STATE), &folder.join(STATE))?;
    backup::copy_files(&data.join("tasks"), &folder.join("tasks"))
}
