//! The leader takes reports.

use rusqlite::params;
use std::sync::Arc;
use uptack_dap::{
    digest::sha256,
    protocol::{DapProblemType, Decode, HpkeCiphertext, Report, ReportId, encode},
    signed::PublicKey,
};

use crate::aggregator::{
    metrics::Name,
    report_checks::{Unopened, Untimely, check_time, open_share},
    state::{Shared, Task},
    tasks::enrolment,
};
use crate::{
    aggregator::store::{SqlResult, TaskRows, WriteResult},
    base::problem::{Answer, Problem},
};

/// Checks a report, opens the leader's share and stores it; returns once it is durable.
///
/// The identical report again is recognized as a repetition. Other bytes under a report id that is
/// already taken are refused.
pub(crate) async fn upload(shared: &Shared, task: &Arc<Task>, body: &[u8], owner: Option<PublicKey>) -> Answer<()> {
    let report = Report::get_decoded(body).map_err(|_| task.problem(DapProblemType::InvalidMessage))?;
    let upload = Upload { report: open_report(shared, task, &report)?, digest: sha256(body), owner };
    let new = shared.change(task, move |rows, task| upload.store(rows, task)).await?;
    shared.metrics.add(Name::Uploads, if new { "new" } else { "repeated" }, 1);
    if new {
        task.wake.notify_one();
    }
    Ok(())
}

/// Largest body an upload to this task can honestly have, with room to spare.
pub(crate) fn largest_body(task: &Task) -> usize {
    8 * 1024 + 128 * task.parameters().vdaf.length()
}

/// A report as it waits for aggregation: the leader's share opened, the helper's sealed.
pub(crate) struct StoredReport {
    pub(crate) id: ReportId,
    pub(crate) time: u64,
    pub(crate) public_share: Vec<u8>,
    pub(crate) leader_share: Vec<u8>,
    pub(crate) helper_share: HpkeCiphertext,
}

impl StoredReport {
    fn content(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.public_share.len() + self.leader_share.len() + 256);
        for part in [&self.public_share, &self.leader_share] {
            bytes.extend((part.len() as u32).to_be_bytes());
            bytes.extend(part);
        }
        bytes.extend(encode(&self.helper_share));
        bytes
    }

    /// Puts the report at the end of the queue.
    fn enqueue(&self, rows: TaskRows<'_>) -> SqlResult<()> {
        rows.run(
            "INSERT INTO reports(task, report_id, time, content) VALUES (?1, ?2, ?3, ?4)",
            params![rows.task, self.id.as_ref(), self.time as i64, self.content()],
        )
    }

    /// Puts a second copy of a stored report at the end of the queue.
    pub(crate) fn enqueue_again(rows: TaskRows<'_>, number: i64) -> SqlResult<()> {
        let statement = "INSERT INTO reports(task, report_id, time, content)
                         SELECT task, report_id, time, content FROM reports WHERE report = ?1";
        rows.run(statement, [number])
    }

    /// Reads what [`StoredReport::content`] wrote.
    pub(crate) fn from_row(id: &[u8], time: i64, content: &[u8]) -> Option<Self> {
        let (public_share, rest) = split(content)?;
        let (leader_share, rest) = split(rest)?;
        Some(Self {
            id: ReportId::try_from(id).ok()?,
            time: time as u64,
            public_share: public_share.to_vec(),
            leader_share: leader_share.to_vec(),
            helper_share: HpkeCiphertext::get_decoded(rest).ok()?,
        })
    }
}

/// Splits off a length in four bytes and as many bytes; returns those and the rest.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// Checks the report's time, and opens what is sealed to the leader.
fn open_report(shared: &Shared, task: &Task, report: &Report) -> Answer<StoredReport> {
    let time = report.metadata().time().as_seconds_since_epoch();
    check_time(shared, task, time).map_err(|reason| untimely(task, reason))?;
    let (public_share, sealed) = (report.public_share(), report.leader_encrypted_input_share());
    let leader_share =
        open_share(shared, task, report.metadata(), public_share, sealed).map_err(|reason| unopened(task, reason))?;
    if !task.vdaf.is_leader_share(public_share, &leader_share) {
        return Err(rejected(task, "The shares do not have the task's form."));
    }
    Ok(StoredReport {
        id: *report.metadata().id(),
        time,
        leader_share,
        public_share: public_share.to_vec(),
        helper_share: report.helper_encrypted_input_share().clone(),
    })
}

fn untimely(task: &Task, reason: Untimely) -> Problem {
    match reason {
        Untimely::TooEarly => task.problem(DapProblemType::ReportTooEarly),
        Untimely::AfterEnd => rejected(task, "The report is later than the end of the task."),
        Untimely::Expired => rejected(task, TOO_OLD),
    }
}

fn unopened(task: &Task, reason: Unopened) -> Problem {
    match reason {
        Unopened::UnknownKey => task.problem(DapProblemType::OutdatedConfig),
        Unopened::Decrypt => rejected(task, "The report does not open under the leader's key."),
        Unopened::Malformed => rejected(task, "The leader's input share is malformed."),
    }
}

const TOO_OLD: &str = "The report is too old.";

fn rejected(task: &Task, detail: &str) -> Problem {
    task.problem(DapProblemType::ReportRejected).with_detail(detail)
}

/// A report that was sent, the digest of its bytes, and its sender if the task requires enrolment.
struct Upload {
    report: StoredReport,
    digest: [u8; 32],
    owner: Option<PublicKey>,
}

impl Upload {
    /// Stores the report, and says whether it is new.
    fn store(&self, rows: TaskRows<'_>, task: &Task) -> WriteResult<bool, Problem> {
        let floor = task.floor(rows)?;
        if !self.claim_id(rows, task)? {
            return Ok(false);
        }
        self.check(rows, task, floor)?;
        self.report.enqueue(rows)?;
        let window = task.parameters().window(self.report.time);
        rows.change_pending(window, 1)?;
        Ok(true)
    }

    /// Takes the report's id for this report. False if this very report has it already.
    fn claim_id(&self, rows: TaskRows<'_>, task: &Task) -> WriteResult<bool, Problem> {
        let report = &self.report;
        let added = rows.execute(
            "INSERT OR IGNORE INTO report_ids VALUES (?1, ?2, ?3, ?4)",
            params![rows.task, report.id.as_ref(), report.time as i64, self.digest],
        )?;
        if added == 0 && stored_digest(rows, &report.id)? != self.digest {
            return Err(rejected(task, "Another report has this id.").into());
        }
        Ok(added > 0)
    }

    /// Refuses a report that may no longer be counted. One that may uses up its owner's one report in the task.
    fn check(&self, rows: TaskRows<'_>, task: &Task, floor: u64) -> WriteResult<(), Problem> {
        let report = &self.report;
        if report.time < floor {
            return Err(rejected(task, TOO_OLD).into());
        }
        if rows.is_collected(report.time)? {
            return Err(rejected(task, "The report's batch has been collected.").into());
        }
        if let Some(owner) = &self.owner
            && !enrolment::spend(rows, owner, &report.id)?
        {
            return Err(rejected(task, "This owner has sent another report.").into());
        }
        Ok(())
    }
}

fn stored_digest(rows: TaskRows<'_>, id: &ReportId) -> SqlResult<Vec<u8>> {
    let statement = "SELECT digest FROM report_ids WHERE task = ?1 AND report_id = ?2";
    rows.get(statement, params![rows.task, id.as_ref()], |row| row.get(0))
}
