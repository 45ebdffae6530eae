//! `uptack result`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use uptack::card::{Card, Trust};
use uptack::estimate::{Confidence, Estimator};
use uptack::privacy::WorkLimit;
use uptack::{Channel, display};
use uptack_dap::desk_client::Client;
use uptack_dap::release::record::Record;
use uptack_dap::release::results::{Observed, shared_confidence};
use uptack_document::interval_name;

use super::estimate;
use crate::arguments::{IntervalArgument, confidence};
use crate::desk::{DeskArguments, block_on};
use crate::failure::Failure;
use crate::output::{Table, check_writable, grouped, print, print_json, readable, readable_up, write_whole};

/// Get the result of a query, with its interval and what each claim rests on
///
/// The desk gives a record, and everything else is computed from it here: the card's name, signature and claims are
/// checked, the estimate and its interval are made from the sums. --out keeps the record together with them, so that
/// anyone can compute all of it again with `uptack verify`.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack result QUERY --desk http://127.0.0.1:8080 --token desk/tokens/analyst \\
    --wait
  uptack result QUERY --desk http://127.0.0.1:8080 --token desk/tokens/analyst \\
    --confidence 99% --out record.json")]
pub(crate) struct Arguments {
    /// The query's name, as `uptack ask` printed it
    // A query's name may begin with a hyphen.
    #[arg(allow_hyphen_values = true)]
    query: String,
    #[command(flatten)]
    desk: DeskArguments,
    /// With which probability the interval holds the truth; of a ballot, all intervals together
    #[arg(long, default_value = "0.95", value_parser = confidence)]
    confidence: Confidence,
    /// How the interval is made
    #[arg(long, value_enum, default_value = "auto")]
    interval: IntervalArgument,
    /// Wait until the query is closed and collected
    #[arg(long)]
    wait: bool,
    /// Write the record with its estimates, for `uptack verify`
    #[arg(long)]
    out: Option<PathBuf>,
}

/// How often a waiting command asks, unless the desk wants to be left alone for longer.
const LOOK: Duration = Duration::from_millis(500);
const LONGEST_LOOK: Duration = Duration::from_secs(60);
/// Where a fault is, in errors.
const PLACE: &str = "the desk's record";
/// There is no result yet.
const NOT_YET: u16 = 409;

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    arguments.out.as_deref().map_or(Ok(()), check_writable)?;
    let client = arguments.desk.client()?;
    let text = block_on(fetch(&client, &arguments.query, arguments.wait))?;
    let (record, opened) = Record::read(&text).map_err(|error| Failure::from(error).at(PLACE))?;
    if record.query != arguments.query {
        return Err(Failure::environment("the desk answers with the record of another query"));
    }
    opened.card.verify(WorkLimit::default()).map_err(|error| Failure::from(error).at("the desk's card"))?;
    let channel = opened.card.checked_channel()?;
    let trust = opened.card.trust()?;
    if let Some(path) = &arguments.out {
        let results = record.estimated(&channel, arguments.confidence, arguments.interval.into())?;
        let record = Record { results: Some(results), ..record.clone() };
        write_whole(path, format!("{}\n", serde_json::to_string(&record).expect("plain data")).as_bytes())?;
    }
    let released = Released { record: &record, card: &opened.card, channel, trust };
    match &opened.card.ballot {
        None => arguments.single(json, &released),
        Some(_) => arguments.ballot(json, &released),
    }
}

pub(super) async fn fetch(client: &Client, query: &str, wait: bool) -> Result<String, Failure> {
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
    fn single(&self, json: bool, released: &Released<'_>) -> Result<(), Failure> {
        let Released { record, channel, .. } = released;
        let solved = match (&record.tally, record.sums.as_deref()) {
            (Some(tally), None) => estimate::solve(channel, tally, self.confidence, self.interval, PLACE)?,
            (None, Some(&[sum])) => {
                estimate::solve_sum(channel, (record.reports, sum), self.confidence, self.interval, PLACE)?
            }
            _ => return Err(Failure::environment("the desk's record has neither a tally nor one sum")),
        };
        let mechanism = released.card.mechanism.to_string();
        if json {
            let document = solved.document(mechanism, self.confidence);
            return print_json(&released.with_record(serde_json::to_value(document).expect("plain data")));
        }
        let estimated = estimate::describe(&mechanism, self.confidence, &solved);
        print(&format!("{}{estimated}\n{}", heading(released.card), trust_words(&released.trust)))
    }

    /// All intervals together hold the truth with the confidence asked for.
    fn ballot(&self, json: bool, released: &Released<'_>) -> Result<(), Failure> {
        let Released { record, card, channel, trust } = released;
        let estimator = Estimator::new(channel)?;
        let questions = record.observed(&estimator).map_err(|error| Failure::from(error).at(PLACE))?;
        let each = shared_confidence(&questions, self.confidence)?;
        let mut entries = Vec::new();
        let mut table = Table::new(&["question", "estimate", "sd", "from", "to"]);
        for Observed { name, observation } in &questions {
            let name = name.clone().unwrap_or_default();
            let estimate = estimator.estimate_observed(observation);
            let interval = estimator.interval(observation, each, self.interval.into());
            let [low, high] = display::interval(interval.low, interval.high);
            table.row([name.clone(), readable(estimate.estimate), readable(estimate.sd), low, high]);
            entries.push(json!({
                "name": name,
                "owners": estimate.owners,
                "estimate": estimate.estimate,
                "sd": estimate.sd,
                "interval": [interval.low, interval.high],
                "interval_kind": interval_name(interval.kind),
            }));
        }
        if json {
            let document = json!({
                "mechanism": card.mechanism,
                "owners": record.reports,
                "confidence": self.confidence.level(),
                "estimates": entries,
            });
            return print_json(&released.with_record(document));
        }
        print(&format!(
            "{}{} owners answered. With confidence {} all intervals hold the truth at once.\n\n{}\n{}",
            heading(card),
            grouped(record.reports),
            self.confidence.level(),
            table.render(),
            trust_words(trust)
        ))
    }
}

/// What the desk gave, checked.
struct Released<'a> {
    record: &'a Record,
    card: &'a Card,
    channel: Channel,
    trust: Vec<Trust>,
}

impl Released<'_> {
    fn with_record(&self, mut document: Value) -> Value {
        document["query"] = json!(self.record.query);
        document["reports"] = json!(self.record.reports);
        document["card"] = json!(self.card);
        document["trust"] = json!(self.trust);
        document
    }
}

fn heading(card: &Card) -> String {
    card.question.as_ref().map_or(String::new(), |question| format!("{question}\n\n"))
}

pub(super) fn trust_words(trust: &[Trust]) -> String {
    let word = |trust: &Trust| {
        let epsilon = readable_up(trust.epsilon);
        format!(
            "ε of the {}: {epsilon}. {}\n",
            if trust.view == "linked" { "owner's own report" } else { "release" },
            trust.holds
        )
    };
    trust.iter().map(word).collect()
}
