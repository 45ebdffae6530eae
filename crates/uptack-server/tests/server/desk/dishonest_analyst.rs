//! Analysts who cheat: with others' queries, with repeated requests, with too much of everything.

use serde_json::json;
use std::{collections::BTreeSet, time::Duration};
use uptack_dap::{desk_client::Schedule, token::Token};

use crate::desk::support::{
    MINIMUM, Stage, analyst, ballot, call, card, config, eventually, restart, result, state, upload,
};

const ONCE: Schedule = Schedule::Once { seconds: 600 };

#[tokio::test]
async fn an_analyst_cannot_cancel_or_read_what_another_asked() {
    let stage = Stage::new().await;
    let opened = stage.ask().await;
    let query = &opened.queries[0].query;
    upload(&opened.card, &vec![1; MINIMUM as usize + 1]).await;
    let (mallory, admin) = (stage.caller("mallory"), stage.caller("ops.admin"));
    assert_eq!(mallory.cancel(query).await.unwrap_err().refused_with(), Some(403));
    assert_eq!(mallory.result(query).await.unwrap_err().refused_with(), Some(403));
    // Asking the same card for the same window does not make it hers.
    assert_eq!(mallory.open(&card(), ONCE).await.unwrap_err().refused_with(), Some(409));
    assert_eq!(state(&stage.analyst, query).await, "open");
    stage.pass(&opened.card);
    let record = stage.result(query).await.unwrap();
    // Not when it is over either, neither the sums nor the card.
    assert_eq!(mallory.result(query).await.unwrap_err().refused_with(), Some(403));
    assert_eq!(mallory.card(query).await.unwrap_err().refused_with(), Some(403));
    assert_eq!(admin.result(query).await.unwrap(), record);
}

#[tokio::test]
async fn an_administrator_sees_to_all_queries_and_the_public_learns_no_name() {
    let stage = Stage::new().await;
    let (grace, admin) = (stage.caller("grace"), stage.caller("ops.admin"));
    let hers = grace.open(&ballot(&["north", "south"]), ONCE).await.unwrap().queries.remove(0).query;
    let mine = stage.ask().await.queries.remove(0).query;
    admin.cancel(&hers).await.unwrap();
    stage.analyst.cancel(&mine).await.unwrap();
    for query in [&hers, &mine] {
        let public = reqwest::get(stage.desk.url().join(&format!("queries/{query}")).unwrap()).await.unwrap();
        let text = public.text().await.unwrap();
        assert!(text.contains("cancelled"), "{text}");
        assert!(["grace", "ops", "by analyst"].iter().all(|name| !text.contains(name)), "{text}");
    }
}

/// Owners check every card that is opened.
#[tokio::test]
async fn an_analyst_who_opens_card_after_card_is_told_to_wait_and_another_is_served() {
    let stage = Stage::with(|config| config.requests_per_analyst = 2).await;
    for name in ["north", "south"] {
        stage.analyst.open(&ballot(&[name]), ONCE).await.unwrap();
    }
    let error = stage.analyst.open(&ballot(&["west"]), ONCE).await.unwrap_err();
    assert_eq!(error.refused_with(), Some(429), "{error}");
    assert_eq!(stored(&stage), 2, "owners see nothing of it");
    stage.caller("grace").open(&ballot(&["east"]), ONCE).await.unwrap();
    stage.clock.set(stage.clock.now() + 601);
    stage.analyst.open(&ballot(&["west"]), ONCE).await.unwrap();
}

#[tokio::test]
async fn who_guesses_tokens_is_braked_and_who_works_there_goes_on() {
    let stage = Stage::new().await;
    let known = std::fs::read_to_string(stage.desk.first_token()).unwrap();
    let own = async |token: &str| call("GET", &stage.desk.url(), "queries/own", Some(token)).await.0;
    assert_eq!(own(known.trim()).await, 200);
    let mut answers = Vec::new();
    for _ in 0..25 {
        answers.push(own(Token::generate().as_str()).await);
    }
    assert!(answers[..20].iter().all(|status| *status == 401), "{answers:?}");
    assert!(answers[20..].iter().all(|status| *status == 429), "{answers:?}");
    // A right one that was guessed is not recognized either; one that was used from here before is.
    let guessed = stage.caller("guessed");
    assert_eq!(guessed.open(&card(), ONCE).await.unwrap_err().refused_with(), Some(429));
    assert_eq!(own(known.trim()).await, 200);
}

