//! A batch on its way to the collector: what the collector asks the leader for, what the leader asks the helper for, and the
//! answers.

use janus_messages::{
    AggregateShare, AggregateShareReq, BatchSelector, Collection, CollectionReq, PartialBatchSelector, Query,
    ReportIdChecksum, query_type::TimeInterval,
};
use prio::codec::Decode;

use super::{BatchInterval, ReportId, encode, hpke::SealedShare};
use crate::crypto::sha256;

/// The exclusive or of the SHA-256 of report ids, with which leader and helper compare what they added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchChecksum([u8; 32]);

impl BatchChecksum {
    /// Adds a report.
    pub fn add(&mut self, id: &ReportId) {
        self.merge(&Self(sha256(id.as_ref())));
    }

    /// Adds the reports of another checksum.
    pub fn merge(&mut self, other: &Self) {
        for (left, right) in self.0.iter_mut().zip(other.0) {
            *left ^= right;
        }
    }

    /// Its bytes, to store.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads a stored checksum; `None` if there are not 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// The collector's request to the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectionRequest {
    /// The batch.
    pub interval: BatchInterval,
}

impl CollectionRequest {
    /// Collector: the request's body.
    pub fn to_bytes(&self) -> Vec<u8> {
        let query = Query::new_time_interval(self.interval.to_dap());
        encode(&CollectionReq::<TimeInterval>::new(query, Vec::new()))
    }

    /// Leader: decodes a request's body; `None` if it is not a request for a sum.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let request = CollectionReq::<TimeInterval>::get_decoded(bytes).ok()?;
        let interval = BatchInterval::of(request.query().batch_interval());
        request.aggregation_parameter().is_empty().then_some(Self { interval })
    }
}

/// The leader's answer to the collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionAnswer {
    /// How many reports are in the batch.
    pub reports: u64,
    /// The shortest interval that holds all reports of the batch.
    pub interval: BatchInterval,
    /// The leader's share of the sum.
    pub leader_share: SealedShare,
    /// The helper's share of the sum.
    pub helper_share: SealedShare,
}

impl CollectionAnswer {
    /// Leader: the answer's body.
    pub fn into_bytes(self) -> Vec<u8> {
        encode(&Collection::<TimeInterval>::new(
            PartialBatchSelector::new_time_interval(),
            self.reports,
            self.interval.to_dap(),
            self.leader_share.0,
            self.helper_share.0,
        ))
    }

    /// Collector: decodes an answer's body; `None` if it is not an answer.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let answer = Collection::<TimeInterval>::get_decoded(bytes).ok()?;
        Some(Self {
            reports: answer.report_count(),
            interval: BatchInterval::of(answer.interval()),
            leader_share: SealedShare(answer.leader_encrypted_aggregate_share().clone()),
            helper_share: SealedShare(answer.helper_encrypted_aggregate_share().clone()),
        })
    }
}

/// The leader's request for the helper's share of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AggregateShareRequest {
    /// The batch.
    pub interval: BatchInterval,
    /// How many reports the leader has added up.
    pub reports: u64,
    /// Which reports the leader has added up.
    pub checksum: BatchChecksum,
}

impl AggregateShareRequest {
    /// Leader: the request's body.
    pub fn to_bytes(&self) -> Vec<u8> {
        let selector = BatchSelector::new_time_interval(self.interval.to_dap());
        let checksum = ReportIdChecksum::from(self.checksum.0);
        encode(&AggregateShareReq::<TimeInterval>::new(selector, Vec::new(), self.reports, checksum))
    }

    /// Helper: decodes a request's body; `None` if it is not a request for a sum.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let request = AggregateShareReq::<TimeInterval>::get_decoded(bytes).ok()?;
        let interval = BatchInterval::of(request.batch_selector().batch_interval());
        let checksum = BatchChecksum::from_bytes(request.checksum().as_ref())?;
        let is_sum = request.aggregation_parameter().is_empty();
        is_sum.then_some(Self { interval, reports: request.report_count(), checksum })
    }
}

/// The helper's answer to the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateShareAnswer(pub SealedShare);

impl AggregateShareAnswer {
    /// Helper: the answer's body.
    pub fn into_bytes(self) -> Vec<u8> {
        encode(&AggregateShare::new(self.0.0))
    }

    /// Leader: decodes an answer's body; `None` if it is not an answer.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let answer = AggregateShare::get_decoded(bytes).ok()?;
        Some(Self(SealedShare(answer.encrypted_aggregate_share().clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_were_written() {
        let interval = BatchInterval::new(600, 1_200).unwrap();
        let request = CollectionRequest { interval };
        assert_eq!(CollectionRequest::from_bytes(&request.to_bytes()), Some(request));
        let mut checksum = BatchChecksum::default();
        checksum.add(&ReportId::from([1; 16]));
        let request = AggregateShareRequest { interval, reports: 1, checksum };
        assert_eq!(AggregateShareRequest::from_bytes(&request.to_bytes()), Some(request));
        checksum.add(&ReportId::from([1; 16]));
        assert_eq!(checksum, BatchChecksum::default());
    }

    /// The bytes were computed by another program.
    #[test]
    fn the_checksum_is_the_exclusive_or_of_the_sha_256_of_report_ids() {
        let mut checksum = BatchChecksum::default();
        checksum.add(&ReportId::from([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]));
        let one = [
            0xbe, 0x45, 0xcb, 0x26, 0x05, 0xbf, 0x36, 0xbe, 0xbd, 0xe6, 0x84, 0x84, 0x1a, 0x28, 0xf0, 0xfd, 0x43, 0xc6,
            0x98, 0x50, 0xa3, 0xdc, 0xe5, 0xfe, 0xdb, 0xa6, 0x99, 0x28, 0xee, 0x3a, 0x89, 0x91,
        ];
        assert_eq!(checksum.as_bytes(), &one);
        checksum.add(&ReportId::from([255; 16]));
        let both = [
            0xe4, 0x83, 0x6e, 0xb2, 0x5a, 0xa9, 0x66, 0xb7, 0xac, 0xc7, 0x15, 0xad, 0x82, 0x63, 0x58, 0x4e, 0xc4, 0x66,
            0xf7, 0x74, 0x5d, 0xe4, 0xd9, 0x1a, 0x33, 0xbc, 0xea, 0x01, 0xae, 0x5f, 0xcf, 0x8a,
        ];
        assert_eq!(checksum.as_bytes(), &both);
        let request = AggregateShareRequest { interval: BatchInterval::new(0, 1).unwrap(), reports: 2, checksum };
        assert!(request.to_bytes().ends_with(&both));
    }
}
