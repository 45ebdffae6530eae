//! `uptack demo`

use std::path::Path;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use tempfile::TempDir;
use uptack::card::Card;
use uptack::estimate::{Confidence, Estimate, Estimator, Interval, IntervalKind};
use uptack::plan::{Over, Prior, Request, plan};
use uptack::privacy::{Delta, Epsilon};
use uptack::{Fraction, display};
use uptack_dap::desk_client::{Client as Analyst, Schedule};
use uptack_dap::protocol::Measurement;
use uptack_dap::release::record::Record;
use uptack_dap::{card_task, client::Client as Writer};
use uptack_owner::attributes::{self, Named};
use uptack_owner::check::Checker;
use uptack_owner::client::{Client as Owner, Config as OwnerConfig, Status};
use uptack_owner::ledger::Ledger;
use uptack_owner::policy::Policy;
use uptack_server::aggregator::pair::Pair;
use uptack_server::desk::{Config, Desk};

use super::result::fetch;
use crate::arguments::{count, seconds};
use crate::desk::read_token;
use crate::failure::Failure;
use crate::output::{grouped, print, print_json, readable, readable_up};
use crate::progress::{ProgressLine, say};

/// Show everything at once: a desk, two aggregators and some thousand vehicles on this machine
///
/// The desk plans and signs a question, each vehicle verifies the card for itself and answers by coins through the
/// private write, and the analyst reads an estimate. Nothing is left behind.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack demo
  uptack demo --vehicles 5000 --closes 20s
  uptack demo --keep")]
pub(crate) struct Arguments {
    /// How many vehicles
    #[arg(long, default_value = "3000", value_parser = count)]
    vehicles: u64,
    /// How long they may answer
    #[arg(long, default_value = "12s", value_parser = seconds)]
    closes: u64,
    /// Leave everything running until Ctrl-C, and print the addresses
    #[arg(long)]
    keep: bool,
}

/// The station that is asked about.
const STATION: &str = "7";
const STATIONS: u64 = 40;
/// The truth is outside of such an interval once in ten thousand demos.
const CONFIDENCE: f64 = 0.9999;

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    if !(100..=1_000_000).contains(&arguments.vehicles) {
        return Err(Failure::request("a demo has 100 to 1000000 vehicles"));
    }
    let runtime = tokio::runtime::Runtime::new().map_err(|error| Failure::writing("threads", &error))?;
    let folder = tempfile::tempdir().map_err(|error| Failure::writing("a temporary folder", &error))?;
    runtime.block_on(show(arguments, json, folder))
}

async fn show(arguments: &Arguments, json: bool, folder: TempDir) -> Result<(), Failure> {
    let started = Instant::now();
    say(&format!("{}\n", Pair::TRUST));
    let desk = Desk::start(Config::new(folder.path().join("desk"))).await?;
    say(&format!("desk {}, leader {}, helper {}\n", desk.url(), desk.leader_url(), desk.helper_url()));

    let fleet = vehicles(arguments.vehicles)?;
    let truth = at_station(arguments.vehicles);
    let analyst = Analyst::new(&desk.url(), Some(read_token(&desk.first_token())?), None)?;
    let opened = analyst.open(&planned(arguments.vehicles)?, Schedule::Once { seconds: arguments.closes }).await?;
    let query = opened.queries[0].query.clone();
    say(&format!("asked: {} It closes at {}.\n", QUESTION, opened.queries[0].closes));

    let answered = answer(&desk, &fleet, arguments.closes, &folder.path().join("fleet")).await?;
    say(&format!("{} vehicles verified the card and answered\n", grouped(answered)));
    let size = report_size(&opened.card).await?;
    let (record, card) = {
        let text = fetch(&analyst, &query, true).await?;
        let (record, opened) = Record::read(&text)?;
        (record, opened.card)
    };
    let outcome = Outcome { truth, seconds: started.elapsed().as_secs_f64(), ..Outcome::of(&record, &card)? };
    if json {
        print_json(&outcome.json(&card))?;
    } else {
        print(&outcome.describe(&card, &saw(&record, size)))?;
    }
    if arguments.keep {
        keep(&desk, folder.path()).await?;
    }
    desk.shutdown().await;
    outcome.check()
}

const QUESTION: &str = "How many vehicles are at station 7?";

/// How many vehicles are at a station: many small ones, few large.
fn share(station: u64, vehicles: u64) -> u64 {
    let weight = |station: u64| 1.0 / (station + 1) as f64;
    let all: f64 = (1..=STATIONS).map(weight).sum();
    (vehicles as f64 * weight(station) / all).floor() as u64
}

fn at_station(vehicles: u64) -> u64 {
    share(STATION.parse().expect("a number"), vehicles)
}

/// The vehicles; those that the stations do not take are on the road between them and have no such attribute.
fn vehicles(all: u64) -> Result<Vec<Named>, Failure> {
    let placed =
        (1..=STATIONS).flat_map(|station| std::iter::repeat_n(station.to_string(), share(station, all) as usize));
    let stations = placed.chain(std::iter::repeat(String::new())).take(all as usize);
    let rows = stations.enumerate().map(|(index, station)| format!("vehicle-{},{station}\n", index + 1));
    Ok(attributes::fleet_from_csv(&format!("owner,station\n{}", rows.collect::<String>()))?)
}

/// The question, planned for a release of ε = 1 even if one vehicle in ten does not toss its coins.
fn planned(vehicles: u64) -> Result<Card, Failure> {
    let minimum_batch = vehicles - vehicles / 20;
    let request = Request {
        release: Some((Epsilon::new(1.0)?, Delta::new(1e-6)?)),
        honest: Fraction::new(9, 10)?,
        minimum_batch,
        ..Request::new(vehicles, Prior { low: 0, high: vehicles / 10, over: Over::Worst })
    };
    let mut card = Card::new(&request, &plan(&request)?);
    card.question = Some(QUESTION.to_owned());
    card.predicate = Some(format!("station == \"{STATION}\""));
    card.attributes = vec!["station".to_owned()];
    Ok(card)
}

