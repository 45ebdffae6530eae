//! The time by which reports and keys expire.
//!
//! It follows the clock, but moves ahead by at most an hour with each cleaning, of which there is one per minute. What
//! expires is deleted for good: a clock that jumps ahead by years, and is corrected an hour later, would otherwise
//! delete what recognizes repeated reports and close running tasks forever. After a real pause, such as a machine that
//! was off for a month, expiry catches up within a day. A clock that is set back takes the expiry time with it.

use rusqlite::{Connection, OptionalExtension};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{
    aggregator::store::{Store, WriteResult},
    error::Result,
};

/// How far the time moves ahead with one cleaning, in seconds. Larger steps leave less time to notice a wrong clock;
/// smaller ones keep expired data longer after a pause.
const LARGEST_STEP: u64 = 3600;

/// Durable, so that a restart does not get around it.
pub(crate) struct ExpiryClock(AtomicU64);

impl ExpiryClock {
    /// Continues where the last run ended; a new store begins at `now`.
    pub(crate) fn load(store: &Store, now: u64) -> Result<Self> {
        let known: Option<String> = store.read(|connection| {
            let statement = "SELECT value FROM meta WHERE key = 'expiry-clock'";
            connection.query_row(statement, [], |row| row.get(0)).optional()
        })?;
        let known = known.and_then(|text| text.parse().ok()).unwrap_or(now);
        Ok(Self(AtomicU64::new(now.min(known))))
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Moves towards `now`, and returns the time that it reached.
    pub(crate) async fn advance(&self, store: &Store, now: u64) -> Result<u64> {
        let next = now.min(self.now().saturating_add(LARGEST_STEP));
        store.write(move |connection| keep(connection, next)).await?;
        self.0.store(next, Ordering::SeqCst);
        Ok(next)
    }
}

fn keep(connection: &Connection, time: u64) -> WriteResult<()> {
    let statement = "INSERT OR REPLACE INTO meta(key, value) VALUES ('expiry-clock', ?1)";
    connection.execute(statement, [time.to_string()])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack_dap::task::AggregatorRole;

    #[tokio::test]
    async fn time_moves_ahead_in_steps_and_back_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), AggregatorRole::Leader, None).unwrap();
        let clock = ExpiryClock::load(&store, 1_000_000).unwrap();
        assert_eq!(clock.advance(&store, 1_000_060).await.unwrap(), 1_000_060);
        assert_eq!(clock.advance(&store, 4_000_000_000).await.unwrap(), 1_003_660);
        // A restart does not help a wrong clock.
        let again = ExpiryClock::load(&store, 4_000_000_000).unwrap();
        assert_eq!(again.now(), 1_003_660);
        assert_eq!(again.advance(&store, 1_000_200).await.unwrap(), 1_000_200);
    }
}
