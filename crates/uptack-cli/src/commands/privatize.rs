//! `uptack privatize`

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use uptack::display::{self, Rounding};
use uptack::privacy::linked_epsilon;
use uptack::{Channel, OsCoins, Sampler, Truth, Truths, answer_name};

use crate::csv_column::{CsvColumn, Fault};
use crate::failure::Failure;
use crate::layout;
use crate::mechanism;
use crate::output::readable_up;
use crate::progress::{Watched, say};

/// Draw one row per owner from one truth per line
///
/// The coins are the operating system's. A file is checked whole before the first row is written; what comes through
/// a pipe is written as it is read.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack privatize 'normal-form(f=0.5,r=1e-4)' truths.txt > rows.csv
  yes no | head -1000 | uptack privatize 'randomized-response(t=0.8)' | \\
    uptack tally
  uptack privatize 'randomized-response(t=0.8)' vehicles.csv \\
    --column station --yes 7
  uptack privatize 'sampling(sy=5%,sn=5%)' truths.txt --format ndjson
  uptack privatize 'randomized-response(t=0.999) + laplace(scale=1)' \\
    truths.txt | uptack tally --noise 'laplace(scale=1)'")]
pub(crate) struct Arguments {
    /// name(key=value, …), or a file that `uptack channel --json` wrote
    mechanism: String,
    /// One truth per line: yes, no, 1, 0, true or false; standard input if absent or -
    file: Option<PathBuf>,
    /// The truths are in this column of a CSV file with a header
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// The value of the column that is a yes; every other one, also an empty one, is a no
    #[arg(long, value_name = "VALUE", requires = "column")]
    yes: Option<String>,
    /// Do not say what one row gives away, or who adds the noise
    #[arg(long)]
    quiet: bool,
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
    let written = Written { column: arguments.column.as_deref(), yes: arguments.yes.as_deref() };
    if !arguments.quiet {
        if let Some(noise) = named.channel.noise() {
            let hint = format!(
                "rows are without noise: the aggregators add {noise} to their sum, as does `uptack tally --noise '{noise}'`\n"
            );
            say(&layout::fitted(&hint, layout::width()));
        }
        say(&layout::fitted(&row_words(linked_epsilon(&named.channel)), layout::width()));
    }
    match arguments.file.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => {
            if std::fs::metadata(path).is_ok_and(|data| data.is_file()) {
                read_truths(&mut open(path)?, written, &Place::File(path), &mut |_| Ok(()))?;
            }
            privatize(&named.channel, format, &mut open(path)?, written, &Place::File(path))
        }
        None => {
            if io::stdin().is_terminal() {
                // Nobody is served by failing because a hint could not be shown.
                let _ = writeln!(io::stderr(), "reading truths from the terminal, one per line; end with Ctrl-D");
            }
            privatize(&named.channel, format, &mut io::stdin().lock(), written, &Place::Input)
        }
    }
}

/// How truths are written: one per line, or in a column of CSV.
#[derive(Clone, Copy)]
struct Written<'a> {
    column: Option<&'a str>,
    yes: Option<&'a str>,
}

/// Beyond this ε a row is not for anybody's eyes: it can change the odds of its owner's truth more than sevenfold.
const MOST_IN_THE_OPEN: f64 = 2.0;

