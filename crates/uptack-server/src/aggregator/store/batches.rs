//! Sums of reports by window, and how many reports are still to be added.

use rusqlite::{Row, params};
use std::collections::BTreeMap;
use uptack_dap::{
    digest::sha256,
    protocol::{Contribution, Decode, Duration, Interval, ReportId, ReportIdChecksum, Sum, Time, Vdaf, encode},
};

use super::{SqlResult, StoreResult, TaskStore, damaged, read_u64};
use crate::error::{Error, Result};

/// A sum and what identifies the reports in it.
#[derive(Clone)]
pub(crate) struct Batch {
    pub(crate) sum: Sum,
    pub(crate) reports: u64,
    pub(crate) checksum: ReportIdChecksum,
}

impl Batch {
    fn empty(vdaf: &Vdaf) -> Self {
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

fn combine(checksum: &mut ReportIdChecksum, other: &[u8]) {
    for (left, right) in checksum.as_mut().iter_mut().zip(other) {
        *left ^= right;
    }
}

/// What one aggregation job adds, by window.
#[derive(Default)]
pub(crate) struct Additions(BTreeMap<u64, Batch>);

impl Additions {
    pub(crate) fn add(&mut self, vdaf: &Vdaf, window: u64, id: &ReportId, contribution: &Contribution) {
        self.0.entry(window).or_insert_with(|| Batch::empty(vdaf)).add(id, contribution);
    }
}

impl TaskStore<'_> {
    /// Adds to the stored sums.
    pub(crate) fn add_to_sums(self, vdaf: &Vdaf, additions: Additions) -> StoreResult<()> {
        for (window, mut batch) in additions.0 {
            if let Some(stored) = self.batch(vdaf, window)? {
                batch.merge(&stored);
            }
            self.store_batch(window, &batch)?;
        }
        Ok(())
    }

    /// The sum over an interval, and the shortest span of windows that holds its reports.
    pub(crate) fn total(self, vdaf: &Vdaf, interval: Span, precision: u64) -> StoreResult<(Batch, Span)> {
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
    pub(crate) fn summed_reports(self, interval: Span) -> StoreResult<u64> {
        self.count_reports("batches", interval)
    }

    /// How many reports of an interval are stored but not yet in a sum.
    pub(crate) fn pending_reports(self, interval: Span) -> StoreResult<u64> {
        self.count_reports("pending", interval)
    }

    /// How many reports there are in all windows, in a sum or not yet.
    pub(crate) fn held_reports(self) -> StoreResult<u64> {
        let always = Span { start: 0, finish: i64::MAX as u64 };
        Ok(self.summed_reports(always)? + self.pending_reports(always)?)
    }

    /// Deletes the sums of an interval.
    pub(crate) fn forget_sums(self, interval: Span) -> StoreResult<()> {
        for table in ["batches", "pending"] {
            let statement = format!("DELETE FROM {table} WHERE task = ?1 AND start >= ?2 AND start < ?3");
            self.run(&statement, self.within(interval))?;
        }
        Ok(())
    }

    /// `?1`, `?2` and `?3` of a statement about an interval.
    pub(super) fn within(self, interval: Span) -> [i64; 3] {
        [self.task, interval.start as i64, interval.finish as i64]
    }

    fn batch(self, vdaf: &Vdaf, window: u64) -> StoreResult<Option<Batch>> {
        let statement = "SELECT reports, checksum, share FROM batches WHERE task = ?1 AND start = ?2";
        self.find(statement, [self.task, window as i64], |row| Batch::from_row(vdaf, row))
    }

    fn store_batch(self, window: u64, batch: &Batch) -> StoreResult<()> {
        let (checksum, sum) = (encode(&batch.checksum), batch.sum.to_bytes());
        self.run(
            "INSERT OR REPLACE INTO batches VALUES (?1, ?2, ?3, ?4, ?5)",
            params![self.task, window as i64, batch.reports as i64, checksum, sum],
        )
    }

    /// The starts of the windows of an interval that have a sum, in order.
    fn windows(self, interval: Span) -> StoreResult<Vec<u64>> {
        let statement = "SELECT start FROM batches WHERE task = ?1 AND start >= ?2 AND start < ?3 ORDER BY start";
        self.list(statement, self.within(interval), |row| read_u64(row, 0))
    }

    fn count_reports(self, table: &str, interval: Span) -> StoreResult<u64> {
        let statement =
            format!("SELECT coalesce(sum(reports), 0) FROM {table} WHERE task = ?1 AND start >= ?2 AND start < ?3");
        self.get(&statement, self.within(interval), |row| read_u64(row, 0))
    }
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
    pub(super) fn from_row(row: &Row<'_>) -> SqlResult<Self> {
        Ok(Self { start: read_u64(row, "start")?, finish: read_u64(row, "finish")? })
    }

    /// As an interval of the protocol.
    pub(crate) fn interval(self) -> Result<Interval> {
        let start = Time::from_seconds_since_epoch(self.start);
        let length = Duration::from_seconds(self.finish - self.start);
        Interval::new(start, length).map_err(|_| Error::environment("an interval does not fit"))
    }
}
