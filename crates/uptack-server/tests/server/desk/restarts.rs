//! A desk that ends without a word goes on where it was.

use crate::desk::support::{
    MINIMUM, Stage, analyst, config, eventually, only_open, read, restart, result, state, upload,
};

#[tokio::test]
async fn a_dropped_desk_comes_back_with_the_same_query_and_addresses() {
    let stage = Stage::new().await;
    let opened = stage.ask().await;
    let query = &opened.queries[0].query;
    upload(&opened.card, &[0; 5]).await;
    let before = (stage.desk.url(), stage.desk.leader_url().clone(), stage.desk.helper_url().clone());
    let key = stage.desk.signer();
    drop(stage.desk);

    let desk = restart(config(stage.directory.path(), &stage.clock)).await;
    assert_eq!(before, (desk.url(), desk.leader_url().clone(), desk.helper_url().clone()));
    assert_eq!(key, desk.signer());
    assert_eq!(&only_open(&stage.analyst).await.query, query);
    upload(&opened.card, &[1; 5]).await;
    drop(desk);

    // Down while the query closes: the batch is collected by the next run.
    stage.clock.set(opened.card.window().unwrap().1 + 3600);
    let desk = restart(config(stage.directory.path(), &stage.clock)).await;
    let text = result(&analyst(&desk), query).await.unwrap();
    assert_eq!(read(&text).0.counts()[..2], [5, 5]);
    drop(desk);

    let desk = restart(config(stage.directory.path(), &stage.clock)).await;
    assert_eq!(result(&analyst(&desk), query).await.unwrap(), text);
    desk.shutdown().await;
}

#[tokio::test]
async fn a_desk_that_is_dropped_again_and_again_while_collecting_releases_the_batch_once() {
    let stage = Stage::new().await;
    let opened = stage.ask().await;
    let query = &opened.queries[0].query;
    upload(&opened.card, &vec![1; 3 * MINIMUM as usize]).await;
    stage.pass(&opened.card);
    drop(stage.desk);
    for pause in [0, 10, 40, 90, 160, 250, 350] {
        let desk = restart(config(stage.directory.path(), &stage.clock)).await;
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
        drop(desk);
    }
    let desk = restart(config(stage.directory.path(), &stage.clock)).await;
    let analyst = analyst(&desk);
    assert_eq!(read(&result(&analyst, query).await.unwrap()).0.reports, 3 * MINIMUM);
    eventually("it is released", async || state(&analyst, query).await == "released").await;
}

#[tokio::test]
async fn a_stopped_desk_leaves_its_directory_to_the_next() {
    let stage = Stage::new().await;
    let query = stage.ask().await.queries.remove(0).query;
    stage.desk.shutdown().await;
    let desk = restart(config(stage.directory.path(), &stage.clock)).await;
    let second = uptack_server::desk::Desk::start(config(stage.directory.path(), &stage.clock)).await;
    assert!(second.err().unwrap().to_string().contains("in use"));
    assert_eq!(state(&analyst(&desk), &query).await, "open");
}
