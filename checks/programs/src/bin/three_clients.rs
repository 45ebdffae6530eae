//! Three implementations' clients in one batch, two implementations' collectors, and between them
//! two processes of the command line: `three_clients UPTACK CHECK`, where `UPTACK` is the binary
//! and `CHECK` the directory of the Node script.

use janus_collector::PollResult;
use janus_core::{auth_tokens::AuthenticationToken, hpke::HpkePrivateKey};
use janus_messages::{Duration as Seconds, Interval, Query, Time};
use prio::vdaf::prio3::{Prio3Histogram, optimal_chunk_length};
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use uptack_dap::{
    client::Client,
    collector::Collector,
    protocol::{HpkeKeypair, Measurement, VdafKind},
    task::{TaskParameters, TaskSet},
};
use url::Url;

type Failure = Box<dyn std::error::Error>;

const CELLS: usize = 6;
const PRECISION: u64 = 100_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, check] = arguments.as_slice() else {
        return Err("usage: three_clients UPTACK CHECK".into());
    };
    let directory = tempfile::tempdir()?;
    let task = {
        // The addresses are known once the processes run, the tasks once the addresses are.
        let helper = Process::start(program, "helper", directory.path(), None)?;
        let leader = Process::start(program, "leader", directory.path(), Some(&helper.url))?;
        Running::new(leader, helper, directory.path()).await?
    };
    let parameters = task.set.parameters().clone();
    let mut expected = [0u64; CELLS];
    let mut cells = |step: usize| -> Vec<usize> {
        let cells: Vec<usize> = (0..20).map(|index| index * step % CELLS).collect();
        for cell in &cells {
            expected[*cell] += 1;
        }
        cells
    };

    let status = Command::new("node")
        .arg(Path::new(check).join("upload.mjs"))
        .arg(directory.path().join("written/client.json"))
        .args(cells(1).iter().map(usize::to_string))
        .status()?;
    if !status.success() {
        return Err("the Node client failed".into());
    }
    let vdaf = || Prio3Histogram::new_histogram(2, CELLS, optimal_chunk_length(CELLS));
    let theirs = janus_client::Client::new(
        parameters.task_id,
        parameters.leader.clone(),
        parameters.helper.clone(),
        Seconds::from_seconds(PRECISION),
        vdaf()?,
    )
    .await?;
    for cell in cells(5) {
        theirs.upload(&cell).await?;
    }
    let ours = Client::new(parameters.clone())?;
    for cell in cells(3) {
        ours.upload(&Measurement::Cell(cell), now()?, PATIENCE).await?;
    }

    let job = Collector::new_job();
    let batch = parameters.batch(now()?, 1)?;
    let by_ours = Collector::new(task.set.collector.clone())?.collect(&job, batch, PATIENCE).await?;
    let token = task.set.collector.token.as_str();
    let collector = janus_collector::Collector::new(
        parameters.task_id,
        parameters.leader.clone(),
        AuthenticationToken::new_bearer_token_from_string(token)?,
        at_janus(&task.set.collector.hpke_keypair),
        vdaf()?,
    )?;
    let (start, length) = (batch.start(), batch.finish() - batch.start());
    let interval = Interval::new(Time::from_seconds_since_epoch(start), Seconds::from_seconds(length))?;
    let query = Query::new_time_interval(interval);
    let started = collector.start_collection_with_id(job, query, &()).await?;
    let PollResult::CollectionResult(by_theirs) = collector.poll_once(&started).await? else {
        return Err("the batch is ready for one collector and not for the other".into());
    };
    let by_theirs: Vec<u64> = by_theirs.aggregate_result().iter().map(|count| *count as u64).collect();
    writeln!(
        std::io::stdout(),
        "expected {expected:?}, our collector {:?}, janus_collector {by_theirs:?}",
        by_ours.counts
    )?;
    if by_ours.counts != expected || by_theirs != expected {
        return Err("the counts differ".into());
    }
    Ok(())
}

fn now() -> Result<u64, Failure> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

/// Two processes and the task that they serve.
struct Running {
    set: TaskSet,
    _processes: [Process; 2],
}

impl Running {
    async fn new(leader: Process, helper: Process, directory: &Path) -> Result<Self, Failure> {
        let kind = VdafKind::histogram(CELLS);
        let (leader_url, helper_url) = (leader.url.clone(), helper.url.clone());
        let mut parameters = TaskParameters::new(leader_url, helper_url, kind, PRECISION, 30);
        parameters.report_expiry_age = None;
        let set = TaskSet::generate(parameters)?;
        let written = directory.join("written");
        set.write(&written)?;
        for process in [&leader, &helper] {
            let tasks = directory.join(process.role).join("tasks");
            std::fs::create_dir_all(&tasks)?;
            let file = written.join(format!("{}.json", process.role));
            std::fs::rename(file, tasks.join("task.json"))?;
            let health = process.operations.join("metrics")?;
            while !reqwest::get(health.clone()).await?.text().await?.contains("uptack_tasks 1") {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(Self { set, _processes: [leader, helper] })
    }
}

/// One `uptack aggregator`.
struct Process {
    role: &'static str,
    url: Url,
    operations: Url,
    child: Child,
}

impl Process {
    fn start(program: &str, role: &'static str, directory: &Path, peer: Option<&Url>) -> Result<Self, Failure> {
        let mut child = Command::new(program)
            .args(["aggregator", "--allow-tasks-without-card", "--role", role, "--listen", "127.0.0.1:0", "--data"])
            .arg(directory.join(role))
            .args(peer.iter().flat_map(|url| ["--peer", url.as_str()]))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let mut address = || -> Result<Url, Failure> {
            let line = lines.next().ok_or("the program ended")??;
            Ok(line.rsplit(' ').next().unwrap_or_default().parse()?)
        };
        Ok(Self { role, url: address()?, operations: address()?, child })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The same key, as Janus keeps it.
fn at_janus(keypair: &HpkeKeypair) -> janus_core::hpke::HpkeKeypair {
    let private = HpkePrivateKey::new(keypair.private_key().as_ref().to_vec());
    janus_core::hpke::HpkeKeypair::new(keypair.config().clone(), private)
}
