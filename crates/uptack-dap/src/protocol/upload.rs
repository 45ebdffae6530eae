//! A report on its way from a client to the leader.

use janus_messages::{HpkeCiphertext, Report};
use prio::codec::Decode;

use super::{
    AggregatorRole, HpkeConfig, HpkeKeypair, Measurement, OpenError, ReportHeader, ReportId, TaskId, Vdaf, encode,
    hpke::{self, SealedShare},
};
use crate::error::{Error, Result};

/// Client: a report ready to be sent, as the bytes that go over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedReport {
    header: ReportHeader,
    bytes: Vec<u8>,
}

impl SealedReport {
    /// Splits a measurement into two shares, with the operating system's randomness, and seals them to the leader's and the
    /// helper's key.
    pub fn seal(
        measurement: &Measurement,
        header: ReportHeader,
        task: &TaskId,
        vdaf: &Vdaf,
        keys: &[HpkeConfig; 2],
    ) -> Result<Self> {
        let (public_share, shares) = vdaf.shard(measurement, &header.id)?;
        Self::from_shares(header, task, public_share, shares, keys)
    }

    /// Seals the shares that [`Vdaf::shard`] gives, for the leader and for the helper.
    pub fn from_shares(
        header: ReportHeader,
        task: &TaskId,
        public_share: Vec<u8>,
        [leader_share, helper_share]: [Vec<u8>; 2],
        [leader, helper]: &[HpkeConfig; 2],
    ) -> Result<Self> {
        let seal = |key, receiver, share| hpke::seal_input(key, receiver, task, &header, &public_share, share);
        let leader_share = seal(leader, AggregatorRole::Leader, leader_share)?;
        let helper_share = seal(helper, AggregatorRole::Helper, helper_share)?;
        let report = Report::new(header.metadata(), public_share, leader_share.0, helper_share.0);
        Ok(Self { header, bytes: encode(&report) })
    }

    /// Reads a stored report.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let report = Report::get_decoded(&bytes).map_err(|_| Error::input("the stored bytes are not a report"))?;
        Ok(Self { header: ReportHeader::of(report.metadata()), bytes })
    }

    /// The bytes to store and to send.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The report's name and window.
    pub fn header(&self) -> ReportHeader {
        self.header
    }

    /// The report's name, drawn at random when it was made.
    pub fn id(&self) -> &ReportId {
        &self.header.id
    }

    /// The start of the window that the report belongs to.
    pub fn time(&self) -> u64 {
        self.header.time
    }
}

/// Leader: a report as it arrives.
#[derive(Debug, Clone)]
pub struct UploadedReport(Report);

impl UploadedReport {
    /// Decodes the body of an upload; `None` if it is not a report.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Report::get_decoded(bytes).ok().map(Self)
    }

    /// The report's name and window.
    pub fn header(&self) -> ReportHeader {
        ReportHeader::of(self.0.metadata())
    }

    /// What both aggregators see.
    pub fn public_share(&self) -> &[u8] {
        self.0.public_share()
    }

    /// The leader's share.
    pub fn leader_share(&self) -> SealedInputShare<'_> {
        self.share(AggregatorRole::Leader, self.0.leader_encrypted_input_share())
    }

    /// The helper's share, for benchmarks that open it without an aggregation job.
    #[doc(hidden)]
    pub fn helper_input_share(&self) -> SealedInputShare<'_> {
        self.share(AggregatorRole::Helper, self.0.helper_encrypted_input_share())
    }

    /// The share that the leader passes on to the helper.
    pub fn helper_share(&self) -> SealedShare {
        SealedShare(self.0.helper_encrypted_input_share().clone())
    }

    fn share<'a>(&'a self, receiver: AggregatorRole, sealed: &'a HpkeCiphertext) -> SealedInputShare<'a> {
        SealedInputShare { receiver, header: self.header(), public_share: self.0.public_share(), sealed }
    }
}

/// An aggregator's share of a report, sealed, with all that its seal is bound to except the task.
#[derive(Debug, Clone, Copy)]
pub struct SealedInputShare<'a> {
    pub(super) receiver: AggregatorRole,
    pub(super) header: ReportHeader,
    pub(super) public_share: &'a [u8],
    pub(super) sealed: &'a HpkeCiphertext,
}

impl SealedInputShare<'_> {
    /// Which of the receiver's keys it is sealed to.
    pub fn key_id(&self) -> u8 {
        (*self.sealed.config_id()).into()
    }

    /// Opens the share.
    pub fn open(&self, keypair: &HpkeKeypair, task: &TaskId) -> std::result::Result<Vec<u8>, OpenError> {
        hpke::open_input(keypair, self.receiver, task, &self.header, self.public_share, self.sealed)
    }
}
