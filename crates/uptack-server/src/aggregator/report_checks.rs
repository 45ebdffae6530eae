//! Checks of a report that both aggregators make.

use uptack_dap::protocol::{self, HpkeCiphertext, OpenError, PrepareError, ReportMetadata};

use crate::aggregator::state::{Shared, Task};

/// Why a report is not taken at this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Untimely {
    /// It is further in the future than clocks may differ.
    TooEarly,
    /// It is later than the end of the task.
    AfterEnd,
    /// It is older than reports may be.
    Expired,
}

/// Whether a report of this time is taken now.
pub(crate) fn check_time(shared: &Shared, task: &Task, time: u64) -> Result<(), Untimely> {
    let parameters = task.parameters();
    if time > shared.now().saturating_add(parameters.tolerable_clock_skew) {
        return Err(Untimely::TooEarly);
    }
    if parameters.task_expiration.is_some_and(|end| time > end) {
        return Err(Untimely::AfterEnd);
    }
    let expiry = shared.expiry.now();
    if parameters.report_expiry_age.is_some_and(|age| time.saturating_add(age) < expiry) {
        return Err(Untimely::Expired);
    }
    Ok(())
}

impl From<Untimely> for PrepareError {
    fn from(reason: Untimely) -> Self {
        match reason {
            Untimely::TooEarly => Self::ReportTooEarly,
            Untimely::AfterEnd => Self::TaskExpired,
            Untimely::Expired => Self::ReportDropped,
        }
    }
}

/// Why a share that was sealed to this aggregator does not open.
pub(crate) enum Unopened {
    /// It is sealed under a key that is not, or no longer, known.
    UnknownKey,
    /// It does not decrypt.
    Decrypt,
    /// What was sealed is not an input share.
    Malformed,
}

/// Opens a report's share for this aggregator.
pub(crate) fn open_share(
    shared: &Shared,
    task: &Task,
    metadata: &ReportMetadata,
    public_share: &[u8],
    ciphertext: &HpkeCiphertext,
) -> Result<Vec<u8>, Unopened> {
    let role = shared.config.role.to_dap();
    let keys = shared.keys();
    let keypair = keys.find(ciphertext.config_id()).ok_or(Unopened::UnknownKey)?;
    Ok(protocol::open_input_share(keypair, role, task.id(), metadata, public_share, ciphertext)?)
}

impl From<OpenError> for Unopened {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Decrypt => Self::Decrypt,
            OpenError::Message => Self::Malformed,
        }
    }
}

impl From<Unopened> for PrepareError {
    fn from(reason: Unopened) -> Self {
        match reason {
            Unopened::UnknownKey => Self::HpkeUnknownConfigId,
            Unopened::Decrypt => Self::HpkeDecryptError,
            Unopened::Malformed => Self::InvalidMessage,
        }
    }
}
