//! `uptack tally`

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use uptack::{DiscreteLaplace, OsCoins, Output, RowFormat, RowReader, Sums, Tally, answer_name};

use crate::failure::{Result, ResultExt};
use crate::input::{Input, open};
use crate::layout::joined;
use crate::output::{Table, grouped, print_result};
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

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    let total = arguments.total()?;
    let json = json || !io::stdout().is_terminal();
    if let Some(noise) = &arguments.noise {
        let sums = Sums::of_tally(&total, noise, &mut OsCoins)?;
        return print_result(json, &sums, || describe_sums(&sums, noise));
    }
    print_result(json, &total, || describe(&total))
}

impl Arguments {
    /// The tally of all files, or of standard input.
    fn total(&self) -> Result<Tally> {
        let format = self.format.map(RowFormat::from);
        let mut inputs = self.files.iter().map(|path| Input::new(Some(path)));
        let mut total = tally_of(inputs.next().unwrap_or(Input::Standard), format)?;
        for input in inputs {
            total.merge(&tally_of(input, format)?).at(input)?;
        }
        Ok(total)
    }
}

fn tally_of(input: Input<'_>, format: Option<RowFormat>) -> Result<Tally> {
    match input {
        Input::File(path) => count_rows(input, &mut Watched::file(open(path)?), format),
        Input::Standard => count_rows(input, &mut Watched::stream(io::stdin().lock()), format),
    }
}

fn count_rows(input: Input<'_>, source: &mut dyn Read, format: Option<RowFormat>) -> Result<Tally> {
    let mut rows = RowReader::new(format);
    let mut buffer = vec![0; CHUNK];
    loop {
        match input.read_some(source, &mut buffer)? {
            0 => return rows.finish().at(input),
            length => rows.feed(&buffer[..length]).at(input)?,
        }
    }
}

fn describe_sums(sums: &Sums, noise: &DiscreteLaplace) -> String {
    let (owners, numbers) = (grouped(sums.owners()), joined(sums.sums(), ", "));
    format!("{owners} owners\n\nanswers 1, and {noise} of two aggregators: {numbers}\n")
}

fn describe(tally: &Tally) -> String {
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
