//! An analyst who opens cards that are expensive to weigh, to keep owners from answering others.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};
use uptack::card::Card;
use uptack_dap::{
    clock::Clock,
    listing::Page,
    signed::{SignedCard, Signer},
};
use uptack_owner::{
    check::Checker,
    client::{Client, ClientEvent, Config, Observer, Outcome, Status},
    ledger::Ledger,
    policy::Policy,
};

use crate::{
    dishonest_listing::{HostileDesk, card_asked},
    world::*,
};

/// The cards that a desk serves, by their names. They may change while it does.
type Served = Arc<Mutex<BTreeMap<String, SignedCard>>>;

async fn desk_of(served: &Served) -> HostileDesk {
    let served = Arc::clone(served);
    HostileDesk::start(move |path| {
        let cards = served.lock().unwrap();
        match card_asked(path) {
            Some(query) => cards.get(query).map(|card| serde_json::to_vec(card).unwrap()),
            None => Some(serde_json::to_vec(&Page { queries: cards.keys().cloned().collect(), next: None }).unwrap()),
        }
    })
    .await
}

fn serve(served: &Served, signed: SignedCard) {
    served.lock().unwrap().insert(signed.query.clone(), signed);
}

/// A card whose claims nobody else's cards have, and which are false: an owner finds out only by recomputing them.
fn trap(signer: &Signer, number: u64) -> SignedCard {
    let mut card = card(signer, 40);
    card.minimum_batch = 39 - number;
    open(&mut card, 1200);
    signer.sign(&card).unwrap()
}

/// What happened, in order.
type Events = Arc<Mutex<Vec<ClientEvent>>>;

fn count(events: &Events, kind: ClientEvent) -> usize {
    events.lock().unwrap().iter().filter(|event| **event == kind).count()
}

/// A process of its own: what it has computed is forgotten when it ends.
fn process(folder: &Path, desk: &HostileDesk, policy: Policy, adjust: impl FnOnce(&mut Config)) -> (Client, Events) {
    let mut config = Config::new(desk.url.clone());
    config.within = Some(0);
    let events = Events::default();
    let log = Arc::clone(&events);
    config.observer = Observer::new(move |event| log.lock().unwrap().push(event));
    adjust(&mut config);
    (Client::new(config, Checker::new(policy), Ledger::open(folder).unwrap()).unwrap(), events)
}

fn status_of(outcomes: &[Outcome], signed: &SignedCard) -> Status {
    outcomes.iter().find(|outcome| outcome.query == signed.query).unwrap().status
}

