//! What the aggregators cost, against the bare cryptography of the same reports in the same run.
//!
//! `cargo run --release -- [REPORTS [BALLOTS]]` prints a table. Leader and helper run as processes
//! of their own, so that their CPU time (user and system, from `/proc`) is theirs alone; reports are
//! sealed before the clock starts. The bare cryptography is what no implementation can avoid: two
//! HPKE openings and both sides' preparation, on one thread, without storage and network; it is
//! measured in CPU time too, before and after the servers, in several rounds of which the table has
//! the median.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use uptack_dap::{
    ballot,
    client::{Client, SealedReport},
    collector::Collector,
    protocol::{
        self, HpkeKeypair, Measurement, ReportHeader, SealedInputShare, TaskId, UploadedReport, Vdaf, VdafKind,
    },
    task::{AggregatorRole, TaskParameters, TaskSet},
};
use uptack_server::aggregator::{self, Config};
use url::Url;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const PRECISION: u64 = 100_000_000;
/// Uploads under way at once.
const UPLOADERS: usize = 32;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "serve") {
        return serve(&arguments[1..]);
    }
    let number = |index: usize, default: usize| arguments.get(index).map_or(Ok(default), |word| word.parse());
    let (reports, ballots) = (number(0, 100_000)?, number(1, 5_000)?);
    let runtime = tokio::runtime::Runtime::new()?;
    let output = &mut std::io::stdout();
    writeln!(output, "{HEADER}")?;
    for (name, kind, count) in
        [("histogram, 3 cells", VdafKind::histogram(3), reports), ("ballot, 960 queries", ballot::kind(960), ballots)]
    {
        let row = runtime.block_on(measure(name, &kind, count))?;
        writeln!(output, "{row}")?;
        output.flush()?;
    }
    Ok(())
}

const HEADER: &str = "\
| sum | reports | bare cryptography, µs | stored to aggregate, µs | ratio | \
upload to aggregate over HTTP, durable, µs | ratio | uploads/s | aggregated/s | \
memory of leader + helper after a tenth, MiB | at the end, MiB |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |";

/// One row of the table.
async fn measure(name: &str, kind: &VdafKind, count: usize) -> Result<String, Failure> {
    let directory = tempfile::tempdir()?;
    let helper = Server::start("helper", directory.path(), None, false)?;
    let mut leader = Server::start("leader", directory.path(), Some(&helper.url), true)?;
    let mut parameters = TaskParameters::new(leader.url.clone(), helper.url.clone(), kind.clone(), PRECISION, 1);
    parameters.report_expiry_age = None;
    let task = TaskSet::generate(parameters)?;
    hand_out(&task, directory.path(), &[&leader, &helper]).await?;
    let sealed = Arc::new(seal(&task, kind, count).await?);

    // A tenth goes all the way, to see what memory the servers settle at.
    let tenth = count / 10;
    leader = leader.restart(directory.path(), &helper.url, false)?;
    upload(&leader.url, &task, &sealed, 0..tenth).await?;
    drained(&leader.operations).await?;
    let memory = leader.memory()? + helper.memory()?;

    let mut rounds = Vec::new();
    for index in 0..ROUNDS {
        let slice = |index: usize| tenth + (count - tenth) * index / ROUNDS;
        let range = slice(index)..slice(index + 1);
        let round;
        (leader, round) = measure_round(directory.path(), &task, &sealed, range, leader, &helper).await?;
        rounds.push(round);
    }
    let memory_at_end = leader.memory()? + helper.memory()?;

    let mut collector = task.collector.clone();
    collector.parameters.leader = leader.url.clone();
    let batch = task.parameters().batch(now(), 1)?;
    let collected = Collector::new(collector)?.collect(&Collector::new_job(), batch, Duration::from_secs(60)).await?;
    if collected.reports != count as u64 {
        return Err(format!("{} of {count} reports collected", collected.reports).into());
    }
    Ok(row(name, count, &rounds, [memory, memory_at_end]))
}

/// One slice of the reports: first only stored, then only aggregated.
async fn measure_round(
    directory: &Path,
    task: &TaskSet,
    sealed: &Arc<Vec<SealedReport>>,
    range: std::ops::Range<usize>,
    mut leader: Server,
    helper: &Server,
) -> Result<(Server, Round), Failure> {
    let reports = range.len();
    let each = |total: f64| total * 1e6 / reports as f64;
    let kind = &task.parameters().vdaf;
    let before = bare(kind, reports.min(2_000))?;

    leader = leader.restart(directory, &helper.url, true)?;
    let (cpu, clock) = (leader.cpu()? + helper.cpu()?, Instant::now());
    upload(&leader.url, task, sealed, range).await?;
    let uploading = each(leader.cpu()? + helper.cpu()? - cpu);
    let upload_rate = reports as f64 / clock.elapsed().as_secs_f64();

    let cpu = helper.cpu()?;
    leader = leader.restart(directory, &helper.url, false)?;
    let clock = Instant::now();
    drained(&leader.operations).await?;
    let aggregating = each(leader.cpu()? + helper.cpu()? - cpu);
    let rate = reports as f64 / clock.elapsed().as_secs_f64();

    // The mean of before and after, since the machine changes its pace.
    let after = bare(kind, reports.min(2_000))?;
    let bare = Bare { whole: (before.whole + after.whole) / 2.0, stored: (before.stored + after.stored) / 2.0 };
    Ok((leader, Round { bare, uploading, aggregating, upload_rate, rate }))
}

