//! Regular work: deleting expired data, replacing old keys, reading new task files.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    aggregator::{
        state::AggregatorState,
        store::ChangeResult,
        tasks::{ServedTask, definition::TaskDefinition, keys::Keys},
    },
    error::Result,
};

/// The time between two checks for new task files.
const PULSE: Duration = Duration::from_secs(1);
/// Pulses between two cleanings.
const CLEANING: u32 = 60;
/// How long a replaced key opens reports, at least.
const SHORTEST_OVERLAP: u64 = 24 * 3600;

/// Runs until the aggregator stops.
pub(crate) async fn run(shared: Arc<AggregatorState>) {
    let mut stopping = shared.stopping.subscribe();
    tokio::select! {
        () = repeat(&shared) => {}
        _ = stopping.wait_for(|stop| *stop) => {}
    }
}

async fn repeat(shared: &Arc<AggregatorState>) {
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
pub(crate) async fn load_files(shared: &Arc<AggregatorState>, seen: &mut HashMap<PathBuf, Option<SystemTime>>) {
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

async fn load_file(shared: &Arc<AggregatorState>, path: &Path) -> Result<()> {
    crate::aggregator::add_task(shared, TaskDefinition::read(path)?).await
}

/// Deletes expired data, and rotates or purges keys.
pub(crate) async fn clean(shared: &AggregatorState) -> Result<()> {
    let now = shared.expiry.advance(&shared.store, shared.now()).await?;
    let tasks = shared.tasks();
    for task in &tasks {
        expire(shared, task, now).await?;
    }
    rotate_key(shared, now).await?;
    purge_keys(shared, &tasks, now).await
}

async fn expire(shared: &AggregatorState, task: &Arc<ServedTask>, now: u64) -> Result<()> {
    let Some(age) = task.parameters().report_expiry_age else { return Ok(()) };
    let floor = now.saturating_sub(age);
    let precision = task.parameters().time_precision;
    let forgotten: ChangeResult<()> =
        shared.change(task, move |stored, _| Ok(stored.forget_before(floor, precision)?)).await;
    Ok(forgotten?)
}

/// Makes a new key if the current one has reached its age.
async fn rotate_key(shared: &AggregatorState, now: u64) -> Result<()> {
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
async fn purge_keys(shared: &AggregatorState, tasks: &[Arc<ServedTask>], now: u64) -> Result<()> {
    let mut ages = tasks.iter().map(|task| task.parameters().report_expiry_age);
    let longest = ages.try_fold(SHORTEST_OVERLAP, |longest, age| Some(longest.max(age?)));
    if let Some(longest) = longest {
        let before = now.saturating_sub(longest);
        shared.set_keys(Keys::purge(&shared.store, before).await?);
    }
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
