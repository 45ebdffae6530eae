//! A randomizer of anybody's: truths on its standard input, outputs on its standard output, one line each.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use uptack::audit::{ForeignAudit, ForeignOutputs, ForeignReport};
use uptack::simulate::Progress;

use crate::failure::Failure;

/// No output is longer.
const LONGEST_LINE: usize = 1 << 16;
/// A randomizer that says nothing for so long is not waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Truths, and outputs, handed over at a time.
const TOGETHER: usize = 1 << 10;
/// How many of these may wait.
const WAITING: usize = 64;

/// Some lines, or why there are no more of them.
type Lines = Result<Vec<Vec<u8>>, Failure>;

/// Runs the command and hears what it says to every truth.
pub(super) fn listen(command: &[OsString], audit: ForeignAudit, progress: &Progress) -> Result<ForeignReport, Failure> {
    let mut outputs = audit.listen()?;
    let mut running = Running(start(command)?);
    let (input, output) = (running.0.stdin.take(), running.0.stdout.take());
    let (sender, lines) = sync_channel(WAITING);
    // They end with the pipes, which end with the process.
    thread::spawn(move || input.map(|input| write_truths(input, audit.samples)));
    thread::spawn(move || output.map(|output| read_lines(output, &sender)));
    hear_all(&lines, &mut outputs, audit.samples, progress)?;
    running.check()?;
    Ok(outputs.report()?)
}

fn start(command: &[OsString]) -> Result<Child, Failure> {
    let (program, arguments) = command.split_first().ok_or_else(|| Failure::request("there is no command to run"))?;
    let started = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    started.map_err(|error| {
        let words = match error.kind() {
            io::ErrorKind::NotFound => "there is no such program".to_owned(),
            io::ErrorKind::PermissionDenied => "it may not be run".to_owned(),
            _ => error.to_string(),
        };
        Failure::request(format!("{}: {words}", program.to_string_lossy()))
    })
}

/// Ends with whoever listens.
struct Running(Child);

impl Running {
    /// Whether it ended as it should; one that does not end once its input has is ended.
    fn check(&mut self) -> Result<(), Failure> {
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
        // A command that hears no more says no more, and that is found out by its outputs.
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
        let mut line = Vec::new();
        let limit = LONGEST_LINE as u64 + 2;
        let read = reader.take(limit).read_until(b'\n', &mut line);
        match read.map_err(|error| Failure::environment(format!("the command's output: {error}")))? {
            0 => break,
            _ if line.last() == Some(&b'\n') => drop(line.pop()),
            _ => {}
        }
        if line.len() > LONGEST_LINE {
            return Err(Failure::request(format!("the command says a line of more than {LONGEST_LINE} bytes"))
                .with_hint("it writes one line for each truth"));
        }
        lines.push(line);
    }
    Ok(lines)
}

fn hear_all(
    lines: &Receiver<Lines>,
    outputs: &mut ForeignOutputs,
    samples: u64,
    progress: &Progress,
) -> Result<(), Failure> {
    loop {
        let some = match lines.recv_timeout(PATIENCE) {
            Ok(some) => some?,
            Err(RecvTimeoutError::Disconnected) => Vec::new(),
            Err(RecvTimeoutError::Timeout) => {
                let (seen, seconds) = (outputs.seen(), PATIENCE.as_secs());
                return Err(Failure::request(format!("the command said nothing for {seconds} s, after {seen} lines"))
                    .with_hint("it must write one line for each truth, and end when its input does"));
            }
        };
        if some.is_empty() {
            return expect_all(outputs.seen(), samples);
        }
        if outputs.seen() + some.len() as u64 > samples {
            return Err(miscounted("more", samples));
        }
        some.iter().for_each(|line| outputs.hear(line));
        progress.advance_by(some.len() as u64);
    }
}

fn expect_all(seen: u64, samples: u64) -> Result<(), Failure> {
    if seen < samples { Err(miscounted(&format!("{seen}"), samples)) } else { Ok(()) }
}

fn miscounted(lines: &str, truths: u64) -> Failure {
    let than = if lines == "more" { "than there are truths, which are" } else { "to truths, which are" };
    Failure::request(format!("the command says {lines} lines {than} {truths}"))
        .with_hint("it must say exactly one line to each truth")
}
