//! `uptack demo`

mod scene;
mod story;

use std::time::{Duration, Instant};

use clap::Args;
use tempfile::TempDir;
use uptack::card::Card;
use uptack_dap::card_task;
use uptack_dap::client::Client as Writer;
use uptack_dap::clock::Clock;
use uptack_dap::desk_client::{DeskClient as Analyst, Opened, Schedule};
use uptack_dap::protocol::Measurement;
use uptack_dap::release::record::Record;
use uptack_owner::check::Checker;
use uptack_owner::client::{Client as Owner, Config as OwnerConfig, Outcome as Answered, Status};
use uptack_owner::ledger::Ledger;
use uptack_owner::policy::Policy;
use uptack_server::base::listener::Signals;
use uptack_server::desk::{Config, Desk};

use self::scene::Scene;
use self::story::DemoResult;
use super::network::answer::acknowledgements;
use super::network::result::fetch;
use super::network::{block_on, read_token};
use crate::arguments::{count, seconds};
use crate::failure::{Failure, IoResultExt, Result};
use crate::output::{grouped, print_result};
use crate::progress::say;

/// Show everything at once: a desk, two aggregators and a few thousand vehicles on this machine
///
/// The desk plans and signs a question, each vehicle verifies the card and answers with random coin flips through the
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
    /// A station with few vehicles, and no noise from the aggregators: the vehicles' own coins hide them, and staying silent
    /// (⊥) reduces the error
    #[arg(long, conflicts_with = "answers")]
    rare: bool,
    /// A limit on each single answer: several answers share one coin, and their noise cancels in the sums
    #[arg(long)]
    answers: bool,
    /// How long the vehicles may answer; by default long enough for all of them
    #[arg(long, value_parser = seconds)]
    closes: Option<u64>,
    /// Keep everything running until Ctrl-C, ask one question after the other, and print a link to the analyst's pages
    #[arg(long)]
    keep: bool,
}

impl Arguments {
    fn scene(&self) -> Scene {
        let scene = match (self.rare, self.answers) {
            (true, _) => Scene::rare,
            (_, true) => Scene::answers,
            _ => Scene::station,
        };
        scene(self.vehicles)
    }

    /// Reports are made at a thousand per second and taken at a few hundred, on a small machine. A large crowd gets half as
    /// much time again, in which the machine may do something else for a while.
    fn closes(&self) -> u64 {
        self.closes.unwrap_or(10 + self.vehicles / 300 + self.vehicles.saturating_sub(3000) / 400)
    }
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    if !(100..=1_000_000).contains(&arguments.vehicles) {
        return Err(Failure::request("a demo has 100 to 1000000 vehicles"));
    }
    let folder = tempfile::tempdir().while_writing("a temporary folder")?;
    block_on(show(arguments, json, folder))
}

async fn show(arguments: &Arguments, json: bool, folder: TempDir) -> Result<()> {
    let started = Instant::now();
    let demo = Demo::start(arguments.scene(), folder).await?;
    if arguments.keep {
        demo.invite()?;
    }
    let opened = demo.ask(arguments.closes()).await?;
    demo.answer().await?;
    // The aggregators forget the task, and with it their keys, once its result is collected.
    let size = report_size(&opened.card).await?;
    let (record, card) = demo.fetch(&opened.queries[0].query).await?;
    let outcome = DemoResult::of(&demo.scene, &record, &card, started.elapsed())?;
    let text = outcome.describe(&card, &story::saw(&record, size))?;
    print_result(json, &outcome.json(&card), || text)?;
    if arguments.keep {
        demo.keep().await?;
    }
    demo.desk.shutdown().await;
    outcome.check()
}

/// A desk with its aggregators, and what it is asked.
struct Demo {
    scene: Scene,
    desk: Desk,
    analyst: Analyst,
    folder: TempDir,
}

impl Demo {
    async fn start(scene: Scene, folder: TempDir) -> Result<Self> {
        let desk = Desk::start(Config::new(folder.path().join("desk"))).await?;
        let analyst = Analyst::new(&desk.url(), Some(read_token(&desk.first_token())?), None)?;
        Ok(Self { scene, desk, analyst, folder })
    }

    /// Prints a link that signs a browser in, once.
    fn invite(&self) -> Result<()> {
        if let Some(link) = self.desk.sign_in_link()? {
            say(&format!("Watch it in a browser; the link works once:\n  {link}\n\n"));
        }
        Ok(())
    }

