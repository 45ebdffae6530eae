//! Nothing leaks by behaviour: the wire looks the same whatever the truth, and one card is one report.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use uptack::card::{Aggregators, Enrolment};
use uptack_dap::credential::OwnerSecret;
use uptack_owner::client::Status;

use crate::world::*;

/// What clients sent through a proxy.
type Seen = Arc<Mutex<Vec<Vec<u8>>>>;

/// Forwards to an address and keeps what the client sent.
async fn proxy(to: String) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let seen = Seen::default();
    let kept = Arc::clone(&seen);
    let to = Arc::new(to);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(to.as_str()).await.unwrap();
            let kept = Arc::clone(&kept);
            tokio::spawn(async move {
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
                let mut buffer = vec![0; 65_536];
                while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
                    kept.lock().unwrap().push(buffer[..read].to_vec());
                    if to_server.write_all(&buffer[..read]).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    (url, seen)
}

/// The requests that a proxy saw since it was asked last, by their lines, and the bytes of them all.
fn take(seen: &Seen) -> (Vec<String>, usize) {
    let all = std::mem::take(&mut *seen.lock().unwrap()).concat();
    let text = String::from_utf8_lossy(&all);
    let lines = text.lines().filter(|line| line.ends_with(" HTTP/1.1")).map(str::to_owned);
    (lines.collect(), all.len())
}

/// The cell of the only report in a client's ledger, which is kept until the leader acknowledges the report.
fn drawn_cell(client: &Device) -> Vec<u8> {
    let moment = client.ledger().next_due().unwrap().unwrap();
    let due = client.ledger().due(moment, 1).unwrap().remove(0);
    client.ledger().report(&due).unwrap().unwrap().measurement
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wire_looks_the_same_for_yes_no_bottom_and_no_attribute() {
    let world = World::start().await;
    let (leader, at_leader) = proxy(world.pair.leader.url().authority().to_owned()).await;
    let (helper, at_helper) = proxy(world.pair.helper.url().authority().to_owned()).await;
    let mut traffic = Vec::new();
    for (name, attributes) in
        [("yes", r#"{"station": "a"}"#), ("no", r#"{"station": "b"}"#), ("none", "{}"), ("wrong", r#"{"station": 5}"#)]
    {
        // Owners of either truth send `1`, `0` and ⊥. Each has a probability above 0.1, so that one of them is missing after
        // 500 attempts with a probability below 10⁻²².
        let mut sent = BTreeSet::new();
        for attempt in 0..500 {
            let mut card = card(&world.signer, 40);
            with_mechanism(&mut card, "normal-form(f=0.6,r=0.2)");
            card.question = Some(format!("{name} {attempt}"));
            card.aggregators = Some(Aggregators { leader: leader.clone(), helper: helper.clone() });
            let (signed, _) = world.serve_at(card).await;
            let directory = tempfile::tempdir().unwrap();
            let client = client(directory.path(), policy(&world.signer));
            assert_eq!(client.consider(&[name], &[signed]).unwrap()[0].status, Status::Waiting);
            let owners = [owner(name, attributes)].into_iter().collect();
            assert_eq!(client.prepare(&owners).await.unwrap(), 1);
            sent.insert(drawn_cell(&client));
            assert_eq!(client.upload(&owners).await.unwrap(), 1);
            let mask = |(lines, bytes): (Vec<String>, usize)| {
                // The task's name is random and of one length.
                let lines = lines.into_iter().map(|line| (line[..4].to_owned(), line.len()));
                (lines.collect::<Vec<_>>(), bytes)
            };
            traffic.push((name, mask(take(&at_leader)), mask(take(&at_helper))));
            if sent.len() == 3 {
                break;
            }
        }
        assert_eq!(sent.len(), 3, "{name}");
    }
    let (_, leader, helper) = &traffic[0];
    let methods = |lines: &[(String, usize)]| lines.iter().map(|(method, _)| method.clone()).collect::<String>();
    assert_eq!((methods(&leader.0).as_str(), methods(&helper.0).as_str()), ("GET PUT ", "GET "));
    for (name, at_leader, at_helper) in &traffic {
        assert_eq!((at_leader, at_helper), (leader, helper), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_is_counted_exactly_once_each() {
    let world = World::start().await;
    let mut card = card(&world.signer, 40);
    // Nobody answers the opposite, so that the count of `1` is the truth.
    with_mechanism(&mut card, "randomized-response(t=1)");
    let (signed, collector) = world.serve(card).await;
    let text = policy_text(&world.signer).replace("20.0", "\"unlimited\"").replace("4.0", "\"unlimited\"");
    let text = text.replace("100.0", "\"unlimited\"");
    let directory = tempfile::tempdir().unwrap();
    let client = client(directory.path(), uptack_owner::policy::Policy::from_toml(&text).unwrap());
    let owners: Vec<_> =
        (0..60).map(|index| owner(&index.to_string(), if index < 13 { r#"{"station": "a"}"# } else { "{}" })).collect();
    let names: Vec<&str> = owners.iter().map(|(name, _)| name.as_str()).collect();
    let cards = [signed.clone()];
    assert!(client.consider(&names, &cards).unwrap().iter().all(|outcome| outcome.status == Status::Waiting));
    let attributes = owners.iter().cloned().collect();
    assert_eq!(client.upload(&attributes).await.unwrap(), 60);
    // Again, and again after a restart: nothing more is sent.
    assert!(client.consider(&names, &cards).unwrap().iter().all(|outcome| outcome.status == Status::Answered));
    assert_eq!(client.upload(&attributes).await.unwrap(), 0);
    let collected = collect(&signed, &collector).await.unwrap();
    let at = |output: char| {
        let card = uptack_dap::card_task::read(&signed.card).unwrap();
        let channel = card.checked_channel().unwrap();
        let cells = channel.cells().iter().zip(&collected.counts);
        cells.filter(|(cell, _)| cell.outputs()[0].symbol() == output).map(|(_, count)| count).sum::<u64>()
    };
    assert_eq!((collected.reports, at('1'), at('0')), (60, 13, 47));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ballot_keeps_as_many_yes_as_it_allows() {
    let world = World::start().await;
    let mut card = card(&world.signer, 40);
    with_mechanism(&mut card, "randomized-response(t=1)");
    with_ballot(&mut card, &["a", "b", "c"], 1);
    // All three are true of this owner.
    let ballot = card.ballot.as_mut().unwrap();
    for query in &mut ballot.queries {
        query.predicate = format!("\"{}\" in station", query.name);
    }
    let (signed, collector) = world.serve(card).await;
    let text = policy_text(&world.signer).replace("20.0", "\"unlimited\"").replace("4.0", "\"unlimited\"");
    let text = text.replace("100.0", "\"unlimited\"");
    let directory = tempfile::tempdir().unwrap();
    let client = client(directory.path(), uptack_owner::policy::Policy::from_toml(&text).unwrap());
    let owners: Vec<_> = (0..40).map(|index| owner(&index.to_string(), r#"{"station": ["a", "b", "c"]}"#)).collect();
    let names: Vec<&str> = owners.iter().map(|(name, _)| name.as_str()).collect();
    let outcomes = client.consider(&names, std::slice::from_ref(&signed)).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.status == Status::Waiting), "{:?}", outcomes[0]);
    assert_eq!(client.upload(&owners.into_iter().collect()).await.unwrap(), 40);
    let collected = collect(&signed, &collector).await.unwrap();
    let outputs = uptack_dap::ballot::outputs(&collected.counts, collected.reports).unwrap();
    let pairs: Vec<(u64, u64)> = outputs.iter().map(|output| (output.ones, output.zeros)).collect();
    assert_eq!(pairs, [(40, 0), (0, 40), (0, 40)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn enrolled_owners_report_once_and_others_not_at_all() {
    let secrets = [OwnerSecret::generate(), OwnerSecret::generate()];
    let world = World::start_with(Some(&secrets)).await;
    let mut card = card(&world.signer, 40);
    card.enrolment = Some(Enrolment::Required);
    let (signed, _) = world.serve(card).await;
    let answer = async |name: &str, secret: Option<&OwnerSecret>| {
        let directory = tempfile::tempdir().unwrap();
        let clock = uptack_dap::clock::Clock::standing_at(now());
        let client = client_with(directory.path(), policy(&world.signer), clock, |config| {
            config.credentials.extend(secret.map(|secret| (name.to_owned(), secret.clone())));
        });
        client.consider(&[name], std::slice::from_ref(&signed)).unwrap();
        client.upload(&[owner(name, "{}")].into_iter().collect()).await.unwrap()
    };
    assert_eq!(answer("a", Some(&secrets[0])).await, 1);
    assert_eq!(answer("b", Some(&secrets[1])).await, 1);
    // The same owner with another report, an unknown one, none.
    assert_eq!(answer("again", Some(&secrets[0])).await, 0);
    assert_eq!(answer("stranger", Some(&OwnerSecret::generate())).await, 0);
    assert_eq!(answer("nobody", None).await, 0);
}
