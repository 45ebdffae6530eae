//! The command line as its users meet it.

mod aggregators;
mod agreement;
mod algebra;
mod asking;
mod audit;
mod card;
mod contract;
mod desk;
mod documentation;
mod evaluate;
mod examples;
mod help;
mod network;
mod operations;
mod options;
mod pipeline;
mod plan;
mod privacy;
mod wrong_uses;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Runs `uptack` with `input` on its standard input.
fn run_with(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_uptack"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A command that refuses its input early closes the pipe, which is no failure of the test.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    output
}

fn run(arguments: &[&str]) -> Output {
    run_with(arguments, b"")
}

/// The JSON document that a command prints.
fn json_with(arguments: &[&str], input: &[u8]) -> serde_json::Value {
    let output = run_with(arguments, input);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    json_with(arguments, b"")
}

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("uptack-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
