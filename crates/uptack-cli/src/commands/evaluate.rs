//! `uptack evaluate`

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use clap::Args;
use uptack_eval::compare::Comparison;
use uptack_eval::evaluation::Evaluation;
use uptack_eval::report::{Finding, measured};
use uptack_eval::row::Row;
use uptack_eval::settings::Settings;
use uptack_eval::traffic::{self, Traffic};
use uptack_eval::watch::{Stage, Watch};

use crate::arguments::count;
use crate::failure::Failure;
use crate::output::{Table, grouped, print, print_json, readable_up};
use crate::progress::{self, Step};

/// Repeat the paper's evaluation on real or generated traffic, at equal guarantees
///
/// For every station the question is "are you at this station?". Without --data, traffic in the shape of a real window is
/// generated. Ctrl-C leaves a valid report of what was done.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack evaluate --trials 20 --factors 1
  uptack evaluate --data snapshot.csv --trials 20 --factors 1 --out report
  uptack evaluate --data d12_text_station_5min_2019_10_08.txt.gz --at 00:55 \\
    --stations d12_text_meta.txt --trials 20 --factors 1 --out report

Without --trials and --factors each question is asked 200 times, in populations
of up to 1000 times the traffic; that took 87 seconds of processor time when it
was measured, and the first example 12.")]
pub(crate) struct Arguments {
    /// Caltrans' station 5-minute file, plain or gzipped, or a CSV with the header sensor,vehicles
    #[arg(long)]
    data: Option<PathBuf>,
    /// The five minutes to take of a whole day, by their start; by default those with closest to 50 000 vehicles
    #[arg(long, value_name = "HH:MM", value_parser = minute, requires = "data")]
    at: Option<u32>,
    /// Caltrans' station metadata, for the places on the map
    #[arg(long, requires = "data")]
    stations: Option<PathBuf>,
    /// Write the report (HTML, plots, CSV, JSON) into this folder
    #[arg(long)]
    out: Option<PathBuf>,
    /// How often every question is asked
    #[arg(long, default_value = "200", value_parser = count)]
    trials: u64,
    /// By how much the population grows
    #[arg(long, value_delimiter = ',', default_value = "1,10,100,1000", value_parser = factor)]
    factors: Vec<u64>,
    /// Where the coins, and generated traffic, come from
    #[arg(long, default_value = "1", value_parser = count)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let traffic = read(arguments)?;
    if let Some(folder) = &arguments.out {
        // Found out before minutes of work rather than after.
        fs::create_dir_all(folder).map_err(|error| Failure::writing(folder.display(), &error))?;
    }
    let settings = Settings {
        factors: arguments.factors.clone(),
        trials: arguments.trials,
        seed: arguments.seed,
        ..Settings::default()
    };
    let evaluation = follow(traffic, settings)?;
    if let Some(folder) = &arguments.out {
        write(&evaluation, folder)?;
    }
    if json {
        print_json(&evaluation.json())?;
    } else {
        print(&describe(&evaluation, arguments.out.as_deref()))?;
    }
    if evaluation.complete { Ok(()) } else { Err(Failure::interrupted("stopped; what was done is kept")) }
}

fn read(arguments: &Arguments) -> Result<Traffic, Failure> {
    let Some(path) = &arguments.data else { return traffic::generate(arguments.seed).map_err(from) };
    let file = File::open(path).map_err(|error| Failure::reading(path, &error))?;
    let mut traffic = Traffic::read(file, arguments.at).map_err(|error| from(error).at(path.display()))?;
    if let Some(path) = &arguments.stations {
        let file = File::open(path).map_err(|error| Failure::reading(path, &error))?;
        let places = traffic::read_places(file).map_err(|error| from(error).at(path.display()))?;
        if traffic.place(&places) == 0 {
            return Err(Failure::request(format!("{}: none of the stations is in it", path.display()))
                .with_hint("give the metadata of the same district"));
        }
    }
    Ok(traffic)
}

fn follow(traffic: Traffic, settings: Settings) -> Result<Evaluation, Failure> {
    let watch = std::sync::Arc::new(Watch::default());
    let stopper = std::sync::Arc::clone(&watch);
    // Where no handler can be set, Ctrl-C ends the program as usual, without a report.
    let _ = ctrlc::set_handler(move || stopper.stop());
    let now = || {
        let (stage, done, all) = watch.now();
        Step { what: what(stage), done, all }
    };
    progress::follow(now, || Evaluation::run(traffic, settings, &watch)).map_err(from)
}

