//! Cards as a whole: read, priced, verified and refused.

use std::sync::Arc;

use super::*;
use crate::plan::{Asked, Over, Prior, plan};
use crate::privacy::Epsilon;
use serde_json::{Value, json};

fn card() -> Card {
    let mut request = Request::new(2000, Prior::at(20));
    request.release = Some((Epsilon::new(1.0).unwrap(), Delta::new(1e-6).unwrap()));
    Card::new(&request, &plan(&request).unwrap())
}

#[test]
fn a_card_survives_json_and_verifies() {
    let card = card();
    let again = Card::from_json(&card.canonical()).unwrap();
    assert_eq!(again, card);
    assert_eq!(again.canonical(), card.canonical());
    let CardViews::YesNo(views) = card.verify(WorkLimit::default()).unwrap() else { panic!("a yes/no question") };
    assert!(views.release.value().unwrap().upper() <= 1.0);
}

#[test]
fn one_digit_too_good_is_refused() {
    let card = card();
    let mut better = card.clone();
    better.claims.release = Claim::at_most(card.claims.release.epsilon().map(|epsilon| epsilon - 1e-6));
    assert!(better.verify(WorkLimit::default()).unwrap_err().to_string().contains("for the release"));
    let mut linked = card.clone();
    linked.claims.linked = "0.1".parse().unwrap();
    assert!(linked.verify(WorkLimit::default()).unwrap_err().to_string().contains("for the linked answers"));
    let mut fewer = card.clone();
    fewer.minimum_batch = 1500;
    assert!(fewer.verify(WorkLimit::default()).is_err());
    let mut weaker = card;
    weaker.claims.release = "2".parse().unwrap();
    assert!(weaker.verify(WorkLimit::default()).is_ok());
}

/// A field that cannot be read is refused by its name, with what was expected and what was found.
#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let mut document: Value = serde_json::from_str(&card().canonical()).unwrap();
    document["series"] = json!({"times": "3", "number": "2", "starts": "2026-11-15T08:00:00Z", "every": "600"});
    document["ballot"] = json!({"most_yes": "1", "queries": []});
    assert!(Card::from_json(&document.to_string()).is_ok());
    for (path, bad) in [
        ("owners", "99999999999999999999"),
        ("minimum_batch", "-1"),
        ("version", "one"),
        ("channel.bits", "64.0"),
        ("predicted.yes_low", ""),
        ("predicted.sd", "inf"),
        ("claims.delta", "0"),
        ("claims.delta", "often"),
        ("claims.release", "NaN"),
        ("claims.linked", "1e400x"),
        ("claims.answers[0]", "-1"),
        ("ballot.most_yes", "02"),
        ("series.times", "three"),
        ("series.number", "01"),
        ("series.every", "0600"),
        ("series.starts", "2026-02-29T00:00:00Z"),
        ("opens", "yesterday"),
    ] {
        let mut wrong = document.clone();
        let place = format!("/{}", path.replace('.', "/").replace("[0]", "/0"));
        match wrong.pointer_mut(&place) {
            Some(value) => *value = json!(bad),
            None => wrong[path] = json!(bad),
        }
        let error = Card::from_json(&wrong.to_string()).unwrap_err();
        let told = error.to_string();
        assert!(error.is_syntax() && told.contains(&format!(" {path}: ")) && told.contains(bad), "{told}");
    }
}

#[test]
fn changed_integers_and_unknown_fields_are_refused() {
    let card = card();
    let mut other = card.clone();
    other.mechanism = "randomized-response(t=0.9)".parse().unwrap();
    assert!(other.verify(WorkLimit::default()).unwrap_err().is_card());
    let extra = card.canonical().replacen('{', "{\"also\":\"this\",", 1);
    assert!(Card::from_json(&extra).unwrap_err().is_syntax());
    let mut future = card;
    future.version = 3;
    assert!(future.verify(WorkLimit::default()).is_err());
}

