//! `uptack result` and `uptack verify`: the record of a release, fetched and recomputed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use uptack::card::{Card, CardQuestion, Check, NotChecked, Trust, Verdict};
use uptack::estimate::many::consistent_at_most;
use uptack::estimate::{Estimate, Estimator, Interval};
use uptack::privacy::WorkLimit;
use uptack::{Channel, display};
use uptack_dap::desk_client::DeskClient;
use uptack_dap::release::record::Record;
use uptack_dap::release::results::{Observed, shared_interval};
use uptack_dap::release::verification::{Document, Verifier};
use uptack_dap::signed::PublicKey;
use uptack_document::{Estimates, check_holds, interval_name, verification_json};

use super::super::estimate;
use super::{DeskArguments, block_on};
use crate::arguments::{IntervalArguments, count};
use crate::failure::{DO_NOT_RELY, Failure, Result, ResultExt};
use crate::input::{is_toml, parse_card, read_small_file};
use crate::layout::joined;
use crate::output::{Table, check_writable, grouped, print_result, readable, write_whole};
use crate::progress::watched_steps;

/// Get the result of a query, with its interval and what each claim rests on
///
/// The desk returns a record, and everything else is computed from it here: the card's name, signature and claims are
/// checked, and the estimate and its interval are computed from the sums. --out saves the record with its estimates, so
/// that anyone can recompute everything with `uptack verify`.
#[derive(Args)]
#[command(
    after_help = "Examples:
  uptack result QUERY --desk http://127.0.0.1:8080 --token desk/tokens/analyst \\
    --wait
  uptack result QUERY --desk http://127.0.0.1:8080 --token desk/tokens/analyst \\
    --confidence 99% --out record.json",
    mut_arg("confidence", |argument| argument.help(
        "The probability that the interval contains the truth; for a ballot, that all intervals do"
    ))
)]
pub(crate) struct ResultArguments {
    /// The query's name, as `uptack ask` printed it
    // A query's name may begin with a hyphen.
    #[arg(allow_hyphen_values = true)]
    query: String,
    #[command(flatten)]
    desk: DeskArguments,
    #[command(flatten)]
    intervals: IntervalArguments,
    /// Wait until the query is closed and collected
    #[arg(long)]
    wait: bool,
    /// Write the record with its estimates, for `uptack verify`
    #[arg(long)]
    out: Option<PathBuf>,
}

/// How long a waiting command pauses between two requests, unless the desk asks for a longer pause.
const LOOK: Duration = Duration::from_millis(500);
const LONGEST_LOOK: Duration = Duration::from_secs(60);
/// The place that errors name.
const PLACE: &str = "the desk's record";
/// There is no result yet.
const NOT_YET: u16 = 409;

pub(crate) fn run_result(arguments: &ResultArguments, json: bool) -> Result<()> {
    arguments.out.as_deref().map_or(Ok(()), check_record_path)?;
    let client = arguments.desk.client()?;
    let text = block_on(fetch(&client, &arguments.query, arguments.wait))?;
    let released = CheckedRecord::read(&text, &arguments.query)?;
    if let Some(path) = &arguments.out {
        released.write(path, arguments.intervals)?;
    }
    match released.card.asked() {
        CardQuestion::Person(_) | CardQuestion::Predicate(_) => arguments.single(json, &released),
        CardQuestion::Ballot(_) => arguments.ballot(json, &released),
    }
}

/// Refuses the extension of another format than the one that is written.
fn check_record_path(path: &Path) -> Result<()> {
    match path.extension() {
        Some(other) if !other.eq_ignore_ascii_case("json") => {
            let message = format!("{}: a record is written as .json, for `uptack verify`", path.display());
            Err(Failure::request(message)
                .with_hint("the estimates as CSV are on the query's page at the desk; --json prints them as JSON"))
        }
        _ => check_writable(path),
    }
}

