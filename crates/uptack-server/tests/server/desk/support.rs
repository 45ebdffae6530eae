//! What the tests share: a desk on a clock that stands, cards, owners who upload.

use std::{path::Path, time::Duration};
use tempfile::TempDir;
use uptack::{
    card::{BallotQuery, Card, CardBallot},
    plan::{Prior, Request, plan},
    privacy::{Delta, Epsilon},
};
use uptack_dap::{
    Error, card_task, client as owner,
    clock::Clock,
    desk_client::{DeskClient, Opened, Schedule},
    protocol::Measurement,
    release::record::Record,
    signed::SignedCard,
    task::CollectorTask,
    token::Token,
};
use uptack_server::desk::{Config, Desk};
use url::Url;

/// Long enough for any test on a slow machine; nothing waits for it in vain.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// Where clocks stand at first.
pub(crate) const START: u64 = 1_800_000_000;
/// The smallest batch of the tests' cards.
pub(crate) const MINIMUM: u64 = 8;

/// A desk in this process.
pub(crate) struct Stage {
    pub(crate) directory: TempDir,
    pub(crate) clock: Clock,
    pub(crate) desk: Desk,
    pub(crate) analyst: DeskClient,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(adjust: impl FnOnce(&mut Config)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Clock::standing_at(START);
        let mut config = config(directory.path(), &clock);
        adjust(&mut config);
        let desk = Desk::start(config).await.unwrap();
        Self { analyst: analyst(&desk), directory, clock, desk }
    }

    /// A caller with a token of its own: an analyst, or an administrator by the name of its file.
    pub(crate) fn caller(&self, file: &str) -> DeskClient {
        let token = Token::generate();
        std::fs::write(self.directory.path().join("tokens").join(file), token.as_str()).unwrap();
        DeskClient::new(&self.desk.url(), Some(token), None).unwrap()
    }

    /// Asks one question for ten minutes.
    pub(crate) async fn ask(&self) -> Opened {
        self.analyst.open(&card(), Schedule::Once { seconds: 600 }).await.unwrap()
    }

    /// Moves the clock behind a query's close and its grace.
    pub(crate) fn pass(&self, card: &Card) {
        self.clock.set(card.window().unwrap().1 + 2);
    }

    /// The record's text, as soon as there is one.
    pub(crate) async fn result(&self, query: &str) -> Result<String, Error> {
        result(&self.analyst, query).await
    }
}

pub(crate) fn config(data: &Path, clock: &Clock) -> Config {
    Config { clock: clock.clone(), ..Config::new(data) }
}

pub(crate) fn analyst(desk: &Desk) -> DeskClient {
    let token = std::fs::read_to_string(desk.first_token()).unwrap();
    DeskClient::new(&desk.url(), Some(Token::try_from(token.trim().to_owned()).unwrap()), None).unwrap()
}

/// Starts a desk as soon as the one before has let go of its files and ports.
pub(crate) async fn restart(config: Config) -> Desk {
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        match Desk::start(config.clone()).await {
            Ok(desk) => return desk,
            Err(error) => assert!(std::time::Instant::now() < end, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) async fn result(analyst: &DeskClient, query: &str) -> Result<String, Error> {
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        match analyst.result(query).await {
            Err(error) if error.refused_with() == Some(409) => assert!(std::time::Instant::now() < end, "{error}"),
            outcome => return outcome,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A small planned card with a predicate.
pub(crate) fn card() -> Card {
    let mut request = Request::new(20, Prior::at(5));
    request.minimum_batch = MINIMUM;
    // Three cells, and ⊥ is drawn.
    request.participation = Some(0.8);
    request.family = Some("normal-form".to_owned());
    request.release = Some((Epsilon::new(3.0).unwrap(), Delta::new(1e-2).unwrap()));
    let mut card = Card::new(&request, &plan(&request).unwrap());
    card.question = Some("Do you stand at station 7?".to_owned());
    card.predicate = Some("station == \"7\"".to_owned());
    card.attributes = vec!["station".to_owned()];
    card
}

/// The same card with a ballot in place of its predicate.
pub(crate) fn ballot(names: &[&str]) -> Card {
    let mut card = card();
    let query = |name: &&str| BallotQuery { name: (*name).to_owned(), predicate: format!("station == {name:?}") };
    card.predicate = None;
    card.ballot = Some(CardBallot { most_yes: 1, queries: names.iter().map(query).collect() });
    card
}

/// Owners who answer a card, one report for each cell named.
pub(crate) async fn upload(card: &Card, cells: &[usize]) {
    let measurements: Vec<Measurement> = cells.iter().map(|cell| Measurement::Cell(*cell)).collect();
    upload_all(card, &measurements).await.unwrap();
}

pub(crate) async fn upload_all(card: &Card, measurements: &[Measurement]) -> uptack_dap::Result<()> {
    let client = owner::Client::new(card_task::parameters(card)?)?;
    for measurement in measurements {
        client.upload(measurement, card.window().unwrap().0, PATIENCE).await?;
    }
    Ok(())
}

pub(crate) fn read(record: &str) -> (Record, Card) {
    let (record, opened) = Record::read(record).unwrap();
    (record, opened.card)
}

/// The only open card.
pub(crate) async fn only_open(analyst: &DeskClient) -> SignedCard {
    let mut open = analyst.list().await.unwrap();
    assert_eq!(open.len(), 1);
    open.remove(0)
}

pub(crate) async fn state(analyst: &DeskClient, query: &str) -> String {
    analyst.status(query).await.unwrap().state
}

/// Waits until `condition` holds; fails the test if it never does.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let end = std::time::Instant::now() + PATIENCE;
    while !condition().await {
        assert!(std::time::Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What the desk alone knows of a query: the collector's part of its task. None when the desk has forgotten it.
pub(crate) fn collector_task(data: &Path, query: &str) -> Option<CollectorTask> {
    let store = rusqlite::Connection::open(data.join("desk.sqlite3")).unwrap();
    let text: Option<String> =
        store.query_row("SELECT tasks FROM queries WHERE query = ?1", [query], |row| row.get(0)).unwrap();
    text.map(|text| serde_json::from_str(&text).unwrap())
}

/// Rows that an embedded aggregator keeps of reports and their sums.
pub(crate) fn rows(data: &Path, role: &str) -> i64 {
    let store = rusqlite::Connection::open(data.join(role).join("state.sqlite3")).unwrap();
    let count = |table: &str| -> i64 {
        store.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    ["reports", "report_ids", "batches", "leader_jobs", "helper_jobs", "collection_jobs"].iter().map(|t| count(t)).sum()
}

/// A call without any token.
pub(crate) async fn call(method: &str, base: &Url, path: &str, token: Option<&str>) -> (u16, serde_json::Value) {
    let method = method.to_uppercase().parse().unwrap();
    let mut request = reqwest::Client::new().request(method, base.join(path).unwrap());
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let server = response.headers()["server"].to_str().unwrap().to_owned();
    assert!(server.starts_with("uptack/"), "{server}");
    if status >= 400 {
        assert_eq!(response.headers()["content-type"], "application/problem+json");
    }
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or_default())
}
