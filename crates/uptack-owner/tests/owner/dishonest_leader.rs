//! A leader that times its owners, or answers them so that they work while it watches.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use uptack::card::{Aggregators, Card, Enrolment};
use uptack_dap::{client::SealedReport, clock::Clock, credential::OwnerSecret, signed::SignedCard};
use uptack_owner::{
    check::MOST_QUESTIONS,
    client::{ClientEvent, Observer, Status},
    ledger::{Due, State},
    policy::Policy,
    predicate::{MOST_STEPS, Predicate, SLOWEST_STEP, Subject},
    schedule::FIXED_DELAY,
};
use url::Url;

use crate::world::*;

/// What happened, on the device and on the wire, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Device(ClientEvent),
    Get,
    Put,
}

type Log = Arc<Mutex<Vec<Seen>>>;
/// The head of a request, in small letters, and its body.
type Upload = (String, Vec<u8>);

/// A leader that hands out the keys of an honest one, keeps every upload and answers it as it likes.
struct Leader {
    url: String,
    log: Log,
    uploads: Arc<Mutex<Vec<Upload>>>,
}

impl Leader {
    /// Answers uploads with `answers`, one after the other, and then with success.
    async fn start(honest: Url, log: Log, answers: Vec<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let uploads = Arc::new(Mutex::new(Vec::new()));
        let (kept, events) = (Arc::clone(&uploads), Arc::clone(&log));
        tokio::spawn(async move {
            let mut answers = answers.into_iter();
            while let Ok((mut client, _)) = listener.accept().await {
                let (head, body) = read(&mut client).await;
                if head.starts_with("get") {
                    events.lock().unwrap().push(Seen::Get);
                    hand_out_keys(&honest, &mut client).await;
                } else {
                    events.lock().unwrap().push(Seen::Put);
                    kept.lock().unwrap().push((head, body));
                    let answer =
                        answers.next().unwrap_or("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                    client.write_all(answer.as_bytes()).await.unwrap();
                }
            }
        });
        Self { url, log, uploads }
    }

    fn uploads(&self) -> Vec<Upload> {
        self.uploads.lock().unwrap().clone()
    }
}

async fn read(client: &mut TcpStream) -> Upload {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let read = client.read(&mut buffer).await.unwrap();
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |text| text.parse().unwrap());
        if bytes.len() >= end + 4 + length {
            return (head, bytes[end + 4..].to_vec());
        }
    }
}

/// Passes the honest leader's keys on, which are the same for all tasks.
async fn hand_out_keys(honest: &Url, client: &mut TcpStream) {
    let keys = reqwest::get(honest.join("hpke_config").unwrap()).await.unwrap().bytes().await.unwrap();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", keys.len());
    client.write_all(&[head.as_bytes(), &keys].concat()).await.unwrap();
}

