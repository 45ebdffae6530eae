//! Entry points for fuzzing: everything that decodes what came from the network or from a file.
//!
//! Each takes any bytes. None may panic, and where a message decodes, it encodes to the same bytes
//! again: otherwise two parties could read one message differently. Not part of the interface.

use uptack::{
    card::{Aggregators, Card},
    plan::{Prior, Request, plan},
    privacy::{Delta, Epsilon},
};
use uptack_dap::{
    card_task,
    client::SealedReport,
    protocol::{
        self, AggregateShare, AggregateShareReq, AggregationJobContinueReq, AggregationJobInitializeReq,
        AggregationJobResp, Collection, CollectionReq, Decode, Encode, HpkeConfigList, Measurement,
        PartialBatchSelector, PingPongMessage, PrepareInit, PrepareResp, PrepareStepResult, Report, ReportId,
        ReportMetadata, ReportShare, Role, Time, TimeInterval, Vdaf, VdafKind, encode,
    },
    signed::Signer,
    task::{self, AggregatorRole, AggregatorTask, CollectorTask, TaskParameters, TaskSet},
    token::{Token, TokenHash},
};
use url::Url;

use crate::{
    aggregator,
    aggregator::{Admission, CardDefinition, Definition, PairSecret},
};

/// One kind of input.
pub type Target = (&'static str, fn(&[u8]));

/// Every kind of input.
pub const TARGETS: [Target; 5] = [
    ("messages", messages),
    ("shares", shares),
    ("ciphertexts", ciphertexts),
    ("task_files", task_files),
    ("stored", stored),
];

/// The first byte chooses the kind of message; the rest is the message.
pub fn messages(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else {
        return;
    };
    match kind % 10 {
        0 => round_trip::<Report>(bytes),
        1 => round_trip::<HpkeConfigList>(bytes),
        2 => round_trip::<AggregationJobInitializeReq<TimeInterval>>(bytes),
        3 => round_trip::<AggregationJobResp>(bytes),
        4 => round_trip::<AggregationJobContinueReq>(bytes),
        5 => round_trip::<AggregateShareReq<TimeInterval>>(bytes),
        6 => round_trip::<AggregateShare>(bytes),
        7 => round_trip::<CollectionReq<TimeInterval>>(bytes),
        8 => round_trip::<Collection<TimeInterval>>(bytes),
        _ => round_trip::<PingPongMessage>(bytes),
    }
}

/// Public share, input share and message of a report, cut at places that the first bytes choose.
pub fn shares(data: &[u8]) {
    let Some(([first, second], bytes)) = data.split_first_chunk::<2>() else {
        return;
    };
    let (public, rest) = bytes.split_at(usize::from(*first).min(bytes.len()));
    let (input, message) = rest.split_at((4 * usize::from(*second)).min(rest.len()));
    prepare(public, input, message);
    let _ = three_cells().sum_from_bytes(bytes);
}

/// What the helper and the leader do with a report and the other's message.
fn prepare(public: &[u8], input: &[u8], message: &[u8]) {
    let (vdaf, id) = (three_cells(), ReportId::from([1; 16]));
    let initialize = PingPongMessage::Initialize { prep_share: message.to_vec() };
    let _ = vdaf.helper_finish(&VERIFY_KEY, &id, public, input, &initialize);
    if let Some((state, _)) = vdaf.leader_start(&VERIFY_KEY, &id, public, input) {
        let finish = PingPongMessage::Finish { prep_msg: message.to_vec() };
        let _ = vdaf.leader_finish(state, &finish);
    }
}

/// The key with which both aggregators check reports.
const VERIFY_KEY: [u8; 16] = [2; 16];

fn three_cells() -> Vdaf {
    Vdaf::new(&VdafKind::histogram(3)).expect("three cells are possible")
}

/// A ciphertext that claims to be an input share for us.
pub fn ciphertexts(data: &[u8]) {
    let Ok(ciphertext) = protocol::HpkeCiphertext::get_decoded(data) else {
        return;
    };
    let keypair = protocol::generate_keypair(1);
    let metadata = ReportMetadata::new(ReportId::from([1; 16]), Time::from_seconds_since_epoch(1));
    let task = protocol::TaskId::from([3; 32]);
    let opened = protocol::open_input_share(&keypair, Role::Helper, &task, &metadata, &[], &ciphertext);
    assert!(opened.is_err(), "opened under a key that did not exist");
}

/// Task definitions, cards, and what they are made of.
pub fn task_files(data: &[u8]) {
    let _ = task::parse_aggregator_task(data);
    let _ = serde_json::from_slice::<AggregatorTask>(data);
    let _ = serde_json::from_slice::<CollectorTask>(data);
    if let Ok(definition) = Definition::parse(data) {
        resolve_definition(&definition);
    }
    if let Ok(parameters) = serde_json::from_slice::<TaskParameters>(data) {
        validate_parameters(&parameters);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        parse_text(text);
    }
}

fn resolve_definition(definition: &Definition) {
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
pub fn stored(data: &[u8]) {
    if let Ok(report) = SealedReport::from_bytes(data.to_vec()) {
        assert_eq!(report.as_bytes(), data);
    }
    aggregator::decode_stored_report(data);
}

/// Valid inputs of every target, to start from.
pub fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let sample = Sample::new();
    let messages = sample.messages().into_iter().map(|input| ("messages", input));
    let shares = sample.shares().into_iter().map(|input| ("shares", input));
    let files = sample_files().into_iter().map(|input| ("task_files", input));
    let others = [("ciphertexts", encode(&sample.sealed)), ("stored", encode(&sample.report))];
    messages.chain(shares).chain(files).chain(others).collect()
}

/// One honest report and all that is said about it.
struct Sample {
    public: Vec<u8>,
    inputs: [Vec<u8>; 2],
    sealed: protocol::HpkeCiphertext,
    report: Report,
    first: PingPongMessage,
    second: PingPongMessage,
}

impl Sample {
    fn new() -> Self {
        let (vdaf, id) = (three_cells(), ReportId::from([1; 16]));
        let (public, inputs) = vdaf.shard(&Measurement::Cell(1), &id).expect("there is a cell 1");
        let metadata = ReportMetadata::new(id, Time::from_seconds_since_epoch(1_000));
        let [leader, sealed] = seal(&metadata, &public, &inputs);
        let report = Report::new(metadata, public.clone(), leader, sealed.clone());
        let (_, first) = vdaf.leader_start(&VERIFY_KEY, &id, &public, &inputs[0]).expect("an honest report");
        let (_, second) = vdaf.helper_finish(&VERIFY_KEY, &id, &public, &inputs[1], &first).expect("an honest report");
        Self { public, inputs, sealed, report, first, second }
    }

    /// Each with the number that chooses it.
    fn messages(&self) -> Vec<Vec<u8>> {
        let keys = HpkeConfigList::new(vec![protocol::generate_keypair(1).config().clone()]);
        let messages = [
            (0, encode(&self.report)),
            (1, encode(&keys)),
            (2, encode(&self.job())),
            (3, encode(&self.job_answer())),
            (5, encode(&share_request())),
            (6, encode(&AggregateShare::new(self.sealed.clone()))),
            (7, encode(&collection_request())),
            (8, encode(&self.collection())),
            (9, encode(&self.first)),
        ];
        messages.into_iter().map(|(kind, bytes)| [vec![kind], bytes].concat()).collect()
    }

    fn job(&self) -> AggregationJobInitializeReq<TimeInterval> {
        let metadata = self.report.metadata().clone();
        let share = ReportShare::new(metadata, self.public.clone(), self.sealed.clone());
        let init = PrepareInit::new(share, self.first.clone());
        AggregationJobInitializeReq::new(Vec::new(), PartialBatchSelector::new_time_interval(), vec![init])
    }

    fn job_answer(&self) -> AggregationJobResp {
        let result = PrepareStepResult::Continue { message: self.second.clone() };
        AggregationJobResp::new(vec![PrepareResp::new(*self.report.metadata().id(), result)])
    }

    fn collection(&self) -> Collection<TimeInterval> {
        let selector = PartialBatchSelector::new_time_interval();
        Collection::new(selector, 1, interval(), self.sealed.clone(), self.sealed.clone())
    }

    /// What the helper and what the leader prepares, with the places to cut at.
    fn shares(&self) -> Vec<Vec<u8>> {
        vec![self.cut_share(&self.inputs[1], &self.first), self.cut_share(&self.inputs[0], &self.second)]
    }

    fn cut_share(&self, share: &[u8], message: &PingPongMessage) -> Vec<u8> {
        let places = [self.public.len() as u8, share.len().div_ceil(4) as u8];
        let (PingPongMessage::Initialize { prep_share: message }
        | PingPongMessage::Finish { prep_msg: message }
        | PingPongMessage::Continue { prep_msg: message, .. }) = message;
        [&places[..], &self.public, share, message].concat()
    }
}

/// Seals the input shares of a report for the leader and for the helper.
fn seal(metadata: &ReportMetadata, public: &[u8], [leader, helper]: &[Vec<u8>; 2]) -> [protocol::HpkeCiphertext; 2] {
    let (keypair, task) = (protocol::generate_keypair(1), protocol::TaskId::from([3; 32]));
    [(Role::Leader, leader), (Role::Helper, helper)].map(|(role, share)| {
        protocol::seal_input_share(keypair.config(), role, &task, metadata, public, share.clone())
            .expect("a fresh key works")
    })
}

fn interval() -> protocol::Interval {
    let start = Time::from_seconds_since_epoch(0);
    protocol::Interval::new(start, protocol::Duration::from_seconds(2_000)).expect("a short interval")
}

fn share_request() -> AggregateShareReq<TimeInterval> {
    let selector = protocol::BatchSelector::new_time_interval(interval());
    AggregateShareReq::new(selector, Vec::new(), 1, protocol::ReportIdChecksum::default())
}

fn collection_request() -> CollectionReq<TimeInterval> {
    CollectionReq::new(protocol::Query::new_time_interval(interval()), Vec::new())
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

fn round_trip<T: Decode + Encode>(bytes: &[u8]) {
    if let Ok(message) = T::get_decoded(bytes) {
        assert_eq!(encode(&message), bytes, "decoded and encoded differently");
    }
}
