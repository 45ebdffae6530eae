//! Signed cards for programs that check them before they answer: honest ones, and each kind of falsified one.
//!
//! `cargo run -p uptack-checks --bin card_vectors > vectors/cards.json`
//!
//! Each row says who must refuse it: `owner` is the library's client, which verifies every claim; `page` is the page for
//! people, which cannot check what is claimed of a crowd, and answers no card that asks a device.
#![allow(clippy::print_stdout, reason = "an example shows its results")]

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use uptack::card::{Aggregators, Card, CardChannel, CardSeries, Enrolment, Operators, Timestamp};
use uptack::plan::{Prior, Request, plan};
use uptack::privacy::{Delta, Epsilon, WorkLimit};
use uptack_dap::{card_task, protocol::VdafKind};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// When the cards open, a multiple of how long they are open.
const OPENS: u64 = 1_794_873_600;
const OPEN_FOR: u64 = 3600;
/// Keys that nobody uses for anything else.
const DESK: [u8; 32] = [7; 32];
const SOMEBODY_ELSE: [u8; 32] = [8; 32];

const NOISY: &str = "randomized-response(t=0.999) + laplace(scale=1.25)";
const PLAIN: &str = "randomized-response(t=0.7)";

/// A signed card, and who must refuse it.
struct Row {
    name: &'static str,
    refused_by: &'static [&'static str],
    query: String,
    card: String,
    signature: String,
}

const BOTH: &[&str] = &["owner", "page"];
const OWNER: &[&str] = &["owner"];
const PAGE: &[&str] = &["page"];
const NOBODY: &[&str] = &[];

fn main() -> Outcome<()> {
    let mut rows = honest()?;
    rows.extend(falsified()?);
    let texts = rows.iter().map(|row| row.json().map(|row| format!("    {row}"))).collect::<Outcome<Vec<_>>>()?;
    let key = public(&DESK);
    println!("{{\n  \"key\": \"{key}\",\n  \"now\": {},\n  \"rows\": [\n{}\n  ]\n}}", OPENS + 60, texts.join(",\n"));
    Ok(())
}

impl Row {
    /// A text as it is, named and signed as it should be.
    fn signed(name: &'static str, refused_by: &'static [&'static str], card: String) -> Self {
        let signature = sign(&DESK, &card);
        Self { name, refused_by, query: card_task::task_id(&card).to_string(), card, signature }
    }

    fn json(&self) -> Outcome<Value> {
        let mut row = json!({
            "name": self.name, "refused_by": self.refused_by,
            "signed": {"query": self.query, "card": self.card, "signature": self.signature},
        });
        if self.refused_by.is_empty() {
            let card = card_task::read(&self.card)?;
            let parameters = card_task::parameters(&card)?;
            let (VdafKind::Histogram { length, chunk_length } | VdafKind::Bits { length, chunk_length }) =
                &parameters.vdaf;
            let kind = if parameters.noise.is_some() { "bits" } else { "histogram" };
            row["sum"] = json!({"kind": kind, "length": length, "chunk_length": chunk_length});
            row["charge"] = card_task::names(&card)?.charge.to_string().into();
        }
        Ok(row)
    }
}

fn key(seed: &[u8; 32]) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(seed).expect("32 bytes are a seed")
}

/// The public half, as cards name it.
fn public(seed: &[u8; 32]) -> String {
    format!("ed25519:{}", URL_SAFE_NO_PAD.encode(key(seed).public_key()))
}

fn sign(seed: &[u8; 32], text: &str) -> String {
    URL_SAFE_NO_PAD.encode(key(seed).sign(text.as_bytes()))
}

