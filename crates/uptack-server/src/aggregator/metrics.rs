//! What an aggregator counts.

use crate::base::metrics::{Counter, Description};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    /// Requests answered, by outcome.
    Requests,
    /// Reports taken, by whether they were new.
    Uploads,
    /// Reports that left the store with an aggregation job, by outcome.
    Aggregated,
    /// Aggregation jobs completed.
    Jobs,
    /// Calls to the helper that failed and are repeated.
    PeerFailures,
    /// Batches released to the collector.
    Collections,
}

impl Counter for Name {
    fn describe(self) -> Description {
        match self {
            Self::Requests => Description::new("uptack_requests_total", "outcome", "Requests answered, by outcome."),
            Self::Uploads => Description::new("uptack_uploads_total", "kind", "Reports taken."),
            Self::Aggregated => Description::new(
                "uptack_reports_aggregated_total",
                "outcome",
                "Reports that left the store through aggregation, by outcome.",
            ),
            Self::Jobs => Description::new("uptack_aggregation_jobs_total", "outcome", "Aggregation jobs completed."),
            Self::PeerFailures => Description::new(
                "uptack_peer_failures_total",
                "call",
                "Calls to the helper that failed and are repeated.",
            ),
            Self::Collections => Description::new("uptack_collections_total", "outcome", "Collection jobs that ended."),
        }
    }
}