#[test]
fn a_ballot_and_a_series_are_priced_as_a_whole() {
    let mut ballot = card();
    let query = |name: &str| BallotQuery { name: name.to_owned(), predicate: format!("station == \"{name}\"") };
    ballot.ballot = Some(CardBallot { most_yes: 1, queries: ["a", "b", "c"].map(query).to_vec() });
    assert!(ballot.verify(WorkLimit::default()).unwrap_err().to_string().contains("for the whole"));
    ballot.state_claims(Delta::new(1e-6).unwrap(), WorkLimit::default()).unwrap();
    let whole = ballot.claims.whole.clone().unwrap();
    assert_eq!(whole.queries, 2);
    let (one, two) = (ballot.claims.release.epsilon().unwrap(), whole.release.epsilon().unwrap());
    assert!(one < two && two < 2.0 * one + 0.1, "{one} {two}");
    ballot.verify(WorkLimit::default()).unwrap();
    let mut better = ballot.clone();
    better.claims.whole.as_mut().unwrap().release = Claim::at_most(Some(two - 1e-6));
    assert!(better.verify(WorkLimit::default()).unwrap_err().to_string().contains("all releases together"));
    let mut series = ballot.clone();
    series.series = Some(
        serde_json::from_value(json!({
            "times": "3", "number": "2", "starts": "2026-11-15T08:00:00Z", "every": "600"
        }))
        .unwrap(),
    );
    assert!(series.verify(WorkLimit::default()).is_err());
    series.state_claims(Delta::new(1e-6).unwrap(), WorkLimit::default()).unwrap();
    assert_eq!(series.claims.whole.as_ref().unwrap().queries, 6);
    series.verify(WorkLimit::default()).unwrap();
    let mut next = series.clone();
    next.series.as_mut().unwrap().number = Some(3);
    next.opens = Some("2026-11-15T08:20:00Z".parse().unwrap());
    assert_eq!(next.without_number(), series.without_number());
    next.series.as_mut().unwrap().every = 601;
    assert_ne!(next.without_number(), series.without_number());
    let mut twice = ballot;
    twice.ballot.as_mut().unwrap().queries[2].name = "a".to_owned();
    assert!(twice.verify(WorkLimit::default()).unwrap_err().to_string().contains("called `a`"));
}

#[test]
fn a_card_of_a_series_has_the_window_of_its_number() {
    let at = |number: &str, starts: &str, every: &str, opens: &str, closes: &str| {
        let mut card = card();
        card.series = Some(
            serde_json::from_value(json!({
                "times": "3", "number": number, "starts": starts, "every": every
            }))
            .unwrap(),
        );
        card.opens = Some(opens.parse().unwrap());
        card.closes = Some(closes.parse().unwrap());
        card.window().map_err(|error| error.to_string())
    };
    let (starts, epoch, last) = ("2026-11-15T08:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z");
    let second = ("2026-11-15T08:10:00Z", "2026-11-15T08:20:00Z");
    assert!(at("2", starts, "600", second.0, second.1).is_ok());
    for (number, starts, every, opens, closes) in [
        ("1", starts, "600", second.0, second.1),
        ("0", starts, "600", second.0, second.1),
        ("4", starts, "600", "2026-11-15T08:30:00Z", "2026-11-15T08:40:00Z"),
        ("2", starts, "600", second.0, "2026-11-15T08:20:01Z"),
        ("2", starts, "0", second.0, second.1),
        // However long the first window from the epoch is said to be, only one length is the card's.
        ("1", epoch, "600", epoch, second.1),
        ("3", last, "18446744073709551615", second.0, second.1),
        ("2", last, "18446744073709551615", second.0, second.1),
    ] {
        let told = at(number, starts, every, opens, closes).unwrap_err();
        assert!(told.contains("its number in the series"), "{told}");
    }
}

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
fn noisy_card(mechanism: &str, change: impl Fn(&mut Card)) -> Card {
    let mut card = planned();
    card.mechanism = mechanism.parse().unwrap();
    card.channel = CardChannel::from(&card.mechanism);
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
    let starts = "2026-11-15T08:00:00Z".parse().unwrap();
    card.series = Some(CardSeries { times: 4, number: Some(1), starts, every: 600 });
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
    let card = noisy_card("randomized-response(t=0.9)", ballot_series);
    assert_eq!(card.claims.whole_one_aggregator(), card.claims.whole_linked());
    assert!(card.claims.whole.as_ref().unwrap().one_aggregator.is_none());
}