/// A card that asks people by a mechanism, with claims that are true.
fn card(mechanism: &str, adjust: impl Fn(&mut Card)) -> Outcome<Card> {
    let mut request = Request::new(200, Prior::at(20));
    request.release = Some((Epsilon::new(2.0)?, Delta::new(1e-4)?));
    let mut card = Card::new(&request, &plan(&request)?);
    card.mechanism = mechanism.parse()?;
    card.channel = CardChannel::from(&card.mechanism);
    card.question = Some("Do you like \"⊥\"?\n\u{1}Yes or no".to_owned());
    card.operators = Some(Operators::Two);
    card.enrolment = Some(Enrolment::None);
    card.signer = Some(public(&DESK));
    let [leader, helper] = ["https://leader.example/", "https://helper.example/dap/"].map(str::to_owned);
    card.aggregators = Some(Aggregators { leader, helper });
    card.opens = Some(Timestamp::from_seconds(OPENS)?);
    card.closes = Some(Timestamp::from_seconds(OPENS + OPEN_FOR)?);
    adjust(&mut card);
    card.state_claims(Delta::new(1e-4)?, WorkLimit::default())?;
    Ok(card)
}

/// Three windows, of which this is the second.
fn in_series(card: &mut Card) {
    let starts = Timestamp::from_seconds(OPENS - OPEN_FOR).expect("it is of this century");
    card.series = Some(CardSeries { times: 3, number: Some(2), starts, every: OPEN_FOR });
}

fn honest() -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, mechanism) in [
        ("noise of the aggregators", NOISY),
        ("coins alone", PLAIN),
        ("three outputs and noise", "normal-form(f=0.9,r=1e-3) + laplace(scale=22/7)"),
        ("three outputs", "normal-form(f=0.5,r=0.2)"),
        ("shares of either truth", "noisy-sampling(sy=0.6,sn=1/3)"),
        ("a truth of its own", "deniable-sampling(sy=0.5,sn=0.2,p1=0.5,p2=0.3)"),
        ("six parameters", "tuned(sy1=0.5,sy2=0.2,p1=0.9,p2=0.8,sn=0.6,p3=0.3)"),
    ] {
        rows.push(Row::signed(name, NOBODY, card(mechanism, |_| {})?.canonical()));
    }
    rows.push(Row::signed("one of a series", NOBODY, card(NOISY, in_series)?.canonical()));
    let partly = card(NOISY, |card| card.honest = "0.9".parse().expect("a share"))?;
    rows.push(Row::signed("nine of ten are honest", NOBODY, partly.canonical()));
    // A person's answers to the windows of a series are independent; contributions are for devices.
    let contributions = card("contributions(counts=3,most=1,r=0.001) + laplace(scale=2)", in_series)?;
    rows.push(Row::signed("contributions to a series", PAGE, contributions.canonical()));
    Ok(rows)
}

