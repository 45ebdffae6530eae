//! `uptack privatize`

use std::fs::File;
use std::io::{self, IsTerminal, Read, StdoutLock, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use uptack::display::{self, Rounding};
use uptack::privacy::linked_epsilon;
use uptack::{Cell, Channel, OsCoins, Sampler, Truths, answer_name};

use crate::failure::{IoResultExt, Result};
use crate::input::{Input, open};
use crate::layout::{fitted_to_terminal, joined};
use crate::mechanism;
use crate::output::readable_up;
use crate::progress::{Watched, say};
use crate::truth_reader::TruthReader;

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

/// Bytes of rows that are buffered at least.
const CHUNK: usize = 1 << 16;

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    let named = mechanism::read(&arguments.mechanism)?;
    let format = if json { Format::Ndjson } else { arguments.format };
    if !arguments.quiet {
        warn(&named.channel);
    }
    let reader = arguments.reader();
    let rows = RowWriter::new(&named.channel, format);
    match reader.input {
        Input::File(path) => privatize_file(reader, path, rows),
        Input::Standard => privatize_input(reader, rows),
    }
}

impl Arguments {
    fn reader(&self) -> TruthReader<'_> {
        TruthReader {
            input: Input::new(self.file.as_deref()),
            column: self.column.as_deref(),
            yes: self.yes.as_deref(),
        }
    }
}

/// Says who adds the noise, and what one row gives away.
fn warn(channel: &Channel) {
    if let Some(noise) = channel.noise() {
        let hint = format!(
            "rows are without noise: the aggregators add {noise} to their sum, as does `uptack tally --noise '{noise}'`\n"
        );
        say(&fitted_to_terminal(&hint));
    }
    say(&fitted_to_terminal(&row_words(linked_epsilon(channel))));
}

/// Beyond this ε a row must not be seen by anybody: it can change the odds of its owner's truth more than sevenfold.
const MOST_IN_THE_OPEN: f64 = 2.0;

/// What one row gives away, in words.
fn row_words(epsilon: Option<f64>) -> String {
    let private = "Such rows belong in a private write (uptack ask), where nobody sees a single one.\n";
    let Some(epsilon) = epsilon else {
        return format!("A row can give its owner's truth away: it has no guarantee of its own. {private}");
    };
    let factor = display::rounded(epsilon.exp(), 3, Rounding::Up);
    let advice = if epsilon > MOST_IN_THE_OPEN { private } else { "\n" };
    format!(
        "Whoever sees a row learns at most ε = {} of its owner: the odds of yes change by a factor of {factor} \
         at most. {advice}",
        readable_up(epsilon)
    )
}

/// A file is checked whole before the first row is written; what is not a file can be read only once.
fn privatize_file(reader: TruthReader<'_>, path: &Path, rows: RowWriter) -> Result<()> {
    if std::fs::metadata(path).is_ok_and(|data| data.is_file()) {
        reader.read(&mut watched_file(path)?, &mut |_| Ok(()))?;
    }
    privatize(reader, &mut watched_file(path)?, rows)
}

fn privatize_input(reader: TruthReader<'_>, rows: RowWriter) -> Result<()> {
    if io::stdin().is_terminal() {
        say("reading truths from the terminal, one per line; end with Ctrl-D\n");
    }
    privatize(reader, &mut io::stdin().lock(), rows)
}

fn watched_file(path: &Path) -> Result<Watched<File>> {
    Ok(Watched::file(open(path)?).unless(io::stdout().is_terminal()))
}

fn privatize(reader: TruthReader<'_>, source: &mut dyn Read, mut rows: RowWriter) -> Result<()> {
    reader.read(source, &mut |truths| rows.draw(truths))?;
    rows.finish()
}

/// Draws one row per owner and writes them to stdout.
struct RowWriter {
    sampler: Sampler,
    /// The row of each cell.
    rows: Vec<Vec<u8>>,
    stdout: StdoutLock<'static>,
    buffer: Vec<u8>,
}

impl RowWriter {
    fn new(channel: &Channel, format: Format) -> Self {
        let mut buffer = Vec::with_capacity(CHUNK);
        if format == Format::Csv {
            buffer.extend_from_slice(header(channel).as_bytes());
        }
        Self {
            sampler: Sampler::new(channel),
            rows: channel.cells().iter().map(|cell| format.row(cell).into_bytes()).collect(),
            stdout: io::stdout().lock(),
            buffer,
        }
    }

    fn draw(&mut self, truths: &Truths) -> Result<()> {
        let cells = self.sampler.draw_many(truths, &mut OsCoins)?;
        cells.iter().for_each(|cell| self.buffer.extend_from_slice(&self.rows[cell]));
        self.stdout.write_all(&self.buffer).while_writing("stdout")?;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.stdout.flush().while_writing("stdout")
    }
}

/// `A,B,C`
fn header(channel: &Channel) -> String {
    joined((0..channel.answers().len()).map(answer_name), ",") + "\n"
}

impl Format {
    /// The line of a cell.
    fn row(self, cell: &Cell) -> String {
        match self {
            Self::Csv => csv_row(cell),
            Self::Ndjson => json_row(cell),
        }
    }
}

fn csv_row(cell: &Cell) -> String {
    joined(cell.outputs(), ",") + "\n"
}

fn json_row(cell: &Cell) -> String {
    let field = |(answer, output)| format!("\"{}\":\"{output}\"", answer_name(answer));
    format!("{{{}}}\n", joined(cell.outputs().iter().enumerate().map(field), ","))
}
