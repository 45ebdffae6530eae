//! `uptack answer`

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use uptack_dap::credential::OwnerSecret;
use uptack_owner::check::{Accepted, Asked};
use uptack_owner::client::{Config, Outcome, Status};

use crate::failure::{Failure, Result, ResultExt};
use crate::input::read_small_file;
use crate::output::{Table, print_result, readable_up};
use crate::owner::{OwnerArguments, read_attributes};
use crate::progress::say;

/// Answer the open queries of a desk as one owner
///
/// Every card is verified here before a coin is tossed: its signature, each of its claims, and the policy's limits.
/// Whoever accepts sends exactly one report of a fixed size, whatever the truth. Questions for people are asked in the
/// terminal, or answered by --truth.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack answer --desk http://127.0.0.1:8470/ --policy policy.toml \\
    --data ledger --attributes me.json
  uptack answer --desk https://desk.example/ --policy policy.toml \\
    --data ledger --attributes me.json --every 5m
  uptack answer --desk https://desk.example/ --policy policy.toml \\
    --data ledger --truth yes")]
pub(crate) struct Arguments {
    #[command(flatten)]
    owner: OwnerArguments,
    /// What the owner knows of itself: a JSON object, read here and sent nowhere; without it only questions for people are
    /// answered
    #[arg(long)]
    attributes: Option<PathBuf>,
    /// What the person answers, where a card asks the person; others on this machine may see it among the running programs,
    /// and in the terminal they do not
    #[arg(long, value_enum)]
    truth: Option<TruthArgument>,
    /// Answer this query alone
    // A query's name may begin with a hyphen.
    #[arg(long, allow_hyphen_values = true)]
    query: Option<String>,
    /// A file with the owner's secret as `uptack enrol` writes it, where enrolment is required
    #[arg(long)]
    credential: Option<PathBuf>,
}

/// What a person answers
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TruthArgument {
    /// Yes
    Yes,
    /// No
    No,
}

/// The name of the one owner in its own ledger.
const SELF: &str = "self";

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    let attributes = arguments.attributes.as_deref().map(read_attributes).transpose()?;
    let secret = arguments.credential.as_deref().map(read_secret).transpose()?;
    let owners = [(SELF.to_owned(), attributes.unwrap_or_default())];
    let configure = |config| arguments.configure(config, secret);
    let ask = |questions: &[Arc<Accepted>]| answers(questions, arguments.truth);
    arguments.owner.answer(&owners, configure, ask, |outcomes| {
        print_result(json, &document(outcomes), || describe(outcomes))?;
        check_arrived(outcomes)
    })
}

impl Arguments {
    fn configure(&self, config: Config, secret: Option<OwnerSecret>) -> Config {
        Config {
            credentials: secret.map(|secret| (SELF.to_owned(), secret)).into_iter().collect(),
            query: self.query.clone(),
            people_only: self.attributes.is_none(),
            ..config
        }
    }
}

fn read_secret(path: &Path) -> Result<OwnerSecret> {
    read_small_file(path)?.trim().parse().at(path.display())
}

/// An owner that refuses does as it is told; a report that is lost is a failure.
fn check_arrived(outcomes: &[Outcome]) -> Result<()> {
    let lost = outcomes.iter().filter(|outcome| outcome.status == Status::Failed).count();
    if lost == 0 {
        return Ok(());
    }
    Err(Failure::environment(format!("{lost} of the reports did not arrive; what they cost stays spent")))
}

/// What the person answers to each question: by the option, which can mean only one question, or in the terminal.
fn answers(questions: &[Arc<Accepted>], truth: Option<TruthArgument>) -> uptack_owner::Result<Vec<Option<bool>>> {
    match (truth, questions) {
        (Some(truth), [_]) => Ok(vec![Some(truth == TruthArgument::Yes)]),
        (Some(_), _) => Err(ambiguous(questions.len())),
        (None, _) if !io::stdin().is_terminal() => Ok(vec![None; questions.len()]),
        (None, _) => questions.iter().map(|question| ask_in_terminal(question)).collect(),
    }
}

fn ambiguous(questions: usize) -> uptack_owner::Error {
    uptack_owner::Error::Input(format!(
        "{questions} open queries ask the person, and --truth answers one; name it with --query"
    ))
}

fn ask_in_terminal(question: &Accepted) -> uptack_owner::Result<Option<bool>> {
    let Asked::Person(text) = &question.asked else { return Ok(None) };
    let claims = &question.opened.card.claims;
    say(&format!(
        "{}\nWhat you answer is hidden with ε = {} if one aggregator is honest, and {} if nobody is.\n",
        without_controls(text),
        readable_up(claims.whole_one_aggregator()),
        readable_up(claims.whole_linked())
    ));
    read_answer().map_err(|error| uptack_owner::Error::Environment(format!("terminal: {error}")))
}

/// The text is a stranger's, and must not move the cursor.
fn without_controls(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Asks until there is a yes, a no or an empty line, which answers nothing.
fn read_answer() -> io::Result<Option<bool>> {
    loop {
        say("yes or no? (an empty line answers nothing) ");
        let mut line = String::new();
        io::stdin().read_line(&mut line)?;
        match line.trim().to_lowercase().as_str() {
            "yes" | "y" => return Ok(Some(true)),
            "no" | "n" => return Ok(Some(false)),
            "" => return Ok(None),
            _ => {}
        }
    }
}

fn document(outcomes: &[Outcome]) -> Value {
    let entry =
        |outcome: &Outcome| json!({"query": outcome.query, "status": outcome.status.word(), "reason": outcome.reason});
    outcomes.iter().map(entry).collect()
}

fn describe(outcomes: &[Outcome]) -> String {
    if outcomes.is_empty() {
        return "The desk has no open query.\n".to_owned();
    }
    Table::new(&["query", "status", "reason"]).with_rows(outcomes.iter().map(outcome_row)).render()
}

fn outcome_row(outcome: &Outcome) -> [String; 3] {
    [outcome.query.clone(), outcome.status.word().to_owned(), outcome.reason.clone().unwrap_or_default()]
}
