//! Cards that ask the person: the truth is what the person says, and nobody is made to say anything.

use std::collections::BTreeMap;
use uptack::{Truth, card::Card};
use uptack_owner::{attributes::Attributes, client::Status, policy::Policy};

use crate::world::*;

/// A card that asks people, and whose coins nearly always tell the truth.
fn people_card(world: &World, minimum: u64) -> Card {
    let mut card = card(&world.signer, minimum);
    with_mechanism(&mut card, "randomized-response(t=0.9999)");
    (card.predicate, card.attributes) = (None, Vec::new());
    card
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_say_is_counted_and_who_says_nothing_sends_nothing() {
    let world = World::start().await;
    let (signed, collector) = world.serve(people_card(&world, 3)).await;
    let directory = tempfile::tempdir().unwrap();
    // Three people who nearly tell the truth hide nobody; that is not what this is about.
    let text = policy_text(&world.signer).replace("release = 4.0", "release = \"unlimited\"");
    let text = text
        .replace("[lifetime]\nlinked = 100.0\nrelease = 20.0", "[lifetime]\nlinked = 100.0\nrelease = \"unlimited\"");
    let device = client(directory.path(), Policy::from_toml(&text).unwrap());
    let mut owners: BTreeMap<String, Attributes> = BTreeMap::new();
    for (name, said) in [("a", Some(true)), ("b", Some(false)), ("c", Some(true)), ("silent", None)] {
        let mut known = Attributes::default();
        if let Some(yes) = said {
            known.set_answer(&signed.query, Truth::from_bool(yes));
        }
        owners.insert(name.to_owned(), known);
    }
    let names: Vec<&str> = owners.keys().map(String::as_str).collect();
    let mut outcomes = device.consider(&names, std::slice::from_ref(&signed)).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.status == Status::Waiting), "{outcomes:?}");
    assert_eq!(device.upload(&owners).await.unwrap(), 3);
    device.update(&mut outcomes).unwrap();
    let of = |name: &str| outcomes.iter().find(|outcome| outcome.owner == name).unwrap().status;
    assert_eq!((of("a"), of("silent")), (Status::Answered, Status::Failed));
    let collected = collect(&signed, &collector).await.unwrap();
    // Each says the opposite once in 10 000 times: 3 in 10 000 runs fail.
    assert_eq!(collected.counts, [2, 1]);
}

#[test]
fn a_column_of_a_fleet_can_stand_for_what_people_say() {
    let owners = uptack_owner::attributes::fleet_from_csv("owner,likes:bool\na,true\nb,false\nc,\n", None).unwrap();
    let owners = owners.answering_with("likes").unwrap();
    let debug = format!("{:?}", owners[0].1);
    assert!(!debug.contains("true"), "what is said does not show: {debug}");
}
