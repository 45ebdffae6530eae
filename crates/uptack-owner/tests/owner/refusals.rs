//! Cards that are refused, with the reason, before any coin is tossed and without a charge.

use uptack::card::{Card, CardSeries, Claim, Enrolment, Timestamp};
use uptack_dap::signed::{SignedCard, Signer};
use uptack_owner::{client::Status, policy::Policy};

use crate::world::*;

/// What becomes of a signed card under a policy; nothing may be left in the ledger if it is refused.
fn reason(signed: &SignedCard, policy: Policy) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let client = client(directory.path(), policy);
    let outcomes = client.consider(&["self"], std::slice::from_ref(signed)).unwrap();
    assert_eq!(outcomes.len(), 1);
    let charged = !client.ledger().entries().unwrap().is_empty();
    assert_eq!(charged, outcomes[0].status == Status::Waiting);
    if outcomes[0].status == Status::Refused {
        assert!(client.ledger().spent().unwrap().is_empty(), "a refusal spends nothing");
    }
    outcomes[0].reason.clone()
}

fn refused(change: impl Fn(&mut Card), allow: impl Fn(&mut String)) -> String {
    let signer = Signer::generate();
    let mut card = card(&signer, 40);
    change(&mut card);
    let mut policy = policy_text(&signer);
    allow(&mut policy);
    reason(&signer.sign(&card).unwrap(), Policy::from_toml(&policy).unwrap()).expect("it is refused")
}

#[test]
fn the_card_as_it_is_is_accepted() {
    let signer = Signer::generate();
    assert_eq!(reason(&signer.sign(&card(&signer, 40)).unwrap(), policy(&signer)), None);
}

#[test]
fn a_claim_that_is_false_in_one_digit_though_validly_signed() {
    let better = |claim: &mut Claim| {
        let mut text = claim.to_string();
        // Of the first twelve characters: the last of all may be beyond what a double tells apart.
        let digit = text[..text.len().min(12)].rfind(|digit: char| digit.is_ascii_digit() && digit != '0').unwrap();
        let lower = char::from(text.as_bytes()[digit] - 1).to_string();
        text.replace_range(digit..=digit, &lower);
        *claim = text.parse().unwrap();
    };
    assert!(refused(|card| better(&mut card.claims.release), |_| {}).contains("for the release"));
    assert!(refused(|card| better(&mut card.claims.linked), |_| {}).contains("for the linked answers"));
    assert!(refused(|card| better(&mut card.claims.answers[0]), |_| {}).contains("for the answers alone"));
    let joint = refused(|card| better(&mut card.claims.answers_with_release[0]), |_| {});
    assert!(joint.contains("an answer with the release"), "{joint}");
    assert!(refused(|card| card.minimum_batch = 39, |_| {}).contains("for the release"));
}

#[test]
fn another_signer_and_a_signature_that_does_not_fit() {
    let (signer, stranger) = (Signer::generate(), Signer::generate());
    let signed = stranger.sign(&card(&stranger, 40)).unwrap();
    assert!(reason(&signed, policy(&signer)).unwrap().contains("whom the policy does not name"));
    let mut forged = signer.sign(&card(&signer, 40)).unwrap();
    forged.signature = signed.signature;
    assert!(reason(&forged, policy(&signer)).unwrap().contains("not the signer's"));
}

#[test]
fn two_cards_for_one_query() {
    let signer = Signer::generate();
    let first = signer.sign(&card(&signer, 40)).unwrap();
    let mut other = card(&signer, 40);
    other.question = Some("Something else?".to_owned());
    let mut second = signer.sign(&other).unwrap();
    second.query = first.query.clone();
    let directory = tempfile::tempdir().unwrap();
    let client = client(directory.path(), policy(&signer));
    let outcomes = client.consider(&["self"], &[first, second]).unwrap();
    assert_eq!(outcomes[0].status, Status::Waiting);
    assert!(outcomes[1].reason.as_ref().unwrap().contains("not the one that this query is named after"));
    assert_eq!(client.ledger().entries().unwrap().len(), 1);
}

