//! A desk that wants more answers than it pays for, or sends reports where they must not go.

use std::{collections::BTreeSet, sync::Arc};
use uptack::card::{Card, CardSeries, Timestamp};
use uptack_dap::{
    card_task,
    clock::Clock,
    signed::{SignedCard, Signer},
};
use uptack_owner::{
    check::{Accepted, Allowed, Asked},
    client::{Outcome, Status},
    ledger::{ChargeDecision, Ledger},
    policy::Policy,
    predicate::Predicate,
    schedule::FIXED_DELAY,
};

use crate::world::*;

const EVERY: u64 = 300;

/// Number `number` of a series of three that starts at `starts`, as an honest desk would write it.
fn of_series(signer: &Signer, starts: u64, number: u64, every: u64) -> Card {
    let mut card = card(signer, 40);
    let opens = starts + (number - 1) * every;
    card.series =
        Some(CardSeries { times: 3, number: Some(number), starts: Timestamp::from_seconds(starts).unwrap(), every });
    card.opens = Some(Timestamp::from_seconds(opens).unwrap());
    card.closes = Some(Timestamp::from_seconds(opens + every).unwrap());
    with_mechanism(&mut card, "randomized-response(t=0.6)");
    card
}

fn ask(device: &Device, signer: &Signer, card: &Card) -> Outcome {
    device.consider(&["self"], &[signer.sign(card).unwrap()]).unwrap().remove(0)
}

/// Answers that were accepted, and queries that were charged in the view that was charged least.
fn accepted_and_charged(device: &Device) -> (u64, u64) {
    let spent = device.ledger().spent().unwrap();
    let charged = spent.iter().map(|spent| spent.queries).min().unwrap_or(0);
    (device.ledger().entries().unwrap().len() as u64, charged)
}

#[test]
fn thirty_cards_that_all_say_they_are_the_first_of_a_paid_series() {
    let signer = Signer::generate();
    let directory = tempfile::tempdir().unwrap();
    let device = client(directory.path(), policy(&signer));
    // From 1970 on a window of any length has begun at a multiple of it.
    for longer in 0..30 {
        let card = of_series(&signer, 0, 1, now() + 1000 + longer);
        let outcome = ask(&device, &signer, &card);
        let (accepted, charged) = accepted_and_charged(&device);
        assert!(charged >= accepted, "{accepted} answers for the price of {charged}");
        if outcome.status != Status::Waiting {
            assert!(outcome.reason.unwrap().contains("budget"));
        }
    }
    // The budget ends it long before the thirtieth.
    let (accepted, charged) = accepted_and_charged(&device);
    assert_eq!(charged, 3 * accepted, "each length is a series of its own");
}

#[test]
fn windows_that_are_not_those_of_the_number() {
    let signer = Signer::generate();
    let starts = now() / EVERY * EVERY;
    let directory = tempfile::tempdir().unwrap();
    let device = client_at(directory.path(), policy(&signer), Clock::standing_at(starts));
    assert_eq!(ask(&device, &signer, &of_series(&signer, starts, 1, EVERY)).status, Status::Waiting);
    let paid = accepted_and_charged(&device);
    let changed = |change: &dyn Fn(&mut Card)| {
        let mut card = of_series(&signer, starts, 1, EVERY);
        change(&mut card);
        card
    };
    let series = |card: &mut Card| card.series.clone().unwrap();
    for card in [
        // Longer or shorter than the series says, though the identity is that of the paid series.
        changed(&|card| card.closes = Some(Timestamp::from_seconds(starts + 2 * EVERY).unwrap())),
        changed(&|card| card.closes = Some(Timestamp::from_seconds(starts + EVERY / 2).unwrap())),
        // Open now under a number that opens later; numbers that no series has.
        changed(&|card| card.series = Some(CardSeries { number: Some(2), ..series(card) })),
        changed(&|card| card.series = Some(CardSeries { number: Some(0), ..series(card) })),
        changed(&|card| card.series = Some(CardSeries { number: Some(4), ..series(card) })),
        changed(&|card| card.series = Some(CardSeries { number: Some(u64::MAX), ..series(card) })),
        changed(&|card| card.series = Some(CardSeries { every: u64::MAX, ..series(card) })),
        changed(&|card| card.series = Some(CardSeries { every: 0, ..series(card) })),
    ] {
        let outcome = ask(&device, &signer, &card);
        assert_eq!(outcome.status, Status::Refused);
        assert!(outcome.reason.unwrap().contains("its number in the series"));
    }
    // Another way to write a number is another card, and is refused as such.
    let odd = changed(&|_| {}).canonical().replace("\"number\":\"1\"", "\"number\":\"01\"");
    assert!(Card::from_json(&odd).unwrap_err().to_string().contains("series.number"));
    assert_eq!(accepted_and_charged(&device), paid);
}

