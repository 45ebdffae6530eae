//! `uptack privatize` and `uptack tally`: one row per owner, and the counts of rows.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, StdoutLock, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use uptack::contribution::{Contributions, OptionRows};
use uptack::display::{self, Rounding};
use uptack::privacy::linked_epsilon;
use uptack::{
    Cell, Channel, NoiseLaw, OsCoins, Output, RowFormat, RowReader, Sampler, Sums, Tally, Truths, answer_name,
};

use super::contributions::{self, OptionFile};
use crate::arguments::separator;
use crate::choices::OptionsArgument;
use crate::failure::{Failure, IoResultExt, Result, ResultExt};
use crate::input::{InputSource, Loaded, open, read_any_mechanism};
use crate::layout::{fitted_to_terminal, joined};
use crate::output::{Table, grouped, print_result, readable_up};
use crate::progress::{Watched, say};
use crate::truths::{TruthReader, ValueReader, truths_from_input, watched_file};

/// Draw one row per owner from one truth per line
///
/// A truth is yes or no, or for a mechanism with options the option's name or its number from 1; `none` is no contribution, and
/// several contributions are separated by `;`. Coins come from the operating system's random number generator. A file is checked as a whole before the first row is
/// written; input from a pipe is processed as it arrives.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack privatize 'normal-form(f=0.5,r=1e-4)' truths.txt > rows.csv
  yes no | head -1000 | uptack privatize 'randomized-response(t=0.8)' | \\
    uptack tally
  uptack privatize 'randomized-response(t=0.8)' vehicles.csv \\
    --column station --yes 7
  uptack privatize 'sampling(sy=5%,sn=5%)' truths.txt --format ndjson
  uptack privatize 'randomized-response(t=0.999) + laplace(scale=1)' \\
    truths.txt | uptack tally --noise 'laplace(scale=1)'
  printf 'car\\nbus\\ncar\\n' | uptack privatize 'choice(k=4,r=0.1)' \\
    --options car,bus,bike,walk
  printf '17.5\\nNA\\n62\\n' | uptack privatize 'choice(k=6,r=0.05)' \\
    --bins 0,20,40,60")]
pub(crate) struct PrivatizeArguments {
    /// name(key=value, …), or a file that `uptack channel --json` wrote
    mechanism: String,
    /// One truth per line: yes, no, 1, 0, true or false, or an option; standard input if absent or -
    file: Option<PathBuf>,
    /// The names of the options, as a list or as a file with one name per line; by default they are numbered from 1
    #[arg(long, value_name = "A,B,…|FILE", conflicts_with = "yes")]
    options: Option<OptionsArgument>,
    /// Truths are numbers, and the options are the ranges between these rising edges, what is below and above them, and *no
    /// value*, which is an empty line, `none` or `NA`
    #[arg(long, value_name = "E0,E1,…", allow_hyphen_values = true, conflicts_with_all = ["options", "yes"])]
    bins: Option<String>,
    /// The truths are in this column of a CSV file with a header
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// The sign between the fields of the CSV: a comma unless given, or semicolon, tab or bar
    #[arg(long, value_name = "SIGN", value_parser = separator, requires = "column")]
    separator: Option<char>,
    /// The value of the column that means yes; any other value, including an empty one, means no
    #[arg(long, value_name = "VALUE", requires = "column")]
    yes: Option<String>,
    /// Do not print what one row gives away, or who adds the noise
    #[arg(long)]
    quiet: bool,
    /// How rows are written; CSV begins with the header `A,B,C`, or with one that names the options
    #[arg(long, value_enum, default_value = "csv")]
    format: RowFormatArgument,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RowFormatArgument {
    /// `1,3,2`
    Csv,
    /// `{"A":"1","B":"3","C":"2"}`
    Ndjson,
}

/// Bytes of rows that are buffered at least.
const CHUNK: usize = 1 << 16;

pub(crate) fn run_privatize(arguments: &PrivatizeArguments, json: bool) -> Result<()> {
    let format = if json { RowFormatArgument::Ndjson } else { arguments.format };
    let named = match read_any_mechanism(&arguments.mechanism)? {
        Loaded::YesNo(named) => named,
        Loaded::Contributions(named) => return run_contributions(arguments, &named, format),
    };
    arguments.check_yes_no()?;
    if !arguments.quiet {
        warn(&named.channel);
    }
    let reader = arguments.reader();
    let rows = RowWriter::new(&named.channel, format);
    match reader.values.input {
        InputSource::File(path) => privatize_file(reader, path, rows),
        InputSource::Standard => privatize_input(reader, rows),
    }
}

fn run_contributions(arguments: &PrivatizeArguments, named: &Contributions, format: RowFormatArgument) -> Result<()> {
    if arguments.yes.is_some() {
        return Err(Failure::request(format!("--yes: {named} has options"))
            .with_hint("the column holds the names or numbers of options; --options gives the names"));
    }
    contributions::Privatize {
        contributions: named,
        values: arguments.values(),
        options: arguments.options.as_ref(),
        bins: arguments.bins.as_deref(),
        is_json: format == RowFormatArgument::Ndjson,
        quiet: arguments.quiet,
    }
    .run()
}

impl PrivatizeArguments {
    fn values(&self) -> ValueReader<'_> {
        ValueReader {
            input: InputSource::new(self.file.as_deref()),
            column: self.column.as_deref(),
            separator: self.separator,
        }
    }

