//! `uptack privatize` and `uptack tally` for mechanisms with options.

use std::io::{self, BufRead, Read, StdoutLock, Write};

use uptack::contribution::{
    Choices, ContributionSampler, Contributions, OptionNames, OptionRowReader, OptionRows, RowHeader,
    json_row_is_choice,
};
use uptack::display::{self, Rounding};
use uptack::privacy::contributions::linked_epsilon;
use uptack::{NoiseLaw, OsCoins, Output, RowFormat, Sampler, Truth, Truths};
use uptack_document::OptionTally;

use super::bars::{Bar, BarChart};
use crate::choices::{ChoiceReader, OptionTexts, OptionsArgument, bins, check_names};
use crate::failure::{Failure, IoResultExt, Result, ResultExt};
use crate::input::InputSource;
use crate::layout::fitted_to_terminal;
use crate::output::{grouped, print_result, readable_up};
use crate::progress::say;
use crate::truths::{ValueReader, truths_from_input, watched_file};

/// What `uptack privatize` was asked to do with options.
pub(crate) struct Privatize<'a> {
    pub(crate) contributions: &'a Contributions,
    pub(crate) values: ValueReader<'a>,
    pub(crate) options: Option<&'a OptionsArgument>,
    pub(crate) bins: Option<&'a str>,
    pub(crate) is_json: bool,
    pub(crate) quiet: bool,
}

impl Privatize<'_> {
    pub(crate) fn run(self) -> Result<()> {
        let texts = self.texts()?;
        let header = RowHeader::new(self.contributions, texts.names())?;
        let reader = ChoiceReader::new(self.values, texts, self.contributions);
        if !self.quiet {
            warn(self.contributions);
        }
        let rows = RowWriter::new(self.contributions, header, self.is_json);
        match self.values.input {
            InputSource::Standard => privatize(&reader, &mut truths_from_input(), rows),
            InputSource::File(path) => {
                // Checked as a whole before the first row is written, if it can be read twice.
                if std::fs::metadata(path).is_ok_and(|data| data.is_file()) {
                    reader.read(&mut watched_file(path)?, &mut |_| Ok(()))?;
                }
                privatize(&reader, &mut watched_file(path)?, rows)
            }
        }
    }

    fn texts(&self) -> Result<OptionTexts> {
        Ok(match (self.bins, self.options) {
            (Some(edges), _) => OptionTexts::Bins(bins(edges, self.contributions)?),
            (None, Some(options)) => {
                let names = options.names()?;
                check_names(&names, self.contributions)?;
                OptionTexts::Names(names)
            }
            (None, None) => OptionTexts::Names(OptionNames::numbered(self.contributions.options())),
        })
    }
}

fn privatize(reader: &ChoiceReader<'_>, source: &mut dyn Read, mut rows: RowWriter<'_>) -> Result<()> {
    reader.read(source, &mut |options| rows.add(options))?;
    rows.finish()
}

/// Says who adds the noise, and what a single row gives away.
fn warn(contributions: &Contributions) {
    if let Some(noise) = contributions.noise() {
        let hint = format!(
            "rows are without noise: the aggregators add {noise} to every count, as does `uptack tally --noise '{noise}'`\n"
        );
        say(&fitted_to_terminal(&hint));
    }
    say(&fitted_to_terminal(&row_words(linked_epsilon(contributions))));
}

/// Above this ε nobody should see a single row: it can change the odds of its owner's truth more than sevenfold.
const MOST_IN_THE_OPEN: f64 = 2.0;

fn row_words(epsilon: Option<f64>) -> String {
    let private = "Let nobody see single rows: add them up where nobody looks.\n";
    let Some(epsilon) = epsilon else {
        return format!("A row by itself has no guarantee: it can give its owner's truth away. {private}");
    };
    let factor = display::rounded(epsilon.exp(), 3, Rounding::Up);
    let advice = if epsilon > MOST_IN_THE_OPEN { private } else { "\n" };
    format!(
        "Whoever sees a row learns at most ε = {} about its owner: the odds of one option against another change by at most \
         a factor of {factor}. {advice}",
        readable_up(epsilon)
    )
}

