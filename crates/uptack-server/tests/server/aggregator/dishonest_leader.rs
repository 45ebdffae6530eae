//! A leader that cheats, with its own token: the helper gives it nothing that the task does not allow.

use uptack_dap::{
    collector::Collector,
    protocol::{AggregateShareAnswer, BatchInterval, CollectionAnswer, Measurement, ReportId},
};

use crate::aggregator::{
    collection::ask_helper,
    support::{PATIENCE, Stage, ask_for_share, collection, eventually, noisy, now, quick, share_request},
};

/// It leaves out a report, or claims one more, to learn a difference: the helper compares counts and checksums.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_counts_other_reports_gets_no_share() {
    let stage = Stage::new(5).await;
    stage.upload_counts([3, 2, 1]).await;
    let added = "uptack_reports_aggregated_total{outcome=\"added\"}";
    let base = stage.pair.helper.operations_url().unwrap();
    eventually("the reports are added", async || stage.metric(&base, added).await == 6).await;
    for count in [5, 6, 7] {
        // The checksum of no reports goes with each count.
        let (status, body) = ask_helper(&stage, stage.batch(), count).await;
        assert!(status == 400 && body.contains("batchMismatch"), "{status}: {body}");
    }
    // Its attempts have spoilt nothing.
    assert_eq!(stage.collect().await.unwrap().counts, [3, 2, 1]);
}

/// A stage with noise and windows of a thousand seconds, reports in two of them, and both windows as one batch.
async fn two_windows() -> (Stage, [Vec<ReportId>; 2], BatchInterval) {
    let stage = Stage::with(2, quick, |parameters| {
        noisy(1, "20")(parameters);
        parameters.time_precision = 1000;
    })
    .await;
    let first = stage.parameters().window(now()) - 5000;
    let mut ids: [Vec<ReportId>; 2] = Default::default();
    for (window, bit) in [(0, true), (0, false), (0, true), (1, true), (1, false)] {
        let time = first + 1000 * window as u64;
        let report = stage.client.upload(&Measurement::Bits(vec![bit]), time, PATIENCE).await.unwrap();
        ids[window].push(*report.id());
    }
    let base = stage.pair.leader.operations_url().unwrap();
    eventually("all is added up", async || stage.metric(&base, "uptack_pending_reports ").await == 0).await;
    let batch = stage.parameters().batch(first, 2).unwrap();
    (stage, ids, batch)
}

async fn ask(stage: &Stage, interval: BatchInterval, ids: &[ReportId]) -> (u16, Vec<u8>) {
    ask_for_share(&stage.pair.helper.url(), &stage.task, share_request(interval, ids)).await
}

async fn is_refused(stage: &Stage, interval: BatchInterval, ids: &[ReportId], word: &str) {
    let (status, body) = ask(stage, interval, ids).await;
    let body = String::from_utf8_lossy(&body);
    assert!(status == 400 && body.contains(word), "{status}: {body}");
}

/// It asks again and says that it got nothing, to have the helper draw again and average the noise away.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_asks_again_gets_the_same_share_with_the_same_noise() {
    let (stage, ids, batch) = two_windows().await;
    let all = ids.concat();
    let (status, first) = ask(&stage, batch, &all).await;
    assert_eq!(status, 200);
    for _ in 0..20 {
        assert_eq!(ask(&stage, batch, &all).await, (200, first.clone()));
    }
    // Nor is there another one for the collection itself.
    let job = Collector::new_job();
    stage.collector.collect(&job, batch, PATIENCE).await.unwrap();
    let result = collection(&stage.pair.leader.url(), &stage.task, &job).await;
    let result = CollectionAnswer::from_bytes(&result).unwrap();
    assert_eq!(result.helper_share, AggregateShareAnswer::from_bytes(&first).unwrap().0);
}

/// It asks for parts of a batch, for more than it, or for the same with other reports: with every further draw it would
/// learn more of the same owners.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_asks_for_a_part_of_a_batch_or_more_than_it_gets_nothing() {
    let (stage, ids, batch) = two_windows().await;
    assert_eq!(ask(&stage, batch, &ids.concat()).await.0, 200);
    let at = |offset: u64, length: u64| {
        let start = batch.start() + offset;
        BatchInterval::new(start, start + length).unwrap()
    };
    for (interval, ids) in [(at(0, 1000), &ids[0]), (at(1000, 1000), &ids[1]), (at(1000, 2000), &ids[1])] {
        is_refused(&stage, interval, ids, "batchOverlap").await;
    }
    is_refused(&stage, at(0, 3000), &ids.concat(), "batchOverlap").await;
    for fewer in [&ids[0], &ids[1], &Vec::new()] {
        is_refused(&stage, batch, fewer, "batchQueriedTooManyTimes").await;
    }
    // The other way round: a part first, then the whole.
    let (stage, ids, batch) = two_windows().await;
    let part = stage.parameters().batch(batch.start(), 1).unwrap();
    assert_eq!(ask(&stage, part, &ids[0]).await.0, 200);
    is_refused(&stage, batch, &ids.concat(), "batchOverlap").await;
    is_refused(&stage, batch, &ids[1], "batchOverlap").await;
}
