//! `uptack verify` as a command: what it prints, and how it ends.

use serde_json::Value;

use crate::{Folder, json, run};

fn planned(folder: &Folder, name: &str) -> String {
    let path = folder.0.join(name).to_str().unwrap().to_owned();
    let output = run(&["plan", "--owners", "300", "--yes", "20", "--epsilon", "2", "--delta", "1e-4", "--out", &path]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

#[test]
fn a_planned_card_holds_in_either_form() {
    let folder = Folder::new("verify");
    for name in ["card.toml", "card.json"] {
        let document = json(&["verify", &planned(&folder, name), "--json"]);
        assert_eq!((&document["holds"], &document["document"]), (&true.into(), &"card".into()));
        let checked = document["checked"].as_array().unwrap();
        for what in ["channel.cells[0].yes", "claims.release", "claims.linked", "claims.answers[0]", "predicted.sd"] {
            let check = checked.iter().find(|check| check["what"] == what).unwrap();
            assert_eq!((&check["stated"], &check["holds"]), (&check["recomputed"], &true.into()), "{what}");
        }
        let output = run(&["verify", &planned(&folder, name)]);
        let text = String::from_utf8(output.stdout).unwrap();
        // A line for the header, one for each check, and what the claims rest on.
        assert_eq!(text.lines().take_while(|line| !line.is_empty()).count(), checked.len() + 1, "{text}");
        assert!(text.contains("ε of the release: "), "{text}");
    }
}

#[test]
fn a_digit_that_is_off_is_named_and_the_exit_code_is_1() {
    let folder = Folder::new("verify-off");
    let text = std::fs::read_to_string(planned(&folder, "card.json")).unwrap();
    let release = serde_json::from_str::<Value>(&text).unwrap()["claims"]["release"].as_str().unwrap().to_owned();
    let with = |claim: &str| folder.file("wrong.json", text.replace(&release, claim));
    for (claim, verdict, hint) in [("0.5", "WRONG", "do not rely"), ("7", "WIDER", "--allow-wider")] {
        let path = with(claim);
        let output = run(&["verify", &path]);
        let (said, shown) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("claims.release") && said.contains(hint), "{said}");
        assert!(shown.contains(verdict) && !shown.contains("ε of the release:"), "{shown}");
        let printed: Value = serde_json::from_slice(&run(&["verify", &path, "--json"]).stdout).unwrap();
        assert_eq!(printed["holds"], false);
    }
    assert!(run(&["verify", &with("7"), "--allow-wider"]).status.success());
    assert_eq!(run(&["verify", &with("0.5"), "--allow-wider"]).status.code(), Some(1));
}

#[test]
fn files_of_strangers_are_refused_in_words() {
    let folder = Folder::new("verify-hostile");
    let card = std::fs::read_to_string(planned(&folder, "card.json")).unwrap();
    let huge = "0".repeat(17 << 20);
    let files = [
        ("empty.json", String::new()),
        ("list.json", "[]".to_owned()),
        ("deep.json", "[".repeat(100_000)),
        ("half.json", card[..card.len() / 2].to_owned()),
        ("half.toml", "version = ".to_owned()),
        ("huge.json", huge),
        ("control.json", card.replacen("\"version\":\"1\"", "\"version\":\"\\u001b[31m1\"", 1)),
        ("many.json", card.replacen("\"minimum_batch\":\"300\"", "\"minimum_batch\":\"300000000000\"", 1)),
    ];
    for (name, text) in files {
        let output = run(&["verify", &folder.file(name, text)]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.starts_with("error: ") && said.len() < 2000, "{name}: {said}");
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{name}");
    }
    assert_eq!(run(&["verify", "no-such-file.json"]).status.code(), Some(1));
    let key = run(&["verify", &planned(&folder, "card.toml"), "--desk-key", "ed25519:AAAA"]);
    assert_eq!(key.status.code(), Some(1));
}
