//! Aggregators elsewhere: ours over their operator's interface, others by files.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};
use uptack::card::Operators;
use uptack_dap::{
    clock::Clock,
    desk_client::Schedule,
    signed::{PublicKey, Signer},
    task::AggregatorRole,
    token::Token,
};
use uptack_server::{
    aggregator::{self, Admission, Aggregator, PairSecret, TaskDefinition},
    desk::{
        Config, Desk,
        config::{AggregatorsConfig, Remote},
    },
};
use url::Url;

use crate::desk::support::{MINIMUM, Stage, analyst, card, config, eventually, read, restart, result, state, upload};

pub(crate) struct Elsewhere {
    directory: tempfile::TempDir,
    clock: Clock,
    admin: Token,
    /// What the two aggregators share.
    pub(crate) pair: PairSecret,
    ports: [u16; 2],
}

impl Elsewhere {
    pub(crate) fn new(clock: Clock) -> Self {
        // Both at once, so that they differ; free again when they are dropped.
        let listeners = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = listeners.map(|listener| listener.local_addr().unwrap().port());
        Self {
            directory: tempfile::tempdir().unwrap(),
            clock,
            admin: Token::generate(),
            pair: PairSecret::generate(),
            ports,
        }
    }

    fn data(&self, role: AggregatorRole) -> PathBuf {
        self.directory.path().join(role.to_string())
    }

    fn url(&self, index: usize) -> Url {
        format!("http://127.0.0.1:{}", self.ports[index]).parse().unwrap()
    }

