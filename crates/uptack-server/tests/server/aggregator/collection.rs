//! Batches: minimum, once only, no overlap, no late reports; and many queries in one report.

use uptack_dap::{
    ballot,
    client::Client,
    collector::Collector,
    protocol::{AggregateShareRequest, BatchChecksum, BatchInterval, Measurement},
};

use crate::aggregator::support::{PATIENCE, Stage, ask_for_share, eventually, now, quick};

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_collected_exactly_and_asked_for_again_is_the_same() {
    let stage = Stage::new(5).await;
    stage.upload_counts([3, 0, 4]).await;
    let job = Collector::new_job();
    let first = stage.collector.collect(&job, stage.batch(), PATIENCE).await.unwrap();
    assert_eq!((first.reports, first.counts.as_slice()), (7, &[3, 0, 4][..]));
    stage.collector.request(&job, stage.batch()).await.unwrap();
    let again = stage.collector.poll(&job, stage.batch()).await.unwrap();
    assert_eq!(first, again);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_become_a_tally() {
    let channel = "normal-form(f=0.5,r=0.1)".parse::<uptack::Mechanism>().unwrap().channel();
    let stage = Stage::with(3, quick, |parameters| {
        parameters.vdaf = uptack_dap::protocol::VdafKind::for_channel(&channel);
    })
    .await;
    stage.upload_counts([2, 1, 3]).await;
    let collected = stage.collect().await.unwrap();
    let tally = collected.tally(&channel).unwrap();
    assert_eq!(tally, uptack::Tally::from_cells(&channel, &[2, 1, 3]).unwrap());
    let other = "cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)".parse::<uptack::Mechanism>().unwrap().channel();
    assert!(collected.tally(&other).unwrap_err().is_input());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_below_its_minimum_is_not_collected_by_anybody() {
    let stage = Stage::new(5).await;
    stage.upload_counts([2, 1, 1]).await;
    let error = stage.collect().await.unwrap_err();
    assert!(error.is_batch_too_small(), "{error}");
    // The helper refuses by itself, whatever the leader claims, even with the leader's token.
    eventually("the reports are aggregated", async || {
        stage
            .metric(&stage.pair.helper.operations_url().unwrap(), "uptack_reports_aggregated_total{outcome=\"added\"}")
            .await
            == 4
    })
    .await;
    for count in [4, 5] {
        let (status, body) = ask_helper(&stage, stage.batch(), count).await;
        assert_eq!(status, 400);
        assert!(body.contains("invalidBatchSize"), "{body}");
    }
    // One more, and it is released.
    stage.upload(1).await;
    assert_eq!(stage.collect().await.unwrap().counts, [2, 2, 1]);
}

/// Invalid reports are counted when the collector asks, but not when the batch is released.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_reports_do_not_fill_a_batch() {
    let stage = Stage::new(5).await;
    stage.upload_counts([2, 1, 1]).await;
    let job = Collector::new_job();
    crate::aggregator::cheats::upload_two_cells(&stage).await;
    let outcome = stage.collector.collect(&job, stage.batch(), PATIENCE).await;
    assert!(outcome.unwrap_err().is_batch_too_small());
    stage.upload(2).await;
    assert_eq!(stage.collect().await.unwrap().counts, [2, 1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_released_once() {
    let stage = Stage::new(2).await;
    stage.upload_counts([1, 1, 0]).await;
    let job = Collector::new_job();
    let batch = stage.batch();
    stage.collector.collect(&job, batch, PATIENCE).await.unwrap();
    let second = stage.collect().await.unwrap_err();
    assert!(second.is_refused() && second.to_string().contains("too many times"), "{second}");
    // A longer batch that holds the first one would give away the difference.
    let wider = BatchInterval::new(batch.start(), 2 * batch.finish() - batch.start()).unwrap();
    let overlapping = stage.collector.request(&Collector::new_job(), wider).await.unwrap_err();
    assert!(overlapping.to_string().contains("overlaps"), "{overlapping}");
    let (status, body) = ask_helper(&stage, wider, 2).await;
    assert!(status == 400 && body.contains("batchOverlap"), "{body}");
    let (status, body) = ask_helper(&stage, batch, 3).await;
    assert!(status == 400 && body.contains("batchQueriedTooManyTimes"), "{body}");
    // Another batch under the same name is another request.
    let conflict = stage.collector.request(&job, wider).await.unwrap_err();
    assert!(conflict.to_string().contains("409"), "{conflict}");
    // Deleted, it is gone, and still not given to anybody else.
    stage.collector.delete(&job).await.unwrap();
    assert!(stage.collector.poll(&job, batch).await.is_err());
    assert!(stage.collect().await.unwrap_err().is_refused());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_jobs_for_one_batch_are_not_both_served() {
    let stage = Stage::new(3).await;
    stage.upload_counts([1, 1, 1]).await;
    let jobs = [Collector::new_job(), Collector::new_job()];
    let outcomes = futures(&stage, &jobs).await;
    let served = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(served, 1);
    let refused = outcomes.into_iter().find_map(Result::err).unwrap();
    assert!(refused.to_string().contains("too many times"), "{refused}");
}

async fn futures(
    stage: &Stage,
    jobs: &[uptack_dap::protocol::CollectionJobId; 2],
) -> [uptack_dap::Result<uptack_dap::collector::Collected>; 2] {
    let batch = stage.batch();
    let (first, second) = tokio::join!(
        stage.collector.collect(&jobs[0], batch, PATIENCE),
        stage.collector.collect(&jobs[1], batch, PATIENCE)
    );
    [first, second]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_for_a_released_batch_is_refused() {
    let stage = Stage::new(1).await;
    stage.upload(0).await;
    stage.collect().await.unwrap();
    let report = stage.client.seal(&Measurement::Cell(1), now()).await.unwrap();
    let error = stage.client.send(&report).await.unwrap_err();
    assert!(error.is_refused() && error.to_string().contains("collected"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_batches_are_refused() {
    let stage = Stage::new(1).await;
    stage.upload(0).await;
    let batch = stage.batch();
    let (start, precision) = (batch.start(), batch.finish() - batch.start());
    for (start, length) in [(start + 1, precision), (start, precision - 1), (start, 0), (start, precision + 7)] {
        let interval = BatchInterval::new(start, start + length).unwrap();
        let error = stage.collector.request(&Collector::new_job(), interval).await.unwrap_err();
        assert!(error.to_string().contains("batch implied"), "{error}");
        let (status, body) = ask_helper(&stage, interval, 1).await;
        assert!(status == 400 && body.contains("batchInvalid"), "{body}");
    }
    assert_eq!(stage.collect().await.unwrap().counts, [1, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_are_collected_apart_and_together() {
    let stage = Stage::with(1, quick, |parameters| parameters.time_precision = 1000).await;
    let first = stage.parameters().window(now()) - 5000;
    for (time, cell) in [(first, 0), (first + 999, 1), (first + 1000, 2), (first + 2500, 2)] {
        stage.client.upload(&Measurement::Cell(cell), time, PATIENCE).await.unwrap();
    }
    let collect = async |time: u64, windows: u64| {
        let batch = stage.parameters().batch(time, windows).unwrap();
        stage.collector.collect(&Collector::new_job(), batch, PATIENCE).await
    };
    assert_eq!(collect(first, 1).await.unwrap().counts, [1, 1, 0]);
    let rest = collect(first + 1000, 4).await.unwrap();
    assert_eq!(rest.counts, [0, 0, 2]);
    assert_eq!((rest.start, rest.finish), (first + 1000, first + 3000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_task_leaves_nothing_and_cannot_come_back() {
    let stage = Stage::new(10).await;
    stage.upload_counts([1, 1, 0]).await;
    let id = stage.parameters().task_id;
    for aggregator in [&stage.pair.leader, &stage.pair.helper] {
        assert!(aggregator.remove_task(&id).await.unwrap());
        assert!(!aggregator.remove_task(&id).await.unwrap());
    }
    assert!(stage.collect().await.unwrap_err().is_refused());
    let error = stage.pair.add_task(&stage.task).await.unwrap_err();
    assert!(error.is_input() && error.to_string().contains("removed"), "{error}");
    let other = Client::new(stage.parameters().clone()).unwrap();
    assert!(other.seal(&Measurement::Cell(0), now()).await.is_err());
}

/// An observer of the wire sees that somebody answers, not what.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_has_the_same_size_whatever_it_says() {
    let stage = Stage::new(1).await;
    for cell in 0..3 {
        let report = stage.client.seal(&Measurement::Cell(cell), now()).await.unwrap();
        assert_eq!(report.as_bytes().len(), 438);
    }
    let stage = Stage::with(1, quick, |parameters| {
        parameters.vdaf = uptack_dap::ballot::kind(960);
    })
    .await;
    for output in [Some(true), Some(false), None] {
        let ballot = uptack_dap::ballot::measurement(&[output; 960]);
        let report = stage.client.seal(&ballot, now()).await.unwrap();
        assert_eq!(report.as_bytes().len(), 33_958);
    }
}

/// The leader's question to the helper, with the leader's token and a count of our choice, for no reports.
pub(crate) async fn ask_helper(stage: &Stage, interval: BatchInterval, count: u64) -> (u16, String) {
    let request = AggregateShareRequest { interval, reports: count, checksum: BatchChecksum::default() };
    let (status, body) = ask_for_share(&stage.pair.helper.url(), &stage.task, request.to_bytes()).await;
    (status, String::from_utf8(body).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ballot_is_counted_query_by_query() {
    let queries = 24;
    let stage = Stage::with(3, quick, |parameters| {
        parameters.vdaf = ballot::kind(queries);
    })
    .await;
    let output = |owner: usize, query: usize| match (owner + query) % 3 {
        0 => Some(true),
        1 => Some(false),
        _ => None,
    };
    let owners = 5;
    for owner in 0..owners {
        let outputs: Vec<_> = (0..queries).map(|query| output(owner, query)).collect();
        stage.client.upload(&ballot::measurement(&outputs), now(), PATIENCE).await.unwrap();
    }
    let collected = stage.collect().await.unwrap();
    let counted = ballot::outputs(&collected.counts, collected.reports).unwrap();
    assert_eq!(counted.len(), queries);
    for (query, counts) in counted.iter().enumerate() {
        let expect = |wanted| (0..owners).filter(|owner| output(*owner, query) == wanted).count();
        assert_eq!(counts.ones, expect(Some(true)) as u64);
        assert_eq!(counts.zeros, expect(Some(false)) as u64);
        assert_eq!(counts.bottoms, Some(expect(None) as u64));
    }
}

/// What the module's documentation warns of: both bits pass the proof, and it shows in the sum.
#[tokio::test(flavor = "multi_thread")]
async fn both_bits_of_a_query_pass_and_count_at_most_once_each() {
    let stage = Stage::with(2, quick, |parameters| parameters.vdaf = ballot::kind(2)).await;
    for _ in 0..2 {
        stage.client.upload(&Measurement::Bits(vec![true; 4]), now(), PATIENCE).await.unwrap();
    }
    let collected = stage.collect().await.unwrap();
    assert_eq!(collected.counts, [2, 2, 2, 2]);
    let counted = ballot::outputs(&collected.counts, collected.reports).unwrap();
    assert!(counted.iter().all(|counts| counts.bottoms.is_none()));
}
