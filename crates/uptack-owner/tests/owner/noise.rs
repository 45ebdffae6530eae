//! Cards whose aggregators add noise: what a policy demands of them, what they cost, and what is sent for them.

use uptack::card::{Card, CardChannel, Claim};
use uptack_dap::signed::{SignedCard, Signer};
use uptack_owner::{
    client::Status,
    ledger::{Ledger, Spent},
    policy::Policy,
};

use crate::world::*;

const NOISY: &str = "randomized-response(t=0.9) + laplace(scale=2)";
const PLAIN: &str = "randomized-response(t=0.9)";

/// A policy that says nothing of trust: one honest aggregator has to be enough.
fn strict_text(signer: &Signer) -> String {
    let text = policy_text(signer);
    let strict =
        text.replace("trust = \"owners\"\n", "").replace("release = 4.0", "one-aggregator = 0.5\nrelease = 4.0");
    assert!(!strict.contains("trust") && strict.contains("one-aggregator"));
    strict
}

fn noisy(signer: &Signer, mechanism: &str) -> Card {
    let mut card = card(signer, 40);
    with_mechanism(&mut card, mechanism);
    card
}

/// Why a card is refused under a policy, if it is; a refusal leaves nothing in the ledger.
fn reason(signed: &SignedCard, policy: &str) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let device = client(directory.path(), Policy::from_toml(policy).unwrap());
    let outcome = device.consider(&["self"], std::slice::from_ref(signed)).unwrap().remove(0);
    if outcome.status == Status::Refused {
        assert!(device.ledger().spent().unwrap().is_empty() && device.ledger().entries().unwrap().is_empty());
    }
    outcome.reason
}

fn refused(signer: &Signer, card: &Card, policy: &str) -> String {
    reason(&signer.sign(card).unwrap(), policy).expect("it is refused")
}

