//! `uptack evaluate`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use clap::Args;
use uptack_eval::compare::Comparison;
use uptack_eval::evaluation::Evaluation;
use uptack_eval::evaluation::EvaluationRow;
use uptack_eval::report::{ReportFinding, measured};
use uptack_eval::settings::EvaluationSettings;
use uptack_eval::settings::{Stage, Watch};
use uptack_eval::traffic::{self, Traffic};

use crate::arguments::count;
use crate::failure::{Failure, IoResultExt, Result, ResultExt};
use crate::input::open;
use crate::output::{Table, grouped, print, print_json, readable_up};
use crate::progress::{self, ProgressStep};

/// Repeat the paper's evaluation on real or generated traffic, at equal guarantees
///
/// The question is where each vehicle is, as one choice among all stations and as one question per station. Without --data, traffic in the shape of a real window is
/// generated. Ctrl-C leaves a valid report of the results so far.
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
    /// Which five minutes of a day's file to use, by their start; by default those whose total is closest to 50 000 vehicles
    #[arg(long, value_name = "HH:MM", value_parser = minute, requires = "data")]
    at: Option<u32>,
    /// Caltrans' station metadata, for the positions on the map
    #[arg(long, requires = "data")]
    stations: Option<PathBuf>,
    /// Write the report (HTML, plots, CSV, JSON) into this folder
    #[arg(long)]
    out: Option<PathBuf>,
    /// How many times each question is asked
    #[arg(long, default_value = "200", value_parser = count)]
    trials: u64,
    /// The factors by which the population grows
    #[arg(long, value_delimiter = ',', default_value = "1,10,100,1000", value_parser = factor)]
    factors: Vec<u64>,
    /// The seed of the coins and of generated traffic
    #[arg(long, default_value = "1", value_parser = count)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    let traffic = arguments.traffic()?;
    if let Some(folder) = &arguments.out {
        // Found out before minutes of work rather than after.
        fs::create_dir_all(folder).while_writing(folder.display())?;
    }
    let evaluation = follow(traffic, arguments.settings())?;
    if let Some(folder) = &arguments.out {
        write(&evaluation, folder)?;
    }
    if json {
        print_json(&evaluation.json())?;
    } else {
        print(&describe(&evaluation, arguments.out.as_deref()))?;
    }
    if evaluation.complete { Ok(()) } else { Err(Failure::interrupted("stopped; the results so far are kept")) }
}

impl Arguments {
    fn settings(&self) -> EvaluationSettings {
        EvaluationSettings {
            factors: self.factors.clone(),
            trials: self.trials,
            seed: self.seed,
            ..EvaluationSettings::default()
        }
    }

    fn traffic(&self) -> Result<Traffic> {
        let Some(path) = &self.data else { return Ok(traffic::generate(self.seed)?) };
        let mut traffic = Traffic::read(open(path)?, self.at).at(path.display())?;
        if let Some(path) = &self.stations {
            place_stations(&mut traffic, path)?;
        }
        Ok(traffic)
    }
}

/// Gives the stations the places that the metadata names.
fn place_stations(traffic: &mut Traffic, path: &Path) -> Result<()> {
    let places = traffic::read_places(open(path)?).at(path.display())?;
    if traffic.place(&places) == 0 {
        return Err(Failure::request("it lists none of the stations")
            .at(path.display())
            .with_hint("give the metadata of the same district"));
    }
    Ok(())
}

fn follow(traffic: Traffic, settings: EvaluationSettings) -> Result<Evaluation> {
    let watch = Arc::new(Watch::default());
    let stopper = Arc::clone(&watch);
    // If no handler can be set, Ctrl-C ends the program as usual, without a report.
    let _ = ctrlc::set_handler(move || stopper.stop());
    Ok(progress::follow(|| step(&watch), || Evaluation::run(traffic, settings, &watch))?)
}

fn step(watch: &Watch) -> ProgressStep {
    let (stage, done, all) = watch.now();
    ProgressStep { what: what(stage), done, all }
}

