//! A leader that cheats, with its own token: the helper gives it nothing that the task does not allow.

use crate::aggregator::{
    collection::ask_helper,
    support::{Stage, eventually},
};

/// It leaves out a report, or claims one more, to learn a difference: the helper compares counts and checksums.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_counts_other_reports_gets_no_share() {
    let stage = Stage::new(5).await;
    stage.upload_counts([3, 2, 1]).await;
    let added = "uptack_reports_aggregated_total{outcome=\"added\"}";
    let base = stage.pair.helper.operations_url().unwrap();
    eventually("the reports are added", async || stage.metric(&base, added).await == 6).await;
    for count in [5, 6, 7] {
        // The checksum of no reports goes with each count.
        let (status, body) = ask_helper(&stage, stage.batch(), count).await;
        assert!(status == 400 && body.contains("batchMismatch"), "{status}: {body}");
    }
    // Its attempts have spoilt nothing.
    assert_eq!(stage.collect().await.unwrap().counts, [3, 2, 1]);
}
