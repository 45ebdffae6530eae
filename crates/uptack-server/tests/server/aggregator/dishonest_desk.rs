//! A desk that cheats: it holds the operators' admin tokens, and asks two honest aggregators for what its card does not
//! allow.

use std::{path::Path, sync::LazyLock};
use tempfile::TempDir;
use uptack::{
    card::{Aggregators, Card, Timestamp},
    plan::{Prior, Request, plan},
    privacy::{Delta, Epsilon},
};
use uptack_dap::{
    card_task,
    client::Client,
    collector::Collector,
    protocol::Measurement,
    signed::{SignedCard, Signer},
    task::{AggregatorRole, AggregatorTask, CollectorTask, TaskParameters, TaskSet},
    token::Token,
};
use uptack_server::aggregator::{Admission, Aggregator, CardDefinition, Config, DeskToken, PairSecret, TaskDefinition};
use url::Url;

use crate::aggregator::support::{PATIENCE, eventually, metric, now};

/// The minimum batch that owners were promised.
const PROMISED: u64 = 150;

/// Two honest aggregators that know the desk's key, and the desk that has their operators' token.
struct Stage {
    directory: TempDir,
    desk: Signer,
    admin: Token,
    leader: Aggregator,
    helper: Aggregator,
}

impl Stage {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(adjust: impl Fn(&mut Admission)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (desk, admin, pair) = (Signer::generate(), Token::generate(), PairSecret::generate());
        let mut admission =
            Admission { desk_keys: vec![desk.public()], pair_secret: Some(pair), ..Admission::default() };
        adjust(&mut admission);
        let config = |role| config(role, directory.path(), &admission, &admin);
        let helper = Aggregator::start(config(AggregatorRole::Helper)).await.unwrap();
        let leader = Aggregator::start(config(AggregatorRole::Leader)).await.unwrap();
        Self { directory, desk, admin, leader, helper }
    }

    /// A card with this minimum batch. Its claims are those of the promised one: they are for owners to check.
    fn card(&self, minimum: u64) -> Card {
        card_by(&self.desk, minimum, [self.leader.url(), self.helper.url()])
    }

    fn urls(&self) -> [(AggregatorRole, Url); 2] {
        [(AggregatorRole::Leader, self.leader.url()), (AggregatorRole::Helper, self.helper.url())]
    }

