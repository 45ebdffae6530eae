//! `uptack answer`

use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use uptack_dap::credential::OwnerSecret;
use uptack_owner::attributes::Attributes;
use uptack_owner::check::{Accepted, Asked};
use uptack_owner::client::{Config, Outcome, Status};

use crate::failure::Failure;
use crate::output::{Table, print, print_json, read_small_file, readable_up};
use crate::owner::OwnerArguments;
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

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let attributes = match &arguments.attributes {
        Some(path) => {
            Attributes::from_json(&read_small_file(path)?).map_err(|error| Failure::from(error).at(path.display()))?
        }
        None => Attributes::default(),
    };
    let mut credentials = HashMap::new();
    if let Some(path) = &arguments.credential {
        let text = read_small_file(path)?;
        let secret = text.trim().parse::<OwnerSecret>().map_err(|error| Failure::from(error).at(path.display()))?;
        credentials.insert(SELF.to_owned(), secret);
    }
    let owners = [(SELF.to_owned(), attributes)];
    let config = |config: Config| Config {
        credentials: credentials.clone(),
        query: arguments.query.clone(),
        people_only: arguments.attributes.is_none(),
        ..config
    };
    let ask = |questions: &[Arc<Accepted>]| answers(questions, arguments.truth);
    arguments.owner.answer(&owners, config, ask, |outcomes| {
        if json {
            print_json(&outcomes.iter().map(outcome_json).collect::<Vec<_>>())?;
        } else {
            print(&describe(outcomes))?;
        }
        // An owner that refuses does as it is told; that a report is lost is a failure.
        let lost = outcomes.iter().filter(|outcome| outcome.status == Status::Failed).count();
        if lost == 0 {
            return Ok(());
        }
        Err(Failure::environment(format!("{lost} of the reports did not arrive; what they cost stays spent")))
    })
}

/// What the person answers to each question: by the option, which can mean one question only, or in the terminal.
fn answers(questions: &[Arc<Accepted>], truth: Option<TruthArgument>) -> uptack_owner::Result<Vec<Option<bool>>> {
    match (truth, questions) {
        (Some(truth), [_]) => Ok(vec![Some(truth == TruthArgument::Yes)]),
        (Some(_), _) => Err(uptack_owner::Error::Input(format!(
            "{} open queries ask the person, and --truth answers one; name it with --query",
            questions.len()
        ))),
        (None, _) if !std::io::stdin().is_terminal() => Ok(vec![None; questions.len()]),
        (None, _) => questions.iter().map(|question| ask_in_terminal(question)).collect(),
    }
}

/// Asks until there is an answer; an empty line is none.
fn ask_in_terminal(question: &Accepted) -> uptack_owner::Result<Option<bool>> {
    let Asked::Person(text) = &question.asked else { return Ok(None) };
    let failed = |error: std::io::Error| uptack_owner::Error::Environment(format!("terminal: {error}"));
    let claims = &question.opened.card.claims;
    // The text is a stranger's, and must not move the cursor.
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    say(&format!(
        "{text}\nWhat you answer is hidden with ε = {} if one aggregator is honest, and {} if nobody is.\n",
        readable_up(claims.whole_one_aggregator()),
        readable_up(claims.whole_linked())
    ));
    loop {
        say("yes or no? (an empty line answers nothing) ");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(failed)?;
        match line.trim().to_lowercase().as_str() {
            "yes" | "y" => return Ok(Some(true)),
            "no" | "n" => return Ok(Some(false)),
            "" => return Ok(None),
            _ => {}
        }
    }
}

fn outcome_json(outcome: &Outcome) -> Value {
    json!({"query": outcome.query, "status": outcome.status.word(), "reason": outcome.reason})
}

fn describe(outcomes: &[Outcome]) -> String {
    if outcomes.is_empty() {
        return "The desk has no open query.\n".to_owned();
    }
    let mut table = Table::new(&["query", "status", "reason"]);
    for outcome in outcomes {
        let reason = outcome.reason.clone().unwrap_or_default();
        table.row([outcome.query.clone(), outcome.status.word().to_owned(), reason]);
    }
    table.render()
}