/// Owners whose rows are drawn at a time.
const BATCH: usize = 1 << 14;

/// Draws one row per owner and writes them to stdout.
struct RowWriter<'a> {
    drawing: Drawing<'a>,
    header: RowHeader,
    is_json: bool,
    stdout: StdoutLock<'static>,
    buffer: String,
}

impl<'a> RowWriter<'a> {
    fn new(contributions: &'a Contributions, header: RowHeader, is_json: bool) -> Self {
        let buffer = if is_json { String::new() } else { header.line() + "\n" };
        Self { drawing: Drawing::new(contributions), header, is_json, stdout: io::stdout().lock(), buffer }
    }

    fn add(&mut self, options: &[usize]) -> Result<()> {
        self.drawing.add(options)?;
        if self.drawing.owners() == BATCH { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        for options in self.drawing.draw()? {
            let row = if self.is_json { self.header.json_row(&options) } else { self.header.row(&options) };
            self.buffer.push_str(&row);
            self.buffer.push('\n');
        }
        self.stdout.write_all(self.buffer.as_bytes()).while_writing("stdout")?;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.write()?;
        self.stdout.flush().while_writing("stdout")
    }
}

/// Owners whose coins have not been tossed yet.
enum Drawing<'a> {
    /// Two options, or a single count: a yes/no question, whose report also tells *no* from ⊥.
    YesNo { sampler: Sampler, outputs: Vec<Option<usize>>, truths: Truths },
    Contributions {
        contributions: &'a Contributions,
        sampler: ContributionSampler,
        truths: Vec<uptack::contribution::Choice>,
    },
}

impl<'a> Drawing<'a> {
    fn new(contributions: &'a Contributions) -> Self {
        let Some(yes_no) = contributions.yes_no() else {
            let sampler = ContributionSampler::new(contributions);
            return Self::Contributions { contributions, sampler, truths: Vec::new() };
        };
        let channel = yes_no.channel();
        let option = |output: Output| match output {
            Output::ONE => Some(0),
            Output::ZERO if contributions.is_choice() => Some(1),
            _ => None,
        };
        let outputs = channel.cells().iter().map(|cell| option(cell.outputs()[0])).collect();
        Self::YesNo { sampler: Sampler::new(&channel), outputs, truths: Truths::new() }
    }

    fn add(&mut self, options: &[usize]) -> Result<()> {
        match self {
            Self::YesNo { truths, .. } => truths.push(Truth::from_bool(options == [0])),
            Self::Contributions { contributions, truths, .. } => truths.extend(contributions.choices_of(options)?),
        }
        Ok(())
    }

    fn owners(&self) -> usize {
        match self {
            Self::YesNo { truths, .. } => truths.len(),
            Self::Contributions { contributions, truths, .. } => truths.len() / contributions.most() as usize,
        }
    }

    /// The options of each owner's report; nobody is left to draw for.
    fn draw(&mut self) -> Result<Vec<Vec<usize>>> {
        match self {
            Self::YesNo { sampler, outputs, truths } => {
                let cells = sampler.draw_many(truths, &mut OsCoins)?;
                truths.clear();
                Ok(cells.iter().map(|cell| outputs[cell].into_iter().collect()).collect())
            }
            Self::Contributions { contributions, sampler, truths } => {
                let drawn = sampler.draw_many(&Choices::from_iter(truths.drain(..)), &mut OsCoins)?;
                let owners = drawn.chunks(contributions.most() as usize);
                Ok(owners
                    .map(|owner| {
                        let mut options: Vec<usize> = owner.iter().filter_map(|one| one.count()).collect();
                        options.sort_unstable();
                        options.dedup();
                        options
                    })
                    .collect())
            }
        }
    }
}

/// A file of rows that name options.
pub(crate) struct OptionFile {
    header: RowHeader,
    format: RowFormat,
    has_header: bool,
}

