//! Entry points for fuzzing: everything that decodes a message of the protocol.
//!
//! Each takes any bytes and may not panic. Where a message decodes, it encodes to the same bytes again: otherwise two parties
//! could read one message differently. Not part of the interface.

use janus_messages::{
    AggregateShare, AggregateShareReq, AggregationJobContinueReq, AggregationJobInitializeReq, AggregationJobResp,
    BatchSelector, Collection, CollectionReq, HpkeCiphertext, HpkeConfigList, PartialBatchSelector, PrepareInit,
    PrepareResp, PrepareStepResult, Query, Report, ReportIdChecksum, ReportShare, query_type::TimeInterval,
};
use prio::{
    codec::{Decode, Encode},
    topology::ping_pong::PingPongMessage,
};

use super::*;

/// The first byte chooses the kind of message; the rest is the message.
pub fn messages(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else {
        return;
    };
    read_as_every_party(bytes);
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

/// What each party makes of a body, whatever it is.
fn read_as_every_party(bytes: &[u8]) {
    let _ = UploadedReport::from_bytes(bytes).map(|report| report.header());
    let _ = keys_from_bytes(bytes);
    let _ = RequestedAggregation::from_bytes(bytes).map(|job| job.reports().count());
    let _ = HelperAnswer::from_bytes(bytes).map(|answer| answer.results().count());
    let request = AggregateShareRequest::from_bytes(bytes);
    assert!(request.is_none_or(|request| request.to_bytes() == bytes), "decoded and encoded differently");
    let request = CollectionRequest::from_bytes(bytes);
    assert!(request.is_none_or(|request| request.to_bytes() == bytes), "decoded and encoded differently");
    let answer = CollectionAnswer::from_bytes(bytes);
    assert!(answer.is_none_or(|answer| answer.into_bytes() == bytes), "decoded and encoded differently");
    let _ = AggregateShareAnswer::from_bytes(bytes);
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
    let Ok(ciphertext) = HpkeCiphertext::get_decoded(data) else {
        return;
    };
    let keypair = generate_keypair(1);
    let header = ReportHeader { id: ReportId::from([1; 16]), time: 1 };
    let task = TaskId::from([3; 32]);
    let opened = hpke::open_input(&keypair, AggregatorRole::Helper, &task, &header, &[], &ciphertext);
    assert!(opened.is_err(), "opened under a key that did not exist");
}

/// Valid inputs of every target, to start from.
pub fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let sample = SampleReport::new();
    let messages = sample.messages().into_iter().map(|input| ("messages", input));
    let shares = sample.shares().into_iter().map(|input| ("shares", input));
    messages.chain(shares).chain([("ciphertexts", encode(&sample.sealed))]).collect()
}

/// A valid report.
pub fn report() -> Vec<u8> {
    encode(&SampleReport::new().report)
}

/// One honest report and all that is said about it.
struct SampleReport {
    public: Vec<u8>,
    inputs: [Vec<u8>; 2],
    sealed: HpkeCiphertext,
    report: Report,
    first: PingPongMessage,
    second: PingPongMessage,
}

impl SampleReport {
    fn new() -> Self {
        let (vdaf, id) = (three_cells(), ReportId::from([1; 16]));
        let (public, inputs) = vdaf.shard(&Measurement::Cell(1), &id).expect("there is a cell 1");
        let header = ReportHeader { id, time: 1_000 };
        let [leader, sealed] = seal(&header, &public, &inputs);
        let report = Report::new(header.metadata(), public.clone(), leader, sealed.clone());
        let (_, first) = vdaf.leader_start(&VERIFY_KEY, &id, &public, &inputs[0]).expect("an honest report");
        let (_, second) = vdaf.helper_finish(&VERIFY_KEY, &id, &public, &inputs[1], &first).expect("an honest report");
        Self { public, inputs, sealed, report, first, second }
    }

    /// Each with the number that chooses it.
    fn messages(&self) -> Vec<Vec<u8>> {
        let keys = HpkeConfigList::new(vec![generate_keypair(1).config().clone()]);
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
fn seal(header: &ReportHeader, public: &[u8], [leader, helper]: &[Vec<u8>; 2]) -> [HpkeCiphertext; 2] {
    let (keypair, task) = (generate_keypair(1), TaskId::from([3; 32]));
    [(AggregatorRole::Leader, leader), (AggregatorRole::Helper, helper)].map(|(role, share)| {
        let sealed = hpke::seal_input(keypair.config(), role, &task, header, public, share.clone());
        sealed.expect("a fresh key works").0
    })
}

fn interval() -> Interval {
    let start = Time::from_seconds_since_epoch(0);
    Interval::new(start, Duration::from_seconds(2_000)).expect("a short interval")
}

fn share_request() -> AggregateShareReq<TimeInterval> {
    let selector = BatchSelector::new_time_interval(interval());
    AggregateShareReq::new(selector, Vec::new(), 1, ReportIdChecksum::default())
}

fn collection_request() -> CollectionReq<TimeInterval> {
    CollectionReq::new(Query::new_time_interval(interval()), Vec::new())
}

fn round_trip<T: Decode + Encode>(bytes: &[u8]) {
    if let Ok(message) = T::get_decoded(bytes) {
        assert_eq!(encode(&message), bytes, "decoded and encoded differently");
    }
}
