//! Lets a test see in which order things happen. Nothing that is seen depends on a truth.

use std::{fmt, sync::Arc};

/// One thing that a client did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The moment of a report was drawn.
    Drawn,
    /// Both aggregators' keys are there.
    KeysFetched,
    /// A predicate is evaluated.
    Evaluated,
    /// A coin is tossed.
    Tossed,
    /// A report is sealed.
    Sealed,
    /// A report is sent.
    Sent,
}

/// Hears of every [`Event`]; by default nobody does.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<dyn Fn(Event) + Send + Sync>>);

impl Observer {
    /// Calls a function for every event.
    pub fn new(hear: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    pub(crate) fn on(&self, event: Event) {
        if let Some(hear) = &self.0 {
            hear(event);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Observer(…)")
    }
}
