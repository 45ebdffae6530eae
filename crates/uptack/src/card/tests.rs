//! Cards as a whole: read, priced, verified and refused.

mod noise;

use super::*;
use crate::plan::{Prior, plan};
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
    let views = card.verify(WorkLimit::default()).unwrap();
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
    future.version = 2;
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