#[test]
fn one_honest_aggregator_has_to_be_enough_unless_the_policy_trusts_owners() {
    let signer = Signer::generate();
    let (strict, owners) = (strict_text(&signer), policy_text(&signer));
    let (with, without) = (noisy(&signer, NOISY), noisy(&signer, PLAIN));
    assert_eq!(reason(&signer.sign(&with).unwrap(), &strict), None);
    assert_eq!(reason(&signer.sign(&without).unwrap(), &owners), None);
    let told = refused(&signer, &without, &strict);
    for word in ["no claims.one_aggregator", "card.one-aggregator allows at most 0.5", "card.trust is `owners`"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    // Left out, the limit is that of the release.
    let silent = strict.replace("one-aggregator = 0.5\n", "").replace("\nrelease = 4.0", "\nrelease = 2.195");
    let told = refused(&signer, &without, &silent);
    assert!(told.contains("card.one-aggregator allows at most 2.195"), "{told}");
    // Answers that hide enough by themselves need no noise.
    assert_eq!(reason(&signer.sign(&noisy(&signer, "randomized-response(t=0.6)")).unwrap(), &strict), None);
}

#[test]
fn the_whole_of_a_ballot_is_what_is_limited() {
    let signer = Signer::generate();
    let mut card = noisy(&signer, NOISY);
    let one = card.claims.whole_one_aggregator().unwrap();
    with_ballot(&mut card, &["a", "b", "c"], 1);
    assert!((card.claims.whole_one_aggregator().unwrap() - 2.0 * one).abs() < 1e-11);
    let told = refused(&signer, &card, &strict_text(&signer));
    assert!(told.contains("if one aggregator is honest and nobody else"), "{told}");
    let wider = strict_text(&signer).replace("one-aggregator = 0.5", "one-aggregator = 0.8");
    assert_eq!(reason(&signer.sign(&card).unwrap(), &wider), None);
}

/// Every card here is validly signed by a desk that the policy names.
#[test]
fn a_desk_that_boasts_of_noise() {
    let signer = Signer::generate();
    let policy = strict_text(&signer);
    let cheated = |change: &dyn Fn(&mut Card)| {
        let mut card = noisy(&signer, NOISY);
        change(&mut card);
        refused(&signer, &card, &policy)
    };
    let channel_of = |text: &str| CardChannel::from(&text.parse::<uptack::contribution::AnyMechanism>().unwrap());
    // A smaller epsilon than is true, by one unit of the last digit.
    let told = cheated(&|card| {
        let claimed = card.claims.whole_one_aggregator().unwrap();
        card.claims.one_aggregator = Some(Claim::at_most(Some(claimed - 1e-12)));
    });
    assert!(told.contains("for one honest aggregator; it is"), "{told}");
    // Less noise than is claimed for, in the integers, in the text, and in both.
    let less = "randomized-response(t=0.9) + laplace(scale=1.9)";
    assert!(cheated(&|card| card.channel = channel_of(less)).contains("integers"));
    assert!(cheated(&|card| card.mechanism = less.parse().unwrap()).contains("integers"));
    let told = cheated(&|card| (card.mechanism, card.channel) = (less.parse().unwrap(), channel_of(less)));
    assert!(told.contains("for one honest aggregator; it is"), "{told}");
    // No noise at all.
    assert!(cheated(&|card| card.channel.noise = None).contains("integers"));
    let told = cheated(&|card| (card.mechanism, card.channel) = (PLAIN.parse().unwrap(), channel_of(PLAIN)));
    assert!(told.contains("it adds no noise"), "{told}");
    // Noise, and nothing said about what it hides: the answers themselves are too little.
    assert!(cheated(&|card| card.claims.one_aggregator = None).contains("no claims.one_aggregator"));
}

fn budget_of(ledger: &Ledger, view: &str) -> Spent {
    ledger.spent().unwrap().into_iter().find(|spent| spent.view == view).unwrap()
}

#[test]
fn pure_epsilons_add_up_in_a_budget_of_their_own() {
    let signer = Signer::generate();
    let text = strict_text(&signer).replace("[lifetime]\n", "[lifetime]\none-aggregator = 1.0\n");
    let directory = tempfile::tempdir().unwrap();
    let device = client(directory.path(), Policy::from_toml(&text).unwrap());
    let ask = |number: u32| {
        let mut card = noisy(&signer, NOISY);
        card.question = Some(format!("Question {number}?"));
        device.consider(&["self"], &[signer.sign(&card).unwrap()]).unwrap().remove(0)
    };
    let one = noisy(&signer, NOISY).claims.whole_one_aggregator().unwrap();
    let most = (1.0 / one) as u32;
    assert!((2..10).contains(&most), "{one}");
    for number in 1..=most {
        assert_eq!(ask(number).status, Status::Waiting);
        let spent = budget_of(device.ledger(), "one_aggregator");
        assert_eq!((spent.epsilon, spent.delta, spent.queries), (1.0, 0.0, u64::from(number)));
        assert!((spent.fraction - one * f64::from(number)).abs() < 1e-9, "{spent:?}");
    }
    let before = device.ledger().spent().unwrap();
    let told = ask(most + 1).reason.unwrap();
    assert!(told.contains("the policy's lifetime.one-aggregator is 1: "), "{told}");
    // All views are charged or none.
    assert_eq!(device.ledger().spent().unwrap(), before);
}

/// What was answered when no such budget was kept counts in it: a ledger of an earlier version starts where its answers left it.
#[test]
fn a_budget_begins_with_what_was_answered_before() {
    let signer = Signer::generate();
    let directory = tempfile::tempdir().unwrap();
    let ask = |policy: &str, card: &Card| {
        let device = client(directory.path(), Policy::from_toml(policy).unwrap());
        device.consider(&["self"], &[signer.sign(card).unwrap()]).unwrap().remove(0)
    };
    let before = noisy(&signer, PLAIN);
    assert_eq!(ask(&policy_text(&signer), &before).status, Status::Waiting);
    let views = |ledger: &Ledger| ledger.spent().unwrap().into_iter().map(|spent| spent.view).collect::<Vec<_>>();
    assert_eq!(views(&Ledger::open(directory.path()).unwrap()), ["linked", "release"]);
    let lasting = |epsilon: f64| {
        strict_text(&signer).replace("[lifetime]\n", &format!("[lifetime]\none-aggregator = {epsilon:?}\n"))
    };
    let next = noisy(&signer, NOISY);
    let (linked, noise) = (before.claims.whole_linked().unwrap(), next.claims.whole_one_aggregator().unwrap());
    let told = ask(&lasting(linked / 2.0), &next).reason.unwrap();
    assert!(told.contains("what was answered before"), "{told}");
    let told = ask(&lasting(linked + noise / 2.0), &next).reason.unwrap();
    assert!(told.contains("lifetime.one-aggregator") && !told.contains("before"), "{told}");
    let budget = linked + 1.01 * noise;
    assert_eq!(ask(&lasting(budget), &next).status, Status::Waiting);
    let spent = budget_of(&Ledger::open(directory.path()).unwrap(), "one_aggregator");
    assert!((spent.fraction * budget - linked - noise).abs() < 1e-9 && spent.queries == 2, "{spent:?}");
}

/// The noise of so small a scale is zero but once in e^100 times, so that the sums are the truth.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_is_whether_the_answer_is_one() {
    const TOLD: &str = "randomized-response(t=1) + laplace(scale=0.01)";
    let world = World::start().await;
    let mut ballot = noisy(&world.signer, TOLD);
    with_ballot(&mut ballot, &["a", "b", "c"], 1);
    let text = ["4.0", "20.0", "100.0"]
        .iter()
        .fold(policy_text(&world.signer), |text, limit| text.replace(&format!("= {limit}\n"), "= \"unlimited\"\n"));
    let owners: Vec<_> =
        (0..60).map(|index| owner(&index.to_string(), if index < 13 { r#"{"station": "a"}"# } else { "{}" })).collect();
    let names: Vec<&str> = owners.iter().map(|(name, _)| name.as_str()).collect();
    for (card, sums) in [(noisy(&world.signer, TOLD), vec![13]), (ballot, vec![13, 0, 0])] {
        let (signed, collector) = world.serve(card).await;
        let directory = tempfile::tempdir().unwrap();
        let device = client(directory.path(), Policy::from_toml(&text).unwrap());
        let outcomes = device.consider(&names, std::slice::from_ref(&signed)).unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.status == Status::Waiting), "{:?}", outcomes[0].reason);
        assert_eq!(device.upload(&owners.iter().cloned().collect()).await.unwrap(), 60);
        let collected = collect(&signed, &collector).await.unwrap();
        assert_eq!((collected.reports, collected.sums), (60, Some(sums)));
    }
}
