//! Whoever runs a desk looks for what would let it cheat: it is not there.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::path::Path;
use uptack_dap::{card_task, clock::Clock, desk_client::Schedule, signed::Signer, task::AggregatorRole};
use uptack_server::desk::Desk;

use crate::desk::{
    elsewhere::Elsewhere,
    support::{START, analyst, card},
};

/// With the verification key it could make reports pass that are none, with the leader's token it could ask the helper
/// for shares: neither is ever in its folder, its log of changes included.
#[tokio::test]
async fn a_desk_never_holds_the_keys_of_its_aggregators() {
    let elsewhere = Elsewhere::new(Clock::standing_at(START));
    let data = tempfile::tempdir().unwrap();
    let key = Signer::load_or_create(&data.path().join("signing.key")).unwrap().public();
    let _helper = elsewhere.start(AggregatorRole::Helper, key).await;
    let _leader = elsewhere.start(AggregatorRole::Leader, key).await;
    let desk = Desk::start(elsewhere.config(data.path())).await.unwrap();
    let opened = analyst(&desk).open(&card(), Schedule::Once { seconds: 600 }).await.unwrap();
    let task = card_task::task_id(&opened.card.canonical());
    let bytes = every_byte_below(data.path());
    // What is there is found; what is searched for is not.
    assert!(holds(&bytes, task.to_string().as_bytes()));
    let verify_key = elsewhere.pair.verify_key(&task);
    let token = elsewhere.pair.aggregator_token(&task);
    for secret in [&verify_key[..], URL_SAFE_NO_PAD.encode(verify_key).as_bytes(), token.as_str().as_bytes()] {
        assert!(!holds(&bytes, secret));
    }
    assert!(!holds(&bytes, b"verify_key"));
}

fn every_byte_below(folder: &Path) -> Vec<u8> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { every_byte_below(&path) } else { std::fs::read(path).unwrap() })
        .collect()
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
