//! A ledger of the layout before this one is taken over with every charge.

use std::path::Path;
use uptack::card::{CardSeries, Timestamp};
use uptack_dap::signed::{SignedCard, Signer};
use uptack_owner::{
    client::Status,
    ledger::{Due, Ledger, Spent, State},
};

use crate::world::*;

/// The first layout, as it was.
const LAYOUT_1: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('layout', '1');
CREATE TABLE cards(
    query TEXT PRIMARY KEY, card TEXT NOT NULL, signature TEXT NOT NULL, closes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE entries(
    owner TEXT NOT NULL, query TEXT NOT NULL, charged INTEGER NOT NULL, upload INTEGER NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY(owner, query)) WITHOUT ROWID;
CREATE INDEX entries_by_moment ON entries(state, upload);
CREATE TABLE reports(
    owner TEXT NOT NULL, query TEXT NOT NULL, measurement BLOB NOT NULL, bytes BLOB NOT NULL,
    PRIMARY KEY(owner, query)) WITHOUT ROWID;
CREATE TABLE budgets(
    owner TEXT NOT NULL, view TEXT NOT NULL, filter TEXT NOT NULL, PRIMARY KEY(owner, view)) WITHOUT ROWID;
CREATE TABLE series(
    owner TEXT NOT NULL, series TEXT NOT NULL, PRIMARY KEY(owner, series)) WITHOUT ROWID;
";

/// A ledger of the first layout with one card answered by two owners, one report still to be sent; and what is spent.
fn first_layout(folder: &Path, signer: &Signer, signed: &SignedCard) -> Vec<Spent> {
    let aside = tempfile::tempdir().unwrap();
    let spent = {
        let device = client(aside.path(), policy(signer));
        device.consider(&["a", "b"], std::slice::from_ref(signed)).unwrap();
        device.ledger().spent().unwrap()
    };
    std::fs::create_dir_all(folder).unwrap();
    let old = open_raw(&folder.join("ledger.sqlite3"));
    old.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    old.execute_batch(LAYOUT_1).unwrap();
    old.execute("ATTACH ?1 AS new", [aside.path().join("ledger.sqlite3").to_str().unwrap()]).unwrap();
    old.execute_batch(
        "INSERT INTO cards SELECT * FROM new.cards;
         INSERT INTO budgets SELECT owner, view, filter FROM new.budgets;
         INSERT INTO entries SELECT owner, query, charged, upload, iif(owner = 'a', 'sent', 'due') FROM new.entries;
         INSERT INTO series VALUES ('a', 'a name of the first layout');",
    )
    .unwrap();
    old.execute("INSERT INTO reports VALUES ('b', ?1, x'0000000000000001', x'0102')", [&signed.query]).unwrap();
    spent
}

#[test]
fn charges_entries_and_reports_are_taken_over() {
    let signer = Signer::generate();
    let signed = signer.sign(&card(&signer, 40)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let spent = first_layout(folder.path(), &signer, &signed);
    assert!(!spent.is_empty());
    for _ in 0..2 {
        // The second time there is nothing left to do.
        let ledger = Ledger::open(folder.path()).unwrap();
        assert_eq!(ledger.spent().unwrap(), spent);
        let states: Vec<_> = ledger.entries().unwrap().into_iter().map(|entry| (entry.owner, entry.state)).collect();
        assert_eq!(states, [("a".to_owned(), State::Sent), ("b".to_owned(), State::Due)]);
        let due = Due { owner: "b".to_owned(), query: signed.query.clone(), upload: 0 };
        assert_eq!(ledger.report(&due).unwrap().unwrap().bytes, [1, 2]);
    }
    // The card is known, and what comes after is charged on top of what was spent.
    let device = client(folder.path(), policy(&signer));
    let outcomes = device.consider(&["a", "b"], &[signed]).unwrap();
    assert_eq!((outcomes[0].status, outcomes[1].status), (Status::Answered, Status::Waiting));
    assert_eq!(device.ledger().spent().unwrap(), spent);
    let mut next = card(&signer, 40);
    next.question = Some("And now?".to_owned());
    device.consider(&["a"], &[signer.sign(&next).unwrap()]).unwrap();
    let now_spent = device.ledger().spent().unwrap();
    assert!(now_spent.iter().filter(|spent| spent.owner == "a").all(|spent| spent.queries == 2), "{now_spent:?}");
}

#[test]
fn a_series_that_goes_on_is_charged_anew_rather_than_not_at_all() {
    let signer = Signer::generate();
    let folder = tempfile::tempdir().unwrap();
    let spent = first_layout(folder.path(), &signer, &signer.sign(&card(&signer, 40)).unwrap());
    let mut card = card(&signer, 40);
    let opens = now() / 600 * 600;
    card.opens = Some(Timestamp::from_seconds(opens).unwrap());
    card.closes = Some(Timestamp::from_seconds(opens + 600).unwrap());
    card.series =
        Some(CardSeries { times: 2, number: Some(1), every: 600, starts: Timestamp::from_seconds(opens).unwrap() });
    with_mechanism(&mut card, "randomized-response(t=0.6)");
    let device = client_at(folder.path(), policy(&signer), uptack_dap::clock::Clock::standing_at(opens));
    let outcome = device.consider(&["a"], &[signer.sign(&card).unwrap()]).unwrap().remove(0);
    assert_eq!(outcome.status, Status::Waiting, "{:?}", outcome.reason);
    let queries = |spent: &[Spent]| spent.iter().find(|spent| spent.owner == "a").unwrap().queries;
    assert_eq!(queries(&device.ledger().spent().unwrap()), queries(&spent) + 2);
}

#[test]
fn a_layout_of_a_later_version_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop(Ledger::open(folder.path()).unwrap());
    let file = folder.path().join("ledger.sqlite3");
    open_raw(&file).execute("UPDATE meta SET value = '9' WHERE key = 'layout'", []).unwrap();
    let told = Ledger::open(folder.path()).err().unwrap().to_string();
    assert!(told.contains("layout 9 of a later version"), "{told}");
}
