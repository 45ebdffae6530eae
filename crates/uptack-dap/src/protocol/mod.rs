//! Everything that depends on the drafts: DAP-09 over HTTP, Prio3 of VDAF-08, and HPKE with their labels.
//!
//! Each message is written and read here, for the party that sends it and for the one that receives it. The rest of Uptack
//! handles types of ours, bytes, and names, which are random bytes in every draft. So a later draft is a change of this
//! folder:
//!
//! - `endpoint`: method, path and media types of every request. `problem`: reasons to refuse one.
//! - `upload`: from the client to the leader. `aggregation`: between leader and helper.
//! - `collection`: from the collector to both aggregators, and back.
//! - `vdaf`: sums of shares. `hpke`: sealing shares to one party.

mod aggregation;
mod collection;
mod endpoint;
#[doc(hidden)]
pub mod fuzzing;
mod hpke;
mod problem;
mod upload;
mod vdaf;

pub use aggregation::{
    AggregationAnswer, AggregationRequest, HelperAnswer, HelperResult, ReportError, RequestedAggregation,
    RequestedReport,
};
pub use collection::{AggregateShareAnswer, AggregateShareRequest, BatchChecksum, CollectionAnswer, CollectionRequest};
pub use endpoint::{Endpoint, KeysQuery, TOKEN_HEADER};
pub use hpke::{
    HpkeKeypair, HpkePrivateKey, OpenError, SealedShare, generate_keypair, is_hpke_config_supported, keys_from_bytes,
    keys_to_bytes, open_sum, seal_sum,
};
pub use problem::ProblemType;
pub use upload::{SealedInputShare, SealedReport, UploadedReport};
pub use vdaf::{
    Contribution, LeaderState, Measurement, PrepareMessage, Sum, VERIFY_KEY_LENGTH, Vdaf, VdafKind, VerifyKey,
};

pub use janus_messages::{AggregationJobId, CollectionJobId, HpkeConfig, ReportId, TaskId};

#[cfg(all(test, feature = "janus"))]
pub(crate) use janus_messages as messages;
use janus_messages::{Duration, Interval, ReportMetadata, Role, Time};
use prio::codec::Encode;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The draft's name.
pub const NAME: &str = "DAP-09";

/// Encodes a message that has an encoding by construction.
fn encode(message: &impl Encode) -> Vec<u8> {
    message.get_encoded().expect("lengths are bounded far below what the length fields hold")
}

/// Which of the two aggregators one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AggregatorRole {
    /// Takes uploads, drives aggregation, answers the collector.
    Leader,
    /// Answers the leader.
    Helper,
}

impl AggregatorRole {
    /// The protocol's name for it.
    fn to_dap(self) -> Role {
        match self {
            Self::Leader => Role::Leader,
            Self::Helper => Role::Helper,
        }
    }
}

impl fmt::Display for AggregatorRole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.to_dap().as_str())
    }
}

/// What anybody may know of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportHeader {
    /// The report's name, drawn at random when it was made.
    pub id: ReportId,
    /// The start of the window that the report belongs to, in seconds since the epoch.
    pub time: u64,
}

impl ReportHeader {
    fn of(metadata: &ReportMetadata) -> Self {
        Self { id: *metadata.id(), time: metadata.time().as_seconds_since_epoch() }
    }

    fn metadata(&self) -> ReportMetadata {
        ReportMetadata::new(self.id, Time::from_seconds_since_epoch(self.time))
    }
}

/// The windows that make up a batch, from `start` up to but not including `finish`, in seconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchInterval {
    start: u64,
    finish: u64,
}

impl BatchInterval {
    /// `None` if it would finish before it starts.
    pub fn new(start: u64, finish: u64) -> Option<Self> {
        (start <= finish).then_some(Self { start, finish })
    }

    /// When it starts.
    pub fn start(self) -> u64 {
        self.start
    }

    /// When it is over.
    pub fn finish(self) -> u64 {
        self.finish
    }

    /// Whether it consists of whole windows of this length, at least one.
    pub fn has_whole_windows(self, precision: u64) -> bool {
        self.start < self.finish && self.start.is_multiple_of(precision) && self.finish.is_multiple_of(precision)
    }

    fn of(interval: &Interval) -> Self {
        let start = interval.start().as_seconds_since_epoch();
        // The decoder refuses intervals whose end does not fit.
        Self { start, finish: start.saturating_add(interval.duration().as_seconds()) }
    }

    fn to_dap(self) -> Interval {
        let (start, length) = (Time::from_seconds_since_epoch(self.start), self.finish - self.start);
        Interval::new(start, Duration::from_seconds(length)).expect("start and length add up to the finish")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_may_reach_the_end_of_time_and_consist_of_whole_windows() {
        let whole = BatchInterval::new(0, u64::MAX).unwrap();
        assert_eq!(BatchInterval::of(&whole.to_dap()), whole);
        assert_eq!(BatchInterval::new(1, 0), None);
        let aligned = |start, finish| BatchInterval::new(start, finish).unwrap().has_whole_windows(60);
        assert!(aligned(60, 120) && aligned(0, 180));
        assert!(!aligned(60, 60) && !aligned(61, 120) && !aligned(60, 121));
    }
}
