//! The leader takes reports.

use rusqlite::{Connection, OptionalExtension, params};
use std::sync::Arc;
use uptack_dap::{
    digest::sha256,
    protocol::{self, DapProblemType, Decode, HpkeCiphertext, OpenError, Report, ReportId, Role, TaskId, encode},
    signed::PublicKey,
};

use super::{
    batches, enrolment,
    metrics::Name,
    shared::{Shared, Task},
};
use crate::{aggregator::store::StoreError, base::problem::Problem};

/// Checks a report, opens the leader's share and stores it; returns once it is durable.
///
/// The identical report again is taken as the repetition that it is. Other bytes under a report id
/// that is already taken are refused.
pub(crate) async fn upload(
    shared: &Shared,
    task: &Arc<Task>,
    body: &[u8],
    owner: Option<PublicKey>,
) -> Result<(), Problem> {
    let report = Report::get_decoded(body).map_err(|_| task.problem(DapProblemType::InvalidMessage))?;
    let time = report.metadata().time().as_seconds_since_epoch();
    check_time(shared, task, time)?;
    let row = StoredReport {
        id: *report.metadata().id(),
        time,
        leader_share: open(shared, task, &report)?,
        public_share: report.public_share().to_vec(),
        helper_share: report.helper_encrypted_input_share().clone(),
    };
    let digest = sha256(body);
    let stored = {
        let task = Arc::clone(task);
        shared.store.write(move |connection| insert(connection, &task, &row, &digest, owner.as_ref())).await?
    };
    let kind = if stored { "new" } else { "repeated" };
    shared.metrics.add(Name::Uploads, kind, 1);
    if stored {
        task.wake.notify_one();
    }
    Ok(())
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

    /// Puts the report at the end of the line.
    pub(crate) fn enqueue(&self, connection: &Connection, task: i64) -> rusqlite::Result<()> {
        connection
            .prepare_cached("INSERT INTO reports(task, report_id, time, content) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![task, self.id.as_ref(), self.time as i64, self.content()])?;
        Ok(())
    }

    /// Puts a stored report at the end of the line, where it is stored a second time.
    pub(crate) fn enqueue_again(connection: &Connection, number: i64) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "INSERT INTO reports(task, report_id, time, content)
                 SELECT task, report_id, time, content FROM reports WHERE report = ?1",
            )?
            .execute([number])?;
        Ok(())
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

/// Whether the task is still served, and the time below which nothing is taken any more.
pub(crate) fn floor(connection: &Connection, task: i64) -> rusqlite::Result<Option<u64>> {
    connection
        .prepare_cached("SELECT floor FROM tasks WHERE task = ?1 AND definition IS NOT NULL")?
        .query_row([task], |row| row.get::<_, i64>(0))
        .map(|floor| floor as u64)
        .optional()
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

fn check_time(shared: &Shared, task: &Task, time: u64) -> Result<(), Problem> {
    if task.is_too_early(time, shared.now()) {
        return Err(task.problem(DapProblemType::ReportTooEarly));
    }
    if task.is_after_end(time) {
        return Err(rejected(task, "The report is later than the end of the task."));
    }
    if task.is_expired(time, shared.expiry.now()) {
        return Err(rejected(task, "The report is too old."));
    }
    Ok(())
}

fn open(shared: &Shared, task: &Task, report: &Report) -> Result<Vec<u8>, Problem> {
    let ciphertext = report.leader_encrypted_input_share();
    let keys = shared.keys();
    let keypair = keys.find(ciphertext.config_id()).ok_or_else(|| task.problem(DapProblemType::OutdatedConfig))?;
    let share = protocol::open_input_share(
        keypair,
        Role::Leader,
        task.id(),
        report.metadata(),
        report.public_share(),
        ciphertext,
    )
    .map_err(|error| match error {
        OpenError::Decrypt => rejected(task, "The report does not open under the leader's key."),
        OpenError::Message => rejected(task, "The leader's input share is malformed."),
    })?;
    if !task.vdaf.is_leader_share(report.public_share(), &share) {
        return Err(rejected(task, "The shares do not have the task's form."));
    }
    Ok(share)
}

/// Stores a report, and says whether it is new.
fn insert(
    connection: &Connection,
    task: &Task,
    report: &StoredReport,
    digest: &[u8; 32],
    owner: Option<&PublicKey>,
) -> Result<bool, StoreError<Problem>> {
    let refuse = |text| Err(StoreError::Refused(rejected(task, text)));
    let Some(floor) = floor(connection, task.row)? else {
        let problem = task.problem(DapProblemType::UnrecognizedTask);
        return Err(StoreError::Refused(problem));
    };
    let added = connection
        .prepare_cached("INSERT OR IGNORE INTO report_ids VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![task.row, report.id.as_ref(), report.time as i64, digest])?;
    if added == 0 {
        return if is_same(connection, task.row, &report.id, digest)? {
            Ok(false)
        } else {
            refuse("Another report has this id.")
        };
    }
    if report.time < floor {
        return refuse("The report is too old.");
    }
    if batches::is_collected(connection, task.row, report.time)? {
        return refuse("The report's batch has been collected.");
    }
    if let Some(owner) = owner
        && !enrolment::spend(connection, task.row, owner, &report.id)?
    {
        return refuse("This owner has sent another report.");
    }
    report.enqueue(connection, task.row)?;
    let window = task.definition.parameters.window(report.time);
    batches::change_pending(connection, task.row, window, 1)?;
    Ok(true)
}

fn is_same(connection: &Connection, task: i64, id: &ReportId, digest: &[u8; 32]) -> rusqlite::Result<bool> {
    let stored: Vec<u8> = connection
        .prepare_cached("SELECT digest FROM report_ids WHERE task = ?1 AND report_id = ?2")?
        .query_row(params![task, id.as_ref()], |row| row.get(0))?;
    Ok(stored == digest)
}

fn rejected(task: &Task, detail: &str) -> Problem {
    task.problem(DapProblemType::ReportRejected).with_detail(detail)
}

/// Largest body an upload to this task can honestly have, with room to spare.
pub(crate) fn largest_body(task: &Task) -> usize {
    8 * 1024 + 128 * task.definition.parameters.vdaf.length()
}

/// The task that a path names, or the refusal.
pub(crate) fn parse_task_id(text: &str) -> Result<TaskId, Problem> {
    text.parse().map_err(|_| {
        Problem::http(
            axum::http::StatusCode::BAD_REQUEST,
            "The task in the path is not 32 bytes of unpadded base64url.",
        )
    })
}
