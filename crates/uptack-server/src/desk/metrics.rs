//! What a desk counts.

use crate::base::metrics::{Counter, Description};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    /// Requests answered, by outcome.
    Requests,
    /// Queries that ended, by outcome.
    Collections,
    /// Calls to the aggregators that failed and are repeated.
    AggregatorFailures,
}

impl Counter for Name {
    fn describe(self) -> Description {
        match self {
            Self::Requests => {
                Description::new("uptack_desk_requests_total", "outcome", "Requests answered, by outcome.")
            }
            Self::Collections => {
                Description::new("uptack_desk_collections_total", "outcome", "Queries that ended, by outcome.")
            }
            Self::AggregatorFailures => Description::new(
                "uptack_desk_aggregator_failures_total",
                "call",
                "Calls to the aggregators that failed and are repeated.",
            ),
        }
    }
}