#[test]
fn a_policy_that_the_card_exceeds() {
    for (from, to, word) in [
        ("answer = 20.0", "answer = 0.5", "the policy's card.answer allows at most 0.5"),
        ("linked = 20.0", "linked = 0.5", "the policy's card.linked allows at most 0.5"),
        ("release = 4.0", "release = 0.5", "the policy's card.release allows at most 0.5"),
        ("answer-with-release = 20.0", "answer-with-release = 0.5", "card.answer-with-release allows at most 0.5"),
        ("delta = 1e-4", "delta = 1e-5", "a delta of 0.0001; the policy's card.delta is 0.00001"),
        ("honest = 1.0", "honest = 0.9", "the policy's card.honest allows at most 0.9"),
        ("separate-operators = false", "separate-operators = true", "card.separate-operators"),
        ("enrolment = false", "enrolment = true", "enrolled"),
    ] {
        let told = refused(
            |_| {},
            |policy| {
                let changed = policy.replacen(from, to, 1);
                assert_ne!(&changed, policy, "{from}");
                *policy = changed;
            },
        );
        assert!(told.contains(word), "{to}: {told}");
    }
}

#[test]
fn a_card_without_a_guarantee() {
    let told = refused(|card| with_mechanism(card, "sampling(sy=0.05,sn=0.05)"), |_| {});
    assert!(told.contains("no guarantee"), "{told}");
}

#[test]
fn a_predicate_that_reads_or_does_what_it_must_not() {
    let with = |text: &str, attributes: &[&str]| {
        refused(
            |card| {
                card.predicate = Some(text.to_owned());
                card.attributes = attributes.iter().map(|name| (*name).to_owned()).collect();
            },
            |_| {},
        )
    };
    assert!(with("home == \"a\"", &["home"]).contains("reads `home`"));
    assert!(with("station == home", &["station"]).contains("reads `home`"));
    assert!(with("true", &["station"]).contains("list of attributes"));
    assert!(with("station.matches(\"a.*\")", &["station"]).contains("`matches`"));
    assert!(with("[1].exists(x, x == 1)", &[]).contains("macro"));
    assert!(with(&"(".repeat(1000), &[]).contains("nested more than 64 deep"));
    // Nobody could answer these with yes, or only those whose attribute happens to be true or false.
    assert!(with("station", &["station"]).contains("not a yes/no expression"));
    assert!(with("size(station)", &["station"]).contains("not a yes/no expression"));
    assert!(with("1 < \"a\" || station == \"7\"", &["station"]).contains("mixes up types"));
    // Without a predicate it asks the person, and then reads nothing and says what it asks.
    assert!(refused(|card| card.predicate = None, |_| {}).contains("neither a predicate"));
    let ask_nothing = |card: &mut Card| (card.predicate, card.question, card.attributes) = (None, None, Vec::new());
    assert!(refused(ask_nothing, |_| {}).contains("neither a predicate"));
}

#[test]
fn a_window_that_is_over_or_yet_to_come_or_askew() {
    let signer = Signer::generate();
    let at = |opens: u64, closes: u64| {
        let mut card = card(&signer, 40);
        card.opens = Some(Timestamp::from_seconds(opens).unwrap());
        card.closes = Some(Timestamp::from_seconds(closes).unwrap());
        reason(&signer.sign(&card).unwrap(), policy(&signer)).unwrap()
    };
    let hour = now() / 3600 * 3600;
    assert!(at(hour - 3600, hour).contains("has closed"));
    assert!(at(hour + 3600, hour + 7200).contains("not opened"));
    assert!(at(hour + 1, hour + 3601).contains("multiple of its length"));
    assert!(at(hour, hour).contains("closes before it opens"));
}

#[test]
fn a_spent_budget() {
    let signer = Signer::generate();
    let text = policy_text(&signer).replace("[lifetime]\nlinked = 100.0", "[lifetime]\nlinked = 12.0");
    let directory = tempfile::tempdir().unwrap();
    let client = client(directory.path(), Policy::from_toml(&text).unwrap());
    let ask = |number: usize| {
        let mut card = card(&signer, 40);
        card.question = Some(format!("The same, asked for the {number}. time?"));
        client.consider(&["self"], &[signer.sign(&card).unwrap()]).unwrap().remove(0)
    };
    let accepted = (0..).map(ask).take_while(|outcome| outcome.status == Status::Waiting).take(1000).count();
    assert!((1..50).contains(&accepted), "{accepted}");
    let before = client.ledger().spent().unwrap();
    let refused = ask(1000);
    assert!(refused.reason.unwrap().contains("lifetime.linked is 12: "));
    assert_eq!(client.ledger().spent().unwrap(), before);
    assert_eq!(client.ledger().entries().unwrap().len(), accepted);
}

