//! Cards whose aggregators add noise: every new number is checked, and cards without noise stay as they were.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::*;
use crate::plan::{Over, Prior, plan};
use crate::privacy::Epsilon;

const NOISY: &str = "randomized-response(t=0.9) + laplace(scale=2.5)";

fn delta() -> Delta {
    Delta::new(1e-4).unwrap()
}

fn planned() -> Card {
    let mut request = Request::new(60, Prior { low: 5, high: 9, over: Over::Worst });
    request.release = Some((Epsilon::new(2.0).unwrap(), delta()));
    Card::new(&request, &plan(&request).unwrap())
}

/// A card of this mechanism that states what is true, after `change`.
fn card(mechanism: &str, change: impl Fn(&mut Card)) -> Card {
    let mut card = planned();
    card.mechanism = mechanism.parse().unwrap();
    card.channel = CardChannel::from(&card.mechanism.channel());
    change(&mut card);
    card.state_claims(delta(), WorkLimit::default()).unwrap();
    let checks = card.recompute(WorkLimit::default(), &Arc::default());
    let sd = &checks.iter().find(|check| check.what == "predicted.sd").unwrap().recomputed;
    card.predicted.sd = sd.parse().unwrap();
    card
}

/// Three questions of which two can be yes, four times over.
fn ballot_series(card: &mut Card) {
    let query = |name: &str| BallotQuery { name: name.to_owned(), predicate: format!("station == \"{name}\"") };
    card.ballot = Some(CardBallot { most_yes: 1, queries: ["a", "b", "c"].map(query).to_vec() });
    card.series = Some(CardSeries { times: 4, number: Some(1), starts: Timestamp::EPOCH, every: 600 });
}

fn failures(card: &Card) -> Vec<String> {
    let checks = card.recompute(WorkLimit::default(), &Arc::default());
    checks.into_iter().filter(|check| !check.holds()).map(|check| check.what).collect()
}

fn refusal(card: &Card) -> String {
    card.verify(WorkLimit::default()).unwrap_err().to_string()
}

#[test]
fn without_noise_nothing_is_said_of_it() {
    let document: Value = serde_json::from_str(&planned().canonical()).unwrap();
    assert!(document["channel"].get("noise").is_none() && document["claims"].get("one_aggregator").is_none());
    // And what one honest aggregator hides by itself is what the answers themselves hide.
    let card = card("randomized-response(t=0.9)", ballot_series);
    assert_eq!(card.claims.whole_one_aggregator(), card.claims.whole_linked());
    assert!(card.claims.whole.as_ref().unwrap().one_aggregator.is_none());
}

#[test]
fn a_noisy_card_survives_json_and_verifies() {
    let card = card(NOISY, |_| {});
    let document: Value = serde_json::from_str(&card.canonical()).unwrap();
    assert_eq!(document["channel"]["noise"], json!({"law": "discrete-laplace", "scale": "2.5"}));
    assert_eq!(document["mechanism"], NOISY);
    let again = Card::from_json(&card.canonical()).unwrap();
    assert_eq!((again.canonical(), failures(&again)), (card.canonical(), vec![]));
    card.verify(WorkLimit::default()).unwrap();
    let found = privacy::one_aggregator(&card.checked_channel().unwrap()).unwrap();
    assert_eq!(card.claims.whole_one_aggregator(), Some(found.upper()));
    assert!(card.claims.whole_one_aggregator() < card.claims.whole_linked());
}

#[test]
fn a_whole_costs_the_sum_of_its_bits_to_the_last_digit() {
    let card = card("randomized-response(t=1) + laplace(scale=3)", ballot_series);
    let whole = card.claims.whole.as_ref().unwrap();
    assert_eq!(card.claims.one_aggregator.as_ref().unwrap().to_string(), "0.333333333334");
    // Two bits can change, four times over.
    assert_eq!((whole.queries, whole.one_aggregator.as_ref().unwrap().to_string()), (8, "2.666666666672".to_owned()));
    assert_eq!((failures(&card), card.claims.linked.clone()), (vec![], Claim::NoGuarantee));
}

