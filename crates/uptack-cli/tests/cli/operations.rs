//! Servers as their operators meet them: signals, backups, health, permissions, and memory under attack.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::desk::{Desk, Process};
use crate::{Folder, json, run};

/// Long enough for a slow machine; nothing waits for it in vain.
const PATIENCE: Duration = Duration::from_secs(60);

fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// Arguments of a desk and of an aggregator in a folder of the test.
fn servers(folder: &Folder) -> [Vec<String>; 2] {
    let data = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    [
        vec!["serve".to_owned(), "--data".to_owned(), data("desk")],
        ["aggregator", "--role", "helper", "--data"].map(str::to_owned).into_iter().chain([data("helper")]).collect(),
    ]
}

#[test]
fn a_server_that_is_told_to_stop_as_soon_as_it_says_its_address_stops_in_order() {
    let folder = Folder::new("operations-signals");
    for arguments in servers(&folder) {
        for _ in 0..5 {
            let mut command = Command::new(env!("CARGO_BIN_EXE_uptack"));
            let mut child = command.args(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            // The first byte of the address, and not a moment later.
            child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            signal(child.id(), "-TERM");
            assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}");
        }
    }
}

#[test]
fn a_hangup_ends_no_server() {
    let folder = Folder::new("operations-hangup");
    for arguments in servers(&folder) {
        let process = Process::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        signal(process.id(), "-HUP");
        std::thread::sleep(Duration::from_millis(500));
        assert!(get(&process.1, "/openapi.json").starts_with("HTTP/1.1 "));
    }
}

/// A certificate and its key in the two files of a server.
fn write_certificate(folder: &Folder) -> (String, String) {
    let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = folder.file("certificate.pem", certified.cert.pem());
    (certificate, folder.file("key.pem", certified.signing_key.serialize_pem()))
}

/// Whether a new connection is served by whoever trusts this certificate alone.
fn is_trusted(address: &str, root: &str) -> bool {
    let client = uptack_dap::http_client::client(Some(Path::new(root))).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { client.get(format!("{address}key")).send().await.is_ok() })
}

#[test]
fn a_hangup_replaces_the_certificate_and_a_bad_file_does_not() {
    let folder = Folder::new("operations-certificates");
    let (certificate, key) = write_certificate(&folder);
    let first = folder.file("first.pem", std::fs::read(&certificate).unwrap());
    let data = folder.0.join("desk").to_str().unwrap().to_owned();
    let (desk, _) = Process::start_json(&["serve", "--data", &data, "--certificate", &certificate, "--key", &key]);
    assert!(desk.1.starts_with("https://") && is_trusted(&desk.1, &first));

    write_certificate(&folder);
    let second = folder.file("second.pem", std::fs::read(&certificate).unwrap());
    assert!(!is_trusted(&desk.1, &second), "nothing is read before the signal");
    signal(desk.id(), "-HUP");
    let end = Instant::now() + PATIENCE;
    while !is_trusted(&desk.1, &second) {
        assert!(Instant::now() < end, "the new certificate is never shown");
    }
    assert!(!is_trusted(&desk.1, &first));

    // A certificate whose key is another's, and a file that is none.
    folder.file("certificate.pem", std::fs::read(&first).unwrap());
    signal(desk.id(), "-HUP");
    std::thread::sleep(Duration::from_millis(300));
    folder.file("certificate.pem", "not a certificate");
    signal(desk.id(), "-HUP");
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_trusted(&desk.1, &second) && !is_trusted(&desk.1, &first));
}

