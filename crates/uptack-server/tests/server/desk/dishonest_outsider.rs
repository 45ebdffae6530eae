//! Outsiders who cheat: connections that never read, that say nothing, that are too many; and questions about operators'
//! business.
//!
//! All of them come from 127.0.0.1; an honest client comes from 127.0.0.2.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use uptack_dap::desk_client::Schedule;
use url::Url;

use crate::desk::support::{Stage, ballot, eventually};

/// A client that an honest owner elsewhere would have; it does not wait as long as a server's patience.
fn honest() -> reqwest::Client {
    let builder = reqwest::Client::builder().local_address(std::net::IpAddr::from([127, 0, 0, 2]));
    builder.timeout(Duration::from_secs(15)).build().unwrap()
}

fn address(url: &Url) -> SocketAddr {
    url.socket_addrs(|| None).unwrap()[0]
}

async fn is_served(url: &Url, path: &str) -> bool {
    let answer = honest().get(url.join(path).unwrap()).send().await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

#[tokio::test]
async fn a_connection_that_never_reads_is_closed_and_does_not_get_the_rest() {
    let stage = Stage::with(|config| config.request_timeout = Duration::from_secs(2)).await;
    // A large card, so that a few answers fill what the kernel buffers.
    let names: Vec<String> = (0..800).map(|number| format!("station-{number:03}")).collect();
    let asked = ballot(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let query = stage.analyst.open(&asked, Schedule::Once { seconds: 600 }).await.unwrap().queries.remove(0).query;
    let size = reqwest::get(stage.desk.url().join(&format!("queries/{query}/card")).unwrap()).await.unwrap();
    let size = size.bytes().await.unwrap().len();
    let requests = 64 * 1024 * 1024 / size;
    let head = format!("GET /queries/{query}/card HTTP/1.1\r\nhost: desk\r\n\r\n");
    let stream = TcpStream::connect(address(&stage.desk.url())).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let asking = tokio::spawn(async move {
        // It ends with an error when the desk closes the connection.
        let _ = writing.write_all(head.repeat(requests).as_bytes()).await;
        writing
    });
    // Longer than the desk's patience, without reading a byte.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(is_served(&stage.desk.url(), "queries").await);
    let (mut received, mut buffer) = (0, vec![0; 1 << 20]);
    loop {
        match reading.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(length) => received += length,
        }
    }
    assert!(received < requests * size, "all of {requests} answers came, after {received} bytes");
    drop(asking.await);
}

#[tokio::test]
async fn more_idle_sockets_than_there_are_places_keep_nobody_out() {
    let stage = Stage::with(|config| config.max_connections = 80).await;
    let servers = [(stage.desk.url(), "queries"), (stage.desk.leader_url().clone(), "hpke_config")];
    for (url, path) in servers {
        let mut idle = Vec::new();
        for _ in 0..160 {
            idle.push(TcpStream::connect(address(&url)).await.unwrap());
        }
        assert!(is_served(&url, path).await, "another address is served");
        // Those who share the address are served, too: idle connections give way.
        let near = reqwest::Client::builder().timeout(Duration::from_secs(15)).build().unwrap();
        assert!(near.get(url.join(path).unwrap()).send().await.unwrap().status().is_success());
    }
}

#[tokio::test]
async fn a_connection_that_is_kept_and_says_nothing_more_is_closed() {
    let stage = Stage::with(|config| config.request_timeout = Duration::from_secs(1)).await;
    let mut stream = TcpStream::connect(address(&stage.desk.url())).await.unwrap();
    stream.write_all(b"GET /key HTTP/1.1\r\nhost: desk\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // It ends because the desk closes it; nobody asked for that.
    tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&answer).contains("ed25519:"));
}

#[tokio::test]
async fn streams_of_one_address_leave_places_for_others_and_nothing_of_them_is_left() {
    let stage = Stage::with(|config| config.max_connections = 64).await;
    let streams = stage.desk.url().join("queries/stream").unwrap();
    let mut held = Vec::new();
    let refused = loop {
        let stream = reqwest::Client::new().get(streams.clone()).send().await.unwrap();
        if stream.status() != 200 {
            break stream;
        }
        held.push(stream);
    };
    assert_eq!((refused.status().as_u16(), held.len()), (503, 8));
    let other = honest().get(streams.clone()).send().await.unwrap();
    assert_eq!(other.status(), 200);
    let counted = async || {
        let metrics = stage.desk.operations_url().join("metrics").unwrap();
        let text = reqwest::get(metrics).await.unwrap().text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("uptack_desk_streams "));
        line.unwrap().parse::<usize>().unwrap()
    };
    assert_eq!(counted().await, 9);
    drop((held, refused, other));
    eventually("the streams are gone", async || counted().await == 0).await;
}