    /// What the desk sends to an aggregator, and what the aggregator says.
    async fn put(&self, base: &Url, task: &str, body: String) -> (u16, String) {
        let url = base.join(&format!("uptack/tasks/{task}")).unwrap();
        let request = reqwest::Client::new().put(url).bearer_auth(self.admin.as_str()).body(body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// Asks both to serve a card, and gives back what each says.
    async fn ask(&self, card: &SignedCard, collector: &CollectorTask) -> [(u16, String); 2] {
        let mut answers = Vec::new();
        for (role, url) in self.urls() {
            let definition = CardDefinition::new(role, card.clone(), collector);
            answers.push(self.put(&url, &card.query, text(&definition)).await);
        }
        answers.try_into().unwrap()
    }

    async fn tasks(&self) -> [u64; 2] {
        [
            metric(&self.leader.operations_url().unwrap(), "uptack_tasks ").await,
            metric(&self.helper.operations_url().unwrap(), "uptack_tasks ").await,
        ]
    }

    async fn is_refused(&self, card: &SignedCard, words: &str) {
        let collector = collector(&card.open().map_or_else(|_| self.card(PROMISED), |opened| opened.card));
        for (status, body) in self.ask(card, &collector).await {
            assert!(status == 400 && body.contains(words), "{status}: {body}");
        }
        assert_eq!(self.tasks().await, [0, 0]);
    }
}

/// A desk's card with this minimum batch, for these aggregators.
fn card_by(desk: &Signer, minimum: u64, [leader, helper]: [Url; 2]) -> Card {
    let mut card = planned();
    card.minimum_batch = minimum;
    let (opens, closes) = card_task::window(now(), 3600).unwrap();
    card.opens = Some(Timestamp::from_seconds(opens).unwrap());
    card.closes = Some(Timestamp::from_seconds(closes).unwrap());
    card.aggregators = Some(Aggregators { leader: leader.to_string(), helper: helper.to_string() });
    card.signer = Some(desk.public().to_string());
    card
}

/// A card as it is planned, which takes a while and is the same for all tests.
fn planned() -> Card {
    static PLANNED: LazyLock<Card> = LazyLock::new(|| {
        let mut request = Request::new(200, Prior::at(20));
        request.minimum_batch = PROMISED;
        request.release = Some((Epsilon::new(3.0).unwrap(), Delta::new(1e-2).unwrap()));
        Card::new(&request, &plan(&request).unwrap())
    });
    PLANNED.clone()
}

fn config(role: AggregatorRole, directory: &Path, admission: &Admission, admin: &Token) -> Config {
    let mut config = Config::new(role, directory.join(role.to_string()));
    config.gather = std::time::Duration::from_millis(5);
    config.admission = admission.clone();
    config.admin_token = Some(admin.clone());
    config
}

fn collector(card: &Card) -> CollectorTask {
    CollectorTask::generate(card_task::parameters(card).unwrap())
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

async fn upload(card: &Card, reports: u64) -> Client {
    let client = Client::new(card_task::parameters(card).unwrap()).unwrap();
    for _ in 0..reports {
        client.upload(&Measurement::Cell(0), card.window().unwrap().0, PATIENCE).await.unwrap();
    }
    client
}

/// Two desks at one pair, each with a token of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_desk_manages_the_tasks_of_its_own_cards_and_no_others() {
    let directory = tempfile::tempdir().unwrap();
    let (mine, theirs) = (Signer::generate(), Signer::generate());
    let admission = Admission {
        desk_keys: vec![mine.public(), theirs.public()],
        pair_secret: Some(PairSecret::generate()),
        ..Admission::default()
    };
    let operator = Token::generate();
    let [my_token, their_token] = [&mine, &theirs].map(|_| Token::generate());
    let mut config = config(AggregatorRole::Helper, directory.path(), &admission, &operator);
    config.desk_tokens = [(&mine, &my_token), (&theirs, &their_token)]
        .map(|(desk, token)| DeskToken { desk: desk.public(), token: token.clone() })
        .to_vec();
    let helper = Aggregator::start(config).await.unwrap();
    let leader = "http://127.0.0.1:1/".parse().unwrap();
    let card = card_by(&theirs, PROMISED, [leader, helper.url()]);
    let signed = theirs.sign(&card).unwrap();
    let path = helper.url().join(&format!("uptack/tasks/{}", signed.query)).unwrap();
    let definition = text(&CardDefinition::new(AggregatorRole::Helper, signed, &collector(&card)));
    let call = async |method: reqwest::Method, token: &Token| {
        let request = reqwest::Client::new().request(method, path.clone()).bearer_auth(token.as_str());
        request.body(definition.clone()).send().await.unwrap().status().as_u16()
    };
    let (put, get, delete) = (reqwest::Method::PUT, reqwest::Method::GET, reqwest::Method::DELETE);
    assert_eq!(call(put.clone(), &my_token).await, 403, "nor may it add them");
    assert_eq!(call(put, &their_token).await, 201);
    for method in [get.clone(), delete.clone()] {
        assert_eq!(call(method, &my_token).await, 403);
    }
    assert_eq!([call(get.clone(), &their_token).await, call(get, &operator).await], [200, 200]);
    let listed = async |token: &Token| {
        let request = reqwest::Client::new().get(helper.url().join("uptack/tasks").unwrap());
        let document: serde_json::Value =
            request.bearer_auth(token.as_str()).send().await.unwrap().json().await.unwrap();
        document["tasks"].as_array().map(Vec::len)
    };
    let seen = [listed(&my_token).await, listed(&their_token).await, listed(&operator).await];
    assert_eq!(seen, [Some(0), Some(1), Some(1)]);
    assert_eq!(listed(&Token::generate()).await, None, "strangers see no tasks");
    assert_eq!(call(delete, &their_token).await, 204);
}

#[tokio::test]
async fn an_aggregator_does_not_start_with_a_token_that_can_be_guessed() {
    let directory = tempfile::tempdir().unwrap();
    let short = Token::try_from("x".to_owned()).unwrap();
    let config = config(AggregatorRole::Helper, directory.path(), &Admission::default(), &short);
    let error = Aggregator::start(config).await.err().unwrap();
    assert!(error.is_input() && error.to_string().contains("the admin token: the token has 1 characters"), "{error}");
}

/// As it was done: the card's own task, without the card, with a minimum of one and windows of a second, so that each
/// report makes a batch.
#[tokio::test(flavor = "multi_thread")]
async fn single_reports_are_not_released_by_a_definition_without_a_card() {
    let stage = Stage::new().await;
    let card = stage.card(PROMISED);
    let honest = card_task::parameters(&card).unwrap();
    let lowered = TaskParameters { min_batch_size: 1, time_precision: 1, ..honest.clone() };
    let set = TaskSet::generate(lowered).unwrap();
    for (role, url) in stage.urls() {
        let task = if role == AggregatorRole::Leader { &set.leader } else { &set.helper };
        let (status, body) = stage.put(&url, &honest.task_id.to_string(), text(task)).await;
        assert!(status == 400 && body.contains("no signed card"), "{status}: {body}");
    }
    assert_eq!(stage.tasks().await, [0, 0]);

    // With the task of the card, all that the desk can do is what the card says: 29 reports are too few.
    let signed = stage.desk.sign(&card).unwrap();
    let part = collector(&card);
    for (status, body) in stage.ask(&signed, &part).await {
        assert_eq!(status, 201, "{body}");
    }
    upload(&card, 29).await;
    let base = stage.helper.operations_url().unwrap();
    let added = "uptack_reports_aggregated_total{outcome=\"added\"}";
    eventually("both have added them", async || metric(&base, added).await == 29).await;
    let desk = Collector::new(part).unwrap();
    for seconds in 0..29 {
        let batch = honest.batch(card.window().unwrap().0 + seconds, 1).unwrap();
        let error = desk.collect(&Collector::new_job(), batch, PATIENCE).await.unwrap_err();
        assert!(error.is_batch_too_small(), "{error}");
    }
    // Nor by asking for the task once more in other words, or by taking it back and giving it again.
    for (role, url) in stage.urls() {
        let task = if role == AggregatorRole::Leader { &set.leader } else { &set.helper };
        assert_eq!(stage.put(&url, &signed.query, text(task)).await.0, 400);
        let request = reqwest::Client::new().delete(url.join(&format!("uptack/tasks/{}", signed.query)).unwrap());
        assert!(request.bearer_auth(stage.admin.as_str()).send().await.unwrap().status().is_success());
        assert_eq!(stage.put(&url, &signed.query, text(task)).await.0, 400);
    }
    for (status, body) in stage.ask(&signed, &collector(&card)).await {
        assert!(status == 400 && body.contains("names are not used twice"), "{status}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_beside_a_card_are_refused_whatever_they_say() {
    let stage = Stage::new().await;
    let card = stage.card(PROMISED);
    let signed = stage.desk.sign(&card).unwrap();
    let honest = card_task::parameters(&card).unwrap();
    let lowered = TaskParameters { min_batch_size: 1, ..honest.clone() };
    for parameters in [honest.clone(), lowered] {
        let definition = CardDefinition::new(AggregatorRole::Helper, signed.clone(), &collector(&card));
        let mut document = serde_json::to_value(&definition).unwrap();
        document["parameters"] = serde_json::to_value(&parameters).unwrap();
        assert_eq!(stage.put(&stage.helper.url(), &signed.query, document.to_string()).await.0, 400);
        let mut document = serde_json::to_value(&definition).unwrap();
        document["min_batch_size"] = 1.into();
        assert_eq!(stage.put(&stage.helper.url(), &signed.query, document.to_string()).await.0, 400);
        // The form of the first version: all of the task, with the card beside it.
        let set = TaskSet::generate(parameters).unwrap();
        let mut old = serde_json::to_value(&set.helper).unwrap();
        (old["card"], old["card_signature"]) = (signed.card.clone().into(), signed.signature.clone().into());
        assert_eq!(stage.put(&stage.helper.url(), &signed.query, old.to_string()).await.0, 400);
    }
    // And under another name than the card's own.
    let other = collector(&stage.card(PROMISED + 1));
    let definition = CardDefinition::new(AggregatorRole::Helper, signed, &other);
    let name = other.parameters.task_id.to_string();
    assert_eq!(stage.put(&stage.helper.url(), &name, text(&definition)).await.0, 400);
    assert_eq!(stage.tasks().await, [0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cards_of_another_signer_and_false_signatures_are_refused() {
    let stage = Stage::new().await;
    let stranger = Signer::generate();
    let mut card = stage.card(PROMISED);
    card.signer = Some(stranger.public().to_string());
    stage.is_refused(&stranger.sign(&card).unwrap(), "not served here").await;

    let signed = stage.desk.sign(&stage.card(PROMISED)).unwrap();
    let lower = stage.card(1);
    let forged = SignedCard {
        query: card_task::task_id(&lower.canonical()).to_string(),
        card: lower.canonical(),
        signature: signed.signature.clone(),
    };
    stage.is_refused(&forged, "signature").await;
    let malformed = SignedCard { signature: "AAAA".to_owned(), ..signed.clone() };
    stage.is_refused(&malformed, "signature").await;
    let mut unsigned = stage.card(PROMISED);
    unsigned.signer = None;
    let nobody = SignedCard {
        query: card_task::task_id(&unsigned.canonical()).to_string(),
        card: unsigned.canonical(),
        signature: signed.signature.clone(),
    };
    stage.is_refused(&nobody, "signer").await;
    // One server in both roles.
    let mut alone = stage.card(PROMISED);
    let leader = stage.leader.url().to_string();
    alone.aggregators = Some(Aggregators { helper: leader.clone(), leader });
    stage.is_refused(&stage.desk.sign(&alone).unwrap(), "one server").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_below_the_operators_floor_is_refused_although_it_is_signed() {
    let stage = Stage::with(|admission| admission.smallest_batch = 100).await;
    stage.is_refused(&stage.desk.sign(&stage.card(99)).unwrap(), "none below 100").await;
    let card = stage.card(100);
    for (status, body) in stage.ask(&stage.desk.sign(&card).unwrap(), &collector(&card)).await {
        assert_eq!(status, 201, "{body}");
    }
}

/// The card promises noise; the desk asks for a task with less, or with none.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_with_other_noise_than_the_cards_is_refused() {
    let stage = Stage::with(|admission| admission.allow_tasks_without_card = true).await;
    let mut card = stage.card(PROMISED);
    card.mechanism = format!("{} + laplace(scale=2)", card.mechanism).parse().unwrap();
    // Another noise in the text than beside the integers is no card at all.
    assert!(card_task::parameters(&card).unwrap_err().to_string().contains("integers"));
    card.channel.noise = card.mechanism.noise().copied();
    let promised = card_task::parameters(&card).unwrap();
    assert_eq!(promised.noise.unwrap().to_string(), "laplace(scale=2)");
    for noise in [None, Some("laplace(scale=1.9)".parse().unwrap())] {
        let set = TaskSet::generate(TaskParameters { noise, ..promised.clone() }).unwrap();
        for (part, (_, url)) in [&set.leader, &set.helper].into_iter().zip(stage.urls()) {
            let part = AggregatorTask { card: Some(card.canonical()), ..part.clone() };
            let (status, body) = stage.put(&url, &promised.task_id.to_string(), text(&part)).await;
            assert!(status == 400 && body.contains("not those of the card"), "{status}: {body}");
        }
    }
    assert_eq!(stage.tasks().await, [0, 0]);
    // From the signed card each aggregator takes the noise for itself, and nothing beside the card can change it.
    let (signed, part) = (stage.desk.sign(&card).unwrap(), collector(&card));
    let definition = CardDefinition::new(AggregatorRole::Helper, signed.clone(), &part);
    let (_, task) = definition.resolve(&PairSecret::generate()).unwrap();
    assert_eq!(task.parameters.noise, promised.noise);
    let beside = text(&definition).replacen('{', r#"{"noise":null,"#, 1);
    assert_eq!(stage.put(&stage.helper.url(), &signed.query, beside).await.0, 400);
    for (status, body) in stage.ask(&signed, &part).await {
        assert_eq!(status, 201, "{body}");
    }
    // And once it is served, it is not served again without.
    let mut plain = TaskSet::generate(TaskParameters { noise: None, ..promised.clone() }).unwrap().helper;
    plain.card = None;
    let (status, body) = stage.put(&stage.helper.url(), &signed.query, text(&plain)).await;
    assert!(status == 400 && body.contains("another definition"), "{status}: {body}");
}

/// Two cards for one question, one with a minimum that releases single reports: they are two tasks, and what owners
/// sealed for the one is of no use in the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_card_does_not_get_at_the_reports_of_the_first() {
    let stage = Stage::new().await;
    let (honest, greedy) = (stage.card(PROMISED), stage.card(1));
    let (promised, other) = (collector(&honest), collector(&greedy));
    for (card, part) in [(&honest, &promised), (&greedy, &other)] {
        for (status, body) in stage.ask(&stage.desk.sign(card).unwrap(), part).await {
            assert_eq!(status, 201, "{body}");
        }
    }
    let client = upload(&honest, 3).await;
    let report = client.seal(&Measurement::Cell(0), honest.window().unwrap().0).await.unwrap();
    let replayed = Client::new(other.parameters.clone()).unwrap().send(&report).await.unwrap_err();
    assert!(replayed.is_refused() && replayed.to_string().contains("does not open"), "{replayed}");
    for part in [promised, other] {
        let batch = part.parameters.batch(honest.window().unwrap().0, 1).unwrap();
        let error = Collector::new(part).unwrap().collect(&Collector::new_job(), batch, PATIENCE).await.unwrap_err();
        assert!(error.is_batch_too_small(), "{error}");
    }
}

/// What an operator no longer admits is not served any more, and what nobody admitted never was.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_who_names_nobody_serves_nothing() {
    let stage = Stage::new().await;
    let card = stage.card(PROMISED);
    let signed = stage.desk.sign(&card).unwrap();
    for (status, _) in stage.ask(&signed, &collector(&card)).await {
        assert_eq!(status, 201);
    }
    let Stage { directory, admin, leader, helper, .. } = stage;
    let start = async |admission: &Admission| {
        Aggregator::start(config(AggregatorRole::Helper, directory.path(), admission, &admin)).await.unwrap()
    };
    leader.shutdown().await;
    helper.shutdown().await;
    let nobody = Admission::default();
    assert!(nobody.admits_nothing());
    let helper = start(&nobody).await;
    assert_eq!(metric(&helper.operations_url().unwrap(), "uptack_tasks ").await, 0);
    let definition = CardDefinition::new(AggregatorRole::Helper, signed.clone(), &collector(&card));
    assert!(helper.add_task(definition).await.unwrap_err().is_input());
    helper.shutdown().await;
    // Pinned again, under another pair's secret: the task is served with the keys that it began with.
    let desk_keys = vec![signed.open().unwrap().signer];
    let again = Admission { desk_keys, pair_secret: Some(PairSecret::generate()), ..Admission::default() };
    let helper = start(&again).await;
    assert_eq!(metric(&helper.operations_url().unwrap(), "uptack_tasks ").await, 1);
}

/// The desk sees a card, its own token and its own key; what the two aggregators share is in neither definition.
#[test]
fn nothing_that_the_desk_sends_tells_the_aggregators_secrets() {
    let desk = Signer::generate();
    let mut card = planned();
    let (opens, closes) = card_task::window(now(), 600).unwrap();
    (card.opens, card.closes) =
        (Some(Timestamp::from_seconds(opens).unwrap()), Some(Timestamp::from_seconds(closes).unwrap()));
    let (leader, helper) = ("http://127.0.0.1:1/".to_owned(), "http://127.0.0.1:2/".to_owned());
    card.aggregators = Some(Aggregators { leader, helper });
    card.signer = Some(desk.public().to_string());
    let (signed, part) = (desk.sign(&card).unwrap(), collector(&card));
    let definitions = [AggregatorRole::Leader, AggregatorRole::Helper]
        .map(|role| TaskDefinition::from(CardDefinition::new(role, signed.clone(), &part)));
    let pair = PairSecret::generate();
    let admission = Admission { desk_keys: vec![desk.public()], pair_secret: Some(pair), ..Admission::default() };
    let [leader, helper] = definitions.map(|definition| admission.resolve(&definition).unwrap());
    // Both derive the same, from the card and their secret alone.
    assert_eq!(leader.verify_key, helper.verify_key);
    let token = leader.aggregator_token.as_ref().unwrap();
    assert!(helper.aggregator_token_hash.as_ref().unwrap().matches(token.as_str().as_bytes()));
    assert_eq!(leader.parameters, card_task::parameters(&card).unwrap());
    // Another pair, other keys: the desk cannot compute them from what it knows.
    let other = Admission { pair_secret: Some(PairSecret::generate()), ..admission };
    let definition = TaskDefinition::from(CardDefinition::new(AggregatorRole::Leader, signed.clone(), &part));
    assert_ne!(other.resolve(&definition).unwrap().verify_key, leader.verify_key);
    let sent = text(&CardDefinition::new(AggregatorRole::Leader, signed, &part));
    assert!(!sent.contains("verify_key") && !sent.contains("aggregator_token") && !sent.contains(part.token.as_str()));
}
