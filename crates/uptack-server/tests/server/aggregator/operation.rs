//! Running it: authorization, repetition, keys, TLS, logs, the end.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use janus_messages::{AggregationJobInitializeReq, PartialBatchSelector, PrepareInit, query_type::TimeInterval};
use prio::{
    codec::{Decode, Encode},
    topology::ping_pong::PingPongMessage,
};
use reqwest::Method;
use std::{net::SocketAddr, path::PathBuf};
use tempfile::TempDir;
use uptack_dap::{
    client::Client,
    collector::Collector,
    http_client,
    protocol::{
        self, AggregationJobId, AggregationRequest, Endpoint, HelperAnswer, HelperResult, Measurement, ReportError,
        ReportHeader, SealedReport, UploadedReport, Vdaf,
    },
    task::{AggregatorRole, TaskSet},
    token::Token,
};
use uptack_server::aggregator::{Aggregator, Config};
use url::Url;

use crate::aggregator::support::{PATIENCE, Processes, Stage, eventually, metric, now, quick};

/// An aggregation job as a leader would send it, made by hand.
pub(crate) struct HandMadeJob {
    pub(crate) body: Vec<u8>,
}

impl HandMadeJob {
    pub(crate) async fn new(stage: &Stage, reports: usize) -> Self {
        let mut inits = Vec::new();
        for _ in 0..reports {
            inits.push(init(stage).await);
        }
        Self::of(inits)
    }

    fn of(inits: Vec<PrepareInit>) -> Self {
        let request = AggregationJobInitializeReq::<TimeInterval>::new(
            Vec::new(),
            PartialBatchSelector::new_time_interval(),
            inits,
        );
        Self { body: request.get_encoded().unwrap() }
    }

    pub(crate) async fn put(&self, stage: &Stage, id: AggregationJobId) -> (u16, Vec<u8>) {
        let token = stage.task.leader.aggregator_token.as_ref().unwrap();
        call(stage, Method::PUT, &id, Some(token), self.body.clone()).await
    }
}

/// A report for cell 0 that only the helper hears of: the leader's part is played here.
async fn init(stage: &Stage) -> PrepareInit {
    let vdaf = Vdaf::new(&stage.parameters().vdaf).unwrap();
    let header = ReportHeader { id: rand::random(), time: stage.parameters().window(now()) };
    let (public, shares) = vdaf.shard(&Measurement::Cell(0), &header.id).unwrap();
    let (_, message) = vdaf.leader_start(&stage.task.leader.verify_key, &header.id, &public, &shares[0]).unwrap();
    let key = hpke_config(&stage.pair.helper.url()).await;
    let task = stage.parameters().task_id;
    let report = SealedReport::from_shares(header, &task, public.clone(), shares, &[key.clone(), key]).unwrap();
    let helper_share = UploadedReport::from_bytes(report.as_bytes()).unwrap().helper_share();
    let mut request = AggregationRequest::default();
    request.add(header, public, helper_share, message);
    let request = AggregationJobInitializeReq::<TimeInterval>::get_decoded(&request.into_bytes().unwrap()).unwrap();
    request.prepare_inits()[0].clone()
}

async fn hpke_config(base: &Url) -> protocol::HpkeConfig {
    let bytes = reqwest::get(base.join("hpke_config").unwrap()).await.unwrap().bytes().await.unwrap();
    protocol::keys_from_bytes(&bytes).unwrap().remove(0)
}

