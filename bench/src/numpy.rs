//! numpy, in a Python process that waits for its turn.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub struct Numpy {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Numpy {
    /// Starts `python3`, or says why there is no numpy.
    pub fn start() -> Result<Self, String> {
        let mut python = Command::new("python3");
        python
            .args(["-c", include_str!("numpy.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = python.spawn().map_err(|error| format!("python3 does not start: {error}"))?;
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("its output is piped"));
        let mut numpy = Self { process, input, output };
        let version = numpy.line();
        if version.is_empty() {
            return Err("no numpy: `pip install numpy`".to_owned());
        }
        eprintln!("numpy {version}");
        Ok(numpy)
    }

    /// The seconds for `blocks` times `random(n) < p`.
    pub fn random_below(&mut self, p: f64, n: usize, blocks: usize) -> f64 {
        let input = self.input.as_mut().expect("it is open until the end");
        writeln!(input, "{p} {n} {blocks}").expect("Python reads");
        self.line().parse().expect("Python prints seconds")
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("Python prints text");
        line.trim().to_owned()
    }
}

impl Drop for Numpy {
    fn drop(&mut self) {
        // The end of its input ends the script.
        drop(self.input.take());
        let _ = self.process.wait();
    }
}