#[test]
fn whatever_differs_from_a_paid_series_is_charged_anew() {
    let (signer, second_signer) = (Signer::generate(), Signer::generate());
    let starts = now() / EVERY * EVERY;
    let text = policy_text(&signer).replace("signers = [", &format!("signers = [\"{}\", ", second_signer.public()));
    let directory = tempfile::tempdir().unwrap();
    let device = client_at(directory.path(), Policy::from_toml(&text).unwrap(), Clock::standing_at(starts));
    let first = of_series(&signer, starts, 1, EVERY);
    assert_eq!(ask(&device, &signer, &first).status, Status::Waiting);
    let wording = Card { question: Some("Are you at a?".to_owned()), ..first.clone() };
    let predicate = Card { predicate: Some("station == \"b\"".to_owned()), ..first.clone() };
    let mut leader = first.clone();
    leader.aggregators.as_mut().unwrap().leader = "http://127.0.0.1:3/".to_owned();
    let mut weaker = first.clone();
    weaker.claims.linked = "19".parse().unwrap();
    let other_signer = Card { signer: Some(second_signer.public().to_string()), ..first.clone() };
    let mut longer = first.clone();
    longer.series.as_mut().unwrap().times = 4;
    state_claims(&mut longer);
    let mut names = BTreeSet::from([card_task::names(&first).unwrap().charge.to_string()]);
    for (signer, card) in [
        (&signer, wording),
        (&signer, predicate),
        (&signer, leader),
        (&signer, weaker),
        (&second_signer, other_signer),
        (&signer, longer),
    ] {
        assert!(names.insert(card_task::names(&card).unwrap().charge.to_string()), "another charge");
        let (_, before) = accepted_and_charged(&device);
        let outcome = ask(&device, signer, &card);
        let (accepted, charged) = accepted_and_charged(&device);
        match outcome.status {
            Status::Waiting => assert!(charged >= before + 3, "{charged}"),
            _ => assert!(outcome.reason.unwrap().contains("budget")),
        }
        assert!(charged >= accepted);
    }
}

#[test]
fn the_same_card_again_is_neither_charged_nor_answered_again() {
    let signer = Signer::generate();
    let clock = Clock::standing_at(now() / EVERY * EVERY);
    let directory = tempfile::tempdir().unwrap();
    let signed = signer.sign(&of_series(&signer, clock.now(), 1, EVERY)).unwrap();
    let once = {
        let device = client_at(directory.path(), policy(&signer), clock.clone());
        device.consider(&["a", "b"], std::slice::from_ref(&signed)).unwrap();
        let spent = device.ledger().spent().unwrap();
        // Several owners in one ledger pay for themselves.
        assert_eq!(spent.iter().map(|spent| spent.owner.as_str()).collect::<BTreeSet<_>>(), BTreeSet::from(["a", "b"]));
        assert!(spent.iter().all(|spent| spent.queries == 3));
        (spent, device.ledger().entries().unwrap())
    };
    // Twice in one list, once more after a restart, signed once more, and with other blanks.
    let device = client_at(directory.path(), policy(&signer), clock);
    let resigned = signer.sign(&card_task::read(&signed.card).unwrap()).unwrap();
    let spaced = SignedCard { card: signed.card.replacen(':', ": ", 1), ..signed.clone() };
    let outcomes = device.consider(&["a", "b"], &[signed.clone(), signed, resigned, spaced]).unwrap();
    assert!(outcomes[..6].iter().all(|outcome| outcome.status == Status::Waiting));
    assert!(outcomes[6..].iter().all(|outcome| outcome.reason.as_ref().unwrap().contains("canonical")));
    assert_eq!((device.ledger().spent().unwrap(), device.ledger().entries().unwrap()), once);
}

