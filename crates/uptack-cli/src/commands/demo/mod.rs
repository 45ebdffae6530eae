//! `uptack demo`

mod scene;
mod story;

use std::path::Path;
use std::time::Instant;

use clap::Args;
use tempfile::TempDir;
use uptack::card::Card;
use uptack_dap::desk_client::{Client as Analyst, Schedule};
use uptack_dap::protocol::Measurement;
use uptack_dap::release::record::Record;
use uptack_dap::{card_task, client::Client as Writer};
use uptack_owner::attributes::Named;
use uptack_owner::check::Checker;
use uptack_owner::client::{Client as Owner, Config as OwnerConfig, Outcome as Answered, Status};
use uptack_owner::ledger::Ledger;
use uptack_owner::policy::Policy;
use uptack_server::desk::{Config, Desk};

use self::scene::Scene;
use self::story::Outcome;
use super::result::fetch;
use crate::arguments::{count, seconds};
use crate::desk::read_token;
use crate::failure::Failure;
use crate::output::{grouped, print, print_json};
use crate::progress::{ProgressLine, say};

/// Show everything at once: a desk, two aggregators and a few thousand vehicles on this machine
///
/// The desk plans and signs a question, each vehicle verifies the card for itself and answers by coins through the
/// private write, and the analyst reads an estimate. Nothing is left behind.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack demo
  uptack demo --rare
  uptack demo --vehicles 20000 --json")]
pub(crate) struct Arguments {
    /// How many vehicles
    #[arg(long, default_value = "3000", value_parser = count)]
    vehicles: u64,
    /// A station with few vehicles and no noise of the aggregators: the vehicles' own coins hide them, and ⊥ pays
    #[arg(long, conflicts_with = "answers")]
    rare: bool,
    /// A limit on each single answer: several answers share one coin, and their noise cancels in the sums
    #[arg(long)]
    answers: bool,
    /// How long they may answer; by default long enough for all of them
    #[arg(long, value_parser = seconds)]
    closes: Option<u64>,
    /// Keep everything running until Ctrl-C, ask one question after the other, and print a link to the analyst's pages
    #[arg(long)]
    keep: bool,
}

impl Arguments {
    fn scene(&self) -> Scene {
        match (self.rare, self.answers) {
            (true, _) => Scene::rare(self.vehicles),
            (_, true) => Scene::answers(self.vehicles),
            _ => Scene::station(self.vehicles),
        }
    }

    /// Reports are made at a thousand per second and taken at a few hundred, on a small machine. A large crowd gets half as
    /// much time again, in which the machine may do something else for a while.
    fn closes(&self) -> u64 {
        self.closes.unwrap_or(10 + self.vehicles / 300 + self.vehicles.saturating_sub(3000) / 400)
    }
}

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
    let scene = arguments.scene();
    let desk = Desk::start(Config::new(folder.path().join("desk"))).await?;
    if arguments.keep {
        invite(&desk)?;
    }
    say(&format!("{}\n\n", scene.question()));
    let analyst = Analyst::new(&desk.url(), Some(read_token(&desk.first_token())?), None)?;
    let (draft, gain) = scene.planned()?;
    say(&story::plan(&draft, &gain));
    let opened = analyst.open(&draft, Schedule::Once { seconds: arguments.closes() }).await?;
    say(&format!("The desk signed the card and opened the question until {}.\n", opened.queries[0].closes));

    let fleet = scene.vehicles()?;
    let answered = answer(&desk, &fleet, &scene, &folder.path().join("fleet")).await?;
    say(&format!("{} vehicles verified the card, tossed their coins and sent one report each.\n\n", grouped(answered)));
    let size = report_size(&opened.card).await?;
    let text = fetch(&analyst, &opened.queries[0].query, true).await?;
    let (record, card) = Record::read(&text).map(|(record, opened)| (record, opened.card))?;
    let outcome = Outcome::of(&scene, &record, &card, started.elapsed())?;
    if json {
        print_json(&outcome.json(&card))?;
    } else {
        print(&outcome.describe(&card, &story::saw(&record, size))?)?;
    }
    if arguments.keep {
        keep(&desk, &analyst, &scene, folder.path()).await?;
    }
    desk.shutdown().await;
    outcome.check()
}

