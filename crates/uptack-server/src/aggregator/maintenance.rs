//! What an aggregator does by itself from time to time: delete old data, replace old keys, read new task files.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::aggregator::{
    state::{Shared, Task},
    tasks::keys::Keys,
};
use crate::{
    aggregator::{
        store::{TaskRows, WriteResult},
        tasks::definition::Definition,
    },
    error::Result,
};

/// Time between two looks at the task files.
const PULSE: Duration = Duration::from_secs(1);
/// Pulses between two cleanings.
const CLEANING: u32 = 60;
/// How long a replaced key opens reports, at least.
const SHORTEST_OVERLAP: u64 = 24 * 3600;

/// Runs until the aggregator stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut stopping = shared.stopping.subscribe();
    tokio::select! {
        () = repeat(&shared) => {}
        _ = stopping.wait_for(|stop| *stop) => {}
    }
}

async fn repeat(shared: &Arc<Shared>) {
    let mut seen = HashMap::new();
    for pulse in (0..CLEANING).cycle() {
        load_files(shared, &mut seen).await;
        if let Err(error) = shared.enrolled.refresh() {
            tracing::error!(%error, "the list of credentials stays as it was");
        }
        if pulse == 0
            && let Err(error) = clean(shared).await
        {
            tracing::warn!(%error, "cleaning is delayed");
        }
        tokio::time::sleep(PULSE).await;
    }
}

/// Serves the task files in the directory `tasks` below the data, each version of a file once.
pub(crate) async fn load_files(shared: &Arc<Shared>, seen: &mut HashMap<PathBuf, Option<SystemTime>>) {
    for path in task_files(&shared.config.data.join("tasks")) {
        let changed = std::fs::metadata(&path).and_then(|data| data.modified()).ok();
        if seen.insert(path.clone(), changed) == Some(changed) {
            continue;
        }
        if let Err(error) = load_file(shared, &path).await {
            tracing::error!(file = %path.display(), %error, "task file refused");
        }
    }
}

async fn load_file(shared: &Arc<Shared>, path: &Path) -> Result<()> {
    crate::aggregator::add_task(shared, Definition::read(path)?).await
}

/// Deletes what has expired, and rotates or purges keys.
pub(crate) async fn clean(shared: &Shared) -> Result<()> {
    let now = shared.expiry.advance(&shared.store, shared.now()).await?;
    let tasks = shared.tasks();
    for task in &tasks {
        expire(shared, task, now).await?;
    }
    rotate_key(shared, now).await?;
    purge_keys(shared, &tasks, now).await
}

async fn expire(shared: &Shared, task: &Arc<Task>, now: u64) -> Result<()> {
    let Some(age) = task.parameters().report_expiry_age else { return Ok(()) };
    let floor = now.saturating_sub(age);
    Ok(shared.change(task, move |rows, task| forget_before(rows, task, floor)).await?)
}

/// Makes a new key if the current one has reached its age.
async fn rotate_key(shared: &Shared, now: u64) -> Result<()> {
    if let Some(lifetime) = shared.config.key_lifetime
        && now.saturating_sub(shared.keys().created()) >= lifetime.as_secs()
    {
        shared.set_keys(Keys::rotate(&shared.store, now).await?);
        tracing::info!("new key for reports");
    }
    Ok(())
}

/// Deletes keys that were replaced so long ago that no task takes reports sealed under them. A task whose reports never
/// expire keeps them all.
async fn purge_keys(shared: &Shared, tasks: &[Arc<Task>], now: u64) -> Result<()> {
    let mut ages = tasks.iter().map(|task| task.parameters().report_expiry_age);
    let longest = ages.try_fold(SHORTEST_OVERLAP, |longest, age| Some(longest.max(age?)));
    if let Some(longest) = longest {
        let before = now.saturating_sub(longest);
        shared.set_keys(Keys::purge(&shared.store, before).await?);
    }
    Ok(())
}

/// Raises the floor first: what is forgotten can then never be taken again, even if the clock is
/// set back. Stored reports and open jobs are not touched; they end with the helper's refusal.
fn forget_before(rows: TaskRows<'_>, task: &Task, floor: u64) -> WriteResult<()> {
    let last_window = floor.saturating_sub(task.parameters().time_precision);
    let (floor, last_window) = ([rows.task, floor as i64], [rows.task, last_window as i64]);
    rows.execute("UPDATE tasks SET floor = max(floor, ?2) WHERE task = ?1", floor)?;
    rows.execute("DELETE FROM report_ids WHERE task = ?1 AND time < ?2", floor)?;
    rows.execute("DELETE FROM helper_jobs WHERE task = ?1 AND created < ?2", last_window)?;
    rows.execute("DELETE FROM pending WHERE task = ?1 AND start <= ?2 AND reports = 0", last_window)?;
    rows.execute(
        "DELETE FROM batches WHERE task = ?1 AND start <= ?2 AND NOT EXISTS
         (SELECT 1 FROM collection_jobs
          WHERE task = ?1 AND state IN ('waiting', 'draining')
          AND batches.start >= collection_jobs.start AND batches.start < finish)",
        last_window,
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
