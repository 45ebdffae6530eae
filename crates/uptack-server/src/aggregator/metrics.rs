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
        let (metric, label, help) = match self {
            Self::Requests => ("uptack_requests_total", "outcome", "Requests answered, by outcome."),
            Self::Uploads => ("uptack_uploads_total", "kind", "Reports taken."),
            Self::Aggregated => (
                "uptack_reports_aggregated_total",
                "outcome",
                "Reports that left the store through aggregation, by outcome.",
            ),
            Self::Jobs => ("uptack_aggregation_jobs_total", "outcome", "Aggregation jobs completed."),
            Self::PeerFailures => {
                ("uptack_peer_failures_total", "call", "Calls to the helper that failed and are repeated.")
            }
            Self::Collections => ("uptack_collections_total", "outcome", "Collection jobs that ended."),
        };
        Description { metric, label, help }
    }
}
