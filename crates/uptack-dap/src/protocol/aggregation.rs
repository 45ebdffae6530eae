//! Reports on their way from the leader to the helper, and the helper's answer.

use janus_messages::{
    AggregationJobInitializeReq, AggregationJobResp, PartialBatchSelector, PrepareError, PrepareInit, PrepareResp,
    PrepareStepResult, ReportShare, query_type::TimeInterval,
};
use prio::codec::Decode;
use std::collections::HashSet;

use super::{
    AggregatorRole, PrepareMessage, ReportHeader, ReportId, encode, hpke::SealedShare, upload::SealedInputShare,
};

/// Leader: the request to prepare the reports of an aggregation job.
#[derive(Debug, Default)]
pub struct AggregationRequest(Vec<PrepareInit>);

impl AggregationRequest {
    /// Adds a report, with the leader's first message about it.
    pub fn add(&mut self, header: ReportHeader, public_share: Vec<u8>, helper: SealedShare, message: PrepareMessage) {
        let share = ReportShare::new(header.metadata(), public_share, helper.0);
        self.0.push(PrepareInit::new(share, message));
    }

    /// The request's body; `None` if no report was added.
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        let selector = PartialBatchSelector::new_time_interval();
        Some(encode(&AggregationJobInitializeReq::<TimeInterval>::new(Vec::new(), selector, self.0)))
    }
}

/// Helper: an aggregation job as the leader asks for it, with at least one report and none twice.
#[derive(Debug)]
pub struct RequestedAggregation(AggregationJobInitializeReq<TimeInterval>);

impl RequestedAggregation {
    /// Decodes a request's body; the error is a sentence for the leader.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, &'static str> {
        let request = AggregationJobInitializeReq::get_decoded(bytes).map_err(|_| "The request does not decode.")?;
        if !request.aggregation_parameter().is_empty() {
            return Err("Prio3 has no aggregation parameter.");
        }
        if request.prepare_inits().is_empty() {
            return Err("The job has no reports.");
        }
        if has_report_twice(request.prepare_inits()) {
            return Err("The job has a report twice.");
        }
        Ok(Self(request))
    }

    /// The reports, in the order in which they must be answered.
    pub fn reports(&self) -> impl Iterator<Item = RequestedReport<'_>> {
        self.0.prepare_inits().iter().map(RequestedReport)
    }
}

fn has_report_twice(inits: &[PrepareInit]) -> bool {
    let mut seen = HashSet::new();
    inits.iter().any(|init| !seen.insert(*init.report_share().metadata().id()))
}

/// Helper: a report of a job.
#[derive(Debug, Clone, Copy)]
pub struct RequestedReport<'a>(&'a PrepareInit);

impl<'a> RequestedReport<'a> {
    /// The report's name and window.
    pub fn header(&self) -> ReportHeader {
        ReportHeader::of(self.0.report_share().metadata())
    }

    /// What both aggregators see.
    pub fn public_share(&self) -> &'a [u8] {
        self.0.report_share().public_share()
    }

    /// The helper's share.
    pub fn helper_share(&self) -> SealedInputShare<'a> {
        SealedInputShare {
            receiver: AggregatorRole::Helper,
            header: self.header(),
            public_share: self.public_share(),
            sealed: self.0.report_share().encrypted_input_share(),
        }
    }

    /// The leader's first message.
    pub fn message(&self) -> &'a PrepareMessage {
        self.0.message()
    }
}

/// Helper: the answer to an aggregation job, with one result for each report in the order of the request.
#[derive(Debug, Default)]
pub struct AggregationAnswer(Vec<PrepareResp>);

impl AggregationAnswer {
    /// Adds a report's result, which is its message to the leader or why the report does not count.
    pub fn add(&mut self, id: ReportId, result: Result<PrepareMessage, ReportError>) {
        let result = match result {
            Ok(message) => PrepareStepResult::Continue { message },
            Err(error) => PrepareStepResult::Reject(error.to_dap()),
        };
        self.0.push(PrepareResp::new(id, result));
    }

    /// The answer's body.
    pub fn into_bytes(self) -> Vec<u8> {
        encode(&AggregationJobResp::new(self.0))
    }
}

/// Leader: the helper's answer to an aggregation job.
#[derive(Debug)]
pub struct HelperAnswer(AggregationJobResp);

impl HelperAnswer {
    /// An answer without results, as if the helper had been sent no reports.
    pub fn empty() -> Self {
        Self(AggregationJobResp::new(Vec::new()))
    }

    /// Decodes an answer's body; `None` if it is not an answer.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        AggregationJobResp::get_decoded(bytes).ok().map(Self)
    }

    /// Which report each result is about, and the result.
    pub fn results(&self) -> impl Iterator<Item = (&ReportId, HelperResult<'_>)> {
        self.0.prepare_resps().iter().map(|response| (response.report_id(), HelperResult::of(response.result())))
    }
}

