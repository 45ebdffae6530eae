//! What a leader learns by its clock: the gap between an owner's fetch of keys and its report, for yes and for no.
//!
//! `cargo run -p uptack-checks --bin timing_gap [-- RUNS]` plays a leader, lets real clients answer it, and
//! prints the two-sample Kolmogorov–Smirnov statistic: for the client as it is, and for a control that does things in
//! the order that gives the truth away (keys, evaluation, sealing, sending). It takes about five minutes for 200 runs.

#![expect(clippy::print_stdout, reason = "the figures are this program's output")]

use futures_util::{StreamExt, stream};
use rand::Rng;
use std::{
    collections::BTreeMap,
    error::Error,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use uptack::{
    OsCoins, Sampler,
    card::{Aggregators, BallotQuery, Card, CardBallot, CardChannel, CardQuestion, Enrolment, Operators, Timestamp},
    plan::{Prior, Request, plan},
    privacy::{Delta, Epsilon, WorkLimit},
};
use uptack_dap::{
    ballot, card_task,
    client::Client as Writer,
    protocol::Measurement,
    signed::{SignedCard, Signer},
    task::TaskSet,
};
use uptack_owner::{
    attributes::Attributes,
    check::Checker,
    client::{Client, Config},
    ledger::Ledger,
    policy::Policy,
    predicate::{Predicate, Subject},
};
use uptack_server::aggregator::Pair;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Clients at once. They wait most of the time.
const AT_ONCE: usize = 20;
/// Questions of the ballot.
const QUESTIONS: usize = 200;

#[tokio::main]
async fn main() -> Result<()> {
    print_cost_of_a_step()?;
    let runs: usize = std::env::args().nth(1).map_or(Ok(200), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let stage = Stage::start(folder.path()).await?;
    println!(
        "{runs} runs each for yes and no; two samples of one law exceed {:.3} once in a hundred times\n",
        critical(runs)
    );
    println!("question            order     gap     second");
    for (name, is_ballot) in [("expensive predicate", false), ("ballot of 200", true)] {
        let cards = stage.cards(is_ballot).await?;
        for (order, is_control) in [("today's", false), ("control", true)] {
            let seen = stage.time(&cards, runs, is_control).await?;
            let statistic = |of: fn(&Sample) -> f64| {
                let [yes, no] =
                    [true, false].map(|truth| seen.iter().filter(|sample| sample.truth == truth).map(of).collect());
                kolmogorov_smirnov(yes, no)
            };
            // A leader may also look at how far into its second a report arrives.
            let (gap, second) = (statistic(|sample| sample.gap), statistic(|sample| sample.arrived.fract()));
            println!("{name:<20}{order:<10}{gap:.3}   {second:.3}");
        }
    }
    Ok(())
}

/// How long a step takes here, for predicates that are expensive in different ways.
fn print_cost_of_a_step() -> Result<()> {
    let attributes = Attributes::from_json(&format!(r#"{{"taxi": true, "text": "{}"}}"#, "x".repeat(4000)))?;
    for (name, text) in [
        ("sums of texts", format!("taxi == true && size({}text) > 0", "text+".repeat(80))),
        ("sums of numbers", format!("{}1 > 0", "1+".repeat(100))),
        ("truth values", format!("{}taxi==true", "taxi==true&&".repeat(80))),
        ("errors", format!("{}taxi==true", "taxi<\"\"||".repeat(90))),
        ("searches", format!("{}taxi==true", r#"text.contains("xy")||"#.repeat(40))),
        ("lists", format!("taxi in [{}taxi]", "taxi,".repeat(150))),
    ] {
        let predicate = Predicate::parse(&text)?;
        let subject = Subject::new(&attributes, predicate.attributes());
        let steps = predicate.steps(&subject);
        let started = Instant::now();
        let times = (20_000_000 / steps).max(1);
        for _ in 0..times {
            std::hint::black_box(predicate.truth(&subject, u64::MAX));
        }
        let nanoseconds = started.elapsed().as_nanos() as f64 / (steps * times) as f64;
        println!("{name:<20}{nanoseconds:>6.1} ns per step");
    }
    println!();
    Ok(())
}

/// What the leader noted of one owner, and the truth that it wants to learn.
struct Sample {
    truth: bool,
    gap: f64,
    arrived: f64,
}

/// A pair whose keys are handed out by a leader with a clock.
struct Stage {
    signer: Signer,
    pair: Pair,
    leaders: Vec<String>,
    notes: Notes,
    checker: Checker,
    folder: PathBuf,
}

/// What the leader noted of all owners.
type Notes = Arc<Mutex<Vec<Sample>>>;
/// Those who say no, and those who say yes: they come by two addresses, so that the check can tell them apart.
const TRUTHS: [bool; 2] = [false, true];

impl Stage {
    async fn start(folder: &Path) -> Result<Self> {
        let pair = Pair::start(&folder.join("pair"), |_| {}).await?;
        let keys = reqwest::get(pair.leader.url().join("hpke_config")?).await?.bytes().await?.to_vec();
        let notes = Notes::default();
        let mut leaders = Vec::new();
        for truth in TRUTHS {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            leaders.push(format!("http://{}/", listener.local_addr()?));
            let (keys, noted) = (keys.clone(), Arc::clone(&notes));
            tokio::spawn(async move {
                while let Ok((client, _)) = listener.accept().await {
                    tokio::spawn(serve(client, keys.clone(), truth, Arc::clone(&noted)));
                }
            });
        }
        let signer = Signer::generate();
        let policy = Policy::from_toml(&format!(
            "signers = [\"{}\"]\nattributes = [\"taxi\", \"text\"]\n\
             [card]\ntrust = \"owners\"\nanswer = \"unlimited\"\nlinked = \"unlimited\"\nrelease = \"unlimited\"\n\
             answer-with-release = \"unlimited\"\ndelta = 1e-2\nhonest = 1.0\nseparate-operators = false\n\
             enrolment = false\n[lifetime]\nlinked = \"unlimited\"\nrelease = \"unlimited\"\ndelta = 1e-2\n",
            signer.public()
        ))?;
        Ok(Self { signer, pair, leaders, notes, checker: Checker::new(policy), folder: folder.to_owned() })
    }

    /// One card for each truth, alike but for the leader's address.
    ///
    /// Sums of long texts for those who say yes, nothing for the others; within the steps that a device evaluates.
    async fn cards(&self, is_ballot: bool) -> Result<Vec<SignedCard>> {
        let mut cards = Vec::new();
        for leader in &self.leaders {
            let mut card = self.card(leader)?;
            let query = |name: usize| BallotQuery {
                name: name.to_string(),
                predicate: "taxi == true && size(text+text+text+text) > 0".to_owned(),
            };
            if is_ballot {
                card.ballot = Some(CardBallot { most_yes: 1, queries: (0..QUESTIONS).map(query).collect() });
            } else {
                card.predicate = Some(format!("taxi == true && size({}text) > 0", "text+".repeat(80)));
            }
            card.state_claims(Delta::new(1e-4)?, WorkLimit::default())?;
            cards.push(self.serve(card).await?);
        }
        Ok(cards)
    }

    fn card(&self, leader: &str) -> Result<Card> {
        let mut request = Request::new(200, Prior::at(10));
        request.release = Some((Epsilon::new(2.0)?, Delta::new(1e-4)?));
        let mut card = Card::new(&request, &plan(&request)?);
        card.mechanism = "randomized-response(t=0.6)".parse()?;
        card.channel = CardChannel::from(&card.mechanism);
        card.attributes = vec!["taxi".to_owned(), "text".to_owned()];
        card.operators = Some(Operators::One);
        card.enrolment = Some(Enrolment::None);
        card.aggregators = Some(Aggregators { leader: leader.to_owned(), helper: self.pair.helper.url().to_string() });
        card.signer = Some(self.signer.public().to_string());
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let (opens, closes) = card_task::window(now, 3600)?;
        card.opens = Some(Timestamp::from_seconds(opens)?);
        card.closes = Some(Timestamp::from_seconds(closes)?);
        Ok(card)
    }

    /// Has the helper hand out its key for the card's task.
    async fn serve(&self, card: Card) -> Result<SignedCard> {
        let signed = self.signer.sign(&card)?;
        let task = TaskSet::generate(card_task::parameters(&card)?)?.with_card(&signed.card)?;
        self.pair.helper.add_task(task.helper).await?;
        Ok(signed)
    }

    /// Lets owners of both truths answer side by side, and returns what the leader noted of each.
    async fn time(&self, cards: &[SignedCard], runs: usize, is_control: bool) -> Result<Vec<Sample>> {
        // The control keeps a processor busy all the time; more of them at once would blur what it shows.
        let at_once = if is_control { 1 } else { AT_ONCE };
        let answers = (0..2 * runs).map(|run| async move {
            let truth = TRUTHS[run % 2];
            let signed = &cards[run % 2];
            let text = "x".repeat(4000);
            let attributes = Attributes::from_json(&format!(r#"{{"taxi": {truth}, "text": "{text}"}}"#))?;
            if is_control {
                return control(signed, &attributes).await;
            }
            self.answer(signed, attributes, &format!("{}-{run}", signed.query)).await
        });
        stream::iter(answers)
            .buffer_unordered(at_once)
            .collect::<Vec<_>>()
            .await
            .into_iter()
            .collect::<Result<()>>()?;
        let noted = std::mem::take(&mut *self.notes.lock().expect("nobody panics"));
        if noted.len() != 2 * runs {
            return Err(format!("the leader timed {} owners of {}", noted.len(), 2 * runs).into());
        }
        Ok(noted)
    }

    /// One owner with a ledger of its own, at some moment of a second.
    async fn answer(&self, signed: &SignedCard, attributes: Attributes, name: &str) -> Result<()> {
        tokio::time::sleep(Duration::from_millis(rand::thread_rng().gen_range(0..1000))).await;
        let config = Config { within: Some(0), ..Config::new(self.leaders[0].parse()?) };
        let ledger = Ledger::open(&self.folder.join(name))?;
        let client = Client::new(config, self.checker.clone(), ledger)?;
        client.consider(&["self"], std::slice::from_ref(signed))?;
        client.answer(&BTreeMap::from([("self".to_owned(), attributes)])).await?;
        Ok(())
    }
}

/// The order that shows the truth: keys, evaluation, sealing and sending without a pause.
async fn control(signed: &SignedCard, attributes: &Attributes) -> Result<()> {
    let card = card_task::read(&signed.card)?;
    let predicates =
        card.asked().predicates().into_iter().map(Predicate::parse).collect::<std::result::Result<Vec<_>, _>>()?;
    let channel = card.checked_channel()?;
    let sampler = Sampler::new(&channel);
    let writer = Writer::new(card_task::parameters(&card)?)?;
    writer.fetch_keys().await?;
    let subject = Subject::new(attributes, &card.attributes);
    let draw = |predicate: &Predicate| sampler.draw(predicate.truth(&subject, u64::MAX), &mut OsCoins);
    let cells = predicates.iter().map(draw).collect::<std::result::Result<Vec<usize>, _>>()?;
    let measurement = match card.asked() {
        CardQuestion::Ballot(_) => ballot::measurement(&cells.iter().map(|cell| Some(*cell == 0)).collect::<Vec<_>>()),
        CardQuestion::Person(_) | CardQuestion::Predicate(_) => Measurement::Cell(cells[0]),
    };
    let sealed = writer.seal(&measurement, card.window()?.0).await?;
    writer.send(&sealed).await?;
    Ok(())
}

/// Notes on each connection how long after the fetch of keys the report comes; hands out keys and takes every report.
async fn serve(mut client: TcpStream, keys: Vec<u8>, truth: bool, notes: Notes) {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 65_536];
    let mut fetched = Instant::now();
    while let Ok(read @ 1..) = client.read(&mut buffer).await {
        if bytes.is_empty() {
            let arrived = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            if buffer.starts_with(b"GET") {
                fetched = Instant::now();
            } else {
                let gap = fetched.elapsed().as_secs_f64();
                notes.lock().expect("nobody panics").push(Sample { truth, gap, arrived });
            }
        }
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        if bytes.len() < end + 4 + length {
            continue;
        }
        let body = if head.starts_with("get") { &keys[..] } else { &[] };
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        if client.write_all(&[answer.as_bytes(), body].concat()).await.is_err() {
            return;
        }
        bytes.clear();
    }
}

/// The largest distance between the distribution functions of two samples.
fn kolmogorov_smirnov(mut one: Vec<f64>, mut other: Vec<f64>) -> f64 {
    one.sort_by(f64::total_cmp);
    other.sort_by(f64::total_cmp);
    let below =
        |sample: &[f64], value: f64| sample.partition_point(|found| *found <= value) as f64 / sample.len() as f64;
    one.iter().chain(&other).map(|value| (below(&one, *value) - below(&other, *value)).abs()).fold(0.0, f64::max)
}

/// What two samples of one law exceed with a probability of one in a hundred.
fn critical(runs: usize) -> f64 {
    1.628 * (2.0 / runs as f64).sqrt()
}
