//! A client that dies at any moment answers once and loses no entry.

use std::collections::BTreeMap;
use uptack_owner::{client::Status, ledger::State};

use crate::world::*;

#[tokio::test(flavor = "multi_thread")]
async fn between_ledger_and_coins_and_between_store_and_acknowledgement() {
    let world = World::start().await;
    let (signed, collector) = world.serve(card(&world.signer, 40)).await;
    let directory = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..40).map(|index| index.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let owners: BTreeMap<_, _> = names.iter().map(|name| owner(name, r#"{"station": "a"}"#)).collect();
    let cards = [signed.clone()];
    {
        // Dies after the charge.
        let client = client(directory.path(), policy(&world.signer));
        assert!(client.consider(&names, &cards).unwrap().iter().all(|outcome| outcome.status == Status::Waiting));
    }
    let spent = {
        // Starts again, finds its entries and dies before the first coin.
        let client = client(directory.path(), policy(&world.signer));
        let spent = client.ledger().spent().unwrap();
        assert_eq!(client.consider(&names, &cards).unwrap()[0].status, Status::Waiting);
        assert_eq!(client.ledger().spent().unwrap(), spent, "an entry is not charged twice");
        spent
    };
    {
        // A leader that is away: everything is made and stored, nothing acknowledged.
        let away = World::start().await;
        let mut card = card(&away.signer, 40);
        card.question = Some("away".to_owned());
        let (signed, _) = away.serve(card).await;
        let aside = tempfile::tempdir().unwrap();
        let client = client(aside.path(), policy(&away.signer));
        client.consider(&["one"], &[signed]).unwrap();
        away.pair.shutdown().await;
        assert_eq!(client.upload(&BTreeMap::new()).await.unwrap(), 0);
        assert_eq!(client.ledger().entries().unwrap()[0].state, State::Due);
    }
    {
        let client = client(directory.path(), policy(&world.signer));
        assert_eq!(client.upload(&owners).await.unwrap(), 40);
        assert_eq!(client.ledger().spent().unwrap(), spent);
        assert!(client.ledger().entries().unwrap().iter().all(|entry| entry.state == State::Sent));
    }
    assert_eq!(collect(&signed, &collector).await.unwrap().reports, 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_bytes_are_resent_and_count_once() {
    let world = World::start().await;
    let (signed, collector) = world.serve(card(&world.signer, 40)).await;
    let directory = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..40).map(|index| index.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let file = directory.path().join("ledger.sqlite3");
    {
        let client = client(directory.path(), policy(&world.signer));
        client.consider(&names, std::slice::from_ref(&signed)).unwrap();
    }
    // Every acknowledgement is lost, as if the process had died before it noted any; the bytes stay.
    let raw = open_raw(&file);
    raw.execute_batch(
        "CREATE TRIGGER forget BEFORE UPDATE OF state ON entries BEGIN SELECT raise(abort, 'died'); END;",
    )
    .unwrap();
    {
        let client = client(directory.path(), policy(&world.signer));
        assert!(client.upload(&BTreeMap::new()).await.is_err());
        let kept: i64 = raw.query_row("SELECT count(*) FROM reports", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, 40);
        assert!(client.ledger().entries().unwrap().iter().all(|entry| entry.state == State::Due));
    }
    raw.execute_batch("DROP TRIGGER forget").unwrap();
    let client = client(directory.path(), policy(&world.signer));
    assert_eq!(client.upload(&BTreeMap::new()).await.unwrap(), 40);
    let kept: i64 = raw.query_row("SELECT count(*) FROM reports", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 0, "cells and bytes are deleted when they are acknowledged");
    assert_eq!(collect(&signed, &collector).await.unwrap().reports, 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_holds_neither_truth_nor_cell() {
    let world = World::start().await;
    let mut card = card(&world.signer, 40);
    // A yes is certain to send `1` and a no to send `0`: a trace of either would differ.
    with_mechanism(&mut card, "randomized-response(t=1)");
    let (signed, _) = world.serve(card).await;
    let text = policy_text(&world.signer).replace("20.0", "\"unlimited\"").replace("4.0", "\"unlimited\"");
    let text = text.replace("linked = 100.0", "linked = \"unlimited\"");
    let start = now();
    let clock = uptack_dap::clock::Clock::standing_at(start);
    let mut ledgers = Vec::new();
    for attributes in [r#"{"station": "a"}"#, r#"{"station": "b"}"#, "{}"] {
        let directory = tempfile::tempdir().unwrap();
        let policy = uptack_owner::policy::Policy::from_toml(&text).unwrap();
        clock.set(start);
        let client = client_at(directory.path(), policy, clock.clone());
        client.consider(&["self"], std::slice::from_ref(&signed)).unwrap();
        assert_eq!(client.upload(&[owner("self", attributes)].into_iter().collect()).await.unwrap(), 1);
        drop(client);
        ledgers.push(everything(&open_raw(&directory.path().join("ledger.sqlite3"))));
    }
    assert!(ledgers[0].contains("sent"), "{}", ledgers[0]);
    assert_eq!(ledgers[0], ledgers[1]);
    assert_eq!(ledgers[0], ledgers[2]);
}

/// Every row of every table.
fn everything(connection: &rusqlite::Connection) -> String {
    let list = |query: &str| -> Vec<String> {
        let mut statement = connection.prepare(query).unwrap();
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| {
            (0..columns).map(|at| Ok(format!("{:?} ", row.get::<_, rusqlite::types::Value>(at)?))).collect()
        };
        statement.query_map([], row).unwrap().map(|line: rusqlite::Result<String>| line.unwrap()).collect()
    };
    let tables = ["meta", "cards", "entries", "reports", "budgets", "seen", "tosses"];
    assert_eq!(
        list("SELECT name FROM sqlite_master WHERE type = 'table'").len(),
        tables.len(),
        "a table is not looked at"
    );
    tables.map(|table| format!("{table}: {:?}\n", list(&format!("SELECT * FROM {table}")))).concat()
}

#[tokio::test]
async fn at_close_what_was_not_acknowledged_is_deleted_and_stays_spent() {
    let signer = uptack_dap::signed::Signer::generate();
    let clock = uptack_dap::clock::Clock::standing_at(now());
    let directory = tempfile::tempdir().unwrap();
    let client = client_at(directory.path(), policy(&signer), clock.clone());
    let signed = signer.sign(&card(&signer, 40)).unwrap();
    client.consider(&["self"], std::slice::from_ref(&signed)).unwrap();
    let spent = client.ledger().spent().unwrap();
    // Nobody listens at the card's addresses.
    assert_eq!(client.upload(&BTreeMap::new()).await.unwrap(), 0);
    clock.set(now() + 100_000);
    let outcome = client.consider(&["self"], &[]).unwrap();
    assert!(outcome.is_empty());
    assert_eq!(client.ledger().entries().unwrap()[0].state, State::Expired);
    assert_eq!(client.ledger().spent().unwrap(), spent);
    assert_eq!(client.ledger().next_due().unwrap(), None);
}

#[test]
fn two_clients_cannot_share_a_ledger_and_a_budget_cannot_be_swapped() {
    let signer = uptack_dap::signed::Signer::generate();
    let directory = tempfile::tempdir().unwrap();
    let first = client(directory.path(), policy(&signer));
    assert!(uptack_owner::ledger::Ledger::open(directory.path()).is_err());
    first.consider(&["self"], &[signer.sign(&card(&signer, 40)).unwrap()]).unwrap();
    drop(first);
    let larger = policy_text(&signer).replace("linked = 100.0", "linked = 1000.0");
    let second = client(directory.path(), uptack_owner::policy::Policy::from_toml(&larger).unwrap());
    let mut other = card(&signer, 40);
    other.question = Some("another".to_owned());
    assert!(second.consider(&["self"], &[signer.sign(&other).unwrap()]).is_err());
}