const OUTDATED: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 55\r\nconnection: close\r\n\r\n\
                        {\"type\":\"urn:ietf:params:ppm:dap:error:outdatedConfig\"}";
const BUSY: &str =
    "HTTP/1.1 503 Service Unavailable\r\nretry-after: 100\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// A card that names this leader, and the honest helper.
fn at(world: &World, leader: &Leader, mut card: Card) -> SignedCard {
    let helper = world.pair.helper.url().to_string();
    card.aggregators = Some(Aggregators { leader: leader.url.clone(), helper });
    world.signer.sign(&card).unwrap()
}

async fn world_and_leader(answers: Vec<&'static str>) -> (World, Leader) {
    let world = World::start().await;
    let leader = Leader::start(world.pair.leader.url(), Log::default(), answers).await;
    (world, leader)
}

fn observed(log: &Log) -> Observer {
    let log = Arc::clone(log);
    Observer::new(move |event| log.lock().unwrap().push(Seen::Device(event)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_times_the_gap_sees_nothing_of_the_evaluation() {
    let (world, leader) = world_and_leader(Vec::new()).await;
    let mut ballot = card(&world.signer, 40);
    with_ballot(&mut ballot, &["a", "b", "c"], 1);
    let signed = at(&world, &leader, ballot);
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::standing_at(now());
    let observe = |config: &mut uptack_owner::client::Config| config.observer = observed(&leader.log);
    let moment = {
        let device = client_with(directory.path(), policy(&world.signer), clock.clone(), observe);
        world.serve_keys(&signed).await;
        assert_eq!(device.consider(&["self"], std::slice::from_ref(&signed)).unwrap()[0].status, Status::Waiting);
        let owners: BTreeMap<_, _> = [owner("self", r#"{"station": "b"}"#)].into();
        assert_eq!(device.prepare(&owners).await.unwrap(), 1);
        // Everything lies ready, and nothing is sent before its moment, however often it is tried.
        let moment = device.ledger().next_due().unwrap().unwrap();
        assert!(moment >= clock.now() + FIXED_DELAY);
        clock.set(moment - 1);
        assert_eq!(device.send_due().await.unwrap(), 0);
        assert!(leader.uploads().is_empty());
        moment
    };
    // A device that was switched off in between has nothing left to do but to send.
    clock.set(moment);
    let device = client_with(directory.path(), policy(&world.signer), clock, observe);
    assert_eq!(device.send_due().await.unwrap(), 1);

    let log = leader.log.lock().unwrap().clone();
    let position = |seen: Seen| log.iter().position(|found| *found == seen).unwrap();
    let last = |seen: Seen| log.iter().rposition(|found| *found == seen).unwrap();
    let (drawn, evaluated) =
        (position(Seen::Device(ClientEvent::Drawn)), position(Seen::Device(ClientEvent::Evaluated)));
    assert!(drawn < position(Seen::Get) && last(Seen::Device(ClientEvent::Drawn)) < evaluated, "{log:?}");
    assert!(position(Seen::Device(ClientEvent::KeysFetched)) < evaluated, "{log:?}");
    let count = |event: ClientEvent| log.iter().filter(|found| **found == Seen::Device(event)).count();
    assert_eq!(
        (count(ClientEvent::Evaluated), count(ClientEvent::Tossed), count(ClientEvent::Sealed)),
        (3, 3, 1),
        "{log:?}"
    );
    // From the keys to the last seal nothing goes over the wire; from the first request on nothing else happens.
    let sent = position(Seen::Device(ClientEvent::Sent));
    for event in [ClientEvent::Evaluated, ClientEvent::Tossed, ClientEvent::Sealed] {
        assert!(last(Seen::Device(event)) < sent, "{log:?}");
    }
    assert!(log[sent..].iter().all(|seen| matches!(seen, Seen::Device(ClientEvent::Sent) | Seen::Put)), "{log:?}");
    assert!(last(Seen::Get) < evaluated, "{log:?}");
}

#[test]
fn the_fixed_delay_is_longer_than_the_capped_evaluation() {
    // One second of the clock may have been nearly over when the card was accepted.
    assert!(u128::from(MOST_STEPS) * u128::from(SLOWEST_STEP) < u128::from(FIXED_DELAY - 1) * 1_000_000_000);
    // The share of each question of the largest ballot is enough to compare texts.
    let attributes = owner("self", r#"{"station": "a station with a name as long as names of stations are"}"#).1;
    let predicate = Predicate::parse(r#"(road == "A1" && speed > 50.0) && station == "1203871""#).unwrap();
    let steps = predicate.steps(&Subject::new(&attributes, predicate.attributes()));
    assert!(steps < MOST_STEPS / MOST_QUESTIONS as u64, "{steps}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_predicate_beyond_the_cap_is_answered_as_no() {
    let (world, leader) = world_and_leader(Vec::new()).await;
    let mut card = card(&world.signer, 40);
    with_mechanism(&mut card, "randomized-response(t=1)");
    // True, and four million bytes of sums long before it says so.
    card.predicate = Some(format!("size({}station) > 0", "station+".repeat(110)));
    let signed = at(&world, &leader, card);
    world.serve_keys(&signed).await;
    let text = policy_text(&world.signer).replace("20.0", "\"unlimited\"").replace("4.0", "\"unlimited\"");
    let policy = Policy::from_toml(&text.replace("100.0", "\"unlimited\"")).unwrap();
    let mut cells = Vec::new();
    for length in [10, 4000] {
        let directory = tempfile::tempdir().unwrap();
        let device = client(directory.path(), policy.clone());
        device.consider(&["self"], std::slice::from_ref(&signed)).unwrap();
        let owners = [owner("self", &format!(r#"{{"station": "{}"}}"#, "x".repeat(length)))].into();
        assert_eq!(device.prepare(&owners).await.unwrap(), 1);
        let due = Due { owner: "self".to_owned(), query: signed.query.clone(), upload: 0 };
        cells.push(device.ledger().report(&due).unwrap().unwrap().measurement);
    }
    assert_ne!(cells[0], cells[1], "short enough is yes, too long is no");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_says_the_key_is_outdated_again_and_again() {
    let (world, leader) = world_and_leader(vec![OUTDATED, OUTDATED]).await;
    let signed = at(&world, &leader, card(&world.signer, 40));
    world.serve_keys(&signed).await;
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::standing_at(now());
    let device = client_with(directory.path(), policy(&world.signer), clock.clone(), |config| {
        config.observer = observed(&leader.log);
    });
    device.consider(&["self"], &[signed]).unwrap();
    let owners = [owner("self", r#"{"station": "a"}"#)].into();
    let mut sent_at = Vec::new();
    for _ in 0..2 {
        assert_eq!(device.upload(&owners).await.unwrap(), 0);
        sent_at.push(clock.now());
        // Nothing is sealed in answer to the refusal, but later, and then sent after the delay.
        assert_eq!(device.send_due().await.unwrap(), 0);
    }
    assert_eq!(device.upload(&owners).await.unwrap(), 1);
    sent_at.push(clock.now());
    assert!(sent_at.windows(2).all(|pair| pair[1] >= pair[0] + FIXED_DELAY), "{sent_at:?}");
    let ids: Vec<_> =
        leader.uploads().into_iter().map(|(_, body)| *SealedReport::from_bytes(body).unwrap().id()).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids.iter().all(|id| *id == ids[0]), "a report that is sealed again is the same report");
    let log = leader.log.lock().unwrap().clone();
    let count = |event: ClientEvent| log.iter().filter(|seen| **seen == Seen::Device(event)).count();
    assert_eq!(
        (count(ClientEvent::Evaluated), count(ClientEvent::Tossed), count(ClientEvent::Sealed)),
        (1, 1, 3),
        "{log:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_asks_for_patience_gets_it() {
    let (world, leader) = world_and_leader(vec![BUSY]).await;
    let signed = at(&world, &leader, card(&world.signer, 40));
    world.serve_keys(&signed).await;
    let directory = tempfile::tempdir().unwrap();
    let device = client(directory.path(), policy(&world.signer));
    device.consider(&["self"], &[signed]).unwrap();
    assert_eq!(device.upload(&BTreeMap::new()).await.unwrap(), 0);
    let busy_at = device.clock.now();
    assert_eq!(device.ledger().next_due().unwrap(), Some(busy_at + 100));
    assert_eq!(device.upload(&BTreeMap::new()).await.unwrap(), 1);
    assert_eq!(device.ledger().entries().unwrap()[0].state, State::Sent);
    let uploads = leader.uploads();
    assert_eq!(uploads[0].1, uploads[1].1, "the same bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_is_shown_a_credential_only_where_its_card_requires_one() {
    let (world, leader) = world_and_leader(Vec::new()).await;
    let secret = OwnerSecret::generate();
    for enrolment in [Enrolment::None, Enrolment::Required] {
        let mut card = card(&world.signer, 40);
        card.enrolment = Some(enrolment);
        let signed = at(&world, &leader, card);
        world.serve_keys(&signed).await;
        let directory = tempfile::tempdir().unwrap();
        let clock = Clock::standing_at(now());
        let device = client_with(directory.path(), policy(&world.signer), clock, |config| {
            config.credentials.insert("self".to_owned(), secret.clone());
        });
        device.consider(&["self"], &[signed]).unwrap();
        assert_eq!(device.upload(&BTreeMap::new()).await.unwrap(), 1);
    }
    let shown: Vec<String> = leader.uploads().into_iter().map(|(head, _)| head).collect();
    let key = secret.public().to_string().to_lowercase();
    assert!(!shown[0].contains("credential") && !shown[0].contains("authorization") && !shown[0].contains(&key));
    assert!(shown[1].contains("uptack-credential") && shown[1].contains(&key), "{}", shown[1]);
}
