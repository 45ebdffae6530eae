//! The interface itself: who is let in, what is documented and cached, what it survives.

use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use uptack_dap::{
    card_task, client as owner,
    credential::OwnerSecret,
    desk_client::{DeskClient, Overview, Schedule},
    listing::Page,
    protocol::Measurement,
    token::Token,
};

use crate::desk::support::{MINIMUM, START, Stage, ballot, call, card, eventually, upload};

#[tokio::test]
async fn only_analysts_ask_cancel_and_get_results() {
    let stage = Stage::new().await;
    let opened = stage.ask().await;
    let query = &opened.queries[0].query;
    let wrong = Token::generate();
    for token in [None, Some(wrong.as_str()), Some("")] {
        for (method, path) in [
            ("post", "queries".to_owned()),
            ("delete", format!("queries/{query}")),
            ("post", format!("queries/{query}/result")),
            ("get", "queries/own".to_owned()),
        ] {
            let (status, problem) = call(method, &stage.desk.url(), &path, token).await;
            assert_eq!((status, &problem["status"]), (401, &serde_json::json!(401)), "{method} {path}");
        }
    }
    let stranger = DeskClient::new(&stage.desk.url(), Some(wrong), None).unwrap();
    assert_eq!(stranger.open(&card(), Schedule::Once { seconds: 60 }).await.unwrap_err().refused_with(), Some(401));
    // Another analyst is let in, and shut out, without a restart.
    let grace = stage.caller("grace");
    let hers = grace.open(&ballot(&["north", "south"]), Schedule::Once { seconds: 60 }).await.unwrap();
    grace.cancel(&hers.queries[0].query).await.unwrap();
    std::fs::remove_file(stage.directory.path().join("tokens").join("grace")).unwrap();
    assert_eq!(grace.cancel(&hers.queries[0].query).await.unwrap_err().refused_with(), Some(401));
}

#[tokio::test]
async fn analysts_see_their_own_queries_and_administrators_everybodys() {
    let stage = Stage::new().await;
    let opened = stage.ask().await;
    let (grace, admin) = (stage.caller("grace"), stage.caller("ops.admin"));
    let hers = grace.open(&ballot(&["north", "south"]), Schedule::Once { seconds: 1200 }).await.unwrap();
    upload(&opened.card, &[0, 1, 1]).await;
    let names = |queries: Vec<Overview>| queries.into_iter().map(|query| query.query).collect::<Vec<String>>();
    let own = stage.analyst.own().await.unwrap();
    assert_eq!(own.len(), 1);
    assert_eq!((own[0].query.as_str(), own[0].state.as_str()), (opened.queries[0].query.as_str(), "open"));
    assert_eq!((own[0].reports, own[0].minimum_batch), (Some(3), Some(MINIMUM)));
    assert_eq!(own[0].question, opened.card.question);
    assert_eq!(
        (own[0].opens.as_str(), own[0].closes.as_str()),
        (&*opened.queries[0].opens, &*opened.queries[0].closes)
    );
    assert_eq!(names(grace.own().await.unwrap()), [hers.queries[0].query.clone()]);
    // The latest first.
    let everybodys = [&hers, &opened].map(|opened| opened.queries[0].query.clone());
    assert_eq!(names(admin.own().await.unwrap()), everybodys);
    let (status, _) = call("get", &stage.desk.url(), "queries/own?from=-1", None).await;
    assert_eq!(status, 401, "who asks comes first");
    // More than a page, each once.
    grace.open(&card(), Schedule::Series { every: 600, times: 205 }).await.unwrap();
    let mut all = names(grace.own().await.unwrap());
    assert_eq!(all.len(), 206);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 206);
}

#[tokio::test]
async fn every_documented_operation_answers() {
    let stage = Stage::new().await;
    let query = stage.ask().await.queries.remove(0).query;
    let document: serde_json::Value = serde_json::from_str(uptack_server::desk::OPENAPI).unwrap();
    let token = std::fs::read_to_string(stage.desk.first_token()).unwrap();
    let mut answered = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            if method == "parameters" || path == "/queries/stream" {
                continue;
            }
            let path = path.replace("{query}", &query);
            let (status, _) = call(method, &stage.desk.url(), &path[1..], Some(token.trim())).await;
            assert!(operation["responses"].get(status.to_string()).is_some(), "{method} {path} answers {status}");
            answered += 1;
        }
    }
    assert_eq!(answered, 9);
    let (status, _) = call("put", &stage.desk.url(), "queries", None).await;
    assert_eq!(status, 405);
    let (status, key) = call("get", &stage.desk.url(), "key", None).await;
    assert_eq!((status, key["signer"].as_str().unwrap()), (200, stage.desk.signer().to_string().as_str()));
}