/// No header with the names of all options is longer.
const LONGEST_HEADER: u64 = 64 << 20;

/// The first line of a file, with its end.
pub(crate) fn first_line(input: InputSource<'_>, source: &mut dyn BufRead) -> Result<Vec<u8>> {
    let mut line = Vec::new();
    let read = source.take(LONGEST_HEADER).read_until(b'\n', &mut line);
    read.map_err(|error| input.unreadable(&error))?;
    Ok(line)
}

impl OptionFile {
    /// Recognises rows of options by their first line, or because options are given; none if they are answers.
    pub(crate) fn of(
        first: &[u8],
        format: Option<RowFormat>,
        options: Option<&OptionsArgument>,
    ) -> Result<Option<Self>> {
        let text = String::from_utf8_lossy(first);
        let line = text.trim_start_matches('\u{feff}').trim();
        let names = options.map(OptionsArgument::names).transpose()?;
        if let Some(header) = RowHeader::parse(line).transpose()? {
            check_header(&header, names.as_ref())?;
            return Ok(Some(Self { header, format: RowFormat::Csv, has_header: true }));
        }
        let is_json = format.map_or(line.starts_with('{'), |format| format == RowFormat::NdJson);
        let is_choice = is_json.then(|| json_row_is_choice(line)).flatten();
        let Some(names) = names else {
            return is_choice.map_or(Ok(None), |_| Err(which_options()));
        };
        let header = if is_choice == Some(false) { RowHeader::any_of(names)? } else { RowHeader::choice_of(names)? };
        let format = if is_json { RowFormat::NdJson } else { RowFormat::Csv };
        Ok(Some(Self { header, format, has_header: false }))
    }

    pub(crate) fn count(self, input: InputSource<'_>, first: &[u8], source: &mut dyn BufRead) -> Result<OptionRows> {
        let mut rows = OptionRowReader::new(self.header, self.format, u64::from(self.has_header));
        if !self.has_header && !first.is_empty() {
            rows.line(without_mark(first)).at(input)?;
        }
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = source.read_until(b'\n', &mut line);
            match read.map_err(|error| input.unreadable(&error))? {
                0 => return rows.finish().at(input),
                _ => rows.line(&line).at(input)?,
            }
        }
    }
}

fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line)
}

fn which_options() -> Failure {
    Failure::request("rows of options, but which options are there?")
        .with_hint("give --options with their names, or how many there are")
}

/// Refuses other options than those of the header.
fn check_header(header: &RowHeader, names: Option<&OptionNames>) -> Result<()> {
    let stated = header.names();
    match names {
        Some(names) if names.names() != stated.names() => {
            Err(Failure::request(format!("the header names other options than --options: `{}`", header.line()))
                .with_hint("leave --options out: the header says which options there are"))
        }
        _ => Ok(()),
    }
}

/// Prints the counts of options, with noise if there is any.
pub(crate) fn print_tally(rows: &OptionRows, noise: Option<&NoiseLaw>, json: bool) -> Result<()> {
    let tally = match noise {
        Some(noise) => OptionTally::with_noise(rows, noise, &mut OsCoins)?,
        None => OptionTally::of_rows(rows)?,
    };
    print_result(json, &tally, || describe(&tally, rows.header(), noise))
}

fn describe(tally: &OptionTally, header: &RowHeader, noise: Option<&NoiseLaw>) -> String {
    let words = match noise {
        Some(noise) => format!(" Each count has {noise} from each of two aggregators."),
        None => String::new(),
    };
    let bars = tally.numbers().into_iter().enumerate().map(|(option, number)| Bar {
        cells: vec![header.names().name(option).to_owned(), number.to_string()],
        solid: number as f64,
        light: number as f64,
    });
    let chart = BarChart { header: &["option", "count"], bars: bars.collect() };
    format!("{} owners.{words}\n\n{}", grouped(tally.owners()), chart.render())
}