/// Gets the record of a query; with `wait`, as soon as there is one.
pub(crate) async fn fetch(client: &DeskClient, query: &str, wait: bool) -> Result<String> {
    loop {
        match client.result(query).await {
            Err(error) if wait && (error.refused_with() == Some(NOT_YET) || error.is_unreachable()) => {
                tokio::time::sleep(error.retry_after().map_or(LOOK, |asked| asked.clamp(LOOK, LONGEST_LOOK))).await;
            }
            Err(error) if error.refused_with() == Some(NOT_YET) => {
                return Err(Failure::from(error).with_hint("--wait waits for it"));
            }
            outcome => return Ok(outcome?),
        }
    }
}

impl ResultArguments {
    fn single(&self, json: bool, released: &CheckedRecord) -> Result<()> {
        let solved = released.solve(self.intervals)?;
        let (mechanism, confidence) = (released.card.mechanism.to_string(), self.intervals.confidence);
        let document = serde_json::to_value(solved.document(mechanism.clone(), confidence)).expect("plain data");
        print_result(json, &released.with_record(document), || {
            released.describe(&estimate::describe(&mechanism, confidence, &solved))
        })
    }

    fn ballot(&self, json: bool, released: &CheckedRecord) -> Result<()> {
        let questions = released.questions(self.intervals)?;
        let level = self.intervals.confidence.level();
        let document = released.with_record(released.ballot_json(&questions, level));
        print_result(json, &document, || released.describe(&released.describe_ballot(&questions, level)))
    }
}

/// The desk's record, checked.
struct CheckedRecord {
    record: Record,
    card: Card,
    channel: Channel,
    trust: Vec<Trust>,
}

impl CheckedRecord {
    /// Checks the record of a query: its name, and the signature and claims of its card.
    fn read(text: &str, query: &str) -> Result<Self> {
        let (record, opened) = Record::read(text).at(PLACE)?;
        if record.query != query {
            return Err(Failure::environment("the desk returned the record of another query"));
        }
        let card = opened.card;
        card.verify(WorkLimit::default()).at("the desk's card")?;
        let (channel, trust) = (card.checked_channel()?, card.trust()?);
        Ok(Self { record, card, channel, trust })
    }

    /// Writes the record with its estimates.
    fn write(&self, path: &Path, intervals: IntervalArguments) -> Result<()> {
        let results = self.record.estimated(&self.channel, intervals.confidence, intervals.kind())?;
        let record = Record { results: Some(results), ..self.record.clone() };
        write_whole(path, format!("{}\n", serde_json::to_string(&record).expect("plain data")).as_bytes())
    }

    /// The estimate of a single question.
    fn solve(&self, intervals: IntervalArguments) -> Result<Estimates> {
        let Self { record, channel, .. } = self;
        match (record.tally(), record.sums()) {
            (Some(tally), None) => estimate::solve(channel, tally, intervals, PLACE),
            (None, Some(&[sum])) => estimate::solve_sum(channel, (record.reports, sum), intervals, PLACE),
            _ => Err(Failure::environment("the desk's record has neither a tally nor one sum")),
        }
    }

    /// The questions of a ballot; all intervals together hold the truth with the confidence asked for.
    fn questions(&self, intervals: IntervalArguments) -> Result<Vec<QuestionResult>> {
        let estimator = Estimator::new(&self.channel)?;
        let questions = self.record.observed(&estimator).at(PLACE)?;
        let (each, kind) = shared_interval(&questions, intervals.confidence, intervals.kind())?;
        let estimates: Vec<Estimate> =
            questions.iter().map(|question| estimator.estimate_observed(&question.observation)).collect();
        let consistent = self.consistent(&estimates)?;
        let results = questions.into_iter().zip(estimates).zip(consistent);
        let result = |((Observed { name, observation }, estimate), consistent)| QuestionResult {
            name: name.unwrap_or_default(),
            interval: estimator.interval(&observation, each, kind),
            estimate,
            consistent,
        };
        Ok(results.map(result).collect())
    }

