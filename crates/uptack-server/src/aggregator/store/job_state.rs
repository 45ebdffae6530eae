//! Where a collection job stands.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

/// `docs/DATA_MODEL.md` says which states follow which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobState {
    /// Its batch does not have enough reports yet.
    Waiting,
    /// Its batch is closed, and the reports taken before that are still being aggregated.
    Draining,
    /// Its result is ready.
    Finished,
    /// It has no result and will have none.
    Failed,
    /// The collector deleted it. Its batch stays taken.
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
