//! A clock that is wrong for a while does no lasting harm.

use uptack_dap::{clock::Clock, collector::Collector, protocol::Measurement};

use crate::aggregator::support::{PATIENCE, Stage};

const START: u64 = 1_800_000_000;
const YEAR: u64 = 366 * 24 * 3600;

/// Half an hour in a year to come: reports that were acknowledged are still recognized, new ones of the running window
/// are taken, and the batch is complete.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_leaps_ahead_closes_nothing_for_good() {
    let clock = Clock::standing_at(START);
    let stage = Stage::at(&clock, |parameters| {
        parameters.time_precision = 1000;
        parameters.report_expiry_age = Some(14 * 24 * 3600);
    })
    .await;
    let cell = Measurement::Cell(1);
    let report = stage.client.seal(&cell, START).await.unwrap();
    stage.client.send(&report).await.unwrap();
    clock.set(START + 70 * YEAR);
    for _ in 0..30 {
        stage.pair.leader.clean().await.unwrap();
        stage.pair.helper.clean().await.unwrap();
    }
    // Even now: what expires is judged by a time that has moved by hours.
    stage.client.upload(&cell, START, PATIENCE).await.unwrap();
    clock.set(START + 1800);
    stage.client.send(&report).await.unwrap();
    stage.client.upload(&cell, START, PATIENCE).await.unwrap();
    let batch = stage.parameters().batch(START, 1).unwrap();
    let collected = stage.collector.collect(&Collector::new_job(), batch, PATIENCE).await.unwrap();
    assert_eq!(collected.counts, [0, 3, 0]);
}