/// Leader: what the helper says about a report.
#[derive(Debug, Clone, Copy)]
pub enum HelperResult<'a> {
    /// The helper counts it; with this message the leader can count it too.
    Counted(&'a PrepareMessage),
    /// The helper has nothing to say, which Prio3 does not allow.
    Finished,
    /// The helper does not count it.
    Rejected(ReportError),
}

impl<'a> HelperResult<'a> {
    fn of(result: &'a PrepareStepResult) -> Self {
        match result {
            PrepareStepResult::Continue { message } => Self::Counted(message),
            PrepareStepResult::Finished => Self::Finished,
            PrepareStepResult::Reject(error) => Self::Rejected(ReportError::of(*error)),
        }
    }
}

/// Why the helper does not count a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportError {
    /// Its batch has been collected.
    BatchCollected,
    /// It has been counted before.
    Replayed,
    /// It is too old.
    Dropped,
    /// It is sealed under a key that the helper does not know.
    UnknownKey,
    /// It does not decrypt.
    Undecryptable,
    /// Its proof is wrong.
    InvalidProof,
    /// Its batch takes no more reports.
    BatchSaturated,
    /// It is later than the end of the task.
    TaskExpired,
    /// The sealed share is malformed.
    Malformed,
    /// It is further in the future than clocks may differ.
    TooEarly,
}

impl ReportError {
    fn of(error: PrepareError) -> Self {
        match error {
            PrepareError::BatchCollected => Self::BatchCollected,
            PrepareError::ReportReplayed => Self::Replayed,
            PrepareError::ReportDropped => Self::Dropped,
            PrepareError::HpkeUnknownConfigId => Self::UnknownKey,
            PrepareError::HpkeDecryptError => Self::Undecryptable,
            PrepareError::VdafPrepError => Self::InvalidProof,
            PrepareError::BatchSaturated => Self::BatchSaturated,
            PrepareError::TaskExpired => Self::TaskExpired,
            PrepareError::InvalidMessage => Self::Malformed,
            PrepareError::ReportTooEarly => Self::TooEarly,
        }
    }

    fn to_dap(self) -> PrepareError {
        match self {
            Self::BatchCollected => PrepareError::BatchCollected,
            Self::Replayed => PrepareError::ReportReplayed,
            Self::Dropped => PrepareError::ReportDropped,
            Self::UnknownKey => PrepareError::HpkeUnknownConfigId,
            Self::Undecryptable => PrepareError::HpkeDecryptError,
            Self::InvalidProof => PrepareError::VdafPrepError,
            Self::BatchSaturated => PrepareError::BatchSaturated,
            Self::TaskExpired => PrepareError::TaskExpired,
            Self::Malformed => PrepareError::InvalidMessage,
            Self::TooEarly => PrepareError::ReportTooEarly,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_read_as_it_was_written() {
        for number in 0..=u8::MAX {
            let Ok(theirs) = PrepareError::try_from(number) else {
                assert!(number > 9, "{number}");
                continue;
            };
            let mut answer = AggregationAnswer::default();
            answer.add(ReportId::from([number; 16]), Err(ReportError::of(theirs)));
            let answer = HelperAnswer::from_bytes(&answer.into_bytes()).unwrap();
            let [(id, HelperResult::Rejected(reason))] = answer.results().collect::<Vec<_>>()[..] else {
                panic!("not one rejected report")
            };
            assert_eq!((*id, reason.to_dap()), (ReportId::from([number; 16]), theirs));
        }
    }

    /// The numbers of `PrepareError` in the draft, as they stand in the helper's answer.
    #[test]
    fn reasons_have_the_numbers_of_the_draft() {
        for (reason, number) in [
            (ReportError::BatchCollected, 0),
            (ReportError::Replayed, 1),
            (ReportError::Dropped, 2),
            (ReportError::UnknownKey, 3),
            (ReportError::Undecryptable, 4),
            (ReportError::InvalidProof, 5),
            (ReportError::BatchSaturated, 6),
            (ReportError::TaskExpired, 7),
            (ReportError::Malformed, 8),
            (ReportError::TooEarly, 9),
        ] {
            let mut answer = AggregationAnswer::default();
            answer.add(ReportId::from([7; 16]), Err(reason));
            // The length of what follows, the report's id, that it is rejected, and why.
            let expected = [&[0, 0, 0, 18][..], &[7; 16], &[2, number]].concat();
            assert_eq!(answer.into_bytes(), expected, "{reason:?}");
        }
    }

    #[test]
    fn a_request_without_reports_is_not_sent_and_not_taken() {
        assert_eq!(AggregationRequest::default().into_bytes(), None);
        let selector = PartialBatchSelector::new_time_interval();
        let request = AggregationJobInitializeReq::<TimeInterval>::new(Vec::new(), selector, Vec::new());
        assert_eq!(RequestedAggregation::from_bytes(&encode(&request)).unwrap_err(), "The job has no reports.");
    }
}
