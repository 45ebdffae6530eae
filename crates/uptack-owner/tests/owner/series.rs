//! A series with noise: one toss for all windows, and no more contributions than the card allows, whatever happens in between.

use std::collections::BTreeMap;
use std::path::Path;

use uptack::card::{Card, CardChannel, CardSeries, Timestamp};
use uptack_dap::clock::Clock;
use uptack_dap::signed::SignedCard;
use uptack_owner::attributes::Attributes;
use uptack_owner::client::Status;
use uptack_owner::ledger::{Due, State};
use uptack_owner::policy::Policy;

use crate::world::*;

const EVERY: u64 = 600;
const TIMES: u64 = 4;

/// Window `number` of four in which two questions are asked, by this mechanism of eight counts.
fn window(world: &World, mechanism: &str, most: u64, starts: u64, number: u64) -> Card {
    let mut card = card(&world.signer, 40);
    with_ballot(&mut card, &["a", "b"], 1);
    card.ballot.as_mut().unwrap().most_yes = most;
    for query in &mut card.ballot.as_mut().unwrap().queries {
        query.predicate = format!("\"{}\" in station", query.name);
    }
    let opens = starts + (number - 1) * EVERY;
    let moment = |seconds: u64| Timestamp::from_seconds(seconds).unwrap();
    card.series = Some(CardSeries { times: TIMES, number: Some(number), starts: moment(starts), every: EVERY });
    (card.opens, card.closes) = (Some(moment(opens)), Some(moment(opens + EVERY)));
    card.mechanism = mechanism.parse().unwrap();
    card.channel = CardChannel::from(&card.mechanism);
    state_claims(&mut card);
    card
}

/// A policy for which any ε will do.
fn generous(world: &World) -> Policy {
    let text = policy_text(&world.signer).replace("4.0", "\"unlimited\"").replace("100.0", "\"unlimited\"");
    Policy::from_toml(&text.replace("20.0", "\"unlimited\"")).unwrap()
}

fn moment_in(starts: u64, number: u64) -> u64 {
    starts + (number - 1) * EVERY + 5
}

/// The bits that an owner's report of a window holds; the report is made, and not sent.
async fn bits(device: &Device, signed: &SignedCard, owners: &BTreeMap<String, Attributes>, name: &str) -> Vec<u8> {
    let outcome = device.consider(&[name], std::slice::from_ref(signed)).unwrap().remove(0);
    assert_eq!(outcome.status, Status::Waiting, "{:?}", outcome.reason);
    device.prepare(owners).await.unwrap();
    let due = Due { owner: name.to_owned(), query: signed.query.clone(), upload: 0 };
    device.ledger().report(&due).unwrap().unwrap().measurement
}

fn starts() -> u64 {
    now().next_multiple_of(EVERY)
}

