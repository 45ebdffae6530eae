//! The time of day, replaceable in tests.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Seconds since the epoch, from the system or as a test sets them.
#[derive(Debug, Clone, Default)]
pub struct Clock(Option<Arc<AtomicU64>>);

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that stands at `seconds` until [`Clock::set`] moves it, together with its clones.
    pub fn standing_at(seconds: u64) -> Self {
        Self(Some(Arc::new(AtomicU64::new(seconds))))
    }

    /// Moves a standing clock. A system clock is left alone.
    pub fn set(&self, seconds: u64) {
        if let Some(hand) = &self.0 {
            hand.store(seconds, Ordering::SeqCst);
        }
    }

    /// How long it is until a moment; zero if it has passed. A standing clock counts whole seconds.
    pub fn until(&self, moment: u64) -> Duration {
        match &self.0 {
            Some(hand) => Duration::from_secs(moment.saturating_sub(hand.load(Ordering::SeqCst))),
            None => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Duration::from_secs(moment).saturating_sub(now)
            }
        }
    }

    /// Seconds since the epoch.
    pub fn now(&self) -> u64 {
        match &self.0 {
            Some(hand) => hand.load(Ordering::SeqCst),
            None => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs()),
        }
    }
}
