//! `uptack answer` and `uptack ledger`: one owner; and answering as any number of owners, which `uptack fleet` shares.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokio::time::Instant;
use uptack::Truth;
use uptack::card::Timestamp;
use uptack::display::{self, Rounding};
use uptack_dap::credential::OwnerSecret;
use uptack_dap::http_client;
use uptack_owner::attributes::{self, Attributes, Fleet, Named};
use uptack_owner::check::{Accepted, Asked, Checker};
use uptack_owner::client::{Client, Config, Outcome, Status};
use uptack_owner::fit;
use uptack_owner::ledger::{self, Entry, Ledger, Spent};
use uptack_owner::policy::Policy;
use uptack_owner::predicate::Predicate;
use uptack_server::base::logging;
use url::Url;

use super::block_on;
use crate::arguments::{address, seconds, separator_advice};
use crate::failure::{Failure, IoResultExt, Result, ResultExt};
use crate::input::{read_file, read_small_file};
use crate::layout::fitted_to_terminal;
use crate::output::{Table, print_result, readable_up};
use crate::progress::{ProgressLine, say};

/// Answer the open queries of a desk as one owner
///
/// Every card is verified here before any coin is flipped: its signature, each of its claims, and the policy's limits.
/// An owner who accepts sends exactly one report of a fixed size, whatever the truth is. Questions for people are asked
/// in the terminal, or answered by --truth.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack answer --desk http://127.0.0.1:8470/ --policy policy.toml \\
    --data ledger --attributes me.json
  uptack answer --desk https://desk.example/ --policy policy.toml \\
    --data ledger --attributes me.json --every 5m
  uptack answer --desk https://desk.example/ --policy policy.toml \\
    --data ledger --truth yes")]
