//! `uptack queries` and `uptack cancel`: the queries that an analyst asked.

use clap::Args;
use serde_json::{Value, json};
use uptack::card::{CardQuestion, Timestamp};
use uptack::display::{self, Rounding};
use uptack::estimate::{Confidence, Estimator, IntervalKind};
use uptack_dap::clock::Clock;
use uptack_dap::desk_client::{DeskClient, Overview};
use uptack_dap::release::record::Record;
use uptack_dap::release::results::{Observed, shared_interval};

use super::{DeskArguments, block_on};
use crate::failure::{Result, ResultExt};
use crate::output::{Table, grouped, print_result, readable};
use crate::progress::span;

/// List your queries: state, reports so far, time left, and the estimates of those whose results you have fetched
///
/// An administrator sees everybody's. Results that nobody has fetched yet are not fetched; `uptack result` does that.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack queries --desk http://127.0.0.1:8080 --token desk/tokens/analyst
  uptack queries --desk http://127.0.0.1:8080 --token desk/tokens/analyst --json")]
pub(crate) struct QueriesArguments {
    #[command(flatten)]
    desk: DeskArguments,
}

/// A query with its estimate, if its result was fetched; a ballot has one for each of its questions.
struct Listed {
    overview: Overview,
    estimates: Vec<ListedEstimate>,
    is_ballot: bool,
}

struct ListedEstimate {
    name: Option<String>,
    estimate: f64,
    interval: [f64; 2],
}

pub(crate) fn run_queries(arguments: &QueriesArguments, json: bool) -> Result<()> {
    let client = arguments.desk.client()?;
    let queries = block_on(list(&client))?;
    let document: Value = queries.iter().map(Listed::json).collect();
    print_result(json, &document, || describe(&queries))
}

fn describe(queries: &[Listed]) -> String {
    if queries.is_empty() {
        return "You have not asked anything yet.\n".to_owned();
    }
    let now = Clock::system().now();
    let rows = queries.iter().map(|query| query.cells(now));
    let estimate = format!("estimate ({} interval)", display::percent(Confidence::USUAL, 0, Rounding::Nearest));
    let header = ["query", "question", "window (UTC)", "state", "reports", "time left", &estimate];
    Table::new(&header).with_rows(rows).render()
}

async fn list(client: &DeskClient) -> Result<Vec<Listed>> {
    let mut queries = Vec::new();
    for overview in client.own().await? {
        queries.push(Listed::fetch(client, overview).await?);
    }
    Ok(queries)
}

/// The estimate of each question of a record, and whether it is the record of a ballot.
fn estimates(record: &str) -> Result<(Vec<ListedEstimate>, bool)> {
    let (record, opened) = Record::read(record)?;
    let estimator = Estimator::new(&opened.card.checked_channel()?)?;
    let observed = record.observed(&estimator)?;
    // All intervals of a ballot hold at once, as in its result.
    let each = shared_interval(&observed, Confidence::new(Confidence::USUAL)?, IntervalKind::Auto)?;
    let estimates = observed.into_iter().map(|question| ListedEstimate::new(question, &estimator, each)).collect();
    Ok((estimates, matches!(opened.card.asked(), CardQuestion::Ballot(_))))
}

impl ListedEstimate {
    fn new(
        Observed { name, observation }: Observed,
        estimator: &Estimator,
        (confidence, kind): (Confidence, IntervalKind),
    ) -> Self {
        let interval = estimator.interval(&observation, confidence, kind);
        let estimate = estimator.estimate_observed(&observation).estimate;
        Self { name, estimate, interval: [interval.low, interval.high] }
    }

    fn json(&self) -> Value {
        json!({"name": self.name, "estimate": self.estimate, "interval": self.interval})
    }

    fn words(&self) -> String {
        let [low, high] = display::interval(self.interval[0], self.interval[1]);
        format!("{} ({low} to {high})", readable(self.estimate))
    }
}

impl Listed {
    /// Fetches the result of a query that is released; asking for any other would release it.
    async fn fetch(client: &DeskClient, overview: Overview) -> Result<Self> {
        if overview.state != "released" {
            return Ok(Self { overview, estimates: Vec::new(), is_ballot: false });
        }
        let record = client.result(&overview.query).await?;
        let (estimates, is_ballot) = estimates(&record).at(&overview.query)?;
        Ok(Self { overview, estimates, is_ballot })
    }

