//! Notices a desk or an aggregator whose state was replaced by an older copy.
//!
//! Desk and aggregators are each other's witnesses: the aggregators list the tasks of this desk's cards, and the desk knows which of
//! these it added and removed. No counter is needed, and no later change hides a difference.
//!
//! | the aggregator | the desk | so |
//! | --- | --- | --- |
//! | serves a task | had it removed | the aggregator is an older copy, which could release the batch again: removed again |
//! | does not know a task | has it open | the aggregator is an older copy; answers are lost |
//! | serves a task | does not know it | the desk is an older copy; owners may pay twice |

use std::{collections::HashSet, sync::Arc};
use uptack_dap::protocol::{AggregatorRole, TaskId};

use crate::{
    desk::{
        shared::{DeskCounter, DeskState},
        store::{QueryState, Store},
    },
    error::Result,
};

/// Compares the states at the start, and again and again until the desk stops.
pub(crate) async fn keep_watch(shared: Arc<DeskState>) {
    let mut stopping = shared.stopping.subscribe();
    while !*stopping.borrow() {
        for role in [AggregatorRole::Leader, AggregatorRole::Helper] {
            // One that is away is asked the next time.
            if let Err(error) = compare(&shared, role).await {
                tracing::debug!(%role, %error, "the tasks could not be compared");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(shared.config.compare_every) => {}
            _ = stopping.changed() => {}
        }
    }
}

/// What the states of the desk and of one aggregator disagree about.
#[derive(Debug, Default)]
struct Differences {
    /// Served although the desk had them removed.
    returned: Vec<TaskId>,
    /// Not served although their queries are open.
    lost: Vec<String>,
    /// Served, but unknown to the desk.
    unknown: Vec<TaskId>,
}

async fn compare(shared: &Arc<DeskState>, role: AggregatorRole) -> Result<()> {
    let open = open_queries(shared).await?;
    let Some(served) = shared.provisioner.tasks(role).await? else { return Ok(()) };
    let mut found = shared.store.run(move |store| differences(store, &open, served)).await?;
    // A task may have been removed between the two looks: what is served still, after the desk has forgotten it, has returned.
    if !found.returned.is_empty() {
        let again: HashSet<TaskId> = shared.provisioner.tasks(role).await?.unwrap_or_default().into_iter().collect();
        found.returned.retain(|task| again.contains(task));
    }
    report(shared, role, &found);
    for task in &found.returned {
        shared.provisioner.remove_from(role, task).await?;
    }
    Ok(())
}

async fn open_queries(shared: &Arc<DeskState>) -> Result<Vec<String>> {
    let windows = shared.store.run(|store| store.open_windows()).await?;
    Ok(windows.into_iter().map(|window| window.query).collect())
}

/// Compares the tasks that an aggregator serves with the queries that were open before it was asked, and with the store.
fn differences(store: &Store, open: &[String], served: Vec<TaskId>) -> Result<Differences> {
    let mut found = Differences::default();
    let listed: HashSet<String> = served.iter().map(TaskId::to_string).collect();
    for task in served {
        match store.query(&task.to_string())? {
            None => found.unknown.push(task),
            // The desk forgets its part of a task when both aggregators have removed theirs.
            Some(query) if query.tasks.is_none() => found.returned.push(task),
            Some(_) => {}
        }
    }
    for name in open.iter().filter(|name| !listed.contains(*name)) {
        if store.query(name)?.is_some_and(|query| query.state == QueryState::Open) {
            found.lost.push(name.clone());
        }
    }
    Ok(found)
}

fn report(shared: &DeskState, role: AggregatorRole, found: &Differences) {
    let Differences { returned, lost, unknown } = found;
    if !returned.is_empty() || !lost.is_empty() {
        shared.metrics.add(DeskCounter::Rollbacks, label(role), 1);
        tracing::error!(
            %role,
            returned = returned.len(),
            lost = lost.len(),
            "an aggregator's state is an older copy: tasks that it had removed are removed again, answers to those that it lost \
             are lost"
        );
    }
    if !unknown.is_empty() {
        shared.metrics.add(DeskCounter::Rollbacks, "desk", 1);
        tracing::error!(
            %role,
            unknown = unknown.len(),
            "the desk's state is an older copy: an aggregator serves cards that this desk signed and does not know"
        );
    }
}

fn label(role: AggregatorRole) -> &'static str {
    match role {
        AggregatorRole::Leader => "leader",
        AggregatorRole::Helper => "helper",
    }
}
