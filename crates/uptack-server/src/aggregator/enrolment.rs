//! Enrolment: one report per owner and task, from owners whose public keys the operator listed.
//!
//! Without it whoever reaches the leader can invent owners, and the claim for a crowd is worth what the crowd is. A
//! [credential](uptack_dap::credential) tells the leader who reports, as the network address does anyhow; what is reported
//! stays sealed.

use axum::http::{HeaderMap, StatusCode};
use rusqlite::{Connection, params};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{PoisonError, RwLock},
    time::SystemTime,
};
use uptack::card::{Card, Enrolment};
use uptack_dap::{
    credential::{self, Credential},
    protocol::{ReportId, TaskId},
    signed::PublicKey,
    task::{AggregatorRole, AggregatorTask},
};

use crate::{
    base::problem::Problem,
    error::{Error, Result},
};

/// The public keys of the owners whom a leader knows.
pub(crate) struct Enrolled {
    file: Option<PathBuf>,
    known: RwLock<(HashSet<[u8; 32]>, Option<SystemTime>)>,
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
        let keys = lines.map(|(index, line)| {
            let key = line.trim().parse::<PublicKey>().map_err(|error| {
                let place = format!("{}: line {}", path.display(), index + 1);
                Error::input(format!(
                    "{place}: {error}; hashes of an earlier version's credentials are no longer accepted"
                ))
            })?;
            Ok(*key.as_bytes())
        });
        let keys = keys.collect::<Result<HashSet<_>>>()?;
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = (keys, Some(changed));
        Ok(())
    }

    /// Whether a task can be served at all.
    pub(crate) fn check(&self, task: &AggregatorTask) -> Result<()> {
        if task.role == AggregatorRole::Leader && is_required(task) && self.file.is_none() {
            return Err(Error::input(
                "task: the card requires enrolment, and this leader has no list of enrolled owners",
            ));
        }
        Ok(())
    }

    /// The owner of an upload to a task for enrolled owners: one that is listed and signed these bytes.
    pub(crate) fn owner(
        &self,
        task: &TaskId,
        shown: Option<Credential>,
        report: &[u8],
    ) -> std::result::Result<PublicKey, Problem> {
        let refuse = || Problem::http(StatusCode::FORBIDDEN, "This task is for enrolled owners.");
        let credential = shown.ok_or_else(refuse)?;
        // The list is asked first, because looking up a stranger is cheaper than checking its signature.
        let key = credential.key().filter(|key| self.is_listed(key)).ok_or_else(refuse)?;
        if !credential.verify(task, report) {
            return Err(refuse());
        }
        Ok(key)
    }

    fn is_listed(&self, key: &PublicKey) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).0.contains(key.as_bytes())
    }
}

/// The credential in a request.
pub(crate) fn shown(headers: &HeaderMap) -> Option<Credential> {
    let text = headers.get(credential::HEADER)?.to_str().ok()?;
    Some(Credential::from_text(text.to_owned()))
}

/// Whether the task's card requires enrolment.
pub(crate) fn is_required(task: &AggregatorTask) -> bool {
    let card = task.card.as_deref().and_then(|text| Card::from_json(text).ok());
    card.is_some_and(|card| card.enrolment == Some(Enrolment::Required))
}

/// Gives an owner's place in a task to a report; false if another report has it.
pub(crate) fn spend(
    connection: &Connection,
    task: i64,
    owner: &PublicKey,
    report: &ReportId,
) -> rusqlite::Result<bool> {
    let key = owner.as_bytes();
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