fn what(stage: Stage) -> &'static str {
    match stage {
        Stage::Planning => "comparisons planned",
        Stage::Measuring => "trials of all stations",
        Stage::Composing => "days composed",
    }
}

/// Every file is written under another name first, so that none is ever half of a file.
fn write(evaluation: &Evaluation, folder: &Path) -> Result<(), Failure> {
    let files = evaluation.files().map_err(|error| Failure::writing("the plots", &std::io::Error::other(error)))?;
    for file in files {
        let (path, unfinished) = (folder.join(&file.name), folder.join(format!(".{}.unfinished", file.name)));
        fs::write(&unfinished, &file.bytes)
            .and_then(|()| fs::rename(&unfinished, &path))
            .map_err(|error| Failure::writing(path.display(), &error))?;
    }
    Ok(())
}

/// What was found first, then the rows at equal guarantee; all rows are in the files and in JSON.
fn describe(evaluation: &Evaluation, folder: Option<&Path>) -> String {
    let traffic = &evaluation.traffic;
    let mut text = format!(
        "{}: {} vehicles at {} stations, median {}; {} trials, seed {}\n\n",
        traffic.origin,
        grouped(traffic.total()),
        grouped(traffic.stations.len() as u64),
        traffic.median(),
        evaluation.settings.trials,
        evaluation.settings.seed
    );
    text += &findings(evaluation);
    text += &at_equal_guarantee(evaluation, Comparison::Trust);
    text += &at_equal_guarantee(evaluation, Comparison::Release);
    let all = grouped(evaluation.rows.len() as u64);
    match folder {
        Some(folder) => text += &format!("\nreport with all {all} rows: {}\n", folder.join("index.html").display()),
        None => text += &format!("\nall {all} rows: --json, or --out DIR for the report with its figures\n"),
    }
    text
}

fn findings(evaluation: &Evaluation) -> String {
    let sentence = |(index, finding): (usize, Finding)| {
        wrapped(&format!("{}. {} {}", index + 1, finding.claim, finding.conditions), "   ")
    };
    evaluation.summary().into_iter().enumerate().map(sentence).collect()
}

/// Breaks a text between words so that no line is wider than a narrow terminal.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > NARROW {
            lines.push(indent.to_owned() + word);
            continue;
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

/// The columns of a narrow terminal.
const NARROW: usize = 80;

/// The errors at the median station in the smallest and in the largest population.
fn at_equal_guarantee(evaluation: &Evaluation, comparison: Comparison) -> String {
    let factors = &evaluation.settings.factors;
    let (Some(&least), Some(&most)) = (factors.iter().min(), factors.iter().max()) else { return String::new() };
    let total = evaluation.traffic.total();
    let owners = if least == most { vec![least] } else { vec![least, most] };
    let columns: Vec<String> = owners.iter().map(|factor| format!("n = {}", grouped(total * factor))).collect();
    let header = ["method"].into_iter().chain(columns.iter().map(String::as_str)).chain(["ε linked", "honest"]);
    let mut table = Table::new(&header.collect::<Vec<_>>());
    let rows = || evaluation.of(comparison);
    for row in rows().filter(|row| row.factor == least) {
        let of = |factor: u64| rows().find(|other| other.factor == factor && other.label == row.label);
        let errors = owners.iter().map(|&factor| of(factor).map_or(String::new(), |row| error(evaluation, row)));
        let rest = [readable_up(row.claims.linked()), row.honest.to_string()];
        table.row([row.label.clone()].into_iter().chain(errors).chain(rest));
    }
    let (heading, _) = evaluation.heading(comparison);
    let yes = evaluation.traffic.median();
    format!("\n{heading}: error at stations with {yes} vehicles\n{}", table.render())
}

fn error(evaluation: &Evaluation, row: &Row) -> String {
    measured(row.at(evaluation.traffic.median()).measured)
}

/// `HH:MM` as minutes after midnight.
fn minute(text: &str) -> Result<u32, String> {
    let wrong = || format!("`{text}` is not a time such as 00:55");
    let (hour, minute) = text.split_once(':').ok_or_else(wrong)?;
    match (hour.parse::<u32>(), minute.parse::<u32>()) {
        (Ok(hour @ 0..24), Ok(minute @ 0..60)) => Ok(hour * 60 + minute),
        _ => Err(wrong()),
    }
}

fn factor(text: &str) -> Result<u64, String> {
    count(text).ok().filter(|factor| *factor > 0).ok_or_else(|| format!("`{text}` is not a factor of 1 or more"))
}

fn from(error: uptack_eval::Error) -> Failure {
    let failure = Failure::request(error.to_string());
    match error.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
