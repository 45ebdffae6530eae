//! The command line of Uptack: stdout is data, stderr is talk.

mod arguments;
mod choices;
mod commands;
mod failure;
mod input;
mod layout;
mod output;
mod progress;
mod truths;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};

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
device, or names one of several options in the same way. The analyst sees only tallies, cancels the noise and estimates how many \
would say yes, or have each option, with an interval.

A MECHANISM is written name(key=value, …), or is the path of a file that holds one: JSON, or privacy algebra (.alg). Probabilities may be decimals \
(0.05), fractions (1/20) or percentages (5%).";

const AFTER_HELP: &str = "Mechanisms:
  randomized-response(t), or (epsilon=…)    sampling(sy, sn)
  noisy-sampling(sy, sn)                    deniable-sampling(sy, sn, p1, p2)
  tuned(sy1, sy2, p1, p2, sn, p3)           paired(b, sy, sn)
  cancelling(b1, b2, b3, s)                 blended(b1, b2, b3, f1, f2, ry, rn)
  normal-form(f, r)                         spread(pairs, f, r)
  custom(11=0.3:0.45, 12=0.4:0.1, …)        any channel, as its cells
  choice(k, f, r)                           one of k options
  contributions(counts, most, r)            up to most of many counts
Each of one answer, and both of options, may end in + laplace(scale).

Exit codes: 0 success, 1 invalid input or request, 2 failure of the program or its environment.";

fn main() -> ExitCode {
    let parsed = command_line().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match cli.command.run(cli.json) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// All commands. A negative number or span of time is a value like any other, so that its own option says what is wrong with it.
fn command_line() -> clap::Command {
    Cli::command().mut_subcommands(|command| {
        command.mut_args(|argument| {
            let takes_value = argument.get_action().takes_values() && !argument.is_allow_hyphen_values_set();
            match argument.get_id().as_str() {
                "closes" | "every" | "within" | "window" => argument.allow_hyphen_values(true),
                _ => argument.allow_negative_numbers(takes_value),
            }
        })
    })
}

/// Help and version are data; everything else is a fault of the request, which exits with 1.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // If the stream is closed, nobody wants the text.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    progress::say(&usage_words(&text));
    if let Some(hint) = choices_hint(error.kind(), &text) {
        progress::say(hint);
    }
    ExitCode::from(Failure::REQUEST)
}

/// What to do instead of giving people a choice among several values.
fn choices_hint(kind: ErrorKind, text: &str) -> Option<&'static str> {
    let is_choice = kind == ErrorKind::ArgumentConflict && text.contains("'--people'") && text.contains("--values");
    is_choice.then_some("hint: people answer yes or no: ask one question for each choice\n")
}

