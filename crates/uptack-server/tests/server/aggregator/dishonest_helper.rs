//! A helper that cheats, or that cannot stomach a report: the leader goes on, and nothing wrong is released.

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use uptack_dap::{
    client::{Client, SealedReport},
    collector::{Collected, Collector},
    protocol::{Endpoint, Measurement, VdafKind},
    task::{AggregatorRole, TaskParameters, TaskSet},
};
use uptack_server::aggregator::{Aggregator, Config};
use url::Url;

use crate::aggregator::support::{PATIENCE, PRECISION, eventually, metric, now, quick};

/// What the cheat does with an aggregation job.
enum Verdict {
    /// The honest helper answers.
    Forward,
    /// The honest helper does its work, and the leader is told this instead.
    ForwardAndSay(StatusCode, &'static str),
    /// The leader is told this.
    Say(StatusCode, &'static str),
}

type Cheat = Arc<dyn Fn(&[u8]) -> Verdict + Send + Sync>;

/// An honest leader, and a helper that an intermediary cheats for.
struct Stage {
    _directory: TempDir,
    leader: Aggregator,
    helper: Aggregator,
    task: TaskSet,
    client: Client,
}

impl Stage {
    async fn new(cheat: impl Fn(&[u8]) -> Verdict + Send + Sync + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = |role: AggregatorRole| {
            let mut config = Config::new(role, directory.path().join(role.to_string()));
            quick(&mut config);
            // All reports of a test in one job.
            config.gather = Duration::from_millis(300);
            config.job_attempts = 2;
            config
        };
        let helper = Aggregator::start(config(AggregatorRole::Helper)).await.unwrap();
        let mut at_leader = config(AggregatorRole::Leader);
        at_leader.peer = Some(intermediary(helper.url(), Arc::new(cheat)).await);
        let leader = Aggregator::start(at_leader).await.unwrap();
        let mut parameters = TaskParameters::new(leader.url(), helper.url(), VdafKind::histogram(3), PRECISION, 2);
        parameters.report_expiry_age = None;
        let task = TaskSet::generate(parameters).unwrap();
        helper.add_task(task.helper.clone()).await.unwrap();
        leader.add_task(task.leader.clone()).await.unwrap();
        let client = Client::new(task.parameters().clone()).unwrap();
        Self { _directory: directory, leader, helper, task, client }
    }

    async fn upload(&self, reports: usize) {
        for _ in 0..reports {
            self.client.upload(&Measurement::Cell(1), now(), PATIENCE).await.unwrap();
        }
    }

    async fn collect(&self) -> uptack_dap::Result<Collected> {
        let batch = self.task.parameters().batch(now(), 1).unwrap();
        Collector::new(self.task.collector.clone()).unwrap().collect(&Collector::new_job(), batch, PATIENCE).await
    }

    async fn at_leader(&self, outcome: &str) -> u64 {
        metric(
            &self.leader.operations_url().unwrap(),
            &format!("uptack_reports_aggregated_total{{outcome=\"{outcome}\"}}"),
        )
        .await
    }

    async fn is_settled(&self) {
        let base = self.leader.operations_url().unwrap();
        eventually("nothing is pending", async || metric(&base, "uptack_pending_reports ").await == 0).await;
    }
}

/// Stands between leader and helper.
async fn intermediary(helper: Url, cheat: Cheat) -> Url {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let routes = Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
        let (helper, cheat) = (helper.clone(), Arc::clone(&cheat));
        async move {
            let is_job = uri.path().contains("/aggregation_jobs/");
            match if is_job { cheat(&body) } else { Verdict::Forward } {
                Verdict::Forward => forward(&helper, method, &uri, headers, body).await,
                Verdict::ForwardAndSay(status, text) => {
                    let honest = forward(&helper, method, &uri, headers, body).await;
                    assert!(honest.status().is_success());
                    say(status, text)
                }
                Verdict::Say(status, text) => say(status, text),
            }
        }
    });
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

fn say(status: StatusCode, text: &'static str) -> Response {
    let media_type =
        if status.is_success() { Endpoint::START_AGGREGATION.answer_type.unwrap() } else { "application/problem+json" };
    (status, [(header::CONTENT_TYPE, media_type)], text).into_response()
}

async fn forward(helper: &Url, method: Method, uri: &Uri, mut headers: HeaderMap, body: Bytes) -> Response {
    headers.remove(header::HOST);
    let request = reqwest::Client::new().request(method, helper.join(uri.path()).unwrap()).headers(headers).body(body);
    let answer = request.send().await.unwrap();
    let (status, media_type) = (answer.status(), answer.headers()[header::CONTENT_TYPE].clone());
    (status, [(header::CONTENT_TYPE, media_type)], answer.bytes().await.unwrap()).into_response()
}

fn holds(job: &[u8], report: &SealedReport) -> bool {
    let id: &[u8] = report.id().as_ref();
    job.windows(id.len()).any(|bytes| bytes == id)
}

const MALFORMED: &str = r#"{"type": "urn:ietf:params:ppm:dap:error:invalidMessage", "status": 400}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_the_helper_always_refuses_is_dropped_and_no_other() {
    let bad: Arc<std::sync::Mutex<Option<SealedReport>>> = Arc::default();
    let (known, times) = (Arc::clone(&bad), AtomicU32::new(0));
    let stage = Stage::new(move |job| {
        if !known.lock().unwrap().as_ref().is_some_and(|report| holds(job, report)) {
            return Verdict::Forward;
        }
        // In words of the protocol, by a status, by an answer that is none.
        match times.fetch_add(1, Ordering::SeqCst) % 3 {
            0 => Verdict::Say(StatusCode::BAD_REQUEST, MALFORMED),
            1 => Verdict::Say(StatusCode::OK, "no answer"),
            _ => Verdict::Say(StatusCode::CONFLICT, ""),
        }
    })
    .await;
    let report = stage.client.seal(&Measurement::Cell(2), now()).await.unwrap();
    *bad.lock().unwrap() = Some(report.clone());
    stage.upload(3).await;
    stage.client.send(&report).await.unwrap();
    stage.upload(4).await;
    stage.is_settled().await;
    assert_eq!((stage.at_leader("added").await, stage.at_leader("abandoned").await), (7, 1));
    let abandoned =
        metric(&stage.leader.operations_url().unwrap(), "uptack_aggregation_jobs_total{outcome=\"abandoned\"}").await;
    assert_eq!(abandoned, 1);
    // Sent again it is a repetition, and the batch goes out without it.
    stage.client.send(&report).await.unwrap();
    assert_eq!(stage.collect().await.unwrap().counts, [0, 7, 0]);
}

