//! Two aggregators as processes of the command line, with the task that it writes.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use uptack::estimate::{Confidence, Estimator, IntervalKind};
use uptack_dap::client::Client;
use uptack_dap::collector::{Collected, Collector};
use uptack_dap::protocol::Measurement;
use uptack_dap::task::{CollectorTask, TaskParameters, read};

use crate::{Folder, json, run};

const PATIENCE: Duration = Duration::from_secs(60);
/// A window that no test run crosses but by a rare chance, which the test waits out.
const WINDOW: u64 = 3600;

/// A running aggregator, killed at the end.
struct Process(Child, String);

impl Process {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_uptack"))
            .arg("aggregator")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self(child, address.trim().to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

/// Two aggregators, and the task of a mechanism that both serve.
struct Served {
    _processes: [Process; 2],
    arguments: Vec<String>,
    parameters: TaskParameters,
    collector: CollectorTask,
}

impl Served {
    fn new(folder: &Folder, mechanism: &str) -> Self {
        let place = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
        let (leader_data, helper_data, task) = (place("leader"), place("helper"), place("task"));
        let without = "--allow-tasks-without-card";
        let helper = Process::start(&["--role", "helper", "--data", &helper_data, without]);
        let leader = Process::start(&["--role", "leader", "--data", &leader_data, "--peer", &helper.1, without]);
        let window = format!("{WINDOW}s");
        let arguments = ["task", mechanism, "--leader", &leader.1, "--helper", &helper.1, "--window", &window];
        let arguments = [&arguments[..], &["--minimum-batch", "10", "--out", &task, "--json"]].concat();
        assert_eq!(json(&arguments)["files"].as_array().unwrap().len(), 4);
        for (file, data) in [("leader.json", &leader_data), ("helper.json", &helper_data)] {
            let tasks = Path::new(data).join("tasks");
            std::fs::create_dir_all(&tasks).unwrap();
            std::fs::copy(Path::new(&task).join(file), tasks.join("task.json")).unwrap();
        }
        Self {
            parameters: read(&Path::new(&task).join("client.json")).unwrap(),
            collector: read(&Path::new(&task).join("collector.json")).unwrap(),
            arguments: arguments.into_iter().map(str::to_owned).collect(),
            _processes: [leader, helper],
        }
    }

    /// Uploads everything in one window and collects it.
    fn collect(&self, measurements: Vec<Measurement>) -> Collected {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let client = Arc::new(Client::new(self.parameters.clone()).unwrap());
            let started = now();
            // A batch must lie in one window.
            let wait = if WINDOW - started % WINDOW < 120 { WINDOW - started % WINDOW } else { 0 };
            tokio::time::sleep(Duration::from_secs(wait)).await;
            // Once the first is taken, both serve the task.
            upload(&client, &measurements[0]).await;
            let mut uploads = tokio::task::JoinSet::new();
            for chunk in measurements[1..].chunks(100) {
                let (client, chunk) = (Arc::clone(&client), chunk.to_vec());
                uploads.spawn(async move {
                    for measurement in &chunk {
                        upload(&client, measurement).await;
                    }
                });
            }
            uploads.join_all().await;
            let batch = self.parameters.batch(now(), 1).unwrap();
            let collector = Collector::new(self.collector.clone()).unwrap();
            collector.collect(&Collector::new_job(), batch, PATIENCE).await.unwrap()
        })
    }
}

