//! Sums of reports by window, and how many reports are still to be added.

use rusqlite::{Row, params};
use std::collections::BTreeMap;
use uptack_dap::protocol::{BatchChecksum, BatchInterval, Contribution, ReportId, Sum, Vdaf};

use super::{SqlResult, StoreResult, TaskStore, damaged, read_u64};

/// A sum, with the number and the checksum of its reports.
#[derive(Clone)]
pub(crate) struct Batch {
    pub(crate) sum: Sum,
    pub(crate) reports: u64,
    pub(crate) checksum: BatchChecksum,
}

impl Batch {
    fn empty(vdaf: &Vdaf) -> Self {
        Self { sum: vdaf.zero(), reports: 0, checksum: BatchChecksum::default() }
    }

    /// From the columns `reports`, `checksum` and `share`.
    fn from_row(vdaf: &Vdaf, row: &Row<'_>) -> SqlResult<Self> {
        let checksum = row.get_ref(1)?.as_blob()?;
        let share = row.get_ref(2)?.as_blob()?;
        Ok(Self {
            reports: read_u64(row, 0)?,
            checksum: BatchChecksum::from_bytes(checksum).ok_or_else(|| damaged(1, "checksum"))?,
            sum: vdaf.sum_from_bytes(share).map_err(|_| damaged(2, "share"))?,
        })
    }

    fn add(&mut self, id: &ReportId, contribution: &Contribution) {
        self.sum.add(contribution);
        self.reports += 1;
        self.checksum.add(id);
    }

    fn merge(&mut self, other: &Self) {
        self.sum.merge(&other.sum);
        self.reports += other.reports;
        self.checksum.merge(&other.checksum);
    }
}

/// The contributions of one aggregation job, by window.
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

    /// The sum over an interval, and the shortest interval of windows that holds its reports.
    pub(crate) fn total(
        self,
        vdaf: &Vdaf,
        interval: BatchInterval,
        precision: u64,
    ) -> StoreResult<(Batch, BatchInterval)> {
        let mut total = Batch::empty(vdaf);
        let mut covered = None;
        for window in self.windows(interval)? {
            let Some(batch) = self.batch(vdaf, window)? else {
                continue;
            };
            total.merge(&batch);
            let start = covered.map_or(window, BatchInterval::start);
            covered = BatchInterval::new(start, window + precision);
        }
        Ok((total, covered.unwrap_or(interval)))
    }

    /// How many reports are in the stored sums of an interval.
    pub(crate) fn summed_reports(self, interval: BatchInterval) -> StoreResult<u64> {
        self.count_reports("batches", interval)
    }

    /// How many reports of an interval are stored but not yet in a sum.
    pub(crate) fn pending_reports(self, interval: BatchInterval) -> StoreResult<u64> {
        self.count_reports("pending", interval)
    }

    /// How many reports there are in all windows, in a sum or not yet.
    pub(crate) fn held_reports(self) -> StoreResult<u64> {
        let always = BatchInterval::new(0, i64::MAX as u64).expect("the start of time comes before its end");
        Ok(self.summed_reports(always)? + self.pending_reports(always)?)
    }

    /// Deletes the sums of an interval.
    pub(crate) fn forget_sums(self, interval: BatchInterval) -> StoreResult<()> {
        for table in ["batches", "pending"] {
            let statement = format!("DELETE FROM {table} WHERE task = ?1 AND start >= ?2 AND start < ?3");
            self.run(&statement, self.within(interval))?;
        }
        Ok(())
    }

    /// `?1`, `?2` and `?3` of a statement about an interval.
    pub(super) fn within(self, interval: BatchInterval) -> [i64; 3] {
        [self.task, interval.start() as i64, interval.finish() as i64]
    }

    fn batch(self, vdaf: &Vdaf, window: u64) -> StoreResult<Option<Batch>> {
        let statement = "SELECT reports, checksum, share FROM batches WHERE task = ?1 AND start = ?2";
        self.find(statement, [self.task, window as i64], |row| Batch::from_row(vdaf, row))
    }

    fn store_batch(self, window: u64, batch: &Batch) -> StoreResult<()> {
        let (checksum, sum) = (batch.checksum.as_bytes(), batch.sum.to_bytes());
        self.run(
            "INSERT OR REPLACE INTO batches VALUES (?1, ?2, ?3, ?4, ?5)",
            params![self.task, window as i64, batch.reports as i64, checksum, sum],
        )
    }

    /// The starts of the windows of an interval that have a sum, in order.
    fn windows(self, interval: BatchInterval) -> StoreResult<Vec<u64>> {
        let statement = "SELECT start FROM batches WHERE task = ?1 AND start >= ?2 AND start < ?3 ORDER BY start";
        self.list(statement, self.within(interval), |row| read_u64(row, 0))
    }

    fn count_reports(self, table: &str, interval: BatchInterval) -> StoreResult<u64> {
        let statement =
            format!("SELECT coalesce(sum(reports), 0) FROM {table} WHERE task = ?1 AND start >= ?2 AND start < ?3");
        self.get(&statement, self.within(interval), |row| read_u64(row, 0))
    }
}
