//! A desk that cheats two honest `uptack aggregator` processes whose admin token it holds.

use std::path::Path;

use crate::desk::{Process, key_of};
use crate::{Folder, json, run};

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
    let plan = ["--owners", "40", "--minimum-batch", "24", "--yes", "8", "--epsilon", "1", "--delta", "1e-2"];
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
