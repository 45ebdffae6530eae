//! Query cards: what is planned is as the schema says, what the schema refuses is refused, and `uptack verify` recomputes
//! the rest. The corpus of the fuzz target is replayed.

#[path = "../../../../fuzz/card_check.rs"]
mod card_check;

use std::fs;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};
use uptack::card::Card;

use crate::{Folder, json, json as command, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema() -> Value {
    serde_json::from_str(&fs::read_to_string(root().join("docs/card.schema.json")).unwrap()).unwrap()
}

/// A card of the planner, as the values of its canonical form.
fn planned(more: &[&str]) -> Value {
    // Tests run side by side: each card has a folder of its own.
    static CARDS: AtomicUsize = AtomicUsize::new(0);
    let folder = Folder::new(&format!("card-planned-{}", CARDS.fetch_add(1, Ordering::Relaxed)));
    let path = folder.0.join("card.json");
    let small = ["plan", "--owners", "200", "--yes", "10", "--epsilon", "1", "--delta", "1e-4", "--json", "--out"];
    command(&[&small[..], &[path.to_str().unwrap()], more].concat());
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A card with every field that there is.
fn full() -> Value {
    let mut card = planned(&["--honest", "90%"]);
    card["question"] = json!("Are you at the station?");
    card["predicate"] = json!("station == \"7\"");
    card["attributes"] = json!(["station"]);
    card["ballot"] = json!({"most_yes": "1", "queries": [{"name": "a", "predicate": "b"}]});
    card["series"] = json!({"times": "3", "number": "1", "starts": "2026-11-15T08:30:00Z", "every": "300"});
    card["opens"] = json!("2026-11-15T08:30:00Z");
    card["closes"] = json!("2026-11-15T08:35:00Z");
    card["operators"] = json!("two");
    card["enrolment"] = json!("none");
    card["signer"] = json!("key");
    card["aggregators"] = json!({"leader": "https://leader.example", "helper": "https://helper.example"});
    card["channel"]["noise"] = json!({"law": "discrete-laplace", "scale": "2.5"});
    card["claims"]["one_aggregator"] = json!("0.4");
    card["claims"]["whole"] = json!({"queries": "6", "linked": "none", "one_aggregator": "2.4", "release": "2.5"});
    card
}

#[test]
fn what_the_planner_writes_is_as_the_schema_says() {
    let schema = schema();
    for card in [
        planned(&[]),
        planned(&["--form", "several", "--mechanism", "spread", "--answer-epsilon", "1.2"]),
        planned(&["--mechanism", "tuned", "--participation", "0.6"]),
        full(),
    ] {
        check(&schema, &schema, &card, "card").unwrap();
    }
}

#[test]
fn the_schema_has_every_field_and_no_other() {
    let (schema, card) = (schema(), full());
    assert!(Card::from_json(&card.to_string()).is_ok());
    let mut fields = 0;
    visit(&schema, &schema, &card, &mut Vec::new(), &mut |place, name, required| {
        fields += 1;
        let mut without = card.clone();
        let object = place.iter().fold(&mut without, |value, step| &mut value[step.as_str()]);
        assert!(object.as_object_mut().unwrap().remove(name).is_some(), "{place:?} has no {name}");
        assert_eq!(Card::from_json(&without.to_string()).is_err(), required, "{place:?} {name}");
        assert_eq!(check(&schema, &schema, &without, "card").is_err(), required, "{place:?} {name}");
    });
    assert!(fields >= 40, "{fields}");
}

#[test]
fn what_the_schema_refuses_is_refused() {
    let schema = schema();
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut card = full();
        change(&mut card);
        assert!(check(&schema, &schema, &card, "card").is_err(), "{card}");
    };
    refused(&|card| card["channel"]["noise"]["law"] = json!("gauss"));
    refused(&|card| card["claims"]["one_aggregator"] = json!("-0.4"));
    refused(&|card| card["owners"] = json!(200));
    refused(&|card| card["owners"] = json!("0200"));
    refused(&|card| card["version"] = json!("2"));
    refused(&|card| card["claims"]["release"] = json!("-1"));
    refused(&|card| card["opens"] = json!("yesterday"));
    refused(&|card| card["operators"] = json!("three"));
    refused(&|card| card["also"] = json!("this"));
    refused(&|card| card["channel"]["cells"][0]["yes"] = json!("0x1"));
}

#[test]
fn the_fuzz_corpus_holds() {
    let files: Vec<PathBuf> =
        fs::read_dir(root().join("fuzz/corpus/card")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 8, "the corpus is missing");
    for file in files {
        card_check::check(&String::from_utf8_lossy(&fs::read(file).unwrap()));
    }
}

fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(place) => root.pointer(place.trim_start_matches('#')).unwrap_or_else(|| panic!("{place} is missing")),
        None => schema,
    }
}