/// The answer to a request on a connection of its own.
fn get(address: &str, path: &str) -> String {
    let host = address.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_running_desk_is_backed_up_and_the_copy_goes_on_where_it_was() {
    let desk = Desk::new("operations-backup", &[]);
    let asked = desk.ask(&["--where", "station == \"7\"", "--closes", "1h"]);
    let query = asked["query"].as_str().unwrap();
    let [data, copy, leader_copy] =
        ["desk", "copy", "leader-copy"].map(|name| desk.folder.0.join(name).to_str().unwrap().to_owned());
    assert_eq!(json(&["backup", &data, &copy, "--json"])["kind"], "desk");
    let again = run(&["backup", &data, &copy]);
    assert_eq!(again.status.code(), Some(1), "nothing is written over");
    // Later than the copy, and so not in it.
    let later = desk.ask(&["--where", "station == \"8\"", "--closes", "1h"]);
    let (address, signer) = (desk.process.1.clone(), desk.signer());
    let Desk { folder, process } = desk;
    drop(process);
    std::fs::rename(folder.0.join("desk"), folder.0.join("lost")).unwrap();
    std::fs::rename(folder.0.join("copy"), folder.0.join("desk")).unwrap();
    let process = Process::start(&["serve", "--data", &data]);
    let desk = Desk { folder, process };
    assert_eq!((&desk.process.1, desk.signer()), (&address, signer), "its key and its address are in the copy");
    assert_eq!(desk.json(&["cancel", query], &[])["state"], "cancelled");
    assert_eq!(desk.run(&["cancel", later["query"].as_str().unwrap()], &[]).status.code(), Some(1));
    let leader = desk.folder.0.join("desk").join("leader");
    assert_eq!(json(&["backup", leader.to_str().unwrap(), &leader_copy, "--json"])["kind"], "aggregator");
    assert!(Path::new(&leader_copy).join("state.sqlite3").exists());
}

#[test]
fn a_ledger_is_not_backed_up_and_nothing_else_is_taken_for_a_store() {
    let folder = Folder::new("operations-ledger");
    let data = folder.0.to_str().unwrap();
    let copy = folder.0.join("copy");
    let refuse = |words: &str| {
        let output = run(&["backup", data, copy.to_str().unwrap()]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && text.contains(words) && !copy.exists(), "{text}");
    };
    refuse("no state");
    folder.file("ledger.sqlite3", "");
    refuse("forgotten what was spent");
}

#[test]
fn health_and_counters_have_a_listener_of_their_own_and_files_are_for_their_owner() {
    let folder = Folder::new("operations-health");
    for arguments in servers(&folder) {
        let (process, document) = Process::start_json(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let operations = document["operations"].as_str().unwrap();
        assert!(get(&process.1, "/metrics").starts_with("HTTP/1.1 404"));
        assert!(get(operations, "/healthz").contains("\"status\":\"ok\""));
        assert!(get(operations, "/metrics").contains("# TYPE uptack_"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let data = Path::new(&arguments[arguments.len() - 1]);
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(data), mode(&data.join("lock"))), (0o700, 0o600));
        }
    }
}

/// Memory that a process holds, in MiB.
#[cfg(target_os = "linux")]
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1024
}

/// Connections at once that one attacking process holds: few enough for the usual limit on open files.
const HELD: usize = 250;
/// Tells an attacking process what to do: an address, and the path to ask for or nothing.
const ATTACK: &str = "UPTACK_TEST_ATTACK";
/// The test whose process attacks when it is told to.
const ATTACKER: &str = "operations::a_thousand_connections_that_never_read_cost_little_memory_and_keep_nobody_out";

/// Processes that hold connections to a server until they are dropped.
struct Attack(Vec<Child>);

