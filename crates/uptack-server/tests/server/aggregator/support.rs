//! What the tests share: a pair in this process, a pair as processes, batches with known counts.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tempfile::TempDir;
use uptack::NoiseLaw;
use uptack_dap::{
    client::Client,
    clock::Clock,
    collector::{Collected, Collector},
    error::Result,
    protocol::{
        AggregateShareRequest, BatchChecksum, BatchInterval, CollectionJobId, Endpoint, Measurement, ReportId, VdafKind,
    },
    task::{TaskParameters, TaskSet},
};
use uptack_server::aggregator::{Config, Pair};
use url::Url;

/// Long enough for any test on a slow machine; nothing waits for it in vain.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// One window holds a whole test.
pub(crate) const PRECISION: u64 = 100_000_000;

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A pair in this process, with a task for three cells.
pub(crate) struct Stage {
    pub(crate) directory: TempDir,
    pub(crate) pair: Pair,
    pub(crate) task: TaskSet,
    pub(crate) client: Client,
    pub(crate) collector: Collector,
}

pub(crate) fn quick(config: &mut Config) {
    config.gather = Duration::from_millis(5);
    config.admission.allow_tasks_without_card = true;
}

impl Stage {
    pub(crate) async fn new(minimum: u64) -> Self {
        Self::with(minimum, quick, |_| {}).await
    }

    pub(crate) async fn with(
        minimum: u64,
        adjust: impl Fn(&mut Config),
        change: impl FnOnce(&mut TaskParameters),
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pair = Pair::start(directory.path(), adjust).await.unwrap();
        let mut parameters = pair.parameters(VdafKind::histogram(3), PRECISION, minimum);
        parameters.report_expiry_age = None;
        change(&mut parameters);
        let task = TaskSet::generate(parameters).unwrap();
        pair.add_task(&task).await.unwrap();
        Self {
            client: Client::new(task.parameters().clone()).unwrap(),
            collector: Collector::new(task.collector.clone()).unwrap(),
            directory,
            pair,
            task,
        }
    }

    /// Both aggregators read a clock that goes on only when it is set.
    pub(crate) async fn at(clock: &Clock, change: impl FnOnce(&mut TaskParameters)) -> Self {
        let adjust = |config: &mut Config| {
            quick(config);
            config.clock = clock.clone();
        };
        Self::with(1, adjust, change).await
    }

    pub(crate) fn parameters(&self) -> &TaskParameters {
        self.task.parameters()
    }

    pub(crate) fn batch(&self) -> BatchInterval {
        self.parameters().batch(now(), 1).unwrap()
    }

    pub(crate) async fn upload(&self, cell: usize) {
        self.client.upload(&Measurement::Cell(cell), now(), PATIENCE).await.unwrap();
    }

    pub(crate) async fn upload_counts(&self, counts: [usize; 3]) {
        for (cell, count) in counts.into_iter().enumerate() {
            for _ in 0..count {
                self.upload(cell).await;
            }
        }
    }

    pub(crate) async fn collect(&self) -> Result<Collected> {
        self.collector.collect(&Collector::new_job(), self.batch(), PATIENCE).await
    }

    /// The counter or gauge that starts with `name` of the aggregator whose operations listener is at `base`.
    pub(crate) async fn metric(&self, base: &Url, name: &str) -> u64 {
        metric(base, name).await
    }
}

pub(crate) async fn metric(base: &Url, name: &str) -> u64 {
    let text = reqwest::get(base.join("metrics").unwrap()).await.unwrap().text().await.unwrap();
    text.lines()
        .find(|line| line.starts_with(name))
        .and_then(|line| line.rsplit(' ').next())
        .map_or(0, |value| value.parse().unwrap())
}

/// Has the task sum so many bits, and both aggregators add noise of this scale to each.
pub(crate) fn noisy(bits: usize, scale: &str) -> impl FnOnce(&mut TaskParameters) {
    let noise = NoiseLaw::laplace(scale.parse().unwrap());
    move |parameters| (parameters.vdaf, parameters.noise) = (VdafKind::bits(bits), Some(noise))
}

/// A leader's question for the helper's share, as it is sent.
pub(crate) fn share_request(interval: BatchInterval, reports: &[ReportId]) -> Vec<u8> {
    let mut checksum = BatchChecksum::default();
    reports.iter().for_each(|id| checksum.add(id));
    AggregateShareRequest { interval, reports: reports.len() as u64, checksum }.to_bytes()
}

