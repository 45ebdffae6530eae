//! Our pair against the clients and collectors that others publish.

use janus_collector::PollResult;
use janus_core::{auth_tokens::AuthenticationToken, hpke::HpkePrivateKey};
use janus_messages::{CollectionJobId, Duration, Interval, Query, Time};
use prio::vdaf::prio3::{Prio3Histogram, optimal_chunk_length};
use uptack_dap::{
    client::Client,
    collector::Collector,
    protocol::{HpkeKeypair, Measurement},
};

use crate::aggregator::support::{PATIENCE, PRECISION, Processes, now};

/// Reports of `janus_client` and of our client in one batch on two processes, collected by
/// `janus_collector` and by our collector: the same histogram.
#[tokio::test(flavor = "multi_thread")]
async fn janus_client_and_collector_work_with_two_processes() {
    let processes = Processes::new(20).await;
    let parameters = processes.task.parameters();
    let vdaf = || Prio3Histogram::new_histogram(2, 3, optimal_chunk_length(3)).unwrap();

    let theirs = janus_client::Client::new(
        parameters.task_id,
        parameters.leader.clone(),
        parameters.helper.clone(),
        Duration::from_seconds(PRECISION),
        vdaf(),
    )
    .await
    .unwrap();
    let ours = Client::new(parameters.clone()).unwrap();
    let mut expected = [0u128; 3];
    for index in 0..40 {
        let cell = [0, 1, 1, 2, 1][index % 5];
        expected[cell] += 1;
        if index % 2 == 0 {
            theirs.upload(&cell).await.unwrap();
        } else {
            ours.upload(&Measurement::Cell(cell), now(), PATIENCE).await.unwrap();
        }
    }

    let batch = parameters.batch(now(), 1).unwrap();
    let job: CollectionJobId = rand::random();
    let collector = &processes.task.collector;
    let token = AuthenticationToken::new_bearer_token_from_string(collector.token.as_str()).unwrap();
    let their_collector = janus_collector::Collector::new(
        parameters.task_id,
        parameters.leader.clone(),
        token,
        at_janus(&collector.hpke_keypair),
        vdaf(),
    )
    .unwrap();
    let start = Time::from_seconds_since_epoch(batch.start());
    let interval = Interval::new(start, Duration::from_seconds(PRECISION)).unwrap();
    let started = their_collector.start_collection_with_id(job, Query::new_time_interval(interval), &()).await.unwrap();
    // Its own loop would wait a quarter of a minute before it looks again.
    let their_result = loop {
        match their_collector.poll_once(&started).await.unwrap() {
            PollResult::CollectionResult(result) => break result,
            PollResult::NotReady(_) => {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    };
    assert_eq!(their_result.aggregate_result(), &expected);
    assert_eq!(their_result.report_count(), 40);

    let our_result = Collector::new(collector.clone()).unwrap().collect(&job, batch, PATIENCE).await.unwrap();
    assert_eq!(our_result.reports, 40);
    assert_eq!(our_result.counts, expected.map(|count| count as u64));
    assert_eq!(our_result.start, parameters.window(now()));
    assert_eq!(our_result.finish, parameters.window(now()) + PRECISION);
}

/// The same key, as Janus keeps it.
fn at_janus(keypair: &HpkeKeypair) -> janus_core::hpke::HpkeKeypair {
    let private = HpkePrivateKey::new(keypair.private_key().as_ref().to_vec());
    janus_core::hpke::HpkeKeypair::new(keypair.config().clone(), private)
}
