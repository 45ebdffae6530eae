//! Sums by window, and the intervals that have been handed out.

use rusqlite::{Connection, Row, params};
use std::collections::BTreeMap;
use uptack_dap::{
    digest::sha256,
    protocol::{Contribution, Decode, Duration, Interval, ReportId, ReportIdChecksum, Sum, Time, Vdaf, encode},
};

use crate::aggregator::store::{SqlResult, TaskRows, damaged, read_u64};
use crate::error::{Error, Result};

/// A sum and what identifies the reports in it.
#[derive(Clone)]
pub(crate) struct Batch {
    pub(crate) sum: Sum,
    pub(crate) reports: u64,
    pub(crate) checksum: ReportIdChecksum,
}

impl Batch {
    pub(crate) fn empty(vdaf: &Vdaf) -> Self {
        Self { sum: vdaf.zero(), reports: 0, checksum: ReportIdChecksum::default() }
    }

    /// From the columns `reports`, `checksum` and `share`.
    fn from_row(vdaf: &Vdaf, row: &Row<'_>) -> SqlResult<Self> {
        let checksum = row.get_ref(1)?.as_blob()?;
        let share = row.get_ref(2)?.as_blob()?;
        Ok(Self {
            reports: read_u64(row, 0)?,
            checksum: ReportIdChecksum::get_decoded(checksum).map_err(|_| damaged(1, "checksum"))?,
            sum: vdaf.sum_from_bytes(share).map_err(|_| damaged(2, "share"))?,
        })
    }

    fn add(&mut self, id: &ReportId, contribution: &Contribution) {
        self.sum.add(contribution);
        self.reports += 1;
        combine(&mut self.checksum, &sha256(id.as_ref()));
    }

    fn merge(&mut self, other: &Self) {
        self.sum.merge(&other.sum);
        self.reports += other.reports;
        combine(&mut self.checksum, other.checksum.as_ref());
    }
}

/// What one aggregation job adds, by window.
#[derive(Default)]
pub(crate) struct Additions(BTreeMap<u64, Batch>);

impl Additions {
    pub(crate) fn add(&mut self, vdaf: &Vdaf, window: u64, id: &ReportId, contribution: &Contribution) {
        self.0.entry(window).or_insert_with(|| Batch::empty(vdaf)).add(id, contribution);
    }

    /// Adds everything to the stored sums.
    pub(crate) fn store(self, rows: TaskRows<'_>, vdaf: &Vdaf) -> SqlResult<()> {
        for (window, mut batch) in self.0 {
            if let Some(stored) = rows.batch(vdaf, window)? {
                batch.merge(&stored);
            }
            rows.store_batch(window, &batch)?;
        }
        Ok(())
    }
}

/// How an interval relates to those that were handed out before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlap {
    None,
    Same,
    Partial,
}

