//! The protocol's own reasons to refuse a request (DAP-09, section 3.3).

use serde_json::Value;

/// The type of a problem document that the protocol defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemType {
    /// The message does not decode, or is not the one that was expected.
    InvalidMessage,
    /// The aggregator does not serve the task.
    UnrecognizedTask,
    /// Leader and helper are at different steps of an aggregation job.
    StepMismatch,
    /// Keys were asked for without naming a task.
    MissingTaskId,
    /// The helper does not know the aggregation job.
    UnrecognizedAggregationJob,
    /// The report is sealed under a key that is no longer known.
    OutdatedConfig,
    /// The report is not accepted.
    ReportRejected,
    /// The report's time is too far in the future.
    ReportTooEarly,
    /// The interval of the batch is empty or does not consist of whole windows.
    BatchInvalid,
    /// The batch has fewer reports than its minimum.
    InvalidBatchSize,
    /// The batch has been released before.
    BatchQueriedTooManyTimes,
    /// Leader and helper have added up different reports.
    BatchMismatch,
    /// The token is missing or wrong.
    UnauthorizedRequest,
    /// A part of the batch has been released before.
    BatchOverlap,
    /// The aggregator refuses to serve the task.
    InvalidTask,
}

impl ProblemType {
    const ALL: [Self; 15] = [
        Self::InvalidMessage,
        Self::UnrecognizedTask,
        Self::StepMismatch,
        Self::MissingTaskId,
        Self::UnrecognizedAggregationJob,
        Self::OutdatedConfig,
        Self::ReportRejected,
        Self::ReportTooEarly,
        Self::BatchInvalid,
        Self::InvalidBatchSize,
        Self::BatchQueriedTooManyTimes,
        Self::BatchMismatch,
        Self::UnauthorizedRequest,
        Self::BatchOverlap,
        Self::InvalidTask,
    ];

    /// The type with this URN.
    pub fn from_uri(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.uri() == uri)
    }

    /// The type of a problem document (RFC 9457), if it is one of the protocol's.
    pub fn of_document(document: &Value) -> Option<Self> {
        Self::from_uri(document["type"].as_str()?)
    }

    /// The URN that stands for the type in documents.
    pub fn uri(self) -> &'static str {
        match self {
            Self::InvalidMessage => "urn:ietf:params:ppm:dap:error:invalidMessage",
            Self::UnrecognizedTask => "urn:ietf:params:ppm:dap:error:unrecognizedTask",
            Self::StepMismatch => "urn:ietf:params:ppm:dap:error:stepMismatch",
            Self::MissingTaskId => "urn:ietf:params:ppm:dap:error:missingTaskID",
            Self::UnrecognizedAggregationJob => "urn:ietf:params:ppm:dap:error:unrecognizedAggregationJob",
            Self::OutdatedConfig => "urn:ietf:params:ppm:dap:error:outdatedConfig",
            Self::ReportRejected => "urn:ietf:params:ppm:dap:error:reportRejected",
            Self::ReportTooEarly => "urn:ietf:params:ppm:dap:error:reportTooEarly",
            Self::BatchInvalid => "urn:ietf:params:ppm:dap:error:batchInvalid",
            Self::InvalidBatchSize => "urn:ietf:params:ppm:dap:error:invalidBatchSize",
            Self::BatchQueriedTooManyTimes => "urn:ietf:params:ppm:dap:error:batchQueriedTooManyTimes",
            Self::BatchMismatch => "urn:ietf:params:ppm:dap:error:batchMismatch",
            Self::UnauthorizedRequest => "urn:ietf:params:ppm:dap:error:unauthorizedRequest",
            Self::BatchOverlap => "urn:ietf:params:ppm:dap:error:batchOverlap",
            Self::InvalidTask => "urn:ietf:params:ppm:dap:error:invalidTask",
        }
    }

    /// A sentence for people, the title of a problem document.
    pub fn title(self) -> &'static str {
        match self {
            Self::InvalidMessage => "The message type for a response was incorrect or the payload was malformed.",
            Self::UnrecognizedTask => "An endpoint received a message with an unknown task ID.",
            Self::StepMismatch => "The leader and helper are not on the same step of VDAF preparation.",
            Self::MissingTaskId => "HPKE configuration was requested without specifying a task ID.",
            Self::UnrecognizedAggregationJob => "An endpoint received a message with an unknown aggregation job ID.",
            Self::OutdatedConfig => "The message was generated using an outdated configuration.",
            Self::ReportRejected => "Report could not be processed.",
            Self::ReportTooEarly => "Report could not be processed because it arrived too early.",
            Self::BatchInvalid => "The batch implied by the query is invalid.",
            Self::InvalidBatchSize => "The number of reports included in the batch is invalid.",
            Self::BatchQueriedTooManyTimes => "The batch described by the query has been queried too many times.",
            Self::BatchMismatch => "Leader and helper disagree on reports aggregated in a batch.",
            Self::UnauthorizedRequest => "The request's authorization is not valid.",
            Self::BatchOverlap => "The queried batch overlaps with a previously queried batch.",
            Self::InvalidTask => "Aggregator has opted out of the indicated task.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use janus_messages::problem_type::DapProblemType;

    #[test]
    fn types_and_titles_are_those_of_janus() {
        for ours in ProblemType::ALL {
            let theirs: DapProblemType = ours.uri().parse().unwrap();
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            assert_eq!((ours.uri(), ours.title()), (theirs.type_uri(), theirs.description()));
            assert_eq!(ProblemType::of_document(&serde_json::json!({"type": ours.uri()})), Some(ours));
        }
        assert_eq!(ProblemType::from_uri("about:blank"), None);
    }
}
