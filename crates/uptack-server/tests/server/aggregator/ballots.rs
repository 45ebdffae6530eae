//! Many queries in one report.

use uptack_dap::{ballot, protocol::Measurement};

use crate::aggregator::support::{PATIENCE, Stage, now, quick};

#[tokio::test(flavor = "multi_thread")]
async fn a_ballot_is_counted_query_by_query() {
    let queries = 24;
    let stage = Stage::with(3, quick, |parameters| {
        parameters.vdaf = ballot::kind(queries);
    })
    .await;
    let output = |owner: usize, query: usize| match (owner + query) % 3 {
        0 => Some(true),
        1 => Some(false),
        _ => None,
    };
    let owners = 5;
    for owner in 0..owners {
        let outputs: Vec<_> = (0..queries).map(|query| output(owner, query)).collect();
        stage.client.upload(&ballot::measurement(&outputs), now(), PATIENCE).await.unwrap();
    }
    let collected = stage.collect().await.unwrap();
    let counted = ballot::outputs(&collected.counts, collected.reports).unwrap();
    assert_eq!(counted.len(), queries);
    for (query, counts) in counted.iter().enumerate() {
        let expect = |wanted| (0..owners).filter(|owner| output(*owner, query) == wanted).count();
        assert_eq!(counts.ones, expect(Some(true)) as u64);
        assert_eq!(counts.zeros, expect(Some(false)) as u64);
        assert_eq!(counts.bottoms, Some(expect(None) as u64));
    }
}

/// What the module's documentation warns of: both bits pass the proof, and it shows in the sum.
#[tokio::test(flavor = "multi_thread")]
async fn both_bits_of_a_query_pass_and_count_at_most_once_each() {
    let stage = Stage::with(2, quick, |parameters| parameters.vdaf = ballot::kind(2)).await;
    for _ in 0..2 {
        stage.client.upload(&Measurement::Bits(vec![true; 4]), now(), PATIENCE).await.unwrap();
    }
    let collected = stage.collect().await.unwrap();
    assert_eq!(collected.counts, [2, 2, 2, 2]);
    let counted = ballot::outputs(&collected.counts, collected.reports).unwrap();
    assert!(counted.iter().all(|counts| counts.bottoms.is_none()));
}