/// What one row gives away, in words.
fn row_words(epsilon: Option<f64>) -> String {
    let private = "Such rows belong in a private write (uptack ask), where nobody sees a single one.\n";
    match epsilon {
        None => format!("A row can give its owner's truth away: it has no guarantee of its own. {private}"),
        Some(epsilon) => {
            let factor = display::rounded(epsilon.exp(), 3, Rounding::Up);
            let advice = if epsilon > MOST_IN_THE_OPEN { private } else { "\n" };
            format!(
                "Whoever sees a row learns at most ε = {} of its owner: the odds of yes change by a factor of {factor} \
                 at most. {advice}",
                readable_up(epsilon)
            )
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
        let failure = Failure::request(format!("line {line}: {what}"));
        match self {
            Self::File(path) => failure.at(path.display()),
            Self::Input => failure.at("standard input"),
        }
    }
}

fn privatize(
    channel: &Channel,
    format: Format,
    source: &mut dyn Read,
    written: Written<'_>,
    place: &Place<'_>,
) -> Result<(), Failure> {
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
    read_truths(source, written, place, &mut write)?;
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
    written: Written<'_>,
    place: &Place<'_>,
    take: &mut dyn FnMut(&Truths) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut batch = Batch { truths: Truths::new(), owners: 0, written, place, take };
    match written.column {
        None => read_lines(source, place, &mut |line, text| batch.add(line, text))?,
        Some(name) => read_column(source, place, name, &mut |line, text| batch.add(line, text))?,
    }
    batch.finish()
}

/// What takes each value, with its line.
type Take<'a> = dyn FnMut(u64, &[u8]) -> Result<(), Failure> + 'a;

fn read_column(source: &mut dyn Read, place: &Place<'_>, name: &str, take: &mut Take<'_>) -> Result<(), Failure> {
    // What is wrong with the file keeps its line until its place is named.
    struct Stopped(Result<Failure, Fault>);
    impl From<Fault> for Stopped {
        fn from(fault: Fault) -> Self {
            Self(Err(fault))
        }
    }
    let told = |Stopped(reason): Stopped| reason.unwrap_or_else(|fault| place.fault(fault.line, &fault.what));
    let mut take = |line: u64, value: &[u8]| take(line, value).map_err(|failure| Stopped(Ok(failure)));
    let mut column = CsvColumn::new(name);
    let mut buffer = vec![0; CHUNK];
    loop {
        match read_some(source, &mut buffer, place)? {
            0 => return column.finish(&mut take).map_err(told),
            read => column.feed(&buffer[..read], &mut take).map_err(told)?,
        }
    }
}

fn read_lines(source: &mut dyn Read, place: &Place<'_>, take: &mut Take<'_>) -> Result<(), Failure> {
    let mut buffer = vec![0; CHUNK];
    let (mut pending, mut lines) = (0, 0);
    let mut line = |text: &[u8]| {
        lines += 1;
        let text = if lines == 1 { text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) } else { text };
        take(lines, text.trim_ascii()).map(|()| lines)
    };
    let mut read_so_far = 0;
    loop {
        let read = read_some(source, &mut buffer[pending..], place)?;
        let end = pending + read;
        if read == 0 {
            return if pending > 0 { line(&buffer[..pending]).map(drop) } else { Ok(()) };
        }
        let mut start = 0;
        for newline in memchr::memchr_iter(b'\n', &buffer[..end]) {
            read_so_far = line(&buffer[start..newline])?;
            start = newline + 1;
        }
        if end - start > LONGEST_LINE {
            return Err(place.fault(read_so_far + 1, "too long for a truth").with_hint(TRUTHS));
        }
        buffer.copy_within(start..end, 0);
        pending = end - start;
    }
}

/// The next bytes, as many as there are; none at the end.
fn read_some(source: &mut dyn Read, buffer: &mut [u8], place: &Place<'_>) -> Result<usize, Failure> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map_err(|error| place.unreadable(&error)),
        }
    }
}

const TRUTHS: &str = "write yes, no, 1, 0, true or false, one per line; --column reads a column of CSV";

struct Batch<'a> {
    truths: Truths,
    owners: u64,
    written: Written<'a>,
    place: &'a Place<'a>,
    take: &'a mut dyn FnMut(&Truths) -> Result<(), Failure>,
}

impl Batch<'_> {
    fn add(&mut self, line: u64, text: &[u8]) -> Result<(), Failure> {
        let truth = match self.written.yes {
            Some(yes) => Some(if text == yes.trim().as_bytes() { Truth::Yes } else { Truth::No }),
            None => parse(text),
        };
        let Some(truth) = truth else {
            return Err(self.not_a_truth(line, text.is_empty()));
        };
        self.owners += 1;
        self.truths.push(truth);
        if self.truths.len() == BATCH { self.hand_on() } else { Ok(()) }
    }

    fn not_a_truth(&self, line: u64, is_empty: bool) -> Failure {
        match self.written.column {
            Some(name) => self
                .place
                .fault(line, &format!("the value of `{name}` is neither yes nor no"))
                .with_hint("say which value is a yes, as in --yes A1"),
            None => self.place.fault(line, if is_empty { "an empty line" } else { "not a truth" }).with_hint(TRUTHS),
        }
    }

    fn hand_on(&mut self) -> Result<(), Failure> {
        (self.take)(&self.truths)?;
        self.truths.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), Failure> {
        if self.owners == 0 {
            let line = if self.written.column.is_some() { 2 } else { 1 };
            return Err(self.place.fault(line, "there are no truths").with_hint(TRUTHS));
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