/// The last digit of every number that came with the noise, one up and one down.
#[test]
fn one_digit_of_every_new_field_is_found() {
    let card = card(NOISY, ballot_series);
    assert_eq!(failures(&card), [""; 0]);
    let document: Value = serde_json::from_str(&card.canonical()).unwrap();
    for (path, named) in [
        ("/channel/noise/scale", "channel.noise.scale"),
        ("/mechanism", "channel.noise.scale"),
        ("/claims/one_aggregator", "claims.one_aggregator"),
        ("/claims/whole/one_aggregator", "claims.whole.one_aggregator"),
        ("/claims/whole/queries", "claims.whole.queries"),
    ] {
        for by in [1, 9] {
            let mut wrong = document.clone();
            let value = wrong.pointer_mut(path).unwrap();
            *value = Value::from(super::recomputation::falsified(value.as_str().unwrap(), by));
            let wrong = Card::from_json(&wrong.to_string()).unwrap();
            let failed = failures(&wrong);
            assert!(failed.iter().any(|what| what == named), "{path}: {failed:?}");
        }
    }
}

#[test]
fn a_desk_that_makes_the_noise_look_better_than_it_is_is_refused() {
    let card = card(NOISY, ballot_series);
    let changed = |change: &dyn Fn(&mut Card)| {
        let mut wrong = card.clone();
        change(&mut wrong);
        (refusal(&wrong), failures(&wrong))
    };
    let below = |claim: &Option<Claim>| Some(Claim::at_most(claim.as_ref()?.epsilon().map(|epsilon| epsilon - 1e-12)));
    let (told, _) = changed(&|card| card.claims.one_aggregator = below(&card.claims.one_aggregator));
    assert!(told.contains("for one honest aggregator; it is"), "{told}");
    let (told, _) = changed(&|card| {
        let whole = card.claims.whole.as_mut().unwrap();
        whole.one_aggregator = below(&whole.one_aggregator);
    });
    assert!(told.contains("all sums together"), "{told}");
    // Another scale, or no noise, in the text or in the integers or in both.
    let (told, failed) = changed(&|card| card.channel.noise = "laplace(scale=5)".parse().ok());
    assert!(told.contains("integers") && failed == ["channel.noise.scale"], "{told} {failed:?}");
    let (told, failed) = changed(&|card| card.channel.noise = None);
    assert!(told.contains("integers") && failed == ["channel.noise"], "{told} {failed:?}");
    let drop = |card: &mut Card| {
        card.mechanism = "randomized-response(t=0.9)".parse().unwrap();
        card.channel = CardChannel::from(&card.mechanism.channel());
    };
    let (told, failed) = changed(&drop);
    assert!(told.contains("it adds no noise"), "{told}");
    assert!(failed.contains(&"claims.one_aggregator".to_owned()), "{failed:?}");
    let (told, failed) = changed(&|card| card.claims.one_aggregator = None);
    assert!(told.contains("claims nothing for one honest aggregator"), "{told}");
    assert_eq!(failed, ["claims.one_aggregator"]);
    // A claim that promises less is sound.
    let (mut weaker, none) = (card.clone(), Some(Claim::NoGuarantee));
    weaker.claims.one_aggregator.clone_from(&none);
    weaker.claims.whole.as_mut().unwrap().one_aggregator = none;
    weaker.verify(WorkLimit::default()).unwrap();
}

#[test]
fn the_trust_that_each_claim_takes_is_said_in_words() {
    let mut card = card(NOISY, |_| {});
    card.operators = Some(Operators::Two);
    let trust = card.trust().unwrap();
    assert_eq!(trust.iter().map(|trust| trust.view).collect::<Vec<_>>(), ["one_aggregator", "release", "linked"]);
    let models = serde_json::to_value(&trust).unwrap();
    assert_eq!([0, 1, 2].map(|index| &models[index]["model"]), ["OAOC", "OAMC", "OC"]);
    assert!(trust[0].holds.contains("no other owner") && trust[0].holds.contains("one of the two aggregators"));
    assert!(trust[1].holds.contains("60 owners") && trust[1].holds.contains("one aggregator's noise"));
    assert_eq!(trust[0].epsilon, card.claims.whole_one_aggregator());
}