/// The traps close sooner than the honest card, and two more are opened before each visit.
#[tokio::test(flavor = "multi_thread")]
async fn many_expensive_cards_cannot_put_off_an_honest_one_for_ever() {
    let world = World::start().await;
    let mut honest = card(&world.signer, 40);
    open(&mut honest, 86_400);
    let (honest, _) = world.serve(honest).await;
    let served = Served::default();
    let desk = desk_of(&served).await;
    (0..4).for_each(|number| serve(&served, trap(&world.signer, number)));
    serve(&served, honest.clone());
    let folder = tempfile::tempdir().unwrap();
    let mut statuses = Vec::new();
    for visit in 0..3 {
        let (client, events) = process(folder.path(), &desk, policy(&world.signer), |config| config.most_weighed = 2);
        let outcomes = client.visit(&[owner("self", "{}")], |_, _| {}).await.unwrap();
        assert_eq!(count(&events, ClientEvent::Weighed), 2, "a visit does no more than its work");
        let postponed = outcomes.iter().filter(|outcome| outcome.status == Status::Postponed);
        // A process knows nothing of the verdicts of the one before it, only that it came to some.
        assert_eq!(postponed.count(), 3 + 2 * visit);
        assert_eq!(outcomes.len(), 5 + 2 * visit, "every card has an outcome");
        statuses.push(status_of(&outcomes, &honest));
        for number in 0..2 {
            serve(&served, trap(&world.signer, 4 + 2 * visit as u64 + number));
        }
    }
    assert_eq!(statuses, [Status::Postponed, Status::Postponed, Status::Answered]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_one_signer_holds_up_no_card_of_another() {
    let world = World::start().await;
    let flood = Signer::generate();
    let (honest, _) = world.serve(card(&world.signer, 40)).await;
    let served = Served::default();
    let desk = desk_of(&served).await;
    (0..10).for_each(|number| serve(&served, trap(&flood, number)));
    serve(&served, honest.clone());
    let folder = tempfile::tempdir().unwrap();
    let both = policy_text(&flood).replacen("signers = [", &format!("signers = [\"{}\", ", world.signer.public()), 1);
    let policy = Policy::from_toml(&both).unwrap();
    let (client, _) = process(folder.path(), &desk, policy, |config| config.most_weighed = 2);
    let outcomes = client.visit(&[owner("self", "{}")], |_, _| {}).await.unwrap();
    assert_eq!(status_of(&outcomes, &honest), Status::Answered);
}

/// Weighing one card takes twenty seconds of the client's clock here. The first answer is sent, and the second one made, long
/// before the last card is weighed.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_sent_before_the_cards_after_it_are_weighed() {
    let world = World::start().await;
    let served = Served::default();
    let desk = desk_of(&served).await;
    for number in 0..4u64 {
        let mut card: Card = card(&world.signer, 40 + number);
        open(&mut card, 86_400);
        serve(&served, world.serve(card).await.0);
    }
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::standing_at(now());
    let hand = clock.clone();
    // The clock goes on while reports wait for their moments, a second in a hundredth of one.
    let ticking = tokio::spawn({
        let clock = clock.clone();
        async move {
            loop {
                tokio::time::sleep(Duration::from_millis(10)).await;
                clock.set(clock.now() + 1);
            }
        }
    });
    let (client, events) = process(folder.path(), &desk, policy(&world.signer), |config| {
        let (hear, hand) = (config.observer.clone(), hand.clone());
        config.clock = clock.clone();
        config.observer = Observer::new(move |event| {
            if event == ClientEvent::Weighed {
                hand.set(hand.now() + 20);
            }
            hear.on(event);
        });
    });
    let outcomes = client.visit(&[owner("self", "{}")], |_, _| {}).await.unwrap();
    ticking.abort();
    assert!(outcomes.iter().all(|outcome| outcome.status == Status::Answered), "{outcomes:?}");
    let events = events.lock().unwrap();
    let places =
        |kind: ClientEvent| -> Vec<usize> { (0..events.len()).filter(|place| events[*place] == kind).collect() };
    let (weighed, sealed, sent) =
        (places(ClientEvent::Weighed), places(ClientEvent::Sealed), places(ClientEvent::Sent));
    assert_eq!((weighed.len(), sealed.len(), sent.len()), (4, 4, 4));
    for answer in 0..2 {
        assert!(sealed[answer] < weighed[answer + 1], "made before the next card is weighed: {events:?}");
        assert!(sent[answer] < weighed[answer + 2], "sent before the card after that: {events:?}");
        // No truth is looked at while a report is due.
        assert!(sent[answer] < sealed[answer + 1], "{events:?}");
    }
}

/// What was charged is not weighed again, whatever becomes of it.
#[tokio::test(flavor = "multi_thread")]
async fn an_answered_card_costs_no_work_at_the_next_visit() {
    let world = World::start().await;
    let served = Served::default();
    let desk = desk_of(&served).await;
    let mut card = card(&world.signer, 40);
    open(&mut card, 86_400);
    serve(&served, world.serve(card).await.0);
    let folder = tempfile::tempdir().unwrap();
    for weighed in [1, 0] {
        let (client, events) = process(folder.path(), &desk, policy(&world.signer), |_| {});
        let outcomes = client.visit(&[owner("self", "{}")], |_, _| {}).await.unwrap();
        assert_eq!(outcomes[0].status, Status::Answered);
        assert_eq!(count(&events, ClientEvent::Weighed), weighed);
    }
}