/// It pretends to be broken whenever a certain report comes, and works for all others.
#[tokio::test(flavor = "multi_thread")]
async fn a_helper_that_fails_for_one_report_for_ever_holds_up_no_other() {
    let bad: Arc<std::sync::Mutex<Option<SealedReport>>> = Arc::default();
    let (known, times) = (Arc::clone(&bad), AtomicU32::new(0));
    let stage = Stage::new(move |job| {
        if !known.lock().unwrap().as_ref().is_some_and(|report| holds(job, report)) {
            return Verdict::Forward;
        }
        match times.fetch_add(1, Ordering::SeqCst) % 4 {
            0 => Verdict::Say(StatusCode::INTERNAL_SERVER_ERROR, ""),
            1 => Verdict::Say(StatusCode::SERVICE_UNAVAILABLE, ""),
            2 => Verdict::Say(StatusCode::NOT_FOUND, "a proxy's page"),
            _ => Verdict::Say(StatusCode::BAD_REQUEST, r#"{"type": "urn:ietf:params:ppm:dap:error:unrecognizedTask"}"#),
        }
    })
    .await;
    let report = stage.client.seal(&Measurement::Cell(2), now()).await.unwrap();
    *bad.lock().unwrap() = Some(report.clone());
    stage.client.send(&report).await.unwrap();
    // Others keep coming, as they do while a query is open, and what becomes of them tells that the helper is there.
    let mut others = 0;
    while stage.at_leader("abandoned").await == 0 {
        stage.upload(1).await;
        others += 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stage.is_settled().await;
    assert_eq!((stage.at_leader("added").await, stage.at_leader("abandoned").await), (others, 1));
    assert_eq!(stage.collect().await.unwrap().counts, [0, others, 0]);
}

/// It adds the reports, says no, and would count more than the leader: the two do not agree on any batch.
#[tokio::test(flavor = "multi_thread")]
async fn a_helper_that_adds_reports_and_denies_it_has_no_batch_released() {
    let denied = AtomicU32::new(0);
    let stage = Stage::new(move |_| {
        // Until both reports are abandoned, whether they came in one job or in two.
        match denied.fetch_add(1, Ordering::SeqCst) {
            0..4 => Verdict::ForwardAndSay(StatusCode::CONFLICT, ""),
            _ => Verdict::Forward,
        }
    })
    .await;
    stage.upload(2).await;
    stage.is_settled().await;
    stage.upload(3).await;
    stage.is_settled().await;
    assert_eq!(stage.at_leader("added").await, 3);
    let helpers =
        metric(&stage.helper.operations_url().unwrap(), "uptack_reports_aggregated_total{outcome=\"added\"}").await;
    assert_eq!(helpers, 5);
    let error = stage.collect().await.unwrap_err();
    assert!(error.is_refused(), "{error}");
}

/// Away, overloaded, not yet configured, or something in between that says so: waited for, however often.
#[tokio::test(flavor = "multi_thread")]
async fn a_helper_that_is_not_there_is_never_given_up() {
    let calls = AtomicU32::new(0);
    let stage = Stage::new(move |_| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Verdict::Say(StatusCode::SERVICE_UNAVAILABLE, ""),
        1 => Verdict::Say(StatusCode::NOT_FOUND, "a proxy's page"),
        2 => Verdict::Say(StatusCode::FORBIDDEN, ""),
        3 => Verdict::Say(StatusCode::BAD_REQUEST, r#"{"type": "urn:ietf:params:ppm:dap:error:unrecognizedTask"}"#),
        4 => Verdict::Say(StatusCode::INTERNAL_SERVER_ERROR, ""),
        _ => Verdict::Forward,
    })
    .await;
    stage.upload(3).await;
    assert_eq!(stage.collect().await.unwrap().counts, [0, 3, 0]);
    assert_eq!(stage.at_leader("abandoned").await, 0);
}
