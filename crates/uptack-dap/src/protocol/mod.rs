//! Everything that depends on the drafts: DAP-09 messages, VDAF-08 Prio3, and their HPKE labels.
//!
//! The rest of Uptack sees these types only through this module, so that a later draft is a
//! change here.

mod hpke;
mod vdaf;

pub use janus_messages::{
    AggregateShare, AggregateShareReq, AggregationJobContinueReq, AggregationJobId, AggregationJobInitializeReq,
    AggregationJobResp, BatchSelector, Collection, CollectionJobId, CollectionReq, Duration, HpkeCiphertext,
    HpkeConfig, HpkeConfigId, HpkeConfigList, Interval, PartialBatchSelector, PrepareError, PrepareInit, PrepareResp,
    PrepareStepResult, Query, Report, ReportId, ReportIdChecksum, ReportMetadata, ReportShare, Role, TaskId, Time,
    problem_type::DapProblemType, query_type::TimeInterval,
};
pub use prio::{
    codec::{Decode, Encode},
    topology::ping_pong::PingPongMessage,
};

pub use hpke::{
    HpkeKeypair, HpkePrivateKey, OpenError, generate_keypair, is_hpke_config_supported, open_aggregate_share,
    open_input_share, seal_aggregate_share, seal_input_share,
};
pub use vdaf::{Contribution, LeaderState, Measurement, Sum, VERIFY_KEY_LENGTH, Vdaf, VdafKind, VerifyKey};

/// Encodes a message that has an encoding by construction.
pub fn encode(message: &impl Encode) -> Vec<u8> {
    message.get_encoded().expect("lengths are bounded far below what the length fields hold")
}
