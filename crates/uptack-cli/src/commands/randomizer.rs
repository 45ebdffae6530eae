//! Somebody else's randomizer: truths on its standard input, outputs on its standard output, one line each.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use uptack::audit::{ForeignAudit, ForeignOutputs, ForeignReport};
use uptack::simulate::Progress;

use crate::failure::{Failure, Result};

/// No output is longer.
const LONGEST_LINE: usize = 1 << 16;
/// A randomizer that says nothing for this long is not waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Truths, and outputs, handed over at a time.
const TOGETHER: usize = 1 << 10;
/// How many of these may wait.
const WAITING: usize = 64;

/// Some lines, or why there are no more of them.
type Lines = Result<Vec<Vec<u8>>>;

/// Runs the command and collects its output for every truth.
pub(super) fn listen(command: &[OsString], audit: ForeignAudit, progress: &Progress) -> Result<ForeignReport> {
    let mut outputs = audit.listen()?;
    let mut running = Running(start(command)?);
    let lines = running.converse(audit.samples);
    hear_all(&lines, &mut outputs, audit.samples, progress)?;
    running.check()?;
    Ok(outputs.report()?)
}

fn start(command: &[OsString]) -> Result<Child> {
    let (program, arguments) = command.split_first().ok_or_else(|| Failure::request("there is no command to run"))?;
    let started = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    started.map_err(|error| Failure::request(start_words(&error)).at(program.to_string_lossy()))
}

/// Why a program cannot be run, in words; the system's own if there are no better ones.
fn start_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such program".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be run".to_owned(),
        _ => error.to_string(),
    }
}

/// The command; it is ended when nobody listens any more.
struct Running(Child);

impl Running {
    /// Writes truths to the command and returns the lines that it says.
    fn converse(&mut self, samples: u64) -> Receiver<Lines> {
        let (input, output) = (self.0.stdin.take(), self.0.stdout.take());
        let (sender, lines) = sync_channel(WAITING);
        // Both threads end with the pipes, which end with the process.
        thread::spawn(move || input.map(|input| write_truths(input, samples)));
        thread::spawn(move || output.map(|output| read_lines(output, &sender)));
        lines
    }

    /// Waits for the end of the command, which must be a success.
    fn check(&mut self) -> Result<()> {
        let status = self.0.wait().map_err(|error| Failure::environment(format!("the command: {error}")))?;
        match status.success() {
            true => Ok(()),
            false => Err(Failure::request(format!("the command failed ({status})"))),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be over already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn write_truths(mut input: ChildStdin, samples: u64) {
    let mut index = 0;
    while index < samples {
        let end = samples.min(index + TOGETHER as u64);
        let text: String = (index..end).map(|each| if ForeignOutputs::truth(each) { "1\n" } else { "0\n" }).collect();
        // A command that stops reading stops writing too, which shows in its outputs.
        if input.write_all(text.as_bytes()).is_err() {
            return;
        }
        index = end;
    }
}

fn read_lines(output: ChildStdout, sender: &SyncSender<Lines>) {
    let mut reader = BufReader::new(output);
    loop {
        let lines = read_some(&mut reader);
        let last = !matches!(&lines, Ok(lines) if !lines.is_empty());
        if sender.send(lines).is_err() || last {
            return;
        }
    }
}

/// The lines that are there, at least one unless it is the end.
fn read_some(reader: &mut BufReader<ChildStdout>) -> Lines {
    let mut lines = Vec::new();
    while lines.is_empty() || (lines.len() < TOGETHER && reader.buffer().contains(&b'\n')) {
        match read_line(reader)? {
            Some(line) => lines.push(line),
            None => break,
        }
    }
    Ok(lines)
}

/// The next line, without its end; none at the end of the output.
fn read_line(reader: &mut BufReader<ChildStdout>) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = reader.take(LONGEST_LINE as u64 + 2).read_until(b'\n', &mut line);
    if read.map_err(|error| Failure::environment(format!("the command's output: {error}")))? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() > LONGEST_LINE {
        return Err(too_long());
    }
    Ok(Some(line))
}

fn too_long() -> Failure {
    Failure::request(format!("the command says a line of more than {LONGEST_LINE} bytes"))
        .with_hint("it writes one line for each truth")
}

fn hear_all(lines: &Receiver<Lines>, outputs: &mut ForeignOutputs, samples: u64, progress: &Progress) -> Result<()> {
    loop {
        let heard = receive(lines, outputs.seen())?;
        if heard.is_empty() {
            return expect_all(outputs.seen(), samples);
        }
        if outputs.seen() + heard.len() as u64 > samples {
            return Err(miscounted("more", samples));
        }
        heard.iter().for_each(|line| outputs.hear(line));
        progress.advance_by(heard.len() as u64);
    }
}

/// The next lines, none at the end; `seen` lines came before.
fn receive(lines: &Receiver<Lines>, seen: u64) -> Lines {
    match lines.recv_timeout(PATIENCE) {
        Ok(lines) => lines,
        Err(RecvTimeoutError::Disconnected) => Ok(Vec::new()),
        Err(RecvTimeoutError::Timeout) => Err(silent_after(seen)),
    }
}

fn silent_after(seen: u64) -> Failure {
    let seconds = PATIENCE.as_secs();
    Failure::request(format!("the command said nothing for {seconds} s, after {seen} lines"))
        .with_hint("it must write one line for each truth, and end when its input does")
}

fn expect_all(seen: u64, samples: u64) -> Result<()> {
    if seen < samples { Err(miscounted(&format!("{seen}"), samples)) } else { Ok(()) }
}

fn miscounted(lines: &str, truths: u64) -> Failure {
    let than = if lines == "more" { "than there are truths, which are" } else { "to truths, which are" };
    Failure::request(format!("the command says {lines} lines {than} {truths}"))
        .with_hint("it must say exactly one line to each truth")
}
