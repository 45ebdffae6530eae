//! `uptack algebra`

use std::path::{Path, PathBuf};

use clap::Args;
use uptack::algebra::{Program, Solution, to_text};
use uptack_document::{AlgebraDocument, Crowd};

use super::channel;
use crate::arguments::count;
use crate::failure::Failure;
use crate::mechanism;
use crate::output::{Table, grouped, print, print_exact, print_json, readable};

/// Compile the paper's notation to a channel, and say how YES is solved for
#[derive(Args)]
#[command(after_help = "Examples:
  uptack algebra examples/plausible-deniability.alg
  uptack algebra examples/cancelling.alg --owners 50_000 --yes 500
  uptack algebra examples/first-attempt.alg --json
  uptack algebra 'randomized-response(t=0.999) + laplace(scale=1)' \\
    --owners 50_000 --yes 500
  uptack algebra 'blended(0.05,0.25,0.25,0.05,0.4,1e-4,1e-4)' --print \\
    > blended.alg")]
pub(crate) struct Arguments {
    /// A file in the notation of the privacy algebra; or a mechanism, which is then written in it
    file: PathBuf,
    /// Print the channel back as algebra, and nothing else
    #[arg(long, conflicts_with = "json")]
    print: bool,
    /// Give the standard deviation of the solution for this many owners
    #[arg(long, value_parser = count, requires = "yes")]
    owners: Option<u64>,
    /// How many of them hold yes
    #[arg(long, value_parser = count, requires = "owners")]
    yes: Option<u64>,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let program = read(&arguments.file)?;
    let mechanism = program.mechanism();
    let compiled = mechanism.channel();
    if arguments.print {
        return print_exact(&format!("# {mechanism}\n{}", to_text(&compiled)));
    }
    let solution = program.solve();
    let crowd = Crowd::of(solution.as_ref(), arguments.owners, arguments.yes)?;
    if json {
        return print_json(&AlgebraDocument::new(&program, &compiled, solution.as_ref(), crowd.as_ref()));
    }
    let (table, nesting) = (channel::describe(&compiled), describe_nesting(&program));
    let backwards = describe_solution(solution.as_ref(), crowd.as_ref());
    print(&format!("{mechanism}\n\n{table}{nesting}\n{backwards}"))
}

/// A file of algebra; a mechanism's text or JSON is written as algebra first.
fn read(argument: &Path) -> Result<Program, Failure> {
    let text = argument.to_string_lossy();
    let is_json = argument.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if is_json || (text.contains('(') && !argument.exists()) {
        return Ok(Program::of_channel(&mechanism::read(&text)?.channel)?);
    }
    mechanism::read_algebra(argument)
}

/// Which term the compiler takes to be part of which: the coupling that it read out of the text.
fn describe_nesting(program: &Program) -> String {
    let nested = program.nested();
    if nested.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = nested.iter().map(|(term, whole)| format!("{term} in {whole}")).collect();
    format!("Parts: {}.\n", parts.join(", "))
}

fn describe_solution(solution: Option<&Solution>, crowd: Option<&Crowd>) -> String {
    let Some(solution) = solution else {
        return "YES cannot be solved for: no tally depends on the truth.\n".to_owned();
    };
    let mut table = Table::default();
    let mut line = |left: &str, right: String| table.row([format!("  {left} = {right}")]);
    if solution.chain.len() > 1 {
        for step in &solution.chain {
            line(&step.combination, format!("{}{}", step.holds, entering(step.weight)));
        }
    }
    line(&solution.combination, solution.holds.clone());
    let (yes, no) = (short(solution.yes), short(solution.no));
    line(&solution.combination, signed(&[(&yes, " YES"), (&no, " NO")]));
    let value =
        if solution.bins.len() > 1 { format!("({})", solution.combination) } else { solution.combination.clone() };
    let base = match solution.no {
        0.0 => value,
        no if no > 0.0 => format!("({} - {} TOTAL)", solution.combination, short(no)),
        no => format!("({} + {} TOTAL)", solution.combination, short(-no)),
    };
    line("YES", format!("{base} / {}", short(solution.scale)));
    let remains = match solution.noise_from_no {
        true => "Noise from NO remains.",
        false if solution.variance_of_noise > 0.0 => {
            "No noise from NO remains: the aggregators' noise hides a lone yes-owner."
        }
        false => "No noise from NO remains, nor for anyone else who sees the tallies: a lone yes-owner shows.",
    };
    let (per_yes, per_no) = (short(solution.variance_per_yes), short(solution.variance_per_no));
    let noise = short(solution.variance_of_noise);
    let variance = signed(&[(&per_yes, " YES"), (&per_no, " NO"), (&noise, "")]);
    let crowd = crowd.map_or(String::new(), |crowd| {
        let (yes, owners) = (grouped(crowd.yes), grouped(crowd.owners));
        format!("Standard deviation {} for {yes} yes among {owners} owners.\n", readable(crowd.sd))
    });
    format!("Working backwards:\n{}\nVariance {variance}. {remains}\n{crowd}", table.render())
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

/// `0.4 YES + 0.1 NO`, without what is 0.
fn signed(parts: &[(&str, &str)]) -> String {
    let some = parts.iter().filter(|(number, _)| *number != "0");
    let text = some.map(|(number, unit)| format!("{number}{unit}")).collect::<Vec<_>>().join(" + ");
    if text.is_empty() { "0".to_owned() } else { text.replace("+ -", "- ") }
}

/// Six digits, and no zeros behind them.
fn short(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    if rounded != 0.0 && rounded.abs() < 1e-6 { format!("{rounded:e}") } else { rounded.to_string() }
}