/// The parser's message in the form of all others: its tips become hints, and the pointer to `--help` is left out.
fn usage_words(text: &str) -> String {
    let kept = text.replace("\n\nFor more information, try '--help'.", "").replace("\n\n  tip: ", "\nhint: ");
    let hinted = kept.replace("\n  tip: ", "\nhint: ");
    // Nobody who mistyped an option wants to pass it as a value.
    let lines = hinted.split_inclusive('\n').filter(|line| !line.starts_with("hint: to pass '"));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;
    use clap::error::ContextKind;

    /// A value that an option takes, so that nothing but the combination of options can be wrong.
    fn sample(argument: &Arg) -> &'static str {
        if let Some(value) = argument.get_possible_values().first() {
            return Box::leak(value.get_name().to_owned().into_boxed_str());
        }
        match argument.get_id().as_str() {
            "desk" | "leader" | "helper" | "leader_url" | "helper_url" | "page" | "peer" => "http://127.0.0.1:1/",
            "allow_origin" => "http://127.0.0.1:1",
            "listen" | "leader_listen" | "helper_listen" | "operations" => "127.0.0.1:0",
            "separator" => ";",
            "noise" => "laplace(scale=1)",
            "at" => "08:00",
            "desk_key" => "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
            "confidence" | "delta" | "claimed_delta" | "honest" | "participation" => "0.5",
            "broken" => "reused-coin",
            _ => "1",
        }
    }

    /// The words on the command line for one argument.
    fn words(argument: &Arg) -> Vec<String> {
        let takes_value = argument.get_action().takes_values();
        let Some(long) = argument.get_long() else {
            let value = sample(argument).to_owned();
            return if argument.is_last_set() { vec!["--".to_owned(), value] } else { vec![value] };
        };
        match (takes_value, argument.is_require_equals_set()) {
            (false, _) | (_, true) => vec![format!("--{long}")],
            (true, false) => vec![format!("--{long}"), sample(argument).to_owned()],
        }
    }

    fn parsed(command: &str, arguments: &[&Arg]) -> Result<(), clap::Error> {
        // What follows `--` comes last.
        let (last, first): (Vec<_>, Vec<_>) = arguments.iter().partition(|argument| argument.is_last_set());
        let words = first.into_iter().chain(last).flat_map(words);
        let line = ["uptack".to_owned(), command.to_owned()].into_iter().chain(words);
        command_line().try_get_matches_from(line).map(drop)
    }

    /// The arguments among these that an error says are missing.
    fn missing<'a>(error: Option<clap::Error>, arguments: &[&'a Arg]) -> Vec<&'a Arg> {
        let Some(error) = error.filter(|error| error.kind() == ErrorKind::MissingRequiredArgument) else {
            return Vec::new();
        };
        let listed = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
        let is_listed = |argument: &&&Arg| match argument.get_long() {
            Some(long) => listed.split([' ', ',', '[']).any(|word| word == format!("--{long}")),
            None => listed.to_lowercase().contains(&format!("<{}>", argument.get_id().as_str())),
        };
        arguments.iter().filter(is_listed).copied().collect()
    }

    /// Complete uses of a command, as the arguments that they add to those that are always required.
    fn complete_uses(command: &str) -> &'static [&'static [&'static str]] {
        match command {
            "ask" => &[
                &["predicate", "closes"],
                &["people", "closes"],
                &["each", "values", "closes"],
                &["predicate", "every", "times"],
            ],
            "task" => &[&["leader", "helper", "window"], &["pair_secret"]],
            "audit" => &[&["mechanism"], &["command"]],
            _ => &[&[]],
        }
    }

    /// The parser forgets that an option requires another where the other one conflicts with what is given. So an option that
    /// requires another must not be accepted without it, whatever else is given.
    #[test]
    fn no_option_is_swallowed_because_of_another() {
        let all = command_line();
        let (mut requiring, mut swallowed) = (0, Vec::new());
        for command in all.get_subcommands() {
            let name = command.get_name();
            let arguments: Vec<&Arg> = command.get_arguments().collect();
            let required: Vec<&Arg> = arguments.iter().copied().filter(|argument| argument.is_required_set()).collect();
            let always = missing(parsed(name, &required).err(), &arguments);
            let id = |argument: &Arg| argument.get_id().to_string();
            let with = |more: &[&'_ Arg]| -> Vec<String> { more.iter().map(|argument| id(argument)).collect() };
            for option in &arguments {
                let lacking = missing(parsed(name, &[&required[..], &[option]].concat()).err(), &arguments);
                let needed: Vec<&Arg> = lacking.into_iter().filter(|one| !with(&always).contains(&id(one))).collect();
                requiring += usize::from(!needed.is_empty());
                for base in complete_uses(name).iter().filter(|_| !needed.is_empty()) {
                    for other in &arguments {
                        let mut given: Vec<&Arg> = Vec::new();
                        let of_base = arguments.iter().filter(|one| base.contains(&id(one).as_str()));
                        for one in required.iter().chain(of_base).chain([option, other]) {
                            if !with(&given).contains(&id(one)) {
                                given.push(one);
                            }
                        }
                        let has_all = needed.iter().all(|one| with(&given).contains(&id(one)));
                        if !has_all && parsed(name, &given).is_ok() {
                            swallowed.push(format!("{name}: {} in {:?}", id(option), with(&given)));
                        }
                    }
                }
            }
        }
        assert!(requiring > 15, "{requiring} options require another");
        assert!(swallowed.is_empty(), "{swallowed:#?}");
    }

    #[test]
    fn a_negative_number_is_a_value() {
        for line in [
            "uptack plan --yes 1 --epsilon -1",
            "uptack plan --yes 1 --error -0.5",
            "uptack privacy x --owners 100 --epsilon -1",
            "uptack plan --yes 1 --answer-epsilon -1",
        ] {
            assert!(command_line().try_get_matches_from(line.split(' ')).is_ok(), "{line}");
        }
    }
}
