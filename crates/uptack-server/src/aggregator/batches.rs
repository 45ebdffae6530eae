//! Sums by window, and the intervals that have been handed out.

use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeMap;
use uptack_dap::{
    digest::sha256,
    protocol::{Contribution, Decode, Interval, ReportId, ReportIdChecksum, Sum, Vdaf, encode},
};

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
    pub(crate) fn store(self, connection: &Connection, vdaf: &Vdaf, task: i64) -> rusqlite::Result<()> {
        for (window, mut batch) in self.0 {
            if let Some(stored) = read(connection, vdaf, task, window)? {
                batch.merge(&stored);
            }
            connection.prepare_cached("INSERT OR REPLACE INTO batches VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(
                params![task, window as i64, batch.reports as i64, encode(&batch.checksum), batch.sum.to_bytes()],
            )?;
        }
        Ok(())
    }
}

/// The sum over an interval, and the smallest run of windows that holds its reports.
pub(crate) fn total(
    connection: &Connection,
    vdaf: &Vdaf,
    task: i64,
    interval: Span,
    precision: u64,
) -> rusqlite::Result<(Batch, Span)> {
    let mut total = Batch::empty(vdaf);
    let mut covered: Option<Span> = None;
    for window in windows(connection, task, interval)? {
        let Some(batch) = read(connection, vdaf, task, window)? else {
            continue;
        };
        total.merge(&batch);
        let start = covered.map_or(window, |span| span.start);
        covered = Some(Span { start, finish: window + precision });
    }
    Ok((total, covered.unwrap_or(interval)))
}

/// Reports in the stored sums of an interval.
pub(crate) fn count(connection: &Connection, task: i64, interval: Span) -> rusqlite::Result<u64> {
    sum_of(connection, "batches", task, interval)
}

/// Reports of an interval that are stored but not yet in a sum.
pub(crate) fn pending(connection: &Connection, task: i64, interval: Span) -> rusqlite::Result<u64> {
    sum_of(connection, "pending", task, interval)
}

/// Reports of all windows, in a sum or not yet.
pub(crate) fn held(connection: &Connection, task: i64) -> rusqlite::Result<u64> {
    let always = Span { start: 0, finish: i64::MAX as u64 };
    Ok(count(connection, task, always)? + pending(connection, task, always)?)
}

/// Changes the number of pending reports of a window.
pub(crate) fn change_pending(connection: &Connection, task: i64, window: u64, by: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO pending VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET reports = reports + ?3",
        )?
        .execute(params![task, window as i64, by])?;
    Ok(())
}

/// Whether the window that holds `time` has been handed out, or is about to be.
pub(crate) fn is_collected(connection: &Connection, task: i64, time: u64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM collected WHERE task = ?1 AND start <= ?2 AND finish > ?2 LIMIT 1")?
        .exists(params![task, time as i64])
}

/// How an interval lies to those that were handed out before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlap {
    None,
    Same,
    Partial,
}

pub(crate) fn overlap(connection: &Connection, task: i64, interval: Span) -> rusqlite::Result<Overlap> {
    let other: Option<(i64, i64)> = connection
        .prepare_cached(
            "SELECT start, finish FROM collected
             WHERE task = ?1 AND start < ?3 AND finish > ?2 LIMIT 1",
        )?
        .query_row(params![task, interval.start as i64, interval.finish as i64], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(match other {
        None => Overlap::None,
        Some((start, finish)) if (start, finish) == (interval.start as i64, interval.finish as i64) => Overlap::Same,
        Some(_) => Overlap::Partial,
    })
}

/// The leader's own share of an interval that is being given out, sealed, if it was made already.
pub(crate) fn sealed_share(connection: &Connection, task: i64, interval: Span) -> rusqlite::Result<Option<Vec<u8>>> {
    connection.query_row(
        "SELECT response FROM collected WHERE task = ?1 AND start = ?2 AND finish = ?3",
        params![task, interval.start as i64, interval.finish as i64],
        |row| row.get(0),
    )
}

/// Keeps the leader's own share of an interval that is being given out, or forgets it.
pub(crate) fn keep_sealed_share(
    connection: &Connection,
    task: i64,
    interval: Span,
    share: Option<&[u8]>,
) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE collected SET response = ?4 WHERE task = ?1 AND start = ?2 AND finish = ?3",
        params![task, interval.start as i64, interval.finish as i64, share],
    )?;
    Ok(())
}

/// Deletes the sums of an interval.
pub(crate) fn forget(connection: &Connection, task: i64, interval: Span) -> rusqlite::Result<()> {
    for table in ["batches", "pending"] {
        connection.execute(
            &format!("DELETE FROM {table} WHERE task = ?1 AND start >= ?2 AND start < ?3"),
            params![task, interval.start as i64, interval.finish as i64],
        )?;
    }
    Ok(())
}

/// A stretch of time, from `start` up to but without `finish`, that fits SQLite's integers.
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
}

fn combine(checksum: &mut ReportIdChecksum, other: &[u8]) {
    for (left, right) in checksum.as_mut().iter_mut().zip(other) {
        *left ^= right;
    }
}

fn read(connection: &Connection, vdaf: &Vdaf, task: i64, window: u64) -> rusqlite::Result<Option<Batch>> {
    connection
        .prepare_cached("SELECT reports, checksum, share FROM batches WHERE task = ?1 AND start = ?2")?
        .query_row(params![task, window as i64], |row| {
            let damaged =
                |column| rusqlite::Error::InvalidColumnType(column, "batches".to_owned(), rusqlite::types::Type::Blob);
            let checksum: Vec<u8> = row.get(1)?;
            let share: Vec<u8> = row.get(2)?;
            Ok(Batch {
                reports: row.get::<_, i64>(0)? as u64,
                checksum: ReportIdChecksum::get_decoded(&checksum).map_err(|_| damaged(1))?,
                sum: vdaf.sum_from_bytes(&share).map_err(|_| damaged(2))?,
            })
        })
        .optional()
}

fn windows(connection: &Connection, task: i64, interval: Span) -> rusqlite::Result<Vec<u64>> {
    connection
        .prepare_cached(
            "SELECT start FROM batches WHERE task = ?1 AND start >= ?2 AND start < ?3
             ORDER BY start",
        )?
        .query_map(params![task, interval.start as i64, interval.finish as i64], |row| row.get::<_, i64>(0))?
        .map(|start| start.map(|start| start as u64))
        .collect()
}

fn sum_of(connection: &Connection, table: &str, task: i64, interval: Span) -> rusqlite::Result<u64> {
    connection
        .prepare_cached(&format!(
            "SELECT coalesce(sum(reports), 0) FROM {table}
             WHERE task = ?1 AND start >= ?2 AND start < ?3"
        ))?
        .query_row(params![task, interval.start as i64, interval.finish as i64], |row| row.get::<_, i64>(0))
        .map(|count| count as u64)
}
