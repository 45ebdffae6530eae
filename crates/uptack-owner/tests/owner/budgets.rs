//! Budgets over a ledger's whole life: what was answered without a limit counts when there is one, and one signer cannot spend
//! what the policy leaves to others.

use std::path::Path;
use uptack::card::Card;
use uptack_dap::signed::Signer;
use uptack_owner::{
    client::{Outcome, Status},
    ledger::{Ledger, Spent},
    policy::Policy,
};

use crate::world::*;

/// A policy without lifetime budgets.
fn unlimited(signer: &Signer) -> String {
    let text = policy_text(signer);
    let (card, _) = text.split_once("[lifetime]").unwrap();
    format!("{card}[lifetime]\nlinked = \"unlimited\"\nrelease = \"unlimited\"\ndelta = 1e-2\n")
}

fn asked(signer: &Signer, number: usize) -> Card {
    let mut card = card(signer, 40);
    card.question = Some(format!("Question {number}?"));
    card
}

/// Answers a card under a policy, in a process of its own.
fn answer(folder: &Path, policy: &str, signer: &Signer, number: usize) -> Outcome {
    let device = client(folder, Policy::from_toml(policy).unwrap());
    device.consider(&["self"], &[signer.sign(&asked(signer, number)).unwrap()]).unwrap().remove(0)
}

fn spent(folder: &Path) -> Vec<Spent> {
    Ledger::open(folder).unwrap().spent().unwrap()
}

/// What a ledger holds that had a limit all the time.
fn spent_with_limits(signer: &Signer, cards: usize) -> Vec<Spent> {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..cards {
        assert_eq!(answer(folder.path(), &policy_text(signer), signer, number).status, Status::Waiting);
    }
    spent(folder.path())
}

#[test]
fn answers_given_while_a_budget_was_unlimited_count_when_it_has_a_limit() {
    let signer = Signer::generate();
    let folder = tempfile::tempdir().unwrap();
    for number in 0..3 {
        assert_eq!(answer(folder.path(), &unlimited(&signer), &signer, number).status, Status::Waiting);
    }
    assert_eq!(answer(folder.path(), &policy_text(&signer), &signer, 3).status, Status::Waiting);
    assert_eq!(spent(folder.path()), spent_with_limits(&signer, 4));
}

/// A budget that is kept, given up for a while and kept again would otherwise have a hole.
#[test]
fn a_budget_that_was_unlimited_for_a_while_counts_what_was_answered_meanwhile() {
    let signer = Signer::generate();
    let folder = tempfile::tempdir().unwrap();
    for (number, policy) in [policy_text(&signer), unlimited(&signer), policy_text(&signer)].iter().enumerate() {
        assert_eq!(answer(folder.path(), policy, &signer, number).status, Status::Waiting);
    }
    assert_eq!(spent(folder.path()), spent_with_limits(&signer, 3));
}

#[test]
fn a_limit_below_what_was_answered_without_one_refuses_and_says_so() {
    let signer = Signer::generate();
    let folder = tempfile::tempdir().unwrap();
    for number in 0..3 {
        answer(folder.path(), &unlimited(&signer), &signer, number);
    }
    let one = asked(&signer, 0).claims.whole_linked().unwrap();
    let small = policy_text(&signer).replace("linked = 100.0", &format!("linked = {:?}", 2.0 * one));
    let told = answer(folder.path(), &small, &signer, 3).reason.unwrap();
    assert!(told.contains("lifetime.linked") && told.contains("what was answered before"), "{told}");
    assert!(spent(folder.path()).is_empty());
}

/// The layout before this one did not note what a budget counts.
#[test]
fn an_earlier_ledger_whose_budget_missed_answers_is_counted_again() {
    let signer = Signer::generate();
    for missed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        answer(folder.path(), &policy_text(&signer), &signer, 0);
        let second = if missed { unlimited(&signer) } else { policy_text(&signer) };
        answer(folder.path(), &second, &signer, 1);
        to_layout_2(folder.path());
        assert_eq!(spent(folder.path()).len(), if missed { 0 } else { 2 });
        assert_eq!(answer(folder.path(), &policy_text(&signer), &signer, 2).status, Status::Waiting);
        assert_eq!(spent(folder.path()), spent_with_limits(&signer, 3), "missed: {missed}");
    }
}