impl Attack {
    /// Opens a thousand connections. Each asks so often for the path and never reads a byte.
    fn start(address: &str, requests: usize, path: &str) -> Self {
        let host = address.trim_start_matches("http://").trim_end_matches('/');
        let start = || {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", ATTACKER]);
            command.env(ATTACK, format!("{host} {requests} {path}")).stdin(Stdio::piped()).stdout(Stdio::piped());
            command.spawn().unwrap()
        };
        let mut children: Vec<Child> = (0..1000 / HELD).map(|_| start()).collect();
        for child in &mut children {
            let mut output = BufReader::new(child.stdout.take().unwrap());
            let mut said = String::new();
            while !said.ends_with("connections are open\n") {
                assert!(output.read_line(&mut said).unwrap() > 0, "an attacker ended: {said}");
            }
            // Kept open: an attacker that cannot print that it takes long would end.
            child.stdout = Some(output.into_inner());
        }
        Self(children)
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What an attacking process does: holds its connections until it is killed.
fn attack(order: &str) {
    let mut words = order.splitn(3, ' ');
    let [host, requests, path] = [(); 3].map(|()| words.next().unwrap());
    let requests = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n").repeat(requests.parse().unwrap());
    let open = || {
        let mut stream = connect(host);
        stream.set_nonblocking(true).unwrap();
        // What does not fit into the buffers stays unsent; a refused connection may be closed already.
        let _ = stream.write(requests.as_bytes());
        stream
    };
    let held: Vec<TcpStream> = (0..HELD).map(|_| open()).collect();
    let mut pipe = std::io::stdout();
    writeln!(pipe, "\n{} connections are open", held.len()).unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

/// Patiently: on a busy machine a server may be slow to accept so many.
fn connect(host: &str) -> TcpStream {
    let mut attempts = 0;
    loop {
        match TcpStream::connect(host) {
            Ok(stream) => return stream,
            Err(error) => assert!(attempts < 100, "{error}"),
        }
        attempts += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Must not grow by more than this under attack, in MiB.
#[cfg(target_os = "linux")]
const MOST_GROWTH: u64 = 64;

#[test]
#[cfg(target_os = "linux")]
fn a_thousand_connections_that_never_read_cost_little_memory_and_keep_nobody_out() {
    if let Ok(order) = std::env::var(ATTACK) {
        return attack(&order);
    }
    let desk = Desk::new("operations-memory", &[]);
    // A card of some size, so that answers are large.
    let values: String = (0..400).map(|station| format!("station-{station:04}\n")).collect();
    let values = desk.folder.file("stations", values);
    let asked = desk.ask(&["--each", "station", "--values", &values, "--closes", "1h"]);
    let (query, process) = (asked["query"].as_str().unwrap(), desk.process.id());
    let leader = asked["card"]["aggregators"]["leader"].as_str().unwrap();
    let card = format!("/queries/{query}/card");
    // Desk and leader are one process here, so that its memory is that of both.
    // So many cards are far more than is buffered anywhere. No number of the leader's small answers would be.
    let attacks = [("desk", desk.process.1.as_str(), 300, card.as_str()), ("leader", leader, 40, "/hpke_config")];
    for (name, address, requests, path) in attacks {
        let before = resident(process);
        let attack = Attack::start(address, requests, path);
        let (mut most, mut served) = (resident(process), 0);
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end || served < 3 {
            // The others come from an address of their own.
            assert_served_from_elsewhere(name, address, path);
            served += 1;
            most = most.max(resident(process));
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(attack);
        let _ = writeln!(
            std::io::stderr(),
            "{name}: {before} MiB before, {most} MiB under 1000 connections that never read, {served} others served"
        );
        assert!(most <= before + MOST_GROWTH, "{name}: from {before} to {most} MiB");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_thousand_idle_connections_keep_nobody_out_of_desk_and_leader() {
    // Fewer places than the attacker takes.
    let (desk, document) = {
        let folder = Folder::new("operations-idle");
        let data = folder.0.join("desk").to_str().unwrap().to_owned();
        let (process, document) = Process::start_json(&["serve", "--data", &data, "--connections", "800"]);
        ((folder, process), document)
    };
    for (address, path) in [(desk.1.1.as_str(), "/queries"), (document["leader"].as_str().unwrap(), "/hpke_config")] {
        let attack = Attack::start(address, 0, "");
        assert_served_from_elsewhere("server", address, path);
        // Whoever shares the attacker's address is served, too: idle connections give way.
        assert!(get(address, path).starts_with("HTTP/1.1 200"));
        drop(attack);
    }
}

/// A client on another loopback address gets its answer. Like every HTTP client it tries again where a connection breaks.
#[cfg(target_os = "linux")]
fn assert_served_from_elsewhere(name: &str, address: &str, path: &str) {
    let mut answers = Vec::new();
    for _ in 0..3 {
        match answer_elsewhere(address, path) {
            Ok(answer) if answer.starts_with("HTTP/1.1 200") => return,
            other => answers.push(other.map(|answer| answer.lines().next().unwrap_or_default().to_owned())),
        }
    }
    panic!("{name}: another address is not served: {answers:?}");
}

/// What a client on another loopback address is answered.
#[cfg(target_os = "linux")]
fn answer_elsewhere(address: &str, path: &str) -> Result<String, String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let host = address.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let exchange = async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind("127.0.0.9:0".parse().expect("an address"))?;
        let mut stream = socket.connect(host.parse().expect("an address")).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, exchange).await });
    let answer = answer.map_err(|_| "waits in vain")?.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
