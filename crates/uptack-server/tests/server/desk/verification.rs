//! Anyone can compute a record again: every number of it that is changed is found.

use serde_json::{Value, json};
use std::sync::Arc;
use uptack::{
    card::Check,
    estimate::{Confidence, IntervalKind},
};
use uptack_dap::{
    ballot as ballots,
    desk_client::Schedule,
    release::{
        record::Record,
        verification::{Document, Verifier},
    },
    signed::{PublicKey, Signer},
};

use crate::desk::support::{Stage, ballot, read, upload, upload_all};

/// The checks that fail, by name; what cannot be read at all fails as itself.
fn failures(text: &str, desk_key: Option<&PublicKey>) -> Vec<String> {
    let verifier = Verifier { desk_key, ..Verifier::default() };
    match Document::from_json(text).and_then(|document| verifier.verify(&document, &Arc::default())) {
        Ok(checks) => checks.into_iter().filter(|check: &Check| !check.holds()).map(|check| check.what).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// A record of a real run, with the results that an analyst would state.
fn stated(text: &str) -> String {
    let (record, card) = read(text);
    let channel = card.checked_channel().unwrap();
    let results = record.estimated(&channel, Confidence::of_miss(1e-4).unwrap(), IntervalKind::Auto).unwrap();
    serde_json::to_string(&Record { results: Some(results), ..record }).unwrap()
}

/// Every number in a document, as a number or as text, by its path.
fn numbers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.to_owned()),
        Value::String(text) if text.parse::<f64>().is_ok() => found.push(path.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| numbers(item, &format!("{path}/{index}"), found));
        }
        Value::Object(fields) => fields.iter().for_each(|(key, value)| numbers(value, &format!("{path}/{key}"), found)),
        _ => {}
    }
}

/// The same number with its last digit moved by one.
fn falsified(value: &Value, by: u8) -> Value {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let at = text.rfind(|c: char| c.is_ascii_digit()).unwrap();
    let digit = text.as_bytes()[at] - b'0';
    let text = format!("{}{}{}", &text[..at], (digit + by) % 10, &text[at + 1..]);
    if value.is_string() { Value::from(text) } else { serde_json::from_str(&text).unwrap() }
}

/// `/results/estimates/0/sd` as a check names it: `results.estimates[0].sd`.
fn name(path: &str) -> String {
    let part = |part: &str| match part.parse::<usize>() {
        Ok(index) if !path.ends_with(&format!("answers/0/{part}")) => format!("[{index}]"),
        _ => format!(".{part}"),
    };
    path.split('/').skip(1).map(part).collect::<String>().trim_start_matches('.').to_owned()
}

fn every_number_counts(text: &str) {
    let document: Value = serde_json::from_str(text).unwrap();
    let mut paths = Vec::new();
    numbers(&document, "", &mut paths);
    assert!(paths.len() > 8, "{paths:?}");
    // The confidence is laid down, not computed; intervals of few owners may be the same at another one.
    for path in paths.iter().filter(|path| *path != "/results/confidence") {
        for by in [1, 9] {
            let mut wrong = document.clone();
            let value = wrong.pointer_mut(path).unwrap();
            *value = falsified(value, by);
            let failed = failures(&wrong.to_string(), None);
            // Sums that no longer fit together cannot even be read as tallies.
            let named = failed.iter().any(|what| *what == name(path) || what.contains("owners"));
            assert!(named || path.starts_with("/counts"), "{path}: {failed:?}");
            assert!(!failed.is_empty(), "{path}");
        }
    }
}

#[tokio::test]
async fn every_number_of_a_real_record_is_recomputed() {
    let stage = Stage::new().await;
    let opened = stage.ask().await;
    upload(&opened.card, &[0, 0, 1, 1, 1, 2, 2, 2, 2, 2]).await;
    stage.pass(&opened.card);
    let plain = stage.result(&opened.queries[0].query).await.unwrap();
    let text = stated(&plain);
    let key = stage.desk.signer();
    for document in [&plain, &text] {
        assert_eq!(failures(document, None), [""; 0]);
        assert_eq!(failures(document, Some(&key)), [""; 0]);
    }
    every_number_counts(&text);

    let other = Signer::generate().public();
    assert_eq!(failures(&text, Some(&other)), ["signature"]);
    let (record, _) = read(&plain);
    let signed = serde_json::to_value(record.signed()).unwrap();
    assert_eq!(failures(&signed.to_string(), Some(&key)), [""; 0]);
    assert_eq!(failures(&record.card, None), [""; 0]);
    assert_eq!(failures(&record.card, Some(&key)), ["signature"], "a bare card is not signed");

    // One digit of the card changes its name and breaks its signature.
    let mut changed: Value = serde_json::from_str(&text).unwrap();
    changed["card"] = record.card.replacen("\"owners\":\"20\"", "\"owners\":\"21\"", 1).into();
    let failed = failures(&changed.to_string(), None);
    assert!(
        ["query", "signature", "card.predicted.sd"].iter().all(|what| failed.contains(&(*what).to_owned())),
        "{failed:?}"
    );
    let mut early: Value = serde_json::from_str(&text).unwrap();
    early["collected"] = "2020-01-01T00:00:00Z".into();
    assert_eq!(failures(&early.to_string(), None), ["collected"]);
}

#[tokio::test]
async fn every_number_of_a_ballots_record_is_recomputed() {
    let stage = Stage::new().await;
    let card = ballot(&["north", "south"]);
    let opened = stage.analyst.open(&card, Schedule::Once { seconds: 600 }).await.unwrap();
    let report = |north: Option<bool>, south: Option<bool>| ballots::measurement(&[north, south]);
    let mut reports = vec![report(Some(true), Some(false)); 3];
    reports.extend(vec![report(Some(false), None); 5]);
    reports.extend(vec![report(None, Some(false)); 2]);
    upload_all(&opened.card, &reports).await.unwrap();
    stage.pass(&opened.card);
    let text = stated(&stage.result(&opened.queries[0].query).await.unwrap());
    assert_eq!(failures(&text, None), [""; 0]);
    every_number_counts(&text);
}

#[test]
fn hostile_documents_are_refused_in_words() {
    let deep = format!("{{\"counts\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let long = format!("{{\"counts\":[{}0]}}", "0,".repeat(100_000));
    for text in ["", "{", "[]", "null", "7", "{}", "{\"counts\":1}", "{\"signature\":1}", "\u{0}", &deep, &long] {
        let failed = failures(text, None);
        assert!(failed.len() == 1 && failed[0].len() < 300, "{failed:?}");
    }
}

#[test]
fn a_card_with_impossible_numbers_fails_and_does_not_panic() {
    let card: Value = serde_json::from_str(&crate::desk::support::card().canonical()).unwrap();
    for (place, value) in [
        ("/owners", json!("99999999999999999999")),
        ("/minimum_batch", json!("0")),
        ("/minimum_batch", json!("-1")),
        ("/claims/delta", json!("0")),
        ("/claims/delta", json!("NaN")),
        ("/claims/answers", json!([])),
        ("/predicted/yes_low", json!("19")),
        ("/channel/cells", json!([])),
        ("/predicted/sd", json!("inf")),
    ] {
        let mut wrong = card.clone();
        *wrong.pointer_mut(place).unwrap() = value;
        assert!(!failures(&wrong.to_string(), None).is_empty(), "{place}");
    }
}
