//! Where a collection job stands.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

/// Which states follow which is told in `docs/DATA_MODEL.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobState {
    /// There is not enough in its batch yet.
    Waiting,
    /// Its batch is closed, and what was taken up before is still being aggregated.
    Draining,
    /// Its result lies ready.
    Finished,
    /// It has no result and will have none.
    Failed,
    /// The collector had it forgotten. Its batch stays taken.
    Deleted,
}

impl JobState {
    const ALL: [Self; 5] = [Self::Waiting, Self::Draining, Self::Finished, Self::Failed, Self::Deleted];

    /// The word in the file and in counters.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Draining => "draining",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Deleted => "deleted",
        }
    }
}

impl ToSql for JobState {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.word().into())
    }
}

impl FromSql for JobState {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word = value.as_str()?;
        Self::ALL.into_iter().find(|state| state.word() == word).ok_or(FromSqlError::InvalidType)
    }
}