/// The part of JSON Schema that the card's uses; a keyword beyond it fails rather than being passed over.
fn check(root: &Value, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    let schema = resolve(root, schema).as_object().unwrap();
    for (keyword, wanted) in schema {
        let holds = match keyword.as_str() {
            "const" => value == wanted,
            "enum" => wanted.as_array().unwrap().contains(value),
            "type" => match wanted.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                other => panic!("{other} is not checked"),
            },
            "pattern" => matches(wanted.as_str().unwrap(), value.as_str().unwrap_or_default()),
            "required" => wanted.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
            "oneOf" => {
                let holds = |part: &&Value| check(root, part, value, place).is_ok();
                wanted.as_array().unwrap().iter().filter(holds).count() == 1
            }
            "additionalProperties" => known(schema, value),
            "properties" => {
                for (name, part) in wanted.as_object().unwrap() {
                    value.get(name).map_or(Ok(()), |value| check(root, part, value, &format!("{place}.{name}")))?;
                }
                true
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    check(root, wanted, item, place)?;
                }
                true
            }
            "$schema" | "$id" | "$defs" | "title" | "description" => true,
            other => panic!("{other} is not checked"),
        };
        if !holds {
            return Err(format!("{place}: {keyword} of {value}"));
        }
    }
    Ok(())
}

fn known(schema: &Map<String, Value>, value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.keys().all(|name| schema["properties"].get(name).is_some()))
}

/// The three patterns of the schema.
fn matches(pattern: &str, text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match pattern {
        "^(0|[1-9][0-9]*)$" => digits(text) && (text == "0" || !text.starts_with('0')),
        "^(none|[0-9]+(\\.[0-9]+)?)$" => {
            text == "none" || text.split_once('.').map_or(digits(text), |(whole, part)| digits(whole) && digits(part))
        }
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$" => {
            let form = text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte }).collect::<Vec<_>>();
            form == b"0000-00-00T00:00:00Z"
        }
        other => panic!("{other} is not checked"),
    }
}

/// Every field of every object that the schema describes, with where it is and whether it is required.
fn visit(
    root: &Value,
    schema: &Value,
    card: &Value,
    place: &mut Vec<String>,
    see: &mut dyn FnMut(&[String], &str, bool),
) {
    let schema = resolve(root, schema);
    let Some(properties) = schema["properties"].as_object() else { return };
    for (name, part) in properties {
        see(place, name, schema["required"].as_array().unwrap().contains(&json!(name)));
        place.push(name.clone());
        visit(root, part, &card[name.as_str()], place, see);
        place.pop();
    }
}