/// What is changed on an honest card before it is signed.
type Change = (&'static str, &'static [&'static str], fn(&mut Value));

fn falsified() -> Outcome<Vec<Row>> {
    let noisy = document(&card(NOISY, |_| {})?)?;
    let plain = document(&card(PLAIN, |_| {})?)?;
    let series = document(&card(NOISY, in_series)?)?;
    let mut rows = Vec::new();
    for (base, changes) in [(&noisy, ON_ALL), (&noisy, WITH_NOISE), (&plain, WITHOUT_NOISE), (&series, IN_SERIES)] {
        for (name, refused_by, change) in changes {
            let mut changed = base.clone();
            change(&mut changed);
            assert_ne!(&changed, base, "{name}");
            rows.push(Row::signed(name, refused_by, changed.to_string()));
        }
    }
    rows.extend(other_forms(&noisy.to_string()));
    rows.extend(other_signatures(&noisy, &plain));
    Ok(rows)
}

fn document(card: &Card) -> Outcome<Value> {
    let document: Value = serde_json::from_str(&card.canonical())?;
    assert_eq!(document.to_string(), card.canonical(), "texts are made in the canonical form");
    Ok(document)
}

const ON_ALL: &[Change] = &[
    ("another version", BOTH, |card| card["version"] = "1".into()),
    ("a field that nobody knows", BOTH, |card| card["trust"] = "me".into()),
    ("a field that is missing", BOTH, |card| remove(card, "honest")),
    ("other worlds are compared", BOTH, |card| card["neighbouring"] = "one owner comes or goes".into()),
    ("a number that is none", BOTH, |card| card["owners"] = "many".into()),
    ("a number with a leading zero", BOTH, |card| card["owners"] = "0200".into()),
    ("a number that is no text", BOTH, |card| card["owners"] = 200.into()),
    ("a share in another form", BOTH, |card| card["honest"] = "1.0".into()),
    ("a share beyond one", BOTH, |card| card["honest"] = "2".into()),
    ("an empty list of attributes", BOTH, |card| card["attributes"] = json!([])),
    ("attributes without a predicate", BOTH, |card| card["attributes"] = json!(["age"])),
    ("integers over another power", BOTH, |card| card["channel"]["bits"] = "32".into()),
    ("no question", BOTH, |card| card["question"] = " ".into()),
    ("a predicate", PAGE, |card| card["predicate"] = "true".into()),
    ("a window that begins askew", BOTH, |card| card["opens"] = "2026-11-17T00:30:00Z".into()),
    ("a window that ends before it begins", BOTH, |card| card["closes"] = "2026-11-16T23:00:00Z".into()),
    ("a moment that there is not", BOTH, |card| card["closes"] = "2026-02-30T00:00:00Z".into()),
    ("no window", BOTH, |card| remove(card, "closes")),
    ("no aggregators", BOTH, |card| remove(card, "aggregators")),
    ("aggregators in one hand", BOTH, |card| card["operators"] = "one".into()),
    ("two aggregators at one origin", BOTH, |card| helper_at(card, "https://leader.example/helper/")),
    ("two ports of one host", BOTH, |card| helper_at(card, "https://leader.example:8443/")),
    ("one host in two spellings", BOTH, |card| helper_at(card, "https://LEADER.example./")),
    ("an aggregator that others can listen to", BOTH, |card| helper_at(card, "http://helper.example/")),
    ("an aggregator with a password", BOTH, |card| helper_at(card, "https://me:secret@helper.example/")),
    ("an aggregator that is no address", BOTH, |card| helper_at(card, "helper.example")),
    ("a release claim that is too good", OWNER, |card| card["claims"]["release"] = "0.0001".into()),
    ("a crowd that is too small for its claim", OWNER, |card| card["minimum_batch"] = "3".into()),
    ("a crowd of none", BOTH, |card| card["minimum_batch"] = "0".into()),
    ("an answer's claim that is too good", BOTH, |card| card["claims"]["answers"][0] = "6.9".into()),
    ("a linked claim that is too good", BOTH, |card| card["claims"]["linked"] = "6.906754778".into()),
    ("a claim that is no number", BOTH, |card| card["claims"]["linked"] = "-1".into()),
    ("no claim for an answer", BOTH, |card| card["claims"]["answers"] = json!([])),
    ("an answer with the counts that is better than alone", BOTH, |card| {
        card["claims"]["answers_with_release"][0] = "1".into();
    }),
    ("a delta of none", BOTH, |card| card["claims"]["delta"] = "0".into()),
    ("a law that does not sum to one", BOTH, |card| shift(card, 0, -1)),
    ("a law that is off by one in two cells", BOTH, |card| {
        shift(card, 0, -1);
        shift(card, 1, 1);
    }),
    ("another mechanism in words", BOTH, |card| card["mechanism"] = PLAIN.into()),
    ("a mechanism in another form", BOTH, |card| {
        card["mechanism"] = "randomized-response(t=0.9990) + laplace(scale=1.25)".into();
    }),
    ("a mechanism that nobody knows", BOTH, |card| card["mechanism"] = "magic(f=1)".into()),
    ("another order of the outputs", BOTH, |card| card["channel"]["answers"] = json!([["0", "1"]])),
];

const WITH_NOISE: &[Change] = &[
    ("one honest aggregator, off by one in the last digit", BOTH, |card| {
        let claim: f64 = card["claims"]["one_aggregator"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0.0);
        card["claims"]["one_aggregator"] = format!("{}", ((claim * 1e12).round() - 1.0) / 1e12).into();
    }),
    ("nothing for one honest aggregator", BOTH, |card| remove(&mut card["claims"], "one_aggregator")),
    ("more noise in words than in numbers", BOTH, |card| {
        card["mechanism"] = "randomized-response(t=0.999) + laplace(scale=2)".into();
    }),
    ("more noise in numbers than in words", BOTH, |card| card["channel"]["noise"]["scale"] = "2".into()),
    ("a scale in another form", BOTH, |card| card["channel"]["noise"]["scale"] = "5/4".into()),
    ("noise by another law", BOTH, |card| card["channel"]["noise"]["law"] = "gauss".into()),
    ("noise that is left out", BOTH, |card| remove(&mut card["channel"], "noise")),
];

const WITHOUT_NOISE: &[Change] = &[
    ("one honest aggregator without noise", BOTH, |card| card["claims"]["one_aggregator"] = "0.1".into()),
    ("claims of a series on a card of its own", BOTH, |card| {
        card["claims"]["whole"] = json!({"queries": "2", "linked": "9", "release": "9"});
    }),
];

const IN_SERIES: &[Change] = &[
    ("the window of another number", BOTH, |card| card["series"]["number"] = "1".into()),
    ("a number beyond the series", BOTH, |card| card["series"]["number"] = "4".into()),
    ("a number that is left open", BOTH, |card| card["series"]["number"] = "".into()),
    ("another length of the windows", BOTH, |card| card["series"]["every"] = "1800".into()),
    ("fewer windows than are claimed for", BOTH, |card| card["claims"]["whole"]["queries"] = "2".into()),
    ("more windows than are claimed for", BOTH, |card| card["series"]["times"] = "4".into()),
    ("a whole that is too good if one aggregator is honest", BOTH, |card| {
        card["claims"]["whole"]["one_aggregator"] = card["claims"]["one_aggregator"].clone();
    }),
    ("a whole that is too good if nobody is honest", BOTH, |card| {
        card["claims"]["whole"]["linked"] = card["claims"]["linked"].clone();
    }),
    ("no claim for the whole", BOTH, |card| remove(&mut card["claims"], "whole")),
];

fn remove(object: &mut Value, name: &str) {
    object.as_object_mut().and_then(|fields| fields.remove(name)).expect("it was there");
}

fn helper_at(card: &mut Value, address: &str) {
    card["aggregators"]["helper"] = address.into();
}

/// Moves the probability of a cell for yes by some units of 2^−64.
fn shift(card: &mut Value, cell: usize, by: i128) {
    let number = &mut card["channel"]["cells"][cell]["yes"];
    let value = number.as_str().and_then(|text| text.parse::<i128>().ok()).unwrap_or_default();
    *number = (value + by).to_string().into();
}

/// The same card in other bytes, each signed and named after its own.
fn other_forms(card: &str) -> Vec<Row> {
    let doubled = card.replacen("{\"aggregators\"", "{\"version\":\"2\",\"aggregators\"", 1);
    [
        ("a blank behind the card", format!("{card} ")),
        ("a blank within the card", card.replacen("\":\"", "\": \"", 1)),
        ("a field that stands twice", doubled),
        ("a letter that is escaped for no reason", card.replacen("Do you", "\\u0044o you", 1)),
        ("half of a letter", card.replacen("Do you", "\\ud800 you", 1)),
        ("no card at all", "[]".to_owned()),
        ("no JSON at all", "card".to_owned()),
    ]
    .map(|(name, text)| Row::signed(name, BOTH, text))
    .into()
}

/// Names and signatures that are not those of the card.
fn other_signatures(noisy: &Value, plain: &Value) -> Vec<Row> {
    let row = |name, card: &Value| Row::signed(name, BOTH, card.to_string());
    let mut renamed = row("the name of another card", noisy);
    renamed.query = card_task::task_id(&plain.to_string()).to_string();
    let mut borrowed = row("the signature of another card", noisy);
    borrowed.signature = row("", plain).signature;
    let mut cut = row("half a signature", noisy);
    cut.signature.truncate(43);
    let mut spelled = row("a signature in another spelling", noisy);
    spelled.signature.push_str("==");
    let mut forged = row("somebody else's signature", noisy);
    forged.signature = sign(&SOMEBODY_ELSE, &forged.card);
    let mut signed_by_stranger = noisy.clone();
    signed_by_stranger["signer"] = public(&SOMEBODY_ELSE).into();
    let mut another = row("another signer", &signed_by_stranger);
    another.signature = sign(&SOMEBODY_ELSE, &another.card);
    vec![renamed, borrowed, cut, spelled, forged, another]
}