fn row(name: &str, count: usize, rounds: &[Round], [memory, memory_at_end]: [f64; 2]) -> String {
    let middle = |of: fn(&Round) -> f64| spread(rounds, of)[1];
    // The leader opens its share while it takes the upload, so that from the store on only one
    // opening is left to compare with.
    let [least, ratio, most] = spread(rounds, |round| round.aggregating / round.bare.stored);
    let [whole_least, whole_ratio, whole_most] =
        spread(rounds, |round| (round.uploading + round.aggregating) / round.bare.whole);
    format!(
        "| {name} | {count} | {:.0} (without the leader's opening {:.0}) | {:.0} | \
         {ratio:.2} ({least:.2}–{most:.2}) | {:.0} | \
         {whole_ratio:.2} ({whole_least:.2}–{whole_most:.2}) | {:.0} | {:.0} | \
         {memory:.1} | {memory_at_end:.1} |",
        middle(|round| round.bare.whole),
        middle(|round| round.bare.stored),
        middle(|round| round.aggregating),
        middle(|round| round.uploading + round.aggregating),
        middle(|round| round.upload_rate),
        middle(|round| round.rate),
    )
}

/// Slices of the reports that are measured one after another, each with the cryptography around it.
const ROUNDS: usize = 5;

/// One of them: microseconds a report, and reports a second.
struct Round {
    bare: Bare,
    uploading: f64,
    aggregating: f64,
    upload_rate: f64,
    rate: f64,
}

/// The least, the median and the most over the rounds.
fn spread(rounds: &[Round], of: impl Fn(&Round) -> f64) -> [f64; 3] {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}

/// Microseconds a report of the cryptography alone.
struct Bare {
    whole: f64,
    stored: f64,
}

fn bare(kind: &VdafKind, count: usize) -> Result<Bare, Failure> {
    let vdaf = Vdaf::new(kind)?;
    let keys = [protocol::generate_keypair(1), protocol::generate_keypair(2)];
    let task: TaskId = rand::random();
    let verify_key = [7; 16];
    let mut reports = Vec::new();
    for index in 0..count {
        reports.push(seal_by_hand(&vdaf, &keys, &task, &measurement(kind, index))?);
    }
    let clock = thread_cpu()?;
    let leaders = open_all(reports.iter().map(UploadedReport::leader_share), &keys[0], &task)?;
    let leaders_opened = thread_cpu()?;
    let helpers = open_all(reports.iter().map(UploadedReport::helper_input_share), &keys[1], &task)?;
    let [mut leader_sum, mut helper_sum] = [vdaf.zero(), vdaf.zero()];
    for ((report, leader), helper) in reports.iter().zip(&leaders).zip(&helpers) {
        let id = &report.header().id;
        let public = report.public_share();
        let (state, first) = vdaf.leader_start(&verify_key, id, public, leader).ok_or("leader")?;
        let (share, second) = vdaf.helper_finish(&verify_key, id, public, helper, &first).ok_or("helper")?;
        helper_sum.add(&share);
        leader_sum.add(&vdaf.leader_finish(state, &second).ok_or("leader")?);
    }
    let end = thread_cpu()?;
    vdaf.reveal([leader_sum, helper_sum], count as u64)?;
    Ok(Bare { whole: (end - clock) * 1e6 / count as f64, stored: (end - leaders_opened) * 1e6 / count as f64 })
}

/// Seconds of CPU that this thread has used, so that other programs on the machine do not count.
fn thread_cpu() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = text.split_whitespace().next().ok_or("no schedstat")?.parse()?;
    Ok(nanoseconds / 1e9)
}

fn open_all<'a>(
    shares: impl Iterator<Item = SealedInputShare<'a>>,
    key: &HpkeKeypair,
    task: &TaskId,
) -> Result<Vec<Vec<u8>>, Failure> {
    shares.map(|share| share.open(key, task).map_err(|_| "a share does not open".into())).collect()
}

fn seal_by_hand(
    vdaf: &Vdaf,
    keys: &[HpkeKeypair; 2],
    task: &TaskId,
    measurement: &Measurement,
) -> Result<UploadedReport, Failure> {
    let header = ReportHeader { id: rand::random(), time: 0 };
    let keys = keys.each_ref().map(|key| key.config().clone());
    let sealed = SealedReport::seal(measurement, header, task, vdaf, &keys)?;
    Ok(UploadedReport::from_bytes(sealed.as_bytes()).ok_or("a report does not decode")?)
}

fn measurement(kind: &VdafKind, index: usize) -> Measurement {
    match kind {
        VdafKind::Histogram { length, .. } => Measurement::Cell(index % length),
        VdafKind::Bits { length, .. } => Measurement::Bits((0..*length).map(|bit| (index + bit) % 3 == 0).collect()),
    }
}