    fn json(&self) -> Value {
        let Overview { query, question, state, reports, minimum_batch, opens, closes, reason } = &self.overview;
        let one = self.estimates.first().filter(|_| !self.is_ballot);
        let mut document = json!({
            "query": query, "question": question, "state": state, "reports": reports,
            "minimum_batch": minimum_batch, "opens": opens, "closes": closes, "reason": reason,
            "estimate": one.map(|one| one.estimate), "interval": one.map(|one| one.interval),
        });
        if self.is_ballot {
            document["estimates"] = self.estimates.iter().map(ListedEstimate::json).collect();
        }
        document
    }

    fn cells(&self, now: u64) -> [String; 7] {
        let overview = &self.overview;
        [
            overview.query.clone(),
            overview.question.clone().unwrap_or_default(),
            window(&overview.opens, &overview.closes),
            overview.state.clone(),
            filled(overview),
            time_left(overview, now),
            self.estimate_words(),
        ]
    }

    fn estimate_words(&self) -> String {
        match self.estimates.as_slice() {
            [] => String::new(),
            [one] => one.words(),
            many => format!("{} questions", many.len()),
        }
    }
}

/// The number of reports against the minimum batch. Of a query that is over without a result nobody counts them any more.
fn filled(overview: &Overview) -> String {
    let Overview { reports, minimum_batch, state, .. } = overview;
    if reports.is_none() && matches!(state.as_str(), "cancelled" | "withheld") {
        return "nothing is released".to_owned();
    }
    let reports = reports.map_or("unknown".to_owned(), grouped);
    minimum_batch.map_or(reports.clone(), |minimum| format!("{reports} of at least {}", grouped(minimum)))
}

/// When answers are taken, by which the windows of a series are told apart; a date is not repeated.
fn window(opens: &str, closes: &str) -> String {
    let readable = |moment: &str| moment.trim_end_matches('Z').replace('T', " ");
    let (opens, closes) = (readable(opens), readable(closes));
    let same_day = opens.split(' ').next().and_then(|day| closes.strip_prefix(day));
    format!("{opens} to {}", same_day.map_or(closes.as_str(), str::trim_start))
}

fn time_left(overview: &Overview, now: u64) -> String {
    if !matches!(overview.state.as_str(), "open" | "opening") {
        return String::new();
    }
    let until = |moment: &str| seconds(moment).saturating_sub(now);
    match (until(&overview.opens), until(&overview.closes)) {
        (0, 0) => String::new(),
        (0, left) => span(left as f64),
        (wait, _) => format!("opens in {}", span(wait as f64)),
    }
}

fn seconds(moment: &str) -> u64 {
    moment.parse::<Timestamp>().map_or(0, Timestamp::seconds)
}

/// Cancel a query: nothing is released, and its reports are deleted
///
/// Budget that owners have already spent on it is not returned.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack cancel QUERY --desk http://127.0.0.1:8080 --token desk/tokens/analyst")]
pub(crate) struct CancelArguments {
    /// The query's name, as `uptack ask` printed it
    // A query's name may begin with a hyphen.
    #[arg(allow_hyphen_values = true)]
    query: String,
    #[command(flatten)]
    desk: DeskArguments,
}

pub(crate) fn run_cancel(CancelArguments { query, desk }: &CancelArguments, json: bool) -> Result<()> {
    block_on(desk.client()?.cancel(query))?;
    print_result(json, &json!({"query": query, "state": "cancelled"}), || format!("{query} is cancelled.\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_a_series_are_told_apart_by_their_times() {
        let moment = |seconds| Timestamp::from_seconds(seconds).unwrap().to_string();
        let windows = [86_000, 86_300].map(|opens| window(&moment(opens), &moment(opens + 300)));
        assert_eq!(windows, ["1970-01-01 23:53:20 to 23:58:20", "1970-01-01 23:58:20 to 1970-01-02 00:03:20"]);
    }

    #[test]
    fn fill_and_time_left_are_told_as_far_as_they_are_known() {
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
        let fill =
            |state: &str, reports, minimum_batch| filled(&Overview { reports, minimum_batch, ..overview(state) });
        assert_eq!(fill("open", Some(12_000), Some(24_000)), "12 000 of at least 24 000");
        assert_eq!(fill("closed", None, Some(24)), "unknown of at least 24");
        assert_eq!(fill("open", Some(3), None), "3");
        // The pages say the same: the desk knew how many there were, and no longer asks.
        for over in ["withheld", "cancelled"] {
            assert_eq!(fill(over, None, Some(24)), "nothing is released");
        }
        assert_eq!(time_left(&overview("open"), 880), "opens in 20 s");
        assert_eq!(time_left(&overview("open"), 970), "30 s");
        assert_eq!(time_left(&overview("open"), 1000), "");
        assert_eq!(time_left(&overview("released"), 0), "");
    }
}
