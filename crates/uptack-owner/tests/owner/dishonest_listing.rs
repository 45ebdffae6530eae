//! A desk that cheats with its listing: it never ends, turns in circles, has cards that are too large, of other queries,
//! or never come. What is good in it is read all the same.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use uptack_dap::{
    listing::{Fetched, ListingBounds, Page, fetch},
    signed::{SignedCard, Signer},
};
use uptack_owner::{
    check::Checker,
    client::{Client, Config},
    ledger::Ledger,
};
use url::Url;

use crate::world::policy;

/// A server of the test's making, and the paths that it was asked for.
pub(crate) struct HostileDesk {
    pub(crate) url: Url,
    asked: Arc<Mutex<Vec<String>>>,
}

/// What it answers to a path: bytes, or nothing for ever.
pub(crate) type Answer = Option<Vec<u8>>;

impl HostileDesk {
    pub(crate) async fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, log) = (Arc::new(answer), Arc::clone(&asked));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                tokio::spawn(async move { converse(stream, &*answer, &log).await });
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    async fn fetch(&self, bounds: ListingBounds) -> uptack_dap::Result<Fetched> {
        let http = uptack_dap::http_client::client(None).unwrap();
        fetch(&http, &self.url, bounds, |_| None).await
    }
}

async fn converse(mut stream: TcpStream, answer: &(impl Fn(&str) -> Answer + ?Sized), log: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read_exact(&mut byte).await.is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let path = String::from_utf8(head).unwrap().split(' ').nth(1).unwrap().to_owned();
    log.lock().unwrap().push(path.clone());
    let Some(body) = answer(&path) else { return std::future::pending().await };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    // A client that has read enough hangs up.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&body).await;
}

/// Names in their order.
fn name(number: usize) -> String {
    format!("{number:043}")
}

fn page(numbers: std::ops::Range<usize>, next: Option<usize>) -> Vec<u8> {
    serde_json::to_vec(&Page { queries: numbers.map(name).collect(), next: next.map(name) }).unwrap()
}

fn signed(query: &str) -> Vec<u8> {
    let card = SignedCard { query: query.to_owned(), card: "{}".to_owned(), signature: String::new() };
    serde_json::to_vec(&card).unwrap()
}

/// The name in the path of a card.
pub(crate) fn card_asked(path: &str) -> Option<&str> {
    path.strip_prefix("/queries/")?.strip_suffix("/card")
}

fn names(fetched: &Fetched) -> Vec<&str> {
    fetched.cards.iter().map(|card| card.query.as_str()).collect()
}

#[tokio::test]
async fn an_endless_listing_is_cut_off_and_what_could_be_read_is_used() {
    let desk = HostileDesk::start(|path| match card_asked(path) {
        Some(query) => Some(signed(query)),
        None => {
            let after = path.split("after=").nth(1).map_or(0, |after| after.parse::<usize>().unwrap());
            Some(page(after + 1..after + 11, Some(after + 10)))
        }
    })
    .await;
    let few = desk.fetch(ListingBounds { pages: 3, ..ListingBounds::DEFAULT }).await.unwrap();
    assert_eq!((few.cards.len(), few.cut_off, few.left_out), (30, true, 0));
    let few = desk.fetch(ListingBounds { queries: 25, ..ListingBounds::DEFAULT }).await.unwrap();
    assert_eq!((few.cards.len(), few.cut_off), (25, true));
    let size = signed(&name(1)).len();
    let few = desk.fetch(ListingBounds { pages: 3, bytes: 12 * size, ..ListingBounds::DEFAULT }).await.unwrap();
    assert_eq!((few.cards.len(), few.left_out), (12, 18));
}

#[tokio::test]
async fn a_listing_that_turns_in_circles_ends() {
    let desk = HostileDesk::start(|path| match card_asked(path) {
        Some(query) => Some(signed(query)),
        None => Some(page(1..4, Some(3))),
    })
    .await;
    let fetched = desk.fetch(ListingBounds::DEFAULT).await.unwrap();
    assert_eq!((names(&fetched), fetched.cut_off), (vec![&*name(1), &*name(2), &*name(3)], true));
    assert_eq!(desk.asked().iter().filter(|path| card_asked(path).is_none()).count(), 2);
}

#[tokio::test]
async fn a_bad_card_harms_no_other() {
    let desk = HostileDesk::start(|path| match card_asked(path) {
        None => Some(page(1..6, None)),
        Some(query) => match query.parse().unwrap() {
            1usize => Some(vec![b' '; 8 << 20]),
            2 => Some(b"<html>".to_vec()),
            3 => Some(signed(&name(5))),
            4 => None,
            _ => Some(signed(query)),
        },
    })
    .await;
    let fetched = desk.fetch(ListingBounds { time: Duration::from_secs(3), ..ListingBounds::DEFAULT }).await.unwrap();
    assert_eq!((names(&fetched), fetched.left_out, fetched.cut_off), (vec![&*name(5)], 4, false));
}

#[tokio::test]
async fn names_that_are_paths_are_not_asked_for() {
    let desk = HostileDesk::start(|path| match card_asked(path) {
        Some(query) => Some(signed(query)),
        None => {
            let odd = ["../../hpke_config", "?x", "", &"A".repeat(44)].map(str::to_owned);
            let queries = odd.into_iter().chain([name(1)]).collect();
            Some(serde_json::to_vec(&Page { queries, next: None }).unwrap())
        }
    })
    .await;
    assert_eq!(names(&desk.fetch(ListingBounds::DEFAULT).await.unwrap()), [&*name(1)]);
    let asked: BTreeSet<String> = desk.asked().into_iter().collect();
    assert_eq!(asked, BTreeSet::from(["/queries".to_owned(), format!("/queries/{}/card", name(1))]));
}

#[tokio::test]
async fn cards_that_are_known_are_not_fetched_again() {
    let desk =
        HostileDesk::start(|path| card_asked(path).map_or(Some(page(1..4, None)), |query| Some(signed(query)))).await;
    let http = uptack_dap::http_client::client(None).unwrap();
    let known = |query: &str| (query == name(2)).then(|| serde_json::from_slice(&signed(query)).unwrap());
    let fetched = fetch(&http, &desk.url, ListingBounds::DEFAULT, known).await.unwrap();
    assert_eq!(fetched.cards.len(), 3);
    let asked: BTreeSet<String> = desk.asked().into_iter().collect();
    let card = |number| format!("/queries/{}/card", name(number));
    assert_eq!(asked, BTreeSet::from(["/queries".to_owned(), card(1), card(3)]));
}

#[tokio::test]
async fn the_owners_client_reads_what_is_good_and_says_when_nothing_is() {
    let client = |url: &Url| {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(directory.path()).unwrap();
        let checker = Checker::new(policy(&Signer::generate()));
        (Client::new(Config::new(url.clone()), checker, ledger).unwrap(), directory)
    };
    let desk = HostileDesk::start(|path| match card_asked(path) {
        None => Some(page(1..4, None)),
        Some(query) if query == name(2) => Some(vec![b'['; 8 << 20]),
        Some(query) => Some(signed(query)),
    })
    .await;
    let (owner, _directory) = client(&desk.url);
    let cards = owner.fetch().await.unwrap();
    assert_eq!(cards.iter().map(|card| card.query.as_str()).collect::<Vec<_>>(), [&*name(1), &*name(3)]);
    for garbage in [vec![b' '; 8 << 20], b"[]".to_vec()] {
        let desk = HostileDesk::start(move |_| Some(garbage.clone())).await;
        let (owner, _directory) = client(&desk.url);
        assert!(owner.fetch().await.is_err());
    }
}
