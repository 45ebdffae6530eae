//! Bad clients, bad networks, bad luck: each has its answer.

use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use uptack_dap::{
    client::{Client, SealedReport},
    clock::Clock,
    collector::Collector,
    protocol::{
        self, Endpoint, HelperAnswer, HelperResult, HpkeConfig, Measurement, ReportError, ReportHeader, ReportId, Vdaf,
        VdafKind,
    },
    task::{AggregatorRole, TaskSet},
};
use uptack_server::aggregator::{Aggregator, Config};
use url::Url;

use crate::aggregator::support::{PATIENCE, Stage, eventually, now, quick};

/// Builds a report by hand, so that it can be wrong in any way.
pub(crate) async fn report_of(
    stage: &Stage,
    task: &protocol::TaskId,
    public_share: Vec<u8>,
    shares: [Vec<u8>; 2],
    id: ReportId,
    keys: Option<[HpkeConfig; 2]>,
) -> SealedReport {
    let keys = match keys {
        Some(keys) => keys,
        None => [fetch_key(&stage.pair.leader.url()).await, fetch_key(&stage.pair.helper.url()).await],
    };
    let header = ReportHeader { id, time: stage.parameters().window(now()) };
    SealedReport::from_shares(header, task, public_share, shares, &keys).unwrap()
}

async fn fetch_key(base: &Url) -> HpkeConfig {
    let bytes = reqwest::get(base.join("hpke_config").unwrap()).await.unwrap().bytes().await.unwrap();
    protocol::keys_from_bytes(&bytes).unwrap().remove(0)
}

/// An honest split of `cell`.
fn shares_of(id: &ReportId, cell: usize) -> (Vec<u8>, [Vec<u8>; 2]) {
    Vdaf::new(&VdafKind::histogram(3)).unwrap().shard(&Measurement::Cell(cell), id).unwrap()
}

