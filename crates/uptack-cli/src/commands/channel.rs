//! `uptack channel` and `uptack algebra`: a mechanism as its cells, and the notation that compiles to them.

use std::path::{Path, PathBuf};

use clap::Args;
use uptack::algebra::{Program, Solution, Step, to_text};
use uptack::privacy::lone_owners;
use uptack::{Cell, Channel, answer_name};
use uptack_document::{AlgebraDocument, ChannelDocument, PredictedSd};

use super::contributions;
use crate::arguments::count;
use crate::failure::Result;
use crate::input::{Loaded, LoadedMechanism, has_extension, read_algebra, read_any_mechanism, read_mechanism};
use crate::layout::joined;
use crate::output::{Table, grouped, print_exact, print_result, readable};
use crate::progress::say;

/// Show a mechanism's cells, with their exact probabilities for yes and for no, or the law of its options
#[derive(Args)]
#[command(after_help = "Examples:
  uptack channel 'randomized-response(t=0.8)'
  uptack channel 'blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=1e-4,rn=1e-4)'
  uptack channel 'custom(1=2/3:1/3, 0=1/3:2/3)' --json > channel.json
  uptack channel 'randomized-response(t=0.999) + laplace(scale=1)'
  uptack channel 'choice(k=4,r=0.001) + laplace(scale=2)'
  uptack channel 'contributions(counts=288,most=2,r=1e-5) + laplace(scale=4)'
  uptack channel channel.json
  uptack channel examples/cancelling.alg")]
pub(crate) struct ChannelArguments {
    /// name(key=value, …), an `.alg` file, or a file that `uptack channel --json` wrote
    mechanism: String,
}

pub(crate) fn run_channel(arguments: &ChannelArguments, json: bool) -> Result<()> {
    let LoadedMechanism { mechanism, channel, .. } = match read_any_mechanism(&arguments.mechanism)? {
        Loaded::YesNo(named) => *named,
        Loaded::Contributions(named) => return contributions::run_channel(&named, json),
    };
    let document = ChannelDocument::new(mechanism.to_string(), &channel);
    print_result(json, &document, || format!("{mechanism}\n\n{}", describe_channel(&channel)))
}

/// The table of cells, and a sentence about what is published.
pub(super) fn describe_channel(channel: &Channel) -> String {
    format!("{}\n{}\n", cells_table(channel).render(), published(channel))
}

fn cells_table(channel: &Channel) -> Table {
    let letters: String = (0..channel.answers().len()).map(answer_name).collect();
    Table::new(&[letters.as_str(), "yes", "no", "ratio"]).with_rows(channel.cells().iter().map(cell_row))
}

fn cell_row(cell: &Cell) -> [String; 4] {
    let (yes, no) = (cell.yes().to_f64(), cell.no().to_f64());
    [cell.name(), readable(yes), readable(no), ratio(yes, no)]
}

fn ratio(yes: f64, no: f64) -> String {
    match (yes > 0.0, no > 0.0) {
        (false, false) => "never".to_owned(),
        (true, false) => "yes only".to_owned(),
        (false, true) => "no only".to_owned(),
        (true, true) => readable(yes / no),
    }
}

fn published(channel: &Channel) -> String {
    match channel.noise() {
        Some(noise) => format!(
            "One answer per owner. The published count is the number of answers that are 1, plus {noise} from each of the two aggregators."
        ),
        None => published_tallies(channel),
    }
}

fn published_tallies(channel: &Channel) -> String {
    let answers = channel.answers().len();
    let plural = if answers == 1 { "answer" } else { "answers" };
    let seen = if channel.determined() {
        "determine the count of every cell"
    } else {
        "do not determine the count of every cell"
    };
    format!("{answers} {plural} per owner, drawn with one coin; the tallies {seen}.")
}

/// Compile the paper's notation to a channel, and show how YES is solved for
#[derive(Args)]
#[command(after_help = "Examples:
  uptack algebra examples/plausible-deniability.alg
  uptack algebra examples/cancelling.alg --owners 50_000 --yes 500
  uptack algebra examples/first-attempt.alg --json
  uptack algebra 'randomized-response(t=0.999) + laplace(scale=1)' \\
    --owners 50_000 --yes 500
  uptack algebra 'blended(0.05,0.25,0.25,0.05,0.4,1e-4,1e-4)' --print \\
    > blended.alg")]
pub(crate) struct AlgebraArguments {
    /// A file in the notation of the privacy algebra, or a mechanism, which is translated into it
    file: PathBuf,
    /// Print the channel back as algebra, and nothing else
    #[arg(long, conflicts_with_all = ["json", "owners", "yes"])]
    print: bool,
    /// Show the standard deviation of the solution for this many owners
    #[arg(long, value_parser = count, requires = "yes")]
    owners: Option<u64>,
    /// How many of them would say yes
    #[arg(long, value_parser = count, requires = "owners")]
    yes: Option<u64>,
}