    /// The estimates of a ballot, made to agree with how many questions an owner may answer with yes.
    fn consistent(&self, estimates: &[Estimate]) -> Result<Vec<f64>> {
        let most_yes = match self.card.asked() {
            CardQuestion::Ballot(ballot) => ballot.most_yes,
            CardQuestion::Person(_) | CardQuestion::Predicate(_) => 1,
        };
        let pairs: Vec<(f64, f64)> = estimates.iter().map(|one| (one.estimate, one.sd)).collect();
        Ok(consistent_at_most(&pairs, self.record.reports, most_yes)?)
    }

    fn ballot_json(&self, questions: &[QuestionResult], confidence: f64) -> Value {
        json!({
            "mechanism": self.card.mechanism,
            "owners": self.record.reports,
            "confidence": confidence,
            "estimates": questions.iter().map(QuestionResult::json).collect::<Vec<_>>(),
        })
    }

    fn describe_ballot(&self, questions: &[QuestionResult], confidence: f64) -> String {
        format!(
            "{} owners answered. With confidence {confidence} all intervals hold the truth at once.\n\n{}",
            grouped(self.record.reports),
            questions_table(questions).render(),
        )
    }

    /// The estimates under the question, and what each claim rests on.
    fn describe(&self, estimates: &str) -> String {
        let question = self.card.question.as_ref().map(|question| format!("{question}\n\n")).unwrap_or_default();
        let missed = self.card.contribution_words().map(|words| format!("Note: {words}.\n\n")).unwrap_or_default();
        format!("{question}{estimates}\n{missed}{}", trust_words(&self.trust))
    }

    fn with_record(&self, mut document: Value) -> Value {
        document["query"] = json!(self.record.query);
        document["reports"] = json!(self.record.reports);
        document["card"] = json!(self.card);
        document["trust"] = json!(self.trust);
        document
    }
}

/// One question of a ballot.
struct QuestionResult {
    name: String,
    estimate: Estimate,
    interval: Interval,
    /// The estimate made to agree with the others.
    consistent: f64,
}

impl QuestionResult {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "owners": self.estimate.owners,
            "estimate": self.estimate.estimate,
            "sd": self.estimate.sd,
            "interval": [self.interval.low, self.interval.high],
            "interval_kind": interval_name(self.interval.kind),
            "consistent": self.consistent,
        })
    }

    fn cells(&self) -> [String; 6] {
        let [low, high] = display::interval(self.interval.low, self.interval.high);
        let [estimate, sd, consistent] = [self.estimate.estimate, self.estimate.sd, self.consistent].map(readable);
        [self.name.clone(), estimate, sd, low, high, consistent]
    }
}

fn questions_table(questions: &[QuestionResult]) -> Table {
    Table::new(&["question", "estimate", "sd", "from", "to", "consistent"])
        .with_rows(questions.iter().map(QuestionResult::cells))
}

/// One line per claim: its ε, whom it trusts, and what else it rests on.
fn trust_words(trust: &[Trust]) -> String {
    trust.iter().map(|trust| format!("{}. {}\n", trust.claim_words(), trust.holds)).collect()
}

/// Recompute everything that a card or a release record states
///
/// Takes a query card (TOML or JSON), a signed card, or the record that `uptack result --out` wrote, and needs no desk
/// and no network. The query's name, the signature, the mechanism's integers, every claim, the predicted error, the
/// tallies and the estimates are recomputed. Numbers must agree to the last digit; a claim may be rounded up. Exits with
/// 1 and names what differs, if anything does.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack verify card.toml
  uptack verify record.json --json
  uptack verify record.json --desk-key ed25519:…

The sums themselves cannot be recomputed: only the desk saw them. SECURITY.md says who vouches for them.")]
pub(crate) struct VerifyArguments {
    /// The card or record
    file: PathBuf,
    /// The key that must have signed the card; by default the key that the card names, which proves less
    #[arg(long, value_name = "KEY")]
    desk_key: Option<PublicKey>,
    /// Accept claims that are sound but larger than necessary
    #[arg(long)]
    allow_wider: bool,
    /// How much work each claim may take, as a multiple of the default (a few seconds)
    #[arg(long, value_parser = count, default_value = "1")]
    work: u64,
}