    /// Plans the question and has the desk open it.
    async fn ask(&self, seconds: u64) -> Result<Opened> {
        say(&format!("{}\n\n", self.scene.question()));
        let (draft, gain) = self.scene.planned()?;
        say(&story::plan(&draft, &gain));
        let opened = self.analyst.open(&draft, Schedule::Once { seconds }).await?;
        say(&format!("The desk signed the card and opened the question until {}.\n", opened.queries[0].closes));
        Ok(opened)
    }

    /// Every vehicle answers as a client of its own, with a ledger entry, coins and a report.
    async fn answer(&self) -> Result<()> {
        let policy = self.scene.policy(&self.desk.signer().to_string());
        let owner = self.owner(&policy, "fleet", None)?;
        let outcomes = owner.visit(&self.scene.vehicles()?, acknowledgements()).await?;
        if let Some(silent) = outcomes.iter().find(|outcome| outcome.status != Status::Answered) {
            return Err(unanswered(silent));
        }
        let answered = grouped(outcomes.len() as u64);
        say(&format!("{answered} vehicles verified the card, flipped their coins and sent one report each.\n\n"));
        Ok(())
    }

    /// The client of all vehicles, with their ledger in a folder of this name.
    fn owner(&self, policy: &str, ledger: &str, within: Option<u64>) -> Result<Owner> {
        let config = OwnerConfig { within, ..OwnerConfig::new(self.desk.url()) };
        let checker = Checker::new(Policy::from_toml(policy)?);
        let ledger = Ledger::open(&self.folder.path().join(ledger))?;
        Ok(Owner::new(config, checker, ledger)?)
    }

    async fn fetch(&self, query: &str) -> Result<(Record, Card)> {
        let (record, opened) = Record::read(&fetch(&self.analyst, query, true).await?)?;
        Ok((record, opened.card))
    }

    /// Keeps everything running until Ctrl-C.
    async fn keep(&self) -> Result<()> {
        let signals = Signals::install()?;
        say(&self.addresses());
        self.invite()?;
        tokio::select! {
            stopped = signals.wait(async || {}) => Ok(stopped?),
            failed = self.keep_asking() => failed,
        }
    }

    fn addresses(&self) -> String {
        let desk = &self.desk;
        format!(
            "\nrunning until Ctrl-C, with a new question whenever one closes\n  desk    {}\n  leader  {}\n  helper  {}\n  \
             token   {}\n  signer  {}\n  folder  {}\n\n",
            desk.url(),
            desk.leader_url(),
            desk.helper_url(),
            desk.first_token().display(),
            desk.signer(),
            self.folder.path().display(),
        )
    }

    /// Asks about one station after the other, and has the vehicles answer little by little; ends only if something fails.
    async fn keep_asking(&self) -> Result<()> {
        let policy = self.scene.endless_policy(&self.desk.signer().to_string());
        let window = ROUND + self.scene.vehicles()?.len() as u64 / 100;
        let owner = self.owner(&policy, "kept-fleet", Some(window / 2))?;
        for round in 1.. {
            self.ask_again(&self.scene.again(round), &owner, window).await?;
        }
        Ok(())
    }

    /// Asks one question, has the vehicles answer it and waits until it closes.
    async fn ask_again(&self, scene: &Scene, owner: &Owner, seconds: u64) -> Result<()> {
        let (card, _) = scene.planned()?;
        let opened = self.analyst.open(&card, Schedule::Once { seconds }).await?;
        owner.visit(&scene.vehicles()?, |_, _| {}).await?;
        let (_, closes) = opened.card.window()?;
        sleep_beyond(closes).await;
        Ok(())
    }
}

/// Waits until a moment, in seconds of the clock, has passed.
async fn sleep_beyond(moment: u64) {
    let left = moment.saturating_sub(Clock::system().now());
    tokio::time::sleep(Duration::from_secs(left + 1)).await;
}

/// The least time for which a question of a demo that keeps running is open, in seconds.
const ROUND: u64 = 45;

fn unanswered(outcome: &Answered) -> Failure {
    let reason = outcome.reason.as_deref().unwrap_or("no reason given");
    Failure::environment(format!("a vehicle did not answer: {reason}"))
        .with_hint("on a slow machine give them more time, as in --closes 5m")
}

/// The size of every report, from one that is made for showing and never sent.
async fn report_size(card: &Card) -> Result<usize> {
    let writer = Writer::new(card_task::parameters(card)?)?;
    let measurement = match card.mechanism.noise() {
        Some(_) => Measurement::Bits(vec![false]),
        None => Measurement::Cell(0),
    };
    Ok(writer.seal(&measurement, card.window()?.0).await?.as_bytes().len())
}