async fn collect_exactly(stage: &Stage, counts: [u64; 3]) {
    assert_eq!(stage.collect().await.unwrap().counts, counts);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_report_counts_once_and_another_under_its_id_not_at_all() {
    let stage = Stage::new(1).await;
    let report = stage.client.seal(&Measurement::Cell(1), now()).await.unwrap();
    for _ in 0..3 {
        stage.client.send(&report).await.unwrap();
    }
    let base = stage.pair.leader.operations_url().unwrap();
    eventually("it is aggregated", async || stage.metric(&base, "uptack_pending_reports ").await == 0).await;
    // Also after the report itself is gone.
    stage.client.send(&report).await.unwrap();
    let other = stage.client.reseal(&Measurement::Cell(2), &report).await.unwrap();
    let error = stage.client.send(&other).await.unwrap_err();
    assert!(error.is_refused() && error.to_string().contains("Another report"), "{error}");
    collect_exactly(&stage, [0, 1, 0]).await;
    // And after its batch is.
    stage.client.send(&report).await.unwrap();
}

/// A leader that was restored from a backup, or is dishonest, sends a report in a second job.
#[tokio::test(flavor = "multi_thread")]
async fn the_helper_counts_a_report_once_whatever_the_leader_sends() {
    let stage = Stage::new(1).await;
    let job = crate::aggregator::operation::HandMadeJob::new(&stage, 2).await;
    let (status, first) = job.put(&stage, rand::random()).await;
    assert_eq!(status, 200);
    assert_eq!(HandMadeJobOutcome::of(&first), [None, None]);
    let (status, second) = job.put(&stage, rand::random()).await;
    assert_eq!(status, 200);
    let replayed = Some(ReportError::Replayed);
    assert_eq!(HandMadeJobOutcome::of(&second), [replayed, replayed]);
    let added = "uptack_reports_aggregated_total{outcome=\"added\"}";
    assert_eq!(stage.metric(&stage.pair.helper.operations_url().unwrap(), added).await, 2);
}

struct HandMadeJobOutcome;

impl HandMadeJobOutcome {
    /// For each report, why it was rejected.
    fn of(answer: &[u8]) -> Vec<Option<ReportError>> {
        let answer = HelperAnswer::from_bytes(answer).unwrap();
        let error = |(_, result): (&ReportId, HelperResult<'_>)| match result {
            HelperResult::Rejected(error) => Some(error),
            _ => None,
        };
        answer.results().map(error).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn late_and_early_reports_are_refused() {
    let clock = Clock::standing_at(1_000_000_000);
    let stage = Stage::at(&clock, |parameters| {
        parameters.time_precision = 100;
        parameters.report_expiry_age = Some(10_000);
        parameters.task_expiration = Some(1_000_050_000);
        parameters.tolerable_clock_skew = 100;
    })
    .await;
    let send = async |time: u64| {
        let report = stage.client.seal(&Measurement::Cell(0), time).await.unwrap();
        stage.client.send(&report).await
    };
    send(1_000_000_000).await.unwrap();
    send(1_000_000_100).await.unwrap();
    send(999_990_000).await.unwrap();
    let early = send(1_000_000_200).await.unwrap_err();
    assert!(early.to_string().contains("too early"), "{early}");
    let late = send(999_989_900).await.unwrap_err();
    assert!(late.to_string().contains("too old"), "{late}");
    clock.set(1_000_050_100);
    let ended = send(1_000_050_100).await.unwrap_err();
    assert!(ended.to_string().contains("end of the task"), "{ended}");
    // What was forgotten stays refused when the clock is set back. A single cleaning does not believe a leap.
    for _ in 0..14 {
        stage.pair.leader.clean().await.unwrap();
        stage.pair.helper.clean().await.unwrap();
    }
    clock.set(1_000_000_000);
    let set_back = send(1_000_000_000).await.unwrap_err();
    assert!(set_back.to_string().contains("too old"), "{set_back}");
}

/// The helper's clock is an hour behind: its refusals are put off, and nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn clock_skew_delays_and_loses_nothing() {
    let (leaders, helpers) = (Clock::standing_at(1_000_003_600), Clock::standing_at(1_000_000_000));
    let (hand, other_hand) = (leaders.clone(), helpers.clone());
    let stage = Stage::with(
        2,
        move |config| {
            quick(config);
            config.clock = match config.role {
                AggregatorRole::Leader => hand.clone(),
                AggregatorRole::Helper => other_hand.clone(),
            };
        },
        |parameters| parameters.time_precision = 60,
    )
    .await;
    for cell in [0, 2, 2] {
        stage.client.upload(&Measurement::Cell(cell), 1_000_003_600, PATIENCE).await.unwrap();
    }
    let early = "uptack_reports_aggregated_total{outcome=\"too-early\"}";
    let base = stage.pair.helper.operations_url().unwrap();
    eventually("the helper has refused them", async || stage.metric(&base, early).await >= 3).await;
    helpers.set(1_000_003_590);
    let batch = stage.parameters().batch(1_000_003_600, 1).unwrap();
    let collected = stage.collector.collect(&Collector::new_job(), batch, PATIENCE).await.unwrap();
    assert_eq!(collected.counts, [1, 0, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_task_and_wrong_keys_are_refused() {
    let stage = Stage::new(1).await;
    let mut elsewhere = stage.parameters().clone();
    elsewhere.task_id = rand::random();
    let unknown = Client::new(elsewhere.clone()).unwrap();
    let error = unknown.seal(&Measurement::Cell(0), now()).await.unwrap_err();
    assert!(error.to_string().contains("unknown task"), "{error}");
    // Sealed for another task, sent to this one.
    let id: ReportId = rand::random();
    let (public, shares) = shares_of(&id, 0);
    let report = report_of(&stage, &elsewhere.task_id, public.clone(), shares.clone(), id, None).await;
    let error = stage.client.send(&report).await.unwrap_err();
    assert!(error.to_string().contains("does not open"), "{error}");
    // Sealed under the right number and another key.
    let task = stage.parameters().task_id;
    let number = u8::from(*fetch_key(&stage.pair.leader.url()).await.id());
    let other = protocol::generate_keypair(number).config().clone();
    let helpers = fetch_key(&stage.pair.helper.url()).await;
    let keys = Some([other, helpers.clone()]);
    let report = report_of(&stage, &task, public.clone(), shares.clone(), id, keys).await;
    let error = stage.client.send(&report).await.unwrap_err();
    assert!(error.to_string().contains("does not open"), "{error}");
    // Sealed under a number that nobody has.
    let keys = Some([protocol::generate_keypair(200).config().clone(), helpers]);
    let report = report_of(&stage, &task, public.clone(), shares.clone(), id, keys).await;
    let error = stage.client.send(&report).await.unwrap_err();
    assert!(error.is_outdated_key(), "{error}");
    // The helper's key is wrong: only the helper can notice, and does.
    let leaders = fetch_key(&stage.pair.leader.url()).await;
    for key in [protocol::generate_keypair(1), protocol::generate_keypair(200)] {
        let id: ReportId = rand::random();
        let (public, shares) = shares_of(&id, 0);
        let keys = Some([leaders.clone(), key.config().clone()]);
        let report = report_of(&stage, &task, public, shares, id, keys).await;
        stage.client.send(&report).await.unwrap();
    }
    stage.upload(1).await;
    collect_exactly(&stage, [0, 1, 0]).await;
}

/// A report for a sum of another length, and shares cut at every length.
#[tokio::test(flavor = "multi_thread")]
async fn shares_of_the_wrong_form_are_refused() {
    let stage = Stage::new(1).await;
    let task = stage.parameters().task_id;
    let id: ReportId = rand::random();
    let (public, [leader, helper]) = shares_of(&id, 0);
    let longer = [leader.clone(), vec![0; 16]].concat();
    for (public, leader) in [
        (public.clone(), leader[..leader.len() - 1].to_vec()),
        (public.clone(), longer),
        (public.clone(), Vec::new()),
        (public[..31].to_vec(), leader.clone()),
        (Vec::new(), leader.clone()),
    ] {
        let shares = [leader, helper.clone()];
        let report = report_of(&stage, &task, public, shares, id, None).await;
        let error = stage.client.send(&report).await.unwrap_err();
        assert!(error.to_string().contains("form"), "{error}");
    }
    stage.upload(2).await;
    collect_exactly(&stage, [0, 0, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_and_oversized_bodies_are_refused() {
    let stage = Stage::new(1).await;
    let report = stage.client.seal(&Measurement::Cell(0), now()).await.unwrap();
    let whole = report.as_bytes();
    let url = upload_url(&stage);
    let put = async |body: Vec<u8>| {
        let response = reqwest::Client::new()
            .put(url.clone())
            .header("content-type", Endpoint::UPLOAD.media_type.unwrap())
            .body(body)
            .send()
            .await
            .unwrap();
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert_eq!(kind, "application/problem+json");
        (response.status().as_u16(), response.text().await.unwrap())
    };
    for length in (0..whole.len()).step_by(7) {
        let (status, body) = put(whole[..length].to_vec()).await;
        assert!(status == 400 && body.contains("invalidMessage"), "{length}: {body}");
    }
    let (status, body) = put([whole, &[0]].concat()).await;
    assert!(status == 400 && body.contains("invalidMessage"), "{body}");
    let (status, body) = put(vec![0; 100_000]).await;
    assert_eq!((status, body.contains("larger than")), (413, true));
    stage.client.send(&report).await.unwrap();
    collect_exactly(&stage, [1, 0, 0]).await;
}

fn upload_url(stage: &Stage) -> Url {
    let path = format!("tasks/{}/reports", stage.parameters().task_id);
    stage.pair.leader.url().join(&path).unwrap()
}

/// Clients that send nothing, half a header, half a body: they are dropped, others are served.
#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_are_dropped_and_keep_nobody_waiting() {
    let stage = Stage::with(
        1,
        |config| {
            quick(config);
            config.request_timeout = Duration::from_millis(400);
            config.max_connections = 64;
        },
        |_| {},
    )
    .await;
    let path = upload_url(&stage).path().to_owned();
    let half_header = "PUT / HTTP/1.1\r\nhost: a\r\n".to_owned();
    let half_body = format!(
        "PUT {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/dap-report\r\n\
         content-length: 1000\r\n\r\nabc"
    );
    let mut slow = Vec::new();
    for start in ["", &half_header, &half_body].repeat(8) {
        let mut stream = connect(&stage).await;
        stream.write_all(start.as_bytes()).await.unwrap();
        slow.push((start, stream));
    }
    stage.upload(0).await;
    for (start, mut stream) in slow {
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        read.expect("the server hangs up").unwrap();
        let answer = String::from_utf8_lossy(&answer);
        if start.contains("content-length") {
            assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        }
    }
    collect_exactly(&stage, [1, 0, 0]).await;
}

async fn connect(stage: &Stage) -> tokio::net::TcpStream {
    let url = stage.pair.leader.url();
    tokio::net::TcpStream::connect(("127.0.0.1", url.port().unwrap())).await.unwrap()
}

/// A client that hangs up in the middle of its body is no trouble either.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_is_no_trouble() {
    let stage = Stage::new(1).await;
    let path = upload_url(&stage).path().to_owned();
    for _ in 0..20 {
        let mut stream = connect(&stage).await;
        let start = format!(
            "PUT {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/dap-report\r\n\
             content-length: 1000\r\n\r\nabc"
        );
        stream.write_all(start.as_bytes()).await.unwrap();
    }
    stage.upload(1).await;
    collect_exactly(&stage, [0, 1, 0]).await;
}

/// The helper is away, for a real minute; the leader takes reports all the same, is even restarted
/// meanwhile, and catches up.
#[tokio::test(flavor = "multi_thread")]
async fn a_helper_that_is_away_for_a_minute_delays_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let config = |role: AggregatorRole| {
        let mut config = Config::new(role, directory.path().join(role.to_string()));
        quick(&mut config);
        config
    };
    let helper = Aggregator::start(config(AggregatorRole::Helper)).await.unwrap();
    let helper_url = helper.url();
    let mut leader = Aggregator::start(config(AggregatorRole::Leader)).await.unwrap();
    let leader_address = leader.url().socket_addrs(|| None).unwrap()[0];
    let mut parameters = uptack_dap::task::TaskParameters::new(
        leader.url(),
        helper_url.clone(),
        VdafKind::histogram(3),
        crate::aggregator::support::PRECISION,
        3,
    );
    parameters.report_expiry_age = None;
    let task = TaskSet::generate(parameters).unwrap();
    helper.add_task(task.helper.clone()).await.unwrap();
    leader.add_task(task.leader.clone()).await.unwrap();
    let client = Client::new(task.parameters().clone()).unwrap();
    let mut expected = [0; 3];
    let mut upload = async |cell: usize| {
        client.upload(&Measurement::Cell(cell), now(), PATIENCE).await.unwrap();
        expected[cell] += 1;
    };
    upload(0).await;
    let pending = async |leader: &Aggregator| {
        crate::aggregator::support::metric(&leader.operations_url().unwrap(), "uptack_pending_reports ").await
    };
    eventually("the first report is aggregated", async || pending(&leader).await == 0).await;

    helper.shutdown().await;
    let failures = "uptack_peer_failures_total{call=\"aggregation-job\"}";
    for second in 0..60 {
        upload(second % 3).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        if second == 30 {
            assert!(
                crate::aggregator::support::metric(&leader.operations_url().unwrap(), failures).await >= 5,
                "the leader has tried in vain"
            );
            leader.shutdown().await;
            let mut again = config(AggregatorRole::Leader);
            again.listen = leader_address;
            leader = Aggregator::start(again).await.unwrap();
        }
    }
    assert_eq!(pending(&leader).await, 60);
    let mut at_home = config(AggregatorRole::Helper);
    at_home.listen = helper_url.socket_addrs(|| None).unwrap()[0];
    let _helper = Aggregator::start(at_home).await.unwrap();
    upload(2).await;
    let collector = Collector::new(task.collector.clone()).unwrap();
    let batch = task.parameters().batch(now(), 1).unwrap();
    let collected = collector.collect(&Collector::new_job(), batch, PATIENCE).await.unwrap();
    assert_eq!(collected.counts, expected);
}

/// The leader's disk is full: uploads are refused and not acknowledged, what was acknowledged is
/// counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_of_the_leader_refuses_and_loses_nothing() {
    let stage = Stage::with(
        1,
        |config| {
            // Nothing is aggregated, so that the leader's file fills up.
            config.gather = match config.role {
                AggregatorRole::Leader => Duration::from_secs(3600),
                AggregatorRole::Helper => Duration::from_millis(5),
            };
            if config.role == AggregatorRole::Leader {
                config.max_store_bytes = Some(400_000);
            }
        },
        |_| {},
    )
    .await;
    let mut acknowledged = 0;
    let refusal = loop {
        let report = stage.client.seal(&Measurement::Cell(0), now()).await.unwrap();
        match stage.client.send(&report).await {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 10_000, "the disk never fills");
    };
    assert!(refusal.is_unreachable() && refusal.to_string().contains("storage is full"), "{refusal}");
    assert!(acknowledged > 10);
    // The server is alive, and with room again (and its usual haste) everything is there.
    let batch = stage.batch();
    assert_eq!(restart_and_collect(stage, batch).await, [acknowledged, 0, 0]);
}

/// The helper's disk is full: it refuses whole jobs, the leader keeps their reports and goes on taking
/// more, and with room again all of them are counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_of_the_helper_delays_and_loses_nothing() {
    // The helper keeps little of a report, but 16 bytes for each bit of each window.
    let (bits, window) = (2_000, 60);
    let stage = Stage::with(
        1,
        |config| {
            quick(config);
            // One report a job, so that some jobs fit.
            config.job_size = 1;
            if config.role == AggregatorRole::Helper {
                config.max_store_bytes = Some(400_000);
            }
        },
        |parameters| {
            parameters.vdaf = VdafKind::bits(bits);
            parameters.time_precision = window;
        },
    )
    .await;
    let [leader, helper] = [&stage.pair.leader, &stage.pair.helper].map(|server| server.operations_url().unwrap());
    let windows = 40;
    let first = stage.parameters().window(now()) - (windows - 1) * window;
    let ones = Measurement::Bits(vec![true; bits]);
    for index in 0..windows {
        stage.client.upload(&ones, first + index * window, PATIENCE).await.unwrap();
    }
    let failures = "uptack_peer_failures_total{call=\"aggregation-job\"}";
    let full = "uptack_requests_total{outcome=\"Service Unavailable\"}";
    eventually("the leader has tried in vain", async || stage.metric(&leader, failures).await >= 3).await;
    assert!(stage.metric(&helper, full).await >= 3);
    // In this order: a report that is added in between is counted twice, and not missed.
    let pending = stage.metric(&leader, "uptack_pending_reports ").await;
    let added = stage.metric(&helper, "uptack_reports_aggregated_total{outcome=\"added\"}").await;
    assert!(added > 3 && pending > 3 && added + pending >= windows, "{added} added, {pending} pending");
    // Both are alive and the leader takes more.
    assert!(reqwest::get(helper.join("healthz").unwrap()).await.unwrap().status().is_success());
    stage.client.upload(&ones, first, PATIENCE).await.unwrap();
    let batch = stage.parameters().batch(first, windows).unwrap();
    assert_eq!(restart_and_collect(stage, batch).await, vec![windows + 1; bits]);
}

/// Starts the pair again with its usual settings, and collects.
async fn restart_and_collect(stage: Stage, batch: protocol::BatchInterval) -> Vec<u64> {
    let Stage { directory, pair, task, .. } = stage;
    pair.shutdown().await;
    let pair = uptack_server::aggregator::Pair::start(directory.path(), quick).await.unwrap();
    // It has other addresses now.
    let mut collector = task.collector.clone();
    collector.parameters.leader = pair.leader.url();
    let collector = Collector::new(collector).unwrap();
    collector.collect(&Collector::new_job(), batch, PATIENCE).await.unwrap().counts
}

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
