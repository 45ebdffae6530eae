//! Cards, a pair of aggregators and an owner, as the tests need them.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Mutex, OnceLock},
    time::{SystemTime, UNIX_EPOCH},
};
use tempfile::TempDir;
use uptack::{
    card::{Aggregators, BallotQuery, Card, CardBallot, CardChannel, Claims, Enrolment, Operators, Timestamp},
    plan::{Prior, Request, plan},
    privacy::{Delta, Epsilon, WorkLimit},
};
use uptack_dap::{
    card_task,
    clock::Clock,
    collector::{Collected, Collector},
    credential::OwnerSecret,
    signed::{SignedCard, Signer},
    task::TaskSet,
};
use uptack_owner::{
    attributes::{Attributes, Named},
    check::Checker,
    client::{Client, Config},
    ledger::Ledger,
    policy::Policy,
};
use uptack_server::aggregator::Pair;
use url::Url;

/// The time at which the tests began. Cards open and clocks stand by it, however slow the machine is.
pub(crate) fn now() -> u64 {
    static BEGINNING: OnceLock<u64> = OnceLock::new();
    *BEGINNING.get_or_init(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs())
}

/// A card that everything below accepts: open now, for `minimum` owners.
pub(crate) fn card(signer: &Signer, minimum: u64) -> Card {
    static PLANNED: OnceLock<Card> = OnceLock::new();
    let planned = PLANNED.get_or_init(|| {
        let mut request = Request::new(200, Prior::at(10));
        request.release = Some((Epsilon::new(2.0).unwrap(), Delta::new(1e-4).unwrap()));
        Card::new(&request, &plan(&request).unwrap())
    });
    let mut card = planned.clone();
    card.minimum_batch = minimum;
    with_mechanism(&mut card, "normal-form(f=0.8,r=0.2)");
    card.question = Some("Are you at station a?".to_owned());
    card.predicate = Some("station == \"a\"".to_owned());
    card.attributes = vec!["station".to_owned()];
    card.operators = Some(Operators::One);
    card.enrolment = Some(Enrolment::None);
    card.aggregators = Some(Aggregators { leader: "http://127.0.0.1:1/".into(), helper: "http://127.0.0.1:2/".into() });
    card.signer = Some(signer.public().to_string());
    open(&mut card, 600);
    card
}

/// Opens a card now for so many seconds.
pub(crate) fn open(card: &mut Card, seconds: u64) {
    let (opens, closes) = card_task::window(now(), seconds).unwrap();
    card.opens = Some(Timestamp::from_seconds(opens).unwrap());
    card.closes = Some(Timestamp::from_seconds(closes).unwrap());
}

/// Puts another mechanism on a card, with claims that are true.
pub(crate) fn with_mechanism(card: &mut Card, text: &str) {
    card.mechanism = text.parse().unwrap();
    card.channel = CardChannel::from(&card.mechanism);
    state_claims(card);
}

/// States the claims that are true; those of cards that are alike are computed once for all tests.
pub(crate) fn state_claims(card: &mut Card) {
    static STATED: Mutex<BTreeMap<String, Claims>> = Mutex::new(BTreeMap::new());
    let ballot = card.ballot.as_ref().map(|ballot| ballot.queries.len());
    let key = format!("{} {:?} {:?} {ballot:?}", card.mechanism, card.claim_owners(), card.counted_queries());
    let mut stated = STATED.lock().unwrap();
    card.claims = stated
        .entry(key)
        .or_insert_with(|| {
            card.state_claims(Delta::new(1e-4).unwrap(), WorkLimit::default()).unwrap();
            card.claims.clone()
        })
        .clone();
}

/// A checker that verifies alike claims once for all tests.
pub(crate) fn checker(policy: Policy) -> Checker {
    static FIRST: OnceLock<Checker> = OnceLock::new();
    let first = FIRST.get_or_init(|| Checker::new(policy.clone()));
    Checker::new(policy).sharing(first)
}

/// Makes a ballot of a card.
pub(crate) fn with_ballot(card: &mut Card, names: &[&str], most_yes: u64) {
    let query = |name: &&str| BallotQuery { name: (*name).to_owned(), predicate: format!("station == \"{name}\"") };
    card.predicate = None;
    card.ballot = Some(CardBallot { most_yes, queries: names.iter().map(query).collect() });
    state_claims(card);
}

