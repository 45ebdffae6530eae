//! `kill -9` at random moments under load: nothing acknowledged is lost, nothing counts twice.

use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use uptack_dap::{client::Client, collector::Collector, protocol::Measurement};

use crate::aggregator::support::{PATIENCE, Processes, now};

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
