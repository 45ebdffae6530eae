//! `kill -9` around the moment in which a batch's noise is drawn: there is one draw, and what is seen is always the same.

use rusqlite::{Connection, OpenFlags};
use std::{path::Path, time::Duration};
use uptack_dap::{
    client::Client,
    collector::{Collected, Collector},
    protocol::{AggregateShareAnswer, BatchInterval, CollectionAnswer, Measurement, ReportId, SealedShare},
};

use crate::aggregator::support::{
    PATIENCE, Processes, ask_for_share, collection, eventually, metric, noisy, now, share_request,
};

/// Two processes with reports that both have added up.
async fn aggregated(reports: usize) -> (Processes, Vec<ReportId>, BatchInterval) {
    let processes = Processes::with(1, noisy(2, "50")).await;
    let client = Client::new(processes.task.parameters().clone()).unwrap();
    let mut ids = Vec::new();
    for _ in 0..reports {
        let report = client.upload(&Measurement::Bits(vec![true, false]), now(), PATIENCE).await.unwrap();
        ids.push(*report.id());
    }
    let base = processes.leader.operations_url().unwrap();
    eventually("all is added up", async || metric(&base, "uptack_pending_reports ").await == 0).await;
    let batch = processes.task.parameters().batch(now(), 1).unwrap();
    (processes, ids, batch)
}

/// The sealed share that an aggregator keeps for a batch that is given out.
fn kept_share(state: &Path) -> Option<Vec<u8>> {
    let connection = Connection::open_with_flags(state, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    connection.query_row("SELECT response FROM collected", [], |row| row.get(0)).ok().flatten()
}

fn sealed(bytes: &[u8]) -> SealedShare {
    SealedShare::from_bytes(bytes).unwrap()
}

/// The leader draws while the helper is away, and is killed again and again before it can hand anything over.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_killed_after_its_draw_does_not_draw_again() {
    let (mut processes, _, batch) = aggregated(3).await;
    processes.helper.kill();
    let collector = Collector::new(processes.task.collector.clone()).unwrap();
    let job = Collector::new_job();
    collector.request(&job, batch).await.unwrap();
    let state = processes.leader.state();
    eventually("the leader's share is stored", async || kept_share(&state).is_some()).await;
    let drawn = kept_share(&state).unwrap();
    for _ in 0..3 {
        processes.leader.kill();
        processes.leader.start();
        let base = processes.leader.operations_url().unwrap();
        let failed = "uptack_peer_failures_total{call=\"aggregate-share\"}";
        eventually("the helper is asked again", async || metric(&base, failed).await > 0).await;
        assert_eq!(kept_share(&state).unwrap(), drawn);
    }
    processes.helper.start();
    let collected = collector.collect(&job, batch, PATIENCE).await.unwrap();
    let bytes = collection(&processes.leader.url(), &processes.task, &job).await;
    let result = CollectionAnswer::from_bytes(&bytes).unwrap();
    assert_eq!(result.leader_share, sealed(&drawn));
    // The result has it now; nothing else keeps it.
    assert!(kept_share(&state).is_none());
    seen_again(&mut processes, &collector, &job, batch, (&collected, &bytes)).await;
}

/// Collects, kills, restarts and collects again: the same bytes.
async fn seen_again(
    processes: &mut Processes,
    collector: &Collector,
    job: &uptack_dap::protocol::CollectionJobId,
    batch: BatchInterval,
    (collected, bytes): (&Collected, &[u8]),
) {
    processes.leader.kill();
    processes.helper.kill();
    processes.helper.start();
    processes.leader.start();
    assert_eq!(&collector.collect(job, batch, PATIENCE).await.unwrap(), collected);
    assert_eq!(collection(&processes.leader.url(), &processes.task, job).await, bytes);
    let another = collector.collect(&Collector::new_job(), batch, PATIENCE).await.unwrap_err();
    assert!(another.is_refused() && another.to_string().contains("too many times"), "{another}");
}

/// The helper's answer is lost on its way, and the helper is killed before it is asked again.
#[tokio::test(flavor = "multi_thread")]
async fn a_helper_that_is_killed_after_its_draw_does_not_draw_again() {
    let (mut processes, ids, batch) = aggregated(3).await;
    let request = share_request(batch, &ids);
    let (status, first) = ask_for_share(&processes.helper.url(), &processes.task, request.clone()).await;
    assert_eq!(status, 200);
    for _ in 0..2 {
        processes.helper.kill();
        processes.helper.start();
        assert_eq!(
            ask_for_share(&processes.helper.url(), &processes.task, request.clone()).await,
            (200, first.clone())
        );
    }
    let collector = Collector::new(processes.task.collector.clone()).unwrap();
    let job = Collector::new_job();
    let collected = collector.collect(&job, batch, PATIENCE).await.unwrap();
    let bytes = collection(&processes.leader.url(), &processes.task, &job).await;
    let result = CollectionAnswer::from_bytes(&bytes).unwrap();
    assert_eq!(result.helper_share, AggregateShareAnswer::from_bytes(&first).unwrap().0);
    seen_again(&mut processes, &collector, &job, batch, (&collected, &bytes)).await;
}

/// Both are killed at growing distances from the request, so that some kills fall into the very transactions. Whatever
/// share was ever stored for the batch is the one that is handed over.
#[tokio::test(flavor = "multi_thread")]
async fn kills_at_any_moment_of_a_collection_leave_one_draw() {
    let (mut processes, _, batch) = aggregated(2).await;
    let collector = Collector::new(processes.task.collector.clone()).unwrap();
    let job = Collector::new_job();
    let mut stored: [Vec<Vec<u8>>; 2] = Default::default();
    for delay in [0, 1, 2, 3, 5, 8, 13, 21] {
        let _ = collector.request(&job, batch).await;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        processes.leader.kill();
        processes.helper.kill();
        for (process, stored) in [&processes.leader, &processes.helper].into_iter().zip(&mut stored) {
            stored.extend(kept_share(&process.state()));
        }
        processes.helper.start();
        processes.leader.start();
    }
    collector.collect(&job, batch, PATIENCE).await.unwrap();
    let bytes = collection(&processes.leader.url(), &processes.task, &job).await;
    let result = CollectionAnswer::from_bytes(&bytes).unwrap();
    for share in &stored[0] {
        assert_eq!(sealed(share), result.leader_share);
    }
    for share in &stored[1] {
        assert_eq!(AggregateShareAnswer::from_bytes(share).unwrap().0, result.helper_share);
    }
}
