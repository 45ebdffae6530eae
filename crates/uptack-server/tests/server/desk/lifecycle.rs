//! From question to record.

use uptack::{Output, estimate::Estimator, privacy::WorkLimit};
use uptack_dap::{ballot as ballots, card_task, collector::Collector, desk_client::Schedule};

use crate::desk::support::{
    MINIMUM, START, Stage, ballot, call, card, collector_task, eventually, only_open, read, rows, state, upload,
    upload_all,
};

#[tokio::test]
async fn a_query_is_opened_answered_collected_and_released_once() {
    let stage = Stage::new().await;
    let opened = stage.ask().await;
    let query = &opened.queries[0].query;
    assert_eq!(opened.queries.len(), 1);

    // Owners see a signed card whose claims hold.
    let signed = only_open(&stage.analyst).await;
    let seen = signed.open().unwrap();
    assert_eq!((&signed.query, &seen.card), (query, &opened.card));
    assert_eq!(seen.signer, stage.desk.signer());
    seen.card.verify(WorkLimit::default()).unwrap();
    let (opens, closes) = seen.card.window().unwrap();
    assert!(opens <= START && START + 600 <= closes);
    assert_eq!(seen.card.aggregators.as_ref().unwrap().leader, stage.desk.leader_url().to_string());

    let cells = [0, 0, 1, 1, 1, 2, 2, 2, 2, 2];
    upload(&seen.card, &cells).await;
    let early = stage.analyst.result(query).await.unwrap_err();
    assert_eq!(early.refused_with(), Some(409));
    assert!(early.to_string().contains(&opened.card.closes.unwrap().to_string()), "{early}");

    stage.pass(&seen.card);
    let text = stage.result(query).await.unwrap();
    let (record, card) = read(&text);
    assert_eq!((record.reports, card), (10, seen.card));
    assert_eq!(record.counts(), [2, 3, 5]);
    let tally = record.tally().unwrap();
    assert_eq!((tally.owners(), tally.count(0, Output::BOTTOM)), (10, 5));

    assert_eq!(stage.result(query).await.unwrap(), text);
    assert_eq!(state(&stage.analyst, query).await, "released");
    let late = stage.analyst.cancel(query).await.unwrap_err();
    assert_eq!(late.refused_with(), Some(409));
    let data = stage.directory.path();
    eventually("nothing is left at the aggregators", async || rows(data, "leader") + rows(data, "helper") == 0).await;
    eventually("nor here", async || collector_task(data, query).is_none()).await;
    stage.desk.shutdown().await;
}

#[tokio::test]
async fn below_the_minimum_nothing_is_released_whoever_asks() {
    let stage = Stage::new().await;
    let opened = stage.ask().await;
    let query = &opened.queries[0].query;
    upload(&opened.card, &vec![1; MINIMUM as usize - 1]).await;

    let data = stage.directory.path();
    let task = collector_task(data, query).unwrap();
    let batch = task.parameters.batch(opened.card.window().unwrap().0, 1).unwrap();
    let thief = Collector::new(task).unwrap();
    let job = Collector::new_job();
    let refused = thief.collect(&job, batch, std::time::Duration::from_secs(20)).await.unwrap_err();
    assert!(refused.is_batch_too_small(), "{refused}");

    stage.pass(&opened.card);
    let error = stage.result(query).await.unwrap_err();
    assert_eq!(error.refused_with(), Some(410));
    assert!(error.to_string().contains("minimum batch"), "{error}");
    assert_eq!(state(&stage.analyst, query).await, "withheld");
    eventually("the reports are deleted", async || rows(data, "leader") + rows(data, "helper") == 0).await;
    // The reports are gone, so that not even one more would do.
    assert!(thief.request(&job, batch).await.unwrap_err().is_refused());
    assert!(upload_all(&opened.card, &[uptack_dap::protocol::Measurement::Cell(0)]).await.is_err());
    assert_eq!(stage.analyst.result(query).await.unwrap_err().refused_with(), Some(410));
}

#[tokio::test]
async fn a_cancelled_query_is_gone_for_good() {
    let stage = Stage::new().await;
    let opened = stage.ask().await;
    let query = &opened.queries[0].query;
    upload(&opened.card, &[1; 2 * MINIMUM as usize]).await;
    stage.analyst.cancel(query).await.unwrap();
    stage.analyst.cancel(query).await.unwrap();
    assert!(stage.analyst.list().await.unwrap().is_empty());
    assert_eq!(stage.analyst.result(query).await.unwrap_err().refused_with(), Some(410));
    let data = stage.directory.path();
    eventually("the reports are deleted", async || rows(data, "leader") + rows(data, "helper") == 0).await;
    // The same card for the same window would be the same query.
    let again = stage.analyst.open(&card(), Schedule::Once { seconds: 600 }).await.unwrap_err();
    assert_eq!(again.refused_with(), Some(409), "{again}");
    stage.pass(&opened.card);
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(state(&stage.analyst, query).await, "cancelled");
}

#[tokio::test]
async fn asking_the_very_same_again_is_the_same_query() {
    let stage = Stage::new().await;
    let (first, second) = (stage.ask().await, stage.ask().await);
    assert_eq!(first.queries[0].query, second.queries[0].query);
    upload(&second.card, &[1; MINIMUM as usize]).await;
    stage.pass(&first.card);
    assert_eq!(read(&stage.result(&first.queries[0].query).await.unwrap()).0.reports, MINIMUM);
}