/// A policy that allows the card above.
pub(crate) fn policy_text(signer: &Signer) -> String {
    format!(
        "signers = [\"{}\"]\nattributes = [\"station\"]\n\
         [card]\ntrust = \"owners\"\nanswer = 20.0\nlinked = 20.0\nrelease = 4.0\nanswer-with-release = 20.0\ndelta = 1e-4\n\
         honest = 1.0\nseparate-operators = false\nenrolment = false\n\
         [lifetime]\nlinked = 100.0\nrelease = 20.0\ndelta = 1e-2\n",
        signer.public()
    )
}

pub(crate) fn policy(signer: &Signer) -> Policy {
    Policy::from_toml(&policy_text(signer)).unwrap()
}

/// A client, and the clock that it goes by.
pub(crate) struct Device {
    client: Client,
    pub(crate) clock: Clock,
}

impl Device {
    /// Makes the reports of all entries, moves the clock to their moment and sends them once.
    pub(crate) async fn upload(&self, owners: &BTreeMap<String, Attributes>) -> uptack_owner::Result<usize> {
        self.client.prepare(owners).await?;
        if let Some(moment) = self.client.ledger().next_due()? {
            self.clock.set(moment.max(self.clock.now()));
        }
        self.client.send_due().await
    }
}

impl std::ops::Deref for Device {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// A client with a ledger in a directory and a clock that stands; the desk is never asked.
pub(crate) fn client(directory: &Path, policy: Policy) -> Device {
    client_at(directory, policy, Clock::standing_at(now()))
}

pub(crate) fn client_at(directory: &Path, policy: Policy, clock: Clock) -> Device {
    client_with(directory, policy, clock, |_| {})
}

pub(crate) fn client_with(directory: &Path, policy: Policy, clock: Clock, adjust: impl FnOnce(&mut Config)) -> Device {
    let mut config = Config::new("http://127.0.0.1:9/".parse::<Url>().unwrap());
    config.within = Some(0);
    config.clock = clock.clone();
    adjust(&mut config);
    let client = Client::new(config, checker(policy), Ledger::open(directory).unwrap()).unwrap();
    Device { client, clock }
}

pub(crate) fn owner(name: &str, attributes: &str) -> Named {
    (name.to_owned(), uptack_owner::attributes::Attributes::from_json(attributes).unwrap())
}

pub(crate) fn open_raw(file: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(file).unwrap()
}

/// A running pair, and the collector of the one card that it serves.
pub(crate) struct World {
    pub(crate) signer: Signer,
    pub(crate) pair: Pair,
    _data: TempDir,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    pub(crate) async fn start_with(enrolled: Option<&[OwnerSecret]>) -> Self {
        let data = tempfile::tempdir().unwrap();
        let file = enrolled.map(|secrets| {
            let path = data.path().join("credentials");
            let lines: Vec<String> = secrets.iter().map(|secret| secret.public().to_string()).collect();
            std::fs::write(&path, lines.join("\n")).unwrap();
            path
        });
        let pair = Pair::start(data.path(), |config| config.credentials = file.clone()).await.unwrap();
        Self { signer: Signer::generate(), pair, _data: data }
    }

    /// Names the pair on a card, signs it and has the pair serve it.
    pub(crate) async fn serve(&self, mut card: Card) -> (SignedCard, Collector) {
        let (leader, helper) = (self.pair.leader.url().to_string(), self.pair.helper.url().to_string());
        card.aggregators = Some(Aggregators { leader, helper });
        self.serve_at(card).await
    }

    /// Has the helper know the task of a card whose leader is somebody else, so that it hands out its key.
    pub(crate) async fn serve_keys(&self, signed: &SignedCard) {
        let parameters = card_task::parameters(&card_task::read(&signed.card).unwrap()).unwrap();
        let task = TaskSet::generate(parameters).unwrap().with_card(&signed.card).unwrap();
        self.pair.helper.add_task(task.helper).await.unwrap();
    }

    /// The same for a card that names its aggregators already.
    pub(crate) async fn serve_at(&self, card: Card) -> (SignedCard, Collector) {
        let signed = self.signer.sign(&card).unwrap();
        let task = TaskSet::generate(card_task::parameters(&card).unwrap()).unwrap();
        let task = task.with_card(&signed.card).unwrap();
        self.pair.add_task(&task).await.unwrap();
        (signed, Collector::new(task.collector).unwrap())
    }
}

pub(crate) async fn collect(signed: &SignedCard, collector: &Collector) -> uptack_dap::Result<Collected> {
    let card = card_task::read(&signed.card).unwrap();
    let parameters = card_task::parameters(&card).unwrap();
    let batch = parameters.batch(card.window().unwrap().0, 1).unwrap();
    collector.collect(&Collector::new_job(), batch, std::time::Duration::from_secs(60)).await
}
