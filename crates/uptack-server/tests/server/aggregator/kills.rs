//! `kill -9` at random moments under load: nothing acknowledged is lost, nothing counts twice. And around the moment in which
//! a batch's noise is drawn: there is one draw, and everybody always sees the same.

use rand::{Rng, SeedableRng, rngs::StdRng};
use rusqlite::{Connection, OpenFlags};
use std::{
    io::Write,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use uptack_dap::{
    client::Client,
    collector::{Collected, Collector},
    protocol::{AggregateShareAnswer, BatchInterval, CollectionAnswer, Measurement, ReportId, SealedShare},
};

use crate::aggregator::support::{
    PATIENCE, Processes, ask_for_share, collection, eventually, metric, noisy, now, share_request,
};

/// One schedule of kills for each seed.
const SEEDS: [u64; 4] = [1, 2, 3, 4];
/// How often one process or both are killed, beside the collection's own.
const ROUNDS: u64 = 14;
const CLIENTS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn kills_at_any_moment_lose_nothing_and_double_nothing() {
    let (mut kills, mut acknowledged, mut lost, mut doubled) = (0, 0, 0, 0);
    for seed in SEEDS {
        let (killed, expected, collected) = run(seed).await;
        kills += killed;
        acknowledged += expected.iter().sum::<u64>();
        for (expected, collected) in expected.iter().zip(&collected) {
            lost += expected.saturating_sub(*collected);
            doubled += collected.saturating_sub(*expected);
        }
    }
    // Written past the test harness, which would swallow it when all is well.
    let _ = writeln!(
        std::io::stderr(),
        "{kills} kills, {acknowledged} reports acknowledged, {lost} lost, {doubled} doubled"
    );
    assert!(kills >= 50 && acknowledged >= 500);
    assert_eq!((lost, doubled), (0, 0));
}

/// One schedule: kills, what clients were told is stored, and what the collector gets.
async fn run(seed: u64) -> (u64, [u64; 3], Vec<u64>) {
    let mut processes = Processes::new(1).await;
    let stop = Arc::new(AtomicBool::new(false));
    let counts: Arc<[AtomicU64; 3]> = Arc::default();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|index| {
            let client = Client::new(processes.task.parameters().clone()).unwrap();
            let (stop, counts) = (Arc::clone(&stop), Arc::clone(&counts));
            tokio::spawn(upload_until(client, index, stop, counts))
        })
        .collect();
    let mut coins = StdRng::seed_from_u64(seed);
    let mut killed = 0;
    for _ in 0..ROUNDS {
        tokio::time::sleep(Duration::from_millis(coins.gen_range(5..250))).await;
        let victims = coins.gen_range(0..3);
        if victims != 0 {
            processes.leader.kill();
            killed += 1;
        }
        if victims != 1 {
            processes.helper.kill();
            killed += 1;
        }
        tokio::time::sleep(Duration::from_millis(coins.gen_range(0..30))).await;
        if victims != 1 {
            processes.helper.start();
        }
        if victims != 0 {
            processes.leader.start();
        }
    }
    stop.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    let collector = Collector::new(processes.task.collector.clone()).unwrap();
    let batch = processes.task.parameters().batch(now(), 1).unwrap();
    let job = Collector::new_job();
    // The collection is interrupted too, at moments of its own.
    collector.request(&job, batch).await.unwrap();
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(coins.gen_range(0..40))).await;
        processes.leader.kill();
        processes.helper.kill();
        killed += 2;
        processes.helper.start();
        processes.leader.start();
    }
    let collected = collector.collect(&job, batch, PATIENCE).await.unwrap();
    let expected = [0, 1, 2].map(|cell| counts[cell].load(Ordering::SeqCst));
    (killed, expected, collected.counts)
}

/// Makes reports and sends each, the same bytes, until the leader acknowledges it.
async fn upload_until(client: Client, index: usize, stop: Arc<AtomicBool>, counts: Arc<[AtomicU64; 3]>) {
    let mut cell = index;
    while !stop.load(Ordering::SeqCst) {
        cell = (cell + 1) % 3;
        let report = loop {
            match client.seal(&Measurement::Cell(cell), now()).await {
                Ok(report) => break report,
                Err(error) => assert!(error.is_unreachable(), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        while let Err(error) = client.send(&report).await {
            assert!(error.is_unreachable(), "{error}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        counts[cell].fetch_add(1, Ordering::SeqCst);
        // A steady load is enough; without a pause it would be all that the machine can do.
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
}

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
