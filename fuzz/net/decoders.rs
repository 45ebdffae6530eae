//! Everything that decodes bytes from the network or from a file, for the fuzz targets and for the ordinary tests.
//!
//! Each function takes any bytes. None may panic, and a message that decodes must encode to the same bytes
//! again: otherwise two parties could read one message differently.

use uptack::{
    card::{Aggregators, Card},
    plan::{Prior, Request, plan},
    privacy::{Delta, Epsilon},
};
use uptack_dap::{
    card_task,
    client::SealedReport,
    protocol::{VdafKind, fuzzing as protocol},
    signed::Signer,
    task::{self, AggregatorRole, AggregatorTask, CollectorTask, TaskParameters, TaskSet},
    token::{Token, TokenHash},
};
use uptack_server::aggregator::{self, Admission, CardDefinition, PairSecret, TaskDefinition};
use url::Url;

/// One kind of input.
pub(super) type Target = (&'static str, fn(&[u8]));

/// Every kind of input.
pub(super) const TARGETS: [Target; 5] = [
    ("messages", protocol::messages),
    ("shares", protocol::shares),
    ("ciphertexts", protocol::ciphertexts),
    ("task_files", task_files),
    ("stored", stored),
];

/// Task definitions, cards, and what they are made of.
pub(super) fn task_files(data: &[u8]) {
    let _ = task::parse_aggregator_task(data);
    let _ = serde_json::from_slice::<AggregatorTask>(data);
    let _ = serde_json::from_slice::<CollectorTask>(data);
    if let Ok(definition) = TaskDefinition::parse(data) {
        resolve_definition(&definition);
    }
    if let Ok(parameters) = serde_json::from_slice::<TaskParameters>(data) {
        validate_parameters(&parameters);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        parse_text(text);
    }
}

fn resolve_definition(definition: &TaskDefinition) {
    // Whoever sends it, an operator who has named nobody serves nothing.
    assert!(Admission::default().resolve(definition).is_err(), "admitted by nobody");
    let _ = Admission { pair_secret: Some(PairSecret::generate()), ..Admission::default() }.resolve(definition);
}

fn validate_parameters(parameters: &TaskParameters) {
    let _ = parameters.validate();
    if parameters.time_precision > 0 {
        let _ = parameters.batch(u64::MAX, u64::MAX);
    }
}

fn parse_text(text: &str) {
    if let Ok(card) = card_task::read(text) {
        let _ = card_task::parameters(&card);
        let _ = card_task::names(&card);
    }
    let _ = Token::try_from(text.to_owned());
    let _ = TokenHash::try_from(text.to_owned());
}

/// What clients store to send again, and what the leader stores to aggregate later.
pub(super) fn stored(data: &[u8]) {
    if let Ok(report) = SealedReport::from_bytes(data.to_vec()) {
        assert_eq!(report.as_bytes(), data);
    }
    aggregator::decode_stored_report(data);
}

/// Valid inputs of every target, to start from.
pub(super) fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let files = sample_files().into_iter().map(|input| ("task_files", input));
    let reports = [("stored", protocol::report())];
    protocol::samples().into_iter().chain(files).chain(reports).collect()
}

/// A card that an aggregator serves.
fn sample_card(signer: &Signer) -> Card {
    let mut request = Request::new(40, Prior::at(8));
    request.release = Some((Epsilon::new(2.0).expect("an epsilon"), Delta::new(1e-2).expect("a delta")));
    request.family = Some("normal-form".to_owned());
    let mut card = Card::new(&request, &plan(&request).expect("a possible request"));
    card.opens = "2026-11-16T08:00:00Z".parse().ok();
    card.closes = "2026-11-16T09:00:00Z".parse().ok();
    let [leader, helper] = ["leader", "helper"].map(|name| format!("https://{name}.example/"));
    card.aggregators = Some(Aggregators { leader, helper });
    card.signer = Some(signer.public().to_string());
    card
}

fn sample_files() -> Vec<Vec<u8>> {
    let signer = Signer::generate();
    let card = sample_card(&signer);
    let collector = CollectorTask::generate(card_task::parameters(&card).expect("a complete card"));
    let signed = signer.sign(&card).expect("a complete card");
    let define = |role| CardDefinition::new(role, signed.clone(), &collector);
    let set = sample_task();
    vec![
        json(&set.leader),
        json(&set.helper),
        json(&set.collector),
        json(set.parameters()),
        json(&define(AggregatorRole::Leader)),
        json(&define(AggregatorRole::Helper)),
        card.canonical().into_bytes(),
    ]
}

/// A task without a card.
fn sample_task() -> TaskSet {
    let address: Url = "http://127.0.0.1:1/".parse().expect("an address");
    let parameters = TaskParameters::new(address.clone(), address, VdafKind::histogram(3), 60, 10);
    TaskSet::generate(parameters).expect("possible parameters")
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data")
}