#[test]
fn a_noisy_card_survives_json_and_verifies() {
    let card = noisy_card(NOISY, |_| {});
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
    let card = noisy_card("randomized-response(t=1) + laplace(scale=3)", ballot_series);
    let whole = card.claims.whole.as_ref().unwrap();
    assert_eq!(card.claims.one_aggregator.as_ref().unwrap().to_string(), "0.333333333334");
    // Two bits can change, four times over.
    assert_eq!((whole.queries, whole.one_aggregator.as_ref().unwrap().to_string()), (8, "2.666666666672".to_owned()));
    assert_eq!((failures(&card), card.claims.linked.clone()), (vec![], Claim::NoGuarantee));
}

/// The last digit of every number that came with the noise, one up and one down.
#[test]
fn one_digit_of_every_new_field_is_found() {
    let card = noisy_card(NOISY, ballot_series);
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
    let card = noisy_card(NOISY, ballot_series);
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
        card.channel = CardChannel::from(&card.mechanism);
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
    let mut card = noisy_card(NOISY, |_| {});
    card.operators = Some(Operators::Two);
    let trust = card.trust().unwrap();
    assert_eq!(trust.iter().map(|trust| trust.view).collect::<Vec<_>>(), ["one_aggregator", "release", "linked"]);
    let models = serde_json::to_value(&trust).unwrap();
    assert_eq!([0, 1, 2].map(|index| &models[index]["model"]), ["OAOC", "OAMC", "OC"]);
    assert!(trust[0].holds.contains("no other owner") && trust[0].holds.contains("one of the two aggregators"));
    assert!(trust[1].holds.contains("60 owners") && trust[1].holds.contains("one aggregator's noise"));
    assert_eq!(trust[0].epsilon, card.claims.whole_one_aggregator());
}

/// A ballot of three questions in four windows, of which an owner answers two with yes.
fn contributions_card() -> Card {
    let mut request = Request::one_aggregator(2000, Prior::at(20), Epsilon::new(1.0).unwrap()).unwrap();
    request.asked = Asked::Counts { counts: 12, most: 2 };
    let draft = |mut card: Card| {
        ballot_series(&mut card);
        card.ballot.as_mut().unwrap().most_yes = 2;
        card
    };
    plan_whole(&request, 16, draft, &Progress::default()).unwrap()
}

#[test]
fn a_ballot_in_a_series_is_planned_and_claimed_together() {
    let card = contributions_card();
    assert_eq!(failures(&card), [""; 0]);
    let AnyMechanism::Contributions(contributions) = &card.mechanism else { panic!("{}", card.mechanism) };
    assert_eq!((contributions.counts(), contributions.most()), (12, 2));
    let again = Card::from_json(&card.canonical()).unwrap();
    assert_eq!((again.canonical(), &again), (card.canonical(), &card));
    assert!(matches!(card.verify(WorkLimit::default()), Ok(CardViews::Contributions)));
    let claims = &card.claims;
    assert!(claims.whole.is_none() && claims.answers.is_empty() && claims.answers_with_release.is_empty());
    let stated = privacy::contributions::one_aggregator(contributions).map(|claim| claim.upper());
    assert_eq!((claims.whole_one_aggregator(), card.counted_queries().unwrap()), (stated, 1));
    assert!(stated.unwrap() <= 1.0 && claims.whole_linked().unwrap() <= 8.0);
    // The windows of a series may have different owners, so that the release counts on none of them.
    assert_eq!(claims.release, claims.one_aggregator.clone().unwrap());
    // One report, with or without the counts, reveals no more than all reports of an owner.
    assert_eq!(claims.worst_answer(), claims.whole_linked());
    assert_eq!(claims.worst_answer_with_release(), claims.whole_linked());
}