/// Sends the head of a form to sign in and so much of its body, and then nothing more.
async fn stalled_sign_in(stage: &Stage, framing: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address(&stage.desk.url())).await.unwrap();
    let port = stage.desk.url().port().unwrap();
    let head = format!(
        "POST /pages/sign-in HTTP/1.1\r\nhost: desk\r\ncookie: uptack-visit-{port}={}\r\n{framing}\r\n\r\n",
        "v".repeat(43)
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The desk may have closed the connection before all of it was written.
    let _ = stream.write_all(body).await;
    stream
}

/// Memory is counted in the bytes of bodies that the desk keeps; besides, a connection has buffers of a fixed size.
#[tokio::test]
async fn sign_in_forms_that_never_end_hold_four_kibibytes_each_and_keep_nobody_out() {
    let stage = Stage::new().await;
    let held = async || {
        let metrics = stage.desk.operations_url().join("metrics").unwrap();
        let text = reqwest::get(metrics).await.unwrap().text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("uptack_desk_body_bytes "));
        line.expect("the bytes are counted").parse::<usize>().unwrap()
    };
    let mut stalled = Vec::new();
    for _ in 0..50 {
        // One says that it sends a mebibyte, sends half of it and stops; the other says nothing of its length.
        stalled.push(stalled_sign_in(&stage, "content-length: 1048575", &[b'x'; 512 * 1024]).await);
        let chunk = [b"bb8\r\n".as_slice(), &[b'x'; 3000], b"\r\n"].concat();
        stalled.push(stalled_sign_in(&stage, "transfer-encoding: chunked", &chunk).await);
    }
    eventually("the parts that count have come", async || held().await >= 50 * 3000).await;
    assert!(held().await <= 50 * 4096, "{}", held().await);
    assert!(is_served(&stage.desk.url(), "pages/sign-in").await);
    drop(stalled);
    eventually("nothing is held", async || held().await == 0).await;
}

/// A report of a long ballot may be long, and so may an upload: all that strangers send together is limited nevertheless.
#[tokio::test]
async fn uploads_that_never_end_hold_a_share_of_the_leaders_budget_and_keep_nobody_out() {
    let stage = Stage::new().await;
    let names: Vec<String> = (0..800).map(|number| format!("station-{number:03}")).collect();
    let asked = ballot(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let query = stage.analyst.open(&asked, Schedule::Once { seconds: 600 }).await.unwrap().queries.remove(0).query;
    let held = async || {
        let metrics = stage.desk.operations_url().join("leader/metrics").unwrap();
        let text = reqwest::get(metrics).await.unwrap().text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("uptack_body_bytes "));
        line.expect("the bytes are counted").parse::<usize>().unwrap()
    };
    let head = format!(
        "PUT /tasks/{query}/reports HTTP/1.1\r\nhost: leader\r\ncontent-type: application/dap-report\r\n\
         content-length: 200000\r\n\r\n"
    );
    let mut stalled = Vec::new();
    for _ in 0..150 {
        let mut stream = TcpStream::connect(address(stage.desk.leader_url())).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let _ = stream.write_all(&[b'x'; 150_000]).await;
        stalled.push(stream);
    }
    // A quarter of 64 MiB is what one address gets; without a limit, it would be 150 times 150 kB.
    eventually("the parts that count have come", async || held().await > 8 << 20).await;
    assert!(held().await <= 16 << 20, "{}", held().await);
    assert!(is_served(stage.desk.leader_url(), "hpke_config").await);
    drop(stalled);
    eventually("nothing is held", async || held().await == 0).await;
}

#[tokio::test]
async fn counters_and_health_are_not_on_the_ports_that_owners_reach() {
    let stage = Stage::new().await;
    let (desk, leader, helper) = (stage.desk.url(), stage.desk.leader_url(), stage.desk.helper_url());
    for server in [&desk, leader, helper] {
        for path in ["metrics", "healthz", "leader/metrics"] {
            let answer = honest().get(server.join(path).unwrap()).send().await.unwrap();
            assert_eq!(answer.status(), 404, "{server}{path}");
        }
    }
    let operations = stage.desk.operations_url();
    assert!(address(&operations).ip() == Ipv4Addr::LOCALHOST);
    for path in ["metrics", "healthz", "leader/metrics", "helper/metrics", "leader/healthz", "helper/healthz"] {
        assert!(is_served(&operations, path).await, "{path}");
    }
    assert_eq!(honest().get(operations.join("queries").unwrap()).send().await.unwrap().status(), 404);
}