#[test]
fn the_ledger_itself_knows_one_answer_for_each_number() {
    let signer = Signer::generate();
    let checked_by = checker(policy(&signer));
    let starts = now() / EVERY * EVERY;
    let first = signer.sign(&of_series(&signer, starts, 1, EVERY)).unwrap();
    let second = signer.sign(&of_series(&signer, starts, 2, EVERY)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(directory.path()).unwrap();
    let accept = |signed: &SignedCard, number: u64| {
        let checked = checked_by.check_card(signed).unwrap();
        // As if the check of the window had been passed somehow.
        let allowed = Allowed {
            opened: checked.opened.clone(),
            parameters: checked.parameters.clone(),
            window: checked.window,
            asked: Asked::Device(vec![Predicate::parse("true").unwrap()]),
            most_yes: 1,
            names: card_task::CardNames { number, ..checked.names },
        };
        let accepted = Accepted { allowed: Arc::new(allowed), price: checked.price.clone() };
        ledger.accept(signed, &accepted, &[("self", starts + 10)], &checked_by, starts).unwrap().remove(0)
    };
    assert_eq!(accept(&first, 1), ChargeDecision::Charged);
    assert!(
        matches!(accept(&second, 1), ChargeDecision::Refused(reason) if reason.contains("number 1 of this series"))
    );
    assert_eq!(accept(&second, 2), ChargeDecision::Charged);
    assert!(ledger.spent().unwrap().iter().all(|spent| spent.queries == 3));
}

#[test]
fn a_window_without_room_for_the_delay_is_refused_before_charging() {
    let signer = Signer::generate();
    let signed = signer.sign(&card(&signer, 40)).unwrap();
    let closes = card_task::read(&signed.card).unwrap().window().unwrap().1;
    let directory = tempfile::tempdir().unwrap();
    let device = client_at(directory.path(), policy(&signer), Clock::standing_at(closes - FIXED_DELAY));
    let outcome = device.consider(&["self"], &[signed]).unwrap().remove(0);
    assert!(outcome.reason.unwrap().contains("the query closes in 3 seconds"));
    assert!(device.ledger().spent().unwrap().is_empty() && device.ledger().entries().unwrap().is_empty());
}

#[test]
fn a_fleet_that_cannot_send_all_reports_in_time_is_refused_before_charging() {
    let signer = Signer::generate();
    let signed = signer.sign(&card(&signer, 40)).unwrap();
    let closes = card_task::read(&signed.card).unwrap().window().unwrap().1;
    let names: Vec<String> = (0..2000).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (left, is_refused) in [(6, true), (30, false)] {
        let directory = tempfile::tempdir().unwrap();
        let fleet = client_at(directory.path(), policy(&signer), Clock::standing_at(closes - left));
        let outcomes = fleet.consider(&names, std::slice::from_ref(&signed)).unwrap();
        assert_eq!(outcomes.len(), 2000);
        assert_eq!(outcomes.iter().all(|outcome| outcome.status == Status::Refused), is_refused);
        assert_eq!(fleet.ledger().entries().unwrap().is_empty(), is_refused);
        // One owner has time enough.
        let directory = tempfile::tempdir().unwrap();
        let device = client_at(directory.path(), policy(&signer), Clock::standing_at(closes - left));
        let outcome = device.consider(&["self"], std::slice::from_ref(&signed)).unwrap().remove(0);
        assert_eq!(outcome.status, Status::Waiting);
    }
}

/// What a device says to a card with these aggregators, under a policy with these further lines.
fn told(leader: &str, helper: &str, change: impl Fn(String) -> String) -> Option<String> {
    let signer = Signer::generate();
    let mut card = card(&signer, 40);
    card.operators = Some(uptack::card::Operators::Two);
    card.aggregators = Some(uptack::card::Aggregators { leader: leader.to_owned(), helper: helper.to_owned() });
    let directory = tempfile::tempdir().unwrap();
    let device = client(directory.path(), Policy::from_toml(&change(policy_text(&signer))).unwrap());
    let outcome = ask(&device, &signer, &card);
    assert_eq!(outcome.status == Status::Refused, device.ledger().entries().unwrap().is_empty());
    outcome.reason
}

#[test]
fn two_operators_that_are_one() {
    let separate = |text: String| text.replace("separate-operators = false", "separate-operators = true");
    for (leader, helper) in [
        ("https://one.example/", "https://one.example/"),
        ("https://one.example/", "https://one.example:8443/"),
        ("https://one.example/leader/", "https://ONE.example/helper/"),
        ("http://127.0.0.1:1/", "http://localhost:2/"),
        ("https://192.0.2.1/", "https://192.0.2.1:8443/"),
    ] {
        let reason = told(leader, helper, separate).unwrap();
        assert!(reason.contains("aggregators.leader") && reason.contains("two separate"), "{reason}");
    }
    assert_eq!(told("https://one.example/", "https://two.example/", separate), None);
    assert_eq!(told("https://one.example/", "https://one.example:8443/", |text| text), None);
}

#[test]
fn addresses_that_others_can_listen_in_on() {
    let good = "https://two.example/";
    for bad in ["http://one.example/", "ftp://one.example/", "file:///tmp/leader", "ws://127.0.0.1/", "mailto:a@b"] {
        let reason = told(bad, good, |text| text).unwrap();
        assert!(reason.contains("aggregators.leader") && reason.contains("https"), "{reason}");
        let reason = told(good, bad, |text| text).unwrap();
        assert!(reason.contains("aggregators.helper") && reason.contains("https"), "{reason}");
    }
}

/// Texts that are one host to a person and another to a program, or that would make a parser panic.
#[test]
fn addresses_that_are_not_what_they_seem() {
    let good = "https://two.example/";
    for bad in [
        "https://Bü.example/",
        "https://B%C3%BC.example/",
        "https://one.example\\@two.example/",
        "https:one.example",
        // A second spelling of the other aggregator's host.
        "https://two.example./",
        "https://[::ffff:192.0.2.1]/",
        "https://192.0.513/",
    ] {
        let reason = told(bad, good, |text| text).unwrap();
        assert!(reason.contains("aggregators.leader: "), "{reason}");
    }
}

#[test]
fn aggregators_that_the_policy_does_not_name() {
    let named =
        |text: String| format!("aggregators = [\"https://one.example\", \"https://two.example:8443/\"]\n{text}");
    assert_eq!(told("https://one.example/dap/", "https://two.example:8443/", named), None);
    for (leader, helper, word) in [
        ("https://three.example/", "https://two.example:8443/", "aggregators.leader"),
        ("https://one.example/", "https://two.example/", "aggregators.helper"),
        ("https://one.example.evil.example/", "https://two.example:8443/", "aggregators.leader"),
    ] {
        let reason = told(leader, helper, named).unwrap();
        assert!(reason.contains(word) && reason.contains("does not name"), "{reason}");
    }
}

#[test]
fn a_desk_that_the_policy_does_not_name_and_a_card_by_another_desks_signer() {
    let (signer, other) = (Signer::generate(), Signer::generate());
    let desks = |ours: &str| {
        format!(
            "{}\n[[desks]]\naddress = \"{ours}\"\nsigners = [\"{}\"]\n\
             [[desks]]\naddress = \"https://other.example\"\nsigners = [\"{}\"]\n",
            policy_text(&signer).lines().skip(1).collect::<Vec<_>>().join("\n"),
            signer.public(),
            other.public()
        )
    };
    let reason = |ours: &str, signer: &Signer| {
        let directory = tempfile::tempdir().unwrap();
        let device = client(directory.path(), Policy::from_toml(&desks(ours)).unwrap());
        ask(&device, signer, &card(signer, 40)).reason
    };
    assert_eq!(reason("http://127.0.0.1:9", &signer), None);
    let told = reason("http://127.0.0.1:9", &other).unwrap();
    assert!(told.contains("whom the policy does not name for http://127.0.0.1:9"), "{told}");
    let told = reason("http://127.0.0.1:10", &signer).unwrap();
    assert!(told.contains("`desks` do not name"), "{told}");
}