fn planned_card(folder: &Folder, name: &str) -> String {
    let path = folder.0.join(name).to_str().unwrap().to_owned();
    let output = run(&["plan", "--owners", "300", "--yes", "20", "--epsilon", "2", "--delta", "1e-4", "--out", &path]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

#[test]
fn a_planned_card_holds_in_either_form() {
    let folder = Folder::new("verify");
    for name in ["card.toml", "card.json"] {
        let document = json(&["verify", &planned_card(&folder, name), "--json"]);
        assert_eq!((&document["holds"], &document["document"]), (&true.into(), &"card".into()));
        let checked = document["checked"].as_array().unwrap();
        for what in ["channel.cells[0].yes", "claims.release", "claims.linked", "claims.answers[0]", "predicted.sd"] {
            let check = checked.iter().find(|check| check["what"] == what).unwrap();
            assert_eq!((&check["stated"], &check["holds"]), (&check["recomputed"], &true.into()), "{what}");
        }
        let output = run(&["verify", &planned_card(&folder, name)]);
        let text = String::from_utf8(output.stdout).unwrap();
        // A line for the header, one for each check, and what the claims rest on.
        assert_eq!(text.lines().take_while(|line| !line.is_empty()).count(), checked.len() + 1, "{text}");
        assert!(text.contains(" owners are honest. "), "{text}");
        // The outputs of an answer are listed, and not run together like the digits of a number.
        let outputs = checked.iter().find(|check| check["what"] == "channel.answers").unwrap();
        assert!(outputs["stated"].as_str().unwrap().starts_with("1 or 0"), "{outputs}");
    }
}

#[test]
fn a_digit_that_is_off_is_named_and_the_exit_code_is_1() {
    let folder = Folder::new("verify-off");
    let text = std::fs::read_to_string(planned_card(&folder, "card.json")).unwrap();
    let release = serde_json::from_str::<Value>(&text).unwrap()["claims"]["release"].as_str().unwrap().to_owned();
    let with = |claim: &str| folder.file("wrong.json", text.replace(&release, claim));
    for (claim, verdict, hint) in [("0.5", "WRONG", "do not rely"), ("7", "WIDER", "--allow-wider")] {
        let path = with(claim);
        let output = run(&["verify", &path]);
        let (said, shown) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("claims.release") && said.contains(hint), "{said}");
        assert!(shown.contains(verdict) && !shown.contains("are honest."), "{shown}");
        let printed: Value = serde_json::from_slice(&run(&["verify", &path, "--json"]).stdout).unwrap();
        assert_eq!(printed["holds"], false);
    }
    assert!(run(&["verify", &with("7"), "--allow-wider"]).status.success());
    assert_eq!(run(&["verify", &with("0.5"), "--allow-wider"]).status.code(), Some(1));
}

#[test]
fn a_record_that_contradicts_itself_is_not_to_be_relied_on() {
    let folder = Folder::new("verify-contradiction");
    let record =
        r#"{"version":"1","query":"","card":"","signature":"","reports":1,"counts":[1],"sums":[1],"collected":""}"#;
    let output = run(&["verify", &folder.file("record.json", record)]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("contradicts itself: sums with noise stand beside exact counts"), "{said}");
    assert!(said.contains("hint: do not rely on this document"), "{said}");
}

#[test]
fn files_of_strangers_are_refused_in_words() {
    let folder = Folder::new("verify-hostile");
    let card = std::fs::read_to_string(planned_card(&folder, "card.json")).unwrap();
    let huge = "0".repeat(17 << 20);
    let files = [
        ("empty.json", String::new()),
        ("list.json", "[]".to_owned()),
        ("deep.json", "[".repeat(100_000)),
        ("half.json", card[..card.len() / 2].to_owned()),
        ("half.toml", "version = ".to_owned()),
        ("huge.json", huge),
        ("control.json", card.replacen("\"version\":\"2\"", "\"version\":\"\\u001b[31m2\"", 1)),
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
    let key = run(&["verify", &planned_card(&folder, "card.toml"), "--desk-key", "ed25519:AAAA"]);
    assert_eq!(key.status.code(), Some(1));
}

/// Cards and records are written by one function: on a disk that is full, or that fails to keep what it was given, the file stays as
/// it was, and no part of another is left beside it.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_a_faulty_disk_does_not_take_leaves_the_one_that_was_there() {
    let folder = Folder::new("card-faults");
    let (card, library) = (folder.0.join("card.json"), folder.0.join("failing_sync.so"));
    let mut compiler = Command::new("cc");
    let source = root().join("checks/faults/failing_sync.c");
    assert!(compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status().unwrap().success());
    fs::write(&card, "as it was").unwrap();
    let plan = ["plan", "--owners", "200", "--yes", "10", "--epsilon", "1", "--delta", "1e-4", "--out"];
    let full = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    for (limit, preloaded) in [(full, None), ("exec \"$0\" \"$@\"", Some(&library))] {
        let mut command = Command::new("sh");
        command.args(["-c", limit, env!("CARGO_BIN_EXE_uptack")]).args(plan).arg(&card);
        if let Some(library) = preloaded {
            command.env("LD_PRELOAD", library).env("UPTACK_TEST_SYNC_FAILS_FROM", "1");
        }
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("card.json"), "{said}");
        assert_eq!(fs::read_to_string(&card).unwrap(), "as it was");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2);
    }
}