#[test]
fn one_digit_of_every_field_of_contributions_is_found() {
    let card = contributions_card();
    let document: Value = serde_json::from_str(&card.canonical()).unwrap();
    for (path, named) in [
        ("/channel/bits", "channel.bits"),
        ("/channel/told", "channel.told"),
        ("/channel/other", "channel.other"),
        ("/channel/silent", "channel.silent"),
        ("/channel/noise/scale", "channel.noise.scale"),
        ("/claims/linked", "claims.linked"),
        ("/claims/one_aggregator", "claims.one_aggregator"),
        ("/claims/release", "claims.release"),
        ("/predicted/sd", "predicted.sd"),
        ("/ballot/most_yes", "mechanism"),
        ("/series/times", "mechanism"),
    ] {
        for by in [1, 9] {
            let mut wrong = document.clone();
            let value = wrong.pointer_mut(path).unwrap();
            *value = Value::from(super::recomputation::falsified(value.as_str().unwrap(), by));
            let Ok(wrong) = Card::from_json(&wrong.to_string()) else { continue };
            let failed = failures(&wrong);
            assert!(failed.iter().any(|what| what == named), "{path}: {failed:?}");
        }
    }
}

#[test]
fn a_desk_that_asks_for_more_than_the_mechanism_counts_is_refused() {
    let card = contributions_card();
    let refused = |change: &dyn Fn(&mut Card), words: &str| {
        let mut wrong = card.clone();
        change(&mut wrong);
        wrong.channel = CardChannel::from(&wrong.mechanism);
        let told = refusal(&wrong);
        assert!(told.contains(words), "{told}");
    };
    refused(&|card| card.series.as_mut().unwrap().times = 5, "has 12 counts, and the card asks for 15");
    refused(&|card| card.series.as_mut().unwrap().times = u64::MAX, "more than can be counted");
    refused(&|card| drop(card.ballot.as_mut().unwrap().queries.pop()), "asks for 8");
    refused(&|card| card.ballot.as_mut().unwrap().most_yes = 3, "allows 3 yes of one owner");
    let mechanism = |text: &'static str| move |card: &mut Card| card.mechanism = text.parse().unwrap();
    refused(&mechanism("contributions(counts=12,most=2,r=0.01)"), "with noise");
    refused(&mechanism("choice(k=12,r=0.01) + laplace(scale=2)"), "to several counts");
    refused(&mechanism("contributions(counts=12,most=2,r=0) + laplace(scale=4)"), "for the linked answers; it is none");
}

#[test]
fn a_card_of_another_version_is_refused_with_what_to_do() {
    let document = |version: &str| {
        let mut document: Value = serde_json::from_str(&card().canonical()).unwrap();
        document["version"] = version.into();
        document
    };
    let refused = |document: Value| {
        let card = Card::from_json(&document.to_string());
        let error = card.and_then(|card| card.verify(WorkLimit::default()).map(drop)).unwrap_err();
        (error.to_string(), error.hint().unwrap_or_default().to_owned())
    };
    let (told, hint) = refused(document("1"));
    assert_eq!(told, "the card has version 1; this program reads version 2");
    assert!(hint.starts_with("plan the question again"), "{hint}");
    // Also where other fields of that version cannot be read.
    let mut other = document("3");
    other["options"] = json!(["car", "bus"]);
    let (told, hint) = refused(other);
    assert_eq!(
        (told.as_str(), hint.as_str()),
        ("the card has version 3; this program reads version 2", "update this program")
    );
}