pub(crate) fn run_algebra(arguments: &AlgebraArguments, json: bool) -> Result<()> {
    let program = read_program(&arguments.file)?;
    let channel = program.mechanism().channel();
    warn_of_lone_owners(&channel);
    if arguments.print {
        return print_exact(&format!("# {}\n{}", program.mechanism(), to_text(&channel)));
    }
    let solution = program.solve();
    let crowd = PredictedSd::of(solution.as_ref(), arguments.owners, arguments.yes)?;
    let document = AlgebraDocument::new(&program, &channel, solution.as_ref(), crowd.as_ref());
    print_result(json, &document, || describe_algebra(&program, &channel, solution.as_ref(), crowd.as_ref()))
}

/// Read literally, some of the paper's mechanisms compile although they protect nobody who stands alone.
fn warn_of_lone_owners(channel: &Channel) {
    for shown in lone_owners(channel) {
        say(&format!("warning: {shown}\nhint: let a small share of the others write it, too\n"));
    }
}

fn describe_algebra(
    program: &Program,
    channel: &Channel,
    solution: Option<&Solution>,
    crowd: Option<&PredictedSd>,
) -> String {
    format!(
        "{}\n\n{}{}\n{}",
        program.mechanism(),
        describe_channel(channel),
        describe_nesting(program),
        describe_solution(solution, crowd),
    )
}

/// A file of algebra; a mechanism's text or JSON is written as algebra first.
fn read_program(argument: &Path) -> Result<Program> {
    let text = argument.to_string_lossy();
    if has_extension(argument, "json") || (text.contains('(') && !argument.exists()) {
        return Ok(Program::of_channel(&read_mechanism(&text)?.channel)?);
    }
    read_algebra(argument)
}

/// Which terms the compiler takes as parts of others: the coupling that it found in the text.
fn describe_nesting(program: &Program) -> String {
    let parts = joined(program.nested().iter().map(|(term, whole)| format!("{term} in {whole}")), ", ");
    if parts.is_empty() { parts } else { format!("Parts: {parts}.\n") }
}

fn describe_solution(solution: Option<&Solution>, crowd: Option<&PredictedSd>) -> String {
    let Some(solution) = solution else {
        return "YES cannot be solved for: no tally depends on the truth.\n".to_owned();
    };
    format!(
        "Working backwards:\n{}\nVariance {}. {}\n{}",
        equations(solution).render(),
        variance(solution),
        remaining_noise(solution),
        crowd.map(describe_crowd).unwrap_or_default(),
    )
}

/// The steps of the chain, if there are several, and the equations that they lead to.
fn equations(solution: &Solution) -> Table {
    let Solution { combination, holds, yes, no, scale, .. } = solution;
    let mut lines = Vec::new();
    if solution.chain.len() > 1 {
        lines.extend(solution.chain.iter().map(chain_step));
    }
    lines.push(format!("  {combination} = {holds}"));
    lines.push(format!("  {combination} = {}", signed(&[(*yes, " YES"), (*no, " NO")])));
    lines.push(format!("  YES = {} / {}", numerator(solution), short(*scale)));
    Table::default().with_rows(lines.into_iter().map(|line| [line]))
}

fn chain_step(step: &Step) -> String {
    format!("  {} = {}{}", step.combination, step.holds, entering(step.weight))
}

/// The numerator of the solution: the combination minus the contribution of NO.
fn numerator(solution: &Solution) -> String {
    let combination = &solution.combination;
    match solution.no {
        0.0 if solution.bins.len() > 1 => format!("({combination})"),
        0.0 => combination.clone(),
        no if no > 0.0 => format!("({combination} - {} TOTAL)", short(no)),
        no => format!("({combination} + {} TOTAL)", short(-no)),
    }
}

fn variance(solution: &Solution) -> String {
    signed(&[(solution.variance_per_yes, " YES"), (solution.variance_per_no, " NO"), (solution.variance_of_noise, "")])
}

fn remaining_noise(solution: &Solution) -> &'static str {
    if solution.noise_from_no {
        "Noise from NO remains."
    } else if solution.variance_of_noise > 0.0 {
        "No noise from NO remains: the aggregators' noise hides a lone yes-owner."
    } else {
        "No noise from NO remains, not even for others who see the tallies: a lone yes-owner is visible."
    }
}

fn describe_crowd(crowd: &PredictedSd) -> String {
    let (yes, owners) = (grouped(crowd.yes), grouped(crowd.owners));
    format!("Standard deviation {} for {yes} yes among {owners} owners.\n", readable(crowd.sd))
}

/// How a step of the chain enters the solution.
fn entering(weight: i64) -> String {
    match weight {
        1 => "  (add)".to_owned(),
        -1 => "  (subtract)".to_owned(),
        times if times < 0 => format!("  (subtract {} times)", times.unsigned_abs()),
        times => format!("  (add {times} times)"),
    }
}

/// `0.4 YES + 0.1 NO`, without the terms that are 0.
fn signed(terms: &[(f64, &str)]) -> String {
    let terms = terms.iter().map(|&(number, unit)| (short(number), unit)).filter(|(number, _)| number != "0");
    let text = joined(terms.map(|(number, unit)| number + unit), " + ");
    if text.is_empty() { "0".to_owned() } else { text.replace("+ -", "- ") }
}

/// Six significant digits, without trailing zeros.
fn short(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    if rounded != 0.0 && rounded.abs() < 1e-6 { format!("{rounded:e}") } else { rounded.to_string() }
}