impl TaskRows<'_> {
    /// The sum over an interval, and the shortest span of windows that holds its reports.
    pub(crate) fn total(self, vdaf: &Vdaf, interval: Span, precision: u64) -> SqlResult<(Batch, Span)> {
        let mut total = Batch::empty(vdaf);
        let mut covered: Option<Span> = None;
        for window in self.windows(interval)? {
            let Some(batch) = self.batch(vdaf, window)? else {
                continue;
            };
            total.merge(&batch);
            let start = covered.map_or(window, |span| span.start);
            covered = Some(Span { start, finish: window + precision });
        }
        Ok((total, covered.unwrap_or(interval)))
    }

    /// How many reports are in the stored sums of an interval.
    pub(crate) fn summed_reports(self, interval: Span) -> SqlResult<u64> {
        self.count_reports("batches", interval)
    }

    /// How many reports of an interval are stored but not yet in a sum.
    pub(crate) fn pending_reports(self, interval: Span) -> SqlResult<u64> {
        self.count_reports("pending", interval)
    }

    /// How many reports there are in all windows, in a sum or not yet.
    pub(crate) fn held_reports(self) -> SqlResult<u64> {
        let always = Span { start: 0, finish: i64::MAX as u64 };
        Ok(self.summed_reports(always)? + self.pending_reports(always)?)
    }

    /// Changes the number of pending reports of a window.
    pub(crate) fn change_pending(self, window: u64, by: i64) -> SqlResult<()> {
        let statement = "INSERT INTO pending VALUES (?1, ?2, ?3)
                         ON CONFLICT DO UPDATE SET reports = reports + ?3";
        self.run(statement, [self.task, window as i64, by])
    }

    /// Whether the window that holds `time` has been handed out, or is about to be.
    pub(crate) fn is_collected(self, time: u64) -> SqlResult<bool> {
        self.prepare("SELECT 1 FROM collected WHERE task = ?1 AND start <= ?2 AND finish > ?2 LIMIT 1")?
            .exists([self.task, time as i64])
    }

    pub(crate) fn overlap(self, interval: Span) -> SqlResult<Overlap> {
        let statement = "SELECT start, finish FROM collected
                         WHERE task = ?1 AND start < ?3 AND finish > ?2 LIMIT 1";
        let other = self.find(statement, self.within(interval), Span::from_row)?;
        Ok(match other {
            None => Overlap::None,
            Some(other) if other == interval => Overlap::Same,
            Some(_) => Overlap::Partial,
        })
    }

    /// Marks an interval as handed out: from now on it takes no report.
    pub(crate) fn close(self, interval: Span) -> SqlResult<()> {
        self.run("INSERT INTO collected VALUES (?1, ?2, ?3, NULL, NULL)", self.within(interval))
    }

    /// The leader's own sealed share of an interval that is being handed out, if it has been made.
    pub(crate) fn sealed_share(self, interval: Span) -> SqlResult<Option<Vec<u8>>> {
        let statement = "SELECT response FROM collected WHERE task = ?1 AND start = ?2 AND finish = ?3";
        self.get(statement, self.within(interval), |row| row.get(0))
    }

    /// Keeps the leader's own sealed share of an interval that is being handed out, or forgets it.
    pub(crate) fn keep_sealed_share(self, interval: Span, share: Option<&[u8]>) -> SqlResult<()> {
        let [task, start, finish] = self.within(interval);
        self.run(
            "UPDATE collected SET response = ?4 WHERE task = ?1 AND start = ?2 AND finish = ?3",
            params![task, start, finish, share],
        )
    }

    /// Deletes the sums of an interval.
    pub(crate) fn forget_sums(self, interval: Span) -> SqlResult<()> {
        for table in ["batches", "pending"] {
            let statement = format!("DELETE FROM {table} WHERE task = ?1 AND start >= ?2 AND start < ?3");
            self.execute(&statement, self.within(interval))?;
        }
        Ok(())
    }

    /// `?1`, `?2` and `?3` of a statement about an interval.
    pub(crate) fn within(self, interval: Span) -> [i64; 3] {
        [self.task, interval.start as i64, interval.finish as i64]
    }

    fn batch(self, vdaf: &Vdaf, window: u64) -> SqlResult<Option<Batch>> {
        let statement = "SELECT reports, checksum, share FROM batches WHERE task = ?1 AND start = ?2";
        self.find(statement, [self.task, window as i64], |row| Batch::from_row(vdaf, row))
    }

    fn store_batch(self, window: u64, batch: &Batch) -> SqlResult<()> {
        let (checksum, sum) = (encode(&batch.checksum), batch.sum.to_bytes());
        self.run(
            "INSERT OR REPLACE INTO batches VALUES (?1, ?2, ?3, ?4, ?5)",
            params![self.task, window as i64, batch.reports as i64, checksum, sum],
        )
    }

    /// The starts of the windows of an interval that have a sum, in order.
    fn windows(self, interval: Span) -> SqlResult<Vec<u64>> {
        let statement = "SELECT start FROM batches WHERE task = ?1 AND start >= ?2 AND start < ?3 ORDER BY start";
        self.list(statement, self.within(interval), |row| read_u64(row, 0))
    }

    fn count_reports(self, table: &str, interval: Span) -> SqlResult<u64> {
        let statement =
            format!("SELECT coalesce(sum(reports), 0) FROM {table} WHERE task = ?1 AND start >= ?2 AND start < ?3");
        self.get(&statement, self.within(interval), |row| read_u64(row, 0))
    }
}

/// How many reports of all tasks are stored but not yet in a sum.
pub(crate) fn all_pending(connection: &Connection) -> SqlResult<u64> {
    connection.query_row("SELECT coalesce(sum(reports), 0) FROM pending", [], |row| read_u64(row, 0))
}

/// A stretch of time from `start` up to but not including `finish`, both of which fit SQLite's integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) finish: u64,
}

impl Span {
    /// The protocol's interval, if it is not empty and made of whole windows.
    pub(crate) fn aligned(interval: &Interval, precision: u64) -> Option<Self> {
        let start = interval.start().as_seconds_since_epoch();
        let finish = start.checked_add(interval.duration().as_seconds())?;
        let aligned = start.is_multiple_of(precision) && finish.is_multiple_of(precision);
        (aligned && finish > start && i64::try_from(finish).is_ok()).then_some(Self { start, finish })
    }

    /// From the columns `start` and `finish`.
    pub(crate) fn from_row(row: &Row<'_>) -> SqlResult<Self> {
        Ok(Self { start: read_u64(row, "start")?, finish: read_u64(row, "finish")? })
    }

    /// As an interval of the protocol.
    pub(crate) fn interval(self) -> Result<Interval> {
        let start = Time::from_seconds_since_epoch(self.start);
        let length = Duration::from_seconds(self.finish - self.start);
        Interval::new(start, length).map_err(|_| Error::environment("an interval does not fit"))
    }
}

fn combine(checksum: &mut ReportIdChecksum, other: &[u8]) {
    for (left, right) in checksum.as_mut().iter_mut().zip(other) {
        *left ^= right;
    }
}
