//! Questions for people: asked, linked to, answered by an option or not at all.

use std::path::Path;

use serde_json::Value;

use crate::desk::Desk;
use crate::{Folder, run};

const QUESTION: [&str; 11] =
    ["--owners", "50", "--yes", "10", "--epsilon", "1", "--delta", "1e-4", "--closes", "5m", "--people"];

fn policy(desk: &Desk) -> String {
    let limits = "linked = \"unlimited\"\none-aggregator = 2.0\nrelease = 2.0\ndelta = 1e-2\n";
    format!(
        "signers = [\"{}\"]\nattributes = []\n[card]\nanswer = \"unlimited\"\nanswer-with-release = \"unlimited\"\n{limits}\
         honest = 1.0\nseparate-operators = false\nenrolment = false\n[lifetime]\n{limits}",
        desk.signer()
    )
}

fn ask(desk: &Desk, question: &str, more: &[&str]) -> Value {
    desk.json(&["ask"], &[&["--question", question][..], &QUESTION, more].concat())
}

/// Answers what is open and says what became of each query.
fn answer(desk: &Desk, data: &str, more: &[&str]) -> Result<Value, String> {
    let file = desk.folder.file("policy.toml", policy(desk));
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
    let asked = ask(&desk, "Do you sleep well?", &[]);
    let card = &asked["card"];
    assert!(card.get("predicate").is_none() && card.get("attributes").is_none(), "{card}");
    let query = asked["query"].as_str().unwrap();

    let silent = answer(&desk, "one", &[]).unwrap();
    assert_eq!(silent[0]["status"], "refused");
    assert!(silent[0]["reason"].as_str().unwrap().contains("has not answered"), "{silent}");
    let said = answer(&desk, "one", &["--truth", "no"]).unwrap();
    assert_eq!((&said[0]["query"], &said[0]["status"]), (&query.into(), &"answered".into()));
    let again = answer(&desk, "one", &["--truth", "yes"]).unwrap();
    assert!(again[0]["reason"].as_str().unwrap().contains("answered before"), "{again}");

    // Two questions for people: an option answers one, which has to be named.
    ask(&desk, "Do you eat well?", &[]);
    let told = answer(&desk, "other", &["--truth", "yes"]).unwrap_err();
    assert!(told.contains("--query"), "{told}");
    let named = answer(&desk, "other", &["--truth", "yes", "--query", query]).unwrap();
    assert_eq!((named.as_array().unwrap().len(), &named[0]["status"]), (1, &"answered".into()));
}

#[test]
fn without_attributes_a_device_says_nothing() {
    let desk = Desk::new("people-device", &[]);
    let numbers = ["--owners", "50", "--yes", "10", "--epsilon", "1", "--delta", "1e-4", "--closes", "5m"];
    desk.json(&["ask"], &[&["--question", "At 7?", "--where", "true || station == \"7\""][..], &numbers].concat());
    let file = desk.folder.file("policy.toml", policy(&desk).replace("attributes = []", "attributes = [\"station\"]"));
    let data = desk.folder.0.join("device");
    let common = ["answer", "--desk", &desk.process.1, "--policy", &file, "--data", data.to_str().unwrap()];
    let output = run(&[&common[..], &["--truth", "yes", "--json"]].concat());
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(told[0]["reason"].as_str().unwrap().contains("no attributes"), "{told}");
}

#[test]
fn a_link_has_everything_in_its_fragment_and_does_not_lead_to_the_desk() {
    let desk = Desk::new("people-link", &[]);
    let asked = ask(&desk, "Do you sleep well?", &["--page", "https://page.example/answer/"]);
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