/// Longer texts are cut off in the table, but not in JSON.
const LONGEST_SHOWN: usize = 100;

pub(crate) fn run_verify(arguments: &VerifyArguments, json: bool) -> Result<()> {
    let document = arguments.read()?;
    let checks = arguments.verify(&document).at(arguments.file.display())?;
    let holds = |check: &Check| check_holds(check, arguments.allow_wider);
    // If a check fails, it does not matter whom the claims rest on.
    let trust = if checks.iter().all(holds) { trust(&document) } else { Vec::new() };
    let not_checked = document.not_checked(arguments.desk_key.as_ref());
    let verification = verification_json(document.name(), &checks, &not_checked, &trust, arguments.allow_wider);
    print_result(json, &verification, || describe_checks(&document, &checks, &not_checked, &trust))?;
    conclude(&checks, holds)
}

impl VerifyArguments {
    fn read(&self) -> Result<Document> {
        let text = read_small_file(&self.file)?;
        if is_toml(&self.file) {
            return Ok(Document::Card(Box::new(parse_card(&self.file, &text)?)));
        }
        Document::from_json(&text)
            .at(self.file.display())
            .or_hint("give a query card (.toml or JSON), a signed card, or what `uptack result --out` wrote")
    }

    /// Checks everything and shows how much of the work allowed is done.
    fn verify(&self, document: &Document) -> Result<Vec<Check>> {
        let verifier = Verifier { desk_key: self.desk_key.as_ref(), limit: WorkLimit::default().times(self.work) };
        Ok(watched_steps(verifier.work(document), |progress| verifier.verify(document, progress))?)
    }
}

/// Whom the claims of the document's card rest on.
fn trust(document: &Document) -> Vec<Trust> {
    document.card().ok().and_then(|card| card.trust().ok()).unwrap_or_default()
}

fn conclude(checks: &[Check], holds: impl Fn(&Check) -> bool) -> Result<()> {
    let failed: Vec<&Check> = checks.iter().filter(|check| !holds(check)).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let names = joined(failed.iter().map(|check| shown(&check.what)), ", ");
    let message = format!("{} of {} checks fail: {names}", failed.len(), checks.len());
    Err(Failure::request(message).with_hint(advice(&failed)))
}

fn advice(failed: &[&Check]) -> &'static str {
    if failed.iter().all(|check| check.verdict == Verdict::Wider) {
        "these claims are sound but larger than computed here; --allow-wider accepts them"
    } else {
        DO_NOT_RELY
    }
}

fn describe_checks(document: &Document, checks: &[Check], not_checked: &[NotChecked], trust: &[Trust]) -> String {
    let table = Table::new(&[document.name(), "stated", "recomputed", ""]).with_rows(checks.iter().map(check_row));
    format!("{}\n{}{}", table.render(), not_checked_words(not_checked), trust_words(trust))
}

/// The fields that were not checked, by reason.
fn not_checked_words(not_checked: &[NotChecked]) -> String {
    let by_reason = not_checked.chunk_by(|one, other| one.why == other.why);
    let line = |same: &[NotChecked]| {
        let names = joined(same.iter().map(|field| &field.what), ", ");
        format!("Not checked: {names} ({}).\n", same[0].why)
    };
    let lines: String = by_reason.map(line).collect();
    if lines.is_empty() { lines } else { lines + "\n" }
}

fn check_row(check: &Check) -> [String; 4] {
    let stated = check.stated.as_deref().unwrap_or("-");
    [shown(&check.what), shown(stated), shown(&check.recomputed), word(check.verdict).to_owned()]
}

/// On one line, and without anything that a terminal would obey: the text is a stranger's.
fn shown(text: &str) -> String {
    let start: String = text.chars().take(LONGEST_SHOWN).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    start.chars().map(escaped).collect::<String>() + more
}

fn escaped(letter: char) -> String {
    if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Equal => "holds",
        Verdict::RoundedUp => "holds, rounded up",
        Verdict::Wider => "WIDER",
        Verdict::Wrong => "WRONG",
        Verdict::NotStated => "not stated",
    }
}
