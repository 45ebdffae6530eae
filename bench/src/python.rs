//! A peer in a Python process that waits for its turn.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub struct Python {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Python {
    /// `random(n) < p`; work is "p n blocks".
    pub fn numpy() -> Result<Self, String> {
        Self::start("numpy", include_str!("numpy.py"))
    }

    /// `GRR_Client`, one owner per call; work is "options epsilon owners".
    pub fn multi_freq_ldpy() -> Result<Self, String> {
        Self::start("multi-freq-ldpy", include_str!("multi_freq_ldpy.py"))
    }

    /// Starts `python3` with a script that prints its peer's version first, or says why there is no such peer.
    fn start(peer: &str, script: &str) -> Result<Self, String> {
        let mut python = Command::new("python3");
        python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = python.spawn().map_err(|error| format!("python3 does not start: {error}"))?;
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("its output is piped"));
        let mut python = Self { process, input, output };
        let version = python.line();
        if version.is_empty() {
            return Err(format!("no {peer}: `pip install {peer}`"));
        }
        eprintln!("{peer} {version}");
        Ok(python)
    }

    /// The seconds of processor time that a piece of work takes.
    pub fn seconds(&mut self, work: &str) -> f64 {
        let input = self.input.as_mut().expect("it is open until the end");
        writeln!(input, "{work}").expect("Python reads");
        self.line().parse().expect("Python prints seconds")
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("Python prints text");
        line.trim().to_owned()
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // The end of its input ends the script.
        drop(self.input.take());
        let _ = self.process.wait();
    }
}