#[test]
fn a_series_is_paid_once_and_as_a_whole() {
    let signer = Signer::generate();
    let clock = uptack_dap::clock::Clock::standing_at(now() / 300 * 300);
    let starts = clock.now();
    let number = |number: u64, times: u64| {
        let mut card = card(&signer, 40);
        with_mechanism(&mut card, "randomized-response(t=0.6)");
        let opens = starts + (number - 1) * 300;
        card.opens = Some(Timestamp::from_seconds(opens).unwrap());
        card.closes = Some(Timestamp::from_seconds(opens + 300).unwrap());
        let starts = Timestamp::from_seconds(starts).unwrap();
        card.series = Some(CardSeries { times, number: Some(number), starts, every: 300 });
        let delta = uptack::privacy::Delta::new(1e-4).unwrap();
        card.state_claims(delta, uptack::privacy::WorkLimit::default()).unwrap();
        card
    };
    let directory = tempfile::tempdir().unwrap();
    let client = client_at(directory.path(), policy(&signer), clock.clone());
    let ask = |card: &Card| client.consider(&["self"], &[signer.sign(card).unwrap()]).unwrap().remove(0);
    assert_eq!(ask(&number(1, 3)).status, Status::Waiting);
    let paid = client.ledger().spent().unwrap();
    assert!(paid.iter().all(|spent| spent.queries == 3), "{paid:?}");
    clock.set(starts + 300);
    assert_eq!(ask(&number(2, 3)).status, Status::Waiting);
    assert_eq!(client.ledger().spent().unwrap(), paid);
    // A card that says it belongs to the series and differs from it pays for itself.
    let mut other = number(2, 3);
    other.question = Some("Something else?".to_owned());
    assert_eq!(ask(&other).status, Status::Waiting);
    assert!(client.ledger().spent().unwrap()[0].queries > 3);
    let mut askew = number(2, 3);
    askew.series.as_mut().unwrap().number = Some(3);
    assert!(ask(&askew).reason.unwrap().contains("number in the series"));
    let mut priced_as_one = number(2, 3);
    priced_as_one.claims.whole = None;
    assert!(ask(&priced_as_one).reason.unwrap().contains("for the whole"));
}

#[test]
fn a_card_that_cannot_be_verified_within_the_work() {
    let signer = Signer::generate();
    let mut card = card(&signer, 40);
    card.owners = 1_000_000;
    card.minimum_batch = 1_000_000;
    with_mechanism(&mut card, "normal-form(f=0.5,r=0.01)");
    let checker = uptack_owner::check::Checker::with_work(policy(&signer), 1000);
    let refusal = checker.check(&signer.sign(&card).unwrap(), now()).unwrap_err();
    assert!(refusal.to_string().contains("it is"), "{refusal}");
}

#[test]
fn many_classes_in_a_large_crowd_are_not_even_tried() {
    let signer = Signer::generate();
    let mut card = card(&signer, 40);
    with_mechanism(&mut card, "spread(pairs=2,f=0.9,r=0.2)");
    card.owners = 100_000_000;
    card.minimum_batch = 100_000_000;
    let told = reason(&signer.sign(&card).unwrap(), policy(&signer)).unwrap();
    assert!(told.contains("within the work allowed"), "{told}");
}

#[test]
fn what_the_policy_insists_on_is_accepted_when_there() {
    let signer = Signer::generate();
    let mut card = card(&signer, 40);
    card.enrolment = Some(Enrolment::Required);
    let text = policy_text(&signer).replace("enrolment = false", "enrolment = true");
    assert_eq!(reason(&signer.sign(&card).unwrap(), Policy::from_toml(&text).unwrap()), None);
}
