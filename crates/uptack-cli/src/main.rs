//! The command line of Uptack: stdout is data, stderr is talk.

mod arguments;
mod commands;
mod failure;
mod input;
mod layout;
mod output;
mod progress;
mod truths;

use std::process::ExitCode;

use clap::Parser;

use commands::Command;
use failure::Failure;

#[derive(Parser)]
#[command(name = "uptack", version, about = ABOUT, long_about = LONG_ABOUT, arg_required_else_help = true, after_help = AFTER_HELP)]
struct Cli {
    /// Print one JSON document instead of a table
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

const ABOUT: &str = "Counts a crowd without learning anyone's answer";

const LONG_ABOUT: &str = "Counts a crowd without learning anyone's answer.

Each owner answers a yes/no question with Yes, No or ⊥ (not participating), chosen by random coin flips on the owner's \
device. The analyst sees only tallies, cancels the noise and estimates how many would say yes, with an interval.

A MECHANISM is written name(key=value, …), or is the path of a file that holds one: JSON, or privacy algebra (.alg). Probabilities may be decimals \
(0.05), fractions (1/20) or percentages (5%).";

const AFTER_HELP: &str = "Mechanisms:
  randomized-response(t)                    sampling(sy, sn)
  noisy-sampling(sy, sn)                    deniable-sampling(sy, sn, p1, p2)
  tuned(sy1, sy2, p1, p2, sn, p3)           paired(b, sy, sn)
  cancelling(b1, b2, b3, s)                 blended(b1, b2, b3, f1, f2, ry, rn)
  normal-form(f, r)                         spread(pairs, f, r)
  custom(11=0.3:0.45, 12=0.4:0.1, …)        any channel, as its cells

Exit codes: 0 success, 1 invalid input or request, 2 failure of the program or its environment.";

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match cli.command.run(cli.json) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Help and version are data; everything else is a fault of the request, which exits with 1.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // If the stream is closed, nobody wants the text.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    progress::say(&usage_words(&error.render().to_string()));
    ExitCode::from(Failure::REQUEST)
}

/// The parser's message in the form of all others: its tips become hints, and the pointer to `--help` is left out.
fn usage_words(text: &str) -> String {
    let kept = text.replace("\n\nFor more information, try '--help'.", "").replace("\n\n  tip: ", "\nhint: ");
    kept.replace("\n  tip: ", "\nhint: ")
}