/// Sends it with the leader's token, and gives back the answer as it comes.
pub(crate) async fn ask_for_share(helper: &Url, task: &TaskSet, request: Vec<u8>) -> (u16, Vec<u8>) {
    let path = format!("tasks/{}/aggregate_shares", task.parameters().task_id);
    let response = reqwest::Client::new()
        .post(helper.join(&path).unwrap())
        .bearer_auth(task.leader.aggregator_token.as_ref().unwrap().as_str())
        .header("content-type", Endpoint::AGGREGATE_SHARE.media_type.unwrap())
        .body(request)
        .send()
        .await
        .unwrap();
    (response.status().as_u16(), response.bytes().await.unwrap().to_vec())
}

/// A finished collection as the leader sends it.
pub(crate) async fn collection(leader: &Url, task: &TaskSet, job: &CollectionJobId) -> Vec<u8> {
    let path = format!("tasks/{}/collection_jobs/{job}", task.parameters().task_id);
    let response = reqwest::Client::new()
        .post(leader.join(&path).unwrap())
        .bearer_auth(task.collector.token.as_str())
        .header("content-length", 0)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status().as_u16(), 200);
    response.bytes().await.unwrap().to_vec()
}

/// Waits until `condition` holds; fails the test if it never does.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !condition().await {
        assert!(tokio::time::Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// An aggregator as a process, which can be killed and started again on the same address.
pub(crate) struct Process {
    role: &'static str,
    data: PathBuf,
    log: PathBuf,
    peer: Option<Url>,
    port: u16,
    operations: Option<Url>,
    child: Option<Child>,
}

impl Process {
    pub(crate) fn new(role: &'static str, data: &Path, peer: Option<Url>) -> Self {
        let mut process = Self {
            role,
            data: data.join(role),
            log: data.join(format!("{role}.log")),
            peer,
            port: 0,
            operations: None,
            child: None,
        };
        std::fs::create_dir_all(process.tasks()).unwrap();
        process.start();
        process
    }

    /// Where its task definitions go.
    pub(crate) fn tasks(&self) -> PathBuf {
        self.data.join("tasks")
    }

    pub(crate) fn url(&self) -> Url {
        format!("http://127.0.0.1:{}/", self.port).parse().unwrap()
    }

    pub(crate) fn operations_url(&self) -> Option<Url> {
        self.operations.clone()
    }

    /// The file with all that it keeps.
    pub(crate) fn state(&self) -> PathBuf {
        self.data.join("state.sqlite3")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn start(&mut self) {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        let mut child = Command::new(program())
            .arg(self.role)
            .arg(&self.data)
            .arg(format!("127.0.0.1:{}", self.port))
            .args(self.peer.iter().map(Url::as_str))
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || -> Url {
            let line = lines.next().and_then(std::result::Result::ok).unwrap_or_default();
            line.parse().unwrap_or_else(|_| panic!("{} did not start: {}", self.role, self.log()))
        };
        let (url, operations) = (next(), next());
        (self.port, self.operations) = (url.port().unwrap(), Some(operations));
        self.child = Some(child);
    }

    /// SIGKILL: no handler runs, nothing is flushed.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// SIGTERM, and the exit code.
    pub(crate) fn terminate(&mut self) -> i32 {
        let mut child = self.child.take().unwrap();
        let status = Command::new("kill").arg(child.id().to_string()).status();
        assert!(status.unwrap().success());
        child.wait().unwrap().code().expect("an exit, not a signal")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The example program, which Cargo builds beside the tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(Path::parent).unwrap();
    let path = built.join("examples").join("aggregator");
    assert!(path.exists(), "{} is missing: run `cargo build -p uptack-server --examples` first", path.display());
    path
}

/// Two processes and a task on them.
pub(crate) struct Processes {
    pub(crate) leader: Process,
    pub(crate) helper: Process,
    pub(crate) task: TaskSet,
    pub(crate) directory: TempDir,
}

impl Processes {
    pub(crate) async fn new(minimum: u64) -> Self {
        Self::with(minimum, |_| {}).await
    }

    pub(crate) async fn with(minimum: u64, change: impl FnOnce(&mut TaskParameters)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let helper = Process::new("helper", directory.path(), None);
        let leader = Process::new("leader", directory.path(), Some(helper.url()));
        let mut parameters =
            TaskParameters::new(leader.url(), helper.url(), VdafKind::histogram(3), PRECISION, minimum);
        parameters.report_expiry_age = None;
        change(&mut parameters);
        let task = TaskSet::generate(parameters).unwrap();
        let written = directory.path().join("written");
        task.write(&written).unwrap();
        // As an operator would: put the file into place in one move.
        for process in [&helper, &leader] {
            let from = written.join(format!("{}.json", process.role));
            std::fs::rename(from, process.tasks().join("task.json")).unwrap();
        }
        for process in [&helper, &leader] {
            let base = process.operations_url().unwrap();
            eventually("the task file is read", async || metric(&base, "uptack_tasks ").await == 1).await;
        }
        Self { leader, helper, task, directory }
    }
}