    /// Starts one of the two, which serves the cards of one desk.
    pub(crate) async fn start(&self, role: AggregatorRole, desk: PublicKey) -> Aggregator {
        let index = usize::from(role == AggregatorRole::Helper);
        let pair_secret = Some(self.pair.clone());
        let config = aggregator::Config {
            admission: Admission { desk_keys: vec![desk], pair_secret, ..Admission::default() },
            listen: SocketAddr::from(([127, 0, 0, 1], self.ports[index])),
            admin_token: Some(self.admin.clone()),
            clock: self.clock.clone(),
            ..aggregator::Config::new(role, self.data(role))
        };
        let end = std::time::Instant::now() + Duration::from_secs(60);
        loop {
            match Aggregator::start(config.clone()).await {
                Ok(aggregator) => return aggregator,
                Err(error) => assert!(std::time::Instant::now() < end, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn aggregators(&self, admin: Option<Token>) -> AggregatorsConfig {
        let remote = |index| Remote { url: self.url(index), admin: admin.clone() };
        AggregatorsConfig::External { leader: remote(0), helper: remote(1), one_operator: false }
    }

    pub(crate) fn config(&self, data: &Path) -> Config {
        let aggregators = self.aggregators(Some(self.admin.clone()));
        Config { aggregators, compare_every: Duration::from_millis(50), ..config(data, &self.clock) }
    }
}

#[tokio::test]
async fn a_query_waits_for_aggregators_that_are_away_and_loses_nothing() {
    let elsewhere = Elsewhere::new(Clock::standing_at(crate::desk::support::START));
    let data = tempfile::tempdir().unwrap();
    let desk = uptack_server::desk::Desk::start(elsewhere.config(data.path())).await.unwrap();
    let opened = analyst(&desk).open(&card(), Schedule::Once { seconds: 600 }).await.unwrap();
    let query = &opened.queries[0].query;
    assert_eq!(opened.card.operators, Some(Operators::Two));
    assert_eq!(state(&analyst(&desk), query).await, "opening");
    assert!(analyst(&desk).list().await.unwrap().is_empty(), "owners could not answer it yet");
    let key = desk.signer();
    drop(desk);

    // Between opening and provisioning the desk ended; the next run takes it up.
    let helper = elsewhere.start(AggregatorRole::Helper, key).await;
    let leader = elsewhere.start(AggregatorRole::Leader, key).await;
    let desk = restart(elsewhere.config(data.path())).await;
    eventually("it opens", async || state(&analyst(&desk), query).await == "open").await;
    upload(&opened.card, &vec![1; MINIMUM as usize + 1]).await;

    // Between close and collection the leader is away, and the desk ends once more.
    leader.shutdown().await;
    elsewhere.clock.set(opened.card.window().unwrap().1 + 2);
    eventually("it closes", async || state(&analyst(&desk), query).await == "closed").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(desk);
    let leader = elsewhere.start(AggregatorRole::Leader, key).await;
    let desk = restart(elsewhere.config(data.path())).await;
    let (record, _) = read(&result(&analyst(&desk), query).await.unwrap());
    assert_eq!(record.reports, MINIMUM + 1);
    eventually("the tasks are removed", async || served(&leader).await + served(&helper).await == 0).await;
}

/// How many tasks an aggregator serves.
async fn served(server: &Aggregator) -> u64 {
    counter(&server.operations_url().unwrap(), "uptack_tasks").await
}

/// How often the desk found that somebody's state is an older copy.
async fn rollbacks(desk: &Desk, whose: &str) -> u64 {
    counter(&desk.operations_url(), &format!("uptack_desk_rollbacks_total{{whose=\"{whose}\"}}")).await
}

/// A number of a server's counters; 0 if it is not there yet.
async fn counter(operations: &Url, name: &str) -> u64 {
    let text = reqwest::get(operations.join("metrics").unwrap()).await.unwrap().text().await.unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse().unwrap())
}

/// Puts the copy of a server's state in its place, as an operator does who restores a backup.
fn restore(copy: &Path, data: &Path) {
    std::fs::remove_dir_all(data).unwrap();
    std::fs::rename(copy, data).unwrap();
}

/// Either aggregator could be had to release a batch again, differing by a report, with fresh noise.
#[tokio::test]
async fn an_aggregator_that_was_rolled_back_is_noticed_and_removes_its_collected_tasks_again() {
    for role in [AggregatorRole::Leader, AggregatorRole::Helper] {
        let elsewhere = Elsewhere::new(Clock::standing_at(crate::desk::support::START));
        let data = tempfile::tempdir().unwrap();
        let desk = Desk::start(elsewhere.config(data.path())).await.unwrap();
        let key = desk.signer();
        let mut servers = [
            Some(elsewhere.start(AggregatorRole::Leader, key).await),
            Some(elsewhere.start(AggregatorRole::Helper, key).await),
        ];
        let opened = analyst(&desk).open(&card(), Schedule::Once { seconds: 600 }).await.unwrap();
        let query = &opened.queries[0].query;
        eventually("it opens", async || state(&analyst(&desk), query).await == "open").await;
        upload(&opened.card, &vec![1; MINIMUM as usize + 1]).await;
        let copy = elsewhere.directory.path().join("copy");
        aggregator::back_up(&elsewhere.data(role), &copy).unwrap();
        elsewhere.clock.set(opened.card.window().unwrap().1 + 2);
        result(&analyst(&desk), query).await.unwrap();
        let index = usize::from(role == AggregatorRole::Helper);
        let server = servers[index].take().unwrap();
        eventually("the task is removed", async || served(&server).await == 0).await;
        assert_eq!(rollbacks(&desk, &role.to_string()).await, 0);

        server.shutdown().await;
        restore(&copy, &elsewhere.data(role));
        let server = elsewhere.start(role, key).await;
        eventually("it is noticed", async || rollbacks(&desk, &role.to_string()).await > 0).await;
        eventually("the task is removed again", async || served(&server).await == 0).await;
        assert_eq!(rollbacks(&desk, "desk").await, 0);
    }
}

#[tokio::test]
async fn an_aggregator_that_has_lost_an_open_task_is_noticed() {
    let elsewhere = Elsewhere::new(Clock::standing_at(crate::desk::support::START));
    let data = tempfile::tempdir().unwrap();
    let desk = Desk::start(elsewhere.config(data.path())).await.unwrap();
    let key = desk.signer();
    let helper = elsewhere.start(AggregatorRole::Helper, key).await;
    let _leader = elsewhere.start(AggregatorRole::Leader, key).await;
    let copy = elsewhere.directory.path().join("copy");
    aggregator::back_up(&elsewhere.data(AggregatorRole::Helper), &copy).unwrap();
    let opened = analyst(&desk).open(&card(), Schedule::Once { seconds: 600 }).await.unwrap();
    eventually("it opens", async || state(&analyst(&desk), &opened.queries[0].query).await == "open").await;
    helper.shutdown().await;
    restore(&copy, &elsewhere.data(AggregatorRole::Helper));
    let _helper = elsewhere.start(AggregatorRole::Helper, key).await;
    eventually("it is noticed", async || rollbacks(&desk, "helper").await > 0).await;
    assert_eq!(rollbacks(&desk, "leader").await, 0);
}

/// A restored desk has forgotten queries: a repeated request would open a second one, for which owners pay again.
#[tokio::test]
async fn a_desk_that_was_rolled_back_is_noticed_by_the_tasks_of_its_cards() {
    let elsewhere = Elsewhere::new(Clock::standing_at(crate::desk::support::START));
    let (data, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = data.path().join("desk");
    let desk = Desk::start(elsewhere.config(&folder)).await.unwrap();
    let key = desk.signer();
    let _helper = elsewhere.start(AggregatorRole::Helper, key).await;
    let leader = elsewhere.start(AggregatorRole::Leader, key).await;
    let copy = copies.path().join("copy");
    uptack_server::desk::back_up(&folder, &copy).unwrap();
    let opened = analyst(&desk).open(&card(), Schedule::Once { seconds: 600 }).await.unwrap();
    eventually("it opens", async || state(&analyst(&desk), &opened.queries[0].query).await == "open").await;
    assert_eq!(rollbacks(&desk, "desk").await, 0);
    desk.shutdown().await;
    restore(&copy, &folder);
    let desk = restart(elsewhere.config(&folder)).await;
    eventually("it is noticed", async || rollbacks(&desk, "desk").await > 0).await;
    assert_eq!(served(&leader).await, 1, "what owners answered stays");
}

#[tokio::test]
async fn an_aggregator_that_says_no_ends_the_query() {
    let elsewhere = Elsewhere::new(Clock::standing_at(crate::desk::support::START));
    let key = Signer::generate().public();
    let _helper = elsewhere.start(AggregatorRole::Helper, key).await;
    let _leader = elsewhere.start(AggregatorRole::Leader, key).await;
    let stage = Stage::with(|config| config.aggregators = elsewhere.aggregators(Some(Token::generate()))).await;
    let error = stage.analyst.open(&card(), Schedule::Once { seconds: 600 }).await.unwrap_err();
    assert_eq!(error.refused_with(), Some(502), "{error}");
    assert!(error.to_string().contains("helper"), "{error}");
}

#[tokio::test]
async fn without_a_token_the_operators_get_files() {
    let elsewhere = Elsewhere::new(Clock::standing_at(crate::desk::support::START));
    let stage = Stage::with(|config| config.aggregators = elsewhere.aggregators(None)).await;
    let opened = stage.ask().await;
    let query = &opened.queries[0].query;
    assert_eq!(state(&stage.analyst, query).await, "open");
    let folder = stage.directory.path().join("provision").join(query);
    let names = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut written: Vec<String> = std::fs::read_dir(&folder).unwrap().map(names).collect();
    written.sort();
    assert_eq!(written, ["client.json", "helper.json", "leader.json"]);
    // Each operator computes the same task from them, with the minimum of the card.
    let admission = Admission {
        desk_keys: vec![stage.desk.signer()],
        pair_secret: Some(elsewhere.pair.clone()),
        ..Admission::default()
    };
    for name in ["leader.json", "helper.json"] {
        let task = admission.resolve(&TaskDefinition::read(&folder.join(name)).unwrap()).unwrap();
        assert_eq!((task.parameters.task_id.to_string(), task.parameters.min_batch_size), (query.clone(), MINIMUM));
    }
    stage.analyst.cancel(query).await.unwrap();
    eventually("the files are removed", async || !folder.exists()).await;
}

#[tokio::test]
async fn one_server_is_not_two() {
    let directory = tempfile::tempdir().unwrap();
    let same = Remote { url: "http://127.0.0.1:9/".parse().unwrap(), admin: None };
    let aggregators = AggregatorsConfig::External { leader: same.clone(), helper: same, one_operator: false };
    let config = Config { aggregators, ..Config::new(directory.path()) };
    assert!(uptack_server::desk::Desk::start(config).await.err().unwrap().is_input());
}
