//! The shared cards: what every program that answers must accept, and what it must refuse.

use serde_json::Value;
use uptack_dap::signed::SignedCard;
use uptack_owner::{check::Checker, policy::Policy};

/// A policy that refuses nothing that is true: whatever is refused is refused for what it is.
fn policy(key: &str) -> Policy {
    let text = format!(
        "signers = [\"{key}\"]\nattributes = []\n\
         [card]\nanswer = \"unlimited\"\nlinked = \"unlimited\"\none-aggregator = \"unlimited\"\nrelease = \"unlimited\"\n\
         answer-with-release = \"unlimited\"\ndelta = 0.5\nhonest = 1.0\nseparate-operators = true\nenrolment = false\n\
         [lifetime]\nlinked = \"unlimited\"\none-aggregator = \"unlimited\"\nrelease = \"unlimited\"\ndelta = 0.5\n"
    );
    Policy::from_toml(&text).unwrap()
}

#[test]
fn every_falsified_card_of_the_vectors_is_refused_and_no_honest_one() {
    let document: Value = serde_json::from_str(include_str!("../../../../vectors/cards.json")).unwrap();
    let checker = Checker::new(policy(document["key"].as_str().unwrap()));
    let rows = document["rows"].as_array().unwrap();
    assert!(rows.len() > 60, "{}", rows.len());
    for row in rows {
        let signed: SignedCard = serde_json::from_value(row["signed"].clone()).unwrap();
        let found = checker.check(&signed, document["now"].as_u64().unwrap());
        let must_refuse = row["refused_by"].as_array().unwrap().contains(&"owner".into());
        assert_eq!(found.is_err(), must_refuse, "{}: {:?}", row["name"], found.err());
    }
}