fn device_at(folder: &Path, world: &World, moment: u64) -> Device {
    client_at(folder, generous(world), Clock::standing_at(moment))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_counted_as_often_as_the_card_allows_over_all_windows_and_restarts() {
    let world = World::start().await;
    let starts = starts();
    for (most, expected) in [(1, [[1, 0], [0, 0], [0, 0], [0, 0]]), (3, [[1, 1], [1, 0], [0, 0], [0, 0]])] {
        let mechanism = format!("contributions(counts=8,most={most},r=0) + laplace(scale=4)");
        let directory = tempfile::tempdir().unwrap();
        let owners = BTreeMap::from([owner("self", r#"{"station": ["a", "b"]}"#)]);
        for (number, expected) in (1..).zip(expected) {
            let (signed, _) = world.serve(window(&world, &mechanism, most, starts, number)).await;
            // Another process for every window.
            let device = device_at(directory.path(), &world, moment_in(starts, number));
            assert_eq!(bits(&device, &signed, &owners, "self").await, expected, "{most}, window {number}");
        }
    }
}

/// A missed window is missed: what was tossed for it is gone, and the other windows are what they would have been.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_is_missed_leaves_the_others_as_they_are() {
    let world = World::start().await;
    let (starts, mechanism) = (starts(), "contributions(counts=8,most=2,r=0) + laplace(scale=4)");
    let directory = tempfile::tempdir().unwrap();
    let owners = BTreeMap::from([owner("self", r#"{"station": ["b"]}"#)]);
    for (number, expected) in [(1, [0, 1]), (3, [0, 1]), (4, [0, 0])] {
        let (signed, _) = world.serve(window(&world, mechanism, 2, starts, number)).await;
        let device = device_at(directory.path(), &world, moment_in(starts, number));
        assert_eq!(bits(&device, &signed, &owners, "self").await, expected, "window {number}");
    }
}

/// The coins are those of the first window to the end, and then they are deleted. They are tossed before the truth is known, so
/// they do not change with it.
#[tokio::test(flavor = "multi_thread")]
async fn coins_are_tossed_once_for_a_series_and_deleted_when_it_ends() {
    let world = World::start().await;
    let (starts, mechanism) = (starts(), "contributions(counts=8,most=2,r=0.11) + laplace(scale=4)");
    let directory = tempfile::tempdir().unwrap();
    let mut tossed = None;
    for number in 1..=TIMES {
        let (signed, _) = world.serve(window(&world, mechanism, 2, starts, number)).await;
        let charge = uptack_dap::card_task::names(&uptack_dap::card_task::read(&signed.card).unwrap()).unwrap().charge;
        let truths = if number % 2 == 0 { r#"{"station": ["a", "b"]}"# } else { r#"{"station": []}"# };
        let owners = BTreeMap::from([owner("self", truths)]);
        let device = device_at(directory.path(), &world, moment_in(starts, number));
        assert_eq!(bits(&device, &signed, &owners, "self").await.len(), 2, "every report has the same size");
        let kept = device.ledger().toss("self", &charge.to_string()).unwrap().unwrap();
        assert_eq!((kept.used, kept.ends), (if number > 1 { 2 } else { 0 }, starts + TIMES * EVERY));
        assert_eq!(tossed.get_or_insert(kept.coins.clone()), &kept.coins, "window {number}");
        // As if the process were killed and started again: the report is the stored one, and nothing is tossed.
        assert_eq!(device.prepare(&owners).await.unwrap(), 0);
        drop(device);
        let late = device_at(directory.path(), &world, starts + TIMES * EVERY);
        if number == TIMES {
            late.ledger().expire(starts + TIMES * EVERY).unwrap();
            let left = late.ledger().toss("self", &charge.to_string()).unwrap().unwrap();
            assert_eq!((left.coins, left.used), (Vec::new(), 0));
        }
    }
}

/// A clock that is wrong for a moment makes a series seem to have ended. Its coins are deleted then, and are not tossed again.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_beyond_a_series_and_back_does_not_toss_again() {
    let world = World::start().await;
    let (starts, mechanism) = (starts(), "contributions(counts=8,most=1,r=0) + laplace(scale=4)");
    let directory = tempfile::tempdir().unwrap();
    let owners = BTreeMap::from([owner("self", r#"{"station": ["a"]}"#)]);
    let (first, _) = world.serve(window(&world, mechanism, 1, starts, 1)).await;
    let device = device_at(directory.path(), &world, moment_in(starts, 1));
    assert_eq!(bits(&device, &first, &owners, "self").await, [1, 0]);
    device.ledger().expire(starts + TIMES * EVERY).unwrap();
    drop(device);
    let (second, _) = world.serve(window(&world, mechanism, 1, starts, 2)).await;
    let device = device_at(directory.path(), &world, moment_in(starts, 2));
    device.consider(&["self"], std::slice::from_ref(&second)).unwrap();
    assert_eq!(device.prepare(&owners).await.unwrap(), 0);
    assert_eq!(device.ledger().state("self", &second.query).unwrap(), Some(State::Lost));
}

/// A desk cannot get a second toss, or more contributions, for one charge: any other number of windows, questions or contributions is
/// another charge, and what does not fit together is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_desk_that_changes_a_series_under_one_charge_is_refused_or_charges_anew() {
    let world = World::start().await;
    let (starts, mechanism) = (starts(), "contributions(counts=8,most=1,r=0.01) + laplace(scale=4)");
    let directory = tempfile::tempdir().unwrap();
    let device = device_at(directory.path(), &world, moment_in(starts, 1));
    let ask = |card: &Card| {
        let signed = world.signer.sign(card).unwrap();
        device.consider(&["self"], &[signed]).unwrap().remove(0)
    };
    let honest = window(&world, mechanism, 1, starts, 1);
    assert_eq!(ask(&honest).status, Status::Waiting);
    let changed = |change: &dyn Fn(&mut Card)| {
        let mut card = honest.clone();
        change(&mut card);
        ask(&card).reason.unwrap_or_default()
    };
    let more_windows = changed(&|card| card.series.as_mut().unwrap().times = 5);
    assert!(more_windows.contains("has 8 counts, and the card asks for 10"), "{more_windows}");
    let more_yes = changed(&|card| card.ballot.as_mut().unwrap().most_yes = 2);
    assert!(more_yes.contains("allows 2 yes of one owner"), "{more_yes}");
    let more_contributions = changed(&|card| {
        card.mechanism = "contributions(counts=8,most=2,r=0.01) + laplace(scale=4)".parse().unwrap();
        card.ballot.as_mut().unwrap().most_yes = 2;
    });
    assert!(more_contributions.contains("claims an epsilon of"), "{more_contributions}");
    // A card that would keep the device busy with tossing.
    let busy = changed(&|card| {
        card.series.as_mut().unwrap().times = 4000;
        card.ballot.as_mut().unwrap().most_yes = 5000;
        card.mechanism = "contributions(counts=8000,most=5000,r=0.0001) + laplace(scale=4)".parse().unwrap();
    });
    assert!(busy.contains("asks for 5000 contributions of one owner"), "{busy}");
    // A longer series that states what is true costs once more.
    let mut longer = window(&world, "contributions(counts=8,most=2,r=0.01) + laplace(scale=4)", 2, starts, 1);
    state_claims(&mut longer);
    assert_eq!(ask(&longer).status, Status::Waiting);
    assert_eq!(device.ledger().entries().unwrap().len(), 2);
}