fn what(stage: Stage) -> &'static str {
    match stage {
        Stage::Planning => "comparisons planned",
        Stage::Measuring => "trials of all stations",
        Stage::Composing => "days composed",
    }
}

/// Every file is written under another name first, so that no file is ever incomplete.
fn write(evaluation: &Evaluation, folder: &Path) -> Result<()> {
    let files = evaluation.files().map_err(io::Error::other).while_writing("the plots")?;
    for file in files {
        let path = folder.join(&file.name);
        let unfinished = folder.join(format!(".{}.unfinished", file.name));
        fs::write(&unfinished, &file.bytes).while_writing(path.display())?;
        fs::rename(&unfinished, &path).while_writing(path.display())?;
    }
    Ok(())
}

/// The findings, then the rows at equal guarantee; all rows are in the files and in JSON.
fn describe(evaluation: &Evaluation, folder: Option<&Path>) -> String {
    format!(
        "{}\n\n{}{}{}{}\n{}\n",
        describe_traffic(evaluation),
        findings(evaluation),
        at_equal_guarantee(evaluation, Comparison::Choice),
        at_equal_guarantee(evaluation, Comparison::Trust),
        at_equal_guarantee(evaluation, Comparison::Release),
        where_all_rows_are(evaluation, folder),
    )
}

fn where_all_rows_are(evaluation: &Evaluation, folder: Option<&Path>) -> String {
    let all = grouped(evaluation.rows.len() as u64);
    match folder {
        Some(folder) => format!("report with all {all} rows: {}", folder.join("index.html").display()),
        None => format!("all {all} rows: --json, or --out DIR for the report with its figures"),
    }
}

fn describe_traffic(evaluation: &Evaluation) -> String {
    let Evaluation { traffic, settings, .. } = evaluation;
    format!(
        "{}: {} vehicles at {} stations, median {}; {} trials, seed {}",
        traffic.origin,
        grouped(traffic.total()),
        grouped(traffic.stations.len() as u64),
        traffic.median(),
        settings.trials,
        settings.seed
    )
}

fn findings(evaluation: &Evaluation) -> String {
    let sentence = |(index, finding): (usize, ReportFinding)| {
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
    let factors = extreme_factors(&evaluation.settings.factors);
    let Some(&least) = factors.first() else { return String::new() };
    let mut table = Table::new(&errors_header(evaluation.traffic.total(), &factors));
    for row in evaluation.of(comparison).filter(|row| row.factor == least) {
        table.row(errors_row(evaluation, row, &factors));
    }
    let (heading, _) = evaluation.heading(comparison);
    let yes = evaluation.traffic.median();
    format!("\n{heading}: error at stations with {yes} vehicles\n{}", table.render())
}

/// The smallest and the largest factor, or the only one.
fn extreme_factors(factors: &[u64]) -> Vec<u64> {
    let mut extremes: Vec<u64> = factors.iter().min().into_iter().chain(factors.iter().max()).copied().collect();
    extremes.dedup();
    extremes
}

fn errors_header(total: u64, factors: &[u64]) -> Vec<String> {
    let mut header = vec!["method".to_owned()];
    header.extend(factors.iter().map(|factor| format!("n = {}", grouped(total * factor))));
    header.extend(["ε linked", "honest"].map(str::to_owned));
    header
}

/// The errors of one method at each factor, its linked ε and who must be honest.
fn errors_row(evaluation: &Evaluation, row: &EvaluationRow, factors: &[u64]) -> Vec<String> {
    let mut cells = vec![row.label.clone()];
    cells.extend(factors.iter().map(|&factor| error_at(evaluation, row, factor)));
    cells.extend([readable_up(row.claims.linked()), row.honest.to_string()]);
    cells
}

/// The error of the same method at another factor.
fn error_at(evaluation: &Evaluation, row: &EvaluationRow, factor: u64) -> String {
    let mut rows = evaluation.of(row.comparison);
    let same = rows.find(|other| other.factor == factor && other.label == row.label);
    same.map(|row| error(evaluation, row)).unwrap_or_default()
}

fn error(evaluation: &Evaluation, row: &EvaluationRow) -> String {
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
