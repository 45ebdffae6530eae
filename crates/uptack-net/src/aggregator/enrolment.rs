//! Enrolment: one credential an owner, one report a task.
//!
//! Without it whoever reaches the leader can invent owners, and the claim for a crowd is worth what the crowd is. A
//! credential tells the leader who reports, as the network address does anyhow; what is reported stays sealed.

use axum::http::StatusCode;
use rusqlite::{Connection, params};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{PoisonError, RwLock},
    time::SystemTime,
};
use uptack::card::{Card, Enrolment};

use super::{problem::Problem, shared::Task};
use crate::{
    dap::ReportId,
    error::{Error, Result},
    task::{AggregatorRole, AggregatorTask},
    token::TokenHash,
};

/// The credentials that a leader knows, by their hashes.
pub(crate) struct Enrolled {
    file: Option<PathBuf>,
    known: RwLock<(HashSet<TokenHash>, Option<SystemTime>)>,
}

impl Enrolled {
    pub(crate) fn read(file: Option<&Path>) -> Result<Self> {
        let enrolled = Self { file: file.map(Path::to_owned), known: RwLock::default() };
        enrolled.refresh()?;
        Ok(enrolled)
    }

    /// Reads the file again if it has changed. A file with a fault in it changes nothing.
    pub(crate) fn refresh(&self) -> Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let at = |error: std::io::Error| Error::input(format!("{}: {error}", path.display()));
        let changed = std::fs::metadata(path).and_then(|data| data.modified()).map_err(at)?;
        if self.known.read().unwrap_or_else(PoisonError::into_inner).1 == Some(changed) {
            return Ok(());
        }
        let text = std::fs::read_to_string(path).map_err(at)?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let hashes = lines.map(|(index, line)| {
            TokenHash::try_from(line.trim().to_owned())
                .map_err(|error| Error::input(format!("{}: line {}: {error}", path.display(), index + 1)))
        });
        let hashes = hashes.collect::<Result<HashSet<_>>>()?;
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = (hashes, Some(changed));
        Ok(())
    }

    /// Whether a task can be served at all.
    pub(crate) fn check(&self, task: &AggregatorTask) -> Result<()> {
        if task.role == AggregatorRole::Leader && is_required(task) && self.file.is_none() {
            return Err(Error::input("task: the card requires enrolment, and this leader has no list of credentials"));
        }
        Ok(())
    }

    /// The credential of an upload, where the task needs one.
    pub(crate) fn credential(
        &self,
        task: &Task,
        shown: Option<&[u8]>,
    ) -> std::result::Result<Option<TokenHash>, Problem> {
        if !task.needs_credential {
            return Ok(None);
        }
        let hash = shown.map(TokenHash::of);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        match hash {
            Some(hash) if known.0.contains(&hash) => Ok(Some(hash)),
            _ => Err(Problem::http(StatusCode::FORBIDDEN, "This task is for enrolled owners.")),
        }
    }
}

/// Whether the task's card requires enrolment.
pub(crate) fn is_required(task: &AggregatorTask) -> bool {
    let card = task.card.as_deref().and_then(|text| Card::from_json(text).ok());
    card.is_some_and(|card| card.enrolment == Some(Enrolment::Required))
}

/// Uses a credential for a report; false if it was used for another one.
pub(crate) fn spend(
    connection: &Connection,
    task: i64,
    credential: &TokenHash,
    report: &ReportId,
) -> rusqlite::Result<bool> {
    let key = credential.as_bytes();
    connection.prepare_cached("INSERT OR IGNORE INTO enrolled VALUES (?1, ?2, ?3)")?.execute(params![
        task,
        key,
        report.as_ref()
    ])?;
    let used: Vec<u8> = connection
        .prepare_cached("SELECT report_id FROM enrolled WHERE task = ?1 AND credential = ?2")?
        .query_row(params![task, key], |row| row.get(0))?;
    Ok(used == report.as_ref())
}
