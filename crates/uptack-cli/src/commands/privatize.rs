//! `uptack privatize`

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use uptack::{Channel, OsCoins, Sampler, Truth, Truths, answer_name};

use crate::failure::Failure;
use crate::mechanism;
use crate::progress::Watched;

/// Draw one row an owner from one truth a line
///
/// The coins are the operating system's. A file is checked whole before the first row is written; what comes through
/// a pipe is written as it is read.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack privatize 'normal-form(f=0.5,r=1e-4)' truths.txt > rows.csv
  yes no | head -1000 | uptack privatize 'randomized-response(t=0.8)' | uptack tally
  uptack privatize 'sampling(sy=5%,sn=5%)' truths.txt --format ndjson
  uptack privatize 'randomized-response(t=0.999) + laplace(scale=1)' truths.txt | uptack tally --noise 'laplace(scale=1)'")]
pub(crate) struct Arguments {
    /// name(key=value, …), or a file that `uptack channel --json` wrote
    mechanism: String,
    /// One truth a line: yes, no, 1, 0, true or false; standard input if absent or -
    file: Option<PathBuf>,
    /// How rows are written
    #[arg(long, value_enum, default_value = "csv")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// `1,3,2` under the header `A,B,C`
    Csv,
    /// `{"A":"1","B":"3","C":"2"}`
    Ndjson,
}

/// Owners drawn at a time.
const BATCH: usize = 1 << 14;
const CHUNK: usize = 1 << 16;
/// No line that is a truth is longer, blanks included.
const LONGEST_LINE: usize = 64;

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let named = mechanism::read(&arguments.mechanism)?;
    let format = if json { Format::Ndjson } else { arguments.format };
    if let Some(noise) = named.channel.noise() {
        // Nobody is served by failing because a hint could not be shown.
        let _ = writeln!(
            io::stderr(),
            "rows are without noise: the aggregators add {noise} to their sum, as does `uptack tally --noise '{noise}'`"
        );
    }
    match arguments.file.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => {
            if std::fs::metadata(path).is_ok_and(|data| data.is_file()) {
                read_truths(&mut open(path)?, &Place::File(path), &mut |_| Ok(()))?;
            }
            privatize(&named.channel, format, &mut open(path)?, &Place::File(path))
        }
        None => {
            if io::stdin().is_terminal() {
                let _ = writeln!(io::stderr(), "reading truths from the terminal, one a line; end with Ctrl-D");
            }
            privatize(&named.channel, format, &mut io::stdin().lock(), &Place::Input)
        }
    }
}

fn open(path: &Path) -> Result<Watched<File>, Failure> {
    let file = File::open(path).map_err(|error| Failure::reading(path, &error))?;
    Ok(Watched::file(file).unless(io::stdout().is_terminal()))
}

/// Where truths come from, for messages.
enum Place<'a> {
    File(&'a Path),
    Input,
}

impl Place<'_> {
    fn unreadable(&self, error: &io::Error) -> Failure {
        match self {
            Self::File(path) => Failure::reading(path, error),
            Self::Input => Failure::reading_input(error),
        }
    }

    /// The line at fault is named and not shown: it is somebody's truth.
    fn fault(&self, line: u64, what: &str) -> Failure {
        let failure = Failure::request(format!("line {line}: {what}"))
            .with_hint("write yes, no, 1, 0, true or false, one a line");
        match self {
            Self::File(path) => failure.at(path.display()),
            Self::Input => failure.at("standard input"),
        }
    }
}

fn privatize(channel: &Channel, format: Format, source: &mut dyn Read, place: &Place<'_>) -> Result<(), Failure> {
    let sampler = Sampler::new(channel);
    let rows: Vec<Vec<u8>> = channel.cells().iter().map(|cell| row(cell, format)).collect();
    let mut stdout = io::stdout().lock();
    let mut buffer = Vec::with_capacity(CHUNK);
    if format == Format::Csv {
        let names: Vec<String> = (0..channel.answers().len()).map(|answer| answer_name(answer).to_string()).collect();
        buffer.extend_from_slice(format!("{}\n", names.join(",")).as_bytes());
    }
    let mut write = |truths: &Truths| -> Result<(), Failure> {
        let cells = sampler.draw_many(truths, &mut OsCoins)?;
        cells.iter().for_each(|cell| buffer.extend_from_slice(&rows[cell]));
        stdout.write_all(&buffer).map_err(|error| Failure::writing("stdout", &error))?;
        buffer.clear();
        Ok(())
    };
    read_truths(source, place, &mut write)?;
    stdout.flush().map_err(|error| Failure::writing("stdout", &error))
}

fn row(cell: &uptack::Cell, format: Format) -> Vec<u8> {
    let outputs = cell.outputs().iter();
    let text = match format {
        Format::Csv => outputs.map(ToString::to_string).collect::<Vec<_>>().join(","),
        Format::Ndjson => {
            let fields =
                outputs.enumerate().map(|(answer, output)| format!("\"{}\":\"{output}\"", answer_name(answer)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
    };
    format!("{text}\n").into_bytes()
}

/// Hands on the truths in batches; the last one may be small, and there is at least one owner.
fn read_truths(
    source: &mut dyn Read,
    place: &Place<'_>,
    take: &mut dyn FnMut(&Truths) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut batch = Batch { truths: Truths::new(), line: 0, place, take };
    let mut buffer = vec![0; CHUNK];
    let mut pending = 0;
    loop {
        let read = match source.read(&mut buffer[pending..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result.map_err(|error| place.unreadable(&error))?,
        };
        let end = pending + read;
        if read == 0 {
            if pending > 0 {
                batch.line(&buffer[..pending])?;
            }
            return batch.finish();
        }
        let mut start = 0;
        for newline in memchr::memchr_iter(b'\n', &buffer[..end]) {
            batch.line(&buffer[start..newline])?;
            start = newline + 1;
        }
        if end - start > LONGEST_LINE {
            return Err(place.fault(batch.line + 1, "too long for a truth"));
        }
        buffer.copy_within(start..end, 0);
        pending = end - start;
    }
}

struct Batch<'a> {
    truths: Truths,
    line: u64,
    place: &'a Place<'a>,
    take: &'a mut dyn FnMut(&Truths) -> Result<(), Failure>,
}

impl Batch<'_> {
    fn line(&mut self, line: &[u8]) -> Result<(), Failure> {
        self.line += 1;
        let Some(truth) = parse(line.trim_ascii()) else {
            let what = if line.trim_ascii().is_empty() { "an empty line" } else { "not a truth" };
            return Err(self.place.fault(self.line, what));
        };
        self.truths.push(truth);
        if self.truths.len() == BATCH { self.hand_on() } else { Ok(()) }
    }

    fn hand_on(&mut self) -> Result<(), Failure> {
        (self.take)(&self.truths)?;
        self.truths.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), Failure> {
        if self.line == 0 {
            return Err(self.place.fault(1, "there are no truths"));
        }
        if self.truths.is_empty() { Ok(()) } else { self.hand_on() }
    }
}

fn parse(text: &[u8]) -> Option<Truth> {
    let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
    if is("yes") || is("1") || is("true") {
        Some(Truth::Yes)
    } else if is("no") || is("0") || is("false") {
        Some(Truth::No)
    } else {
        None
    }
}
