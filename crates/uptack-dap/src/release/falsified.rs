//! Documents with one wrong digit: each is caught, or the digit is in a field that is listed as not checked.

use serde_json::Value;
use std::sync::Arc;
use uptack::{
    card::{Aggregators, Card, Enrolment, NotChecked, Operators, Timestamp},
    estimate::{Confidence, IntervalKind},
    plan::{Over, Prior, Request, plan},
    privacy::Epsilon,
};

use super::{
    Collected,
    record::Record,
    verification::{Document, Verifier},
};
use crate::signed::Signer;

/// A card as a desk on this machine fills it in, of few owners so that it is recomputed quickly.
fn full_card(signer: &Signer) -> Card {
    let mut request = Request::one_aggregator(30, Prior { low: 1, high: 12, over: Over::Worst }, epsilon(1.0)).unwrap();
    request.minimum_batch = 24;
    let moment = |text: &str| Some(text.parse().unwrap());
    let aggregators = Aggregators {
        leader: "http://127.0.0.1:42137/".to_owned(),
        helper: "https://helper2.example:8443/dap/".to_owned(),
    };
    Card {
        question: Some("Are you at station 7?".to_owned()),
        predicate: Some("station == \"7\"".to_owned()),
        attributes: vec!["station".to_owned(), "lane2".to_owned()],
        opens: moment("2026-11-15T08:30:00Z"),
        closes: moment("2026-11-15T09:30:00Z"),
        operators: Some(Operators::One),
        enrolment: Some(Enrolment::None),
        signer: Some(signer.public().to_string()),
        aggregators: Some(aggregators),
        ..Card::new(&request, &plan(&request).unwrap())
    }
}

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

/// The texts of a document with their places, such as `channel.cells[0].yes`.
fn texts(value: &Value, place: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => found.push((place.to_owned(), text.clone())),
        Value::Number(number) => found.push((place.to_owned(), number.to_string())),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(index, value)| texts(value, &format!("{place}[{index}]"), found));
        }
        Value::Object(all) => all.iter().for_each(|(name, value)| {
            let below = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
            texts(value, &below, found);
        }),
        Value::Null | Value::Bool(_) => {}
    }
}

/// The document with one digit more at each place of this text.
fn falsified(document: &Value, place: &str, text: &str) -> Vec<Value> {
    let pointer = format!("/{}", place.replace(['.', '['], "/").replace(']', ""));
    let digits = text.char_indices().filter(|(_, letter)| letter.is_ascii_digit());
    let changed = digits.map(|(at, _)| {
        let digit = (text.as_bytes()[at] - b'0' + 1) % 10;
        let changed = format!("{}{digit}{}", &text[..at], &text[at + 1..]);
        let mut document = document.clone();
        let value = document.pointer_mut(&pointer).unwrap();
        *value = if value.is_number() { serde_json::from_str(&changed).unwrap_or_default() } else { changed.into() };
        document
    });
    changed.collect()
}

fn is_caught(document: &Value) -> bool {
    let Ok(document) = Document::from_json(&document.to_string()) else { return true };
    let checks = Verifier::default().verify(&document, &Arc::default());
    checks.map_or(true, |checks| checks.iter().any(|check| !check.holds()))
}

fn is_below(place: &str, listed: &NotChecked) -> bool {
    place.strip_prefix(&listed.what).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Whoever reads the list knows of every digit that could have been changed unnoticed.
#[test]
fn every_falsified_digit_is_caught_or_in_a_field_that_is_listed_as_not_checked() {
    let signer = Signer::generate();
    let card = full_card(&signer);
    let batch = Collected { reports: 27, counts: Vec::new(), sums: Some(vec![14]), start: 0, finish: 1 };
    let collected = "2026-11-15T09:30:20Z".parse::<Timestamp>().unwrap().seconds();
    let mut record = Record::new(&signer.sign(&card).unwrap(), &batch, collected).unwrap();
    let channel = card.mechanism.count_channel();
    record.results = Some(record.estimated(&channel, Confidence::new(0.95).unwrap(), IntervalKind::Exact).unwrap());
    for text in [card.canonical(), serde_json::to_string(&record).unwrap()] {
        let document: Value = serde_json::from_str(&text).unwrap();
        assert!(!is_caught(&document));
        let listed = Document::from_json(&text).unwrap().not_checked(None);
        let mut stated = Vec::new();
        texts(&document, "", &mut stated);
        // Every byte of a record's card has the same check, the query's name.
        let stated: Vec<_> = stated.into_iter().filter(|(place, _)| place != "card").collect();
        let (mut caught, mut passed) = (0, 0);
        for (place, text) in stated {
            for changed in falsified(&document, &place, &text) {
                if is_caught(&changed) {
                    caught += 1;
                } else {
                    passed += 1;
                    assert!(listed.iter().any(|field| is_below(&place, field)), "{place}: {text}");
                }
            }
        }
        assert!(caught > 5 * passed, "{caught} {passed}");
    }
    let changed = record.card.replacen("2026", "2027", 1);
    assert!(is_caught(&serde_json::to_value(Record { card: changed, ..record }).unwrap()));
}

#[test]
fn addresses_keys_and_moments_that_cannot_be_meant_are_caught_on_unsigned_cards() {
    let signer = Signer::generate();
    let card = full_card(&signer).canonical();
    for (from, to, what) in [
        ("http://127.0.0.1:42137/", "http://126.0.0.1:42137/", "aggregators.leader"),
        ("http://127.0.0.1:42137/", "http://327.0.0.1:42137/", "aggregators.leader"),
        ("https://helper2.example:8443/dap/", "https://helper2.example:84430/dap/", "aggregators.helper"),
        ("ed25519:", "ed35519:", "signer"),
        ("2026-11-15T09:30:00Z", "2926-11-15T09:30:00Z", "closes"),
        ("2026-11-15T08:30:00Z", "2026-11-15T09:30:00Z", "opens, closes"),
    ] {
        let document = Document::from_json(&card.replacen(from, to, 1)).unwrap();
        let checks = Verifier::default().verify(&document, &Arc::default()).unwrap();
        assert!(checks.iter().any(|check| check.what == what && !check.holds()), "{to}");
    }
}
