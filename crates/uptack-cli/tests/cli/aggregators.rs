//! Aggregators as their operators run them, with honest and with dishonest desks.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use uptack::estimate::{Confidence, Estimator, IntervalKind};
use uptack_dap::client::Client;
use uptack_dap::collector::{Collected, Collector};
use uptack_dap::protocol::Measurement;
use uptack_dap::task::{CollectorTask, TaskParameters, read};

use crate::desk::{Process, key_of};
use crate::{Folder, json, run};

const PATIENCE: Duration = Duration::from_secs(60);
/// A window that no test run crosses but by a rare chance, which the test waits out.
const WINDOW: u64 = 3600;

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
        let helper = Process::start(&["aggregator", "--role", "helper", "--data", &helper_data, without]);
        let leader =
            Process::start(&["aggregator", "--role", "leader", "--data", &leader_data, "--peer", &helper.1, without]);
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

/// As it was done: the task that owners were sent to, defined without their card and with a minimum batch of one.
#[test]
fn a_task_without_a_card_is_served_by_neither_aggregator() {
    let folder = Folder::new("dishonest-desk");
    let place = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    let (admin, secret, key) = (folder.file("admin", "the-operators-token"), place("secret"), key_of("dishonest-desk"));
    assert!(run(&["pair-secret", &secret]).status.success());
    let start = |role: &str, more: &[&str]| {
        let data = place(role);
        let common = ["aggregator", "--role", role, "--data", &data, "--admin-token", &admin];
        Process::start(&[&common[..], more].concat())
    };
    let pins = ["--desk-key", &key, "--pair-secret", &secret];
    let (helper, leader) = (start("helper", &pins), start("leader", &pins));
    let out = place("task");
    let addresses = ["--leader", &leader.1, "--helper", &helper.1];
    let task = ["task", "normal-form(f=0.5,r=0.1)", "--window", "1s", "--minimum-batch", "1", "--out", &out, "--json"];
    let written = json(&[&task[..], &addresses].concat());
    let name = written["task"].as_str().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (role, server) in [("leader", &leader), ("helper", &helper)] {
        let definition = std::fs::read(Path::new(&out).join(format!("{role}.json"))).unwrap();
        let (status, body) = runtime.block_on(put(&format!("{}uptack/tasks/{name}", server.1), definition));
        assert!(status == 400 && body.contains("no signed card"), "{status}: {body}");
        let (status, _) = runtime.block_on(get(&format!("{}hpke_config?task_id={name}", server.1)));
        assert_eq!(status, 400, "nobody can report to it");
    }
}

async fn put(url: &str, body: Vec<u8>) -> (u16, String) {
    let http = uptack_dap::http_client::client(None).unwrap();
    let response = http.put(url).bearer_auth("the-operators-token").body(body).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn get(url: &str) -> (u16, String) {
    let response = uptack_dap::http_client::client(None).unwrap().get(url).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// The file for an operator's Janus is made from a card that the operator's own conditions admit, or not at all.
#[test]
fn a_definition_becomes_a_file_for_janus_only_if_its_card_is_admitted() {
    let folder = Folder::new("dishonest-janus");
    let place = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    let (secret, key) = (place("secret"), key_of("dishonest-janus-desk"));
    assert!(run(&["pair-secret", &secret]).status.success());
    let elsewhere = ["--leader", "https://leader.example/", "--helper", "https://helper.example/"];
    let desk = crate::desk::Desk::new("dishonest-janus-desk", &elsewhere);
    let plan =
        ["--owners", "40", "--minimum-batch", "24", "--yes", "8", "--epsilon", "1", "--delta", "1e-2", "--anyway"];
    let question = ["--where", "station == \"7\"", "--closes", "1h", "--noise", "none"];
    let asked = desk.json(&["ask", "--question", "Where are you?"], &[&plan[..], &question].concat());
    let query = asked["query"].as_str().unwrap();
    let definition = |role: &str| {
        let path = desk.folder.0.join("desk").join("provision").join(query).join(format!("{role}.json"));
        path.to_str().unwrap().to_owned()
    };
    let (leader, helper) = (definition("leader"), definition("helper"));
    let make = |definition: &str, out: &str, more: &[&str]| {
        run(&[&["task", definition, "--for", "janus", "--pair-secret", &secret, "--out", &place(out)], more].concat())
    };
    let stranger = uptack_dap::signed::Signer::generate().public().to_string();
    for more in [&["--desk-key", &stranger][..], &[], &["--desk-key", &key, "--smallest-batch", "25"]] {
        let output = make(&leader, "refused", more);
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(!folder.0.join("refused").exists());
    // Both derive the same verification key, each on its own machine.
    let verify_key = |definition: &str, role: &str| {
        assert!(make(definition, role, &["--desk-key", &key]).status.success());
        let text = std::fs::read_to_string(folder.0.join(role).join(format!("{role}.yaml"))).unwrap();
        assert!(text.contains("min_batch_size: 24") && text.contains(query), "{text}");
        text.lines().find(|line| line.contains("vdaf_verify_key")).unwrap().to_owned()
    };
    assert_eq!(verify_key(&leader, "leader"), verify_key(&helper, "helper"));
}