async fn call(
    stage: &Stage,
    method: Method,
    id: &AggregationJobId,
    token: Option<&Token>,
    body: Vec<u8>,
) -> (u16, Vec<u8>) {
    let media_type = match method {
        Method::POST => Endpoint::CONTINUE_AGGREGATION.media_type.unwrap(),
        _ => Endpoint::START_AGGREGATION.media_type.unwrap(),
    };
    let path = format!("tasks/{}/aggregation_jobs/{id}", stage.parameters().task_id);
    let mut request = reqwest::Client::new()
        .request(method, stage.pair.helper.url().join(&path).unwrap())
        .header("content-type", media_type)
        .body(body);
    if let Some(token) = token {
        request = request.bearer_auth(token.as_str());
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.bytes().await.unwrap().to_vec())
}

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_job_gets_the_same_answer_and_counts_once() {
    let stage = Stage::new(1).await;
    let job = HandMadeJob::new(&stage, 3).await;
    let id = rand::random();
    let (first, second) = tokio::join!(job.put(&stage, id), job.put(&stage, id));
    let third = job.put(&stage, id).await;
    assert_eq!(first.0, 200);
    assert_eq!(first, second);
    assert_eq!(first, third);
    let added = "uptack_reports_aggregated_total{outcome=\"added\"}";
    assert_eq!(metric(&stage.pair.helper.operations_url().unwrap(), added).await, 3);
    // Another content under the same name is refused, and so is going on: Prio3 has one round.
    let other = HandMadeJob::new(&stage, 1).await;
    assert_eq!(other.put(&stage, id).await.0, 409);
    let token = stage.task.leader.aggregator_token.as_ref();
    let (status, body) = call(&stage, Method::POST, &id, token, Vec::new()).await;
    assert!(status == 400 && text(&body).contains("stepMismatch"));
    let (status, body) = call(&stage, Method::POST, &rand::random(), token, Vec::new()).await;
    assert!(status == 400 && text(&body).contains("unrecognizedAggregationJob"));
    // Deleted, the answer is gone; what was counted stays counted.
    assert_eq!(call(&stage, Method::DELETE, &id, token, Vec::new()).await.0, 204);
    assert_eq!(job.put(&stage, id).await.0, 410);
    assert_eq!(metric(&stage.pair.helper.operations_url().unwrap(), added).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_jobs_are_refused_whole() {
    let stage = Stage::new(1).await;
    let good = init(&stage).await;
    for (job, reason) in [
        (HandMadeJob::of(Vec::new()), "no reports"),
        (HandMadeJob::of(vec![good.clone(), good.clone()]), "twice"),
        (HandMadeJob { body: vec![1, 2, 3] }, "decode"),
        (HandMadeJob { body: Vec::new() }, "decode"),
    ] {
        let (status, body) = job.put(&stage, rand::random()).await;
        assert_eq!(status, 400);
        let body = text(&body);
        assert!(body.contains("invalidMessage") && body.contains(reason), "{body}");
    }
    // A message of another round fails its report, not the job.
    let message = PingPongMessage::Finish { prep_msg: vec![0; 16] };
    let odd = PrepareInit::new(good.report_share().clone(), message);
    let (status, answer) = HandMadeJob::of(vec![odd]).put(&stage, rand::random()).await;
    assert_eq!(status, 200);
    let answer = HelperAnswer::from_bytes(&answer).unwrap();
    let (_, result) = answer.results().next().unwrap();
    assert!(matches!(result, HelperResult::Rejected(ReportError::InvalidProof)), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthorized_calls_are_refused() {
    let stage = Stage::new(1).await;
    stage.upload(0).await;
    let job = HandMadeJob::new(&stage, 1).await;
    let id: AggregationJobId = rand::random();
    let collectors = stage.task.collector.token.clone();
    for token in [None, Some(&Token::generate()), Some(&collectors)] {
        for method in [Method::PUT, Method::POST, Method::DELETE] {
            let (status, body) = call(&stage, method, &id, token, job.body.clone()).await;
            let body = text(&body);
            assert!(status == 403 && body.contains("unauthorizedRequest"), "{body}");
        }
    }
    // The leader's token opens nothing at the leader, and a wrong one neither.
    let leaders = stage.task.leader.aggregator_token.clone().unwrap();
    for token in [Token::generate(), leaders] {
        let mut thief = stage.task.collector.clone();
        thief.token = token;
        let thief = Collector::new(thief).unwrap();
        let job = Collector::new_job();
        for outcome in [
            thief.request(&job, stage.batch()).await,
            thief.poll(&job, stage.batch()).await.map(drop),
            thief.delete(&job).await,
        ] {
            assert!(outcome.unwrap_err().to_string().contains("403"));
        }
    }
    assert_eq!(stage.collect().await.unwrap().counts, [1, 0, 0]);
}

/// Other DAP deployments show tokens in a header of their own; both are taken.
#[tokio::test(flavor = "multi_thread")]
async fn the_other_token_header_is_taken_too() {
    let stage = Stage::new(1).await;
    let job = HandMadeJob::new(&stage, 1).await;
    let id: AggregationJobId = rand::random();
    let path = format!("tasks/{}/aggregation_jobs/{id}", stage.parameters().task_id);
    let token = stage.task.leader.aggregator_token.as_ref().unwrap();
    let status = reqwest::Client::new()
        .put(stage.pair.helper.url().join(&path).unwrap())
        .header("dap-auth-token", token.as_str())
        .header("content-type", Endpoint::START_AGGREGATION.media_type.unwrap())
        .body(job.body)
        .send()
        .await
        .unwrap()
        .status();
    assert_eq!(status, 200);
}

/// Every answer carries the version, and every refusal is a problem document.
#[tokio::test(flavor = "multi_thread")]
async fn answers_are_signed_and_refusals_explained() {
    let stage = Stage::new(1).await;
    let base = stage.pair.leader.url();
    let task = stage.parameters().task_id;
    let client = reqwest::Client::new();
    let unknown = URL_SAFE_NO_PAD.encode([9; 32]);
    for (method, path, status) in [
        (Method::GET, "healthz".to_owned(), 404),
        (Method::GET, "metrics".to_owned(), 404),
        (Method::GET, "hpke_config".to_owned(), 200),
        (Method::GET, format!("hpke_config?task_id={task}"), 200),
        (Method::GET, format!("hpke_config?task_id={unknown}"), 400),
        (Method::GET, "hpke_config?task_id=x".to_owned(), 400),
        (Method::OPTIONS, format!("tasks/{task}/reports"), 200),
        (Method::PUT, format!("tasks/{task}/reports"), 415),
        (Method::PUT, format!("tasks/{unknown}/reports"), 400),
        (Method::GET, format!("tasks/{task}/reports"), 405),
        (Method::GET, "nowhere".to_owned(), 404),
        (Method::PUT, format!("tasks/{task}/aggregation_jobs/AAAAAAAAAAAAAAAAAAAAAA"), 404),
        (Method::PUT, format!("uptack/tasks/{task}"), 404),
    ] {
        let url = base.join(&path).unwrap();
        let response = client.request(method, url).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{path}");
        let version = response.headers()["server"].to_str().unwrap().to_owned();
        assert_eq!(version, concat!("uptack/", env!("CARGO_PKG_VERSION")));
        if status >= 400 {
            assert_eq!(response.headers()["content-type"], "application/problem+json");
            let document: serde_json::Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
            assert_eq!(document["status"], status);
            assert!(document["type"].is_string() && document["title"].is_string());
        }
    }
    let operations = stage.pair.leader.operations_url().unwrap();
    let health = client.get(operations.join("healthz").unwrap()).send().await.unwrap();
    let health: serde_json::Value = serde_json::from_slice(&health.bytes().await.unwrap()).unwrap();
    assert_eq!(health["status"], "ok");
    assert_eq!(health["role"], "leader");
    assert_eq!(health["tasks"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_is_used_and_the_old_one_still_opens() {
    let stage = Stage::new(1).await;
    let old = stage.client.seal(&Measurement::Cell(0), now()).await.unwrap();
    let before = hpke_config(&stage.pair.leader.url()).await;
    stage.pair.leader.rotate_key().await.unwrap();
    stage.pair.helper.rotate_key().await.unwrap();
    assert_ne!(before, hpke_config(&stage.pair.leader.url()).await);
    stage.client.send(&old).await.unwrap();
    let fresh = Client::new(stage.parameters().clone()).unwrap();
    fresh.upload(&Measurement::Cell(1), now(), PATIENCE).await.unwrap();
    assert_eq!(stage.collect().await.unwrap().counts, [1, 1, 0]);
}

/// A key is gone: the client makes its report anew under the same id, and it counts once.
#[tokio::test(flavor = "multi_thread")]
async fn an_outdated_key_is_replaced_by_the_client() {
    let clock = uptack_dap::clock::Clock::standing_at(1_000_000_000);
    let stage = Stage::at(&clock, |parameters| {
        parameters.time_precision = 1000;
        parameters.report_expiry_age = Some(1000);
    })
    .await;
    let cell = Measurement::Cell(2);
    let old = stage.client.seal(&cell, 1_000_000_000).await.unwrap();
    for aggregator in [&stage.pair.leader, &stage.pair.helper] {
        aggregator.rotate_key().await.unwrap();
    }
    clock.set(1_000_000_000 + 25 * 3600);
    // A day takes two dozen cleanings to be believed.
    for _ in 0..26 {
        stage.pair.leader.clean().await.unwrap();
        stage.pair.helper.clean().await.unwrap();
    }
    // The cached key is a day too old, the window is of now.
    let time = clock.now();
    let report = stage.client.upload(&cell, time, PATIENCE).await.unwrap();
    assert_ne!(report.id(), old.id());
    let stale = stage.client.send(&old).await.unwrap_err();
    assert!(stale.is_refused(), "{stale}");
    let batch = stage.parameters().batch(time, 1).unwrap();
    let job = Collector::new_job();
    let collected = stage.collector.collect(&job, batch, PATIENCE).await.unwrap();
    assert_eq!(collected.counts, [0, 0, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_works_from_end_to_end() {
    let directory = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (directory.path().join("c.pem"), directory.path().join("k.pem"));
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let start = async |role: AggregatorRole| {
        let mut config = Config::new(role, directory.path().join(role.to_string()));
        quick(&mut config);
        config.tls = Some((certificate.clone(), key.clone()));
        config.peer_root = Some(certificate.clone());
        Aggregator::start(config).await.unwrap()
    };
    let (leader, helper) = (start(AggregatorRole::Leader).await, start(AggregatorRole::Helper).await);
    let by_name = |aggregator: &Aggregator| -> Url {
        assert_eq!(aggregator.url().scheme(), "https");
        let port = aggregator.url().port().unwrap();
        format!("https://localhost:{port}/").parse().unwrap()
    };
    let parameters = uptack_dap::task::TaskParameters::new(
        by_name(&leader),
        by_name(&helper),
        protocol::VdafKind::histogram(3),
        crate::aggregator::support::PRECISION,
        1,
    );
    let mut parameters = parameters;
    parameters.report_expiry_age = None;
    let task = TaskSet::generate(parameters).unwrap();
    helper.add_task(task.helper.clone()).await.unwrap();
    leader.add_task(task.leader.clone()).await.unwrap();
    let root = Some(certificate.as_path());
    let client = Client::with_root(task.parameters().clone(), root).unwrap();
    client.upload(&Measurement::Cell(1), now(), PATIENCE).await.unwrap();
    let collector = Collector::with_root(task.collector.clone(), root).unwrap();
    let batch = task.parameters().batch(now(), 1).unwrap();
    let collected = collector.collect(&Collector::new_job(), batch, PATIENCE).await.unwrap();
    assert_eq!(collected.counts, [0, 1, 0]);
    // Whoever does not know the certificate does not talk to it.
    let stranger = Client::new(task.parameters().clone()).unwrap();
    let error = stranger.seal(&Measurement::Cell(0), now()).await.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
}

#[tokio::test]
async fn other_machines_are_not_served_in_plaintext_by_accident() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::new(AggregatorRole::Leader, directory.path());
    config.listen = SocketAddr::from(([0, 0, 0, 0], 0));
    let error = Aggregator::start(config.clone()).await.err().unwrap();
    assert!(error.is_input() && error.to_string().contains("certificate"), "{error}");
    config.allow_plaintext = true;
    Aggregator::start(config).await.unwrap().shutdown().await;
}

#[tokio::test]
async fn two_aggregators_do_not_share_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config::new(AggregatorRole::Leader, directory.path());
    let first = Aggregator::start(config.clone()).await.unwrap();
    let error = Aggregator::start(config.clone()).await.err().unwrap();
    assert!(error.is_input() && error.to_string().contains("in use"), "{error}");
    first.shutdown().await;
    Aggregator::start(config).await.unwrap().shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_adds_and_removes_tasks_with_a_token() {
    let directory = tempfile::tempdir().unwrap();
    let token = Token::generate();
    let mut config = Config::new(AggregatorRole::Helper, directory.path());
    config.admin_token = Some(token.clone());
    config.admission.allow_tasks_without_card = true;
    let helper = Aggregator::start(config).await.unwrap();
    let base = helper.url();
    let parameters =
        uptack_dap::task::TaskParameters::new(base.clone(), base.clone(), protocol::VdafKind::histogram(3), 60, 1);
    let task = TaskSet::generate(parameters).unwrap();
    let id = task.parameters().task_id;
    let url = base.join(&format!("uptack/tasks/{id}")).unwrap();
    let send = async |method: Method, token: &Token, body: String| {
        reqwest::Client::new()
            .request(method, url.clone())
            .bearer_auth(token.as_str())
            .body(body)
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    let definition = serde_json::to_string(&task.helper).unwrap();
    let wrong_role = serde_json::to_string(&task.leader).unwrap();
    assert_eq!(send(Method::PUT, &Token::generate(), definition.clone()).await, 403);
    assert_eq!(send(Method::PUT, &token, "{}".to_owned()).await, 400);
    assert_eq!(send(Method::PUT, &token, wrong_role).await, 400);
    let operations = helper.operations_url().unwrap();
    assert_eq!(metric(&operations, "uptack_tasks ").await, 0);
    assert_eq!(send(Method::PUT, &token, definition.clone()).await, 201);
    assert_eq!(send(Method::PUT, &token, definition.clone()).await, 201);
    assert_eq!(metric(&operations, "uptack_tasks ").await, 1);
    let mut changed = task.helper.clone();
    changed.parameters.min_batch_size = 2;
    let changed = serde_json::to_string(&changed).unwrap();
    assert_eq!(send(Method::PUT, &token, changed).await, 400);
    assert_eq!(send(Method::DELETE, &Token::generate(), String::new()).await, 403);
    assert_eq!(send(Method::DELETE, &token, String::new()).await, 204);
    assert_eq!(send(Method::DELETE, &token, String::new()).await, 400);
    assert_eq!(send(Method::PUT, &token, definition).await, 400);
}

/// A whole run at the most talkative level: structured lines, and nothing secret in them. Then both
/// processes stop in order when asked.
#[tokio::test(flavor = "multi_thread")]
async fn logs_are_structured_and_hold_no_secret_and_the_end_is_orderly() {
    let mut processes = Processes::new(2).await;
    let client = Client::new(processes.task.parameters().clone()).unwrap();
    let mut sent = Vec::new();
    for cell in [0, 1, 1] {
        let report = client.upload(&Measurement::Cell(cell), now(), PATIENCE).await;
        sent.push(report.unwrap());
    }
    let mut thief = processes.task.collector.clone();
    thief.token = Token::generate();
    let batch = processes.task.parameters().batch(now(), 1).unwrap();
    let job = Collector::new_job();
    let refused = Collector::new(thief.clone()).unwrap().request(&job, batch).await;
    assert!(refused.is_err());
    let collector = Collector::new(processes.task.collector.clone()).unwrap();
    let collected = collector.collect(&job, batch, PATIENCE).await.unwrap();
    assert_eq!(collected.counts, [1, 2, 0]);

    let base = processes.leader.operations_url().unwrap();
    eventually("everything is settled", async || metric(&base, "uptack_pending_reports ").await == 0).await;
    assert_eq!(processes.leader.terminate(), 0);
    assert_eq!(processes.helper.terminate(), 0);

    let task = &processes.task;
    let keypair = &task.collector.hpke_keypair;
    let mut secrets = vec![
        task.collector.token.as_str().to_owned(),
        thief.token.as_str().to_owned(),
        task.leader.aggregator_token.as_ref().unwrap().as_str().to_owned(),
        URL_SAFE_NO_PAD.encode(task.leader.verify_key),
        URL_SAFE_NO_PAD.encode(keypair.private_key()),
        format!("{:?}", task.leader.verify_key),
    ];
    for report in &sent {
        let report = UploadedReport::from_bytes(report.as_bytes()).unwrap();
        secrets.push(report.header().id.to_string());
    }
    for log in [processes.leader.log(), processes.helper.log()] {
        assert!(log.contains("listening") && log.contains("stopped"), "{log}");
        assert!(log.lines().count() > 5);
        for line in log.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(line["level"].is_string() && line["timestamp"].is_string());
        }
        for secret in &secrets {
            assert!(!log.contains(secret), "a secret in the log");
        }
    }
    drop(processes.directory);
}

/// A leader with a self-signed certificate, which is that of an authority or not.
async fn leader_with_certificate(authority: bool) -> (TempDir, PathBuf, Aggregator) {
    let directory = tempfile::tempdir().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    if authority {
        // What `openssl req -x509` makes by default.
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    }
    let key_pair = rcgen::KeyPair::generate().unwrap();
    let (certificate, key) = (directory.path().join("c.pem"), directory.path().join("k.pem"));
    std::fs::write(&certificate, parameters.self_signed(&key_pair).unwrap().pem()).unwrap();
    std::fs::write(&key, key_pair.serialize_pem()).unwrap();
    let mut config = Config::new(AggregatorRole::Leader, directory.path().join("leader"));
    config.tls = Some((certificate.clone(), key));
    (directory, certificate, Aggregator::start(config).await.unwrap())
}

async fn get_keys(leader: &Aggregator, root: Option<&PathBuf>) -> Result<u16, String> {
    let url = format!("https://localhost:{}/hpke_config", leader.url().port().unwrap());
    let answer = http_client::client(root.map(PathBuf::as_path)).unwrap().get(url).send().await;
    answer.map(|answer| answer.status().as_u16()).map_err(|error| http_client::no_answer("leader", error).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_self_signed_certificate_is_refused_with_what_to_do() {
    let (_directory, certificate, authority) = leader_with_certificate(true).await;
    let error = get_keys(&authority, Some(&certificate)).await.unwrap_err();
    assert!(error.contains("CaUsedAsEndEntity") && error.contains("CA:FALSE"), "{error}");
    let (_directory, certificate, server) = leader_with_certificate(false).await;
    assert_eq!(get_keys(&server, Some(&certificate)).await, Ok(200));
    let error = get_keys(&server, None).await.unwrap_err();
    assert!(error.contains("name the root certificate that issued it"), "{error}");
}