#[test]
fn a_batch_is_written_added_up_and_collected() {
    let folder = Folder::new("aggregators");
    let mechanism = "sampling(sy=0.5,sn=0.5)";
    let served = Served::new(&folder, mechanism);
    let collected = served.collect([0, 1, 1, 2, 2, 2, 2, 1, 0, 2, 2, 1].map(Measurement::Cell).to_vec());
    assert_eq!(collected.counts, [2, 4, 6]);
    let channel = mechanism.parse::<uptack::Mechanism>().unwrap().channel();
    assert_eq!(collected.tally(&channel).unwrap().owners(), 12);
    // The keys of a task are not written over.
    let again = run(&served.arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(again.status.code(), Some(1));
}

/// The interval misses one time in ten thousand.
#[test]
fn what_two_aggregators_with_noise_publish_holds_the_truth_in_its_interval() {
    const OWNERS: u64 = 3000;
    const YES: u64 = 450;
    let folder = Folder::new("noise");
    let mechanism = "randomized-response(t=0.95) + laplace(scale=4)";
    let channel = mechanism.parse::<uptack::Mechanism>().unwrap().channel();
    let sampler = uptack::Sampler::new(&channel);
    let answer = |owner: u64| {
        let cell = sampler.draw(uptack::Truth::from_bool(owner < YES), &mut uptack::OsCoins).unwrap();
        Measurement::Bits(vec![channel.cells()[cell].outputs()[0] == uptack::Output::ONE])
    };
    let collected = Served::new(&folder, mechanism).collect((0..OWNERS).map(answer).collect());
    assert_eq!((collected.reports, collected.counts.len()), (OWNERS, 0));
    let estimator = Estimator::new(&channel).unwrap();
    let observation = estimator.observe_sum(OWNERS, collected.sums.unwrap()[0]).unwrap();
    let interval = estimator.interval(&observation, Confidence::of_miss(1e-4).unwrap(), IntervalKind::Exact);
    assert!((interval.low..=interval.high).contains(&(YES as f64)), "{interval:?}");
}

/// The aggregators look for new task files once a second.
async fn upload(client: &Client, measurement: &Measurement) {
    let until = std::time::Instant::now() + PATIENCE;
    while let Err(error) = client.upload(measurement, now(), PATIENCE).await {
        assert!(std::time::Instant::now() < until, "{error}");
        client.forget_keys();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[test]
fn janus_gets_its_own_form_in_whichever_role() {
    let folder = Folder::new("janus");
    for (pair, leader, helper) in [
        ("janus", "leader.yaml", "helper.yaml"),
        ("janus-leader", "leader.yaml", "helper.json"),
        ("janus-helper", "leader.json", "helper.yaml"),
    ] {
        let out = folder.0.join(pair);
        let place = ["--leader", "https://leader.example/", "--helper", "https://helper.example/"];
        let rest = ["--window", "5m", "--minimum-batch", "100", "--out", out.to_str().unwrap(), "--for", pair];
        let written =
            json(&[&["task", "normal-form(f=0.5,r=1e-4)"][..], &place[..], &rest[..], &["--json"][..]].concat());
        assert_eq!(written["files"], serde_json::json!([leader, helper, "collector.json", "client.json"]));
        for name in [leader, helper] {
            let text = std::fs::read_to_string(out.join(name)).unwrap();
            let expected = if name.ends_with("yaml") { "time_precision: 300" } else { "\"time_precision\": 300" };
            assert!(text.contains(expected), "{text}");
        }
    }
}

#[test]
fn both_forms_of_a_task_with_noise_state_it() {
    let folder = Folder::new("noisy-janus");
    let out = folder.0.join("task");
    let mechanism = "randomized-response(t=0.999) + laplace(scale=5/2)";
    let place = ["--leader", "https://leader.example/", "--helper", "https://helper.example/", "--window", "5m"];
    let rest = ["--minimum-batch", "100", "--out", out.to_str().unwrap(), "--for", "janus-helper", "--ballot", "3"];
    json(&[&["task", mechanism][..], &place[..], &rest[..], &["--json"][..]].concat());
    let janus = std::fs::read_to_string(out.join("helper.yaml")).unwrap();
    // The scale is 3 bits / ε.
    assert!(
        janus.contains("    length: 3\n") && janus.contains("        epsilon:\n        - - 6\n        - - 5\n"),
        "{janus}"
    );
    let ours: TaskParameters = read(&out.join("client.json")).unwrap();
    assert_eq!(ours.noise.unwrap().to_string(), "laplace(scale=2.5)");
    assert_eq!(ours.vdaf.length(), 3);
}

#[test]
fn a_listener_beyond_loopback_needs_tls_or_a_word() {
    let folder = Folder::new("exposed");
    let data = folder.0.join("data");
    let output = run(&["aggregator", "--role", "helper", "--data", data.to_str().unwrap(), "--listen", "0.0.0.0:0"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
}