/// Makes a ledger what it was in layout 2.
fn to_layout_2(folder: &Path) {
    let file = open_raw(&folder.join("ledger.sqlite3"));
    file.execute_batch(
        "DROP TABLE seen;
         ALTER TABLE entries DROP COLUMN place;
         ALTER TABLE budgets RENAME TO budgets_3;
         CREATE TABLE budgets(
             owner TEXT NOT NULL, view TEXT NOT NULL, filter TEXT NOT NULL, PRIMARY KEY(owner, view)) WITHOUT ROWID;
         INSERT INTO budgets SELECT owner, view, filter FROM budgets_3;
         DROP TABLE budgets_3;
         UPDATE meta SET value = '2' WHERE key = 'layout';",
    )
    .unwrap();
}

#[test]
fn one_signer_cannot_spend_what_the_policy_leaves_to_others() {
    let (greedy, honest) = (Signer::generate(), Signer::generate());
    let folder = tempfile::tempdir().unwrap();
    let signers = format!("signers = [\"{}\", \"{}\"]", greedy.public(), honest.public());
    let text = policy_text(&greedy).replace(&format!("signers = [\"{}\"]", greedy.public()), &signers);
    let shared = text.replace("[lifetime]\n", "[lifetime]\nshare-per-signer = 0.5\n").replace("= 100.0", "= 24.0");
    let device = client(folder.path(), Policy::from_toml(&shared).unwrap());
    let ask = |signer: &Signer, number: usize| {
        device.consider(&["self"], &[signer.sign(&asked(signer, number)).unwrap()]).unwrap().remove(0)
    };
    let refused = (0..).map(|number| ask(&greedy, number)).find(|outcome| outcome.status == Status::Refused).unwrap();
    let told = refused.reason.unwrap();
    assert!(told.contains("share-per-signer leaves 12 of lifetime.linked to ed25519:"), "{told}");
    let spent = |signer: Option<&Signer>| {
        let signer = signer.map(|signer| signer.public().to_string());
        let all = device.ledger().spent().unwrap();
        all.into_iter().find(|spent| spent.view == "linked" && spent.signer == signer).unwrap()
    };
    assert!(spent(None).fraction < 0.55, "{:?}", spent(None));
    assert_eq!(spent(Some(&greedy)).queries, spent(None).queries);
    // The other signer has its share.
    assert_eq!(ask(&honest, 0).status, Status::Waiting);
    assert_eq!((spent(Some(&honest)).queries, spent(Some(&honest)).epsilon), (1, 12.0));
}

/// A share that is set later counts what its signer asked before, and nothing that others did.
#[test]
fn a_share_begins_with_what_the_same_signer_was_answered_before() {
    let (one, other) = (Signer::generate(), Signer::generate());
    let folder = tempfile::tempdir().unwrap();
    let signers = format!("signers = [\"{}\", \"{}\"]", one.public(), other.public());
    let text = policy_text(&one).replace(&format!("signers = [\"{}\"]", one.public()), &signers);
    for (signer, number) in [(&one, 0), (&other, 0), (&one, 1)] {
        assert_eq!(answer(folder.path(), &text, signer, number).status, Status::Waiting);
    }
    let shared = text.replace("[lifetime]\n", "[lifetime]\nshare-per-signer = 0.5\n");
    assert_eq!(answer(folder.path(), &shared, &one, 2).status, Status::Waiting);
    let queries = |signer: Option<String>| {
        let all = spent(folder.path());
        all.into_iter().find(|spent| spent.view == "linked" && spent.signer == signer).map(|spent| spent.queries)
    };
    assert_eq!(queries(None), Some(4));
    assert_eq!(queries(Some(one.public().to_string())), Some(3));
    assert_eq!(queries(Some(other.public().to_string())), None);
}