pub(crate) struct AnswerArguments {
    #[command(flatten)]
    owner: OwnerArguments,
    /// The owner's attributes: a JSON object, read here and never sent; without it, only questions for people are answered
    #[arg(long)]
    attributes: Option<PathBuf>,
    /// The person's answer, if a card asks the person; other users of this machine may see it in the list of processes, but
    /// not if it is typed in the terminal
    #[arg(long, value_enum)]
    truth: Option<TruthArgument>,
    /// Answer only this query
    // A query's name may begin with a hyphen.
    #[arg(long, allow_hyphen_values = true)]
    query: Option<String>,
    /// A file with the owner's secret as `uptack enrol` writes it, if enrolment is required
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

pub(crate) fn run_answer(arguments: &AnswerArguments, json: bool) -> Result<()> {
    let attributes = arguments.attributes.as_deref().map(read_attributes).transpose()?;
    let secret = arguments.credential.as_deref().map(read_secret).transpose()?;
    let owners = [(SELF.to_owned(), attributes.unwrap_or_default())];
    let configure = |config| arguments.configure(config, secret);
    let ask = |questions: &[Arc<Accepted>]| answers(questions, arguments.truth);
    arguments.owner.answer(&owners, configure, ask, |outcomes, ledger| {
        print_result(json, &document(outcomes), || describe(outcomes))?;
        if arguments.attributes.is_some() {
            warn_of_misfits(&owners[0].1, outcomes, ledger)?;
        }
        arguments.check_named(outcomes)?;
        check_arrived(outcomes)
    })
}

/// Says to the owner, and to nobody else, where the attributes do not fit a question that was answered. The report was
/// sent all the same: whether it is sent must not depend on an attribute.
fn warn_of_misfits(known: &Attributes, outcomes: &[Outcome], ledger: &Ledger) -> Result<()> {
    for outcome in outcomes.iter().filter(|outcome| outcome.status == Status::Answered) {
        let Some(signed) = ledger.card(&outcome.query)? else { continue };
        let card = signed.open()?.card;
        let predicates = card.asked().predicates().into_iter().map(Predicate::parse).collect::<Result<Vec<_>, _>>()?;
        for misfit in fit::misfits(&predicates, &[known]) {
            let note = format!("warning: {}: {}; your truth counts as no\n", outcome.query, misfit.reason);
            say(&fitted_to_terminal(&note));
        }
    }
    Ok(())
}

impl AnswerArguments {
    /// Refuses the name of a query that the desk does not have open.
    fn check_named(&self, outcomes: &[Outcome]) -> Result<()> {
        match &self.query {
            Some(query) if outcomes.is_empty() => {
                Err(Failure::request(format!("the desk has no open query of the name {query}")))
            }
            _ => Ok(()),
        }
    }

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
    Err(Failure::environment(format!(
        "{lost} of the reports did not arrive; their cost still counts against the budget"
    )))
}

/// What the person answers to each question: by the option, which can mean only one question, or in the terminal.
fn answers(questions: &[Arc<Accepted>], truth: Option<TruthArgument>) -> uptack_owner::Result<Vec<Option<Truth>>> {
    match (truth, questions) {
        (Some(truth), [_]) => Ok(vec![Some(Truth::from_bool(truth == TruthArgument::Yes))]),
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

fn ask_in_terminal(question: &Accepted) -> uptack_owner::Result<Option<Truth>> {
    let Asked::Person(text) = &question.asked else { return Ok(None) };
    let claims = &question.opened.card.claims;
    say(&format!(
        "{}\nYour answer is protected with ε = {} if one aggregator is honest, and with ε = {} if nobody is.\n",
        without_controls(text),
        readable_up(claims.whole_one_aggregator()),
        readable_up(claims.whole_linked())
    ));
    let answer = read_answer().map_err(|error| uptack_owner::Error::Environment(format!("terminal: {error}")))?;
    Ok(answer.map(Truth::from_bool))
}

/// The text is a stranger's, and must not move the cursor.
fn without_controls(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Asks until there is a yes, a no or an empty line, which answers nothing.
fn read_answer() -> io::Result<Option<bool>> {
    loop {
        say("yes or no? (press Enter to skip) ");
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

/// The desk, the policy and the ledger of owners
#[derive(Args)]
pub(crate) struct OwnerArguments {
    /// The address of the desk
    #[arg(long, value_name = "URL", value_parser = address)]
    desk: Url,
    /// The owner's policy, as TOML
    #[arg(long)]
    policy: PathBuf,
    /// The folder of the ledger
    #[arg(long)]
    data: PathBuf,
    /// Send within this time after the fixed delay of a few seconds; by default at any moment while the query is open
    #[arg(long, value_parser = seconds)]
    within: Option<u64>,
    /// Keep asking the desk at this interval, until Ctrl-C
    #[arg(long, value_parser = seconds)]
    every: Option<u64>,
    /// An additional root certificate for TLS, as PEM
    #[arg(long)]
    root: Option<PathBuf>,
    /// Log to this file, or to stderr with --log alone
    // With a blank in place of the equals sign, the name of the next file would be taken.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    log: Option<Option<PathBuf>>,
    /// Log in more detail
    #[arg(long, requires = "log")]
    verbose: bool,
}

impl OwnerArguments {
    /// Nothing is logged by default: what became of each query is printed at the end.
    fn start_log(&self) -> Result<()> {
        if let Some(place) = &self.log {
            logging::init_text(self.verbose, place.as_deref().map(open_log).transpose()?);
        }
        Ok(())
    }

    /// Answers the open queries for all owners, again and again with `--every`.
    ///
    /// `ask` puts questions to people, and `conclude` receives the outcomes of each visit.
    pub(crate) fn answer(
        &self,
        owners: &[Named],
        adjust: impl FnOnce(Config) -> Config,
        ask: impl Fn(&[Arc<Accepted>]) -> uptack_owner::Result<Vec<Option<Truth>>>,
        conclude: impl Fn(&[Outcome], &Ledger) -> Result<()>,
    ) -> Result<()> {
        self.start_log()?;
        let client = self.client(adjust(self.config()))?;
        block_on(async {
            loop {
                let outcomes = client.visit_asking(owners, &ask, acknowledgements()).await?;
                // The next visit must not be later because of what is found about the attributes now.
                let visited = Instant::now();
                let concluded = conclude(&outcomes, client.ledger());
                let Some(pause) = self.every else { return concluded };
                // An owner who keeps asking may answer the next query.
                concluded.or_else(Failure::report_and_go_on)?;
                tokio::time::sleep_until(visited + Duration::from_secs(pause)).await;
            }
        })
    }

    fn config(&self) -> Config {
        let mut desk = self.desk.clone();
        http_client::make_base(&mut desk);
        Config { root: self.root.clone(), within: self.within, ..Config::new(desk) }
    }

    fn client(&self, config: Config) -> Result<Client> {
        let checker = Checker::new(Policy::read(&self.policy)?);
        Ok(Client::new(config, checker, Ledger::open(&self.data)?)?)
    }
}

fn open_log(path: &Path) -> Result<File> {
    File::options().create(true).append(true).open(path).while_writing(path.display())
}

/// Shows how many reports have been acknowledged, until it is dropped.
pub(crate) fn acknowledgements() -> impl Fn(usize, usize) {
    let line = RefCell::new(ProgressLine::new());
    move |sent, all| line.borrow_mut().show("reports acknowledged", sent as u64, all as u64)
}

/// Reads the owners of a fleet. It may be large, but is read whole, because every owner answers every query.
/// Says so if no column names the owners.
pub(crate) fn read_fleet(path: &Path, separator: Option<char>) -> Result<Fleet> {
    let text = read_file(path)?;
    let fleet = attributes::fleet_from_csv(&text, separator).at(path.display());
    let suspected = attributes::suspected_separator(&text).filter(|_| separator.is_none());
    let fleet = match suspected {
        Some(sign) => fleet.with_hint(&separator_advice(sign))?,
        None => fleet?,
    };
    if !fleet.is_named {
        say(&fitted_to_terminal(&unnamed_note(path, &fleet)));
    }
    Ok(fleet)
}

fn unnamed_note(path: &Path, fleet: &Fleet) -> String {
    let similar = fleet.columns().into_iter().find(|name| name.eq_ignore_ascii_case("owner"));
    let similar = similar.map(|name| format!(" (but `{name}`)")).unwrap_or_default();
    format!(
        "{}: no column is called `owner`{similar}, so the owners are named by their line: 1, 2, … below the header\n",
        path.display()
    )
}

/// Reads the attributes of one owner.
pub(crate) fn read_attributes(path: &Path) -> Result<Attributes> {
    Attributes::from_json(&read_small_file(path)?).at(path.display())
}

/// How a visit went: a failure if nobody answered although there was something to answer.
pub(crate) fn conclude(outcomes: &[Outcome]) -> Result<()> {
    let count = |status: Status| outcomes.iter().filter(|outcome| outcome.status == status).count();
    if outcomes.is_empty() || count(Status::Answered) + count(Status::Waiting) > 0 {
        return Ok(());
    }
    let failed = count(Status::Failed);
    if failed > 0 {
        return Err(Failure::environment(format!("no report arrived; {failed} were charged for and lost")));
    }
    let reason = outcomes.iter().find_map(|outcome| outcome.reason.as_deref()).unwrap_or("no reason given");
    Err(Failure::request(format!("nobody answered, and nothing was spent: {reason}")))
}

/// Show which queries an owner answered, and how much of the budget is spent
///
/// The ledger holds neither truths nor answers.
#[derive(Args)]
#[command(after_help = "Example:
  uptack ledger --data ledger")]
pub(crate) struct LedgerArguments {
    /// The folder of the ledger
    #[arg(long)]
    data: PathBuf,
    /// Only this owner of a fleet
    #[arg(long)]
    owner: Option<String>,
}

pub(crate) fn run_ledger(arguments: &LedgerArguments, json: bool) -> Result<()> {
    let ledger = open_ledger(&arguments.data)?;
    let (mut entries, mut spent) = (ledger.entries()?, ledger.spent()?);
    if let Some(owner) = &arguments.owner {
        if !entries.iter().any(|entry| entry.owner == *owner) {
            return Err(Failure::request(format!("--owner: the ledger has no entry of an owner `{owner}`")));
        }
        entries.retain(|entry| entry.owner == *owner);
        spent.retain(|spent| spent.owner == *owner);
    }
    print_result(json, &ledger_json(&entries, &spent), || describe_ledger(&entries, &spent))
}

/// Opens a ledger that exists.
fn open_ledger(folder: &Path) -> Result<Ledger> {
    if !folder.join(ledger::STATE_FILE).exists() {
        return Err(Failure::request(format!("{}: there is no ledger in this folder", folder.display()))
            .with_hint("`uptack answer --data` makes one"));
    }
    Ok(Ledger::open(folder)?)
}

fn ledger_json(entries: &[Entry], spent: &[Spent]) -> Value {
    json!({
        "entries": entries.iter().map(entry_json).collect::<Vec<_>>(),
        "budgets": spent.iter().map(spent_json).collect::<Vec<_>>(),
    })
}

fn moment(seconds: u64) -> String {
    Timestamp::from_seconds(seconds).map_or_else(|_| seconds.to_string(), |moment| moment.to_string())
}

fn entry_json(entry: &Entry) -> Value {
    json!({
        "owner": entry.owner,
        "query": entry.query,
        "charged": moment(entry.charged),
        "closes": moment(entry.closes),
        "state": entry.state.word(),
    })
}

fn spent_json(spent: &Spent) -> Value {
    json!({
        "owner": spent.owner,
        "view": spent.view,
        "signer": spent.signer,
        "epsilon": spent.epsilon,
        "delta": spent.delta,
        "spent": spent.fraction,
        "queries": spent.queries,
    })
}

fn describe_ledger(entries: &[Entry], spent: &[Spent]) -> String {
    let answered = Table::new(&["query", "owner", "charged", "state"]).with_rows(entries.iter().map(entry_row));
    let budgets = Table::new(&["budget", "owner", "ε", "δ", "spent", "queries"]).with_rows(spent.iter().map(spent_row));
    format!("{}\n{}", answered.render(), budgets.render())
}

fn entry_row(entry: &Entry) -> [String; 4] {
    [&entry.query, &entry.owner, &moment(entry.charged), entry.state.word()].map(str::to_owned)
}

fn spent_row(spent: &Spent) -> [String; 6] {
    let view = match &spent.signer {
        Some(signer) => format!("{} of {signer}", spent.view),
        None => spent.view.clone(),
    };
    [
        view,
        spent.owner.clone(),
        display::claim(spent.epsilon),
        display::claim(spent.delta),
        display::percent(spent.fraction, 1, Rounding::Up),
        spent.queries.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(statuses: &[Status]) -> Vec<Outcome> {
        let outcome = |status: &Status| Outcome {
            owner: String::new(),
            query: String::new(),
            status: *status,
            reason: Some("because".to_owned()),
        };
        statuses.iter().map(outcome).collect()
    }

    #[test]
    fn a_visit_without_any_answer_is_a_failure() {
        use Status::{Answered, Failed, Refused};
        for fine in [&[][..], &[Answered], &[Answered, Failed, Refused]] {
            assert!(conclude(&outcomes(fine)).is_ok());
        }
        assert!(format!("{:?}", conclude(&outcomes(&[Failed, Refused])).unwrap_err()).contains("code: 2"));
        let refused = format!("{:?}", conclude(&outcomes(&[Refused, Refused])).unwrap_err());
        assert!(refused.contains("code: 1") && refused.contains("because"), "{refused}");
    }
}
