//! Asking and answering: what analysts, fleets and people see of it.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::desk::{Desk, Process, key_of};
use crate::network::{AT_SEVEN, Fleet, ask, fleet_csv};
use crate::{Folder, run};

fn said(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn queries_show_state_fill_and_estimate() {
    let desk = Desk::new("asking-queries", &[]);
    assert_eq!(desk.json(&["queries"], &[]), Value::Array(vec![]));
    let asked = ask(&desk, "60", "40", &[&AT_SEVEN[..], &["--closes", "15s"]].concat());
    let waiting = ask(&desk, "60", "40", &["--where", "station == \"8\"", "--closes", "1h"]);
    let cancelled = ask(&desk, "60", "40", &["--where", "station == \"9\"", "--closes", "1h"]);
    desk.json(&["cancel", cancelled["query"].as_str().unwrap()], &[]);
    let fleet = Fleet::new(&desk, fleet_csv(60, 12), "2s");
    fleet.run();
    let find = |listed: &Value, query: &Value| {
        listed.as_array().unwrap().iter().find(|entry| entry["query"] == *query).cloned().unwrap()
    };
    let listed = desk.json(&["queries"], &[]);
    assert_eq!(listed.as_array().unwrap().len(), 3);
    // The leader counts while the query is open.
    let open = find(&listed, &waiting["query"]);
    assert_eq!((&open["state"], &open["reports"], &open["minimum_batch"]), (&"open".into(), &60.into(), &40.into()));
    assert_eq!((&open["estimate"], &open["question"]), (&Value::Null, &"Where are you?".into()));
    assert_eq!(find(&listed, &cancelled["query"])["state"], "cancelled");

    let result = desk.json(&["result", asked["query"].as_str().unwrap()], &["--wait"]);
    let listed = desk.json(&["queries"], &[]);
    let released = find(&listed, &asked["query"]);
    for name in ["query", "question", "state", "reports", "minimum_batch", "closes", "estimate", "interval"] {
        assert!(released.as_object().unwrap().contains_key(name), "{name}");
    }
    assert_eq!((&released["state"], &released["reports"]), (&"released".into(), &60.into()));
    // The same numbers as the result's own.
    assert_eq!((&released["estimate"], &released["interval"]), (&result["estimate"], &result["interval"]));
    let table = String::from_utf8(desk.run(&["queries"], &[]).stdout).unwrap();
    assert!(table.contains("estimate (95 % interval)"), "{table}");
    assert!(table.contains("nothing is released") && !table.contains("unknown"), "{table}");
    assert!(table.contains("60 of at least 40") && table.contains("min") && table.contains("released"), "{table}");
}

#[test]
fn a_question_that_an_aggregator_does_not_hear_of_is_not_a_success() {
    let folder = Folder::new("asking-away");
    let path = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    let (admin, secret) = (folder.file("admin", "the-operators-token"), path("pair.secret"));
    assert!(run(&["pair-secret", &secret]).status.success());
    let key = key_of("asking-away-desk");
    let common = ["--admin-token", &admin, "--pair-secret", &secret, "--desk-key", &key];
    let start =
        |role: &str| Process::start(&[&["aggregator", "--role", role, "--data", &path(role)], &common[..]].concat());
    let (leader, helper) = (start("leader"), start("helper"));
    let remote = ["--leader", &leader.1, "--helper", &helper.1, "--leader-admin", &admin, "--helper-admin", &admin];
    let desk = Desk::new("asking-away-desk", &remote);
    drop(helper);
    let plan = ["--owners", "60", "--minimum-batch", "40", "--yes", "0..10", "--epsilon", "2", "--delta", "1e-3"];
    let more = [
        &["--question", "Where are you?", "--noise", "none"],
        &plan[..],
        &AT_SEVEN[..],
        &["--closes", "1h", "--json", "--anyway"],
    ]
    .concat();
    let output = desk.run(&["ask"], &more);
    let (code, text) = said(&output);
    assert!(code == Some(2) && text.contains("the helper at http://127.0.0.1:"), "{text}");
    assert!(text.contains("nothing listens at that address") && text.contains("uptack cancel"), "{text}");
    // The query is there all the same, and can be taken back.
    let asked: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(desk.json(&["queries"], &[])[0]["state"], "opening");
    assert_eq!(desk.json(&["cancel", asked["query"].as_str().unwrap()], &[])["state"], "cancelled");
}

#[test]
fn a_fleet_refuses_what_it_cannot_finish_and_says_what_it_did_before() {
    let desk = Desk::new("asking-fleet", &[]);
    ask(&desk, "60", "40", &[&AT_SEVEN[..], &["--closes", "1h"]].concat());
    let fleet = Fleet::new(&desk, fleet_csv(60, 12), "1s");
    let first = fleet.run();
    assert_eq!((&first["outcomes"][0]["status"], &first["outcomes"][0]["reason"]), (&"answered".into(), &Value::Null));
    let second = fleet.run();
    let reason = second["outcomes"][0]["reason"].as_str().unwrap();
    assert!(second["outcomes"][0]["status"] == "answered" && reason.contains("answered before"), "{second}");

    // Twenty thousand owners cannot answer within seconds: nobody is charged, and the exit code tells.
    let other = Desk::new("asking-fleet-many", &[]);
    ask(&other, "60", "40", &[&AT_SEVEN[..], &["--closes", "10s"]].concat());
    let many = Fleet::new(&other, fleet_csv(20_000, 12), "1s");
    let output = many.output();
    let (code, text) = said(&output);
    assert!(code == Some(1) && text.contains("nothing was spent") && text.contains("20000 reports"), "{text}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&told["outcomes"][0]["status"], &told["outcomes"][0]["owners"]), (&"refused".into(), &20_000.into()));
    assert_eq!(many.ledger()["budgets"], Value::Array(vec![]));
    // Nothing is logged into the terminal unless somebody asks for it, and then as text.
    assert!(!text.contains("{\"timestamp\""), "{text}");
    let log = other.folder.0.join("log.txt");
    many.output_with(&[&format!("--log={}", log.display())]);
    let logged = std::fs::read_to_string(log).unwrap();
    assert!(logged.contains("INFO") && logged.contains("refused") && !logged.starts_with('{'), "{logged}");
}

/// A desk with TLS, and the file with the certificate that issued its own.
fn desk_with_tls(folder: &Folder) -> (Process, String) {
    let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = folder.file("certificate.pem", certified.cert.pem());
    let key = folder.file("key.pem", certified.signing_key.serialize_pem());
    let data = folder.0.join("desk").to_str().unwrap().to_owned();
    let (process, _) = Process::start_json(&["serve", "--data", &data, "--certificate", &certificate, "--key", &key]);
    (process, certificate)
}

#[test]
fn why_a_server_cannot_be_reached_is_said() {
    let folder = Folder::new("asking-causes");
    let (desk, root) = desk_with_tls(&folder);
    let token = folder.0.join("desk/tokens/analyst");
    let token = token.to_str().unwrap();
    let queries =
        |address: &str, more: &[&str]| said(&run(&[&["queries", "--desk", address, "--token", token], more].concat()));
    assert_eq!(queries(&desk.1, &["--root", &root]).0, Some(0));
    let port = desk.1.trim_end_matches('/').rsplit(':').next().unwrap();
    for (address, more, words) in [
        (desk.1.as_str(), &[][..], "was not issued by an authority that is trusted here"),
        (&format!("https://localhost:{port}/"), &["--root", &root], "call it by a name that is on its certificate"),
        ("http://127.0.0.1:9/", &[], "nothing listens at that address (connection refused)"),
    ] {
        let (code, text) = queries(address, more);
        assert!(code == Some(2) && text.contains(words), "{address}: {text}");
        assert!(!text.contains("error sending request"), "{text}");
    }
    // A server that speaks no TLS.
    let plain = Desk::new("asking-plain", &[]);
    let (code, text) = queries(&plain.process.1.replace("http://", "https://"), &[]);
    assert!(code == Some(2) && text.contains("may have to begin with http://"), "{text}");
    assert!(Path::new(&root).exists());
    // Another part of Uptack than a desk.
    let leader = Folder::new("asking-leader");
    let data = leader.0.join("leader").to_str().unwrap().to_owned();
    let aggregator = Process::start(&["aggregator", "--role", "leader", "--data", &data]);
    let (code, text) = queries(&aggregator.1, &[]);
    assert!(code == Some(1) && text.contains("does not answer like an Uptack desk"), "{text}");
    let (owners, policy) =
        (leader.file("owners.csv", fleet_csv(2, 1)), leader.file("policy.toml", people_policy(&plain)));
    let (_, text) = said(&run(&[
        "fleet",
        &owners,
        "--desk",
        &aggregator.1,
        "--policy",
        &policy,
        "--data",
        &format!("{data}-fleet"),
    ]));
    assert!(text.contains("does not answer like an Uptack desk"), "{text}");
}

/// A day of five-minute windows that all count everybody has a share of ε for each that leaves an error of thousands.
#[test]
fn a_question_whose_result_would_say_next_to_nothing_is_asked_only_anyway() {
    let desk = Desk::new("asking-nothing", &[]);
    let day = ["--question", "Do you stand?", "--where", "speed < 5.0", "--every", "5m", "--times", "288"];
    let numbers = ["--owners", "5000", "--yes", "0..400", "--epsilon", "1"];
    let (code, text) = said(&desk.run(&["ask"], &[&day[..], &numbers, &["--most-yes", "288"]].concat()));
    assert_eq!(code, Some(1), "{text}");
    for words in [
        "would say next to nothing",
        "is 2609.2, more than half of the expected range of yes, 0 to 400",
        "in 22 windows, the error would be 198.25",
        "--anyway",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(desk.json(&["queries"], &[]), serde_json::json!([]), "nothing was opened");
    // What it proposes is accepted.
    let windows = text.split("hint: in ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let asked = desk.json(&["ask"], &[&day[..6], &["--times", windows, "--most-yes", windows], &numbers].concat());
    assert_eq!(asked["queries"].as_array().unwrap().len().to_string(), windows);
    let anyway =
        desk.json(&["ask"], &[&day[..6], &["--times", "60", "--most-yes", "60"], &numbers, &["--anyway"]].concat());
    assert_eq!(anyway["queries"].as_array().unwrap().len(), 60);
    // In windows that count everybody once, the error is that of a few people.
    let once = desk.json(&["ask"], &[&day[..], &numbers].concat());
    assert!(once["card"]["mechanism"].as_str().unwrap().starts_with("contributions(counts=288,most=1,"), "{once}");
    assert!(once["card"]["predicted"]["sd"].as_str().unwrap().parse::<f64>().unwrap() < 6.0, "{once}");
}

/// One missing answer does not keep the others' from being released, and the first ε is the one that was asked for.
#[test]
fn four_of_five_owners_are_enough_and_each_epsilon_says_whom_it_trusts() {
    let desk = Desk::new("asking-batch", &[]);
    let question = ["--question", "Do you stand?", "--where", "speed < 5.0", "--closes", "5m"];
    let numbers = ["--owners", "301", "--yes", "0..60", "--epsilon", "1"];
    let asked = desk.json(&["ask"], &[&question[..], &numbers].concat());
    assert_eq!(asked["card"]["minimum_batch"], "241");
    let text = String::from_utf8(desk.run(&["ask"], &[&question[..], &numbers].concat()).stdout).unwrap();
    let told: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("expected error")).collect();
    let batch = "nothing is released below 241 answers, 80.1 % of the 301 owners expected";
    assert!(told[0].ends_with(batch), "{text}");
    assert_eq!(told[1], "ε = 1 if at least one of the two aggregators is honest", "{text}");
    // The claim was certified for the batch.
    assert!(told[2].ends_with(" at δ = 1e-8 if at least one aggregator and 241 owners are honest"), "{text}");
    assert_eq!(told[3], "ε = 6 if nobody but the owner's own device is honest", "{text}");
    let owners = ["--trust", "owners", "--noise", "none", "--delta", "1e-4"];
    let text = String::from_utf8(desk.run(&["ask"], &[&question[..], &numbers, &owners].concat()).stdout).unwrap();
    let first = text.lines().find(|line| line.starts_with("ε = ")).unwrap();
    assert!(first.contains(" at δ = 0.0001 if at least one aggregator and 241 owners are honest"), "{text}");
    assert!(first.starts_with("ε = 1 ") || first.ends_with("; ε = 1 was asked for"), "{text}");
}

const QUESTION: [&str; 11] =
    ["--owners", "50", "--yes", "10", "--epsilon", "1", "--delta", "1e-4", "--closes", "5m", "--people"];

fn people_policy(desk: &Desk) -> String {
    let limits = "linked = \"unlimited\"\none-aggregator = 2.0\nrelease = 2.0\ndelta = 1e-2\n";
    format!(
        "signers = [\"{}\"]\nattributes = []\n[card]\nanswer = \"unlimited\"\nanswer-with-release = \"unlimited\"\n{limits}\
         honest = 1.0\nseparate-operators = false\nenrolment = false\n[lifetime]\n{limits}",
        desk.signer()
    )
}

fn ask_people(desk: &Desk, question: &str, more: &[&str]) -> Value {
    desk.json(&["ask"], &[&["--question", question][..], &QUESTION, more].concat())
}

/// Answers what is open and says what became of each query.
fn answer_once(desk: &Desk, data: &str, more: &[&str]) -> Result<Value, String> {
    let file = desk.folder.file("policy.toml", people_policy(desk));
    let data = desk.folder.0.join(data);
    let common = ["answer", "--desk", &desk.process.1, "--policy", &file, "--data", data.to_str().unwrap()];
    let output = run(&[&common[..], &["--within", "1s", "--json"], more].concat());
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout).unwrap()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[test]
fn a_person_answers_once_by_option_and_not_at_all_without_one() {
    let desk = Desk::new("people-answer", &[]);
    let asked = ask_people(&desk, "Do you sleep well?", &[]);
    let card = &asked["card"];
    assert!(card.get("predicate").is_none() && card.get("attributes").is_none(), "{card}");
    let query = asked["query"].as_str().unwrap();

    let silent = answer_once(&desk, "one", &[]).unwrap();
    assert_eq!(silent[0]["status"], "refused");
    assert!(silent[0]["reason"].as_str().unwrap().contains("has not answered"), "{silent}");
    let said = answer_once(&desk, "one", &["--truth", "no"]).unwrap();
    assert_eq!((&said[0]["query"], &said[0]["status"]), (&query.into(), &"answered".into()));
    let again = answer_once(&desk, "one", &["--truth", "yes"]).unwrap();
    assert!(again[0]["reason"].as_str().unwrap().contains("answered before"), "{again}");

    // Two questions for people: an option answers one, which has to be named.
    ask_people(&desk, "Do you eat well?", &[]);
    let told = answer_once(&desk, "other", &["--truth", "yes"]).unwrap_err();
    assert!(told.contains("--query"), "{told}");
    let named = answer_once(&desk, "other", &["--truth", "yes", "--query", query]).unwrap();
    assert_eq!((named.as_array().unwrap().len(), &named[0]["status"]), (1, &"answered".into()));
}

/// A desk as `serve` starts it can be tried with people, and whoever asks or answers is told how.
#[test]
fn who_asks_people_is_told_how_they_answer_and_what_keeps_them_from_it() {
    let desk = Desk::new("people-told", &[]);
    let asked = desk.run(&["ask", "--question", "Do you sleep well?"], &QUESTION);
    let text = String::from_utf8(asked.stdout).unwrap();
    let query = text.split(' ').next().unwrap();
    let command = format!("uptack answer --desk {} --policy policy.toml --data FOLDER --query {query}", desk.process.1);
    for words in [&*command, "--page prints the link", "separate-operators = false"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let strict = people_policy(&desk).replace("separate-operators = false", "separate-operators = true");
    let file = desk.folder.file("strict.toml", strict);
    let data = desk.folder.0.join("strict");
    let common = ["answer", "--desk", &desk.process.1, "--policy", &file, "--data", data.to_str().unwrap()];
    let output = run(&[&common[..], &["--truth", "yes", "--json"]].concat());
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reason = told[0]["reason"].as_str().unwrap();
    assert!(reason.contains("could see every answer") && reason.contains("for a trial, set it to false"), "{told}");
}

#[test]
fn without_attributes_a_device_says_nothing() {
    let desk = Desk::new("people-device", &[]);
    let numbers = ["--owners", "50", "--yes", "10", "--epsilon", "1", "--delta", "1e-4", "--closes", "5m"];
    desk.json(&["ask"], &[&["--question", "At 7?", "--where", "true || station == \"7\""][..], &numbers].concat());
    let file =
        desk.folder.file("policy.toml", people_policy(&desk).replace("attributes = []", "attributes = [\"station\"]"));
    let data = desk.folder.0.join("device");
    let common = ["answer", "--desk", &desk.process.1, "--policy", &file, "--data", data.to_str().unwrap()];
    let output = run(&[&common[..], &["--truth", "yes", "--json"]].concat());
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(told[0]["reason"].as_str().unwrap().contains("no attributes"), "{told}");
}

#[test]
fn a_link_has_everything_in_its_fragment_and_does_not_lead_to_the_desk() {
    let desk = Desk::new("people-link", &[]);
    let asked = ask_people(&desk, "Do you sleep well?", &["--page", "https://page.example/answer/"]);
    let link = asked["link"].as_str().unwrap();
    let (page, fragment) = link.split_once('#').unwrap();
    assert_eq!(page, "https://page.example/answer/");
    for part in [desk.signer().replace(':', "%3A"), asked["query"].as_str().unwrap().to_owned(), "desk=http".to_owned()]
    {
        assert!(fragment.contains(&part), "{part} in {fragment}");
    }
    assert!(!fragment.contains("credential"));
    let token = desk.folder.0.join("desk/tokens/analyst");
    let at_the_desk = format!("{}answer/", desk.process.1);
    let common = ["ask", "--desk", &desk.process.1, "--token", token.to_str().unwrap(), "--question", "Well?"];
    let output = run(&[&common[..], &QUESTION, &["--page", &at_the_desk]].concat());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot check"), "{output:?}");
    // Only where people are asked, and never beside a predicate.
    for wrong in [&["--people", "--where", "true"][..], &["--where", "true", "--page", "https://page.example/"]] {
        assert_eq!(run(&[&common[..], wrong].concat()).status.code(), Some(1), "{wrong:?}");
    }
}

#[test]
fn servers_are_told_which_pages_may_call_them_by_origin() {
    let folder = Folder::new("people-origins");
    let data = folder.0.join("desk");
    let start = |origin: &str| run(&["serve", "--data", data.to_str().unwrap(), "--allow-origin", origin]);
    for bad in ["page.example", "http://page.example", "https://page.example/path", "*"] {
        let output = start(bad);
        assert!(!output.status.success() && !Path::new(&data).exists(), "{bad}: {output:?}");
    }
}