/// How many queries the desk's store holds.
fn stored(stage: &Stage) -> i64 {
    let store = rusqlite::Connection::open(stage.directory.path().join("desk.sqlite3")).unwrap();
    store.query_row("SELECT count(*) FROM queries", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_request_that_is_repeated_by_its_key_opens_one_query_also_after_a_restart() {
    let stage = Stage::new().await;
    let key = Token::generate();
    let first = stage.analyst.open_by_key(&card(), ONCE, &key).await.unwrap().queries.remove(0).query;
    // Each of these would be another window, and so another query that owners pay for.
    for later in 1..4 {
        stage.clock.set(crate::desk::support::START + 700 * later);
        let again = stage.analyst.open_by_key(&card(), ONCE, &key).await.unwrap();
        assert_eq!(again.queries[0].query, first);
    }
    drop(stage.desk);
    let desk = restart(config(stage.directory.path(), &stage.clock)).await;
    let again = analyst(&desk).open_by_key(&card(), ONCE, &key).await.unwrap();
    assert_eq!(again.queries[0].query, first);
    // The key stands for that request and no other.
    let other = analyst(&desk).open_by_key(&ballot(&["north", "south"]), ONCE, &key).await.unwrap_err();
    assert_eq!(other.refused_with(), Some(422), "{other}");
    // Another key is another request.
    let other = analyst(&desk).open(&card(), ONCE).await.unwrap().queries.remove(0).query;
    assert_ne!(other, first);
}

#[tokio::test]
async fn requests_that_are_repeated_at_the_same_time_open_one_query() {
    let stage = Stage::new().await;
    let (key, card) = (Token::generate(), card());
    let posts = async {
        let names = (0..5).map(|_| stage.analyst.open_by_key(&card, ONCE, &key));
        let names = futures_util::future::join_all(names).await;
        names.into_iter().map(|opened| opened.unwrap().queries.remove(0).query).collect::<BTreeSet<String>>()
    };
    // Meanwhile time flies, so that posts fall into windows of their own, and the first is still open at the end.
    let flight = async {
        for minute in 1..9 {
            tokio::time::sleep(Duration::from_millis(5)).await;
            stage.clock.set(crate::desk::support::START + 60 * minute);
        }
    };
    let (names, ()) = tokio::join!(posts, flight);
    assert_eq!((names.len(), stored(&stage)), (1, 1));
}

#[tokio::test]
async fn without_a_key_nothing_is_opened() {
    let stage = Stage::new().await;
    let token = std::fs::read_to_string(stage.desk.first_token()).unwrap();
    let body = json!({"card": card(), "seconds": 600}).to_string();
    let too_long = "k".repeat(129);
    for key in [None, Some(""), Some("two words"), Some(too_long.as_str())] {
        let request = reqwest::Client::new().post(stage.desk.url().join("queries").unwrap()).bearer_auth(token.trim());
        let request = key.iter().fold(request, |request, key| request.header("idempotency-key", *key));
        let answer = request.body(body.clone()).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{key:?}");
        assert!(answer.text().await.unwrap().contains("Idempotency-Key"));
    }
    assert_eq!(stored(&stage), 0);
}

#[tokio::test]
async fn a_flood_of_queries_and_large_cards_is_refused_with_the_limits_and_locks_no_owner_out() {
    let stage = Stage::with(|config| config.max_queries = 3).await;
    let first = stage.ask().await;
    let mut large = card();
    large.question = Some("?".repeat(256 * 1024));
    let refused = stage.analyst.open(&large, ONCE).await.unwrap_err();
    assert!(refused.refused_with() == Some(400) && refused.to_string().contains("262144"), "{refused}");
    // Over the wire, because a client waits and tries again.
    let token = std::fs::read_to_string(stage.desk.first_token()).unwrap();
    let post = async |times: u64| {
        let body = json!({"card": card(), "every": 900, "times": times}).to_string();
        let request = reqwest::Client::new().post(stage.desk.url().join("queries").unwrap()).bearer_auth(token.trim());
        request.header("idempotency-key", format!("series-{times}")).body(body).send().await.unwrap()
    };
    let full = post(3).await;
    assert_eq!(full.status(), 503);
    assert!(full.headers().contains_key("retry-after"));
    assert!(full.text().await.unwrap().contains("at most 3 queries"));
    assert_eq!(stored(&stage), 1);
    assert_eq!(post(2).await.status(), 201);
    assert_eq!(stage.analyst.list().await.unwrap()[0].query, first.queries[0].query);
    // What is over makes room.
    stage.analyst.cancel(&first.queries[0].query).await.unwrap();
    stage.analyst.open(&ballot(&["north", "south"]), ONCE).await.unwrap();
}

#[tokio::test]
async fn a_query_of_a_desk_that_did_not_keep_whose_it_is_is_for_administrators() {
    let stage = Stage::new().await;
    let opened = stage.ask().await;
    let query = &opened.queries[0].query;
    let store = rusqlite::Connection::open(stage.directory.path().join("desk.sqlite3")).unwrap();
    store.execute("UPDATE queries SET analyst = NULL", []).unwrap();
    assert_eq!(stage.analyst.cancel(query).await.unwrap_err().refused_with(), Some(403));
    let (status, _) = call("get", &stage.desk.url(), &format!("queries/{query}"), None).await;
    assert_eq!(status, 200);
    let admin = stage.caller("ops.admin");
    upload(&opened.card, &vec![1; MINIMUM as usize]).await;
    stage.pass(&opened.card);
    assert!(result(&admin, query).await.unwrap().contains("\"reports\":8"));
    eventually("it is released", async || state(&admin, query).await == "released").await;
}