/// Every vehicle as a client of its own, with a ledger entry, coins and a report.
async fn answer(desk: &Desk, fleet: &[Named], closes: u64, data: &Path) -> Result<u64, Failure> {
    let policy = Policy::from_toml(&format!(
        "signers = [\"{}\"]\nattributes = [\"station\"]\n\
         [card]\ntrust = \"owners\"\nanswer = 16.0\nlinked = 16.0\nrelease = 1.0\nanswer-with-release = 16.0\ndelta = 1e-6\n\
         honest = 0.9\nseparate-operators = false\nenrolment = false\n\
         [lifetime]\nlinked = 100.0\nrelease = 10.0\ndelta = 1e-4\n",
        desk.signer()
    ))?;
    let within = Some(closes.saturating_sub(4).max(1));
    let config = OwnerConfig { within, ..OwnerConfig::new(desk.url()) };
    let owner = Owner::new(config, Checker::new(policy), Ledger::open(data)?)?;
    let line = std::cell::RefCell::new(ProgressLine::new());
    let progress = |sent: usize, all: usize| line.borrow_mut().show("reports acknowledged", sent as u64, all as u64);
    let outcomes = owner.visit(fleet, progress).await?;
    if let Some(refused) = outcomes.iter().find(|outcome| outcome.status != Status::Answered) {
        let reason = refused.reason.as_deref().unwrap_or("no reason given");
        return Err(Failure::environment(format!("a vehicle did not answer: {reason}")));
    }
    Ok(outcomes.len() as u64)
}

/// What is shown at the end.
struct Outcome {
    truth: u64,
    estimate: Estimate,
    interval: Interval,
    reports: u64,
    seconds: f64,
}

impl Outcome {
    fn of(record: &Record, card: &Card) -> Result<Self, Failure> {
        let Some(tally) = &record.tally else { return Err(Failure::environment("the record has no tally")) };
        let estimator = Estimator::new(&card.checked_channel()?)?;
        let observation = estimator.observe(tally)?;
        Ok(Self {
            truth: 0,
            estimate: estimator.estimate_observed(&observation),
            interval: estimator.interval(&observation, Confidence::new(CONFIDENCE)?, IntervalKind::Auto),
            reports: record.reports,
            seconds: 0.0,
        })
    }

    fn holds_truth(&self) -> bool {
        (self.interval.low..=self.interval.high).contains(&(self.truth as f64))
    }

    fn check(&self) -> Result<(), Failure> {
        if self.holds_truth() {
            return Ok(());
        }
        Err(Failure::environment("the truth is outside of the interval, which happens once in ten thousand demos"))
    }

    fn json(&self, card: &Card) -> serde_json::Value {
        json!({
            "truth": self.truth,
            "estimate": self.estimate.estimate,
            "sd": self.estimate.sd,
            "interval": [self.interval.low, self.interval.high],
            "confidence": CONFIDENCE,
            "reports": self.reports,
            "seconds": self.seconds,
            "mechanism": card.mechanism,
            "card": card,
        })
    }

    fn describe(&self, card: &Card, saw: &str) -> String {
        let [low, high] = display::interval(self.interval.low, self.interval.high);
        format!(
            "{QUESTION}\n\n\
             truth      {}\n\
             estimate   {} ± {}\n\
             interval   {low} to {high} (99.99 %)\n\
             reports    {}\n\
             seconds    {:.1}\n\n\
             The card: {}\n  \
             published counts            ε = {} at δ = {}, if {} vehicles are honest\n  \
             everything a vehicle sends  ε = {}, whoever else is dishonest\n  \
             released                    only with {} reports or more\n\n{saw}",
            grouped(self.truth),
            readable(self.estimate.estimate),
            readable(self.estimate.sd),
            grouped(self.reports),
            self.seconds,
            card.mechanism,
            readable_up(card.claims.whole_release()),
            readable_up(card.delta().value()),
            card.claim_owners().map_or(String::new(), grouped),
            readable_up(card.claims.whole_linked()),
            card.minimum_batch,
        )
    }
}

/// The size of every report, from one that is made for showing and never sent.
async fn report_size(card: &Card) -> Result<usize, Failure> {
    let writer = Writer::new(card_task::parameters(card)?)?;
    Ok(writer.seal(&Measurement::Cell(0), card.window()?.0).await?.as_bytes().len())
}

/// What each server had before its eyes.
fn saw(record: &Record, size: usize) -> String {
    let counts: Vec<String> = record.counts.iter().map(|count| grouped(*count)).collect();
    format!(
        "What each server saw:\n  \
         leader   {0} reports of {size} bytes: a random share of each, and one sealed for the helper\n  \
         helper   {0} random shares, each without its other half\n  \
         desk     the sums of all: {1}\n",
        grouped(record.reports),
        counts.join(", "),
    )
}

async fn keep(desk: &Desk, folder: &Path) -> Result<(), Failure> {
    let signals = uptack_server::base::listener::Signals::install()?;
    say(&format!(
        "\nrunning until Ctrl-C\n  desk    {}\n  leader  {}\n  helper  {}\n  token   {}\n  signer  {}\n  folder  {}\n",
        desk.url(),
        desk.leader_url(),
        desk.helper_url(),
        desk.first_token().display(),
        desk.signer(),
        folder.display(),
    ));
    Ok(signals.wait(async || {}).await?)
}