#[tokio::test]
async fn a_series_opens_window_by_window_and_is_priced_as_a_whole() {
    let stage = Stage::new().await;
    let opened = stage.analyst.open(&card(), Schedule::Series { every: 300, times: 3 }).await.unwrap();
    assert_eq!(opened.queries.len(), 3);
    let whole = opened.card.claims.whole.as_ref().unwrap();
    assert_eq!(whole.queries, 3);
    assert!(whole.release.epsilon() > opened.card.claims.release.epsilon());
    assert!(stage.analyst.list().await.unwrap().is_empty(), "the first window is still to come");
    for number in 1..=3u64 {
        let opens = START + 300 * number;
        stage.clock.set(opens);
        eventually("it opens", async || !stage.analyst.list().await.unwrap().is_empty()).await;
        let signed = only_open(&stage.analyst).await;
        let card = signed.open().unwrap().card;
        assert_eq!(card.window().unwrap(), (opens, opens + 300));
        assert_eq!(card.series.as_ref().unwrap().number, Some(number));
        assert_eq!(card.without_number(), opened.card.without_number());
        assert_eq!(signed.query, opened.queries[number as usize - 1].query);
        upload(&card, &vec![2; (MINIMUM + number) as usize]).await;
    }
    stage.clock.set(START + 1300);
    for (number, query) in (1..).zip(&opened.queries) {
        let (record, card) = read(&stage.result(&query.query).await.unwrap());
        assert_eq!(record.reports, MINIMUM + number);
        card.verify(WorkLimit::default()).unwrap();
    }
}

#[tokio::test]
async fn a_ballot_gives_a_tally_for_each_question() {
    let stage = Stage::new().await;
    let asked = ballot(&["north", "south", "east"]);
    let opened = stage.analyst.open(&asked, Schedule::Once { seconds: 600 }).await.unwrap();
    assert_eq!(opened.card.claims.whole.as_ref().unwrap().queries, 2);
    let report = |outputs: [Option<bool>; 3]| ballots::measurement(&outputs);
    let reports = [
        vec![report([Some(true), None, Some(false)]); 5],
        vec![report([None, None, None]); 4],
        vec![report([Some(false), Some(true), None]); 3],
    ];
    upload_all(&opened.card, &reports.concat()).await.unwrap();
    stage.pass(&opened.card);
    let (record, card) = read(&stage.result(&opened.queries[0].query).await.unwrap());
    assert_eq!(record.counts(), [5, 3, 3, 0, 0, 5]);
    let tallies = record.tallies();
    assert_eq!(
        tallies.iter().map(|named| named.name.as_deref().unwrap()).collect::<Vec<_>>(),
        ["north", "south", "east"]
    );
    let channel = card.checked_channel().unwrap();
    let estimator = Estimator::new(&channel).unwrap();
    for named in tallies {
        assert_eq!(named.tally.owners(), 12);
        estimator.observe(&named.tally).unwrap();
    }
    assert_eq!(tallies[2].tally.count(0, Output::ZERO), 5);
}

#[tokio::test]
async fn what_an_analyst_must_not_send_is_refused_by_name() {
    let stage = Stage::new().await;
    let once = Schedule::Once { seconds: 600 };
    type Case = (&'static str, fn(&mut uptack::card::Card));
    let cases: [Case; 7] = [
        ("`closes`", |card| card.closes = "2026-11-15T08:30:00Z".parse().ok()),
        ("`operators`", |card| card.operators = Some(uptack::card::Operators::Two)),
        ("no predicate", |card| card.predicate = None),
        ("1024 are allowed", |card| card.predicate = Some("x".repeat(1025))),
        ("predicate 1: the predicate uses `station` by itself", |card| card.predicate = Some("station".to_owned())),
        ("incomplete", |card| card.predicate = Some("station ==".to_owned())),
        ("integers", |card| card.channel.bits = 32),
    ];
    for (words, spoil) in cases {
        let mut bad = card();
        spoil(&mut bad);
        let error = stage.analyst.open(&bad, once).await.unwrap_err();
        assert_eq!(error.refused_with(), Some(400), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    // What no card can hold is refused by the name of its field, too.
    let body = serde_json::json!({"card": card(), "seconds": 600}).to_string();
    let body = body.replacen("\"delta\":\"", "\"delta\":\"often ", 1);
    let token = std::fs::read_to_string(stage.desk.first_token()).unwrap();
    let request = reqwest::Client::new().post(stage.desk.url().join("queries").unwrap()).bearer_auth(token.trim());
    let refused = request.header("idempotency-key", "a".repeat(43)).body(body).send().await.unwrap();
    assert_eq!(refused.status().as_u16(), 400);
    let told = refused.text().await.unwrap();
    assert!(told.contains("card.claims.delta"), "{told}");
    for (every, times) in [(0, 3), (300, 0), (300, 1001), (u64::MAX, 2)] {
        let error = stage.analyst.open(&card(), Schedule::Series { every, times }).await.unwrap_err();
        assert_eq!(error.refused_with(), Some(400), "{error}");
    }
    assert!(stage.analyst.list().await.unwrap().is_empty());
    // A claim that is better than the truth is not taken over: the desk states its own.
    let mut boasting = card();
    boasting.claims.release = "0.001".parse().unwrap();
    let opened = stage.analyst.open(&boasting, once).await.unwrap();
    opened.card.verify(WorkLimit::default()).unwrap();
    assert_ne!(opened.card.claims.release.to_string(), "0.001");
    assert_eq!(card_task::task_id(&opened.card.canonical()).to_string(), opened.queries[0].query);
    let (status, _) = call("get", &stage.desk.url(), "queries/unknown", None).await;
    assert_eq!(status, 404);
}