/// Every vehicle as a client of its own, with a ledger entry, coins and a report.
async fn answer(desk: &Desk, fleet: &[Named], scene: &Scene, data: &Path) -> Result<u64, Failure> {
    let policy = Policy::from_toml(&scene.policy(&desk.signer().to_string()))?;
    let owner = Owner::new(OwnerConfig::new(desk.url()), Checker::new(policy), Ledger::open(data)?)?;
    let line = std::cell::RefCell::new(ProgressLine::new());
    let progress = |sent: usize, all: usize| line.borrow_mut().show("reports acknowledged", sent as u64, all as u64);
    let outcomes = owner.visit(fleet, progress).await?;
    drop(line);
    match outcomes.iter().find(|outcome| outcome.status != Status::Answered) {
        Some(silent) => Err(unanswered(silent)),
        None => Ok(outcomes.len() as u64),
    }
}

fn unanswered(outcome: &Answered) -> Failure {
    let reason = outcome.reason.as_deref().unwrap_or("no reason given");
    Failure::environment(format!("a vehicle did not answer: {reason}"))
        .with_hint("on a slow machine give them more time, as in --closes 5m")
}

/// The size of every report, from one that is made for showing and never sent.
async fn report_size(card: &Card) -> Result<usize, Failure> {
    let writer = Writer::new(card_task::parameters(card)?)?;
    let measurement = match card.mechanism.noise() {
        Some(_) => Measurement::Bits(vec![false]),
        None => Measurement::Cell(0),
    };
    Ok(writer.seal(&measurement, card.window()?.0).await?.as_bytes().len())
}

/// Prints a link that signs a browser in, once.
fn invite(desk: &Desk) -> Result<(), Failure> {
    if let Some(link) = desk.sign_in_link()? {
        say(&format!("Watch it in a browser; the link works once:\n  {link}\n\n"));
    }
    Ok(())
}

async fn keep(desk: &Desk, analyst: &Analyst, scene: &Scene, folder: &Path) -> Result<(), Failure> {
    let signals = uptack_server::base::listener::Signals::install()?;
    say(&format!(
        "\nrunning until Ctrl-C, with a new question whenever one closes\n  desk    {}\n  leader  {}\n  helper  {}\n  \
         token   {}\n  signer  {}\n  folder  {}\n\n",
        desk.url(),
        desk.leader_url(),
        desk.helper_url(),
        desk.first_token().display(),
        desk.signer(),
        folder.display(),
    ));
    invite(desk)?;
    let data = folder.join("kept-fleet");
    tokio::select! {
        stopped = signals.wait(async || {}) => Ok(stopped?),
        failed = keep_asking(desk, analyst, scene, &data) => failed,
    }
}

/// Asks about one station after the other, and has the vehicles answer little by little; ends only if something fails.
async fn keep_asking(desk: &Desk, analyst: &Analyst, first: &Scene, data: &Path) -> Result<(), Failure> {
    let policy = Policy::from_toml(&first.endless_policy(&desk.signer().to_string()))?;
    let window = ROUND + first.vehicles()?.len() as u64 / 100;
    let config = OwnerConfig { within: Some(window / 2), ..OwnerConfig::new(desk.url()) };
    let owner = Owner::new(config, Checker::new(policy), Ledger::open(data)?)?;
    for round in 1.. {
        let scene = first.again(round);
        let opened = analyst.open(&scene.planned()?.0, Schedule::Once { seconds: window }).await?;
        owner.visit(&scene.vehicles()?, |_, _| {}).await?;
        let closes = opened.card.window()?.1;
        let left = closes.saturating_sub(uptack_dap::clock::Clock::system().now());
        tokio::time::sleep(std::time::Duration::from_secs(left + 1)).await;
    }
    Ok(())
}

/// How long a question of a demo that is kept running is open at least, in seconds.
const ROUND: u64 = 45;