    fn reader(&self) -> TruthReader<'_> {
        TruthReader { values: self.values(), yes: self.yes.as_deref() }
    }

    /// Refuses what a yes/no question does not have.
    fn check_yes_no(&self) -> Result<()> {
        let given = self.options.as_ref().map(|_| "--options").or(self.bins.as_ref().map(|_| "--bins"));
        given.map_or(Ok(()), |given| Err(contributions::no_options(given, &self.mechanism)))
    }
}

/// Says who adds the noise, and what a single row gives away.
fn warn(channel: &Channel) {
    if let Some(noise) = channel.noise() {
        let hint = format!(
            "rows are without noise: the aggregators add {noise} to their sum, as does `uptack tally --noise '{noise}'`\n"
        );
        say(&fitted_to_terminal(&hint));
    }
    say(&fitted_to_terminal(&row_words(linked_epsilon(channel))));
}

/// Above this ε nobody should see a single row: it can change the odds of its owner's truth more than sevenfold.
const MOST_IN_THE_OPEN: f64 = 2.0;

/// What one row gives away, in words.
fn row_words(epsilon: Option<f64>) -> String {
    let private = "Send such rows through a private write (uptack ask), where nobody sees a single one.\n";
    let Some(epsilon) = epsilon else {
        return format!("A row by itself has no guarantee: it can give its owner's truth away. {private}");
    };
    let factor = display::rounded(epsilon.exp(), 3, Rounding::Up);
    let advice = if epsilon > MOST_IN_THE_OPEN { private } else { "\n" };
    format!(
        "Whoever sees a row learns at most ε = {} about its owner: the odds of yes change by at most a factor of {factor}. \
         {advice}",
        readable_up(epsilon)
    )
}

/// Checks a file as a whole before the first row is written; other sources can be read only once.
fn privatize_file(reader: TruthReader<'_>, path: &Path, rows: RowWriter) -> Result<()> {
    if std::fs::metadata(path).is_ok_and(|data| data.is_file()) {
        reader.read(&mut watched_file(path)?, &mut |_| Ok(()))?;
    }
    privatize(reader, &mut watched_file(path)?, rows)
}

