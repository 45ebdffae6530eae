//! Reports: the checks that both aggregators make, and uploads, which the leader takes.

use std::sync::Arc;
use uptack_dap::{
    crypto::sha256,
    protocol::{OpenError, ProblemType, ReportError, SealedInputShare, UploadedReport},
    signed::PublicKey,
};

use crate::{
    aggregator::{
        state::{AggregatorCounter, AggregatorState},
        store::{ChangeResult, ClaimedId, QueuedReport, TaskStore},
        tasks::ServedTask,
    },
    base::problem::{Answer, Problem},
};

/// Checks a report, opens the leader's share and stores it; returns once it is durable.
///
/// A repetition of the identical report is recognized. A different report under an id that is already taken is
/// refused.
pub(crate) async fn upload(
    shared: &AggregatorState,
    task: &Arc<ServedTask>,
    body: &[u8],
    owner: Option<PublicKey>,
) -> Answer<()> {
    let report = UploadedReport::from_bytes(body).ok_or_else(|| task.problem(ProblemType::InvalidMessage))?;
    let upload = Upload { report: open_report(shared, task, &report)?, digest: sha256(body), owner };
    let new = shared.change(task, move |stored, task| upload.store(stored, task)).await?;
    shared.metrics.add(AggregatorCounter::Uploads, if new { "new" } else { "repeated" }, 1);
    if new {
        task.wake.notify_one();
    }
    Ok(())
}

/// Largest body an upload to this task can honestly have, with room to spare.
pub(crate) fn largest_body(task: &ServedTask) -> usize {
    8 * 1024 + 128 * task.parameters().vdaf.length()
}

/// A report that was sent, the digest of its bytes, and its sender if the task requires enrolment.
struct Upload {
    report: QueuedReport,
    digest: [u8; 32],
    owner: Option<PublicKey>,
}

impl Upload {
    /// Stores the report, and says whether it is new.
    fn store(&self, stored: TaskStore<'_>, task: &ServedTask) -> ChangeResult<bool, Problem> {
        let floor = task.floor(stored)?;
        match stored.claim_id(&self.report.header, &self.digest)? {
            ClaimedId::New => {}
            ClaimedId::Repeated => return Ok(false),
            ClaimedId::Taken => return Err(rejected(task, "Another report has this id.").into()),
        }
        self.check(stored, task, floor)?;
        stored.enqueue(&self.report)?;
        stored.change_pending(task.parameters().window(self.report.header.time), 1)?;
        Ok(true)
    }

    /// Refuses a report that can no longer be counted. Otherwise it uses up its owner's one report in the task.
    fn check(&self, stored: TaskStore<'_>, task: &ServedTask, floor: u64) -> ChangeResult<(), Problem> {
        let report = &self.report.header;
        if report.time < floor {
            return Err(rejected(task, TOO_OLD).into());
        }
        if stored.is_collected(report.time)? {
            return Err(rejected(task, "The report's batch has been collected.").into());
        }
        if let Some(owner) = &self.owner
            && !stored.spend_enrolment(owner, &report.id)?
        {
            return Err(rejected(task, "This owner has sent another report.").into());
        }
        Ok(())
    }
}

/// Checks the report's time, and opens the leader's share.
fn open_report(shared: &AggregatorState, task: &ServedTask, report: &UploadedReport) -> Answer<QueuedReport> {
    let header = report.header();
    check_time(shared, task, header.time).map_err(|reason| untimely(task, reason))?;
    let leader_share = open_share(shared, task, &report.leader_share()).map_err(|reason| unopened(task, reason))?;
    if !task.vdaf.is_leader_share(report.public_share(), &leader_share) {
        return Err(rejected(task, "The shares do not have the task's form."));
    }
    Ok(QueuedReport {
        header,
        leader_share,
        public_share: report.public_share().to_vec(),
        helper_share: report.helper_share(),
    })
}

fn untimely(task: &ServedTask, reason: Untimely) -> Problem {
    match reason {
        Untimely::TooEarly => task.problem(ProblemType::ReportTooEarly),
        Untimely::AfterEnd => rejected(task, "The report is later than the end of the task."),
        Untimely::Expired => rejected(task, TOO_OLD),
    }
}

fn unopened(task: &ServedTask, reason: Unopened) -> Problem {
    match reason {
        Unopened::UnknownKey => task.problem(ProblemType::OutdatedConfig),
        Unopened::Decrypt => rejected(task, "The report does not open under the leader's key."),
        Unopened::Malformed => rejected(task, "The leader's input share is malformed."),
    }
}

const TOO_OLD: &str = "The report is too old.";

fn rejected(task: &ServedTask, detail: &str) -> Problem {
    task.problem(ProblemType::ReportRejected).with_detail(detail)
}

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
pub(crate) fn check_time(shared: &AggregatorState, task: &ServedTask, time: u64) -> Result<(), Untimely> {
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

impl From<Untimely> for ReportError {
    fn from(reason: Untimely) -> Self {
        match reason {
            Untimely::TooEarly => Self::TooEarly,
            Untimely::AfterEnd => Self::TaskExpired,
            Untimely::Expired => Self::Dropped,
        }
    }
}

/// Why a share that was sealed to this aggregator does not open.
pub(crate) enum Unopened {
    /// It is sealed under a key that is unknown, or no longer known.
    UnknownKey,
    /// It does not decrypt.
    Decrypt,
    /// It decrypts to something other than an input share.
    Malformed,
}

/// Opens a report's share for this aggregator.
pub(crate) fn open_share(
    shared: &AggregatorState,
    task: &ServedTask,
    share: &SealedInputShare<'_>,
) -> Result<Vec<u8>, Unopened> {
    let keys = shared.keys();
    let keypair = keys.find(share.key_id()).ok_or(Unopened::UnknownKey)?;
    Ok(share.open(keypair, task.id())?)
}

impl From<OpenError> for Unopened {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Decrypt => Self::Decrypt,
            OpenError::Message => Self::Malformed,
        }
    }
}

impl From<Unopened> for ReportError {
    fn from(reason: Unopened) -> Self {
        match reason {
            Unopened::UnknownKey => Self::UnknownKey,
            Unopened::Decrypt => Self::Undecryptable,
            Unopened::Malformed => Self::Malformed,
        }
    }
}
