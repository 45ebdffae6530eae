//! What happens to entries after they were tried.

use crate::{
    error::{Error, Result},
    ledger::{Due, State},
    schedule,
};

/// The entries of a group that have ended, and those to be tried again, with the moment.
#[derive(Default)]
pub(super) struct Settled {
    pub(super) ended: Vec<(Due, State)>,
    pub(super) later: Vec<(Due, u64)>,
}

impl Settled {
    /// Adds an entry that failed: it is tried again if a server was away, and lost if one refused. Returns an error that is
    /// not the network's.
    pub(super) fn add_failed(&mut self, due: Due, error: Error, now: u64) -> Result<()> {
        match error {
            Error::Network(error) if error.is_unreachable() => {
                self.later.push((due, schedule::retry_at(now, &error)));
            }
            Error::Network(_) => self.ended.push((due, State::Lost)),
            error => return Err(error),
        }
        Ok(())
    }
}