fn privatize_input(reader: TruthReader<'_>, rows: RowWriter) -> Result<()> {
    privatize(reader, &mut truths_from_input(), rows)
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
    fn new(channel: &Channel, format: RowFormatArgument) -> Self {
        let mut buffer = Vec::with_capacity(CHUNK);
        if format == RowFormatArgument::Csv {
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

impl RowFormatArgument {
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

/// Count rows into tallies
///
/// Prints JSON if stdout is not a terminal, so that it can be piped into `uptack estimate`.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack tally rows.csv
  uptack tally monday.csv tuesday.csv --json > tally.json
  uptack privatize 'randomized-response(t=0.8)' truths.txt | uptack tally | \\
    uptack estimate 'randomized-response(t=0.8)'
  uptack privatize 'randomized-response(t=0.999)' truths.txt | \\
    uptack tally --noise 'laplace(scale=1)' | \\
    uptack estimate 'randomized-response(t=0.999) + laplace(scale=1)'")]
pub(crate) struct TallyArguments {
    /// Rows as CSV, with or without header, or as NDJSON; standard input if absent or -
    files: Vec<PathBuf>,
    /// How rows are written; by default guessed from the first line
    #[arg(long, value_enum)]
    format: Option<RowFormatArgument>,
    /// Rows name one of these options, which is said by a header if there is one: names, a file with one name per line, or how
    /// many there are
    #[arg(long, value_name = "A,B,…|FILE|K")]
    options: Option<OptionsArgument>,
    /// Count only the answers that are 1, or each option, and add noise as two aggregators would: two fresh draws for each count
    /// from the operating system's random numbers
    #[arg(long, value_name = "laplace(scale=T)")]
    noise: Option<NoiseLaw>,
}

impl From<RowFormatArgument> for RowFormat {
    fn from(format: RowFormatArgument) -> Self {
        match format {
            RowFormatArgument::Csv => Self::Csv,
            RowFormatArgument::Ndjson => Self::NdJson,
        }
    }
}

/// Bytes of rows that are read at a time.
const READ_CHUNK: usize = 1 << 18;

pub(crate) fn run_tally(arguments: &TallyArguments, json: bool) -> Result<()> {
    let json = json || !io::stdout().is_terminal();
    match arguments.total()? {
        Counted::Options(rows) => contributions::print_tally(&rows, arguments.noise.as_ref(), json),
        Counted::Answers(total) => print_tally(&total, arguments.noise.as_ref(), json),
    }
}

fn print_tally(total: &Tally, noise: Option<&NoiseLaw>, json: bool) -> Result<()> {
    let Some(noise) = noise else { return print_result(json, total, || describe_tally(total)) };
    let sums = Sums::of_tally(total, noise, &mut OsCoins)?;
    print_result(json, &sums, || describe_sums(&sums, noise))
}

const SAME_QUESTION: &str = "only rows of the same question can be added up";

/// What the rows of a file count.
enum Counted {
    Answers(Tally),
    Options(OptionRows),
}

impl Counted {
    fn merge(&mut self, other: &Self) -> Result<()> {
        match (self, other) {
            (Self::Answers(total), Self::Answers(more)) => Ok(total.merge(more)?),
            (Self::Options(total), Self::Options(more)) => Ok(total.merge(more)?),
            (Self::Answers(_), Self::Options(_)) => {
                Err(Failure::request("rows of options, but the first file has answers").with_hint(SAME_QUESTION))
            }
            (Self::Options(_), Self::Answers(_)) => {
                Err(Failure::request("rows of answers, but the first file has options").with_hint(SAME_QUESTION))
            }
        }
    }
}

impl TallyArguments {
    /// The tally of all files, or of standard input.
    fn total(&self) -> Result<Counted> {
        let mut inputs = self.files.iter().map(|path| InputSource::new(Some(path)));
        let mut total = self.tally_of(inputs.next().unwrap_or(InputSource::Standard))?;
        for input in inputs {
            total.merge(&self.tally_of(input)?).at(input)?;
        }
        Ok(total)
    }

    fn tally_of(&self, input: InputSource<'_>) -> Result<Counted> {
        match input {
            InputSource::File(path) => self.count_rows(input, &mut BufReader::new(Watched::file(open(path)?))),
            InputSource::Standard => self.count_rows(input, &mut BufReader::new(Watched::stream(io::stdin().lock()))),
        }
    }

    /// Counts rows. The first line says whether they name options.
    fn count_rows(&self, input: InputSource<'_>, source: &mut dyn BufRead) -> Result<Counted> {
        let format = self.format.map(RowFormat::from);
        let first = contributions::first_line(input, source)?;
        match OptionFile::of(&first, format, self.options.as_ref()).at(input)? {
            Some(file) => file.count(input, &first, source).map(Counted::Options),
            None => count_answers(input, &mut first.as_slice().chain(source), format).map(Counted::Answers),
        }
    }
}

fn count_answers(input: InputSource<'_>, source: &mut dyn Read, format: Option<RowFormat>) -> Result<Tally> {
    let mut rows = RowReader::new(format);
    let mut buffer = vec![0; READ_CHUNK];
    loop {
        match input.read_some(source, &mut buffer)? {
            0 => return rows.finish().at(input),
            length => rows.feed(&buffer[..length]).at(input)?,
        }
    }
}

fn describe_sums(sums: &Sums, noise: &NoiseLaw) -> String {
    let (owners, numbers) = (grouped(sums.owners()), joined(sums.sums(), ", "));
    format!("{owners} owners\n\nanswers that are 1, plus {noise} from each of two aggregators: {numbers}\n")
}

fn describe_tally(tally: &Tally) -> String {
    format!("{} owners\n\n{}", grouped(tally.owners()), counts_table(tally).render())
}

/// One row per answer, one column per output.
fn counts_table(tally: &Tally) -> Table {
    let outputs: BTreeSet<Output> = tally.answers().iter().flat_map(|counts| counts.keys().copied()).collect();
    let mut header = vec!["answer".to_owned()];
    header.extend(outputs.iter().map(Output::to_string));
    Table::new(&header).with_rows((0..tally.answers().len()).map(|answer| counts_row(tally, answer, &outputs)))
}

fn counts_row(tally: &Tally, answer: usize, outputs: &BTreeSet<Output>) -> Vec<String> {
    let mut cells = vec![answer_name(answer).to_string()];
    cells.extend(outputs.iter().map(|&output| grouped(tally.count(answer, output))));
    cells
}
