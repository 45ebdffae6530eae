//! `uptack result`

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use uptack::card::{Card, Trust};
use uptack::estimate::{Estimate, Estimator, Interval};
use uptack::privacy::WorkLimit;
use uptack::{Channel, display};
use uptack_dap::desk_client::Client;
use uptack_dap::release::record::Record;
use uptack_dap::release::results::{Observed, shared_confidence};
use uptack_document::{Solved, interval_name};

use super::estimate;
use crate::arguments::IntervalArguments;
use crate::desk::DeskArguments;
use crate::failure::{Failure, Result, ResultExt};
use crate::output::{Table, check_writable, grouped, print_result, readable, readable_up, write_whole};
use crate::runtime::block_on;

/// Get the result of a query, with its interval and what each claim rests on
///
/// The desk gives a record, and everything else is computed from it here: the card's name, signature and claims are
/// checked, the estimate and its interval are made from the sums. --out keeps the record together with them, so that
/// anyone can compute all of it again with `uptack verify`.
#[derive(Args)]
#[command(
    after_help = "Examples:
  uptack result QUERY --desk http://127.0.0.1:8080 --token desk/tokens/analyst \\
    --wait
  uptack result QUERY --desk http://127.0.0.1:8080 --token desk/tokens/analyst \\
    --confidence 99% --out record.json",
    mut_arg("confidence", |argument| argument.help(
        "With which probability the interval holds the truth; of a ballot, all intervals together"
    ))
)]
pub(crate) struct Arguments {
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
/// What errors name as the place of a fault.
const PLACE: &str = "the desk's record";
/// There is no result yet.
const NOT_YET: u16 = 409;

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    arguments.out.as_deref().map_or(Ok(()), check_writable)?;
    let client = arguments.desk.client()?;
    let text = block_on(fetch(&client, &arguments.query, arguments.wait))?;
    let released = Released::read(&text, &arguments.query)?;
    if let Some(path) = &arguments.out {
        released.write(path, arguments.intervals)?;
    }
    match &released.card.ballot {
        None => arguments.single(json, &released),
        Some(_) => arguments.ballot(json, &released),
    }
}

/// Gets the record of a query; with `wait`, as soon as there is one.
pub(super) async fn fetch(client: &Client, query: &str, wait: bool) -> Result<String> {
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

impl Arguments {
    fn single(&self, json: bool, released: &Released) -> Result<()> {
        let solved = released.solve(self.intervals)?;
        let (mechanism, confidence) = (released.card.mechanism.to_string(), self.intervals.confidence);
        let document = serde_json::to_value(solved.document(mechanism.clone(), confidence)).expect("plain data");
        print_result(json, &released.with_record(document), || {
            released.describe(&estimate::describe(&mechanism, confidence, &solved))
        })
    }

    fn ballot(&self, json: bool, released: &Released) -> Result<()> {
        let questions = released.questions(self.intervals)?;
        let level = self.intervals.confidence.level();
        let document = released.with_record(released.ballot_json(&questions, level));
        print_result(json, &document, || released.describe(&released.describe_ballot(&questions, level)))
    }
}

/// What the desk gave, checked.
struct Released {
    record: Record,
    card: Card,
    channel: Channel,
    trust: Vec<Trust>,
}

impl Released {
    /// Checks the record of a query: its name, and the signature and claims of its card.
    fn read(text: &str, query: &str) -> Result<Self> {
        let (record, opened) = Record::read(text).at(PLACE)?;
        if record.query != query {
            return Err(Failure::environment("the desk answers with the record of another query"));
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
    fn solve(&self, intervals: IntervalArguments) -> Result<Solved> {
        let Self { record, channel, .. } = self;
        match (&record.tally, record.sums.as_deref()) {
            (Some(tally), None) => estimate::solve(channel, tally, intervals, PLACE),
            (None, Some(&[sum])) => estimate::solve_sum(channel, (record.reports, sum), intervals, PLACE),
            _ => Err(Failure::environment("the desk's record has neither a tally nor one sum")),
        }
    }

    /// The questions of a ballot; all intervals together hold the truth with the confidence asked for.
    fn questions(&self, intervals: IntervalArguments) -> Result<Vec<QuestionResult>> {
        let estimator = Estimator::new(&self.channel)?;
        let questions = self.record.observed(&estimator).at(PLACE)?;
        let each = shared_confidence(&questions, intervals.confidence)?;
        let result = |Observed { name, observation }: Observed| QuestionResult {
            name: name.unwrap_or_default(),
            estimate: estimator.estimate_observed(&observation),
            interval: estimator.interval(&observation, each, intervals.kind()),
        };
        Ok(questions.into_iter().map(result).collect())
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
        format!("{question}{estimates}\n{}", trust_words(&self.trust))
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
        })
    }

    fn cells(&self) -> [String; 5] {
        let [low, high] = display::interval(self.interval.low, self.interval.high);
        [self.name.clone(), readable(self.estimate.estimate), readable(self.estimate.sd), low, high]
    }
}

fn questions_table(questions: &[QuestionResult]) -> Table {
    Table::new(&["question", "estimate", "sd", "from", "to"]).with_rows(questions.iter().map(QuestionResult::cells))
}

/// One sentence per claim: what it rests on.
pub(super) fn trust_words(trust: &[Trust]) -> String {
    let sentence = |trust: &Trust| {
        let subject = if trust.view == "linked" { "owner's own report" } else { "release" };
        format!("ε of the {subject}: {}. {}\n", readable_up(trust.epsilon), trust.holds)
    };
    trust.iter().map(sentence).collect()
}
