//! `uptack queries`

use clap::Args;
use serde_json::{Value, json};
use uptack::card::Timestamp;
use uptack::display;
use uptack::estimate::{Confidence, Estimator, IntervalKind};
use uptack_dap::clock::Clock;
use uptack_dap::desk_client::{Client, Overview};
use uptack_dap::release::record::Record;
use uptack_dap::release::results::{Observed, shared_confidence};

use crate::desk::{DeskArguments, block_on};
use crate::failure::Failure;
use crate::output::{Table, grouped, print, print_json, readable};
use crate::progress::span;

/// List your queries: state, reports so far, time left, and the estimates of those whose results you have fetched
///
/// An administrator sees everybody's. A result that nobody fetched yet stays where it is: `uptack result` fetches it.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack queries --desk http://127.0.0.1:8080 --token desk/tokens/analyst
  uptack queries --desk http://127.0.0.1:8080 --token desk/tokens/analyst --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    desk: DeskArguments,
}

/// The confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// A query with what its result says; a ballot has one for each of its questions.
struct Listed {
    overview: Overview,
    estimates: Vec<Estimated>,
    is_ballot: bool,
}

struct Estimated {
    name: Option<String>,
    estimate: f64,
    interval: [f64; 2],
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let client = arguments.desk.client()?;
    let queries = block_on(list(&client))?;
    if json {
        return print_json(&queries.iter().map(Listed::json).collect::<Vec<_>>());
    }
    if queries.is_empty() {
        return print("You asked nothing yet.\n");
    }
    let mut table = Table::new(&["query", "question", "state", "reports", "time left", "estimate"]);
    let now = Clock::system().now();
    for query in &queries {
        table.row(query.cells(now));
    }
    print(&table.render())
}

async fn list(client: &Client) -> Result<Vec<Listed>, Failure> {
    let mut queries = Vec::new();
    for overview in client.own().await? {
        // To ask for any other would release it.
        let record = match overview.state.as_str() {
            "released" => Some(client.result(&overview.query).await?),
            _ => None,
        };
        let place = |failure: Failure| failure.at(&overview.query);
        let (estimates, is_ballot) = record.map_or(Ok((Vec::new(), false)), |text| estimates(&text)).map_err(place)?;
        queries.push(Listed { overview, estimates, is_ballot });
    }
    Ok(queries)
}

/// What a record says of each of its questions, and whether it is of a ballot.
fn estimates(record: &str) -> Result<(Vec<Estimated>, bool), Failure> {
    let (record, opened) = Record::read(record)?;
    let estimator = Estimator::new(&opened.card.checked_channel()?)?;
    let observed = record.observed(&estimator)?;
    // Of a ballot all intervals hold at once, as in its result.
    let confidence = shared_confidence(&observed, Confidence::new(CONFIDENCE)?)?;
    let estimated = |Observed { name, observation }: Observed| {
        let interval = estimator.interval(&observation, confidence, IntervalKind::Auto);
        let estimate = estimator.estimate_observed(&observation).estimate;
        Estimated { name, estimate, interval: [interval.low, interval.high] }
    };
    Ok((observed.into_iter().map(estimated).collect(), opened.card.ballot.is_some()))
}

impl Listed {
    fn json(&self) -> Value {
        let Overview { query, question, state, reports, minimum_batch, opens, closes, reason } = &self.overview;
        let one = self.estimates.first().filter(|_| !self.is_ballot);
        let mut document = json!({
            "query": query, "question": question, "state": state, "reports": reports,
            "minimum_batch": minimum_batch, "opens": opens, "closes": closes, "reason": reason,
            "estimate": one.map(|one| one.estimate), "interval": one.map(|one| one.interval),
        });
        if self.is_ballot {
            let entry = |one: &Estimated| json!({"name": one.name, "estimate": one.estimate, "interval": one.interval});
            document["estimates"] = self.estimates.iter().map(entry).collect();
        }
        document
    }

    fn cells(&self, now: u64) -> [String; 6] {
        let overview = &self.overview;
        let words = |one: &Estimated| {
            let [low, high] = display::interval(one.interval[0], one.interval[1]);
            format!("{} ({low} to {high})", readable(one.estimate))
        };
        let estimate = match self.estimates.as_slice() {
            [] => String::new(),
            [one] => words(one),
            many => format!("{} questions", many.len()),
        };
        [
            overview.query.clone(),
            overview.question.clone().unwrap_or_default(),
            overview.state.clone(),
            filled(overview.reports, overview.minimum_batch),
            time_left(overview, now),
            estimate,
        ]
    }
}

fn filled(reports: Option<u64>, minimum_batch: Option<u64>) -> String {
    let reports = reports.map_or("unknown".to_owned(), grouped);
    minimum_batch.map_or(reports.clone(), |minimum| format!("{reports} of at least {}", grouped(minimum)))
}

fn time_left(overview: &Overview, now: u64) -> String {
    let seconds = |moment: &str| moment.parse::<Timestamp>().map_or(0, Timestamp::seconds);
    let (opens, closes) = (seconds(&overview.opens), seconds(&overview.closes));
    match overview.state.as_str() {
        "open" | "opening" if opens > now => format!("opens in {}", span((opens - now) as f64)),
        "open" | "opening" if closes > now => span((closes - now) as f64),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_and_time_left_are_told_as_far_as_they_are_known() {
        assert_eq!(filled(Some(12_000), Some(24_000)), "12 000 of at least 24 000");
        assert_eq!((filled(None, Some(24)), filled(Some(3), None)), ("unknown of at least 24".into(), "3".into()));
        let overview = |state: &str| Overview {
            query: String::new(),
            question: None,
            state: state.to_owned(),
            reports: None,
            minimum_batch: None,
            opens: Timestamp::from_seconds(900).unwrap().to_string(),
            closes: Timestamp::from_seconds(1000).unwrap().to_string(),
            reason: None,
        };
        assert_eq!(time_left(&overview("open"), 880), "opens in 20 s");
        assert_eq!(time_left(&overview("open"), 970), "30 s");
        assert_eq!(time_left(&overview("open"), 1000), "");
        assert_eq!(time_left(&overview("released"), 0), "");
    }
}