#[tokio::test]
async fn a_stream_tells_of_each_query_when_it_opens() {
    let stage = Stage::new().await;
    let first = stage.ask().await.queries.remove(0).query;
    let response = reqwest::get(stage.desk.url().join("queries/stream").unwrap()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut events = Events { response, text: String::new() };
    assert_eq!(events.next().await, first);
    let series = stage.analyst.open(&card(), Schedule::Series { every: 900, times: 2 }).await.unwrap();
    assert!(stage.analyst.list().await.unwrap().iter().all(|card| card.query == first));
    stage.clock.set(START - START % 900 + 900);
    assert_eq!(events.next().await, series.queries[0].query);
    let metrics =
        reqwest::get(stage.desk.operations_url().join("metrics").unwrap()).await.unwrap().text().await.unwrap();
    assert!(metrics.contains("uptack_desk_streams 1"), "{metrics}");
    // A stream does not hold up the end.
    tokio::time::timeout(Duration::from_secs(8), stage.desk.shutdown()).await.unwrap();
}

struct Events {
    response: reqwest::Response,
    text: String,
}

impl Events {
    /// The name in the next event.
    async fn next(&mut self) -> String {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let name = event.strip_prefix("event: query\ndata: ").map(str::to_owned);
                self.text = rest.to_owned();
                if let Some(name) = name {
                    return name;
                }
                continue;
            }
            let chunk = self.response.chunk().await.unwrap().expect("the stream goes on");
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

#[tokio::test]
async fn a_listing_is_fetched_once_and_cards_never_change() {
    let stage = Stage::new().await;
    let query = stage.ask().await.queries.remove(0).query;
    let get = async |path: &str, tag: Option<&str>| {
        let request = reqwest::Client::new().get(stage.desk.url().join(path).unwrap());
        let request = tag.iter().fold(request, |request, tag| request.header("if-none-match", *tag));
        request.send().await.unwrap()
    };
    let first = get("queries", None).await;
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let page: Page = serde_json::from_slice(&first.bytes().await.unwrap()).unwrap();
    assert_eq!(page, Page { queries: vec![query.clone()], next: None });
    for known in [tag.clone(), format!("\"other\", W/{tag}"), "*".to_owned()] {
        let again = get("queries", Some(&known)).await;
        assert_eq!((again.status().as_u16(), again.bytes().await.unwrap().len()), (304, 0), "{known}");
    }
    assert_eq!(get("queries", Some("\"other\"")).await.status(), 200);
    assert_eq!(get("queries?after=a&after=b", None).await.status(), 400);
    let card = get(&format!("queries/{query}/card"), None).await;
    assert!(card.headers()["cache-control"].to_str().unwrap().contains("immutable"));
    let bytes = card.bytes().await.unwrap();
    // When it is over, the list is another and the card is for its analyst.
    stage.analyst.cancel(&query).await.unwrap();
    assert_eq!(get("queries", Some(&tag)).await.status(), 200);
    assert_eq!(get(&format!("queries/{query}/card"), None).await.status(), 404);
    let kept = stage.analyst.card(&query).await.unwrap();
    assert_eq!(serde_json::to_vec(&kept).unwrap(), bytes);
}

#[tokio::test]
async fn any_bytes_are_survived() {
    let stage = Stage::with(|config| config.request_timeout = Duration::from_millis(500)).await;
    let query = stage.ask().await.queries.remove(0).query;
    let token = std::fs::read_to_string(stage.desk.first_token()).unwrap();
    let address = stage.desk.url().socket_addrs(|| None).unwrap()[0];
    // A fixed sequence of bytes without pattern.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut noise = |length: usize| -> Vec<u8> {
        (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect()
    };
    let document: serde_json::Value = serde_json::from_str(uptack_server::desk::OPENAPI).unwrap();
    let paths = document["paths"].as_object().unwrap().keys().map(|path| path.replace("{query}", &query));
    for path in paths.filter(|path| path != "/queries/stream") {
        for method in ["GET", "POST", "PUT", "PATCH"] {
            for length in [0, 1, 200, 5000] {
                let body = noise(length);
                let head = format!(
                    "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: {length}\r\n\
                     connection: close\r\n\r\n",
                    token.trim()
                );
                let answer = send(address, &[head.as_bytes(), &body].concat()).await;
                assert!(answer.starts_with("HTTP/1.1 "), "{method} {path}: {answer}");
                assert!(!answer.starts_with("HTTP/1.1 5"), "{method} {path}: {answer}");
            }
        }
        // Nothing but noise, half a request, and a path that is none.
        send(address, &noise(3000)).await;
        send(address, format!("POST {path} HTTP/1.1\r\ncontent-length: 99\r\n\r\nhalf").as_bytes()).await;
        send(address, format!("GET {path}/%ff%00/../.. HTTP/1.1\r\nconnection: close\r\n\r\n").as_bytes()).await;
    }
    let large = reqwest::Client::new()
        .post(stage.desk.url().join("queries").unwrap())
        .bearer_auth(token.trim())
        .header("idempotency-key", "large")
        .body(vec![b' '; 2 << 20])
        .send()
        .await;
    // Either the refusal arrives, or the connection is closed before all was sent.
    assert!(large.is_err() || large.is_ok_and(|answer| answer.status() == 413));
    let health = reqwest::get(stage.desk.operations_url().join("healthz").unwrap()).await.unwrap();
    assert_eq!(health.status(), 200);
    eventually("the query is untouched", async || stage.analyst.status(&query).await.unwrap().state == "open").await;
}

async fn send(address: std::net::SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_desk_beyond_loopback_needs_tls_or_a_word() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = uptack_server::desk::Config::new(directory.path());
    config.listen = Some("0.0.0.0:0".parse().unwrap());
    assert!(uptack_server::desk::Desk::start(config).await.err().unwrap().is_input());
}

#[tokio::test]
async fn with_enrolment_each_credential_counts_once() {
    let stage = Stage::with(|config| config.enrolment = true).await;
    let card = stage.ask().await.card;
    assert_eq!(card.enrolment, Some(uptack::card::Enrolment::Required));
    let secret = OwnerSecret::generate();
    let task = card_task::parameters(&card).unwrap().task_id;
    let client = owner::Client::new(card_task::parameters(&card).unwrap()).unwrap();
    let report = client.seal(&Measurement::Cell(0), START).await.unwrap();
    assert!(client.send(&report).await.unwrap_err().is_refused());
    let credential = secret.credential(&task, &report);
    assert!(client.send_as(&report, Some(&credential)).await.unwrap_err().is_refused());
    let list = stage.directory.path().join("credentials");
    std::fs::write(list, format!("{}\n", secret.public())).unwrap();
    eventually("the list is read again", async || client.send_as(&report, Some(&credential)).await.is_ok()).await;
    let second = client.seal(&Measurement::Cell(0), START).await.unwrap();
    let again = secret.credential(&task, &second);
    assert!(client.send_as(&second, Some(&again)).await.unwrap_err().is_refused());
    client.send_as(&report, Some(&credential)).await.unwrap();
}

/// Answers for programs are not shown within another site, and browsers do not guess what they are.
#[tokio::test]
async fn no_answer_is_framed_or_sniffed() {
    let stage = Stage::new().await;
    let opened = stage.ask().await;
    let query = &opened.queries[0].query;
    let client = reqwest::Client::new();
    let paths = ["openapi.json", "key", "queries", "queries/own", "queries/none", "nowhere", "queries/stream"];
    let of_query = [format!("queries/{query}"), format!("queries/{query}/card")];
    let desk = stage.desk.url();
    let addresses = paths.iter().map(|path| desk.join(path)).chain(of_query.iter().map(|path| desk.join(path)));
    let operations = stage.desk.operations_url();
    let aggregators = [stage.desk.leader_url(), stage.desk.helper_url()].map(|url| url.join("hpke_config"));
    let operated = ["healthz", "metrics", "nowhere"].map(|path| operations.join(path));
    for address in addresses.chain(operated).chain(aggregators) {
        let address = address.unwrap();
        let response = client.get(address.clone()).send().await.unwrap();
        let header = |name: &str| response.headers().get(name).map_or("", |value| value.to_str().unwrap());
        assert_eq!(header("x-content-type-options"), "nosniff", "{address}");
        assert!(header("content-security-policy").contains("frame-ancestors 'none'"), "{address}");
    }
}
