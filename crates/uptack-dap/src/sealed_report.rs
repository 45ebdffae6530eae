//! A report as the bytes that are stored and sent.

use crate::{
    error::{Error, Result},
    protocol::{Decode, Report, ReportId},
};

/// A report ready to be sent, as the bytes that go over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedReport {
    id: ReportId,
    time: u64,
    bytes: Vec<u8>,
}

impl SealedReport {
    #[cfg(feature = "network")]
    pub(crate) fn new(id: ReportId, time: u64, bytes: Vec<u8>) -> Self {
        Self { id, time, bytes }
    }

    /// The bytes to store and to send.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads a stored report.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let report = Report::get_decoded(&bytes).map_err(|_| Error::input("the stored bytes are not a report"))?;
        Ok(Self { id: *report.metadata().id(), time: report.metadata().time().as_seconds_since_epoch(), bytes })
    }

    /// The report's name, drawn at random when it was made.
    pub fn id(&self) -> &ReportId {
        &self.id
    }

    /// The start of the window that the report belongs to.
    pub fn time(&self) -> u64 {
        self.time
    }
}
