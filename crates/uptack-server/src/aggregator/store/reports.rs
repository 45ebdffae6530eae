//! Reports: their ids, which stay to recognize repetitions, and the leader's queue of those that wait for aggregation.

use rusqlite::{Row, params};
use uptack_dap::{
    protocol::{ReportHeader, ReportId, SealedShare},
    signed::PublicKey,
};

use super::{Job, Store, StoreResult, TaskStore, read_u64};
use crate::error::Result;

/// A report as it waits for aggregation: the leader's share opened, the helper's sealed.
pub(crate) struct QueuedReport {
    pub(crate) header: ReportHeader,
    pub(crate) public_share: Vec<u8>,
    pub(crate) leader_share: Vec<u8>,
    pub(crate) helper_share: SealedShare,
}

impl QueuedReport {
    fn content(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.public_share.len() + self.leader_share.len() + 256);
        for part in [&self.public_share, &self.leader_share] {
            bytes.extend((part.len() as u32).to_be_bytes());
            bytes.extend(part);
        }
        bytes.extend(self.helper_share.to_bytes());
        bytes
    }

    /// Reads what [`QueuedReport::content`] wrote.
    pub(crate) fn decode(id: &[u8], time: u64, content: &[u8]) -> Option<Self> {
        let (public_share, rest) = split_field(content)?;
        let (leader_share, rest) = split_field(rest)?;
        Some(Self {
            header: ReportHeader { id: ReportId::try_from(id).ok()?, time },
            public_share: public_share.to_vec(),
            leader_share: leader_share.to_vec(),
            helper_share: SealedShare::from_bytes(rest)?,
        })
    }
}

/// Splits off a field with a u32 length prefix; returns the field and the rest.
fn split_field(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// Whose a report id is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimedId {
    /// Nobody had it; it is this report's now.
    New,
    /// This very report has it already.
    Repeated,
    /// A report of other bytes has it.
    Taken,
}

impl Store {
    /// How many reports of all tasks are stored but not yet in a sum.
    pub(crate) fn pending_reports(&self) -> Result<u64> {
        self.read(|connection| {
            let statement = "SELECT coalesce(sum(reports), 0) FROM pending";
            Ok(connection.query_row(statement, [], |row| read_u64(row, 0))?)
        })
    }
}

impl TaskStore<'_> {
    /// Leader: takes a report's id for the report with this digest.
    pub(crate) fn claim_id(self, report: &ReportHeader, digest: &[u8; 32]) -> StoreResult<ClaimedId> {
        let added = self.execute(
            "INSERT OR IGNORE INTO report_ids VALUES (?1, ?2, ?3, ?4)",
            params![self.task, report.id.as_ref(), report.time as i64, digest],
        )?;
        if added > 0 {
            return Ok(ClaimedId::New);
        }
        let statement = "SELECT digest FROM report_ids WHERE task = ?1 AND report_id = ?2";
        let stored: Vec<u8> = self.get(statement, params![self.task, report.id.as_ref()], |row| row.get(0))?;
        Ok(if stored == digest { ClaimedId::Repeated } else { ClaimedId::Taken })
    }

    /// Helper: marks a report as seen; false if it was seen before.
    pub(crate) fn mark_seen(self, report: &ReportHeader) -> StoreResult<bool> {
        let statement = "INSERT OR IGNORE INTO report_ids VALUES (?1, ?2, ?3, NULL)";
        Ok(self.execute(statement, params![self.task, report.id.as_ref(), report.time as i64])? > 0)
    }

    /// Uses up an enrolled owner's one report in the task for this report; false if another report has used it.
    pub(crate) fn spend_enrolment(self, owner: &PublicKey, report: &ReportId) -> StoreResult<bool> {
        let key = owner.as_bytes();
        self.run("INSERT OR IGNORE INTO enrolled VALUES (?1, ?2, ?3)", params![self.task, key, report.as_ref()])?;
        let statement = "SELECT report_id FROM enrolled WHERE task = ?1 AND credential = ?2";
        let used: Vec<u8> = self.get(statement, params![self.task, key], |row| row.get(0))?;
        Ok(used == report.as_ref())
    }

    /// Puts a report at the end of the queue.
    pub(crate) fn enqueue(self, report: &QueuedReport) -> StoreResult<()> {
        self.run(
            "INSERT INTO reports(task, report_id, time, content) VALUES (?1, ?2, ?3, ?4)",
            params![self.task, report.header.id.as_ref(), report.header.time as i64, report.content()],
        )
    }

    /// Puts a second copy of a queued report at the end of the queue.
    pub(crate) fn enqueue_again(self, number: i64) -> StoreResult<()> {
        self.run(
            "INSERT INTO reports(task, report_id, time, content)
             SELECT task, report_id, time, content FROM reports WHERE report = ?1",
            [number],
        )
    }

    /// The first report after number `after` and up to `last`, with its number; no report if it is damaged.
    pub(crate) fn next_report(self, after: i64, last: i64) -> StoreResult<Option<(i64, Option<QueuedReport>)>> {
        let statement = "SELECT report, report_id, time, content FROM reports
                         WHERE task = ?1 AND report > ?2 AND report <= ?3 ORDER BY report LIMIT 1";
        let read = |row: &Row<'_>| {
            let (id, content) = (row.get_ref(1)?.as_blob()?, row.get_ref(3)?.as_blob()?);
            Ok((row.get(0)?, QueuedReport::decode(id, read_u64(row, 2)?, content)))
        };
        self.find(statement, [self.task, after, last], read)
    }

    /// The numbers and times of a job's reports, in order.
    pub(crate) fn reports_of(self, job: &Job) -> StoreResult<Vec<(i64, u64)>> {
        let statement = "SELECT report, time FROM reports WHERE task = ?1 AND report BETWEEN ?2 AND ?3 ORDER BY report";
        self.list(statement, [self.task, job.first, job.last], |row| Ok((row.get(0)?, read_u64(row, 1)?)))
    }

    /// Takes a job's reports out of the queue.
    pub(crate) fn dequeue(self, job: &Job) -> StoreResult<()> {
        let statement = "DELETE FROM reports WHERE task = ?1 AND report BETWEEN ?2 AND ?3";
        self.run(statement, [self.task, job.first, job.last])
    }

    /// Changes the number of pending reports of a window.
    pub(crate) fn change_pending(self, window: u64, by: i64) -> StoreResult<()> {
        let statement = "INSERT INTO pending VALUES (?1, ?2, ?3)
                         ON CONFLICT DO UPDATE SET reports = reports + ?3";
        self.run(statement, [self.task, window as i64, by])
    }
}
