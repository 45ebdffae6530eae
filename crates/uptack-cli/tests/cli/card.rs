//! The card's published form, and the corpus of its fuzz target.

#[path = "../../../../fuzz/card_check.rs"]
mod card_check;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};
use uptack::card::Card;

use crate::{Folder, json as command};

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
