//! What an aggregator does by itself from time to time: old data, old keys, new task files.

use rusqlite::{Connection, params};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    keys::Keys,
    shared::{Shared, Task},
};
use crate::{
    aggregator::{definition::Definition, store::StoreError},
    error::Result,
};

/// Between two looks at the task files.
const PULSE: Duration = Duration::from_secs(1);
/// Pulses between two cleanings.
const CLEANING: u32 = 60;
/// A replaced key opens reports for at least so long.
const SHORTEST_OVERLAP: u64 = 24 * 3600;

/// Runs until the aggregator stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut stopping = shared.stopping.subscribe();
    let work = async {
        let mut seen = HashMap::new();
        let mut pulses = 0;
        loop {
            load_files(&shared, &mut seen).await;
            if let Err(error) = shared.enrolled.refresh() {
                tracing::error!(%error, "the list of credentials stays as it was");
            }
            if pulses % CLEANING == 0
                && let Err(error) = clean(&shared).await
            {
                tracing::warn!(%error, "cleaning is delayed");
            }
            pulses = pulses.wrapping_add(1);
            tokio::time::sleep(PULSE).await;
        }
    };
    tokio::select! {
        () = work => {}
        _ = stopping.wait_for(|stop| *stop) => {}
    }
}

/// Serves what lies in the directory `tasks` below the data, once for each version of a file.
pub(crate) async fn load_files(shared: &Arc<Shared>, seen: &mut HashMap<PathBuf, Option<SystemTime>>) {
    for path in task_files(&shared.config.data.join("tasks")) {
        let changed = std::fs::metadata(&path).and_then(|data| data.modified()).ok();
        if seen.insert(path.clone(), changed) == Some(changed) {
            continue;
        }
        let added = match Definition::read(&path) {
            Ok(definition) => super::add_task(shared, definition).await,
            Err(error) => Err(error),
        };
        if let Err(error) = added {
            tracing::error!(file = %path.display(), %error, "task file refused");
        }
    }
}

/// Deletes what has expired, and rotates or purges keys.
pub(crate) async fn clean(shared: &Shared) -> Result<()> {
    let now = shared.expiry.advance(&shared.store, shared.now()).await?;
    let mut longest = Some(SHORTEST_OVERLAP);
    for task in shared.tasks() {
        let age = task.definition.parameters.report_expiry_age;
        longest = longest.zip(age).map(|(longest, age)| longest.max(age));
        if let Some(age) = age {
            expire(shared, &task, now.saturating_sub(age)).await?;
        }
    }
    if let Some(lifetime) = shared.config.key_lifetime
        && now.saturating_sub(shared.keys().created()) >= lifetime.as_secs()
    {
        shared.set_keys(Keys::rotate(&shared.store, now).await?);
        tracing::info!("new key for reports");
    }
    if let Some(longest) = longest {
        let before = now.saturating_sub(longest);
        shared.set_keys(Keys::purge(&shared.store, before).await?);
    }
    Ok(())
}

async fn expire(shared: &Shared, task: &Arc<Task>, floor: u64) -> Result<()> {
    let task = Arc::clone(task);
    Ok(shared.store.write(move |connection| forget_before(connection, &task, floor)).await?)
}

/// Raises the floor first: what is forgotten can then never be taken again, even if the clock is
/// set back. Stored reports and open jobs are not touched; they end with the helper's refusal.
fn forget_before(connection: &Connection, task: &Task, floor: u64) -> std::result::Result<(), StoreError<()>> {
    let precision = task.definition.parameters.time_precision;
    let last_window = floor.saturating_sub(precision) as i64;
    let row = task.row;
    connection.execute("UPDATE tasks SET floor = max(floor, ?2) WHERE task = ?1", params![row, floor as i64])?;
    connection.execute("DELETE FROM report_ids WHERE task = ?1 AND time < ?2", params![row, floor as i64])?;
    connection.execute("DELETE FROM helper_jobs WHERE task = ?1 AND created < ?2", params![row, last_window])?;
    connection
        .execute("DELETE FROM pending WHERE task = ?1 AND start <= ?2 AND reports = 0", params![row, last_window])?;
    connection.execute(
        "DELETE FROM batches WHERE task = ?1 AND start <= ?2 AND NOT EXISTS
         (SELECT 1 FROM collection_jobs
          WHERE task = ?1 AND state IN ('waiting', 'draining')
          AND batches.start >= collection_jobs.start AND batches.start < finish)",
        params![row, last_window],
    )?;
    Ok(())
}

fn task_files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    files
}