async fn seal(task: &TaskSet, kind: &VdafKind, count: usize) -> Result<Vec<SealedReport>, Failure> {
    let client = Arc::new(Client::new(task.parameters().clone())?);
    client.seal(&measurement(kind, 0), now()).await?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut running = Vec::new();
    for worker in 0..workers {
        let (client, kind) = (Arc::clone(&client), kind.clone());
        running.push(tokio::spawn(async move {
            let mut sealed = Vec::new();
            for index in (worker..count).step_by(workers) {
                sealed.push(client.seal(&measurement(&kind, index), now()).await?);
            }
            Ok::<_, Failure>(sealed)
        }));
    }
    let mut sealed = Vec::with_capacity(count);
    for worker in running {
        sealed.extend(worker.await??);
    }
    Ok(sealed)
}

async fn upload(
    leader: &Url,
    task: &TaskSet,
    sealed: &Arc<Vec<SealedReport>>,
    range: std::ops::Range<usize>,
) -> Result<(), Failure> {
    let mut parameters = task.parameters().clone();
    parameters.leader = leader.clone();
    let client = Arc::new(Client::new(parameters)?);
    let next = Arc::new(AtomicUsize::new(range.start));
    let mut running = Vec::new();
    for _ in 0..UPLOADERS {
        let (client, next) = (Arc::clone(&client), Arc::clone(&next));
        let (sealed, end) = (Arc::clone(sealed), range.end);
        running.push(tokio::spawn(async move {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= end {
                    return Ok::<_, Failure>(());
                }
                client.send(&sealed[index]).await?;
            }
        }));
    }
    for worker in running {
        worker.await??;
    }
    Ok(())
}

async fn drained(operations: &Url) -> Result<(), Failure> {
    while metric(operations, "uptack_pending_reports ").await? != 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn metric(base: &Url, name: &str) -> Result<u64, Failure> {
    let text = reqwest::get(base.join("metrics")?).await?.text().await?;
    let line = text.lines().find(|line| line.starts_with(name)).ok_or("no such metric")?;
    Ok(line[name.len()..].trim().parse()?)
}

async fn hand_out(task: &TaskSet, directory: &Path, servers: &[&Server]) -> Result<(), Failure> {
    let written = directory.join("written");
    task.write(&written)?;
    for server in servers {
        let tasks = directory.join(server.role).join("tasks");
        std::fs::create_dir_all(&tasks)?;
        let file = written.join(format!("{}.json", server.role));
        std::fs::rename(file, tasks.join("task.json"))?;
        while metric(&server.operations, "uptack_tasks ").await? == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// A leader or helper as a process.
struct Server {
    role: &'static str,
    url: Url,
    operations: Url,
    child: Child,
}

impl Server {
    /// With `idle`, uploads are stored and left alone.
    fn start(role: &'static str, directory: &Path, peer: Option<&Url>, idle: bool) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve", role])
            .arg(directory.join(role))
            .arg(if idle { "idle" } else { "busy" })
            .args(peer.map(Url::as_str))
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let mut address = || -> Result<Url, Failure> { Ok(lines.next().ok_or("the server ended")??.trim().parse()?) };
        Ok(Self { role, url: address()?, operations: address()?, child })
    }

    fn restart(mut self, directory: &Path, peer: &Url, idle: bool) -> Result<Self, Failure> {
        self.stop()?;
        Self::start(self.role, directory, Some(peer), idle)
    }

    fn stop(&mut self) -> Result<(), Failure> {
        Command::new("kill").arg(self.child.id().to_string()).status()?;
        self.child.wait()?;
        Ok(())
    }

    /// Seconds of CPU so far, in user and system mode.
    fn cpu(&self) -> Result<f64, Failure> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        // The kernel reports hundredths of a second to programs, whatever its own tick.
        Ok(ticks as f64 / 100.0)
    }

    /// Resident memory in MiB.
    fn memory(&self) -> Result<f64, Failure> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find(|line| line.starts_with("VmRSS")).ok_or("no VmRSS")?;
        let kibibytes: f64 = line.split_whitespace().nth(1).ok_or("no VmRSS")?.parse()?;
        Ok(kibibytes / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(arguments: &[String]) -> Result<(), Failure> {
    let [role, data, mode, peer @ ..] = arguments else {
        return Err("serve ROLE DATA MODE [PEER]".into());
    };
    let role = match role.as_str() {
        "leader" => AggregatorRole::Leader,
        _ => AggregatorRole::Helper,
    };
    let mut config = Config::new(role, data);
    config.admission.allow_tasks_without_card = true;
    if mode == "idle" {
        config.gather = Duration::from_secs(3600);
    }
    config.peer = peer.first().map(|url| url.parse()).transpose()?;
    tokio::runtime::Runtime::new()?.block_on(aggregator::run(config, |aggregator| {
        let mut output = std::io::stdout();
        let operations = aggregator.operations_url().map_or(String::new(), |url| url.to_string());
        let _ = writeln!(output, "{}\n{operations}", aggregator.url());
        let _ = output.flush();
    }))?;
    Ok(())
}
