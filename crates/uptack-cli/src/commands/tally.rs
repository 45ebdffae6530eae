//! `uptack tally`

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use uptack::{DiscreteLaplace, OsCoins, Output, RowFormat, RowReader, Sums, Tally, answer_name};

use crate::failure::Failure;
use crate::output::{Table, grouped, print, print_json};
use crate::progress::Watched;

/// Count rows into tallies
///
/// Prints JSON where stdout is not a terminal, so that it can be piped into `uptack estimate`.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack tally rows.csv
  uptack tally monday.csv tuesday.csv --json > tally.json
  uptack privatize 'randomized-response(t=0.8)' truths.txt | uptack tally | \\
    uptack estimate 'randomized-response(t=0.8)'
  uptack privatize 'randomized-response(t=0.999)' truths.txt | \\
    uptack tally --noise 'laplace(scale=1)' | \\
    uptack estimate 'randomized-response(t=0.999) + laplace(scale=1)'")]
pub(crate) struct Arguments {
    /// Rows as CSV, with or without header, or as NDJSON; standard input if absent or -
    files: Vec<PathBuf>,
    /// How rows are written; by default what the first line looks like
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Count the answers 1 alone and add what two aggregators would: two draws with the operating system's coins, new ones each time
    #[arg(long, value_name = "laplace(scale=T)")]
    noise: Option<DiscreteLaplace>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// `1,3,2`
    Csv,
    /// `{"A":"1","B":"3","C":"2"}`
    Ndjson,
}

impl From<Format> for RowFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Csv => Self::Csv,
            Format::Ndjson => Self::NdJson,
        }
    }
}

const CHUNK: usize = 1 << 18;

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let input = [PathBuf::from("-")];
    let files = if arguments.files.is_empty() { &input[..] } else { &arguments.files };
    let format = arguments.format.map(RowFormat::from);
    let mut total: Option<Tally> = None;
    for path in files {
        let tally = tally_of(path, format)?;
        match &mut total {
            Some(total) => total.merge(&tally).map_err(|error| Failure::from(error).at(path.display()))?,
            None => total = Some(tally),
        }
    }
    let total = total.expect("there is at least one file");
    if let Some(noise) = &arguments.noise {
        let sums = Sums::of_tally(&total, noise, &mut OsCoins)?;
        let json = json || !io::stdout().is_terminal();
        return if json { print_json(&sums) } else { print(&describe_sums(&sums, noise)) };
    }
    if json || !io::stdout().is_terminal() { print_json(&total) } else { print(&describe(&total)) }
}

fn tally_of(path: &Path, format: Option<RowFormat>) -> Result<Tally, Failure> {
    if path == Path::new("-") {
        let place = |error: uptack::Error| Failure::from(error).at("standard input");
        return read(&mut Watched::stream(io::stdin().lock()), format, &place, &Failure::reading_input);
    }
    let mut file = Watched::file(File::open(path).map_err(|error| Failure::reading(path, &error))?);
    let place = |error: uptack::Error| Failure::from(error).at(path.display());
    read(&mut file, format, &place, &|error| Failure::reading(path, error))
}

fn read(
    source: &mut dyn Read,
    format: Option<RowFormat>,
    place: &dyn Fn(uptack::Error) -> Failure,
    unreadable: &dyn Fn(&io::Error) -> Failure,
) -> Result<Tally, Failure> {
    let mut rows = RowReader::new(format);
    let mut buffer = vec![0; CHUNK];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return rows.finish().map_err(place),
            Ok(length) => rows.feed(&buffer[..length]).map_err(place)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(&error)),
        }
    }
}

fn describe_sums(sums: &Sums, noise: &DiscreteLaplace) -> String {
    let numbers: Vec<String> = sums.sums().iter().map(i64::to_string).collect();
    let owners = grouped(sums.owners());
    format!("{owners} owners\n\nanswers 1, and {noise} of two aggregators: {}\n", numbers.join(", "))
}

fn describe(tally: &Tally) -> String {
    let mut outputs: Vec<Output> = tally.answers().iter().flat_map(|counts| counts.keys().copied()).collect();
    outputs.sort_unstable();
    outputs.dedup();
    let names: Vec<String> = outputs.iter().map(Output::to_string).collect();
    let header: Vec<&str> = std::iter::once("answer").chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new(&header);
    for answer in 0..tally.answers().len() {
        let counts = outputs.iter().map(|&output| grouped(tally.count(answer, output)));
        table.row(std::iter::once(answer_name(answer).to_string()).chain(counts));
    }
    format!("{} owners\n\n{}", grouped(tally.owners()), table.render())
}
