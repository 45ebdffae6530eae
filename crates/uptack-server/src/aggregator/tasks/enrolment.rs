//! Enrolment: one report per owner and task, from owners whose public keys the operator listed.
//!
//! Without it, anyone who reaches the leader can invent owners, and the claim for a crowd is only as good as the crowd. A
//! [credential](uptack_dap::credential) tells the leader who reports, as the network address does anyway; the
//! answer stays sealed.

use axum::http::HeaderMap;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::RwLock,
    time::SystemTime,
};
use uptack::card::{Card, Enrolment};
use uptack_dap::{
    credential::{self, Credential},
    protocol::TaskId,
    signed::PublicKey,
    task::{AggregatorRole, AggregatorTask},
};

use crate::{
    base::{
        problem::{Answer, Problem},
        read, write,
    },
    error::{Error, Result},
};

/// The public keys of the owners whom a leader knows.
pub(crate) struct Enrolled {
    file: Option<PathBuf>,
    known: RwLock<KeyList>,
}

#[derive(Default)]
struct KeyList {
    keys: HashSet<[u8; 32]>,
    /// When the file with the keys was last changed.
    changed: Option<SystemTime>,
}

impl Enrolled {
    pub(crate) fn read(file: Option<&Path>) -> Result<Self> {
        let enrolled = Self { file: file.map(Path::to_owned), known: RwLock::default() };
        enrolled.refresh()?;
        Ok(enrolled)
    }

    /// Reads the file again if it has changed. A file with an error in it changes nothing.
    pub(crate) fn refresh(&self) -> Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let at = |error: std::io::Error| Error::input(format!("{}: {error}", path.display()));
        let changed = Some(std::fs::metadata(path).and_then(|data| data.modified()).map_err(at)?);
        if read(&self.known).changed == changed {
            return Ok(());
        }
        let keys = parse_keys(path, &std::fs::read_to_string(path).map_err(at)?)?;
        *write(&self.known) = KeyList { keys, changed };
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

    /// The owner of an upload to a task for enrolled owners: one who is listed and has signed these bytes.
    pub(crate) fn owner(&self, task: &TaskId, shown: Option<Credential>, report: &[u8]) -> Answer<PublicKey> {
        let refuse = || Problem::forbidden("This task is for enrolled owners.");
        let credential = shown.ok_or_else(refuse)?;
        // The list comes first: looking up a stranger is cheaper than checking its signature.
        let key = credential.key().filter(|key| self.is_listed(key)).ok_or_else(refuse)?;
        if !credential.verify(task, report) {
            return Err(refuse());
        }
        Ok(key)
    }

    fn is_listed(&self, key: &PublicKey) -> bool {
        read(&self.known).keys.contains(key.as_bytes())
    }
}

/// One key per line; empty lines are skipped.
fn parse_keys(path: &Path, text: &str) -> Result<HashSet<[u8; 32]>> {
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    lines.map(|(index, line)| parse_key(line).map_err(|error| at_line(path, index + 1, &error))).collect()
}

fn parse_key(line: &str) -> uptack_dap::Result<[u8; 32]> {
    Ok(*line.parse::<PublicKey>()?.as_bytes())
}

fn at_line(path: &Path, line: usize, error: &uptack_dap::Error) -> Error {
    let place = format!("{}: line {line}", path.display());
    Error::input(format!("{place}: {error}; hashes of an earlier version's credentials are no longer accepted"))
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
